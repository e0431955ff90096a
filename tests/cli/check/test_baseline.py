"""The baseline: violations that a project accepts as they are."""

from __future__ import annotations

import json

import pytest

from tests.cli.check.violations import COUNT, document
from tests.support.processes.cli import write


@pytest.mark.sliced
def test_the_baseline_holds_what_is_old_and_lets_new_faults_through(kb, crowded):
    ran = kb("check", "--write-baseline")
    assert (ran.status, ran.out) == (
        0,
        f"{COUNT + 4} violations written to .kb/baseline.json; commit it. `kb check` reports only others.\n",
    )
    ran = kb("check")
    assert ran.status == 0
    assert ran.out.splitlines() == [ran.out.splitlines()[-1]]
    assert f"no violations, {COUNT + 4} in the baseline" in ran.out
    assert kb("check", "--no-baseline").status == 1
    write(crowded, {"docs/requirements/b3.md": document("B-3", "links: [REQ-1, GONE-1]\n")})
    assert [one["id"] for one in kb("check", "--json").json["violations"]] == ["B-3"]
    answer = kb("check", "--json", "B-1").json
    assert (answer["violations"], answer["in_baseline"]) == ([], 1)


@pytest.mark.sliced
def test_the_baseline_matches_by_code_subject_field_and_values(kb, crowded):
    kb("check", "--write-baseline")
    kept = json.loads((crowded / ".kb/baseline.json").read_text())
    assert kept["violations"][0] == {"rule": "must-coverage", "id": "MUST", "values": ["specified_by"]}
    assert not any({"message", "hint", "line"} & entry.keys() for entry in kept["violations"])
    moved = document("B-1", "priority: could\ntags: [x]\nlinks: [REQ-1, GONE-1]\n")
    write(crowded, {"docs/requirements/b1.md": moved})
    assert kb("check").status == 0
    write(crowded, {"docs/requirements/b1.md": moved.replace("GONE-1", "GONE-5")})
    assert [one["id"] for one in kb("check", "--json").json["violations"]] == ["B-1"]


@pytest.mark.sliced
def test_a_baseline_that_is_none_is_refused(kb, crowded):
    write(crowded, {".kb/baseline.json": '{"format": 1, "violations": [{"rule": 7}]}'})
    ran = kb("check")
    assert (ran.status, ".kb/baseline.json" in ran.err, "--write-baseline" in ran.err) == (63, True, True)
    assert kb("check", "--write-baseline").status == 0
    assert kb("check", "--write-baseline", "--rule", "orphans").status == 2
    write(crowded, {".kb/baseline.json": '{"format": 2, "violations": []}'})
    assert kb("check").status == 63


@pytest.mark.sliced
def test_a_new_baseline_keeps_what_is_accepted_of_a_rule_that_could_not_run(kb, crowded):
    rule = "rules:\n- id: own\n  description: None.\n  sql: {}\n"
    write(crowded, {".kb/rules/own.yaml": rule.format("select id, 'is one' as message from entity")})
    kb("check", "--write-baseline")
    before = (crowded / ".kb/baseline.json").read_text()
    assert '"rule": "own"' in before
    write(crowded, {".kb/rules/own.yaml": rule.format("select nothing from nowhere")})
    ran = kb("check", "--write-baseline")
    assert (ran.status, "the rule own could not run" in ran.err) == (0, True)
    assert (crowded / ".kb/baseline.json").read_text() == before
    write(crowded, {".kb/baseline.json": "{"})
    assert kb("check", "--write-baseline").status == 63  # what it accepts of the rule is not known


@pytest.mark.sliced
def test_what_is_accepted_stays_so_after_a_rename(kb, crowded):
    accepted = [{"rule": "must-coverage", "id": "MUST", "reason": "is to come"}]
    write(crowded, {".kb/config.json": json.dumps({"suppress": accepted})})
    kb("check", "--write-baseline")
    for old in ("M-00", "B-1", "MUST"):
        assert kb("rename", old, f"NEW-{old}").status == 0
    left = kb("check", "--json").json
    assert (left["violations"], left["in_baseline"], left["suppressed"]) == ([], COUNT + 2, 2)


@pytest.mark.sliced
def test_what_is_accepted_stays_so_after_a_rename_that_changes_the_order_of_its_ids(kb, synced):
    circle = {one: document(one, f"links: [{{depends_on: {to}}}]\n") for one, to in (("C-2", "C-4"), ("C-4", "C-6"))}
    circle["C-6"] = document("C-6", "links: [{depends_on: C-2}]\n")
    alike = {one: document(one, "links: [C-2]\n").replace(f"Title of {one}", "Alike") for one in ("T-1", "T-2")}
    write(synced, {f"docs/requirements/{one}.md": text for one, text in (circle | alike).items()})
    kb("sync")
    accepted = {one["rule"] for one in kb("check", "--json").json["violations"]}
    assert {"acyclic", "duplicate-title"} <= accepted
    kb("check", "--write-baseline")
    for old, new in (("C-6", "C-1"), ("C-2", "C-9"), ("T-2", "A-2")):
        assert kb("rename", old, new).status == 0
        assert kb("check", "--json").json["violations"] == [], (old, new)
    entry = {"rule": "acyclic", "id": "C-2"}
    write(synced, {".kb/baseline.json": json.dumps({"format": 1, "violations": [entry]})})
    assert kb("check", "--rule", "acyclic").status == 1


@pytest.mark.parametrize("other", [("--explain", "orphans"), ("--test-rules",)])
@pytest.mark.parametrize("option", ["--write-baseline", "--no-baseline"])
def test_no_baseline_is_written_where_nothing_is_judged(kb, crowded, other, option):
    ran = kb("check", *other, option)
    assert (ran.status, f"leave out {option}" in " ".join(ran.err.split())) == (2, True), ran.err
    assert not (crowded / ".kb/baseline.json").exists()
