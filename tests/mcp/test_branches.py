"""The branch of a call is the one that is checked out when the call is made."""

from __future__ import annotations

import time

import pytest

from kbcore.store.folders import REPOSITORY_LOCK
from tests.mcp.agents import agent, locked, raw, spawned
from tests.support.repository.places import stores_at
from tests.support.repository.repos import add_worktree, git, make_repository


def entity(key):
    return {"id": key, "type": "req", "title": key, "status": "open"}


def test_a_switch_between_two_calls_is_followed(project):
    with agent(project.root) as found:
        assert found.call("kb_upsert", entities=[entity("ON-MAIN")])["branch"] == "main"
        project.switch("feature/login", create=True)
        answer = found.call("kb_upsert", entities=[entity("ON-FEATURE")])
        assert answer["branch"] == "feature/login"
        assert "first use of feature/login" in answer["note"]
        assert found.call("kb_query")["total"] == 2
        project.switch("main")
        answer = found.call("kb_query")
        assert (answer["branch"], answer["total"], answer.get("note")) == ("main", 1, None)


def test_a_dry_run_in_a_new_branch_makes_no_store_and_is_planned_on_the_default_branch(project):
    project.apply(entities=[entity("A")])
    with agent(project.root) as found:
        project.switch("feature", create=True)
        tries = [
            ("kb_upsert", {"entities": [entity("B")]}, "created", ["B"]),
            ("kb_upsert", {"rename": {"A": "A2"}}, "renamed", {"A": "A2"}),
            ("kb_delete", {"entities": [{"id": "A", "expected_version": 1}]}, "deleted", ["A"]),
        ]
        for tool, arguments, name, expected in tries:
            answer = found.call(tool, **arguments, dry_run=True)
            assert (answer["branch"], answer["answered_from"], answer[name]) == ("feature", "main", expected)
            assert "feature has no store yet: this is main" in answer["note"]
            assert not (stores_at(project.root) / "feature").exists()
        assert found.call("kb_upsert", entities=[entity("B")])["created"] == ["B"]
        assert [one["branch"] for one in (found.call("kb_query"), found.call("kb_upsert", entities=[entity("C")]))] == [
            "feature",
            "feature",
        ]


def test_a_write_that_is_refused_in_a_new_branch_makes_no_store_and_says_what_it_was_planned_on(project):
    project.apply(entities=[entity("A")])
    with agent(project.root) as found:
        project.switch("feature", create=True)
        calls = [
            ("kb_upsert", {"entities": [{**entity("B"), "type": "nope"}]}),
            ("kb_upsert", {"rename": {"NOPE": "B"}}),
            ("kb_delete", {"entities": [{"id": "NOPE", "expected_version": 1}]}),
            ("kb_history", {"action": "revert", "seq": 99}),
        ]
        for tool, arguments in calls:
            answer = found.result(tool, arguments).structured_content
            assert (answer["branch"], answer["answered_from"], "error" in answer) == ("feature", "main", True)
            assert not (stores_at(project.root) / "feature").exists(), tool
        answer = found.call("kb_upsert", entities=[entity("B")])
        assert (answer["branch"], answer["seq"], "answered_from" in answer) == ("feature", 2, False)
        assert "This is the first use of feature: its store is a copy of that of main." in answer["note"]
        assert found.call("kb_upsert", entities=[entity("C")]).get("note") is None
    assert project.view("main").nodes(["B"]) == []


def test_an_expected_branch_is_insisted_on(project):
    with agent(project.root) as found:
        error = found.refused("kb_upsert", entities=[entity("A")], expect_branch="feature")
        assert (error["code"], error["expected"], error["branch"]) == ("unexpected_branch", "feature", "main")
        assert error["retryable"] is False
        assert "Nothing was written" in error["message"]
        version = found.call("kb_upsert", entities=[entity("A")], expect_branch="main")["seq"]
        target = {"id": "A", "expected_version": version}
        assert found.refused("kb_delete", entities=[target], expect_branch="feature")["code"] == "unexpected_branch"
        assert found.refused("kb_history", action="revert", seq=1, expect_branch="x")["code"] == "unexpected_branch"
        assert found.call("kb_query")["total"] == 1


def test_a_move_of_head_during_a_write_refuses_it(project):
    project.apply(entities=[entity("BEFORE")])
    git(project.root, "branch", "other")
    with raw(project.root) as server:
        server.greet()
        server.call(1, "kb_query")
        server.answer(1)
        with locked(project.workspace().folders.directory_of("main")):
            server.call(2, "kb_upsert", {"entities": [entity("DURING")]})
            time.sleep(0.3)
            project.switch("other")
        error = server.answer(2)["error"]
        assert (error["code"], error["old"], error["new"]) == ("branch_moved", "main", "other")
        assert error["retryable"] is True
        assert server.close() == 0
    for branch in ("main", "other"):
        assert project.view(branch).nodes(["DURING"]) == []


def test_a_named_branch_stays_whatever_is_checked_out(project):
    project.apply(entities=[entity("A")])
    with agent(project.root, "--branch", "main") as found:
        project.switch("feature", create=True)
        assert found.call("kb_upsert", entities=[entity("B")])["branch"] == "main"
    with agent(project.root, "--branch", "no-such") as found:
        assert found.refused("kb_query")["code"] == "unknown_branch"


def test_two_worktrees_have_two_branches_and_one_kb(project, tmp_path):
    project.apply(entities=[entity("A")])
    linked = add_worktree(project.root, tmp_path / "linked", "side")
    with agent(project.root) as here, agent(linked) as there:
        assert there.call("kb_upsert", entities=[entity("SIDE")])["branch"] == "side"
        assert here.call("kb_query")["total"] == 1
        assert there.call("kb_query")["total"] == 2
    assert not (linked / ".kb").exists()


def test_a_branch_that_can_get_no_store_is_read_from_what_it_would_be_copied_from(project):
    project.apply(entities=[entity("A")])
    project.write({".kb/config.json": '{"lockWaitSeconds": 0.05}'})
    project.switch("feature", create=True)
    with agent(project.root) as found, locked(project.workspace().folders.data_dir, REPOSITORY_LOCK):
        answer = found.call("kb_query")
        assert (answer["branch"], answer["answered_from"], answer["total"]) == ("feature", "main", 1)
        assert "feature has no store yet: this is main" in answer["note"]
        assert found.refused("kb_upsert", entities=[entity("B")])["code"] == "lock_timeout"
    assert project.view("main").nodes(["B"]) == []


def test_a_detached_head_can_be_written(project):
    project.apply(entities=[entity("A")])
    git(project.root, "switch", "--quiet", "--detach")
    with agent(project.root) as found:
        answer = found.call("kb_upsert", entities=[entity("B")])
        assert answer["branch"].startswith("detached:")
        assert found.call("kb_query")["total"] == 2


def test_outside_of_a_repository_the_server_starts_and_the_tools_say_why_not(tmp_path):
    with agent(tmp_path) as found:
        assert len(found.tools()) == 5
        error = found.refused("kb_query")
        assert error["code"] == "not_a_repository"
        assert "-C PATH" in error["hint"]
        make_repository(tmp_path)
        error = found.refused("kb_upsert", entities=[entity("A")])
        assert error["code"] == "not_initialised"
        assert "kb init" in error["hint"]
        assert "Nothing was written" in error["message"]
        stores_at(tmp_path).mkdir(parents=True)
        assert found.call("kb_upsert", entities=[entity("A")])["created"] == ["A"]


def test_a_folder_that_does_not_exist_is_reported_by_the_tools(tmp_path):
    with agent(tmp_path / "nowhere") as found:
        assert found.refused("kb_check")["code"] == "not_a_repository"


@pytest.mark.sliced
def test_git_variables_of_the_caller_are_not_followed(project, tmp_path):
    other = make_repository(tmp_path / "other", branch="elsewhere")
    with spawned(project.root, env={"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other)}) as found:
        assert found.call("kb_query")["branch"] == "main"
