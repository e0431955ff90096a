"""Writing the changes of a branch into files of the worktree, one file for each actor, and staging them.

A file that was written is never changed. A kill between its writing and its staging leaves a whole file, or none; the
next call writes nothing twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

import msgspec

from kbcore import git, limits
from kbcore.errors import GitUnusable, InvalidQuery
from kbcore.errors.remedies import kb
from kbcore.extract.changes import FOLDER
from kbcore.git import staging
from kbcore.git.commands import run_git
from kbcore.ids import path_text
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change, Claim
from kbcore.share.faults import FAULTS, fault_in, is_too_large, without_earlier_values
from kbcore.share.unshared import Unshared, find_unshared, find_withdrawn
from kbcore.share.worktree_changes import NewFiles, new_files
from kbcore.store.change_files import ATTRIBUTES, locked, write_companion_files, write_file
from kbcore.store.workspace import Workspace, head_moved
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import pluralize
from kbcore.view.claim_index import HeldChange


class Shared(msgspec.Struct, frozen=True):
    """The files that were written, with their changes, and the changes that were not shared.

    ``before`` are changes in files that had been written before and are not committed yet: these are staged as well.
    ``was_staged`` tells whether the index differed from HEAD before; it is False too where nothing was staged now.
    """

    files: dict[str, tuple[Unshared, ...]]
    before: tuple[Unshared, ...]
    withheld: tuple[Unshared, ...]
    was_staged: bool = False

    @property
    def faults(self) -> list[Unshared]:
        """Return those that were not shared and whose writer can do something about it."""
        return [one for one in self.withheld if one.withheld in FAULTS]


def share(
    workspace: Workspace,
    branch: str,
    *,
    again: Collection[str] = (),
    actors: Collection[str] = (),
    dry_run: bool = False,
) -> Shared:
    """Write the changes of the branch that is checked out and that no file holds, and stage the files.

    ``again`` are ids of changes that were in a committed file which is gone: these are written as well. With ``actors``
    only the changes of these are written. The index is the one that git names to its hooks, else the worktree's own.

    Raises: ``InvalidQuery`` for a branch that is not checked out, and for an id in ``again`` that names no such change;
    ``StorageError``, ``GitUnusable``, ``InvalidConfig``.
    """
    if not workspace.repo.has_worktree:
        raise InvalidQuery("A bare repository has no files.", hint="Run it in one of its worktrees.")
    current = workspace.head().branch
    if branch != current:
        raise head_moved(branch, current)
    with contextlib.nullcontext() if dry_run else locked(workspace):
        new = new_files(workspace, branch)
        taken_back = _withdrawn(workspace, branch, again, new)
        found = find_unshared(workspace, branch, again=taken_back, released=actors, new=new)
        if actors:
            found = _of_actors(found, actors, {one.change.id for one in taken_back})
        files = _files(workspace, branch, found, new)
        before = tuple(one for one in found if one.file and not one.withheld)
        staged = [*files, *sorted({one.file for one in before})]
        was_staged = False
        if staged and not dry_run:
            was_staged = staging.would_commit_differ(workspace.repo, workspace.machine.env)
            for path, (content, _) in files.items():
                write_file(workspace.machine.fs, workspace.repo.worktree, path, content)
            others = write_companion_files(workspace.repo, workspace.machine.env, staged)
            try:
                staging.stage(workspace.repo, workspace.machine.env, [*staged, *others])
            except GitUnusable as error:
                if files:
                    error.written_before = (
                        f"{pluralize(len(files), 'change file')} {'was' if len(files) == 1 else 'were'} written."
                    )
                error.remedy = f"When git can write its index, {kb('share', lead='run')} again: it stages the files."
                raise
    written = {path: changes for path, (_, changes) in files.items()}
    return Shared(written, before, tuple(one for one in found if one.withheld), was_staged)


def for_review(workspace: Workspace, branch: str, found: Sequence[Unshared], new: NewFiles) -> list[Change]:
    """Return the changes that are not withheld, without values before them that no file may hold.

    No file may hold what changes state that are not shared, and what looks like a secret. ``new`` are the files that
    ``new_files`` returns.

    Raises: ``GitUnusable``; what reading the journal raises.
    """
    shown = {one.change.id for one in found if not one.withheld}
    earlier = {
        _after(claim)[0] for one in found for claim in one.change.claims if hasattr(claim, "was") and _after(claim)
    } - shown
    if earlier:
        shown |= workspace.changes(branch).read(lambda index, seq: index.once_committed(earlier, seq))
        shown |= {one.id for one in new.committed_changes()}
    return [_for_review(one.change, shown) for one in found if not one.withheld]


def _files(
    workspace: Workspace, branch: str, found: Sequence[Unshared], new: NewFiles
) -> dict[str, tuple[bytes, tuple[Unshared, ...]]]:
    """Return the files to write, with their content and changes."""
    changes = {one.id: one for one in for_review(workspace, branch, found, new)}
    files = {}
    for group in _groups([one for one in found if not one.withheld and not one.file]):
        content = change_file.encode([changes[one.change.id] for one in group])
        path = f"{FOLDER}/{change_file.file_path([one.change for one in group], content)}"
        files[path] = content, tuple(group)
    return files


def stage_committed(workspace: Workspace) -> None:
    """Stage change files that a commit has taken from an index of its own, as ``git commit -- PATH`` does.

    These are the ones that HEAD has and the commit before it in the reflog had not, that the worktree has, and that its
    index lacks. An amended commit had its own files before: that the index lacks one of these is meant. Without a
    reflog these are the ones that HEAD added to its parent. Raises: ``GitUnusable``.
    """
    repo, env = workspace.repo, workspace.machine.env

    def listed(*words: str) -> set[str]:
        answer = run_git(repo, env, [*words, "--", ATTRIBUTES, FOLDER])
        return {path_text(name) for name in answer.output.split(b"\0") if name}

    form = ("--name-only", "--no-renames", "-z")
    lacking = listed("diff-index", "--cached", "--diff-filter=D", *form, "HEAD")
    if not lacking:
        return
    before = git.previous_head(repo, env)
    commits = (before, "HEAD") if before else ("--root", "--no-commit-id", "HEAD")
    added = listed("diff-tree", "-r", "--diff-filter=A", *form, *commits)
    there = sorted(path for path in lacking & added if (repo.worktree / path).is_file())
    if there:
        run_git(repo, env, ["add", "--force", "--", *there])


def _of_actors(found: Sequence[Unshared], actors: Collection[str], again: Collection[str]) -> list[Unshared]:
    """Return the changes of some actors, and those ``again``. Raises: ``InvalidQuery`` for an actor who has none."""
    there = {one.change.actor for one in found if one.change.id not in again}
    for actor in actors:
        if actor not in there:
            hint = f"{kb('share', '--list')} lists the changes that are not shared, with their actors."
            raise InvalidQuery(f"{in_quotes(actor)} has no change that is not shared.", hint=hint)
    return [one for one in found if one.change.actor in actors or one.change.id in again]


def _withdrawn(workspace: Workspace, branch: str, ids: Collection[str], new: NewFiles) -> list[HeldChange]:
    """Return the changes with these ids, or ids that begin so, that a committed file held and no file does now.

    An id of a change that is in a new file already is passed over: the file is staged in any case.
    """
    if not ids:
        return []
    known = {one.change.id: one for one in find_withdrawn(workspace, branch, new)}
    written = {change.id for changes in new.uncommitted.values() for change in changes}
    found = dict[str, HeldChange]()
    for key in ids:
        matching = [name for name in known.keys() | written if name.startswith(key)]
        if len(matching) != 1:
            what = "names several changes" if matching else "names no change whose file is gone"
            raise InvalidQuery(f"{in_quotes(key)} {what}.", hint=f"{kb('share', '--list')} lists them with their ids.")
        found |= {name: known[name] for name in matching if name in known}
    return [*found.values()]


def _groups(changes: Sequence[Unshared]) -> Iterator[list[Unshared]]:
    """Yield the changes of each file: of one actor, in order, as many as a file may hold."""
    ordered = sorted(changes, key=lambda one: (one.change.actor, one.seq))
    for _, of_actor in groupby(ordered, key=lambda one: one.change.actor):
        group: list[Unshared] = []
        size_bytes = 0
        for one in of_actor:
            length_bytes = len(change_file.encode([one.change]))
            if group and size_bytes + length_bytes > limits.MAX_CHANGE_FILE_BYTES:
                yield group
                group, size_bytes = [], 0
            group.append(one)
            size_bytes += length_bytes
        if group:
            yield group


def _for_review(change: Change, shown: Collection[str]) -> Change:
    """Return a change without values before it that no file may hold, or that are of changes which are not shared."""

    def is_left_out(claim: Claim) -> bool:
        after = _after(claim)
        return bool(after and after[0] not in shown) or bool(fault_in(claim))

    found = without_earlier_values(change, is_left_out)
    return without_earlier_values(found) if is_too_large(found) else found


def _after(claim: Claim) -> tuple[str, ...]:
    """Return the changes whose claims on the same field the writer saw, the nearest first."""
    return tuple(getattr(claim, "after", ()))
