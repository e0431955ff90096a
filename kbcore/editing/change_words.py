"""Names what a record changed, for messages: the fields of each entity, and each edge. Pure.

That a file moved is no change of what it states, and neither is the confirmation of an edge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from kbcore.model.graph import Link, Node
from kbcore.model.state import Changes, ElementChange
from kbcore.store.history.moved_files import followed, renamed
from kbcore.store.history.shown import differing, link_fields, node_fields, word
from kbcore.store.planning.plan_builder import edge_words
from kbcore.view.history import Later

E = TypeVar("E", Node, Link)

_STATED_WITH_FIELDS = frozenset({"source"})
"""Fields that change when a file states another field: the entity's source."""


def changes_in_words(changes: Changes, is_left_out: Callable[[str, str], bool]) -> list[str]:
    """Return the changes of entities and edges in words; ``is_left_out`` tells which field of an entity is not named.

    Renames are expected as one change (``renames.joined``), and are not named.
    """
    said: list[str] = []
    for node in changes.nodes:
        if not (node.before and node.after):
            said.append(f"{node.key} ({word(node.before, node.after)})")
            continue
        names = [
            f"`{name}`"
            for name in _differing(node, node_fields)
            if name not in _STATED_WITH_FIELDS and not is_left_out(node.key, name)
        ]
        if names:
            said.append(f"{', '.join(names)} of {node.key}")
    for link in changes.links:
        one = link.after or link.before
        if one is not None and (not (link.before and link.after) or _differing(link, link_fields)):
            said.append(f"the edge {edge_words(one)} ({word(link.before, link.after)})")
    return said


def _differing(change: ElementChange[E], fields: Callable[[E | None], Mapping[str, object]]) -> list[str]:
    """Return the fields that a change changed, where files that moved in it had their later names before."""
    moved, _ = followed([Later(0, change.key, change.before, change.after)])
    return differing(fields(renamed(change.before, moved)), fields(change.after))
