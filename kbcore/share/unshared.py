"""The changes of a branch that are in no committed file: which a project shares, and which not, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal

import msgspec

from kbcore import limits
from kbcore.config.settings import DEFAULT, ShareSettings
from kbcore.extract.changes import EXTRACTOR, FOLDER, SIZE, change_secrets, is_pack, parts_of
from kbcore.git import blobs
from kbcore.git.worktree_content import Unfit, read
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change, Claim, EdgeRef, SetField
from kbcore.secrets import secret_in
from kbcore.share.private_origins import WrittenChange, ids_in, place_of, private_origins
from kbcore.store.kb_folder import KB
from kbcore.store.settings_files import CONFIG, settings_of
from kbcore.store.workspace import Workspace
from kbcore.sync import scan
from kbcore.sync.scan import ActiveExtractor
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


def find_unshared(
    workspace: Workspace, branch: str, *, again: Sequence[HeldChange] = (), released: Collection[str] = ()
) -> list[Unshared]:
    """Return the changes of a branch that no file of HEAD holds, in the order of their records.

    They were never in a committed file; or they were, and are in a file of the worktree that HEAD lacks, as after
    ``git reset HEAD~1``. A new pack replaces files of HEAD: what these hold is not listed, unless it is redacted.
    Changes that are withdrawn are left out, but for those in ``again``.

    Of the actors in ``released``, changes are shared that were private when they were written and are not any more. So
    is such a change that a file of the worktree holds already. DuckDB is needed only where `share.types` asks for the
    type of an entity that no change states, and where a change names an entity that a private one created.

    Raises: ``InvalidConfig``; what reading the journal and git raise.
    """
    recorded = workspace.changes(branch)
    known = recorded.read(lambda index, seq: index.committed_files(seq))
    new = new_files(workspace, known) if branch == workspace.head().branch else NewFiles()
    committed = {change.id: change for changes in new.committed.values() for change in changes}
    written = {change.id: path for path, changes in new.uncommitted.items() for change in changes}
    others = {change.id: change for changes in new.uncommitted.values() for change in changes}

    def is_news(change: Change) -> bool:
        return change.is_redacted or not is_pack(written[change.id])

    def find(index: ClaimIndex, seq: int) -> list[HeldChange]:
        found = {one.change.id: one for one in (*index.unshared(seq), *again)}
        seqs = index.seqs_of_known(others.keys() - found.keys(), seq)
        files = index.files_ever_of(seqs)
        found |= {
            key: HeldChange(others[key], number, ())
            for key, number in seqs.items()
            if files.get(key, set()).isdisjoint(new.here if is_news(others[key]) else new.head)
        }
        return [one for key, one in found.items() if key not in committed]

    found = sorted(recorded.read(find), key=lambda one: one.seq)
    reasons = _private_by_settings(workspace, branch, found, written, released)
    reasons |= _private_by_origin(workspace, branch, found, reasons, [*committed.values()])
    judged = []
    for one in found:
        reason, place = reasons.get(one.change.id) or fault_of(one.change)
        judged.append(Unshared(one.seq, one.change, written.get(one.change.id, ""), reason, place))
    return judged


def find_withdrawn(workspace: Workspace, branch: str) -> list[HeldChange]:
    """Return the changes of a branch that were in a committed file and that no file holds any more.

    A file that HEAD has again counts before a sync notes it. Raises: what reading the journal and git raise.
    """
    recorded = workspace.changes(branch)
    found = recorded.read(lambda index, seq: index.withdrawn(seq))
    if not found or branch != workspace.head().branch:
        return found
    new = new_files(workspace, recorded.read(lambda index, seq: index.committed_files(seq)))
    again = {change.id for changes in new.committed.values() for change in changes}
    return [one for one in found if one.change.id not in again]


class NewFiles(msgspec.Struct, frozen=True):
    """The change files of a worktree that are not known as committed, with their changes as far as they are whole.

    HEAD has those in ``committed``: a sync will note it. It lacks those in ``uncommitted``. ``head`` are the paths of
    all change files of HEAD, ``here`` those of them that the worktree has.
    """

    committed: dict[str, Sequence[Change]] = {}
    uncommitted: dict[str, Sequence[Change]] = {}
    head: set[str] = set()
    here: set[str] = set()


def new_files(workspace: Workspace, known: Collection[str]) -> NewFiles:
    """Return the change files of the worktree, of which the ``known`` ones were committed. Raises: ``GitUnusable``."""
    paths = change_paths(workspace) if workspace.repo.has_worktree else set[str]()
    commit = workspace.head().commit if paths else None
    head = blobs.paths_below(workspace.repo, workspace.machine.env, commit, FOLDER) if commit else set[str]()

    def read_all(some: Iterable[str]) -> dict[str, Sequence[Change]]:
        return {path: changes_in(path, content_of(workspace, path)) for path in sorted(some)}

    here = paths & head
    return NewFiles(read_all(here - {*known}), read_all(paths - head), head, here)


def change_files_wanted() -> list[ActiveExtractor]:
    """Return what reads change files."""
    return scan.wanted([EXTRACTOR], {}, {}, b"")


def change_paths(workspace: Workspace) -> set[str]:
    """Return the paths of the change files of the worktree."""
    wants = change_files_wanted()
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
    """Return why no file may hold a change, and where that is in it; "" where one may.

    The values before those that it states do not count: a file need not have them.
    """
    change = without_earlier_values(change)
    data = change_file.encode([change])
    is_plain = not change_file.may_be_unsafe(data.decode())
    for part in parts_of(change):
        if fault := fault_in(part, is_plain=is_plain):
            return fault, _origin_at_fault(part) if isinstance(part, Change) else place_of(part)
    return ("too_large", "") if len(data) > limits.MAX_CHANGE_FILE_BYTES else ("", "")


def _origin_at_fault(change: Change) -> str:
    """Return which member of a change without claims is at fault."""
    names = ("message", "actor", "session", "tool")
    texts = {name: getattr(change, name) for name in names}
    return next((f"the {name}" for name, text in texts.items() if secret_in(text) or has_unsafe(text)), "it")


def fault_in(part: Change | Claim, *, is_plain: bool = False) -> Withheld | Literal[""]:
    """Return why no file may hold a part of a change (``parts_of``); "" where one may.

    With ``is_plain`` it is known that all its characters are seen.
    """
    if next(change_secrets(part), None) is not None:
        return "secret"
    return "unsafe_text" if not is_plain and has_unsafe(msgspec.to_builtins(part)) else ""


def is_too_large(change: Change) -> bool:
    """Tell whether no file may be as large as one with a change."""
    return len(change_file.encode([change])) > limits.MAX_CHANGE_FILE_BYTES


def without_earlier_values(change: Change, is_left_out: Callable[[Claim], bool] = lambda _: True) -> Change:
    """Return a change without the values before those that it states, which are for review only."""
    claims = tuple(
        msgspec.structs.replace(one, was=msgspec.UNSET)
        if getattr(one, "was", msgspec.UNSET) is not msgspec.UNSET and is_left_out(one)
        else one
        for one in change.claims
    )
    return msgspec.structs.replace(change, claims=claims)


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
