"""Run a sync: scan, work out the difference, commit it as one changeset. Starts over when HEAD moves meanwhile."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from kbcore import collector, limits
from kbcore.answers import Outcome
from kbcore.errors import BranchMoved, InvalidQuery, Problem
from kbcore.extract import registry
from kbcore.extract.facts import Facts, FileProblem, Severity
from kbcore.extract.settings import EDGE_NAMES
from kbcore.model import NoteOnFile
from kbcore.state import Stamp
from kbcore.store import Author, BranchStore, Draft, Request
from kbcore.sync import scan as scanning
from kbcore.sync.difference import RECONSIDERED, Difference, difference, reads
from kbcore.sync.entities import Reading
from kbcore.sync.scan import FileStamp, Found, Known, Scan, Wanted
from kbcore.sync.stamps import path_of, read_stamps, write_stamps
from kbcore.view.tables import SOURCE, source_of
from kbcore.view.view import View
from kbcore.workspace import CACHE, Workspace

ATTEMPTS = 3


class SyncOptions(msgspec.Struct, frozen=True):
    """``paths`` limits the sync to files and folders (from the root); ``rebuild`` reads every file again."""

    paths: tuple[str, ...] = ()
    dry_run: bool = False
    rebuild: bool = False


class SyncAnswer(msgspec.Struct, frozen=True):
    """What a sync came to. ``problems`` pairs a path with what its author should know."""

    outcome: Outcome
    scanned: int
    changed: int
    removed: int
    bad: int
    problems: tuple[tuple[str, FileProblem], ...]
    unresolved: tuple[tuple[str, str, str], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the answer in the shape of the contract."""
        outcome = self.outcome
        return {
            "branch": outcome.branch,
            "seq": outcome.seq,
            "dry_run": outcome.dry_run,
            "files": {
                "scanned": self.scanned,
                "changed": self.changed,
                "removed": self.removed,
                "bad": self.bad,
            },
            "created": len(outcome.created),
            "updated": len(outcome.updated),
            "deleted": len(outcome.deleted),
            "edges": msgspec.to_builtins(outcome.edges),
            "unresolved": [dict(zip(("from", "target", "source"), one, strict=True)) for one in self.unresolved],
            "problems": [{"path": path, **msgspec.to_builtins(problem)} for path, problem in self.problems],
            "warnings": list(outcome.warnings),
        }


class _Pending(msgspec.Struct):
    """The files that differ from the state: what is to be read, and what is gone."""

    readings: list[Reading]
    gone: list[str]


def sync(workspace: Workspace, branch: str, author: Author, options: SyncOptions) -> SyncAnswer:
    """Bring a branch's store to what the files of the worktree say.

    Raises: ``InvalidQuery`` when another branch is checked out, or no files at all; ``BranchMoved`` when HEAD keeps
    moving; ``InvalidConfig``; what committing raises.
    """
    if not workspace.repo.has_worktree:
        raise InvalidQuery("A bare repository has no files to sync.", hint="Run it in one of its worktrees.")
    current = workspace.head().branch
    if branch != current:
        raise InvalidQuery(
            f"Sync reads the files of {current}, which is checked out; it does not write them to {branch}.",
            hint=f"Run `git switch {branch}` first, or leave --branch out.",
        )
    for attempt in range(ATTEMPTS):
        try:
            with collector.paused():
                return _Sync(workspace, branch, options).run(author)
        except BranchMoved:
            if attempt == ATTEMPTS - 1 or workspace.head().branch != branch:
                raise
    raise AssertionError("the last attempt returns or raises")


class _Sync:
    """One attempt of a sync."""

    def __init__(self, workspace: Workspace, branch: str, options: SyncOptions) -> None:
        self.workspace = workspace
        self.branch = branch
        self.options = options
        self.store: BranchStore = workspace.store(branch)
        self.root = workspace.repo.worktree
        self.wants = wanted(workspace)
        self.scan = Scan({}, {})
        self.seen_seq = 0
        self.last: Difference | None = None
        self.pending = _Pending([], [])

    def run(self, author: Author) -> SyncAnswer:
        fs = self.workspace.machine.fs
        stamps_path = path_of(self.workspace.kb_dir / CACHE, self.root)
        stamps = {} if self.options.rebuild else read_stamps(fs, stamps_path)
        taken_in = self.store.read(lambda view: self._look(view, stamps))
        outcome = self._commit(author) if self._differs(taken_in) else self._nothing()
        if not self.options.dry_run and self.scan.stamps != stamps:
            write_stamps(fs, stamps_path, self.scan.stamps)
        return self._answer(outcome)

    def _look(self, view: View, stamps: Mapping[str, FileStamp]) -> dict[str, tuple[str, str, bool]]:
        """Scan the files, and return what the state at this view's seq has taken in of them."""
        taken_in = _taken_in(view)
        known = {} if self.options.rebuild else {path: (one[0], one[1]) for path, one in taken_in.items()}
        now_ns = self.workspace.machine.clock.epoch_ns()
        self.scan = scanning.scan(self.root, self.wants, Known(stamps, known, now_ns))
        self.seen_seq = view.seq
        return taken_in

    def _differs(self, taken_in: Mapping[str, tuple[str, str, bool]]) -> bool:
        return self.options.rebuild or any(self._changed(taken_in)) or any(self._gone(taken_in))

    def _changed(self, taken_in: Mapping[str, tuple[str, str, bool]]) -> list[Found]:
        """Return the files to take in: those whose content or extractor differs, and those to look at again."""
        changed = []
        for path, found in self.scan.files.items():
            digest, mark, is_open = taken_in.get(path, ("", "", False))
            if self._is_named(path) and (
                (digest, mark) != (found.hash, found.wanted.mark) or is_open or self.options.rebuild
            ):
                changed.append(found)
        return changed

    def _gone(self, taken_in: Mapping[str, tuple[str, str, bool]]) -> list[str]:
        missing = (path for path in taken_in if path not in self.scan.files and self._is_named(path))
        return [path for path in missing if not self.scan.is_blind_to(path)]

    def _is_named(self, path: str) -> bool:
        named = self.options.paths
        return not named or any(one in {"", path} or path.startswith(one + "/") for one in named)

    def _commit(self, author: Author) -> Outcome:
        request = Request(
            digest=hashlib.sha256(self.branch.encode()).hexdigest(),
            message="sync",
            dry_run=self.options.dry_run,
            limit_bytes=limits.MAX_RECORD_BYTES,
        )
        guard = self.workspace.guard(self.branch)
        return self.store.commit(author, request, self._plan, guard=guard, branch=self.branch)

    def _plan(self, view: View, stamp: Stamp) -> Draft:
        """Work out the difference on the state that the commit will stand on."""
        taken_in = _taken_in(view)
        if view.seq != self.seen_seq:
            # Another sync may have taken in files that this scan was too early to see.
            taken_in = self._look(view, self.scan.stamps)
        readings = []
        for found in self._changed(taken_in):
            whole = scanning.read_facts(self.root, found)
            self.scan.files[found.path] = whole
            readings.append(Reading(found.path, whole.hash, found.wanted.mark, whole.facts or Facts()))
        gone = self._gone(taken_in)
        self.pending = _Pending(readings, gone)
        owned = view.stated_by([*(reading.path for reading in readings), *gone])
        state = view.gather(reads(readings, gone, owned))
        ids = _ids_of_paths(view, readings)
        self.last = difference(readings, gone, state, self.workspace.schema, stamp, ids_of_path=ids)
        return Draft(ops=self.last.ops, changes=self.last.changes, warnings=self.last.warnings)

    def _nothing(self) -> Outcome:
        head = self.store.head()
        request = Request(dry_run=self.options.dry_run)
        return Outcome.unchanged_at(self.branch, head.seq, dry_run=request.dry_run)

    def _answer(self, outcome: Outcome) -> SyncAnswer:
        unresolved = self.store.read(unresolved_links)
        known = self.store.read(lambda view: known_problems(view, {one.path for one in self.pending.readings}))
        found = self.last.problems if self.last else ()
        return SyncAnswer(
            outcome=outcome,
            scanned=sum(self._is_named(path) for path in self.scan.files),
            changed=len(self.pending.readings),
            removed=len(self.pending.gone),
            bad=self.store.read(lambda view: int(view.rows("select count(*) from source where not is_ok")[0][0])),
            problems=(*self.scan.blind.items(), *self.scan.notes.items(), *found, *known),
            unresolved=tuple(unresolved),
        )


def wanted(workspace: Workspace) -> list[Wanted]:
    """Return the extractors in force with their settings. Raises ``InvalidConfig``."""
    extra: dict[str, Any] = {EDGE_NAMES: sorted(workspace.schema.edges)}
    loaded = registry.load(workspace.config.switched_off).values()
    meaning = msgspec.json.encode(workspace.schema, order="deterministic")
    return scanning.wanted(loaded, workspace.config.extractors, extra, meaning)


def _taken_in(view: View) -> dict[str, tuple[str, str, bool]]:
    """Return, for each file of the state, hash, extractor mark, and whether it waits for another file."""
    waiting = " or ".join(f"contains(problems::varchar, '\"{code}\"')" for code in sorted(RECONSIDERED))
    rows = view.rows(f"select path, hash, extractor, {waiting} from source")  # noqa: S608 - codes are constants
    return {path: (digest, mark, is_open) for path, digest, mark, is_open in rows}


def _ids_of_paths(view: View, readings: Sequence[Reading]) -> dict[str, list[str]]:
    """Return the entities of documents that links name by path and that are not read now."""
    read = {reading.path for reading in readings}
    targets = sorted({link.target for one in readings for link in one.facts.links if link.is_path} - read)
    ids: dict[str, list[str]] = {}
    if targets:
        sql = "select path, id from node where path in (select unnest(?::varchar[])) order by id"
        for path, key in view.rows(sql, [targets]):
            ids.setdefault(path, []).append(key)
    return ids


def known_problems(view: View, read: Collection[str]) -> list[tuple[str, FileProblem]]:
    """Return what stays wrong in files that were not read now, because they did not change, in order."""
    rows = view.rows(f"select {', '.join(SOURCE)} from source where problems::varchar <> '[]' order by path")  # noqa: S608
    return [
        (source.path, FileProblem(one.line, one.code, one.message, one.hint, severity_of(one)))
        for source in map(source_of, rows)
        if source.path not in read
        for one in source.problems
    ]


def severity_of(note: NoteOnFile) -> Severity:
    """Return how bad a noted problem is; a word that this version does not know counts as an error."""
    return "warning" if note.severity == "warning" else "error"


def unresolved_links(view: View) -> list[tuple[str, str, str]]:
    """Return the links that wait for an end, as (from, target, source), in order."""
    sql = (
        "select from_id, to_id, source, statements, from_id in (select id from node) from link where not stands "
        "order by from_id, to_id, type, source"
    )
    found = []
    for from_id, to_id, source, _, has_from in view.rows(sql):
        found.append((from_id, to_id, source) if has_from else (to_id, from_id, source))
    return found


def normal_paths(paths: Sequence[str], to_root: Callable[[str], str | None]) -> tuple[str, ...]:
    """Return the paths that a user named, relative to the root.

    Raises: ``InvalidQuery`` for a path outside the repository.
    """
    named, problems = [], []
    for number, path in enumerate(paths):
        inside = to_root(path)
        if inside is None:
            problems.append(Problem(f"$.paths[{number}]", "outside", f"{path} is not inside the repository."))
        else:
            named.append(inside)
    if problems:
        raise InvalidQuery(problems[0].message, details=problems)
    return tuple(named)
