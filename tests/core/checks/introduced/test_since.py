"""Violations since a seq, a time, a commit or a branch: only those are reported, and the fixed ones are counted."""

from __future__ import annotations

import os

import pytest

from kbcore.checks.introduced.since import Since, check_since
from kbcore.errors import HistoryPruned, InvalidQuery
from kbcore.git import blobs
from kbcore.git.tracked_paths import kept_of
from kbcore.maintenance.compacting import compact
from kbcore.store import branches
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project, document, req
from tests.support.repository.repos import commit_files, git, make_repository

BROKEN = {"docs/requirements/1.md": req("REQ-1", links="[GONE-1]")}
NEW = {"docs/requirements/2.md": req("REQ-2", links="[GONE-2, REQ-1]")}
OWN_RULE = (
    "rules:\n- id: no-late\n  sql: select id, 'is late' as message from entity where list_contains(tags, 'late')\n"
)


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path / "repo")
    yield made
    made.close()


def since(project: Project, text: str, **asked) -> Since:
    workspace = project.workspace()
    store, choice, _ = branches.open_branch(workspace, None)
    return store.read(lambda view: check_since(workspace, view, choice.branch, text, **asked))


def new(project: Project, text: str, **asked) -> list[tuple[str, str]]:
    return [(one.rule, one.id) for one in since(project, text, **asked).found.report.violations]


def commit(project: Project, files: dict[str, str]) -> str:
    return commit_files(project.root, files)


def test_only_what_came_since_a_seq_is_reported(project):
    project.sync(BROKEN)
    project.sync(NEW)
    assert new(project, "1") == [("unresolved-reference", "REQ-2")]
    assert new(project, "2") == []
    assert ("unresolved-reference", "REQ-1") in new(project, "0")


def test_what_was_corrected_is_reported(project):
    project.sync(BROKEN)
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    found = since(project, "1").found
    assert [one.rule for one in found.fixed] == ["unresolved-reference"]
    # It stood alone before as well: a link to nothing is none.
    assert found.report.violations == []
    assert found.report.ok


def test_a_name_that_is_no_utf_8_is_the_same_document_in_git_and_on_the_disk(project):
    name = os.fsdecode(b"docs/requirements/\xff.md")
    (project.root / "docs/requirements").mkdir(parents=True)
    commit(project, {name: req("REQ-1", links="[GONE-1]")})
    project.sync()
    assert "unreadable-source" in {rule for rule, _ in new(project, "0")}
    found = since(project, "HEAD").found
    assert (found.report.violations, found.fixed) == ([], ())
    repo, paths = project.workspace().repo, {path for (path,) in project.view().rows("select path from source")}
    assert paths <= set(blobs.tree_of(repo, project.machine.env, "HEAD"))
    assert kept_of(repo, project.machine.env, blobs.tree_of(repo, project.machine.env, "HEAD")).missing(paths) == set()


def test_a_line_that_shifts_introduces_nothing(project):
    project.sync({"docs/requirements/1.md": "---\nid: REQ-1\ntitle: [\n---\n"})
    project.sync({"docs/requirements/1.md": "---\nid: REQ-1\nstatus: open\ntitle: [\n---\n"})
    found = since(project, "1", only=["unreadable-source"]).found
    assert (found.report.violations, found.fixed) == ([], ())


def test_rules_of_the_project_judge_the_past_as_well(project):
    (project.root / ".kb/rules").mkdir()
    (project.root / ".kb/rules/own.yaml").write_text(OWN_RULE)
    project.sync({"docs/requirements/1.md": req("REQ-1", tags="[late]")})
    project.sync({"docs/requirements/2.md": req("REQ-2", tags="[late]")})
    assert new(project, "1", only=["no-late"]) == [("no-late", "REQ-2")]


SYMBOLS = "symbols:\n- {id: m.f, links: [REQ-1]}\n- {id: m.g, links: [REQ-2]}\n"
REQS = {"docs/requirements/1.md": req("REQ-1"), "docs/requirements/2.md": req("REQ-2")}
SUSPECT = [("suspect-edge", "m.f")]


def test_an_edge_that_a_commit_made_suspect_is_new_in_a_store_younger_than_both(project):
    first = commit(project, {**REQS, "docs/symbols.yaml": SYMBOLS})
    commit(project, {"docs/requirements/1.md": req("REQ-1") + "\nnew\n"})
    project.sync()
    found = since(project, first, only=["suspect-edge"]).found
    assert [(one.rule, one.id) for one in found.report.violations] == SUSPECT
    assert "REQ-1 has changed since; the edge was never confirmed." in found.report.violations[0].message
    assert found.fixed == ()
    assert new(project, "HEAD", only=["suspect-edge"]) == []


def test_an_edge_that_changed_with_its_target_is_not_new_in_such_a_store(project):
    first = commit(project, {**REQS, "docs/symbols.yaml": SYMBOLS.replace("m.f,", "m.f, name: old,")})
    commit(project, {"docs/requirements/1.md": req("REQ-1") + "\nnew\n", "docs/symbols.yaml": SYMBOLS})
    project.sync()
    found = since(project, first, only=["suspect-edge"]).found
    assert (found.report.violations, found.fixed) == ([], ())


@pytest.mark.sliced
def test_what_a_client_confirms_in_such_a_store_is_not_new(project):
    first = commit(project, {**REQS, "docs/symbols.yaml": SYMBOLS})
    commit(project, {"docs/requirements/1.md": req("REQ-1", title="other")})
    project.sync()
    assert new(project, first, only=["suspect-edge"]) == SUSPECT
    project.apply(edges=[{"type": "implements", "from": "m.f", "to": "REQ-1"}])
    assert new(project, first, only=["suspect-edge"]) == []


@pytest.mark.sliced
def test_what_such_a_store_saw_on_its_way_is_not_new(project):
    project.sync({**REQS, "docs/symbols.yaml": SYMBOLS})
    first = commit(project, {**REQS, "docs/symbols.yaml": SYMBOLS, "docs/requirements/1.md": req("REQ-1", title="o")})
    project.sync()
    commit(project, {"docs/requirements/2.md": req("REQ-2", title="other")})
    project.sync()
    found = since(project, first, only=["suspect-edge"]).found
    assert [(one.rule, one.id) for one in found.report.violations] == [("suspect-edge", "m.g")]
    assert found.fixed == ()


def test_an_edge_that_was_suspect_at_the_commit_is_neither_new_nor_corrected(project):
    commit(project, {**REQS, "docs/symbols.yaml": SYMBOLS})
    project.sync()
    git(project.root, "branch", "other")
    project.view("other")
    commit(project, {"docs/requirements/1.md": req("REQ-1", title="other")})
    git(project.root, "branch", "--force", "other")
    project.sync()
    assert "has changed at seq 2;" in since(project, "1", only=["suspect-edge"]).found.report.violations[0].message
    found = since(project, "other", only=["suspect-edge"]).found
    assert (found.report.violations, found.fixed) == ([], ())


def test_a_time_means_the_last_record_by_then(project):
    project.sync(BROKEN)
    between = project.machine.clock.now()
    project.sync(NEW)
    assert since(project, between).point.seq == 1
    assert new(project, between) == [("unresolved-reference", "REQ-2")]


@pytest.mark.sliced
def test_a_commit_means_its_documents_whatever_was_synced_when(project):
    first = commit(project, BROKEN)
    commit(project, NEW)
    project.sync()
    assert new(project, first) == [("unresolved-reference", "REQ-2")]
    assert new(project, "HEAD") == []
    assert new(project, "HEAD~1") == [("unresolved-reference", "REQ-2")]


def test_what_is_not_committed_is_new_since_the_last_commit(project):
    commit(project, BROKEN)
    project.sync()
    project.sync(NEW)
    assert new(project, "HEAD") == [("unresolved-reference", "REQ-2")]


def test_documents_that_git_ignores_count_as_they_are(project):
    commit(project, {**BROKEN, ".gitignore": "docs/tests/\n"})
    project.sync({"docs/tests/1.md": document("TEST-1", title="T", status="active", links="[REQ-1, GONE-3]")})
    assert new(project, "HEAD") == []


def test_before_the_first_edge_orphans_is_not_run_and_what_it_found_before_is_not_fixed(project):
    project.sync({"docs/requirements/1.md": req("REQ-1"), "docs/requirements/2.md": req("REQ-2")})
    project.sync({"docs/requirements/3.md": req("REQ-3")})
    for seq in ("0", "1"):
        found = since(project, seq).found
        assert (found.report.violations, found.fixed) == ([], ()), seq
        [orphans] = [run for run in found.report.rules if run.id == "orphans"]
        assert (orphans.status, "no edge yet" in orphans.reason) == ("not_applicable", True), seq


def test_the_entities_that_lose_the_last_edge_of_a_branch_are_new_orphans(project):
    project.sync({"docs/requirements/1.md": req("REQ-1"), "docs/requirements/2.md": req("REQ-2", links="[REQ-1]")})
    project.sync({"docs/requirements/3.md": req("REQ-3")})
    project.sync({"docs/requirements/2.md": req("REQ-2")})
    assert new(project, "2") == [("orphans", "REQ-1"), ("orphans", "REQ-2")]


def test_an_entity_without_edges_is_not_new_when_others_get_the_first_edge(project):
    project.sync({f"docs/requirements/{at}.md": req(f"REQ-{at}") for at in (1, 2, 3)})
    project.sync({"docs/requirements/1.md": req("REQ-1", links="[REQ-2]"), "docs/requirements/4.md": req("REQ-4")})
    assert new(project, "1") == [("orphans", "REQ-4")]


@pytest.mark.sliced
def test_what_a_client_stated_after_the_commit_was_made_is_new(project):
    commit(project, BROKEN | {"docs/requirements/2.md": req("REQ-2", links="[REQ-1]")})
    project.sync()
    project.apply(entities=[{"id": "REQ-9", "type": "req", "title": "t9", "status": "open"}])
    # The store is younger than the commit, which the tests date back: all that a client stated came later.
    assert new(project, "HEAD") == [("orphans", "REQ-9")]
    assert new(project, "main") == [("orphans", "REQ-9")]


def test_a_branch_means_where_the_two_diverged(project):
    commit(project, BROKEN)
    project.sync()
    project.apply(entities=[{"id": "REQ-8", "type": "req", "title": "t8", "status": "open"}])
    project.switch("feature", create=True)
    project.apply(entities=[{"id": "REQ-9", "type": "req", "title": "t9", "status": "open"}])
    commit(project, NEW | {"docs/requirements/7.md": req("REQ-7", links="[REQ-8]")})
    project.sync()
    git(project.root, "switch", "--quiet", "main")
    commit(project, {"docs/requirements/3.md": req("REQ-3", links="[GONE-3]")})
    git(project.root, "switch", "--quiet", "feature")
    found = since(project, "main")
    assert found.point.seq == 2
    violations = {(one.rule, one.id) for one in found.found.report.violations}
    assert violations == {("unresolved-reference", "REQ-2"), ("orphans", "REQ-9")}
    assert [(one.rule, one.id) for one in found.found.fixed] == [("orphans", "REQ-8")]


@pytest.mark.sliced
def test_a_store_whose_branch_git_has_forgotten_still_says_where_they_diverged(project):
    project.sync(BROKEN)
    project.switch("feature", create=True)
    project.sync(NEW)
    git(project.root, "branch", "-D", "main")
    assert since(project, "main").point.commit is None
    assert new(project, "main") == [("unresolved-reference", "REQ-2")]


@pytest.mark.parametrize(
    ("text", "said"),
    [("mian", "Did you mean 'main'?"), ("", "Give a seq"), ("-x", "Give a seq"), ("9", "The head is at seq 1")],
)
def test_what_means_nothing_is_refused_with_what_would(project, text, said):
    project.sync(BROKEN)
    with pytest.raises(InvalidQuery) as refused:
        since(project, text)
    assert said in refused.value.hint


def test_a_commit_that_shares_nothing_with_the_branch_is_refused(project):
    project.sync(BROKEN)
    git(project.root, "switch", "--quiet", "--orphan", "other")
    commit_files(project.root, {"x": "x"})
    git(project.root, "switch", "--quiet", "main")
    with pytest.raises(InvalidQuery, match="share no commit in this clone"):
        since(project, "other")


def test_a_branch_without_a_commit_is_compared_with_none(tmp_path):
    make_repository(tmp_path / "repo", commits=0)
    project = Project(tmp_path / "repo", is_new=False)
    stores_at(project.root).mkdir(parents=True)
    project.sync(BROKEN)
    with pytest.raises(InvalidQuery, match="git knows no such commit"):
        since(project, "HEAD")
    project.close()


def test_a_seq_that_was_pruned_is_refused(project):
    project.sync(BROKEN)
    project.sync(NEW)
    compact(project.workspace(), "main", prune_before=3)
    project.sync({"docs/requirements/4.md": req("REQ-4")})
    project.close()
    with pytest.raises(HistoryPruned):
        since(project, "1")
    assert new(project, "2") == [("orphans", "REQ-4")]


@pytest.mark.sliced
def test_the_past_is_looked_at_without_touching_the_store(project):
    project.sync(BROKEN)
    first = commit(project, BROKEN)
    project.sync(NEW)
    before = sorted((path, path.stat().st_mtime_ns) for path in (project.root / ".kb").rglob("*"))
    new(project, first)
    new(project, "1")
    assert sorted((path, path.stat().st_mtime_ns) for path in (project.root / ".kb").rglob("*")) == before
    assert project.seq() == 2


def test_a_file_that_went_since_a_commit_is_reported(project):
    symbols = "symbols:\n- {id: SYM-1, title: login, file: src/login.py}\n"
    commit(project, {"docs/symbols.yaml": symbols, "src/login.py": "a"})
    (project.root / "src/login.py").unlink()
    project.sync()
    assert new(project, "HEAD", only=["missing-file"]) == [("missing-file", "SYM-1")]
