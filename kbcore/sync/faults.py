"""Problems that a sync found in files, as lines for the command line or MCP. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from kbcore.errors.remedies import kb
from kbcore.model.graph import NOTES_OF_RULES, UNKNOWN_STATUS
from kbcore.store.kb_folder import KB
from kbcore.sync.answer import unresolved_words
from kbcore.text.escaping import escape_controls, problem_line
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcore.rules.accepted import AcceptedFaults
    from kbcore.sync.answer import Located, SyncAnswer, UnresolvedLink
    from kbcore.text.problems import FileProblem

_FEW: Final = 5
"""The most faults shown of one code."""
UNREADABLE: Final = "unreadable-source"
UNRESOLVED: Final = "unresolved-reference"


class About(NamedTuple):
    """Entities that faults are about: those whose links have no target, and those whose status is not listed."""

    ids: Collection[str]
    statuses: Collection[str]


class FileFault(NamedTuple):
    """Something wrong in a file, or several alike, as severe as `kb check` has it, in one line."""

    severity: Literal["error", "warning"]
    text: str


class Faults(NamedTuple):
    """Problems in files: one line for each or for several alike, their number, and the number of files."""

    lines: list[FileFault]
    errors: int
    warnings: int
    unread: int
    is_recorded: bool = False
    """The files cannot be judged now, as in a merge: `kb check` lists the faults with `--recorded` alone."""

    @property
    def line(self) -> str:
        """Return how many there are, in one line; "" without any."""
        found = [pluralize(self.errors, "error")] * bool(self.errors)
        found += [pluralize(self.warnings, "warning")] * bool(self.warnings)
        check = kb("check", *_recorded(is_recorded=self.is_recorded))
        how = f"{check} lists them" if not self.unread else f"{check} and {kb('sync', '--strict')} list them"
        return f"{' and '.join(found)} in files; {how}." if found else ""


def _recorded(*, is_recorded: bool) -> tuple[str, ...]:
    """Return the option of `kb check` that judges the records alone, where the files cannot be judged."""
    return ("--recorded",) if is_recorded else ()


def about(problems: Iterable[Located], unresolved: Iterable[UnresolvedLink]) -> About:
    """Return what faults are about, as far as documents may accept them."""
    statuses = {one.id for _, one in problems if NOTES_OF_RULES.get(one.code) == UNKNOWN_STATUS}
    return About({one.id for one in unresolved}, statuses)


def rule_of(path: str, problem: FileProblem) -> str:
    """Return the rule that reports a problem of a file, "" without one."""
    return "" if KB in path.split("/") else NOTES_OF_RULES.get(problem.code, UNREADABLE)


def not_accepted(problems: Iterable[Located], known: AcceptedFaults | None) -> list[Located]:
    """Return the problems of files that the project does not accept, and the notes."""
    return [(path, one) for path, one in problems if one.severity == "note" or not _is_accepted(path, one, known)]


def links_not_accepted(unresolved: Iterable[UnresolvedLink], known: AcceptedFaults | None) -> list[UnresolvedLink]:
    """Return the links without a target that the project does not accept."""
    return [
        one for one in unresolved if not (known and known.accepts(UNRESOLVED, one.id, one.source, target=one.other_end))
    ]


def _is_accepted(path: str, problem: FileProblem, known: AcceptedFaults | None) -> bool:
    rule = rule_of(path, problem)
    if not (rule and known):
        return False
    if rule == UNKNOWN_STATUS:
        return known.accepts_status(path, problem.id)
    return known.accepts(rule, path, path, code=problem.code, target=problem.id)


def has_faults(answer: SyncAnswer) -> bool:
    """Return whether a sync found anything wrong in files."""
    return bool(answer.unresolved) or any(problem.severity != "note" for _, problem in answer.problems)


def faults(
    answer: SyncAnswer, levels: Mapping[str, str], known: AcceptedFaults | None, *, is_recorded: bool = False
) -> Faults:
    """Return what is wrong, errors first; of many faults of one code the first few, and how many more there are.

    ``levels`` are those of the rules that the configuration changes. What `kb check` reports too has the severity that
    it has there; a fault of a rule that is off is none, and neither is one that the project accepts, as ``known`` says.
    With ``is_recorded`` the files cannot be judged now.
    """
    found: dict[tuple[str, str, str], list[str]] = {}
    unread = set()
    for path, problem in not_accepted(answer.problems, known):
        rule = rule_of(path, problem)
        if problem.severity == "note" or rule == UNRESOLVED:  # these are among what is unresolved
            continue
        if rule == UNREADABLE and problem.severity == "error":
            unread.add(path)
        line = problem_line(path, problem.line, problem.message, problem.hint)
        found.setdefault((_level(rule, problem.severity, levels), rule, problem.code), []).append(line)
    for link in links_not_accepted(answer.unresolved, known):
        line = escape_controls(f"unresolved: {unresolved_words(link.as_json())}")
        found.setdefault((_level(UNRESOLVED, "error", levels), UNRESOLVED, ""), []).append(line)
    shown, counts = [], {"error": 0, "warning": 0}
    for (severity, rule, code), lines in sorted(found.items(), key=lambda one: one[0][0]):
        if severity == "off":
            continue
        level: Literal["error", "warning"] = "error" if severity == "error" else "warning"
        counts[level] += len(lines)
        kept = lines if len(lines) <= _FEW + 1 else lines[:_FEW]
        shown += [FileFault(level, line) for line in kept]
        if len(lines) > len(kept):
            check = kb("check", *_recorded(is_recorded=is_recorded), "--rule", rule, "--format", "short")
            how = check if rule else kb("sync", "--json")
            of = f" ({code})" if code else ""
            shown.append(FileFault(level, f"{len(lines) - len(kept):,} more like these{of}; {how} lists them."))
    return Faults(shown, counts["error"], counts["warning"], len(unread), is_recorded)


def _level(rule: str, severity: str, levels: Mapping[str, str]) -> str:
    from kbcore.rules import RULES  # noqa: PLC0415 - a sync that finds nothing wrong needs none

    if rule == UNREADABLE and severity == "warning":
        return "off" if levels.get(rule) == "off" else severity
    return levels.get(rule) or next((one.severity for one in RULES if one.id == rule), severity)
