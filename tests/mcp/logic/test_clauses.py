"""The tool clauses: what is added, removed and shown, and what of a call fails."""

from __future__ import annotations

import pytest

from tests.mcp.prolog_agents import statuses


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    "clause",
    [
        "parent(john, mary).",
        "ancestor(X, Y) :- parent(X, Y).",
        "sibling(First,Second):-parent(P,First),parent(P,Second), First\\=Second.",
        "quoted('It''s', \"a \\\"text\\\"\", 'a::b', 0'c, [H|T], {x}, `codes`).",
        "'ünïcödé'('→', 日本).",
        "greeting --> [hello], name.",
        "long(X) :-\n    % which\n    X = 1,\n    true.",
        "num(0x1F, 1.0e10, 1r3).",
    ],
)
def test_a_clause_is_shown_as_it_was_typed(prolog, clause):
    [outcome] = prolog.add(clause)["outcomes"]
    assert (outcome["status"], outcome["clause"]) == ("success", clause)
    assert prolog.snapshot() == clause


def test_clauses_are_shown_in_the_order_in_which_they_were_added(prolog):
    clauses = ["b(2).", "a(1).", "b(1)."]
    prolog.add(*clauses[:2])
    prolog.add(clauses[2])
    assert prolog.snapshot() == "\n".join(clauses)


def test_a_retracted_clause_is_not_shown_any_more(prolog):
    prolog.add("p(1).", "p(2).")
    assert statuses(prolog.remove("p(1).")) == ["success"]
    assert prolog.snapshot() == "p(2)."
    assert prolog.solutions("p(X)") == [{"X": "2"}]


def test_of_two_identical_clauses_one_is_removed(prolog):
    first, second = prolog.add("p(1).", "p(1).")["outcomes"]
    assert prolog.remove("p(1).")["outcomes"][0]["id"] == first["id"]
    assert prolog.snapshot() == "p(1)."
    assert prolog.solutions("p(X)") == [{"X": "1"}]
    assert prolog.remove("p(1)")["outcomes"][0]["id"] == second["id"]
    assert prolog.symbols() == []


def test_only_a_variant_is_retracted(prolog):
    prolog.add("likes(_, wine).", "likes(ann, beer).", "likes(X, Y) :- friend(X, Y).")
    assert prolog.failed("clauses", operation="retract", clauses="likes(ann, Z)")["summary"]["failed"] == 1
    assert statuses(prolog.remove("likes(Q, wine)")) == ["success"]
    assert statuses(prolog.remove("likes(A, B) :- friend(A, B)")) == ["success"]
    assert prolog.snapshot() == "likes(ann, beer)."


def test_a_reset_removes_everything_and_the_engine_knows_it(prolog):
    prolog.add("p(1).", "q(1).")
    prolog.import_("reset.pl", "r(1).\n")
    answer = prolog.reset()
    assert {key: answer[key] for key in ("type", "status", "removed")} == {
        "type": "workspace_reset",
        "status": "success",
        "removed": 3,
    }
    assert (prolog.snapshot(), prolog.symbols(), prolog.files()) == ("", [], [])
    assert prolog.refusal("p(X)")["kind"] == "unknown_predicate"
    assert prolog.reset()["removed"] == 0


def test_what_fails_is_not_stored_and_the_rest_is(prolog):
    answer = prolog.add("p(1).", "p(", "shell(X) :- shell(X, 0).", "halt.", 5, "p(2)", "")
    assert statuses(answer) == ["success", *["error"] * 4, "success", "error"]
    assert answer["summary"] == {"total": 7, "succeeded": 2, "failed": 5}
    assert all(one["message"] for one in answer["outcomes"] if one["status"] == "error")
    assert prolog.snapshot() == "p(1).\np(2)."


@pytest.mark.sliced
def test_clauses_takes_one_text_or_a_list_and_a_text_of_several(prolog):
    one = prolog.call("clauses", operation="assert", clauses="p(1).")
    assert (one["operation"], statuses(one)) == ("assert", ["success"])
    assert {"branch": one["branch"], "seq": one["seq"]} == {
        "branch": "main",
        "seq": prolog.call("kb_query", limit=1)["seq"],
    }
    several = prolog.call("clauses", operation="assert", clauses=["p(2). p(3).\np(4", "p(5)"])
    assert [(one["status"], one["clause"], one["line"]) for one in several["outcomes"]] == [
        ("success", "p(2).", 1),
        ("success", "p(3).", 1),
        ("error", "p(4", 2),
        ("success", "p(5).", 1),
    ]
    gone = prolog.call("clauses", operation="retract", clauses="p(1).")
    assert (gone["operation"], statuses(gone)) == ("retract", ["success"])
    assert statuses(prolog.call("clauses", operation="retract", clauses=["p(2).", "p(9).", "p(3)"])) == [
        "success",
        "error",
        "success",
    ]
    assert prolog.snapshot() == "p(5)."


def test_where_all_fails_the_answer_is_an_error_with_every_outcome(prolog):
    answer = prolog.failed("clauses", operation="retract", clauses=["p(1).", "p(2)."])
    assert statuses(answer) == ["error", "error"]
    assert answer["summary"] == {"total": 2, "succeeded": 0, "failed": 2}
    assert "error" not in answer
    before = answer["seq"]
    assert prolog.failed("clauses", operation="assert", clauses=["p(", 7])["seq"] == before


def test_the_same_change_of_clauses_takes_effect_once(prolog):
    request = {"operation": "assert", "clauses": ["p(1). p(2).", "shell(x).", "p(2)."], "changeset_id": "once"}
    first, again = prolog.call("clauses", **request), prolog.call("clauses", **request)
    assert again.pop("duplicate")
    assert {name: value for name, value in again.items() if name != "outcomes"} == {
        name: value for name, value in first.items() if name != "outcomes"
    }
    assert again["outcomes"] == first["outcomes"]
    assert prolog.snapshot() == "p(1).\np(2).\np(2)."
    removal = {"operation": "retract", "clauses": ["p(2).", "p(7)."], "changeset_id": "removed"}
    gone, again = prolog.call("clauses", **removal), prolog.call("clauses", **removal)
    assert (again.pop("duplicate"), again["outcomes"]) == (True, gone["outcomes"])
    assert prolog.snapshot() == "p(1).\np(2)."
    late = prolog.call("clauses", **request)
    assert (late["duplicate"], late["seq"]) == (True, first["seq"])
    for other in ({"clauses": "p(3)."}, {"operation": "retract"}):
        assert prolog.error("clauses", **request | other)["code"] == "changeset_id_reused"
    assert prolog.error("clauses", **request | {"changeset_id": "x" * 65})["code"] == "invalid_changeset"
    assert prolog.snapshot() == "p(1).\np(2)."


@pytest.mark.sliced
def test_ten_thousand_clauses_are_added_listed_queried_and_removed(prolog):
    clauses = [f"n({number}, value_{number})." for number in range(10_000)]
    answer = prolog.add(*clauses)
    assert answer["summary"] == {"total": 10_000, "succeeded": 10_000, "failed": 0}
    assert len(answer["outcomes"]) + answer.get("omitted", {}).get("outcomes", 0) == 10_000
    assert prolog.snapshot() == "\n".join(clauses)
    assert prolog.solutions("n(7777, X)") == [{"X": "value_7777"}]
    error = prolog.error("clauses", operation="assert", clauses="n(10000, x).")
    assert error["code"] == "limit_exceeded"
    assert "logic.maxClauses" in error["message"]
    assert prolog.reset()["removed"] == 10_000


@pytest.mark.sliced
def test_an_answer_that_is_too_long_keeps_every_failure(prolog):
    texts = [f"p({number}, '{'x' * 400}')." for number in range(3_000)]
    answer = prolog.add(*texts, "p(")
    assert answer["summary"] == {"total": 3_001, "succeeded": 3_000, "failed": 1}
    assert answer["outcomes"][-1]["status"] == "error"
    assert len(answer["outcomes"]) + answer["omitted"]["outcomes"] == 3_001
    shown = prolog.call("workspace", operation="snapshot")
    assert shown["clauseCount"] == 3_000
    assert shown["dump"].count("\n") + 1 + shown["omitted"]["clauses"] == 3_000
    assert prolog.resource("prolog://workspace/snapshot") == "\n".join(texts)


@pytest.mark.sliced
def test_the_full_stop_may_be_left_out(prolog):
    prolog.add("p(1)", "p(2).", "p(X) :- q(X)", "q(3) % comment", "op(+)")
    assert prolog.snapshot() == "p(1).\np(2).\np(X) :- q(X).\nq(3) % comment\n.\nop(+)."
    assert statuses(prolog.remove("p(1).", "p(2)", "p(Y) :- q(Y).", "q(3)", "op(+)")) == ["success"] * 5
    assert prolog.snapshot() == ""


def test_clauses_without_any_clause_are_an_error(prolog):
    answer = prolog.failed("clauses", operation="assert", clauses="% only a comment")
    assert answer["summary"] == {"total": 1, "succeeded": 0, "failed": 1}
