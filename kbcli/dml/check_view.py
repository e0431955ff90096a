"""The check of programs as it is shown: lines as compilers write them, one JSON document, or SARIF."""

from __future__ import annotations

import hashlib
import posixpath
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from kbcli.views.reports import sarif
from kbcore.text.escaping import escape_controls, escaped_sentence, in_quotes
from kbcore.text.wording import pluralize, shortened

if TYPE_CHECKING:
    from kbcli.terminal.output import Output
    from kbcore.dml.check import Checked, CheckedTask, Finding
    from kbcore.dml.places import Place

_INDENT: Final = "  "
_TEXT_CHARS: Final = 60
"""Of the text of a task, what its line has."""
_FINGERPRINT: Final = "kbProgram/v1"
_DIGITS: Final = 32


def show_text(output: Output, found: Sequence[Checked]) -> None:
    """Show the findings of each program, and then what it has."""
    output.is_paged = True
    for checked in found:
        output.stream(f"{_line(output, checked, one)}\n" for one in checked.findings)
        for line in _contents(checked):
            output.say_as_it_is(line)
    if len(found) > 1:
        errors, warnings = (sum(getattr(one, name) for one in found) for name in ("errors", "warnings"))
        output.say(f"{pluralize(len(found), 'program')}: {_counts(errors, warnings)}")


def show_json(output: Output, found: Sequence[Checked]) -> None:
    """Show the checks as one document."""
    counts = {name: sum(getattr(one, name) for one in found) for name in ("errors", "warnings")}
    output.document(counts | {"files": [one.as_json() for one in found]})


def show_sarif(output: Output, found: Sequence[Checked], folder: str) -> None:
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


def _line(output: Output, checked: Checked, finding: Finding) -> str:
    problem, place = finding.problem, finding.place
    said = escaped_sentence(f"{problem.message} {problem.hint}".strip())
    severity = output.styled(f"{finding.severity}:", "red" if finding.severity == "error" else "yellow")
    return f"{escape_controls(checked.file)}:{_at(place)}: {severity} {said} [{problem.code}]"


def _contents(checked: Checked) -> Iterator[str]:
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


def _at(place: Place) -> str:
    return f"{place.line}:{place.column}"


def _result(checked: Checked, finding: Finding, index: dict[str, int], folder: str) -> dict[str, Any]:
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
