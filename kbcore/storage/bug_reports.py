"""Reports of bugs: files in the cache, which the user may send to the authors of KB.

They hold nothing that was stored, typed or set: no text of an error, no argument, no value of a variable, no path above
the packages.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Final

from kbcore import __version__

BUGS: Final = "bugs"
"""The folder of reports, in the cache."""

_MOST_FRAMES: Final = 40
"""Frames of one error that are kept from its beginning, and as many from its end."""
_MOST_ERRORS: Final = 10


def write_report(error: BaseException, doing: str, cache: Path | None) -> Path | None:
    """Write what is needed to find a bug, into the cache or else the temporary directory; return where.

    ``doing`` says what failed, in words of the program's own. The file is its owner's alone.
    """
    text = f"kb {__version__}, Python {platform.python_version()}, {platform.platform()}\n{doing}\n\n{_frames(error)}"
    for folder in ([cache / BUGS] if cache else []) + [Path(tempfile.gettempdir())]:
        with contextlib.suppress(OSError):
            if folder.parent.is_dir():
                folder.mkdir(exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix="kb-bug-", suffix=".txt", dir=folder)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            return Path(name)
    return None


def place_of(report: Path | None) -> str:
    """Return the sentence that says where a report is."""
    return f"A report is in {report}." if report else "A report could not be written."


def _frames(error: BaseException) -> str:
    """Return the errors that led to this one and the lines of code they passed, the last one at the end."""
    parts: list[str] = []
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen and len(seen) < _MOST_ERRORS:
        seen.add(id(one))
        frames = traceback.extract_tb(one.__traceback__)
        lines = [
            f"  {_module_path(frame.filename)}:{frame.lineno} {frame.name}\n    {frame.line}\n" for frame in frames
        ]
        if len(lines) > 2 * _MOST_FRAMES:
            lines[_MOST_FRAMES:-_MOST_FRAMES] = [f"  … {len(lines) - 2 * _MOST_FRAMES} more …\n"]
        number = f" {errno.errorcode.get(one.errno or 0, one.errno)}" if isinstance(one, OSError) else ""
        parts.append(f"Traceback, without the text of the error:\n{''.join(lines)}{type(one).__qualname__}{number}\n")
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return "\n".join(reversed(parts))


def _module_path(filename: str) -> str:
    """Return the path of a module from the folder that Python imports it from; it names no folder of the user."""
    roots = [root for root in sys.path if root and filename.startswith(f"{root.rstrip(os.sep)}{os.sep}")]
    return filename[len(max(roots, key=len).rstrip(os.sep)) + 1 :] if roots else filename.rpartition(os.sep)[2]
