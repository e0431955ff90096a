"""One request's surroundings: the repository, its KB, its settings, and the branch that is meant.

Made for every request, because HEAD, the configuration and the schema may change between two. Only the branch
stores outlive a request, in a ``StorePool``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from kbcore import clock, git, ids
from kbcore.config.settings import DEFAULT, Config, checked_config
from kbcore.config.user import UserSettings, bounded
from kbcore.errors import (
    BranchMoved,
    Damaged,
    GitUnusable,
    Incompatible,
    InvalidConfig,
    NotARepository,
    NotInitialised,
    Problem,
    ReadOnlyStore,
)
from kbcore.errors.remedies import located
from kbcore.git import HeadState, Repository
from kbcore.model.schema import Schema
from kbcore.storage import files, gitref, head
from kbcore.storage.files import below
from kbcore.storage.fs import Fs
from kbcore.storage.gitref import Presence, RefSeen, Verdict
from kbcore.storage.loss import Loss
from kbcore.storage.witness import BranchWitness
from kbcore.storage.witness_notes import NotesFolder
from kbcore.store import relocation, settings_files
from kbcore.store.folders import Folders
from kbcore.store.kb_folder import KB, kind_of
from kbcore.store.pool import CachePlaces, Machine, StoreNeeds, StorePool
from kbcore.store.settings_files import (
    BASELINE,
    CONFIG,
    RULES,
    SCHEMA,
    name_sources,
    read_text,
    readable,
    schema_of,
    settings_of,
    user_settings,
)
from kbcore.store.unread_stores import require_untracked
from kbcore.text.validator import refuse

if TYPE_CHECKING:
    from kbcore.store.branch_store import BranchStore
    from kbcore.view.claim_index_cache import BranchClaims


class Workspace:
    """A repository with a KB, as one request finds it."""

    def __init__(self, repo: Repository, machine: Machine, pool: StorePool, *, settles: bool = True) -> None:
        """``settles`` is False for a request that writes nothing: it reads stores in an older place where they are."""
        self.repo = repo
        self.machine = machine
        self.pool = pool
        self.folders = Folders(repo, machine, lambda: self.user, settles=settles)
        self.unmovable: ReadOnlyStore | None = None
        """The reason the stores cannot be moved from an older place; then they are read there, and not written."""
        self.read_on: dict[str, str] = {}
        """Branches that this request reads and that have no store, each with the one whose store answers."""
        self.tried_on: dict[str, str] = {}
        """Branches of which this request only plans a write, each with the branch on whose store it is planned."""
        self.makes: dict[str, Callable[[], None]] = {}
        """Branches among these of which the first record makes the store, each with what makes it."""
        self.moved = ""
        """The note about a move of its stores, if the opening moved them."""

    @cached_property
    def settings_dir(self) -> Path:
        """The ``.kb`` whose configuration and schema apply: the worktree's own, if its branch has one.

        A worktree of a bare repository gets them into a folder of its own: git tracks nothing inside of itself.

        Raises: ``InvalidConfig`` when it may not be read; as ``staged_settings``.
        """
        own = below(self.repo.worktree, KB)
        is_inside_git = self.repo.kb_root == self.repo.common_dir and self.repo.has_worktree
        if self._has_own_config or self.staged_settings:
            return own
        with readable(f"{KB}/{CONFIG}"):
            return own if is_inside_git and not below(self.folders.kb_dir, CONFIG).is_file() else self.folders.kb_dir

    @cached_property
    def _has_own_config(self) -> bool:
        with readable(f"{KB}/{CONFIG}"):
            return below(below(self.repo.worktree, KB), CONFIG).is_file()

    @cached_property
    def staged_settings(self) -> Mapping[str, str]:
        """The settings files of git's index, by path, where the worktree lacks the configuration that the index has.

        That is so in a sparse checkout, and where it was deleted: it is in force all the same. A file of the worktree
        takes the place of the one in the index. Else there are none.

        Raises: as ``settings_files.staged_settings``.
        """
        if self._has_own_config or not self.repo.has_worktree:
            return {}
        index = self.repo.git_dir / "index"
        try:
            about = os.stat(index)  # noqa: PTH116 - for every request
        except OSError:
            return {}
        mark = (about.st_ino, about.st_size, about.st_mtime_ns)
        known = self.pool.staged_settings.get(index)
        if known is None or known[0] != mark:
            known = mark, settings_files.staged_settings(self.repo, self.machine.env)
            self.pool.staged_settings[index] = known
        return known[1]

    def lacks_config(self) -> bool:
        """Tell whether the project has settings, but no configuration. Raises: as ``settings_files.lacks_config``."""
        return not self.staged_settings and settings_files.lacks_config(self.settings_dir, self.settings_name)

    @property
    def settings_name(self) -> str:
        """The name of ``settings_dir`` in messages: from the top of the worktree, or its whole path if elsewhere."""
        is_here = self.settings_dir.parent == self.repo.worktree
        return KB if is_here else str(self.settings_dir)

    def answering(self, branch: str) -> str:
        """Return the branch whose store answers for this one in this request; itself, as a rule."""
        return self.tried_on.get(branch) or self.read_on.get(branch, branch)

    def answered_from(self, branch: str) -> dict[str, str]:
        """Return the member of an answer that names the branch whose store answers, where that is another one."""
        other = self.answering(branch)
        return {"answered_from": other} if other != branch else {}

    def renewed(self) -> Workspace:
        """Return this workspace with settings and schema as they are now, for whoever has waited in between.

        The settings of the user stay those with which the request was begun.
        """
        now = Workspace(self.repo, self.machine, self.pool, settles=self.folders.settles)
        now.user = self.user
        now.tried_on, now.read_on, now.makes = dict(self.tried_on), dict(self.read_on), dict(self.makes)
        return now

    @cached_property
    def config(self) -> Config:
        """The configuration in force, within the limits of the user. Raises ``InvalidConfig`` with all problems."""
        text = self.config_text()
        return bounded(DEFAULT if text is None else self.config_in(text), self.user.limits)

    def config_text(self) -> str | None:
        """Return the text of the settings file, None where there is none. Raises: ``InvalidConfig``."""
        return self._text_of(CONFIG)

    def _text_of(self, name: str) -> str | None:
        path = below(self.settings_dir, name)
        with readable(str(path)):
            text = read_text(path, self.settings_dir.parent)
        return self.staged_settings.get(f"{KB}/{name}") if text is None else text

    def config_in(self, text: str) -> Config:
        """Return the settings that a text would set here. Raises: ``InvalidConfig`` with all problems."""
        known = name_sources(lambda: self.texts_in(RULES), lambda: self.schema)
        return checked_config(settings_of(text, f"{self.settings_name}/{CONFIG}"), known)

    def with_settings(self, config: str, schemas: Mapping[str, str]) -> Workspace:
        """Return this workspace with other settings: the text of a configuration, and of schema files by their paths.

        What the configuration says of rules is not checked. Raises: ``InvalidConfig`` with all problems.
        """
        other = self.renewed()
        reading = settings_of(config, f"{KB}/{CONFIG}")
        refuse(list(reading.problems))
        other.schema = schema_of(tuple(schemas.items()))
        other.config = bounded(reading.config, self.user.limits)
        return other

    @cached_property
    def baseline_text(self) -> str | None:
        """The text of the baseline of ``kb check``, None where there is none. Raises ``InvalidConfig``."""
        return self._text_of(BASELINE)

    def leave_out_baseline(self) -> None:
        """Check in this workspace as if there were no baseline."""
        self.baseline_text = None

    @cached_property
    def user(self) -> UserSettings:
        """The settings of the user. Raises ``InvalidConfig`` with every problem of them."""
        return user_settings(self.machine.env)

    @cached_property
    def schema(self) -> Schema:
        """The schema in force: KB's own and the project's. Raises ``InvalidConfig``."""
        return schema_of(tuple(self.texts_in(SCHEMA).items()))

    def texts_in(self, folder: str) -> dict[str, str]:
        """Return the files of a folder of settings, by the path that messages name. Raises ``InvalidConfig``."""
        staged = settings_files.texts_among(self.staged_settings, folder)
        return staged | settings_files.texts_in(self.settings_dir, folder, self.settings_name)

    def cut_values(self) -> list[Problem]:
        """Return a warning for each value of a schema or rules file that a comment ends which may be meant as text."""
        return settings_files.values_cut_in(self.settings_dir, self.settings_name)

    @cached_property
    def default_branch(self) -> str:
        """The branch that new stores are copied from."""
        return git.default_branch(self.repo, self.machine.env, self.config.default_branch)

    def head(self, *, starts_git: bool = True) -> HeadState:
        """Return what is checked out at this moment. Raises: as ``git.read_head``."""
        return git.read_head(self.repo, self.machine.env, cache=self.pool.heads, starts_git=starts_git)

    def head_branch(self) -> str:
        """Return the branch of ``head``, without a look at its commit. Raises: as ``git.read_head``."""
        return git.read_branch(self.repo, self.machine.env, cache=self.pool.heads)

    def located(self, text: str, branch: str | None) -> str:
        """Return a text whose commands concern a branch (``remedies.located``); None is the one that is checked out."""
        other = ""
        if branch is not None:
            try:
                other = branch if branch != self.head().branch else ""
            except GitUnusable:  # a remedy, often one of an error, must not fail on what the request itself reports
                other = ""
        return located(text, has_worktree=self.repo.has_worktree, branch=other)

    def guard(self, branch: str) -> Callable[[], None]:
        """Return a check that HEAD still names this branch, which is made while the branch is locked.

        It raises ``BranchMoved``, and ``git.MustAskGit`` where only git can say that.
        """

        def guard() -> None:
            now = self.head(starts_git=False).branch
            if now != branch:
                raise head_moved(branch, now)

        return guard

    def head_commit(self, branch: str) -> Callable[[], str]:
        """Return a function that reads the commit which a record of this branch is made at, "" for none.

        That is the commit of HEAD while HEAD is on the branch. No write fails for want of it, or waits for git: where
        the branch follows HEAD, the guard has git asked, and the commit is read again. Where git would be started each
        time, there is none.
        """

        def commit() -> str:
            try:
                if git.needs_git_each_time(self.repo):
                    return ""
                now = self.head(starts_git=False)
            except (git.MustAskGit, GitUnusable, NotARepository):
                return ""
            return (now.commit or "") if now.branch == branch else ""

        return commit

    def store(self, branch: str) -> BranchStore:
        """Return the store of a branch; opening it fails with ``UnknownBranch`` when there is none.

        In a request that reads, it may be that of another branch (``read_on``); so it may in one that only plans a
        write (``tried_on``), and takes no record.
        """
        if branch in self.tried_on:
            store = self.store(self.tried_on[branch])
            return store.planning(partial(self.made, branch)) if branch in self.makes else store.trial
        if branch in self.read_on:
            return self.store(self.read_on[branch])
        directory = self.readable_directory_of(branch)
        return self.pool.get(self.machine, directory, partial(self._needs_of_store, branch, directory))

    def changes(self, branch: str) -> BranchClaims:
        """Return the index of the changes of the store that answers for a branch. It does without DuckDB."""
        branch = self.answering(branch)
        directory = self.readable_directory_of(branch)
        return self.pool.changes(self.machine, directory, partial(self._needs_of_store, branch, directory))

    def _needs_of_store(self, branch: str, directory: Path) -> StoreNeeds:
        name = ids.encode_branch(branch)
        views = CachePlaces(
            below(self.folders.cache_dir, name),
            below(self.folders.usual_cache_dir, name),
            self.user.limits.memory_bytes,
        )
        witness = self.witness(branch) if directory == self.folders.directory_of(branch) else None
        return StoreNeeds(views, witness, partial(_refused, self.repo, self.machine))

    def made(self, branch: str) -> BranchStore:
        """Return the store of a branch, made now where that waited for its first record."""
        if make := self.makes.pop(branch, None):
            self.tried_on.pop(branch, None)
            make()
        return self.store(branch)

    def readable_directory_of(self, branch: str) -> Path:
        """Return where the store of a branch can be read: an empty one of this process where none could be made.

        In a request that does not write, it may be that of another branch: see ``answering``.
        """
        if (other := self.answering(branch)) != branch:
            return self.readable_directory_of(other)
        directory = self.folders.directory_of(branch)
        empty = self.pool.empty_stores.get(directory)
        return directory if empty is None or os.path.lexists(directory) else empty

    @property
    def place(self) -> NotesFolder:
        """Return where the branches of the repository are noted, outside their stores."""
        return self.pool.place(self.machine, self.repo)

    def witness(self, branch: str) -> BranchWitness:
        """Return what was noted of the store of a branch, whether it exists or not."""
        return self.pool.witness(self.machine, self.repo, self.folders.directory_of(branch))

    def loss_of(self, branch: str) -> Loss | None:
        """Return what the store of a branch lacks, which may not exist; None when nothing is known to be missing.

        Raises: what reading its head raises.
        """
        of = head.read(self.machine.fs, self.folders.directory_of(branch)) if self.folders.has_store(branch) else None
        return self.witness(branch).check(of)

    def verdict_on(self, branch: str) -> Verdict:
        """Return whether the store of a branch is of the branch that git has now; ``same`` where it has none.

        Raises: ``GitUnusable`` when git's reflog cannot be read.
        """
        if ids.is_detached_name(branch) or not self.folders.has_store(branch):
            return "same"
        repo, env, directory = self.repo, self.machine.env, self.folders.directory_of(branch)
        verdict = gitref.judge(
            gitref.read(self.machine.fs, directory),
            git.birth_of(repo, env, branch, self.pool.births),
            find_presence=lambda: self._presence_of(branch),
            has_other_names=lambda: git.was_moved(repo, env, branch),
            is_older=lambda at_s: self._is_older(directory, at_s),
            has_reflog=lambda: git.has_reflog(repo, env, branch),
        )
        # The default branch always exists for KB, and its store is never put away.
        return "same" if verdict != "same" and branch == self.default_branch else verdict

    def _presence_of(self, branch: str) -> Presence:
        if git.is_branch(self.repo, self.machine.env, branch):
            return "ref"
        return "checked_out" if git.is_in_use(self.repo, self.machine.env, branch) else "none"

    def _is_older(self, directory: Path, at_s: int) -> bool:
        """Tell whether a store has records that it did not get by a copy, all of them from before a time."""
        try:
            of = head.read(self.machine.fs, directory)
        except (Damaged, Incompatible):  # whoever reads or writes the branch says so
            return False
        copied = of.origin.seq if of.origin else 0
        return of.seq > copied and clock.is_before(of.head.at, at_s)

    def ref_seen(self, branch: str, *, is_doubted: bool = False) -> RefSeen:
        """Return what git has of a branch now, to be noted in its store. Raises: ``GitUnusable``."""
        repo, env = self.repo, self.machine.env
        birth = git.birth_of(repo, env, branch, self.pool.births)
        has_ref = birth is not None or git.is_branch(repo, env, branch)
        return RefSeen(gitref.FORMAT, birth.mark if birth else "", has_ref, is_doubted)

    def has_seen(self, branch: str, other: str) -> bool:
        """Tell whether what the store of a branch saw last in git is another branch, as git has that now.

        Raises: ``GitUnusable``.
        """
        seen = (
            gitref.read(self.machine.fs, self.folders.directory_of(branch)) if self.folders.has_store(branch) else None
        )
        if seen is None or not seen.birth:
            return False
        birth = git.birth_of(self.repo, self.machine.env, other, self.pool.births)
        return birth is not None and birth.mark == seen.birth


def _refused(repo: Repository, machine: Machine, error: ReadOnlyStore) -> ReadOnlyStore:
    """Return the same as ``Folders.refused``, with the settings of this moment: a store outlives a request."""
    try:
        return Folders(repo, machine, lambda: user_settings(machine.env)).refused(error)
    except InvalidConfig:  # the settings were replaced since the request began
        return error


def head_moved(old: str, new: str) -> BranchMoved:
    """Return the error for a HEAD that names another branch than before."""
    message = f"HEAD moved from {old} to {new} while the request ran."
    return BranchMoved(message, data={"old": old, "new": new})


def open_workspace(
    start: Path,
    machine: Machine,
    pool: StorePool,
    *,
    git_dir: Path | None = None,
    work_tree: Path | None = None,
    settles: bool = True,
) -> Workspace:
    """Return the workspace of the repository that holds ``start``.

    With ``settles`` the stores of an older layout are moved, and ``moved`` says so (``relocation``).

    Raises: ``NotARepository``, ``GitUnusable``, ``NotInitialised``; ``StorageError`` when ``.kb`` is not as KB left it;
    what ``relocation.move_older_stores`` and ``unread.require_untracked`` raise.
    """
    if git_dir is None:
        repo = pool.repositories.find(start)
        if repo not in pool.trusted:
            git.check_owner(repo, machine.env)
            pool.trusted.add(repo)
    else:
        repo = git.find_repository(start, git_dir=git_dir, work_tree=work_tree)
    workspace = Workspace(repo, machine, pool, settles=settles)
    if not _is_link(machine.fs, workspace.folders.kb_dir):
        if settles:
            try:
                workspace.moved = relocation.move_older_stores(
                    workspace.folders, pool, lambda: workspace.config.lock_wait_s
                )
            except ReadOnlyStore as error:
                workspace = Workspace(repo, machine, pool, settles=False)
                workspace.unmovable = error
        else:
            require_untracked(workspace.folders, pool)
    check_initialised(workspace)
    _ = workspace.config  # whatever is asked: settings that cannot be used are refused before anything is done
    return workspace


def check_initialised(workspace: Workspace) -> None:
    """Refuse a repository without a KB.

    Raises: ``NotInitialised``; ``StorageError`` when ``.kb`` is not as KB left it.
    """
    fs = workspace.machine.fs
    if _is_link(fs, workspace.folders.kb_dir):
        message = f"{workspace.folders.kb_dir} is a link; KB keeps its settings only in a directory of its own."
        raise NotInitialised(message, hint="Replace the link with the folder itself.")
    has_stores = files.is_directory(fs, workspace.folders.data_dir) and workspace.folders.has_branches_dir()
    has_stores = has_stores or kind_of(fs, workspace.folders.shown_branches) == "folder"
    has_settings = below(workspace.settings_dir, CONFIG).is_file() or bool(workspace.staged_settings)
    if has_stores or has_settings or workspace.lacks_config():
        return
    if files.is_directory(fs, workspace.settings_dir):
        message = f"{workspace.settings_dir} holds no settings: neither {CONFIG} nor a file in {SCHEMA} or {RULES}."
        raise NotInitialised(message)
    raise NotInitialised(f"There is no {KB} in {workspace.repo.kb_root}.")


def _is_link(fs: Fs, path: Path) -> bool:
    try:
        return stat.S_ISLNK(fs.lstat(path).st_mode)
    except OSError:  # absent, or not to be looked at: what comes next says so in its own words
        return False
