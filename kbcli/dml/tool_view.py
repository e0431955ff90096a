"""The list of tools: a name with its arguments and its description, or one JSON document with the schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kbcore.dml.kb_tools import KB_TOOLS, WRITING
from kbcore.text.escaping import escape_controls

if TYPE_CHECKING:
    from kbcli.terminal.output import Output
    from kbcore.dml.tools import Tool, Toolset

_INDENT: Final = "  "


def show(output: Output, tools: Toolset) -> None:
    """Show all tools in their order."""
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
