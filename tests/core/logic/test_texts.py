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


@pytest.mark.sliced(2)
@pytest.mark.parametrize("stop", [".", ""])
@pytest.mark.parametrize(
    ("text", "clause", "line"),
    [("%c\nz(1)", "z(1).", 2), ("z(5). % t\n/* b */\nz(6)", "z(6).", 3), ("a.\n/* b\n*/ z /* in */", "z /* in */.", 3)],
)
def test_a_comment_before_a_clause_is_left_out_with_and_without_the_full_stop(
    logic: LogicProject, text: str, clause: str, line: int, stop: str
) -> None:
    outcome = logic.add(text + stop).outcomes[-1]
    assert (outcome.clause, outcome.line) == (clause, line)


@pytest.mark.sliced(1)
@pytest.mark.parametrize("line", ["#!/usr/bin/env swipl", "#!/usr/bin/swipl -q 'it is \" /* not read"])
def test_a_first_line_that_names_a_program_is_skipped(logic: LogicProject, line: str) -> None:
    done = logic.prolog.import_file(logic.source(), "script.pl", f"{line}\na(1).\nb(.\n")
    assert (done.status, [at for at, _ in done.errors]) == ("partial", [3])
    assert (logic.snapshot(), logic.values("a(X)", "X")) == ("a(1).", ["1"])


@pytest.mark.parametrize("text", ["a(X)..", "a(X)...", "X = 1 .. "])
def test_full_stops_in_a_row_are_named_as_the_fault(logic: LogicProject, text: str) -> None:
    assert "a single one ends a clause" in logic.add(text).outcomes[0].message
    assert "a single one ends a clause" in logic.failure(text).message
