"""Undoes renames in the files too: of a record that renamed an entity, and of all since a seq."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from kbcore import limits
from kbcore.checks.introduced.written import with_warnings
from kbcore.editing import document_lock
from kbcore.editing.change_words import changes_in_words
from kbcore.editing.documents import WriteTarget, commit
from kbcore.editing.file_edits import FileEdit
from kbcore.editing.renamed_files import (
    FilesNaming,
    IdRename,
    begun_renames,
    content_hash,
    files_naming,
    read_and_edited,
)
from kbcore.editing.renaming import EntityToRename, framed_rename, recorded, run_step
from kbcore.errors import (
    DerivedFact,
)
from kbcore.errors.remedies import kb
from kbcore.model.graph import FORMER_IDS, Node, former_ids
from kbcore.model.renames import joined, renamed_back, renamed_in
from kbcore.model.state import Draft, ElementChange, Stamp
from kbcore.store.answers import Outcome
from kbcore.store.history.reach import check_record
from kbcore.store.history.renames import net_renames
from kbcore.store.history.undo import (
    UndoOptions,
    check_seq,
    refuse_redacted,
    revert_planner,
    revert_request,
    rollback_planner,
    rollback_request,
)
from kbcore.store.proposing import proposing
from kbcore.store.write_request import Planner, Request
from kbcore.sync.active_extractors import extractors_of
from kbcore.text.wording import some_of
from kbcore.view.history import changes_between, changes_of, nodes_changed
from kbcore.view.view import View

_MOST_NAMED: Final = 10


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
    target: WriteTarget, seq: int, *, message: str = "", dry_run: bool = False, expected_seq: int | None = None
) -> RevertedRename | LargerRecord | None:
    """Undo the rename that a record made, in the files too, if that is all that the record did.

    None where nothing that it renamed is named by files and has the id of the record still: the revert of the record
    does all that is to be done, or says what prevents it.

    Raises: as ``rename``, with ``StaleBase`` where the entity changed after ``expected_seq``.
    """

    def step(view: View) -> tuple[EntityToRename, IdRename] | LargerRecord | None:
        renames = _renames_left(view, seq)
        nodes = view.nodes(sorted(renames))
        named = {node.id: renames[node.id] for node in nodes if files_naming(view, node.id, node).paths}
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
        found = EntityToRename(view, now, before, target.workspace.schema)
        return found, IdRename(now, before, renamed_back(found.node, before, former_ids(gone[now])), expected_seq)

    with document_lock.held(target.workspace, command=target.author.tool, dry_run=dry_run):
        planned = target.workspace.store(target.branch).read(step)
        if planned is None or isinstance(planned, LargerRecord):
            return planned
        found, step_back = planned
        request = framed_rename(target, message=message or f"revert {seq}", dry_run=dry_run)
        written = run_step(target, found, step_back, msgspec.structs.replace(request, restores=True))
    return RevertedRename(*written, step_back.old, step_back.new)


class _Before(NamedTuple):
    """The input for an undo of renames: the renames of what files name, and the files as they were."""

    steps: Sequence[tuple[FilesNaming, IdRename]]
    """The rename that was made last comes first."""
    hashes: Mapping[str, str]
    """The SHA-256 of each file before what is undone, of those that this changed."""


class RolledBack(NamedTuple):
    """An undo of renames in files: the answer of the write, and the edited files."""

    outcome: Outcome
    edits: Sequence[FileEdit]


def roll_back(target: WriteTarget, to_seq: int, options: UndoOptions) -> RolledBack | None:
    """Go back to a seq, as one record, and undo the renames since then in the files too, the newest first.

    None where no file names anything that was renamed since: the rollback of the records does all that is to be done.
    Of an entity that is not there any more, files may name the last id. What else the files state now stays in them.

    Raises: as ``rename`` and ``undo.rollback``.
    """
    workspace = target.workspace

    def before(view: View) -> _Before | None:
        check_seq(view, to_seq)
        renames = net_renames(view, to_seq)
        nodes = {node.id: node for node in view.nodes([*renames])}
        named = {key: files for key in renames if (files := files_naming(view, key, nodes.get(key))).paths}
        if not named:
            return None
        changes = changes_between(view, to_seq, view.seq)
        then = {one.key: former_ids(one.before) for one in changes.nodes if one.before}
        steps = []
        for now, files in named.items():
            found = EntityToRename(view, now, renames[now], workspace.schema).files if now in nodes else files
            steps.append((found, IdRename(now, renames[now], then[renames[now]])))
        return _Before(steps, {one.key: one.before.hash for one in changes.sources if one.before})

    request = rollback_request(to_seq, options)
    return _undone_with_files(target, before, lambda restored: rollback_planner(to_seq, restored), request)


def revert_links(target: WriteTarget, seqs: Sequence[int], options: UndoOptions) -> RolledBack | None:
    """Revert records as one record, and undo their renames of what is not there any more in the files that name it.

    None where no file names such an entity by the id that one of the records gave it.

    Raises: as ``rename`` and ``undo.revert``.
    """
    workspace = target.workspace
    request, ordered = revert_request(seqs, options), sorted(set(seqs), reverse=True)
    refuse_redacted(workspace, target.branch, seqs)

    def before(view: View) -> _Before | None:
        for seq in ordered:
            check_record(view, seq)
        changes = changes_of(view, ordered)
        renames, former = _renames_of(changes[seq].nodes for seq in ordered)
        there = {node.id for node in view.nodes([*renames])}
        named = {key: files for key in renames if key not in there and (files := files_naming(view, key, None)).paths}
        steps = [(files, IdRename(key, renames[key], former[key])) for key, files in named.items()]
        sources = {one.key: one.before for seq in ordered for one in changes[seq].sources}
        return _Before(steps, {path: one.hash for path, one in sources.items() if one}) if steps else None

    def planner(restored: Collection[str]) -> Planner:
        return revert_planner(ordered, workspace.schema, options, restored=restored)

    return _undone_with_files(target, before, planner, request)


def _renames_of(changes: Iterable[Sequence[ElementChange[Node]]]) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Return the first id by the last one of what records renamed, the newest first, and its former ids before them."""
    renames: dict[str, str] = {}
    former: dict[str, tuple[str, ...]] = {}
    for nodes in changes:
        gone = {one.key: former_ids(one.before) for one in nodes if one.before}
        for now, was in renamed_in(nodes).items():
            last = next((key for key, name in renames.items() if name == now), now)
            renames[last], former[last] = was, gone[was]
    return renames, former


def _undone_with_files(
    target: WriteTarget,
    before: Callable[[View], _Before | None],
    planner: Callable[[Collection[str]], Planner],
    request: Request,
) -> RolledBack | None:
    """Carry out an undo and edit the files; ``planner`` plans it, given the files that become as they were.

    None where ``before`` returns no files.
    """
    workspace = target.workspace
    with document_lock.held(workspace, command=target.author.tool, dry_run=request.dry_run):
        planned = workspace.store(target.branch).read(before)
        if planned is None:
            return None
        read = read_and_edited(target, extractors_of(workspace), planned.steps)
        edits = [one.edit for one in read if one.changes]
        hashes = {one.edit.path: content_hash(one.edit.after) for one in read if one.changes or one.is_written}
        restored = {path for path, hash_ in hashes.items() if hash_ == planned.hashes.get(path)}
        drafts: list[Draft] = []
        plan = proposing(workspace, target.author, planner(restored))

        def noted(view: View, stamp: Stamp) -> Draft:
            drafts.append(plan(view, stamp))
            return drafts[-1]

        request = msgspec.structs.replace(request, lock_wait_s=workspace.config.lock_wait_s)
        if edits:
            outcome = commit(target, edits, request, plan=noted, begun=begun_renames(planned.steps, read))
        else:
            outcome = recorded(target, noted, request)
    outcome = with_warnings(
        workspace,
        target.branch,
        target.author,
        outcome,
        drafts[-1:],
        is_tried=request.dry_run,
        read=target.read,
    )
    return RolledBack(outcome, edits)


def refuse_renames(target: WriteTarget, seqs: Sequence[int]) -> None:
    """Refuse records among several that renamed what is there still and files name. Raises: ``DerivedFact``."""
    for seq in seqs:
        renamed = undo(target, seq, dry_run=True)
        if isinstance(renamed, LargerRecord):
            raise in_steps(renamed, seqs)
        if renamed is not None:
            error = in_files(seq, renamed.edits)
            error.remedy = f"Undo it by itself, with the files: {kb('revert', str(seq), '--files')}."
            raise error


def in_files_since(to_seq: int, edits: Sequence[FileEdit]) -> DerivedFact:
    """Return the error for renames that a rollback is to undo in files, where that was not asked for."""
    return _in_files(f"Since seq {to_seq} what files name was renamed", f"{kb('rollback', to_seq, '--files')}", edits)


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
