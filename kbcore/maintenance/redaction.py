"""Take a leaked secret out of every store of this clone: branches, trash, quarantine, caches, and change files.

One store after the other is redacted under its lock, each by one step: new files, and the record that documents it.
What was looked for is written nowhere. After a crash between two stores the same command finishes the rest.
"""

from __future__ import annotations

import contextlib
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from kbcore.errors import InvalidQuery, KBError, NotFound
from kbcore.errors.remedies import kb, shell
from kbcore.maintenance import redacted_files, redacted_store, redacted_tips, redaction_elsewhere
from kbcore.maintenance.redacted_store import Survey
from kbcore.model.claims.change import ID_CHARS, MESSAGE, REDACTED, Change
from kbcore.model.graph import CORE_FIELDS, OBJECT_FIELDS
from kbcore.model.redaction.changes import TakenOut, taken_out, without, without_claims
from kbcore.model.redaction.redactor import Redactor
from kbcore.model.redaction.target import Target, commands, names_of, pattern_of
from kbcore.process import interrupting
from kbcore.storage import branchdir, files, head, journal, layout, scan
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.storage.witness_notes import seen_of
from kbcore.store import backup_refs, branches
from kbcore.store.branches.moves import in_trash
from kbcore.store.branches.stores import repository_lock
from kbcore.store.folders import KEPT_ANSWERS
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author
from kbcore.view import claim_filling, redacted_changes

BEGUN: Final = "redacting.json"
"""Is next to the stores until a redaction is finished; it says what could not be done, and not what is taken out."""
_MOST_BYTES: Final = 64 * 1024
_MOST_SENTENCES: Final = 20

_CHANGE: Final = re.compile(rf"[0-9a-f]{{{ID_CHARS}}}")


class Wanted(msgspec.Struct, frozen=True):
    """What a person wants to take out: a pattern, or fields of an entity, of a record of one branch, or of a change."""

    kind: Literal["pattern", "entity", "record", "change"]
    text: str = ""
    """The pattern, or the id of the entity or the change."""
    is_regex: bool = False
    seq: int = 0
    fields: tuple[str, ...] = ()
    takes_names: bool = False
    """With a pattern: remove the fields whose names it is in."""

    def words(self) -> str:
        """Return what is wanted, without the pattern."""
        if self.kind == "pattern":
            return "a pattern"
        named = {"entity": self.text, "record": f"record {self.seq}", "change": f"the change {self.text}"}
        return f"the values of {named[self.kind]}"


class FoundRecord(msgspec.Struct, frozen=True):
    """A record that would be changed, and where, in words."""

    seq: int
    places: tuple[str, ...]


class FoundStore(msgspec.Struct, frozen=True):
    """A store that holds what is to be taken out, or cannot be searched: then ``error`` says why."""

    branch: str
    place: str
    """``branch``, or the folder in the trash."""
    records: tuple[FoundRecord, ...] = ()
    snapshots: int = 0
    quarantine: tuple[str, ...] = ()
    """What lies in quarantine: it is removed with the redaction."""
    also_in: tuple[int, ...] = ()
    """Records that hold a text of a value which would be taken out, and stay."""
    unused: tuple[str, ...] = ()
    """Files that hold a pattern and that the store does not use, quarantine among them: these are removed."""
    error: str = ""


class Preview(msgspec.Struct, frozen=True):
    """What a redaction would change, and what it does not reach."""

    stores: tuple[FoundStore, ...]
    change_files: tuple[str, ...]
    elsewhere: tuple[str, ...]
    """Places that hold it and are not changed, or may hold it, a sentence each."""

    @property
    def is_empty(self) -> bool:
        """True when nothing holds it, as far as could be looked at."""
        return not self.stores and not self.change_files

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown


class RedactedStore(msgspec.Struct, frozen=True):
    """A store that was redacted, with the record that documents it; or why not."""

    branch: str
    place: str
    seq: int = 0
    records: int = 0
    snapshots: int = 0
    left: tuple[str, ...] = ()
    """What could not be removed now: the next write to the branch does it."""
    error: str = ""


class RedactAnswer(msgspec.Struct, frozen=True):
    """The result of a redaction."""

    stores: tuple[RedactedStore, ...]
    change_files: tuple[str, ...]
    """The packs that were written in the place of change files."""
    staged: tuple[str, ...]
    """Those of them that are in the index of their worktree, and the old files are not any more."""
    failed: tuple[str, ...]
    """What was not done about change files, a sentence each."""
    elsewhere: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """True when nothing that KB can change was left."""
        return not self.failed and not any(one.error or one.left for one in self.stores)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return {**shown, "ok": self.is_whole}


class _Store(msgspec.Struct, frozen=True):
    branch: str
    place: str
    directory: Path


class _ResolvedTarget(msgspec.Struct, frozen=True):
    """What is wanted, and for a record what names it in every store: its lineage, seq, time and epoch."""

    wanted: Wanted
    record: tuple[str, int, str, str] | None = None
    changes: frozenset[str] = frozenset()
    """The ids of the changes that came with the record, or of the one that is wanted."""
    names: frozenset[str] = frozenset()
    """The ids that the entity has or had in any store: each store and each change file may name it by any of them."""
    holders: frozenset[str] = frozenset()
    """The entities that hold it in any store or change file (``Target``)."""

    def target_in(self, fs: Fs, directory: Path, of: Head) -> Target:
        """Return what is to be taken out of one store."""
        wanted = self.wanted
        fields = _names_of_fields(wanted)
        if wanted.kind == "pattern":
            return self._of_pattern()
        if wanted.kind == "entity":
            return Target(ids=self.names, fields=fields, holders=self.holders)
        is_there = self.record is not None and self.record == _name_of(fs, directory, of, self.record[1])
        if is_there or not self.changes:
            seqs = frozenset([wanted.seq] if is_there else [])
        else:
            seqs = redacted_store.seqs_of(fs, directory, of, self.changes)
        return Target(seqs=seqs, fields=fields, changes=self.changes, holders=self.holders)

    def target_in_files(self) -> Target:
        """Return what is to be taken out of change files: they do not know the seqs of records."""
        if self.wanted.kind == "pattern":
            return self._of_pattern()
        fields = _names_of_fields(self.wanted)
        return Target(ids=self.names, fields=fields, changes=self.changes, holders=self.holders)

    def _of_pattern(self) -> Target:
        wanted = self.wanted
        matches = pattern_of(wanted.text, is_regex=wanted.is_regex)
        return Target(matches=matches, takes_names=wanted.takes_names, holders=self.holders)


class _Begun(msgspec.Struct, frozen=True, tag_field="kb", tag="redacting"):
    at: str
    failed: tuple[str, ...] = ()


class _Stamps(msgspec.Struct, frozen=True):
    at: str
    epoch: str = ""


def _name_of(fs: Fs, directory: Path, of: Head, seq: int) -> tuple[str, int, str, str] | None:
    """Return what names a record in all copies of a store, also after a redaction; None where it is not there."""
    if not of.first_seq <= seq <= of.seq:
        return None
    part = max((one for one in of.segments if one.first_seq <= seq), key=lambda one: one.first_seq)
    last = None
    for last in scan.scan(fs, directory, of, after=part.start, until=seq):  # noqa: B007 - the last one is wanted
        continue
    if last is None or last.frame.seq != seq:
        return None
    said = msgspec.json.decode(last.frame.rec, type=_Stamps)
    return of.lineage, seq, said.at, said.epoch


@interrupting.maintenance()
def meant(
    workspace: Workspace,
    branch: str,
    text: str,
    *,
    is_pattern: bool,
    is_regex: bool,
    fields: Iterable[str] = (),
    takes_names: bool = False,
) -> Wanted:
    """Return what a person means: the number of a record, the id of an entity or a change of a branch, or a pattern.

    ``REDACTED`` among the fields of a change are those whose names were taken out, by another clone or of another copy:
    a pattern of these names.

    Raises: ``NotFound`` where no name of the change was taken out; ``InvalidQuery`` for other fields with these; what
    reading the store of the branch raises.
    """
    if is_pattern:
        return Wanted("pattern", text, is_regex, takes_names=takes_names)
    if text.isascii() and text.isdecimal():
        return Wanted("record", seq=int(text), fields=tuple(fields))
    fs, directory = workspace.machine.fs, workspace.folders.directory_of(branch)
    of = head.read(fs, directory)
    kind: Literal["entity", "change", "pattern"] = "pattern"
    if text in redacted_store.names_in(fs, directory, of).entities:
        kind = "entity"
    elif _CHANGE.fullmatch(text) and redacted_store.has_change(fs, directory, of, text):
        kind = "change"
    if kind == "change" and REDACTED in (fields := tuple(fields)):
        copies = redacted_files.copies_of(workspace, text)
        taken = redacted_changes.noted(fs, workspace.folders.branches_dir).get(text)
        names = redacted_store.names_taken_out(fs, directory, of, text, [(one, without(one, taken)) for one in copies])
        given = [kb("redact", *words) for words in commands(text, fields)]
        if len(given) > 1:
            raise InvalidQuery(
                "The fields whose names go are taken out by a command of their own.",
                hint=f"Give two commands: {' and '.join(given)}.",
            )
        if not names:
            raise NotFound(f"The change {text} has no field whose name was taken out, and which is left here.")
        exact = "|".join(rf"\A{re.escape(name)}\Z" for name in sorted(names))
        return Wanted("pattern", exact, is_regex=True, takes_names=True)
    return Wanted(kind, text, fields=tuple(fields), takes_names=takes_names and kind == "pattern")


@interrupting.maintenance()
def preview(workspace: Workspace, branch: str, wanted: Wanted) -> Preview:
    """Return what a redaction would change. Takes no lock and writes nothing.

    Raises: ``InvalidQuery`` for a pattern that cannot be taken out; ``NotFound`` for a record that is not there;
    what reading the named store raises.
    """
    asked = _asked(workspace, branch, wanted)
    found, surveys, sources = list[FoundStore](), list[Survey](), set[str]()
    for store in _stores(workspace):
        try:
            one, survey = _look(workspace, store, asked)
        except InvalidQuery:
            raise
        except KBError as error:
            found.append(FoundStore(store.branch, store.place, error=error.message))
            continue
        surveys.append(survey)
        sources |= _documents(survey.redactor, wanted)
        if one is not None:
            found.append(one)
    _refuse_kept(workspace, surveys)
    shared = redacted_files.find_change_files(workspace, asked.target_in_files())
    tips = redacted_tips.find_tips(workspace)
    on_tips = tips.sentences(asked.target_in_files())
    outside = redaction_elsewhere.places(
        workspace, asked.target_in_files(), sources, is_found=bool(found or shared.paths or on_tips)
    )
    return Preview(tuple(found), shared.paths, (*shared.failed, *shared.left, *tips.failed, *on_tips, *outside))


@interrupting.maintenance()
def redact(workspace: Workspace, branch: str, wanted: Wanted, author: Author) -> RedactAnswer:
    """Take it out of every store of this clone, one after the other, and say what is left.

    A store that cannot be redacted is named in the answer, and the others are redacted all the same.

    Raises: as ``preview``; ``LockTimeout`` for the repository; ``NotFound`` where nothing holds it.
    """
    asked = _asked(workspace, branch, wanted)
    done, sources = list[RedactedStore](), set[str]()
    with repository_lock(workspace):
        fs, begun = workspace.machine.fs, workspace.folders.data_dir / BEGUN
        tips = redacted_tips.find_tips(workspace)
        decoded = redacted_files.Decoded()
        asked, is_shared = _look_through(workspace, asked, decoded)
        taken = _taken_out(workspace, asked, tips.changes)
        copies = _clear_unfinished(workspace)
        note = _Begun(workspace.machine.clock.now())
        files.publish_file(fs, begun, msgspec.json.encode(note))
        if taken:
            redacted_changes.note(fs, workspace.machine.clock, workspace.folders.branches_dir, taken)
        for store in _stores(workspace):
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
    if not (done or shared.paths or shared.failed or on_tips):
        hint = " ".join([SPLIT, *shared.left])
        raise NotFound(f"Nothing in the stores of this clone holds {wanted.words()}.", hint=hint)
    outside = redaction_elsewhere.places(workspace, asked.target_in_files(), sources, is_found=True)
    elsewhere = (*left, *shared.left, *tips.failed, *on_tips, *outside)
    return RedactAnswer(tuple(done), shared.paths, shared.staged, shared.failed, elsewhere)


SPLIT: Final = (
    "A secret that is spread over several values is not found as one: give each part, or name the record or the entity."
)


def unfinished(workspace: Workspace) -> tuple[str, tuple[str, ...]] | None:
    """Return when a redaction began that is not finished, and sentences on what could not be done; None for none."""
    data = files.read_file(workspace.machine.fs, workspace.folders.data_dir / BEGUN, _MOST_BYTES)
    if data is None:
        return None
    with contextlib.suppress(msgspec.DecodeError, UnicodeError):
        found = msgspec.json.decode(data, type=_Begun)
        return found.at, found.failed
    return "at an unknown time", ()


def _asked(workspace: Workspace, branch: str, wanted: Wanted) -> _ResolvedTarget:
    if wanted.kind == "pattern":
        pattern_of(wanted.text, is_regex=wanted.is_regex)
        return _ResolvedTarget(wanted)
    if wanted.kind == "entity":
        return _ResolvedTarget(wanted, names=_names_anywhere(workspace, wanted.text))
    if wanted.kind == "change":
        return _ResolvedTarget(wanted, changes=frozenset([wanted.text]))
    directory = workspace.folders.directory_of(branch)
    of = head.read(workspace.machine.fs, directory)
    named = _name_of(workspace.machine.fs, directory, of, wanted.seq)
    if named is None:
        raise NotFound(
            f"There is no record {wanted.seq} in {branch}.",
            hint=f"{shell('log')} lists the records. What a pruned record said can be taken out by a pattern or an id.",
        )
    return _ResolvedTarget(wanted, named, redacted_store.changes_of(workspace.machine.fs, directory, of, wanted.seq))


def _names_anywhere(workspace: Workspace, id_: str) -> frozenset[str]:
    """Return the ids that an entity has or had in any store that can be read."""
    fs, former = workspace.machine.fs, dict[str, set[str]]()
    for store in _stores(workspace):
        with contextlib.suppress(KBError):  # it is named when it is redacted
            names = redacted_store.names_in(fs, store.directory, head.read(fs, store.directory))
            for key, olds in names.former.items():
                former.setdefault(key, set()).update(olds)
    return names_of([id_], former)


def _stores(workspace: Workspace) -> list[_Store]:
    """Return every store of the clone: those of branches, and those in the trash."""
    trashed = [(_branch_of(workspace, one.path, one.name), one.path) for one in in_trash(workspace)]
    return [
        *(_Store(name, "branch", directory) for name, directory in branches.stores(workspace)),
        *(_Store(name, str(path), path) for name, path in trashed),
    ]


def _branch_of(workspace: Workspace, path: Path, name: str) -> str:
    with contextlib.suppress(KBError):
        return head.read(workspace.machine.fs, path).branch
    return layout.branch_of(path.with_name(name))


def _names_of_fields(wanted: Wanted) -> frozenset[str]:
    """Return the names that claims have for fields; of a change, a name that another clone gave means just that."""
    found = set(wanted.fields)
    for one in wanted.fields:
        is_full = one in {MESSAGE, *CORE_FIELDS} or one.partition(".")[0] in OBJECT_FIELDS
        if wanted.kind != "change" or not is_full:
            found |= {f"{prefix}.{one}" for prefix in OBJECT_FIELDS}
    return frozenset(found)


def _survey(fs: Fs, directory: Path, of: Head, asked: _ResolvedTarget) -> Survey:
    return Survey(fs, directory, of, asked.target_in(fs, directory, of))


def _look(workspace: Workspace, store: _Store, asked: _ResolvedTarget) -> tuple[FoundStore | None, Survey]:
    fs, directory = workspace.machine.fs, store.directory
    found = _survey(fs, directory, head.read(fs, directory), asked)
    if found.is_empty:
        return None, found
    records = tuple(
        FoundRecord(seq, tuple(dict.fromkeys(one.words for one in places))) for seq, places in found.records.items()
    )
    shown = (records, found.snapshots(), found.quarantined(), found.also_in(), found.unused)
    return FoundStore(store.branch, store.place, *shown), found


def _refuse_kept(workspace: Workspace, surveys: Collection[Survey]) -> bool:
    """Refuse what no store can lose; return whether changes of any store are known elsewhere, and keep their ids.

    Raises: ``InvalidQuery`` for a pattern that is in what the id of a change is taken of.
    """
    is_shared = redacted_files.has_change_files(workspace) or bool(backup_refs.noted(workspace))
    is_shared = is_shared or any(one.redactor.is_shared for one in surveys)
    for one in surveys if is_shared else ():
        try:
            one.refuse_kept()
        except InvalidQuery:
            raise
        except KBError:  # the store is named when its turn comes
            continue
    return is_shared


def _documents(redactor: Redactor, wanted: Wanted) -> set[str]:
    """Return the documents that may hold it: all for a pattern, else those that stated what is taken out."""
    return redactor.sources if wanted.kind == "pattern" else {*redactor.paths}


def _look_through(
    workspace: Workspace, asked: _ResolvedTarget, decoded: redacted_files.Decoded
) -> tuple[_ResolvedTarget, bool]:
    """Look at all stores before anything is written.

    Return what is asked with the entities that hold it, and whether changes of any store are known elsewhere.

    Raises: ``InvalidQuery`` for a pattern that is part of a name in any store, or of what the id of a change is taken
    of.
    """
    holders, surveys = redacted_files.find_holders(workspace, asked.target_in_files(), decoded), list[Survey]()
    for store in _stores(workspace):
        try:
            found = _survey(
                workspace.machine.fs, store.directory, head.read(workspace.machine.fs, store.directory), asked
            )
        except InvalidQuery:
            raise
        except KBError:  # it is named when it is redacted
            continue
        holders |= found.redactor.holders
        surveys.append(found)
    is_shared = _refuse_kept(workspace, surveys)
    return msgspec.structs.replace(asked, holders=frozenset(holders)), is_shared


def _taken_out(workspace: Workspace, asked: _ResolvedTarget, others: Iterable[Change]) -> dict[str, TakenOut]:
    """Return what is taken out of the changes of all stores and of others, and was before, by their ids."""
    fs, target, found = workspace.machine.fs, asked.target_in_files(), dict[str, TakenOut]()
    for changes in (*(_changes_in(fs, store.directory) for store in _stores(workspace)), others):
        with contextlib.suppress(KBError):  # a store that cannot be read is named when it is redacted
            for one in changes:
                if (taken := taken_out(one, without_claims(one, target))) is not None:
                    found[one.id] = found[one.id] | taken if one.id in found else taken
    return found


def _changes_in(fs: Fs, directory: Path) -> Iterator[Change]:
    """Yield the changes of a store. Raises: what reading the store raises."""
    yield from claim_filling.in_memory(fs, directory, head.read(fs, directory)).all_changes()


def _redact_store(
    workspace: Workspace, store: _Store, asked: _ResolvedTarget, author: Author, sources: set[str], *, is_shared: bool
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
        found = _survey(fs, directory, of, asked)
        sources |= _documents(found.redactor, asked.wanted)
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
