"""Files that moved: what was said under their old names, shown under the names that they have now. Pure.

A file that moved is the same source, so its move alone changes no fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from kbcore.model.graph import CLIENT, Link, Node, Statement
from kbcore.view.history import Later

E = TypeVar("E", Node, Link)

Names = Mapping[str, str]
"""Old path to new path."""


def followed(later: Sequence[Later[E]]) -> tuple[Names, list[Later[E]]]:
    """Return the names now of files that moved in these changes of one element, and the changes under those names.

    The changes are in order of seq. The names hold for the element as it was before the first of them.
    """
    names: dict[str, str] = {}
    found: list[Later[E]] = []
    for one in reversed(later):
        after = renamed(one.after, names)
        names = names | {old: names.get(new, new) for old, new in _moves(one.before, one.after)}
        found.append(Later(one.seq, one.key, renamed(one.before, names), after))
    return names, found[::-1]


def _moves(before: Node | Link | None, after: Node | Link | None) -> Iterator[tuple[str, str]]:
    """Yield the files that one change shows to have moved, as (old, new): one stops stating, another begins to."""
    if isinstance(before, Node) and isinstance(after, Node):
        old, new = before.path, after.path
        if CLIENT not in {old, new} and old not in after.owners.values() and new not in before.owners.values():
            yield old, new
    elif isinstance(before, Link) and isinstance(after, Link):
        for said in {one.said for one in before.statements}:
            yield from zip(_only(before, after, said), _only(after, before, said), strict=False)


def _only(one: Link, other: Link, said: str) -> list[str]:
    """Return the files that state one link and not the other, among those that say it in the same way."""
    known = {statement.src for statement in other.statements}
    return [
        statement.src
        for statement in one.statements
        if statement.said == said and statement.src != CLIENT and statement.src not in known
    ]


def renamed(element: E | None, names: Names) -> E | None:
    """Return an element as if its files had always had the names that they have now."""
    if element is None or not names:
        return element
    owners = {field: names.get(owner, owner) for field, owner in element.owners.items()}
    if isinstance(element, Link):
        said = {names.get(one.src, one.src): one for one in element.statements}
        statements = sorted(Statement(src, one.said, one.via) for src, one in said.items())
        return msgspec.structs.replace(element, owners=owners, statements=tuple(statements))
    fields = element.fields
    if "text_ref" in fields:
        path, hash_sign, anchor = str(fields["text_ref"]).partition("#")
        fields = {**fields, "text_ref": names.get(path, path) + hash_sign + anchor}
    source = names.get(element.source, element.source)
    return msgspec.structs.replace(element, owners=owners, fields=fields, source=source)
