"""Rule ``suspect-edge``: what an edge leads to is as it was when the edge was last confirmed."""

from __future__ import annotations

from typing import Final

from kbcore.errors.remedies import kb, shell
from kbcore.rules.edge_confirmation import SuspectEdge, suspect_edges
from kbcore.rules.look_ups import Look
from kbcore.rules.rule import Finding, Rule, RuleContext, edge_name, first_file, shell_word

_SUPPOSED: Final = "select seq from record where sum = '' and written_at is not null"
"""Seqs without a record: what is only supposed, as in ``kb check --staged``."""
_PATHS: Final = "select id, path from node where list_contains($1, id)"


def _run(context: RuleContext) -> list[Finding]:
    found = suspect_edges(context.near, ends=context.ids)
    supposed = {seq for (seq,) in context.rows(_SUPPOSED, [])} if found else set[int]()
    pending = sorted({one.to_id for one in found if one.changed_seq in supposed})
    paths: dict[str, str] = dict(context.near(_PATHS, [pending])) if pending else {}
    return [_finding(one, one.code_path if one.code_seq in supposed else paths.get(one.to_id)) for one in found]


def _look(look: Look) -> list[Finding]:
    return [_finding(one) for one in look.suspect()]


def _finding(one: SuspectEdge, pending: str | None = None) -> Finding:
    """Return the finding for an edge; ``pending`` is the file of the end that changed, where no record has that yet."""
    source = first_file(one.files)
    changed = f" at seq {one.changed_seq}" if one.confirmed_seq < one.changed_seq and pending is None else ""
    confirmed = f"the edge was last confirmed at seq {one.confirmed_seq}"
    if not one.confirmed_seq:  # a base state below the first record
        changed, confirmed = " since", "the edge was never confirmed"
    name = edge_name(one.type, one.kind)
    is_code = one.code_seq is not None and not (one.has_other_fields or one.text_path)
    if is_code and one.confirmed_seq:
        changed = f" at seq {one.code_seq}" if pending is None else ""
    what = f"the code of {one.from_id}" if is_code else one.to_id
    message = f"{one.from_id} {name} {one.to_id}, but {what} has changed{changed}; {confirmed}."
    if one.unproven:
        message = (
            f"{one.from_id} {name} {one.to_id}: whether {one.to_id} is as it was when the edge was last confirmed "
            f"is not proven, because {one.unproven}."
        )
    otherwise = f"correct what {source} says" if source else "correct or remove it"
    look = f"See {_code_of(one) if is_code else _where(one, pending)}. If the edge is no longer true, {otherwise}"
    hint = f"{look}; if it is true, confirm it: {kb('confirm', one.from_id, name, one.to_id)}"
    return Finding(one.from_id, message, hint, source, frozenset({one.to_id}), values=(name, one.to_id))


def _code_of(one: SuspectEdge) -> str:
    return f"`git log -p -- {shell_word(one.code_path)}`"


def _where(one: SuspectEdge, pending: str | None) -> str:
    """Return the commands that show how the target changed."""
    if pending is not None:
        shown = f"`git diff HEAD -- {shell_word(pending)}`" if pending else kb("show", one.to_id)
        return f"{shown}, and record the change with {kb('sync')}"
    of_fields = [f"{kb('log', one.to_id)}"] if one.has_other_fields else []
    of_text = [f"`git log -p -- {shell_word(one.text_path)}`"] if one.text_path else []
    return " and ".join(of_fields + of_text)


RULE: Final = Rule(
    "suspect-edge",
    "warning",
    "The target of an edge has not changed since the edge was last confirmed, nor, where it says what a symbol "
    "implements or which test covers it, has the code of the symbol. Applying the edge again confirms it, and so does "
    "a change of the entity it comes from, or of a document that states it and defines no more than one entity. A "
    "change of code confirms nothing.",
    _run,
    example=("SYM-2 implements REQ-7, but REQ-7 has changed at seq 9; the edge was last confirmed at seq 4."),
    remedy=(
        f"Check whether it is still true. If so, confirm it ({shell('confirm')}, or the edge again in `kb_upsert`): "
        "that confirms it and changes nothing else. If not, correct what the edge comes from, or the edge."
    ),
    look=_look,
)
