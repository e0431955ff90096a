"""Proposals as a diff with what is accepted, below who proposed it and when. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from kbcli.messages.changes import field_lines, short_time, show_change
from kbcli.terminal.output import Output
from kbcore.model.graph import OBJECT_FIELDS, nested
from kbcore.model.proposals import DELETED, ELEMENT
from kbcore.text.escaping import escape_controls
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcore.store.review import Proposal


def lines(output: Output, found: Sequence[Proposal]) -> Iterator[str]:
    """Yield the lines of proposals, those of one record together."""
    for _, of_record in groupby(found, key=lambda one: one.seq):
        several = list(of_record)
        first = several[0]
        who = f"{first.by or 'unknown'} through {first.source}" if first.source else first.by or "unknown"
        session = f", session {first.session}" if first.session else ""
        yield escape_controls(f"seq {first.seq}  {short_time(first.at)}  {who}{session}")
        for one in several:
            yield from (f"  {line}" for line in _lines_of(output, one))


def total(branch: str, seq: int, found: Sequence[Proposal]) -> str:
    """Return the last line: how much is proposed, and how it is decided."""
    if not found:
        return escape_controls(f"{branch} at seq {seq}: nothing is proposed.")
    said = f"{branch} at seq {seq}: {pluralize(len(found), 'proposal')}."
    return escape_controls(f"{said} `kb review --help` says how to accept or reject.")


def _lines_of(output: Output, one: Proposal) -> Iterator[str]:
    if one.field == DELETED:
        yield from show_change(output, {**_named(one), "change": "deleted", "before": {"type": one.type}})
        return
    if one.field == ELEMENT:
        yield from show_change(output, {**_named(one), "change": "created", "after": _element(one)})
        return
    yield from _head(output, one)
    sides = {"from": one.now, "to": one.value}
    changed = {"change": "updated", "before": {"type": one.type}, "after": {"type": one.type}}
    yield from (f"    {line}" for line in field_lines(output, {**changed, "fields": {one.field: sides}}))


def _head(output: Output, one: Proposal) -> Iterator[str]:
    shown = {
        **_named(one),
        "change": "updated",
        "before": {"type": one.type},
        "after": {"type": one.type},
        "fields": {},
    }
    yield from show_change(output, shown)


def _named(one: Proposal) -> dict[str, Any]:
    if one.edge is None:
        return {"id": one.id}
    type_, kind, from_id, to_id = one.edge
    return {"from": from_id, "type": type_, "kind": kind, "to": to_id}


def _element(one: Proposal) -> dict[str, Any]:
    """Return the fields of a proposed element in the shape of an answer."""
    plain = {name: value for name, value in one.value.items() if "." not in name}
    return plain | {prefix: members for prefix in OBJECT_FIELDS if (members := nested(one.value, prefix))}
