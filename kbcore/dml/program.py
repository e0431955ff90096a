"""A program as an engine has loaded it: its tools and params, and the arguments of its `agent_main`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.dml.findings import problem_of
from kbcore.dml.tools import NAME
from kbcore.errors import Problem, ProgramFailed
from kbcore.limits import MAX_PROBLEMS, MAX_PROGRAM_CHARS
from kbcore.logic.engine.terms import string
from kbcore.logic.nesting import TOO_DEEP, deep_clauses
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean, near_ones
from kbcore.text.wording import pluralize

MAIN: Final = "agent_main"


class ProgramTool(msgspec.Struct, frozen=True):
    """A tool that the program defines for the models of its tasks, with the text of its clauses."""

    name: str
    inputs: int
    description: str
    source: str
    line: int


class Param(msgspec.Struct, frozen=True):
    """A value that the program is given, as `:- param(…)` declares it; ``kind`` is what follows the colon."""

    key: str
    kind: str
    description: str
    line: int


class Program(msgspec.Struct, frozen=True):
    """A program as an engine reads it. ``mains`` has the names of the arguments of each clause of `agent_main`.

    A name is None where the argument is no variable. ``asked`` has the keys that goals `param(…)` name.
    """

    tools: tuple[ProgramTool, ...]
    params: tuple[Param, ...]
    mains: tuple[tuple[str | None, ...], ...]
    asked: tuple[str, ...]

    def tool(self, name: str) -> ProgramTool | None:
        """Return the tool with a name."""
        return next((one for one in self.tools if one.name == name), None)


class RunArguments(msgspec.Struct, frozen=True):
    """The arguments of `agent_main`, and the values that `param(…)` gives."""

    arguments: tuple[Any, ...]
    params: dict[str, Any]


def load_request(text: str, file: str = "") -> str:
    """Return the request to an engine that loads a program.

    Raises:
        ProgramFailed: it is too long, or a clause is nested more deeply than an engine can read.
    """
    if len(text) > MAX_PROGRAM_CHARS:
        raise ProgramFailed(f"The program has {len(text):,} characters; {MAX_PROGRAM_CHARS:,} are the most.")
    if deep := deep_clauses(text):
        raise _cannot_be_run([Problem("$", "too_deep", TOO_DEEP, source=file, line=one.line) for one in deep])
    return f"program({string(text)}).\n"


def program_of(reply: Mapping[str, Any], text: str, file: str = "") -> Program:
    """Return what an engine has loaded.

    Raises:
        ProgramFailed: a clause cannot be used, or there is no `agent_main`; the details name each place.
    """
    problems = [problem_of(one, text, file) for one in reply["failed"]]
    items = reply["items"]
    tools: dict[str, ProgramTool] = {}
    for item in items:
        if "tool" not in item:
            continue
        name, source = item["tool"], text[item["start"] : item["end"]]
        if not NAME.fullmatch(name):
            message = f"The tool {in_quotes(name)} needs a name of letters, digits and `_`, at most 64 of them."
            problems.append(Problem("$", "tool_name", message, source=file, line=item["line"]))
        known = tools.get(name)
        if known is None:
            tools[name] = ProgramTool(name, item["inputs"], item["description"] or "", source, item["line"])
        else:
            description = known.description or item["description"] or ""
            tools[name] = msgspec.structs.replace(known, description=description, source=f"{known.source}\n{source}")
    params = tuple(
        Param(one["key"], one["param"], one["description"], one["line"]) for one in items if one["kind"] == "param"
    )
    mains = tuple(tuple(one) for one in reply["mains"])
    if not mains and not problems:
        problems.append(Problem("$", "no_main", f"There is no clause of `{MAIN}`, which is run.", source=file))
    if problems:
        raise _cannot_be_run(problems)
    return Program(tuple(tools.values()), params, mains, tuple(reply["asked"]))


def _cannot_be_run(problems: Sequence[Problem]) -> ProgramFailed:
    message = f"The program cannot be run: {pluralize(len(problems), 'problem')}."
    return ProgramFailed(message, details=problems[:MAX_PROBLEMS])


def call_of(program: Program, params: Mapping[str, Any], positional: Sequence[Any] = ()) -> RunArguments:
    """Return the call of `agent_main` for what is given.

    By name where all arguments of a clause are variables that ``params`` names; else by position: ``positional``, or
    the values of ``params`` in their order, unless a key of these is the name of a variable of the clause, or nearly:
    then another one is misspelled. A key is also given as one of `param(…)`.

    Raises:
        ProgramFailed: a value is missing, or one is given that nothing in the program names.
    """
    known = {param.key for param in program.params} | set(program.asked)
    missing = sorted(known - params.keys())
    mains = sorted(set(program.mains), key=lambda one: (len(one), str(one)), reverse=True)
    if not positional:
        for names in mains:
            if names and all(name in params for name in names):
                _refuse_missing(missing)
                _refuse_unknown(params, known | set(names))
                return RunArguments(tuple(params[name] for name in names if name), dict(params))
    values = [*positional] or [value for key, value in params.items() if key not in known]
    for names in mains:
        if len(names) == len(values):
            _refuse_missing(missing)
            if (
                not positional
                and None not in names
                and any(near_ones(key, list(filter(None, names))) for key in params)
            ):
                _refuse_unknown(params, known | set(names))
            if positional:
                _refuse_unknown(params, known)
            return RunArguments(tuple(values), dict(params))
    names = mains[-1] if not any(mains) else next(one for one in reversed(mains) if one)
    if any(mains):
        wanted = [name or f"argument {at}" for at, name in enumerate(names, 1) if name not in params]
        _refuse_missing([*wanted, *missing], len(values))
    _refuse_unknown(params, known)
    raise ProgramFailed(
        f"`{MAIN}` takes no arguments, and {pluralize(len(values), 'value')} is given by position.",
        hint="Leave it out, or add an argument to the head of the clause.",
    )


def _refuse_missing(names: Sequence[str], given: int = 0) -> None:
    """Raise ``ProgramFailed`` where a value is missing."""
    if names:
        shown = ", ".join(in_quotes(name) for name in names)
        also = f" {pluralize(given, 'value')} by position fit no clause of `{MAIN}`." if given else ""
        raise ProgramFailed(
            f"No value is given for {shown}.{also}",
            hint="Give each with `--param NAME=VALUE`, or in `params`.",
            details=[Problem(f"$.params.{name}", "missing", f"{in_quotes(name)} has no value.") for name in names],
        )


def _refuse_unknown(params: Mapping[str, Any], known: set[str | None] | set[str]) -> None:
    """Raise ``ProgramFailed`` where a value is given that nothing takes."""
    names = [name for name in known if name]
    for key in params:
        if key not in known:
            raise ProgramFailed(
                f"The program has no param {in_quotes(key)}.",
                hint=did_you_mean(key, names)
                or "Its params are the variables of the head of `agent_main`, and those of `:- param(…)`.",
            )
