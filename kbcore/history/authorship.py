"""Who set the fields of an entity to what they are now, when, and why: the records that did it, with their fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kbcore.errors import NotFound
from kbcore.history.log import missing
from kbcore.history.reach import first_record
from kbcore.history.shown import Fields, node_fields
from kbcore.history.touched import changes_of
from kbcore.model import CLIENT, Node, former_ids
from kbcore.suggest import did_you_mean
from kbcore.values import is_same
from kbcore.view.past import Later
from kbcore.view.view import View
from kbcore.visible import in_quotes


class Written(msgspec.Struct, frozen=True):
    """A record that set fields of an entity. ``seq`` is 0 for records that were pruned, or are missing.

    ``fields`` maps each field to the file that states it, or to ``CLIENT``.
    """

    seq: int
    fields: Mapping[str, str]
    at: str = ""
    actor: str = ""
    message: str = ""
    is_deletion: bool = False


def authorship(view: View, key: str, field: str = "") -> list[Written]:
    """Return the records that set the fields of an entity to what they are, newest first.

    With ``field`` it is the one record that set, or removed, that field or the last member of it. Of an entity that is
    gone it is the record that deleted it.

    Raises: ``NotFound`` for an id that was never here, and for a field that this entity never had.
    """
    changes = _changes(view, key)
    nodes = view.nodes([key])
    if not changes and not nodes:
        raise missing(view, key)
    if changes and changes[-1].after is None:
        return [_written(view, changes[-1].seq, {}, is_deletion=True)]
    now = nodes[0] if nodes else changes[-1].after
    if now is None:
        raise missing(view, key)
    fields = node_fields(now)
    for name in ("created_at", "source"):  # they say when and through what, which each record says itself
        fields.pop(name, None)
    wanted = _members(field, fields) if field else set(fields)
    found = _setters(changes, fields, wanted)
    if field and not found:
        found = _removers(changes, field)
    if field and not found:
        raise NotFound(f"{in_quotes(key)} has no {in_quotes(field)}.", hint=did_you_mean(field, fields))
    seqs = sorted(found, reverse=True)
    written = [_written(view, seq, {name: now.owners.get(name, CLIENT) for name in sorted(found[seq])}) for seq in seqs]
    return written[:1] if field else written


def _changes(view: View, key: str) -> list[Later[Node]]:
    """Return each change of an entity, also those under the ids that it had before; a rename is one change of it."""
    found: list[Later[Node]] = []
    until = view.seq + 1
    while True:
        some = [one for one in changes_of(view, key, 0).values() if one.seq < until]
        begin = max((at for at, one in enumerate(some) if one.before is None), default=None)
        before = None if begin is None else _renamed_from(view, some[begin])
        if begin is None or before is None:
            return [*some, *found]
        found = [msgspec.structs.replace(some[begin], before=before), *some[begin + 1 :], *found]
        key, until = before.id, some[begin].seq


def _renamed_from(view: View, created: Later[Node]) -> Node | None:
    """Return what an entity was before the record that made it, if that record renamed it."""
    gone = view.rows("select id from node_history where ended = ? limit 2", [created.seq])
    if len(gone) != 1:  # a rename changes no other entity
        return None
    change = changes_of(view, gone[0][0], created.seq).get(created.seq)
    if change is None or change.before is None or change.after is not None:
        return None
    # Where a rename is undone, it is the id that is gone of which the other one was a former id.
    is_rename = change.key in former_ids(created.after) or created.key in former_ids(change.before)
    return change.before if is_rename else None


def _members(field: str, fields: Fields) -> set[str]:
    return {name for name in fields if name == field or name.startswith(f"{field}.")}


def _setters(changes: list[Later[Any]], fields: Fields, wanted: set[str]) -> dict[int, set[str]]:
    """Return the wanted fields by the record that set them to what they are; 0 where no change did that is known."""
    found: dict[int, set[str]] = {}
    left = set(wanted)
    for change in reversed(changes):
        before = node_fields(change.before)
        set_here = {name for name in left if name not in before or not is_same(before[name], fields[name])}
        if set_here:
            found[change.seq] = set_here
            left -= set_here
        if change.before is None or not left:
            break
    return found | ({0: left} if left else {})


def _removers(changes: list[Later[Any]], field: str) -> dict[int, set[str]]:
    """Return the last record after which the entity had this field, or a member of it, no more."""
    for change in reversed(changes):
        before, after = node_fields(change.before), node_fields(change.after)
        gone = _members(field, before) - after.keys()
        if gone:
            return {change.seq: gone}
    return {}


def _written(view: View, seq: int, fields: Mapping[str, str], *, is_deletion: bool = False) -> Written:
    rows = view.rows("select written_at, actor, message from record where seq = ?", [seq])
    at, actor, message = rows[0] if rows else ("", "", "")
    return Written(seq, fields, at or "", actor or "", message or "", is_deletion)


def written_json(view: View, one: Written) -> dict[str, Any]:
    """Return one such record as the front ends show it; what it does not say is left out."""
    if not one.seq:
        return {"before_seq": first_record(view), "fields": list(one.fields)}
    shown: dict[str, Any] = {"seq": one.seq, "at": one.at, "actor": one.actor}
    shown |= {"message": one.message} if one.message else {}
    if one.is_deletion:
        return shown | {"deleted": True}
    files = sorted({owner for owner in one.fields.values() if owner != CLIENT})
    return shown | {"fields": list(one.fields)} | ({"files": files} if files else {})
