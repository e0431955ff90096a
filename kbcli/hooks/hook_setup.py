"""Installs the git hooks of KB in one place: in the configuration of git where git supports that, else in files.

A hook file outside of the git directory that already runs KB stays in use: it is tracked, or serves others as well.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kbcli.hooks import configured, files, script
from kbcli.hooks.configured import HookEntries
from kbcli.hooks.hook_folder import HookFolder, find_place
from kbcli.hooks.results import REINSTALL, HookResult
from kbcore.errors import GitUnusable, InvalidQuery
from kbcore.git import Repository, hookconfig, hooks_dir
from kbcore.text.escaping import in_quotes

_RUN: Final = frozenset({"active", "outdated"})


class _Here(msgspec.Struct, frozen=True):
    """The hooks of a repository, as far as they are known."""

    place: HookFolder
    default: HookFolder
    """git's own folder of hooks, whether or not git runs them from there."""
    entries: HookEntries
    is_named: bool
    """The user named the folder."""

    def is_configured(self, event: str) -> bool:
        """Return whether git's configuration is the place for the hook of an event."""
        if self.is_named or self.entries.runs is None:
            return False
        return not (self.place.is_shared and files.look(self.place, event).state in _RUN)

    def remove_from_files(self, event: str) -> list[HookResult]:
        """Take KB's lines out of the hook files in git directories. Raises: ``OSError``."""
        is_other = self.place.folder != self.default.folder and not self.place.is_shared
        places = [self.place, self.default] if is_other else [self.default]
        return [one for place in places for one in files.uninstall(place, event)]


def install(
    repo: Repository,
    env: Mapping[str, str],
    *,
    hooks_path: Path | None = None,
    fallback: Path | None = None,
) -> list[HookResult]:
    """Have git run KB: by its configuration, by the hooks that are run, or by those of ``hooks_path``; idempotent.

    ``fallback`` is the program for when PATH has no ``kb``; see ``own_program``. git runs the hooks of ``hooks_path``
    from then on, unless ``core.hooksPath`` is set or other hooks would be lost. What could not be done is said in the
    results.

    Raises:
        InvalidQuery: git would not run the hooks of ``hooks_path``.
        GitUnusable: git does not report where its hooks are.
    """
    if hooks_path is not None:
        check_folder(repo, env, hooks_path)
    here = _look_around(repo, env, hooks_path, fallback)
    results = _each(_install, here)
    if not here.is_named or here.place.is_run or all(one.state != "ignored" for one in results):
        return results
    try:
        note = _run_from_here(here.place, repo, env)
    except (GitUnusable, OSError) as error:
        return [msgspec.structs.replace(one, state="failed", remedy=_reason(here, error)) for one in results]
    if not note:
        return results
    now = _look_around(repo, env, hooks_path, fallback)
    looked = _each(lambda _, event: [files.look(now.place, event)], now)
    installed = [
        msgspec.structs.replace(one, action=written.action, note=note)
        for one, written in zip(looked, results, strict=True)
    ]
    return [*installed, *_each(lambda _, event: _done(files.uninstall(now.default, event)), now)]


def check_folder(repo: Repository, env: Mapping[str, str], hooks_path: Path) -> None:
    """Refuse a folder for hooks that git would not run, as ``core.hooksPath`` is another one; nothing is written.

    Raises: ``InvalidQuery``; ``GitUnusable``.
    """
    known = hookconfig.hooks_path(repo, env)
    place = find_place(repo, env, hooks_path)
    if known is None or place.is_run:
        return
    raise InvalidQuery(
        f"core.hooksPath is {in_quotes(known)}: git would run no hook of {in_quotes(str(place.folder))}. "
        "Nothing was written.",
        hint=f"Give {shlex.quote(str(place.active))} as the folder, or unset it first: "
        "`git config --unset core.hooksPath`.",
    )


def uninstall(repo: Repository, env: Mapping[str, str], *, hooks_path: Path | None = None) -> list[HookResult]:
    """Take KB out of the hooks: out of git's configuration, out of the files that are run, and those that are not.

    A file that holds nothing else is deleted. ``core.hooksPath`` is unset where KB set it and no hook is left there.

    Raises:
        GitUnusable: git does not report where its hooks are.
    """
    here = _look_around(repo, env, hooks_path, None)
    results = _each(_uninstall, here)
    try:
        note = _run_from_default(repo, env)
    except (GitUnusable, OSError) as error:
        return [msgspec.structs.replace(one, state="failed", remedy=_reason(here, error)) for one in results]
    return [msgspec.structs.replace(one, note=note) for one in results]


def status(
    repo: Repository,
    env: Mapping[str, str],
    *,
    hooks_path: Path | None = None,
    fallback: Path | None = None,
) -> list[HookResult]:
    """Say whether git runs the hooks, and write nothing. Lines that name another ``fallback`` are outdated.

    Raises:
        GitUnusable: git does not report where its hooks are.
    """
    return _each(_status, _look_around(repo, env, hooks_path, fallback))


def _look_around(repo: Repository, env: Mapping[str, str], hooks_path: Path | None, fallback: Path | None) -> _Here:
    place = find_place(repo, env, hooks_path, fallback)
    default = msgspec.structs.replace(
        place, folder=repo.common_dir / "hooks", is_husky=False, is_outside=False, is_shared=False
    )
    return _Here(place, default, configured.read(repo, env, fallback), hooks_path is not None)


def _each(act: Callable[[_Here, str], Sequence[HookResult]], here: _Here) -> list[HookResult]:
    """Return the result for each event; a refusal of the system or git is a result as well."""
    found: list[HookResult] = []
    for event in script.EVENTS:
        try:
            found.extend(act(here, event))
        except OSError as error:
            path = str(here.place.folder / event)
            found.append(HookResult(event, path, "failed", remedy=_reason(here, error)))
        except GitUnusable as error:
            config = str(here.entries.repo.common_dir / "config")
            found.append(HookResult(event, config, "failed", remedy=_reason(here, error), way="config"))
    return found


def _reason(here: _Here, error: OSError | GitUnusable) -> str:
    """Return why a hook could not be read or written, and what to do."""
    if isinstance(error, GitUnusable):
        return f"{error.message} {error.remedy}"
    return f"{error.filename or here.place.folder}: {error.strerror}. Correct that and run the command again."


def _install(here: _Here, event: str) -> list[HookResult]:
    if here.is_configured(event):
        return [configured.install(here.entries, event), *_done(here.remove_from_files(event))]
    return [files.install(here.place, event), *_done([configured.uninstall(here.entries, event)])]


def _uninstall(here: _Here, event: str) -> list[HookResult]:
    found = files.uninstall(here.place, event)
    if not here.is_named:
        found.append(configured.uninstall(here.entries, event))
        if here.default.folder != here.place.folder:
            found += files.uninstall(here.default, event)
    return _done(found) or found[:1]


def _done(results: Sequence[HookResult]) -> list[HookResult]:
    return [one for one in results if one.action != "none"]


def _run_from_here(place: HookFolder, repo: Repository, env: Mapping[str, str]) -> str:
    """Set ``core.hooksPath`` to the folder, where it is not set and no other hook would be lost; say what was changed.

    The folder is named from the top of the worktree if it is in it: each worktree then runs its own copy of it.

    Raises: ``GitUnusable``; ``OSError``.
    """
    if hookconfig.hooks_path(repo, env) is not None or files.other_hooks(place.active):
        return ""
    top = repo.worktree if repo.has_worktree else None
    is_inside = top is not None and place.folder.is_relative_to(top) and place.folder != top
    value = str(place.folder.relative_to(top)) if top is not None and is_inside else str(place.folder)
    hookconfig.write_hooks_path(repo, env, value)
    return f"Set core.hooksPath to {value}: git runs the hooks of that folder now, and not those in {place.active}."


def _run_from_default(repo: Repository, env: Mapping[str, str]) -> str:
    """Unset ``core.hooksPath`` where KB has set it and its folder has no hook left; say what was changed.

    Raises: ``GitUnusable``; ``OSError``.
    """
    written = hookconfig.written_hooks_path(repo, env)
    if written is None or files.hooks_in(hooks_dir(repo, env)):
        return ""
    hookconfig.remove_hooks_path(repo, env)
    return f"Unset core.hooksPath, which `kb` had set to {written}."


def _status(here: _Here, event: str) -> list[HookResult]:
    by_file = files.look(here.place, event)
    if here.is_named:
        return [by_file]
    by_config = configured.look(here.entries, event)
    if by_file.state in _RUN and by_config.state in _RUN:
        remedy = f"{by_file.path} runs `kb` as well, so that it is run twice. {REINSTALL}"
        return [msgspec.structs.replace(by_config, state="outdated", remedy=remedy)]
    if by_file.state in _RUN:
        return [by_file]
    if by_config.state != "absent":
        return [by_config]
    shadowed = _shadowed(here, by_file)
    if here.entries.runs is None:
        return [shadowed]
    state = shadowed.state if shadowed.state == "ignored" else "absent"
    return [msgspec.structs.replace(shadowed, state=state, remedy=REINSTALL)]


def _shadowed(here: _Here, result: HookResult) -> HookResult:
    """Return the result, or, where there are no lines, that those in git's own folder are not run."""
    place = here.place
    if result.state == "ignored" or here.default.folder == place.folder:
        return result
    own = files.look(here.default, result.event)
    if own.state != "ignored":
        return result
    is_named = result.state in {"outside", "foreign"}
    lead = "" if is_named else f"git runs hooks from {place.active} instead (core.hooksPath). "
    return msgspec.structs.replace(own, remedy=lead + result.remedy)
