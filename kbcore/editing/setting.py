"""Sets fields of one entity: in its document where that states them, else in the store.

A field that the document states, or that nothing states yet, is written into the document, so that it is versioned and
travels with the code. A field that a client has set stays the client's and is changed in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from kbcore.editing import document_lock
from kbcore.editing.assignments import EXAMPLES, FieldChange, assignment, declared_kind, values_of
from kbcore.editing.change_words import changes_in_words
from kbcore.editing.documents import (
    Extractors,
    WriteTarget,
    commit,
    entity_in,
    facts_of,
    framed,
    is_markdown,
    meaning,
    read_document,
    refused,
    require_checked_out,
    require_whole,
)
from kbcore.editing.file_edits import FileEdit
from kbcore.editing.frontmatter import CannotEdit, Value, edited
from kbcore.errors import DerivedFact, InvalidChangeset, InvalidQuery, NotFound, NotSynced, Problem, StaleBase
from kbcore.errors.remedies import kb
from kbcore.extract.facts import Facts, StatedEntity, StatedLink
from kbcore.model.changeset import parse
from kbcore.model.graph import OBJECT_FIELDS, Node, contested_note
from kbcore.model.renames import joined
from kbcore.model.schema import EntityType, Schema
from kbcore.model.state import Draft, Stamp
from kbcore.model.values import is_same
from kbcore.query import former_ids
from kbcore.query.data_names import near_ids
from kbcore.store.answers import Outcome
from kbcore.store.branch_store import BranchStore
from kbcore.store.planning.conflicts import refusal
from kbcore.store.workspace import Workspace
from kbcore.sync.active_extractors import extractors_of
from kbcore.sync.comparison import default_statuses
from kbcore.sync.fields import stated_fields
from kbcore.sync.locate import SYNC_FIRST, check_free, moved_words
from kbcore.text.escaping import in_quotes
from kbcore.text.problems import added
from kbcore.text.suggest import is_it
from kbcore.text.wording import no_status_of, some_of
from kbcore.view.view import View

T = TypeVar("T")

_MOST_NAMED: Final = 10
FRONT_MATTER_HOLDS: Final = (
    "front matter can have text, lists of text, and numbers and booleans that the schema declares"
)
_KEYLESS: Final = {
    "type": ", as the settings of its folder say",
    "title": ", as its text says",
    "text_ref": ", the document itself",
}
"""The source of a field that a document states without a key for it."""


class SetResult(NamedTuple):
    """The answer of the write, and the files that were edited for it."""

    outcome: Outcome
    edits: Sequence[FileEdit] = ()


def find(view: View, key: str) -> Node:
    """Return the entity of an id, or of a former one. Raises ``NotFound`` with the nearest one."""
    for node in view.nodes([view.renamed([key]).get(key, key)]):
        return node
    raise NotFound(f"There is no entity {in_quotes(key)}.", hint=is_it(near_ids(view.rows, key, 1)))


def read_with(target: WriteTarget, on: Callable[[View], T], key: str) -> T:
    """Return what ``on`` reads about an entity. Raises: what it raises; ``NotSynced`` where no file states it any more.

    The next sync removes such an entity, and the records still have it.
    """
    try:
        found: T = target.read(on)
    except NotFound:
        check_free(target.read, target.workspace.store(target.branch).read, key)
        raise
    return found


def with_called(outcome: Outcome, called: Mapping[str, str]) -> Outcome:
    """Return an outcome that warns of former ids by which entities were named."""
    return (
        msgspec.structs.replace(outcome, warnings=(*outcome.warnings, *former_ids.said(called))) if called else outcome
    )


def set_fields(
    target: WriteTarget, key: str, words: Sequence[str], *, message: str = "", dry_run: bool = False
) -> SetResult:
    """Set fields of an entity as ``field=value`` words say.

    Raises: ``NotFound``; ``InvalidQuery``, also for a document of another branch; ``DerivedFact`` where the file that
    states a field is not one that KB changes, or cannot be read whole, with its line; as ``document_lock.held``,
    ``documents.commit`` and ``WriteTarget.apply``.
    """
    with document_lock.held(target.workspace, command=target.author.tool, dry_run=dry_run):
        return _set(target, key, words, message=message, dry_run=dry_run)


def _set(target: WriteTarget, key: str, words: Sequence[str], *, message: str, dry_run: bool) -> SetResult:
    """Set fields; the caller holds the lock of the documents."""
    workspace = target.workspace

    def on(view: View) -> tuple[Node, Schema, int, bool]:
        node = find(view, key)
        store = workspace.store(target.branch)
        return node, view.schema(workspace.schema), view.recorded_seq, _has_default_status(store, view, node)

    node, schema, seq, has_default = read_with(target, on, key)
    called = {key: node.id} if node.id != key else {}
    asked = [assignment(word, schema) for word in words]
    names = list(dict.fromkeys(one.name for one in asked))
    if not names:
        raise InvalidQuery("No field is named.", hint=EXAMPLES)
    _check_links(node, asked)
    extractors = extractors_of(workspace)
    is_document = bool(node.path) and is_markdown(extractors, node.path)
    set_by_clients = {
        name for name in node.fields if name not in node.owners and not (name == "status" and has_default)
    }
    in_file = {name for name in names if name in node.owners or (is_document and name not in set_by_clients)}
    in_store = {*names} - in_file
    if in_file and in_store:
        one, other = min(in_file), min(in_store)
        message = f"`{one}` of {in_quotes(key)} belongs into {node.path}, and `{other}` was set in the store."
        raise InvalidQuery(message, hint="Set the two in two calls: each call is one record.")
    said = message or f"set {', '.join(sorted(names))} of {key}"
    if in_store:
        _refuse_contested(node, names)
        values = values_of(node, asked, schema)
        request = client_request(node, values) | {"message": said, "dry_run": dry_run, "expected_seq": seq}
        changeset = parse(request)
        return SetResult(with_called(target.apply(changeset), called))
    require_checked_out(target)
    _check_moved(target, node)
    definition = schema.entities.get(node.type)
    document = _read_stated(workspace, extractors, node, names)
    values = values_of(_as_stated(node, document.stated, definition, names), asked, schema)
    values = {name: None if value == [] else value for name, value in values.items()}  # no file states an empty list
    if definition:
        check_status(definition, values.get("status"))
    edit = _edit_fields(extractors, document, values, definition)
    edits = [edit] if edit.after != edit.before else []
    others = _OtherChanges(node.id, values)
    outcome = commit(target, edits, framed(target, message=said, dry_run=dry_run), more=others.note)
    warnings = others.warnings(document.path)
    if definition and definition.status_default and values.get("status", "") is None:
        default = in_quotes(definition.status_default)
        warnings.append(
            f"A document of a {node.type} without a status has the default: {in_quotes(key)} gets {default}."
        )
    outcome = msgspec.structs.replace(outcome, warnings=(*outcome.warnings, *warnings))
    return SetResult(with_called(outcome, called), edits)


def _refuse_contested(node: Node, names: Iterable[str]) -> None:
    """Refuse to set a field whose several values the person has not been shown. Raises: ``StaleBase``."""
    for name in names:
        if contested_note(name) in node.fields:
            message, hint = refusal(node.id, name)
            raise StaleBase(message, hint=hint)


def _check_moved(target: WriteTarget, node: Node) -> None:
    """Refuse to edit a document that has moved, which no record has yet. Raises: ``NotSynced``."""
    recorded = target.workspace.store(target.branch).read(lambda view: view.nodes([node.id]))
    if recorded and recorded[0].path and recorded[0].path != node.path:
        raise NotSynced(moved_words(node.id, node.path, recorded[0].path), hint=SYNC_FIRST)


def _check_links(node: Node, asked: Sequence[FieldChange]) -> None:
    """Refuse to set links to entities as a field: they are edges. Raises: ``InvalidQuery``."""
    for one in asked:
        items = [item for part in one.value.split(",") if (item := part.strip())]
        is_missed = not items and one.how == "=" and not node.fields.get("links")
        if one.name == "links" and one.how != ":=" and (is_missed or any("://" not in item for item in items)):
            message = "The field `links` holds URLs; a reference to another entity is an edge."
            hint = f"{kb('show', node.id)} lists the edges. {kb('link', node.id, 'EDGE', 'OTHER')} states one, and "
            raise InvalidQuery(message, hint=f"{hint}one that a file states is removed in the file.")


def _has_default_status(store: BranchStore, view: View, node: Node) -> bool:
    """Return whether a status is the default that a document without one gets: it was not set."""
    if not node.owners or "status" not in node.fields or "status" in node.owners:
        return False
    if contested_note("status") in node.fields:
        return False
    if node.created_seq > view.recorded_seq:
        return True
    return node.id in default_statuses(view, [node], store.claims)


class _OtherChanges:
    """Edits that no sync saw: what a document states besides the fields that are set, and the records did not have."""

    def __init__(self, key: str, values: Mapping[str, Any]) -> None:
        self._key = key
        self._values = values
        self._found: list[list[str]] = []

    def note(self, _view: View, _stamp: Stamp, draft: Draft) -> Draft:
        """Note what a plan of the record holds besides."""
        changes = joined(draft.changes)
        names = {*self._values}
        if "type" in names:  # edges may mean something else then, and the default status may be another one
            changes = msgspec.structs.replace(changes, links=())
            names.add("status")
        said = changes_in_words(changes, lambda key, name: key == self._key and name in names)
        if draft.changes:
            self._found.append(said)
        return draft

    def warnings(self, path: str) -> list[str]:
        """Return a sentence on all of it, if there is anything."""
        found = self._found[-1] if self._found else []
        if not found:
            return []
        return [f"{path} had changes that were not recorded yet; this records them too: {some_of(found, _MOST_NAMED)}."]


def check_status(definition: EntityType, status: Any) -> None:
    """Refuse a status that the type does not list, if it lists any. Raises: ``InvalidChangeset``."""
    if definition.statuses and status is not None and status not in definition.statuses:
        hint = f"Use one of: {', '.join(definition.statuses)}."
        problem = Problem("$.status", "unknown_status", no_status_of(status, definition.name), hint)
        raise InvalidChangeset(problem.message, hint=hint, details=[problem], says_first=True)


def client_request(node: Node, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changeset that sets these fields of an entity in the store; None removes one."""
    entity: dict[str, Any] = {"id": node.id} | {name: value for name, value in values.items() if "." not in name}
    for prefix in OBJECT_FIELDS:
        head = f"{prefix}."
        named = {name.removeprefix(head): value for name, value in values.items() if name.startswith(head)}
        if named:
            entity[prefix] = named
    return {"entities": [entity]}


class _Document(NamedTuple):
    """A document as it was read: its path and its bytes, all that it states, and what it states of one entity."""

    path: str
    before: bytes
    facts: Facts
    stated: StatedEntity


def _read_stated(workspace: Workspace, extractors: Extractors, node: Node, names: Sequence[str]) -> _Document:
    """Return the document that states these fields of an entity.

    Raises: ``DerivedFact`` with file and line for a file that KB does not change.
    """
    path = next((node.owners[name] for name in names if name in node.owners), node.path)
    before = read_document(workspace, path)
    facts = facts_of(extractors, path, before)
    stated = entity_in(facts, node.id)
    if not is_markdown(extractors, path):
        line = _line(stated, names)
        raise refused(
            path, line, "KB does not change this kind of file.", f"Edit {in_quotes(path)} and {kb('sync', lead='run')}."
        )
    require_whole(path, facts)
    if stated is None:
        raise refused(
            path, 0, f"it does not state {in_quotes(node.id)} any more.", f"{kb('sync')} records what it states."
        )
    return _Document(path, before, facts, stated)


def _as_stated(node: Node, stated: StatedEntity, definition: EntityType | None, names: Sequence[str]) -> Node:
    """Return an entity with these fields as its document states them, which the records may not have yet."""
    found = stated_fields(stated, definition)[0] if definition else stated.fields
    fields = {name: value for name, value in node.fields.items() if name not in names}
    return msgspec.structs.replace(node, fields=fields | {name: found[name] for name in names if name in found})


def _edit_fields(
    extractors: Extractors, document: _Document, values: Mapping[str, Any], definition: EntityType | None
) -> FileEdit:
    """Return the edit of an entity's document that states these fields so, and nothing else otherwise.

    Raises: ``DerivedFact`` with file and line where that cannot be done safely.
    """
    path, before, stated = document.path, document.before, document.stated
    lines = {
        name: line
        for name, line in stated.lines.items()
        if (name in stated.fields and _is_stated(stated, name)) or name == "type"
    }
    changes: dict[str, Value | None] = {}
    for name, value in values.items():
        if name in lines and name in stated.fields and value is not None and is_same(stated.fields[name], value):
            continue
        if value is not None and not is_writable(value, definition, name):
            hint = "Write it as text, or in the file by hand."
            raise refused(path, lines.get(name, 0), f"`{name}`: {FRONT_MATTER_HOLDS}.", hint)
        changes[name.removeprefix("attributes.")] = value
    keyed = {name.removeprefix("attributes."): line for name, line in lines.items()}
    try:
        after = edited(before.decode(), changes, keyed).encode()
    except UnicodeDecodeError as error:
        raise refused(path, 0, "it is not UTF-8.", "Save it as UTF-8.") from error
    except CannotEdit as error:
        raise refused(
            path, error.line, f"{error.reason}.", f"Edit {in_quotes(path)} and {kb('sync', lead='run')}."
        ) from error
    _check(document, values, facts_of(extractors, path, after), definition)
    return FileEdit(path, before, after)


def is_writable(value: Any, definition: EntityType | None, name: str) -> bool:
    """Return whether front matter can state a value of a field; a number or a boolean where the schema declares one."""
    if isinstance(value, bool):
        return declared_kind(definition, name) == "boolean"
    if isinstance(value, int | float):
        return declared_kind(definition, name) == "number"
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value))


def _is_stated(stated: StatedEntity, name: str) -> bool:
    """Return whether a key states a field; ``text_ref`` of a document is the document itself without one."""
    return name != "text_ref" or stated.lines.get(name) != stated.line


def _line(stated: StatedEntity | None, names: Iterable[str]) -> int:
    lines = [stated.lines[name] for name in names if name in stated.lines] if stated else []
    return lines[0] if lines else stated.line if stated else 0


def _check(document: _Document, values: Mapping[str, Any], after: Facts, definition: EntityType | None) -> None:
    """Refuse an edit after which the document would not state exactly what was asked for."""
    before, key = document.facts, document.stated.id
    now = entity_in(after, key)
    typed = stated_fields(now, definition)[0] if now and definition else {}
    wanted_entities = []
    for one in before.entities:
        fields = dict(one.fields)
        if one.id == key:
            fields |= {name: value for name, value in values.items() if value is not None}
            if type_ := fields.pop("type", ""):
                one = msgspec.structs.replace(one, type=str(type_))  # noqa: PLW2901 - as the edit is to make it
            fields = {name: value for name, value in fields.items() if values.get(name, "") is not None}
            # A file states text, and the schema says that it is a number or a boolean.
            fields |= {
                name: now.fields[name]
                for name, value in values.items()
                if now and isinstance(value, int | float) and is_same(typed.get(name), value)
            }
        wanted_entities.append(msgspec.structs.replace(one, fields=fields))
    # An edit may remove the reason of a problem.
    expected = msgspec.structs.replace(before, entities=tuple(wanted_entities), problems=after.problems)
    if added(before.problems, after.problems) or meaning(expected) != meaning(after):
        raise _misstated(document, values, after)


def _misstated(document: _Document, values: Mapping[str, Any], after: Facts) -> DerivedFact:
    """Return the error for an edit after which a document would not state what was asked for, with the first reason."""
    path, key = document.path, document.stated.id
    now = entity_in(after, key)
    stated = {**now.fields, "type": now.type} if now else {}
    left = next((name for name, value in values.items() if value is None and name in stated), "")
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    other = next((name for name, value in texts.items() if stated.get(name, value) != value), "")
    links = {*map(_link_key, after.links)}
    lost = [one for one in document.facts.links if _link_key(one) not in links]
    targets = sorted({one.target for one in lost})
    new = added(document.facts.problems, after.problems)
    line, field, found = _line(document.stated, values), "", list[str]()
    why, hint = "", f"Edit {in_quotes(path)} and {kb('sync', lead='run')}."
    if new:
        why, hint = f" {new[0].message}", new[0].hint or hint
    elif left:
        field, found = left, [str(stated[left])]
        why = f" Without a key `{left}` it has {in_quotes(found[0])}{_KEYLESS.get(left, '')}."
        hint = f"{kb('set', key, f'{left}=…')} sets another value."
    elif lost:
        line, field, found = lost[0].line, "links", targets
        why = f" Its key `links` states edges as well, which would be lost: to {some_of(targets, _MOST_NAMED)}."
        hint = f"Change the URLs in {in_quotes(path)}, leave the other items there, and {kb('sync', lead='run')}."
    elif other:
        field, found = other, [str(stated[other])]
        why = f" `{other}` would be {in_quotes(found[0])}."
        if found[0] == texts[other].strip():
            hint = f"{kb('set', key, f'{other}={found[0]}')} sets it: a file states text without spaces around it."
    message = f"the file would then not state what is asked for.{why}"
    return refused(path, line, message, hint, subject=key, field=field, values=found)


def _link_key(link: StatedLink) -> tuple[str, str, str | None, str, bool, bool]:
    return link.subject, link.target, link.type, link.kind, link.is_path, link.reverse
