"""Lays out ``.kb`` in a repository: settings, schema, folders, and the default branch's store.

Idempotent: a second run changes nothing, and what a project wrote itself is never overwritten. Only ``core.yaml`` and
the JSON Schema of the settings are KB's own, and are rewritten whenever they differ.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from kbcore import git, limits
from kbcore.config.json_schema import FILE_NAME, schema_text
from kbcore.config.schema_files import CORE_FILE
from kbcore.config.settings import default_branch_fault, parse_config
from kbcore.config.template import default_config_text, is_default_config
from kbcore.errors import InvalidConfig, InvalidQuery, ReadOnlyStore, StorageError
from kbcore.errors.remedies import kb
from kbcore.git import Repository, blobs, staging
from kbcore.ids import is_misspelled
from kbcore.model.schema_text import core_schema_text
from kbcore.process import interrupting
from kbcore.storage import files
from kbcore.store import branches, pointer, relocation
from kbcore.store.branches import Ensured
from kbcore.store.branches.stores import make_data_dir
from kbcore.store.folders import BRANCHES, CACHE
from kbcore.store.kb_folder import KB
from kbcore.store.pool import Machine, StorePool
from kbcore.store.settings_files import CONFIG, IGNORE, RULES, SCHEMA
from kbcore.store.workspace import Workspace
from kbcore.text.escaping import in_quotes

_IGNORED: Final = (f"/{BRANCHES}", f"/{CACHE}/")
"""``/branches`` without a slash at its end: a pattern with one does not match a link."""
_NEVER_READ: Final = (f"{KB}/{BRANCHES}", f"{KB}/{CACHE}/")
"""The beginnings of paths at which nothing that git tracks is ever read."""
_FALLBACKS: Final = ("main", "master")


class Laid(msgspec.Struct, frozen=True):
    """The files made, changed and left as they were, as paths from the top of the main worktree."""

    workspace: Workspace
    created: tuple[str, ...]
    updated: tuple[str, ...]
    kept: tuple[str, ...]
    ensured: Ensured


class _Layout:
    """Writes files, and keeps account of it."""

    def __init__(self, machine: Machine, root: Path) -> None:
        self.fs = machine.fs
        self.root = root
        self._made: dict[str, str] = {}
        """The first thing that was done to each file and folder, by its name."""

    def folder(self, path: Path, make: Callable[[], object] | None = None) -> None:
        """Make a folder, unless it is there; ``make`` does it where the folder needs more than to be made."""
        is_there = files.is_directory(self.fs, path)
        (make or partial(files.make_directory, self.fs, path))()
        self._note("kept" if is_there else "created", path, "/")

    def text(self, path: Path) -> str | None:
        """Return the content of a file, None when there is none."""
        data = files.read_file(self.fs, path, limits.MAX_CONFIG_BYTES)
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError as error:
            raise InvalidConfig(f"{self.name(path)} is not UTF-8.", hint="Save it as UTF-8.") from error

    def file(self, path: Path, text: str) -> None:
        """Bring a file to this text."""
        old = self.text(path)
        if old != text:
            files.publish_file(self.fs, path, text.encode())
        self._note("created" if old is None else "kept" if old == text else "updated", path)

    def add(self, path: Path, data: bytes) -> None:
        """Write a file that is not there."""
        if not files.is_there(self.fs, path):
            files.publish_file(self.fs, path, data)
            self._note("created", path)

    def made(self, what: str) -> tuple[str, ...]:
        """Return what was created, updated or kept."""
        return tuple(name for name, done in self._made.items() if done == what)

    def name(self, path: Path) -> str:
        """Return how messages name a path."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)

    def _note(self, what: str, path: Path, ending: str = "") -> None:
        self._made.setdefault(self.name(path) + ending, what)


def lay_out(repo: Repository, machine: Machine, pool: StorePool, default_branch: str | None = None) -> Laid:
    """Set up KB in a repository, and make the store of its default branch.

    Without ``default_branch`` an existing configuration decides, then origin's HEAD, then what is there: ``main``,
    ``master``, or the branch that is checked out.

    Raises: ``InvalidQuery`` for a name that cannot be a branch, or that an existing configuration contradicts;
    ``InvalidConfig``; ``GitUnusable``; ``StoreWentBack`` where the stores were and are missing, with the settings laid
    out; ``StorageError`` and its kin when something cannot be written.
    """
    if default_branch is not None and (reason := default_branch_fault(default_branch)):
        raise InvalidQuery(f"{in_quotes(default_branch)} cannot be the default branch: {reason}.")
    workspace = Workspace(repo, machine, pool)
    workspace.head()  # a repository that git cannot read is reported before anything is made
    interrupting.note_change()
    layout = _Layout(machine, repo.kb_root)
    settings = workspace.settings_dir
    for folder in dict.fromkeys([workspace.folders.kb_dir, settings]):
        _make_own_folder(layout, folder)
    _take_from_index(layout, workspace)
    _write_config(layout, workspace, default_branch)
    for folder in (settings / SCHEMA, settings / RULES):
        layout.folder(folder)
    layout.file(settings / SCHEMA / CORE_FILE, core_schema_text())
    layout.file(settings / FILE_NAME, schema_text())
    for place in dict.fromkeys([settings, workspace.folders.kb_dir]):
        layout.file(place / IGNORE, _ignoring(layout.text(place / IGNORE)))
    workspace.moved = relocation.move_older_stores(
        workspace.folders, workspace.pool, lambda: workspace.config.lock_wait_s
    )
    layout.folder(workspace.folders.data_dir, partial(make_data_dir, workspace))
    files.make_directory(machine.fs, workspace.folders.cache_dir)
    fresh = Workspace(repo, machine, pool)
    ensured = branches.ensure(fresh, fresh.default_branch)
    pointer.point(fresh.folders, pool)
    # A new repository is when the notes of repositories grow in number. `kb gc` names those that cannot be judged.
    fresh.place.sweep(machine.clock.epoch_ns())
    return Laid(fresh, layout.made("created"), layout.made("updated"), layout.made("kept"), ensured)


def _make_own_folder(layout: _Layout, kb_dir: Path) -> None:
    """Make the folder that everything else is in; where that fails, there is no KB yet that a hint could name."""
    try:
        layout.folder(kb_dir)
    except ReadOnlyStore as error:
        hint = f"{kb('init', lead='Run')} as a user who may write in {kb_dir.parent}; nothing was made."
        raise ReadOnlyStore(error.message, hint=hint) from error
    except StorageError as error:
        if error.has_own_remedy:
            raise
        hint = f"KB keeps everything in a folder {kb_dir.name}: move away what has this name."
        raise StorageError(error.message, hint=hint) from error


def _take_from_index(layout: _Layout, workspace: Workspace) -> None:
    """Bring back settings and change files that git's index has, where the worktree lacks the configuration it has.

    The settings of the index are in force until there is a configuration in the worktree. Raises: ``GitUnusable``.
    """
    repo, env = workspace.repo, workspace.machine.env
    staged = workspace.staged_settings
    if not staged:
        return
    missing = staging.missing_below(repo, env, KB)
    texts = dict(blobs.contents(repo, env, [blob.id for blob in missing.values()]))
    found = {path: text.encode() for path, text in staged.items()}
    found |= {path: data for path, blob in missing.items() if (data := texts[blob.id]) is not None}
    for path, data in sorted(found.items()):
        if is_misspelled(path) or path.startswith(_NEVER_READ):
            continue
        place = repo.worktree / path
        for folder in reversed(place.relative_to(repo.worktree).parents[:-2]):
            layout.folder(repo.worktree / folder)
        layout.add(place, data)


def _write_config(layout: _Layout, workspace: Workspace, default_branch: str | None) -> None:
    path = workspace.settings_dir / CONFIG
    text = layout.text(path)
    if text is None:
        layout.file(path, default_config_text(default_branch or _fitting_branch(workspace)))
        return
    stated = parse_config(text, f"{KB}/{CONFIG}").default_branch
    if default_branch is None or stated == default_branch:
        layout.file(path, text)
    elif is_default_config(text, stated):
        layout.file(path, default_config_text(default_branch))
    else:
        says = "sets no `defaultBranch`" if stated is None else f"says `defaultBranch`: {json.dumps(stated)}"
        raise InvalidQuery(
            f"{KB}/{CONFIG} is your own and {says}.",
            hint=f"Set `defaultBranch` to {json.dumps(default_branch)} there, then {kb('init', lead='run')} again.",
        )


def _fitting_branch(workspace: Workspace) -> str | None:
    """Return the branch to write into a new configuration; None where KB finds it by itself."""
    repo, env = workspace.repo, workspace.machine.env
    derived = git.default_branch(repo, env)
    there = git.local_branches(repo, env)
    head = workspace.head()
    current = head.branch if head.kind in {"branch", "unborn", "rebasing"} else None
    if derived != _FALLBACKS[0] or derived in there or derived == current:
        return None
    return next((name for name in _FALLBACKS if name in there), current)


def default_ignore_text() -> str:
    """Return the ignore file of a new ``.kb``."""
    return "# What KB derives or keeps for each branch; the rest of this folder belongs into git.\n" + "".join(
        f"{line}\n" for line in _IGNORED
    )


def _ignoring(text: str | None) -> str:
    """Return the ignore file with KB's lines in it; others stay."""
    if text is None:
        return default_ignore_text()
    lines = text.splitlines()
    missing = [line for line in _IGNORED if not {line, line.strip("/"), line.lstrip("/"), line.rstrip("/")} & {*lines}]
    ending = "" if not text or text.endswith("\n") or not missing else "\n"
    return text + ending + "".join(f"{line}\n" for line in missing)
