"""Runs of programs that call KB's tools in a repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kbcore.dml import Policy, Toolset
from kbcore.dml.kb_tools import KB_TOOLS
from kbcore.dml.recording import RunName, new_run
from kbmcp.program_tools import ProgramTools
from tests.support.dml.runs import Ran, ran
from tests.support.repository.repos import git_env


def allows(*patterns: str) -> Policy:
    """Return the policy that allows these tools alone."""
    return Policy("whitelist", patterns)


def ran_with_kb(
    root: Path,
    engine: Mapping[str, str],
    code: str,
    policy: Policy | None = None,
    run: RunName | None = None,
    **options: Any,
) -> Ran:
    """Run a program with KB's tools; they may write where the policy allows them by name."""
    is_named: Callable[[str], bool] = lambda name: policy is not None and not policy.refusal(name)  # noqa: E731
    of_kb = ProgramTools(root, git_env(engine), run or new_run("test.dml"), allows=is_named)
    tools = Toolset((), policy)
    tools.add_later(KB_TOOLS, of_kb.tool)
    try:
        return ran(code, engine, tools=tools, **options)
    finally:
        of_kb.close()
