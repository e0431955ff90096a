"""Places that hold a secret and are only named: documents belong to people, and others have copies of what git has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kbcore.errors.remedies import Command, shell
from kbcore.extract.changes import is_change_file
from kbcore.git import worktree_content
from kbcore.model.redaction.target import RedactionTarget
from kbcore.store import backup_refs
from kbcore.store.kb_folder import KB, is_folder, is_used
from kbcore.store.workspace import Workspace
from kbcore.text.wording import some_of

_SHOWN: Final = 10
_SETTINGS: Final = (f"{KB}/config.json",)
_GIT: Final = (
    "The history of git holds what was committed: `git filter-repo` rewrites it, together with all who have a clone. A "
    "forge may keep old commits until it is asked to remove them. What was only staged or fetched is kept for weeks: "
    "`git gc --prune=now` removes what nothing names."
)
_MORE: Final = (
    "Logs, transcripts of agents, the history of the shell and of the prompts of KIP and Prolog, and free blocks of "
    "the disk may hold it."
)


def places(workspace: Workspace, target: RedactionTarget, sources: Iterable[str], is_found: bool) -> tuple[str, ...]:
    """Return, a sentence each, what holds it and is not changed, and what may hold it."""
    said = [*_documents(workspace, target, sources)]
    if is_found or said:
        said += [
            "Revoke the secret and make a new one: who has read it, has it. Only that ends the leak.",
            _GIT,
            *_refs(workspace),
            *_unused_stores(workspace),
            f"Other clones have stores of their own: run {shell('redact')} in each.",
            f"Backups from before hold it: make a new one with {shell('backup')}, then remove the old ones.",
            *_fleet(workspace),
            _MORE,
        ]
    return tuple(said)


def _fleet(workspace: Workspace) -> Iterator[str]:
    """Yield a sentence on the place of a fleet, where the settings name one: parts from before stay there."""
    if workspace.config.fleet.place:
        yield (
            "Earlier parts in the place of the fleet, `fleet.place`, may hold it: remove the folders of this repository"
            f" there, then run {shell('export', '--fleet')}."
        )


def _refs(workspace: Workspace) -> Iterator[str]:
    """Yield a sentence on each ref of a remote that holds changes of this clone, and one on what such a ref leaves."""
    refs = backup_refs.noted(workspace)
    for one in refs:
        if one == backup_refs.UNKNOWN:
            yield (
                "Refs of remotes may hold it, and which ones is not known, because the note of them was damaged:"
                f" `git ls-remote REMOTE 'refs/kb/*'` lists those of a remote, and {shell('push')} takes out there what"
                " is redacted here."
            )
            continue
        of = f"{one.ref} of {one.remote or 'a remote that was named by its address'}"
        if workspace.folders.has_store(one.branch):
            push = Command("push", tuple(filter(None, [one.remote])), branch=one.branch).shown()
            yield f"{of} may hold it: {push} takes out there what is redacted here."
        else:
            yield f"{of} may hold it, and {one.branch} has no store here: ask who runs the remote to take the ref away."
    if refs:
        yield (
            "A remote keeps commits that its refs do not name any more until it removes them: ask who runs it. Who has"
            f" fetched has a copy, and {shell('fetch')} there names what to redact."
        )


def _unused_stores(workspace: Workspace) -> Iterator[str]:
    """Yield a sentence on each folder of stores that is not in use: no redaction reads it."""
    folders = workspace.folders
    shown = [] if folders.has_own_pointer() else [folders.shown_branches]
    for folder in (*folders.folders_moved_aside(), *shown):
        is_other = folder != folders.branches_dir and is_folder(workspace.machine.fs, folder)
        if is_other and is_used(workspace.machine.fs, folder):
            yield f"{folder} has stores that are not in use, and they may hold it: keep none that is not needed."


def _documents(workspace: Workspace, target: RedactionTarget, sources: Iterable[str]) -> Iterator[str]:
    """Yield a sentence on the documents of the worktree that hold it: the next sync would record it again."""
    root, found = workspace.repo.worktree, []
    names = {*sources, *_SETTINGS} if target.matches else {*sources}
    for name in sorted(name for name in names if not is_change_file(name)):
        try:
            place = root / name
            data, about = worktree_content.read(str(place))
            worktree_content.check(str(place), about, root, is_direct=False)
        except (OSError, ValueError, worktree_content.Unfit):  # not there, or not to be read: a sync does not read it
            continue
        text = data.decode(errors="replace")
        match = target.matches.search(text) if target.matches else None
        if match:
            found.append(f"{name}:{text.count(chr(10), 0, match.start()) + 1}")
        elif target.matches is None:
            found.append(name)
    if found:
        holds = "Documents hold it" if target.matches else "Documents state what is taken out"
        yield f"{holds}: {some_of(found, _SHOWN)}. Take it out there, or {shell('sync')} records it again."
