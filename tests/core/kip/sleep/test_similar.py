"""Concepts that look alike and those that do not; their pairs on the work list, and how a pair leaves it."""

from __future__ import annotations

import pytest

from kbcore.errors import InvalidQuery
from kbcore.kip.sleep.worklist import WorklistQuery, page
from tests.support.repository.project import document
from tests.support.repository.sleeping import LONG_AGO, Sleeper

TEXT = "the service that answers questions of the depot at night"
PREFERENCES = {
    "strong coffee": {},
    "stronk coffee": {},
    "coffee, strong": {},
    "java": {"aliases": ["Strong  Coffee"]},
    "ticket 17": {},
    "ticket 18": {},
    "ab": {},
    "ac": {},
    "depot": {"description": TEXT},
    "night shift": {"description": f"{TEXT}s"},
    "something else": {"description": "the service that answers nobody at all by day"},
    "blue van": {"description": "what carries the post from the depot"},
    "old truck": {"description": "what carries the post from the depot"},
}
ALIKE = {
    ("java", "strong coffee"): "alias",
    ("coffee, strong", "strong coffee"): "same words",
    ("strong coffee", "stronk coffee"): "one letter",
    ("depot", "night shift"): "80% of the words",
    ("blue van", "old truck"): "100% of the words",
}


def test_names_aliases_and_texts_are_compared_and_other_digits_are_another_name(kip: Sleeper) -> None:
    for name, attributes in PREFERENCES.items():
        kip(
            'UPSERT { CONCEPT { {type: "Preference", name: :name} SET ATTRIBUTES :a } }',
            {"name": name, "a": attributes},
        )
    kip('UPSERT { CONCEPT { {type: "Person", name: "strong coffee"} } }')
    found = {tuple(sorted((one.name, one.about["kept"]["name"]))): one.why for one in kip.work("duplicate").items}
    assert found.keys() == ALIKE.keys()
    for pair, why in ALIKE.items():
        assert why in found[pair]
    [item] = [one for one in kip.work("duplicate").items if "80%" in one.why]
    kip.answer(item, 1)
    assert item.id not in {one.id for one in kip.work("duplicate").items}
    assert kip.work("duplicate").total == len(ALIKE) - 1


def test_pages_continue_after_what_was_shown_although_items_go_meanwhile(kip: Sleeper) -> None:
    blocks = " ".join(
        f'CONCEPT {{ {{type: "Event", name: "e{at}"}} SET ATTRIBUTES {{ start_time: "2026-01-01" }} }}'
        for at in range(5)
    )
    kip(f"UPSERT {{ {blocks} }} WITH METADATA {{ created_at: :at }}", {"at": LONG_AGO})
    first = kip.work("event", limit=2)
    assert ([one.name for one in first.items], first.total) == (["e0", "e1"], 5)
    kip.answer(first.items[1], 1)
    second = page(kip.memory(), "main", WorklistQuery("event", 2, first.next_cursor))
    assert [one.name for one in second.items] == ["e2", "e3"]
    third = page(kip.memory(), "main", WorklistQuery("event", 2, second.next_cursor))
    assert ([one.name for one in third.items], third.next_cursor) == (["e4"], "")
    with pytest.raises(InvalidQuery, match="another request"):
        page(kip.memory(), "main", WorklistQuery("task", 2, first.next_cursor))


def test_of_two_that_look_alike_the_one_that_a_file_links_is_kept(kip: Sleeper) -> None:
    for name in ("Ines Maria", "Inez Maria"):
        kip('UPSERT { CONCEPT { {type: "Person", name: :name} } }', {"name": name})
    links = "[{created_by: 'Person:Inez Maria'}]"
    kip.project.sync({"docs/requirements/r.md": document("R-1", title="t", status="open", links=links)})
    [item] = kip.work("duplicate").items
    assert (item.id, item.about["kept"]["id"]) == ("Person:Ines Maria", "Person:Inez Maria")
    kip.answer(item, 0)
    assert kip.attributes("Person:Inez Maria")["aliases"] == ["Ines Maria"]


def test_an_item_that_is_answered_is_gone(kip: Sleeper) -> None:
    kip(
        'UPSERT { CONCEPT ?d { {type: "Domain", name: "Small"} } CONCEPT ?t { {type: "Domain", name: "Team"} } '
        'CONCEPT { {type: "Person", name: "Jo"} SET PROPOSITIONS { ("belongs_to_domain", ?d) } } '
        'CONCEPT { {type: "Person", name: "Al"} } '
        'CONCEPT { {type: "SleepTask", name: "t"} SET ATTRIBUTES { requested_action: "review", priority: 3 } } }'
    )
    kip.sleep()
    given = {"result": "done", "domain": "Team"}
    assert kip.work().counts == {"task": 1, "unsorted": 1, "domain": 1}
    for kind in ("task", "unsorted", "domain"):
        kip.answer(kip.work(kind).items[0], 0, given)
    assert kip.work().counts == {"domain": 1}, "Team has got a member"
    assert kip.attributes("SleepTask:t")["result"] == "done"
    assert kip.domains("Person:Al") == {"Domain:Team"}


@pytest.mark.parametrize(
    ("attributes", "merged", "pairs"), [([{}], {"duplicates merged": 24}, 0), ([{"n": 1}, {"n": 2}], {}, 24)]
)
def test_a_name_that_many_have_is_merged_or_listed_as_one_that_two_have(
    kip: Sleeper, attributes: list[dict[str, int]], merged: dict[str, int], pairs: int
) -> None:
    for at in range(25):
        name = "".join(letter.upper() if at >> bit & 1 else letter for bit, letter in enumerate("green")) + " tea"
        said = attributes[at % len(attributes)]
        kip('UPSERT { CONCEPT { {type: "Preference", name: :n} SET ATTRIBUTES :a } }', {"n": name, "a": said})
    assert kip.done(6) == merged
    assert kip.work("duplicate").total == pairs
