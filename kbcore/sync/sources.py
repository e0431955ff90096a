"""The configured sources: the files of each entry, what is known from them, and what one of them says now."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kbcore.errors import InvalidQuery, NotFound
from kbcore.errors.remedies import kb
from kbcore.extract import registry
from kbcore.extract.changes import file_kind
from kbcore.extract.defaults import origins, with_defaults
from kbcore.extract.facts import Facts, SourceFile
from kbcore.extract.sources import extractor as sources
from kbcore.extract.sources.check import resolved
from kbcore.extract.sources.detection import Possible, possible_in
from kbcore.extract.sources.folder_globs import placed
from kbcore.extract.sources.profiles import NAMES
from kbcore.extract.sources.source import texts
from kbcore.git import worktree_content
from kbcore.git.worktree_content import Unfit
from kbcore.query.owners import EntityOwners, owners_of_file
from kbcore.store.workspace import Workspace
from kbcore.sync import scan as scanning
from kbcore.sync.active_extractors import document_extractors
from kbcore.sync.code_owners import owners_here
from kbcore.sync.detecting import check_text, paths_of, reader
from kbcore.sync.walk import FolderWalk
from kbcore.sync.wanted_files import ActiveExtractor
from kbcore.text.escaping import in_quotes
from kbcore.text.globs import glob_of, matches
from kbcore.text.suggest import did_you_mean
from kbcore.text.wording import one_of
from kbcore.view.view import View


class ConfiguredSource(msgspec.Struct, frozen=True):
    """An entry of ``sources``, or an extractor: its files, and what the branch has of them."""

    name: str
    setting: str
    globs: tuple[str, ...]
    files: int
    entities: int
    problems: int


class SourceList(msgspec.Struct, frozen=True):
    """The configured sources, and the files that no source has which may be documents."""

    sources: tuple[ConfiguredSource, ...]
    uncovered: tuple[Possible, ...]


class FileSays(msgspec.Struct, frozen=True):
    """The facts of a file, and the settings that give them: ``setting`` is "" for settings that are not configured.

    ``defaults`` names for each entity by its id the fields that the entries of ``defaults`` give, and the number of the
    entry. ``owners`` are those of the file, for an entity without an owner.
    """

    path: str
    name: str
    setting: str
    facts: Facts
    defaults: dict[str, dict[str, int]] = {}
    owners: EntityOwners | None = None


def list_sources(workspace: Workspace, view: View) -> SourceList:
    """Return what is configured, with the files that there are and what a branch knows from them.

    Raises: ``InvalidConfig``, ``GitUnusable``.
    """
    wants = document_extractors(workspace)
    walk = scanning.walk_of(workspace.repo.worktree, wants)
    owner = _owned(walk, wants)
    found = view.cells("node", ["id", "source"], ("source is not null", []), lambda node: node.source is not None)
    entities = Counter(owner.get(source) for _, source in found)
    noted = view.cells("source", ["path", "problems"], ("true", []), lambda _: True)
    problems: Counter[int | None] = Counter()
    for path, listed in noted:
        problems[owner.get(path)] += len(msgspec.json.decode(listed) if isinstance(listed, str) else listed)
    files = Counter(owner.values())
    listed_sources = tuple(
        ConfiguredSource(_name(want), setting, _globs(want), files[number], entities[number], problems[number])
        for number, (want, setting) in enumerate(zip(wants, _settings(wants), strict=True))
        if want.globs
    )
    left = [path for path in paths_of(workspace) if path not in owner]
    return SourceList(listed_sources, tuple(possible_in(left, reader(workspace))))


def try_file(workspace: Workspace, path: str, *, profile: str = "", entry: Mapping[str, Any] | None = None) -> FileSays:
    """Return what the file at a path from the root says, by what is configured, by a profile, or by an entry.

    Raises: ``NotFound`` for no file, or one that no source means; ``InvalidQuery`` for a file that is not read, and for
    a profile or an entry that cannot be used or does not mean the file; ``InvalidConfig``.
    """
    data = _content(workspace.repo.worktree, path)
    if profile or entry is not None:
        tried = _tried_entry(workspace, path, profile, entry)
        facts = sources.EXTRACTOR.extract(SourceFile(path, data), resolved(tried))
        return _completed(workspace, FileSays(path, profile or "the entry", "", facts))
    wants = document_extractors(workspace)
    found = scanning.wanted_at(wants, path)
    if found is None:
        hint = (
            f"{kb('sources', 'detect', lead='Run')} to have one proposed, or try one: `--profile NAME`, `--entry JSON`."
        )
        raise NotFound(f"No source reads {path}.", hint=hint)
    number = next(at for at, one in enumerate(wants) if one is found.wanted)
    want = wants[number]
    facts = registry.stated(want.extractor, SourceFile(path, data, found.type), want.settings)
    return _completed(workspace, FileSays(path, _name(want), _settings(wants)[number], facts))


def _completed(workspace: Workspace, says: FileSays) -> FileSays:
    """Return what a file says with what the settings and the owners of files give where it says nothing."""
    entries, path = workspace.config.defaults, says.path
    return msgspec.structs.replace(
        says,
        facts=with_defaults(says.facts, path, entries),
        defaults={one.id: given for one in says.facts.entities if (given := origins(one, path, entries))},
        owners=owners_of_file(path, owners_here(workspace)),
    )


def _tried_entry(workspace: Workspace, path: str, profile: str, entry: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the entry to try on a file; without a glob it means this file."""
    if profile and profile not in NAMES:
        raise InvalidQuery(
            f"There is no profile {profile}.",
            hint=did_you_mean(profile, NAMES) or f"{kb('sources', 'profiles', lead='Run')} to see all.",
        )
    tried = {**({"profile": profile} if profile else {}), **(entry or {})}
    named = tried.get("profile")
    if profile and named != profile:
        raise InvalidQuery(f"The entry names the profile {named}, not {profile}.", hint="Leave one of the two out.")
    is_placed = bool(tried.get("glob"))
    if not is_placed:
        own = placed(named, [path]) if named in NAMES else None
        tried = {**tried, **(own or {"glob": glob_of(path)})}
    check_text(workspace, msgspec.json.encode({"sources": [tried]}).decode(), what="entry")
    if is_placed and not matches(path, [rule.glob for rule in sources.EXTRACTOR.path_rules(resolved(tried))]):
        globs = one_of([in_quotes(one) for one in texts(tried["glob"])])
        hint = "Leave `glob` out to try the file that is named, or name a file that it means."
        raise InvalidQuery(f"The entry does not mean {path}: its glob is {globs}.", hint=hint)
    return tried


def _content(root: Path, path: str) -> bytes:
    """Return the content of a file of the worktree. Raises: ``NotFound``; ``InvalidQuery`` for one that is not read."""
    place = root / path
    try:
        about = place.stat()
        if stat.S_ISDIR(about.st_mode):
            raise InvalidQuery(f"{path or '.'} is a folder.", hint="Name one of its files.")
        worktree_content.check(str(place), about, root, is_direct=False, kind=file_kind(path))
        return worktree_content.read(str(place), file_kind(path))[0]
    except Unfit as error:
        reason, remedy = error.args
        raise InvalidQuery(f"{path} is not read. {reason}", hint=remedy) from error
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"There is no file {path}.", hint="Name a file of the worktree.") from error
    except OSError as error:
        raise InvalidQuery(f"{path} is not read: {error.strerror}.", hint="Name another file.") from error


def _owned(walk: FolderWalk, wants: Sequence[ActiveExtractor]) -> dict[str, int]:
    """Return the files that are read, each with the number of what reads it: the first one."""
    numbers = {id(want): number for number, want in enumerate(wants)}
    found: dict[str, int] = {}
    for path, _, want, _ in scanning.candidates(walk, wants):
        found.setdefault(path, numbers[id(want)])
    return found


def _name(want: ActiveExtractor) -> str:
    if want.extractor is not sources.EXTRACTOR:
        return want.extractor.name
    return want.settings.get("name") or want.settings.get("profile") or texts(want.settings["glob"])[0]


def _settings(wants: Sequence[ActiveExtractor]) -> list[str]:
    """Return where each of these is configured: ``sources[0]``, or ``extractors.markdown``."""
    found, number = list[str](), 0
    for want in wants:
        if want.extractor is sources.EXTRACTOR:
            found.append(f"sources[{number}]")
            number += 1
        else:
            found.append(f"extractors.{want.extractor.name}")
    return found


def _globs(want: ActiveExtractor) -> tuple[str, ...]:
    return tuple(dict.fromkeys(glob for glob, _ in want.globs))
