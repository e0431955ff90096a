"""`kb review`: what is proposed, as a diff, accepted or rejected by entity, record, session, all, or one by one."""

from __future__ import annotations

import json
import os

import pytest

from kbcore import limits
from tests.support.processes.terminal import Terminal

TEST = {"type": "test", "title": "Login works", "status": "passing"}


def two_proposals(root, run):
    """An agent proposes a test with an edge, in one session, and a change of a requirement, in another one."""
    settings = json.loads((root / ".kb/config.json").read_text())
    (root / ".kb/config.json").write_text(json.dumps(settings | {"review": {"actors": "agent*"}}))
    edge = {"type": "verified_by", "from": "REQ-1", "to": "T-NEW"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KB_ACTOR", "agent-1")
        patch.setenv("KB_SESSION", "monday")
        run("apply", "-", stdin=json.dumps({"entities": [{"id": "T-NEW", **TEST}], "edges": [edge]}))
        patch.setenv("KB_SESSION", "tuesday")
        run("apply", "-", stdin=json.dumps({"entities": [{"id": "REQ-1", "owner": "ann"}]}))


@pytest.fixture
def proposed(grown):
    return grown(two_proposals)


def left(kb, *words):
    found = kb("review", "--json", *words).json
    return [(one.get("id") or f"{one['from']} {one['to']}", one.get("field", "")) for one in found["proposals"]]


def test_who_proposes_is_told_that_it_is_only_proposed(kb, user, proposed):
    user.setenv("KB_ACTOR", "agent-1")
    edge = {"type": "verified_by", "from": "REQ-2", "to": "T-2"}
    written = kb("apply", "-", stdin=json.dumps({"entities": [{"id": "T-2", **TEST}], "edges": [edge]}))
    assert "Only proposed: 2 new facts. A person accepts or rejects them: `kb review`." in written.err


def test_it_is_listed_as_a_diff_below_who_proposed_it(kb, proposed):
    shown = kb("review")
    assert shown.status == 0
    lines = [line for line in shown.out.splitlines() if not line.startswith("seq ")]
    assert lines == [
        "  + T-NEW (test) Login works",
        "      status: passing",
        "  + REQ-1 verified_by T-NEW",
        "  ~ REQ-1 (req)",
        "      owner: (none) -> ann",
        "main at seq 3: 3 proposals. `kb review --help` says how to accept or reject.",
    ]
    heads = [line for line in shown.out.splitlines() if line.startswith("seq ")]
    assert [line.split("  ", 2)[2] for line in heads] == [
        "agent-1 through cli, session monday",
        "agent-1 through cli, session tuesday",
    ]


@pytest.mark.slow
def test_more_proposals_than_a_decision_may_have_are_counted_and_found(kb, user, proposed):
    user.setenv("KB_ACTOR", "agent-1")
    for part in range(2):
        tests = [{"id": f"A-{part}-{at}", **TEST} for at in range(limits.MAX_CHANGESET_ITEMS // 2)]
        assert kb("apply", "-", stdin=json.dumps({"entities": tests})).status == 0
    user.setenv("KB_ACTOR", "tester")
    count = limits.MAX_CHANGESET_ITEMS + 3
    assert kb("review", "--json").json["total"] == count
    ran = kb("review", "--all", "--accept")
    assert f"{count} proposals; the limit is {limits.MAX_CHANGESET_ITEMS}." in ran.err
    assert left(kb, "T-NEW") == [("T-NEW", ""), ("REQ-1 T-NEW", "")]  # ids in order come after those of the others


def test_what_is_decided_already_is_no_proposal_any_more(kb, proposed):
    assert kb("review", "T-NEW", "--accept").status == 0
    assert kb("review", "T-NEW", "--accept").out == "Nothing of what you name is proposed.\n"


@pytest.mark.parametrize("words", [["REQ-99"], ["--accept", "T-NEW", "REQ-99"], ["--reject", "REQ-99"]])
def test_an_id_that_names_nothing_is_refused_and_nothing_is_decided(kb, proposed, words):
    before = left(kb)
    ran = kb("review", *words)
    assert (ran.status, "REQ-99" in ran.err) == (64, True)
    assert left(kb) == before


def test_json_says_what_is_proposed_by_whom_when_and_through_what(kb, proposed):
    answer = kb("review", "T-NEW", "--json").json
    assert (answer["branch"], answer["seq"], answer["total"]) == ("main", 3, 2)
    first, edge = answer["proposals"]
    at = first.pop("at")
    assert at.endswith("Z")
    said = {"by": "agent-1", "source": "cli", "session": "monday", "seq": 2}
    assert first == {"id": "T-NEW", "type": "test", "new": {"title": "Login works", "status": "passing"}, **said}
    assert edge == {"from": "REQ-1", "type": "verified_by", "to": "T-NEW", "new": {}, **said, "at": at}


def test_what_is_proposed_is_marked_in_every_answer(kb, proposed):
    assert kb("query", "--id", "T-NEW", "--json").json["entities"][0]["proposed"] is True
    assert kb("query", "--id", "T-NEW", "--fields", "title", "--json").json["entities"][0]["proposed"] is True
    assert [one["id"] for one in kb("query", "--where", "proposed=true", "--json").json["entities"]] == [
        "REQ-1",
        "T-NEW",
    ]
    assert "proposed: nobody has accepted it; `kb review T-NEW` shows it" in kb("show", "T-NEW").out
    assert "proposed: owner ann; `kb review REQ-1` shows it" in kb("show", "REQ-1").out
    assert "verified_by (proposed)" in kb("show", "REQ-1").out
    assert "verified_by (proposed)" in kb("impact", "REQ-1").out
    assert "verified_by (proposed)" in kb("graph").out
    assert "[proposed]" in kb("prime", "--for", "REQ-1").out or "(proposed)" in kb("prime", "--for", "REQ-1").out
    assert "2 proposed and not judged" in kb("check").out
    assert '"proposed": true' in kb("export", "-").out
    needs = kb("export", "-", "--format", "needs")
    assert "T-NEW" not in needs.out
    assert "entities: T-NEW" in needs.err
    answer = kb("kip", 'FIND(?t.metadata) WHERE { ?t {id: "T-NEW"} }')
    assert "proposed" in answer.out


def test_a_hook_is_not_told_what_is_only_proposed(kb, proposed):
    for words in (("prime", "--for", "docs/requirements/REQ-1.md", "--hook"), ("prime", "--hook")):
        assert "Login works" not in kb(*words).out


def test_it_is_accepted_by_entity_with_its_edges(kb, proposed):
    assert kb("review", "T-NEW", "--accept").out == "main at seq 4: 1 updated; edges: 1 updated.\n"
    assert left(kb) == [("REQ-1", "owner")]
    assert "proposed" not in kb("query", "--id", "T-NEW", "--json").json["entities"][0]
    assert "accept T-NEW and 1 more" in kb("log", "--limit", "1").out
    kb("revert", "4")
    assert len(left(kb)) == 3


def test_it_is_rejected_by_session_and_by_record(kb, proposed):
    assert kb("review", "--session", "monday", "--reject").out == "main at seq 4: 1 deleted; edges: 1 deleted.\n"
    assert kb("review", "--seq", "3", "--reject").out == "main at seq 5: 1 updated.\n"
    assert left(kb) == []
    assert kb("review").out == "main at seq 5: nothing is proposed.\n"


def test_all_of_it_is_accepted_at_once_and_a_dry_run_writes_nothing(kb, proposed):
    assert kb("review", "--all", "--accept", "--dry-run").out.startswith("Would change main at seq 3")
    assert len(left(kb)) == 3
    assert kb("review", "--all", "--accept").status == 0
    assert kb("query", "--id", "REQ-1", "--json").json["entities"][0]["owner"] == "ann"
    assert kb("review", "--all", "--accept").out == "Nothing is proposed.\n"


def test_who_proposes_is_refused_and_told_who_may(kb, user, proposed):
    user.setenv("KB_ACTOR", "agent-1")
    refused = kb("review", "--all", "--accept")
    assert refused.status == 38
    assert "'agent-1' may not decide what is proposed" in refused.err
    assert "`review` in .kb/config.json says who may accept" in refused.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--accept"], "Name what is meant"),
        (["--accept", "--reject", "--all"], "exclude each other"),
        (["--all"], "goes with --accept or --reject"),
        (["T-NEW", "--all", "--accept"], "leave out the rest"),
        (["-i"], "--interactive needs a terminal"),
    ],
)
def test_options_that_do_not_fit_are_refused(kb, proposed, words, said):
    refused = kb("review", *words)
    assert refused.status == 2
    assert said in refused.err


def test_at_a_terminal_each_is_asked_for(kb, proposed):
    prompt = "accept, reject, skip, quit (a/r/s/q): "
    terminal = Terminal(proposed, proposed / "state", prompt, "review", "-i")
    terminal.type("a\n")
    terminal.type("what\n")
    terminal.type("a\n")
    terminal.type("r\n", until="main at seq 4: 2 updated; edges: 1 updated.")
    os.close(terminal.screen)
    os.waitpid(terminal.child, 0)
    assert left(kb) == []
    assert "owner" not in kb("query", "--id", "REQ-1", "--json").json["entities"][0]


def test_bad_settings_are_refused_with_their_place(kb, proposed):
    (proposed / ".kb/config.json").write_text('{\n "review": {\n  "actors": ["!bob"],\n  "who": 1\n }\n}\n')
    refused = kb("review")
    assert refused.status == 63
    assert ".kb/config.json:3" in refused.err
    assert ".kb/config.json:4" in refused.err
