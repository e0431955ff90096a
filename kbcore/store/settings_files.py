"""The files of settings, as texts and what they say: those of a project, and the user's own.

A repository is not always the user's own: no link leads out of it, and nothing waits for a pipe.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from kbcore import limits
from kbcore.config.schema_files import load_schema
from kbcore.config.settings import NameSources, ReadSettings, read_config
from kbcore.config.user import UserSettings, read_settings, user_settings_path
from kbcore.errors import GitUnusable, InvalidConfig, Problem
from kbcore.git import Repository, blobs, staging, worktree_content
from kbcore.model.rule_settings import Parameters
from kbcore.model.schema import Schema
from kbcore.storage import files
from kbcore.storage.files import below
from kbcore.store.kb_folder import KB
from kbcore.text.validator import cut_values

CONFIG: Final = "config.json"
BASELINE: Final = "baseline.json"
SCHEMA: Final = "schema"
RULES: Final = "rules"
IGNORE: Final = ".gitignore"
_OWN_FOLDER: Final = "Set XDG_CONFIG_HOME to a folder of your own, by its whole path, to have some."
_YAML: Final = frozenset({".yaml", ".yml"})
_SUFFIXES: Final = {SCHEMA: _YAML, RULES: _YAML | {".pl"}}
"""The endings of the names of files in a settings folder."""


def texts_in(directory: Path, folder: str, shown: str) -> dict[str, str]:
    """Return the files of a folder of settings, by the path that messages name; ``shown`` is that of ``directory``.

    They are YAML and, in the folder of rules, Prolog. Raises: ``InvalidConfig``.
    """
    path, name = directory / folder, f"{shown}/{folder}"
    with readable(name):
        if not path.is_dir():
            if os.path.lexists(path):
                raise InvalidConfig(f"{name} leads to no folder.", hint="Correct or remove it.")
            return {}
        paths = sorted(one for one in path.iterdir() if one.suffix in _SUFFIXES[folder])
    found = {f"{name}/{one.name}": read_text(one, directory.parent) for one in paths}
    return {name: _expected(name, text) for name, text in found.items()}


def staged_settings(repo: Repository, env: Mapping[str, str]) -> dict[str, str]:
    """Return the settings files in the index of the worktree, by path; none where it has no configuration.

    Of an index that git cannot read, those of HEAD count. Raises: ``GitUnusable``, also where git has left their
    content with a remote; ``InvalidConfig``.
    """
    paths = [f"{KB}/{name}" for name in (CONFIG, BASELINE, SCHEMA, RULES)]
    try:
        names = staging.in_index(repo, env, paths)
    except GitUnusable:
        tree = blobs.tree_below(repo, env, "HEAD", KB)
        below_them = tuple(f"{path}/" for path in paths)
        names = {path: blob.id for path, blob in tree.items() if path in paths or path.startswith(below_them)}
    if f"{KB}/{CONFIG}" not in names:
        return {}
    texts = dict(blobs.contents(repo, env, names.values()))
    try:
        return {path: (texts[name] or b"").decode() for path, name in names.items()}
    except UnicodeDecodeError as error:
        message = f"A settings file in the index of git is not UTF-8 at byte {error.start}."
        raise InvalidConfig(message, hint=f"Check out {KB}, and save it as UTF-8.") from error


def texts_among(files: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return those of some settings files that ``texts_in`` returns of a folder."""
    return {
        path: text
        for path, text in sorted(files.items())
        if PurePosixPath(path).parent == PurePosixPath(KB, folder) and Path(path).suffix in _SUFFIXES[folder]
    }


def lacks_config(directory: Path, shown: str) -> bool:
    """Tell whether a folder has schema or rules, but no configuration: it may not have been committed.

    Raises: ``InvalidConfig`` when a folder cannot be listed.
    """
    with readable(shown):
        if below(directory, CONFIG).exists():
            return False
        folders = [folder for name in _SUFFIXES if (folder := directory / name).is_dir()]
        return any(path.suffix in _SUFFIXES[folder.name] for folder in folders for path in folder.iterdir())


def values_cut_in(directory: Path, shown: str) -> list[Problem]:
    """Return a warning for each value of a schema or rules file that a comment ends which may be meant as text.

    A folder that cannot be read has none: whoever uses its files is refused.
    """
    found: list[Problem] = []
    for folder in (SCHEMA, RULES):
        with contextlib.suppress(InvalidConfig):
            texts = texts_in(directory, folder, shown)
            yaml = {name: text for name, text in texts.items() if Path(name).suffix in _YAML}
            found += [one for name, text in yaml.items() for one in _cut_values_in(text, name)]
    return found


def user_settings(env: Mapping[str, str]) -> UserSettings:
    """Return the settings of whoever runs this. Raises ``InvalidConfig`` with every problem of them.

    Where the environment names something that is no folder, such as ``HOME=/dev/null``, there are none, as for git.
    """
    path = user_settings_path(env)
    try:
        text = read_text(path, Path(path.anchor)) if path else None
    except NotADirectoryError:
        settings = read_settings(None, str(path), env)
        notice = f"There is no folder for {path}: your own settings are the defaults. {_OWN_FOLDER}"
        return msgspec.structs.replace(settings, notice=notice)
    return read_settings(text, str(path), env)


@contextlib.contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn an ``OSError`` inside the block into an ``InvalidConfig`` that names what could not be read."""
    try:
        yield
    except OSError as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: OSError) -> InvalidConfig:
    reason, hint = files.refusal(error, Path(os.fsdecode(error.filename or "")).absolute())
    own = "Give yourself permission to read it." if error.errno in {errno.EACCES, errno.EPERM} else ""
    return InvalidConfig(f"{name} cannot be read: {reason}.", hint=hint or own)


@lru_cache(maxsize=8)
def settings_of(text: str, path: str) -> ReadSettings:
    """Return what a configuration says; cached by its text, which is read for every request."""
    return read_config(text, path)


@lru_cache(maxsize=8)
def schema_of(texts: tuple[tuple[str, str], ...]) -> Schema:
    """Return what schema files say, given as paths and texts; cached by their texts."""
    return load_schema(dict(texts))


@lru_cache(maxsize=64)
def _cut_values_in(text: str, name: str) -> list[Problem]:
    """Return the values of a settings file that comments end; cached by its text."""
    return cut_values(text, name)


def _expected(name: str, text: str | None) -> str:
    """Return the text of a file that was listed. Raises ``InvalidConfig`` when there is none all the same."""
    if text is None:
        raise InvalidConfig(f"{name} went away while it was read.", hint="Run it again.")
    return text


def read_text(path: Path, root: Path) -> str | None:
    """Return a settings file as text, None when it is absent; no link to it leads out of ``root``.

    Raises: ``InvalidConfig`` when it cannot be read; ``NotADirectoryError`` where a part of its path is no folder.
    """
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            hint = "Put a file in its place, or remove it."
            raise InvalidConfig(f"{path} cannot be read: it is no regular file.", hint=hint)
        if about.st_size > limits.MAX_CONFIG_BYTES:
            hint = "Remove what does not belong there."
            raise InvalidConfig(f"{path} is larger than {limits.MAX_CONFIG_BYTES} bytes.", hint=hint)
        worktree_content.check(str(path), about, root, is_direct=False)
        return worktree_content.read(str(path))[0].decode()
    except FileNotFoundError as error:
        if not path.is_symlink():
            return None
        message = f"{path} is a link to nothing: the settings in it would not count."
        raise InvalidConfig(message, hint="Correct the link, or remove it.") from error
    except worktree_content.Unfit as error:
        what, remedy = error.args
        raise InvalidConfig(f"{path} cannot be read: {what[0].lower()}{what[1:]}", hint=remedy) from error
    except UnicodeDecodeError as error:
        raise InvalidConfig(f"{path} is not UTF-8 at byte {error.start}.", hint="Save it as UTF-8.") from error
    except NotADirectoryError:
        raise
    except OSError as error:
        raise _unreadable(str(path), error) from error


def name_sources(texts_of_rules: Callable[[], Mapping[str, str]], schema: Callable[[], Schema]) -> NameSources:
    """Return where to ask in a project: its rules files, by path, its installed packages, and its schema."""

    def own_rules() -> Collection[str]:
        from kbcore.rules import NAMES  # noqa: PLC0415 - only settings that name rules pay for them

        return NAMES

    def parameters() -> Parameters:
        from kbcore.rules import load_rules  # noqa: PLC0415 - only settings that name such a rule pay for it

        return {rule.id: {one.name: one.default for one in rule.params} for rule in load_rules(texts_of_rules())}

    def extractors() -> Collection[str]:
        from kbcore.extract import registry  # noqa: PLC0415 - only settings that name such an extractor pay for it

        return registry.names()

    return NameSources(own_rules, parameters, extractors, lambda: schema().entities, lambda: schema().edges)
