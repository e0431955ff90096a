"""The files that entities name are there: in the worktree, or in the last commit of another branch."""

from __future__ import annotations

import pytest

from kbcore.checks import run_checks
from tests.support.repository.project import Project, document, req
from tests.support.repository.repos import git
from tests.support.views.graph import graph_of, node
from tests.support.views.rules import report_of

RULE = "missing-file"
MANIFEST = "docs/symbols.yaml"


def symbols(*files):
    return "symbols:\n" + "".join(f"- {{id: S{at}, name: s{at}, file: {name!r}}}\n" for at, name in enumerate(files))


def named(key, text_ref):
    return document(key, title="T", status="open", text_ref=text_ref)


def missing(project, branch="main"):
    report = run_checks(project.workspace(), project.view(branch), branch=branch, only=[RULE])
    return {one.id for one in report.violations}, report.rules[0]


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "p")


def test_a_file_that_is_gone_is_reported_with_the_file_that_names_it(project):
    project.sync({MANIFEST: symbols("src/a.py", "src/b.py"), "src/a.py": "", "docs/requirements/a.md": req("A")})
    report = run_checks(project.workspace(), project.view(), branch="main", only=[RULE])
    [found] = report.violations
    assert (found.id, found.severity, found.source) == ("S1", "warning", MANIFEST)
    assert found.message == "S1 has src/b.py as its `file`, which is not in the repository."
    assert found.hint == "Correct `file` in the file that states it and run `kb sync`, or bring the file back."


def test_a_text_ref_counts_without_its_anchor_and_may_name_a_folder(project):
    project.write({"texts/long.md": "# Long\n"})
    project.sync(
        {
            "docs/requirements/a.md": named("A", "texts/long.md#part"),
            "docs/requirements/b.md": named("B", "texts"),
            "docs/requirements/c.md": named("C", "./texts/long.md"),
            "docs/requirements/d.md": named("D", "texts/gone.md#long"),
        }
    )
    assert missing(project)[0] == {"D"}


def test_the_remedy_for_a_client_is_a_changeset(project):
    project.apply(entities=[{"id": "A", "type": "req", "title": "T", "status": "x", "text_ref": "gone.md"}])
    [found] = run_checks(project.workspace(), project.view(), branch="main", only=[RULE]).violations
    assert found.hint.startswith("Write `text_ref` of A again with `kb apply`")


def test_nothing_outside_of_the_repository_is_looked_at(project, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/secret.py").write_text("")
    (project.root / "in").mkdir()
    (project.root / "in/real.py").write_text("")
    for name, target in (
        ("link", "../out"),
        ("file.py", "../out/secret.py"),
        ("fine", "in"),
        ("fine.py", "in/real.py"),
    ):
        (project.root / name).symlink_to(target)
    (project.root / "dangling.py").symlink_to("nowhere")
    names = ["link/secret.py", "file.py", "../out/secret.py", "/etc/passwd", "in/../../out/secret.py", "dangling.py"]
    project.apply(
        entities=[
            {"id": f"S{at}", "type": "symbol", "title": "t", "status": "x", "attributes": {"file": name}}
            for at, name in enumerate([*names, "fine/real.py", "fine.py"])
        ]
    )
    assert missing(project)[0] == {f"S{at}" for at in range(6)}


def test_another_branch_is_judged_by_its_last_commit(project):
    git(project.root, "commit", "--quiet", "--allow-empty", "-m", "none")
    project.switch("other", create=True)
    (project.root / "link").symlink_to("src")
    project.sync({MANIFEST: symbols("src/ä b.py", "src/gone.py", "src", "link/x.py", "link/ä b.py"), "src/ä b.py": ""})
    git(project.root, "add", "docs", "src", "link")
    git(project.root, "commit", "--quiet", "-m", "all")
    project.switch("main")
    assert not (project.root / "src").exists()
    assert missing(project, "other")[0] == {"S1", "S3"}


def test_another_branch_is_judged_as_it_was_when_it_was_checked_out(project, tmp_path):
    (tmp_path / "out").mkdir()
    git(project.root, "commit", "--quiet", "--allow-empty", "-m", "none")
    project.switch("other", create=True)
    (project.root / "outside").symlink_to("../out")
    (project.root / "dangling").symlink_to("nowhere")
    names = ["./docs/requirements/b.md", "docs//requirements/b.md", "outside", "outside/x", "dangling"]
    documents = {f"docs/requirements/{at}.md": named(f"N{at}", name) for at, name in enumerate(names)}
    project.sync({**documents, "docs/requirements/b.md": req("B")})
    git(project.root, "add", "outside", "dangling")
    git(project.root, "commit", "--quiet", "-m", "links")
    expected = {"N2", "N3", "N4"}
    assert missing(project, "other")[0] == expected
    project.switch("main")
    assert missing(project, "other")[0] == expected


def test_a_branch_without_files_is_not_judged_and_fails_nothing(project):
    project.sync({MANIFEST: symbols("src/gone.py")})
    git(project.root, "add", "docs")
    git(project.root, "commit", "--quiet", "-m", "all")
    project.switch("other", create=True)
    project.sync()
    project.switch("main")
    git(project.root, "branch", "--quiet", "-D", "other")
    found, run = missing(project, "other")
    assert (found, run.status) == (set(), "not_applicable")
    assert run.reason == "other is not checked out here and is no branch of git: it has no files."
    report = run_checks(project.workspace(), project.view("other"), branch="other", only=[RULE])
    assert report.ok
    assert report.passes("warning")


def test_a_graph_without_files_is_not_judged():
    [run] = report_of(graph_of([node("S", "symbol", attributes__file="a.py")]), RULE).rules
    assert run.status == "not_applicable"


def test_a_file_that_was_read_is_known_to_be_there(project):
    project.sync({"docs/requirements/a.md": req("A")})
    project.write({"docs/requirements/a.md": None})
    assert missing(project)[0] == set()
