"""The settings of a project, ``.kb/config.json``: read from its text, complete with KB's defaults. Pure.

Every key is optional; a key, a name or a value that KB does not know is refused, all of them at once. What is KB's own
is known here; for other names, and only then, the project's own files and packages are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, Literal, TypeVar, cast

import msgspec

from kbcore import limits
from kbcore.config.fleet import FleetSettings, read_fleet
from kbcore.config.sleep import SleepSettings, read_sleep
from kbcore.errors import InvalidConfig, Problem
from kbcore.extract import settings as extractor_settings
from kbcore.extract.defaults import read_defaults
from kbcore.ids import check_branch_name
from kbcore.model.rule_settings import (
    Parameters,
    RuleSetting,
    Suppression,
    check_params,
    read_params,
    read_suppressions,
)
from kbcore.model.schema import CORE
from kbcore.text.globs import globs_in, names_any, placed_globs
from kbcore.text.suggest import did_you_mean, nearest
from kbcore.text.validator import ConfigNode, number_hint, read_json, refuse, shown

RuleLevel = Literal["error", "warning", "off"]
WorkspaceKind = Literal["branch", "session"]
Word = TypeVar("Word", bound=str)

MeaningMode = Literal["auto", "on", "off"]
ShareMode = Literal["off", "ask", "auto"]
MergeMode = Literal["auto", "ask", "off"]
MERGE_MODES: Final[tuple[MergeMode, ...]] = ("auto", "ask", "off")
SHARE_MODES: Final[tuple[ShareMode, ...]] = ("off", "ask", "auto")
MEANING_MODES: Final[tuple[MeaningMode, ...]] = ("auto", "on", "off")
WORKSPACE_KINDS: Final[tuple[WorkspaceKind, ...]] = ("branch", "session")
RULE_LEVELS: Final[tuple[RuleLevel, ...]] = ("error", "warning", "off")


class KipLimits(msgspec.Struct, frozen=True):
    """The limits of one KIP command: solutions held at once, and seconds; and which setting decided each."""

    rows: int = limits.KIP_ROWS
    time_s: float = limits.KIP_TIME_S
    rows_by: str = "`kip.rowLimit`"
    time_by: str = "`kip.timeLimitSeconds`"


class LogicSettings(msgspec.Struct, frozen=True):
    """The Prolog workspace: where its clauses are kept, the most there may be, and seconds of a step of a query.

    With ``branch`` they are facts of the branch, with ``session`` they end with the process.
    """

    workspace: WorkspaceKind = "branch"
    clauses: int = limits.LOGIC_CLAUSES
    time_s: float = limits.LOGIC_TIME_S
    time_by: str = "`logic.timeLimitSeconds`"
    """The setting that decided the time."""


class ShareSettings(msgspec.Struct, frozen=True):
    """The way of changes into change files: not at all, by ``kb share`` alone, or by the hook before each commit too.

    Only changes of these actors are shared, and only those of which every entity is of these types; globs, where ``*``
    is any. A change is shared whole or not at all.
    """

    mode: ShareMode = "off"
    merge: MergeMode = "auto"
    """Without files: whether the changes of a branch that git merged are merged by the hook, or named, or neither."""
    actors: tuple[str, ...] = ("*",)
    types: tuple[str, ...] = ("*",)


class ReviewSettings(msgspec.Struct, frozen=True):
    """Whose writes are only proposed until somebody accepts them: what these actors write of these types.

    Globs, where ``*`` is any; nobody's without ``actors``. ``accept`` are actors who may accept besides people at a
    terminal.
    """

    actors: tuple[str, ...] = ()
    types: tuple[str, ...] = ("*",)
    accept: tuple[str, ...] = ()

    def is_proposer(self, actor: str) -> bool:
        """Tell whether what an actor writes is proposed."""
        return names_any(self.actors, actor)

    def covers(self, type_: str) -> bool:
        """Tell whether facts of a type of entities or edges are proposed."""
        return names_any(self.types, type_)

    def may_accept(self, actor: str, *, is_agent: bool) -> bool:
        """Tell whether an actor may accept what is proposed; an agent, or who proposes, only where it is listed."""
        return names_any(self.accept, actor) or not (is_agent or self.is_proposer(actor))


class Config(msgspec.Struct, frozen=True):
    """The settings in force.

    ``extractors`` holds what the file says to each extractor, by its name; what that means, and what holds
    where it says nothing, is the extractor's. ``switched_off`` names the extractors that shall not run.
    ``rules`` holds only the rules whose level the project changes.
    """

    default_branch: str | None = None
    extractors: dict[str, dict[str, Any]] = {}
    switched_off: tuple[str, ...] = ()
    sources: tuple[dict[str, Any], ...] = ()
    """The documents that the project describes, each entry complete with the settings of its profile."""
    defaults: tuple[dict[str, Any], ...] = ()
    """Values for the entities of some files, as ``kbcore.extract.defaults`` has them."""
    rules: dict[str, RuleLevel] = {}
    rules_at: dict[str, str] = {}
    """File and line of each of these."""
    rule_params: dict[str, dict[str, RuleSetting]] = {}
    suppressions: tuple[Suppression, ...] = ()
    """Exemptions from reports, and why."""
    rule_time_s: float = limits.RULE_TIME_S
    """The time limit of the SQL of one rule of the project's own."""
    lock_wait_s: float = limits.LOCK_WAIT_S
    kip: KipLimits = KipLimits()
    sleep: SleepSettings = SleepSettings()
    logic: LogicSettings = LogicSettings()
    share: ShareSettings = ShareSettings()
    search_meaning: MeaningMode = "auto"
    """A search for a text looks for its meaning too: where the extra is installed, or always, or never."""
    review: ReviewSettings = ReviewSettings()
    results: tuple[str, ...] = ()
    """Globs of the reports that ``kb results`` takes in where none is named."""
    code_owners: bool = True
    """The file ``CODEOWNERS`` gives the owners of what states none."""
    staged_symbols: tuple[str, ...] = ()
    """Globs of the source files that must name a requirement once they are staged."""
    fleet: FleetSettings = FleetSettings()


DEFAULT: Final = Config()
"""The settings of a project that has no file, or an empty one."""

OF_THE_USER: Final = "store"
"""A key of the user's settings that a repository might want to set, and must not."""
_RULE_KEYS: Final = ("rules", "ruleParams", "ruleTimeLimitSeconds", "suppress")
_MOST_ABSENT: Final = 50
"""Extractors that may be named and that no installed package has."""

SCHEMA_KEY: Final = "$schema"
"""The key by which an editor finds the schema of the file; it sets nothing."""

_KEYS: Final = (
    SCHEMA_KEY,
    "defaultBranch",
    "extractors",
    "sources",
    "defaults",
    *_RULE_KEYS,
    "lockWaitSeconds",
    "kip",
    "sleep",
    "logic",
    "share",
    "search",
    "review",
    "results",
    "codeowners",
    "staged",
    "fleet",
)
_KIP_KEYS: Final = ("rowLimit", "timeLimitSeconds")
_SHARE_KEYS: Final = ("mode", "merge", "actors", "types")
_REVIEW_KEYS: Final = ("actors", "types", "accept")
_LOGIC_KEYS: Final = ("workspace", "maxClauses", "timeLimitSeconds")


class NameSources(msgspec.Struct, frozen=True):
    """The sources of names that are not KB's own; each is called only when the settings hold such a name.

    Each may raise ``InvalidConfig``: then its problems are reported with those of the settings.
    """

    own_rules: Callable[[], Collection[str]]
    """KB's own rules; asked for when the settings name any rule."""
    parameters: Callable[[], Parameters]
    """The rules of the project, and their parameters."""
    extractors: Callable[[], Collection[str]]
    """All extractors, those of other packages included."""
    entity_types: Callable[[], Collection[str]]
    """All entity types of the schema in force."""
    edge_types: Callable[[], Collection[str]] = lambda: CORE.edges
    """All edge types of the schema in force."""


class _Doubt(msgspec.Struct, frozen=True):
    """A name to ask for, and its place; the name that parameters have is that of their rule."""

    what: Literal["rule", "parameters", "extractor", "entity type", "edge type"]
    name: str
    spot: ConfigNode


class ReadSettings(msgspec.Struct, frozen=True):
    """The content of a text: the settings, their problems, and the names that ``checked_config`` has to ask for."""

    config: Config
    problems: tuple[Problem, ...] = ()
    doubts: tuple[_Doubt, ...] = ()


def parse_config(text: str, path: str) -> Config:
    """Return the settings in a text, whatever names of rules, extractors and types that are not KB's own it holds.

    Raises:
        InvalidConfig: as ``checked_config``.
    """
    return checked_config(read_config(text, path))


def read_config(text: str, path: str) -> ReadSettings:
    """Return what a text says that was read from ``path``, as messages shall name it. The same text reads the same."""
    problems: list[Problem] = []
    doubts: list[_Doubt] = []
    root = read_json(text, path, problems)
    found = root.known_members((*_KEYS, OF_THE_USER), "setting") if root else {}
    if OF_THE_USER in found:
        message = f"`{OF_THE_USER}` is a setting of the user, not of a repository."
        hint = "Remove it: a repository does not decide that. It counts in your own kb/config.json alone."
        found[OF_THE_USER].wrong("setting_of_the_user", message, hint)
    if SCHEMA_KEY in found and not isinstance(found[SCHEMA_KEY].value, str):
        found[SCHEMA_KEY].must_be("text: the path or the address of a JSON Schema")
    extractors = _extractors(found.get("extractors"), doubts)
    config = Config(
        default_branch=_branch(found.get("defaultBranch")),
        extractors={name: members for name, members in extractors.items() if members is not None},
        switched_off=tuple(sorted(name for name, members in extractors.items() if members is None)),
        sources=_sources(found.get("sources"), doubts),
        defaults=_defaults(found.get("defaults"), doubts),
        rules=_rules(found.get("rules"), doubts),
        rules_at=_places(found.get("rules")),
        rule_params=_params(found.get("ruleParams"), doubts),
        suppressions=_suppressions(found.get("suppress"), doubts),
        rule_time_s=_seconds(
            found.get("ruleTimeLimitSeconds"),
            DEFAULT.rule_time_s,
            limits.MAX_RULE_TIME_S,
            minimum=limits.MIN_RULE_TIME_S,
        ),
        lock_wait_s=_seconds(found.get("lockWaitSeconds"), DEFAULT.lock_wait_s, limits.MAX_LOCK_WAIT_S),
        kip=_kip(found.get("kip")),
        sleep=read_sleep(found.get("sleep")),
        logic=_logic(found.get("logic")),
        share=_share(found.get("share")),
        search_meaning=_search(found.get("search")),
        review=_review(found.get("review")),
        results=globs_in(found["results"]) if "results" in found else (),
        code_owners=_flag(found.get("codeowners"), is_on=DEFAULT.code_owners),
        staged_symbols=_staged(found.get("staged")),
        fleet=read_fleet(found.get("fleet")),
    )
    return ReadSettings(config, tuple(problems), tuple(doubts))


def checked_config(reading: ReadSettings, known: NameSources | None = None) -> Config:
    """Return the settings, once nothing is wrong with them; without ``known``, names in doubt pass.

    Raises:
        InvalidConfig: with every problem, each with file, line and JSON path.
    """
    problems = list(reading.problems)
    if known is not None and reading.doubts:
        _settle_doubts(reading.doubts, known, problems)
    refuse(problems)
    return reading.config


def _settle_doubts(doubts: Collection[_Doubt], known: NameSources, problems: list[Problem]) -> None:
    own_rules = known.own_rules() if any(doubt.what in {"rule", "parameters"} for doubt in doubts) else ()
    doubts = [doubt for doubt in doubts if doubt.what != "rule" or doubt.name not in own_rules]
    asked = {
        "rule": ("unknown_rule", known.parameters),
        "extractor": ("unknown_extractor", known.extractors),
        "entity type": ("unknown_type", known.entity_types),
        "edge type": ("unknown_edge", known.edge_types),
    }
    for what, (code, ask) in asked.items():
        named = [doubt for doubt in doubts if doubt.what == what]
        try:
            names = {*_own_names(what), *(own_rules if what == "rule" else ()), *ask()} if named else set()
        except InvalidConfig as error:
            if what != "extractor":  # a broken package is named by what needs extractors, and stops nothing else
                spot = named[0].spot
                problems += error.details or [
                    Problem("$", error.code, error.message, error.remedy, spot.file, spot.line)
                ]
            continue
        unknown = [one for one in named if one.name not in names]
        for doubt in unknown:
            is_short = len(unknown) <= _MOST_ABSENT and len(doubt.name) <= limits.MAX_NAME_CHARS
            if what == "extractor" and is_short and not nearest(doubt.name, names):
                continue  # a package may not be installed here: whoever reads files says so
            spot = msgspec.structs.replace(doubt.spot, problems=problems)
            spot.unknown(code, what, doubt.name, names)
    _settle_params([doubt for doubt in doubts if doubt.what == "parameters"], known, frozenset(own_rules), problems)


def _settle_params(
    doubts: Collection[_Doubt], known: NameSources, own_rules: frozenset[str], problems: list[Problem]
) -> None:
    try:
        parameters = known.parameters() if doubts else {}
    except InvalidConfig as error:
        # Whoever asks for rules gets the problems of their files; once is enough.
        problems += [one for one in error.details if one not in problems]
        return
    for doubt in doubts:
        spot = msgspec.structs.replace(doubt.spot, problems=problems)
        check_params(doubt.name, spot, parameters, own_rules)


def _own_names(what: str) -> Collection[str]:
    """Return the names that are KB's own, where they are known without asking."""
    return {"extractor": extractor_settings.BUILT_IN, "entity type": CORE.entities, "edge type": CORE.edges}.get(
        what, ()
    )


def default_branch_fault(name: str) -> str | None:
    """Return why git makes no branch of this name, or None when it may."""
    if name.startswith("-"):
        return "git takes a name that starts with '-' for an option"
    if name in {"HEAD", "@"}:
        return f"git has another meaning for {name!r}"
    return check_branch_name(name)


def _branch(spot: ConfigNode | None) -> str | None:
    if spot is None or spot.value is None:
        return None
    if not isinstance(spot.value, str):
        spot.must_be("the name of a branch, or null", "With null, origin's HEAD decides, else `main`.")
        return None
    reason = default_branch_fault(spot.value)
    if reason:
        spot.wrong(
            "bad_branch",
            f"`defaultBranch` cannot name a branch: {reason}.",
            "Name it as `git branch` shows it.",
        )
    return spot.value


def _extractors(spot: ConfigNode | None, doubts: list[_Doubt]) -> dict[str, dict[str, Any] | None]:
    """Return what is said to each extractor; None to one that is switched off."""
    found: dict[str, dict[str, Any] | None] = {}
    for name, settings in spot.members().items() if spot else ():
        is_own = name in extractor_settings.BUILT_IN
        if not is_own:
            doubts.append(_Doubt("extractor", name, settings))
        if settings.value is False:
            found[name] = None
        elif not isinstance(settings.value, dict):
            settings.must_be("an object with its settings, or false to switch it off")
        else:
            found[name] = settings.value
            types = extractor_settings.check(name, settings) if is_own else []
            doubts += [_Doubt("entity type", one, place) for one, place in types if one not in CORE.entities]
    return found


def _sources(spot: ConfigNode | None, doubts: list[_Doubt]) -> tuple[dict[str, Any], ...]:
    """Return the entries of ``sources``; types of entities and edges are in doubt where they are not KB's own."""
    if spot is None:
        return ()
    from kbcore.extract.sources.check import check_sources  # noqa: PLC0415 - most projects describe no documents

    entries, types, edges = check_sources(spot)
    doubts += [_Doubt("entity type", one, place) for one, place in types if one not in CORE.entities]
    doubts += [_Doubt("edge type", one, place) for one, place in edges if one not in CORE.edges]
    return tuple(entries)


def _defaults(spot: ConfigNode | None, doubts: list[_Doubt]) -> tuple[dict[str, Any], ...]:
    """Return the entries of ``defaults``; types of entities are in doubt where they are not KB's own."""
    entries, types = read_defaults(spot)
    doubts += [_Doubt("entity type", one, place) for one, place in types if one not in CORE.entities]
    return entries


def _rules(spot: ConfigNode | None, doubts: list[_Doubt]) -> dict[str, RuleLevel]:
    found: dict[str, RuleLevel] = {}
    for name, level in spot.members().items() if spot else ():
        doubts.append(_Doubt("rule", name, level))
        if level.value not in RULE_LEVELS:
            hint = did_you_mean(level.value, RULE_LEVELS) if isinstance(level.value, str) else ""
            level.must_be("error, warning or off", hint or 'Write "error", "warning" or "off".')
        else:
            found[name] = cast("RuleLevel", level.value)
    return found


def _suppressions(spot: ConfigNode | None, doubts: list[_Doubt]) -> tuple[Suppression, ...]:
    found = read_suppressions(spot)
    doubts += [_Doubt("rule", one.rule, place) for one, place in found]
    return tuple(one for one, _ in found)


def _places(spot: ConfigNode | None) -> dict[str, str]:
    members = spot.value if spot and isinstance(spot.value, dict) else {}
    return {name: level.source for name, level in spot.members().items()} if spot and members else {}


def _params(spot: ConfigNode | None, doubts: list[_Doubt]) -> dict[str, dict[str, RuleSetting]]:
    members = spot.value if spot and isinstance(spot.value, dict) else {}
    if spot and members:
        doubts += [
            _Doubt("parameters", name, one) for name, one in spot.members().items() if isinstance(one.value, dict)
        ]
    return read_params(spot)


def _kip(spot: ConfigNode | None) -> KipLimits:
    found = spot.known_members(_KIP_KEYS, "setting of KIP") if spot else {}
    rows = _count(found.get("rowLimit"), DEFAULT.kip.rows, limits.MAX_KIP_ROWS)
    time = _seconds(found.get("timeLimitSeconds"), DEFAULT.kip.time_s, limits.MAX_KIP_TIME_S)
    return KipLimits(rows, time)


def _logic(spot: ConfigNode | None) -> LogicSettings:
    found = spot.known_members(_LOGIC_KEYS, "setting of logic") if spot else {}
    kind = _choice(found.get("workspace"), WORKSPACE_KINDS)
    clauses = _count(found.get("maxClauses"), DEFAULT.logic.clauses, limits.MAX_LOGIC_CLAUSES)
    time = _seconds(found.get("timeLimitSeconds"), DEFAULT.logic.time_s, limits.MAX_LOGIC_TIME_S)
    return LogicSettings(kind or DEFAULT.logic.workspace, clauses, time)


def _choice(spot: ConfigNode | None, words: tuple[Word, ...]) -> Word | None:
    """Return a setting that is one of some words, None where it is not stated or another one."""
    found = next((word for word in words if spot and word == spot.value), None)
    if spot and found is None:
        hint = did_you_mean(spot.value, words) if isinstance(spot.value, str) else ""
        spot.must_be(f"{', '.join(words[:-1])} or {words[-1]}", hint or f"Write one of: {', '.join(words)}.")
    return found


def _share(spot: ConfigNode | None) -> ShareSettings:
    found = spot.known_members(_SHARE_KEYS, "setting of share") if spot else {}
    mode = _choice(found.get("mode"), SHARE_MODES)
    merge = _choice(found.get("merge"), MERGE_MODES)
    actors, types = found.get("actors"), found.get("types")
    return ShareSettings(
        mode or DEFAULT.share.mode,
        merge or DEFAULT.share.merge,
        _shared_names(actors) if actors else DEFAULT.share.actors,
        _shared_names(types) if types else DEFAULT.share.types,
    )


def _search(spot: ConfigNode | None) -> MeaningMode:
    found = spot.known_members(("meaning",), "setting of search") if spot else {}
    return _choice(found.get("meaning"), MEANING_MODES) or DEFAULT.search_meaning


def _review(spot: ConfigNode | None) -> ReviewSettings:
    found = spot.known_members(_REVIEW_KEYS, "setting of review") if spot else {}
    named = {name: _shared_names(place, "is reviewed") for name, place in found.items()}
    return ReviewSettings(**named)


def _shared_names(spot: ConfigNode, what: str = "is shared") -> tuple[str, ...]:
    """Return the globs of what is shared; one that is to exclude a name would share it, and is a problem."""
    placed = placed_globs(spot)
    for glob, place in placed:
        if glob.startswith("!"):
            message = f"{shown(glob)} cannot be used: what {what} is what a glob matches, and none excludes a name."
            place.wrong("bad_glob", message, "List the names, or globs of them, that are meant.")
    return tuple(glob for glob, _ in placed)


def _count(spot: ConfigNode | None, default: int, maximum: int) -> int:
    if spot is None:
        return default
    if type(spot.value) is not int or not 1 <= spot.value <= maximum:
        spot.must_be(f"a whole number from 1 to {maximum}", number_hint(spot.value))
        return default
    return spot.value


def _flag(spot: ConfigNode | None, *, is_on: bool) -> bool:
    """Return a setting that is true or false, ``is_on`` where it is not stated or something else."""
    if spot is None:
        return is_on
    if not isinstance(spot.value, bool):
        spot.must_be("true or false", "Write `true` or `false`, without quotes.")
        return is_on
    return spot.value


def _staged(spot: ConfigNode | None) -> tuple[str, ...]:
    symbols = spot.known_members(("symbols",), "setting of staged").get("symbols") if spot else None
    return globs_in(symbols) if symbols else ()


def _seconds(spot: ConfigNode | None, default: float, maximum: float, *, minimum: float = 0) -> float:
    if spot is None:
        return default
    value = spot.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value <= maximum:
        spot.must_be(f"a number of seconds from {minimum:g} to {maximum:g}", number_hint(value))
        return default
    return float(value)
