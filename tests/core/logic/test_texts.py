"""The end of a text and of its clauses: what is reported as added is loaded, and reads back as the same clause."""

from __future__ import annotations

import pytest

from tests.support.logic.workspaces import LogicProject


@pytest.mark.sliced(2)
@pytest.mark.parametrize("text", ["a(1).\np :- q = *.\n", "a(1).\np :- q = *.", "a(1). p(+).\n:- dynamic +.  \n\n"])
def test_a_full_stop_that_belongs_to_a_symbol_is_a_syntax_error(logic: LogicProject, text: str) -> None:
    found = logic.prolog.import_file(logic.source(), "symbols.pl", text)
    assert (found.status, len(found.errors)) == ("partial", 1)
    assert "full stop is a part of the symbol" in found.errors[0][1]
    logic.values("a(X)", "X")
    assert logic.prolog.held_back == {}


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("text", "recorded"),
    [
        ("p :- q = *", "p :- q = * ."),
        ("p(*) \n\n", "p(*)."),
        ("p(1) % the end.\n", "p(1) % the end.\n."),
        ("p :- X = 0'.", "p :- X = 0'.."),
        ("p(1)\u2003\n", "p(1)."),
    ],
)
def test_the_last_clause_without_its_full_stop_is_recorded_as_a_text_that_is_loaded(
    logic: LogicProject, text: str, recorded: str
) -> None:
    logic.add(text)
    assert logic.snapshot() == recorded
    logic.add("b(1).")
    assert logic.values("b(X)", "X") == ["1"]
    assert logic.prolog.held_back == {}


@pytest.mark.sliced(1)
@pytest.mark.parametrize("operation", ["add", "import"])
def test_end_of_file_as_a_clause_ends_the_text(logic: LogicProject, operation: str) -> None:
    text = "a(1). end_of_file. b(1)."
    if operation == "import":
        assert logic.prolog.import_file(logic.source(), "end.pl", text).added == 1
    else:
        assert logic.add(text).succeeded == 1
    assert (logic.snapshot(), logic.values("a(X)", "X")) == ("a(1).", ["1"])
    assert logic.failure("b(X)").data["kind"] == "unknown_predicate"
    for done in (logic.add("end_of_file."), logic.remove("end_of_file.")):
        assert [one.message for one in done.outcomes] == ["There is no clause in this text."]
    assert logic.failure("end_of_file.").data["kind"] == "syntax_error"
    assert logic.values("X = end_of_file", "X") == ["end_of_file"]
