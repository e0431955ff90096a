"""Lines of goals and statements: the engine says where each ends, because only it reads Prolog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kbcli.prolog import statements
from kbcore.errors import PrologFailed

if TYPE_CHECKING:
    from kbcli.prolog.prolog_call import Asking

HALT: Final = frozenset({"halt.", "halt"})


class Inputs:
    """Lines, and the inputs that they are so far. ``typed`` are those of an input that is not whole yet."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self.typed: list[str] = []

    def feed(self, line: str) -> list[str]:
        """Take a line; return the inputs that it completes.

        Raises: ``PrologFailed`` for a goal with a fault that no further line can correct; the lines are dropped.
        """
        if not self.typed and not line.strip():
            return []
        self.typed.append(line)
        text = "\n".join(self.typed)
        statement = statements.parse(text)
        if statement is not None and not (statement.name in statements.TAKES_CLAUSES and statement.argument):
            self.typed.clear()
            return [text]
        try:
            items = self._asking.prolog.parse(
                self._asking.source(), statement.argument if statement else text, "unchecked"
            )
        except BaseException:
            self.typed.clear()
            raise
        if items and items[-1].is_open:
            return []
        self.typed.clear()
        if statement:
            return [text]
        for one in items:
            if one.error:
                raise PrologFailed(one.error, data={"kind": "syntax_error"})
        return [one.text for one in items]

    def rest(self) -> list[str]:
        """Return the inputs that are left where the last one lacks its full stop."""
        text = "\n".join(self.typed)
        self.typed.clear()
        if not text.strip() or statements.parse(text):
            return [text] if text.strip() else []
        items = self._asking.prolog.parse(self._asking.source(), text, "unchecked")
        return [one.text for one in items]
