"""Tools that a program may call with `exec/2`, and the policy of a run: which of them it may call.

A tool is a name, a description, a schema of the arguments, and a function.

Invariant: a function is called only with arguments that its schema admits.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

import msgspec

from kbcore.dml.values import NotAValue, builtins_of
from kbcore.process.daemon_calls import in_daemon
from kbcore.text.globs import naming
from kbcore.text.wording import shortened

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
"""The names that models take for a tool, and that are atoms of Prolog in quotes or without."""
_REASON_CHARS: Final = 1_000
"""Of what an exception says."""


class ToolFailed(Exception):
    """A tool could not be called, or raised. The goal fails, and the reason is logged."""


class Origin(msgspec.Struct, frozen=True):
    """The point of a run at which a tool is called: in or after which task, counted from 1; 0 before the first one."""

    task: int = 0


class Tool(msgspec.Struct, frozen=True):
    """One tool. ``parameters`` is the JSON Schema of its arguments, ``validated`` makes them fit for the function.

    ``writes`` says that it changes something: such a tool is only run where a policy allows it by name.
    ``takes_origin`` says that its function takes an ``Origin`` before the arguments.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    execute: Callable[..., Any]
    validated: Callable[[dict[str, Any]], dict[str, Any]]
    writes: bool = False
    takes_origin: bool = False

    def bound(self, positional: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments by name; those without a name are those of the schema in its order.

        Raises:
            ToolFailed: there are too many of them, or one is named twice.
        """
        names = [*self.parameters.get("properties", {})]
        if len(positional) > len(names):
            expected = f"it takes {', '.join(names)}" if names else "it takes none"
            raise ToolFailed(f"{len(positional)} arguments were given; {expected}")
        found = dict(zip(names, positional, strict=False))
        if twice := sorted(found.keys() & named.keys()):
            raise ToolFailed(f"the argument {twice[0]} was given twice")
        return found | dict(named)

    async def call(self, arguments: dict[str, Any], origin: Origin = Origin()) -> Any:  # noqa: B008 - frozen
        """Return the result as a value of JSON.

        A function that is not async runs in a thread, which a run that ends leaves alone.

        Raises:
            ToolFailed: the arguments do not fit, the function raised, or its result is no value of JSON.
        """
        try:
            fitting = self.validated(arguments)
        except ValueError as error:
            raise ToolFailed(_reason(error)) from error
        try:
            before = (origin,) if self.takes_origin else ()
            if inspect.iscoroutinefunction(self.execute):
                result = await self.execute(*before, **fitting)
            else:
                result = await in_daemon(partial(self.execute, *before, **fitting), f"kb-dml {self.name}")
                if inspect.isawaitable(result):
                    result = await result
        except (Exception, SystemExit) as error:  # whatever a tool raises is its failure, not the program's
            raise ToolFailed(_reason(error)) from error
        try:
            return builtins_of(result)
        except NotAValue as error:
            raise ToolFailed(f"its result is no value of JSON: {error}") from error


class Policy(msgspec.Struct, frozen=True):
    """A list of names with wildcards (`read_*`): those that may be used, or those that may not.

    What ``denied`` names may not be used either way. Names are compared with upper and lower case.
    """

    mode: Literal["whitelist", "blacklist"]
    tools: tuple[str, ...] | list[str]
    denied: tuple[str, ...] | list[str] = ()

    def refusal(self, name: str) -> str:
        """Return why a tool may not be used, "" where it may."""
        named = naming(self.tools, name)
        denied = naming(self.denied, name) or (named if self.mode == "blacklist" else None)
        if denied:
            return f"the policy denies `{denied}`"
        return "" if named or self.mode == "blacklist" else "it is not on the list of allowed tools"


class Toolset:
    """The tools of a run and their policy."""

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = (), policy: Policy | None = None) -> None:
        self._tools: dict[str, Tool] = {}
        self._makers: dict[str, Callable[[], Tool]] = {}
        """The functions that make the tools that are made when they are first looked for, by their names."""
        self.policy = policy
        for one in tools:
            self.add(one if isinstance(one, Tool) else tool_of(one))

    def add(self, tool: Tool) -> None:
        """Add a tool. Raises: ``ValueError`` where its name is taken or no name."""
        if not NAME.fullmatch(tool.name):
            raise ValueError(f"{tool.name!r} is no name of a tool: letters, digits and `_`, at most 64")
        self._refuse_known(tool.name)
        self._tools[tool.name] = tool

    def add_later(self, names: Iterable[str], make: Callable[[str], Tool]) -> None:
        """Add tools of which each is made when it is first looked for. Raises: ``ValueError`` where a name is taken."""
        for name in names:
            self._refuse_known(name)
            self._makers[name] = partial(make, name)

    def _refuse_known(self, name: str) -> None:
        if name in self._tools or name in self._makers:
            raise ValueError(f"there are two tools with the name {name}")

    def register_tool(self, name: str, description: str, parameters: Any, execute: Callable[..., Any]) -> None:
        """Add a tool with this name. ``parameters`` is a pydantic model, or None for the signature of the function.

        Raises:
            ValueError: the name is taken, or is none; a parameter has no type that a schema can have.
        """
        made = tool_of(execute, parameters)
        self.add(msgspec.structs.replace(made, name=name, description=description))

    def under(self, policy: Policy) -> Toolset:
        """Return the same tools under another policy."""
        found = Toolset(self._tools.values(), policy)
        found._makers = dict(self._makers)
        return found

    def find(self, name: str) -> Tool | None:
        """Return the tool with a name."""
        if name not in self._tools and name in self._makers:
            self._tools[name] = self._makers.pop(name)()
        return self._tools.get(name)

    def refusal(self, name: str) -> str:
        """Return why a tool is not run, "" where it is: the policy forbids it, or it writes and none allows it."""
        if self.policy and (refusal := self.policy.refusal(name)):
            return refusal
        tool = self.find(name)
        is_named = self.policy is not None and self.policy.mode == "whitelist"
        return "it writes, and no policy allows it by name" if tool and tool.writes and not is_named else ""

    @property
    def names(self) -> list[str]:
        """Return the names of all tools, in their order."""
        return [*self._tools, *self._makers]


def tool_of(function: Callable[..., Any], model: Any = None) -> Tool:
    """Return the tool that a function is: its name, its docstring, and the schema of its annotations or of a model.

    Raises:
        ValueError: the function has `*args` or `**kwargs`, or an annotation has no schema.
    """
    from pydantic import BaseModel, ConfigDict, create_model  # noqa: PLC0415 - half of the start of a command
    from pydantic.errors import PydanticUserError  # noqa: PLC0415

    name = getattr(function, "__name__", type(function).__name__)
    if model is None:
        fields: dict[str, Any] = {}
        try:
            signature = inspect.signature(function, eval_str=True)
        except NameError as error:
            raise ValueError(f"the tool {name} has a parameter that has no schema: {error}") from error
        for parameter in signature.parameters.values():
            if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
                raise ValueError(f"the tool {name} has a parameter without a name of its own: {parameter}")
            type_ = Any if parameter.annotation is parameter.empty else parameter.annotation
            fields[parameter.name] = (type_, ... if parameter.default is parameter.empty else parameter.default)
        try:
            model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        except PydanticUserError as error:
            raise ValueError(f"the tool {name} has a parameter that has no schema: {error}") from error
    if not issubclass(model, BaseModel):
        raise TypeError(f"the parameters of {name} are a pydantic model, or None")  # a defect of the caller
    try:
        schema = model.model_json_schema()
    except PydanticUserError as error:
        raise ValueError(f"the tool {name} has a parameter that has no schema: {error}") from error
    schema.pop("title", None)

    def validated(arguments: dict[str, Any]) -> dict[str, Any]:
        made = model.model_validate(arguments)
        return {field: getattr(made, field) for field in type(made).model_fields}

    description = inspect.cleandoc(function.__doc__ or "")
    return Tool(name, description, schema, function, validated)


def _reason(error: BaseException) -> str:
    """Return what an exception says on one line, its type where it says nothing."""
    from pydantic import ValidationError  # noqa: PLC0415 - half of the start of a command

    if isinstance(error, ValidationError):  # one sentence for each argument
        said = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors())
    else:
        try:
            said = " ".join(str(error).split())
        except Exception:  # noqa: BLE001 - of a tool of the caller, as the exception itself
            said = ""
    return shortened(said or type(error).__name__, _REASON_CHARS)
