"""The writes of a connection, by its session and by time: read, checked, and taken back by two calls."""

from __future__ import annotations

import pytest

from tests.mcp.agents import MODES, agent
from tests.support.repository.clocks import SetClock
from tests.support.repository.project import Project


def entity(key, title="t"):
    return {"id": key, "type": "req", "title": title, "status": "open"}


def ids(found):
    return [one["id"] for one in found.call("kb_query")["entities"]]


@pytest.mark.parametrize("mode", MODES)
def test_an_hour_is_taken_back_by_two_calls_and_the_first_one_shows_it(project, mode):
    project.apply(entities=[entity("OTHERS")])
    with agent(project.root, mode=mode) as found:
        for key in ("A", "B"):
            found.call("kb_upsert", entities=[entity(key), entity("OTHERS", key)], message=key)
        shown = found.call("kb_history", action="revert", since="1h", dry_run=True)
        assert (shown["applied"], shown["deleted"], shown["updated"]) == (False, ["A", "B"], ["OTHERS"])
        assert [(one["seq"], one["message"]) for one in shown["records"]] == [(3, "B"), (2, "A")]
        assert ids(found) == ["A", "B", "OTHERS"]
        done = found.call("kb_history", action="revert", since="1h")
        assert (done["applied"], done["deleted"]) == (True, ["A", "B"])
        assert ids(found) == ["OTHERS"]
        again = found.call("kb_history", action="revert", since="1h", dry_run=True)
        assert (again["created"], again["updated"], again["deleted"]) == ([], [], [])


def test_what_is_taken_back_without_a_name_is_of_this_connection_alone(project):
    with agent(project.root) as first, agent(project.root) as second:
        first.call("kb_upsert", entities=[entity("A")])
        second.call("kb_upsert", entities=[entity("B")])
        assert second.call("kb_history", action="revert", since="yesterday", dry_run=True)["deleted"] == ["B"]
        both = second.call("kb_history", action="revert", since="yesterday", actor="tester/1.2", dry_run=True)
        assert both["deleted"] == ["A", "B"]


def test_the_session_of_the_connection_is_named_this(project):
    project.apply(entities=[entity("OTHERS")])
    with agent(project.root) as found:
        found.call("kb_upsert", entities=[{**entity("A"), "priority": "must"}])
        log = found.call("kb_history", action="log", session="this")
        assert [one["seq"] for one in log["records"]] == [2]
        diff = found.call("kb_history", action="diff", session="this")
        assert [one["id"] for one in diff["entities"]] == ["A"]
        checked = found.call("kb_check", since="1h", session="this")
        assert {one["id"] for one in checked["violations"]} == {"A"}
        assert checked["since"]["session"] == log["records"][0]["session"]


def test_a_session_that_has_written_nothing_yet_has_broken_nothing(project):
    project.apply(entities=[{**entity("OTHERS"), "priority": "must"}])
    with agent(project.root) as found:
        checked = found.call("kb_check", since="1h", session="this")
        assert (checked["ok"], checked["total"], checked["fixed"]) == (True, 0, 0)
        own = checked["since"]["session"]
        assert found.call("kb_check", since="1h", session=own)["total"] == 0
        assert found.call("kb_history", action="log", session="this")["records"] == []
        assert found.call("kb_history", action="diff", session="this")["entities"] == []
        refused = found.refused("kb_check", since="1h", session=f"not-{own}")
        assert [one["path"] for one in refused["details"]] == ["$.session"]
        assert found.refused("kb_check", since="1h", session="this", actor="nobody")["code"] == "not_found"


@pytest.mark.parametrize("asked", [{"since": "yesterday"}, {"since": "24h"}, {"seq": "yesterday"}, {"since": "2 days"}])
def test_what_changed_since_a_time_before_the_first_record_is_all(project, asked):
    project.apply(entities=[entity("A")])
    with agent(project.root) as found:
        answer = found.call("kb_history", action="diff", **asked)
        assert (answer["from"], [one["id"] for one in answer["entities"]]) == (0, ["A"])


def test_a_time_that_is_none_is_refused_with_the_forms_that_there_are(project):
    project.apply(entities=[entity("A")])
    with agent(project.root) as found:
        for tool, asked in (("kb_history", {"action": "log"}), ("kb_check", {})):
            assert "yesterday, 1h or `2 days ago`" in found.refused(tool, since="someday", **asked)["hint"]
        assert "since" in found.refused("kb_history", action="revert")["hint"]
        error = found.refused("kb_history", action="revert", seq=1, since="1h")
        assert [one["path"] for one in error["details"]] == ["$.since"]


def test_what_came_before_the_hour_stays(project: Project):
    clock = project.machine.clock = SetClock()
    clock.time = "2026-11-20T13:00:00.000000Z"
    project.apply(entities=[entity("OLD")])
    project.pool.close()
    with agent(project.root) as found:
        found.call("kb_upsert", entities=[entity("NEW")])
        shown = found.call("kb_history", action="revert", since="1h", dry_run=True)
        assert shown["deleted"] == ["NEW"]


def test_many_records_are_counted(project):
    with agent(project.root) as found:
        for number in range(12):
            found.call("kb_upsert", entities=[entity(f"R-{number}")])
        shown = found.call("kb_history", action="revert", since="1h", dry_run=True)
        assert (len(shown["records"]), shown["more_records"], len(shown["deleted"])) == (10, 2, 12)
