"""The names of KB's own tools that programs may call; ``kbmcp.program_tools`` carries them out."""

from __future__ import annotations

from typing import Final

KB_TOOLS: Final = (
    *("kb_query", "kb_check", "kb_history", "kb_upsert", "kb_delete"),
    *("execute_kip", "execute_kip_readonly", "kb_sleep"),
)
"""They take the same arguments, and give the same answers, as the tools of the MCP server of these names."""
WRITING: Final = frozenset({"kb_upsert", "kb_delete"})
"""Those of them that do nothing but write: they run only where a policy allows them by name."""
