"""Two branches sleep apart and are merged: a later cycle does its work, and leaves to people what is to be decided."""

from __future__ import annotations

import pytest

from kbcore.query.conflicts import find_conflicts
from kbcore.share.merging import merge
from kbcore.store import branches
from tests.core.kip.sleep.test_cycle import remember
from tests.support.repository.project import AUTHOR
from tests.support.repository.sleeping import Sleeper

WISH = '(?s, "prefers", ?o)'


@pytest.fixture
def known(kip: Sleeper) -> Sleeper:
    """A memory, of which branch topic has a copy."""
    remember(kip)
    kip.project.switch("topic", create=True)
    branches.open_branch(kip.project.workspace(), None)
    kip.project.switch("main")
    return kip


def contested(kip: Sleeper) -> set[tuple[str, str]]:
    return {(one.name, one.field) for one in find_conflicts(kip.project.view())}


def bring(kip: Sleeper, source: str, target: str) -> None:
    merge(kip.project.workspace(), target, source, AUTHOR)


def apart(kip: Sleeper, theirs: str = "", ours: str = "") -> None:
    """Have both branches write and sleep, a month apart, and merge topic into main."""
    for branch, text in (("topic", theirs), ("main", ours)):
        kip.project.switch(branch)
        if text:
            kip(text)
        kip.sleep(force=True)
        kip.later(30)
    bring(kip, "topic", "main")


def test_what_a_cycle_writes_down_of_itself_is_settled_by_the_next_one_and_no_entry_is_lost(known: Sleeper) -> None:
    apart(known)
    assert ("Person:$system", "attributes.maintenance_log") in contested(known)

    known.sleep(9)

    assert not [one for one in contested(known) if one[0] == "Person:$system"]
    system = known.attributes("Person:$system")
    times = [entry["timestamp"] for entry in system["maintenance_log"]]
    assert len(times) == 3
    assert times == sorted(times)
    assert system["last_sleep_cycle"] == times[-1]
    bring(known, "main", "topic")
    known.project.switch("topic")
    assert not [one for one in contested(known) if one[0] == "Person:$system"]


def test_a_whole_cycle_goes_through_whatever_is_contested_and_decides_nothing(known: Sleeper) -> None:
    texts = [
        f"""UPSERT {{ CONCEPT ?e {{ {{type: "Event", name: "new"}} SET ATTRIBUTES {{ start_time: "2026-0{n}-01" }} }}
          CONCEPT {{ {{type: "SleepTask", name: "u"}} SET ATTRIBUTES {{ result: "{n}" }} }}
          CONCEPT {{ {{type: "Preference", name: "green tea"}} SET ATTRIBUTES {{ n: 1{n} }} }}
          CONCEPT {{ {{type: "SleepTask", name: "v"}} SET ATTRIBUTES
            {{ requested_action: "archive", target_type: "Person", target_name: "Jo" }} }}
          CONCEPT {{ {{type: "Person", name: "Jo"}} SET ATTRIBUTES {{ status: "s{n}" }} }} }}"""
        for n in (1, 2)
    ]
    for branch, text in zip(("topic", "main"), texts, strict=True):
        known.project.switch(branch)
        known(text)
        known(f"UPDATE ?l SET METADATA {{ confidence: 0.{branch.count('a') + 6} }} WHERE {{ ?l {WISH} }}")
    bring(known, "topic", "main")
    before = contested(known)
    assert {field for _, field in before} >= {"confidence", "status", "attributes.n", "attributes.start_time"}
    known.later(100)

    report = known.sleep(force=True)

    assert contested(known) == before
    assert [one.phase for one in report.phases] == [1, 2, 6, 3, 4, 5, 7, 8, 9]
    assert report.phases[1].left == {"contested, for `kb resolve`": 1}


@pytest.mark.parametrize("rounds", [2])
def test_branches_that_sleep_apart_again_and_again_go_on(known: Sleeper, rounds: int) -> None:
    for _ in range(rounds):
        apart(known)
        bring(known, "main", "topic")
    known.sleep(force=True)
