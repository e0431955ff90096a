"""The tools of a run: KB's own and those of a file, and the policy that the options state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from kbcli.dml.tools_file import read_tools
from kbcore.dml.kb_tools import KB_TOOLS
from kbcore.dml.policy import Policy
from kbcore.dml.recording import RunName
from kbcore.dml.tools import Tool, Toolset
from kbcore.errors import InvalidQuery

if TYPE_CHECKING:
    from kbmcp.program_tools import ProgramTools


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
