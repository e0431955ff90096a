"""The changes of a branch that are in no committed file: which a project shares, and which not, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal

import msgspec

from kbcore import limits
from kbcore.config.settings import DEFAULT, ShareSettings
from kbcore.extract.changes import EXTRACTOR, FOLDER, SIZE, change_secrets
from kbcore.git import blobs
from kbcore.git.worktree_content import Unfit, read
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change, EdgeRef, SetField
from kbcore.share.private_origins import WrittenChange, ids_in, place_of, private_origins
from kbcore.store.kb_folder import KB
from kbcore.store.settings_files import CONFIG, settings_of
from kbcore.store.workspace import Workspace
from kbcore.sync import scan
from kbcore.text.escaping import has_unsafe
from kbcore.view.claim_index import ClaimIndex, HeldChange

Withheld = Literal[
    "private_actor",
    "private_type",
    "private_when_written",
    "private_restored",
    "private_origin",
    "secret",
    "unsafe_text",
    "too_large",
]
"""The reason why a change is not shared: it is private, or no file may hold it.

Private is the actor or an entity by the settings in force, or by those of the commit that the change was written at; or
the change says what private changes alone stated (``private_origins``).
"""

FAULTS: Final[frozenset[Withheld]] = frozenset({"secret", "unsafe_text", "too_large"})
"""Reasons that the writer of a change can do something about."""

BY_ORIGIN: Final[frozenset[Withheld]] = frozenset({"private_restored", "private_origin"})
"""Reasons that are no matter of actor and type."""


class Unshared(msgspec.Struct, frozen=True):
    """A change that no committed file holds. ``file`` is the file of the worktree that holds it, "" for none.

    ``withheld`` says why it is not shared, "" where it is to be; ``place`` what it is about in the change.
    """

    seq: int
    change: Change
    file: str = ""
    withheld: Withheld | Literal[""] = ""
    place: str = ""


def find_unshared(workspace: Workspace, branch: str, *, released: Collection[str] = ()) -> list[Unshared]:
    """Return the changes of a branch that were never in a committed file, in the order of their records.

    Of the actors in ``released``, changes are shared that were private when they were written and are not any more. So
    is such a change that a file of the worktree holds already. DuckDB is needed only where `share.types` asks for the
    type of an entity that no change states, and where a change names an entity that a private one created.

    Raises: ``InvalidConfig``; what reading the journal and git raise.
    """

    def at(index: ClaimIndex, seq: int) -> tuple[list[HeldChange], set[str]]:
        found = index.unshared(seq)
        return found, index.committed_files(seq) if found else set()

    found, known = workspace.changes(branch).read(at)
    if not found:
        return []
    new = new_files(workspace, known) if branch == workspace.head().branch else NewFiles({}, {})
    committed = {change.id: change for changes in new.committed.values() for change in changes}
    written = {change.id: path for path, changes in new.uncommitted.items() for change in changes}
    left = [one for one in found if one.change.id not in committed]
    reasons = _private_by_settings(workspace, branch, left, {*written}, released)
    reasons |= _private_by_origin(workspace, branch, left, reasons, [*committed.values()])
    judged = []
    for one in left:
        reason, place = reasons.get(one.change.id) or fault_of(one.change)
        judged.append(Unshared(one.seq, one.change, written.get(one.change.id, ""), reason, place))
    return judged


def find_withdrawn(workspace: Workspace, branch: str) -> list[HeldChange]:
    """Return the changes of a branch that were in a committed file and that no file holds any more.

    Raises: what reading the journal raises.
    """
    return workspace.changes(branch).read(lambda index, seq: index.withdrawn(seq))


class NewFiles(msgspec.Struct, frozen=True):
    """The change files of a worktree that are not known as committed, with their changes as far as they are whole.

    HEAD has those in ``committed``: a sync will note it.
    """

    committed: dict[str, Sequence[Change]]
    uncommitted: dict[str, Sequence[Change]]


def new_files(workspace: Workspace, known: Collection[str]) -> NewFiles:
    """Return the change files of the worktree without the ``known`` ones. Raises: ``GitUnusable``."""
    found = NewFiles({}, {})
    if not workspace.repo.has_worktree:
        return found
    paths = change_paths(workspace) - {*known}
    commit = workspace.head().commit if paths else ""
    there = blobs.paths_below(workspace.repo, workspace.machine.env, commit, FOLDER) if commit else set[str]()
    for path in sorted(paths):
        changes = changes_in(path, content_of(workspace, path))
        (found.committed if path in there else found.uncommitted)[path] = changes
    return found


def change_paths(workspace: Workspace) -> set[str]:
    """Return the paths of the change files of the worktree."""
    wants = scan.wanted([EXTRACTOR], {}, {}, b"")
    return {path for path, *_ in scan.candidates(scan.walk_of(workspace.repo.worktree, wants), wants)}


def content_of(workspace: Workspace, path: str) -> bytes:
    """Return the content of a change file of the worktree; nothing of one that cannot be read."""
    try:
        return read(str(workspace.repo.worktree / path), SIZE)[0]
    except (Unfit, OSError):
        return b""


def changes_in(path: str, data: bytes) -> Sequence[Change]:
    """Return the changes of a file by its path and content; none of one that is refused, which a sync reports."""
    return change_file.decode(data, path.removeprefix(f"{FOLDER}/")).changes


_Reason = tuple[Withheld | Literal[""], str]
"""The reason why a change is not shared, and the place in it."""


def _private_by_settings(
    workspace: Workspace,
    branch: str,
    changes: Sequence[HeldChange],
    written: Collection[str],
    released: Collection[str],
) -> dict[str, _Reason]:
    """Return the changes that are private by actor or type, now or when they were written, each with the reason."""
    types = _types_of(workspace, branch, [one.change for one in changes])
    now = workspace.config.share
    reasons = {one.change.id: reason for one in changes if (reason := _private_by(one.change, now, types))}
    kept = [
        one
        for one in changes
        if not (one.change.id in reasons or one.change.id in written or one.change.actor in released)
    ]
    then = _settings_at(workspace, {one.origin.commit for one in kept} - {""})
    for one in kept:
        settings = then.get(one.origin.commit, DEFAULT.share)
        if reason := _private_by(one.change, settings, types):
            reasons[one.change.id] = "private_when_written", reason[1]
    return reasons


def _private_by(change: Change, settings: ShareSettings, types: Callable[[str], str]) -> _Reason | None:
    """Return the reason why a change is private by some settings, None where it is not."""
    if not _matches(change.actor, settings.actors):
        return "private_actor", change.actor
    if settings.types != DEFAULT.share.types:
        own = _stated_types(change)
        for key in sorted(ids_in(change)):
            if not _matches(own.get(key) or types(key), settings.types):
                return "private_type", key
    return None


def _settings_at(workspace: Workspace, commits: Collection[str]) -> Mapping[str, ShareSettings]:
    """Return the settings of sharing at commits; the defaults for one that has none, or is not in this clone.

    One git process is started for the commits that this process has not looked at.
    """
    known, path = workspace.pool.share_settings, f"{KB}/{CONFIG}"
    new = {one for one in commits if one not in known}
    texts = blobs.content_at(workspace.repo, workspace.machine.env, new, path)
    known |= dict.fromkeys(new, DEFAULT.share)
    known |= {one: settings_of(text.decode("utf-8", "replace"), path).config.share for one, text in texts.items()}
    return known


def _private_by_origin(
    workspace: Workspace,
    branch: str,
    changes: Sequence[HeldChange],
    reasons: Mapping[str, _Reason],
    committed: Sequence[Change],
) -> dict[str, _Reason]:
    """Return the changes that say what private changes alone stated, each with the reason.

    What else says it, in files that were committed and in documents, is looked up where a change would be private.
    """
    private = [one.change for one in changes if one.change.id in reasons]
    others = [WrittenChange(one.change, one.origin.restores) for one in changes if one.change.id not in reasons]
    found = private_origins(others, private, committed)
    if found:
        ids = {key for one in others if one.change.id in found for key in ids_in(one.change)}
        handed_over = workspace.changes(branch).read(lambda index, seq: index.handed_over_on(ids, seq))
        nodes = workspace.store(branch).read(lambda view: view.nodes(sorted(ids)))
        documented = [node.id for node in nodes if node.owners]
        found = private_origins(others, private, [*committed, *handed_over], documented)
    return {key: (one.kind, one.place) for key, one in found.items()}


def fault_of(change: Change) -> _Reason:
    """Return why no file may hold a change, and where that is in it; "" where one may."""
    for part in (change.message, *change.claims):
        place = "the message" if isinstance(part, str) else place_of(part)
        if next(change_secrets(part), None) is not None:
            return "secret", place
        if has_unsafe(msgspec.to_builtins(part)):
            return "unsafe_text", place
    if len(change_file.encode([change])) > limits.MAX_CHANGE_FILE_BYTES:
        return "too_large", ""
    return "", ""


def _matches(text: str, globs: Collection[str]) -> bool:
    return any(fnmatchcase(text, glob) for glob in globs)


def _stated_types(change: Change) -> dict[str, str]:
    return {
        claim.on.id: str(claim.now)
        for claim in change.claims
        if isinstance(claim, SetField) and claim.field == "type" and not isinstance(claim.on, EdgeRef)
    }


def _types_of(workspace: Workspace, branch: str, changes: Iterable[Change]) -> Callable[[str], str]:
    """Return what tells the type of an entity that changes name: as it is, or as some change stated it."""
    changes = list(changes)
    ids = sorted({key for change in changes for key in ids_in(change)})
    found: dict[str, str] = {}
    for change in changes:
        found |= _stated_types(change)

    def load() -> dict[str, str]:
        nodes = workspace.store(branch).read(lambda view: view.nodes(ids))
        return {node.id: node.type for node in nodes}

    loaded: list[dict[str, str]] = []

    def type_of(key: str) -> str:
        if not loaded:
            loaded.append(load())
        return loaded[0].get(key) or found.get(key, "")

    return type_of
