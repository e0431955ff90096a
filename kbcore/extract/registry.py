"""The extractors: KB's own, and other packages' in the entry-point group ``kb.extractors``.

Nothing of another package is imported before ``load`` is called. What another package prints is no answer of KB's: it
goes to standard error. Nor does KB end because a package ends the program.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcore.errors import InvalidConfig, Problem
from kbcore.extract import changes, gherkin, manifest, markdown
from kbcore.extract.code import extractor as code
from kbcore.extract.defaults import DEFAULTS, with_defaults
from kbcore.extract.entry_points import may_be_announced
from kbcore.extract.facts import Extractor, Facts, PathRule, SourceFile
from kbcore.extract.scip import extractor as scip
from kbcore.extract.sources import extractor as sources
from kbcore.text.escaping import in_quotes
from kbcore.text.globs import glob_fault
from kbcore.text.problems import FileProblem, at_most
from kbcore.text.wording import is_or_are, some_of

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

GROUP: Final = "kb.extractors"
BUILT_IN: Final[Mapping[str, Extractor]] = {
    markdown.NAME: markdown.EXTRACTOR,
    manifest.NAME: manifest.EXTRACTOR,
    gherkin.NAME: gherkin.EXTRACTOR,
    code.NAME: code.EXTRACTOR,
    scip.NAME: scip.EXTRACTOR,
}
"""KB's own extractors that settings name, found without an installation."""
OWN: Final[Mapping[str, Extractor]] = {
    **BUILT_IN,
    sources.NAME: sources.EXTRACTOR,
    changes.NAME: changes.EXTRACTOR,
}

_REPAIR: Final = "Repair or uninstall the named package."
_HINT: Final = "Repair or uninstall the named package, or switch its extractor off in .kb/config.json."


def names() -> tuple[str, ...]:
    """Return the names of all extractors, KB's own first, without importing any other package.

    Raises: ``InvalidConfig`` when a package lists its entry points in a file that is none.
    """
    return (*BUILT_IN, *sorted({point.name for point in _foreign()}))


class Loaded(msgspec.Struct, frozen=True):
    """The extractors that can be used, by name, and why others cannot be."""

    usable: dict[str, Extractor]
    problems: tuple[Problem, ...] = ()


def load(disabled: Iterable[str] = ()) -> Loaded:
    """Import and return the extractors, without those that are disabled.

    A name that two packages give to an extractor is usable in neither of them; one of KB's own stays KB's.
    """
    off = frozenset(disabled)
    loaded = {name: extractor for name, extractor in BUILT_IN.items() if name not in off}
    problems: list[Problem] = []
    try:
        points = [point for point in _foreign() if point.name not in off]
    except InvalidConfig as error:
        return Loaded(loaded, tuple(error.details) or (Problem("extractors", error.code, error.message, error.remedy),))
    times = Counter(point.name for point in points)
    for point in points:
        is_taken = times[point.name] > 1 or point.name in BUILT_IN
        extractor, fault = (None, "the name is in use") if is_taken else _import(point)
        if extractor is None:
            origin = f"{_distribution(point)}: {point.value}"
            message = f"The extractor {in_quotes(point.name)} ({origin}) cannot be used: {fault}."
            problems.append(Problem(f"extractors.{point.name}", "broken_extractor", message, _HINT))
        else:
            loaded[point.name] = extractor
    return Loaded(loaded, tuple(problems))


def missing_package(extractor: Extractor) -> Problem | None:
    """Return why one of KB's own extractors cannot read files here: the package that it needs is not installed."""
    if extractor is gherkin.EXTRACTOR and not gherkin.is_installed():
        message = f"Feature files are not read: the package {gherkin.PACKAGE} is not installed."
    elif extractor is code.EXTRACTOR and (missing := code.missing_packages()):
        message = f"Source code is not read: {some_of(missing, len(missing))} {is_or_are(len(missing))} not installed."
    else:
        return None
    hint = f'Install it with `pip install "kb-memory[{extractor.name}]"`, or remove the setting from .kb/config.json.'
    return Problem(f"extractors.{extractor.name}", "missing_package", message, hint)


def not_installed(name: str) -> Problem:
    """Return the problem of an extractor that no installed package has, although files are read by it."""
    message = f"No installed package has the extractor {in_quotes(name)}."
    hint = f"Install the package that brings it, or set `extractors.{name}` to false in .kb/config.json."
    return Problem(f"extractors.{name}", "missing_package", message, hint)


def path_rules(extractor: Extractor, settings: Mapping[str, Any]) -> tuple[PathRule, ...]:
    """Return the paths that an extractor reads.

    Raises: ``InvalidConfig`` for settings that it cannot use, and for a foreign one that fails.
    """
    if OWN.get(extractor.name) is extractor:
        return tuple(extractor.path_rules(settings))
    try:
        with redirect_stdout(sys.stderr):
            rules = tuple(extractor.path_rules(settings))
    except InvalidConfig:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code: named, in the words of the failure
        fault = f"{type(error).__name__}: {error}"
    else:
        fault = next(filter(None, map(_rule_fault, rules)), "")
        if not fault:
            return rules
    message = f"The extractor {in_quotes(extractor.name)} failed in `path_rules`: {fault}."
    problem = Problem(f"extractors.{extractor.name}", "broken_extractor", message, _HINT)
    raise InvalidConfig(message, hint=_HINT, details=[problem], says_first=True)


def run(extractor: Extractor, source: SourceFile, settings: Mapping[str, Any]) -> Facts:
    """Return what an extractor says about a file, with the defaults of the settings where it says nothing.

    When a foreign one fails, it is a problem of the file.
    """
    return with_defaults(stated(extractor, source, settings), source.path, settings.get(DEFAULTS, ()))


def stated(extractor: Extractor, source: SourceFile, settings: Mapping[str, Any]) -> Facts:
    """Return what ``run`` returns, without defaults."""
    if OWN.get(extractor.name) is extractor:
        return extractor.extract(source, settings)
    try:
        with redirect_stdout(sys.stderr):
            facts: object = extractor.extract(source, settings)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code: it must not stop the other files
        return _failed(extractor.name, f"{type(error).__name__}: {error}")
    if not isinstance(facts, Facts):
        return _failed(extractor.name, f"it returned {type(facts).__name__} instead of Facts")
    try:
        # A struct takes whatever it is made with.
        facts = msgspec.convert(msgspec.to_builtins(facts), Facts)
        _check_text(facts)
    except (msgspec.ValidationError, TypeError, RecursionError, UnicodeEncodeError) as error:
        return _failed(extractor.name, f"what it returned is not as Facts are: {error}")
    return msgspec.structs.replace(facts, problems=at_most(facts.problems))


def _rule_fault(rule: object) -> str:
    """Return why something cannot be used as a path rule, or the empty text."""
    if not isinstance(rule, PathRule):
        return "it gives something else than a PathRule"
    try:
        rule = msgspec.convert(msgspec.to_builtins(rule), PathRule)
        msgspec.json.encode(rule)
    except (msgspec.ValidationError, TypeError, UnicodeEncodeError) as error:
        return f"it gives what is not as a PathRule is: {error}"
    fault = glob_fault(rule.glob)
    return fault and f"it gives the glob {in_quotes(rule.glob)}: {fault}"


def _check_text(facts: Facts) -> None:
    """Look at all text but the values of fields, which are checked one by one with their lines.

    Raises: ``UnicodeEncodeError`` for half of a surrogate pair, such as a lenient decoding of bytes makes.
    """
    links = [msgspec.structs.replace(link, fields={}) for link in facts.links]
    entities = [(one.id, one.type, list(one.fields), one.lines) for one in facts.entities]
    msgspec.json.encode((entities, links, facts.problems, facts.held_back, facts.unidentified))


def _foreign() -> tuple[EntryPoint, ...]:
    return _foreign_in(tuple(sys.path))


@lru_cache(maxsize=8)
def _foreign_in(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of all packages on the import path, asked once for each: that takes milliseconds."""
    if not may_be_announced(GROUP, path):
        return ()
    from importlib.metadata import entry_points  # noqa: PLC0415 - costly, and seldom needed

    try:
        announced = entry_points(group=GROUP)
    except Exception as error:  # the library then tells nothing of any package, nor which one it is
        problems = [*_unreadable()]
        raise InvalidConfig(
            problems[0].message if problems else str(error), hint=_REPAIR, details=problems, says_first=bool(problems)
        ) from error
    own = {f"{type(one).__module__}:EXTRACTOR" for one in BUILT_IN.values()}
    points = [point for point in announced if point.value not in own]
    return tuple(sorted(points, key=lambda point: (point.name, _distribution(point))))


def _unreadable() -> Iterator[Problem]:
    """Yield a problem for each package whose entry points cannot be read."""
    from importlib.metadata import distributions  # noqa: PLC0415 - as above

    for package in distributions():
        try:
            package.entry_points  # noqa: B018 - whether it can be read is the question
        except Exception as error:  # noqa: BLE001 - whatever is in a file of another package
            message = f"The entry points of {_name(package)} cannot be read: {type(error).__name__}: {error}."
            yield Problem("extractors", "broken_extractor", message, _REPAIR)


def _distribution(point: EntryPoint) -> str:
    return _name(point.dist)


def _name(package: Distribution | None) -> str:
    """Return the name of a package; one that was damaged, or put together by hand, may have none."""
    return (package and package.name) or "unknown package"


def _import(point: EntryPoint) -> tuple[Extractor | None, str]:
    """Return the extractor, or why it cannot be used."""
    if not point.pattern.match(point.value):
        return None, "the entry point is not of the form `module:object`"
    try:
        with redirect_stdout(sys.stderr):
            found: Any = point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code: named, in the words of the failure
        return None, f"{type(error).__name__}: {error}"
    if isinstance(found, type):
        return None, "the entry point names a class; it must name an object"
    for member, kind in (("name", str), ("version", int)):
        if not isinstance(getattr(found, member, None), kind):
            return None, f"it has no `{member}` that is {kind.__name__}"
    if not all(callable(getattr(found, member, None)) for member in ("path_rules", "extract")):
        return None, "it lacks `path_rules` or `extract`"
    if found.name != point.name:
        return None, f"it calls itself {in_quotes(found.name)}"
    return found, ""


def _failed(name: str, reason: str) -> Facts:
    message = f"the extractor {in_quotes(name)} failed: {reason[:500]}"
    hint = "Report it to the author of the extractor; the facts known from the file are kept."
    return Facts(problems=(FileProblem(0, "extractor_failed", message, hint),), is_complete=False)
