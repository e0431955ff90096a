"""The project's own rules, ``.kb/rules/*.yaml``: read from texts, and run as SQL that can only read the view.

A repository is not always the user's own, so its SQL is looked at before it runs: one SELECT, over the tables of the
view, with no function that reaches files or settings. It then runs in a sandbox, which would give it none of these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import InvalidQuery, Problem
from kbcore.rules.registry import NAMES
from kbcore.rules.rule import Confined, Finding, Rule, RuleContext, Severity, SqlRefused
from kbcore.shape import Spot, read_yaml, refuse, shown
from kbcore.suggest import did_you_mean
from kbcore.visible import in_quotes

TABLES: Final = ("node", "link", "source", "record", "node_history", "link_history", "source_history")
"""What a rule may read."""

_FUNCTIONS: Final = frozenset({"unnest", "range", "generate_series", "json_each", "json_tree"})
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_LITERAL: Final = re.compile(r":[ \t]+\|[-+\d]*[ \t]*(?:#.*)?$")
"""The end of a line below which a text stands line by line."""
_NUMBER: Final = re.compile(r"\d+")
_KIND_OF_ERROR: Final = re.compile(r"^(?:[A-Z]\w*(?: [A-Z]\w*)*|INTERNAL) Error: ")
_MAX_COLUMNS: Final = 10
_MAX_WORDS_CHARS: Final = 500
_ENDS: Final = frozenset(".?!…`")
_KEYS: Final = ("id", "severity", "description", "sql")
_SEVERITIES: Final[Mapping[str, Severity]] = {"error": "error", "warning": "warning"}


def load_rules(files: Mapping[str, str]) -> list[Rule]:
    """Return the rules that the files define, in the order of files; ``files`` maps paths to texts.

    Whether the SQL can run shows when it is run.

    Raises: ``InvalidConfig`` with every problem of every file, each with file and line.
    """
    problems: list[Problem] = []
    rules: list[Rule] = []
    taken = dict.fromkeys(NAMES, "KB has a rule")
    for path in sorted(files):
        root = read_yaml(files[path], path, problems)
        if root is None or root.value is None:
            continue
        listed = root.known_members(("rules",), "part of a rules file").get("rules")
        for spot in listed.items() if listed else ():
            rule = _rule(spot, files[path].splitlines())
            if rule and rule.id in taken:
                message = f"{taken[rule.id]} {in_quotes(rule.id)} already."
                spot.members()["id"].wrong("defined_twice", message, "Give this one another id.")
            elif rule:
                rules.append(rule)
                taken[rule.id] = f"{spot.file} has a rule"
    refuse(problems)
    return rules


def _rule(spot: Spot, lines: Sequence[str]) -> Rule | None:
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
    at = found["sql"].line
    is_literal = _LITERAL.search(lines[at - 1]) is not None
    place = SqlPlace(spot.file, at + 1 if is_literal else at, is_literal)
    return sql_rule(name, _SEVERITIES[level], description, texts["sql"], place)


def _text(spot: Spot) -> str:
    if not isinstance(spot.value, str) or not spot.value.strip():
        spot.must_be("text")
        return ""
    return spot.value


class SqlPlace(msgspec.Struct, frozen=True):
    """Where the SQL of a rule stands: its file and first line; ``has_lines`` when its lines are those of the file."""

    file: str
    line: int
    has_lines: bool

    def at(self, line: int) -> str:
        """Return file and line for a line of the SQL, which counts from 1."""
        return f"{self.file}:{self.line + line - 1 if self.has_lines else self.line}"


def sql_rule(name: str, severity: Severity, description: str, sql: str, place: SqlPlace) -> Rule:
    """Return a rule whose findings are the rows of a SELECT: the columns ``id`` and ``message``, others ignored."""

    def run(context: RuleContext) -> list[Finding]:
        if context.sandbox is None:
            raise _error(place, 1, "there is no place where the SQL of a project may run")
        asked = f"(\n{sql.rstrip().rstrip(';')}\n) r"
        answer = partial(_answer, context.sandbox, place, _check_sql(context.sandbox, sql, place))
        columns = answer(f"describe select * from {asked}")  # noqa: S608 - looked at just above
        _check_columns([row[0] for row in columns], place)
        found = answer(
            f"select r.id::varchar, left(r.message::varchar, {limits.MAX_RULE_MESSAGE_CHARS}) from {asked} "  # noqa: S608 - looked at above
            f"limit {limits.MAX_RULE_FINDINGS + 1}"
        )
        if len(found) > limits.MAX_RULE_FINDINGS:
            raise _error(place, 1, f"the SQL gives more than {limits.MAX_RULE_FINDINGS} rows; ask for less")
        ids = list({id_ for id_, _ in found if id_})
        paths = dict[str, str](
            context.rows("select id, path from node where id in (select unnest(?::varchar[]))", [ids])
        )
        return [Finding(id_ or "", said or description, description, paths.get(id_) or "") for id_, said in found]

    return Rule(name, severity, description, run)


def _answer(sandbox: Confined, place: SqlPlace, tables: Collection[str], sql: str) -> list[tuple[Any, ...]]:
    """Answer a statement that holds the rule's SQL from its second line on.

    Raises ``InvalidQuery`` in words of the rule's file for whatever the database refuses.
    """
    try:
        return sandbox.rows(sql, tables=tables)
    except SqlRefused as error:
        said, _, shown = str(error).partition("\n\nLINE ")
        line = _NUMBER.match(shown)
        raise _refused(place, int(line[0]) - 1 if line else 1, said, error) from error


def _refused(place: SqlPlace, line: int, said: str, error: SqlRefused | None = None) -> InvalidQuery:
    """Return the refusal of a line of the SQL, with what the database says and nothing of how it says it."""
    if error and error.is_limit:
        return _error(place, 1, f"the SQL was ended: {said}")
    sentences = [part for part in said.strip().split("\n") if not part.startswith(("\t", "LINE "))]
    words = _KIND_OF_ERROR.sub("", " ".join(" ".join(sentences).split()), count=1)
    return _error(place, line, f"the SQL cannot be used. DuckDB says: {words[:_MAX_WORDS_CHARS] or 'nothing'}")


def _error(place: SqlPlace, line: int, what: str) -> InvalidQuery:
    return InvalidQuery(f"{place.at(line)}: {what}{'' if what[-1:] in _ENDS else '.'}")


def _check_columns(names: Sequence[str], place: SqlPlace) -> None:
    """Raise ``InvalidQuery`` when the SQL does not give the columns that a finding is made of."""
    missing = [name for name in ("id", "message") if name not in map(str.lower, names)]
    if missing:
        wanted = " and ".join(f"`{name}`" for name in missing)
        given = ", ".join(map(in_quotes, names[:_MAX_COLUMNS]))
        example = "for example `select id, title || ' has no owner' as message from node`"
        raise _error(place, 1, f"the SQL gives no column {wanted}, but {given}; {example}")


def _check_sql(sandbox: Confined, sql: str, place: SqlPlace) -> set[str]:
    """Return the tables of the view that the SQL reads; raise ``InvalidQuery`` unless it is one SELECT over them."""
    if len(sql) > limits.MAX_TEXT_BYTES:
        raise _error(place, 1, f"the SQL is longer than {limits.MAX_TEXT_BYTES} characters")
    try:
        tree = json.loads(sandbox.rows("select json_serialize_sql($1::varchar)", [sql])[0][0])
    except SqlRefused as error:
        raise _refused(place, 1, str(error), error) from error
    if tree["error"]:
        before = sql.encode()[: int(tree.get("position") or 0)]
        line = before.count(b"\n") + 1
        if tree["error_type"] == "not implemented":
            raise _error(place, line, "the SQL must be one SELECT, and nothing else")
        raise _refused(place, line, tree["error_message"])
    if len(tree["statements"]) != 1:
        raise _error(place, 1, f"the SQL must be one SELECT, not {len(tree['statements'])} statements")
    parts = list(_parts(tree))
    named = {entry["key"].lower() for part in parts for entry in (part.get("cte_map") or {}).get("map", ())}
    # a name with a dot could stand for a file elsewhere in the statement
    known = {*TABLES, *filter(str.isidentifier, named)}
    for part in parts:
        fault = _fault(part, known)
        if fault:
            at = part.get("query_location", 0)
            raise _error(place, sql.encode()[:at].count(b"\n") + 1 if at < len(sql) else 1, fault)
    return {part["table_name"].lower() for part in parts if part.get("type") == "BASE_TABLE"}.intersection(TABLES)


def _fault(part: Mapping[str, Any], known: Collection[str]) -> str:
    """Return what a part of a statement reads that a rule may not, or the empty text."""
    if part.get("type") == "BASE_TABLE":
        if part["table_name"].lower() not in known or part["schema_name"] not in {"", "recurring"}:
            near = did_you_mean(part["table_name"], TABLES)
            return f"the SQL reads {in_quotes(part['table_name'])}, which a rule may not. {near}"
    elif part.get("type") == "TABLE_FUNCTION":
        function = part["function"]["function_name"]
        if function.lower() not in _FUNCTIONS:
            return f"the SQL uses {function}(), which a rule may not"
    return ""


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
