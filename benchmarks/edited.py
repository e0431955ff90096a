"""One document of a repository that a question edits again and again; at the end it is as it was."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Self

from benchmarks import generate
from benchmarks.measure import ProcessFailed
from tests.support.repository.places import stores_at


class Edited:
    """A document, and the head of its repository's store, which shows whether an edit was recorded."""

    def __init__(self, root: Path, name: str) -> None:
        """Take the document's name from the repository's root."""
        self.name = name
        self.path = root / name
        self.head = stores_at(root) / "main" / "head.json"
        self._before = self.path.read_bytes()
        self._first_seq = self.seq()
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.path.write_bytes(self._before)

    def edit(self) -> None:
        """Give the document another title."""
        self._number += 1
        self.path.write_bytes(generate.retitled(self._before.decode(), self._number).encode())

    def seq(self) -> int:
        """Return the number of the last record."""
        seq: int = json.loads(self.head.read_bytes())["head"]["seq"]
        return seq

    def must_have_records(self, count: int) -> None:
        """Insist that so many records were written since the beginning.

        Raises: ``ProcessFailed`` otherwise: what was measured was something else.
        """
        written = self.seq() - self._first_seq
        if written != count:
            raise ProcessFailed(f"{count} edits of {self.name} have become {written} records")
