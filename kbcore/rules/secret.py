"""Rule ``secret``: nothing that is stored looks like a key, a token or a password.

The database looks for the marks of the formats, which is fast; only what has one is looked at closely.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from kbcore.remedies import kb
from kbcore.rules.rule import Finding, Rule, RuleContext, edge_remedy, first_file
from kbcore.text.secrets import MARKS, Secret, secrets_in

_OBJECTS: Final = ("attributes", "metadata")
_NODE_TEXTS: Final = ("id", "name", "title", "status", "source", "owner", "priority", "severity", "text_ref")
_NODE_LISTS: Final = ("tags", "links")
_LINK_TEXTS: Final = ("kind", "created_by", "source")


def _asked(table: str, names: str, texts: tuple[str, ...], lists: tuple[str, ...] = ()) -> str:
    """Return the statement for the rows of a table in which something may be a secret."""
    parts = [*texts, *(f"array_to_string({name}, ' ')" for name in lists), *_OBJECTS]
    return (
        f"select {', '.join([names, 'owners', *texts, *lists, *_OBJECTS])} from {table} "  # noqa: S608 - own columns
        f"where regexp_matches(concat_ws(' ', {', '.join(parts)}), $1)"
    )


_NODES: Final = _asked("node", "id, path", _NODE_TEXTS, _NODE_LISTS)
_LINKS: Final = _asked("link", "from_id, type, to_id, files", _LINK_TEXTS)
_object = msgspec.json.Decoder(dict[str, Any])


def _run(context: RuleContext) -> list[Finding]:
    return [*_in_entities(context), *_in_edges(context)]


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
    for from_id, type_, to_id, files, owners, *values in context.near(_LINKS, [MARKS]):
        for field, found in _found(dict(zip((*_LINK_TEXTS, *_OBJECTS), values, strict=True))):
            where = f"`{found.place}` of {from_id} {type_ or 'links to'} {to_id}"
            source = first_file(files) if field == "kind" else _object.decode(owners).get(field, "")
            remedy = f"Write the edge again without it, with {kb('apply')}."
            if field == "kind":
                away = edge_remedy((from_id, type_, to_id), source)
                remedy = f"State the edge again with another kind, and {away}."
            one = _finding(from_id, f"{where} {found.looks}", source, remedy, frozenset({to_id}))
            yield msgspec.structs.replace(one, field=found.place, values=(type_, to_id))


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
    "Nothing that is stored looks like a key, a token or a password. As an error, it also refuses changesets with one.",
    _run,
    example="`attributes.token` of SYM-2 looks like a GitHub token (ghp_…, 44 characters).",
    remedy="Take it out where it is stated, and revoke it: history keeps it.",
)
