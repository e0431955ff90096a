"""Arguments are taken exactly as they are, or refused with the names that exist."""

from __future__ import annotations

import pytest

from kbcore.schema import CORE
from kbmcp import wire
from tests.mcp.agents import text_of

NAMES = wire.Names(tuple(CORE.entities), tuple(CORE.edges))
TOOLS = ("kb_query", "kb_upsert", "kb_delete", "kb_check", "kb_history")


@pytest.mark.parametrize("tool", TOOLS)
def test_an_unknown_argument_is_refused_with_the_allowed_ones(tool, each_era):
    error = each_era.refused(tool, limt=3)
    [problem] = [one for one in error["details"] if one["path"] == "$.limt"]
    assert problem["code"] == "unknown_argument"
    assert "Allowed: " in problem["hint"]
    if tool == "kb_query":
        assert problem["hint"].startswith("Did you mean 'limit'?")


@pytest.mark.parametrize(
    ("tool", "arguments", "path"),
    [
        ("kb_query", {"limit": "2"}, "$.limit"),
        ("kb_query", {"limit": 2.0}, "$.limit"),
        ("kb_query", {"limit": True}, "$.limit"),
        ("kb_query", {"ids": "REQ-1"}, "$.ids"),
        ("kb_query", {"ids": '["REQ-1"]'}, "$.ids"),
        ("kb_query", {"tags": [1]}, "$.tags[0]"),
        ("kb_query", {"edges": "true"}, "$.edges"),
        ("kb_query", {"status": 1}, "$.status"),
        ("kb_query", {"at": [1]}, "$.at"),
        ("kb_query", {"limit": 0}, "$.limit"),
        ("kb_query", {"depth": 51, "from": "A"}, "$.depth"),
        ("kb_upsert", {"entities": {}}, "$.entities"),
        ("kb_upsert", {"expected_seq": "1", "entities": []}, "$.expected_seq"),
        ("kb_upsert", {"dry_run": 1, "entities": []}, "$.dry_run"),
        ("kb_upsert", {"expect_branch": 1, "entities": []}, "$.expect_branch"),
        ("kb_delete", {"entities": [{"id": "A", "expected_version": "1"}]}, "$.entities[0].expected_version"),
        ("kb_check", {"rules": "orphans"}, "$.rules"),
        ("kb_history", {"action": "list"}, "$.action"),
        ("kb_history", {"action": "show", "seq": "1"}, "$.seq"),
        ("kb_history", {}, "$.action"),
    ],
)
def test_nothing_is_coerced(tool, arguments, path, kb):
    error = kb.refused(tool, **arguments)
    assert path in {one["path"] for one in error["details"]}


def test_a_wrong_kind_is_told_with_the_right_one(kb):
    error = kb.refused("kb_query", limit="2", at=[])
    messages = {one["path"]: (one["message"], one.get("hint")) for one in error["details"]}
    assert messages["$.limit"] == ("`limit` must be a whole number, not text.", "Write 2 without quotes.")
    assert messages["$.at"][0] == "`at` must be a whole number or text, not a list."


def test_an_error_keeps_to_its_budget_whatever_is_wrong(kb):
    long = "x" * 1_000_000
    for result in (
        kb.result("kb_query", {long: 1}),
        kb.result("kb_query", {"type": long}),
        kb.result("kb_upsert", {"entities": [{"id": long, long: long}]}),
        kb.result("kb_history", {"action": long}),
        kb.result("kb_check", {"rules": [long]}),
    ):
        assert result.is_error
        assert len(text_of(result)) <= 10_000


def test_null_stands_for_an_absent_argument(kb):
    assert kb.call("kb_query", type=None, limit=None, at=None)["entities"] == []


def test_a_call_without_arguments_lists_everything(kb):
    assert kb.call("kb_query")["total"] == 0


def test_an_unknown_tool_is_a_protocol_error_with_the_nearest_name(each_era):
    with pytest.raises(Exception, match=r"Unknown tool: kb_qery \(did you mean kb_query\?\)") as raised:
        each_era.result("kb_qery", {})
    assert raised.value.error.code == -32602


def test_every_argument_of_a_model_is_published():
    models = (
        wire.QueryArguments,
        wire.UpsertArguments,
        wire.DeleteArguments,
        wire.CheckArguments,
        wire.HistoryArguments,
    )
    for model in models:
        assert list(wire.published(model, NAMES)["properties"]) == wire.names_of(model)


def test_the_published_items_are_what_the_core_takes():
    from kbcore.changeset import parse, parse_deletion

    items = wire.published(wire.UpsertArguments, NAMES)["properties"]
    text = {"type": "string"}
    for part, needed in (("entities", {"id": "A"}), ("edges", {"type": "implements", "from": "A", "to": "B"})):
        members = items[part]["items"]["properties"]
        for name, schema in members.items():
            kinds = schema.get("anyOf", [schema])
            value = {"string": "x", "array": ["x"], "object": {"x": 1}, "number": 0.5}[kinds[0]["type"]]
            assert parse({part: [{name: value} | needed]})
        assert members["type"]["enum"]
        assert text in ({"type": one.get("type")} for one in members.values())
    keys = wire.published(wire.DeleteArguments, NAMES)["properties"]
    assert set(keys["entities"]["items"]["required"]) == {"id", "expected_version"}
    assert parse_deletion({"edges": [dict.fromkeys(keys["edges"]["items"]["properties"], "x")]})
