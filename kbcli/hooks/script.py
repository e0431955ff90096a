"""The text of hook scripts and of configured hooks: KB's lines, and their place among others. Pure.

Taking the lines out gives back the bytes from before they were put in. They go to the top of a script,
because many scripts end in ``exit`` or ``exec``; so the script's exit status stays its own. They run in a
subshell, do not pass on their status and write to standard error only; without ``kb`` they cost a search of PATH.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

EVENTS: Final = ("post-checkout", "post-merge", "post-rewrite", "post-commit", "pre-commit")

MAX_HOOK_BYTES: Final = 1024 * 1024
"""A larger file is no script that KB edits."""
SHEBANG: Final = b"#!/bin/sh\n"

_MARK = b"# >>> kb hook >>>"
_BLOCK = re.compile(
    rb"^# >>> kb hook >>>[^\n]*\n(?:(?!# (?:>>>|<<<) kb hook )[^\n]*\n)*# <<< kb hook <<<[^\n]*(?:\n|\Z)",
    re.MULTILINE,
)
_TEMPLATE = b"""\
# >>> kb hook >>> written by `kb hooks install`; `kb hooks uninstall` removes these lines
(
  kb=$(command -v kb) || kb=%(fallback)s
  if [ -x "$kb" ]; then exec "$kb" hook %(event)s "$@"; fi
) </dev/null >&2 || :
# <<< kb hook <<<
"""
_COMMAND = (
    "(kb=$(command -v kb) || kb=%(fallback)s;"
    ' if [ -x "$kb" ]; then exec "$kb" hook %(event)s "$@"; fi) </dev/null >&2 || :'
)
_SHELL = re.compile(
    rb"#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-S[ \t]*)?(?:\S*/)?)?(?:busybox[ \t]+)?"
    rb"(?:sh|ash|bash|dash|ksh|mksh|zsh)(?:[ \t\r\n]|\Z)"
)


def block(event: str, fallback: Path | None) -> bytes:
    """Return KB's lines for one event.

    They prefer the ``kb`` of PATH. ``fallback`` is the absolute path to try next: a graphical git client
    often has a PATH without ``kb``; but such a path becomes stale with its virtual environment, so it is second.
    """
    return _TEMPLATE % {b"fallback": os.fsencode(_quoted(fallback)), b"event": event.encode("ascii")}


def command(event: str, fallback: Path | None) -> str:
    """Return the line of shell for a hook in git's configuration; git adds what it hands to the hook at its end."""
    return _COMMAND % {"fallback": _quoted(fallback), "event": event}


def _quoted(program: Path | None) -> str:
    path = "" if program is None else str(program).replace("'", "'\\''")
    return f"'{path}'"


def snippet(event: str) -> str:
    """Return the one line to add by hand to a hook that KB does not touch."""
    return f'command -v kb >/dev/null && kb hook {event} "$@" >&2 || :'


def has_block(content: bytes) -> bool:
    """Return whether KB's lines, of whatever version, are in a script."""
    return _BLOCK.search(content) is not None


def is_mangled(content: bytes) -> bool:
    """Return whether KB's lines were cut so that their end is not known."""
    return _MARK in without_block(content)


def with_block(content: bytes, lines: bytes) -> bytes:
    """Return the script with ``lines`` in place of earlier ones, or else below its first line ``#!``."""
    earlier = _BLOCK.search(content)
    if earlier is not None:
        return content[: earlier.start()] + lines + without_block(content[earlier.end() :])
    if not content:
        return SHEBANG + lines
    if not content.startswith(b"#!"):
        return lines + content
    first, newline, rest = content.partition(b"\n")
    return first + (newline or b"\n") + lines + rest


def without_block(content: bytes) -> bytes:
    """Return the script without KB's lines."""
    return _BLOCK.sub(b"", content)


def is_ours_alone(content: bytes) -> bool:
    """Return whether a script has no other content than KB's."""
    return without_block(content).strip() in {b"", SHEBANG.strip()}


def is_shell(content: bytes) -> bool:
    """Return whether a script is for a shell that can run KB's lines. Without ``#!``, git takes ``sh``."""
    if b"\0" in content:
        return False
    return _SHELL.match(content) is not None if content.startswith(b"#!") else True
