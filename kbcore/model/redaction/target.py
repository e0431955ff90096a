"""The target of a redaction: texts that match a pattern, or the values of entities, records and changes. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kbcore.errors import InvalidQuery
from kbcore.model.claims.change import MESSAGE, NO_TEXT, REDACTED, key_of_field
from kbcore.model.graph import FORMER_IDS, STAMPS

NAME: Final = "redacted"
"""Written in the place of what was taken out of an id or a path; elsewhere it is ``REDACTED``."""
MIN_CHARS: Final = 4
"""A shorter literal occurs in nearly every record: it would take out much that is no secret."""

_KEPT: Final = frozenset({"type", *STAMPS, FORMER_IDS, "created_by"})
"""Fields that only a pattern, or their own name, takes out: without them an element is no element any more."""
_NUMBERS_OF_CLAUSES: Final = frozenset({"attributes.order", "attributes.line"})
CLAUSE: Final = "clause:"
"""The ids of clauses begin so."""


class RedactionTarget(msgspec.Struct, frozen=True):
    """The target: each text that matches, the fields of entities or of records, ``fields`` alone if given."""

    matches: re.Pattern[str] | None = None
    takes_names: bool = False
    """True where fields go whose names match, if the name is one that a writer chose (``key_of_field``)."""
    ids: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()
    seqs: frozenset[int] = frozenset()
    changes: frozenset[str] = frozenset()
    """The ids of the changes that came with the records: other stores and change files know these by nothing else."""
    holders: frozenset[str] = frozenset()
    """Entities that held it anywhere. What confirmations of edges say of them goes: a digest of all their values."""

    @property
    def takes_message(self) -> bool:
        """True where the message of a record or a change goes, if that is to lose its values."""
        return not self.fields or MESSAGE in self.fields

    def takes_name(self, name: str) -> bool:
        """Tell whether a field goes with its name."""
        return self.takes_names and self.matches is not None and bool(self.matches.search(key_of_field(name)))

    def is_meant(self, key: str, field: str) -> bool:
        """Tell whether the value of a field goes where an entity, a record or a change is to lose its values."""
        if not may_go(key, field):
            return False
        return field in self.fields if self.fields else field not in _KEPT


def may_go(key: str, field: str) -> bool:
    """Tell whether the value of a field can be taken out of an element, by the name of the field at least."""
    return field not in NO_TEXT and not (field in _NUMBERS_OF_CLAUSES and key.startswith(CLAUSE))


def pattern_of(text: str, *, is_regex: bool = False) -> re.Pattern[str]:
    """Return what finds a secret. Raises: ``InvalidQuery`` for one that would take out what is no secret."""
    if not is_regex:
        if len(text) < MIN_CHARS:
            message = f"The pattern has fewer than {MIN_CHARS} characters: it would be found in much that is no secret."
            raise InvalidQuery(message, hint="Give the whole secret, or name the record or the entity that holds it.")
        forms = dict.fromkeys([text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD"))])
        found = re.compile("|".join(map(re.escape, forms)))
    else:
        try:
            found = re.compile(text)
        except re.error as error:
            raise InvalidQuery(f"The pattern is no regular expression: {error}.") from error
        if found.search("") or any(found.fullmatch(one) for one in ("a", "e", "0", "1", " ")):
            message = "The pattern matches an empty text or a single character: it would take out nearly everything."
            raise InvalidQuery(message, hint="Give a regular expression that matches the secret alone.")
    if found.search(REDACTED) or found.search(NAME):
        message = f"The pattern matches {REDACTED!r}, which is written in the place of what is taken out."
        raise InvalidQuery(message, hint="Name the record or the entity that holds the secret.")
    return found


def commands(change: str, fields: Sequence[str], *options: str) -> list[tuple[str, ...]]:
    """Return the arguments of each ``kb redact`` that takes fields of a change out.

    The fields whose names go (``REDACTED``) have a command of their own: that takes a pattern of the names out.
    """
    others = [one for one in fields if one != REDACTED]
    parts = [[REDACTED]] * (REDACTED in fields) + [others] * bool(others)
    return [(change, *(f"--field={field}" for field in part), *options) for part in parts]


def names_of(ids: Iterable[str], former: Mapping[str, set[str]]) -> frozenset[str]:
    """Return these ids and all that the same entities had or got, by the former ids of each."""
    found = set(ids)
    while True:
        more = {key for key, olds in former.items() if olds & found} | {
            old for key, olds in former.items() if key in found for old in olds
        }
        if more <= found:
            return frozenset(found)
        found |= more
