"""The limits of one command: what exceeds them is refused before the database plans it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kbcore import limits
from kbcore.errors import KipRefused
from kbcore.kip import syntax as s
from kbcore.kip.binding import read
from kbcore.kip.checking import check_size
from kbcore.kip.errors import placing

PERSON = '?x {type: "Person"}'


def where(clauses: str) -> str:
    return f"FIND(?x) WHERE {{ {clauses} }}"


MOST = {
    "patterns": (limits.MAX_KIP_CLAUSES, lambda n: where(f"{PERSON} " * n)),
    "links": (limits.MAX_KIP_CLAUSES, lambda n: where('(?x, "mentions", ?y) ' * n)),
    "groups": (limits.MAX_KIP_CLAUSES, lambda n: where(PERSON + f" OPTIONAL {{ {PERSON} }}" * ((n - 1) // 2))),
    "filters": (limits.MAX_KIP_CLAUSES, lambda n: where(f"{PERSON} " + 'FILTER(?x.name == "a") ' * (n - 1))),
    "conditions": (
        limits.MAX_KIP_CONDITIONS,
        lambda n: where(f"{PERSON} FILTER({' && '.join(['?x.name != :a'] * n)})"),
    ),
    "tests": (
        limits.MAX_KIP_CONDITIONS,
        lambda n: where(f"{PERSON} FILTER({' || '.join(['IS_NULL(?x.attributes.a)'] * n)})"),
    ),
    "values": (
        limits.MAX_KIP_VALUES,
        lambda n: where(f"{PERSON} FILTER(IN(?x.name, [{', '.join(['1'] * (n - 1))}]) || IN(?x.name, [1]))"),
    ),
    "expressions": (limits.MAX_KIP_EXPRESSIONS, lambda n: f"FIND({', '.join(['?x.name'] * n)}) WHERE {{ {PERSON} }}"),
    "order": (
        limits.MAX_KIP_EXPRESSIONS,
        lambda n: f"{where(PERSON)} ORDER BY {', '.join(['?x.name'] * (n - 1))}",
    ),
}


def check(text: str) -> None:
    tree = read(text, {"a": "a"})
    assert isinstance(tree, s.FindCommand)
    with placing(text):
        check_size(tree)


@pytest.mark.parametrize("what", MOST)
def test_a_command_may_ask_as_much_as_the_limit_and_no_more(what: str) -> None:
    most, text_of = MOST[what]
    make: Callable[[int], str] = text_of
    check(make(most))
    with pytest.raises(KipRefused) as refused:
        check(make(most + 2))
    error = refused.value
    assert error.data["kip_code"] == "KIP_4002"
    assert f"the limit is {most} (line 1, column" in error.message
    assert error.hint
