"""The extractors in force as plain data, and the files that they want by their globs. No file is read.

The first glob that means a file decides, in the order of the extractors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.errors import InvalidConfig, Problem
from kbcore.extract.facts import Extractor, Facts, PathRule, SourceFile, mark_of
from kbcore.extract.registry import missing_package, not_installed, path_rules
from kbcore.extract.sources.extractor import NAME as SOURCES
from kbcore.text.globs import FEWER_GLOBS, GlobSet, fixed_part, glob_set, too_many_fault

NOT_READ: Final = Facts(is_complete=False)
"""The facts of a file that was not read: what is known of it is kept."""


class ActiveExtractor(msgspec.Struct, frozen=True):
    """An extractor with the settings in force; ``mark`` names it, its version and its settings in a source's row.

    ``fault`` says why it can read no file here: what is known of its files is then kept.
    """

    extractor: Extractor
    settings: Mapping[str, Any]
    globs: tuple[tuple[str, str | None], ...]
    mark: str
    fault: Problem | None = None


class MissingExtractor:
    """An extractor that is not there. It reads nothing."""

    version = 0

    def __init__(self, name: str) -> None:
        self.name = name

    def path_rules(self, settings: Mapping[str, Any]) -> Sequence[PathRule]:  # noqa: ARG002 - the protocol's
        """Return no path: which files it reads is not known."""
        return ()

    def extract(self, source: SourceFile, settings: Mapping[str, Any]) -> Facts:  # noqa: ARG002 - the protocol's
        """Return nothing, so that what is known of the file is kept."""
        return NOT_READ


def activate(
    listed: Iterable[tuple[Extractor, Mapping[str, Any]]], extra: Mapping[str, Any], meaning: bytes
) -> list[ActiveExtractor]:
    """Return what to look for. ``listed`` has extractors with their settings; ``extra`` is added to those of each.

    ``meaning`` is what the same facts are read by (the schema): when it changes, every file is read again.

    Raises: ``InvalidConfig`` for settings that an extractor cannot use, and for more globs than the limit.
    """
    found = []
    for extractor, settings in listed:
        own = {**settings, **extra}
        try:
            globs = tuple((rule.glob, rule.type) for rule in path_rules(extractor, own))
        except InvalidConfig as error:
            broken = next((one for one in error.details if one.code == "broken_extractor"), None)
            if broken is None:
                raise
            found.append(absent(extractor.name, broken, extra))
            continue
        fault = missing_package(extractor) if globs else None
        found.append(ActiveExtractor(extractor, own, globs, mark_of(extractor, own, globs, meaning), fault))
    excess = too_many_fault([glob for want in found for glob, _ in want.globs])
    if excess:
        message = f"Too many paths are set for the extractors: {excess}."
        problem = Problem("extractors", "too_many_globs", message, FEWER_GLOBS)
        raise InvalidConfig(message, hint=FEWER_GLOBS, details=[problem], says_first=True)
    return found


def absent(name: str, fault: Problem, extra: Mapping[str, Any]) -> ActiveExtractor:
    """Return the placeholder of an extractor that cannot be used, for this reason."""
    return ActiveExtractor(MissingExtractor(name), extra, (), f"{name}/0", fault)


def held(
    wants: Sequence[ActiveExtractor], off: Collection[str], taken_in: Mapping[str, tuple[str, str]]
) -> dict[str, ActiveExtractor]:
    """Return the known files whose extractor cannot be used: what is known of them is kept until it can be.

    ``off`` are the extractors that are switched off; ``taken_in`` has the hash and the mark of each known file.
    """
    # Without an entry that means them, files of a source are gone.
    usable = {*off, SOURCES, *(want.extractor.name for want in wants if want.fault is None)}
    faulty = {want.extractor.name: want for want in wants if want.fault is not None}
    found: dict[str, ActiveExtractor] = {}
    for path, (_, mark) in taken_in.items():
        name = mark.rpartition("/")[0]
        if name not in usable:
            want = faulty.get(name) or absent(name, not_installed(name), {})
            found[path] = msgspec.structs.replace(want, mark=mark)
    return found


def knowing(want: ActiveExtractor, more: Mapping[str, Iterable[str]], meaning: bytes) -> ActiveExtractor:
    """Return what to look for with more names in lists of its settings, and ``meaning`` by which facts are read too."""
    settings = {**want.settings, **{key: sorted({*want.settings[key], *names}) for key, names in more.items()}}
    mark = f"{want.mark}+{hashlib.sha256(meaning).hexdigest()[:12]}"
    return msgspec.structs.replace(want, settings=settings, mark=mark)


class GlobRule(msgspec.Struct, frozen=True):
    """The extractor and type of the files of a glob; ``folder`` is where a search for them begins.

    Of several rules that mean a file, that with the least ``number`` decides.
    """

    number: int
    folder: str
    glob: str
    want: ActiveExtractor
    type: str | None


def rules_of(wants: Iterable[ActiveExtractor]) -> list[GlobRule]:
    """Return the rules in the order of the extractors and of their globs."""
    globs = ((want, glob, kind) for want in wants for glob, kind in want.globs)
    return [GlobRule(number, fixed_part(glob), glob, want, kind) for number, (want, glob, kind) in enumerate(globs)]


def globs_of(rules: Iterable[GlobRule]) -> GlobSet:
    """Return the globs of some rules, numbered in the same order."""
    return glob_set(tuple(rule.glob for rule in rules))


def is_wanted(wants: Sequence[ActiveExtractor], path: str) -> bool:
    """Return whether an extractor wants the file at a path, if there is one."""
    return first_wanting(wants, path) is not None


def first_wanting(wants: Sequence[ActiveExtractor], path: str) -> tuple[ActiveExtractor, str | None] | None:
    """Return the extractor that reads the file at a path, and the type that its glob gives; None when none wants it."""
    for want in wants:
        number = glob_set(tuple(glob for glob, _ in want.globs)).first(path)
        if number is not None:
            return want, want.globs[number][1]
    return None
