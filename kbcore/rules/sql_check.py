"""Looks at the SQL of a rule before it runs: one SELECT over the relations, with parameters that the rule has. Pure.

What is refused here the sandbox would not give either; here it is reported by file, line and name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import msgspec

from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbcore.view.relations import INSTEAD, RELATIONS

_FUNCTIONS: Final = frozenset({"unnest", "range", "generate_series", "json_each", "json_tree"})

_BEFORE_END: Final = re.compile(
    r"(?:[eE]'(?:[^'\\]|\\.)*'|'[^']*'|\"[^\"]*\"|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/|[^;])*", re.DOTALL
)
"""Everything up to the first semicolon outside of texts, names and comments."""


class SqlFault(Exception):
    """A fault of the SQL, at a line that counts from 1; ``is_said_by_database`` when these are its words."""

    def __init__(self, line: int, what: str, *, is_said_by_database: bool = False) -> None:
        super().__init__(what)
        self.line = line
        self.is_said_by_database = is_said_by_database


class SqlReads(msgspec.Struct, frozen=True):
    """The relations that a SELECT reads, and the parameters that it uses."""

    relations: frozenset[str]
    params: frozenset[str]


def look_at(sql: str, tree_text: str, params: Collection[str]) -> SqlReads:
    """Return what the SQL reads; ``tree_text`` is its tree, ``params`` are the parameters that the rule has.

    Raises: ``Fault``.
    """
    tree = json.loads(tree_text)
    if tree["error"]:
        before = sql.encode()[: int(tree.get("position") or 0)]
        line = before.count(b"\n") + 1
        if tree["error_type"] == "not implemented":
            raise SqlFault(line, "the SQL must be one SELECT, and nothing else")
        raise SqlFault(line, tree["error_message"], is_said_by_database=True)
    if len(tree["statements"]) != 1:
        raise SqlFault(1, f"the SQL must be one SELECT, not {len(tree['statements'])} statements")
    parts = list(_parts(tree))
    named = {entry["key"].lower() for part in parts for entry in (part.get("cte_map") or {}).get("map", ())}
    # a name with a dot could mean a file elsewhere in the statement
    known = {*RELATIONS, *filter(str.isidentifier, named)}
    for part in parts:
        fault = _fault(part, known, params)
        if fault:
            at = part.get("query_location", 0)
            raise SqlFault(sql.encode()[:at].count(b"\n") + 1 if at < len(sql) else 1, fault)
    return SqlReads(
        frozenset(part["table_name"].lower() for part in parts if _is(part, "BASE_TABLE")) & RELATIONS.keys(),
        frozenset(part["identifier"] for part in parts if _is(part, "VALUE_PARAMETER")),
    )


def without_end(sql: str) -> str:
    """Return one statement without the semicolon that ends it, and what follows that, to be put into another one."""
    found = _BEFORE_END.match(sql)
    return found[0] if found else sql


def _fault(part: Mapping[str, Any], known: Collection[str], params: Collection[str]) -> str:
    """Return what a part of a statement reads that a rule may not, or the empty text."""
    if _is(part, "BASE_TABLE"):
        name = part["table_name"]
        if name.lower() not in known or part["schema_name"] not in {"", "recurring"}:
            instead = INSTEAD.get(name.lower())
            near = (
                f"Read `{instead}`; docs/rules.md of KB lists its columns" if instead else did_you_mean(name, RELATIONS)
            )
            return f"the SQL reads {in_quotes(name)}, which a rule may not. {near}"
    elif _is(part, "TABLE_FUNCTION"):
        function = part["function"]["function_name"]
        if function.lower() not in _FUNCTIONS:
            return f"the SQL uses {function}(), which a rule may not"
    elif _is(part, "VALUE_PARAMETER") and part["identifier"] not in params:
        name = part["identifier"]
        if name.isdecimal():
            return "the SQL uses ? or $1 for a parameter; name it as `params:` does, with a $ before it"
        near = did_you_mean(name, params) if params else "The rule has none: list them below `params:`"
        return f"the SQL uses ${name}, which is no parameter of the rule. {near}"
    return ""


def _is(part: Mapping[str, Any], kind: str) -> bool:
    return part.get("type") == kind


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
