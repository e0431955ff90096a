"""Detection of documents that no settings read, and the settings that would; writes those that are taken."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from kbcore import gc_pause
from kbcore.errors import InvalidConfig, InvalidQuery
from kbcore.extract import markdown
from kbcore.extract.settings import PATHS
from kbcore.extract.sources import detection
from kbcore.extract.sources.detection import Configured, Detection
from kbcore.extract.sources.proposal import SettingsProposal, of_setting
from kbcore.git.tracked_paths import listed_paths
from kbcore.git.worktree_content import Unfit, check, read_beginning
from kbcore.store.settings_edit import change_settings
from kbcore.store.workspace import Workspace
from kbcore.sync.active_extractors import document_extractors
from kbcore.text.json_edit import with_item, with_member


def detect(workspace: Workspace, paths: Iterable[str]) -> Detection:
    """Return what a worktree with these files has beyond what is configured. Raises: ``InvalidConfig``."""
    configured = [Configured(one.extractor, one.settings, one.globs) for one in document_extractors(workspace)]
    with gc_pause.paused():
        return detection.detect(paths, reader(workspace), configured)


def paths_of(workspace: Workspace) -> list[str]:
    """Return the files that git tracks, and those that it neither tracks nor ignores. Raises: ``GitUnusable``."""
    return listed_paths(workspace.repo, workspace.machine.env) if workspace.repo.has_worktree else []


def reader(workspace: Workspace) -> Callable[[str, int], bytes | None]:
    """Return what reads the beginning of a file of the worktree, as sync may read it."""
    root = workspace.repo.worktree

    def read(path: str, most_bytes: int) -> bytes | None:
        place = os.path.join(root, path)  # noqa: PTH118 - as `os.scandir` names it
        try:
            check(place, os.stat(place), root, is_direct=False)  # noqa: PTH116
            return read_beginning(place, most_bytes)
        except (OSError, Unfit):
            return None  # sync names it, once it is to be read

    return read


def changed(
    workspace: Workspace, proposal: SettingsProposal, value: dict[str, Any] | list[str], setting: str
) -> SettingsProposal:
    """Return a proposal with another value and setting, and what these give.

    Raises: ``InvalidQuery`` for settings that cannot be used.
    """
    wanted = msgspec.structs.replace(proposal, setting=setting)
    check_text(workspace, _with("{}\n", msgspec.structs.replace(wanted, value=value), {}))
    return of_setting(wanted, value, paths_of(workspace), reader(workspace))


def check_text(workspace: Workspace, text: str, *, what: str = "settings") -> None:
    """Refuse a text of settings that cannot be used; ``what`` it is, in the message.

    Raises: ``InvalidQuery``, which names the first fault.
    """
    try:
        workspace.config_in(text)
    except InvalidConfig as error:
        first = error.details[0] if error.details else None
        # The text has one entry, which need not be that of the settings file with this number.
        place = first.path.removeprefix("$").removeprefix(".sources[0]").removeprefix(".") if first else ""
        said = (f"{place}: {first.message}" if place else first.message) if first else error.message
        raise InvalidQuery(f"The {what} cannot be used: {said}", hint=first.remedy if first else "") from error


def take(workspace: Workspace, proposals: Sequence[SettingsProposal]) -> bool:
    """Add proposals to the settings file; all else in it stays as it is. Return whether it was changed.

    Raises: as ``settings_edit.change_settings``.
    """
    stated = workspace.config

    def change(text: str) -> str:
        for one in proposals:
            text = _with(text, one, stated.extractors)
        return text

    return bool(proposals) and change_settings(workspace, change)


def _with(text: str, proposal: SettingsProposal, stated: dict[str, dict[str, Any]]) -> str:
    if isinstance(proposal.value, dict):
        return with_item(text, ["sources"], proposal.value)
    path = proposal.setting.split(".")
    if path[1] == markdown.NAME and PATHS not in stated.get(markdown.NAME, {}):
        # What the file says of `paths` takes the place of all defaults.
        text = with_member(text, path[:-1], {name: list(globs) for name, globs in markdown.DEFAULT_PATHS.items()})
    for glob in proposal.value:
        text = with_item(text, path, glob)
    return text
