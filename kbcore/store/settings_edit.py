"""Changes the settings file of a repository: one setting at a time, under a lock, and never to what is wrong."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from kbcore import limits
from kbcore.errors import InvalidConfig, NotInitialised, Problem
from kbcore.storage import files
from kbcore.storage.lock import held
from kbcore.storage.replacing import not_written, replace_file
from kbcore.store.settings_files import CONFIG
from kbcore.store.workspace import Workspace
from kbcore.text.json_edit import with_member, without_member
from kbcore.text.json_reader import NotJson

LOCK: Final = "config"
"""The name of the lock of those who write settings (``Folders.lock_path``)."""
_COMMAND: Final = "kb config"
_OF_GLOBS: Final = frozenset({"paths", "ignore"})
"""Settings of extractors that are globs."""


def set_setting(workspace: Workspace, name: str, value: Any) -> bool:
    """Set one setting; all else in the file stays as it is. Return whether the file was changed.

    Raises: ``NotInitialised`` where there is no KB; ``InvalidConfig`` for a value that the setting does not take;
        ``LockTimeout``; ``StorageFull``, ``StorageError``.
    """
    return change_settings(workspace, lambda text: with_member(text, name.split("."), value))


def unset_setting(workspace: Workspace, name: str) -> bool:
    """Remove one setting, or all whose names begin so. Return whether the file stated it.

    Raises: as ``set_setting``.
    """
    return change_settings(workspace, lambda text: without_member(text, name.split(".")))


def change_settings(workspace: Workspace, change: Callable[[str], str]) -> bool:
    """Give the settings file the text that ``change`` makes of it, under a lock. Return whether it was changed.

    Raises: as ``set_setting``.
    """
    name = f"{workspace.settings_name}/{CONFIG}"
    if not workspace.settings_dir.is_dir():
        raise NotInitialised(f"There is no {name}.")
    fs, path = workspace.machine.fs, workspace.folders.lock_path(LOCK)
    for one in (path.parent.parent, path.parent):
        files.make_directory(fs, one)
    # The settings may be what is wrong: how long to wait is not looked up in them.
    with held(fs, workspace.machine.clock, path, wait_s=limits.LOCK_WAIT_S, command=_COMMAND):
        text = workspace.config_text()
        try:
            changed = change(text or "{}\n")
        except NotJson as error:
            raise InvalidConfig(f"{name}:{error.line}: {error}.", hint="Correct the file by hand first.") from error
        _check(workspace, text, changed)
        if changed == (text or "{}\n"):
            return False
        # Through a link: a settings file may be one, to a file of the same folder.
        file = Path(os.path.realpath(workspace.settings_dir / CONFIG))
        try:
            mode = stat.S_IMODE(file.stat().st_mode) if text is not None else 0o644
            replace_file(file, changed.encode(), mode)
        except OSError as error:
            raise not_written(name, error) from error
    return True


def folders_in(workspace: Workspace, name: str, value: Any) -> list[str]:
    """Return the globs in the value of a setting that name a folder: such a glob fits no file in it."""
    if not _OF_GLOBS & {*name.split(".")}:
        return []
    return [glob for glob in _texts(value) if glob and (workspace.repo.worktree / glob).is_dir()]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(one)


def _check(workspace: Workspace, before: str | None, after: str) -> None:
    """Raise what is wrong with a changed text: what the change makes wrong without a line, else what was wrong before.

    Raises: ``InvalidConfig``.
    """
    problems = _problems(workspace, after)
    if not problems:
        return
    earlier = {(one.path, one.code): one for one in _problems(workspace, before or "{}")}
    made = [
        Problem(one.path, one.code, one.message, one.remedy) for one in problems if (one.path, one.code) not in earlier
    ]
    shown = made or [earlier[one.path, one.code] for one in problems]
    first = shown[0]
    more = f" (and {len(shown) - 1} more)" if len(shown) > 1 else ""
    place = f"{first.place}: " if first.source else ""
    raise InvalidConfig(f"{place}{first.message}{more}", hint=first.remedy, details=shown, says_first=True)


def _problems(workspace: Workspace, text: str) -> list[Problem]:
    try:
        workspace.config_in(text)
    except InvalidConfig as error:
        return list(error.details) or [Problem("$", "invalid", error.message, error.remedy)]
    return []
