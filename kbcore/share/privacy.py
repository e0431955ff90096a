"""The changes of a branch that are private: by settings, or by what other changes state (``private_origins``).

Settings are those in force and those of the commit that a change was written at. What is not known of the latter is
never taken for a permission.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal

from kbcore.config.settings import DEFAULT, ShareSettings, read_config
from kbcore.git import blobs, revisions
from kbcore.model.claims.change import Change, EdgeRef, SetField
from kbcore.model.claims.subjects import ids_in
from kbcore.share.private_origins import WrittenChange, private_origins
from kbcore.store.kb_folder import KB
from kbcore.store.settings_files import CONFIG
from kbcore.store.workspace import Workspace
from kbcore.text.globs import names_any
from kbcore.view.claim_index import HeldChange

Privacy = Literal["private_actor", "private_type", "private_when_written", "private_restored", "private_origin"]
"""The reason why a change is private.

Private is the actor or an entity by the settings in force, or by those of the commit that the change was written at; or
the change says what private changes alone stated.
"""

Reason = tuple[Privacy, str]
"""The reason why a change is private, and the place in it."""

_Types = Callable[[Change, str], Collection[str]]
"""Returns the types of an entity that a change is judged by, for the change and the id of the entity."""

_SETTINGS: Final = f"{KB}/{CONFIG}"
_NOBODY: Final = ShareSettings(actors=())
"""In place of settings that are not known: they share the changes of nobody."""


def private_changes(
    workspace: Workspace,
    branch: str,
    changes: Sequence[HeldChange],
    committed: Sequence[Change],
    released: Callable[[Change], bool],
) -> dict[str, Reason]:
    """Return those of some changes of a branch that are private, by id, each with the reason.

    ``committed`` are changes of files of HEAD that no sync has noted. What was private when it was written, and is not
    any more, is not private where it is ``released``.

    Raises: ``GitUnusable``; what reading the journal and the view raises.
    """
    reasons = _private_by_settings(workspace, branch, changes, released)
    return reasons | _private_by_origin(workspace, branch, changes, reasons, committed)


def _private_by_settings(
    workspace: Workspace, branch: str, changes: Sequence[HeldChange], released: Callable[[Change], bool]
) -> dict[str, Reason]:
    """Return the changes that are private by actor or type, now or when they were written, each with the reason."""
    types = _types_of(workspace, branch, [one.change for one in changes])
    now = workspace.config.share
    reasons = {one.change.id: reason for one in changes if (reason := _private_by(one.change, now, types))}
    kept = [one for one in changes if not (one.change.id in reasons or released(one.change))]
    then = _settings_at(workspace, {one.written_at.commit for one in kept})
    for one in kept:
        judged = (_private_by(one.change, settings, types) for settings in then.get(one.written_at.commit, ()))
        if reason := next(filter(None, judged), None):
            reasons[one.change.id] = "private_when_written", reason[1]
    return reasons


def _private_by(change: Change, settings: ShareSettings, types: _Types) -> Reason | None:
    """Return the reason why a change is private by some settings, None where it is not."""
    if not names_any(settings.actors, change.actor):
        return "private_actor", change.actor
    if settings.types != DEFAULT.share.types:
        for key in sorted(ids_in(change)):
            if not all(names_any(settings.types, one) for one in types(change, key)):
                return "private_type", key
    return None


def _settings_at(workspace: Workspace, commits: Collection[str]) -> dict[str, Collection[ShareSettings]]:
    """Return the settings of sharing that what was written at commits is judged by, by commit; none where it has none.

    For a commit that is not in this clone, and for "", one that is not known, these are all those of the history that
    is. Raises: ``GitUnusable``.
    """
    read = _read_settings_at(workspace, {*commits} - {""})
    found: dict[str, Collection[ShareSettings]] = {one: {settings} for one, settings in read.items() if settings}
    if gone := {*commits} - read.keys():
        changing = revisions.commits_changing(workspace.repo, workspace.machine.env, _SETTINGS)
        ever = _read_settings_at(workspace, changing).values() if changing is not None else [_NOBODY]
        found |= {one: {*filter(None, ever)} for one in gone}
    return found


def _read_settings_at(workspace: Workspace, commits: Collection[str]) -> dict[str, ShareSettings | None]:
    """Return the settings of sharing at commits of this clone, None at one that has none.

    At most two git processes are started for the commits that this process has not looked at. Raises: ``GitUnusable``.
    """
    repo, env, known = workspace.repo, workspace.machine.env, workspace.pool.share_settings
    new = {*commits} - known.keys()
    texts = blobs.content_at(repo, env, new, _SETTINGS)
    without = new - texts.keys()
    read: dict[str, ShareSettings | None] = dict.fromkeys(without - blobs.absent(repo, env, without))
    read |= {one: _share_settings(text) for one, text in texts.items()}
    known.update(read)
    return {one: known[one] for one in commits if one in known}


@lru_cache(maxsize=64)
def _share_settings(text: bytes | None) -> ShareSettings:
    """Return the settings of sharing that a configuration states; ``_NOBODY`` where it cannot be read."""
    try:
        reading = read_config((text or b"").decode(), _SETTINGS)
    except UnicodeDecodeError:
        return _NOBODY
    is_read = not any(one.path == "$" or one.path.startswith("$.share") for one in reading.problems)
    return reading.config.share if is_read else _NOBODY


def _private_by_origin(
    workspace: Workspace,
    branch: str,
    changes: Sequence[HeldChange],
    reasons: Mapping[str, Reason],
    committed: Sequence[Change],
) -> dict[str, Reason]:
    """Return the changes that say what private changes alone stated, each with the reason.

    What else says it, in files that were committed and in documents, is looked up where a change would be private.
    """
    private = [one.change for one in changes if one.change.id in reasons]
    others = [WrittenChange(one.change, one.written_at.restores) for one in changes if one.change.id not in reasons]
    found = private_origins(others, private, committed)
    if found:
        ids = {key for one in others if one.change.id in found for key in ids_in(one.change)}
        once_committed = workspace.changes(branch).read(lambda index, seq: index.once_committed_on(ids, seq))
        nodes = workspace.store(branch).read(lambda view: view.nodes(sorted(ids)))
        documented = [node.id for node in nodes if node.owners]
        found = private_origins(others, private, [*committed, *once_committed], documented)
    return {key: (one.kind, one.place) for key, one in found.items()}


def _stated_types(change: Change) -> dict[str, str]:
    return {key: str(claim.now) for key, claim in _type_claims(change)}


def _type_claims(change: Change) -> Iterator[tuple[str, SetField]]:
    for claim in change.claims:
        if isinstance(claim, SetField) and claim.field == "type" and not isinstance(claim.on, EdgeRef):
            yield claim.on.id, claim


def _types_of(workspace: Workspace, branch: str, changes: Sequence[Change]) -> _Types:
    """Return what tells the types of an entity that a change names, of ``changes`` in the order of their records.

    That is the type which the change states, or else the one that it had when the change was written, as far as these
    changes say so, and the one that it has. The entity may be gone, as after its change file was removed: then some
    change stated its type.
    """
    ids = sorted({key for change in changes for key in ids_in(change)})
    own = {change.id: _stated_types(change) for change in changes}
    found: dict[str, str] = {}
    for stated in own.values():
        found |= stated
    then = _types_when_written(changes)

    def load() -> dict[str, str]:
        nodes = workspace.store(branch).read(lambda view: view.nodes(ids))
        types = {node.id: node.type for node in nodes}
        if gone := [key for key in ids if not (types.get(key) or found.get(key))]:
            for change in workspace.changes(branch).read(lambda index, seq: index.once_committed_on(gone, seq)):
                found.update(_stated_types(change))
        return types

    loaded: list[dict[str, str]] = []

    def types_of(change: Change, key: str) -> Collection[str]:
        if stated := own[change.id].get(key):
            return [stated]
        if not loaded:
            loaded.append(load())
        return {loaded[0].get(key) or found.get(key, ""), *then.get((change.id, key), ())}

    return types_of


def _types_when_written(changes: Sequence[Change]) -> dict[tuple[str, str], set[str]]:
    """Return, by change and entity, the types that changes before and after it say that the entity had then.

    These are what the last one before it stated, and what the next one after it saw.
    """
    found: dict[tuple[str, str], set[str]] = {}
    before: dict[str, str] = {}
    since: dict[str, list[str]] = {}
    for change in changes:
        for key in ids_in(change):
            since.setdefault(key, []).append(change.id)
            if key in before:
                found.setdefault((change.id, key), set()).add(before[key])
        for key, claim in _type_claims(change):
            if isinstance(claim.was, str):
                for one in since.pop(key, ()):
                    found.setdefault((one, key), set()).add(claim.was)
            before[key] = str(claim.now)
    return found
