"""Renames an entity: in the files that state it or link to it, and in the records, as one record.

Everything else stays as it is: who states what, when edges were made, and the history, which is found under both ids.
The old id becomes a former id of the entity (``model.FORMER_IDS``).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from kbcore import limits
from kbcore.checks.introduced.written import with_warnings
from kbcore.editing import document_lock
from kbcore.editing.documents import (
    Extractors,
    WriteTarget,
    commit,
    entity_in,
    facts_of,
    framed,
)
from kbcore.editing.frontmatter import items_below
from kbcore.editing.renamed_files import (
    IdRename,
    ReadFile,
    begun_renames,
    content_hash,
    files_naming,
    read_and_edited,
    states_former_ids,
)
from kbcore.editing.setting import SetResult
from kbcore.errors import (
    GitUnusable,
    IntegrityViolation,
    InvalidQuery,
    NotFound,
    NotSynced,
    StaleBase,
)
from kbcore.errors.remedies import kb
from kbcore.git.commands import run_git
from kbcore.ids import NUMBER_MARK
from kbcore.model.bare_links import resolve
from kbcore.model.changeset import digest_of
from kbcore.model.concepts import DEFINING, ORIGIN
from kbcore.model.folding import apply
from kbcore.model.graph import FORMER_IDS, FORMER_KEY, Node, SyncedFile, former_ids
from kbcore.model.read_set import NOTHING, ReadSet, needs
from kbcore.model.record import ReadSource
from kbcore.model.renames import rename_ops, renamed_links
from kbcore.model.schema import Schema
from kbcore.model.state import Draft, Stamp, State, StateReads
from kbcore.query.data_names import near_ids
from kbcore.store import id_allocation
from kbcore.store.answers import Outcome
from kbcore.store.planning.plan_builder import check_stale
from kbcore.store.proposing import proposing
from kbcore.store.write_request import Planner, Request
from kbcore.sync.active_extractors import extractors_of
from kbcore.sync.entities import DUPLICATE
from kbcore.sync.file_status import stale_sources
from kbcore.sync.ids_elsewhere import in_use_elsewhere
from kbcore.sync.locate import SYNC_FIRST, check_free, unrecorded, unrecorded_words
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import is_it
from kbcore.text.wording import pluralize, some_of
from kbcore.view import numbering
from kbcore.view.view import View

_MOST_LINES: Final = 5
"""The most lines with the earlier id that are listed."""
_GREP: Final = ("-I", "-z", "--no-color", "--no-column")
_GREP_S: Final = 5.0
_COUNT: Final = re.compile(rb"([^\0]+)\0(\d+)\n")
_PLACE: Final = re.compile(rb"^([^\0\n]+)\0(\d+)[\0:]", re.MULTILINE)
"""The output of git with -z: a path and a count of lines, and a path and the number of a line."""
_SPECIAL: Final = re.compile(r"[][\\.^$*+?(){}|]")
"""Signs with a meaning of their own in an extended regular expression of POSIX."""


class EntityToRename:
    """The view's facts of an entity to be renamed: the entity, its links, and the files that name it."""

    def __init__(self, view: View, old: str, new: str, project: Schema) -> None:
        """Raises: ``NotFound``, ``IntegrityViolation``, ``InvalidQuery``."""
        nodes = view.nodes([old])
        if not nodes:
            raise _missing(view, old)
        self.node: Node = nodes[0]
        if self.node.type in DEFINING:
            raise InvalidQuery(f"{in_quotes(old)} defines a type or a predicate.", hint="Define another one.")
        definition, name = view.schema(project).entities.get(self.node.type), self.node.fields.get("name")
        if name and definition and definition.origin == ORIGIN and old == f"{self.node.type}:{name}":
            message = f"The id {in_quotes(old)} is made of the type and the name of a concept of KIP's."
            hint = "Change its `name`, which may differ from the id; MERGE of KIP joins it with another concept."
            raise InvalidQuery(message, hint=hint)
        for taken in view.nodes([new]):
            hint = f"Choose another one; `PREFIX-{NUMBER_MARK}` is replaced by the next free number."
            raise IntegrityViolation(f"{in_quotes(new)} is the id of a {taken.type} already.", hint=hint)
        holder = view.renamed([new]).get(new, old)
        if holder != old:
            raise IntegrityViolation(f"{in_quotes(new)} is a former id of {in_quotes(holder)}.", hint="Choose another.")
        for other in view.holders().get(old, ()):
            if other not in {old, new}:
                message = (
                    f"{in_quotes(old)} is in `{FORMER_KEY}` of {in_quotes(other)}: after the rename it would mean both."
                )
                raise IntegrityViolation(message, hint=f"{kb('set', other, f'{FORMER_KEY}-={old}')} takes it out.")
        self.state: State = view.gather(msgspec.structs.replace(NOTHING, touching=frozenset({old, new})))
        pairs = renamed_links(self.state, {old: new})
        if view.links([after.id for _, after in pairs]):
            message = f"An unresolved edge to {in_quotes(new)} would be the same as one of {in_quotes(old)}."
            raise IntegrityViolation(message, hint=f"Remove one of the two; {kb('show', old)} lists its edges.")
        self.files = files_naming(view, old, self.node, (link for link, _ in pairs))


def _missing(view: View, key: str) -> NotFound:
    holder = view.renamed([key]).get(key)
    if holder:
        return NotFound(f"{in_quotes(key)} is called {in_quotes(holder)} now.", hint="Name it by that id.")
    return NotFound(f"There is no entity {in_quotes(key)}.", hint=is_it(near_ids(view.rows, key, 1)))


def rename(
    target: WriteTarget,
    old: str,
    new: str,
    *,
    message: str = "",
    dry_run: bool = False,
    changeset_id: str = "",
    expected_seq: int | None = None,
) -> SetResult:
    """Give an entity another id, wherever it is named; the old one still means it.

    A ``changeset_id`` takes effect once: sent again, it gets its first answer, without the files. An entity that
    changed after ``expected_seq`` is not renamed. One that has the new id already, and had the old one, is left as it
    is. A new id that ends in ``{n}`` gets the next number of its series.

    Raises: ``NotFound``, ``InvalidQuery``; ``IntegrityViolation`` for an id in use; ``NotSynced`` where a file that
    names the entity is not synced; ``DerivedFact`` for a file that KB cannot change safely, with its line;
    ``StaleBase`` and ``InvalidChangeset`` by ``expected_seq``; as ``document_lock.held``, ``documents.commit`` and
    ``id_allocation.reserved``.
    """
    request = framed_rename(target, message=message, dry_run=dry_run)
    if changeset_id:
        members = {"rename": {old: new}, "message": message, "expected_seq": expected_seq}
        request = msgspec.structs.replace(request, changeset_id=changeset_id, digest=digest_of("rename", members))
    prefix = numbering.marked_prefix(new)
    if not prefix:
        return _renamed(target, old, new, request, expected_seq)
    store = target.workspace.store(target.branch)
    known = store.read(lambda view: store.find_duplicate(view, request, target.branch))
    if known:
        return SetResult(known)
    given: contextlib.AbstractContextManager[list[str]]
    used = [target.read(lambda view: numbering.highest(view.rows, prefix))]
    used += in_use_elsewhere(target.workspace, target.branch, [prefix])
    if dry_run:
        given = contextlib.nullcontext([id_allocation.known_next(target.workspace, prefix, used)])
    else:
        given = id_allocation.reserved(target.workspace, [(prefix, used)])
    with given as [key]:
        written = _renamed(target, old, key, request, expected_seq)
        return written._replace(outcome=msgspec.structs.replace(written.outcome, ids={new: key}))


def _renamed(target: WriteTarget, old: str, new: str, request: Request, expected_seq: int | None) -> SetResult:
    """Give an entity this id. Raises: as ``rename``."""
    fault = numbering.check_new_id(new)
    if fault:
        raise InvalidQuery(f"{in_quotes(new[: limits.MAX_ID_CHARS])} cannot be an id: {fault}.", hint="Choose another.")
    if old == new:
        raise InvalidQuery("The two ids are the same.", hint=f"{kb('rename', 'OLD', 'NEW')} gives OLD the id NEW.")
    request = msgspec.structs.replace(request, message=request.message or f"rename {old} to {new}")
    store = target.workspace.store(target.branch)

    def on(view: View) -> Outcome | EntityToRename:
        known = store.find_duplicate(view, request, target.branch) or _already(target, view, old, new, request)
        return known or EntityToRename(view, old, new, target.workspace.schema)

    with document_lock.held(target.workspace, command=target.author.tool, dry_run=request.dry_run):
        try:
            found = store.read(on)
        except NotFound as error:
            for key, path in unrecorded(target.read, [old]).items():
                raise NotSynced(unrecorded_words(in_quotes(key), path), hint=SYNC_FIRST) from error
            raise
        except IntegrityViolation:
            check_free(target.read, store.read, new)
            raise
        if isinstance(found, Outcome):
            return SetResult(found)
        _refuse_id_of_two_files(target, found.node)
        former = (*(one for one in former_ids(found.node) if one != new), old)
        written = run_step(target, found, IdRename(old, new, former, expected_seq), request)
    if request.dry_run:  # the files are as they were
        return written
    warnings = (
        *written.outcome.warnings,
        *_still_named(target, old, new, _former_lines(extractors_of(target.workspace), found, written, new)),
    )
    return written._replace(outcome=msgspec.structs.replace(written.outcome, warnings=warnings))


def _already(target: WriteTarget, view: View, old: str, new: str, request: Request) -> Outcome | None:
    """Return the answer where the entity has the new id already, as after a sync of a file that was edited for it."""
    if view.nodes([old]) or view.renamed([old]).get(old) != new:
        return None
    said = f"{in_quotes(old)} is called {in_quotes(new)} already: nothing was left to do."
    outcome = Outcome.unchanged_at(target.branch, view.recorded_seq, dry_run=request.dry_run)
    return msgspec.structs.replace(outcome, warnings=(said,))


def _refuse_id_of_two_files(target: WriteTarget, node: Node) -> None:
    """Refuse to rename an entity whose id another file states too: that one has the id afterwards, and no other one.

    Raises: ``IntegrityViolation``.
    """

    def on(view: View) -> list[str]:
        found = [(one.path, note) for one in view.sources(stale_sources(view)) for note in one.problems]
        left_out = {path: note.line for path, note in found if (note.code, note.id) == (DUPLICATE, node.id)}
        # A file that is not recorded yet may have the id instead: then it is that of the entity which is left out.
        holders = [one.path for one in view.nodes([node.id])] if left_out else []
        others = [*holders, *(f"{path}:{line}" for path, line in left_out.items() if path != node.path)]
        return [one for one in others if one != node.path]

    others = target.read(on)
    if others:
        named = some_of(others, _MOST_LINES)
        message = f"{in_quotes(node.id)} is the id in {named} too, which would have it after the rename."
        hint = (
            f"Give that one another id: change it there, and {kb('sync', lead='run')}. Where that one is to have this"
            f" id, change it in {in_quotes(node.path)} instead, without `{FORMER_KEY}`."
        )
        raise IntegrityViolation(message, hint=hint)


def _former_lines(
    extractors: Extractors, found: EntityToRename, written: SetResult, new: str
) -> set[tuple[bytes, bytes]]:
    """Return the lines, each with its file, of the list of former ids in the document that defines the entity."""
    edit = next((one for one in written.edits if one.path == found.node.path), None)
    if edit is None or not states_former_ids(extractors, found.files):
        return set()
    stated = entity_in(facts_of(extractors, edit.path, edit.after), new)
    at = stated.lines.get(FORMER_IDS, 0) if stated else 0
    lines = items_below(edit.after.decode(), at) if at else ()
    return {(os.fsencode(edit.path), b"%d" % line) for line in lines}


def _still_named(target: WriteTarget, old: str, new: str, former: Collection[tuple[bytes, bytes]]) -> list[str]:
    """Return what to say of lines of tracked files that name the earlier id, in comments and texts, if there are any.

    A rename leaves them as they are. ``former`` are lines of the field of former ids, which are left out. That git
    cannot be asked, or not in time, is said as well.
    """
    workspace = target.workspace
    escaped = _SPECIAL.sub(r"\\\g<0>", old)
    word = f"(^|[^[:alnum:]_-]){escaped}($|[^[:alnum:]_-])"
    line = ["-E", "-e", word, "--and", "--not", "-e", FORMER_KEY]
    everywhere = ["--", ".", ":(exclude).kb"]
    allowed, env, limit_s = (0, 1), workspace.machine.env, _GREP_S
    try:
        counts = run_git(
            workspace.repo, env, ["grep", *_GREP, "-c", *line, *everywhere], allowed=allowed, timeout_s=limit_s
        )
        each = _COUNT.findall(counts.output)
        if not each:
            return []
        asked = {path for path, _ in each[: _MOST_LINES + 1]} | {path for path, _ in former}
        paths = [f":(literal){os.fsdecode(path)}" for path in sorted(asked)]
        found = run_git(
            workspace.repo, env, ["grep", *_GREP, "-n", *line, "--", *paths], allowed=allowed, timeout_s=limit_s
        )
    except GitUnusable as error:
        return [f"Whether other lines name {in_quotes(old)} is not known: {error.message}"]
    places = _PLACE.findall(found.output)
    left_out = Counter(path for path, line in places if (path, line) in former)
    left = [max(0, int(count) - left_out[path]) for path, count in each]
    number, in_number = sum(left), sum(count > 0 for count in left)
    if not number:
        return []
    kept = [place for place in places if place not in former][:_MOST_LINES]
    named = [b":".join(place).decode("utf-8", "replace") for place in kept]
    lines = f"{pluralize(number, 'line')} in {pluralize(in_number, 'file')} still {'names' if number == 1 else 'name'}"
    said = f"{lines} {in_quotes(old)}: {some_of(named, _MOST_LINES, number)}."
    return [f"{said} It still means {in_quotes(new)}."]


def framed_rename(target: WriteTarget, *, message: str, dry_run: bool) -> Request:
    """Return what frames the record of a rename. It takes long where the entity has many edges."""
    return msgspec.structs.replace(framed(target, message=message, dry_run=dry_run), plans_ahead=True)


def run_step(target: WriteTarget, found: EntityToRename, step: IdRename, request: Request) -> SetResult:
    """Carry out one rename: in the files that name the entity, and in the records. Raises: as ``rename``."""
    extractors = extractors_of(target.workspace)
    read = read_and_edited(target, extractors, [(found.files, step)])
    edits = [one.edit for one in read if one.changes]  # a link by its path names no id
    schema = target.workspace.schema
    drafts: list[Draft] = []
    planned = _planner(step, read, schema, in_file=states_former_ids(extractors, found.files))

    def plan(view: View, stamp: Stamp) -> Draft:
        drafts.append(planned(view, stamp))
        return drafts[-1]

    notes = begun_renames([(found.files, step)], read)
    outcome = commit(target, edits, request, plan=plan, begun=notes) if edits else recorded(target, plan, request)
    workspace, is_tried = target.workspace, request.dry_run
    outcome = with_warnings(
        workspace, target.branch, target.author, outcome, drafts[-1:], is_tried=is_tried, read=target.read
    )
    return SetResult(outcome, edits)


def recorded(target: WriteTarget, plan: Planner, request: Request) -> Outcome:
    """Record a rename of what no file names."""
    workspace, branch = target.workspace, target.branch
    guard = workspace.guard(branch) if target.follows_head else None
    head_commit = workspace.head_commit(branch)
    plan = proposing(workspace, target.author, plan)
    return workspace.store(branch).commit(
        target.author, request, plan, guard=guard, head_commit=head_commit, branch=branch
    )


def _planner(step: IdRename, read: Sequence[ReadFile], project: Schema, *, in_file: bool) -> Planner:
    """Return what plans the record of a rename; ``read`` are all files that state something of the entity."""

    def plan(view: View, stamp: Stamp) -> Draft:
        found = EntityToRename(view, step.old, step.new, project)
        check_stale(found.node, step.expected_seq, head=stamp.seq - 1)
        hashes = {one.edit.path: content_hash(one.edit.before or b"") for one in read}
        recorded = {path: source.hash for path, source in found.files.sources.items()}
        if hashes | {one.edit.path: recorded.get(one.edit.path, "") for one in read if one.is_written} != recorded:
            raise StaleBase(f"What names {in_quotes(step.old)} has changed meanwhile.", hint="Run it again.")
        fields, owners = dict(found.node.fields), dict(found.node.owners)
        fields.pop(FORMER_IDS, None)
        owners.pop(FORMER_IDS, None)
        if step.former:
            fields[FORMER_IDS] = list(step.former)
            if in_file:
                owners[FORMER_IDS] = found.node.path
        node = msgspec.structs.replace(found.node, id=step.new, fields=fields, owners=owners)
        ops = rename_ops(found.state, found.node, node)
        ops += resolve(found.state, {step.new: node.type}, view.schema(project))
        changed = [one.edit for one in read if one.changes or one.is_written]
        ops += [_taken_in(found.files.sources[edit.path], edit.after) for edit in changed]
        asked = needs(ops) | ReadSet(frozenset({step.old}), frozenset(), frozenset({step.old}), frozenset())
        state = view.gather(asked)
        planned = tuple(ops)
        reads = StateReads(state.loaded, frozenset(found.files.paths))
        return Draft(planned, apply(state, stamp, planned), state.loaded, reads=reads)

    return plan


def _taken_in(source: SyncedFile, content: bytes) -> ReadSource:
    """Return the operation by which a file counts as recorded with other content; it states the same otherwise."""
    return ReadSource(
        path=source.path,
        hash=content_hash(content),
        extractor=source.extractor,
        base=source.version,
        is_ok=source.is_ok,
        problems=source.problems,
    )
