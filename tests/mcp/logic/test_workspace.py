"""The tools workspace and help, the resources, and arguments that are refused."""

from __future__ import annotations

import json

import pytest

from kbmcp.tools import logic_help


@pytest.mark.parametrize(
    ("name", "arguments", "path", "code"),
    [
        ("clauses", {"operation": "assert", "clauses": []}, "$.clauses", "empty"),
        ("clauses", {"operation": "assert"}, "$.clauses", "missing_argument"),
        ("clauses", {"operation": "assert", "clauses": 5}, "$.clauses", "wrong_type"),
        ("clauses", {"operation": "add", "clauses": "p(1)."}, "$.operation", "bad_value"),
        ("clauses", {"clauses": "p(1)."}, "$.operation", "missing_argument"),
        ("clauses", {"operation": "assert", "clauses": "p(1).", "file": "x"}, "$.file", "unknown_argument"),
        ("files", {"operation": "import"}, "$.filename", "missing_argument"),
        ("files", {"operation": "unimport"}, "$.filename", "missing_argument"),
        ("files", {"operation": "list", "filename": "x.pl"}, "$.filename", "not_for_action"),
        ("files", {"operation": "load", "filename": "x.pl"}, "$.operation", "bad_value"),
        ("workspace", {"operation": "dump"}, "$.operation", "bad_value"),
        ("workspace", {}, "$.operation", "missing_argument"),
        ("query_start", {}, "$.query", "missing_argument"),
        ("query_start", {"query": ["p(X)"]}, "$.query", "wrong_type"),
        ("query_start", {"query": "p(X)", "use_engine": "yes"}, "$.use_engine", "wrong_type"),
        ("query_next", {"count": 2}, "$.count", "unknown_argument"),
        ("query_close", {"query": "p(X)"}, "$.query", "unknown_argument"),
        ("help", {"topic": "all"}, "$.topic", "bad_value"),
    ],
)
def test_a_wrong_argument_is_refused_by_its_path(prolog, name, arguments, path, code):
    error = prolog.error(name, **arguments)
    assert error["code"] == "invalid_query"
    assert [(one["path"], one["code"]) for one in error["details"]] == [(path, code)]
    assert "{" not in error["hint"]


def test_the_workspace_when_empty(prolog):
    answer = prolog.call("workspace", operation="snapshot")
    assert (answer["type"], answer["dump"], answer["clauseCount"]) == ("workspace_snapshot", "", 0)
    answer = prolog.call("workspace", operation="list_symbols")
    assert (answer["type"], answer["predicates"], answer["count"]) == ("workspace_symbols", [], 0)


def test_predicates_are_listed_by_name_and_arity(prolog):
    prolog.add("p(1).", "p(1, 2).", "p(2).", "'odd, name'(x).", "s --> [a].")
    assert prolog.symbols() == ["'odd, name'/1", "p/1", "p/2", "s/2"]
    assert prolog.call("workspace", operation="snapshot")["clauseCount"] == 5


def test_predicates_that_are_declared_are_listed_and_marked(prolog):
    prolog.add(":- dynamic d/1, p/1.", "p(1).")
    answer = prolog.call("workspace", operation="list_symbols")
    assert (answer["predicates"], answer["count"], answer["declared"]) == (["d/1", "p/1"], 2, ["d/1"])


def test_help_without_a_topic_has_every_topic(prolog):
    whole = prolog.help()
    assert whole.startswith("# The Prolog workspace")
    for topic in logic_help.TOPICS:
        part = prolog.help(topic)
        assert part in whole
        assert len(part) < len(whole) / 2
    assert prolog.resource("reference://help") == whole


def test_the_examples_of_help_can_be_carried_out(prolog):
    prolog.write("rules/family.pl", "p(1).")
    for line in prolog.help("examples").splitlines():
        name, _, rest = line.partition(" ")
        if rest.startswith("{"):
            arguments = json.loads(rest.partition(", then ")[0])
            prolog.call(name, **arguments)
            if name == "query_start":
                prolog.call("query_next")


def test_the_resources_hold_what_the_tools_answer(prolog):
    assert prolog.resource("prolog://workspace/snapshot") == ""
    prolog.add("p(X) :- q(X).", "q(1).")
    assert prolog.resource("prolog://workspace/snapshot") == prolog.snapshot() == "p(X) :- q(X).\nq(1)."
    symbols = json.loads(prolog.resource("prolog://workspace/symbols"))
    assert symbols["predicates"] == prolog.symbols() == ["p/1", "q/1"]
    prolog.remove("q(1)")
    assert prolog.resource("prolog://workspace/snapshot") == "p(X) :- q(X)."
    prolog.add("r('\x1b\r\t').")
    assert prolog.resource("prolog://workspace/snapshot") == "p(X) :- q(X).\nr('\\x1b\\r\t')."
    prolog.remove("r('\x1b\r\t').")
    assert json.loads(prolog.resource("prolog://workspace/symbols"))["count"] == 1
    prolog.reset()
    assert prolog.resource("prolog://workspace/snapshot") == ""
    assert "Apache License" in prolog.resource("reference://license")
    assert prolog.resource("reference://logo").startswith("<svg ")


def test_a_workflow_of_files_clauses_and_queries(prolog):
    prolog.import_("flow.pl", "parent(ann, bob).\nparent(bob, cid).\n")
    prolog.add("anc(X, Y) :- parent(X, Y).", "anc(X, Z) :- parent(X, Y), anc(Y, Z).")
    assert [one["X"] for one in prolog.solutions("anc(ann, X)")] == ["bob", "cid"]
    assert prolog.snapshot().count("\n") == 3
    prolog.call("files", operation="unimport", filename="flow.pl")
    assert prolog.snapshot() == "anc(X, Y) :- parent(X, Y).\nanc(X, Z) :- parent(X, Y), anc(Y, Z)."
    assert prolog.refusal("anc(ann, X)")["kind"] == "unknown_predicate"


def test_a_tool_without_arguments_says_that_it_has_none(prolog):
    for tool in ("query_next", "query_close"):
        error = prolog.error(tool, limit=1)
        assert error["message"].endswith("There is no argument 'limit'.")
        assert error["hint"] == "Leave it out: there are no arguments."
