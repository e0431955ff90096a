"""The page of what is only proposed, by who proposed it, each as a difference with what is accepted."""

from __future__ import annotations

import hashlib
from itertools import groupby
from typing import Any, Final

import msgspec

from kbcore.model.proposals import DELETED, ELEMENT
from kbcore.store.review import Proposal, ProposalFilter, check_types, find_proposals, with_present_names
from kbcore.view.view import View
from kbweb.contents import changed_fields
from kbweb.server.pages.page import MAX_OFFSET, ExportTable, HtmlPage, PageRequest, schema_of
from kbweb.server.reading import BranchState
from kbweb.server.request_values import RequestValues

FILTERS: Final = ("actor", "session", "type", "record", "id")
"""The filters of proposals that a request may name."""


class _Group(msgspec.Struct, frozen=True):
    """Proposals of one record on a page: the first has who wrote them, when and through what."""

    first: Proposal
    operations: list[dict[str, Any]]


def wanted_by(view: View, asked: RequestValues) -> ProposalFilter:
    """Return which proposals a request means.

    Raises: ``InvalidQuery`` for a seq that is none; ``NotFound`` for an id that no entity or edge has.
    """
    types, seq = asked.many("type"), asked.number("record", 0, MAX_OFFSET)
    actor, session = asked.one("actor"), asked.one("session")
    return with_present_names(view, ProposalFilter(asked.many("id"), (seq,) if seq else (), types, actor, session))


def name_of(one: Proposal) -> str:
    """Return the name of a proposal in a form: of one length, whatever its id."""
    return hashlib.sha256(f"{one.id}\n{one.field}".encode()).hexdigest()[:32]


def review(request: PageRequest, state: BranchState) -> HtmlPage:
    """Return what is proposed, by actor and record. Raises: as ``wanted_by`` and ``check_types``."""
    all_of = find_proposals(state.view)
    wanted = wanted_by(state.view, request.parameters)
    check_types(wanted, schema_of(state))
    chosen = sorted(filter(wanted.means, all_of), key=lambda one: one.by)  # those of an actor stay the earliest first
    rows = chosen[request.offset : request.offset + request.limit]
    groups = [
        (by, [_group(list(of_record)) for _, of_record in groupby(of_actor, key=lambda one: one.seq)])
        for by, of_actor in groupby(rows, key=lambda one: one.by)
    ]
    values = {
        "groups": groups,
        "fields_of": changed_fields,
        "total": len(chosen),
        "all": len(all_of),
        "actors": sorted({one.by for one in all_of if one.by}),
        "types": sorted({one.type for one in all_of}),
        "filters": [(name, value) for name in FILTERS for value in request.parameters.many(name)],
    }
    cells = [
        (one.by, one.source, one.session, one.seq or "", one.name, one.field, one.now, one.value, _change_of(one))
        for one in rows
    ]
    names = ("by", "source", "session", "seq", "of", "field", "now", "proposed", "change")
    return HtmlPage("review", "Review", values, ExportTable(names, cells))


def _group(found: list[Proposal]) -> _Group:
    return _Group(found[0], [_operation(one) for one in found])


def _change_of(one: Proposal) -> str:
    return {ELEMENT: "created", DELETED: "deleted"}.get(one.field, "updated")


def _operation(one: Proposal) -> dict[str, Any]:
    """Return a proposal in the shape of a change, as records have them."""
    shown: dict[str, Any] = {"id": one.id}
    if one.edge is not None:
        type_, kind, from_id, to_id = one.edge
        shown = {"type": type_, "kind": kind, "from": from_id, "to": to_id}
    fields: dict[str, Any] = {}
    if one.field == ELEMENT:
        fields = {name: {"before": None, "after": value} for name, value in one.value.items()}
    elif one.field != DELETED:
        fields = {one.field: {"before": one.now, "after": one.value}}
    return {**shown, "change": _change_of(one), "fields": fields, "choice": name_of(one)}
