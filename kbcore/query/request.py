"""A query, as plain data, checked against the schema and against the names in the data.

A checked query holds only names that exist, values that can be bound, and numbers within the limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from kbcore import limits
from kbcore.errors import InvalidQuery, Problem
from kbcore.errors.remedies import kb
from kbcore.ids import is_link_id, worktree_path
from kbcore.model.concepts import TYPE, how_to_add
from kbcore.model.graph import OBJECT_FIELDS, OTHER_NAMES
from kbcore.model.schema import HIDDEN, Schema, is_hidden_id
from kbcore.model.values import text_problem
from kbcore.query.conditions import ALLOWED, AnyOf, Condition
from kbcore.query.data_names import NO_FILES, DataNames, OwnedFiles
from kbcore.query.keys import EDGE, MEMBERS, Key, KeyKind, field_names, field_of, is_path_key, key_names, key_of
from kbcore.query.where_values import is_relative_time, number_of, span_of
from kbcore.text.escaping import in_quotes
from kbcore.text.globs import glob_fault
from kbcore.text.suggest import did_you_mean, is_it, near_ones, nearest

_EXAMPLES: Final[Mapping[KeyKind, str]] = {"flag": "false", "number": "0.5", "time": "2026-01-31"}
"""Values of keys that do not take every text."""
_OTHER_NAMES: Final = {other.casefold(): name for other, name in OTHER_NAMES}
_PATH_NAMES: Final = frozenset({"doc", "document", "filename", "filepath", "folder", "directory"})
"""Names that nothing has, for the path of the file that states an entity or an edge."""
_CONFLICTS: Final = frozenset({"conflict", "conflicts", "contested"})
"""Words for what is contested, which is no type."""
_GLOB: Final = "For example `src/**/*.py`, or a folder such as `src/shop`."
_LIKE_EDGE: Final = 0.7
"""The least likeness of an unknown type to the word for edges to mean it."""

Times = Callable[[str], tuple[str, str] | None]
"""Returns the first instant that a time names and the first one after it, None for what is no time."""
Named = Callable[[str], str]
"""Returns how the user of a query gives the argument of a name, such as `--where` for `where`."""


class Pattern(msgspec.Struct, frozen=True):
    """An edge that an entity has or lacks: to any entity, or to the one with that id.

    With ``inverse`` the entity is the edge's target, and ``id`` where it comes from.
    """

    edge: str
    id: str = ""
    inverse: bool = False


class Query(msgspec.Struct, frozen=True):
    """A query. All filters must match; an empty one filters nothing."""

    type: str = ""
    """An entity type, "" for all entities, or "edge" for edges themselves."""
    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    status: str = ""
    where: tuple[AnyOf, ...] = ()
    """Conditions on fields: of each member at least one must hold."""
    has: tuple[Pattern, ...] = ()
    lacks: tuple[Pattern, ...] = ()
    text: str = ""
    """Words; each must occur in some text of the entity, whatever its case."""
    path: tuple[str, ...] = ()
    """Globs of files: only what is of one of them, or is said to be in one."""
    paths: tuple[str, ...] = ()
    """The known files that ``path`` means, of a checked query."""
    owned: OwnedFiles = NO_FILES
    """The owners of known files, of a checked query with a condition on ``owner``."""
    from_id: str = ""
    """Only what can be reached from this entity or edge, itself left out."""
    follow: tuple[str, ...] = ()
    """The edge types to go along, or with a leading ``^`` against; none means along all."""
    depth: int = 1
    reverse: bool = False
    """Go every way the other way."""
    edges: bool = False
    """Also answer the edges that touch the entities of the page."""
    at: int | None = None
    """The seq to answer from; None is the head."""
    sort: str = ""
    """A key, with a leading ``-`` for descending order."""
    fields: tuple[str, ...] = ()
    """The fields to show; none means all. See ``project``."""
    limit: int = limits.DEFAULT_PAGE_ROWS
    cursor: str = ""
    count: bool = False
    """Answer how many match, and none of them."""

    @property
    def is_edge(self) -> bool:
        """Return whether edges are asked for instead of entities."""
        return self.type == EDGE

    @property
    def names_hidden(self) -> bool:
        """Return whether a hidden type or the id of a hidden entity is named, so that hidden entities count."""
        named = [one.value for any_of in self.where for one in any_of if one.key == "type" and one.operator == "="]
        is_named = not HIDDEN.keys().isdisjoint((self.type, *named)) or any(map(is_hidden_id, self.ids))
        return is_named and not self.is_edge

    @property
    def names_owner(self) -> bool:
        """Return whether a condition is on the owner of entities."""
        return not self.is_edge and any(one.key == "owner" for any_of in self.where for one in any_of)


def check(
    query: Query,
    schema: Schema,
    known: DataNames | None = None,
    problems: Sequence[Problem] = (),
    *,
    root: str = "",
    start: str = "",
    named: Named = str,
    times: Times = span_of,
) -> Query:
    """Return the query with every field name in full, ready to be compiled.

    With ``known`` a name that neither the schema nor the data has is refused; an empty branch refuses none.
    ``problems`` were found before, when the texts of filters were parsed: what replaces them in the query
    is not looked at. ``root`` is the top of the worktree: paths in filters are made relative to it. They are given from
    ``start``, a folder from that top, or from the top itself, as answers name them: from ``start`` where something is
    of that file, or where they begin with a dot. ``named`` makes the messages name the arguments as they are given.
    ``times`` returns the span of a time in a condition, as ``span_of`` does.

    Raises: ``InvalidQuery`` with every problem in its details.
    """
    places = {problem.path for problem in problems}
    query = _with_globs(query)
    found = [
        *_text_problems(query, named),
        *_number_problems(query, named),
        *_type_problems(query, schema, known),
        *_edge_name_problems(query, schema),
        *_key_problems(query, _Names(query, schema, known), times),
        *_combination_problems(query, named),
    ]
    refuse([*problems, *(problem for problem in found if problem.path not in places)])
    fields = (field_of(name, is_edge=query.is_edge) for name in query.fields)

    def below(one: Condition) -> Condition:
        if one.operator not in {"=", "!="} or not is_path_key(one.key, is_edge=query.is_edge) or not one.value:
            return one
        path = worktree_path(one.value, root, start)
        if start and not one.value.startswith(("./", "../")) and not (known and known.is_path(path)):
            path = worktree_path(one.value, root)
        return msgspec.structs.replace(one, value=path)

    return msgspec.structs.replace(
        query,
        paths=known.paths_like([worktree_path(one, root, start) for one in query.path]) if known and query.path else (),
        owned=known.owned_files() if known and query.names_owner else NO_FILES,
        ids=tuple(dict.fromkeys(query.ids)),
        where=tuple(
            tuple(_timed(below(one), times, is_edge=query.is_edge) for one in any_of) for any_of in query.where
        ),
        fields=tuple(dict.fromkeys(name for name in fields if name)),
    )


def _with_globs(query: Query) -> Query:
    """Return a query with each condition that a path is like a glob, such as ``path=src/**/*.py``, as such a filter."""
    globs = [any_of[0].value for any_of in query.where if _is_glob(any_of)]
    if not globs:
        return query
    return msgspec.structs.replace(
        query, path=(*query.path, *globs), where=tuple(any_of for any_of in query.where if not _is_glob(any_of))
    )


def _is_glob(any_of: AnyOf) -> bool:
    """Return whether conditions are a single one that names files by a star."""
    return len(any_of) == 1 and (any_of[0].key, any_of[0].operator) == ("path", "=") and "*" in any_of[0].value


def _timed(one: Condition, times: Times, *, is_edge: bool) -> Condition:
    """Return a condition with the span of the time that its value means, where that is not the one of UTC.

    An attribute may have such words as its text: only in an order they mean a time.
    """
    key = key_of(one.key, is_edge=is_edge)
    if key is None or key.kind not in {"time", "member"} or not one.value or one.operator in {"~", "^="}:
        return one
    in_utc = span_of(one.value)
    if key.kind == "member" and (number_of(one.value) or (one.operator[0] not in "<>" and in_utc is None)):
        return one
    span = times(one.value)
    return one if span == in_utc else msgspec.structs.replace(one, span=span)


def refuse(problems: Sequence[Problem]) -> None:
    """Raise what is wrong with a query, if anything is. Raises: ``InvalidQuery``."""
    if len(problems) == 1:
        raise InvalidQuery(problems[0].message, hint=problems[0].remedy, details=problems, says_first=True)
    if problems:
        raise InvalidQuery(f"The query has {len(problems)} problems.", details=problems[: limits.MAX_PROBLEMS])


def empty_problems(given: Mapping[str, object], named: Named = str) -> list[Problem]:
    """Return a problem for each argument that is given and holds nothing: it would limit nothing, which is not meant.

    ``given`` is what was given, by the names of the arguments; ``named`` is as for ``check``. A text of white space
    holds nothing, and neither does an empty list or object.
    """
    return [
        Problem(
            f"$.{name}", "empty", f"`{named(name)}` is empty.", "Leave it out to limit nothing, or give it a value."
        )
        for name, value in given.items()
        if (isinstance(value, str) and not value.strip()) or (isinstance(value, list | dict) and not value)
    ]


class _Names:
    """The names of attributes and metadata that a query may use."""

    def __init__(self, query: Query, schema: Schema, known: DataNames | None) -> None:
        self._is_edge = query.is_edge
        self._known = known
        self._declared = {
            f"attributes.{name}"
            for one in (*schema.entities.values(), *(HIDDEN.values() if query.names_hidden else ()))
            for name in one.attributes
        }

    def has(self, field: str) -> bool:
        """Return whether the schema or the data has a field, by its full name; what is not known counts as yes."""
        if self._known is None or field in OBJECT_FIELDS or (field in self._declared and not self._is_edge):
            return True
        return self._known.has(field) or self._known.is_empty()

    def nearest(self, name: str, others: Iterable[str]) -> str:
        """Return a hint with the name that is most like a mistyped one, or how to find what is only shown."""
        if name == "stale" and not self._is_edge and name not in others:
            return (
                f"It is only shown. {kb('check', '--rule', 'unreadable-source', lead='Run')}, which lists those files."
            )
        there = {*(() if self._is_edge else self._declared), *(self._known.names() if self._known else ())}
        prefix, _, member = name.partition(".")
        other = _OTHER_NAMES.get((member or name).casefold())
        if other and (field := f"attributes.{other}") in there:
            return is_it([field if member else other])
        if not member:
            bare = () if self._is_edge else (field.removeprefix("attributes.") for field in there)
            return did_you_mean(name, dict.fromkeys([*others, *(there if "." in name else bare)]))
        # Names that have only the prefix in common are not alike.
        siblings = [field for field in sorted(there) if field.startswith(f"{prefix}.")]
        near = nearest(member, (field.removeprefix(f"{prefix}.") for field in siblings))
        if near:
            return f"Did you mean {in_quotes(f'{prefix}.{near}')}?"
        named = [other for other in others if other not in MEMBERS]
        return did_you_mean("" if prefix in OBJECT_FIELDS else name, siblings or dict.fromkeys([*named, *there]))


def _texts(query: Query) -> Iterable[tuple[str, str]]:
    for name in ("type", "status", "text", "from_id", "sort", "cursor"):
        yield f"$.{name.removesuffix('_id')}", getattr(query, name)
    for name in ("ids", "tags", "follow", "fields"):
        for at, value in enumerate(getattr(query, name)):
            yield f"$.{name}[{at}]", value
    for at, any_of in enumerate(query.where):
        for condition in any_of:
            yield f"$.where[{at}]", condition.key
            yield f"$.where[{at}]", condition.value
    for name in ("has", "lacks"):
        for at, pattern in enumerate(getattr(query, name)):
            yield f"$.{name}[{at}]", pattern.edge
            yield f"$.{name}[{at}]", pattern.id


def _text_problems(query: Query, named: Named) -> Iterable[Problem]:
    for path, text in _texts(query):
        fault = text_problem(text)
        if fault:
            yield Problem(path, "bad_text", f"An argument {fault.message}.", fault.hint)
    if query.text:
        yield from empty_problems({"text": query.text}, named)
    for name, what in (("ids", "id"), ("tags", "tag"), ("path", "glob")):
        for at, text in enumerate(getattr(query, name)):
            if not text:
                yield Problem(f"$.{name}[{at}]", "empty", f"The {what} is empty.", "Leave it out, or give it a value.")
    for at, glob in enumerate(query.path):
        why = "" if not glob or glob.startswith(("/", "../")) else glob_fault(glob.removeprefix("./") or ".")
        if why:
            yield Problem(f"$.path[{at}]", "bad_glob", f"{in_quotes(glob)} cannot be used as a glob: {why}.", _GLOB)


def _number_problems(query: Query, named: Named) -> Iterable[Problem]:
    bounds = (("limit", 1, limits.MAX_PAGE_ROWS), ("depth", 1, limits.MAX_TRAVERSAL_DEPTH))
    for name, least, most in bounds:
        value = getattr(query, name)
        if not least <= value <= most:
            hint = f"Give a number from {least} to {most}."
            if name == "limit" and value > most:
                hint = f"Use `{named('next_cursor')}` for more."
            yield Problem(f"$.{name}", "out_of_range", f"The {name} must be from {least} to {most}, not {value}.", hint)
    if query.at is not None and query.at < 0:
        yield Problem("$.at", "out_of_range", f"There is no seq {query.at}.", "The first record has seq 1.")
    if len(query.ids) > limits.MAX_QUERY_IDS:
        message = f"{len(query.ids)} ids were given; one query takes {limits.MAX_QUERY_IDS}."
        yield Problem("$.ids", "too_many", message, "Ask for them in several queries.")
    conditions = sum(map(len, query.where))
    if conditions > limits.MAX_QUERY_CONDITIONS:
        message = f"{conditions} conditions were given; one query takes {limits.MAX_QUERY_CONDITIONS}."
        yield Problem("$.where", "too_many", message, "Ask in several queries.")


def _type_problems(query: Query, schema: Schema, known: DataNames | None) -> Iterable[Problem]:
    if query.type and not query.is_edge and query.type not in {**schema.entities, **HIDDEN}:
        if known and known.is_id(query.type):
            message = f"{in_quotes(query.type)} is an id, and no entity type."
            yield Problem("$.type", "unknown_type", message, f"{kb('show', query.type)} shows it.")
            return
        if known and known.is_type(query.type):
            return  # the schema has it no more, and entities still do
        if query.type.casefold() in _CONFLICTS:
            decided = " ".join(known.decisions()) if known else ""
            hint = f"{kb('resolve')} lists what changes state differently. {decided}".rstrip()
            yield Problem("$.type", "unknown_type", f"There is no entity type {in_quotes(query.type)}.", hint)
            return
        near = near_ones(query.type, schema.entities) or near_ones(query.type, [EDGE], least_alike=_LIKE_EDGE)
        hint = is_it(near) or f"{did_you_mean('', [*schema.entities, EDGE])} {how_to_add(TYPE, query.type)}"
        yield Problem("$.type", "unknown_type", f"There is no entity type {in_quotes(query.type)}.", hint)


def _edge_name_problems(query: Query, schema: Schema) -> Iterable[Problem]:
    named = [(f"$.follow[{at}]", name.removeprefix("^")) for at, name in enumerate(query.follow)]
    for name in ("has", "lacks"):
        named += [(f"$.{name}[{at}]", pattern.edge) for at, pattern in enumerate(getattr(query, name))]
    for path, edge in named:
        if edge not in schema.edges:
            yield Problem(
                path, "unknown_edge", f"There is no edge type {in_quotes(edge)}.", did_you_mean(edge, schema.edges)
            )


def _key_problems(query: Query, names: _Names, times: Times) -> Iterable[Problem]:
    is_edge = query.is_edge
    what = "edges" if is_edge else "entities"
    hints = key_names(is_edge=is_edge)
    for at, one in ((at, one) for at, any_of in enumerate(query.where) for one in any_of):
        key, path = key_of(one.key, is_edge=is_edge), f"$.where[{at}]"
        if key is None or not names.has(_field(key)):
            message = f"{what.capitalize()} have no {in_quotes(one.key)}."
            yield Problem(path, "unknown_key", message, _key_hint(one, names, hints, is_edge=is_edge))
        elif one.operator not in ALLOWED[key.kind]:
            hint = f"It takes {', '.join(f'`{operator}`' for operator in ALLOWED[key.kind])}."
            yield Problem(path, "bad_operator", f"`{one.key}` cannot be compared with `{one.operator}`.", hint)
        elif key.kind == "member" and one.operator[0] in "<>" and is_relative_time(one.value) and not times(one.value):
            message = f"`{one.key}` cannot be compared with {in_quotes(one.value)}."
            hint = f"Write the date or the time, for example `{one.key}{one.operator}{_EXAMPLES['time']}`."
            yield Problem(path, "bad_value", message, hint)
        elif key.kind in _EXAMPLES:
            fault = _value_fault(key, one.value, times) if one.value or one.operator not in {"=", "!="} else ""
            if fault:
                hint = f"For example `{one.key}{one.operator}{_EXAMPLES[key.kind]}`."
                yield Problem(path, "bad_value", f"`{one.key}` is {fault}, not {in_quotes(one.value)}.", hint)
    name = query.sort.removeprefix("-")
    key = key_of(name, is_edge=is_edge)
    if query.sort and (key is None or key.kind == "list" or not names.has(_field(key))):
        message = f"{what.capitalize()} cannot be sorted by {in_quotes(name)}."
        keys = [(hint, key_of(hint, is_edge=is_edge)) for hint in hints]
        sortable = [hint for hint, key in keys if key is None or key.kind != "list"]
        is_list = key is not None and key.kind == "list"
        hint = f"It is a list. {did_you_mean('', sortable)}" if is_list else names.nearest(name, sortable)
        yield Problem("$.sort", "unknown_key", message, hint)
    for at, asked in enumerate(query.fields):
        field = field_of(asked, is_edge=is_edge)
        if field is None or ("." in field and not names.has(field)):
            message = f"{what.capitalize()} have no field {in_quotes(asked)}."
            hint = names.nearest(asked, field_names(is_edge=is_edge))
            yield Problem(f"$.fields[{at}]", "unknown_field", message, hint)


def _key_hint(one: Condition, names: _Names, known: Sequence[str], *, is_edge: bool) -> str:
    """Return the remedy for a condition on what nothing has."""
    if one.key.casefold() in _PATH_NAMES:
        return is_it(["source" if is_edge else "path"])
    if not one.key.endswith(":"):
        return names.nearest(one.key, known)
    plain = msgspec.structs.replace(one, key=one.key.rstrip(":"))  # `:=` is an operator of `kb set`
    key = key_of(plain.key, is_edge=is_edge)
    if key and names.has(_field(key)):
        return is_it([plain.as_text()])
    return f"It is written {in_quotes(plain.as_text())}. {names.nearest(plain.key, known)}"


def _field(key: Key) -> str:
    """Return the full name of what a key means."""
    return f"{key.column}.{key.member}" if key.kind == "member" else OBJECT_FIELDS[0]


def _value_fault(key: Key, value: str, times: Times) -> str:
    """Return what a value should be and is not, or the empty text."""
    if key.kind == "flag":
        return "" if value in {"true", "false"} else "true or false"
    if key.kind == "time":
        return "" if times(value) else "a time"
    return "" if number_of(value) else "a number"


def _combination_problems(query: Query, named: Named) -> Iterable[Problem]:
    if query.is_edge:
        for name in ("tags", "status", "has", "lacks", "text", "from_id"):
            if getattr(query, name):
                word = name.removesuffix("_id")
                hint = f"Use `{named('where')}` with `type=`, `from=`, `to=` or `source=`, or ask for entities."
                yield Problem(f"$.{word}", "not_for_edges", f"`{named(word)}` does not apply to edges.", hint)
        yield from _edge_id_problems(query, named)
    if query.text and query.names_hidden:
        message = f"`{named('text')}` does not search in entities of the type {' or '.join(HIDDEN)}."
        hint = f"Use `{named('where')}` with `text~`, or leave the type out."
        yield Problem("$.text", "not_for_hidden", message, hint)
    if query.count and query.cursor:
        message = f"`{named('count')}` counts the whole answer, and `{named('cursor')}` continues one."
        yield Problem("$.count", "not_with_cursor", message, "Leave one of them out.")
    if not query.from_id:
        hint = f"Name an entity with `{named('from')}`."
        for name in ("follow", "reverse"):
            if getattr(query, name):
                yield Problem(f"$.{name}", "needs_from", f"`{named(name)}` needs a place to start.", hint)
        if query.depth > 1:
            yield Problem("$.depth", "needs_from", f"`{named('depth')}` needs a place to start.", hint)


def _edge_id_problems(query: Query, named: Named) -> Iterable[Problem]:
    """Yield a problem for each id of an entity in the place of an edge's."""
    given = [(f"$.ids[{at}]", key) for at, key in enumerate(query.ids)]
    given += [
        (f"$.where[{at}]", one.value)
        for at, any_of in enumerate(query.where)
        for one in any_of
        if one.key == "id" and one.operator in {"=", "!="}
    ]
    for path, key in given:
        if key and not is_link_id(key):
            hint = f"Use `{named('where')}` with `from={key}` or `to={key}` for the edges of an entity."
            yield Problem(path, "not_for_edges", f"{in_quotes(key)} is no id of an edge.", hint)


T = TypeVar("T")
NO_PATTERN: Final = Pattern("")
"""Takes the place in a query of a pattern that could not be read."""


def parse_pattern(text: str) -> Pattern:
    """Return the pattern that ``verified_by``, ``depends_on:REQ-1`` or ``^implements:SYM-9`` means.

    Raises: ``InvalidQuery`` when the edge or, after a colon, the id is missing.
    """
    body = text.removeprefix("^")
    edge, colon, end = body.partition(":")
    if not edge or (colon and not end):
        hint = "Write EDGE, EDGE:ID or ^EDGE:ID, for example `verified_by` or `^implements:SYM-9`."
        raise InvalidQuery(f"{in_quotes(text)} names no {'id' if edge else 'edge'}.", hint=hint)
    return Pattern(edge, end, inverse=body != text)


def parse_each(
    name: str, texts: Iterable[str], parse: Callable[[str], T], unread: T, problems: list[Problem]
) -> tuple[T, ...]:
    """Return what each text of a filter means; ``unread`` takes the place of one that is added to the problems."""
    found = []
    for at, text in enumerate(texts):
        try:
            found.append(parse(text))
        except InvalidQuery as error:
            problems.append(Problem(f"$.{name}[{at}]", "bad_value", error.message, error.remedy))
            found.append(unread)
    return tuple(found)
