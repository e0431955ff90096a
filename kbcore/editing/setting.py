"""Sets fields of one entity: in its document where that states them, else in the store.

A field that the document states, or that nothing states yet, is written into the document, so that it is versioned and
travels with the code. A field that a client has set stays the client's and is changed in the store.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from kbcore import strictjson
from kbcore.answers import Outcome
from kbcore.changeset import parse
from kbcore.editing.documents import (
    FileEdit,
    Target,
    commit,
    entity_in,
    facts_of,
    framed,
    is_markdown,
    meaning,
    read_document,
    refused,
)
from kbcore.editing.frontmatter import CannotEdit, Value, edited
from kbcore.errors import InvalidChangeset, InvalidQuery, NotFound, Problem
from kbcore.extract.facts import Facts, StatedEntity
from kbcore.model import CORE_FIELDS, OBJECT_FIELDS, Node
from kbcore.phrases import no_status_of, some_of
from kbcore.query import former
from kbcore.query.known import near_ids
from kbcore.schema import EntityType, Schema
from kbcore.suggest import is_it
from kbcore.values import field_problem, is_same, meaning_problem
from kbcore.view.view import View
from kbcore.visible import in_quotes
from kbcore.workspace import Workspace

_ASSIGNMENT: Final = re.compile(r"(?P<name>[^=]*?)(?P<how>\+=|-=|:=|=)(?P<value>.*)", re.DOTALL)
_OF_LISTS: Final = frozenset({"+=", "-="})
_STAMPED: Final = frozenset({"created_at", "updated_at", "source"})
_MOST_NAMED: Final = 10
_HINT: Final = "For example status=done, tags+=web, owner= (removes it) or attributes.size:=3."


class Assignment(NamedTuple):
    """One change of a field: its flat name, what to do (``=``, ``+=``, ``-=`` or ``:=``), and the value as text."""

    name: str
    how: str
    value: str


class Written(NamedTuple):
    """What was set: the answer of the write, and the files that were edited for it."""

    outcome: Outcome
    edits: Sequence[FileEdit] = ()


def assignment(text: str, schema: Schema) -> Assignment:
    """Return what ``field=value`` asks for; a name that is no field of its own is that of an attribute.

    Raises: ``InvalidQuery``.
    """
    found = _ASSIGNMENT.fullmatch(text)
    if found is None or not found["name"]:
        raise InvalidQuery(f"{in_quotes(text[:80])} sets no field.", hint=_HINT)
    name = found["name"].replace("-", "_") if found["name"].replace("-", "_") in CORE_FIELDS else found["name"]
    prefix, _, member = name.partition(".")
    if name == "id":
        raise InvalidQuery("An id is not set.", hint="`kb rename OLD NEW` changes it wherever it is named.")
    if name in schema.edges or name in OBJECT_FIELDS or (prefix in OBJECT_FIELDS and not member):
        what = f"{in_quotes(name)} is an edge" if name in schema.edges else f"{in_quotes(name)} is no single field"
        hint = f"`kb link ID {name} OTHER` states one." if name in schema.edges else f"Name a member, as {name}.key."
        raise InvalidQuery(f"{what}.", hint=hint)
    if name in _STAMPED:
        raise InvalidQuery(f"`{name}` is set by KB itself.", hint="Leave it out.")
    flat = name if name in CORE_FIELDS or prefix in OBJECT_FIELDS else f"attributes.{name}"
    return Assignment(flat, found["how"], found["value"])


def find(view: View, key: str) -> Node:
    """Return the entity of an id, or of a former one. Raises ``NotFound`` with the nearest one."""
    for node in view.nodes([view.renamed([key]).get(key, key)]):
        return node
    raise NotFound(f"There is no entity {in_quotes(key)}.", hint=is_it(near_ids(view.rows, key, 1)))


def with_called(outcome: Outcome, called: Mapping[str, str]) -> Outcome:
    """Return an outcome that warns of former ids by which entities were named."""
    return msgspec.structs.replace(outcome, warnings=(*outcome.warnings, *former.said(called))) if called else outcome


def values_of(node: Node, asked: Sequence[Assignment], schema: Schema) -> dict[str, Any]:
    """Return the new value of each field, None for one that is removed; changes of one list come one after the other.

    Raises: ``InvalidQuery`` for a value that its field cannot have.
    """
    values: dict[str, Any] = {}
    whole = Counter(one.name for one in asked if one.how not in _OF_LISTS)
    for one in asked:
        if whole[one.name] and one.name in values:
            hint = "Give each field one value, or add to its list and take away from it: tags+=a tags-=b."
            raise InvalidQuery(f"`{one.name}` is set twice.", hint=hint)
        old = values[one.name] if one.name in values else node.fields.get(one.name)
        values[one.name] = _value(one, old, _kind(schema, node.type, one.name))
        value = values[one.name]
        if value is not None and "." not in one.name:
            fault = field_problem(one.name, value) or meaning_problem(one.name, value)
            if fault:
                raise InvalidQuery(f"`{one.name}` {fault.message}.", hint=fault.hint)
    return values


def _kind(schema: Schema, type_: str, name: str) -> str:
    """Return the type of a field: that which is declared, else "any"."""
    if name in CORE_FIELDS:
        return CORE_FIELDS[name]
    definition = schema.entities.get(type_)
    attribute = definition.attributes.get(name.removeprefix("attributes.")) if definition else None
    return attribute.type if attribute and name.startswith("attributes.") else "any"


def _value(one: Assignment, old: Any, kind: str) -> Any:
    """Return the value that an assignment gives its field."""
    is_list = kind == "list" or (kind == "any" and isinstance(old, list))
    items = [item for part in one.value.split(",") if (item := part.strip())]
    if one.how in _OF_LISTS:
        if not is_list and old is not None:
            raise InvalidQuery(f"`{one.name}` is no list.", hint=f"Set it: {one.name}=….")
        return _list(one, old if isinstance(old, list) else [], items)
    if one.how == ":=":
        return _json(one)
    if one.value == "":
        return None
    if is_list:
        return items
    if kind in {"number", "boolean", "object"}:
        return _value(one._replace(how=":="), old, kind)
    return one.value


def _list(one: Assignment, before: Sequence[Any], items: Sequence[str]) -> list[Any] | None:
    """Return a list with items added or removed, None for an empty one. An item that is no text is named as in JSON."""
    texts = [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in before]
    if one.how == "-=":
        missing = next((item for item in items if item not in texts), None)
        if missing is not None:
            hint = f"It has {some_of(texts, _MOST_NAMED)}." if texts else "It is empty."
            raise InvalidQuery(f"`{one.name}` has no {in_quotes(missing)}.", hint=hint)
        return [item for item, text in zip(before, texts, strict=True) if text not in items] or None
    if texts != list(before):
        message = f"`{one.name}` has items that are no text, and += adds text."
        raise InvalidQuery(message, hint=f"Set all of it as JSON: {one.name}:=[…].")
    return [*before, *(item for item in dict.fromkeys(items) if item not in before)]


def _json(one: Assignment) -> Any:
    tree = strictjson.read(one.value)
    if tree.problems or not one.value.strip():
        reason = f": {tree.problems[0].message}" if tree.problems else ""
        message = f"`{one.name}`: {in_quotes(one.value[:80])} is not JSON{reason}."
        raise InvalidQuery(message, hint="With := the value is JSON; with = it is text.")
    return tree.root


def set_fields(target: Target, key: str, words: Sequence[str], *, message: str = "", dry_run: bool = False) -> Written:
    """Set fields of an entity as ``field=value`` words say.

    Raises: ``NotFound``, ``InvalidQuery``; ``DerivedFact`` where the file that states a field is not one that KB
    changes, with its line; as ``documents.commit`` and ``Target.carry_out``.
    """
    workspace = target.workspace

    def on(view: View) -> tuple[Node, Schema, int]:
        return find(view, key), view.schema(workspace.schema), view.recorded_seq

    node, schema, seq = target.read(on)
    called = {key: node.id} if node.id != key else {}
    values = values_of(node, [assignment(word, schema) for word in words], schema)
    if not values:
        raise InvalidQuery("No field is named.", hint=_HINT)
    is_document = bool(node.path) and is_markdown(workspace, node.path)
    in_file = {name for name in values if name in node.owners or (is_document and name not in node.fields)}
    in_store = values.keys() - in_file
    if in_file and in_store:
        one, other = min(in_file), min(in_store)
        message = f"`{one}` of {in_quotes(key)} belongs into {node.path}, and `{other}` was set in the store."
        raise InvalidQuery(message, hint="Set the two in two calls: each call is one record.")
    said = message or f"set {', '.join(sorted(values))} of {key}"
    if in_store:
        request = client_request(node, values) | {"message": said, "dry_run": dry_run, "expected_seq": seq}
        changeset = parse(request)
        return Written(with_called(target.carry_out(changeset), called))
    definition = schema.entities.get(node.type)
    if definition:
        check_status(definition, values.get("status"))
    edit = edit_fields(workspace, node, values)
    edits = [edit] if edit.after != edit.before else []
    outcome = commit(target, edits, framed(target, message=said, dry_run=dry_run))
    if definition and definition.status_default and values.get("status", "") is None:
        default = in_quotes(definition.status_default)
        warning = f"A document of a {node.type} without a status has the default: {in_quotes(key)} gets {default}."
        outcome = msgspec.structs.replace(outcome, warnings=(*outcome.warnings, warning))
    return Written(with_called(outcome, called), edits)


def check_status(definition: EntityType, status: Any) -> None:
    """Refuse a status that the type does not list, if it lists any. Raises: ``InvalidChangeset``."""
    if definition.statuses and status is not None and status not in definition.statuses:
        hint = f"Use one of: {', '.join(definition.statuses)}."
        problem = Problem("$.status", "unknown_status", no_status_of(status, definition.name), hint)
        raise InvalidChangeset(problem.message, hint=hint, details=[problem])


def client_request(node: Node, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changeset that sets these fields of an entity in the store; None removes one."""
    entity: dict[str, Any] = {"id": node.id} | {name: value for name, value in values.items() if "." not in name}
    for prefix in OBJECT_FIELDS:
        head = f"{prefix}."
        named = {name.removeprefix(head): value for name, value in values.items() if name.startswith(head)}
        if named:
            entity[prefix] = named
    return {"entities": [entity]}


def edit_fields(workspace: Workspace, node: Node, values: Mapping[str, Any]) -> FileEdit:
    """Return the edit of an entity's document that states these fields so, and nothing else otherwise.

    Raises: ``DerivedFact`` with file and line where that cannot be done safely.
    """
    path = next((node.owners[name] for name in values if name in node.owners), node.path)
    before = read_document(workspace, path)
    facts = facts_of(workspace, path, before)
    stated = entity_in(facts, node.id)
    if not is_markdown(workspace, path) or stated is None:
        line = _line(stated, values)
        raise refused(path, line, "KB does not change this kind of file.", f"Edit {in_quotes(path)} and sync.")
    lines = {name: line for name, line in stated.lines.items() if name in stated.fields and _is_stated(stated, name)}
    changes: dict[str, Value | None] = {}
    for name, value in values.items():
        if name in lines and name in stated.fields and value is not None and is_same(stated.fields[name], value):
            continue
        if not (value is None or isinstance(value, str) or _is_texts(value)):
            hint = "Write it as text, or in the file by hand."
            raise refused(path, lines.get(name, 0), f"`{name}`: front matter holds text and lists of text.", hint)
        changes[name.removeprefix("attributes.")] = value
    keyed = {name.removeprefix("attributes."): line for name, line in lines.items()}
    try:
        after = edited(before.decode(), changes, keyed).encode()
    except UnicodeDecodeError as error:
        raise refused(path, 0, "it is not UTF-8.", "Save it as UTF-8.") from error
    except CannotEdit as error:
        raise refused(path, error.line, f"{error.reason}.", f"Edit {in_quotes(path)} and sync.") from error
    _check(path, node.id, values, (facts, facts_of(workspace, path, after)), _line(stated, values))
    return FileEdit(path, before, after)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_stated(stated: StatedEntity, name: str) -> bool:
    """Tell whether a key states a field; ``text_ref`` of a document is the document itself without one."""
    return name != "text_ref" or stated.lines.get(name) != stated.line


def _line(stated: StatedEntity | None, values: Mapping[str, Any]) -> int:
    lines = [stated.lines[name] for name in values if name in stated.lines] if stated else []
    return lines[0] if lines else stated.line if stated else 0


def _check(path: str, key: str, values: Mapping[str, Any], sides: tuple[Facts, Facts], line: int) -> None:
    """Refuse an edit after which the document would not state exactly what was asked for."""
    before, after = sides
    wanted_entities = []
    for one in before.entities:
        fields = dict(one.fields)
        if one.id == key:
            fields |= {name: value for name, value in values.items() if value is not None}
            fields = {name: value for name, value in fields.items() if values.get(name, "") is not None}
        wanted_entities.append(msgspec.structs.replace(one, fields=fields))
    expected = msgspec.structs.replace(before, entities=tuple(wanted_entities))
    if meaning(expected) != meaning(after):
        known = [one.message for one in before.problems]
        new = next((one.message for one in after.problems if one.message not in known), "")
        why = f": {new}" if new else ""
        hint = f"Edit {in_quotes(path)} and sync."
        raise refused(path, line, f"the file would then not state what is asked for{why}.", hint)
