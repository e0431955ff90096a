"""The changes of a branch that are in no committed file: which a project shares, and which not, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal

import msgspec

from kbcore import limits
from kbcore.config.settings import ShareSettings
from kbcore.extract.changes import EXTRACTOR, FOLDER, SIZE, change_secrets
from kbcore.git import blobs
from kbcore.git.worktree_content import Unfit, read
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change, Claim, Create, EdgeRef, Ref, SetField
from kbcore.store.workspace import Workspace
from kbcore.sync import scan
from kbcore.text.escaping import has_unsafe
from kbcore.view.claim_index import ClaimIndex, HeldChange

Withheld = Literal["private_actor", "private_type", "secret", "unsafe_text", "too_large"]
"""The reason why a change is not shared: its actor or an entity is private, or no file may hold it."""

FAULTS: Final[frozenset[Withheld]] = frozenset({"secret", "unsafe_text", "too_large"})
"""Reasons that the writer of a change can do something about."""


class Unshared(msgspec.Struct, frozen=True):
    """A change that no committed file holds. ``file`` is the file of the worktree that holds it, "" for none.

    ``withheld`` says why it is not shared, "" where it is to be; ``place`` what it is about in the change.
    """

    seq: int
    change: Change
    file: str = ""
    withheld: Withheld | Literal[""] = ""
    place: str = ""


def find_unshared(workspace: Workspace, branch: str) -> list[Unshared]:
    """Return the changes of a branch that were never in a committed file, in the order of their records.

    DuckDB is needed only where `share.types` asks for the type of an entity that no change states.

    Raises: ``InvalidConfig``; what reading the journal and git raise.
    """

    def at(index: ClaimIndex, seq: int) -> tuple[list[HeldChange], set[str]]:
        found = index.unshared(seq)
        return found, index.committed_files(seq) if found else set()

    found, known = workspace.changes(branch).read(at)
    if not found:
        return []
    new = new_files(workspace, known) if branch == workspace.head().branch else NewFiles({}, {})
    shared = {change.id for changes in new.committed.values() for change in changes}
    written = {change.id: path for path, changes in new.uncommitted.items() for change in changes}
    left = [one for one in found if one.change.id not in shared]
    types = _types_of(workspace, branch, [one.change for one in left])
    return [_judged(one, workspace.config.share, types, written) for one in left]


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


def _judged(
    one: HeldChange,
    settings: ShareSettings,
    types: Callable[[str], str],
    written: dict[str, str],
) -> Unshared:
    change = one.change
    found = Unshared(one.seq, change, written.get(change.id, ""))
    if not _matches(change.actor, settings.actors):
        return msgspec.structs.replace(found, withheld="private_actor", place=change.actor)
    if settings.types != ("*",):
        own = _stated_types(change)
        for key in sorted(_entities(change)):
            kind = own.get(key) or types(key)
            if not _matches(kind, settings.types):
                return msgspec.structs.replace(found, withheld="private_type", place=key)
    fault, place = fault_of(change)
    return msgspec.structs.replace(found, withheld=fault, place=place) if fault else found


def fault_of(change: Change) -> tuple[Withheld | Literal[""], str]:
    """Return why no file may hold a change, and where that is in it; "" where one may."""
    for part in (change.message, *change.claims):
        place = "the message" if isinstance(part, str) else _place(part)
        if next(change_secrets(part), None) is not None:
            return "secret", place
        if has_unsafe(msgspec.to_builtins(part)):
            return "unsafe_text", place
    if len(change_file.encode([change])) > limits.MAX_CHANGE_FILE_BYTES:
        return "too_large", ""
    return "", ""


def _place(claim: Claim) -> str:
    if isinstance(claim, Create):
        return claim.id
    ref = claim.on
    name = getattr(claim, "field", "")
    of = f"{ref.type} edge" if isinstance(ref, EdgeRef) else ref.id
    return f"{name} of {of}" if name else of


def _matches(text: str, globs: Collection[str]) -> bool:
    return any(fnmatchcase(text, glob) for glob in globs)


def _stated_types(change: Change) -> dict[str, str]:
    return {
        claim.on.id: str(claim.now)
        for claim in change.claims
        if isinstance(claim, SetField) and claim.field == "type" and not isinstance(claim.on, EdgeRef)
    }


def _entities(change: Change) -> set[str]:
    found = set[str]()
    for claim in change.claims:
        found |= {claim.id} if isinstance(claim, Create) else set(_ids(claim.on))
    return found


def _ids(ref: Ref) -> Iterable[str]:
    if isinstance(ref, EdgeRef):
        return [*_ids(ref.from_end), *_ids(ref.to_end)]
    return [ref.id]


def _types_of(workspace: Workspace, branch: str, changes: Iterable[Change]) -> Callable[[str], str]:
    """Return what tells the type of an entity that changes name: as it is, or as some change stated it."""
    changes = list(changes)
    ids = sorted({key for change in changes for key in _entities(change)})
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
