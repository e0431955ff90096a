"""Lets the user change a text in an editor: GIT_EDITOR, else VISUAL, else EDITOR, else vi.

What a repository configures (``core.editor``) is never run.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from kbcore.errors import InvalidQuery
from kbcore.storage.replacing import create_file, remove_file


class EditedText:
    """A text in a file of its own while the user edits it. The file stays until ``discard``."""

    def __init__(self, place: Path, env: Mapping[str, str]) -> None:
        """``place`` is where the file is made."""
        self.place = place
        self.is_there = False
        self._env = env

    def edit(self, text: str) -> str:
        """Return the text as the user has left it. Raises: ``InvalidQuery`` when the editor fails; ``OSError``."""
        create_file(self.place, text.encode())
        self.is_there = True
        editor = next((self._env[name] for name in ("GIT_EDITOR", "VISUAL", "EDITOR") if self._env.get(name)), "vi")
        # Through the shell, as git runs it: the command may have options.
        words = ["sh", "-c", f'{editor} "$@"', editor, str(self.place)]
        status = subprocess.run(words, env=dict(self._env), check=False).returncode
        if status:
            message = f"The editor ended with status {status}: {editor}."
            raise InvalidQuery(message, hint="Set EDITOR to a command that works, or give --title.")
        try:
            return self.place.read_bytes().decode()
        except UnicodeDecodeError as error:
            raise InvalidQuery(f"{self.place} is not UTF-8 after editing.", hint="Save it as UTF-8.") from error

    def discard(self) -> None:
        """Remove the file."""
        if self.is_there:
            remove_file(self.place)
            self.is_there = False
