"""``kb log``, ``kb show``, ``kb diff`` and ``kb branch diff``: what changed, who, when, through what."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.processes.cli import LOGIN, refresh_view, write
from tests.support.repository.clocks import SetClock
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import git


@pytest.fixture
def recorded(kb, grown):
    """Three records: a sync, a changeset, and a sync that changes one field."""
    return grown(three_records)


def three_records(root, kb):
    request = {
        "message": "a \x1b[31mscenario",
        "entities": [{"id": "SCN-1", "type": "scenario", "title": "Known device", "status": "open"}],
        "edges": [{"type": "specified_by", "from": "REQ-1", "to": "SCN-1"}],
    }
    kb("apply", "-", stdin=json.dumps(request))
    write(root, {"docs/requirements/login.md": LOGIN.replace("open", "done")})
    kb("sync")
    refresh_view(root, kb)


def test_a_document_that_moved_shows_once_who_states_the_fields_that_stay(kb, synced):
    (synced / "docs/requirements/login.md").rename(synced / "docs/requirements/moved.md")
    assert kb("sync").status == 0
    shown = kb("log", "-p", "-n", "1").out
    assert "text_ref: docs/requirements/login.md -> docs/requirements/moved.md (now stated by" in shown
    assert "tags, title, type\n\n- file docs/requirements/login.md" in shown, shown
    assert [line for line in shown.splitlines() if " -> " in line and "login.md" not in line] == []
    [operation, *_] = kb("log", "-p", "-n", "1", "--json").json["records"][0]["operations"]
    assert operation["fields"]["title"]["stated_by"]["after"] == "docs/requirements/moved.md"


def seqs(ran) -> list[int]:
    assert set(ran.json) - {"points"} == {"branch", "records"}
    return [record["seq"] for record in ran.json["records"]]


def test_the_log_is_newest_first_in_the_fixed_shape(kb, recorded):
    ran = kb("log", "--json")
    assert seqs(ran) == [3, 2, 1]
    record = ran.json["records"][1]
    assert set(record) == {"seq", "changeset_id", "at", "actor", "source", "message", "summary", "commit"}
    assert (record["actor"], record["source"], record["message"]) == ("tester", "cli", "a \x1b[31mscenario")
    assert record["summary"] == {"created": 1, "updated": 0, "deleted": 0, "edges": 1}


@pytest.mark.sliced(5)
@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["SCN-1"], [2]),
        (["REQ-1"], [3, 2, 1]),
        (["--limit", "1"], [3]),
        (["--actor", "tester"], [3, 2, 1]),
        (["--actor", "nobody"], []),
        (["--source", "cli"], [2]),
        (["--source", "sync"], [3, 1]),
        (["--source", "mcp"], []),
        (["--since", "2001-01-01"], [3, 2, 1]),
        (["--since", "1"], [3, 2]),
        (["--until", "2"], [2, 1]),
        (["--since", "1 hour ago", "--until", "now"], [3, 2, 1]),
        (["--since", "yesterday", "--actor", "tester", "-n", "1"], [3]),
        (["--session", "s-1"], []),
        (["1..2"], [2]),
        (["..HEAD"], [3, 2, 1]),
        (["--before", "3", "--limit", "1"], [2]),
        (["--before", "1"], []),
    ],
)
def test_the_log_can_be_narrowed(kb, recorded, words, found):
    assert seqs(kb("log", *words, "--json")) == found


def test_the_log_for_people_has_a_page_for_each_record_that_says_what_it_changed(kb, recorded):
    ran = kb("log", "--limit", "2")
    newest, older = ran.out.split("\n\nrecord 2\n")
    assert newest.startswith("record 3 (head)\nActor:  tester through sync\nDate:   2")
    assert newest.endswith("\n\n    sync\n\n    ~ REQ-1\n    1 updated")
    assert " ago)" not in ran.out
    assert "\n\n    a \\x1b[31mscenario\n\n    + SCN-1, REQ-1 specified_by SCN-1\n    1 created, 1 edge\n" in older


def test_a_log_names_some_of_what_a_large_record_changed(kb, synced):
    entities = [{"id": f"REQ-1{number}", "type": "req", "title": "T", "status": "open"} for number in range(9)]
    kb("apply", "-", stdin=json.dumps({"entities": entities}))
    shown = kb("log", "--limit", "1").out
    assert "    + REQ-10, REQ-11, REQ-12, REQ-13, REQ-14, REQ-15\n" in shown
    assert "    9 created; 3 not named here: kb show 2\n" in shown
    assert "    + REQ-18\n    9 created; 8 not named here: kb show 2\n" in kb("log", "REQ-18").out


def test_the_log_on_one_line_each_is_a_safe_table_that_says_when_there_is_more(kb, recorded):
    ran = kb("log", "--limit", "2", "--oneline")
    assert [line.split()[0] for line in ran.out.splitlines()] == ["SEQ", "3", "2"]
    assert "1 created, 1 edge" in ran.out
    assert r"a \x1b[31mscenario" in ran.out
    assert ran.err == "There are more: --before 2, or --limit 20.\n"
    assert "There are more" not in kb("log", "--limit", "3").err


def test_an_empty_log_and_unknown_names_are_reported(kb, ready):
    assert kb("log") == (
        *(0, ""),
        "Nothing was written yet: `kb sync` reads the documents, and `kb apply` a changeset.\n",
    )
    assert kb("log", "--limit", "0").status == 2
    assert kb("log", "REQ-77").status == 64
    assert kb("log", "--since", "soon").status == 2


def test_an_entity_is_shown_with_its_edges_both_ways_and_its_history(kb, recorded):
    found = kb("show", "REQ-1", "--json").json
    assert (found["branch"], found["seq"], found["entity"]["id"], found["entity"]["version"]) == ("main", 3, "REQ-1", 3)
    assert {(edge["type"], edge["from"], edge["to"]) for edge in found["edges"]} == {
        ("specified_by", "REQ-1", "SCN-1"),
        ("verified_by", "REQ-1", "TEST-1"),
        ("depends_on", "REQ-2", "REQ-1"),
    }
    assert [record["seq"] for record in found["history"]] == [3, 2, 1]
    text = kb("show", "REQ-1").out
    assert text.startswith("REQ-1\n  Log in\n  req · done · version 3\n")
    assert "  tags        auth, web\n" in text
    assert (
        "\nEdges from it (2)\n"
        "  EDGE          ID      STATUS  TITLE         CONFIDENCE  STATED IN\n"
        "  specified_by  SCN-1   open    Known device              cli\n"
        "  verified_by   TEST-1  active  Login works               docs/tests/login.md\n"
        "\nEdges to it (1)\n"
    ) in text
    history = text.partition("History (3)\n")[2]
    assert "tester through sync  sync\n      status: open -> done\n  2  " in history
    assert "\n      + REQ-1 specified_by SCN-1\n  1  " in history
    assert "attributes.kind  e2e" in kb("show", "TEST-1").out


@pytest.mark.sliced
def test_the_page_of_an_entity_has_what_the_rules_found_and_marks_what_is_missing(kb, synced):
    write(
        synced,
        {
            "docs/requirements/more.md": LOGIN.replace("REQ-1", "REQ-5")
            .replace("title: Log in", "title: Another way")
            .replace("[auth, web]", "[]\nlinks: [X]")
        },
    )
    kb("sync")
    page = kb("show", "REQ-5").out
    assert "  (a bare link)  X   unresolved" in page
    assert "\nViolations (1)\n  error REQ-5 links to X" in page
    assert "[unresolved-reference]\n" in page
    assert "Violations" not in kb("show", "REQ-1").out
    assert "violations" not in kb("show", "REQ-5", "--json").json


def test_the_page_of_an_entity_waits_for_no_rule_of_the_project(kb, synced):
    own = "rules:\n- id: own\n  sql: select id, 'is judged' as message from entity\n"
    write(synced, {".kb/rules/own.yaml": own})
    assert "is judged" in kb("check").out
    page = kb("show", "REQ-1")
    assert "is judged" not in page.out
    assert page.err == "The project's own rules are run by `kb check` only.\n"


def test_a_number_is_a_seq_unless_an_entity_has_it(kb, recorded):
    assert kb("show", "2", "--json").json["message"].endswith("scenario")
    request = {"entities": [{"id": "2", "type": "req", "title": "Two", "status": "open"}]}
    kb("apply", "-", stdin=json.dumps(request))
    assert kb("show", "2", "--json").json["entity"]["title"] == "Two"
    assert kb("show", "1", "--json").json["seq"] == 1
    assert kb("show", "99").status == 64


def test_a_record_is_shown_with_each_change_before_and_after(kb, recorded):
    record = kb("show", "3", "--json").json
    (change,) = [one for one in record["operations"] if one["element"] == "entity"]
    assert (change["id"], change["change"]) == ("REQ-1", "updated")
    assert (change["before"]["status"], change["after"]["status"]) == ("open", "done")
    text = kb("show", "3").out
    assert "~ REQ-1 (req) Log in\n    status: open -> done\n" in text
    assert "~ file docs/requirements/login.md\n" in text
    text = kb("show", "2").out
    assert "+ REQ-1 specified_by SCN-1" in text
    assert "tester through cli" in text
    assert r"\x1b[31m" in text


def test_a_removed_entity_names_the_record_that_removed_it(kb, recorded):
    kb("delete", "SCN-1", "--cascade")
    ran = kb("show", "SCN-1")
    assert ran.status == 64
    assert "was removed at seq 4" in ran.err
    assert "kb show 4" in ran.err
    assert "- SCN-1 (scenario) Known device" in kb("show", "4").out


def test_diff_goes_from_the_first_point_to_the_second(kb, recorded):
    found = kb("diff", "1", "--json").json
    assert set(found) >= {"from", "to", "entities", "edges"}
    assert (found["from"], found["to"]) == (1, 3)
    assert [(one["id"], one["change"]) for one in found["entities"]] == [("REQ-1", "updated"), ("SCN-1", "created")]
    assert found["entities"][0]["before"]["status"] == "open"
    back = kb("diff", "3", "1").out
    assert "status: done -> open" in back
    assert "- SCN-1 (scenario) Known device" in back
    assert back.endswith("\n\n2 entities: 1 updated, 1 deleted; 1 edge: 1 deleted\n")
    assert kb("diff", "1", "2", "--json").json["to"] == 2


def test_long_texts_are_compared_line_by_line_with_the_words_marked_that_differ(kb, synced):
    for title in ("A customer logs in with a name and a password", "A customer logs in with a name and a key"):
        kb("apply", "-", stdin=json.dumps({"entities": [{"id": "X", "type": "req", "title": title, "status": "open"}]}))
    assert (
        "    title:\n"
        "      - A customer logs in with a name and a [-password-]\n"
        "      + A customer logs in with a name and a {+key+}\n"
    ) in kb("diff", "2").out


def test_diff_takes_times_and_tells_when_nothing_differs(kb, recorded):
    for words in (("0",), ("0..3",), ("--since", "2001-01-01"), ("--since", "yesterday", "--until", "HEAD")):
        assert [one["change"] for one in kb("diff", *words, "--json").json["entities"]] == ["created"] * 4, words
    assert kb("diff", "2001-01-01").out == kb("diff", "0").out
    assert kb("diff", "3").err == "Nothing differs between seq 3 and seq 3.\n"
    assert kb("diff", "soon").status == 2
    assert kb("diff", "1", "9").status == 2


def test_branches_are_compared_from_the_first_to_the_second(kb, recorded):
    git(recorded, "switch", "-q", "-c", "feature")
    kb("delete", "SCN-1", "--cascade")
    found = kb("branch", "diff", "main", "feature", "--json").json
    assert [(one["id"], one["change"]) for one in found["entities"]] == [("SCN-1", "deleted")]
    assert found["edges"][0]["change"] == "deleted"
    assert found["base"] == 3
    assert "+ SCN-1 (scenario) Known device" in kb("branch", "diff", "feature", "main").out
    assert kb("branch", "diff", "main", "main").err == "main and main have the same content.\n"
    assert kb("branch", "diff", "main", "nope").status == 62


def damage_last_record(root: Path) -> None:
    """Change a byte of the newest record, and forget the cache, so that the journal has to be read."""
    (journal,) = (stores_at(root) / "main").glob("journal-*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[-1] = lines[-1].replace(b'"done"', b'"dine"')
    journal.write_bytes(b"".join(lines))
    shutil.rmtree(caches_at(root) / "main")


@pytest.mark.sliced
def test_records_before_a_damage_of_the_journal_are_still_answered(kb, recorded):
    questions = (("query", "--at", "2", "--json"), ("show", "2", "--json"), ("diff", "2", "1", "--json"))
    before = [kb(*words).out for words in questions]
    damage_last_record(recorded)
    for words, wanted in zip(questions, before, strict=True):
        ran = kb(*words)
        assert (ran.status, ran.out) == (0, wanted), ran


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    "words",
    [
        ("query",),
        ("query", "--at", "3"),
        ("query", "--at", "2999-01-01"),
        ("show", "3"),
        ("show", "REQ-1"),
        ("diff", "1"),
        ("diff", "1", "3"),
        ("diff", "2999-01-01", "1"),
    ],
)
def test_what_a_damage_may_concern_is_refused(kb, recorded, words):
    damage_last_record(recorded)
    assert kb(*words).status == 40


@pytest.fixture
def pruned(kb, grown):
    """Four records, of which 1 to 3 are pruned."""
    return grown(three_of_four_pruned)


def three_of_four_pruned(root, kb):
    three_records(root, kb)
    kb("compact")
    kb("apply", "-", stdin='{"entities": [{"id": "SCN-1", "status": "done"}]}')
    assert kb("compact", "--prune-before", "4").endswith("Gave up the history before seq 4.\n")


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    "words",
    [
        ("query", "--at", "1"),
        ("query", "--at", "2001-01-01"),
        ("show", "1"),
        ("diff", "1", "3"),
        ("diff", "2", "1"),
        ("revert", "3"),
        ("rollback", "--to", "0"),
    ],
)
def test_history_that_was_given_up_is_refused_in_the_same_words(kb, pruned, words):
    ran = kb(*words)
    assert ran.status == 66
    assert "Records before seq 4 were pruned; " in ran.err
    assert kb("query", "--at", "3").status == 0


@pytest.mark.sliced
def test_a_record_out_of_reach_is_refused_as_a_record(kb, grown):
    def eight_of_which_one_is_missing(root, kb):
        three_records(root, kb)
        kb("compact", "--prune-before", "4")
        for number in range(4, 9):
            kb("apply", "-", stdin=json.dumps({"entities": [{"id": "SCN-1", "title": f"Title {number}"}]}))
        for path in (stores_at(root) / "main").glob("journal-*.jsonl"):
            path.write_bytes(path.read_bytes().replace(b'"Title 7"', b'"Title ?"'))
        shutil.rmtree(caches_at(root))
        kb("doctor", "--salvage")

    grown(eight_of_which_one_is_missing)
    pruned, missing = kb("show", "3"), kb("show", "7")
    assert pruned.status == missing.status == 66
    assert "Records before seq 4 were pruned; record 3 is out of reach." in pruned.err
    assert "kb show 3" not in pruned.err
    assert missing.err.startswith("error: Record 7 is missing since the salvage that record 9 documents.")


@pytest.mark.sliced
def test_pruned_history_is_reported_where_the_rest_is_listed(kb, pruned):
    note = "Records before seq 4 were pruned.\n"
    assert kb("log").err == kb("log", "--actor", "tester").err == kb("log", "SCN-1").err == note
    assert kb("log", "REQ-1").err == f"No record matches.\n{note}"
    assert kb("show", "REQ-1", "--no-body").out.endswith(f"\n\nHistory\n  {note}")
    assert kb("show", "SCN-1", "--no-body").out.endswith(f"\n  {note}")
    for words in (("log",), ("show", "REQ-1")):
        assert kb(*words, "--json").json["pruned_before"] == 4
    assert kb("log", "GONE").status == kb("show", "GONE").status == 64


def test_a_point_before_the_first_record_is_not_reported_for_the_whole_branch(kb, recorded):
    assert kb("query", "--at", "0").err == (
        "Seq 0 is before the first record; there was nothing.\n"
        "note: The answer is of the records of main as of seq 0, not of the files.\n"
    )
    assert kb("query", "--at", "2001-01-01").err.startswith("error: '2001-01-01' is before the first record, which was")
    assert kb("query", "--at", "2999-01-01").status == 2


@pytest.mark.sliced(5)
@pytest.mark.parametrize(
    ("words", "status", "message", "hint"),
    [
        (("show", "nope"), 64, "No entity 'nope' was ever in this branch.", "list what there is"),
        (("show", "REQ-7"), 64, "No entity 'REQ-7' was ever in this branch.", "Did you mean 'REQ-1' or 'REQ-2'?"),
        (("show", "0"), 64, "There is no record 0.", "The records are 1 to 3; see `kb log`."),
        (("show", "99999"), 64, "There is no record 99999.", "The records are 1 to 3"),
        (("show", ""), 64, "No entity '' was ever in this branch.", "list what there is"),
        (("log", "REQ-7"), 64, "No entity 'REQ-7' was ever in this branch.", "Did you mean 'REQ-1' or 'REQ-2'?"),
        (("log", ""), 2, "The id is empty.", "Leave it out"),
        (("log", "--limit", "0"), 2, "--limit must be from 1 to 10000, not 0.", "Leave it out"),
        (("log", "--limit", "20000"), 2, "--limit must be from 1 to 10000, not 20000.", "Leave it out"),
        (
            ("log", "--since", "soon"),
            2,
            "'soon' is neither a seq nor a time, and git knows no such commit.",
            "2026-01-31",
        ),
        (("diff", "5", "3"), 2, "There is no record 5 yet.", "The head is at seq 3."),
        (("diff", "9" * 30), 2, "is neither a seq nor a time, and git knows no such commit.", "HEAD~2, a branch"),
        (("diff", "a...b"), 2, "'a...b' has three dots.", "two dots"),
        (("log", "--since", "2999-01-01"), 2, "'2999-01-01' is yet to come.", "The head is at seq 3"),
        (("coverage", "--at", "mian"), 2, "'mian' is neither", "Did you mean 'main'?"),
        (("diff", "2999-01-01"), 2, "'2999-01-01' is yet to come.", "The head is at seq 3"),
        (("revert", "0"), 64, "There is no record 0.", "The records are 1 to 3"),
        (("rollback", "--to", "9"), 64, "There is no seq 9 to go back to.", "Give a seq from 0 to 3."),
    ],
)
def test_wrong_input_is_answered_with_one_line_and_what_to_do(kb, recorded, words, status, message, hint):
    ran = kb(*words)
    assert (ran.status, ran.out) == (status, "")
    line, remedy = ran.err.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert remedy.startswith("hint: ")
    assert hint in remedy


@pytest.mark.sliced
def test_facts_that_a_bad_file_kept_are_reported_on_the_page_of_the_entity(kb, recorded):
    write(recorded, {"docs/requirements/login.md": LOGIN.replace("title: Log in", "title: [Log in")})
    kb("sync")
    stale = "\n  stale: may be older than docs/requirements/login.md, which could not be read completely\n"
    assert stale in kb("show", "REQ-1").out
    assert kb("show", "REQ-1", "--json").json["entity"]["stale"] is True
    assert "kept from" not in kb("show", "REQ-2").out
    assert "stale" not in kb("show", "REQ-2", "--json").json["entity"]


@pytest.mark.sliced
def test_an_entity_with_a_long_history_names_the_command_that_lists_the_rest(kb, recorded):
    for number in range(6):
        kb("apply", "-", stdin=json.dumps({"entities": [{"id": "SCN-1", "title": str(number)}]}))
    assert "      title: 4 -> 5\n" in kb("show", "SCN-1").out
    assert "  … 2 more: kb log SCN-1\n" in kb("show", "SCN-1").out


def test_the_log_shows_what_was_found_and_repaired(kb, recorded):
    (journal,) = (stores_at(recorded) / "main").glob("journal-*")
    with journal.open("ab") as file:
        file.write(b"half a rec")
    entity = {"id": "REQ-9", "type": "req", "title": "T", "status": "open"}
    kb("apply", "-", stdin=json.dumps({"message": "why", "entities": [entity]}))
    repair = kb("log", "--limit", "1", "--json").json["records"][0]["repair"]
    assert "10 bytes of an unfinished write were cut from" in repair
    assert f"why [{repair}]" in kb("log", "--oneline").out
    assert f"    repair: {repair}\n" in kb("log").out
    assert f"why [{repair}]" in kb("show", "REQ-9").out
    assert f"  repair: {repair}" in kb("show", "4").out


@pytest.mark.sliced
def test_an_answer_by_time_warns_of_a_clock_that_was_wrong_there(kb, synced):
    project = Project(synced, is_new=False)
    clock = project.machine.clock = SetClock()
    for number, day in enumerate(("2099-01-02", "1915-01-01")):
        clock.time = f"{day}T13:00:00.000000Z"
        project.apply(entities=[{"id": f"N-{number}", "type": "req", "title": "t", "status": "open"}])
    project.pool.close()
    for words in (["query"], ["coverage"], ["diff"], ["check", "--since"]):
        ran = kb(*words, *(["--at"] if words[0] in {"query", "coverage"} else []), "2099-01-01")
        assert ran.status == 0, ran
        assert ran.err.count("warning: A clock was wrong") == 1, ran
    assert "A clock was wrong" not in kb("query").err


DOCUMENT = "---\nid: REQ-7\ntype: req\ntitle: T\nstatus: open\n---\n# T\n\n  a \x1b[31m\n"


@pytest.mark.sliced
def test_show_prints_the_text_of_the_document(kb, synced):
    write(synced, {"docs/requirements/REQ-7.md": DOCUMENT})
    assert kb("show", "REQ-7").out.endswith("\nDocument\n  # T\n\n    a \\x1b[31m\n")
    assert kb("show", "REQ-7", "--json").json["body"] == "# T\n\n  a \x1b[31m\n"
    assert "Document" not in kb("show", "REQ-7", "--no-body").out
    assert "body" not in kb("show", "REQ-7", "--no-body", "--json").json


def test_show_says_where_the_document_is_not_at_hand(kb, synced):
    write(synced, {"docs/requirements/REQ-7.md": DOCUMENT})
    kb("sync")
    git(synced, "checkout", "-q", "-b", "other")
    write(synced, {"docs/requirements/REQ-7.md": None})
    assert "Document\n  not available: neither" in kb("show", "REQ-7", "--branch", "main").out
    assert kb("show", "REQ-7", "--branch", "main", "--json").json["body"] is None


def test_what_no_document_states_has_no_text(kb, synced):
    kb("apply", "-", stdin=json.dumps({"entities": [{"id": "X", "type": "req", "title": "T", "status": "open"}]}))
    assert "Document" not in kb("show", "X").out
    assert "body" not in kb("show", "X", "--json").json


def test_an_empty_text_is_no_point_and_no_filter(kb, synced):
    for words in (
        ("log", "--since", ""),
        ("log", "--actor", " "),
        ("diff", ""),
        ("diff", "0", ""),
        ("diff", "--since="),
    ):
        refused = kb(*words)
        assert (refused.status, "is empty" in refused.err) == (2, True), words


def test_a_log_names_what_was_typed_where_nothing_matches(kb, synced):
    assert "No record matches 1..1;" in kb("log", "1..1").err
    [actor] = {one["actor"] for one in kb("log", "--json").json["records"]}
    for command in (["log"], ["diff", "0"]):
        assert f"Did you mean '{actor}'?" in kb(*command, "--actor", actor.upper()).err


def test_a_point_in_the_place_of_an_id_is_answered_with_the_ranges_to_write(kb, synced):
    git(synced, "tag", "v1")
    assert "`kb log v1..`" in kb("log", "v1").err
    assert "`kb log nope..`" not in kb("log", "nope").err


def test_a_log_with_a_patch_takes_stat_as_well(kb, synced):
    assert kb("log", "-n", "1", "-p", "--stat").out == kb("log", "-n", "1", "-p").out != ""


def test_a_log_says_the_session(kb, synced, user):
    user.setenv("KB_SESSION", "s1")
    kb("set", "REQ-1", "owner=ann")
    assert "Session: s1" in kb("log", "-n", "1").out


def test_a_difference_that_a_filter_leaves_empty_names_the_filter(kb, synced):
    assert "Nothing that matches --actor differs between" in kb("diff", "0", "--actor", "x").err
    assert "Nothing differs between seq 1 and seq 1." in kb("diff", "1", "1").err
