"""A report as SARIF 2.1.0, which code scanning and editors read.

A violation keeps its fingerprint, a hash of its key, for as long as the same is wrong, whatever line it moves to and
however it is worded.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from kbcli.views.reports.report_content import ReportContent, sentences, target_notes
from kbcore import __version__
from kbcore.rules import RuleRun, Violation
from kbcore.rules.accepted import key_of
from kbcore.rules.rule import OtherSide
from kbcore.text.escaping import escape_controls, in_quotes, json_text

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT: Final = "SRCROOT"
_NO_FILE: Final = ".kb/config.json"
"""The file at which a violation is shown that no file states: code scanning refuses a result without a file."""

_FINGERPRINT: Final = "kbViolation/v3"
_DIGITS: Final = 32


def text(content: ReportContent) -> str:
    """Return the report as one SARIF log with one run."""
    return _log([_run(content)])


def text_of_many(contents: Mapping[str, ReportContent]) -> str:
    """Return reports as one SARIF log with a run for each; the name of a report is that of its automation."""
    return _log([_run(one) | {"automationDetails": {"id": escape_controls(name)}} for name, one in contents.items()])


def _run(content: ReportContent) -> dict[str, Any]:
    rules = {run.id: index for index, run in enumerate(content.report.rules)}
    not_run = [run for run in content.report.rules if run.status == "not_run"]
    invocation: dict[str, Any] = {"executionSuccessful": not not_run}
    notes = [_notification(run, rules) for run in not_run] + [_of_target(*one) for one in target_notes(content)]
    if notes:
        invocation["toolExecutionNotifications"] = notes
    properties = {"branch": escape_controls(content.branch), "seq": content.seq, "fixed": content.fixed}
    described = [_rule(run, content) for run in content.report.rules]
    return _run_of(described, _results(content, rules), invocation, properties)


def log_text(
    rules: Sequence[Mapping[str, Any]],
    results: Sequence[Mapping[str, Any]],
    invocation: Mapping[str, Any],
) -> str:
    """Return a SARIF log with one run of KB, of these rules, results and invocation as SARIF has them."""
    return _log([_run_of(rules, results, invocation)])


def _run_of(
    rules: Sequence[Mapping[str, Any]],
    results: Sequence[Mapping[str, Any]],
    invocation: Mapping[str, Any],
    properties: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    run = {
        "tool": {"driver": {"name": "KB", "version": __version__, "rules": rules}},
        "invocations": [invocation],
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The top of the repository."}}},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return run | ({"properties": properties} if properties else {})


def _log(runs: Sequence[Mapping[str, Any]]) -> str:
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": runs}, 2) + "\n"


def place(path: str, region: Mapping[str, int]) -> dict[str, Any]:
    """Return a part of a file as a physical location; a path that is not absolute is one from the top."""
    artifact = {"uri": _uri(path)} | ({} if path.startswith("/") else {"uriBaseId": _ROOT})
    return {"artifactLocation": artifact} | ({"region": dict(region)} if region else {})


def _rule(run: RuleRun, content: ReportContent) -> dict[str, Any]:
    description = escape_controls(content.descriptions.get(run.id, "")) or run.id
    return {
        "id": run.id,
        "shortDescription": {"text": description},
        "defaultConfiguration": {"enabled": run.status != "off", "level": run.severity},
    }


def _notification(run: RuleRun, rules: dict[str, int]) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": escape_controls(f"The rule {run.id} could not run: {run.reason}")},
        "associatedRule": {"id": run.id, "index": rules[run.id]},
    }


def _of_target(path: str, words: str) -> dict[str, Any]:
    return {
        "level": "note",
        "message": {"text": escape_controls(f"{words}: {in_quotes(path)}.")},
        "locations": [{"physicalLocation": place(path, {})}],
    }


def _results(content: ReportContent, rules: dict[str, int]) -> list[dict[str, Any]]:
    seen: Counter[str] = Counter()
    found = []
    for one in content.report.violations:
        mark = _fingerprint(one)
        seen[mark] += 1
        # Two that say the same are distinguished by their order.
        mark = mark if seen[mark] == 1 else f"{mark}:{seen[mark]}"
        result = {
            "ruleId": one.rule,
            "ruleIndex": rules[one.rule],
            "level": one.severity,
            "message": {"text": escape_controls(sentences(one))},
            "locations": [_location(one)],
            "partialFingerprints": {_FINGERPRINT: mark},
        }
        found.append(result | ({"relatedLocations": [_other(one.other)]} if one.other and one.other.source else {}))
    return found


def _fingerprint(one: Violation) -> str:
    key = key_of(one)
    parts = (key.rule, key.id, key.code, key.field, *key.values)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def _other(other: OtherSide) -> dict[str, Any]:
    said = {"text": escape_controls(f"In {other.ref}.")}
    return {"id": 1, "physicalLocation": _place(other.source, other.line), "message": said}


def _place(path: str, line: int) -> dict[str, Any]:
    return place(path, {"startLine": line} if line else {})


def _location(one: Violation) -> dict[str, Any]:
    location: dict[str, Any] = {"physicalLocation": _place(one.source or _NO_FILE, one.line)}
    if one.id:
        location["logicalLocations"] = [{"name": escape_controls(one.subject)}]
    return location


def _uri(path: str) -> str:
    """Return a path from the root as a relative reference; a colon in its first part would begin a scheme."""
    return quote(path, safe="/~!$&'()*+,;=@", errors="surrogatepass")
