"""Differences of a worktree's files from the state of a branch; sync and status use the same.

A file has changed when its content is not what was recorded, or when another extractor or other settings read it now.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kbcore.errors import Problem
from kbcore.errors.remedies import kb
from kbcore.extract import changes, registry
from kbcore.extract.settings import EDGE_NAMES
from kbcore.extract.sources.extractor import NAME as SOURCES
from kbcore.git import staging
from kbcore.ids import path_text
from kbcore.model.graph import CLIENT, FORMER_IDS, SyncedFile
from kbcore.store.workspace import Workspace
from kbcore.sync import scan as scanning
from kbcore.sync import wanted_files
from kbcore.sync.active_extractors import SETTINGS, as_defined, document_extractors, extractors_and_faults
from kbcore.sync.answer import globs_line
from kbcore.sync.begun_renames import BegunRename, read_begun
from kbcore.sync.difference import RECONSIDERED
from kbcore.sync.paths import check_known, is_named
from kbcore.sync.scan import FileStamp, FoundFile, Scan, ScanState
from kbcore.sync.walk import SKIPPED_FOLDERS
from kbcore.sync.wanted_files import ActiveExtractor
from kbcore.sync.workers import Workers
from kbcore.text.escaping import in_quotes
from kbcore.text.globs import glob_set
from kbcore.text.problems import FileProblem
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcore.view.view import View  # it imports duckdb, and who only asks for what is wanted needs none

_CODES: Final = " or ".join(f"contains(problems::varchar, '\"{code}\"')" for code in sorted(RECONSIDERED))
_OPEN: Final = f"(problems::varchar <> '[]' and ({_CODES}))"
"""The first part is seldom true, and found without looking into every text."""

_EMPTY: Final = hashlib.sha256(b"").hexdigest()
_KNOWN: Final = ("path", "hash", "extractor", "problems")
_FEW_FOLDERS: Final = 20
_ELSEWHERE: Final = {
    ".md": ("Markdown", "extractors.markdown.paths.req"),
    ".feature": ("Gherkin", "extractors.gherkin.paths"),
}
"""Endings of documents that are looked for where nothing is read: what they are, and the setting with their folders."""
_MOST_LOOKED_AT: Final = 10_000
"""The most files searched for documents that no extractor reads."""
_BELOW: Final = "exists (select 1 from unnest($1::varchar[]) as t(folder) where starts_with(path, t.folder || '/'))"


class ScanScope(msgspec.Struct, frozen=True):
    """The top of a worktree, what extractors want there, and the paths that a scan is limited to."""

    root: Path
    wants: tuple[ActiveExtractor, ...]
    off: frozenset[str] = frozenset()
    """The names of the extractors that are switched off: their files are not kept."""

    faults: tuple[Problem, ...] = ()
    """Reasons why not all settings of the project are in force, or some extractors cannot be used."""

    named: tuple[str, ...] = ()
    rebuild: bool = False
    """Look at every file again, changed or not."""

    touched: tuple[str, ...] | None = None
    """The only paths at or below which something may have changed since the last sync; None: anything may have."""

    believed: tuple[str, ...] | None = None
    """Files that are gone or empty count only at or below these paths: others may be being saved. None: all count."""

    begun: tuple[BegunRename, ...] = ()
    """Renames whose files may be written and whose record may be missing."""

    is_sparse: bool = False
    """git is set to leave files out of the worktree."""

    not_checked_out: Callable[[], Collection[str]] = tuple
    """Returns the change files that git leaves out of the worktree."""

    @property
    def below(self) -> tuple[str, ...] | None:
        """The paths that a scan is limited to; None: it looks everywhere."""
        return self.touched if self.touched is not None else self.named or None


class PendingFiles(msgspec.Struct, frozen=True):
    """The files that a sync has to read, of the named paths, at the seq of the state.

    ``again`` are files that did not change and may yet mean something else now, because of other files; ``doubted``
    are gone or empty, and not believed to be.
    """

    seq: int
    scan: Scan
    scanned: int
    changed: tuple[FoundFile, ...]
    again: tuple[FoundFile, ...]
    gone: tuple[str, ...]
    doubted: tuple[str, ...] = ()
    faults: tuple[Problem, ...] = ()
    """Those of the place, and the extractors that files were read by and no package has."""


def place_of(workspace: Workspace) -> ScanScope:
    """Return where a sync of this worktree looks. Raises ``InvalidConfig``."""
    wants, problems = extractors_and_faults(workspace)
    root = workspace.repo.worktree
    begun = read_begun(workspace.machine.fs, workspace.folders.cache_dir, root)
    return ScanScope(
        root,
        wants,
        frozenset(workspace.config.switched_off),
        tuple(problems),
        begun=begun,
        is_sparse=staging.is_sparse(workspace.repo),
        not_checked_out=partial(staging.not_checked_out, workspace.repo, workspace.machine.env, changes.FOLDER),
    )


def nothing_read(workspace: Workspace) -> str:
    """Return that no file is where the extractors look, and how many documents are elsewhere; "" where one is.

    Raises: ``InvalidConfig``.
    """
    wants, elsewhere = document_extractors(workspace), dict[str, list[str]]()
    for path in _paths(workspace.repo.worktree):
        if wanted_files.is_wanted(wants, path):
            return ""
        if (kind := posixpath.splitext(path)[1].lower()) in _ELSEWHERE:
            elsewhere.setdefault(kind, []).append(path)
    globs = [glob for want in wants for glob, _ in want.globs]
    said = f"Nothing is read: no file is where the extractors look ({globs_line(globs)})."
    proposed = f"{kb('sources', 'detect')} proposes settings for what is elsewhere."
    if elsewhere:
        kind, paths = max(elsewhere.items(), key=lambda found: len(found[1]))
        name, setting = _ELSEWHERE[kind]
        are = "is" if len(paths) == 1 else "are"
        said += f" {pluralize(len(paths), f'{name} file')} {are} elsewhere, such as {in_quotes(paths[0])}."
        folders = [posixpath.dirname(path) for path in paths]
        folder = posixpath.commonpath(folders) or folders[0]
        own = json.dumps([f"{folder}/**/*{kind}" if folder else f"*{kind}"], ensure_ascii=False)
        command = f"kb config set {setting} {shlex.quote(own)}"
        return f"{said} Move them, or name their folder: `{command}`. {proposed}"
    return f"{said} Write documents there, or name their folders in {SETTINGS}. {proposed}"


def _paths(root: Path) -> Iterator[str]:
    """Yield the first files below a folder in order, but none of hidden folders, as paths from it."""
    left = _MOST_LOOKED_AT
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(one for one in folders if one not in SKIPPED_FOLDERS and not one.startswith("."))
        place = Path(folder).relative_to(root)
        for name in sorted(files)[:left]:
            yield path_text((place / name).as_posix())
        left -= len(files)
        if left <= 0:
            return


def find_pending(
    view: View | None,
    place: ScanScope,
    stamps: Mapping[str, FileStamp],
    now_ns: int,
    *,
    workers: Workers | None = None,
) -> PendingFiles:
    """Scan the files, and return how they differ from what the state of this view has recorded (None: nothing).

    ``now_ns`` is the time in nanoseconds since 1970. A file whose content the state does not know is read, one of many
    by ``workers``, where these are given.

    Raises: ``InvalidQuery`` for a named path at which there is nothing and of which nothing is known.
    """
    if view:
        place = msgspec.structs.replace(place, wants=as_defined(place.wants, view))
    below = place.below
    rows = recorded_files(view, below) if view else []
    taken_in = {path: (digest, mark) for path, digest, mark, _ in rows}
    waiting = {path for path, _, _, is_open in rows if is_open or place.rebuild}
    waiting |= _with_former_ids(view) if view else set()
    check_known(place.named, place.root, taken_in)
    held = wanted_files.held(place.wants, place.off, taken_in)
    waiting -= held.keys()
    known = ScanState(stamps, taken_in, now_ns, held)
    if place.rebuild:
        # Nothing is as it was known, so that every file is read that can be.
        known = ScanState({}, {path: taken_in[path] if path in held else ("", "") for path in taken_in}, now_ns, held)
    paths = None if below is None else [*below, *sorted(waiting)]
    scan = scanning.scan(place.root, place.wants, known, paths, workers=workers)
    _note_not_checked_out(place, scan, taken_in)
    if below is None and scan.files:
        _note_idle_globs(place.wants, scan)
    named = frozenset(place.named)
    ours = [found for path, found in scan.files.items() if is_named(path, named)]
    changed = tuple(one for one in ours if taken_in.get(one.path) != (one.hash, one.wanted.mark))
    again = tuple(one for one in ours if one.path in waiting and taken_in.get(one.path) == (one.hash, one.wanted.mark))
    missing = (path for path in taken_in if path not in scan.files and is_named(path, named))
    gone = tuple(sorted(path for path in missing if not scan.is_blind_to(path)))
    faulty = {one.path for one in place.faults}
    others = {want.fault.path: want.fault for want in held.values() if want.fault and want.fault.path not in faulty}
    faults = (*place.faults, *(others[path] for path in sorted(others)))
    found = PendingFiles(view.seq if view else 0, scan, len(ours), changed, again, gone, faults=faults)
    return found if place.believed is None else _doubting(found, place, taken_in, frozenset(place.believed))


def _note_not_checked_out(place: ScanScope, scan: Scan, taken_in: Iterable[str]) -> None:
    """Note change files that git has and leaves out of the worktree: they are not gone, and nothing is read of them."""
    is_missing = any(changes.is_change_file(path) and path not in scan.files for path in taken_in)
    if not (is_missing or (place.is_sparse and place.below is None)):
        return
    absent = {*place.not_checked_out()} - scan.files.keys()
    is_whole = not any(map(changes.is_change_file, scan.files))
    scanning.add_unread(scan, place.wants, absent)
    scan.blind |= dict.fromkeys([changes.FOLDER] if absent and is_whole else absent, changes.NOT_CHECKED_OUT)


def lacking(view: View, place: ScanScope) -> str:
    """Return that git leaves change files out of the worktree which the state of this view never held, or "".

    Raises: ``GitUnusable``.
    """
    if not place.is_sparse:
        return ""
    rows = view.cells("source", _KNOWN, changes.OF_CHANGES, lambda source: changes.is_change_file(source.path))
    known = {path for path, digest, *_ in rows if digest}
    is_lacking = any(changes.is_change_file(path) for path in {*place.not_checked_out()} - known)
    return f"{changes.NOT_CHECKED_OUT.message} {changes.NOT_CHECKED_OUT.hint}" if is_lacking else ""


def _doubting(
    found: PendingFiles, place: ScanScope, taken_in: Mapping[str, tuple[str, str]], believed: frozenset[str]
) -> PendingFiles:
    """Return what was found without what may be in the middle of being saved."""
    empty = [one.path for one in found.changed if one.hash == _EMPTY]
    # What no glob means any more is gone for good, and may well be there; what is elsewhere now has moved there.
    new = {one.hash for one in found.changed if one.path not in taken_in}
    away = [path for path in found.gone if taken_in[path][0] not in new and wanted_files.is_wanted(place.wants, path)]
    doubted = {path for path in (*empty, *away) if not (believed and is_named(path, believed))}
    changed = tuple(one for one in found.changed if one.path not in doubted)
    gone = tuple(path for path in found.gone if path not in doubted)
    return msgspec.structs.replace(found, changed=changed, gone=gone, doubted=tuple(sorted(doubted)))


def find(place: ScanScope, paths: Iterable[str], now_ns: int) -> dict[str, FoundFile]:
    """Return the wanted files at these paths, each with its hash as it is now."""
    return scanning.scan(place.root, place.wants, ScanState({}, {}, now_ns), sorted(paths)).files


def recorded_files(view: View, below: Sequence[str] | None = None) -> list[tuple[str, str, str, bool]]:
    """Return path, hash and mark of the files that the state knows, and whether other files may give it more meaning.

    ``below`` limits them to files at or below these paths, and to those that other files matter to.
    """
    if below is None or "" in below:
        found = view.cells("source", _KNOWN, ("true", []), lambda _: True)
    else:
        found = view.cells("source", _KNOWN, (_OPEN, []), _has_open)
        places = {*below}
        at = ("path in (select unnest($1::varchar[]))", [sorted(places)])
        found += view.cells("source", _KNOWN, at, lambda source: source.path in places)
        # A file has nothing below it; to ask that of all files for each path costs the most by far.
        folders = places - {row[0] for row in found}
        if folders:
            # Of many folders it is quicker to look at each file once.
            of_base = (_BELOW, [sorted(folders)]) if len(folders) <= _FEW_FOLDERS else ("true", [])
            there = view.cells("source", _KNOWN, of_base, lambda source: is_named(source.path, folders))
            found += there if len(folders) <= _FEW_FOLDERS else [row for row in there if is_named(row[0], folders)]
    return [(path, digest, mark, _is_open(problems)) for path, digest, mark, problems in dict.fromkeys(found)]


def _has_open(source: SyncedFile) -> bool:
    return any(note.code in RECONSIDERED for note in source.problems)


def _is_open(problems: str) -> bool:
    """Return whether problems, as JSON text, are such that other files may fix them."""
    return problems != "[]" and any(f'"{code}"' in problems for code in RECONSIDERED)


def _with_former_ids(view: View) -> set[str]:
    """Return the files with edges that may mean another end by now: at a former id, or beside a former id in use.

    A client may have deleted or merged an entity since they were read. So an edge is beside a former id as well whose
    end is gone and had some. A file that states a former id in use is read too: it is left out then.
    """
    from kbcore.view.sync_facts import gone_with_former_ids  # noqa: PLC0415 - as the view, it imports duckdb

    holders = view.holders()
    used = {node.id for node in view.nodes(sorted(holders))}
    having = {holder for key in used for holder in holders[key]}
    stating = {node.owners[FORMER_IDS] for node in view.nodes(sorted(having)) if FORMER_IDS in node.owners}
    ends = (holders.keys() - used).union(gone_with_former_ids(view), having)
    linking = {one.src for link in view.touching(sorted(ends)) for one in link.statements} if ends else set[str]()
    return (stating | linking) - {CLIENT}


def _note_idle_globs(wants: Sequence[ActiveExtractor], scan: Scan) -> None:
    """Note the globs that no file matches, of those that the project itself has set."""
    own: list[str] = []
    together: list[list[int]] = []
    for want in wants:
        by_itself = {rule.glob for rule in registry.path_rules(want.extractor, {EDGE_NAMES: want.settings[EDGE_NAMES]})}
        mine = [glob for glob, _ in want.globs if glob not in by_itself]
        numbers = [*range(len(own), len(own) + len(mine))]
        own += mine
        # The globs of a source are places where such documents may be.
        together += [numbers] if want.extractor.name == SOURCES else [[number] for number in numbers]
    globs, left = glob_set(tuple(own)), {*range(len(own))}
    for path in scan.files:
        if not left:
            break
        left.difference_update(globs.all(path))
    idle = [own[number] for numbers in together if left.issuperset(numbers) for number in numbers]
    if idle:
        message = f"No file matches {', '.join(idle)}."
        scan.notes[SETTINGS] = FileProblem(0, "idle_glob", message, "Correct the glob, or remove it.", "note")
