"""``kb sleep``: what people and schedulers see of a cycle, and what two processes do to each other."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from kbcore.errors import AlreadyAsleep
from tests.cli.test_terminal import at_terminal
from tests.mcp.agents import locked
from tests.support.processes.cli import environment, refresh_view, run_kb
from tests.support.processes.forked import Forked
from tests.support.repository.places import stores_at

PEOPLE = " ".join(f'CONCEPT {{ {{type: "Person", name: "p{at:02}"}} }}' for at in range(12))


@pytest.fixture
def remembered(grown):
    """A repository whose memory has a dozen people that belong to no domain."""
    return grown(a_dozen_people, "ready")


def a_dozen_people(root, kb):
    kb("kip", f"UPSERT {{ {PEOPLE} }}")
    refresh_view(root, kb)


@pytest.mark.sliced
def test_a_cycle_is_a_table_of_phases_and_measures_and_one_document(remembered, kb):
    tried = kb("sleep", "--dry-run", "--json").json
    assert tried["dry_run"] is True
    ran = kb("sleep")
    assert ran.status == 0
    assert "4 orphans     orphans put into Unsorted          12    2\n" in ran.out
    assert "concepts without a domain           12      0  < 10\n" in ran.out
    assert "Left for judgement: 11 similar pairs" not in ran.out, "p01 and p02 differ in their digits"
    assert "Left for judgement: 12 concepts in Unsorted.\n" in ran.out
    assert "main at seq 3." in ran.err
    assert kb("log", "--json").json["records"][0]["source"] == "sleep:9"


@pytest.mark.sliced
def test_a_narrow_terminal_shows_all_counts_and_says_whole_why_a_task_failed(remembered, kb):
    task = '{requested_action: "archive", target_type: "Person", target_name: "nobody of this name"}'
    kb("kip", f'UPSERT {{ CONCEPT {{ {{type: "SleepTask", name: "forget nobody"}} SET ATTRIBUTES {task} }} }}')
    _, shown = at_terminal(remembered, ["--no-color", "sleep", "--dry-run"], env={"COLUMNS": "40"})
    lines = shown.splitlines()
    table = lines[: lines.index("Nothing was written: this was a dry run.") - 3]
    assert "The task forget nobody failed: There is no such concept." in " ".join(table)
    [orphans] = [line for line in table if line.startswith("4 orphans")]
    assert re.search(r"… +12 +\d$", orphans), orphans
    measures = [line[:15] for line in table if line.startswith("concepts")]
    assert len(set(measures)) == 2, "they are distinguished"


@pytest.mark.sliced
def test_within_the_interval_nothing_is_done_and_the_option_to_force_is_named(remembered, kb):
    assert kb("sleep", "--quiet") == (0, "", "")
    ran = kb("sleep")
    assert (ran.status, "Nothing was done" in ran.out, "kb sleep --force" in ran.err) == (0, True, True)
    assert kb("sleep", "--json").json["phases"] == []
    assert len(kb("sleep", "--force", "--json").json["phases"]) == 9


@pytest.mark.sliced
def test_phases_are_chosen_by_number(remembered, kb):
    found = kb("sleep", "--phase", "4", "--phase", "1", "--json").json
    assert [one["phase"] for one in found["phases"]] == [1, 4]
    ran = kb("sleep", "--phase", "10")
    assert (ran.status, "no phase 10" in ran.err) == (2, True)


@pytest.mark.sliced
def test_doctor_says_when_a_cycle_is_due(remembered, kb):
    warned = "warning     memory main: 12 concepts belong to no domain; more than 10 is much.\n"
    assert f"{warned}{'':14}Run `kb sleep`.\n" in kb("doctor").out
    kb("sleep")
    assert "ok          memory main: What agents remember is in order; the last cycle was at 2" in kb("doctor").out


def test_settings_that_are_none_are_refused_with_their_place(remembered, kb):
    wrong = '{"sleep": {"decayFactor": 1.5, "mostOrphans": 0.5, "naps": 1, "domainOfType": {"Person": 7}}}'
    (remembered / ".kb" / "config.json").write_text(wrong)
    error = kb("sleep", "--json").error
    assert error["code"] == "invalid_config"
    paths = [one["path"].removeprefix("$.sleep.") for one in error["details"]]
    assert paths == ["naps", "decayFactor", "mostOrphans", "domainOfType.Person"]
    assert error["details"][1]["hint"] == "Left out, it is 0.95."


@pytest.mark.parametrize(
    ("members", "key", "bound"),
    [
        ('{"leastMembers": 9, "mostMembers": 4}', "mostMembers", "at least 9"),
        ('{"leastMembers": 101}', "leastMembers", "at most 100"),
        ('{"mostMembers": 4}', "mostMembers", "at least 5"),
    ],
)
def test_bounds_of_a_domain_that_cross_are_refused(ready, kb, members, key, bound):
    (ready / ".kb" / "config.json").write_text(f'{{"sleep": {members}}}')
    error = kb("sleep", "--json").error
    assert (error["code"], [one["path"] for one in error["details"]]) == ("invalid_config", [f"$.sleep.{key}"])
    assert bound in error["details"][0]["message"]


def test_a_domain_that_is_not_there_is_reported_once(remembered, kb):
    (remembered / ".kb" / "config.json").write_text('{"sleep": {"domainOfType": {"Person": "Nowhere"}}}')
    assert kb("sleep").out.count("The settings name the domain Nowhere, and there is none.") == 1


@pytest.mark.sliced
def test_the_rules_find_nothing_wrong_with_what_a_cycle_wrote(remembered, kb):
    kb(
        "kip",
        'UPSERT { CONCEPT { {type: "SleepTask", name: "t"} '
        'SET PROPOSITIONS { ("assigned_to", {type: "Person", name: "$system"}) } } }',
    )
    kb("sleep")
    kb("sleep", "--force")
    assert kb("check", "--json").json["violations"] == []


@pytest.mark.sliced
def test_of_two_processes_the_second_says_so_and_ends_with_a_status_of_its_own(remembered, kb):
    assert kb("sleep", "--phase", "1").status == 0
    [lock] = stores_at(remembered).glob(".sleep-*.lock")
    with locked(lock.parent, lock.name):
        ran = run_kb(remembered, "sleep")
        assert ran.status == AlreadyAsleep.exit_status == 68
        assert "A cycle of main runs already, by kb sleep (process " in ran.err
        assert kb("sleep", "--dry-run").status == 0
    assert kb("log", "--json").json["records"][0]["seq"] == 1
    assert kb("sleep").status == 0


@pytest.mark.sliced
def test_a_process_that_is_killed_leaves_whole_phases_and_the_next_one_finishes(remembered, kb):
    kb("kip", 'UPSERT { CONCEPT { {type: "Event", name: "e"} SET ATTRIBUTES { start_time: "2026-01-01" } } }')
    head = next(stores_at(remembered).glob("*/head.json"))
    before = head.read_bytes()
    with Path(os.devnull).open("r+b") as nothing:
        process = Forked("kb", ["sleep"], environment(), remembered, [nothing.fileno()] * 3)
    deadline = time.monotonic() + 60
    while head.read_bytes() == before and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    process.wait(60)
    ran = kb("sleep", "--force", "--json")
    assert ran.status == 0, ran.err
    records = [one["message"] for one in kb("log", "--source", "sleep", "--json").json["records"]]
    assert sum("orphans" in one for one in records) == sum("events" in one for one in records) == 1
    assert kb("verify").status == 0
    assert ran.json["after"]["metrics"][0]["value"] == 0
