"""What a sync did, in words. Pure.

Every line says no more than was done: a file that could not be read is not among those taken in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from kbcli.words.lines import changes_of, problem_line
from kbcore.phrases import counted
from kbcore.sync.links import UNRESOLVED_PATH
from kbcore.visible import visible

if TYPE_CHECKING:
    from kbcore.sync.answer import CountedNote, SyncAnswer


_GLOBS: Final = 12
_FEW: Final = 5
"""So many faults of one code are shown."""
UNREADABLE: Final = "unreadable-source"
UNRESOLVED: Final = "unresolved-reference"
_RULES: Final = {"unknown_status": "unknown-status"}
"""The rules that report the same as a sync does, by its codes; errors of others make a file unreadable."""


def sync_line(answer: SyncAnswer) -> str:
    """Return what a sync did or would do."""
    outcome = answer.outcome
    where = f"{outcome.branch} at seq {outcome.seq}"
    changes = changes_of(outcome)
    if not changes and not answer.changed and not answer.removed:
        return visible(f"{where}: up to date with {counted(answer.scanned, 'file')}.")
    done = f"{changes or 'no entity or edge changed,'} {_from(answer)}"
    return visible(f"{'Would change ' if outcome.dry_run and changes else ''}{where}: {done}.")


def _from(answer: SyncAnswer) -> str:
    """Return which files the changes come from."""
    files = counted(answer.scanned, "file")
    if not answer.changed:
        return f"from {counted(answer.removed, 'removed file')}" if answer.removed else f"from {files}"
    removed = f" and {answer.removed} removed" if answer.removed else ""
    unread = f", {answer.unread} of them not read whole" if answer.unread else ""
    return f"from {answer.changed} of {files}{removed}{unread}"


class Fault(NamedTuple):
    """Something wrong in a file, or several alike, as severe as `kb check` has it, in one line."""

    severity: Literal["error", "warning"]
    text: str


def faults(answer: SyncAnswer, levels: Mapping[str, str]) -> list[Fault]:
    """Return what is wrong, errors first; of many faults of one code the first few, and how many more there are.

    ``levels`` are those of the rules that the configuration changes. What `kb check` reports too has the severity that
    it has there; a fault of a rule that is off is none.
    """
    found: dict[tuple[str, str, str], list[str]] = {}
    for path, problem in answer.problems:
        if problem.severity == "note" or problem.code == UNRESOLVED_PATH:  # these are among what is unresolved
            continue
        rule = _RULES.get(problem.code) or (UNREADABLE if problem.severity == "error" else "")
        line = problem_line(path, problem.line, problem.message, problem.hint)
        found.setdefault((_level(rule, problem.severity, levels), rule, problem.code), []).append(line)
    for from_id, target, source in answer.unresolved:
        line = visible(f"unresolved: {from_id} -> {target} (stated in {source})")
        found.setdefault((_level(UNRESOLVED, "error", levels), UNRESOLVED, ""), []).append(line)
    shown = []
    for (severity, rule, code), lines in sorted(found.items(), key=lambda one: one[0][0]):
        if severity == "off":
            continue
        level: Literal["error", "warning"] = "error" if severity == "error" else "warning"
        kept = lines if len(lines) <= _FEW + 1 else lines[:_FEW]
        shown += [Fault(level, line) for line in kept]
        if len(lines) > len(kept):
            how = f"`kb check --rule {rule} --format short`" if rule else "`kb sync --json`"
            of = f" ({code})" if code else ""
            shown.append(Fault(level, f"{len(lines) - len(kept):,} more like these{of}; {how} lists them."))
    return shown


def _level(rule: str, severity: str, levels: Mapping[str, str]) -> str:
    from kbcore.rules import RULES

    return levels.get(rule) or next((one.severity for one in RULES if one.id == rule), severity)


def waiting_line(answer: SyncAnswer) -> str:
    """Return how many of the edges that a sync created are links to pages that are no entity, or nothing."""
    count = answer.waiting_mentions
    if not count:
        return ""
    if count == 1:
        return "1 of the edges is a link in a text to a page that is no entity; it waits."
    return f"{count:,} of the edges are links in texts to pages that are no entity; they wait."


def note_line(note: CountedNote) -> str:
    """Return what is to be said of one file, or of many alike with one of them as the example."""
    line = problem_line(note.path, note.line, note.message, note.hint)
    return line if note.count == 1 else f"{note.count:,} notes ({note.code}) such as {line}"


def elsewhere_line(problems: int, unresolved: int) -> str:
    """Return what there is beside the named paths, or nothing."""
    found = [
        *([counted(problems, "problem")] if problems else []),
        *([counted(unresolved, "unresolved link")] if unresolved else []),
    ]
    return f"Elsewhere: {' and '.join(found)}; `kb sync` without paths lists them." if found else ""


def globs_line(globs: Sequence[str]) -> str:
    """Return the globs of the files that the extractors read, as far as one line holds them."""
    if not globs:
        return "nowhere, as .kb/config.json says"
    more = f" and {len(globs) - _GLOBS} more, as .kb/config.json says" if len(globs) > _GLOBS else ""
    return ", ".join(globs[:_GLOBS]) + more
