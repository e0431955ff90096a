"""The tools of a run: how they are made and named. What calls of them do is in test_exec.py."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from kbcore.dml import Policy, Toolset, run_dml
from kbcore.dml.tools import tool_of


class Place(pydantic.BaseModel):
    """The arguments of a tool."""

    location: str
    days: int = 1


def weather(location: str, days: int) -> str:
    """Say the weather.

    For some days.
    """
    return f"{location} {days}"


def test_a_function_is_a_tool_by_its_name_docstring_and_annotations() -> None:
    tool = tool_of(weather)
    assert (tool.name, tool.description) == ("weather", "Say the weather.\n\nFor some days.")
    assert tool.parameters["required"] == ["location", "days"]
    assert tool.parameters["properties"]["days"]["type"] == "integer"
    assert tool.parameters["additionalProperties"] is False


def test_a_tool_is_registered_with_a_name_and_a_model() -> None:
    tools = Toolset([], Policy("blacklist", ["fetch_*"]))
    tools.register_tool("fetch_weather", "Weather.", Place, weather)
    tool = tools.find("fetch_weather")
    assert tool is not None
    assert tool.validated({"location": "here"}) == {"location": "here", "days": 1}
    assert tools.refusal("fetch_weather") == "the policy denies `fetch_*`"
    assert tools.under(Policy("whitelist", ["*"])).refusal("fetch_weather") == ""
    assert (tools.names, tool.description) == (["fetch_weather"], "Weather.")
    with pytest.raises(ValueError, match="two tools with the name fetch_weather"):
        tools.register_tool("fetch_weather", "", None, weather)
    with pytest.raises(ValueError, match="'a b' is no name of a tool"):
        tools.register_tool("a b", "", None, weather)


def test_functions_without_a_schema_are_refused() -> None:
    def many(*words: str) -> None: ...

    def named(**words: str) -> None: ...

    def first(word: str, /) -> None: ...

    class Strange: ...

    def strange(one: Strange) -> None: ...

    for function in (many, named, first):
        with pytest.raises(ValueError, match="has a parameter without a name of its own"):
            tool_of(function)
    with pytest.raises(ValueError, match="has a parameter that has no schema"):
        tool_of(strange)
    with pytest.raises(ValueError, match="two tools with the name weather"):
        run_dml("agent_main.", tools=[weather, weather])


@pytest.mark.parametrize(("policy", "allowed"), [
    (Policy("whitelist", ["read_*", "x"]), {"read_a", "x"}),
    (Policy("whitelist", []), set()),
    (Policy("blacklist", ["read_?"]), {"x", "write", "READ_a"}),
    (Policy("blacklist", []), {"read_a", "x", "write", "READ_a"}),
    (Policy("whitelist", ["*"], ["w*"]), {"read_a", "x", "READ_a"}),
    (Policy("blacklist", ["x"], ["[rw]*"]), {"READ_a"}),
])  # fmt: skip
def test_a_policy_allows_by_patterns_with_upper_and_lower_case(policy: Policy, allowed: set[str]) -> None:
    names: list[Any] = ["read_a", "x", "write", "READ_a"]
    assert {name for name in names if not policy.refusal(name)} == allowed
