"""A store that somebody took away is missed, as long as a view of it is cached."""

from __future__ import annotations

import shutil

from kbcore import branches
from kbcore.branches import lost
from kbcore.branches.stores import repository_lock
from kbcore.upkeep.doctor import diagnose
from kbcore.upkeep.proof import verify_branch
from kbcore.viewcache import LOST, VIEW
from tests.support.project import Project, req
from tests.support.repos import git


def take_away(project: Project, branch: str = "main") -> None:
    project.close()
    shutil.rmtree(project.workspace().directory_of(branch))


def notice(project: Project) -> str:
    return branches.open_branch(project.workspace(), None)[2].notice


def kept(project: Project, branch: str = "main") -> list[str]:
    return [path.name for path in sorted(project.workspace().cache_of(branch).glob(f"{LOST}*"))]


def told(project: Project) -> set[tuple[str, str]]:
    """Return what doctor and verify say of a store that is gone."""
    findings = [*diagnose(project.workspace()).findings, *verify_branch(project.workspace(), "main").findings]
    return {(one.code, one.severity) for one in findings if "lost" in one.code}


def read_once(project: Project) -> None:
    """Have the cache hold a view of one record."""
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    project.close()
    project.node("REQ-1")
    project.close()


def test_a_store_that_is_gone_is_missed_by_its_first_use_and_by_the_doctor(project: Project) -> None:
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    project.close()
    project.node("REQ-1")
    take_away(project)
    codes = [(one.code, one.severity) for one in diagnose(project.workspace()).findings if one.branch == "main"]
    assert ("store_lost", "error") in codes
    assert "The store of main is gone: a cached view had seen it at seq 1, and it may have gone on since." in notice(
        project
    )


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


def test_the_view_of_a_lost_store_is_kept_and_told_of_until_a_person_deletes_it(project: Project) -> None:
    read_once(project)
    take_away(project)
    ensured = branches.open_branch(project.workspace(), None)[2]
    assert ensured.is_warning
    [name] = kept(project)
    assert name.startswith("lost-1-")
    assert name in ensured.notice
    project.sync()
    project.close()
    project.node("REQ-1")
    assert kept(project) == [name]
    assert told(project) == {("view_of_lost_store", "warning")}
    assert not branches.open_branch(project.workspace(), None)[2].is_warning
    (project.workspace().cache_of("main") / name).unlink()
    assert told(project) == set()


def test_a_lost_branch_that_begins_anew_as_a_copy_keeps_the_view_as_well(project: Project) -> None:
    read_once(project)
    project.switch("topic", create=True)
    project.apply(entities=[{"id": "X", "type": "req", "title": "T", "status": "open"}])
    project.close()
    (project.workspace().cache_of("topic") / VIEW).unlink()
    project.node("X")
    take_away(project, "topic")
    ensured = branches.open_branch(project.workspace(), None)[2]
    assert (ensured.copied_from, ensured.is_warning) == ("main", True)
    assert [name[:7] for name in kept(project, "topic")] == ["lost-2-"]


def test_a_beginning_that_failed_after_the_view_was_set_aside_is_told_again(project: Project) -> None:
    read_once(project)
    take_away(project)
    lost.keep(project.workspace(), "main")
    assert lost.seen_of(project.workspace(), "main") == 1
    assert "The store of main is gone: a cached view had seen it at seq 1, and it may have gone on since." in notice(
        project
    )


def test_a_store_that_another_was_put_in_the_place_of_by_hand_is_missed(project: Project) -> None:
    read_once(project)
    other = project.root.parent / "other"
    shutil.copytree(project.workspace().directory_of("main"), other)
    take_away(project)
    branches.ensure(project.workspace(), "main")
    project.sync()
    project.close()
    project.node("REQ-1")
    take_away(project)
    shutil.copytree(other, project.workspace().directory_of("main"))
    for path in project.workspace().cache_of("main").glob(f"{LOST}*"):
        path.unlink()
    assert told(project) == {("view_of_lost_store", "warning")}
    store = branches.open_branch(project.workspace(), None)[0]
    store.read(lambda view: view.seq)
    assert any("was read earlier in a store that is gone" in one for one in store.notices)
    assert len(kept(project)) == 1


def test_a_branch_that_cannot_get_its_store_back_says_that_it_is_missed(project: Project) -> None:
    read_once(project)
    project.switch("topic", create=True)
    project.apply(entities=[{"id": "X", "type": "req", "title": "T", "status": "open"}])
    project.close()
    (project.workspace().cache_of("topic") / VIEW).unlink()
    project.node("X")
    take_away(project, "topic")
    (project.root / ".kb/config.json").write_text('{"lockWaitSeconds": 0}')
    with repository_lock(project.workspace()):
        choice, ensured = branches.for_reading(project.workspace(), branches.Choice("topic", follows_head=True))
    assert (choice.branch, ensured.is_warning) == ("main", True)
    assert "The store of topic is gone" in ensured.notice


def test_a_copy_on_demand_keeps_the_last_witness_of_a_lost_store(project: Project) -> None:
    read_once(project)
    project.switch("feature", create=True)
    project.sync({"docs/requirements/2.md": req("REQ-2")})
    project.close()
    (project.workspace().cache_of("feature") / VIEW).unlink()
    project.node("REQ-2")
    take_away(project, "feature")
    copied = branches.copy_from(project.workspace(), "feature", "main")
    assert copied.is_warning
    assert "The store of feature is gone" in copied.notice
    assert kept(project, "feature")
    branches.copy_from(project.workspace(), "feature", "main", replaces=True)
    assert kept(project, "feature")
