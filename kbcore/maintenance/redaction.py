"""Take a leaked secret out of every store of this clone: branches, trash, quarantine, caches, and change files.

One store after the other is redacted under its lock, each by one step: new files, and the record that documents it.
What was looked for is written nowhere. After a crash between two stores the same command finishes the rest.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore.errors import InvalidQuery, KBError, NotFound
from kbcore.errors.remedies import kb
from kbcore.maintenance import redacted_files, redacted_store, redacted_tips, redaction_elsewhere
from kbcore.maintenance.redacted_store import StoreSurvey
from kbcore.maintenance.redaction_preview import (
    CloneStore,
    ResolvedTarget,
    Wanted,
    documents_of,
    missing,
    names_in,
    refuse_kept,
    refuse_unknown,
    resolve,
    stores_of,
)
from kbcore.model.claims.change import Change
from kbcore.model.redaction.changes import TakenOut, taken_out, without_claims
from kbcore.process import interrupting
from kbcore.storage import branchdir, files, head, journal, layout
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.storage.witness_notes import seen_of
from kbcore.store.branches.store_moves import in_trash
from kbcore.store.branches.stores import repository_lock
from kbcore.store.folders import KEPT_ANSWERS
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author
from kbcore.view import claim_filling, redacted_changes

BEGUN: Final = "redacting.json"
"""Is next to the stores until a redaction is finished; it says what could not be done, and not what is taken out."""
_MOST_BYTES: Final = 64 * 1024
_MOST_SENTENCES: Final = 20


class RedactedStore(msgspec.Struct, frozen=True):
    """A store that was redacted, with the record that documents it; or why not."""

    branch: str
    place: str
    seq: int = 0
    records: int = 0
    snapshots: int = 0
    left: tuple[str, ...] = ()
    """Files that could not be removed now: the next write to the branch does it."""
    error: str = ""


class RedactAnswer(msgspec.Struct, frozen=True):
    """The result of a redaction."""

    stores: tuple[RedactedStore, ...]
    change_files: tuple[str, ...]
    """The packs that were written in the place of change files."""
    staged: tuple[str, ...]
    """Those of them that are in the index of their worktree, and the old files are not any more."""
    failed: tuple[str, ...]
    """Sentences on what could not be done about change files."""
    elsewhere: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """True when nothing was left to take out, and nothing failed."""
        return not (self.stores or self.change_files or self.failed)

    @property
    def is_whole(self) -> bool:
        """True when nothing that KB can change was left."""
        return not self.failed and not any(one.error or one.left for one in self.stores)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return {**shown, "ok": self.is_whole, "applied": bool(self.change_files) or any(one.seq for one in self.stores)}


class _Begun(msgspec.Struct, frozen=True, tag_field="kb", tag="redacting"):
    at: str
    failed: tuple[str, ...] = ()


@interrupting.maintenance()
def redact(workspace: Workspace, branch: str, wanted: Wanted, author: Author) -> RedactAnswer:
    """Take it out of every store of this clone, one after the other, and say what is left.

    A store that cannot be redacted is named in the answer, and the others are redacted all the same.

    Where all of it was taken out before, the answer is empty.

    Raises: as ``preview``; ``LockTimeout`` for the repository; ``NotFound`` where nothing holds it or held it.
    """
    asked = resolve(workspace, branch, wanted)
    done, sources = list[RedactedStore](), set[str]()
    with repository_lock(workspace):
        fs, begun = workspace.machine.fs, workspace.folders.data_dir / BEGUN
        tips = redacted_tips.find_tips(workspace)
        decoded = redacted_files.Decoded()
        asked, is_shared, fields = _look_through(workspace, asked, decoded)
        refuse_unknown(wanted, fields)
        taken = _taken_out(workspace, asked, tips.changes)
        copies = _clear_unfinished(workspace)
        note = _Begun(workspace.machine.clock.now())
        files.publish_file(fs, begun, msgspec.json.encode(note))
        if taken:
            redacted_changes.note(fs, workspace.machine.clock, workspace.folders.branches_dir, taken)
        for store in stores_of(workspace):
            try:
                one = _redact_store(workspace, store, asked, author, sources, is_shared=is_shared)
            except KBError as error:
                done.append(RedactedStore(store.branch, store.place, error=error.message))
                continue
            if one is not None:
                done.append(one)
        shared = redacted_files.redact_change_files(workspace, asked.target_in_files(), decoded)
        left = _forget_caches(workspace)
        shared += redacted_files.RedactedFiles(failed=copies)
        failed = (*(f"{one.branch}: {one.error}" for one in done if one.error), *shared.failed)
        if failed:
            note = msgspec.structs.replace(note, failed=failed[:_MOST_SENTENCES])
            with contextlib.suppress(KBError):  # the note of the beginning stays
                files.publish_file(fs, begun, msgspec.json.encode(note))
        else:
            files.remove_quietly(fs, begun)
    on_tips = tips.sentences(asked.target_in_files())
    is_found = bool(done or shared.paths or shared.failed or on_tips)
    if not is_found and (refused := missing(wanted, fields)):
        raise NotFound(refused.message, hint=" ".join([refused.hint, *shared.left]))
    outside = redaction_elsewhere.places(workspace, asked.target_in_files(), sources, is_found=is_found)
    elsewhere = (*left, *shared.left, *tips.failed, *on_tips, *outside)
    return RedactAnswer(tuple(done), shared.paths, shared.staged, shared.failed, elsewhere)


def unfinished(workspace: Workspace) -> tuple[str, tuple[str, ...]] | None:
    """Return when a redaction began that is not finished, and sentences on what could not be done; None for none."""
    data = files.read_file(workspace.machine.fs, workspace.folders.data_dir / BEGUN, _MOST_BYTES)
    if data is None:
        return None
    with contextlib.suppress(msgspec.DecodeError, UnicodeError):
        found = msgspec.json.decode(data, type=_Begun)
        return found.at, found.failed
    return "at an unknown time", ()


def _look_through(
    workspace: Workspace, asked: ResolvedTarget, decoded: redacted_files.Decoded
) -> tuple[ResolvedTarget, bool, frozenset[str]]:
    """Look at all stores before anything is written.

    Return what is asked with the entities that hold it, whether changes of any store are known elsewhere, and the
    fields of what is named.

    Raises: ``InvalidQuery`` for a pattern that is part of a name in any store, or of what the id of a change is taken
    of.
    """
    fs = workspace.machine.fs
    holders, surveys = redacted_files.find_holders(workspace, asked.target_in_files(), decoded), list[StoreSurvey]()
    for store in stores_of(workspace):
        try:
            of = head.read(fs, store.directory)
            found = StoreSurvey(fs, store.directory, of, asked.target_in(fs, store.directory, of))
        except InvalidQuery:
            raise
        except KBError:  # it is named when it is redacted
            continue
        holders |= found.redactor.holders
        surveys.append(found)
    is_shared = refuse_kept(workspace, surveys)
    return msgspec.structs.replace(asked, holders=frozenset(holders)), is_shared, names_in(surveys)


def _taken_out(workspace: Workspace, asked: ResolvedTarget, others: Iterable[Change]) -> dict[str, TakenOut]:
    """Return what is taken out of the changes of all stores and of others, and was before, by their ids."""
    fs, target, found = workspace.machine.fs, asked.target_in_files(), dict[str, TakenOut]()
    for changes in (*(_changes_in(fs, store.directory) for store in stores_of(workspace)), others):
        with contextlib.suppress(KBError):  # a store that cannot be read is named when it is redacted
            for one in changes:
                if (taken := taken_out(one, without_claims(one, target))) is not None:
                    found[one.id] = found[one.id] | taken if one.id in found else taken
    return found


def _changes_in(fs: Fs, directory: Path) -> Iterator[Change]:
    """Yield the changes of a store. Raises: what reading the store raises."""
    yield from claim_filling.in_memory(fs, directory, head.read(fs, directory)).all_changes()


def _redact_store(
    workspace: Workspace,
    store: CloneStore,
    asked: ResolvedTarget,
    author: Author,
    sources: set[str],
    *,
    is_shared: bool,
) -> RedactedStore | None:
    fs, clock, directory = workspace.machine.fs, workspace.machine.clock, store.directory
    witness = workspace.witness(store.branch) if store.place == "branch" else None
    if witness is not None:
        witness.prepare()
    wait_s = workspace.config.lock_wait_s
    with journal.writing(fs, directory, clock, wait_s=wait_s, command="kb redact") as writer:
        of = writer.head
        if witness is not None:
            witness.refuse(of)
        found = StoreSurvey(fs, directory, of, asked.target_in(fs, directory, of))
        sources |= documents_of(found.redactor, asked.wanted)
        if found.is_empty:
            return None
        new, records, left = redacted_store.redact(workspace, directory, writer, found, author, is_shared=is_shared)
        if witness is not None:
            witness.accept(new)
        else:
            _note_trashed(workspace, directory, of, new)
    snapshots = sum(layout.generation_of(ref.file) == new.generation for ref in new.snapshots)
    return RedactedStore(store.branch, store.place, new.seq, records, snapshots, left)


def _note_trashed(workspace: Workspace, directory: Path, of: Head, new: Head) -> None:
    """Have the note of a branch whose store is in the trash say the new hash, where it is the note of that store."""
    branch = workspace.folders.branches_dir / next(one.name for one in in_trash(workspace) if one.path == directory)
    seen = workspace.place.read(branch.name)
    if seen is not None and seen.store_id in {of.store_id, *(one.store_id for one in of.epochs)}:
        workspace.place.write(branch.name, seen_of(new, branch))


def _clear_unfinished(workspace: Workspace) -> tuple[str, ...]:
    """Remove the copies of stores that were not finished; return a sentence where one could not be removed."""
    try:
        branchdir.clear_unfinished(workspace.machine.fs, workspace.folders.branches_dir)
    except KBError as error:
        return (f"An unfinished copy of a store may hold it: {error.message}",)
    return ()


def _forget_caches(workspace: Workspace) -> tuple[str, ...]:
    """Delete everything that is cached; return a sentence on each thing that could not be deleted."""
    fs, folders, left = workspace.machine.fs, workspace.folders, list[str]()
    found = [folders.cache_dir, folders.usual_cache_dir]
    try:
        found += [one / KEPT_ANSWERS for one in folders.git_dirs()]
    except KBError as error:
        left.append(f"The kept answers of {kb('prime')} could not be cleared: {error.message}")
    for folder in dict.fromkeys(found):
        try:
            if files.is_directory(fs, folder):
                for name in sorted(fs.listdir(folder)):
                    left += _forget(fs, folder / name)
        except (KBError, OSError) as error:
            left.append(f"The cache {folder} could not be cleared: {error}.")
    return tuple(left)


def _forget(fs: Fs, path: Path) -> Iterator[str]:
    """Delete one cached file, or what is in a folder, which stays for other processes that write there."""
    try:
        if stat.S_ISDIR(fs.lstat(path).st_mode):
            for name in sorted(fs.listdir(path)):
                yield from _forget(fs, path / name)
        else:
            fs.unlink(path)
    except FileNotFoundError:  # another process replaced or removed it
        return
    except OSError as error:
        yield f"{path} is cached and could not be deleted: {error.strerror}."
