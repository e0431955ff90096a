"""A store that somebody took away is missed, as long as a view of it is cached."""

from __future__ import annotations

import shutil

from kbcore import branches
from kbcore.upkeep.doctor import diagnose
from tests.support.project import Project, req
from tests.support.repos import git


def take_away(project: Project, branch: str = "main") -> None:
    project.close()
    shutil.rmtree(project.workspace().directory_of(branch))


def notice(project: Project) -> str:
    return branches.open_branch(project.workspace(), None)[2].notice


def test_a_store_that_is_gone_is_missed_by_its_first_use_and_by_the_doctor(project: Project) -> None:
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    project.close()
    project.node("REQ-1")
    take_away(project)
    codes = [(one.code, one.severity) for one in diagnose(project.workspace()).findings if one.branch == "main"]
    assert ("store_lost", "error") in codes
    assert "The store of main is gone: a cached view had seen it at seq 1." in notice(project)


def test_a_store_that_kb_put_away_is_not_missed(project: Project) -> None:
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    project.switch("topic", create=True)
    project.apply(entities=[{"id": "X", "type": "req", "title": "T", "status": "open"}])
    project.close()
    project.node("X")
    project.switch("main")
    git(project.root, "branch", "-D", "topic")
    branches.collect(project.workspace())
    project.switch("topic", create=True)
    assert "is gone" not in notice(project)


def test_a_view_that_a_branch_was_about_to_begin_with_is_no_sign_of_a_loss(project: Project) -> None:
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    project.close()
    project.node("REQ-1")
    project.switch("topic", create=True)
    cache = project.workspace().cache_of("topic")
    shutil.copytree(project.workspace().cache_of("main"), cache)
    assert "is gone" not in notice(project)
