"""A compiled statement, run on a view: with the vocabulary next to the stored graph, within the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, Final, Protocol, TypeVar, cast

import msgspec

from kbcore.config.settings import KipLimits
from kbcore.errors import KipRefused, ResourceLimit, StatementTimeout
from kbcore.kip import scoping
from kbcore.kip import syntax as s
from kbcore.kip.errors import NOT_FOUND, RESOURCE, SYNTAX, TIMEOUT, refused
from kbcore.kip.names import TypeNames
from kbcore.kip.sql.statement import LINKS, NODES, CompileContext
from kbcore.kip.vocabulary import Vocabulary, vocabulary
from kbcore.model.schema import Schema
from kbcore.query.former_ids import called, said
from kbcore.text.escaping import escape_controls, in_quotes
from kbcore.text.suggest import is_it
from kbcore.view.base_stamp import BaseStamp
from kbcore.view.database import Row, StatementRefused
from kbcore.view.tables import LINK, NODE, Columns, link_row, node_row
from kbcore.view.view import View

T = TypeVar("T")
M = TypeVar("M")
_HAS_NAME: Final = "select exists (from node where coalesce(name, id) = $1 and ($2 = '' or type = $2))"
_NEAR_NAMES: Final = """
select distinct coalesce(name, id) as called, jaro_winkler_similarity(lower(coalesce(name, id)), lower($1)) as alike
from node where ($2 = '' or type = $2) and alike > $3 order by alike desc, called limit 3
"""
_LEAST_ALIKE: Final = 0.85
_MOST_UNKNOWN: Final = 5
_NAMED: Final = "select distinct name from node where name in (select unnest($1::varchar[]))"


class StatementView(Protocol):
    """A view, at one seq."""

    @property
    def overlay_mark(self) -> str:
        """Return the mark of its changes that are in no record, "" for none."""

    @property
    def seq(self) -> int:
        """Return the seq that is answered for."""

    @property
    def recorded_seq(self) -> int:
        """Return the seq of the last record."""

    @property
    def basis(self) -> BaseStamp:
        """Return the stamp of its base."""

    def rows(self, sql: str, params: Sequence[Any] = (), *, time_s: float | None = None) -> list[tuple[Any, ...]]:
        """Return all rows of a statement."""

    def hold(self, name: str, columns: Columns, mark: object, rows: Iterable[Row]) -> None:
        """Keep a table of constants."""

    def once(self, name: str, mark: M, make: Callable[[M], T]) -> T:
        """Return what is made of a mark."""


class Prepared(msgspec.Struct, frozen=True):
    """A schema made ready for asking."""

    vocabulary: Vocabulary
    known: CompileContext


def prepared(view: StatementView, schema: Schema) -> Prepared:
    """Return a schema made ready, as long as it stays the same."""
    return view.once("kip", schema, _prepared)


def _prepared(schema: Schema) -> Prepared:
    made = vocabulary(schema)
    of_nodes = [(one.id, one.type, str(one.fields["name"])) for one in made.nodes]
    partly = frozenset(
        (id_ if with_id else None, type_ if with_type else None, name if with_name else None)
        for id_, type_, name in of_nodes
        for with_id, with_type, with_name in product((True, False), repeat=3)
    )
    return Prepared(made, CompileContext(schema, made.names, partly, frozenset(one.id for one in made.links)))


def _hold(view: StatementView, schema: Schema) -> None:
    """Load the vocabulary into the connection, and note in it what is stored now."""
    made = prepared(view, schema).vocabulary
    hidden = view.once("kip hidden", (view.seq, schema), lambda _: _stored(view, made))
    for table, columns, elements in (
        (NODES, NODE, map(node_row, made.nodes)),
        (LINKS, LINK, map(link_row, made.links)),
    ):
        rows = ({**row, "is_hidden": row["id"] in hidden} for row in elements)
        view.hold(table, {**columns, "is_hidden": "BOOLEAN"}, (schema, hidden), rows)


def _stored(view: StatementView, made: Vocabulary) -> frozenset[str]:
    """Return the ids of those elements of the vocabulary that are stored."""
    parts, ids = [], list[str]()
    for table, elements in (("node", made.nodes), ("link", made.links)):
        parts.append(f"select id from {table} where id in ({', '.join('?' * len(elements))})")  # noqa: S608 - fixed names
        ids += (one.id for one in elements)
    return frozenset(id_ for (id_,) in view.rows(" union all ".join(parts), ids))


def with_present_ids(view: View, schema: Schema, tree: T, at: int | None) -> tuple[T, dict[str, str]]:
    """Return a command with the ids that entities have, now or as of a seq, and what was resolved.

    Of entities that have their id as their name, the name is resolved too; without a type, where none has that name.
    """
    names = prepared(view, schema).known.names
    found = _former_ids(view, names, tree, at)
    if not found:
        return tree, found

    def present(text: s.Text | None) -> s.Text | None:
        return text and msgspec.structs.replace(text, value=found.get(text.value, text.value))

    def resolved(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(map(resolved, part))
        if isinstance(part, s.Matcher):
            name = present(part.name) if _may_be_id(names, part) else part.name
            return msgspec.structs.replace(part, id=present(part.id), name=name)
        if not isinstance(part, msgspec.Struct) or isinstance(part, s.JsonValue | s.Text | s.Count):
            return part
        return msgspec.structs.replace(part, **{name: resolved(getattr(part, name)) for name in part.__struct_fields__})

    return cast("T", resolved(tree)), found


def refuse_former_ids(view: View, schema: Schema, tree: Any) -> None:
    """Refuse a command that writes and names an entity by a former id. Raises: ``KipRefused`` (KIP_3002)."""
    names = prepared(view, schema).known.names
    found = _former_ids(view, names, tree, None)
    for one in scoping.parts_of(tree) if found else ():
        if isinstance(one, s.Matcher):
            by_name = one.name if one.name and _may_be_id(names, one) else None
            for text in (one.id, by_name):
                if text and text.value in found:
                    (message,) = said({text.value: found[text.value]})
                    raise refused(NOT_FOUND, message, at=text.at, hint=f"Write {in_quotes(found[text.value])}.")


def _former_ids(view: View, names: TypeNames, tree: Any, at: int | None) -> dict[str, str]:
    """Return what each former id that a command names is called, now or as of a seq."""
    asked = [one for one in scoping.parts_of(tree) if isinstance(one, s.Matcher)]
    named = {one.name.value: one.type is None for one in asked if one.name and _may_be_id(names, one)}
    open_names = [name for name, is_open in named.items() if is_open]
    taken = view.rows(_NAMED, [open_names]) if open_names else []
    wanted = {*named} - {row[0] for row in taken} | {one.id.value for one in asked if one.id}
    return called(view, wanted, at) if wanted else {}


def name_hint(view: View, kb_type: str, name: str) -> str:
    """Return what a name that no concept of the type has may mean: one that has it as an alias, or a name that is near.

    Without a type that is any concept.
    """
    merged = [node for _, node in view.with_aliases([name]) if kb_type in {"", node.type}]
    if merged:
        return f"{in_quotes(name)} is an alias of {in_quotes(str(merged[0].fields.get('name', merged[0].id)))}."
    return is_it([row[0] for row in view.rows(_NEAR_NAMES, [name, kb_type, _LEAST_ALIKE])])


def unknown_names(view: View, schema: Schema, query: s.FindCommand) -> list[str]:
    """Return a sentence for each concept that a FIND names by its name, and that there is not."""
    made = prepared(view, schema).vocabulary
    found: dict[str, None] = {}
    for one in scoping.parts_of(query):
        if not isinstance(one, s.Matcher) or one.id or not one.name:
            continue
        kb_type, name = made.names.of_kip.get(one.type.value, "") if one.type else "", one.name.value
        is_known = any(node.fields["name"] == name and kb_type in {"", node.type} for node in made.nodes)
        if not is_known and view.rows(_HAS_NAME, [name, kb_type]) == [(False,)]:
            what = f"There is no {one.type.value if one.type else 'concept'} {in_quotes(name)}."
            found[f"{what} {name_hint(view, kb_type, name)}".rstrip()] = None
    return [*found][:_MOST_UNKNOWN]


def _may_be_id(names: TypeNames, matcher: s.Matcher) -> bool:
    """Return whether the name that a matcher gives may be an id."""
    return matcher.type is None or names.is_named_by_id(names.of_kip.get(matcher.type.value, ""))


def ask(
    view: StatementView,
    schema: Schema,
    asked: tuple[str, list[Any]],
    limits: KipLimits,
    *,
    tree: s.FindCommand | s.ClauseGroup,
) -> list[tuple[Any, ...]]:
    """Return the rows of a statement with its parameters, which was made of ``tree``.

    Raises: ``KipRefused`` with KIP_1001 for a pattern that is none, KIP_4001 when it takes longer than the limit,
    KIP_4002 when it takes more memory than it may.
    """
    patterns = [one for one in scoping.parts_of(tree) if isinstance(one, s.TextTest) and one.function == "REGEX"]
    for one in patterns:
        _check_pattern(view, one)
    if NODES in asked[0] or LINKS in asked[0]:
        _hold(view, schema)
    try:
        return view.rows(*asked, time_s=limits.time_s)
    except StatementTimeout as error:
        message = f"The command took longer than {limits.time_s:g} s; {limits.time_by} is the limit."
        raise refused(TIMEOUT, message, at=tree.at) from error
    except ResourceLimit as error:
        raise refused(RESOURCE, error.message, at=tree.at, hint=error.remedy) from error
    except StatementRefused as error:
        if not patterns:
            raise
        raise _no_pattern(str(error), patterns[0].pattern.at) from error


def _check_pattern(view: StatementView, test: s.TextTest) -> None:
    """Refuse a pattern that is written in the command and is none, whatever rows there are."""
    if isinstance(test.pattern, s.JsonValue) and isinstance(test.pattern.json, str):
        try:
            view.rows("select regexp_matches('', ?)", [test.pattern.json])
        except StatementRefused as error:
            raise _no_pattern(str(error), test.pattern.at) from error


def _no_pattern(said: str, at: int) -> KipRefused:
    hint = "Patterns are those of RE2: no look-around, no back references; a backslash is written twice."
    return refused(SYNTAX, f"REGEX cannot use this pattern: {escape_controls(said)}.", at=at, hint=hint)


def too_many(limits: KipLimits, at: int, hint: str) -> KipRefused:
    """Return the error for more rows than the limit."""
    message = f"There are more than {limits.rows} rows; {limits.rows_by} is the limit."
    return refused(RESOURCE, message, at=at, hint=hint)
