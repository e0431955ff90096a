"""Clauses that take an engine too much memory are refused by line, or the error names the ways out."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore import limits
from kbcore.errors import PrologFailed
from kbcore.errors.remedies import for_shell
from kbcore.limits import MAX_ARITY, MIB
from kbcore.logic import contents
from kbcore.logic.clauses import ClauseChange, NewClause
from tests.support.logic.workspaces import LogicProject, logic_project
from tests.support.repository.repos import git_env


@pytest.mark.parametrize(
    ("clause", "name"),
    [
        (":- dynamic a/1000000000.", "a/1000000000"),
        (f":- dynamic a/1, b/{MAX_ARITY + 1}.", f"b/{MAX_ARITY + 1}"),
        (f":- dynamic([a/1, b//{MAX_ARITY - 1}]).", f"b/{MAX_ARITY + 1}"),
        (f"p({','.join('1' * (MAX_ARITY + 1))}).", f"p/{MAX_ARITY + 1}"),
        (f"p({','.join('1' * (MAX_ARITY - 1))}) --> [].", f"p/{MAX_ARITY + 1}"),
        (f"p :- q({','.join('1' * (MAX_ARITY + 1))}).", f"q/{MAX_ARITY + 1}"),
    ],
)
def test_a_predicate_with_too_many_arguments_is_refused_by_its_line_and_other_clauses_are_added(
    logic: LogicProject, clause: str, name: str
) -> None:
    done = logic.add(f"a(1).\n{clause}\nc(1).")
    assert [(one.status, one.line) for one in done.outcomes] == [("success", 1), ("error", 2), ("success", 3)]
    assert done.outcomes[1].message == f"`{name}` is refused: a predicate has at most 1,024 arguments."
    assert logic.values("a(X), c(X)", "X") == ["1"]


def test_a_predicate_with_as_many_arguments_as_allowed_is_added(logic: LogicProject) -> None:
    many = ",".join("1" * MAX_ARITY)
    assert logic.add(f"p({many}).", f":- dynamic q/{MAX_ARITY}.").succeeded == 2
    assert logic.values(f"p({many.replace('1', 'X', 1)})", "X") == ["1"]


def test_a_goal_with_too_many_arguments_that_is_made_at_run_time_is_refused(logic: LogicProject) -> None:
    for goal in (f"functor(G, p, {MAX_ARITY + 1}), call(G)", f"length(L, {MAX_ARITY + 1}), apply_to(p, L)"):
        logic.add("apply_to(Name, L) :- G =.. [Name | L], findall(x, G, _).")
        assert logic.failure(goal).data == {"kind": "refused", "name": f"p/{MAX_ARITY + 1}", "reason": "arity"}


def test_a_variable_is_called_with_as_many_arguments_as_a_predicate_may_have(logic: LogicProject) -> None:
    for count in (8, 9, 200):
        given = ", ".join(map(str, range(count)))
        logic.add(f"many({given}).")
        assert logic.answers(f"G = many, call(G, {given})") == [{"bindings": {"G": "many"}}]
        assert logic.failure(f"G = nope, call(G, {given})").data["name"] == f"nope/{count}"


def test_a_clause_with_a_nul_is_named_with_its_line_and_the_others_are_added(logic: LogicProject) -> None:
    found = logic.prolog.import_file(logic.source(), "nul.pl", "a(1).\nb('a\0b').\nc(2).\n")
    assert (found.status, found.added) == ("partial", 2)
    [error] = found.errors
    assert (error[0], "NUL" in error[1]) == (2, True)
    assert logic.values("c(X)", "X") == ["2"]


def test_a_recorded_clause_with_too_many_arguments_is_held_back_and_the_others_are_loaded(logic: LogicProject) -> None:
    text = ":- dynamic a/1000000000."
    recorded = NewClause(text, "k", "dynamic", kind="directive")
    ids = logic.source().clauses.change(lambda _: ClauseChange(added=[recorded])).ids
    logic.add("b(1).")
    assert logic.values("b(X)", "X") == ["1"]
    message = "`a/1000000000` is refused: a predicate has at most 1,024 arguments."
    assert logic.prolog.held_back["held_back"]["clauses"] == [{"id": ids[0], "message": message}]


def test_an_engine_that_ends_while_it_loads_the_workspace_says_so_and_names_the_ways_out(
    engine: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_ENGINE_BYTES", 400 * MIB)
    names = [", ".join(f"a{number}x{other}/{MAX_ARITY}" for other in range(300)) for number in range(200)]
    large = [NewClause(f":- dynamic {one}.", "k", "dynamic", kind="directive", file="large.pl") for one in names]
    with logic_project(tmp_path / "p", git_env(engine)) as logic:
        logic.add("b(1).")
        logic.source().clauses.change(lambda _: ClauseChange(added=large))
        for _ in range(2):
            with pytest.raises(PrologFailed) as raised:
                logic.first("b(X)")
            assert raised.value.data["kind"] in {"loading_crash", "loading_memory"}
            assert "while it loaded the workspace" in raised.value.message
            said = for_shell(raised.value.hint)
            assert all(
                one in said
                for one in ("`kb prolog -g ':unimport FILE'`", "`kb delete …`", "`kb revert …`", "kb query clause")
            )
        contents.remove_file(logic.source().clauses, "large.pl")
        assert logic.values("b(X)", "X") == ["1"]


def test_a_file_of_long_lists_is_imported(logic: LogicProject) -> None:
    text = "".join(f"p({number}, [{','.join('1' * 2480)}]).\n" for number in range(1000))
    done = logic.prolog.import_file(logic.source(), "lists.pl", text)
    assert (done.status, done.added, done.errors) == ("success", 1000, ())
    assert logic.values("p(999, L), sum_list(L, Sum)", "Sum") == ["2480"]


def test_a_text_has_more_clauses_and_faults_than_the_stacks_of_an_engine_hold(logic: LogicProject) -> None:
    lines = 200_000
    items = logic.prolog.parse(logic.source(), "a b.\n" * lines + "c.", "checked")
    assert [(one.line, bool(one.error)) for one in items[-2:]] == [(lines, True), (lines + 1, False)]
    assert (len(items), sum(bool(one.error) for one in items)) == (lines + 1, lines)


def test_a_key_of_a_clause_is_the_one_that_records_have(logic: LogicProject) -> None:
    text = "p([a, B|C], B, 'x y', \"t\", 1, -2, 3.5, 1r3, [], '[]', f(), {x}, C)."
    [item] = logic.prolog.parse(logic.source(), text, "unchecked")
    assert item.key == "a7a8cd261029f2cbc439de234476ccdc"
