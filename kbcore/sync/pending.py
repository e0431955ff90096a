"""How the files of a worktree differ from what a branch's state has taken in of them: sync and status ask this alike.

A file has changed when its content is not what was taken in, or when another extractor or other settings read it now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcore.extract import registry
from kbcore.extract.facts import FileProblem
from kbcore.extract.globs import compiled
from kbcore.extract.settings import EDGE_NAMES
from kbcore.sync import scan as scanning
from kbcore.sync.difference import RECONSIDERED
from kbcore.sync.paths import check_known, is_named
from kbcore.sync.scan import FileStamp, Found, Known, Scan, Wanted
from kbcore.workspace import CONFIG, KB, Workspace

if TYPE_CHECKING:
    from kbcore.view.view import View  # it imports duckdb, and who only asks for what is wanted needs none

SETTINGS: Final = f"{KB}/{CONFIG}"
_CODES: Final = " or ".join(f"contains(problems::varchar, '\"{code}\"')" for code in sorted(RECONSIDERED))
_OPEN: Final = f"(problems::varchar <> '[]' and ({_CODES}))"
"""The first part is seldom true, and found without looking into every text."""

_KNOWN: Final = "path, hash, extractor"
_BELOW: Final = "exists (select 1 from unnest($1::varchar[]) as t(folder) where starts_with(path, t.folder || '/'))"


class Place(msgspec.Struct, frozen=True):
    """Where to look: the top of a worktree, what extractors want there, and the paths that it is limited to."""

    root: Path
    wants: tuple[Wanted, ...]
    named: tuple[str, ...] = ()
    rebuild: bool = False
    """Look at every file again, changed or not."""

    touched: tuple[str, ...] | None = None
    """The only paths at or below which something may have changed since the last sync; None: anything may have."""

    @property
    def below(self) -> tuple[str, ...] | None:
        """The paths that a scan is limited to; None: it looks everywhere."""
        return self.touched if self.touched is not None else self.named or None


class Pending(msgspec.Struct, frozen=True):
    """What a sync has to look at, among the named paths, at the seq of the state.

    ``again`` are files that did not change and may yet mean something else now, because of other files.
    """

    seq: int
    scan: Scan
    scanned: int
    changed: tuple[Found, ...]
    again: tuple[Found, ...]
    gone: tuple[str, ...]


def place_of(workspace: Workspace) -> Place:
    """Return where a sync of this worktree looks. Raises ``InvalidConfig``."""
    return Place(workspace.repo.worktree, wanted(workspace))


def wanted(workspace: Workspace) -> tuple[Wanted, ...]:
    """Return the extractors in force with their settings. Raises ``InvalidConfig``."""
    extra: dict[str, Any] = {EDGE_NAMES: sorted(workspace.schema.edges)}
    loaded = registry.load(workspace.config.switched_off).values()
    meaning = msgspec.json.encode(workspace.schema, order="deterministic")
    return tuple(scanning.wanted(loaded, workspace.config.extractors, extra, meaning))


def look(view: View | None, place: Place, stamps: Mapping[str, FileStamp], now_ns: int) -> Pending:
    """Scan the files, and return how they differ from what the state of this view has taken in (None: nothing).

    ``now_ns`` is the time in nanoseconds since 1970. A file whose content the state does not know is read.

    Raises: ``InvalidQuery`` for a named path at which there is nothing and of which nothing is known.
    """
    below = place.below
    rows = _taken_in(view, below) if view else []
    taken_in = {path: (digest, mark) for path, digest, mark, _ in rows}
    waiting = {path for path, _, _, is_open in rows if is_open or place.rebuild}
    check_known(place.named, place.root, taken_in)
    # To a rebuild nothing is as it was known, so that every file is read.
    known = Known({}, dict.fromkeys(taken_in, ("", "")), now_ns) if place.rebuild else Known(stamps, taken_in, now_ns)
    scan = scanning.scan(place.root, place.wants, known, None if below is None else [*below, *sorted(waiting)])
    if below is None and scan.files:
        _note_idle_globs(place.wants, scan)
    ours = [found for path, found in scan.files.items() if is_named(path, place.named)]
    changed = tuple(one for one in ours if taken_in.get(one.path) != (one.hash, one.wanted.mark))
    again = tuple(one for one in ours if one.path in waiting and taken_in.get(one.path) == (one.hash, one.wanted.mark))
    missing = (path for path in taken_in if path not in scan.files and is_named(path, place.named))
    gone = tuple(sorted(path for path in missing if not scan.is_blind_to(path)))
    return Pending(view.seq if view else 0, scan, len(ours), changed, again, gone)


def find(place: Place, paths: Iterable[str], now_ns: int) -> dict[str, Found]:
    """Return the wanted files at these paths, each with its hash as it is now."""
    return scanning.scan(place.root, place.wants, Known({}, {}, now_ns), sorted(paths)).files


def _taken_in(view: View, below: Sequence[str] | None) -> list[tuple[str, str, str, bool]]:
    """Return path, hash and mark of the files that the state knows, and whether other files may give it more meaning.

    ``below`` limits them to files at or below these paths, and to those that other files matter to.
    """
    if below is None:
        return view.rows(f"select {_KNOWN}, {_OPEN} from source")  # noqa: S608 - constants
    found = view.rows(f"select {_KNOWN}, true from source where {_OPEN}")  # noqa: S608 - the same
    at = f"select {_KNOWN}, {_OPEN} from source where path in (select unnest($1::varchar[]))"  # noqa: S608 - the same
    found += view.rows(at, [list(below)])
    # A file has nothing below it; to ask that of all files for each path costs the most by far.
    folders = sorted({*below} - {row[0] for row in found})
    if folders:
        found += view.rows(f"select {_KNOWN}, {_OPEN} from source where {_BELOW}", [folders])  # noqa: S608 - the same
    return list(dict.fromkeys(found))


def _note_idle_globs(wants: Sequence[Wanted], scan: Scan) -> None:
    """Note the globs that no file matches, of those that the project itself has set."""
    idle = []
    for want in wants:
        by_itself = {rule.glob for rule in want.extractor.path_rules({EDGE_NAMES: want.settings[EDGE_NAMES]})}
        for glob, _ in want.globs:
            if glob not in by_itself and not any(map(compiled(glob).fullmatch, scan.files)):
                idle.append(glob)
    if idle:
        message = f"No file matches {', '.join(idle)}."
        scan.notes[SETTINGS] = FileProblem(0, "idle_glob", message, "Mend the glob, or take it out.", "note")
