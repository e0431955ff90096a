"""Reads and writes hook files. Each file is replaced whole or not at all, and links are never followed."""

from __future__ import annotations

import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from kbcli.hooks import managers, script
from kbcli.hooks.hook_folder import HookFolder, remedy_outside
from kbcli.hooks.managers import Manager
from kbcli.hooks.results import REINSTALL, Action, HookResult, State
from kbcore.errors.remedies import kb
from kbcore.limits import MAX_CONFIG_BYTES
from kbcore.storage.replacing import replace_file

_ANY_EXECUTE = 0o111
_READ = 0o444


class _Hook(msgspec.Struct, frozen=True):
    """One hook file as it is; ``foreign`` says why KB does not change it."""

    path: Path
    exists: bool = False
    content: bytes = b""
    mode: int = 0
    foreign: str = ""


def look(place: HookFolder, event: str) -> HookResult:
    """Return the state of the file of a hook. Raises: ``OSError``."""
    hook = _read(_target(place, event))
    judge = _judge_ours if script.has_block(hook.content) and not hook.foreign else _judge_other
    state, remedy = judge(place, event, hook)
    return HookResult(event=event, path=str(hook.path), state=state, remedy=remedy)


def install(place: HookFolder, event: str) -> HookResult:
    """Put KB's lines into the file of a hook, unless that is for others to do. Raises: ``OSError``, ``GitUnusable``."""
    hook = _read(_target(place, event))
    seen = look(place, event)
    has_block = script.has_block(hook.content)
    if seen.state in {"foreign", "managed", "outside"} or (seen.state in {"active", "ignored"} and not has_block):
        return seen
    content = script.with_block(hook.content, place.lines(event))
    mode = hook.mode
    if script.is_ours_alone(content) and hook.exists:
        mode |= (mode & _READ) >> 2  # git runs it only where it is executable
    if hook.exists and content == hook.content and mode == hook.mode:
        return msgspec.structs.replace(seen, action="kept")
    replace_file(hook.path, content, mode if hook.exists else None, share=place.shared_bits())
    action: Action = "created"
    if hook.exists:
        action = "updated" if has_block else "added"
    return msgspec.structs.replace(look(place, event), action=action)


def uninstall(place: HookFolder, event: str) -> list[HookResult]:
    """Take KB's lines out of the file of a hook, and out of what other programs have made of that.

    The first result is that of the hook itself; files that others set aside follow where something was done.

    Raises: ``OSError``.
    """
    first, *aside = [_uninstall_at(place, event, f"{event}{ending}") for ending in ("", *managers.ASIDE)]
    return [first, *(one for one in aside if one.action != "none")]


def hooks_in(folder: Path) -> list[Path]:
    """Return the files of a folder that may be hooks; git's own samples are none. Raises: ``OSError``."""
    return [path for path in folder.glob("*") if path.suffix != ".sample" and path.is_file()]


def other_hooks(folder: Path) -> tuple[str, ...]:
    """Return the names of the hooks in a folder that git would run and that are not only of KB. Raises: ``OSError``."""
    found = [path for path in hooks_in(folder) if path.stat().st_mode & _ANY_EXECUTE]
    return tuple(sorted(path.name for path in found if not _is_kb_alone(_read(path))))


def _is_kb_alone(hook: _Hook) -> bool:
    return script.has_block(hook.content) and script.is_ours_alone(hook.content)


def _target(place: HookFolder, event: str) -> Path:
    """Return the file that KB's lines belong in: what a program runs besides its own script, if it wrote the hook."""
    hook = _read(place.folder / event)
    author = None if script.has_block(hook.content) else managers.author_of(hook.content)
    return hook.path.with_name(f"{event}{author.aside}") if author and author.runs_aside else hook.path


def _judge_ours(place: HookFolder, event: str, hook: _Hook) -> tuple[State, str]:
    """Judge a hook that has KB's lines."""
    if not place.is_run:
        return "ignored", _remedy_not_run(place)
    if place.is_husky and (author := managers.author_of(_read(place.active / event).content)):
        return "ignored", f"{author.name} wrote over husky's {place.active / event}: run `npx husky`."
    if not _is_executable(place, hook):
        return "ignored", f"git ignores {hook.path}: make it executable with `chmod +x`."
    if script.with_block(hook.content, place.lines(event)) != hook.content:
        return "outdated", REINSTALL
    return "active", ""


def _judge_other(place: HookFolder, event: str, hook: _Hook) -> tuple[State, str]:
    """Judge a hook without KB's lines, or one that is not there."""
    if hook.foreign:
        reason = f"{hook.path} {hook.foreign}, so KB does not change it."
        if script.is_mangled(hook.content):
            return "foreign", f"{reason} Remove them by hand, then {kb('hooks', 'install', lead='run')}."
        if _is_executable(place, hook) and managers.calls_kb(hook.content, event):
            return "active", ""
        return "foreign", f"{reason} Make it run this line of shell: {script.snippet(event)}"
    if place.is_outside:
        return "outside", remedy_outside(place, event)
    if hook.exists and not _is_executable(place, hook):
        return "foreign", (
            f"git ignores {hook.path}, because it is not executable, and KB does not make it executable."
            f" Delete it, or make it executable with `chmod +x`, then {kb('hooks', 'install', lead='run')}."
        )
    if place.is_run and managers.calls_kb(hook.content, event):
        return "active", ""
    return _judge_managed(place, event) if place.is_run else ("absent", REINSTALL)


def _judge_managed(place: HookFolder, event: str) -> tuple[State, str]:
    """Judge a hook that another program has written, or would delete."""
    author = managers.author_of(_read(place.folder / event).content)
    caller = next((one for one in managers.MANAGERS if _names_kb(place.worktree, one, event)), None)
    if caller and (fault := _fault(place.worktree, caller, event)):
        return "ignored", f"{fault} {caller.name} runs nothing until that is corrected."
    if caller:
        return ("active", "") if author else ("managed", managers.remedy_run_again(caller, event))
    manager = author or (managers.SIMPLE if not place.is_husky and _is_simple(place.worktree) else None)
    if manager is None:
        return "absent", REINSTALL
    if manager.runs_aside:
        return "absent", REINSTALL
    is_named = author is not None or any(managers.names(one, event) for one in _configuration(place.worktree, manager))
    remedy = managers.remedy(manager, event, is_named=is_named)
    aside = place.folder / f"{event}{manager.aside}"
    if manager.aside and script.has_block(_read(aside).content):
        return "ignored", f"{manager.name} set KB's lines aside, as {aside}. {remedy}"
    return "managed", remedy


def _names_kb(worktree: Path, manager: Manager, event: str) -> bool:
    return any(managers.calls_kb(content, event) for content in _configuration(worktree, manager))


def _fault(worktree: Path, manager: Manager, event: str) -> str:
    """Return what keeps a program from reading the file that has it run ``kb``, or nothing. Only YAML is checked."""
    from kbcore.text import yaml_salvage

    for path in (worktree / name for name in manager.configs if name.endswith((".yml", ".yaml"))):
        content = _content_of(path)
        if managers.calls_kb(content, event):
            problems = yaml_salvage.read_mapping(content.decode("utf-8", "replace"), 1).problems
            for one in problems:
                if one.code == "invalid_yaml":
                    return f"{path}:{one.line}: {one.message}."
    return ""


def _configuration(worktree: Path, manager: Manager) -> Iterator[bytes]:
    """Yield the content of the files that may configure a program."""
    return (_content_of(worktree / name) for name in manager.configs)


def _is_simple(worktree: Path) -> bool:
    """Return whether the repository is set up for a program that deletes unknown hooks."""
    own = [worktree / name for name in managers.SIMPLE.configs if name != managers.PACKAGE]
    return any(path.is_file() for path in own) or managers.is_simple(_content_of(worktree / managers.PACKAGE))


def _is_executable(place: HookFolder, hook: _Hook) -> bool:
    return place.is_husky or bool(hook.mode & _ANY_EXECUTE)


def _remedy_not_run(place: HookFolder) -> str:
    if place.is_husky:
        return f"husky runs it once {place.active} exists: run `npx husky` in this worktree."
    others = other_hooks(place.active)
    move = f" move {', '.join(others)} here, which git would no longer run there, then" if others else ""
    return (
        f"git runs hooks from {place.active}, not from here. To change that:{move}"
        f" `git config core.hooksPath {shlex.quote(str(place.folder))}`."
    )


def _uninstall_at(place: HookFolder, event: str, name: str) -> HookResult:
    hook = _read(place.folder / name)
    if hook.foreign or place.is_outside or not script.has_block(hook.content):
        state: State = "foreign" if script.is_mangled(hook.content) else "absent"
        remedy = f"Remove KB's lines from {hook.path} by hand." if state == "foreign" else ""
        return HookResult(event=event, path=str(hook.path), state=state, remedy=remedy)
    action: Action = "removed"
    if script.is_ours_alone(hook.content):
        hook.path.unlink()
        action = "deleted"
    else:
        replace_file(hook.path, script.without_block(hook.content), hook.mode)
    return HookResult(event=event, path=str(hook.path), state="absent", action=action)


def _read(path: Path) -> _Hook:
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return _Hook(path=path)
    if stat.S_ISLNK(found.st_mode):
        return _Hook(path=path, exists=True, foreign="is a symbolic link")
    if not stat.S_ISREG(found.st_mode) or found.st_size > script.MAX_HOOK_BYTES:
        return _Hook(path=path, exists=True, foreign="is no script")
    content = path.read_bytes()
    foreign = "" if script.is_shell(content) else "is no shell script"
    if script.is_mangled(content):
        foreign = "has a part of KB's lines without their end"
    return _Hook(path=path, exists=True, content=content, mode=stat.S_IMODE(found.st_mode), foreign=foreign)


def _content_of(path: Path) -> bytes:
    """Return what a program's configuration holds; nothing where it is none that a person wrote."""
    return (
        b"" if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_CONFIG_BYTES else path.read_bytes()
    )
