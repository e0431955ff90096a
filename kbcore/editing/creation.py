"""Makes new entities: takes the next free id of a type, and writes the document of the entity or its record.

A type that documents define gets a document, so that git has it; any other one is written to the store.
"""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

from kbcore.editing import document_lock
from kbcore.editing.assignments import FieldChange, assignment, values_of
from kbcore.editing.documents import WriteTarget, commit, facts_of, framed, require_checked_out
from kbcore.editing.file_edits import FileEdit, read_file
from kbcore.editing.frontmatter import CannotEdit, Value, edited
from kbcore.editing.setting import FRONT_MATTER_HOLDS, SetResult, check_status, client_request, is_writable
from kbcore.errors import IntegrityViolation, InvalidChangeset, InvalidQuery, Problem
from kbcore.errors.remedies import kb
from kbcore.extract.facts import Facts, StatedEntity
from kbcore.extract.markdown import NAME as MARKDOWN
from kbcore.ids import NUMBER_MARK
from kbcore.model.changeset import parse
from kbcore.model.concepts import ORIGIN, VOCABULARY, concept_id
from kbcore.model.graph import Node
from kbcore.model.schema import EntityType, Schema
from kbcore.model.state import Draft, Stamp
from kbcore.model.values import is_same
from kbcore.store import id_allocation
from kbcore.store.workspace import Workspace
from kbcore.sync.active_extractors import extractors_of
from kbcore.sync.fields import stated_fields
from kbcore.sync.ids_elsewhere import NotSeen, SeenId, ids_elsewhere, in_use_elsewhere
from kbcore.sync.locate import check_free
from kbcore.sync.scan import wanted_at
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbcore.view import numbering
from kbcore.view.view import View

TEMPLATES: Final = "templates"
"""The folder in ``.kb`` with the project's own templates, one a type: ``req.md``."""

_MAX_SLUG_CHARS: Final = 60
_MAX_NAME_BYTES: Final = 200
"""Of the name of a document, without `.md`: file systems stop at 255 bytes, and temporary names add to it."""
_MARK: Final = re.compile(r"\{(id|title|status|type)\}")
_FILE_NAME: Final = re.compile(r"[\w$.-]+")
_PLAIN_TEMPLATE: Final = "---\nid: new\ntitle: new\nstatus: new\n---\n\n# {title}\n"
_PATHS: Final = """
select path, bool_or(status = $3) from node
where type = $1 and path <> '' and path in (select path from source where extractor like $2) group by path order by path
"""
_GLOB: Final = re.compile(r"[*?\[{]")

_OPTIONS: Final = {"title": ("--title", "…")}
"""Options of `kb new` for fields, and their examples."""

Edit = Callable[[str], str]
"""Shows a text to a person who changes it, and returns the changed text."""


def type_named(view: View, workspace: Workspace, kind: str) -> EntityType:
    """Return the definition of a type. Raises ``InvalidQuery`` with the nearest name."""
    known = view.schema(workspace.schema).entities
    if kind not in known:
        raise InvalidQuery(f"There is no entity type {in_quotes(kind)}.", hint=did_you_mean(kind, known))
    return known[kind]


class TakenId(NamedTuple):
    """A free id, the one with the highest number of its series, and what was not looked at for it."""

    id: str
    last: SeenId | None
    not_seen: tuple[NotSeen, ...]


def take_id(target: WriteTarget, kind: str, prefix: str = "", *, dry_run: bool = False) -> TakenId:
    """Return the next free id of a type, reserved for an hour unless it is a dry run.

    Without ``prefix`` it is that of most entities of the type.

    Raises: ``InvalidQuery`` for an unknown type; as ``id_allocation.reserved``.
    """

    def series(view: View) -> tuple[str, str]:
        type_named(view, target.workspace, kind)
        return _series(view, kind, prefix)

    begin, last = target.read(series)
    there = ids_elsewhere(target.workspace, target.branch, [begin])
    highest = there.highest.get(begin)
    if last and (highest is None or numbering.next_id(begin, [last, highest.id]) == numbering.next_id(begin, [last])):
        highest = SeenId(last, "branch", target.branch)
    used = [highest.id] if highest else []
    if dry_run:
        return TakenId(id_allocation.known_next(target.workspace, begin, used), highest, there.not_seen)
    with id_allocation.reserved(target.workspace, [(begin, used)]) as [key]:
        return TakenId(key, highest, there.not_seen)


def _series(view: View, kind: str, prefix: str) -> tuple[str, str]:
    """Return the prefix of new ids of a type, and the id with the highest number of this series."""
    begin = prefix or numbering.prefix_of(view.rows, kind)
    return begin, numbering.highest(view.rows, begin)


class Wish:
    """The entity that is to be made: its type, what is stated of it, and where it is to be written."""

    def __init__(
        self,
        kind: str,
        words: Sequence[str] = (),
        *,
        title: str = "",
        key: str = "",
        prefix: str = "",
        path: str = "",
        in_store: bool = False,
    ) -> None:
        """``words`` are ``field=value``; ``path`` is relative to the worktree.

        ``key`` "" is the next free id, and one that ends in ``{n}`` the next one that begins with what is before it.

        Raises: ``InvalidQuery``.
        """
        if in_store and path:
            raise InvalidQuery("An entity of the store has no document.", hint="Give a file or the store, not both.")
        if key and not prefix:
            prefix = numbering.marked_prefix(key) or ""
            key = "" if prefix else key
        fault = numbering.check_new_id(key) if key else None
        if fault:
            raise InvalidQuery(f"{in_quotes(key)} cannot be an id: {fault}.", hint="Choose another id.")
        self.kind = kind
        self.words = (*([f"title={title}"] if title else []), *words)
        self.key = key
        self.prefix = prefix
        self.path = path
        self.in_store = in_store


class _Plan:
    """The branch's facts for a wish."""

    def __init__(self, view: View, workspace: Workspace, wish: Wish) -> None:
        self.definition = type_named(view, workspace, wish.kind)
        self.schema: Schema = view.schema(workspace.schema)
        self.begin, self.last = _series(view, wish.kind, wish.prefix)
        self.path = _normal(workspace, wish.path) if wish.path else ""
        self.values = _values(self, wish)
        status = str(self.values["status"])
        self.folder = "" if wish.in_store or wish.path else _folder(view, workspace, wish.kind, status)
        _check_free(view, [wish.key] if wish.key else [])


def make(
    target: WriteTarget, wish: Wish, *, edit: Edit | None = None, message: str = "", dry_run: bool = False
) -> SetResult:
    """Make an entity, as one record. ``edit`` lets a person change the text of its document before it is written.

    Raises: ``InvalidQuery`` for what the wish cannot mean; ``IntegrityViolation`` for an id in use;
    ``InvalidChangeset`` for a text that does not state such an entity; as ``document_lock.held``, ``documents.commit``
    and ``WriteTarget.apply``.
    """
    workspace = target.workspace
    plan: _Plan = target.read(lambda view: _Plan(view, workspace, wish))
    values = plan.values
    if not (plan.folder or plan.path):
        if edit is not None:
            hint = f"{kb('new')} makes it without an editor." if "title" in values else "Give its title."
            raise InvalidQuery(f"A {wish.kind} has no document to edit.", hint=hint)
        return _recorded(target, plan, wish, values, message=message, dry_run=dry_run)
    require_checked_out(target)
    if edit is None:
        _check_required(plan.definition, values)
    used = [] if wish.key else [plan.last, *in_use_elsewhere(workspace, target.branch, [plan.begin])]
    with ExitStack() as stack:
        if wish.key:
            key = wish.key
        elif dry_run:
            key = id_allocation.known_next(workspace, plan.begin, used)
        else:
            [key] = stack.enter_context(id_allocation.reserved(workspace, [(plan.begin, used)]))
        path = plan.path or f"{plan.folder}/{_file_name(key, str(values.get('title', '')))}"
        wished = {"id": key, **values}
        text = _text(workspace, path, plan.definition, wished)
        if edit is not None:
            text, wished = edit(text), {}
        file = FileEdit(path, None, text.encode())
        return _written(target, file, plan.definition, wished, message=message, dry_run=dry_run)


def _values(plan: _Plan, wish: Wish) -> dict[str, Any]:
    """Return the fields of the new entity: what is asked for, and the default status of its type.

    Raises: ``InvalidQuery``; ``InvalidChangeset`` for a status that the type does not list.
    """
    asked: list[FieldChange] = []
    for word in wish.words:
        one = assignment(word, plan.schema)
        if one.name == "type":
            raise InvalidQuery("The type is named once.", hint=f"{kb('new', wish.kind)} makes a {wish.kind}.")
        asked.append(one)
    blank = _blank(wish.key or "new", wish.kind)
    values = {name: value for name, value in values_of(blank, asked, plan.schema).items() if value is not None}
    check_status(plan.definition, values.get("status"))
    return {"status": plan.definition.status_default} | values


def _blank(key: str, kind: str) -> Node:
    """Return an entity of which nothing but its type is known."""
    return Node(key, {"type": kind}, {}, created_at="", updated_at="", source="", created_seq=0, version=0)


def _check_required(definition: EntityType, values: dict[str, Any]) -> None:
    missing = [name for name in definition.required_fields if name not in values]
    if missing:
        words = [word for name in missing for word in _OPTIONS.get(name, (f"{name.removeprefix('attributes.')}=…",))]
        message = f"A new {definition.name} needs {', '.join(f'`{name}`' for name in missing)}."
        raise InvalidQuery(message, hint=f"For example {kb('new', definition.name, *words)}.")


def _recorded(
    target: WriteTarget, plan: _Plan, wish: Wish, values: dict[str, Any], *, message: str, dry_run: bool
) -> SetResult:
    """Make an entity in the store."""
    _check_required(plan.definition, values)
    key = wish.key or f"{plan.begin}{NUMBER_MARK}"
    if plan.definition.origin == ORIGIN:
        values = {"name": values["title"], **values}
        named = concept_id(wish.kind, values["name"])
        key = key if wish.key or wish.prefix else named
        target.read(lambda view: _check_name_free(view, wish.kind, values["name"], named))
    request = client_request(_blank(key, wish.kind), {"type": wish.kind, **values}) | {
        "message": message or f"new {wish.kind}",
        "dry_run": dry_run,
    }
    request["entities"][0]["create"] = True
    return SetResult(target.apply(parse(request)))


def _check_free(view: View, keys: Sequence[str]) -> None:
    """Refuse an id that an entity has or had. Raises: ``IntegrityViolation``."""
    for node in view.nodes(keys):
        where = f", in {in_quotes(node.path)}" if node.path else ""
        hint = f"{kb('id', 'next', node.type)} gives a free id."
        raise IntegrityViolation(f"{in_quotes(node.id)} is the id of a {node.type} already{where}.", hint=hint)
    for former, holder in view.renamed(keys).items():
        message = f"{in_quotes(former)} is a former id of {in_quotes(holder)}, and names no other entity."
        raise IntegrityViolation(message, hint="Choose another id.")


def _check_name_free(view: View, kind: str, name: str, key: str) -> None:
    """Refuse the name of another concept of a type of KIP; ``key`` is the id that KIP gives to a concept of that name.

    Raises: ``IntegrityViolation``.
    """
    called_by_id = [one for one in view.nodes([name, key]) if "name" not in one.fields]
    found = [one.id for one in (*view.named([name]), *called_by_id) if one.type == kind]
    if (kind, name) in VOCABULARY:
        found.append(key)
    if found:
        message = f"There is a {kind} {in_quotes(name)} already: {in_quotes(found[0])}."
        hint = f"{kb('set', found[0], '…')} changes it; another one needs another name."
        raise IntegrityViolation(message, hint=hint)


def _normal(workspace: Workspace, path: str) -> str:
    """Return a path that was named from the root of the worktree, without ``..``: globs are compared with such a one.

    Raises: ``InvalidQuery`` for a path outside the worktree.
    """
    root = workspace.repo.worktree
    normal = os.path.relpath(root / path, root)
    if normal == ".." or normal.startswith("../"):
        raise InvalidQuery(f"{in_quotes(path)} is not inside the repository.", hint=f"Name a file below {root}.")
    return normal


def _folder(view: View, workspace: Workspace, kind: str, status: str) -> str:
    """Return the folder of a type's documents: that of more than half of them, else the first one that is configured.

    Where none in that folder has the status of the new one, and several others have, these count alone: a project may
    have a folder for what is done. Where none is configured it is that of most of them, and "" where no documents
    define the type.
    """
    wants = extractors_of(workspace)
    rows = view.rows(_PATHS, [kind, f"{MARKDOWN}/%", status])
    count = Counter(posixpath.dirname(str(path)) for path, _ in rows)
    alike = Counter(posixpath.dirname(str(path)) for path, is_alike in rows if is_alike)
    main = _most(count)
    if main and not alike[main[0]] and alike.total() > 1:
        count, main = alike, _most(alike)
    used = [folder for folder, _ in count.most_common()]
    globs = [glob for want in wants if want.extractor.name == MARKDOWN for glob, of in want.globs if of == kind]
    configured = [posixpath.dirname(_GLOB.split(glob, maxsplit=1)[0]) for glob in globs]
    for folder in filter(None, dict.fromkeys([*main, *configured, *used])):
        found = wanted_at(wants, f"{folder}/new.md")
        # A document may name its type, so that a folder that has some may be configured for another type.
        if found and found.wanted.extractor.name == MARKDOWN and (folder in used or found.type == kind):
            return folder
    return ""


def _most(count: Counter[str]) -> list[str]:
    """Return the folder of more than half of the documents, if there is one."""
    return [folder for folder, number in count.most_common(1) if number * 2 > count.total()]


def _file_name(key: str, title: str) -> str:
    """Return the name of the document of an entity: its id, and the words of its title."""
    words = unicodedata.normalize("NFC", title).casefold()
    slug = re.sub(r"[\W_]+", "-", words).strip("-")[:_MAX_SLUG_CHARS].strip("-")
    name = re.sub(r"[^\w.-]+", "-", key).strip(".-") or "new"
    whole = f"{name}-{slug}" if slug else name
    return whole.encode()[:_MAX_NAME_BYTES].decode(errors="ignore").rstrip(".-") + ".md"


def _text(workspace: Workspace, path: str, definition: EntityType, values: dict[str, Any]) -> str:
    """Return the text of a new document, from the project's template for the type or KB's own.

    Raises: ``InvalidChangeset`` for a template that cannot be filled in.
    """
    kind = definition.name
    template = _template(workspace, kind)
    place = f"{TEMPLATES}/{kind}.md"
    marks = {"id": values["id"], "type": kind, "title": values.get("title", ""), "status": values["status"]}
    head, body = _divided(template)
    if not marks["title"]:
        body = body.replace("# {title}\n", "")
    filled = head + _MARK.sub(lambda found: str(marks[found[1]]), body)
    found = wanted_at(extractors_of(workspace), path)
    if found is None or found.wanted.extractor.name != MARKDOWN:
        hint = "Name a file in a folder of the configuration; `extractors.markdown.paths` in .kb/config.json has them."
        raise InvalidQuery(f"No Markdown document is read at {in_quotes(path)}.", hint=hint)
    stated = {name.removeprefix("attributes."): value for name, value in values.items()}
    if found.type != kind:
        stated["type"] = kind
    changes: dict[str, Value | None] = {"id": stated.pop("id"), **stated}
    changes.setdefault("title", "")
    for name, value in values.items():
        if value is not None and not is_writable(value, definition, name):
            hint = "Leave it out, and write it into the document by hand."
            raise InvalidQuery(f"`{name.removeprefix('attributes.')}`: {FRONT_MATTER_HOLDS}.", hint=hint)
    try:
        return edited(filled, changes, _lines(head))
    except CannotEdit as error:
        line = f":{error.line}" if error.line else ""
        raise InvalidChangeset(f"{place}{line}: {error.reason}.", hint="Correct the template.") from error


def _template(workspace: Workspace, kind: str) -> str:
    if not _FILE_NAME.fullmatch(kind):
        return _PLAIN_TEMPLATE
    place = workspace.settings_dir / TEMPLATES / f"{kind}.md"
    data = read_file(place, workspace.settings_dir.parent, f"{workspace.settings_name}/{TEMPLATES}/{kind}.md")
    try:
        return _PLAIN_TEMPLATE if data is None else data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        message = f"{TEMPLATES}/{kind}.md is not UTF-8."
        raise InvalidChangeset(message, hint="Save it as UTF-8.") from error


def _divided(template: str) -> tuple[str, str]:
    """Return the front matter of a template with its two marks, and its body; a template without one gets one."""
    if not template.startswith("---\n"):
        return "---\n---\n", template
    end = template.find("\n---", 3)
    return (template, "") if end < 0 else (template[: end + 4], template[end + 4 :])


def _lines(head: str) -> dict[str, int]:
    """Return the line of each key at the top of front matter, counted from 1."""
    found: dict[str, int] = {}
    for number, line in enumerate(head.split("\n"), 1):
        key, colon, _ = line.partition(":")
        if colon and re.fullmatch(r"[A-Za-z_][\w.-]*", key):
            found.setdefault(key, number)
    return found


def _written(
    target: WriteTarget,
    edit: FileEdit,
    definition: EntityType,
    wished: Mapping[str, Any],
    *,
    message: str,
    dry_run: bool,
) -> SetResult:
    """Write a new document that states one new entity, with the id and the fields that are wished, and record it."""
    workspace, kind = target.workspace, definition.name
    stated = _one_entity(edit.path, kind, facts_of(extractors_of(workspace), edit.path, edit.after))
    key, fields = stated.id, {"id": stated.id, **stated.fields}
    typed, _ = stated_fields(stated, definition)
    for name, value in wished.items():
        found = typed.get(name) if isinstance(value, int | float) else fields.get(name)
        if not is_same(_unspaced(found), _unspaced(value)):
            message = (
                f"Front matter cannot state `{name}` as {in_quotes(str(value))}: it would be read as another fact."
            )
            raise InvalidQuery(message, hint="Leave it out, and write it into the document by hand.")

    def is_new(view: View, _: Stamp, draft: Draft) -> Draft:
        _check_free(view, [key])
        if not any(change.key == key and change.after for change in draft.changes.nodes):
            raise InvalidChangeset(f"{edit.path} would not be read.", hint="Choose another id or another place.")
        return draft

    check_free(target.read, workspace.store(target.branch).read, key)
    with document_lock.held(workspace, command=target.author.tool, dry_run=dry_run):
        if os.path.lexists(workspace.repo.worktree / edit.path):
            hint = "Name another file."
            raise IntegrityViolation(f"{in_quotes(edit.path)} is there already.", hint=hint)
        request = framed(target, message=message or f"new {kind} {key}", dry_run=dry_run)
        outcome = commit(target, [edit], request, more=is_new)
    return SetResult(outcome, [edit])


def _unspaced(value: Any) -> Any:
    """Return a value of front matter without the blanks that a document may have more or fewer of."""
    if isinstance(value, list):
        return [_unspaced(one) for one in value]
    return " ".join(value.split()) if isinstance(value, str) else value


def _one_entity(path: str, kind: str, facts: Facts) -> StatedEntity:
    """Return the entity that a new document states. Raises: ``InvalidChangeset`` with all that is wrong."""
    faults = [
        Problem("$", one.code, f"{path}:{one.line}: {one.message}", one.hint, path, one.line)
        for one in facts.problems
        if one.severity == "error"
    ]
    if not faults and len(facts.entities) == 1 and facts.entities[0].type == kind:
        stated = facts.entities[0]
        if stated.fields.get("title"):
            return stated
    said = faults[0].message if faults else f"{path} would not state one {kind} with an id and a title."
    raise InvalidChangeset(
        said, hint=faults[0].hint if faults else "Write both.", details=faults, says_first=bool(faults)
    )
