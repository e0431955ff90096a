"""Commands on the history of a branch: records that are damaged or given up, and points that mean nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.history import three_records
from tests.support.repository.clocks import SetClock
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import Project


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
