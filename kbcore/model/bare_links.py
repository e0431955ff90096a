"""Bare links: a document names another entity without saying how. The two types decide which edge is meant.

Pure. Run whenever an end of a bare link comes, goes or changes its type: a link to an unknown id becomes an edge as
soon as its target exists, and has no type again once that is gone. So it is the same wherever the files are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kbcore.ids import link_id
from kbcore.model.graph import Link, Statement
from kbcore.model.record import Operation, StateLink, WithdrawLink
from kbcore.model.schema import Schema
from kbcore.model.state import State

Edge = tuple[str, str, str, str]
"""type, kind, from, to"""


def edge_meant(schema: Schema, ends: tuple[str, str], types: tuple[str | None, str | None]) -> Edge:
    """Return the edge that a bare link from a subject to a target means.

    ``ends`` and ``types`` are (subject, target); a type is None while that end does not exist, and the edge then
    has the type "".
    """
    subject, target = ends
    subject_type, target_type = types
    if subject_type is None or target_type is None:
        return "", "", subject, target
    name, kind, is_reversed = schema.bare_edge(subject_type, target_type)
    return (name, kind, target, subject) if is_reversed else (name, kind, subject, target)


def resolve(
    state: State,
    types: Mapping[str, str | None],
    schema: Schema,
    *,
    skip: frozenset[str] = frozenset(),
    keeps: Callable[[Link, Statement], bool] = lambda link, statement: False,  # noqa: ARG005 - the signature of one
) -> list[Operation]:
    """Return the operations that give bare links the edge that they now mean.

    ``types`` holds the type after the changeset of every entity that comes, goes (None) or changes its type.
    A statement that ``keeps`` returns True for keeps its edge. What the sources in ``skip`` say is planned elsewhere.
    """
    ops: list[Operation] = []
    for end in types if state.links else ():
        for link in state.links_of(end):
            for statement in link.statements:
                if not statement.said or statement.src in skip:
                    continue
                if _is_first_end(link, statement, end, types) and not keeps(link, statement):
                    ops.extend(_reread(state, link, statement, types, schema))
    return ops


def _is_first_end(link: Link, statement: Statement, end: str, types: Mapping[str, str | None]) -> bool:
    """Tell whether this end is the one to look at the link from, so that no link is looked at twice."""
    subject, _ = _ends(link, statement)
    return end == subject or subject not in types


def _ends(link: Link, statement: Statement) -> tuple[str, str]:
    return statement.said, link.to_id if link.from_id == statement.said else link.from_id


def _reread(
    state: State, link: Link, statement: Statement, types: Mapping[str, str | None], schema: Schema
) -> Iterable[Operation]:
    ends = _ends(link, statement)

    def type_of(end: str) -> str | None:
        if end in types:
            return types[end]
        node = state.nodes.get(end)
        return node.type if node else None

    meant = edge_meant(schema, ends, (type_of(ends[0]), type_of(ends[1])))
    if meant == (link.type, link.kind, link.from_id, link.to_id):
        return []
    old = state.links.get(link_id(*meant))
    mine = {name: link.fields[name] for name, owner in link.owners.items() if owner == statement.src}
    return [
        WithdrawLink(
            type=link.type,
            kind=link.kind,
            from_id=link.from_id,
            to_id=link.to_id,
            base=link.version,
            src=statement.src,
        ),
        StateLink(
            type=meant[0],
            kind=meant[1],
            from_id=meant[2],
            to_id=meant[3],
            base=old.version if old else 0,
            set=mine,
            src=statement.src,
            said=statement.said,
        ),
    ]
