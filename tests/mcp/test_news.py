"""What is said beside answers: what reading a store came upon, once."""

from __future__ import annotations

from kbcore.store import BranchStore
from kbcore.sync.overlay import WorktreeFiles
from kbmcp.calls import Call, Client, Options, Service, author
from tests.support.project import Project


def test_a_notice_is_not_said_again_when_a_loss_was_settled_meanwhile(project: Project) -> None:
    """While records are missing, a store tells of that alone."""
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    service = Service(Options(start=project.root, env=project.machine.env))
    workspace = service.workspace()
    store: BranchStore = workspace.store("main")
    call = Call(workspace, store, WorktreeFiles(), "main", True, author(Client()), "", False)
    cache = store._seen._cache
    cache.notices.append("noticed")
    assert service.news(call) == "noticed"
    kept, cache.notices = cache.notices, []
    assert service.news(call) == ""
    cache.notices = [*kept, "anew"]
    assert service.news(call) == "anew"
    service.close()
