"""The tools of a run: KB's own and those of the list ``TOOLS`` of a file, and the policy that the options state."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcore.dml.kb_tools import KB_TOOLS, WRITING
from kbcore.dml.recording import RunName
from kbcore.dml.tools import Policy, Tool, Toolset, tool_of
from kbcore.errors import InvalidQuery
from kbcore.text.escaping import escape_controls

if TYPE_CHECKING:
    from kbcli.terminal.output import Output
    from kbmcp.program_tools import ProgramTools

_INDENT: Final = "  "
_NAME: Final = "kb_dml_tools"
"""The name of the module that the file becomes."""
_LIST: Final = "TOOLS"


class ToolChoice(msgspec.Struct, frozen=True):
    """The options about tools: the file of Python, and the patterns of names that are allowed and denied."""

    file: str = ""
    allow: Sequence[str] = ()
    deny: Sequence[str] = ()

    @property
    def policy(self) -> Policy:
        """Return the policy: with ``allow`` only what it names, and never what ``deny`` names."""
        if self.allow:
            return Policy("whitelist", tuple(self.allow), tuple(self.deny))
        return Policy("blacklist", tuple(self.deny))

    def allows_writing(self, name: str) -> bool:
        """Tell whether a tool of KB may write: a pattern of ``allow`` names it."""
        return bool(self.allow) and not self.policy.refusal(name)


class RunTools:
    """The tools of one run. KB's own open the repository when one is called, and none is needed before."""

    def __init__(
        self, choice: ToolChoice, start: Path, env: Mapping[str, str], run: RunName, branch: str | None
    ) -> None:
        """Read the file of tools. Raises: ``InvalidQuery``, also for an empty pattern."""
        for option, patterns in (("--allow", choice.allow), ("--deny", choice.deny)):
            if not all(one.strip() for one in patterns):
                raise InvalidQuery(f"{option} is empty.", hint="Name a tool, or several by a pattern such as `kb_*`.")
        self._make: Callable[[], ProgramTools] = lambda: _program_tools(choice, start, env, run, branch)
        self._of_kb: ProgramTools | None = None
        own = read_tools(start / choice.file) if choice.file else []
        try:
            self.toolset = Toolset(own, choice.policy)
            self.toolset.add_later(KB_TOOLS, self._tool)
        except ValueError as error:
            raise InvalidQuery(f"--tools: {error}.", hint="Rename it.") from error

    def _tool(self, name: str) -> Tool:
        if self._of_kb is None:
            self._of_kb = self._make()
        return self._of_kb.tool(name)

    def close(self) -> None:
        """Release what KB's tools opened."""
        if self._of_kb is not None:
            self._of_kb.close()


def _program_tools(
    choice: ToolChoice, start: Path, env: Mapping[str, str], run: RunName, branch: str | None
) -> ProgramTools:
    from kbmcp.program_tools import ProgramTools

    return ProgramTools(start, env, run, branch=branch, allows=choice.allows_writing)


def read_tools(path: Path) -> list[Tool]:
    """Return the tools of a file, which is run as Python runs it: modules next to it can be imported.

    Raises: ``InvalidQuery`` where it cannot be read or run, or its ``TOOLS`` is no list of functions with schemas.
    """
    listed = getattr(_module(path), _LIST, None)
    shown = escape_controls(str(path))
    if not isinstance(listed, list | tuple):
        raise InvalidQuery(
            f"--tools: {shown} has no list {_LIST}.", hint=f"It ends with `{_LIST} = [first, second]`, its functions."
        )
    return [_tool(one, shown) for one in listed]


def _tool(one: Tool | Callable[..., Any], shown: str) -> Tool:
    if isinstance(one, Tool):
        return one
    if not callable(one):
        raise InvalidQuery(f"--tools: {_LIST} of {shown} has a {type(one).__name__}, which is no function.")
    try:
        return tool_of(one)
    except ValueError as error:
        raise InvalidQuery(
            f"--tools: {shown}: {error}.", hint="Name each parameter, and give it a type that JSON has."
        ) from error


def _module(path: Path) -> Any:
    """Return the module that a file is. Raises: ``InvalidQuery``."""
    shown = escape_controls(str(path))
    if not path.is_file():
        raise InvalidQuery(f"--tools: there is no file {shown}.", hint="Name a Python file with a list `TOOLS`.")
    spec = importlib.util.spec_from_file_location(_NAME, path)
    if spec is None or spec.loader is None:
        raise InvalidQuery(f"--tools: {shown} is no Python file.", hint="Its name ends in `.py`.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever a file of the user raises is a fault of that file
        line = next(
            (one.lineno for one in reversed(traceback.extract_tb(error.__traceback__)) if one.filename == str(path)), 0
        )
        place = f"{shown}:{line}" if line else shown
        said = escape_controls(f"{type(error).__name__}: {error}")
        raise InvalidQuery(f"--tools: {place} cannot be run: {said}.", hint="Correct the file.") from error
    return module


def show_tools(output: Output, tools: Toolset) -> None:
    """Show all tools in their order: names with arguments and descriptions, or one JSON document with the schemas."""
    found = [tool for name in tools.names if (tool := tools.find(name))]
    if output.is_json:
        output.document({"tools": [_as_json(tool) for tool in found]})
        return
    for tool in found:
        name = output.styled(escape_controls(tool.name), "bold")
        arguments = escape_controls(", ".join(_arguments(tool)))
        output.data(f"{name}({arguments})\n")
        for line in output.wrapped(escape_controls(" ".join(tool.description.split())), _INDENT):
            output.data(f"{line}\n")


def _as_json(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "of": "kb" if tool.name in KB_TOOLS else "file",
        "needs_allow": tool.name in WRITING,
    }


def _arguments(tool: Tool) -> list[str]:
    """Return the arguments with their types; those that may be left out are in brackets."""
    required = tool.parameters.get("required", [])
    shown = {name: _typed(name, schema) for name, schema in tool.parameters.get("properties", {}).items()}
    return [text if name in required else f"[{text}]" for name, text in shown.items()]


def _typed(name: str, schema: dict[str, Any]) -> str:
    """Return an argument with its type, without one where it has several."""
    type_ = schema.get("type")
    return f"{name}: {type_}" if isinstance(type_, str) else name
