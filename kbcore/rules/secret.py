"""Rule ``secret``: nothing that is stored, and no value of a file that is not recorded, looks like a key or a token.

The database looks for the marks of the formats, which is fast; only what has one is looked at closely.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from kbcore.errors.remedies import kb
from kbcore.model.graph import SECRET_VALUE, NoteOnFile
from kbcore.rules.rule import Finding, Rule, RuleContext, edge_remedy, first_file
from kbcore.secrets import MARKS, Secret, secrets_in

_OBJECTS: Final = ("attributes", "metadata")
_NODE_TEXTS: Final = ("id", "name", "title", "status", "source", "owner", "priority", "severity", "text_ref")
_NODE_LISTS: Final = ("tags", "links")
_ENDS: Final = ("from_id", "to_id")
_LINK_TEXTS: Final = ("kind", *_ENDS, "created_by", "source")
_NOTED: Final = f"select path, problems from source where problems::varchar like '%\"{SECRET_VALUE}\"%'"  # noqa: S608 - a constant


def _asked(table: str, names: str, texts: tuple[str, ...], lists: tuple[str, ...] = ()) -> str:
    """Return the statement for the rows of a table in which something may be a secret."""
    parts = [*texts, *(f"array_to_string({name}, ' ')" for name in lists), *_OBJECTS]
    return (
        f"select {', '.join([names, 'owners', *texts, *lists, *_OBJECTS])} from {table} "  # noqa: S608 - own columns
        f"where regexp_matches(concat_ws(' ', {', '.join(parts)}), $1)"
    )


_NODES: Final = _asked("node", "id, path", _NODE_TEXTS, _NODE_LISTS)
_LINKS: Final = _asked("link", "from_id, type, to_id, files, is_resolved", _LINK_TEXTS)
_object = msgspec.json.Decoder(dict[str, Any])
_notes = msgspec.json.Decoder(tuple[NoteOnFile, ...])


def _run(context: RuleContext) -> list[Finding]:
    return [*_in_entities(context), *_in_edges(context), *_in_files(context)]


def _in_entities(context: RuleContext) -> Iterator[Finding]:
    for id_, path, owners, *values in context.near(_NODES, [MARKS]):
        cells = dict(zip((*_NODE_TEXTS, *_NODE_LISTS, *_OBJECTS), values, strict=True))
        if cells["name"] == id_:
            del cells["name"]
        for field, found in _found(cells):
            if field == "id":
                source, where = path, "The id of an entity"
                remedy = "Delete the entity and create it again under another id."
            else:
                source, where = _object.decode(owners).get(field, ""), f"`{found.place}` of {id_}"
                remedy = f"Write the field again without it, with {kb('apply')}."
            one = _finding(id_, f"{where} {found.looks}", source, remedy)
            yield msgspec.structs.replace(one, field=found.place, names_id=field != "id")


def _in_edges(context: RuleContext) -> Iterator[Finding]:
    for from_id, type_, to_id, files, is_resolved, owners, *values in context.near(_LINKS, [MARKS]):
        for field, found in _found(dict(zip((*_LINK_TEXTS, *_OBJECTS), values, strict=True))):
            if field in _ENDS and is_resolved:  # the id of an entity, which is looked at by itself
                continue
            edge = f"{from_id} {type_ or 'links to'} {to_id}"
            where = f"An id in {edge}" if field in _ENDS else f"`{found.place}` of {edge}"
            source = first_file(files) if field in {"kind", *_ENDS} else _object.decode(owners).get(field, "")
            remedy = f"Write the edge again without it, with {kb('apply')}."
            id_, other = (to_id, from_id) if field == "from_id" else (from_id, to_id)
            if field == "kind":
                away = edge_remedy((from_id, type_, to_id), source)
                remedy = f"State the edge again with another kind, and {away}."
            elif field in _ENDS:
                remedy = f"Remove the edge: {kb('show', id_)} lists it."
            one = _finding(id_, f"{where} {found.looks}", source, remedy, frozenset({other}))
            yield msgspec.structs.replace(one, field=found.place, values=(type_, other))


def _in_files(context: RuleContext) -> Iterator[Finding]:
    for path, problems in context.near(_NOTED, []):
        for note in _notes.decode(problems):
            if note.code == SECRET_VALUE:
                values = (note.id,) if note.id else ()
                yield Finding(
                    path, note.message, note.hint, path, code=note.code, values=values, line=note.line, names_id=False
                )


def _found(cells: Mapping[str, Any]) -> Iterator[tuple[str, Secret]]:
    """Yield what looks like a secret with the field, as owners name it, that it is in; its place is the whole one."""
    for name, value in cells.items():
        if name in _OBJECTS:
            for key, member in _object.decode(value).items():
                yield from ((f"{name}.{key}", found) for found in secrets_in({key: member}, place=name))
        else:
            yield from ((name, found) for found in secrets_in(value, name, name))


def _finding(key: str, message: str, source: str, remedy: str, concerns: frozenset[str] = frozenset()) -> Finding:
    fixed = f"Take it out of the file and {kb('sync', lead='run')}." if source else remedy
    return Finding(key, message, f"{fixed} History keeps it: if it is real, revoke it.", source, concerns)


RULE: Final = Rule(
    "secret",
    "warning",
    "Nothing that is stored looks like a key, a token or a password, and no value of a document that is not recorded "
    "because it does not fit. As an error, it also refuses changesets with one.",
    _run,
    example="`attributes.token` of SYM-2 looks like a GitHub token (ghp_…, 44 characters).",
    remedy="Take it out where it is stated, and revoke it: history keeps it.",
    sees_proposals=True,
)
