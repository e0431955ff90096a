"""The violations that a commit of the index would introduce: the index counts, whatever lies in the worktree."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from kbcore.checks import rule_named, run_checks
from kbcore.checks.introduced.staged import StagedOutcome, check_staged
from kbcore.errors import InvalidQuery, NotFound
from kbcore.rules import Violation
from kbcore.store import branches
from kbcore.store.pool import Machine
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project, document, req
from tests.support.repository.repos import add_worktree, commit_files, git, git_env, make_repository, run_git, set_trap

GOOD = {
    "docs/requirements/1.md": req("REQ-1", links="[REQ-0]"),
    "docs/requirements/0.md": req("REQ-0", links="[REQ-1]"),
}
LOOSE = req("REQ-2", links="[REQ-1, GONE]")
ONLY = ["unresolved-reference", "unreadable-source", "staged-symbol"]
MANIFEST = "docs/symbols.yaml"


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path / "repo")
    commit_files(made.root, GOOD)
    made.sync()
    yield made
    made.close()


def look(project: Project, only: list[str] | None = None) -> StagedOutcome:
    workspace = project.workspace()
    store, _, _ = branches.open_branch(workspace, None)
    return store.read(lambda view: check_staged(workspace, view, only=ONLY if only is None else only))


def violations(project: Project, only: list[str] | None = None) -> list[Violation]:
    return look(project, only).found.report.violations


def said(project: Project) -> list[str]:
    return [one.message for one in violations(project)]


def stage(project: Project, files: Mapping[str, str | None]) -> None:
    project.write(files)
    git(project.root, "add", "--all", "--", *files)


def manifest(*symbols: str) -> str:
    return "symbols:\n" + "".join(f"- {{{symbol}}}\n" for symbol in symbols)


def configure(project: Project, *globs: str) -> None:
    project.write({".kb/config.json": json.dumps({"staged": {"symbols": globs}})})


def test_a_staged_document_is_judged_before_it_is_committed(project):
    stage(project, {"docs/requirements/2.md": LOOSE})
    assert said(project) == ["REQ-2 links to GONE, but there is no GONE."]
    assert project.seq() == 1


def test_without_an_edge_orphans_is_not_run(tmp_path):
    project = Project(tmp_path / "other")
    commit_files(project.root, {"docs/requirements/1.md": req("REQ-1")})
    project.sync()
    stage(project, {"docs/requirements/2.md": req("REQ-2")})
    report = look(project, ["orphans"]).found.report
    assert (report.violations, [run.status for run in report.rules]) == ([], ["not_applicable"])
    stage(project, {"docs/requirements/3.md": req("REQ-3", links="[REQ-1]")})
    assert [one.id for one in violations(project, ["orphans"])] == ["REQ-2"]
    project.close()


@pytest.mark.parametrize("is_synced", [True, False], ids=["recorded", "not recorded"])
def test_the_entities_that_lose_the_last_edge_of_a_commit_are_new_orphans(tmp_path, is_synced):
    project = Project(tmp_path / "other")
    linked = {"docs/requirements/1.md": req("REQ-1"), "docs/requirements/2.md": req("REQ-2", links="[REQ-1]")}
    project.sync({} if is_synced else {"docs/requirements/1.md": req("REQ-1")})
    commit_files(project.root, linked)
    if is_synced:
        project.sync()
    stage(project, {"docs/requirements/2.md": req("REQ-2")})
    assert [one.id for one in violations(project, ["orphans"])] == ["REQ-1", "REQ-2"]
    project.close()


def test_a_wrong_status_in_place_of_another_wrong_one_is_introduced(project):
    path = "docs/requirements/1.md"
    project.write({".kb/schema/a.yaml": "entities: {req: {statuses: [open, done], statusDefault: open}}\n"})
    project.sync({path: req("REQ-1", status="1", links="[REQ-0]")})
    git(project.root, "add", "--all", "--", path)
    git(project.root, "commit", "--quiet", "-m", "a wrong status")
    for status in ("2", "wrong"):
        stage(project, {path: req("REQ-1", status=status, links="[REQ-0]")})
        found = look(project, ["unknown-status"]).found
        assert [one.values for one in found.report.violations] == [(status,)]
        assert [one.values for one in found.fixed] == [("1",)]


def test_what_is_staged_counts_and_not_what_lies_in_the_worktree(project):
    stage(project, {"docs/requirements/2.md": LOOSE})
    project.write({"docs/requirements/2.md": req("REQ-2", links="[REQ-1]")})
    assert said(project) == ["REQ-2 links to GONE, but there is no GONE."]
    stage(project, {"docs/requirements/2.md": req("REQ-2", links="[REQ-1]")})
    project.write({"docs/requirements/2.md": LOOSE})
    assert said(project) == []


def test_what_a_watcher_has_taken_in_already_is_still_introduced_by_the_commit(project):
    project.sync({"docs/requirements/2.md": LOOSE})
    assert said(project) == []
    git(project.root, "add", "--all")
    assert said(project) == ["REQ-2 links to GONE, but there is no GONE."]


def test_a_target_that_is_not_staged_with_its_link_is_missing(project):
    project.sync({"docs/requirements/2.md": req("REQ-2", links="[REQ-1]")})
    stage(project, {"docs/requirements/0.md": req("REQ-0", links="[REQ-1, REQ-2]")})
    assert said(project) == ["REQ-0 links to REQ-2, but there is no REQ-2."]


def test_a_staged_document_that_cannot_be_read_is_named_with_its_line(project):
    stage(project, {"docs/requirements/2.md": "---\nid: REQ-2\nstatus: open\ntitle: [\n---\n"})
    found = violations(project)
    assert {(one.rule, one.source) for one in found} == {("unreadable-source", "docs/requirements/2.md")}
    assert any((one.source, one.line) == ("docs/requirements/2.md", 4) for one in found)


def test_a_staged_change_makes_edges_suspect_and_names_no_record_that_there_is_not(project):
    stage(project, {"docs/requirements/0.md": req("REQ-0", links="[REQ-1]", owner="ada")})
    [found] = violations(project, ["suspect-edge"])
    assert found.message == "REQ-1 depends_on REQ-0, but REQ-0 has changed; the edge was last confirmed at seq 1."


def test_a_staged_removal_breaks_what_pointed_there(project):
    git(project.root, "rm", "--quiet", "docs/requirements/0.md")
    assert said(project) == ["REQ-1 links to REQ-0, but there is no REQ-0."]


def test_a_staged_rename_breaks_nothing(project):
    git(project.root, "mv", "docs/requirements/0.md", "docs/requirements/zero.md")
    assert violations(project, []) == []


def test_without_anything_staged_no_rule_is_run_and_an_unknown_one_is_still_refused(project):
    project.write({".kb/rules/a.yaml": "rules:\n- id: broken\n  sql: select nothing from nowhere\n"})
    found = look(project, [])
    assert {(run.status, run.reason) for run in found.found.report.rules} == {("not_applicable", "Nothing is staged.")}
    assert {"acyclic", "staged-symbol", "broken"} < {run.id for run in found.found.report.rules}
    assert (found.staged, found.found.report.ok) == (0, True)
    with pytest.raises(NotFound):
        look(project, ["acyclics"])


def test_where_no_document_is_staged_only_what_looks_at_files_is_run(project):
    project.sync({"docs/requirements/2.md": LOOSE})
    stage(project, {"src/a.py": "x"})
    found = look(project, [])
    assert [run.id for run in found.found.report.rules if run.status == "ran"] == ["missing-file", "staged-symbol"]
    assert (found.staged, found.found.report.violations) == (1, [])


def test_what_a_document_leads_to_is_the_document(project):
    commit_files(project.root, {"elsewhere/2.md": req("REQ-2", links="[REQ-1]")})
    (project.root / "docs/requirements/2.md").symlink_to("../../elsewhere/2.md")
    git(project.root, "add", "--all")
    git(project.root, "commit", "--quiet", "-m", "a link")
    stage(project, {"elsewhere/2.md": LOOSE})
    assert said(project) == ["REQ-2 links to GONE, but there is no GONE."]


def test_what_stood_before_is_not_held_against_the_commit(project):
    commit_files(project.root, {"docs/requirements/2.md": LOOSE})
    stage(project, {"docs/requirements/3.md": req("REQ-3", links="[REQ-1, LOST]")})
    assert said(project) == ["REQ-3 links to LOST, but there is no LOST."]
    stage(project, {"docs/requirements/2.md": req("REQ-2", links="[REQ-1]")})
    assert [one.id for one in look(project).found.fixed] == ["REQ-2"]


def test_the_first_commit_is_judged_as_well(tmp_path):
    make_repository(tmp_path / "repo", commits=0)
    project = Project(tmp_path / "repo", is_new=False)
    stores_at(project.root).mkdir(parents=True)
    stage(project, {**GOOD, "docs/requirements/2.md": LOOSE})
    assert said(project) == ["REQ-2 links to GONE, but there is no GONE."]
    assert look(project).staged == 3
    project.close()


def test_a_file_that_is_only_intended_to_be_added_is_in_no_commit(project):
    project.write({"docs/requirements/2.md": LOOSE})
    git(project.root, "add", "--intent-to-add", "docs/requirements/2.md")
    assert (said(project), look(project).staged) == ([], 0)


def test_a_linked_worktree_has_an_index_of_its_own(project, tmp_path):
    linked = add_worktree(project.root, tmp_path / "linked", "feature")
    other = Project(linked, is_new=False)
    stage(other, {"docs/requirements/2.md": LOOSE})
    assert said(other) == ["REQ-2 links to GONE, but there is no GONE."]
    assert said(project) == []
    other.close()


@pytest.mark.sliced(1)
@pytest.mark.parametrize("form", ["{}/.git/other-index", ".git/other-index"])
def test_the_index_that_git_names_to_its_hooks_is_read(project, form):
    named = form.format(project.root)
    env = git_env({"GIT_INDEX_FILE": named})
    project.write({"docs/requirements/2.md": LOOSE})
    git(project.root, "read-tree", "HEAD", env=env)
    git(project.root, "add", "docs/requirements/2.md", env=env)
    assert said(project) == []
    project.machine = Machine(project.machine.fs, project.machine.clock, env)
    assert said(project) == ["REQ-2 links to GONE, but there is no GONE."]


def test_the_index_of_another_repository_is_not_meant(project, tmp_path):
    other = make_repository(tmp_path / "other")
    commit_files(other, {"x": "x"})
    stage(project, {"docs/requirements/2.md": LOOSE})
    env = git_env({"GIT_INDEX_FILE": str(other / ".git/index")})
    project.machine = Machine(project.machine.fs, project.machine.clock, env)
    assert said(project) == ["REQ-2 links to GONE, but there is no GONE."]


def test_nothing_that_the_repository_configures_is_run(project):
    marker = set_trap(project.root)
    trap = project.root.parent / "repo-trap.sh"
    (project.root / ".gitattributes").write_text("*.md filter=trap diff=trap\n")
    for name in ("filter.trap.smudge", "filter.trap.clean", "diff.trap.textconv", "diff.external", "core.pager"):
        git(project.root, "config", name, str(trap))
    git(project.root, "update-index", "--add", "--cacheinfo", f"100644,{_blob(project, LOOSE)},docs/requirements/2.md")
    git(project.root, "update-index", "--add", "--cacheinfo", f"100644,{_blob(project, '')},docs/requirements/3.md")
    marker.unlink(missing_ok=True)
    assert len(said(project)) == 2
    assert not marker.exists()


def _blob(project: Project, text: str) -> str:
    path = project.root / ".git/blob"
    path.write_text(text)
    return git(project.root, "hash-object", "-w", "--no-filters", path)


def test_a_link_is_followed_within_the_commit(project):
    stage(project, {"elsewhere/2.md": LOOSE})
    (project.root / "folder").symlink_to("elsewhere")
    (project.root / "docs/requirements/2.md").symlink_to("../../folder/2.md")
    (project.root / "docs/requirements/3.md").symlink_to("../../../outside.md")
    git(project.root, "add", "--all")
    assert said(project) == [
        "REQ-2 links to GONE, but there is no GONE.",
        "It is a link that points to no file of the commit.",
    ]


def test_conflicts_have_to_be_resolved_first(project):
    git(project.root, "switch", "--quiet", "-c", "side")
    commit_files(project.root, {"docs/requirements/0.md": req("REQ-0", title="Theirs")})
    git(project.root, "switch", "--quiet", "main")
    commit_files(project.root, {"docs/requirements/0.md": req("REQ-0", title="Ours")})
    assert run_git(project.root, "merge", "side").returncode
    with pytest.raises(InvalidQuery, match=r"not resolved: docs/requirements/0\.md"):
        look(project)


def test_a_staged_symbol_without_a_requirement_is_named(project):
    stage(
        project,
        {
            MANIFEST: manifest(
                "id: SYM-1, title: login", "id: SYM-2, title: l, links: [{type: implements, target: REQ-1}]"
            )
        },
    )
    assert said(project) == ["SYM-1 implements no requirement."]
    assert violations(project)[0].source == MANIFEST


def test_a_staged_source_file_asks_for_the_requirements_of_its_symbols(project):
    symbols = manifest("id: SYM-1, title: login, file: src/login.py", "id: SYM-2, title: other, file: src/other.py")
    commit_files(project.root, {MANIFEST: symbols, "src/login.py": "a", "src/other.py": "a"})
    assert said(project) == []
    stage(project, {"src/login.py": "b"})
    assert said(project) == ["SYM-1 implements no requirement."]
    stage(project, {"src/login.py": "# kb: implements REQ-1\n"})
    assert said(project) == []
    git(project.root, "rm", "--quiet", "--cached", "src/login.py")
    assert said(project) == []


@pytest.mark.sliced(4)
@pytest.mark.parametrize(
    "comment",
    [
        "# kb: implements REQ-1",
        "// kb: implements REQ-0, REQ-1",
        "/* kb:implements REQ-1 */ int main;",
        "<!-- kb: implements REQ-1 -->",
        "-- kb: implements REQ-1 because it must.",
        "(* kb: implements REQ-1. *)",
        '"""Log in.\n\nkb: implements REQ-1\r\n"""',
        "# kb: implements (REQ-1)",
        "; kb: implements: [REQ-0, REQ-1]",
        "% kb: implements `REQ-1`, 'REQ-0'.",
        '{- kb: implements "REQ-1" -}',
        "/** KB: Implements <REQ-1>: the login. **/",
        "x = 1  # what it is for (kb: implements REQ-1)",
        "{{!-- kb: implements REQ-1 --}}",
    ],
)
def test_a_comment_names_a_requirement_in_any_language(project, comment):
    configure(project, "src/**")
    stage(project, {"src/a": f"first line\n{comment}\n"})
    assert said(project) == []


@pytest.mark.parametrize(
    ("comment", "id_"),
    [("# kb: implements", ""), ("# kb: implements ()", ""), ("# kb: implements the login", "the")],
)
def test_a_comment_that_names_nothing_is_reported_as_that(project, comment, id_):
    configure(project, "src/**")
    stage(project, {"src/a": comment})
    assert said(project) == [f"The comment names '{id_}', and there is no such requirement."]


def test_a_comment_that_names_a_former_id_counts_for_the_entity_that_has_another_now(project):
    configure(project, "src/**")
    stage(project, {"docs/requirements/1.md": req("REQ-9", former_ids="[REQ-1]"), "src/a": "# kb: implements REQ-1"})
    project.sync()
    assert said(project) == []
    assert [one.id for one in look(project).comments] == ["REQ-9"]


@pytest.mark.parametrize("text", ["# implements REQ-1", "# kb implements REQ-1", "# akb: implements REQ-1"])
def test_only_what_is_addressed_to_kb_counts(project, text):
    configure(project, "src/**")
    stage(project, {"src/a": text})
    assert said(project) == ["The file names no requirement."]


def test_a_comment_that_names_what_there_is_not_is_an_error_with_a_suggestion(project):
    configure(project, "src/**")
    stage(project, {"src/a.py": "x\n# kb: implements REQ-1, RQE-1\n", "src/b.py": "# kb: implements SCN-1\n"})
    stage(project, {"docs/scenarios/1.md": document("SCN-1", title="S", status="active", links="[REQ-1]")})
    found = {one.message: one.hint for one in violations(project)}
    assert found == {
        "The comment names 'RQE-1', and there is no such requirement.": "Did you mean 'REQ-1'?",
        "The comment names 'SCN-1', which is a scenario, not a req.": "Name a requirement.",
    }


def test_files_that_the_configuration_names_must_name_a_requirement(project):
    stage(project, {"src/a.py": "x", "src/a.txt": "x", "src/empty": "\0kb: implements REQ-1"})
    assert said(project) == []
    configure(project, "src/**/*.py", "src/empty")
    assert said(project) == ["The file names no requirement."] * 2
    assert {one.id for one in violations(project)} == {"src/a.py", "src/empty"}
    stage(project, {MANIFEST: manifest("id: SYM-1, title: a, file: src/a.py", "id: S-2, title: e, file: src/empty")})
    assert said(project) == ["S-2 implements no requirement.", "SYM-1 implements no requirement."]


def test_comments_that_were_counted_and_are_no_facts_are_reported_with_their_places(project):
    configure(project, "src/**")
    symbol = "id: SYM-1, title: a, file: src/a.py, implements: REQ-1"
    text = "x\n# kb: implements REQ-1, REQ-0\n# kb: implements GONE\n"
    stage(project, {MANIFEST: manifest(symbol), "src/a.py": text, "src/b.py": "# kb: implements REQ-1"})
    found = look(project)
    assert [(one.file, one.line, one.id) for one in found.comments] == [
        ("src/a.py", 2, "REQ-0"),
        ("src/b.py", 1, "REQ-1"),
    ]
    assert look(project, ["missing-file"]).comments == ()
    git(project.root, "commit", "--quiet", "-m", "all")
    assert look(project).comments == ()


@pytest.mark.sliced
def test_the_level_of_the_rule_is_set_like_any_other(project):
    stage(project, {MANIFEST: manifest("id: SYM-1, title: login")})
    for level, expected in (("warning", ["warning"]), ("off", [])):
        project.write({".kb/config.json": json.dumps({"rules": {"staged-symbol": level}})})
        assert [one.severity for one in violations(project, []) if one.rule == "staged-symbol"] == expected
    assert [one.rule for one in violations(project, ["staged-symbol"])] == ["staged-symbol"]
    with pytest.raises(NotFound):
        violations(project, ["staged-symbols"])


def test_a_staged_removal_of_a_file_that_a_symbol_names_is_reported(project):
    commit_files(project.root, {MANIFEST: manifest("id: SYM-1, title: login, file: src/login.py"), "src/login.py": "a"})
    git(project.root, "rm", "--quiet", "--cached", "src/login.py")
    assert [one.id for one in violations(project, ["missing-file"])] == ["SYM-1"]
    git(project.root, "reset", "--quiet")
    (project.root / "src/login.py").unlink()
    assert violations(project, ["missing-file"]) == []


def test_all_wrong_names_of_a_file_are_reported_by_their_lines_and_only_the_first_with_a_suggestion(project):
    configure(project, "src/**")
    stage(project, {"src/a.py": "".join(f"x = {n}\n# kb: implements RQE-1\n" for n in range(30))})
    found = violations(project, ["staged-symbol"])
    assert [(one.source, one.line) for one in found] == [("src/a.py", 2 * n + 2) for n in range(30)]
    guessed = [one.hint == "Did you mean 'REQ-1'?" for one in found]
    assert guessed == [True] * 20 + [False] * 10
    assert found[-1].hint == "Create the requirement first, or correct the comment."


def test_a_symbol_whose_file_names_the_wrong_thing_is_reported_once(project):
    stage(project, {MANIFEST: manifest("id: a.f, file: src/a.py"), "src/a.py": "# kb: implements REQ-11\n"})
    [found] = [one for one in violations(project) if one.rule == "staged-symbol"]
    assert found.message == "The comment names 'REQ-11', and there is no such requirement."


def test_the_rule_is_known_by_name_without_anything_staged(project):
    workspace = project.workspace()
    assert rule_named(workspace, "staged-symbol").example
    report = run_checks(workspace, project.view(), branch="main", only=["staged-symbol"])
    [run] = report.rules
    assert (run.status, run.reason) == (
        "not_applicable",
        "It judges what is staged, and nothing is looked at as staged here.",
    )
    assert "staged-symbol" not in [one.id for one in run_checks(workspace, project.view(), branch="main").rules]
