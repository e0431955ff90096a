"""Paths and constants in SQL: for each kind of JSON an expression that is null for values of other kinds. Pure.

Numbers become a pair of the whole part and the rest, which orders and compares them exactly, whole ones of 64 bits
among them. Texts are compared by code points, two texts that are RFC 3339 times by the moment that they mean.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import re
from typing import Any, Final

import msgspec

from kbcore.kip import syntax as s
from kbcore.kip.errors import SYNTAX, refused
from kbcore.kip.names import BEGINNINGS, GIVEN, LINK_ATTRIBUTES, LINK_METADATA, NODE_ATTRIBUTES, NODE_METADATA, PROGRAMS
from kbcore.kip.sql.matching import link_of, name_of, node_of
from kbcore.kip.sql.relation import Bound
from kbcore.kip.sql.statement import SqlStatement
from kbcore.model.values import normal_time
from kbcore.text.escaping import in_quotes

_TIME: Final = (
    r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)
HUGE: Final = 10.0**38
"""Beyond it a number has no whole part that fits; all of it then is in the rest."""

_SMALL: Final = 2**53
"""Any number is below, at or above one that is nearer to 0 than this just as its nearest double does."""

_REAL: Final = "try_cast(v.t as double)"
_NUMBER: Final = (
    "case when v.k in ('BIGINT', 'UBIGINT') then {'w': try_cast(v.t as hugeint), 'f': 0::double} "
    f"when v.k = 'DOUBLE' then case when abs({_REAL}) < {HUGE!r} "
    f"then {{'w': try_cast(trunc({_REAL}) as hugeint), 'f': {_REAL} - trunc({_REAL})}} "
    f"else {{'w': (sign({_REAL}) * {HUGE!r})::hugeint, 'f': {_REAL}}} end end"
)
_KEY: Final = (
    "case when coalesce(v.k, 'NULL') <> 'NULL' then {'r': case v.k when 'VARCHAR' then 1 when 'BOOLEAN' then 2 "
    f"when 'ARRAY' then 3 when 'OBJECT' then 3 else 0 end, 'n': {_NUMBER}, "
    "'t': case when v.k in ('VARCHAR', 'BOOLEAN', 'ARRAY', 'OBJECT') then v.t end} end"
)
"""A value as a number, and its sort key, from its kind and its text."""


_DURATION: Final = re.compile(r"(?P<sign>[+-]?)(?P<parts>(?:[0-9]{1,9}[smhdw])+)")
_PART: Final = re.compile(r"([0-9]+)([smhdw])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST_S: Final = 10_000 * 366 * 86_400
"""Longer than all years that a time may be in."""


class Operand(msgspec.Struct, frozen=True):
    """A value: SQL for each kind that it may have (number, text, boolean, list or object), "" where it cannot be.

    ``json`` is the value as JSON text, "" where it is a plain text. ``is_null`` is the condition that it is null.
    ``constant`` is a text that is no column. ``key`` is what orders and groups values: numbers, texts, booleans,
    others; null for null. ``real`` is the nearest double of a number, and ``is_small`` says of a constant that this is
    enough to compare it.
    """

    is_null: str
    number: str = ""
    text: str = ""
    flag: str = ""
    other: str = ""
    json: str = ""
    constant: str | None = None
    key: str = ""
    real: str = ""
    is_small: bool = False


def constant(st: SqlStatement, value: Any) -> Operand:
    """Return a scalar of the command."""
    if value is None:
        return Operand("true")
    if isinstance(value, bool):
        return Operand("false", flag=st.bind(value))
    if isinstance(value, str):
        return Operand("false", text=st.bind(value), constant=value)
    real = f"{st.bind(float(value))}::double" if abs(value) < _SMALL else ""
    if isinstance(value, int):
        number = f"{{'w': {st.bind(value)}::hugeint, 'f': 0::double}}"
        return Operand("false", number=number, real=real, is_small=bool(real))
    whole = math.trunc(value) if abs(value) < HUGE else int(math.copysign(HUGE, value))
    rest = value - whole if abs(value) < HUGE else value
    number = f"{{'w': {st.bind(str(whole))}::hugeint, 'f': {st.bind(rest)}::double}}"
    return Operand("false", number=number, real=real, is_small=bool(real))


def only_where(of: Operand, condition: str) -> Operand:
    """Return a value that is null where a condition does not hold."""
    made = {
        name: f"case when {condition} then {sql} end"
        for name in ("number", "text", "flag", "other", "json", "key", "real")
        if (sql := getattr(of, name))
    }
    return msgspec.structs.replace(of, is_null=f"({of.is_null} or not {condition})", **made)


def is_member(of: Operand, member: Operand) -> list[str]:
    """Return conditions, one for each kind, that a value is a list which holds a scalar; none where it cannot be."""
    if not of.json:
        return []

    def holds(kinds: str, made: str, wanted: str) -> str:
        found = f"[case when json_type(v) in ({kinds}) then {made} end for v in json_extract({of.json}, '$[*]')]"
        return f"list_contains({found}, {wanted})"

    parts = []
    if member.text:
        parts.append(holds("'VARCHAR'", "v ->> '$'", member.text))
    if member.flag:
        parts.append(holds("'BOOLEAN'", "(v ->> '$') = 'true'", member.flag))
    if member.real:
        parts.append(holds("'BIGINT', 'UBIGINT', 'DOUBLE'", "try_cast(v ->> '$' as double)", member.real))
    elif member.number:
        parts.append(holds("'BIGINT', 'UBIGINT'", "try_cast(v ->> '$' as hugeint)", f"({member.number})['w']"))
    return parts


def moved(now: str, offset: s.Text | None) -> str:
    """Return a time moved by a duration. Raises: ``KipRefused`` (KIP_1001) for a text that is none."""
    if offset is None:
        return now
    said = _DURATION.fullmatch(offset.value)
    found: str | None = None
    if said:
        seconds = sum(int(number) * _SECONDS[unit] for number, unit in _PART.findall(said["parts"]))
        by = dt.timedelta(seconds=min(seconds, _LONGEST_S))
        with contextlib.suppress(OverflowError):  # before the first year or after the last one
            found = normal_time((dt.datetime.fromisoformat(now) + (-by if said["sign"] == "-" else by)).isoformat())
    if found is None:
        hint = 'Write a sign, numbers and units: "-7d", "+12h", "-1d12h"; s, m, h, d and w are units.'
        raise refused(SYNTAX, f"{in_quotes(offset.value[:40])} is no duration.", at=offset.at, hint=hint)
    return found


def operand(st: SqlStatement, columns: dict[str, Bound], of: s.Operand) -> Operand:
    """Return what a path, a constant or NOW() is."""
    if isinstance(of, s.Now):
        return constant(st, moved(st.now, of.offset))
    return constant(st, of.json) if isinstance(of, s.JsonValue) else value(st, columns[of.variable], of.parts)


def value(st: SqlStatement, bound: Bound, parts: tuple[str, ...]) -> Operand:
    """Return a field of a bound element, a member of its attributes or metadata, or its id where there are no parts."""
    if not parts or parts[0] == "id":
        return _text(bound.sql)
    if len(parts) == 1:
        return _text(_field(st, bound, parts[0]))
    found = [_member(st, bound, parts, is_link=is_link) for is_link in _sides(bound)]
    kinds, texts, jsons = ([one[at] for one in found] for at in range(3))
    return _any(_either(kinds), _either(texts), _either(jsons))


def _sides(bound: Bound) -> list[bool]:
    return {"node": [False], "link": [True]}.get(bound.kind, [False, True])


def _either(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"coalesce({', '.join(parts)})"


def _text(sql: str) -> Operand:
    return Operand(f"({sql} is null)", text=sql, key=sql)


def _field(st: SqlStatement, bound: Bound, field: str) -> str:
    """Return a field that is a text, null where the element has no such field."""
    if field in {"type", "name"}:
        if bound.kind == "link":
            return "null::varchar"
        alias, type_ = node_of(st, bound), bound.pattern[0]
        return name_of(st, alias, type_) if field == "name" else shown_type(st, alias, type_)
    if bound.kind == "node":
        return "null::varchar"
    return f"{link_of(st, bound)}.{ {'subject': 'from_id', 'predicate': 'type', 'object': 'to_id'}[field] }"


def shown_type(st: SqlStatement, alias: str, type_: str) -> str:
    """Return what KIP calls the type of a node; ``type_`` is its type as KB calls it, where that is known."""
    if type_ and st.known.names.shown(type_) == type_:
        return f"{alias}.type"
    changed = [(kb, kip) for kb, kip in st.known.names.of_kb.items() if kb != kip]
    cases = " ".join(f"when {st.bind(kb)} then {st.bind(kip)}" for kb, kip in changed)
    return f"case {alias}.type {cases} else {alias}.type end" if cases else f"{alias}.type"


def _member(st: SqlStatement, bound: Bound, parts: tuple[str, ...], *, is_link: bool) -> tuple[str, str, str]:
    """Return kind, text and JSON of a member; one that is in a field counts where none of the name is given."""
    alias = link_of(st, bound) if is_link else node_of(st, bound)
    column, at = f"{alias}.{parts[0]}", st.bind("/" + "/".join(parts[1:]))
    kind, text = f"json_type({column}, {at})", f"json_extract_string({column}, {at})"
    json = f"json_extract({column}, {at})"
    field = None if parts[2:] else _stored(st, alias, parts, bound)
    if field is None:
        return kind, text, json
    # Not a CASE that names the kind: where DuckDB knows that a column is empty, it fails to compare such a CASE.
    stored = f"to_json({field})"
    return (
        f"coalesce({kind}, json_type({stored}))",
        f"coalesce({text}, json_extract_string({stored}, '$'))",
        f"coalesce({json}, {stored})",
    )


def _stored(st: SqlStatement, alias: str, parts: tuple[str, ...], bound: Bound) -> str | None:
    """Return the field that a member is stored in, None where it is in none; the field may be null."""
    part, key = parts
    is_link = alias == bound.link
    if part == "metadata":
        column = (LINK_METADATA if is_link else NODE_METADATA).get(key)
        if column is None:
            return None
        if key in GIVEN:
            return _said(st, alias, key, column, is_link=is_link)
        empty = {"_version": "0", "confidence": ""}.get(key, "''")
        return f"nullif({alias}.{column}, {empty})" if empty else f"{alias}.{column}"
    if is_link:
        return f"nullif({alias}.{LINK_ATTRIBUTES[key]}, '')" if key in LINK_ATTRIBUTES else None
    if key in {"title", "name"}:
        return f"nullif({alias}.{key}, {name_of(st, alias, bound.pattern[0])})"
    return f"{alias}.{key}" if key in NODE_ATTRIBUTES else None


def _said(st: SqlStatement, alias: str, key: str, column: str, *, is_link: bool) -> str:
    """Return the source or the author in a field, null where that is only KB's note of who wrote, and by what."""
    own = " or ".join(f"starts_with({alias}.source, '{one}')" for one in BEGINNINGS)
    said = f"{alias}.source not in ({', '.join(map(st.bind, PROGRAMS))}) and not ({own})"
    of_client = f" and len({alias}.files) = 0" if is_link and key == "author" else ""
    return f"case when {said}{of_client} then nullif({alias}.{column}, '') end"


def _any(kind: str, text: str, json: str) -> Operand:
    """Return a value of any kind."""
    return Operand(
        is_null=f"(coalesce({kind}, 'NULL') = 'NULL')",
        number=_with(kind, text, _NUMBER),
        text=f"case when {kind} = 'VARCHAR' then {text} end",
        flag=f"case when {kind} = 'BOOLEAN' then {text} = 'true' end",
        other=f"case when {kind} in ('ARRAY', 'OBJECT') then {text} end",
        json=json,
        key=_with(kind, text, _KEY),
        real=f"case when {kind} in ('BIGINT', 'UBIGINT', 'DOUBLE') then try_cast({text} as double) end",
    )


def _with(kind: str, text: str, made: str) -> str:
    """Return what is made of ``v.k`` and ``v.t``, in which kind and text of a value occur once."""
    return f"list_transform([{{'k': {kind}, 't': {text}}}], lambda v: {made})[1]"


def compared(st: SqlStatement, sign: str, one: Operand, other: Operand) -> str:
    """Return the condition that two values compare so (``=``, ``<``, …), null or false where they do not."""
    if sign == "=" and not {"true", "false"} & {one.is_null, other.is_null}:
        # One equality that has each side for itself is a key to join by; alternatives are tried for each pair of rows.
        only_texts = not any(side.number or side.flag or side.other for side in (one, other))
        made = [_identity(side, only_texts=only_texts) for side in (one, other)]
        return f"({made[0]} is not distinct from {made[1]})"
    parts = []
    if one.number and other.number:
        is_simple = one.real and other.real and (one.is_small or other.is_small)
        parts += [f"{one.real} {sign} {other.real}" if is_simple else f"{one.number} {sign} {other.number}"]
    if one.text and other.text:
        parts.append(_texts_compared(st, sign, one, other))
    if sign == "=":
        parts += [f"{one.flag} = {other.flag}"] if one.flag and other.flag else []
        parts += [f"{one.other} = {other.other}"] if one.other and other.other else []
        nulls = [part for part in (one.is_null, other.is_null) if part != "true"]
        parts += [] if "false" in nulls else [" and ".join(nulls) or "true"]
    return f"({' or '.join(parts)})" if parts else "false"


def _identity(of: Operand, *, only_texts: bool) -> str:
    """Return what two values have in common exactly where KIP says that they are equal. Null is equal to null."""
    text = of.text or "null::varchar"
    moment = _moment_in("v.t")
    parts = {"m": moment, "t": f"case when {moment} is null then v.t end"}
    if not only_texts:
        parts |= {"n": "v.n", "b": "v.b", "o": "v.o"}
    values = {"t": text}
    if not only_texts:
        values |= {
            "n": of.number or "null::struct(w hugeint, f double)",
            "b": of.flag or "null::boolean",
            "o": of.other or "null::varchar",
        }
    listed, made = (", ".join(f"'{name}': {sql}" for name, sql in fields.items()) for fields in (values, parts))
    return f"list_transform([{{{listed}}}], lambda v: {{{made}}})[1]"


def _texts_compared(st: SqlStatement, sign: str, one: Operand, other: Operand) -> str:
    plain = f"{one.text} {sign} {other.text}"
    if any(side.constant is not None and moment_of(side.constant) is None for side in (one, other)):
        return plain
    moments = [_moment(st, side) for side in (one, other)]
    return f"coalesce({moments[0]} {sign} {moments[1]}, {plain})"


def _moment(st: SqlStatement, of: Operand) -> str:
    if of.constant is not None:
        return f"{st.bind(moment_of(of.constant))}::timestamptz"
    return _moment_in(of.text)


def _moment_in(text: str) -> str:
    return f"case when regexp_full_match({text}, '{_TIME}') then try_cast({text} as timestamptz) end"


def moment_of(text: str) -> str | None:
    """Return the moment that an RFC 3339 time with an offset means, None for a text that is none."""
    return normal_time(text) if re.fullmatch(_TIME, text, re.ASCII) else None
