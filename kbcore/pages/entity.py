"""The page of an entity: its fields, its edges in both directions, findings, conflicts and its last records.

Pages are read for many entities in a fixed number of statements, so that a report of a branch reads as one page does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.model.graph import PROPOSED, Link, Node, edge_json, entity_json
from kbcore.query.conflicts import ContestedValue, of
from kbcore.query.subject import Subject, read_subjects, subject_of_node
from kbcore.rules import CheckReport, Violation
from kbcore.view.tables import may_lack_an_end
from kbcore.view.view import View

RECORDS: Final = 10
"""Records of the history of an entity that its page names."""
_TIMES: Final = ("created_at", "updated_at")

_SIDES: Final = " union all ".join(
    f"select {key} as id, {seq} as seq from {table}"  # noqa: S608 - fixed names
    for name, keys in (("node", ("id",)), ("link", ("from_id", "to_id")))
    for key in keys
    for table, seq in ((name, "version"), (f"{name}_history", "version"), (f"{name}_history", "ended"))
)
_RECORDS: Final = f"""
with touched as (select distinct id, seq from ({_SIDES}) where id in (select unnest(?::varchar[]))),
placed as (select t.id, r.seq, r.written_at, r.actor, r.source, coalesce(r.message, '') as message,
  count(*) over (partition by t.id) as total, row_number() over (partition by t.id order by r.seq desc) as place
  from touched t join record r on r.seq = t.seq)
select id, total, seq, written_at, actor, source, message from placed where place <= {RECORDS} order by id, seq desc
"""  # noqa: S608 - no text from outside


class EdgeLine(msgspec.Struct, frozen=True):
    """An edge of an entity. ``other`` is its other end, None where that is missing; ``facts`` is the edge as JSON."""

    type: str
    kind: str
    is_outgoing: bool
    other_id: str
    other: Subject | None
    facts: dict[str, Any]

    @property
    def is_proposed(self) -> bool:
        """Return whether the edge as a whole is only proposed."""
        return self.facts.get(PROPOSED) is True

    def as_json(self) -> dict[str, Any]:
        """Return the edge as JSON, with the title and status of the other end."""
        shown = {
            name: getattr(self.other, name) for name in ("title", "status") if self.other and getattr(self.other, name)
        }
        return {**self.facts, **({"other": shown} if shown else {})}


class RecordRow(msgspec.Struct, frozen=True):
    """A record: its seq, time, actor, source and message."""

    seq: int
    at: str
    actor: str
    source: str
    message: str


class EntityPage(msgspec.Struct, frozen=True):
    """The page of one entity. ``records`` are the last ones that changed it or an edge of it, ``records_total`` all."""

    subject: Subject
    facts: dict[str, Any]
    edges: tuple[EdgeLine, ...]
    violations: tuple[Violation, ...] = ()
    conflicts: tuple[ContestedValue, ...] = ()
    records: tuple[RecordRow, ...] = ()
    records_total: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the page as JSON."""
        return {
            "entity": self.facts,
            "edges": [one.as_json() for one in self.edges],
            "violations": [one.as_json() for one in self.violations],
            "conflicts": [one.as_json() for one in self.conflicts],
            "records": msgspec.to_builtins(self.records),
            "records_total": self.records_total,
        }


def read_entity_pages(
    view: View, ids: Sequence[str], report: CheckReport | None = None, *, with_records: bool = True
) -> dict[str, EntityPage]:
    """Return the pages of those of these entities that exist, in the order of ids; ``report`` has what rules find."""
    nodes = {node.id: node for node in view.nodes(sorted({*ids}))}
    links = [link for link in view.as_recorded(view.touching(sorted(nodes))) if not may_lack_an_end(link)]
    edges = edge_lines(links, nodes, lambda ends: read_subjects(view.rows, ends))
    violations: dict[str, list[Violation]] = {}
    for one in report.violations if report else ():
        violations.setdefault(one.id, []).append(one)
    records = _records(view, sorted(nodes)) if with_records else {}
    return {
        id_: EntityPage(
            subject_of_node(node),
            _facts(view, node),
            tuple(edges.get(id_, ())),
            tuple(violations.get(id_, ())),
            tuple(of(node)),
            *records.get(id_, ((), 0)),
        )
        for id_, node in sorted(nodes.items())
    }


def edge_lines(
    links: Iterable[Link], ids: Collection[str], subjects_of: Callable[[list[str]], Mapping[str, Subject]]
) -> dict[str, list[EdgeLine]]:
    """Return the edges of each of these entities; ``subjects_of`` returns those of some ids that exist."""
    links = sorted(links, key=_place)
    subjects = subjects_of(sorted({end for link in links for end in (link.from_id, link.to_id)}))
    edges: dict[str, list[EdgeLine]] = {}
    for link in links:
        facts = edge_json(link)
        for near, far, is_outgoing in ((link.from_id, link.to_id, True), (link.to_id, link.from_id, False)):
            if near in ids and (is_outgoing or near != far):
                line = EdgeLine(link.type, link.kind, is_outgoing, far, subjects.get(far), facts)
                edges.setdefault(near, []).append(line)
    return edges


def _facts(view: View, node: Node) -> dict[str, Any]:
    """Return an entity as JSON without the times that its first record will give it, where it is in none yet."""
    [recorded] = view.as_recorded([node])
    shown = entity_json(recorded)
    if node.created_seq <= view.recorded_seq:
        return shown
    return {name: value for name, value in shown.items() if name not in _TIMES or name in node.owners}


def _place(link: Link) -> tuple[bool, str, str, str, str]:
    return not link.is_resolved, link.type, link.from_id, link.to_id, link.kind


def _records(view: View, ids: Sequence[str]) -> Mapping[str, tuple[tuple[RecordRow, ...], int]]:
    """Return the last records that changed each of these entities or an edge of it, and how many did."""
    found: dict[str, tuple[list[RecordRow], int]] = {}
    for id_, total, *record in view.rows(_RECORDS, [[*ids]]):
        found.setdefault(id_, ([], total))[0].append(RecordRow(*record))
    return {id_: (tuple(records), total) for id_, (records, total) in found.items()}
