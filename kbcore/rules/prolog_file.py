"""Reads what a file of rules in Prolog states, ``.kb/rules/*.pl``, and makes rules of it. Pure.

A rule is stated by a fact ``rule(Id, Description)`` that begins a line, so that it is known without an engine. All else
of the file is read by the engine when the rule runs; it also confirms that these are the facts of the file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Final

from kbcore.errors import InvalidQuery, Problem
from kbcore.rules.project import NO_RULE_ID, RULE_ID_HINT, ProjectRule, TextPlace, finding, is_rule_id
from kbcore.rules.rule import Finding, PrologFile, RuleContext, Severity, numeric_order
from kbcore.text.escaping import in_quotes
from kbcore.text.prolog_tokens import block_comments, without_script_line

SUFFIX: Final = ".pl"
_STRING: Final = r'"([^"\\\n]*)"'
_BEGIN: Final = re.compile(r"^rule\(", re.MULTILINE)
_FACT: Final = re.compile(
    rf"rule\(\s*(?:([a-z][a-z0-9_]*)|'([^'\\\n]*)')\s*,\s*{_STRING}\s*"
    rf"(?:,\s*(error|warning)\s*(?:,\s*{_STRING}\s*)?)?\)\s*\.(?=\s|%|\Z)"
)
EXAMPLE: Final = "For example `rule('no-owner', \"Somebody answers for every requirement.\", warning).`"
_EXISTING: Final = """
select a.id, coalesce(n.path, '') from unnest($1::varchar[]) as a(id)
left join node n on n.id = a.id where n.id is not null or a.id in (select id from link)
"""


ReportProblem = Callable[[str, str, str], None]
"""Keeps a problem of a rule, given its code, its message and a hint."""


def read_prolog_rules(path: str, text: str, problems: list[Problem]) -> Iterator[tuple[ProjectRule, ReportProblem]]:
    """Yield the rules that the text of a file states, each with what reports a problem of it."""
    text = text.removeprefix("\ufeff")
    file = PrologFile(path, text, {})
    comments = block_comments(without_script_line(text))
    begins = [at for at in (found.start() for found in _BEGIN.finditer(text)) if not _is_within(at, comments)]
    if not begins:
        problems.append(Problem("$", "missing_field", "The file states no rule.", EXAMPLE, path, 1))
    line, counted = 1, 0
    for begin in begins:
        line, counted = line + text.count("\n", counted, begin), begin
        report = partial(_report, problems, (path, line))
        fact = _FACT.match(text, begin)
        if fact is None:
            message = "This states no rule: it needs an id and a description, and may have a severity and a remedy."
            report("bad_rule", message, EXAMPLE)
            continue
        name = fact[1] or fact[2]
        if not is_rule_id(name):
            report("bad_name", f"{in_quotes(name)} {NO_RULE_ID}", RULE_ID_HINT)
            continue
        file.rules[name] = line
        severity: Severity = "warning" if fact[4] == "warning" else "error"
        yield _rule(file, name, severity, fact[3].strip() or f"Defined in {path}.", fact[5] or ""), report


def _is_within(at: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Tell whether a character is in one of the spans, which are in their order."""
    before = bisect_right(spans, at, key=itemgetter(0))
    return before > 0 and at < spans[before - 1][1]


def _report(problems: list[Problem], place: tuple[str, int], code: str, message: str, hint: str) -> None:
    problems.append(Problem("$", code, message, hint, *place))


def _rule(file: PrologFile, name: str, severity: Severity, description: str, remedy: str) -> ProjectRule:
    def run(context: RuleContext) -> list[Finding]:
        return _run(rule, file, context)

    place = TextPlace(file.path, 1, has_lines=True)
    source = place.at(file.rules[name])
    rule = ProjectRule(
        name,
        severity,
        description,
        run,
        remedy=remedy,
        prolog=file.text,
        place=place,
        source=source,
        severity_at=source,
        time_at=source,
    )
    return rule


def _run(rule: ProjectRule, file: PrologFile, context: RuleContext) -> list[Finding]:
    if context.prolog is None:
        raise InvalidQuery(f"{rule.source}: there is no place where the Prolog of a project may run.")
    violations = context.prolog.violations(file, rule.id)
    ids = sorted({one.id for one in violations})
    paths = dict[str, str](context.rows(_EXISTING, [ids]))
    lacking = [id_ for id_ in ids if id_ not in paths]
    if lacking:
        raise InvalidQuery(f"{rule.source}: {_said_of(lacking)}, and no entity and no edge has that id.")
    found = [
        finding(rule, one.id, one.message.strip(), None, paths[one.id], is_minor=one.severity == "warning")
        for one in violations
    ]
    # The answers of a goal have an order of their own, which the order of facts decides.
    return sorted(found, key=lambda one: numeric_order(one.message))


def _said_of(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
    return f"a violation names {in_quotes(ids[0])}{more}"
