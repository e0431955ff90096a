"""``kb resolve``: list what is contested, and decide it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun, Message

if TYPE_CHECKING:
    from kbcore.errors import InvalidQuery
    from kbcore.query.conflicts import ContestedValue
    from kbcore.store.workspace import Workspace

_KEEP: Final = "keep"
_MOST_DIGITS: Final = 9


def run(
    ctx: typer.Context,
    key: Annotated[str | None, typer.Argument(metavar="ID", help="An entity, or an edge by its id.")] = None,
    field: Annotated[str | None, typer.Argument(metavar="FIELD", help="The contested field.")] = None,
    *,
    take: Annotated[
        str | None,
        typer.Option("--take", metavar="N|VALUE", help="The number of the value that holds, or another value."),
    ] = None,
    message: Message = "",
    dry_run: DryRun = False,
) -> None:
    """List what changes state differently, and decide it.

    A field is contested where changes of people or agents who had not seen each other give it different values. The
    decision is a change after all of them. `--take keep` keeps an entity that a change deletes, or the id that is
    shown; the number of another id, or another id itself, renames the entity to it, as `kb rename` does.
    """
    from kbcore.editing.renaming import rename
    from kbcore.errors import InvalidQuery, NotFound
    from kbcore.errors.remedies import kb
    from kbcore.model import changeset
    from kbcore.model.claims.fold import DELETED, ID
    from kbcore.query.conflicts import find_conflicts
    from kbcore.text.escaping import in_quotes

    if (take is None) != (field is None):
        raise InvalidQuery(
            "A decision names the entity, the field and the value.",
            hint="Give `kb resolve ID FIELD --take N`; `kb resolve` lists them.",
        )
    session = session_of(ctx)
    opened = session.open(dry_run=dry_run)
    seen: list[int] = []

    def find(view: Any) -> list[ContestedValue]:
        seen.append(view.recorded_seq)
        return find_conflicts(view, [view.renamed([key]).get(key, key)] if key else ())

    found = opened.store.read(find)
    if key and not found and not opened.store.read(lambda view: view.nodes([key]) or view.links([key])):
        raise NotFound(f"There is no entity or edge {in_quotes(key)}.", hint="`kb resolve` lists what is contested.")
    if take is None or field is None or key is None:
        _list(ctx, opened.workspace, opened.branch, found, key)
        return
    conflict = _meant(found, field)
    if conflict is None:
        fields = ", ".join(one.field for one in found)
        hint = f"Contested of it: {fields}." if fields else "`kb resolve` lists what is contested."
        raise NotFound(f"{in_quotes(field)} of {in_quotes(key)} is not contested.", hint=hint)
    field = conflict.field
    if field == DELETED and take != _KEEP:
        keep = kb("resolve", conflict.id, field, "--take", _KEEP)
        raise InvalidQuery(
            f"{conflict.name} was deleted, although it was changed: {in_quotes(take)} decides nothing.",
            hint=f"{keep} keeps it, {kb('delete', conflict.id)} deletes it.",
        )
    if not take.strip() or (take == _KEEP and field not in {DELETED, ID}):
        what = f"{in_quotes(take)} takes no value of {in_quotes(field)} of {in_quotes(conflict.name)}"
        why = "only what was deleted and an id are kept" if take.strip() else "it is empty"
        raise InvalidQuery(f"{what}: {why}.", hint=_choices(conflict))
    said = message or f"resolve {field} of {conflict.name}"
    if field == ID and (new := _chosen_id(conflict, take)) != conflict.id:
        outcome, edits = rename(opened.target, conflict.id, new, message=said, dry_run=dry_run, expected_seq=seen[-1])
        session.show_outcome(outcome, edits)
        return
    item = _decision(conflict, _KEEP if field == ID else take)
    request = {**item, "message": said, "expected_seq": seen[-1], "dry_run": dry_run}
    session.show_outcome(opened.target.apply(changeset.parse(request)))


def _meant(found: list[ContestedValue], field: str) -> ContestedValue | None:
    """Return the conflict about a field; an attribute, or metadata of an edge, is also meant by its name alone."""
    exact = [one for one in found if one.field == field]
    return next(iter(exact or [one for one in found if one.field.partition(".")[2] == field]), None)


def _chosen_id(conflict: ContestedValue, take: str) -> str:
    """Return the id that a decision gives an entity. Raises: ``InvalidQuery`` for a number that no value has."""
    if not _is_number(conflict, take):
        return conflict.id if take == _KEEP else take
    if not 1 <= int(take) <= len(conflict.values):
        raise _no_value(conflict, int(take))
    return str(conflict.values[int(take) - 1]["value"])


def _is_number(conflict: ContestedValue, take: str) -> bool:
    """Tell whether a choice is the number of a value. Raises: ``InvalidQuery`` for a number of many digits."""
    from kbcore.errors import InvalidQuery

    is_number = take.isdecimal() and take.isascii()
    if is_number and len(take) > _MOST_DIGITS:
        hint = f"`kb resolve {conflict.id}` lists them by number."
        raise InvalidQuery(f"No value has a number of {len(take)} digits.", hint=hint)
    return is_number


def _decision(conflict: ContestedValue, take: str) -> dict[str, Any]:
    """Return the changeset of a decision without its frame. Raises: ``InvalidQuery`` for a number that no value has."""
    is_number = _is_number(conflict, take)
    chosen: dict[str, Any]
    if take == _KEEP or is_number:
        chosen = {"resolve": {conflict.field: _KEEP if take == _KEEP else _number(conflict, take)}}
    else:
        prefix, dot, name = conflict.field.partition(".")
        value = _value(conflict.field, take)
        chosen = {prefix: {name: value}} if dot else {conflict.field: value}
    if conflict.edge is None:
        return {"entities": [{"id": conflict.id, **chosen}]}
    type_, kind, from_id, to_id = conflict.edge
    named = {"type": type_, "from": from_id, "to": to_id, **({"kind": kind} if kind else {})}
    return {"edges": [{**named, **chosen}]}


def _number(conflict: ContestedValue, take: str) -> int:
    """Return the number of a value by its number, or by the value itself where no value has that number.

    Raises: ``InvalidQuery`` where none is it either.
    """
    from kbcore.model.values import is_same

    number = int(take)
    if 0 < number <= len(conflict.values):
        return number
    for at, one in enumerate(conflict.values, 1):
        if is_same(one.get("value"), number) or one.get("value") == take:
            return at
    raise _no_value(conflict, number)


def _no_value(conflict: ContestedValue, number: int) -> InvalidQuery:
    from kbcore.errors import InvalidQuery
    from kbcore.text.escaping import in_quotes

    what, of = ("id", "") if conflict.field == "id" else ("value", f"{in_quotes(conflict.field)} of ")
    message = f"There is no {what} {number} of {of}{in_quotes(conflict.name)}; there are {len(conflict.values)}."
    return InvalidQuery(message, hint=_choices(conflict))


def _choices(conflict: ContestedValue) -> str:
    """Return what decides a conflict, as a hint."""
    from kbcore.errors.remedies import EdgeWords
    from kbcore.model.claims.fold import ID
    from kbcore.view.contested import choices

    edge = None
    if conflict.edge is not None:
        type_, kind, from_id, to_id = conflict.edge
        edge = EdgeWords(type_, from_id, to_id, kind)
    said = choices(conflict.id, conflict.field, conflict.values, edge)
    return said if conflict.field == ID else f"{said} Any other text after --take is a value of its own."


def _value(field: str, text: str) -> Any:
    """Return a value: of a field for text the text itself, else JSON where it is such."""
    from kbcore.model.graph import CORE_FIELDS

    if CORE_FIELDS.get(field) == "text":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _list(ctx: typer.Context, workspace: Workspace, branch: str, found: list[ContestedValue], key: str | None) -> None:
    from kbcli.messages import conflicts

    output = session_of(ctx).output
    if output.is_json:
        output.document({"conflicts": [one.as_json() for one in found]})
        return
    for line in conflicts.lines(found):
        output.say(line)
    if found:
        ids = {one.id for one in found if one.edge is None}
        made = workspace.changes(branch).read(lambda index, seq: index.creations(ids, seq))
        for line in conflicts.creation_lines(made):
            output.say(line)
    if not found:
        output.say(f"Nothing of {key} is contested." if key else "Nothing is contested.")
