"""Rule ``suspect-edge``: what an edge leads to is as it was when the edge was last confirmed."""

from __future__ import annotations

from typing import Final

from kbcore.remedies import kb, typed
from kbcore.rules.few import Look
from kbcore.rules.rule import Finding, Rule, RuleContext, first_file, quoted
from kbcore.rules.stale_edges import StaleEdge, stale_edges

_SUPPOSED: Final = "select seq from record where sum = '' and written_at is not null"
"""Seqs without a record: what is only supposed, as in ``kb check --staged``."""


def _run(context: RuleContext) -> list[Finding]:
    found = stale_edges(context.near, ends=context.ids)
    supposed = {seq for (seq,) in context.rows(_SUPPOSED, [])} if found else set[int]()
    return [_finding(one, has_record=one.changed_seq not in supposed) for one in found]


def _look(look: Look) -> list[Finding]:
    return [_finding(one, has_record=True) for one in look.suspect()]


def _finding(one: StaleEdge, *, has_record: bool) -> Finding:
    source = first_file(one.files)
    changed = f" at seq {one.changed_seq}" if one.confirmed_seq < one.changed_seq and has_record else ""
    confirmed = f"the edge was last confirmed at seq {one.confirmed_seq}"
    if not one.confirmed_seq:  # a base state below the first record
        changed, confirmed = " since", "the edge was never confirmed"
    message = f"{one.from_id} {one.type} {one.to_id}, but {one.to_id} has changed{changed}; {confirmed}."
    if one.unproven:
        message = (
            f"{one.from_id} {one.type} {one.to_id}: whether {one.to_id} is as it was when the edge was last confirmed "
            f"is not proven, because {one.unproven}."
        )
    type_ = f"{one.type}:{one.kind}" if one.kind else one.type
    otherwise = f"correct what {source} says" if source else "correct or remove it"
    look = f"See {_where(one, has_record=has_record)}. If the edge is no longer true, {otherwise}"
    hint = f"{look}; if it is true, confirm it: {kb('confirm', one.from_id, type_, one.to_id)}"
    return Finding(one.from_id, message, hint, source, frozenset({one.to_id}), values=(one.type, one.to_id))


def _where(one: StaleEdge, *, has_record: bool) -> str:
    """Return the commands that show how the target changed."""
    if not has_record:
        return f"{kb('sync', '--dry-run')}, and record the change with {kb('sync')}"
    of_fields = [f"{kb('log', one.to_id)}"] if one.has_other_fields else []
    of_text = [f"`git log -p -- {quoted(one.text_path)}`"] if one.text_path else []
    return " and ".join(of_fields + of_text)


RULE: Final = Rule(
    "suspect-edge",
    "warning",
    "The target of an edge has not changed since the edge was last confirmed. Applying the edge again confirms it, and "
    "so does a change of the entity it comes from, or of a file that states it and defines no more than one entity.",
    _run,
    example=("SYM-2 implements REQ-7, but REQ-7 has changed at seq 9; the edge was last confirmed at seq 4."),
    remedy=(
        f"Check whether it is still true. If so, confirm it ({typed('confirm')}, or the edge again in `kb_upsert`): "
        "that confirms it and changes nothing else. If not, correct what the edge comes from, or the edge."
    ),
    look=_look,
)
