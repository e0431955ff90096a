"""Arguments are taken exactly as they are, or refused with the names that exist."""

from __future__ import annotations

import pytest

from kbcore.model.schema import CORE
from kbmcp.tools import argument_models
from tests.mcp.agents import direct, text_of

NAMES = argument_models.SchemaNames(tuple(CORE.entities), tuple(CORE.edges))
TOOLS = ("kb_query", "kb_upsert", "kb_delete", "kb_check", "kb_history")


@pytest.mark.parametrize("tool", TOOLS)
def test_an_unknown_argument_is_refused_with_the_allowed_ones(tool, each_era):
    error = each_era.refused(tool, limt=3)
    [problem] = [one for one in error["details"] if one["path"] == "$.limt"]
    assert problem["code"] == "unknown_argument"
    hint = problem.get("hint", error["hint"])
    assert "Allowed: " in hint
    if tool == "kb_query":
        assert hint.startswith("Did you mean 'limit'?")


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


@pytest.mark.sliced(3)
@pytest.mark.parametrize(
    ("tool", "model", "around"),
    [
        ("kb_query", argument_models.QueryArguments, {}),
        ("kb_query", argument_models.QueryArguments, {"from": "A"}),
        ("kb_upsert", argument_models.UpsertArguments, {"sync": True}),
        ("kb_upsert", argument_models.UpsertArguments, {"rename": {"A": "B"}}),
        ("kb_upsert", argument_models.UpsertArguments, {"entities": [{"id": "A", "type": "req"}]}),
        ("kb_delete", argument_models.DeleteArguments, {"entities": [{"id": "A", "expected_version": 1}]}),
        ("kb_check", argument_models.CheckArguments, {}),
        ("kb_history", argument_models.HistoryArguments, {"action": "log"}),
    ],
)
def test_a_list_or_an_object_in_place_of_any_argument_is_no_internal_error(tool, model, around, shared):
    wrong = ([], {}, ["x"], {"a": 1}, [["x"]], [{"a": []}], [None])
    with direct(shared.root) as server:
        for name in argument_models.names_of(model):
            for value in wrong:
                answered = server.answer(tool, **{**around, name: value})
                code = answered.get("error", {}).get("code")
                assert code != "internal_error", (name, value)


def test_a_missing_choice_is_reported_with_what_there_is_to_choose_from(kb):
    assert (
        kb.refused("kb_history")["message"]
        == "`action` is missing: log, show, diff, who, revert, rollback, proposed, accept or reject."
    )


def test_a_wrong_kind_is_reported_with_the_right_one(kb):
    error = kb.refused("kb_query", limit="2", at=[1])
    messages = {one["path"]: (one["message"], one.get("hint")) for one in error["details"]}
    assert messages["$.limit"] == ("`limit` must be a whole number, not text.", "Write 2 without quotes.")
    assert messages["$.at"][0] == "`at` must be a whole number or text, not a list."


def test_the_kinds_that_an_argument_may_have_are_values_of_its_problem():
    _, problems = argument_models.read(argument_models.QueryArguments, {"limit": "2", "at": [1], "where": "a=b"})
    assert {one.path: (one.field, one.values) for one in problems} == {
        "$.limit": ("limit", ("a whole number",)),
        "$.at": ("at", ("a whole number", "text")),
        "$.where": ("where", ("a list", "an object")),
    }
    assert [one.message for one in problems if one.path == "$.where"] == [
        "`where` must be a list or an object, not text."
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "places"),
    [
        ("kb_query", {"text": "", "ids": [], "where": {}}, {"$.text", "$.ids", "$.where"}),
        ("kb_query", {"text": " \t", "status": "", "from": ""}, {"$.text", "$.status", "$.from"}),
        ("kb_query", {"cursor": "", "fields": [], "limit": 0}, {"$.cursor", "$.fields", "$.limit"}),
        ("kb_check", {"ids": []}, {"$.ids"}),
        ("kb_check", {"rules": []}, {"$.rules"}),
        ("kb_history", {"action": "log", "id": ""}, {"$.id"}),
        ("kb_upsert", {"entities": [{"id": "N", "type": "req"}], "expect_branch": ""}, {"$.expect_branch"}),
    ],
)
def test_an_empty_argument_is_refused_instead_of_limiting_nothing(tool, arguments, places, kb):
    error = kb.refused(tool, **arguments)
    assert places <= {one["path"] for one in error["details"]}
    for one in error["details"]:
        if one["code"] == "empty":
            assert "Leave it out" in one.get("hint", error["hint"])


@pytest.mark.parametrize(
    ("tool", "arguments", "places"),
    [
        (
            "kb_query",
            {"limit": "3", "type": "rq", "has": [":"], "lacks": ["veri"], "at": "x", "limt": 1},
            {"$.limit", "$.type", "$.has[0]", "$.lacks[0]", "$.at", "$.limt"},
        ),
        ("kb_query", {"from": 1, "follow": ["veri"], "depth": 2}, {"$.from", "$.follow[0]"}),
        (
            "kb_upsert",
            {
                "mesage": "why",
                "expect_branch": 3,
                "dry_run": "no",
                "entities": [{"id": "N", "titel": "x"}, {"id": "M", "type": "rq", "title": "t", "status": "s"}],
                "edges": [{"type": "verifed_by", "from": "N", "to": "M"}],
            },
            {
                "$.mesage",
                "$.expect_branch",
                "$.dry_run",
                "$.entities[0].titel",
                "$.entities[1].type",
                "$.edges[0].type",
            },
        ),
        (
            "kb_delete",
            {"casade": True, "entities": [{"id": 1, "expected_version": 1}, {"id": "NOPE", "expected_version": 1}]},
            {"$.casade", "$.entities[0].id", "$.entities[1].id"},
        ),
        ("kb_check", {"rules": "orphans", "limit": 0}, {"$.rules", "$.limit"}),
        ("kb_history", {"action": "show", "limit": 0, "id": "A", "x": 1}, {"$.limit", "$.id", "$.x", "$.seq"}),
        ("kb_history", {"action": "revert", "seq": "1", "to": 2}, {"$.seq", "$.to"}),
    ],
)
def test_faults_of_form_and_of_meaning_come_together(tool, arguments, places, kb):
    error = kb.refused(tool, **arguments)
    assert {one["path"] for one in error["details"]} == places
    assert str(len(places)) in error["message"]


def test_an_argument_that_the_action_does_not_take_is_refused(kb):
    error = kb.refused("kb_history", action="log", seq=1)
    assert error["details"] == [{"path": "$.seq", "code": "not_for_action"}]


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"sort": "titel"}, "$.sort"),
        ({"fields": ["titel"]}, "$.fields[0]"),
        ({"where": {"titel": "x"}}, "$.where.titel"),
    ],
)
def test_a_mistyped_name_in_a_query_gets_the_nearest_one(arguments, path, project):
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    with direct(project.root) as tools:
        error = tools.answer("kb_query", **arguments)["error"]
    assert error["details"][0]["path"] == path
    assert "'title'" in error["hint"]


def test_a_refusal_names_the_branch_and_the_seq(project):
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    with direct(project.root) as tools:
        for arguments in ({"limt": 1}, {"expect_branch": "other", "entities": []}, {"entities": 1}):
            answer = tools.answer("kb_upsert", **arguments)
            assert (answer["branch"], answer["seq"]) == ("main", 1)
        answer = tools.answer("kb_history", action="lst")
        assert (answer["error"]["code"], answer["branch"], answer["seq"]) == ("invalid_query", "main", 1)


@pytest.mark.sliced
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


def test_null_means_an_absent_argument(kb):
    assert kb.call("kb_query", type=None, limit=None, at=None)["entities"] == []


def test_a_call_without_arguments_lists_everything(kb):
    assert kb.call("kb_query")["total"] == 0


def test_an_unknown_tool_is_a_protocol_error_with_the_nearest_name(each_era):
    with pytest.raises(Exception, match=r"Unknown tool: 'kb_qery' \(did you mean kb_query\?\)") as raised:
        each_era.result("kb_qery", {})
    assert raised.value.error.code == -32602


def test_every_argument_of_a_model_is_published():
    models = (
        argument_models.QueryArguments,
        argument_models.UpsertArguments,
        argument_models.DeleteArguments,
        argument_models.CheckArguments,
        argument_models.HistoryArguments,
    )
    for model in models:
        assert list(argument_models.published(model, NAMES)["properties"]) == argument_models.names_of(model)


def test_the_published_items_are_what_the_core_takes():
    from kbcore.model.changeset import parse, parse_deletion

    items = argument_models.published(argument_models.UpsertArguments, NAMES)["properties"]
    text = {"type": "string"}
    for part, needed in (("entities", {"id": "A"}), ("edges", {"type": "implements", "from": "A", "to": "B"})):
        members = items[part]["items"]["properties"]
        for name, schema in members.items():
            kinds = schema.get("anyOf", [schema])
            value = {"string": "x", "array": ["x"], "object": {"x": 1}, "number": 0.5}[kinds[0]["type"]]
            assert parse({part: [{name: value} | needed]})
        assert ("enum" in members["type"]) is (part == "edges")
        assert text in ({"type": one.get("type")} for one in members.values())
    keys = argument_models.published(argument_models.DeleteArguments, NAMES)["properties"]
    assert set(keys["entities"]["items"]["required"]) == {"id", "expected_version"}
    assert parse_deletion({"edges": [dict.fromkeys(keys["edges"]["items"]["properties"], "x")]})


def test_an_argument_of_kb_upsert_alone_is_refused_with_the_call_that_takes_it(kb):
    hint = kb.refused("kb_check", sync=True)["hint"]
    assert hint.startswith("Call kb_upsert with `sync` true to record what the files say. Allowed: ")
