"""``kb check --against``: conflicts of meaning before a merge, on real git with two clones and a bare upstream."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from tests.cli.check.clones import MAIN, commit, document, found, path
from tests.support.processes.cli import write
from tests.support.repository.repos import git


def test_what_clients_stated_of_an_id_made_twice_stays_where_it_belongs_by_the_remedy(kb, clones):
    def state(key, note):
        assert kb("apply", "-", stdin=json.dumps({"entities": [{"id": key, "attributes": {"note": note}}]})).status == 0
        assert kb("unlink" if note is None else "link", key, "depends_on", "REQ-1").status == 0

    def share(message):
        kb("share")
        commit(clones.here, {}, message)

    kb("config", "set", "share.mode", "ask")
    commit(clones.here, {path("a"): document("REQ-3", "Ours")})
    kb("sync")
    state("REQ-3", "of ours")
    share("State something of ours")
    commit(clones.there, {path("b"): document("REQ-3", "Theirs")})
    clones.meet()
    [one] = found(kb)
    assert one["hint"].startswith("What clients stated of REQ-3 goes with the id: take that away first")
    assert "state it of the new id at the end" in one["hint"]
    state("REQ-3", None)
    assert kb("rename", "REQ-3", "REQ-4").status == 0
    assert kb("set", "REQ-4", "former_ids-=REQ-3").status == 0
    state("REQ-4", "of ours")
    share("Give ours another id")
    assert found(kb) == []
    git(clones.here, "merge", "-q", MAIN)
    fresh = clones.here.parent / "fresh"
    git(clones.here.parent, "clone", "-q", clones.here, fresh)
    for root in (clones.here, fresh):
        assert kb("sync", "--strict", cwd=root).status == 0
        shown = {key: kb("show", key, "--json", cwd=root).json for key in ("REQ-3", "REQ-4")}
        assert [one["entity"].get("attributes", {}).get("note") for one in shown.values()] == [None, "of ours"]
        assert [len(one["edges"]) for one in shown.values()] == [0, 1]


def test_one_former_id_that_both_sides_take_is_found_and_settled_on_one(kb, clones):
    commit(clones.here, {path("b"): document("REQ-6", "Ours", status="draft", former_ids="[REQ-9]")})
    commit(clones.there, {path("a"): document("REQ-5", "Theirs", status="draft", former_ids="[REQ-9]")})
    clones.meet()
    [one] = found(kb)
    assert (one["rule"], one["id"], one["code"], one["values"]) == (
        "against-id", "REQ-9", "former_twice", ["REQ-6", "REQ-5"],
    )  # fmt: skip
    assert (one["source"], one["line"]) == (path("b"), 5)
    assert one["other"] == {"ref": MAIN, "source": path("a"), "line": 5}
    assert "kb set REQ-6 former_ids-=REQ-9" in one["hint"]
    kb("sync")
    assert kb("set", "REQ-6", "former_ids-=REQ-9").status == 0
    assert found(kb) == []


def test_one_new_id_on_two_branches_is_found_and_a_rename_settles_it(kb, clones):
    commit(clones.here, {path("a"): document("REQ-3", "Ours")})
    commit(clones.there, {path("b"): document("REQ-3", "Theirs")})
    clones.meet()
    [one] = found(kb)
    assert (one["rule"], one["id"], one["code"], one["values"]) == (
        "against-id", "REQ-3", "made_twice", ["Ours", "Theirs"],
    )  # fmt: skip
    assert (one["source"], one["line"]) == (path("a"), 2)
    assert one["other"] == {"ref": MAIN, "source": path("b"), "line": 2}
    kb("sync")
    assert kb("rename", "REQ-3", "REQ-{n}").status == 0
    # The former id would keep the other document out after the merge, as a sync says then.
    [one] = found(kb)
    assert (one["code"], one["id"], one["line"]) == ("former_id", "REQ-3", 5)
    assert "kb set REQ-4 former_ids-=REQ-3" in one["hint"]
    assert kb("set", "REQ-4", "former_ids-=REQ-3").status == 0
    assert found(kb) == []
    commit(clones.here, {})
    git(clones.here, "merge", "-q", MAIN)
    kb("sync", "--strict")
    assert kb("check", "--rule", "unreadable-source").status == 0
    ids = [kb("show", f"REQ-{number}", "--json").json["entity"]["title"] for number in (3, 4)]
    assert ids == ["Theirs", "Ours"]


def test_what_is_not_committed_counts_on_this_side(kb, clones):
    commit(clones.there, {path("b"): document("REQ-3", "Theirs")})
    clones.meet()
    assert found(kb) == []
    write(clones.here, {path("a"): document("REQ-3", "Ours")})
    assert [one["id"] for one in found(kb)] == ["REQ-3"]
    write(clones.here, {path("a"): None})
    assert found(kb) == []


def test_one_field_with_two_new_values_is_found_with_both_places(kb, clones):
    write(clones.here, {path("1"): None})
    commit(clones.here, {path("moved"): document("REQ-1", "Log in", priority="high", status="approved", tags="[a]")})
    commit(clones.there, {path("1"): document("REQ-1", "Log in", status="rejected", tags="[web, b]")})
    clones.meet()
    [one] = found(kb)
    assert (one["rule"], one["id"], one["field"]) == ("against-field", "REQ-1", "status")
    assert one["values"] == ["approved", "rejected"]
    assert (one["source"], one["line"]) == (path("moved"), 5)
    assert one["other"] == {"ref": MAIN, "source": path("1"), "line": 4}


def test_an_edge_to_what_the_other_side_deletes_is_found_from_either_side(kb, clones):
    commit(clones.here, {path("3"): document("REQ-3", "New", depends_on="[REQ-2]"), path("1"): None,
                         "docs/symbols.yaml": None})  # fmt: skip
    commit(clones.there, {path("2"): None, path("4"): document("REQ-4", "Other", depends_on="[REQ-1]")})
    clones.meet()
    one, other = sorted(found(kb), key=lambda each: each["source"])
    assert (one["rule"], one["id"], one["values"]) == ("against-edge", "REQ-2", ["REQ-3", "depends_on", "REQ-2"])
    assert (one["source"], one["line"]) == (path("3"), 4)
    assert one["other"] == {"ref": MAIN, "source": path("2"), "line": 2}
    assert (other["id"], other["values"]) == ("REQ-1", ["REQ-4", "depends_on", "REQ-1"])
    assert (other["source"], other["other"]["source"]) == (path("4"), path("4"))
    assert "REQ-1 was deleted here" in other["message"]


def test_what_clients_stated_in_the_store_of_this_side_counts(kb, clones):
    changes = {
        "entities": [
            {"id": "REQ-3", "type": "req", "title": "Agent's", "status": "draft"},
            {"id": "S-2", "type": "symbol", "title": "s", "status": "active"},
        ],
        "edges": [{"type": "implements", "from": "S-2", "to": "REQ-2"}],
    }
    assert kb("apply", "-", stdin=json.dumps(changes)).status == 0
    assert found(kb) == []
    commit(clones.there, {path("2"): None, path("3"): document("REQ-3", "Theirs")})
    clones.meet()
    made, edge = found(kb)
    assert (edge["rule"], edge["values"], edge["source"]) == ("against-edge", ["S-2", "implements", "REQ-2"], "")
    assert (made["rule"], made["values"]) == ("against-id", ["Agent's", "Theirs"])
    assert "(stated by a client)" in made["message"]


def test_a_commit_that_both_sides_have_is_no_conflict(kb, clones):
    commit(clones.there, {path("3"): document("REQ-3", "New"), path("1"): document("REQ-1", "Sign in")})
    clones.meet()
    git(clones.here, "cherry-pick", MAIN)
    assert found(kb) == []


def test_renames_are_no_deletions(kb, clones):
    commit(clones.here, {path("3"): document("REQ-3", "New", depends_on="[REQ-2]")})
    renamed = document("REQ-9", "Log out", status="draft", former_ids="[REQ-2]")
    commit(clones.there, {path("2"): None, path("9"): renamed})
    clones.meet()
    assert found(kb) == []


def test_each_side_is_read_by_its_own_settings(kb, clones):
    """The other side has moved its documents; read by the settings of this side, all would be deleted there."""
    commit(clones.here, {path("3"): document("REQ-3", "New", depends_on="[REQ-1]")})
    settings = json.loads((clones.there / ".kb/config.json").read_text())
    settings["extractors"]["markdown"]["paths"]["req"] = ["spec/**/*.md"]
    (clones.there / "spec").mkdir()
    git(clones.there, "mv", path("1"), path("2"), "spec")
    commit(clones.there, {".kb/config.json": json.dumps(settings), "spec/3.md": document("REQ-3", "Theirs")})
    clones.meet()
    assert [(one["rule"], one["id"]) for one in found(kb)] == [("against-id", "REQ-3")]
    commit(clones.there, {".kb/config.json": "{"})
    clones.meet()
    ran = kb("check", "--against", MAIN)
    assert ran.status == 29
    assert f"The settings in {MAIN} cannot be used" in ran.err


def test_a_file_that_cannot_be_read_whole_is_a_violation_and_deletes_nothing(kb, clones):
    commit(clones.here, {path("3"): document("REQ-3", "New", depends_on="[REQ-2]")})
    commit(clones.there, {path("2"): "---\nid: REQ-2\ntitle: [\n"})
    clones.meet()
    [one] = found(kb)
    assert (one["rule"], one["code"], one["id"]) == ("against-id", "unread", path("2"))
    assert f"in {MAIN} could not be read whole" in one["message"]


def test_every_format_has_the_conflict_with_both_places(kb, clones):
    commit(clones.here, {path("1"): document("REQ-1", "Ours", status="draft", tags="[web]")})
    commit(clones.there, {path("1"): document("REQ-1", "Theirs", status="draft", tags="[web]")})
    clones.meet()

    def run(format_: str) -> str:
        ran = kb("check", "--against", MAIN, "--format", format_)
        assert ran.status == 1
        return ran.out

    both = f"`title` of REQ-1 was changed here to 'Ours' ({path('1')}:3), and in {MAIN} to 'Theirs' ({path('1')}:3)."
    assert f"{path('1')}:3: {both}" in run("text")
    assert both in run("short")
    [result] = json.loads(run("sarif"))["runs"][0]["results"]
    assert (result["ruleId"], result["locations"][0]["physicalLocation"]["region"]) == (
        "against-field", {"startLine": 3},
    )  # fmt: skip
    [other] = result["relatedLocations"]
    assert other["message"]["text"] == f"In {MAIN}."
    assert other["physicalLocation"]["region"] == {"startLine": 3}
    cases = ET.fromstring(run("junit")).findall("testsuite/testcase[failure]")
    assert [(case.get("classname"), case.get("line")) for case in cases] == [("kb.against-field", "3")]
    assert run("github").startswith(f"::error file={path('1')},line=3,title=against-field::")
    assert kb("check", "--against", MAIN, "--statistics").out.split()[3:] == ["against-field", "error", "1"]


def test_levels_rules_targets_baseline_and_suppressions_hold_as_elsewhere(kb, clones):
    commit(clones.here, {path("1"): document("REQ-1", "Ours"), path("3"): document("REQ-3", "Ours")})
    commit(clones.there, {path("1"): document("REQ-1", "Theirs"), path("3"): document("REQ-3", "Theirs")})
    clones.meet()
    assert [one["id"] for one in found(kb)] == ["REQ-3", "REQ-1"]
    assert [one["id"] for one in found(kb, "--rule", "against-field")] == ["REQ-1"]
    assert [one["id"] for one in found(kb, "REQ-3")] == ["REQ-3"]
    assert [one["id"] for one in found(kb, path("1"))] == ["REQ-1"]
    assert kb("check", "--against", MAIN, "--fail-on", "never").status == 0
    ran = kb("check", "--against", MAIN, "--rule", "orphans")
    assert ran.status == 64
    assert "These compare: against-id, against-field, against-edge, against-pack." in ran.err
    settings = {"rules": {"against-field": "warning", "against-id": "off"}}
    write(clones.here, {".kb/config.json": json.dumps(settings)})
    ran = kb("check", "--against", MAIN, "--json")
    assert (ran.status, [one["severity"] for one in ran.json["violations"]]) == (0, ["warning"])
    assert [(one["id"], one["status"]) for one in ran.json["rules"]] == [
        ("against-field", "ran"), ("against-edge", "ran"), ("against-pack", "ran"), ("against-id", "off"),
    ]  # fmt: skip
    assert kb("check", "--against", MAIN, "--fail-on", "warning").status == 1
    accepted = {"suppress": [{"rule": "against-id", "id": "REQ-3", "reason": "They are one."}]}
    write(clones.here, {".kb/config.json": json.dumps(accepted)})
    baseline = {"rule": "against-field", "id": "REQ-1", "code": "changed_twice", "field": "title",
                "values": ["Ours", "Theirs"]}  # fmt: skip
    write(clones.here, {".kb/baseline.json": json.dumps({"format": 1, "violations": [baseline]})})
    ran = kb("check", "--against", MAIN, "--json")
    assert (ran.status, ran.json["suppressed"], ran.json["in_baseline"]) == (0, 1, 1)
    assert kb("check", "--against", MAIN, "--no-baseline").status == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--since", "1"], "leave out --since."),
        (["--staged"], "leave out --staged."),
        (["--recorded"], "leave out --recorded."),
        (["--write-baseline"], "leave out --against."),
        (["--explain", "against-id"], "leave out --against."),
        (["--test-rules"], "leave out --against."),
    ],
)
def test_what_judges_something_else_is_refused(kb, synced, words, said):
    ran = kb("check", "--against", "main", *words)
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err


def test_the_rules_say_of_themselves_when_they_run(kb, synced):
    ran = kb("check", "--rule", "against-id", "--json")
    assert (ran.status, ran.json["rules"][0]["status"]) == (0, "not_applicable")
    assert "Runs with `kb check --against REF`." in kb("check", "--explain", "against-edge").out
