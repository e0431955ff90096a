"""`kb_history` shows what is proposed; an agent decides only where the settings list it."""

from __future__ import annotations

import json

import pytest

from tests.mcp.agents import agent, pages_of
from tests.support.repository.project import Project, req

TEST = {"type": "test", "title": "Works", "status": "passing"}


@pytest.fixture(scope="module", autouse=True)
def settings(shared: Project) -> None:
    """Writes of the agents called bot and trusted are proposed, and trusted may accept."""
    review = {"actors": ["bot/*", "trusted/*", "bot", "trusted"], "accept": ["trusted*"]}
    shared.write({".kb/config.json": json.dumps({"review": review})})
    shared.apply(entities=[{"id": "REQ-1", "type": "req", "title": "Login", "status": "open"}])


def propose(bot, key):
    edge = {"type": "verified_by", "from": "REQ-1", "to": key}
    return bot.call("kb_upsert", entities=[{"id": key, **TEST}, {"id": "REQ-1", "owner": key}], edges=[edge])


def test_a_write_says_that_it_is_proposed_and_every_answer_marks_it(shared):
    with agent(shared.root, name="bot") as bot:
        written = propose(bot, "T-1")
        assert written["created"] == ["T-1"]
        assert "Only proposed: 2 new facts and 1 change." in written["warnings"][0]
        assert "kb_history with action proposed" in written["warnings"][0]
        read = bot.call("kb_query", ids=["T-1", "REQ-1"], edges=True)
        assert [one["proposed"] for one in read["entities"]] == [{"owner": "T-1"}, True]
        assert [one["proposed"] for one in read["edges"]] == [True]
        facts = bot.call("kb_query", context={"ids": ["REQ-1"]})["facts"]
        assert [one.get("marks") for one in facts if one["id"] == "T-1"] == [["proposed"]]
        assert bot.call("kb_query", where=["proposed=true"], fields=["title"])["entities"][0]["proposed"]
        assert bot.call("kb_query", coverage=True)["entities"][0]["coverage"]["proposed"] == {"verified": ["T-1"]}
        assert bot.call("kb_check")["proposed"] == 2


def test_what_is_proposed_is_listed_in_pages_with_who_and_when(shared):
    with agent(shared.root, name="bot") as bot:
        propose(bot, "T-2")
        answer = bot.call("kb_history", action="proposed", id="T-2")
        assert [(one.get("id"), one["by"].partition("/")[0]) for one in answer["proposals"]] == [
            ("T-2", "bot"),
            (None, "bot"),
        ]
        assert {"source", "at", "seq"} <= answer["proposals"][0].keys()
        whole = bot.call("kb_history", action="proposed")
        pages = list(pages_of(bot, "kb_history", "proposals", action="proposed", limit=2))
        assert [one for page in pages for one in page] == whole["proposals"]


def test_an_agent_that_is_not_listed_accepts_nothing(shared):
    with agent(shared.root, name="bot") as bot:
        propose(bot, "T-3")
        for name in ("accept", "reject"):
            refused = bot.refused("kb_history", action=name, id="T-3")
            assert refused["code"] == "review_required"
            assert "kb_history with action proposed" in refused["hint"]
    with agent(shared.root, name="stranger") as stranger:
        assert stranger.refused("kb_history", action="accept", id="T-3")["code"] == "review_required"


def test_an_agent_that_is_listed_decides(shared):
    with agent(shared.root, name="bot") as bot, agent(shared.root, name="trusted") as trusted:
        seq = propose(bot, "T-4")["seq"]
        assert trusted.refused("kb_history", action="accept")["code"] == "invalid_query"
        tried = trusted.call("kb_history", action="accept", id="T-4", dry_run=True)
        assert (tried["applied"], tried["updated"]) == (False, ["T-4"])
        assert trusted.call("kb_history", action="accept", id="T-4")["updated"] == ["T-4"]
        assert trusted.call("kb_history", action="reject", seq=seq)["updated"] == ["REQ-1"]
        assert trusted.refused("kb_history", action="reject", seq=seq)["code"] == "not_found"
        assert "proposed" not in trusted.call("kb_query", ids=["T-4"])["entities"][0]


def test_an_id_that_does_not_exist_is_refused_with_the_nearest_one(shared):
    with agent(shared.root, name="trusted") as trusted:
        trusted.call("kb_query", ids=["REQ-1"])
        for action in ("proposed", "accept", "reject"):
            refused = trusted.refused("kb_history", action=action, id="REQ-11")
            assert (refused["code"], "REQ-1" in refused["hint"]) == ("not_found", True)


def test_a_server_that_only_reads_lists_and_decides_nothing(shared):
    with agent(shared.root, name="bot") as bot:
        propose(bot, "T-5")
    with agent(shared.root, "--read-only", name="trusted") as reader:
        assert reader.call("kb_history", action="proposed")["total"]
        assert reader.refused("kb_history", action="accept", id="T-5")["code"] == "invalid_query"


def test_every_row_says_who_by_what_and_when_and_what_all_say_is_said_once(project):
    project.sync({"docs/requirements/1.md": req("REQ-1"), "docs/requirements/2.md": req("REQ-2", links="[REQ-1]")})
    project.apply(entities=[{"id": "T-1", **TEST}])
    with agent(project.root, name="bot") as bot:
        bot.call("kb_upsert", entities=[{"id": "T-2", **TEST}])
        answer = bot.call("kb_query", ids=["REQ-1", "T-1", "T-2"], edges=True)
        day = answer["at"]
        assert len(day) == 10
        said = {one["id"]: {name: one.get(name) for name in ("by", "source", "at")} for one in answer["entities"]}
        assert said["REQ-1"] == {"by": None, "source": None, "at": None}
        assert said["T-1"] == {"by": "tester", "source": "cli", "at": None}
        assert said["T-2"]["by"].startswith("bot/")
        assert said["T-2"]["source"] is None
        assert [one["source"] for one in answer["edges"]] == ["docs/requirements/2.md"]
        assert "at" not in bot.call("kb_query", ids=["T-1"])
        assert bot.call("kb_query", ids=["T-1"])["entities"][0]["at"] == day
        assert "by" not in bot.call("kb_query", ids=["T-1"], fields=["title"])["entities"][0]
        assert "created_at" in bot.call("kb_query", ids=["T-1"], provenance=True)["entities"][0]
