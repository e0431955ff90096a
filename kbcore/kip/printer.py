"""A tree back as KIP text, in one canonical form: what is parsed out of it is the same tree, but for the places. Pure.

Characters that may act on a terminal or hide from a reader are written as escapes, whatever the tree holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kbcore.kip import syntax as s
from kbcore.text.escaping import escaped_json

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_WIDEST: Final = 100
_INDENT: Final = "  "
_WORDS: Final = {s.Not: "NOT", s.Optional: "OPTIONAL", s.Union: "UNION"}


def write(command: s.Command) -> str:
    """Return the text of a command, bound or not, without a line break at its end."""
    match command:
        case s.FindCommand():
            return _query(command)
        case s.Upserts(upserts):
            return "\n".join(_upsert(one) for one in upserts)
        case s.DeleteConcepts() | s.DeletePropositions() | s.DeleteKeys():
            return _delete(command)
        case s.Update():
            return _update(command)
        case s.Merge(source, target, where):
            return f"MERGE CONCEPT ?{source.name} INTO ?{target.name}\n{_where(where)}"
        case s.ExportCommand(variable, where, limit, cursor):
            return _lines(f"EXPORT ?{variable.name}", _where(where), *_page(limit, cursor))
        case s.SearchCommand():
            return _search(command)
        case _:
            return _describe(command)


def _describe(describe: s.Describe) -> str:
    match describe:
        case s.DescribePrimer():
            return "DESCRIBE PRIMER"
        case s.DescribeDomains():
            return "DESCRIBE DOMAINS"
        case s.DescribeSyntax():
            return "DESCRIBE SYNTAX"
        case s.DescribeTypes(of, limit, cursor):
            return " ".join([f"DESCRIBE {of} TYPES", *_page(limit, cursor)])
        case s.DescribeType(of, name):
            return f"DESCRIBE {of} TYPE {_text(name)}"
        case s.DescribeNeighbourhood(matcher, limit, budget):
            most = [f"BUDGET {_count(budget)}"] if budget else []
            return " ".join(["DESCRIBE NEIGHBOURHOOD", _matcher(matcher), *_page(limit, None), *most])


def _delete(delete: s.Delete) -> str:
    variable, where = f"?{delete.variable.name}", _where(delete.where)
    match delete:
        case s.DeleteConcepts():
            return f"DELETE CONCEPT {variable} DETACH\n{where}"
        case s.DeletePropositions():
            return f"DELETE PROPOSITIONS {variable}\n{where}"
        case s.DeleteKeys(part, keys):
            named = ", ".join(_text(key) for key in keys)
            return f"DELETE {part} {{{named}}} FROM {variable}\n{where}"


def _lines(*lines: str) -> str:
    return "\n".join(line for line in lines if line)


def _indented(text: str) -> str:
    return "\n".join(f"{_INDENT}{line}" for line in text.split("\n"))


def _braces(*inner: str) -> str:
    """Return texts in braces, each on lines of its own."""
    return "\n".join(["{", *(_indented(one) for one in inner if one), "}"])


def _page(limit: s.Count | None, cursor: s.Text | None) -> list[str]:
    parts = [f"LIMIT {_count(limit)}"] if limit else []
    return [*parts, f"CURSOR {_text(cursor)}"] if cursor else parts


def _quoted(text: str) -> str:
    return escaped_json(json.dumps(text, ensure_ascii=False))


def _text(text: s.Text) -> str:
    return f":{text.parameter}" if text.parameter else _quoted(text.value)


def _count(count: s.Count) -> str:
    return f":{count.parameter}" if count.parameter else str(count.value)


def _key(key: str) -> str:
    return key if _NAME.fullmatch(key) else _quoted(key)


def _value(value: s.JsonValue) -> str:
    return _json(value.json, {hole.path: hole.parameter for hole in value.holes}, ())


def _json(value: Any, holes: Mapping[tuple[str | int, ...], str], path: tuple[str | int, ...]) -> str:
    if path in holes:
        return f":{holes[path]}"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(_json(one, holes, (*path, place)) for place, one in enumerate(value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_key(key)}: {_json(one, holes, (*path, key))}' for key, one in value.items())}}}"
    return json.dumps(value)


def _map(parameter: str, members: Sequence[tuple[str, str]]) -> str:
    """Return a map on one line where it fits, else with a line for each member."""
    if parameter:
        return f":{parameter}"
    written = [f"{_key(key)}: {value}" for key, value in members]
    line = f"{{ {', '.join(written)} }}" if written else "{}"
    return line if len(line) <= _WIDEST else _braces(",\n".join(written))


def _object(words: str, of: s.Object | None) -> str:
    return f"{words} {_map(of.parameter, [(one.key, _value(one.value)) for one in of.members])}" if of else ""


def _query(query: s.FindCommand) -> str:
    found = ", ".join(_expression(one) for one in query.find)
    sorts = ", ".join(f"{_expression(one.key)} DESC" if one.descending else _expression(one.key) for one in query.order)
    order = f"ORDER BY {sorts}" if sorts else ""
    when = f"AT {_value(query.when)}" if query.when else ""
    return _lines(f"FIND({found})", _where(query.where), when, order, *_page(query.limit, query.cursor))


def _expression(expression: s.Expression) -> str:
    if isinstance(expression, s.Path):
        return _path(expression)
    distinct = "DISTINCT " if expression.distinct else ""
    return f"{expression.function}({distinct}{_path(expression.path)})"


def _path(path: s.Path) -> str:
    return "?" + ".".join([path.variable, *path.parts])


def _where(group: s.ClauseGroup | None) -> str:
    return f"WHERE {_group(group)}" if group else ""


def _group(group: s.ClauseGroup) -> str:
    return _braces(*(_clause(one) for one in group.clauses))


def _clause(clause: s.Clause) -> str:
    match clause:
        case s.ConceptPattern(variable, matcher):
            return f"?{variable.name} {_matcher(matcher)}"
        case s.LinkPattern(variable, triple):
            return f"?{variable.name} {_triple(triple)}" if variable else _triple(triple)
        case s.FilterClause(condition):
            return f"FILTER({_condition(condition)})"
        case s.Not(group) | s.Optional(group) | s.Union(group):
            return f"{_WORDS[type(clause)]} {_group(group)}"


def _matcher(matcher: s.Matcher) -> str:
    parts = (("id", matcher.id), ("type", matcher.type), ("name", matcher.name))
    return f"{{{', '.join(f'{key}: {_text(text)}' for key, text in parts if text)}}}"


def _triple(link: s.Triple | s.WrittenLink | s.LinkId) -> str:
    if isinstance(link, s.LinkId):
        return f"(id: {_text(link.id)})"
    return f"({_end(link.subject)}, {_predicate(link.predicate)}, {_end(link.object)})"


def _end(end: s.Term | s.Target) -> str:
    match end:
        case s.Variable(name):
            return f"?{name}"
        case s.Matcher():
            return _matcher(end)
        case _:
            return _triple(end)


def _predicate(predicate: s.Predicate | s.Text) -> str:
    match predicate:
        case s.Variable(name):
            return f"?{name}"
        case s.Text():
            return _text(predicate)
        case s.PredicateNames(names):
            return " | ".join(_text(name) for name in names)
        case s.Hops(name, least, most):
            same = most is not None and (most.value, most.parameter) == (least.value, least.parameter)
            upper = "" if same else f",{_count(most) if most else ''}"
            return f"{_text(name)}{{{_count(least)}{upper}}}"


def _condition(condition: s.Condition) -> str:
    match condition:
        case s.AnyOf(conditions):
            return " || ".join(_within(one, s.AnyOf) for one in conditions)
        case s.AllOf(conditions):
            return " && ".join(_within(one, s.AnyOf, s.AllOf) for one in conditions)
        case s.Negation(inner):
            return f"!{_within(inner, s.AnyOf, s.AllOf, s.Negation)}"
        case s.Comparison(operator, left, right):
            return f"{_operand(left)} {operator} {_operand(right)}"
        case s.TextTest(function, text, pattern):
            return f"{function}({_operand(text)}, {_operand(pattern)})"
        case s.IsIn(operand, values):
            return f"IN({_operand(operand)}, {_value(values)})"
        case s.IsNull(operand, negated):
            return f"{'IS_NOT_NULL' if negated else 'IS_NULL'}({_operand(operand)})"


def _within(condition: s.Condition, *wrapped: type) -> str:
    text = _condition(condition)
    return f"({text})" if isinstance(condition, wrapped) else text


def _operand(operand: s.Operand) -> str:
    if isinstance(operand, s.Now):
        return f"NOW({_text(operand.offset) if operand.offset else ''})"
    return _path(operand) if isinstance(operand, s.Path) else _value(operand)


def _upsert(upsert: s.Upsert) -> str:
    blocks = _braces(*(_block(one) for one in upsert.blocks))
    return _lines(f"UPSERT {blocks}", _where(upsert.where), _object("WITH METADATA", upsert.metadata))


def _block(block: s.Block) -> str:
    handle = f"?{block.handle.name} " if block.handle else ""
    version = f"EXPECT VERSION {_count(block.expected_version)}" if block.expected_version else ""
    attributes = _object("SET ATTRIBUTES", block.attributes)
    metadata = _object("\nWITH METADATA", block.metadata)
    if isinstance(block, s.Proposition):
        return f"PROPOSITION {handle}{_braces(_triple(block.fact), version, attributes)}{metadata}"
    links = f"SET PROPOSITIONS {_braces(*map(_entry, block.links))}" if block.links else ""
    return f"CONCEPT {handle}{_braces(_matcher(block.identity), version, attributes, links)}{metadata}"


def _entry(entry: s.SetProposition) -> str:
    metadata = _object(" WITH METADATA", entry.metadata)
    return f"({_text(entry.predicate)}, {_end(entry.target)}){metadata}"


def _update(update: s.Update) -> str:
    return _lines(
        f"UPDATE ?{update.variable.name}",
        _assignments("SET ATTRIBUTES", update.attributes),
        _assignments("SET METADATA", update.metadata),
        _where(update.where),
        *_page(update.limit, None),
    )


def _assignments(words: str, of: s.Assignments | None) -> str:
    return f"{words} {_map(of.parameter, [(one.key, _part(one.value)) for one in of.assignments])}" if of else ""


def _part(part: s.JsonValue | s.Path | s.Calculation) -> str:
    if isinstance(part, s.Calculation):
        return f"{part.function}({', '.join(_part(one) for one in part.arguments)})"
    return _operand(part)


def _search(search: s.SearchCommand) -> str:
    parts = [f"SEARCH {search.of} {_text(search.term)}"]
    parts += [f"WITH TYPE {_text(search.type)}"] if search.type else []
    parts += ["WITH ATTRIBUTES"] if search.is_whole else []
    parts += [f"MODE {_text(search.mode)}"] if search.mode else []
    parts += [f"THRESHOLD {_value(search.threshold)}"] if search.threshold else []
    return " ".join([*parts, *_page(search.limit, search.cursor)])
