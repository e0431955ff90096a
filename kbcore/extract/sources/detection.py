"""Detection of documents, and of settings that would read them. Pure: files are read by what the caller gives.

First the profiles, by their signs; then texts that look alike, folder by folder; then tables and lists of records; then
the pages of sites, by the settings of the site. Of each folder a few files are looked at, and each proposal is tried.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.extract import gherkin, markdown, registry
from kbcore.extract.code import extractor as code
from kbcore.extract.code.languages import LANGUAGES, language_of
from kbcore.extract.code.proposing import globs_of_code
from kbcore.extract.facts import Extractor, SourceFile
from kbcore.extract.scip import extractor as scip
from kbcore.extract.settings import PATHS
from kbcore.extract.sources import extractor as sources
from kbcore.extract.sources import guessing, patterns, profiles
from kbcore.extract.sources.check import resolved
from kbcore.extract.sources.document import INDEX, entries_of
from kbcore.extract.sources.folder_globs import at_or_below, below, covering, path_in, placed, with_files
from kbcore.extract.sources.guessing import Guess
from kbcore.extract.sources.profiles import Signs, Site
from kbcore.extract.sources.proposal import (
    TRIED,
    NotRead,
    Read,
    SettingsProposal,
    TriedExtractor,
    spread,
    with_one_spelling,
    with_results,
)
from kbcore.extract.sources.recognition import (
    SIGNS_BYTES,
    LookedAtFile,
    endings_of,
    fits_content,
    fits_path,
    signs_of_ending,
)
from kbcore.extract.sources.source import ENDINGS, TEXTS, source_of, texts
from kbcore.model.graph import INDEX_SUFFIX
from kbcore.text.globs import common_folder, fixed_part, glob_of, glob_set, matches

SAMPLES: Final = 8
"""Files that are looked at of each folder."""
LOOKED_AT: Final = 1000
"""Files that are looked at in all."""
_LEAST_TRIED: Final = 20
_CODE_TRIED: Final = 100
"""Files of source code that are tried of each setting."""
_TABLES_OF_FOLDER: Final = 3
_TABLE_BYTES: Final = limits.MIB
_MOST_GLOBS: Final = 20
"""More globs of a set than these are one with ``**``."""
_SHOWN_DEPTH: Final = 2
_SIGNS_OF_GLOBS: Final = frozenset("*?[")
_TABLES: Final = frozenset({".csv", ".tsv", ".json"})
_FEATURE: Final = ".feature"
_DOCUMENTS: Final = frozenset(
    {_FEATURE, ".csv", ".tsv", ".xlsx", *(one for one, kind in ENDINGS.items() if kind in TEXTS)}
)
"""Endings of files that may be documents whatever they say; other data is mostly settings of tools."""
_LIST: Final = ".json"
"""The ending of files that may be documents where they are a list of objects."""
_DATA: Final = frozenset({_LIST, ".yaml", ".yml"})
_LIST_BEGINS: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*\{")
_LIST_BYTES: Final = 4096
_NOT_OURS: Final = frozenset(
    {".git", ".kb", "node_modules", "vendor", "third_party", "third-party", ".venv", "venv", "site-packages", "dist"}
)
_FOR_TESTS: Final = frozenset({"testdata", "test-data", "test_data", "fixtures", "__fixtures__", "__snapshots__"})
"""Folders of data that tests read: only what has the signs of a profile counts there."""


class Configured(msgspec.Struct, frozen=True):
    """An extractor in force, with its settings and the globs of its files, each with the type that it gives."""

    extractor: Extractor
    settings: Mapping[str, Any]
    globs: tuple[tuple[str, str | None], ...]


class Possible(msgspec.Struct, frozen=True):
    """Files that may be documents and that no proposal has."""

    folder: str
    ending: str
    count: int


class Uninstalled(msgspec.Struct, frozen=True):
    """Files of a kind that KB reads with a package that is not installed: their number, and the extra that has it."""

    extra: str
    kinds: tuple[str, ...]
    files: int


class Detection(msgspec.Struct, frozen=True):
    """The proposals, those for documents first and the largest of them before others, and what else was found."""

    proposals: tuple[SettingsProposal, ...]
    possible: tuple[Possible, ...]
    """Files that may be documents and that no proposal has."""
    covered: int
    """Files that settings in force read already."""
    uninstalled: tuple[Uninstalled, ...] = ()


def detect(paths: Iterable[str], read: Read, configured: Sequence[Configured]) -> Detection:
    """Return what is found in a repository with files at these paths, beyond what settings in force read."""
    return _Detection(paths, read, configured).run()


def possible_in(paths: Iterable[str], read: Read) -> list[Possible]:
    """Return how many of these files may be documents, by folder and ending, the most first."""
    groups: dict[tuple[str, str], _Group] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        ending = posixpath.splitext(name)[1].lower()
        if ending in _DOCUMENTS or ending == _LIST:
            groups.setdefault((folder, ending), _Group(folder, ending, [])).names.append(name)
    return _counted(_possible(groups.values(), read))


def _possible(groups: Iterable[_Group], read: Read) -> Iterator[_Group]:
    """Yield the groups of files that may be documents: of JSON the lists of objects among the first ``LOOKED_AT``."""
    left = LOOKED_AT
    for one in groups:
        if one.parts & (_NOT_OURS | _FOR_TESTS):
            continue
        if one.ending in _DOCUMENTS:
            yield one
        elif one.ending == _LIST:
            names, left = one.names[:left], max(0, left - len(one.names))
            yield _Group(
                one.folder, one.ending, [name for name in names if _is_list(read(one.path(name), _LIST_BYTES))]
            )


def _is_list(data: bytes | None) -> bool:
    return data is not None and _LIST_BEGINS.match(data) is not None


class _Group(msgspec.Struct):
    """The files of one folder with one ending, without those that settings in force or a proposal have."""

    folder: str
    ending: str
    names: list[str]

    def path(self, name: str) -> str:
        return path_in(self.folder, name)

    @property
    def parts(self) -> frozenset[str]:
        return frozenset(self.folder.split("/"))

    def is_of_any_content(self, signs: Signs) -> bool:
        """Return whether the files are data whose names say nothing: settings of tools are beside the records."""
        return self.ending in _DATA and not (signs.names or signs.paths or signs.beside)


class _Detection:
    def __init__(self, paths: Iterable[str], read: Read, configured: Sequence[Configured]) -> None:
        self.read = read
        self.configured = configured
        self.looked: dict[str, LookedAtFile | None] = {}
        self.left_to_try = TRIED
        self.uninstalled: list[Uninstalled] = []
        self.folders: dict[str, set[str]] = {}
        """The folders of texts by their ending, whatever reads them. An index or a template makes no folder one."""
        self.names: dict[str, list[str]] = {}
        """The names in each folder that has files of a kind that is looked at."""
        groups: dict[tuple[str, str], _Group] = {}
        wanted = _endings()
        for path in paths:
            folder, _, name = path.rpartition("/")
            ending = name[name.rfind(".") :].lower() if "." in name else ""
            if ending in wanted:
                group = groups.get((folder, ending))
                if group is None:
                    group = groups[folder, ending] = _Group(folder, ending, [])
                group.names.append(name)
        self.groups = [one for one in groups.values() if not one.parts & _NOT_OURS]
        for one in self.groups:
            one.names.sort()
            self.names.setdefault(one.folder, []).extend(one.names)

    def run(self) -> Detection:
        before = sum(len(one.names) for one in self.groups)
        texts_of: dict[str, set[str]] = {}
        for group in self.groups:
            if any(not INDEX.fullmatch(name) for name in group.names):
                texts_of.setdefault(group.ending, set()).add(group.folder)
        self.folders = texts_of
        for group in self.groups:
            self._leave_out_configured(group)
        covered = before - sum(len(one.names) for one in self.groups)
        found = [*self._of_profiles(), *self._of_features(), *self._of_texts(), *self._of_tables()]
        pages = list(self._of_pages())
        proposals = [*sorted(found, key=lambda one: (-one.files, one.name)), *pages, *self._of_code()]
        proposals += self._of_indexes(proposals)
        possible = tuple(_counted(_possible(self.groups, self.read)))
        return Detection(tuple(proposals), possible, covered, tuple(self.uninstalled))

    def look(self, path: str) -> LookedAtFile | None:
        """Return a file as far as it is looked at; None where it cannot be read, or enough were looked at."""
        if path not in self.looked:
            if len(self.looked) >= LOOKED_AT:
                return None
            ending = posixpath.splitext(path)[1].lower()
            data = self.read(path, SIGNS_BYTES if ENDINGS.get(ending) in TEXTS else _TABLE_BYTES)
            self.looked[path] = None if data is None else LookedAtFile(path, data)
        return self.looked[path]

    def _samples(self, group: _Group, names: Sequence[str]) -> list[LookedAtFile]:
        own = [name for name in names if not INDEX.fullmatch(name)] or list(names)
        found = (self.look(group.path(name)) for name in spread(own, SAMPLES))
        return [one for one in found if one is not None]

    def _leave_out_configured(self, group: _Group) -> None:
        """Leave out the files of a source, and those of another extractor where it gives entities of them."""
        for one in self.configured:
            globs = glob_set(tuple(glob for glob, _ in one.globs))
            if not group.names or globs.below(group.folder).is_dead:
                continue
            meant = {name: number for name in group.names if (number := globs.first(group.path(name))) is not None}
            if not meant:
                continue
            if one.extractor is markdown.EXTRACTOR and not self._gives_entities(group, one, meant):
                continue
            group.names = [name for name in group.names if name not in meant]

    def _gives_entities(self, group: _Group, one: Configured, meant: Mapping[str, int]) -> bool:
        files = self._samples(group, sorted(meant))
        found = 0
        for file in files:
            kind = one.globs[meant[posixpath.basename(file.path)]][1]
            facts = registry.run(one.extractor, SourceFile(file.path, file.data, kind), one.settings)
            found += bool(facts.entities)
        return found * 2 >= len(files) > 0

    def _of_profiles(self) -> Iterator[SettingsProposal]:
        taken: dict[str, tuple[list[str], list[str]]] = {}
        for group in self.groups:
            best = max(self._fitting(group), default=None, key=lambda one: (one[0].weight, -one[1]))
            if best is not None:
                profile = profiles.NAMES[best[1]]
                paths, singly = self._of_group(group, best[0], profile)
                before = taken.get(profile, ([], []))
                taken[profile] = ([*before[0], *paths], [*before[1], *singly])
        for profile, (paths, singly) in taken.items():
            entry = with_files(placed(profile, paths), profile, singly)
            if entry is None:
                continue
            whole = resolved(entry)
            meant = self._meant_by([rule.glob for rule in sources.EXTRACTOR.path_rules(whole)])
            files = [group.path(name) for group, names in meant for name in names]
            proposal = self._try(SettingsProposal(profile, "sources", entry), sources.EXTRACTOR, whole, files)
            if proposal.entities:
                for group, names in meant:
                    group.names = [name for name in group.names if name not in {*names}]
                yield proposal

    def _of_group(self, group: _Group, signs: Signs, profile: str) -> tuple[list[str], list[str]]:
        """Return the paths of a group that globs of a profile may mean, and those that are to be named one by one."""
        paths = [group.path(name) for name in group.names]
        paths = [path for path in paths if fits_path(signs, path, self.names[group.folder])]
        if not group.is_of_any_content(signs):
            return paths, []
        usual = [patterns.plain_glob(glob) for glob in texts(profiles.read(profile)["source"]["glob"])]
        own = {path for path in paths if matches(path, usual)}
        looked_at = [file for path in paths if path not in own and (file := self.look(path)) is not None]
        return sorted(own), [file.path for file in looked_at if fits_content(signs, file, profile)]

    def _meant_by(self, globs: Sequence[str]) -> list[tuple[_Group, list[str]]]:
        """Return the files that globs mean, by their groups."""
        known = glob_set(tuple(globs))
        found = []
        for group in self.groups:
            if group.names and not known.below(group.folder).is_dead:
                names = [name for name in group.names if known.first(group.path(name)) is not None]
                found += [(group, names)] if names else []
        return found

    def _fitting(self, group: _Group) -> Iterator[tuple[Signs, int]]:
        """Yield the signs that the files of a group have, with the number of their profile."""
        shown = [name for name in spread(group.names, SAMPLES) if not INDEX.fullmatch(name)]
        for number, signs in signs_of_ending(group.ending):
            if signs.paths and glob_set(texts(signs.paths)).below(group.folder).is_dead:
                continue
            named = texts(signs.names)
            fixed = [name for name in named if name in group.names]
            has_globs = not named or any(not _SIGNS_OF_GLOBS.isdisjoint(one) for one in named)
            names = [*shown, *fixed] if has_globs else fixed
            beside = self.names[group.folder]
            fit = [name for name in dict.fromkeys(names) if fits_path(signs, group.path(name), beside)]
            if not fit:
                continue
            files = self._samples(group, fit) if signs.needs_content else []
            having = sum(fits_content(signs, file, profiles.NAMES[number]) for file in files)
            is_enough = having * 2 >= len(files) or group.is_of_any_content(signs)
            if not signs.needs_content or (having and is_enough):
                yield signs, number

    def _of_features(self) -> Iterator[SettingsProposal]:
        groups = [one for one in self.groups if one.ending == _FEATURE and one.names]
        if not groups:
            return
        if not gherkin.is_installed():
            self.uninstalled.append(Uninstalled(gherkin.NAME, ("Gherkin",), sum(len(one.names) for one in groups)))
            return
        folders = [one.folder for one in groups]
        tops = sorted({folder.split("/")[0] for folder in folders})
        globs = sorted(
            {below(common_folder([one for one in folders if one.split("/")[0] == top]), "*.feature") for top in tops}
        )
        files = [group.path(name) for group in groups for name in group.names]
        proposal = SettingsProposal(gherkin.NAME, "extractors.gherkin.paths", globs)
        yield self._try(proposal, gherkin.EXTRACTOR, {"paths": globs}, files)
        for group in groups:
            group.names = []

    def _of_code(self) -> Iterator[SettingsProposal]:
        paths = (one.path(name) for one in self.groups if not one.parts & _FOR_TESTS for name in one.names)
        files = [path for path in paths if language_of(path)]
        globs = globs_of_code(files)
        if globs is None:
            return
        if code.missing_packages():
            self.uninstalled.append(Uninstalled(code.NAME, globs.languages, globs.files))
            return
        for key, listed in ((code.TESTS, globs.tests), (PATHS, globs.paths)):
            meant = glob_set(listed)
            own = [path for path in files if meant.first(path) is not None] if listed else []
            if own:
                files = [path for path in files if meant.first(path) is None]
                trial = TriedExtractor(code.EXTRACTOR, {key: list(listed)}, self.read, _CODE_TRIED)
                yield with_results(SettingsProposal(code.NAME, f"extractors.code.{key}", list(listed)), trial, own)[0]

    def _of_indexes(self, proposals: Sequence[SettingsProposal]) -> Iterator[SettingsProposal]:
        """Yield the indexes of source code; they state no symbol of files that are read, or will be, themselves."""
        files = [one.path(name) for one in self.groups if one.ending == INDEX_SUFFIX for name in one.names]
        if not files:
            return
        of_code: dict[str, Any] = next(
            (dict(one.settings) for one in self.configured if one.extractor is code.EXTRACTOR), {}
        )
        for one in proposals:
            if one.setting.startswith("extractors.code.") and isinstance(one.value, list):
                of_code[one.setting.rpartition(".")[2]] = one.value
        globs = sorted(files)[: limits.MAX_GLOBS // 10]
        proposal = SettingsProposal(scip.NAME, "extractors.scip.paths", globs)
        yield self._try(proposal, scip.EXTRACTOR, {PATHS: globs, scip.OF_CODE: of_code}, globs)

    def _of_texts(self) -> Iterator[SettingsProposal]:
        alike: dict[str, tuple[Guess, list[_Group]]] = {}
        for group in self.groups:
            if ENDINGS.get(group.ending) not in TEXTS or not group.names or group.parts & _FOR_TESTS:
                continue
            guess = guessing.of_texts(group.folder, group.ending, group.names, self._samples(group, group.names))
            if guess:
                alike.setdefault(guess.alike, (guess, []))[1].append(group)
        for guess, groups in alike.values():
            globs = self._globs(guess.tail, groups)
            plain = [patterns.plain_glob(glob) for glob in globs]
            files = [path for group in groups for name in group.names if matches(path := group.path(name), plain)]
            if guess.entry is None:
                proposal = SettingsProposal(markdown.NAME, f"extractors.markdown.paths.{guess.type}", globs)
                extractor: Extractor = markdown.EXTRACTOR
                settings: dict[str, Any] = {"paths": {guess.type: globs}}
            else:
                entry = {"glob": globs if len(globs) > 1 else globs[0], **guess.entry}
                proposal = SettingsProposal(ENDINGS[groups[0].ending], "sources", entry)
                extractor, settings = sources.EXTRACTOR, resolved(entry)
            proposal = self._try(proposal, extractor, settings, files)
            if proposal.entities:
                for group in groups:
                    group.names = [name for name in group.names if not matches(group.path(name), plain)]
                yield proposal

    def _globs(self, tail: str, groups: Sequence[_Group], base: str = "") -> list[str]:
        """Return the fewest globs for folders, all below a base, that mean no other texts with the same ending.

        Whatever reads those others, or nothing, they count.
        """
        own = {one.folder for one in groups}
        ending = groups[0].ending
        read = {*self._folders_in_force(ending), *self.folders.get(ending, ())} - own
        left = {one.folder for one in self.groups if one.ending == ending and one.names}
        found = covering(base, sorted(own), sorted(at_or_below(read, base) if base else read), tail)
        common = common_folder(own)
        is_wide = len(found) > _MOST_GLOBS and common and not at_or_below(read - left, common)
        return [below(common, tail)] if is_wide else found

    def _folders_in_force(self, ending: str) -> set[str]:
        """Return the folders below which settings in force look for texts with an ending, there or not.

        An entry of ``sources`` goes before the extractors: it must mean none of the documents that they will have.
        """
        globs = (glob for one in self.configured for glob, _ in one.globs if glob.endswith(ending))
        return {folder for folder in map(fixed_part, globs) if folder}

    def _of_pages(self) -> Iterator[SettingsProposal]:
        """Yield the pages of sites that nothing else reads; of a site in a site the inner one has them."""
        for profile in profiles.NAMES:
            site = profiles.site(profile)
            folders = [] if site is None else sorted(filter(None, map(self._pages_folder(site), self.names)), key=len)
            for folder in reversed(folders):
                yield from self._of_site(profile, folder, texts(site.endings) if site else ())

    def _pages_folder(self, site: Site) -> Callable[[str], str]:
        """Return what tells the folder of the pages of a site in a folder, "" where there is none."""

        def found(folder: str) -> str:
            beside = self.names[folder]
            name = next((one for one in texts(site.names) if one in beside), None)
            if name is None or (site.beside and not any(matches(one, texts(site.beside)) for one in beside)):
                return ""
            below = site.folder
            if site.folder_key and (data := self.read(path_in(folder, name), SIGNS_BYTES)):
                stated = re.search(rf"^{site.folder_key}:[ \t]*[\"']?([\w./-]+)".encode(), data, re.MULTILINE)
                below = stated[1].decode() if stated else below
            inner = posixpath.normpath(posixpath.join(folder, below))
            return "" if inner == "." or inner.startswith("..") else inner

        return found

    def _of_site(self, profile: str, folder: str, endings: Sequence[str]) -> Iterator[SettingsProposal]:
        groups = [
            one
            for one in self.groups
            if one.names
            and one.ending in endings
            and at_or_below([one.folder], folder)
            and not one.parts & _FOR_TESTS
            and not any(part.startswith("_") for part in one.parts)
            and not any(at_or_below([one.folder], taken) for taken in self._folders_in_force(one.ending))
        ]
        globs = [
            glob
            for ending in endings
            if (alike := [one for one in groups if one.ending == ending])
            for glob in self._globs(f"*{ending}", alike, folder)
        ]
        if not globs:
            return
        entry = {"profile": profile, "glob": globs if len(globs) > 1 else globs[0]}
        files = [one.path(name) for one in groups for name in one.names]
        trial = TriedExtractor(sources.EXTRACTOR, resolved(entry), self.read, max(_LEAST_TRIED, self.left_to_try))
        self.left_to_try -= min(trial.most, len(files))
        for one in groups:
            one.names = []
        yield with_results(SettingsProposal(profile, "sources", entry), trial, files)[0]

    def _of_tables(self) -> Iterator[SettingsProposal]:
        alike: dict[str, tuple[Guess, list[tuple[_Group, str]]]] = {}
        for group in self.groups:
            if group.ending not in _TABLES or group.parts & _FOR_TESTS:
                continue
            for name in spread(group.names, _TABLES_OF_FOLDER):
                file = self.look(group.path(name))
                guess = _of_table(file) if file and len(file.data) < _TABLE_BYTES else None
                if guess:
                    key = json.dumps([group.ending, guess.entry])
                    alike.setdefault(key, (guess, []))[1].append((group, name))
        for guess, found in alike.values():
            files = [group.path(name) for group, name in found]
            globs = [glob_of(path) for path in files]
            entry = {"glob": globs if len(globs) > 1 else globs[0], **(guess.entry or {})}
            name = ENDINGS[found[0][0].ending]
            proposal = self._try(SettingsProposal(name, "sources", entry), sources.EXTRACTOR, entry, files)
            if proposal.entities:
                for group, name in found:
                    group.names = [one for one in group.names if one != name]
                yield proposal

    def _try(
        self, proposal: SettingsProposal, extractor: Extractor, settings: Mapping[str, Any], files: Sequence[str]
    ) -> SettingsProposal:
        beside = [path for path in files if INDEX.fullmatch(posixpath.basename(path))]
        left_out = frozenset(beside if len(beside) < len(files) else ())
        files = [path for path in files if path not in left_out]
        most = max(_LEAST_TRIED, self.left_to_try)
        self.left_to_try -= min(most, len(files))
        trial = TriedExtractor(extractor, settings, self.read, most)
        tried, statuses = with_results(proposal, trial, files)
        passed = [path for path in sorted(left_out)[:TRIED] if not trial.facts(path).entities]
        if passed:
            one = NotRead(
                "passed_over", len(passed), passed[0], "an index, a template or a readme, which states no entity"
            )
            tried = msgspec.structs.replace(tried, not_read=(*tried.not_read, one))
        return with_one_spelling(tried, settings, statuses) if extractor is sources.EXTRACTOR else tried


def _counted(groups: Iterable[_Group]) -> list[Possible]:
    """Return how many files groups have by folder and ending, the most first; deep folders count where they begin."""
    counts: dict[tuple[str, str], int] = {}
    for one in groups:
        key = ("/".join(one.folder.split("/")[:_SHOWN_DEPTH]), one.ending)
        counts[key] = counts.get(key, 0) + sum(not INDEX.fullmatch(name) for name in one.names)
    found = [Possible(folder, ending, count) for (folder, ending), count in counts.items() if count]
    return sorted(found, key=lambda one: (-one.count, one.folder, one.ending))


def _of_table(file: LookedAtFile) -> Guess | None:
    if file.ending != ".json":
        return guessing.of_table(file.path, file.entries())
    try:
        root = json.loads(file.data)
    except (ValueError, RecursionError):
        return None
    for items in guessing.item_paths(root):
        facts = entries_of(SourceFile(file.path, file.data), source_of({"items": items}))
        guess = guessing.of_table(file.path, facts.entries, items)
        if guess:
            return guess
    return None


def _endings() -> frozenset[str]:
    """Return the endings of the files that are looked at: those of formats, and those that signs name."""
    named = (endings_of(one) for profile in profiles.NAMES for one in profiles.signs(profile))
    source_code = (ending for one in LANGUAGES for ending in one.endings)
    return frozenset({*ENDINGS, _FEATURE, INDEX_SUFFIX, *source_code}.union(*named))
