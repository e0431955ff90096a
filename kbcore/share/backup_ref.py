"""The backup of a branch in a git remote: the ref ``refs/kb/BRANCH``, what it holds, and how it is pushed and fetched.

The ref names a commit with packs of all changes that were pushed, and a list of those that were withdrawn since. A push
adds to what is there, so no change that the remote has is ever dropped: as a commit after what is there, or, where a
value was redacted, as one in its place, so that the ref has no history with the value. No answer needs the ref.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NoReturn

import msgspec

from kbcore.errors import BackupDamaged, GitUnusable, InvalidQuery, NotFound, UnknownBranch
from kbcore.errors.remedies import kb
from kbcore.extract.changes import EXTRACTOR, FOLDER
from kbcore.extract.facts import SourceFile
from kbcore.git import blobs, remotes, revisions
from kbcore.git.files import encode_name
from kbcore.ids import is_detached_name
from kbcore.model.claims import change_file
from kbcore.model.claims.change import ID_CHARS, Change, Claim, SetField, fields_redacted, union
from kbcore.model.record import MERGE
from kbcore.model.redaction.changes import without
from kbcore.model.state import Stamp
from kbcore.share.faults import without_earlier_values
from kbcore.share.merging import Merged, known_changes, take_over
from kbcore.share.sharing import for_review
from kbcore.share.unshared import Unshared, find_unshared, find_withdrawn
from kbcore.share.worktree_changes import new_files
from kbcore.store import backup_refs
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author, Request
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import pluralize
from kbcore.view.view import View

_PREFIX: Final = b"refs/kb/"
_WITHDRAWN: Final = "withdrawn.txt"
_ID_LINE: Final = re.compile(rf"[0-9a-f]{{{ID_CHARS}}}\n")
_ATTEMPTS: Final = 10
"""Other clones may push in between: each attempt begins with what the remote has then."""
_MODE: Final = "100644"


class RefContent(msgspec.Struct, frozen=True):
    """The content of a ref: its commit, None where there is none; its files; its changes by id, and those withdrawn."""

    commit: str | None
    files: Mapping[str, bytes]
    changes: Mapping[str, Change]
    withdrawn: frozenset[str]


class Pushed(msgspec.Struct, frozen=True):
    """The result of a push: the ids of the changes that the ref had not, how many it has now, and its commit.

    ``withheld`` are the changes that are not shared, and so not pushed. ``redacted`` are those that the ref had whole,
    or with a value before a claim that this clone does not have. With ``keeps_history`` earlier commits of the ref have
    these still, since the remote lets no commit be replaced.
    """

    ref: str
    commit: str | None
    added: tuple[str, ...]
    total: int
    withheld: tuple[Unshared, ...]
    redacted: tuple[str, ...] = ()
    keeps_history: bool = False


class Fetched(msgspec.Struct, frozen=True):
    """The result of a fetch: what was taken over, how many changes the ref has, and how many of them were withdrawn.

    ``redacted`` are changes that are whole in this store and redacted in the ref.
    """

    ref: str
    merged: Merged
    total: int
    withdrawn: int
    redacted: tuple[RedactedThere, ...] = ()


class RedactedThere(msgspec.Struct, frozen=True):
    """A change of which others have redacted fields, or its message (``MESSAGE``)."""

    change: str
    actor: str
    fields: tuple[str, ...]


def push(workspace: Workspace, branch: str, remote: str, *, dry_run: bool = False) -> Pushed:
    """Add the changes of a branch that may be shared and are in no committed file to its ref in a remote.

    What was redacted here, also of a change that a file holds by now, is redacted there. What the remote has is read
    back after the push. With ``dry_run`` nothing is pushed.

    Raises: ``InvalidQuery`` for a detached HEAD and what is no remote; ``UnknownBranch`` for a branch without a store;
    ``BackupDamaged`` for a ref that KB cannot read; ``GitUnusable``; as ``find_unshared``.
    """
    ref = ref_of(branch)
    if not workspace.folders.has_store(branch):
        raise UnknownBranch(f"{branch} has no store, so there is nothing to push.")
    new = new_files(workspace, branch)
    found = find_unshared(workspace, branch, new=new)
    ours = for_review(workspace, branch, found, new)
    withdrawn = {one.change.id for one in find_withdrawn(workspace, branch, new)}
    withheld = tuple(one for one in found if one.withheld)
    repo, env = workspace.repo, workspace.machine.env
    first: RefContent | None = None
    replaces = True
    taken = workspace.changes(branch).read(lambda index, _: index.taken_out)
    for _ in range(_ATTEMPTS):
        there = read_ref(workspace, remote, ref)
        if not dry_run:
            backup_refs.note(workspace, remote, branch, ref)
        first = first or there
        known = _recorded(workspace, branch, there.changes)
        kept = {key: _joined(one, known.get(key)) for key, one in there.changes.items()}
        changes = kept | {one.id: one for one in ours if one.id not in kept}
        changes = _without_values_of_redacted({key: without(one, taken.get(key)) for key, one in changes.items()})
        redacted = tuple(key for key, one in first.changes.items() if one != changes.get(key, one))
        is_news = any(one != changes[key] for key, one in there.changes.items())
        files = _files(changes, there.withdrawn | (withdrawn & changes.keys()))
        if files == there.files or dry_run:
            added = tuple(key for key in changes if key not in first.changes)
            keeps_history = bool(redacted) and not replaces
            return Pushed(ref, there.commit, added, len(changes), withheld, redacted, keeps_history)
        message = f"{pluralize(len(changes), 'change')} of {branch}"
        instead_of = (there.commit or "") if is_news and replaces else ""
        commit = remotes.write_commit(repo, env, files, None if instead_of else there.commit, message)
        try:
            remotes.push_commit(repo, env, remote, ref, commit, instead_of=instead_of)
        except GitUnusable:
            if remotes.commit_of_ref(repo, env, remote, ref) == there.commit:  # nobody else has pushed: it refuses
                if not instead_of:
                    raise
                replaces = False
    message = f"{ref} of {remote} was changed at each of {_ATTEMPTS} attempts to push."
    raise GitUnusable(message, hint="Try again. What the remote has is whole.")


def _joined(there: Change, known: Change | None) -> Change:
    """Return a change of a ref without what is redacted here. That a copy here lacks a value before is no redaction."""
    if known is None or not fields_redacted(there, known):
        return there
    return union([there, known])[there.id]


def _without_values_of_redacted(changes: Mapping[str, Change]) -> dict[str, Change]:
    """Return changes without values before them that a redacted one had stated."""
    hidden = {
        (key, claim.field)
        for key, one in changes.items()
        for claim in one.claims
        if isinstance(claim, SetField) and claim.is_redacted
    }

    def is_hidden(claim: Claim) -> bool:
        return any((one, getattr(claim, "field", "")) in hidden for one in getattr(claim, "after", ()))

    return {key: without_earlier_values(one, is_hidden) if hidden else one for key, one in changes.items()}


def _recorded(workspace: Workspace, branch: str, ids: Iterable[str]) -> dict[str, Change]:
    """Return those of these changes that a branch has, present or not. Raises: what reading the journal raises."""
    return workspace.changes(branch).read(lambda index, _: index.bodies(ids))


def fetch(workspace: Workspace, branch: str, remote: str, author: Author, *, dry_run: bool = False) -> Fetched:
    """Take the changes of the ref of a branch over that the store never had, as one record.

    A change that is withdrawn, here or where it was pushed, stays so. One that is redacted there and whole here is only
    named: a person decides to take it out of the records.

    Raises: ``NotFound`` where the remote has no such ref; ``BackupDamaged``, ``InvalidQuery`` and ``GitUnusable`` as
    ``push``; as ``BranchStore.commit``.
    """
    ref = ref_of(branch)
    there = read_ref(workspace, remote, ref)
    if there.commit is None:
        hint = (
            f"{kb('push', lead='Run')} in a clone that has the changes; `git ls-remote {remote}` lists what is there."
        )
        raise NotFound(f"{remote} has no ref {ref}, so nothing was fetched.", hint=hint)
    store = workspace.store(branch)

    def missing(_: View, __: Stamp) -> list[Change]:
        known = known_changes(store, there.changes.keys())
        return [one for key, one in there.changes.items() if key not in known and key not in there.withdrawn]

    digest = hashlib.sha256(there.commit.encode()).hexdigest()
    author = msgspec.structs.replace(author, source=MERGE)
    request = Request(digest=digest, message=f"fetch {ref}", dry_run=dry_run)
    merged = take_over(workspace, branch, author, missing, request=request)
    if not dry_run:
        backup_refs.note(workspace, remote, branch, ref)
    mine = store.claims().bodies(there.changes)
    found = [(one, fields_redacted(one, there.changes[key])) for key, one in mine.items()]
    redacted = tuple(RedactedThere(one.id, one.actor, fields) for one, fields in found if fields)
    return Fetched(ref, merged, len(there.changes), len(there.withdrawn & there.changes.keys()), redacted)


def ref_of(branch: str) -> str:
    """Return the ref that a branch is backed up by. Raises: ``InvalidQuery`` for a detached HEAD."""
    if is_detached_name(branch):
        raise InvalidQuery("HEAD is detached: no branch is checked out.", hint="Name a branch with --branch.")
    return os.fsdecode(_PREFIX + encode_name(branch))


def read_ref(workspace: Workspace, remote: str, ref: str) -> RefContent:
    """Return what a ref of a remote holds, all of it checked.

    Raises: ``BackupDamaged`` for what KB did not write so; ``InvalidQuery``, ``GitUnusable`` as ``remotes``.
    """
    repo, env = workspace.repo, workspace.machine.env
    commit = remotes.commit_of_ref(repo, env, remote, ref)
    if commit is None:
        return RefContent(None, {}, {}, frozenset())
    remotes.fetch_commit(repo, env, remote, ref, commit)
    if revisions.commit_of(repo, env, commit) != commit:
        _refuse(remote, ref, "it names no commit")
    tree = blobs.tree_of(repo, env, commit)
    for path, blob in tree.items():
        if blob.mode != _MODE or not (path == _WITHDRAWN or change_file.is_pack(path)):
            _refuse(remote, ref, f"KB writes no {in_quotes(path)} there")
    texts = dict(blobs.contents(repo, env, [one.id for one in tree.values()]))
    files = {path: _whole(remote, ref, path, texts[blob.id]) for path, blob in tree.items()}
    changes = union(
        change for path, data in files.items() if path != _WITHDRAWN for change in _changes_in(remote, ref, path, data)
    )
    return RefContent(commit, files, changes, _withdrawn_in(remote, ref, files.get(_WITHDRAWN, b"")))


def _files(changes: Mapping[str, Change], withdrawn: Collection[str]) -> dict[str, bytes]:
    """Return the files of a ref. They depend on the changes alone, so a month without news keeps its packs."""
    found = change_file.encode_packs(changes.values())
    return {**found, **({_WITHDRAWN: _lines(withdrawn)} if withdrawn else {})}


def _lines(ids: Iterable[str]) -> bytes:
    return "".join([f"{one}\n" for one in sorted(ids)]).encode()


def _whole(remote: str, ref: str, path: str, data: bytes | None) -> bytes:
    if data is None:
        _refuse(remote, ref, f"{path} is too large")
    return data


def _changes_in(remote: str, ref: str, path: str, data: bytes) -> tuple[Change, ...]:
    facts = EXTRACTOR.extract(SourceFile(f"{FOLDER}/{path}", data), {})
    for problem in facts.problems:
        _refuse(remote, ref, f"in line {problem.line} of {path} {problem.message}" if problem.line else problem.message)
    return tuple(facts.changes)


def _withdrawn_in(remote: str, ref: str, data: bytes) -> frozenset[str]:
    lines = data.decode("ascii", "replace").splitlines(keepends=True)
    found = frozenset(line.strip() for line in lines)
    if not all(map(_ID_LINE.fullmatch, lines)) or _lines(found) != data:
        _refuse(remote, ref, f"{_WITHDRAWN} is not as KB writes it")
    return found


def _refuse(remote: str, ref: str, why: str) -> NoReturn:
    hint = (
        f"Another KB may be newer: then install that one. Else an owner of {remote} can set the ref back to an earlier"
        f" commit of it, or take it away: {kb('push')} then writes what this clone has."
    )
    raise BackupDamaged(f"{ref} of {remote} is no backup that this KB can read: {why}.", hint=hint)
