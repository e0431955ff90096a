"""The project's own rules, ``.kb/rules/*.yaml``: read from texts, and run as SQL that can only read the view.

A repository is not always the user's own, so its SQL is looked at before it runs: one SELECT, over the tables of the
view, with no function that reaches files or settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kbcore import limits
from kbcore.errors import InvalidQuery, Problem
from kbcore.rules.rule import Finding, Rows, Rule, RuleContext, Severity
from kbcore.shape import Spot, read_yaml, refuse, shown
from kbcore.suggest import did_you_mean

TABLES: Final = ("node", "link", "source", "record", "node_history", "link_history", "source_history")
"""What a rule may read."""

_FUNCTIONS: Final = frozenset({"unnest", "range", "generate_series", "json_each", "json_tree"})
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_KEYS: Final = ("id", "severity", "description", "sql")
_SEVERITIES: Final[Mapping[str, Severity]] = {"error": "error", "warning": "warning"}


def load_rules(files: Mapping[str, str]) -> list[Rule]:
    """Return the rules that the files define, in the order of files; ``files`` maps paths to texts.

    Whether the SQL can run shows when it is run.

    Raises: ``InvalidConfig`` with every problem of every file, each with file and line.
    """
    problems: list[Problem] = []
    rules: list[Rule] = []
    for path in sorted(files):
        root = read_yaml(files[path], path, problems)
        if root is None or root.value is None:
            continue
        listed = root.known_members(("rules",), "part of a rules file").get("rules")
        for spot in listed.items() if listed else ():
            rule = _rule(spot)
            if rule and any(rule.id == other.id for other in rules):
                spot.wrong("defined_twice", f"There are two rules {rule.id!r}.", "Give one of them another id.")
            elif rule:
                rules.append(rule)
    refuse(problems)
    return rules


def _rule(spot: Spot) -> Rule | None:
    found = spot.known_members(_KEYS, "key of a rule")
    texts = {key: _text(member) for key, member in found.items()}
    for key, example in (("id", "id: no-empty-title"), ("sql", "sql: select id, 'has no owner' from …")):
        if key not in found:
            spot.wrong("missing_field", f"`{key}` of a rule is missing.", f"For example `{example}`.")
    name = texts.get("id", "")
    if name and (len(name) > limits.MAX_NAME_CHARS or not _NAME.fullmatch(name)):
        found["id"].wrong("bad_name", f"{shown(name)} cannot be the id of a rule.", "Use small letters, digits and -.")
    level = texts.get("severity") or "error"
    if level not in _SEVERITIES:
        found["severity"].wrong("wrong_type", f"{shown(level)} is no severity.", did_you_mean(level, _SEVERITIES))
    if not name or not texts.get("sql") or level not in _SEVERITIES:
        return None
    description = texts.get("description") or f"Defined in {spot.file}."
    return sql_rule(name, _SEVERITIES[level], description, texts["sql"])


def _text(spot: Spot) -> str:
    if not isinstance(spot.value, str) or not spot.value.strip():
        spot.must_be("text")
        return ""
    return spot.value


def sql_rule(name: str, severity: Severity, description: str, sql: str) -> Rule:
    """Return a rule whose findings are the rows of a SELECT: the columns ``id`` and ``message``, others ignored."""

    def run(context: RuleContext) -> list[Finding]:
        _check_sql(context.rows, sql)
        rows = context.rows(
            "select r.id::varchar, r.message::varchar, coalesce(n.path, '') "  # noqa: S608 - looked at just above
            f"from (\n{sql.rstrip().rstrip(';')}\n) r left join node n on n.id = r.id::varchar",
            [],
        )
        return [Finding(id_ or "", message or description, description, path) for id_, message, path in rows]

    return Rule(name, severity, description, run)


def _check_sql(rows: Rows, sql: str) -> None:
    """Raise ``InvalidQuery`` for SQL that is not one SELECT over the tables of the view."""
    tree = json.loads(rows("select json_serialize_sql($1::varchar)", [sql])[0][0])
    if tree["error"]:
        raise InvalidQuery(f"the SQL cannot be used: {tree['error_message']}")
    if len(tree["statements"]) != 1:
        raise InvalidQuery(f"the SQL must be one SELECT, not {len(tree['statements'])} statements")
    parts = list(_parts(tree))
    named = {entry["key"].lower() for part in parts for entry in (part.get("cte_map") or {}).get("map", ())}
    # a name with a dot could stand for a file elsewhere in the statement
    known = {*TABLES, *filter(str.isidentifier, named)}
    for part in parts:
        if part.get("type") == "BASE_TABLE":
            if part["table_name"].lower() not in known or part["schema_name"] not in {"", "recurring"}:
                raise InvalidQuery(f"the SQL reads {part['table_name']!r}; a rule may read {', '.join(TABLES)}")
        elif part.get("type") == "TABLE_FUNCTION":
            function = part["function"]["function_name"]
            if function.lower() not in _FUNCTIONS:
                raise InvalidQuery(f"the SQL uses {function}(), which a rule may not")


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
