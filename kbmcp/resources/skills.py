"""The skill over MCP, by the extension https://modelcontextprotocol.io/seps/2640-skills-extension.

It is one file, the same on every branch: a resource that is read as others are, and an entry with its digest.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from kbcore.limits import MAX_ID_CHARS
from kbcore.prime.agent_text import SKILL_DESCRIPTION, SKILL_NAME, skill_front_matter, skill_text
from kbcore.text.escaping import in_quotes
from kbmcp.resources.static_pages import ResourcePage

EXTENSION: Final = "io.modelcontextprotocol/skills"
URI: Final = f"skill://{SKILL_NAME}/SKILL.md"
PAGE: Final = ResourcePage(URI, "How to use KB", SKILL_DESCRIPTION, skill_text, toolset="core")
_TTL_MS: Final = 3_600_000
"""The skill changes with the version of KB alone, and a running server has one version."""


class GetSkillParams(types.RequestParams):
    """The parameters of ``skills/get``."""

    uri: str


class ListSkillsResult(types.CacheableResult):
    """The result of ``skills/list``."""

    skills: list[dict[str, Any]]
    result_type: types.ResultType = "complete"
    ttl_ms: int = _TTL_MS


class GetSkillResult(types.CacheableResult):
    """The result of ``skills/get``."""

    skill: dict[str, Any]
    result_type: types.ResultType = "complete"
    ttl_ms: int = _TTL_MS


def listed() -> ListSkillsResult:
    """Return the entries of all skills."""
    return ListSkillsResult(skills=[_entry()])


def get(uri: str) -> GetSkillResult:
    """Return the entry of one skill. Raises: ``MCPError`` where there is no such skill."""
    if uri != URI:
        message = f"There is no skill {in_quotes(uri[:MAX_ID_CHARS])}. There is {URI}."
        raise MCPError(code=types.INVALID_PARAMS, message=message)
    return GetSkillResult(skill=_entry())


def _entry() -> dict[str, Any]:
    data = skill_text().encode()
    file = {"uri": URI, "digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "size": len(data)}
    return {"uri": URI, "frontmatter": dict(skill_front_matter()), "resources": [file]}
