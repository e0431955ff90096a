"""``kb diff`` and ``kb branch diff``."""

from __future__ import annotations

import json

from tests.support.repository.repos import git


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


def test_a_difference_that_a_filter_leaves_empty_names_the_filter(kb, synced):
    assert "Nothing that matches --actor differs between" in kb("diff", "0", "--actor", "x").err
    assert "Nothing differs between seq 1 and seq 1." in kb("diff", "1", "1").err
