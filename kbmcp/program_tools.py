"""KB's tools for programs of DML: those of the MCP server, carried out in this process without a client.

Invariant: a tool that no policy allows by name changes nothing: it is refused, or carried out as by a server that only
reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore.dml import Tool
from kbcore.dml.kb_tools import WRITING
from kbcore.dml.recording import RunName, author_of
from kbcore.dml.tools import Origin
from kbcore.errors import followed_by
from kbmcp.tools import run_call, tool_list
from kbmcp.tools.argument_models import SchemaNames, published
from kbmcp.tools.call import Client
from kbmcp.tools.hints import in_words, spelled
from kbmcp.tools.service import ServerOptions, Service

_TOOLS: Final = {spelled(tool.key, is_dotted=False): tool for tool in tool_list.TOOLS}
_NO_NAMES: Final = SchemaNames((), ())
"""The names of a schema are no part of what a program sees: no repository is opened to describe a tool."""


_HINTS: Final = {"not_a_repository": "Run the program inside a git repository, or with -C PATH.", "unknown_branch": ""}
"""Remedies in place of those that are for the user of a server."""


class ToolRefused(Exception):
    """KB refused a call, or failed; the message has the code, what is wrong, and the remedy."""


class ProgramTools:
    """KB's tools for one run. ``close`` releases what they opened."""

    def __init__(
        self,
        start: Path,
        env: Mapping[str, str],
        run: RunName,
        *,
        branch: str | None = None,
        allows: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Prepare tools for the repository of a folder; ``allows`` tells which may write. Opens nothing yet."""
        options = ServerOptions(start, branch, is_read_only=True, env=env, toolsets=("core", "kip"))
        self._reading = Service(options)
        self._writing = Service(msgspec.structs.replace(options, is_read_only=False))
        self._run = run
        self._allows = allows

    def tool(self, name: str) -> Tool:
        """Return the tool of one of the names ``KB_TOOLS``."""
        tool = _TOOLS[name]
        may_write = self._allows(name)
        only_reads = tool.writes == "never" or not may_write
        hidden = tool.writing if only_reads else ()
        text = tool.description
        said = text if isinstance(text, str) else "; ".join(f"{key}: {one}" for key, one in text.items())
        parameters = published(tool.model, _NO_NAMES, hidden) if tool.model else dict(tool.schema)
        service = self._writing if may_write else self._reading
        return Tool(
            name,
            in_words(said, is_dotted=False),
            parameters,
            partial(self._call, service, tool),
            validated=dict,
            writes=name in WRITING,
            takes_origin=True,
        )

    async def _call(
        self, service: Service, tool: run_call.McpTool, origin: Origin, /, **arguments: Any
    ) -> dict[str, Any] | None:
        """Return the structured content of an answer. Raises: ``ToolRefused`` where the answer is an error."""
        client = Client(author=author_of(self._run, origin.task))
        answer = await run_call.run_tool(service, tool, arguments, client)
        if answer.is_error:
            raise ToolRefused(_reason(answer.structured_content or {}))
        content: dict[str, Any] | None = answer.structured_content
        return content

    def close(self) -> None:
        """Release every view, and stop what is being published."""
        for service in (self._reading, self._writing):
            service.stop()
            service.close()


def _reason(content: Mapping[str, Any]) -> str:
    """Return why a call failed; of a batch of KIP the last command did."""
    failed = content if "error" in content else content["result"][-1]
    error = failed["error"]
    hint = _HINTS.get(error["code"], error.get("hint", ""))
    return followed_by(f"{error['code']}: {error['message']}", hint).rstrip()
