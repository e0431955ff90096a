"""Reads and writes hook files. Each file is replaced whole or not at all, and links are never followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from kbcli.hooks import script
from kbcli.hooks.place import Place, find_place, remedy_managed, remedy_outside
from kbcore.git import Repository

State = Literal["active", "outdated", "absent", "ignored", "foreign", "managed", "outside", "failed"]
Action = Literal["created", "added", "updated", "kept", "removed", "deleted", "none"]

_ANY_EXECUTE = 0o111
_MODE_OF_A_NEW_HOOK = 0o755
_MAX_HOOK_BYTES = 1024 * 1024


class HookResult(msgspec.Struct, frozen=True):
    """How one hook stands, and what was done about it."""

    event: str
    path: str
    """The hook file that was looked at or written."""
    state: State
    """``active``: KB's lines are there and are run. ``outdated``: so, but they are of another version or name
    another program. ``absent``: no lines. ``ignored``: they are there and are not run. ``foreign``: a hook
    that KB does not touch. ``managed``: another program owns the hooks. ``outside``: the folder that git runs
    hooks from serves other repositories as well. ``failed``: the operating system refused."""
    action: Action = "none"
    remedy: str = ""
    """What to do by hand; empty when there is nothing."""


class _Hook(msgspec.Struct, frozen=True):
    """One hook file as it stands; ``foreign`` says why KB leaves it alone."""

    path: Path
    exists: bool = False
    content: bytes = b""
    mode: int = _MODE_OF_A_NEW_HOOK
    foreign: str = ""


def install(
    repo: Repository,
    env: Mapping[str, str],
    *,
    hooks_path: Path | None = None,
    fallback: Path | None = None,
) -> list[HookResult]:
    """Put KB's lines into the hooks that are run, or into those of ``hooks_path``; idempotent.

    ``fallback`` is the program for when PATH has no ``kb``; see ``own_program``. What could not be done is
    said in the results.

    Raises:
        GitUnusable: git cannot tell where its hooks are.
    """
    place = find_place(repo, env, hooks_path, fallback)
    return [_guarded(_install_one, place, event) for event in script.EVENTS]


def uninstall(repo: Repository, env: Mapping[str, str], *, hooks_path: Path | None = None) -> list[HookResult]:
    """Take KB's lines out of the hooks, also out of git's own folder when another one is in use.

    A file that holds nothing else is deleted.

    Raises:
        GitUnusable: git cannot tell where its hooks are.
    """
    place = find_place(repo, env, hooks_path)
    results = [_guarded(_uninstall_one, place, event) for event in script.EVENTS]
    default = repo.common_dir / "hooks"
    if hooks_path is None and default != place.folder:
        own = msgspec.structs.replace(place, folder=default, is_outside=False)
        left = [_guarded(_uninstall_one, own, event) for event in script.EVENTS]
        results += [result for result in left if result.action != "none"]
    return results


def status(
    repo: Repository,
    env: Mapping[str, str],
    *,
    hooks_path: Path | None = None,
    fallback: Path | None = None,
) -> list[HookResult]:
    """Say how the hooks stand, and write nothing. Lines that name another ``fallback`` are outdated.

    Raises:
        GitUnusable: git cannot tell where its hooks are.
    """
    place = find_place(repo, env, hooks_path, fallback)
    results = [_guarded(_look, place, event) for event in script.EVENTS]
    return results if hooks_path is not None else [_with_shadowed(repo, place, result) for result in results]


def _guarded(act: Callable[[Place, str], HookResult], place: Place, event: str) -> HookResult:
    try:
        return act(place, event)
    except OSError as error:
        remedy = f"{error.filename or place.folder}: {error.strerror}. Mend that and run the command again."
        return HookResult(event=event, path=str(place.folder / event), state="failed", remedy=remedy)


def _look(place: Place, event: str) -> HookResult:
    hook = _read(place.folder / event)
    judge = _judge_ours if script.has_block(hook.content) and not hook.foreign else _judge_other
    state, remedy = judge(place, event, hook)
    return HookResult(event=event, path=str(hook.path), state=state, remedy=remedy)


def _judge_ours(place: Place, event: str, hook: _Hook) -> tuple[State, str]:
    """Judge a hook that has KB's lines."""
    if not place.is_run:
        return "ignored", _remedy_not_run(place)
    if not _is_executable(place, hook):
        return "ignored", f"git ignores {hook.path}: make it executable with `chmod +x`."
    if script.with_block(hook.content, place.lines(event)) != hook.content:
        return "outdated", "Run `kb hooks install`."
    return "active", ""


def _judge_other(place: Place, event: str, hook: _Hook) -> tuple[State, str]:
    """Judge a hook without KB's lines, or one that is not there."""
    if hook.foreign:
        reason = f"{hook.path} {hook.foreign}, so KB leaves it alone."
        if script.is_mangled(hook.content):
            return "foreign", f"{reason} Remove them by hand, then run `kb hooks install`."
        return "foreign", f"{reason} Make it run this line of shell: {script.snippet(event)}"
    if place.is_outside:
        return "outside", remedy_outside(place, event)
    if hook.exists and not _is_executable(place, hook):
        return "foreign", (
            f"git ignores {hook.path}, because it is not executable, and KB does not bring it to life."
            " Delete it, or make it executable with `chmod +x`, then run `kb hooks install`."
        )
    if place.manager:
        return "managed", remedy_managed(place.manager, event)
    return "absent", "Run `kb hooks install`."


def _is_executable(place: Place, hook: _Hook) -> bool:
    return place.is_husky or bool(hook.mode & _ANY_EXECUTE)


def _remedy_not_run(place: Place) -> str:
    if place.is_husky:
        return f"husky runs it once {place.active} exists: run `npx husky` in this worktree."
    return (
        f"git runs hooks from {place.active}, not from here. To change that:"
        f" `git config core.hooksPath '{place.folder}'`."
    )


def _install_one(place: Place, event: str) -> HookResult:
    hook = _read(place.folder / event)
    seen = _look(place, event)
    if seen.state in {"foreign", "managed", "outside"}:
        return seen
    content = script.with_block(hook.content, place.lines(event))
    mode = _MODE_OF_A_NEW_HOOK if script.is_ours_alone(content) else hook.mode
    if hook.exists and content == hook.content and mode == hook.mode:
        return msgspec.structs.replace(seen, action="kept")
    _write(hook.path, content, mode)
    action: Action = "created"
    if hook.exists:
        action = "updated" if script.has_block(hook.content) else "added"
    return msgspec.structs.replace(_look(place, event), action=action)


def _uninstall_one(place: Place, event: str) -> HookResult:
    hook = _read(place.folder / event)
    if hook.foreign or place.is_outside or not script.has_block(hook.content):
        state: State = "foreign" if script.is_mangled(hook.content) else "absent"
        remedy = f"Remove KB's lines from {hook.path} by hand." if state == "foreign" else ""
        return HookResult(event=event, path=str(hook.path), state=state, remedy=remedy)
    action: Action = "removed"
    if script.is_ours_alone(hook.content):
        hook.path.unlink()
        action = "deleted"
    else:
        _write(hook.path, script.without_block(hook.content), hook.mode)
    return HookResult(event=event, path=str(hook.path), state="absent", action=action)


def _with_shadowed(repo: Repository, place: Place, result: HookResult) -> HookResult:
    """Return the result, or, where there are no lines, that those in git's own folder are not run."""
    own = msgspec.structs.replace(place, folder=repo.common_dir / "hooks", is_husky=False)
    if result.state in {"active", "outdated", "ignored"} or own.folder == place.folder:
        return result
    shadowed = _guarded(_look, own, result.event)
    if shadowed.state != "ignored":
        return result
    remedy = f"git runs hooks from {place.active} instead (core.hooksPath). {result.remedy}"
    return msgspec.structs.replace(shadowed, remedy=remedy)


def _read(path: Path) -> _Hook:
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return _Hook(path=path)
    if stat.S_ISLNK(found.st_mode):
        return _Hook(path=path, exists=True, foreign="is a symbolic link")
    if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_HOOK_BYTES:
        return _Hook(path=path, exists=True, foreign="is no script")
    content = path.read_bytes()
    foreign = "" if script.is_shell(content) else "is no shell script"
    if script.is_mangled(content):
        foreign = "holds a part of KB's lines without their end"
    return _Hook(path=path, exists=True, content=content, mode=stat.S_IMODE(found.st_mode), foreign=foreign)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Replace a hook; synced first, so that no crash leaves somebody's script empty."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.kb-{os.getpid()}")
    try:
        with new.open("xb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
