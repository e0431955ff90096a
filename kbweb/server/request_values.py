"""The parameters of a request: the names and values of its address or of its form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import parse_qsl

from kbcore.errors import InvalidQuery
from kbcore.text.escaping import in_quotes

MAX_VALUES: Final = 200
"""Values of one request."""


class RequestValues:
    """The values of a request by their names. Those that are empty are left out, as a form sends each of its fields."""

    def __init__(self, text: str) -> None:
        """Raises: ``InvalidQuery`` for too many values, and for text that is not UTF-8."""
        try:
            pairs = parse_qsl(text, max_num_fields=MAX_VALUES, errors="strict")
        except ValueError as error:  # UnicodeDecodeError is one
            hint = "Follow a link of a page, or fill in its form."
            raise InvalidQuery("The values of the address cannot be read.", hint=hint) from error
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            if value.strip():
                self._values.setdefault(name, []).append(value.strip())

    def one(self, name: str) -> str:
        """Return the last value of a name, "" where there is none."""
        return self._values.get(name, [""])[-1]

    def many(self, name: str) -> tuple[str, ...]:
        """Return all values of a name."""
        return tuple(self._values.get(name, ()))

    def number(self, name: str, default: int, most: int, least: int = 0) -> int:
        """Return a whole number. Raises: ``InvalidQuery`` for another text, and for one out of its bounds."""
        text = self.one(name)
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most):
            message = f"{name} is {in_quotes(text)}."
            raise InvalidQuery(message, hint=f"It is a whole number from {least} to {most}.")
        return int(text)

    def values(self, but: Iterable[str] = ()) -> dict[str, list[str]]:
        """Return all values by their names, but for some names."""
        left_out = {*but}
        return {name: [*values] for name, values in self._values.items() if name not in left_out}
