"""Turn conditions into SQL over a row ``n`` of entities or of edges, and sort keys into what orders them. Pure.

Text of a user enters a statement only as a bound parameter. Numbers and times are compared as such, whether a client
stated them as numbers or a document as text; all other text in natural order, in which a number in a text is compared
as a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from kbcore.model.graph import CONTESTED
from kbcore.query.conditions import AnyOf, Condition, Operator
from kbcore.query.data_names import pointer
from kbcore.query.keys import Key, key_of
from kbcore.query.walk import WalkStatement
from kbcore.query.where_values import Number, number_of, span_of
from kbcore.view.tables import FILE_OF

_DIGITS: Final = 40
"""The digits of a number in a text that are compared."""
_WHOLE: Final = "in ('BIGINT', 'UBIGINT')"
_NUMBER: Final = "in ('BIGINT', 'UBIGINT', 'DOUBLE')"
_NUMBER_TEXT: Final = r"[+-]?[0-9]{1,15}([.][0-9]{1,15})?"
"""Text that is ordered as a number: documents have no other. An exponent is none: ``12e4`` is rather a hash."""
_OFFSET: Final = "([+-])([0-9]{2}):?([0-9]{2})$"
_TIME_TEXT: Final = (
    "[0-9]{4}-[0-9]{2}-[0-9]{2}"
    "([Tt ]([01][0-9]|2[0-3]):[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?([Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_RUN: Final = re.compile("[0-9]+")


def natural(text: str) -> str:
    """Return what a text is ordered by: itself, with every number in it filled up with zeros in front."""
    return _RUN.sub(lambda run: run[0].rjust(_DIGITS, "0")[:_DIGITS], text)


def holds(statement: WalkStatement, conditions: AnyOf, *, is_edge: bool, owned: str = "") -> str:
    """Return the condition that at least one of these holds; the query has been checked.

    ``owned`` is SQL for the owners of files, a relation of ``path`` and ``owner``; "" where no file has any.
    """
    return f"({' or '.join(_holds(statement, one, is_edge=is_edge, owned=owned) for one in conditions)})"


def sortable(statement: WalkStatement, key: Key) -> list[str]:
    """Return the expressions that order by a key: of members of JSON numbers come first, then times, then text."""
    column = f"n.{key.column}"
    if key.kind == "member":
        at = statement.bind(pointer(key.member))
        text, kind = f"json_extract_string({column}, {at})", f"json_type({column}, {at})"
        return [f"case when {_is_number(text, kind)} then try_cast({text} as double) end", _time(text, kind),
                _natural(text), text]  # fmt: skip
    return [_natural(column), column] if key.kind in {"text", "stated_by"} else [column]


def _holds(statement: WalkStatement, condition: Condition, *, is_edge: bool, owned: str) -> str:
    key = key_of(condition.key, is_edge=is_edge)
    assert key is not None, "the query was not checked"  # noqa: S101
    if owned and key.column == "owner":
        return _owner_holds(statement, condition, key, owned)
    if not condition.value and condition.operator in {"=", "!="}:
        return f"{'' if condition.operator == '=' else 'not '}({_is_empty(statement, key)})"
    if condition.operator == "!=":
        compares = _compares(statement, key, "=", condition)
        return f"not coalesce({compares}, false)"
    return _compares(statement, key, condition.operator, condition)


def _owner_holds(statement: WalkStatement, condition: Condition, key: Key, owned: str) -> str:
    """Return the condition on the owner of an entity; where it has none, on any of the owners of its file."""
    has_none, of_files = f"({_is_empty(statement, key)})", f"select o.path from {owned} o"  # noqa: S608 - fixed names
    if not condition.value:
        is_missing = f"({has_none} and {FILE_OF} not in ({of_files}))"
        return is_missing if condition.operator == "=" else f"not {is_missing}"
    operator: Operator = "=" if condition.operator == "!=" else condition.operator
    stated = _compares(statement, key, operator, condition)
    given = _text_compares(statement, "o.owner", operator, condition.value)
    found = f"case when {has_none} then {FILE_OF} in ({of_files} where {given}) else {stated} end"
    return f"not {found}" if condition.operator == "!=" else found


def _compares(statement: WalkStatement, key: Key, operator: Operator, condition: Condition) -> str:
    column, value = f"n.{key.column}", condition.value
    if key.kind == "member":
        return _member(statement, column, key.member, operator, condition)
    if key.kind == "number":
        return f"{column} {operator} {statement.bind(float(value))}"
    if key.kind == "flag":
        truth = f"({column} <> '{{}}')" if key.column == CONTESTED else column
        truth = f"contains({column}, '\"{key.member}')" if key.member else truth
        return f"{truth} = ({statement.bind(value)} = 'true')"
    if key.kind == "time":
        begin, end = condition.span or span_of(value) or ("", "")
        return _within(column, operator, lambda: statement.bind(begin), lambda: statement.bind(end))
    if key.kind == "list":
        return _entry_compares(statement, column, operator, value)
    if key.kind == "stated_by":
        entries = _entry_compares(statement, "n.files", operator, value)
        return f"({_text_compares(statement, column, operator, value)} or {entries})"
    return _text_compares(statement, column, operator, value)


def _is_empty(statement: WalkStatement, key: Key) -> str:
    """Return the condition that a field is missing or holds nothing."""
    column = f"n.{key.column}"
    if key.kind == "member":
        at = statement.bind(pointer(key.member))
        text = f"coalesce(json_extract_string({column}, {at}), '')"
        return f"{text} = '' or ({text} = '[]' and json_type({column}, {at}) = 'ARRAY')"
    if key.kind == "list":
        return f"coalesce(len({column}), 0) = 0"
    if key.kind == "stated_by":
        return f"coalesce({column}, '') = '' and coalesce(len(n.files), 0) = 0"
    return f"coalesce({column}, '') = ''" if key.kind == "text" else f"{column} is null"


def _text_compares(statement: WalkStatement, text: str, operator: Operator, value: str) -> str:
    bound = statement.bind(value)
    if operator == "=":
        return f"{text} = {bound}"
    if operator == "~":
        return f"contains(lower({text}), lower({bound}))"
    if operator == "^=":
        return f"starts_with(lower({text}), lower({bound}))"
    near = statement.bind(natural(value))
    return f"({_natural(text)} {operator[0]} {near} or ({_natural(text)} = {near} and {text} {operator} {bound}))"


def _entry_compares(statement: WalkStatement, entries: str, operator: Operator, value: str) -> str:
    """Return the condition that an entry of a list compares so with a value."""
    if operator == "=":
        return f"list_contains({entries}, {statement.bind(value)})"
    return f"list_contains([{_text_compares(statement, 'entry', operator, value)} for entry in {entries}], true)"


def _member(statement: WalkStatement, column: str, member: str, operator: Operator, condition: Condition) -> str:
    """Return the condition that a member of a JSON column, or one of its entries if it is a list, compares so."""
    at = statement.bind(pointer(member))
    compares = _value_compares(statement, operator, condition)
    found = f"json_extract({column}, {at})"
    entries = f"list_zip(json_extract_string({found}, '$[*]'), json_type({found}, '$[*]'))"
    return (
        f"case json_type({column}, {at}) when 'ARRAY' then "
        f"list_contains([{compares('entry[1]', 'entry[2]')} for entry in {entries}], true) "
        f"else {compares(f'json_extract_string({column}, {at})', f'json_type({column}, {at})')} end"
    )


def _value_compares(statement: WalkStatement, operator: Operator, condition: Condition) -> Callable[[str, str], str]:
    """Return what makes the condition for a value of JSON, given as its text and its kind."""
    value = condition.value
    if operator == "=":
        return _means(statement, condition)
    number, span = number_of(value), condition.span or span_of(value)
    if operator in {"~", "^="}:
        return lambda text, _: _text_compares(statement, text, operator, value)
    if number:
        return lambda text, kind: _number_compares(statement, text, kind, operator, number)
    if span:
        return lambda text, kind: _within(_time(text, kind), operator, *_bounds(statement, span))
    return lambda text, kind: f"({kind} = 'VARCHAR' and {_text_compares(statement, text, operator, value)})"


def _number_compares(statement: WalkStatement, text: str, kind: str, operator: Operator, number: Number) -> str:
    """Return the condition that a value of JSON is ordered so relative to a number; whole numbers exactly."""
    whole = ""
    if number.whole:
        bound = f"try_cast({statement.bind(number.whole)}::varchar as hugeint)"
        whole = f"when {kind} {_WHOLE} then try_cast({text} as hugeint) {operator} {bound} "
    real = f"try_cast({text} as double) {operator} {statement.bind(number.real)}"
    return f"case {whole}when {_is_number(text, kind)} then {real} end"


def _means(statement: WalkStatement, condition: Condition) -> Callable[[str, str], str]:
    """Return what makes the condition that a value of JSON means the same as a text."""
    value = condition.value
    bound = statement.bind(value)
    number, span = number_of(value), condition.span or span_of(value)
    is_true = statement.bind(value.lower()) if value.lower() in {"true", "false"} else ""

    def means(text: str, kind: str) -> str:
        parts = [f"{text} = {bound}"]
        if number:
            parts.append(_number_compares(statement, text, kind, "=", number))
        if is_true:
            parts.append(f"({kind} = 'BOOLEAN' and {text} = {is_true})")
        if span:
            parts.append(_within(_time(text, kind), "=", *_bounds(statement, span)))
        return f"({' or '.join(parts)})"

    return means


def _within(moment: str, operator: Operator, begin: Callable[[], str], end: Callable[[], str]) -> str:
    """Return how an instant relates to a span: before its first, or not before the end of it."""
    if operator == "=":
        return f"({moment} >= {begin()} and {moment} < {end()})"
    bound = begin() if operator in {"<", ">="} else end()
    return f"{moment} {'<' if operator in {'<', '<='} else '>='} {bound}"


def _bounds(statement: WalkStatement, span: tuple[str, str]) -> tuple[Callable[[], str], Callable[[], str]]:
    """Return what binds the begin and the end of a span as timestamps; what ends after the last year never does."""
    begin, end = (at.removesuffix("Z") for at in span)
    return (
        lambda: f"{statement.bind(begin)}::varchar::timestamp",
        lambda: f"coalesce(try_cast({statement.bind(end)}::varchar as timestamp), 'infinity'::timestamp)",
    )


def _natural(text: str) -> str:
    """Return the SQL of ``natural``. What has one number, at its end, as most ids have, or none, needs no list."""
    head = f"regexp_extract({text}, '^[^0-9]*')"
    zeros = f"left('{'0' * _DIGITS}', {_DIGITS} - strlen({text}) + strlen({head}))"
    runs = f"regexp_extract_all({text}, '[0-9]+|[^0-9]+')"
    filled = f"[case when run >= '0' and run < ':' then lpad(run, {_DIGITS}, '0') else run end for run in {runs}]"
    return (
        f"case when regexp_full_match({text}, '[^0-9]*[0-9]{{1,{_DIGITS}}}') "
        f"then {head} || {zeros} || substr({text}, length({head}) + 1) "
        f"when not regexp_matches({text}, '[0-9]') then {text} "
        f"when {text} is not null then array_to_string({filled}, '') end"
    )


def _is_number(text: str, kind: str) -> str:
    return f"({kind} {_NUMBER} or ({kind} = 'VARCHAR' and regexp_full_match({text}, '{_NUMBER_TEXT}')))"


def _time(text: str, kind: str) -> str:
    """Return the instant that a text names as ``values.normal_time`` reads it, null for any other value."""
    minutes = (
        f"coalesce(try_cast(regexp_extract({text}, '{_OFFSET}', 1) || '1' as int) * "
        f"(try_cast(regexp_extract({text}, '{_OFFSET}', 2) as int) * 60 "
        f"+ try_cast(regexp_extract({text}, '{_OFFSET}', 3) as int)), 0)"
    )
    return (
        f"case when {kind} = 'VARCHAR' and regexp_full_match({text}, '{_TIME_TEXT}') "
        f"then try_cast(upper({text}) as timestamp) - to_minutes({minutes}) end"
    )
