"""Commands that touch many elements: they are read at once, and how much one command may write is bounded."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore import limits
from kbcore.view.view import View
from tests.support.repository.kip_writing import Kip

HUB = 'CONCEPT ?hub { {type: "Person", name: "hub"} }'


def people(kip: Kip, prefix: str, count: int) -> None:
    blocks = " ".join(
        f'CONCEPT {{ {{type: "Person", name: "{prefix}{n}"}} SET PROPOSITIONS {{ ("mentions", ?hub) }} }}'
        for n in range(count)
    )
    kip(f"UPSERT {{ {HUB} {blocks} }}")


WRITES = {
    "delete": 'DELETE CONCEPT ?x DETACH WHERE {{ ?x {{type: "Person"}} FILTER(STARTS_WITH(?x.name, "{0}")) }}',
    "unlink": 'DELETE PROPOSITIONS ?l WHERE {{ ?l (?x, "mentions", ?y) FILTER(STARTS_WITH(?x.name, "{0}")) }}',
    "update": (
        'UPDATE ?l SET METADATA {{seen: "now"}} WHERE {{ ?l (?x, "mentions", ?y) FILTER(STARTS_WITH(?x.name, "{0}")) }}'
    ),
    "upsert": (
        'UPSERT {{ PROPOSITION {{ (?x, "derived_from", ?y) }} }} '
        'WHERE {{ ?l (?x, "mentions", ?y) FILTER(STARTS_WITH(?x.name, "{0}")) }}'
    ),
    "merge": (
        'MERGE CONCEPT ?x INTO ?y WHERE {{ ?x {{type: "Person", name: "{0}"}} ?y {{type: "Person", name: "$self"}} }}'
    ),
}


@pytest.mark.sliced(2)
@pytest.mark.parametrize("what", WRITES)
def test_as_many_statements_read_a_few_elements_as_many(kip: Kip, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    people(kip, "few", 3)
    people(kip, "many", 30)
    if what == "merge":
        for name in ("few", "many"):
            where = f'WHERE {{ ?a {{type: "Person"}} FILTER(STARTS_WITH(?a.name, "{name}")) }}'
            block = f'{{ {{type: "Person", name: "{name}"}} SET PROPOSITIONS {{ ("mentions", ?a) }} }}'
            kip(f"UPSERT {{ CONCEPT {block} }} {where}")
    asked: list[int] = []
    for method in ("nodes", "links", "touching"):
        original: Any = getattr(View, method)

        def counted(view: View, ids: Any, original: Any = original) -> Any:
            if len(ids):
                asked.append(len(ids))
            return original(view, ids)

        monkeypatch.setattr(View, method, counted)
    counts = []
    for name in ("few", "many"):
        asked.clear()
        kip(WRITES[what].format(name))
        counts.append(len(asked))
    assert counts[0] == counts[1]


def test_blocks_and_links_of_all_rows_together_are_bounded(kip: Kip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_KIP_APPLIED", 8)
    people(kip, "p", 2)
    block = 'CONCEPT {{ {{type: "Person", name: "w"}} SET PROPOSITIONS {{ ("mentions", ?a) }} }}'
    write = f"UPSERT {{{{ {block} }}}} WHERE {{{{ {{}} }}}}"
    assert len(kip(write.format('?a {type: "Person"} FILTER(?a.name != "hub")'))["upsert_concept_nodes"]) == 4
    error = kip.refusal(write.format('?a {type: "Person"}'))
    assert (error["code"], error["data"]["line"], error["data"]["column"]) == ("KIP_4002", 1, 1)
    assert "would write 12 blocks and links" in error["message"]
    assert "the limit is 8" in error["message"]


def test_elements_to_be_deleted_by_one_command_are_bounded(kip: Kip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_KIP_DELETED", 2)
    people(kip, "p", 3)
    for command in (WRITES["delete"], WRITES["unlink"]):
        error = kip.refusal(command.format("p"))
        assert (error["code"], error["name"]) == ("KIP_4002", "ResourceExhausted")
        assert error["message"] == "The command would delete 3 elements; the limit is 2."
        assert error["hint"] == "Narrow WHERE down, and send several commands."
    assert kip(WRITES["unlink"].format("p1")) == {"deleted_propositions": 1}


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_a_merge_leads_links_about_several_moved_links_in_whatever_order(kip: Kip, name: str) -> None:
    abouts = ("mentions", "derived_from", "consolidated_to")
    links = " ".join(
        f'PROPOSITION {{ (?one, "{about}", ?two) SET ATTRIBUTES {{ is: "{about}" }} }}' for about in abouts
    )
    kip(
        f'UPSERT {{ {HUB} CONCEPT ?a {{ {{type: "Person", name: "{name}"}} }} '
        f'PROPOSITION ?one {{ (?hub, "mentions", ?a) }} PROPOSITION ?two {{ (?one, "mentions", ?a) }} {links} }}'
    )
    reported = kip(WRITES["merge"].format("hub"))
    assert (reported["links_repointed"], reported["links_deduplicated"]) == (5, 0)
    [one] = kip(f'FIND(?l.id) WHERE {{ ?l ({{name: "$self"}}, "mentions", {{name: "{name}"}}) }}')
    [two] = kip(f'FIND(?l.id) WHERE {{ ?l ((id: "{one}"), "mentions", {{name: "{name}"}}) }}')
    found = kip(f'FIND(?l.attributes.is) WHERE {{ ?l ((id: "{one}"), ?p, (id: "{two}")) }}')
    assert sorted(found) == sorted(abouts)
    assert len([one for one in kip.elements() if "subject" in one]) == 5
