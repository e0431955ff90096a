"""`kb merge` and the merge after `git merge`: what clients wrote on a branch comes to another one, once."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.processes.cli import write
from tests.support.repository.repos import commit_files, git

SYMBOL = {"type": "symbol", "title": "One", "status": "active"}


def apply(kb, *entities, edges=()):
    kb("apply", "-", stdin=json.dumps({"entities": list(entities), "edges": list(edges)}))


@pytest.fixture
def topic(kb, synced):
    """Branch topic is checked out, copied from main, which has one entity of a client's."""
    apply(kb, {"id": "S-1", **SYMBOL})
    git(synced, "switch", "-q", "-c", "topic")
    kb("branch", "ensure")
    return synced


def facts(kb):
    entities = kb("query", "symbol", "--json").json["entities"]
    edges = kb("query", "edge", "--where", "type=relates_to", "--json").json["edges"]
    return (
        {one["id"]: (one["title"], one.get("owner"), tuple(one.get("tags", ()))) for one in entities},
        {(one["from"], one["to"]) for one in edges},
    )


def test_entities_edges_and_fields_come_over_and_a_second_merge_changes_nothing(kb, topic):
    apply(
        kb,
        {"id": "S-1", "owner": "ann", "tags": ["a"]},
        {"id": "S-2", **SYMBOL},
        edges=[{"type": "relates_to", "kind": "see", "from": "S-2", "to": "S-1"}],
    )
    there = facts(kb)
    git(topic, "switch", "-q", "main")

    first, second = kb("merge", "topic"), kb("merge", "topic")

    assert first.out == "main at seq 3: 1 created, 1 updated; edges: 1 created. 1 change of topic merged.\n"
    assert second.out == "main at seq 3: nothing to change. 0 changes of topic merged.\n"
    assert facts(kb) == there
    assert kb("verify").status == 0


def test_a_change_that_was_seen_in_a_file_which_was_never_committed_comes_over(kb, topic):
    apply(kb, {"id": "S-2", **SYMBOL})
    kb("share", "--actor", "tester")
    git(topic, "reset", "-q")
    git(topic, "switch", "-q", "main")
    kb("sync")
    assert "S-2" in facts(kb)[0]
    [file] = (path for path in (topic / ".kb/changes").rglob("*.jsonl") if "S-2" in path.read_text())
    assert "0 changes of topic merged" in kb("merge", "topic").out
    file.unlink()
    kb("sync")
    assert "S-2" not in facts(kb)[0]
    assert "1 change of topic merged" in kb("merge", "topic").out
    assert "S-2" in facts(kb)[0]


def test_the_record_of_a_merge_shows_the_changes_with_their_writers(kb, topic, user):
    user.setenv("KB_ACTOR", "bot")
    kb("set", "S-1", "owner=ann", "-m", "who owns it")
    user.setenv("KB_ACTOR", "ann")
    git(topic, "switch", "-q", "main")
    kb("merge", "topic")

    shown = kb("show", "3", "--json").json

    assert [(one["actor"], one["message"]) for one in shown["changes"]] == [("bot", "who owns it")]
    assert "by bot" in kb("show", "3").out
    assert "from the store of another branch: who owns it" in " ".join(kb("show", "3").out.split())


def test_what_was_removed_or_renamed_there_is_so_here_and_what_is_here_stays(kb, topic):
    apply(kb, {"id": "S-2", **SYMBOL})
    kb("rename", "S-1", "S-ONE")
    git(topic, "switch", "-q", "main")
    apply(kb, {"id": "S-1", "owner": "ann"}, {"id": "S-3", **SYMBOL})

    kb("merge", "topic")

    assert facts(kb)[0] == {"S-ONE": ("One", "ann", ()), "S-2": ("One", None, ()), "S-3": ("One", None, ())}
    git(topic, "switch", "-q", "topic")
    kb("delete", "S-2")
    git(topic, "switch", "-q", "main")
    kb("merge", "topic")
    assert "S-2" not in facts(kb)[0]


def test_both_directions_come_to_the_same_and_show_the_same_conflict(kb, topic):
    kb("set", "S-1", "title=Topic", "owner=ann")
    git(topic, "switch", "-q", "main")
    kb("set", "S-1", "title=Main")
    merged = kb("merge", "topic")
    assert merged.out.endswith("1 field is contested: `kb resolve` lists what to decide.\n")
    here, conflicts = facts(kb), kb("resolve", "--json").json["conflicts"]

    git(topic, "switch", "-q", "topic")
    kb("merge", "main")

    assert facts(kb) == here
    assert kb("resolve", "--json").json["conflicts"] == conflicts
    assert {one["value"] for one in conflicts[0]["values"]} == {"Topic", "Main"}


def test_a_merge_of_what_is_decided_already_says_that_nothing_changed_but_the_changes_taken_over(kb, topic):
    kb("set", "S-1", "title=Topic")
    git(topic, "switch", "-q", "main")
    kb("set", "S-1", "title=Main")
    assert "1 field would be contested." in kb("merge", "topic", "--dry-run").out
    kb("merge", "topic")
    kb("resolve", "S-1", "title", "--take", "Topic")
    git(topic, "switch", "-q", "topic")
    assert re.fullmatch(
        r"topic at seq \d+: no entity and no edge changed\. \d+ changes of main merged\.\n", kb("merge", "main").out
    )


@pytest.mark.parametrize("wanted", ["7", "9"])
def test_a_number_that_no_value_has_takes_the_value_that_it_is(kb, topic, wanted):
    kb("set", "S-1", "title=7")
    git(topic, "switch", "-q", "main")
    kb("set", "S-1", "title=9")
    kb("merge", "topic")
    for take, why in (("keep", "only what was deleted and an id are kept"), ("", "it is empty"), (" ", "it is empty")):
        wrong = kb("resolve", "S-1", "title", "--take", take)
        assert (wrong.status, f"takes no value of 'title' of 'S-1': {why}." in wrong.err) == (2, True)
        assert "hint: `kb resolve S-1 title --take 1` takes " in wrong.err
        assert "`kb resolve S-1 title --take 2` takes " in wrong.err
        assert "Any other text after --take is a value of its own." in wrong.err
    wrong = kb("resolve", "S-1", "title", "--take", "8")
    assert (wrong.status, "error: There is no value 8 of 'title' of 'S-1'; there are 2." in wrong.err) == (2, True)
    assert kb("resolve", "S-1", "title", "--take", wanted).status == 0
    assert facts(kb)[0]["S-1"][0] == wanted
    assert kb("resolve").out == "Nothing is contested.\n"


def test_zero_is_no_number_of_a_value_and_does_not_take_false(kb, topic):
    kb("set", "S-1", "attributes.flag=true")
    git(topic, "switch", "-q", "main")
    kb("set", "S-1", "attributes.flag=false")
    kb("merge", "topic")
    ran = kb("resolve", "S-1", "flag", "--take", "0")
    assert (ran.status, "There is no value 0 of 'attributes.flag' of 'S-1'" in ran.err) == (2, True), ran


@pytest.mark.parametrize("text", ["-1", "true", "[1]"])
def test_a_text_that_is_json_settles_a_field_for_text(kb, topic, text):
    kb("set", "S-1", "title=Topic")
    git(topic, "switch", "-q", "main")
    kb("set", "S-1", "title=Main")
    kb("merge", "topic")
    assert kb("resolve", "S-1", "title", "--take", text).status == 0
    assert facts(kb)[0]["S-1"][0] == text


def test_a_contested_attribute_is_decided_by_its_name_alone(kb, topic):
    kb("set", "S-1", "note=theirs")
    git(topic, "switch", "-q", "main")
    kb("set", "S-1", "note=ours")
    kb("merge", "topic")
    assert kb("resolve", "S-1", "note", "--take", "theirs").status == 0
    assert kb("show", "S-1", "--json").json["entity"]["attributes"] == {"note": "theirs"}
    assert kb("resolve").out == "Nothing is contested.\n"


def test_an_entity_that_does_not_exist_cannot_be_decided(kb, topic):
    ran = kb("resolve", "NOPE")
    assert ran.status != 0
    assert ran.err.startswith("error: There is no entity or edge 'NOPE'.")
    assert kb("resolve", "S-1").out == "Nothing of S-1 is contested.\n"


def test_a_decision_on_one_side_settles_the_other(kb, topic):
    kb("set", "S-1", "title=Topic")
    git(topic, "switch", "-q", "main")
    kb("set", "S-1", "title=Main")
    kb("merge", "topic")
    refused = kb("set", "S-1", "title=Third")
    assert refused.status == 12
    assert "`kb resolve S-1 title --take N`" in refused.err
    number = next(
        number
        for number, one in enumerate(kb("resolve", "--json").json["conflicts"][0]["values"], start=1)
        if one["value"] == "Topic"
    )
    for digits in (10, 5000):
        wrong = kb("resolve", "S-1", "title", "--take", "1" * digits)
        assert (wrong.status, f"No value has a number of {digits} digits." in wrong.err) == (2, True)
    kb("resolve", "S-1", "title", "--take", str(number))
    git(topic, "switch", "-q", "topic")

    kb("merge", "main")

    assert kb("resolve").out == "Nothing is contested.\n"
    assert facts(kb)[0]["S-1"][0] == "Topic"


def test_conflicts_in_records_are_shown_by_value_writer_and_change(kb, topic, user):
    user.setenv("KB_ACTOR", "bot")
    kb("set", "S-1", "title=Topic")
    user.setenv("KB_ACTOR", "ann")
    git(topic, "switch", "-q", "main")
    kb("set", "S-1", "title=Main")
    kb("merge", "topic")
    [conflict] = kb("resolve", "--json").json["conflicts"]
    lines = []
    for number, value in enumerate(conflict["values"], start=1):
        [one] = value["changes"]
        said = f'"{value["value"]}"  by {one["actor"]}, {one["at"][:10]} (change {one["change"][:12]})'
        lines.append(f"{number}  {said}")

    for words in [("show", "4"), ("show", "S-1"), ("diff", "3", "4")]:
        shown = [line.strip() for line in kb(*words).out.splitlines()]
        at = shown.index("title: contested")
        assert shown[at + 1 : at + 3] == lines, words
        assert '{"' not in kb(*words).out

    kb("resolve", "S-1", "title", "--take", "1")
    assert "title: not contested any more" in [line.strip() for line in kb("show", "5").out.splitlines()]
    assert (
        kb("diff", "3", "4", "--json").json["entities"][0]["fields"]["contested.title"]["after"] == conflict["values"]
    )


def test_a_deletion_that_did_not_see_all_is_shown_by_who_deleted(kb, topic, user):
    user.setenv("KB_ACTOR", "bot")
    kb("delete", "S-1")
    user.setenv("KB_ACTOR", "ann")
    git(topic, "switch", "-q", "main")
    kb("set", "S-1", "title=Main")
    kb("merge", "topic")
    [one] = kb("resolve", "--json").json["conflicts"][0]["values"]

    shown = [line.strip() for line in kb("show", "4").out.splitlines()]

    assert shown[shown.index("deleted: contested") + 1] == f"by bot, {one['at'][:10]} (change {one['change'][:12]})"


def test_what_is_contested_is_shown_wherever_the_entity_is(kb, topic):
    kb("set", "S-1", "title=Topic")
    git(topic, "switch", "-q", "main")
    kb("set", "S-1", "title=Main")
    apply(kb, {"id": "S-2", **SYMBOL})
    kb("merge", "topic")

    assert "1 field is contested: `kb resolve` " in kb("prime").out
    shown = kb("query", "symbol", "--where", "contested=true", "--json").json["entities"]
    concept = kb("kip", 'FIND(?x) WHERE { ?x {type: "Symbol", name: "S-1"} }', "--json").json["result"][0]

    assert [one["id"] for one in shown] == ["S-1"]
    assert {one["value"] for one in shown[0]["contested"]["title"]} == {"Topic", "Main"}
    assert concept["metadata"]["_contested"] == shown[0]["contested"]
    assert "contested: title, by" in kb("show", "S-1").out
    assert "contested" in kb("export", "-").out
    refused = kb("kip", 'UPSERT { CONCEPT { {type: "Symbol", name: "S-1"} SET ATTRIBUTES {title: "z"} } }')
    assert "contested" in refused.err
    assert kb("apply", "-", "--import", "--branch", "topic", stdin=kb("export", "-").out).status != 2


def test_a_changeset_that_has_seen_the_conflict_settles_it_and_one_that_has_not_is_refused(kb, topic):
    kb("set", "S-1", "title=Topic")
    git(topic, "switch", "-q", "main")
    kb("set", "S-1", "title=Main")
    seq = kb("merge", "topic", "--json").json["seq"]
    plain = {"entities": [{"id": "S-1", "title": "Both"}]}

    assert kb("apply", "-", stdin=json.dumps(plain)).status == 12
    assert kb("apply", "-", stdin=json.dumps({**plain, "expected_seq": seq - 1})).status == 12
    assert kb("apply", "-", stdin=json.dumps({**plain, "expected_seq": seq})).status == 0

    assert kb("resolve").out == "Nothing is contested.\n"
    kb("revert", str(seq + 1))
    assert kb("resolve").out == "Nothing is contested.\n", "an undo is a change after all others"


def test_kip_settles_what_it_says_to_have_seen_or_takes_by_number(kb, topic):
    kb("set", "S-1", "title=Topic", "owner=topic")
    git(topic, "switch", "-q", "main")
    kb("set", "S-1", "title=Main", "owner=main")
    kb("merge", "topic")
    symbol = '{type: "Symbol", name: "S-1"}'
    [metadata] = kb("kip", f"FIND(?x.metadata) WHERE {{ ?x {symbol} }}", "--json").json["result"]
    seen = f'EXPECT VERSION {metadata["_version"]} SET ATTRIBUTES {{ title: "Both" }}'
    command = f"UPSERT {{ CONCEPT {{ {symbol} {seen} }} WITH METADATA {{ _resolve: {{ owner: 2 }} }} }}"
    refused = kb("kip", command.replace("owner: 2", "owner: 3"))
    assert "There is no value 3" in refused.err
    assert "_contested" in refused.err

    assert kb("kip", command, "--dry-run").status == 0
    assert len(kb("resolve", "--json").json["conflicts"]) == 2
    assert kb("kip", command).status == 0

    assert kb("resolve").out == "Nothing is contested.\n"
    git(topic, "switch", "-q", "topic")
    kb("merge", "main")
    assert kb("resolve").out == "Nothing is contested.\n"
    assert facts(kb)[0]["S-1"][:2] == ("Both", metadata["_contested"]["owner"][1]["value"])


def test_an_entity_that_one_side_deletes_and_the_other_changes_stays_until_somebody_decides(kb, topic):
    kb("delete", "S-1")
    git(topic, "switch", "-q", "main")
    kb("set", "S-1", "title=Changed")

    kb("merge", "topic")

    listed = kb("resolve").out
    assert "S-1: deleted, although it was changed" in listed
    assert kb("check", "--rule", "conflict").status == 1
    wrong = kb("resolve", "S-1", "deleted", "--take", "7")
    assert wrong.err == (
        "error: S-1 was deleted, although it was changed: '7' decides nothing. Nothing was written.\n"
        "hint: `kb resolve S-1 deleted --take keep` keeps it, `kb delete S-1` deletes it.\n"
    )
    kb("resolve", "S-1", "deleted", "--take", "keep")
    assert kb("resolve").out == "Nothing is contested.\n"
    assert kb("check", "--rule", "conflict").status == 0
    git(topic, "switch", "-q", "topic")
    kb("merge", "main")
    assert facts(kb)[0]["S-1"][0] == "Changed"


def test_git_merge_brings_them_by_the_hook_where_the_project_does_not_say_otherwise(kb, topic):
    apply(kb, {"id": "S-2", **SYMBOL})
    commit_files(topic, {"a.txt": "a"})
    git(topic, "switch", "-q", "main")
    git(topic, "merge", "-q", "topic")

    assert kb("hook", "post-merge", "0").err == "kb: main at seq 3: 1 created. 1 change of topic merged.\n"
    assert kb("hook", "post-merge", "0") == (0, "", "")


@pytest.mark.parametrize(
    ("setting", "said"),
    [("ask", "kb: 1 change of clients on topic is not on main: `kb merge topic` brings it.\n"), ("off", "")],
)
def test_the_setting_decides_whether_the_hook_merges(kb, topic, setting, said):
    apply(kb, {"id": "S-2", **SYMBOL})
    commit_files(topic, {"a.txt": "a"})
    git(topic, "switch", "-q", "main")
    git(topic, "merge", "-q", "topic")
    write(topic, {".kb/config.json": json.dumps({"share": {"merge": setting}})})

    assert kb("hook", "post-merge", "0").err == said
    assert "S-2" not in facts(kb)[0]


def test_a_branch_is_not_merged_into_itself_and_an_unknown_one_is_named(kb, topic):
    assert kb("merge", "topic").status == 2
    unknown = kb("merge", "nothing")
    assert unknown.status != 0
    assert "There is no branch 'nothing'" in unknown.err
    assert (
        kb("merge", "main", "--dry-run").out
        == "topic at seq 2: nothing to change. 0 changes of main would be merged.\n"
    )
