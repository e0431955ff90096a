"""The files that a program has: those of one folder, by their real paths.

Invariant: nothing outside of the folder is read or written, whatever links and `..` a path has.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kbcore.dml.values import term_of
from kbcore.limits import MAX_PROGRAM_FILE_BYTES, MAX_PROGRAM_WRITTEN_BYTES
from kbcore.logic.engine.terms import string
from kbcore.text.escaping import in_quotes


class FileRefused(Exception):
    """A file cannot be had. ``formal`` is the error as a term of Prolog."""

    def __init__(self, formal: str, message: str) -> None:
        super().__init__(message)
        self.formal = formal
        self.message = message


class Files:
    """The files of a folder; without one every request is refused."""

    def __init__(self, folder: Path | None) -> None:
        self._root = None if folder is None else Path(os.path.realpath(folder))
        self._written_bytes = 0
        self._actions: Final[dict[str, Callable[[Path, dict[str, Any]], str]]] = {
            "read_file": self._read,
            "check_file": self._check,
            "write_file": self._write,
            "file_kind": self._kind,
            "list_folder": self._list,
        }

    @property
    def kinds(self) -> frozenset[str]:
        """Return the kinds of requests that are about files."""
        return frozenset(self._actions)

    def answer(self, request: dict[str, Any]) -> str:
        """Return the answer to a request as a term.

        Raises:
            FileRefused: the path is outside of the folder, or the system refuses it.
        """
        named = request["path"]
        path = self._inside(named)
        try:
            return self._actions[request["kind"]](path, request)
        except FileNotFoundError as error:
            raise FileRefused(
                f"existence_error(source_sink,{string(named)})", f"There is no file {in_quotes(named)}."
            ) from error
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
            raise _refused(named, f"{in_quotes(named)}: {why}.") from error

    def _inside(self, named: str) -> Path:
        if self._root is None:
            raise _refused(named, "The program has no folder for files: `--workspace DIR` gives it one.")
        if "\0" in named:
            raise _refused(named, "A path has no character NUL.")
        path = Path(os.path.realpath(self._root / named))
        if path != self._root and self._root not in path.parents:
            raise _refused(named, f"{in_quotes(named)} is outside of the folder of the program.")
        return path

    def _read(self, path: Path, request: dict[str, Any]) -> str:
        if path.is_file() and path.stat().st_size > MAX_PROGRAM_FILE_BYTES:
            raise _refused(
                request["path"], f"{in_quotes(request['path'])} has more than {MAX_PROGRAM_FILE_BYTES:,} bytes."
            )
        if path.exists() and not path.is_file():
            raise _refused(request["path"], f"{in_quotes(request['path'])} is no file.")
        return string(path.read_bytes().decode("utf-8"))

    def _check(self, path: Path, request: dict[str, Any]) -> str:
        if path.exists() and not path.is_file():
            raise _refused(request["path"], f"{in_quotes(request['path'])} is no file.")
        if not path.parent.is_dir():
            raise FileNotFoundError
        return "true"

    def _write(self, path: Path, request: dict[str, Any]) -> str:
        self._check(path, request)
        data = request["text"].encode("utf-8")
        before = path.stat().st_size if request["mode"] == "append" and path.exists() else 0
        if before + len(data) > MAX_PROGRAM_FILE_BYTES:
            raise _refused(
                request["path"], f"{in_quotes(request['path'])} would have more than {MAX_PROGRAM_FILE_BYTES:,} bytes."
            )
        self._written_bytes += len(data)
        if self._written_bytes > MAX_PROGRAM_WRITTEN_BYTES:
            raise _refused(request["path"], f"The run has written more than {MAX_PROGRAM_WRITTEN_BYTES:,} bytes.")
        flags = os.O_APPEND if request["mode"] == "append" else os.O_TRUNC
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        return "true"

    def _kind(self, path: Path, _: dict[str, Any]) -> str:
        return string("file" if path.is_file() else "folder" if path.is_dir() else "none")

    def _list(self, path: Path, _: dict[str, Any]) -> str:
        return term_of([".", "..", *sorted(one.name for one in path.iterdir())])


def _refused(named: str, message: str) -> FileRefused:
    return FileRefused(f"permission_error(open,source_sink,{string(named)})", message)
