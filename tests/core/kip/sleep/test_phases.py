"""The effect of each phase, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.kip.sleep.memory import days_later
from tests.support.repository.project import document
from tests.support.repository.sleeping import LONG_AGO, NOW, Sleeper

TASK = """UPSERT { CONCEPT { {type: "SleepTask", name: :name}
  SET ATTRIBUTES { requested_action: :action, target_type: :type, target_name: :target, priority: :priority }
  SET PROPOSITIONS { ("assigned_to", {type: "Person", name: :who}) } } }"""
PERSON = 'UPSERT { CONCEPT { {type: "Person", name: :name} SET ATTRIBUTES { person_class: "Human" } } }'
UNSURE = (
    'UPSERT { CONCEPT { {type: "Person", name: "Ines"} '
    'SET PROPOSITIONS { ("created_by", {type: "Person", name: "$self"}) } } } WITH METADATA { confidence: 0.5 }'
)
OLD_FACT = """UPSERT { CONCEPT ?wish { {type: "Preference", name: :wish} }
  CONCEPT { {type: "Person", name: "Ines"} SET PROPOSITIONS { ("prefers", ?wish) } } }
WITH METADATA { confidence: :confidence, created_at: :at }"""
WISH = ("Person:Ines", "prefers", "Preference:tea")
CONFIG = ".kb/config.json"


def task(kip: Sleeper, name: str, action: str, target: tuple[str, str] = ("", ""), who: str = "$system") -> str:
    given = {"name": name, "action": action, "type": target[0], "target": target[1], "who": who, "priority": 2}
    kip(TASK, given)
    return f"SleepTask:{name}"


def test_the_memory_is_counted_and_nothing_written(kip: Sleeper) -> None:
    kip(PERSON, {"name": "Ines"})
    kip.project.apply(entities=[{"id": "R-1", "type": "req", "title": "t", "status": "open"}])
    before = kip.seq()
    report = kip.sleep(1)
    assert (kip.seq(), report.phases[0].seq) == (before, 0)
    assert report.before.orphans == {"Person": 1}, "requirements, definitions and the actors are no part of it"
    assert [(one.name, one.value) for one in report.before.metrics] == [
        ("orphans", 1),
        ("unsorted", 0),
        ("stale_events", 0),
        ("average_confidence", None),
        ("domains_out_of_bounds", 0),
    ]


def test_a_task_of_a_status_that_no_task_has_is_left_for_judgement(kip: Sleeper) -> None:
    lost = task(kip, "lost", "review", ("Event", "e"))
    for status, listed in (("done?", [lost]), ("in_progress", [lost]), ("completed", []), ("failed", [])):
        kip('UPDATE ?t SET ATTRIBUTES {status: :status} WHERE { ?t {name: "lost"} }', {"status": status})
        assert [item.id for item in kip.work("task").items] == listed, status
        assert ["'done?' is none that a task has" in item.why for item in kip.work("task").items] == [
            status == "done?" for _ in listed
        ]


def test_a_task_to_archive_is_done_and_others_are_handed_over(kip: Sleeper) -> None:
    kip(
        'UPSERT { CONCEPT ?d { {type: "Domain", name: "Talk"} } '
        'CONCEPT { {type: "Event", name: "e"} SET PROPOSITIONS { ("belongs_to_domain", ?d) } } }'
    )
    done, looked, other = (
        task(kip, "a", "archive", ("Event", "e")),
        task(kip, "b", "review", ("Event", "e")),
        task(kip, "c", "review", who="$self"),
    )
    assert kip.done(2) == {"tasks completed": 1, "tasks handed over": 1, "concepts archived": 1}
    assert kip.attributes("Event:e") == {"status": "archived", "archived_at": NOW, "archived_by": "$system"}
    assert kip.domains("Event:e") == {"Domain:Archived"}
    assert [kip.attributes(key).get("status") for key in (done, looked, other)] == ["completed", "in_progress", None]
    assert kip.attributes(done)["completed_at"] == NOW


NOT_TO_ARCHIVE = {
    ("Person", "nobody"): "no such concept",
    ("Nothing", "x"): "no concept type",
    ("", ""): "names no target",
    ("Person", "$self"): "protected",
    ("Domain", "CoreSchema"): "protected",
    ("$ConceptType", "Preference"): "protected",
    ("Requirement", "R-1"): "not a part of the memory",
    ("Person", "Ada"): "docs/requirements/ada.md",
}


def test_a_task_that_cannot_be_done_fails_and_says_why(kip: Sleeper) -> None:
    kip.project.sync({"docs/requirements/ada.md": document("Ada", type="Person", title="Ada", status="active")})
    kip.project.apply(entities=[{"id": "R-1", "type": "req", "title": "t", "status": "open"}])
    keys = {task(kip, f"t{at}", "archive", target): why for at, (target, why) in enumerate(NOT_TO_ARCHIVE.items())}
    before = [one for one in kip.elements() if one["id"] not in keys]
    assert kip.done(2) == {"tasks failed": len(keys)}
    for key, why in keys.items():
        assert kip.attributes(key)["status"] == "failed"
        assert why in kip.attributes(key)["result"]
    assert [one for one in kip.elements() if one["id"] not in keys] == before


def test_the_more_urgent_task_goes_first_where_not_all_have_room(kip: Sleeper, monkeypatch) -> None:
    monkeypatch.setattr("kbcore.limits.MAX_SLEEP_ITEMS", 4)
    task(kip, "later", "review")
    kip(TASK, {"name": "now", "action": "review", "type": "", "target": "", "who": "$system", "priority": 9})
    report = kip.sleep(2)
    assert report.phases[0].left == {"left to the next cycle": 1}
    assert kip.attributes("SleepTask:now")["status"] == "in_progress"
    assert kip.done(2) == {"tasks handed over": 1}


def test_a_priority_that_is_no_number_counts_as_one_and_stops_nothing(kip: Sleeper, monkeypatch) -> None:
    monkeypatch.setattr("kbcore.limits.MAX_SLEEP_ITEMS", 4)
    for name, priority in (("odd", "nan"), ("urgent", 2), ("endless", "-Infinity")):
        kip(TASK, {"name": name, "action": "review", "type": "", "target": "", "who": "$system", "priority": priority})
    for _ in range(3):
        assert kip.done(2) == {"tasks handed over": 1}
    assert [one.name for one in kip.work("task").items] == ["urgent", "odd", "endless"]


def test_what_has_no_room_in_a_phase_waits_for_the_next_cycle(kip: Sleeper, monkeypatch) -> None:
    monkeypatch.setattr("kbcore.limits.MAX_SLEEP_ITEMS", 2)
    for name in ("a", "b b", "B b", "c"):
        kip(PERSON, {"name": name})
    kip(
        'UPSERT { CONCEPT ?w { {type: "Preference", name: "tea"} } CONCEPT { {type: "Person", name: "B b"} '
        'SET PROPOSITIONS { ("prefers", ?w) ("mentions", ?w) } } CONCEPT { {type: "Person", name: "b b"} '
        'SET PROPOSITIONS { ("prefers", ?w) ("mentions", ?w) } } }'
    )
    assert kip.left(6) == {"left to the next cycle": 1}
    assert kip.done(4) == kip.done(4) == {"orphans put into Unsorted": 2}
    assert kip.done(4) == {"orphans put into Unsorted": 1}
    assert kip.done(4) == {}


def test_what_belongs_nowhere_goes_to_unsorted_or_where_the_settings_say(kip: Sleeper) -> None:
    kip('UPSERT { CONCEPT { {type: "Domain", name: "Tastes"} } CONCEPT { {type: "Domain", name: "Web"} } }')
    kip(PERSON, {"name": "Ines"})
    kip('UPSERT { CONCEPT { {type: "Preference", name: "tea"} } }')
    kip('UPSERT { CONCEPT { {type: "Event", name: "e"} SET ATTRIBUTES { tags: ["x", "web"] } } }')
    task(kip, "t", "review")
    rules = '{"domainOfType": {"Preference": "Tastes", "Person": "Nowhere"}, "domainOfTag": {"web": "Web"}}'
    kip.project.write({CONFIG: f'{{"sleep": {rules}}}'})
    report = kip.sleep(4)
    assert report.phases[0].done == {"orphans put into Unsorted": 1, "orphans put into a domain by rule": 2}
    assert report.phases[0].issues == ("The settings name the domain Nowhere, and there is none.",)
    places = {key: kip.domains(key) for key in ("Person:Ines", "Preference:tea", "Event:e", "SleepTask:t")}
    assert places == {
        "Person:Ines": {"Domain:Unsorted"},
        "Preference:tea": {"Domain:Tastes"},
        "Event:e": {"Domain:Web"},
        "SleepTask:t": set(),
    }
    assert kip.confidence("Person:Ines", "belongs_to_domain", "Domain:Unsorted") == 0.5
    link = kip.project.link("Preference:tea", "belongs_to_domain", "Domain:Tastes")
    said = [link.fields[name] for name in ("confidence", "metadata.author", "metadata.source")]
    assert said == [0.7, "$system", "OrphanResolution"]


def test_what_found_its_place_leaves_unsorted(kip: Sleeper) -> None:
    for name in ("Ines", "Jo"):
        kip(PERSON, {"name": name})
    kip('UPSERT { CONCEPT { {type: "Preference", name: "tea"} } CONCEPT { {type: "Domain", name: "Team"} } }')
    kip.sleep(4)
    kip(
        'UPSERT { CONCEPT { {type: "Person", name: "Ines"} '
        'SET PROPOSITIONS { ("belongs_to_domain", {type: "Domain", name: "Team"}) } } }'
    )
    kip.project.write({CONFIG: '{"sleep": {"domainOfType": {"Preference": "Team"}}}'})
    report = kip.sleep(3)
    assert report.phases[0].done == {"concepts moved out of Unsorted": 2}
    assert report.phases[0].left == {"to be decided": 1}
    assert kip.domains("Person:Ines") == kip.domains("Preference:tea") == {"Domain:Team"}
    assert kip.domains("Person:Jo") == {"Domain:Unsorted"}


EVENTS = {
    'start_time: "2026-11-13T09:29:59Z"': True,
    'start_time: "2026-11-13T09:30:01Z"': False,
    'start_time: "2026-11-13T10:29:00+01:00"': True,
    'start_time: "2026-11-13T08:31:00-01:00"': False,
    'start_time: "2026-11-01"': True,
    'start_time: "once"': False,
    'start_time: "2026-01-01", consolidation_status: "completed"': False,
    'start_time: "2026-01-01", status: "archived"': False,
}


def test_an_old_event_is_marked(kip: Sleeper) -> None:
    blocks = [
        f'CONCEPT {{ {{type: "Event", name: "{at}"}} SET ATTRIBUTES {{ {attributes} }} }}'
        for at, attributes in enumerate(EVENTS)
    ]
    kip(f"UPSERT {{ {' '.join(blocks)} }}")
    assert kip.done(5) == {"events marked pending": sum(EVENTS.values())}
    for at, (attributes, is_stale) in enumerate(EVENTS.items()):
        is_marked = kip.attributes(f"Event:{at}").get("consolidation_status") == "pending"
        assert is_marked is is_stale, attributes
    assert kip.done(5) == {}


def test_an_old_event_that_a_file_states_is_left_and_not_counted(kip: Sleeper) -> None:
    event = '{id: "Event:e", type: Event, title: e, attributes: {start_time: "2026-01-01"}}'
    kip.project.sync({"symbols.yaml": f"symbols:\n  - {event}\n"})
    [done] = kip.sleep(5).phases
    assert (done.done, done.left) == ({}, {"stated by files": 1})
    assert (kip.sleep(1).after.metric("stale_events").value, kip.work("event").total) == (0, 0)


def test_an_event_of_which_something_lasts_is_not_old(kip: Sleeper) -> None:
    kip(
        'UPSERT { CONCEPT ?w { {type: "Preference", name: "tea"} } CONCEPT { {type: "Event", name: "e"} '
        'SET ATTRIBUTES { start_time: "2026-01-01" } SET PROPOSITIONS { ("consolidated_to", ?w) } } }'
    )
    assert kip.done(5) == {}


FACTS = ((0.9, 0.9, 0.9), (1, 0.9, 0.855), (2.5, 0.9, 0.81225), (100, 0.9, 0.3), (3, 0.3, 0.3), (3, 0.2, 0.2))
"""The age of a fact in weeks, its confidence, and the confidence that is left."""


def test_confidence_sinks_by_whole_weeks_to_the_floor(kip: Sleeper) -> None:
    for at, (weeks, confidence, _) in enumerate(FACTS):
        kip(OLD_FACT, {"wish": str(at), "confidence": confidence, "at": days_later(NOW, -7 * weeks)})
    assert kip.done(7) == {"confidences lowered": 3}
    for at, (weeks, _, left) in enumerate(FACTS):
        link = kip.project.link("Person:Ines", "prefers", f"Preference:{at}")
        assert link.fields["confidence"] == left
        assert link.fields["metadata.created_at"] == days_later(NOW, -7 * weeks)
        assert (link.created_at, link.created_by) == (NOW, "tester"), "KB keeps when it was written"


@pytest.mark.sliced
def test_how_often_one_sleeps_makes_no_difference_to_confidence(kip: Sleeper) -> None:
    kip(OLD_FACT, {"wish": "tea", "confidence": 0.9, "at": NOW})
    for _ in range(4):
        kip.later(21 / 4)
        kip.sleep(7)
    assert kip.confidence(*WISH) == pytest.approx(0.9 * 0.95**3, abs=1e-5)
    assert kip.project.link(*WISH).fields["metadata.decay_applied_at"] == "2026-12-11T09:30:00.000000Z"


def test_who_states_a_link_again_lets_its_time_begin_again(kip: Sleeper) -> None:
    kip(OLD_FACT, {"wish": "tea", "confidence": 0.9, "at": LONG_AGO})
    kip.sleep(7)
    kip.later(30)
    kip('UPDATE ?l SET METADATA { confidence: 0.8 } WHERE { ?l (?s, "prefers", ?o) }')
    kip.later(6)
    assert kip.done(7) == {}
    kip.later(1)
    kip.sleep(7)
    assert kip.confidence(*WISH) == 0.76


def test_a_link_that_a_merge_led_elsewhere_does_not_sink_twice_for_the_same_weeks(kip: Sleeper) -> None:
    kip(OLD_FACT, {"wish": "tea", "confidence": 0.9, "at": days_later(NOW, -14)})
    kip('UPSERT { CONCEPT { {type: "Preference", name: "infusions"} } }')
    kip.sleep(7)
    kip('MERGE CONCEPT ?x INTO ?y WHERE { ?x {name: "tea"} ?y {name: "infusions"} }')
    led = ("Person:Ines", "prefers", "Preference:infusions")
    assert kip.done(7) == {}
    assert kip.confidence(*led) == 0.81225
    kip.later(7)
    kip.sleep(7)
    assert kip.confidence(*led) == pytest.approx(0.9 * 0.95**3, abs=1e-5)


def test_a_link_that_was_stated_again_and_then_led_elsewhere_counts_from_then(kip: Sleeper) -> None:
    kip(OLD_FACT, {"wish": "tea", "confidence": 0.9, "at": days_later(NOW, -100)})
    kip('UPSERT { CONCEPT { {type: "Preference", name: "infusions"} } }')
    kip('UPDATE ?l SET METADATA { confidence: 0.8 } WHERE { ?l (?s, "prefers", ?o) }')
    kip.later(6)
    kip('MERGE CONCEPT ?x INTO ?y WHERE { ?x {name: "tea"} ?y {name: "infusions"} }')
    assert kip.done(7) == {}
    kip.later(1)
    kip.sleep(7)
    assert kip.confidence("Person:Ines", "prefers", "Preference:infusions") == 0.76


@pytest.mark.sliced(1)
@pytest.mark.parametrize(("confidence", "days", "left"), [(0.5, 0, 0.8), (0.95, 0, 0.95), (0.95, 14, 0.857375)])
def test_a_cycle_that_makes_two_links_one_lets_no_more_time_pass_for_it(
    kip: Sleeper, confidence: float, days: int, left: float
) -> None:
    kip(OLD_FACT, {"wish": "Green tea", "confidence": 0.9, "at": days_later(NOW, -100)})
    kip('UPDATE ?l SET METADATA { confidence: 0.8 } WHERE { ?l (?s, "prefers", ?o) }')
    kip(OLD_FACT, {"wish": "green tea", "confidence": confidence, "at": days_later(NOW, -1 - days)})
    kip('UPDATE ?l SET ATTRIBUTES { often: true } WHERE { ?l (?s, "prefers", {name: "green tea"}) }')
    kip.later(days)
    assert kip.done(6) == {"duplicates merged": 1}
    kip.sleep(7)
    assert kip.confidence("Person:Ines", "prefers", "Preference:Green tea") == left


@pytest.mark.parametrize("surer", ["ines maria", "INES MARIA"])
def test_of_two_links_that_become_one_the_surer_one_does_not_sink_for_the_weeks_of_the_other(
    kip: Sleeper, surer: str
) -> None:
    kip(PERSON, {"name": "Ines Maria"})
    kip('UPSERT { CONCEPT { {type: "Preference", name: "tea"} } }')
    for name in ("ines maria", "INES MARIA"):
        kip(PERSON, {"name": name})
        said = {"confidence": 0.9, "created_at": NOW} if name == surer else {"confidence": 0.3, "created_at": LONG_AGO}
        kip(
            'UPSERT { PROPOSITION { ({type: "Person", name: :n}, "prefers", {name: "tea", type: "Preference"}) } } '
            "WITH METADATA :said",
            {"n": name, "said": said},
        )
    assert kip.done(6) == {"duplicates merged": 2}
    assert kip.done(7) == {}
    assert kip.confidence("Person:Ines Maria", "prefers", "Preference:tea") == 0.9


def test_a_capsule_does_not_let_what_it_holds_sink_again(kip: Sleeper) -> None:
    kip(OLD_FACT, {"wish": "tea", "confidence": 0.9, "at": days_later(NOW, -14)})
    kip.sleep(7)
    capsule = kip('EXPORT ?x WHERE { ?x {name: "tea"} UNION { ?x {name: "Ines"} } }')["capsule"]
    kip('DELETE CONCEPT ?x DETACH WHERE { ?x {type: "Preference"} }')
    kip(capsule)
    assert kip.done(7) == {}
    assert kip.confidence(*WISH) == 0.81225


def test_what_files_state_and_what_is_suspect_keeps_its_confidence(kip: Sleeper) -> None:
    symbols = """symbols:
  - {id: S, title: s, status: active, relationships: [{type: implements, target: R-1}]}
"""
    kip.project.sync({"symbols.yaml": symbols, "docs/requirements/r.md": document("R-1", title="t", status="open")})
    kip.project.import_(
        entities=[{"id": "T-1", "type": "test", "title": "t", "status": "active"}],
        edges=[{"type": "verified_by", "from": "R-1", "to": "T-1", "confidence": 0.9, "created_at": LONG_AGO}],
    )
    kip(OLD_FACT, {"wish": "tea", "confidence": 0.9, "at": LONG_AGO})
    kip('UPDATE ?p SET ATTRIBUTES { strong: true } WHERE { ?p {type: "Preference"} }')
    before = kip.elements()
    assert kip.left(7) == {"suspect, for `kb check`": 1}
    assert kip.done(7) == {}
    assert kip.elements() == before


def test_an_empty_domain_is_archived_once_it_had_time_to_be_filled(kip: Sleeper) -> None:
    kip(
        'UPSERT { CONCEPT { {type: "Domain", name: "Old"} } CONCEPT { {type: "Domain", name: "Kept"} '
        "SET ATTRIBUTES { keep: true } } }"
    )
    assert (kip.done(8), kip.left(8)) == ({}, {"empty domains too new to archive": 1})
    kip.later(8)
    assert kip.done(8) == {"empty domains archived": 1}
    assert kip.domains("Domain:Old") == {"Domain:Archived"}
    assert "status" not in kip.attributes("Domain:Kept")
    assert kip.done(8) == {}


def test_what_counts_as_unsorted_is_what_the_work_list_has_of_it(kip: Sleeper) -> None:
    kip.project.sync({"docs/requirements/r.md": document("R-1", title="t", status="open")})
    kip(
        'UPSERT { CONCEPT ?u { {type: "Domain", name: "Unsorted"} } CONCEPT ?d { {type: "Domain", name: "D"} } '
        'PROPOSITION ?l { ({id: "R-1"}, "belongs_to_domain", ?u) } PROPOSITION { (?l, "belongs_to_domain", ?u) } }'
    )
    report = kip.sleep()
    assert report.after.metric("unsorted").value == 1
    [item] = kip.work("unsorted").items
    assert item.id == "R-1"
    kip.answer(item, 0, {"domain": "D"})
    assert kip.domains("R-1") == {"Domain:D"}
    assert kip.work("unsorted").items == ()


def test_what_waits_in_unsorted_counts_as_unsorted_and_not_as_unsure(kip: Sleeper) -> None:
    kip(PERSON, {"name": "Ines"})
    kip.sleep(4)
    after = {one.name: one for one in kip.sleep(1).before.metrics}
    assert (after["unsorted"].value, after["average_confidence"].value) == (1, None)
    kip(UNSURE)
    assert kip.sleep(1).before.metric("average_confidence").value == 0.5


def test_the_cycle_is_written_down_with_what_all_its_records_did(kip: Sleeper) -> None:
    kip(PERSON, {"name": "Ines"})
    kip(UNSURE)
    kip.sleep(4)
    kip.later(0.1)
    report = kip.sleep()
    [entry] = kip.attributes("Person:$system")["maintenance_log"]
    assert kip.attributes("Person:$system")["last_sleep_cycle"] == entry["timestamp"] == report.cycle
    assert entry["actions_taken"] == "sleep 4 orphans: put what belongs to no domain into one (2)"
    assert (entry["items_processed"], entry["issues_found"]) == (2, ["average_confidence is 0.5, target > 0.6"])


def test_a_cycle_without_a_memory_writes_nothing(tmp_path: Path) -> None:
    kip = Sleeper(tmp_path / "repo")
    kip.project.sync({"docs/requirements/r.md": document("R-1", title="t", status="open")})
    kip.project.apply(entities=[{"id": "R-2", "type": "req", "title": "t", "status": "open"}])
    before = kip.seq()
    report = kip.sleep()
    assert (kip.seq(), kip.project.node("Person:$system")) == (before, None)
    assert ["no memory" in issue for issue in report.phases[-1].issues] == [True]
    kip(PERSON, {"name": "Ines"})
    kip.sleep(9)
    assert len(kip.attributes("Person:$system")["maintenance_log"]) == 1
    kip.project.close()


@pytest.mark.sliced
def test_the_maintenance_log_keeps_the_newest_entries(kip: Sleeper, monkeypatch) -> None:
    monkeypatch.setattr("kbcore.limits.MAX_SLEEP_LOG", 2)
    for _ in range(3):
        kip.later(1)
        kip.sleep(9)
    log = kip.attributes("Person:$system")["maintenance_log"]
    assert [one["timestamp"] for one in log] == ["2026-11-22T09:30:00.000000Z", "2026-11-23T09:30:00.000000Z"]
