"""``kb check --against``: commits with which is compared, and clones that lack them."""

from __future__ import annotations

import pytest

from tests.cli.check.clones import MAIN, commit, document, path
from tests.support.processes.cli import write
from tests.support.repository.repos import git, run_git


def test_several_common_ancestors_are_all_asked(kb, clones):
    git(clones.here, "branch", "one", "main")
    git(clones.here, "branch", "two", "main")
    for branch, title in (("one", "One"), ("two", "Two")):
        git(clones.here, "switch", "-q", branch)
        commit(clones.here, {path("1"): document("REQ-1", title), path(branch): document(f"REQ-{branch}", title)})
    git(clones.here, "branch", "was-one", "one")
    for branch, other, strategy in (("one", "two", "ours"), ("two", "was-one", "ours")):
        git(clones.here, "switch", "-q", branch)
        git(clones.here, "merge", "-q", "-X", strategy, "-m", "crosswise", other)
    assert len(git(clones.here, "merge-base", "--all", "one", "two").split()) == 2
    ran = kb("check", "--against", "one", "--json")
    assert len(ran.json["against"]["bases"]) == 2
    # Each took the other's document, and decided on a title of its own.
    assert [(one["id"], one["field"], one["values"]) for one in ran.json["violations"]] == [
        ("REQ-1", "title", ["Two", "One"])
    ]
    commit(clones.here, {path("1"): document("REQ-1", "One")})
    assert kb("check", "--against", "one").status == 0


def test_without_a_common_ancestor_or_a_revision_nothing_is_green(kb, clones):
    commit(clones.there, {path("3"): document("REQ-3", "New")})
    clones.meet()
    for ref in ("nowhere", "", "--all"):
        ran = kb("check", f"--against={ref}", "--json")
        assert (ran.status, ran.error["code"]) == (29, "files_unknown"), ref
        assert "`git branch -a` lists the branches that are here." in ran.error["hint"]
    git(clones.here, "switch", "-q", "--orphan", "alone")
    commit(clones.here, {path("1"): document("REQ-1", "Alone")})
    ran = kb("check", "--against", MAIN)
    assert (ran.status, ran.out) == (29, "")
    assert "share no commit in this clone" in ran.err
    assert "git fetch --unshallow" in ran.err


@pytest.mark.parametrize("format_", ["text", "json", "sarif", "junit", "github"])
def test_in_a_shallow_clone_nothing_is_compared_and_no_report_is_written(kb, clones, format_):
    commit(clones.there, {path("3"): document("REQ-3", "New")})
    clones.meet()
    commit(clones.here, {path("4"): document("REQ-4", "Mine")})
    git(clones.here, "push", "-q", "origin", "feature")
    shallow = clones.here.parent / "shallow"
    git(clones.here.parent, "clone", "-q", "--depth", "1", "--no-single-branch", "-b", "feature",
        clones.upstream.as_uri(), shallow)  # fmt: skip
    ran = kb("check", "--against", MAIN, "--format", format_, cwd=shallow)
    assert ran.status == 29
    assert "<testsuite" not in ran.out
    assert "sarif" not in ran.out
    git(shallow, "fetch", "-q", "--unshallow")
    assert kb("check", "--against", MAIN, cwd=shallow).status == 0


def test_a_common_ancestor_that_may_not_be_the_last_one_is_not_compared_with(kb, clones):
    """The history of a merge is cut off on one of its ways: an older common ancestor is left."""
    commit(clones.here, {path("4"): document("REQ-4", "Mine")})
    commit(clones.there, {path("1"): document("REQ-1", "Second")})
    clones.meet()
    shared = git(clones.here, "rev-parse", MAIN)
    git(clones.here, "switch", "-q", "-c", "side", MAIN)
    commit(clones.here, {path("5"): document("REQ-5", "Mine")})
    end = git(clones.here, "rev-parse", "HEAD")
    git(clones.here, "switch", "-q", "feature")
    git(clones.here, "merge", "-q", "-m", "merge", "side")
    commit(clones.there, {path("6"): document("REQ-6", "Theirs")})
    clones.meet()
    kb("sync")
    ran = kb("check", "--against", MAIN, "--json")
    assert (ran.status, ran.json["against"]["bases"]) == (0, [shared])
    (clones.here / ".git/shallow").write_text(f"{end}\n")
    assert git(clones.here, "merge-base", "HEAD", MAIN) not in {"", shared}
    ran = kb("check", "--against", MAIN)
    assert (ran.status, "may share a later commit" in ran.err) == (29, True)


def test_files_that_a_partial_clone_lacks_are_not_fetched_and_not_passed_over(kb, clones):
    commit(clones.there, {path("3"): document("REQ-3", "New")})
    clones.meet()
    git(clones.upstream, "config", "uploadpack.allowFilter", "true")
    partial = clones.here.parent / "partial"
    git(clones.here.parent, "clone", "-q", "--filter=blob:none", clones.upstream.as_uri(), partial)
    git(partial, "switch", "-q", "-c", "mine")
    commit(partial, {path("4"): document("REQ-4", "Mine")})
    commit(clones.there, {path("1"): document("REQ-1", "Changed")})
    git(clones.there, "push", "-q", "origin", "HEAD:main")
    git(partial, "fetch", "-q")
    before = git(partial, "count-objects", "-v")
    ran = kb("check", "--against", MAIN, cwd=partial)
    assert (ran.status, ran.out) == (29, "")
    assert "are not in this clone" in ran.err
    assert git(partial, "count-objects", "-v") == before


def test_another_branch_counts_as_its_last_commit_has_it(kb, clones):
    commit(clones.here, {path("3"): document("REQ-3", "Ours")})
    kb("sync")
    commit(clones.there, {path("b"): document("REQ-3", "Theirs")})
    clones.meet()
    git(clones.here, "switch", "-q", "main")
    write(clones.here, {path("3"): document("REQ-7", "Not of that branch")})
    ran = kb("check", "--against", MAIN, "--branch", "feature", "--json")
    assert [one["id"] for one in ran.json["violations"]] == ["REQ-3"]


def test_while_a_merge_is_not_finished_nothing_is_compared(kb, clones):
    commit(clones.here, {path("1"): document("REQ-1", "Ours")})
    commit(clones.there, {path("1"): document("REQ-1", "Theirs")})
    clones.meet()
    assert run_git(clones.here, "merge", MAIN).returncode == 1
    ran = kb("check", "--against", MAIN)
    assert (ran.status, "A merge of git is not finished." in ran.err) == (29, True)


def test_the_status_names_a_merge_that_is_not_finished_and_does_not_send_to_a_sync_of_it(kb, clones):
    commit(clones.here, {path("1"): document("REQ-1", "Ours")})
    kb("sync")
    commit(clones.there, {path("1"): document("REQ-1", "Theirs")})
    clones.meet()
    assert run_git(clones.here, "merge", MAIN).returncode == 1
    said = kb("status").out
    assert "A merge of git is not finished: the files are not those of a commit yet." in said
    assert "Next: end the merge, as `git status` says; then `kb sync`" in said
    assert kb("status", "--json").json["git_operation"] == "merge"
