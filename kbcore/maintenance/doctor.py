"""Diagnose an installation: git, settings, every store, its cache, and the file system below. Changes nothing.

Each thing that was looked at is a finding, also when it is well; what could not be looked at says so.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore.clock import flagged
from kbcore.errors import (
    Damaged,
    Incompatible,
    InvalidConfig,
    KBError,
    Misuse,
    ReadOnlyStore,
    SnapshotCorrupt,
    Unavailable,
)
from kbcore.errors.remedies import for_shell, shell
from kbcore.git import versions
from kbcore.git.commands import run_git
from kbcore.git.reflog import keeps_reflogs
from kbcore.limits import MAX_CONFIG_BYTES
from kbcore.maintenance.caches import cache_findings
from kbcore.maintenance.disk import MOUNTS, mount_findings, speed_findings
from kbcore.maintenance.findings import (
    DoctorFinding,
    as_json,
    by_severity,
    is_sound,
    of_config,
    of_error,
    of_proof,
    way_out,
    with_settings_once,
)
from kbcore.maintenance.proof import intact_seq
from kbcore.maintenance.redaction import unfinished
from kbcore.maintenance.search_documents import document_findings
from kbcore.process import interrupting
from kbcore.storage import files, frame, journal, layout, verify
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.storage.loss import NOT_WRITTEN, Loss
from kbcore.storage.trashed import ASIDE
from kbcore.storage.verify import Proof, Stats
from kbcore.store import branches, kb_folder, unread_stores
from kbcore.store.branches import lost, origins, trash
from kbcore.store.folders import BRANCHES
from kbcore.store.kb_folder import KB
from kbcore.store.settings_files import CONFIG, IGNORE
from kbcore.store.workspace import Workspace, check_initialised
from kbcore.sync.file_dates import slow_history, slow_words
from kbcore.text.wording import pluralize, some_of
from kbcore.view import replay

MANY_RECORDS: Final = 50_000
"""From so many records since the newest snapshot on, a store is worth compacting."""

MAX_PROVEN: Final = 20
MAX_PROVEN_BYTES: Final = 256 * 1024 * 1024
"""Of the stores in the trash, so many are proven, the newest first, and so many bytes together."""
_MAX_RUNS: Final = 10
"""Rows of records that are named in one finding."""

_EXPECTED = (Damaged, Incompatible, Unavailable, Misuse)


class StoreHealth(msgspec.Struct, frozen=True):
    """One branch's store: how far it goes, how large it is, and how much has come since the newest snapshot."""

    branch: str
    seq: int
    good_seq: int
    history_from: int
    size: Stats


class Diagnosis(msgspec.Struct, frozen=True):
    """All findings, the gravest first, and the stores that could be read."""

    findings: tuple[DoctorFinding, ...]
    stores: tuple[StoreHealth, ...]

    @property
    def is_sound(self) -> bool:
        """True when everything was looked at and nothing is wrong."""
        return is_sound(self.findings)

    def as_json(self) -> dict[str, Any]:
        """Return the diagnosis as plain JSON values."""
        stores: list[dict[str, Any]] = msgspec.to_builtins(self.stores)
        return {"ok": self.is_sound, "findings": as_json(self.findings), "stores": stores}


@interrupting.maintenance()
def diagnose(
    workspace: Workspace,
    others: Iterable[DoctorFinding] = (),
    *,
    probe: Fs | None = None,
    mounts: Path = MOUNTS,
    many_records: int = MANY_RECORDS,
) -> Diagnosis:
    """Look at everything; ``others`` are the front end's own findings, such as the state of the git hooks.

    The workspace need not be initialised. ``probe`` is what the disk is timed with, by a file in the cache; None
    leaves that out. ``mounts`` is where Linux lists file systems; from ``many_records`` since
    the newest snapshot on, compaction is advised. Raises nothing for what it finds.
    """
    found = [
        *_guarded("git", partial(_git, workspace)),
        *_guarded("git", partial(_history, workspace)),
        *_guarded("settings", partial(_settings, workspace)),
        *others,
        *_guarded("disk", partial(mount_findings, workspace.repo.kb_root, mounts)),
        *_guarded("disk", partial(_speed, workspace, probe)),
        *_guarded("stores", partial(_place, workspace)),
        *_guarded("stores", partial(_writable, workspace)),
        *_guarded("stores", partial(_strangers, workspace)),
        *_guarded("stores", partial(_trash, workspace)),
        *_guarded("stores", partial(_redacting, workspace)),
        *_guarded("stores", partial(_lost, workspace)),
        *_guarded("stores", partial(_beside, workspace)),
        *_guarded("cache", partial(document_findings, workspace)),
    ]
    stores: list[StoreHealth] = []
    for name in _names(workspace):
        found += _guarded("journal", partial(_store, workspace, name, stores), name)
        found += _guarded("cache", partial(cache_findings, workspace, name), name)
    found += [_advice(store) for store in stores if store.size.records_since_snapshot >= many_records]
    return Diagnosis(by_severity(with_settings_once(found)), tuple(stores))


def _advice(store: StoreHealth) -> DoctorFinding:
    size = store.size
    records = pluralize(size.records_since_snapshot, "record")
    since = f"{records} ({size.bytes_since_snapshot} bytes) since the newest snapshot"
    message = f"{since}: the store is slow to prove, and to open without a cache."
    return DoctorFinding(
        "journal", "warning", "compact_advised", message, f"{shell('compact', lead='Run')}.", store.branch
    )


def _guarded(check: str, find: Callable[[], Iterator[DoctorFinding]], branch: str = "") -> list[DoctorFinding]:
    """Return what a check finds; KB's error in it is one more finding."""
    found: list[DoctorFinding] = []
    try:
        found.extend(find())
    except InvalidConfig as error:
        found += of_config(check, error)
    except _EXPECTED as error:
        found.append(of_error(check, error, branch))
    return found


def _git(workspace: Workspace) -> Iterator[DoctorFinding]:
    repo, env = workspace.repo, workspace.machine.env
    version = run_git(repo, env, ["--version"]).output.decode("utf-8", "replace").strip()
    yield DoctorFinding("git", "ok", "version", f"{version}; {workspace.head().branch} is checked out.")
    yield from _git_version(version)


def _git_version(said: str) -> Iterator[DoctorFinding]:
    found = versions.parsed(said)
    oldest = ".".join(map(str, versions.OLDEST))
    if found is not None and found < versions.OLDEST:
        message = f"{said} is older than {oldest}, the oldest that KB is tried with."
        remedy = f"Install a newer git; it also brings {', '.join(versions.lacking(found))}."
        yield DoctorFinding("git", "warning", "git_too_old", message, remedy)


def _history(workspace: Workspace) -> Iterator[DoctorFinding]:
    slow = slow_history(workspace)
    if slow:
        yield DoctorFinding("git", "warning", "slow_history", *slow_words(workspace, slow))


def _settings(workspace: Workspace) -> Iterator[DoctorFinding]:
    kb_dir, fs = workspace.folders.kb_dir, workspace.machine.fs
    if kb_dir.is_symlink():
        check_initialised(workspace)  # refuses a link
    is_older = kb_folder.kind_of(fs, workspace.folders.shown_branches) == "folder"
    has_settings = (workspace.settings_dir / CONFIG).is_file() or workspace.staged_settings
    if not is_older and not workspace.folders.has_branches_dir() and not has_settings:
        message = f"There is no {KB} in {workspace.repo.kb_root}."
        yield DoctorFinding("settings", "error", "not_initialised", message, f"{shell('init', lead='Run')}.")
        return
    try:
        config, schema = workspace.config, workspace.schema
    except InvalidConfig as error:
        yield from of_config("settings", error)
    else:
        wait = f"a writer waits up to {config.lock_wait_s:g} s for another"
        types = f"{len(schema.entities)} entity types, {len(schema.edges)} edge types"
        message = f"{types}; {origins.default_line(workspace)}; {wait}."
        yield DoctorFinding("settings", "ok", "settings", message)
    if workspace.staged_settings:
        path = f"{KB}/{CONFIG}"
        message = f"The worktree lacks {path}: the settings in git's index are in force."
        remedy = (
            f"`git sparse-checkout add {KB}` checks it out; without a sparse checkout,"
            f" `git update-index --no-skip-worktree {path}` and `git checkout -- {path}` do."
        )
        yield DoctorFinding("settings", "warning", "settings_not_checked_out", message, remedy, file=path)
    for cut in workspace.cut_values():
        message = f"{cut.place}: {cut.message}"
        yield DoctorFinding("settings", "warning", cut.code, message, cut.hint, file=cut.source, line=cut.line)
    if notice := workspace.user.notice:
        yield DoctorFinding("settings", "note", "no_own_settings", notice)
    data = files.read_file(fs, kb_dir / IGNORE, MAX_CONFIG_BYTES)
    if data is not None and not {f"/{BRANCHES}", BRANCHES} & {*data.decode("utf-8", "replace").split()}:
        message = f"{KB}/{IGNORE} does not keep a link {KB}/{BRANCHES} out of git."
        remedy = f"Add a line `/{BRANCHES}`, without a slash at its end, or {shell('init', lead='run')}, which adds it."
        yield DoctorFinding("settings", "warning", "not_ignored", message, remedy)


def _speed(workspace: Workspace, probe: Fs | None) -> Iterator[DoctorFinding]:
    if probe is not None:
        yield from speed_findings(probe, workspace.folders.cache_dir, workspace.machine.clock)


def _redacting(workspace: Workspace) -> Iterator[DoctorFinding]:
    """Say so where a redaction is not finished, and what could not be done."""
    if begun := unfinished(workspace):
        at, failed = begun
        message = (
            f"A redaction that began {at} is not finished: stores or change files may hold what it was to take out."
        )
        message = " ".join([message, *failed])
        remedy = f"Give the same {shell('redact')} again: it goes through all of them."
        yield DoctorFinding("stores", "warning", "redaction_unfinished", message, remedy)


def _trash(workspace: Workspace) -> Iterator[DoctorFinding]:
    """Name the stores in the trash, and say of each whether it proves, as far as the bounds go."""
    folder = workspace.folders.branches_dir / branches.TRASH
    there = [*trash.held(workspace, max_proven=MAX_PROVEN, max_bytes=MAX_PROVEN_BYTES)]
    if there:
        message = f"{pluralize(len(there), 'store')} that KB moved away to {folder}."
        remedy = f"{shell('gc', '--empty-trash')} deletes the old ones."
        yield DoctorFinding("stores", "note", "trash", message, remedy, file=str(folder))
    for one in [one for one in there if one.damage is not None]:
        when = f"moved to the trash on {trash.moment_of(one.entry)}"
        command = shell("branch", "restore", one.branch, *["--even-damaged"] * bool(one.damage))
        if one.damage:
            message = f"The store of {one.branch} that was {when} does not prove: {one.damage}."
            remedy = f"{command} brings it back, to be repaired" if one.is_newest else "Keep another one"
            remedy += ". If it is not needed, delete it."
            yield DoctorFinding("stores", "warning", "trash_damaged", message, remedy, one.branch, str(one.entry.path))
        else:
            message = f"The store of {one.branch} that was {when} proves up to seq {one.seq}."
            remedy = f"{command} brings it back." if one.is_newest else ""
            yield DoctorFinding("stores", "note", "trash_sound", message, remedy, one.branch, str(one.entry.path))
    rest = [one for one in there if one.damage is None]
    if rest:
        shown = some_of([one.entry.path.name for one in rest], 3)
        message = f"{pluralize(len(rest), 'store')} in the trash, too many or too large to be proven here: {shown}."
        remedy = f"{shell('branch', 'restore')} proves a store before it brings it back."
        yield DoctorFinding("stores", "note", "trash_not_proven", message, remedy, file=str(folder))


def _names(workspace: Workspace) -> list[str]:
    try:
        return [name for name, _ in branches.stores(workspace)]
    except KBError:
        # ``_strangers`` has found the same, and says so.
        return []


def _store(workspace: Workspace, branch: str, stores: list[StoreHealth]) -> Iterator[DoctorFinding]:
    fs, directory = workspace.machine.fs, workspace.folders.directory_of(branch)
    proof = verify.prove(fs, directory)
    good_seq = proof.good_seq
    if proof.head is not None and not proof.is_sound:
        good_seq = intact_seq(fs, directory, proof.head)
    loss = None
    with contextlib.suppress(KBError):  # what cannot be read is in the proof
        loss = lost.loss_of(workspace, branch)
    if loss:
        yield _of_loss(workspace, loss, way_out(proof, directory, branch, loss))
    yield from of_proof(proof, directory, branch, loss)
    if proof.head is None:
        return
    head, size = proof.head, verify.stats(fs, directory, proof.head)
    stores.append(StoreHealth(branch, head.seq, good_seq, head.first_seq - 1, size))
    if proof.is_sound:
        yield DoctorFinding(
            "journal", "ok", "sound", f"Every byte up to seq {head.seq} is as it was written.", "", branch
        )
    else:
        yield DoctorFinding("journal", "note", "good_seq", _what_is_good(fs, directory, proof, good_seq), "", branch)
    if proof.is_sound:
        yield from _times(fs, directory, head, branch)
    yield from _refusals(workspace, [directory, directory / layout.LOCK, directory / head.head.file], branch)


def _of_loss(workspace: Workspace, loss: Loss, way_on: str = "") -> DoctorFinding:
    """Return the finding for a store that lacks acknowledged records; ``way_on`` is as in ``Loss.remedy``."""
    found = of_error("stores", lost.error_of(workspace, loss, way_on), loss.branch)
    return msgspec.structs.replace(found, message=f"{loss.sentence()} {NOT_WRITTEN}")


def _times(fs: Fs, directory: Path, head: Head, branch: str) -> Iterator[DoctorFinding]:
    """Yield a note on the records whose times are not those of their writing."""
    times = ((entry.frame.seq, *frame.times_of(entry.frame.rec)) for entry in journal.scan(fs, directory, head))
    found = flagged(times)
    for is_ahead, why, or_else in ((True, "ahead", ", or that of a later record was behind"), (False, "behind", "")):
        seqs = [item.seq for item in found if item.is_ahead is is_ahead]
        if seqs:
            verb = "was" if len(seqs) == 1 else "were"
            message = f"{_records(seqs)} {verb} written while the clock of the machine was {why}{or_else}."
            remedy = "Nothing to do: the order is by seq, and a time that you give with `--at` skips them."
            yield DoctorFinding("journal", "note", f"clock_{why}", message, remedy, branch)


def _records(seqs: list[int]) -> str:
    """Return the records in words, those of a row as one."""
    runs: list[list[int]] = []
    for seq in seqs:
        if runs and runs[-1][-1] == seq - 1:
            runs[-1][1:] = [seq]
        else:
            runs.append([seq])
    shown = [" to ".join(map(str, run)) for run in runs[:_MAX_RUNS]]
    more = f" and {pluralize(len(runs) - _MAX_RUNS, 'more row')}" if len(runs) > _MAX_RUNS else ""
    return f"{'Record' if len(seqs) == 1 else 'Records'} {', '.join(shown)}{more}"


def _what_is_good(fs: Fs, directory: Path, proof: Proof, seq: int) -> str:
    """Say which records are good, and which state can be asked for: they are not the same after pruned history."""
    head = proof.head
    if head is None or seq < head.first_seq <= head.seq:
        return "No record is known to be what was acknowledged."
    try:
        begins = replay.start(fs, directory, head).seq
    except _EXPECTED:
        return f"The records up to seq {seq} are good, but what they build on is not: only a cached view can answer."
    if seq == head.seq:
        is_read = all(one.severity == "note" or one.code == SnapshotCorrupt.code for one in proof.findings)
        return f"Every record up to seq {seq} is good{', and everything can be read' * is_read}."
    if seq < begins:
        return f"The records up to seq {seq} are good, but history begins at seq {begins}."
    return f"The records up to seq {seq} are good and readable with --at {seq}."


def _place(workspace: Workspace) -> Iterator[DoctorFinding]:
    """Say where the stores are and why."""
    place = workspace.folders.place_of_stores()
    message = place.message()
    if place.remedy and place.place == "git":
        yield DoctorFinding("stores", "warning", "store_setting_unused", message, place.remedy, file=str(place.folder))
    else:
        yield DoctorFinding("stores", "ok", "place", message, place.remedy, file=str(place.folder))


def _refusals(workspace: Workspace, paths: Iterable[Path], branch: str = "") -> Iterator[DoctorFinding]:
    """Find what this user may not write to; whatever is not there is made when it is needed."""
    fs = workspace.machine.fs
    for path in paths:
        with files.explained(path, "look at", reading=True):
            try:
                code = fs.refusal_to_write(path) if fs.lstat(path) else 0
            except FileNotFoundError:
                continue
        if code:
            yield _refusal(workspace, path, code, branch)
            return


def _refusal(workspace: Workspace, path: Path, code: int, branch: str = "") -> DoctorFinding:
    reason, hint = files.refusal(OSError(code, os.strerror(code)), path)
    message = f"Nothing can be written, because {path} cannot be written to: {reason}. Queries work."
    refused = ReadOnlyStore(message, hint=hint, data={"file": str(path)})
    return DoctorFinding(
        "stores", "error", refused.code, message, workspace.folders.refused(refused).hint, branch, str(path)
    )


def _writable(workspace: Workspace) -> Iterator[DoctorFinding]:
    """Find what keeps every branch from being written, and new ones from being made."""
    if refusal := workspace.folders.refusal_to_write():
        yield _refusal(workspace, *refusal)
    folder = workspace.folders.usual_cache_dir
    for one in _refusals(workspace, [folder]):
        message = (
            f"{folder} cannot be written to: views are kept in {workspace.folders.cache_dir}, for this user alone."
        )
        yield msgspec.structs.replace(one, check="cache", severity="warning", code="cache_read_only", message=message)


def _lost(workspace: Workspace) -> Iterator[DoctorFinding]:
    """Find the stores that lack acknowledged records, as the second witness shows it, and whether there is one."""
    place = workspace.place
    noted = list(place.entries())
    for loss in lost.losses(workspace):
        if loss.kind == "gone":
            yield _of_loss(workspace, loss)
    for name in _names(workspace):
        for copy in workspace.witness(name).copies:
            remedy = f"{shell('doctor', '--new-epoch', '--branch', name, lead='Run')} in the copy."
            yield DoctorFinding("stores", "warning", "store_copied", for_shell(copy), remedy, name)
    for damaged in place.damaged():
        yield DoctorFinding(
            "stores",
            "warning",
            "witness_damaged",
            damaged.message(),
            for_shell(damaged.remedy()),
            damaged.branch,
            str(damaged.path),
        )
    for one in lost.missing_places(workspace):
        now = "there is no store" if one.now is None else f"the store ends at {one.now}"
        message = (
            f"{one.branch} was seen at seq {one.seen} in {one.git_dir}, which does not exist any more; here {now}."
        )
        remedy = "If this repository is to replace that one, the records in between are missing."
        yield DoctorFinding("stores", "note", "seen_elsewhere", message, remedy, one.branch)
    if noted:
        message = f"The last acknowledged records of {pluralize(len(noted), 'branch')} are noted in {place.folder()}."
        yield DoctorFinding("stores", "ok", "witness", message)
        return
    reason = place.obstacle()
    if reason and _names(workspace):
        message = "No acknowledged record is noted outside the stores: a store that goes back is not noticed."
        yield DoctorFinding(
            "stores", "note", "no_witness", f"{message} {reason}", "Give KB a home folder that it can write to."
        )


def _beside(workspace: Workspace) -> Iterator[DoctorFinding]:
    """Find what lies in the worktree where an older KB had its stores, and is not read."""
    for one in unread_stores.find_unread(workspace.folders, asks_git=True):
        check = "git" if one.code == "store_tracked" else "stores"
        yield DoctorFinding(check, one.severity, one.code, one.message, one.remedy, file=one.path)


def _unlogged(workspace: Workspace, there: Iterable[str]) -> Iterator[DoctorFinding]:
    """Say where only a look of KB shows that git deleted a branch and made it again."""
    if {*there} - {workspace.default_branch} and not keeps_reflogs(workspace.repo, workspace.machine.env):
        message = (
            "git keeps no reflogs here. A branch that is deleted and made again keeps the store of the earlier one, "
            "unless KB listed the branches in between."
        )
        after = f"{shell('gc', lead='run')} after you delete a branch"
        remedy = f"`git config core.logAllRefUpdates true` has git keep them. Or {after}."
        yield DoctorFinding("git", "note", "no_reflogs", message, remedy)


def _strangers(workspace: Workspace) -> Iterator[DoctorFinding]:
    """Find other stores than those in use: those of branches that are gone, and what crashes left."""
    fs, parent = workspace.machine.fs, workspace.folders.branches_dir
    if not workspace.folders.has_branches_dir():
        return
    with files.explained(parent, "list", reading=True):
        entries = sorted(fs.listdir(parent))
    aside = [name.removeprefix(ASIDE) for name in entries if name.startswith(ASIDE)]
    if aside:
        message = f"{pluralize(len(aside), 'store')} that made room when a process ended: {some_of(aside, 3)}."
        yield DoctorFinding(
            "stores", "note", "store_aside", message, f"{shell('gc')} puts them back.", file=str(parent)
        )
    building = [name for name in entries if name.startswith(layout.BUILDING_PREFIX)]
    if building:
        message = (
            f"{pluralize(len(building), 'unfinished store')} of processes that ended early: {some_of(building, 3)}"
        )
        yield DoctorFinding(
            "stores", "note", "unfinished_store", message, f"{shell('gc')} removes them.", file=str(parent)
        )
    living = branches.living(workspace)
    there = [name for name, _ in branches.stores(workspace)]
    for name in there:
        if (suspicion := branches.suspicion(workspace, name)) and name in living:
            code = "doubtful_store" if suspicion.is_doubted else "earlier_store"
            yield DoctorFinding("stores", "warning", code, suspicion.message, suspicion.remedy, name)
        if name not in living:
            message = f"{name} is no branch of git and checked out nowhere."
            yield DoctorFinding(
                "stores",
                "note",
                "outdated_store",
                message,
                f"{shell('gc')} moves its store to the trash.",
                name,
            )
    yield from _unlogged(workspace, there)
