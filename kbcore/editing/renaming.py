"""Renames an entity: in the files that state it or link to it, and in the records, as one record.

Everything else stays as it is: who states what, when edges were made, and the history, which is found under both ids.
The old id becomes a former id of the entity (``model.FORMER_IDS``).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from kbcore import limits
from kbcore.checks.introduced.written import with_warnings
from kbcore.editing import document_lock
from kbcore.editing.change_words import changes_in_words
from kbcore.editing.documents import (
    Extractors,
    FileEdit,
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
from kbcore.editing.frontmatter import CannotEdit, edited, items_below
from kbcore.editing.setting import SetResult
from kbcore.errors import (
    DerivedFact,
    GitUnusable,
    IntegrityViolation,
    InvalidChangeset,
    InvalidQuery,
    NotFound,
    NotSynced,
    Problem,
    StaleBase,
)
from kbcore.extract.facts import Facts
from kbcore.git.commands import run_git
from kbcore.model.bare_links import resolve
from kbcore.model.changeset import digest_of
from kbcore.model.concepts import DEFINING, ORIGIN
from kbcore.model.folding import apply
from kbcore.model.graph import CLIENT, FORMER_IDS, FORMER_KEY, Link, Node, SourceFile, former_ids
from kbcore.model.read_set import NOTHING, ReadSet, needs
from kbcore.model.record import ReadSource
from kbcore.model.renames import joined, rename_ops, renamed_back, renamed_in, renamed_links
from kbcore.model.schema import Schema
from kbcore.model.state import Draft, Stamp, State, StateReads
from kbcore.query.known import near_ids
from kbcore.remedies import kb
from kbcore.store import id_allocation
from kbcore.store.answers import Outcome
from kbcore.store.history.names import net_renames
from kbcore.store.history.undo import UndoOptions, check_seq, rollback_planner, rollback_request
from kbcore.store.write_request import Planner, Request
from kbcore.sync.begun_renames import BegunRename, begun, read_begun
from kbcore.sync.locate import SYNC_FIRST, unrecorded, unrecorded_words
from kbcore.sync.pending import wanted
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import is_it
from kbcore.text.wording import pluralize, some_of
from kbcore.view import numbering
from kbcore.view.history import changes_between, changes_of, nodes_changed
from kbcore.view.view import View

_MOST_NAMED: Final = 10
_MOST_LINES: Final = 5
"""The most lines with the earlier id that are listed."""
_GREP: Final = ("-I", "-z", "--no-color", "--no-column")
_GREP_S: Final = 5.0
_COUNT: Final = re.compile(rb"([^\0]+)\0(\d+)\n")
_PLACE: Final = re.compile(rb"^([^\0\n]+)\0(\d+)[\0:]", re.MULTILINE)
"""The output of git with -z: a path and a count of lines, and a path and the number of a line."""
_SPECIAL: Final = re.compile(r"[][\\.^$*+?(){}|]")
"""Signs with a meaning of their own in an extended regular expression of POSIX."""


class _Found:
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
            hint = f"Choose another one; `PREFIX-{numbering.MARK}` is replaced by the next free number."
            raise IntegrityViolation(f"{in_quotes(new)} is the id of a {taken.type} already.", hint=hint)
        holder = view.renamed([new]).get(new, old)
        if holder != old:
            raise IntegrityViolation(f"{in_quotes(new)} is a former id of {in_quotes(holder)}.", hint="Choose another.")
        for other in view.stating_former(old):
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
        self.paths = _paths(self.node, (link for link, _ in pairs))
        self.sources = {source.path: source for source in view.sources(self.paths)}


def _paths(node: Node, links: Iterable[Link]) -> list[str]:
    """Return the files that state an entity or one of these edges."""
    return sorted({*node.owners.values(), *(one.src for link in links for one in link.statements)} - {CLIENT})


def _files_naming(view: View, node: Node) -> list[str]:
    """Return the files that name an entity, as the records have it."""
    state = view.gather(msgspec.structs.replace(NOTHING, touching=frozenset({node.id})))
    return _paths(node, state.links.values())


class _Step(msgspec.Struct, frozen=True):
    """One rename: from which id to which, and the former ids that the entity has afterwards."""

    old: str
    new: str
    former: tuple[str, ...]
    """Set in the document that defines the entity if that is Markdown, else in the store."""
    expected_seq: int | None = None
    """The entity must not have changed after it."""


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
    changed after ``expected_seq`` is not renamed. A new id that ends in ``{n}`` gets the next number of its series.

    Raises: ``NotFound``, ``InvalidQuery``; ``IntegrityViolation`` for an id in use; ``NotSynced`` where a file that
    names the entity is not synced; ``DerivedFact`` for a file that KB cannot change safely, with its line;
    ``StaleBase`` and ``InvalidChangeset`` by ``expected_seq``; as ``document_lock.held``, ``documents.commit`` and
    ``allocation.reserved``.
    """
    request = _framed(target, message=message, dry_run=dry_run)
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

    def on(view: View) -> Outcome | _Found:
        return store.find_duplicate(view, request, target.branch) or _Found(view, old, new, target.workspace.schema)

    with document_lock.held(target.workspace, command=target.author.tool, dry_run=request.dry_run):
        try:
            found = store.read(on)
        except NotFound as error:
            for key, path in unrecorded(target.read, [old]).items():
                raise NotSynced(unrecorded_words(in_quotes(key), path), hint=SYNC_FIRST) from error
            raise
        if isinstance(found, Outcome):
            return SetResult(found)
        former = (*(one for one in former_ids(found.node) if one != new), old)
        written = _run_step(target, found, _Step(old, new, former, expected_seq), request)
    if request.dry_run:  # the files are as they were
        return written
    warnings = (
        *written.outcome.warnings,
        *_still_named(target, old, new, _former_lines(wanted(target.workspace), found, written, new)),
    )
    return written._replace(outcome=msgspec.structs.replace(written.outcome, warnings=warnings))


def _former_lines(extractors: Extractors, found: _Found, written: SetResult, new: str) -> set[tuple[bytes, bytes]]:
    """Return the lines, each with its file, of the list of former ids in the document that defines the entity."""
    edit = next((one for one in written.edits if one.path == found.node.path), None)
    if edit is None or not _is_in_file(extractors, found):
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


class LargerRecord(NamedTuple):
    """A record that renamed what files name, and is more than this one rename: it is not undone in one step."""

    seq: int
    renames: Mapping[str, str]
    """The entities that files name and that have the id of the record still: the id now, and the one before it."""
    rest: Sequence[str]
    """Its other changes, in words."""


class RevertedRename(NamedTuple):
    """A rename that was undone: the answer of the write, the edited files, and the ids before and after it."""

    outcome: Outcome
    edits: Sequence[FileEdit]
    old: str
    new: str


def undo(
    target: WriteTarget, seq: int, *, message: str = "", dry_run: bool = False
) -> RevertedRename | LargerRecord | None:
    """Undo the rename that a record made, in the files too, if that is all that the record did.

    None where nothing that it renamed is named by files and has the id of the record still: the revert of the record
    does all that is to be done, or says what prevents it.

    Raises: as ``rename``.
    """

    def step(view: View) -> tuple[_Found, _Step] | LargerRecord | None:
        renames = _renames_left(view, seq)
        nodes = view.nodes(sorted(renames))
        named = {node.id: renames[node.id] for node in nodes if node.owners or _files_naming(view, node)}
        if not named:
            return None
        changes = joined(changes_of(view, [seq])[seq])
        gone = {one.key: one.before for one in changes.nodes if one.before and one.before.id != one.key}
        rest = changes_in_words(changes, lambda key, name: name == FORMER_IDS and key in gone)
        undone = {node.id for node in view.nodes([before.id for before in gone.values()])}
        rest += [
            f"{now} (renamed from {before.id})"
            for now, before in gone.items()
            if now not in named and before.id not in undone
        ]
        if rest or len(named) > 1:
            return LargerRecord(seq, named, rest)
        [(now, before)] = named.items()
        found = _Found(view, now, before, target.workspace.schema)
        return found, _Step(now, before, renamed_back(found.node, before, former_ids(gone[now])))

    with document_lock.held(target.workspace, command=target.author.tool, dry_run=dry_run):
        planned = target.workspace.store(target.branch).read(step)
        if planned is None or isinstance(planned, LargerRecord):
            return planned
        found, step_back = planned
        request = _framed(target, message=message or f"revert {seq}", dry_run=dry_run)
        written = _run_step(target, found, step_back, request)
    return RevertedRename(*written, step_back.old, step_back.new)


class _Before(NamedTuple):
    """The input for the rollback of renames: the renames of what files name, and the files as they were."""

    steps: Sequence[tuple[_Found, _Step]]
    """The rename that was made last comes first."""
    hashes: Mapping[str, str]
    """The SHA-256 of each file at the seq, of those that differ from it."""


class RolledBack(NamedTuple):
    """A rollback that undid renames: the answer of the write, and the edited files."""

    outcome: Outcome
    edits: Sequence[FileEdit]


def roll_back(target: WriteTarget, to_seq: int, options: UndoOptions) -> RolledBack | None:
    """Go back to a seq, as one record, and undo the renames since then in the files too, the newest first.

    None where no file names anything that was renamed since: the rollback of the records does all that is to be done.
    What else the files state now stays in them.

    Raises: as ``rename`` and ``undo.rollback``.
    """
    workspace = target.workspace

    def before(view: View) -> _Before | None:
        check_seq(view, to_seq)
        renames = net_renames(view, to_seq)
        named = {node.id for node in view.nodes([*renames]) if node.owners or _files_naming(view, node)}
        if not named:
            return None
        changes = changes_between(view, to_seq, view.seq)
        then = {one.key: former_ids(one.before) for one in changes.nodes if one.before}
        steps = [
            (_Found(view, now, first, workspace.schema), _Step(now, first, then[first]))
            for now, first in renames.items()
            if now in named
        ]
        return _Before(steps, {one.key: one.before.hash for one in changes.sources if one.before})

    with document_lock.held(workspace, command=target.author.tool, dry_run=options.dry_run):
        planned = workspace.store(target.branch).read(before)
        if planned is None:
            return None
        read = _read_and_edited(target, wanted(workspace), planned.steps)
        edits = [one.edit for one in read if one.changes]
        hashes = {one.edit.path: _hash(one.edit.after) for one in read if one.changes or one.is_written}
        restored = {path for path, hash_ in hashes.items() if hash_ == planned.hashes.get(path)}
        drafts: list[Draft] = []
        plan = rollback_planner(to_seq, restored)

        def noted(view: View, stamp: Stamp) -> Draft:
            drafts.append(plan(view, stamp))
            return drafts[-1]

        request = rollback_request(to_seq, options)
        request = msgspec.structs.replace(request, lock_wait_s=workspace.config.lock_wait_s)
        if edits:
            outcome = commit(target, edits, request, plan=noted, begun=_notes(planned.steps, read))
        else:
            outcome = _recorded(target, noted, request)
    is_tried = options.dry_run
    outcome = with_warnings(
        workspace, target.branch, target.author, outcome, drafts[-1:], is_tried=is_tried, read=target.read
    )
    return RolledBack(outcome, edits)


def in_files_since(to_seq: int, edits: Sequence[FileEdit]) -> DerivedFact:
    """Return the error for renames that a rollback is to undo in files, where that was not asked for."""
    return _in_files(f"Since seq {to_seq} what files name was renamed", f"{kb('rollback', to_seq, '--files')}", edits)


def _framed(target: WriteTarget, *, message: str, dry_run: bool) -> Request:
    """Return what frames the record of a rename. It takes long where the entity has many edges."""
    return msgspec.structs.replace(framed(target, message=message, dry_run=dry_run), plans_ahead=True)


def in_files(seq: int, edits: Sequence[FileEdit]) -> DerivedFact:
    """Return the error for a rename that is to be undone in files, where that was not asked for; it has the changes."""
    return _in_files(f"Record {seq} renamed an entity that files name", f"{kb('revert', seq, '--files')}", edits)


def _in_files(what: str, command: str, edits: Sequence[FileEdit]) -> DerivedFact:
    names = some_of([edit.path for edit in edits], _MOST_NAMED)
    return DerivedFact(
        f"{what}: {names}.",
        hint=f"{command} changes them back as well.",
        data={"files": [edit.as_json() for edit in edits]},
    )


def in_steps(found: LargerRecord, seqs: Sequence[int]) -> DerivedFact:
    """Return the error for a record that is not undone in one step: all that it did, and the steps.

    ``seqs`` are the records that were to be undone.
    """
    renamed = some_of([f"{before} to {now}" for now, before in found.renames.items()], _MOST_NAMED)
    more = f" It changed more: {some_of(found.rest, _MOST_NAMED)}." if found.rest else ""
    steps = some_of([f"{kb('rename', now, before)}" for now, before in found.renames.items()], _MOST_NAMED)
    is_one = len(found.renames) == 1
    then = f" Then {kb('revert', *seqs)} undoes the rest." if found.rest or len(seqs) > 1 else ""
    return DerivedFact(
        f"Record {found.seq} is not undone in one step. It renamed what files name: {renamed}.{more}",
        hint=f"{steps} {'gives the earlier id' if is_one else 'give the earlier ids'} back, in the files too.{then}",
        data={
            "renamed": {before: now for now, before in [*found.renames.items()][: limits.MAX_PROBLEMS]},
            "rest": found.rest[: limits.MAX_PROBLEMS],
        },
    )


def _renames_left(view: View, seq: int) -> dict[str, str]:
    """Return the id before a record by the id after it, of each entity that it renamed and that has the later id still.

    To undo a rename is one as well.
    """
    if not view.basis.history_from < seq <= view.seq:
        return {}
    renames = renamed_in(nodes_changed(view, [seq])[seq])
    there = {node.id for node in view.nodes(sorted({*renames, *renames.values()}))}
    return {now: before for now, before in renames.items() if now in there and before not in there}


def _run_step(target: WriteTarget, found: _Found, step: _Step, request: Request) -> SetResult:
    extractors = wanted(target.workspace)
    read = _read_and_edited(target, extractors, [(found, step)])
    edits = [one.edit for one in read if one.changes]  # a link by its path names no id
    schema = target.workspace.schema
    drafts: list[Draft] = []
    planned = _planner(step, read, schema, in_file=_is_in_file(extractors, found))

    def plan(view: View, stamp: Stamp) -> Draft:
        drafts.append(planned(view, stamp))
        return drafts[-1]

    notes = _notes([(found, step)], read)
    outcome = commit(target, edits, request, plan=plan, begun=notes) if edits else _recorded(target, plan, request)
    workspace, is_tried = target.workspace, request.dry_run
    outcome = with_warnings(
        workspace, target.branch, target.author, outcome, drafts[-1:], is_tried=is_tried, read=target.read
    )
    return SetResult(outcome, edits)


class _ReadFile(NamedTuple):
    """A file that names an entity, and its content after the renames.

    ``is_written``: it has that content already, from a run that was ended before its record.
    """

    edit: FileEdit
    is_written: bool

    @property
    def changes(self) -> bool:
        return self.edit.after != self.edit.before


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_and_edited(
    target: WriteTarget, extractors: Extractors, steps: Sequence[tuple[_Found, _Step]]
) -> list[_ReadFile]:
    """Return each file that names an entity of these renames, with its content after all of them, one after the other.

    The files that state the entities come first: where a crash leaves the others as they were, the ids in them are
    former ones. What the same renames wrote before such a crash is as it is to be.
    """
    own = {found.node.path for found, _ in steps}
    if any(found.paths for found, _ in steps):
        require_checked_out(target)
    noted = _noted_before(target, [step for _, step in steps])
    written = {item for one in noted for item in one.written.items()}
    read: dict[str, _ReadFile] = {}
    for found, step in steps:
        for path in sorted(found.paths, key=lambda path: path != found.node.path):
            one = read.get(path) or _read_recorded(target, found, path, written)
            after = _edited(extractors, found, path, step, one.edit.after)
            read[path] = one._replace(edit=msgspec.structs.replace(one.edit, after=after))
    new = {step.new for _, step in steps} - {one.new for one in noted}
    for key, path in unrecorded(target.read, sorted(new)).items():
        raise NotSynced(unrecorded_words(in_quotes(key), path), hint=SYNC_FIRST)
    return sorted(read.values(), key=lambda one: one.edit.path not in own)


def _noted_before(target: WriteTarget, steps: Sequence[_Step]) -> list[BegunRename]:
    """Return those of these renames that an earlier run began and did not record."""
    workspace = target.workspace
    noted = read_begun(workspace.machine.fs, workspace.folders.cache_dir, workspace.repo.worktree)
    ids = {(step.old, step.new) for step in steps}
    return [one for one in noted if (one.old, one.new) in ids]


def _notes(steps: Sequence[tuple[_Found, _Step]], read: Sequence[_ReadFile]) -> list[BegunRename]:
    """Return the note on each rename, with those of the files that it writes or wrote which name its entity."""
    edits = [one.edit for one in read if one.changes or one.is_written]
    return [
        begun(step.old, step.new, step.former, ((edit.path, edit.after) for edit in edits if edit.path in found.paths))
        for found, step in steps
    ]


def _recorded(target: WriteTarget, plan: Planner, request: Request) -> Outcome:
    """Record a rename of what no file names."""
    workspace, branch = target.workspace, target.branch
    guard = workspace.guard(branch) if target.follows_head else None
    head_commit = workspace.head_commit(branch)
    return workspace.store(branch).commit(
        target.author, request, plan, guard=guard, head_commit=head_commit, branch=branch
    )


def _is_in_file(extractors: Extractors, found: _Found) -> bool:
    """Return whether the former ids belong into the document that defines the entity."""
    return bool(found.node.path) and is_markdown(extractors, found.node.path)


def _planner(step: _Step, read: Sequence[_ReadFile], project: Schema, *, in_file: bool) -> Planner:
    """Return what plans the record of a rename; ``read`` are all files that state something of the entity."""

    def plan(view: View, stamp: Stamp) -> Draft:
        found = _Found(view, step.old, step.new, project)
        _check_stale(found.node, step.expected_seq, head=stamp.seq - 1)
        hashes = {one.edit.path: _hash(one.edit.before or b"") for one in read}
        recorded = {path: source.hash for path, source in found.sources.items()}
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
        ops += [_taken_in(found.sources[edit.path], edit.after) for edit in changed]
        asked = needs(ops) | ReadSet(frozenset({step.old}), frozenset(), frozenset({step.old}), frozenset())
        state = view.gather(asked)
        planned = tuple(ops)
        reads = StateReads(state.loaded, frozenset(found.paths))
        return Draft(planned, apply(state, stamp, planned), state.loaded, reads=reads)

    return plan


def _check_stale(node: Node, seq: int | None, *, head: int) -> None:
    """Refuse a rename of what changed after the client read it. Raises: ``InvalidChangeset``, ``StaleBase``."""
    if seq is not None and seq > head:
        message, hint = f"There is no seq {seq} yet; the head is {head}.", "Send the seq of the answer that was read."
        problem = Problem("$.expected_seq", "out_of_range", message, hint)
        raise InvalidChangeset(message, hint=hint, details=[problem], says_first=True)
    if seq is not None and node.version > seq:
        message = f"{in_quotes(node.id)} changed at seq {node.version}, after {seq}."
        raise StaleBase(
            message, details=[Problem("$.rename", "stale", message, "Read it again and decide again.")], says_first=True
        )


def _taken_in(source: SourceFile, content: bytes) -> ReadSource:
    """Return the operation by which a file counts as recorded with other content; it states the same otherwise."""
    return ReadSource(
        path=source.path,
        hash=_hash(content),
        extractor=source.extractor,
        base=source.version,
        is_ok=source.is_ok,
        problems=source.problems,
    )


def _read_recorded(target: WriteTarget, found: _Found, path: str, written: Collection[tuple[str, str]]) -> _ReadFile:
    """Return a file that names an entity as it is, which is as it is recorded, or as an earlier run wrote it.

    Raises: ``NotSynced``.
    """
    before = read_document(target.workspace, path)
    source = found.sources.get(path)
    hash_ = _hash(before)
    is_recorded = source is not None and source.hash == hash_
    is_written = not is_recorded and (path, hash_) in written
    if not is_recorded and not is_written:
        raise NotSynced(f"{path} names {in_quotes(found.node.id)}, and states something else than the records.")
    return _ReadFile(FileEdit(path, before, before), is_written)


def _edited(extractors: Extractors, found: _Found, path: str, step: _Step, before: bytes) -> bytes:
    """Return the content of a file after which it names the entity by its new id, and says the same otherwise."""
    old, new = step.old, step.new
    facts = facts_of(extractors, path, before)
    require_whole(path, facts)
    lines = sorted(_lines(facts, old))
    refusal: DerivedFact | None = None
    meant = _meant(facts, found.node.path == path, step, in_file=_is_in_file(extractors, found))
    try:
        text = before.decode()
    except UnicodeDecodeError as error:
        raise refused(path, 0, "it is not UTF-8.", "Save it as UTF-8.") from error
    # First the lines that state it alone: what the text of a document says stays as it was written.
    for among in (lines, range(1, text.count("\n") + 2)):
        try:
            after = _with_former(_swapped(text, old, new, among), path, found, step, extractors).encode()
        except CannotEdit as error:
            refusal = refused(
                path, error.line, f"{error.reason}.", f"Edit {in_quotes(path)} and {kb('sync', lead='run')}."
            )
            continue
        if meaning(_without_texts(facts_of(extractors, path, after))) == meant:
            return after
    hint = f"Change it in {in_quotes(path)} by hand: a sync reads that as another entity."
    reason = f"KB cannot put {in_quotes(new)} in the place of {in_quotes(old)} here."
    raise refusal or refused(path, lines[0] if lines else 0, reason, hint)


def _lines(facts: Facts, key: str) -> set[int]:
    """Return the lines in which a file names an entity, counted from 1."""
    found = {one.line for one in facts.entities if one.id == key}
    links = (
        one for one in _without_texts(facts).links if key == one.subject or (key == one.target and not one.is_path)
    )
    return {*found, *(one.line for one in links)} - {0}


def _without_texts(facts: Facts) -> Facts:
    """Return facts without the links that running text holds: it stays as it was written."""
    return msgspec.structs.replace(facts, links=tuple(one for one in facts.links if not one.in_text))


def _swapped(text: str, old: str, new: str, among: Sequence[int]) -> str:
    """Return a text with one word in place of another on some of its lines, counted from 1."""
    word = re.compile(rf"(?<![\w-]){re.escape(old)}(?![\w-]|[./:#]\w)")
    lines = text.split("\n")
    for number in among:
        if 0 < number <= len(lines):
            lines[number - 1] = word.sub(lambda _: new, lines[number - 1])
    return "\n".join(lines)


def _with_former(text: str, path: str, found: _Found, step: _Step, extractors: Extractors) -> str:
    """Return the text with the former ids in its front matter, if it is the document that defines the entity."""
    if path != found.node.path or not _is_in_file(extractors, found):
        return text
    facts = facts_of(extractors, path, text.encode())
    stated = next((one for one in facts.entities if one.id == step.new), None)
    lines = {name.removeprefix("attributes."): line for name, line in stated.lines.items()} if stated else {}
    return edited(text, {FORMER_KEY: list(step.former) or None}, lines)


def _meant(facts: Facts, is_own: bool, step: _Step, *, in_file: bool) -> list[Any]:
    """Return what a file is to say afterwards."""
    entities = []
    for one in facts.entities:
        fields = dict(one.fields)
        if one.id == step.old and is_own and in_file:
            fields.pop(FORMER_IDS, None)
            fields |= {FORMER_IDS: list(step.former)} if step.former else {}
        entities.append(msgspec.structs.replace(one, fields=fields))
    return meaning(msgspec.structs.replace(_without_texts(facts), entities=tuple(entities)), {step.old: step.new})
