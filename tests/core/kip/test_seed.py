"""Every statement that the seed text prints is taken, or is refused for the reason in the table of differences."""

from __future__ import annotations

import pytest

from kbcore.errors import KipRefused
from kbcore.kip import syntax as s
from kbcore.kip.binding import bind, placeholders
from kbcore.kip.parsing import parse
from kbcore.kip.printer import write
from tests.support.generators.kip_trees import without_places
from tests.support.oracles.kip_seed import CLAUSES, EXPRESSIONS, STATEMENTS

MAPS = {"context": {"k": 1}}
VALUES = {"issues_list": ["a"], "participants": ["a"], "ps": [], "count": 3, "new_confidence": 0.5, **MAPS}


def is_sound(text: str) -> None:
    tree = parse(text)
    assert without_places(parse(write(tree))) == without_places(tree)
    names = placeholders(tree)
    bound = bind(tree, {name: VALUES.get(name, "x") for name in names})
    assert placeholders(bound) == {}
    assert b'"parameter":"' not in without_places(bound).replace(b'"parameter":""', b"")
    if names:
        with pytest.raises(KipRefused, match=f"`{next(iter(names))}` is not given"):
            bind(tree)


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda one: one.place)
def test_a_statement_of_the_seed_is_taken_or_refused_with_a_reason(statement) -> None:
    if not statement.refusal:
        is_sound(statement.text)
        return
    with pytest.raises(KipRefused) as caught:
        parse(statement.text)
    assert statement.refusal in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.data["kip_code"] == "KIP_1001"
    assert statement.reason
    for text in statement.instead:
        is_sound(text)


@pytest.mark.parametrize("clause", CLAUSES)
def test_a_clause_that_the_seed_names_is_taken(clause) -> None:
    tree = parse(f"FIND(?x) WHERE {{ {clause} }}")
    assert isinstance(tree, s.FindCommand)
    assert len(tree.where.clauses) == 1


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_that_the_seed_names_is_taken(expression) -> None:
    tree = parse(f'FIND({expression}) WHERE {{ ?x {{type: "T"}} }}')
    assert isinstance(tree, s.FindCommand)
    assert len(tree.find) == 1


def test_upsert_for_each_row_has_its_where_and_its_metadata() -> None:
    [moved] = [one for one in STATEMENTS if one.place == "6, move"]
    tree = bind(parse(moved.text), {"predicate": "knows"})
    assert isinstance(tree, s.Upserts)
    match tree.upserts:
        case (
            s.Upsert(
                (s.Proposition(fact=s.WrittenLink(s.Variable("canonical"), s.Text("knows"))),),
                s.ClauseGroup(),
                s.Object(),
            ),
        ):
            assert tree.upserts[0].metadata.as_json() == {"source": "DuplicateMerge", "author": "$system"}
        case other:
            pytest.fail(f"{other}")
