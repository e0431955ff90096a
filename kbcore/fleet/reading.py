"""Reading a fleet: its heads, and the branch of each as a view, with the settings of its repository."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from kbcore.config.settings import DEFAULT, Config, checked_config
from kbcore.config.user import UserSettings, bounded
from kbcore.errors import KBError, StorageError, ViewDamaged
from kbcore.fleet import head as heads
from kbcore.fleet import settings
from kbcore.fleet.head import AGAIN, FleetHead
from kbcore.fleet.place import Place, read_head, read_part
from kbcore.fleet.settings import SettingsTexts
from kbcore.model.schema import Schema
from kbcore.storage import files
from kbcore.storage.fs import RealFs
from kbcore.store.kb_folder import KB
from kbcore.store.pool import Machine
from kbcore.store.settings_files import CONFIG, RULES, SCHEMA, name_sources, schema_of, settings_of
from kbcore.text.globs import names_any
from kbcore.view import database
from kbcore.view.base_stamp import BaseStamp
from kbcore.view.database import Connection
from kbcore.view.parquet import KINDS, database_of_parts, open_parts
from kbcore.view.view import View


class UnreadRepository(msgspec.Struct, frozen=True):
    """A repository that could not be asked, and why: the others are asked all the same."""

    repo: str
    branch: str
    code: str
    message: str
    hint: str


class FleetSelection(msgspec.Struct, frozen=True):
    """The repositories and branches that are meant, as globs; without branches the default one of each repository."""

    repos: tuple[str, ...] = ()
    branch: str = ""


class SelectedHeads(msgspec.Struct, frozen=True):
    """The heads that a selection means, in the order of repositories and branches, and those that are unreadable."""

    heads: list[FleetHead]
    failures: list[UnreadRepository]


def find(place: Place, selection: FleetSelection) -> SelectedHeads:
    """Return the heads of a place that a selection means. Raises: ``StorageError`` where the place is unreadable."""
    found, failures = list[FleetHead](), list[UnreadRepository]()
    for path in place.heads():
        repo, branch = heads.names_in(path)
        if not _is_meant(selection, repo, branch):
            continue
        try:
            data = read_head(place, path)
            if data is not None:  # it went away meanwhile
                found.append(heads.decode(data, path))
        except KBError as error:
            failures.append(failure_of(repo, branch, error))
    if not selection.branch:
        marked = {one.repo for one in found if one.is_default}
        failures = [one for one in failures if one.repo not in marked]
        # A head that cannot be read may be that of the default branch: no other one is asked in its place.
        unclear = marked | {one.repo for one in failures}
        found = [one for one in found if one.is_default or one.repo not in unclear]
    return SelectedHeads(sorted(found, key=lambda one: (one.repo, one.branch)), failures)


def _is_meant(selection: FleetSelection, repo: str, branch: str) -> bool:
    is_repo = not selection.repos or is_named(selection.repos, repo)
    return is_repo and (not selection.branch or is_named((selection.branch,), branch))


def is_named(globs: Collection[str], name: str) -> bool:
    """Tell whether one of these globs means a repository or a branch. A name with signs of globs means itself too."""
    return name in globs or names_any(globs, name)


def failure_of(repo: str, branch: str, error: KBError) -> UnreadRepository:
    """Return why a repository could not be asked."""
    return UnreadRepository(repo, branch, error.code, error.message, error.hint)


class ExportedSettings:
    """The settings of a repository as it exported them, within the limits of the user who asks."""

    settings_name = KB

    def __init__(self, texts: SettingsTexts, machine: Machine, user: UserSettings) -> None:
        self._texts = texts
        self.machine = machine
        self.user = user

    @property
    def baseline_text(self) -> str | None:
        """The text of the baseline, None where there is none."""
        return self._texts.baseline

    def texts_in(self, folder: str) -> dict[str, str]:
        """Return the files of a folder of settings, by the path that messages name."""
        return {SCHEMA: self._texts.schema, RULES: self._texts.rules}[folder]

    @cached_property
    def schema(self) -> Schema:
        """The schema of the project. Raises ``InvalidConfig``."""
        return schema_of(tuple(self._texts.schema.items()))

    @cached_property
    def config(self) -> Config:
        """The configuration. Raises ``InvalidConfig`` with all problems."""
        if self._texts.config is None:
            return bounded(DEFAULT, self.user.limits)
        known = name_sources(lambda: self._texts.rules, lambda: self.schema)
        return bounded(checked_config(settings_of(self._texts.config, f"{KB}/{CONFIG}"), known), self.user.limits)


class Asker(msgspec.Struct, frozen=True):
    """The asker: the machine, the settings of the user, and the first instant that does not count, "" for now."""

    machine: Machine
    user: UserSettings
    before: str = ""


class Member(msgspec.Struct, frozen=True):
    """A branch of a fleet, opened: its head, its facts, and the settings of its repository."""

    head: FleetHead
    view: View
    settings: ExportedSettings


@contextlib.contextmanager
def opened(
    place: Place,
    head: FleetHead,
    machine: Machine,
    user: UserSettings,
    shared: Connection,
    *,
    kinds: Collection[str] = KINDS,
) -> Iterator[Member]:
    """Open a branch for the length of the block, in a database that others are opened in before and after.

    Only parts of these kinds are read: of others it has no rows.

    Raises: ``StorageError`` where a part is missing or damaged; what the block raises.
    """
    own = settings_in(place, head, machine, user)
    basis = BaseStamp(head.store, head.lineage, head.seq, head.sum, head.at, "", 0, head.history_from, head.listed_from)
    with database.scratch_folder() as folder:
        paths = copied(place, head, Path(folder), kinds)
        with contextlib.ExitStack() as stack:
            try:
                view = stack.enter_context(open_parts(shared, paths, basis))
            except ViewDamaged as error:
                raise StorageError(f"A part of {head.repo} cannot be read: {error}.", hint=AGAIN) from error
            yield Member(head, view, own)


def settings_in(place: Place, head: FleetHead, machine: Machine, user: UserSettings) -> ExportedSettings:
    """Return the settings that a repository exported with a branch. Raises: ``StorageError``."""
    return ExportedSettings(settings.decode(read_part(place, head.settings), head.settings.path), machine, user)


@contextlib.contextmanager
def shared_database(user: UserSettings) -> Iterator[Connection]:
    """Yield the database that branches are opened in, within the limits of the user who asks."""
    with contextlib.closing(database_of_parts(memory_bytes=user.limits.memory_bytes)) as shared:
        yield shared


def copied(place: Place, head: FleetHead, folder: Path, kinds: Collection[str] = KINDS) -> dict[str, Sequence[str]]:
    """Copy the parts of a head of these kinds into a folder, each compared with its digest, and return them by kind.

    Raises: ``StorageError``.
    """
    paths: dict[str, list[str]] = {}
    for number, part in enumerate(head.parts):
        if part.kind not in kinds:
            continue
        path = folder / f"{len(head.parts)}-{number}-{part.sha256[:16]}.parquet"
        files.write_synced(_UNSYNCED, path, read_part(place, part))
        paths.setdefault(part.kind, []).append(str(path))
    return dict(paths)


class _UnsyncedFs(RealFs):
    """The file system for copies that end with this process: nothing is made durable."""

    def fsync(self, fd: int) -> None:
        """Do nothing."""


_UNSYNCED: Final = _UnsyncedFs()
