"""``kb dml check``: programs are read by engines and judged, and none of them is run.

What is found is shown as lines such as compilers write, as one JSON document, or as SARIF.
"""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from kbcli.dml.program_tools import RunTools, ToolChoice
from kbcli.dml.running import program_name, program_text
from kbcli.input import changeset_file
from kbcli.invocation import exits
from kbcli.views.reports import sarif
from kbcore.dml.check import CallerTools, CheckedProgram
from kbcore.dml.check_with_engines import check_programs
from kbcore.dml.recording import new_run
from kbcore.errors import GitUnusable, NotARepository
from kbcore.git import find_repository
from kbcore.text.escaping import escape_controls, escaped_sentence, in_quotes
from kbcore.text.wording import pluralize, shortened

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcli.terminal.output import Output
    from kbcore.dml.check import CheckedTask, ProgramFinding
    from kbcore.dml.places import TextRange

Format = Literal["text", "json", "sarif"]
FailOn = Literal["error", "warning", "never"]
_INDENT: Final = "  "
_TEXT_CHARS: Final = 60
"""Of the text of a task, what its line has."""
_FINGERPRINT: Final = "kbProgram/v1"
_DIGITS: Final = 32


class ProgramCheckRequest(msgspec.Struct, frozen=True):
    """The request of the command line; ``tools`` is the name of a file, "" for none."""

    files: Sequence[str]
    tools: str = ""
    format: Format = "text"
    fail_on: FailOn = "error"


def check(session: Session, asked: ProgramCheckRequest) -> int:
    """Check programs, show what was found, and return the status to exit with.

    Raises: ``InvalidQuery``, ``NotFound`` or ``LimitExceeded`` where a file cannot be read; ``PrologUnavailable``.
    """
    programs = [(_shown(file), program_text(file, session.start)) for file in dict.fromkeys(asked.files)]
    tools = _tools(session, asked.tools)
    with session.output.waiting("Checking"):
        found = asyncio.run(check_programs(programs, tools, session.env))
    if asked.format == "sarif":
        _show_sarif(session.output, found, _from_top(session.start))
    elif session.output.is_json:
        _show_json(session.output, found)
    else:
        _show_text(session.output, found)
    return exits.VIOLATIONS if any(_fails(one, asked.fail_on) for one in found) else exits.DONE


def _shown(file: str) -> str:
    return program_name(file) if file == changeset_file.STDIN else file


def _tools(session: Session, file: str) -> CallerTools:
    """Return the tools of KB and those of a file; with one it is taken that there are no others."""
    found = RunTools(ToolChoice(file, allow=("*",)), session.start, session.env, new_run("check"), session.named_branch)
    try:
        return CallerTools(frozenset(found.toolset.names), is_whole=bool(file))
    finally:
        found.close()


def _from_top(start: Path) -> str:
    """Return the path of a folder from the top of its repository, "" for the top itself and outside of a repository."""
    try:
        top = find_repository(start).worktree
    except (NotARepository, GitUnusable):
        return ""
    path = start.resolve().relative_to(top).as_posix() if start.resolve().is_relative_to(top) else "."
    return "" if path == "." else path


def _fails(checked: CheckedProgram, fail_on: FailOn) -> bool:
    counts = {"error": checked.errors, "warning": checked.errors + checked.warnings, "never": 0}
    return counts[fail_on] > 0


def _show_text(output: Output, found: Sequence[CheckedProgram]) -> None:
    """Show the findings of each program, and then what it has."""
    output.is_paged = True
    for checked in found:
        output.stream(f"{_line(output, checked, one)}\n" for one in checked.findings)
        for line in _contents(checked):
            output.say_as_it_is(line)
    if len(found) > 1:
        errors, warnings = (sum(getattr(one, name) for one in found) for name in ("errors", "warnings"))
        output.say(f"{pluralize(len(found), 'program')}: {_counts(errors, warnings)}")


def _show_json(output: Output, found: Sequence[CheckedProgram]) -> None:
    """Show the checks as one document."""
    counts = {name: sum(getattr(one, name) for one in found) for name in ("errors", "warnings")}
    output.document(counts | {"files": [one.as_json() for one in found]})


def _show_sarif(output: Output, found: Sequence[CheckedProgram], folder: str) -> None:
    """Show the findings as a SARIF log; files are named from ``folder``, a path from the top of the repository."""
    rules = sorted({one.problem.code for checked in found for one in checked.findings})
    index = {code: at for at, code in enumerate(rules)}
    results = [_result(checked, one, index, folder) for checked in found for one in checked.findings]
    seen: Counter[str] = Counter()
    for one in results:
        mark = one["partialFingerprints"][_FINGERPRINT]
        seen[mark] += 1
        if seen[mark] > 1:
            one["partialFingerprints"][_FINGERPRINT] = f"{mark}:{seen[mark]}"
    described = [{"id": code, "shortDescription": {"text": code.replace("_", " ")}} for code in rules]
    output.data(sarif.log_text(described, results, {"executionSuccessful": True}))


def _line(output: Output, checked: CheckedProgram, finding: ProgramFinding) -> str:
    problem, place = finding.problem, finding.place
    said = escaped_sentence(f"{problem.message} {problem.hint}".strip())
    severity = output.styled(f"{finding.severity}:", "red" if finding.severity == "error" else "yellow")
    return f"{escape_controls(checked.file)}:{_at(place)}: {severity} {said} [{problem.code}]"


def _contents(checked: CheckedProgram) -> Iterator[str]:
    """Yield how many findings there are, and the params, tools and tasks of a program."""
    shown = len(checked.findings)
    total = checked.errors + checked.warnings
    rest = f" (the first {shown:,} are shown)" if shown < total else ""
    yield escape_controls(f"{checked.file}: {_counts(checked.errors, checked.warnings)}{rest}")
    if checked.params:
        yield from _listed("params", [f"{one.name} ({one.kind})" for one in checked.params])
    if checked.tools:
        yield from _listed("tools", [f"{one.name} ({pluralize(one.inputs, 'input')})" for one in checked.tools])
    if checked.calls:
        yield from _listed("calls", [one.name for one in checked.calls])
    for task in checked.tasks:
        yield f"{_INDENT}task {_at(task.place)}: {escape_controls(_task(task))}"


def _listed(what: str, names: Sequence[str]) -> Iterator[str]:
    yield f"{_INDENT}{what}: {escape_controls(', '.join(names))}"


def _task(task: CheckedTask) -> str:
    text = "a text that is made at run time" if task.text is None else in_quotes(shortened(task.text, _TEXT_CHARS))
    outputs = ", ".join(f"{name or '_'} ({type_})" for name, type_ in task.outputs)
    return f"{text} gives {outputs}" if outputs else text


def _counts(errors: int, warnings: int) -> str:
    found = [pluralize(errors, "error")] * bool(errors) + [pluralize(warnings, "warning")] * bool(warnings)
    return ", ".join(found) or "no findings"


def _at(place: TextRange) -> str:
    return f"{place.line}:{place.column}"


def _result(checked: CheckedProgram, finding: ProgramFinding, index: dict[str, int], folder: str) -> dict[str, Any]:
    problem, place = finding.problem, finding.place
    region = {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }
    path = posixpath.normpath(posixpath.join(folder, checked.file))
    mark = f"{checked.file}\0{problem.code}\0{problem.subject}"
    return {
        "ruleId": problem.code,
        "ruleIndex": index[problem.code],
        "level": finding.severity,
        "message": {"text": escaped_sentence(f"{problem.message} {problem.hint}".strip())},
        "locations": [{"physicalLocation": sarif.place(path, region)}],
        "partialFingerprints": {
            _FINGERPRINT: hashlib.sha256(mark.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
        },
    }
