"""Notices with an answer: problems found while reading a store, each once."""

from __future__ import annotations

from kbcore.store.branch_store import BranchStore
from kbcore.sync.overlay import WorktreeFiles
from kbmcp.tools.call import Call, Client
from kbmcp.tools.service import ServerOptions, Service, author
from tests.mcp.agents import agent
from tests.support.repository.clocks import SetClock
from tests.support.repository.project import Project


def test_a_notice_is_not_said_again_when_a_loss_was_settled_meanwhile(project: Project) -> None:
    """While records are missing, a store tells of that alone."""
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    service = Service(ServerOptions(start=project.root, env=project.machine.env))
    workspace = service.workspace()
    store: BranchStore = workspace.store("main")
    call = Call(workspace, WorktreeFiles(), "main", True, author(Client(), "s"), "", False)
    cache = store._parts.cache
    cache.notices.append("noticed")
    assert service.notices.news(call) == "noticed"
    kept, cache.notices = cache.notices, []
    assert service.notices.news(call) == ""
    cache.notices = [*kept, "again"]
    assert service.notices.news(call) == "again"
    service.close()


def test_each_answer_by_time_and_no_other_says_that_a_clock_was_wrong_there(project):
    clock = project.machine.clock = SetClock()
    for number, day in enumerate(["2026-11-20", "2026-11-22", "1915-01-01"]):
        clock.time = f"{day}T13:00:00.000000Z"
        project.apply(entities=[{"id": f"R{number}", "type": "req", "title": "t", "status": "open"}])
    project.pool.close()
    with agent(project.root) as found:
        for _ in range(2):
            assert "A clock was wrong" in found.call("kb_query", at="2026-11-21")["note"]
            assert "A clock was wrong" not in found.call("kb_query").get("note", "")
            assert "A clock was wrong" not in found.call("kb_query", at="HEAD").get("note", "")
