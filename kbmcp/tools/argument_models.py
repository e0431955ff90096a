"""The arguments of the tools: their models, what is wrong with those that do not fit, and the published schemas.

Nothing is coerced and nothing unknown is ignored. A changeset is read by the core, which reports all that is wrong with
it at once; here its shape is only described.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kbcore import limits
from kbcore.errors import Problem
from kbcore.errors.remedies import kb
from kbcore.model.changeset import Mode
from kbcore.text.suggest import nearest
from kbcore.text.wording import one_of
from kbmcp.tools.refusals import allowed_names, must_be, wrong_kind

Schema = dict[str, Any]

_EDGE_TYPES: Final = {"x-names": "edges"}
_ANY_TYPE: Final = {"x-names": "either"}
"""Marks in a model for the names of the live schema."""

_TEXTS: Final = {"x-texts": True}
"""The mark of what is published as a list of texts, although more is understood."""

_TEXT: Final = {"x-text": True}
"""The mark of what is published as a text, although a number is understood: clients of strict schemas send one kind."""

_NUMBER: Final = {"x-number": True}
"""The mark of what is published as a whole number, although a text is understood, for the same reason."""

_IS_RARE: Final[dict[str, Any]] = {"x-rare": True}
"""The mark of what is understood and rarely needed: the listing names it, and no more."""

_TEXT_OR_TEXTS: Final = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
"""The published shape of an argument that is one text or several."""

_LIMIT_NOTHING: Final = {"message"}
Texts = list[str]
_EXPECTED: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
}
_OF_OTHERS: Final = {
    "sync": f"{kb('sync', lead='Run')} to record what the files say. ",
}
"""The hint for an argument that only another tool has, by its name."""


def _without_default(schema: Schema) -> None:
    del schema["default"]


def _rare(description: str = "", marks: Mapping[str, Any] | None = None) -> Any:
    """Return the field of an argument that is rarely needed."""
    return Field(description=description or None, json_schema_extra={**_IS_RARE, **(marks or {})})


_RARE: Final = _rare()
M = TypeVar("M", bound=BaseModel)


class SchemaNames(msgspec.Struct, frozen=True):
    """The names that the live schema knows, for the enums of the published schemas; empty for too many of them."""

    entities: tuple[str, ...]
    edges: tuple[str, ...]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class QueryArguments(_Model):
    """The arguments of ``kb_query``; the members are those of ``kbcore.query.Query``."""

    type: Annotated[str, Field(json_schema_extra=_ANY_TYPE)] = ""
    ids: Texts = []
    tags: Annotated[Texts, _RARE] = []
    status: Annotated[str, _RARE] = ""
    where: Annotated[
        list[Any] | dict[str, Any], Field(description="KEY=VALUE; != < > ~ ^= OR", json_schema_extra=_TEXTS)
    ] = []
    has: Annotated[Texts, Field(description="EDGE, EDGE:ID, ^EDGE")] = []
    lacks: Annotated[Texts, _RARE] = []
    text: str = ""
    from_: Annotated[str, Field(alias="from")] = ""
    follow: Annotated[Texts, _RARE] = []
    depth: Annotated[int, _RARE] = 1
    reverse: Annotated[bool, _RARE] = False
    edges: Annotated[bool, _RARE] = False
    provenance: Annotated[bool, _RARE] = False
    count: Annotated[bool, _RARE] = False
    at: Annotated[int | str | None, _rare("seq, time, revision", _TEXT)] = None
    sort: Annotated[str, _rare("KEY, -KEY")] = ""
    fields: Texts = []
    body: Annotated[bool, _RARE] = False
    coverage: Annotated[bool, _RARE] = False
    impact: Annotated[bool, _RARE] = False
    limit: Annotated[int, _RARE] = limits.DEFAULT_PAGE_ROWS
    cursor: Annotated[str, _RARE] = ""
    context: Annotated[dict[str, Any] | None, Field(description="paths, ids, diff, budget")] = None
    queries: list[dict[str, Any]] = []


class ContextArguments(_Model):
    """The members of ``context`` of ``kb_query``; ``budget`` is in tokens of the whole answer."""

    paths: Texts = []
    ids: Texts = []
    diff: bool = False
    budget: int | None = None


class _EntityShape(_Model):
    id: str = ""
    type: str = ""
    title: str = ""
    status: str = ""
    attributes: dict[str, Any] = {}
    tags: Annotated[Texts, _RARE] = []
    owner: Annotated[str, _RARE] = ""
    priority: Annotated[str, _RARE] = ""
    severity: Annotated[str, _RARE] = ""
    links: Annotated[Texts, _RARE] = []
    text_ref: Annotated[str, _RARE] = ""
    metadata: Annotated[dict[str, Any], _RARE] = {}


class _EdgeShape(_Model):
    type: Annotated[str, Field(json_schema_extra=_EDGE_TYPES)]
    from_: Annotated[str, Field(alias="from")]
    to: str
    kind: str = ""


class UpsertArguments(_Model):
    """The arguments of ``kb_upsert``, as published. The changeset in it is read by ``kbcore.model.changeset`` only."""

    entities: Annotated[list[Any], Field(json_schema_extra={"x-items": "_EntityShape"})] = []
    edges: Annotated[list[Any], Field(json_schema_extra={"x-items": "_EdgeShape"})] = []
    message: str = ""
    changeset_id: Annotated[str, _rare("applied once")] = ""
    expected_seq: Annotated[int | None, _rare("if unchanged")] = None
    mode: Annotated[Mode, _RARE] = "upsert"
    expect_branch: Annotated[str, _RARE] = ""
    dry_run: Annotated[bool, _RARE] = False
    sync: Annotated[bool, Field(description="files first")] = False
    rename: Annotated[dict[str, Any], Field(description="old: new")] = {}


class _EntityKey(_Model):
    id: str
    expected_version: int


class _EdgeKey(_Model):
    type: str
    from_: Annotated[str, Field(alias="from")]
    to: str
    kind: str = ""


class DeleteArguments(_Model):
    """The arguments of ``kb_delete``; its changeset as in ``UpsertArguments``."""

    entities: Annotated[list[Any], Field(json_schema_extra={"x-items": "_EntityKey"})] = []
    edges: Annotated[list[Any], Field(json_schema_extra={"x-items": "_EdgeKey", **_IS_RARE})] = []
    cascade: Annotated[bool, _RARE] = False
    purge: Annotated[bool, _rare("also out of the history; a person confirms")] = False
    message: Annotated[str, _RARE] = ""
    expect_branch: Annotated[str, _RARE] = ""
    dry_run: Annotated[bool, _RARE] = False


class CheckArguments(_Model):
    """The arguments of ``kb_check``: the rules to run and what to report on; none means all."""

    rules: Annotated[Texts, _RARE] = []
    ids: Texts = []
    paths: Annotated[Texts, _RARE] = []
    severity: Annotated[Literal["error", "warning"] | None, _RARE] = None
    statistics: Annotated[bool, _RARE] = False
    since: Annotated[int | str | None, Field(json_schema_extra=_TEXT)] = None
    against: Annotated[str | None, _rare("REF to merge", _TEXT)] = None
    actor: Annotated[str, _RARE] = ""
    session: Annotated[str, _RARE] = ""
    limit: Annotated[int | None, _RARE] = None
    cursor: Annotated[str, _RARE] = ""


class HistoryArguments(_Model):
    """The arguments of ``kb_history``."""

    action: Literal["log", "show", "diff", "who", "revert", "rollback", "proposed", "accept", "reject"]
    id: str = ""
    field: Annotated[str, _RARE] = ""
    seq: Annotated[int | str | None, Field(json_schema_extra=_NUMBER)] = None
    to: Annotated[int | str | None, Field(json_schema_extra=_TEXT)] = None
    since: Annotated[int | str | None, Field(description="1h, yesterday", json_schema_extra=_TEXT)] = None
    until: Annotated[int | str | None, _rare("", _TEXT)] = None
    actor: Annotated[str, _RARE] = ""
    session: Annotated[str, _RARE] = ""
    limit: Annotated[int, _RARE] = 20
    cursor: Annotated[str, _RARE] = ""
    message: Annotated[str, _RARE] = ""
    dry_run: bool = False
    force: Annotated[bool, _RARE] = False
    files: Annotated[bool, _RARE] = False
    expect_branch: Annotated[str, _RARE] = ""


class SleepArguments(_Model):
    """The arguments of ``kb_sleep``; ``kind`` is one of those of ``kbcore.kip.sleep.worklist``, None for all."""

    action: Literal["list", "try", "run"] = "list"
    kind: Literal["task", "duplicate", "event", "unsorted", "domain"] | None = None
    limit: Annotated[int, Field(json_schema_extra={"minimum": 1, "maximum": limits.MAX_SLEEP_PAGE})] = 20
    cursor: Annotated[str, Field(description="next_cursor")] = ""
    force: Annotated[bool, Field(description="run: also within the interval since the last cycle")] = False
    expect_branch: str = ""


class ClausesArguments(_Model):
    """The arguments of ``clauses``. An element that is no text is an outcome of its own, not a wrong argument."""

    operation: Literal["assert", "retract"]
    clauses: Annotated[str | list[Any], Field(json_schema_extra={"x-shape": _TEXT_OR_TEXTS})]
    changeset_id: str = ""


class FilesArguments(_Model):
    """The arguments of ``files``; all operations but ``list`` need a file."""

    operation: Literal["import", "unimport", "list"]
    filename: str = ""

    @property
    def writes(self) -> bool:
        """Return whether the operation writes."""
        return self.operation != "list"


class WorkspaceArguments(_Model):
    """The arguments of ``workspace``."""

    operation: Literal["snapshot", "reset", "list_symbols"]

    @property
    def writes(self) -> bool:
        """Return whether the operation writes."""
        return self.operation == "reset"


class QueryStartArguments(_Model):
    """The arguments of ``query_start``."""

    query: str
    use_engine: Annotated[bool, Field(json_schema_extra=_without_default)] = True
    """False is the standard mode."""


class NoArguments(_Model):
    """The arguments of a tool that takes none."""


class HelpArguments(_Model):
    """The arguments of ``help``; without a topic it answers all of them."""

    topic: Literal["overview", "tools", "prompts", "modes", "security", "examples"] | None = None


_SHAPES: Final = {shape.__name__: shape for shape in (_EntityShape, _EdgeShape, _EntityKey, _EdgeKey)}


def read(model: type[M], given: Mapping[str, Any]) -> tuple[M | None, list[Problem]]:
    """Return the arguments, and everything that is wrong with them. A null means an absent argument.

    Wrong arguments are left out, so that the rest can be checked as well; None where they make no
    sense without it.
    """
    present = {name: value for name, value in given.items() if value is not None}
    empty = _empty_problems(model, present)
    for problem in empty:
        del present[problem.path.removeprefix("$.")]
    try:
        return model.model_validate(present), empty
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=True, include_input=False)
    problems: dict[str, Problem] = {}
    for fault in faults:
        path, value = _place(given, fault["loc"])
        problem = _problem(model, path, value, fault)
        before = problems.get(path)
        if before and before.code == problem.code == "wrong_type":
            kinds = tuple(dict.fromkeys((*before.values, *problem.values)))
            problem = wrong_kind(path, kinds, value, before.remedy)
        problems[path] = problem
    wrong = {fault["loc"][0] for fault in faults}
    found = [*problems.values(), *empty]
    try:
        return model.model_validate({name: present[name] for name in present if name not in wrong}), found
    except ValidationError:
        return None, found


def _empty_problems(model: type[BaseModel], present: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with arguments that hold nothing. Those that limit nothing may be empty."""
    from kbcore.query import empty_problems

    limiting = {field.alias or name for name, field in model.model_fields.items() if not field.is_required()}
    return empty_problems({name: present[name] for name in present if name in limiting - _LIMIT_NOTHING})


def names_of(model: type[BaseModel]) -> list[str]:
    """Return the names of the arguments, as a client writes them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def _place(given: Any, location: tuple[int | str, ...]) -> tuple[str, Any]:
    """Return the JSON path of a fault and the value there; what pydantic adds about unions is no part of it."""
    path, value = "$", given
    for step in location:
        if isinstance(value, dict) and step in value:
            path, value = f"{path}.{step}", value[step]
        elif isinstance(value, list) and isinstance(step, int):
            path, value = f"{path}[{step}]", value[step]
        elif path == "$":
            path, value = f"$.{step}", None
    return path, value


def _problem(model: type[BaseModel], path: str, value: Any, fault: Any) -> Problem:
    name, allowed = path[2:], allowed_names(names_of(model))
    if fault["type"] == "extra_forbidden":
        near = nearest(name, names_of(model))
        hint = _OF_OTHERS.get(name) or (f"Did you mean {near!r}? " if near else "")
        return Problem(path, "unknown_argument", f"There is no argument {name!r}.", hint + allowed)
    if fault["type"] == "missing":
        values = one_of(model.model_json_schema(by_alias=True)["properties"][name].get("enum", [""]))
        return Problem(path, "missing_argument", f"`{name}` is missing{values and f': {values}'}.", allowed)
    if fault["type"] == "literal_error":
        return Problem(path, "bad_value", f"`{name}` {must_be([fault['ctx']['expected']])}.", "")
    expected = _EXPECTED.get(fault["type"])
    if expected is None:
        return Problem(path, "bad_value", f"`{name}`: {fault['msg']}.", "")
    hint = ""
    if expected == "a whole number" and isinstance(value, str) and value.isdecimal():
        hint = f"Write {value} without quotes."
    elif expected == "a list" and isinstance(value, str):
        hint = "Put it in brackets, even if it is only one."
    return wrong_kind(path, (expected,), value, hint)


def published(
    model: type[BaseModel], names: SchemaNames, hidden: Collection[str] = (), *, is_brief: bool = False
) -> Schema:
    """Return the JSON Schema that clients see: local, without titles, with the names of the live schema as enums.

    ``hidden`` are arguments, and values of an argument, that are not offered. A brief schema leaves out rarely needed
    ones too, and allows more arguments than it has: ``rare`` names them, and a call with an unknown one is refused all
    the same.
    """
    whole = _tidy(_brief(model) if is_brief else model.model_json_schema(by_alias=True), names, is_brief=is_brief)
    whole["properties"] = {name: part for name, part in whole["properties"].items() if name not in hidden}
    for part in whole["properties"].values():
        if "enum" in part:
            part["enum"] = [value for value in part["enum"] if value not in hidden]
        choices = [choice for choice in part.get("anyOf", []) if choice != {"type": "null"}]
        if len(choices) == 1:  # a null argument is an absent one; only inside a changeset does it mean something
            part.pop("anyOf")
            part.update(choices[0])
        elif choices:
            part["anyOf"] = choices
    return whole


def rare(model: type[BaseModel], hidden: Collection[str] = ()) -> list[str]:
    """Return the names of the arguments that the schema leaves out, but those that are not offered."""
    return [
        field.alias or name
        for name, field in model.model_fields.items()
        if isinstance(field.json_schema_extra, dict) and "x-rare" in field.json_schema_extra and name not in hidden
    ]


def _brief(model: type[BaseModel]) -> Schema:
    """Return the schema of a model without what is rarely needed."""
    whole = model.model_json_schema(by_alias=True)
    if left_out := rare(model):
        whole["properties"] = {name: part for name, part in whole["properties"].items() if name not in left_out}
        whole.pop("additionalProperties", None)
    return whole


def _tidy(part: Schema, names: SchemaNames, *, is_brief: bool = False) -> Schema:
    """Return a schema of pydantic's without what says nothing to a client, and with its marks filled in."""
    if "x-shape" in part:
        return dict(part["x-shape"])
    if "x-texts" in part:
        return {"description": part["description"], "type": "array", "items": {"type": "string"}}
    if "x-text" in part:
        return {key: part[key] for key in ("description",) if key in part} | {"type": "string"}
    if "x-number" in part:
        return {key: part[key] for key in ("description",) if key in part} | {"type": "integer"}
    kept = {key: _member(key, value, names, is_brief=is_brief) for key, value in part.items() if _says(key, value)}
    if "x-names" in kept and (listed := kept.pop("x-names")):
        kept["enum"] = listed
    if "x-items" in kept:
        kept["items"] = kept.pop("x-items")
    if "properties" in kept:
        kept.pop("description", "")  # the docstring of the model, which is for its readers
    return kept


def _member(key: str, value: Any, names: SchemaNames, *, is_brief: bool) -> Any:
    if key == "properties":
        return {name: _tidy(member, names, is_brief=is_brief) for name, member in value.items()}
    if key == "x-names":
        either = (*names.entities, "edge") if names.entities else ()
        return list({"entities": names.entities, "edges": names.edges, "either": either}[value])
    if key == "x-items":
        shape = _SHAPES[value]
        shown = _tidy(_brief(shape) if is_brief else shape.model_json_schema(by_alias=True), names)
        shown.pop("additionalProperties", None)  # there are more members than the ones worth showing
        if not is_brief:
            return shown
        shown.pop("required", None)  # a call that lacks something is refused with all that it lacks
        return shown | ({"description": f"Also {', '.join(more)}"} if (more := rare(shape)) else {})
    if isinstance(value, list):
        return [_tidy(item, names) if isinstance(item, dict) else item for item in value]
    return _tidy(value, names) if isinstance(value, dict) else value


def _says(key: str, value: Any) -> bool:
    """Tell whether a member of a schema says anything to a client."""
    is_open = key == "additionalProperties" and value is not False
    return not (key in {"title", "x-rare"} or (key == "default" and not value) or is_open)
