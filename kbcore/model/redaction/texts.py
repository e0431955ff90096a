"""Texts, values and ids without a pattern: the same id gets the same new one everywhere. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, Final

import msgspec

from kbcore.errors import InvalidQuery
from kbcore.model.claims.change import REDACTED
from kbcore.model.redaction.target import NAME

_HASHED_NAME: Final = re.compile(r"(.+):~[0-9a-f]{32}")
"""The id of an entity of KIP whose name cannot be part of an id: it has a digest of the name."""
_encode = msgspec.json.Encoder().encode


class RedactedTexts:
    """Texts and ids from which a pattern is taken out; with none, only ids that are made of a redacted name change.

    ``taken`` are ids that no new one may be, ``derived`` those that are made of a name which is taken out.
    """

    def __init__(self, pattern: re.Pattern[str] | None, taken: Collection[str], derived: Collection[str]) -> None:
        self._pattern = pattern
        self._taken = taken
        self._derived = derived
        self.new_ids: dict[str, str] = {}
        """The new id of each entity and edge that has one."""

    def holds(self, text: str) -> bool:
        """Tell whether the pattern is in a text."""
        return self._pattern is not None and self._pattern.search(text) is not None

    def without(self, text: str, mark: str = REDACTED) -> str:
        """Return a text without the pattern: also where what is left would match."""
        if text in self.new_ids or self._pattern is None or not self.holds(text):
            return self.new_ids.get(text, text)
        new = self._pattern.sub(lambda _: mark, text)
        return mark if self.holds(new) else new

    def cleared(self, value: Any) -> Any:
        """Return a JSON value without the pattern, which may be in a text, a number, or the name of a member."""
        if self._pattern is None or isinstance(value, bool) or value is None:
            return value
        if isinstance(value, str):
            return self.without(value)
        if isinstance(value, list):
            new = [self.cleared(one) for one in value]
            return [one for at, one in enumerate(new) if one == value[at] or one not in new[:at]]
        if isinstance(value, dict):
            return self._cleared_members(value)
        return REDACTED if self.holds(_encode(value).decode()) else value

    def _cleared_members(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return an object without the pattern; members whose names become equal are numbered, so that none is lost."""
        found = dict[str, Any]()
        for key, member in value.items():
            name = new = self.without(key)
            number = 1
            while name in found or (name != key and name in value):
                number += 1
                name = f"{new}-{number}"
            found[name] = self.cleared(member)
        return found

    def new_id(self, id_: str) -> str:
        """Return the id that an entity or an edge has now; another one where the pattern is part of it."""
        hashed = _HASHED_NAME.fullmatch(id_) if id_ in self._derived else None
        if id_ and id_ not in self.new_ids and (hashed or self.holds(id_)):
            stem = f"{hashed[1]}:{NAME}" if hashed else self.without(id_, NAME).strip()
            new, number = stem, 1
            while new in self._taken or new in self.new_ids.values():
                number += 1
                new = f"{stem}-{number}"
            self.new_ids[id_] = new
        return self.new_ids.get(id_, id_)

    def refuse_in(self, name: str, what: str) -> None:
        """Refuse a pattern that is part of a name. Raises: ``InvalidQuery``."""
        if self.holds(name):
            raise InvalidQuery(
                f"The pattern is part of the name of {what}: without it the records could not be read.",
                hint="No redaction takes it out of there: revoke it if it is the secret, else give more of the secret."
                " The values that hold it go by the id of the entity or the seq of the record.",
            )


def is_hashed_name(id_: str) -> bool:
    """Tell whether an id has a digest of a name."""
    return _HASHED_NAME.fullmatch(id_) is not None


def texts_of(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value, the names of members among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from texts_of(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from texts_of(one)
