"""Proposals on a branch, who proposed each, and the changeset that accepts or rejects it.

A decision is a changeset like others, so it is in the log, is undone and is shared as they are. It names the seq that
the proposals were read at: what has changed since refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import LimitExceeded, Problem, ReviewRequired
from kbcore.errors.remedies import kb
from kbcore.model.changeset import Changeset, EdgeDelete, EntityDelete, digest_of, parse
from kbcore.model.graph import OBJECT_FIELDS, Link, Node, is_proposed, is_proposed_mark, proposed_mark, proposed_values
from kbcore.model.proposals import ANY, DELETED, ELEMENT, KEY
from kbcore.model.schema import Schema
from kbcore.model.state import Stamp
from kbcore.query import refuse
from kbcore.store.history.authorship import other_setters
from kbcore.store.history.log import no_such_entity
from kbcore.store.planning.plan_builder import STATED, Overwritten
from kbcore.store.proposing import may_accept
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbcore.view.view import View

_NOBODY: Final = Stamp(0, "", "\0", "")
"""A writer that is none: everybody else is another one."""


class Proposal(msgspec.Struct, frozen=True):
    """One thing that is proposed: an element, ``field`` "", or another value of one field of an accepted element.

    ``edge`` is how an edge is called (type, kind, from, to), None for an entity. ``value`` is what is proposed, for an
    element its fields, and ``now`` what is accepted, None where there is none. ``is_removal`` says that the field, or
    for ``deleted`` the element, is to go. ``by``, ``source``, ``session``, ``at`` and ``seq`` are of the record that
    proposed it, "" and 0 where that is not known.
    """

    id: str
    type: str
    version: int
    field: str = ELEMENT
    edge: tuple[str, str, str, str] | None = None
    value: Any = None
    now: Any = None
    is_removal: bool = False
    by: str = ""
    source: str = ""
    session: str = ""
    at: str = ""
    seq: int = 0

    @property
    def name(self) -> str:
        """Return what a person calls the element."""
        if self.edge is None:
            return self.id
        type_, kind, from_id, to_id = self.edge
        return f"{from_id} {f'{type_}:{kind}' if kind else type_} {to_id}"

    def as_json(self) -> dict[str, Any]:
        """Return it as front ends show it."""
        if self.edge is None:
            shown: dict[str, Any] = {"id": self.id, "type": self.type}
        else:
            type_, kind, from_id, to_id = self.edge
            shown = {"from": from_id, "type": type_, "to": to_id, **({"kind": kind} if kind else {})}
        if self.field == ELEMENT:
            shown["new"] = {name: value for name, value in self.value.items() if name != "type"}
        elif self.field == DELETED:
            shown["delete"] = True
        else:
            shown |= {"field": self.field, "now": self.now, "proposed": self.value}
        said = {name: getattr(self, name) for name in ("by", "source", "session", "at", "seq")}
        return shown | {name: value for name, value in said.items() if value}


class ProposalFilter(msgspec.Struct, frozen=True):
    """The proposals that are meant: those of these ids (of an edge, also by its ends), records, types and writers.

    What is empty leaves nothing out.
    """

    ids: tuple[str, ...] = ()
    seqs: tuple[int, ...] = ()
    types: tuple[str, ...] = ()
    actor: str = ""
    session: str = ""

    def __bool__(self) -> bool:
        """Tell whether it leaves anything out."""
        return bool(self.ids or self.seqs or self.types or self.actor or self.session)

    def means(self, one: Proposal) -> bool:
        """Tell whether a proposal is among those that are meant."""
        named = {one.id, *(one.edge[2:] if one.edge else ())}
        return (
            (not self.ids or not named.isdisjoint(self.ids))
            and (not self.seqs or one.seq in self.seqs)
            and (not self.types or one.type in self.types)
            and self.actor in {"", one.by}
            and self.session in {"", one.session}
        )


ALL: Final = ProposalFilter()


def check_types(wanted: ProposalFilter, schema: Schema) -> None:
    """Refuse types of entities and edges that do not exist. Raises: ``InvalidQuery`` with every problem."""
    known = sorted({*schema.entities, *schema.edges})
    problems = [
        Problem("$.type", "unknown_type", f"There is no type {in_quotes(name)}.", did_you_mean(name, known))
        for name in wanted.types
        if name not in known
    ]
    refuse(problems)


def with_present_names(view: View, wanted: ProposalFilter) -> ProposalFilter:
    """Return a filter whose ids are those of now. Raises: ``NotFound`` for one that no entity or edge has."""
    named, known = _present(view, wanted.ids)
    for one in named:
        if one not in known:
            raise no_such_entity(view, one)
    return msgspec.structs.replace(wanted, ids=named)


def present_names(view: View, ids: Sequence[str]) -> tuple[str, ...]:
    """Return the ids of now of the entities and edges of these ids; those that no element has are left out."""
    named, known = _present(view, ids)
    return tuple(one for one in named if one in known)


def _present(view: View, ids: Sequence[str]) -> tuple[tuple[str, ...], set[str]]:
    """Return the ids of now, and those of them that an entity or an edge has."""
    present = view.renamed(ids) if ids else {}
    named = tuple(present.get(one, one) for one in ids)
    known = {one.id for one in view.nodes(named)} | {one.id for one in view.links(named)} if named else set()
    return named, known


def find_proposals(view: View, wanted: ProposalFilter = ALL) -> list[Proposal]:
    """Return what is proposed, the earliest first, then by id and field."""
    nodes = view.nodes([row[0] for row in view.rows(f"select id from node where {ANY} order by id")])  # noqa: S608 - fixed
    links = view.links([row[0] for row in view.rows(f"select id from link where {ANY} order by id")])  # noqa: S608 - fixed
    elements: dict[str, Node | Link] = {one.id: one for one in nodes}
    elements |= {one.id: one for one in links}
    found = _with_writers(view, [one for element in elements.values() for one in _of(element)], elements)
    return sorted(filter(wanted.means, found), key=lambda one: (one.seq, one.edge is not None, one.id, one.field))


def _of(element: Node | Link) -> Iterable[Proposal]:
    edge = (element.type, element.kind, element.from_id, element.to_id) if isinstance(element, Link) else None
    base = Proposal(element.id, element.type, element.version, edge=edge)
    if is_proposed(element):
        fields = {name: value for name, value in sorted(element.fields.items()) if not is_proposed_mark(name)}
        yield msgspec.structs.replace(base, value=fields)
    for field, stated in proposed_values(element).items():
        yield msgspec.structs.replace(
            base,
            field=field,
            value=stated.get("value"),
            now=element.fields.get(field),
            is_removal=field == DELETED or "value" not in stated,
        )


def _with_writers(view: View, found: Sequence[Proposal], elements: Mapping[str, Node | Link]) -> list[Proposal]:
    """Return proposals with who wrote them: by the record since which the mark is as it is."""
    fields: dict[str, tuple[str, ...]] = {}
    for one in found:
        fields[one.id] = (*fields.get(one.id, ()), _mark(one))
    marked = {key: Overwritten(key, elements[key], names) for key, names in fields.items()}
    setters = other_setters(view, _NOBODY, marked) if marked else {}
    seqs = {by.seq for each in setters.values() for by in each.values()}
    rows = view.past.records(seqs, ("seq", "session", "source", "written_at")) if seqs else []
    records = {row[0]: row[1:] for row in rows}
    known = []
    for one in found:
        by = setters.get(one.id, {}).get(_mark(one))
        if by is not None:
            session, source, at = records.get(by.seq, ("", "", ""))
            session = "" if by.through else session
            said = {"by": by.actor, "source": source or "", "session": session or "", "at": at or "", "seq": by.seq}
            known.append(msgspec.structs.replace(one, **said))
        else:
            known.append(one)
    return known


def _mark(one: Proposal) -> str:
    return STATED if one.field == ELEMENT else proposed_mark(one.field)


def check_reviewer(workspace: Workspace, author: Author) -> None:
    """Refuse an author who may not decide what is proposed. Raises: ``ReviewRequired``."""
    if not may_accept(workspace.config.review, author):
        raise ReviewRequired(f"{in_quotes(author.actor)} may not decide what is proposed.")


def deciding_changeset(
    accepted: Sequence[Proposal],
    rejected: Sequence[Proposal],
    *,
    seq: int,
    message: str = "",
    dry_run: bool = False,
) -> Changeset:
    """Return the changeset that accepts and rejects proposals that were read at a seq.

    An element that goes takes the edges of clients at it along.

    Raises: ``LimitExceeded`` for more than one changeset can have.
    """
    count = len(accepted) + len(rejected)
    if count > limits.MAX_CHANGESET_ITEMS:
        hint = f"Decide some at a time: {kb('review', '--seq', '…')}."
        raise LimitExceeded(f"{count} proposals; the limit is {limits.MAX_CHANGESET_ITEMS}.", hint=hint)
    going = [one for one in accepted if one.field == DELETED] + [one for one in rejected if one.field == ELEMENT]
    gone = {one.id for one in going}
    items: dict[str, dict[str, Any]] = {}
    for one, is_accepted in [*((one, True) for one in accepted), *((one, False) for one in rejected)]:
        if one.id not in gone:
            _add(items.setdefault(one.id, _named(one)), one, is_accepted=is_accepted)
    of_edges = {one.id for one in (*accepted, *rejected) if one.edge is not None}
    said = message or _message(accepted, rejected)
    request = {
        "message": said,
        "expected_seq": seq,
        "dry_run": dry_run,
        "mode": "update",
        "entities": [item for key, item in items.items() if key not in of_edges],
        "edges": [item for key, item in items.items() if key in of_edges],
    }
    changeset = parse(request)
    entities = [one for one in going if one.edge is None]
    edges = [(one, one.edge) for one in going if one.edge is not None]
    return msgspec.structs.replace(
        changeset,
        is_review=True,
        cascade=True,
        entity_deletes=tuple(EntityDelete(f"$.{one.id}", one.id, one.version) for one in entities),
        edge_deletes=tuple(
            EdgeDelete(f"$.{one.name}", type_, from_id, to_id, kind, one.version)
            for one, (type_, kind, from_id, to_id) in edges
        ),
        digest=changeset.digest and digest_of("review", {**request, "going": sorted(gone)}),
    )


def _named(one: Proposal) -> dict[str, Any]:
    if one.edge is None:
        return {"id": one.id}
    type_, kind, from_id, to_id = one.edge
    return {"type": type_, "from": from_id, "to": to_id, **({"kind": kind} if kind else {})}


def _add(item: dict[str, Any], one: Proposal, *, is_accepted: bool) -> None:
    """Add a decision to what is written of an element: its mark goes, and what is accepted is written."""
    item.setdefault("metadata", {})[KEY if one.field == ELEMENT else f"{KEY}.{one.field}"] = None
    if not is_accepted or one.field in {ELEMENT, DELETED}:
        return
    prefix, dot, name = one.field.partition(".")
    value = None if one.is_removal else one.value
    if dot and prefix in OBJECT_FIELDS:
        item.setdefault(prefix, {})[name] = value
    else:
        item[one.field] = value


def _message(accepted: Sequence[Proposal], rejected: Sequence[Proposal]) -> str:
    named = [("accept", accepted), ("reject", rejected)]
    return ", ".join(f"{word} {_first(found)}" for word, found in named if found)


def _first(found: Sequence[Proposal]) -> str:
    first = found[0].name if found[0].field == ELEMENT else f"{found[0].field} of {found[0].name}"
    return first if len(found) == 1 else f"{first} and {len(found) - 1} more"
