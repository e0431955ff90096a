"""Authors of present values: who, when, and why.

Of an entity: the records that did it, with their fields. Of what a write overwrites: whether it was another writer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from kbcore.errors import NotFound
from kbcore.ids import is_link_id
from kbcore.model.claims.change import order_of
from kbcore.model.graph import CLIENT, Link, Node
from kbcore.model.record import SYNC
from kbcore.model.state import Stamp
from kbcore.model.values import is_same
from kbcore.query.former_ids import successor
from kbcore.store.history.log import no_such_entity
from kbcore.store.history.reach import first_record
from kbcore.store.history.shown import Fields, node_fields
from kbcore.store.history.touched import changes_of
from kbcore.store.history.writers import bringers, changes_stating, said_of
from kbcore.store.planning.plan_builder import STATED, Overwritten, RecordedBy
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbcore.view.history import Later
from kbcore.view.tables import ELEMENTS, link_of, node_of
from kbcore.view.view import View

_VERSION: Final = "/[0-9][^/]*$"
"""Of an actor that is a program, such as ``name/1.2``, what follows the name."""
_MOST_VERSIONS: Final = 100
"""Of an element that is overwritten, so many earlier versions are looked at for who set its fields."""


class FieldWrite(msgspec.Struct, frozen=True):
    """A record that set fields of an entity. ``seq`` is 0 for records that were pruned, or are missing.

    ``fields`` maps each field to the file that states it, or to ``CLIENT``.
    """

    seq: int
    fields: Mapping[str, str]
    at: str = ""
    actor: str = ""
    message: str = ""
    is_deletion: bool = False
    brought_by: str = ""
    """The author of the record, where the writer's change came with it by a change file or by a merge."""
    through: Literal["", "merge", "sync"] = ""


def authorship(view: View, key: str, field: str = "") -> list[FieldWrite]:
    """Return the records that set the fields of an entity to what they are, newest first.

    With ``field`` it is the one record that set, or removed, that field or the last member of it. Of an entity that is
    gone it is the record that deleted it.

    Raises: ``NotFound`` for an id that was never here, or is that of a renamed entity no more, and for a field that
    this entity never had.
    """
    changes = [*changes_of(view, key, 0).values()]
    nodes = view.nodes([key])
    if not changes and not nodes:
        raise no_such_entity(view, key)
    if changes and changes[-1].after is None:
        later = successor(view, key, changes[-1].seq, view.recorded_seq)
        if later and not later.removed:
            raise no_such_entity(view, key)
        return _written(view, changes[-1], {STATED: CLIENT}, is_deletion=True)
    now = nodes[0] if nodes else changes[-1].after
    if now is None:
        raise no_such_entity(view, key)
    fields = node_fields(now)
    for name in ("created_at", "source"):  # they say when and through what, which each record says itself
        fields.pop(name, None)
    wanted = _members(field, fields) if field else set(fields)
    found = _setters(changes, fields, wanted)
    if field and not found:
        found = _removers(changes, field)
    if field and not found:
        raise NotFound(f"{in_quotes(key)} has no {in_quotes(field)}.", hint=did_you_mean(field, fields))
    by_seq = {one.seq: one for one in changes}
    written: list[FieldWrite] = []
    for seq in sorted(found, reverse=True):
        fields_here = {name: now.owners.get(name, CLIENT) for name in sorted(found[seq])}
        written += _written(view, by_seq.get(seq) or Later(seq, key, None, None), fields_here)
    return written[:1] if field else written


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


def _written(
    view: View, change: Later[Any], fields: Mapping[str, str], *, is_deletion: bool = False
) -> list[FieldWrite]:
    """Return who set fields by a record: the writers of the changes that it brought, and its own author for the rest.

    ``STATED`` among the fields is the element itself.
    """
    seq = change.seq
    rows = view.past.records([seq], ("written_at", "actor", "message", "changes"))
    at, actor, message, moved = rows[0] if rows else ("", "", "", 0)
    own = FieldWrite(seq, {} if is_deletion else fields, at or "", actor or "", message or "", is_deletion)
    by = bringers(view, [seq]).get(seq) if moved else None
    if by is None:
        return [own]
    element = change.after or change.before
    key = element.id if element is not None else change.key
    was = [change.after] if change.after is not None else []
    stating = changes_stating(view, seq, {key: [*fields]}, was).get(key, {})
    found = []
    for one in sorted(dict.fromkeys(stating.values()), key=order_of, reverse=True):
        these = {name: owner for name, owner in fields.items() if stating.get(name) == one}
        these = {} if is_deletion else these
        found.append(FieldWrite(seq, these, one.at, one.actor, one.message, is_deletion, by.actor, by.through))
    rest = {name: owner for name, owner in fields.items() if name not in stating}
    return [*found, *([msgspec.structs.replace(own, fields={} if is_deletion else rest)] if rest else [])]


def written_json(view: View, one: FieldWrite) -> dict[str, Any]:
    """Return one such record as the front ends show it; what it does not say is left out."""
    if not one.seq:
        return {"before_seq": first_record(view), "fields": list(one.fields)}
    shown: dict[str, Any] = {"seq": one.seq, "at": one.at, "actor": one.actor}
    shown |= {"through": one.through, "brought_by": one.brought_by} if one.through else {}
    shown |= {"message": one.message} if one.message else {}
    if one.is_deletion:
        return shown | {"deleted": True}
    files = sorted({owner for owner in one.fields.values() if owner != CLIENT})
    return shown | {"fields": list(one.fields)} | ({"files": files} if files else {})


def other_setters(view: View, stamp: Stamp, overwritten: Mapping[str, Overwritten]) -> dict[str, dict[str, RecordedBy]]:
    """Return who set fields that are overwritten to what they are, by id and field, where it was another writer.

    Of what came by a change file or by a merge it is the writer of the change, not who brought it. Another writer is
    another actor, or the same one in another session: two windows of one agent have the same name. Another version of
    the same program is not another actor, and a record without a session is of no other session. The last
    ``_MOST_VERSIONS`` versions of an element are looked at, as far as history has them. Where a value is older than
    these, its writer has no name.
    """
    seqs = {key: [one.before.version] for key, one in overwritten.items()}
    changed = [key for key, one in overwritten.items() if one.before.version > one.before.created_seq]
    for table, keys in _by_table(changed):
        versions_of: dict[str, list[int]] = {}
        for key, version in view.past.superseded(table, keys, ("id", "version")):
            versions_of.setdefault(key, []).append(version)
        for key, past in versions_of.items():
            seqs[key] += sorted(past, reverse=True)[:_MOST_VERSIONS]
    wanted = {seq for each in seqs.values() for seq in each}
    rows = view.past.records(wanted, ("seq", "actor", "session", "source", "changes"))
    brought = {row[0] for row in rows if row[4] and view.claims is not None}
    # Who wrote what a record brought is looked up where it matters: until then it may be anybody.
    writers = {
        seq: RecordedBy(seq) if seq in brought else RecordedBy(seq, actor or "", session or "")
        for seq, actor, session, *_ in rows
    }
    by_sync = {row[0] for row in rows if row[3] == SYNC}
    certain = {
        key for key in overwritten if any(_if_other(writers.get(seq, RecordedBy(seq)), stamp) for seq in seqs[key])
    }
    others = [key for key in overwritten if key in certain or len(seqs[key]) > _MOST_VERSIONS]
    versions = {key: [overwritten[key].before] for key in others}
    for table, keys in _by_table([key for key in others if len(seqs[key]) > 1]):
        for element in _past_versions(view, table, keys, min(seqs[key][-1] for key in keys)):
            if element.version in seqs[element.id]:
                versions[element.id].append(element)
    by_key = {}
    for key, found in versions.items():
        written = [(one, writers.get(one.version, RecordedBy(one.version))) for one in found]
        by_key[key] = {name: _setter(written, name) for name in overwritten[key].fields}
    true_writers = _true_writers(view, by_key, versions, brought) if brought else {}
    setters = {}
    for key, found_by in by_key.items():
        true = true_writers.get(key, {})
        # What no file states and a sync has written is a default, unless a change says it: no writer set it.
        known = {name: true.get(name, one) for name, one in found_by.items() if name in true or one.seq not in by_sync}
        by_field = {name: _if_other(one, stamp) for name, one in known.items()}
        if key in certain or (any(by_field.values()) and _has_other_writer(view, key, stamp)):
            setters[key] = {name: one for name, one in by_field.items() if one}
    return setters


class LastWriter(NamedTuple):
    """The actor who last wrote an element, and through what; ``source`` is "" for what a change file brought."""

    actor: str
    source: str


def last_writers(view: View, elements: Sequence[Node | Link]) -> dict[str, LastWriter]:
    """Return who last wrote each of these elements, by id; of what a change file brought, its writer.

    What a sync read in files is nobody's own statement: such an element is left out, as is one whose record is gone.
    """
    rows = view.past.records((one.version for one in elements), ("seq", "actor", "source", "changes"))
    records = {row[0]: row[1:] for row in rows}
    own = {seq: LastWriter(actor, source) for seq, (actor, source, _) in records.items() if actor and source != SYNC}
    found = {one.id: own[one.version] for one in elements if one.version in own}
    brought = {seq for seq, (*_, changes) in records.items() if changes} if view.claims is not None else set[int]()
    for seq in brought:
        its = [one for one in elements if one.version == seq]
        for key, stating in changes_stating(view, seq, {one.id: [STATED, *one.fields] for one in its}, its).items():
            if stating:
                found[key] = LastWriter(max(stating.values(), key=order_of).actor, "")
    return found


def _true_writers(
    view: View,
    by_key: Mapping[str, Mapping[str, RecordedBy]],
    versions: Mapping[str, Sequence[Node | Link]],
    brought: Collection[int],
) -> dict[str, dict[str, RecordedBy]]:
    """Return who wrote the changes that say what fields are, by element and field, of those that records brought."""
    asked: dict[int, dict[str, list[str]]] = {}
    for key, by_field in by_key.items():
        for name, one in by_field.items():
            if one.seq in brought:
                asked.setdefault(one.seq, {}).setdefault(key, []).append(name)
    by = bringers(view, asked)
    found: dict[str, dict[str, RecordedBy]] = {}
    for seq, elements in asked.items():
        was = [one for key in elements for one in versions[key] if one.version == seq]
        for key, changes in changes_stating(view, seq, elements, was).items():
            found.setdefault(key, {}).update({name: said_of(one, seq, by[seq]) for name, one in changes.items()})
    return found


def _has_other_writer(view: View, key: str, stamp: Stamp) -> bool:
    """Tell whether any past version of an element is of another writer, however many there are."""
    [(table, _)] = _by_table([key])
    versions = [version for (version,) in view.past.superseded(table, [key], ("version",))]
    writers = set(view.past.records(versions, ("actor", "session")))
    return any(_if_other(RecordedBy(0, actor or "", session or ""), stamp) for actor, session in writers)


def _if_other(writer: RecordedBy, stamp: Stamp) -> RecordedBy | None:
    """Return a writer who is not the one of a stamp, with the session only where the actor is the same; else None."""
    if _program(writer.actor) != _program(stamp.actor):
        return msgspec.structs.replace(writer, session="")
    return writer if writer.session and stamp.session and writer.session != stamp.session else None


def _program(actor: str) -> str:
    """Return an actor without its version, if it is a program."""
    return re.sub(_VERSION, "", actor)


def _by_table(keys: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the tables that hold these elements, each with their ids."""
    both = (
        ("node", [key for key in keys if not is_link_id(key)]),
        ("link", [key for key in keys if is_link_id(key)]),
    )
    return [(table, found) for table, found in both if found]


def _past_versions(view: View, table: str, keys: Sequence[str], since: int) -> list[Node | Link]:
    """Return the earlier versions of these elements from one on, the newest first."""
    of_row = node_of if table == "node" else link_of
    found = [of_row(row) for row in view.past.superseded(table, keys, [*ELEMENTS[table][1]], since=since)]
    return sorted(found, key=lambda one: one.version, reverse=True)


def _setter(versions: Sequence[tuple[Node | Link, RecordedBy]], name: str) -> RecordedBy:
    """Return who set a field to its value in the newest of these versions; with ``STATED`` who made the element."""
    newest = versions[0][0]
    first, writer = versions[0]
    for element, its_writer in versions:
        is_older_life = element.created_seq != newest.created_seq
        has_other = name != STATED and (
            name not in element.fields or not is_same(element.fields[name], newest.fields[name])
        )
        if is_older_life or has_other:
            return writer
        first, writer = element, its_writer
    return writer if first.version == first.created_seq else RecordedBy(first.version)
