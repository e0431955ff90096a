"""A rule of the project's own: SQL that can only read, run over the relations, with the values of its parameters.

A repository is not always the user's own, so its SQL is looked at before it runs, and then runs in a sandbox, which
would give it nothing else. Whatever it is refused for is reported by file and line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import InvalidQuery
from kbcore.rules.rule import Finding, Rule, RuleContext, Severity, SqlSandbox, numeric_order
from kbcore.rules.sql_check import SqlFault, SqlReads, look_at, without_end
from kbcore.text.escaping import in_quotes
from kbcore.view.relations import SqlRefused

Scalar = str | int | float | bool
Value = Scalar | list[Scalar]

NO_RULE_ID: Final = "cannot be the id of a rule."
RULE_ID_HINT: Final = "Use small letters, digits and -."
_RULE_ID: Final = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_NUMBER: Final = re.compile(r"\d+")
_KIND_OF_ERROR: Final = re.compile(r"^(?:[A-Z]\w*(?: [A-Z]\w*)*|INTERNAL) Error: ")
_MAX_COLUMNS: Final = 10
_MAX_WORDS_CHARS: Final = 500
_ENDS: Final = frozenset(".?!…`")
_VALUE: Final = "value"
"""The column that distinguishes several findings of one entity."""


def is_rule_id(text: str) -> bool:
    """Tell whether a rule of a project can have this id."""
    return len(text) <= limits.MAX_NAME_CHARS and _RULE_ID.fullmatch(text) is not None


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a rule: its default, the value in force, and what says so (file and line)."""

    name: str
    default: Value
    value: Value
    source: str


class RuleTest(msgspec.Struct, frozen=True):
    """A test of a rule: entities and edges, and the ids that it must and must not report among them."""

    name: str
    source: str
    entities: tuple[dict[str, Any], ...] = ()
    edges: tuple[dict[str, Any], ...] = ()
    reports: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()


class TextPlace(msgspec.Struct, frozen=True):
    """The place of a rule's text: its file and first line; ``has_lines`` when its lines are those of the file."""

    file: str
    line: int
    has_lines: bool

    def at(self, line: int) -> str:
        """Return file and line for a line of the text, which counts from 1."""
        return f"{self.file}:{self.line + line - 1 if self.has_lines else self.line}"


class ProjectRule(Rule, frozen=True, kw_only=True):
    """A rule as a rules file states it. ``source`` is the file and line at which it begins.

    It has ``sql``, or ``prolog``, the text of its whole file. ``time_s`` is the rule's own limit, None where it has
    none; ``severity_at`` and ``time_at`` are the lines of these.
    """

    place: TextPlace
    source: str
    sql: str = ""
    prolog: str = ""
    params: tuple[Parameter, ...] = ()
    trials: tuple[RuleTest, ...] = ()
    time_s: float | None = None
    severity_at: str = ""
    time_at: str = ""


def sql_rule(name: str, severity: Severity, description: str, sql: str, place: TextPlace, **more: Any) -> ProjectRule:
    """Return a rule whose findings are the rows of a SELECT: the columns ``id`` and ``message``, and ``value``, if any.

    ``more`` are further members of ``ProjectRule``.
    """

    def run(context: RuleContext) -> list[Finding]:
        return _run(rule, context)

    rule = ProjectRule(name, severity, description, run, sql=sql, place=place, **{"source": place.at(1), **more})
    return rule


def _run(rule: ProjectRule, context: RuleContext) -> list[Finding]:
    sandbox = context.sandbox
    if sandbox is None:
        raise _error(rule.place, 1, "there is no place where the SQL of a project may run")
    reads = _reads(sandbox, rule)
    values = {one.name: one.value for one in rule.params if one.name in reads.params}

    def answer(sql: str) -> list[tuple[Any, ...]]:
        try:
            return sandbox.rows(sql, values, tables=reads.relations, time_s=rule.time_s)
        except SqlRefused as error:
            said, _, shown = str(error).partition("\n\nLINE ")
            line = _NUMBER.match(shown)
            # the rule's SQL begins in the second line
            raise _refused(rule, int(line[0]) - 1 if line else 1, said, error) from error

    asked = f"(\n{without_end(rule.sql)}\n) r"
    columns = [row[0] for row in answer(f"describe select * from {asked}")]  # noqa: S608 - looked at
    _check_columns(columns, rule.place)
    most = limits.MAX_RULE_MESSAGE_CHARS
    value = f"left(r.{_VALUE}::varchar, {most})" if _VALUE in map(str.lower, columns) else "null"
    found = answer(
        f"select r.id::varchar, left(r.message::varchar, {most}), {value} from {asked} "  # noqa: S608 - as above
        f"qualify row_number() over () <= {limits.MAX_RULE_FINDINGS + 1}"  # below a LIMIT some SQL never ends: ADR 0015
    )
    if len(found) > limits.MAX_RULE_FINDINGS:
        raise _error(rule.place, 1, f"the SQL gives more than {limits.MAX_RULE_FINDINGS} rows; ask for less")
    ids = list({id_ for id_, *_ in found if id_})
    paths = dict[str, str](context.rows("select id, path from node where id in (select unnest(?::varchar[]))", [ids]))
    findings = [
        finding(rule, id_ or "", (message or "").strip(), value, paths.get(id_) or "") for id_, message, value in found
    ]
    # The rows of a statement have no order of their own.
    return sorted(findings, key=lambda one: numeric_order(one.message))


def finding(
    rule: ProjectRule, id_: str, message: str, value: str | None, source: str, *, is_minor: bool = False
) -> Finding:
    """Return a finding of a rule; the rule's description is the message where that is empty, else the remedy."""
    remedy = rule.remedy or (rule.description if message else "")
    values = () if value is None else (value,)
    whole = rf"(?<![\w/#-])(?<!\w[.:]){re.escape(id_)}(?![\w/#-]|[.:]\w)"  # no part of a longer id
    names_id = bool(id_ and re.search(whole, message))
    said = message or rule.description
    return Finding(id_, said, remedy, source, values=values, is_minor=is_minor, names_id=names_id)


def _reads(sandbox: SqlSandbox, rule: ProjectRule) -> SqlReads:
    """Return what the SQL of a rule reads. Raises: ``InvalidQuery`` unless it is one SELECT over the relations."""
    if len(rule.sql) > limits.MAX_TEXT_BYTES:
        raise _error(rule.place, 1, f"the SQL is longer than {limits.MAX_TEXT_BYTES} characters")
    try:
        [[tree]] = sandbox.rows("select json_serialize_sql($1::varchar)", [rule.sql], time_s=rule.time_s)
        return look_at(rule.sql, tree, {one.name for one in rule.params})
    except SqlRefused as error:
        raise _refused(rule, 1, str(error), error) from error
    except SqlFault as fault:
        if fault.is_said_by_database:
            raise _refused(rule, fault.line, str(fault)) from fault
        raise _error(rule.place, fault.line, str(fault)) from fault


def _refused(rule: ProjectRule, line: int, said: str, error: SqlRefused | None = None) -> InvalidQuery:
    """Return the refusal of a line of the SQL, with what the database says and nothing of how it says it."""
    if error and error.is_time and error.cause:
        return _error(rule.place, 1, f"the SQL was ended: {said}; {error.cause} is the limit")
    if error and error.is_time:
        limit = "`timeLimitSeconds` of the rule" if rule.time_s else "`ruleTimeLimitSeconds` in .kb/config.json"
        return _error(rule.place, 1, f"the SQL was ended: {said}; {limit} is the limit")
    if error and error.is_limit:
        return _error(rule.place, 1, f"the SQL was ended: {said}")
    sentences = [part for part in said.strip().split("\n") if not part.startswith(("\t", "LINE "))]
    words = _KIND_OF_ERROR.sub("", " ".join(" ".join(sentences).split()), count=1)
    return _error(rule.place, line, f"the SQL cannot be used. DuckDB reports: {words[:_MAX_WORDS_CHARS] or 'nothing'}")


def _error(place: TextPlace, line: int, what: str) -> InvalidQuery:
    return InvalidQuery(f"{place.at(line)}: {what}{'' if what[-1:] in _ENDS else '.'}")


def _check_columns(names: Sequence[str], place: TextPlace) -> None:
    """Raise ``InvalidQuery`` when the SQL does not give the columns that a finding is made of."""
    missing = [name for name in ("id", "message") if name not in map(str.lower, names)]
    if missing:
        wanted = " and ".join(f"`{name}`" for name in missing)
        given = ", ".join(map(in_quotes, names[:_MAX_COLUMNS]))
        example = "for example `select id, title || ' has no owner' as message from entity`"
        raise _error(place, 1, f"the SQL gives no column {wanted}, but {given}; {example}")
