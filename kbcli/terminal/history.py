"""The input history of a prompt, kept in the user's state folder; never in ``.kb``.

It is only a courtesy: where it cannot be read or written, the prompt works without it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kbcore.storage.scratch import user_folder

MAX_LINES: Final = 1000
_FOLDER: Final = "kb"
_PRIVATE: Final = 0o700


def place(env: Mapping[str, str], name: str) -> Path | None:
    """Return where a history is kept: below XDG_STATE_HOME, else ``~/.local/state``; None where there is no home."""
    state = user_folder(env, "XDG_STATE_HOME", ".local/state")
    return state / _FOLDER / name if state else None


def load(readline: Any, path: Path | None) -> None:
    """Let the prompt know what was typed before."""
    readline.set_history_length(MAX_LINES)
    if path:
        with contextlib.suppress(OSError):
            readline.read_history_file(path)


def save(readline: Any, path: Path | None) -> None:
    """Keep the last lines that were typed, readable only for this user."""
    if path:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
            readline.write_history_file(path)
            path.chmod(0o600)
