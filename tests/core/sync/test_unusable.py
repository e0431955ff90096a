"""An extractor that cannot be used stops its own files only: what is known of them is kept, the rest is taken in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kbcore.checks import run_checks
from kbcore.errors import InvalidConfig
from kbcore.sync.faults import faults
from tests.support.repository.project import Project, req
from tests.support.repository.repos import git

CODE = """
from kbcore.extract.facts import Facts, PathRule, StatedEntity

class Todos:
    name, version = "todos", 1
    def path_rules(self, settings):
        return [PathRule("TODO*")]
    def extract(self, source, settings):
        return Facts(tuple(StatedEntity(line, "req", {"title": line}, 1) for line in source.data.decode().split()))

EXTRACTOR = Todos()
"""
DOCUMENT = "docs/requirements/1.md"
FEATURE = "Feature: F\n\n  @id:S-1\n  Scenario: one\n\n  @id:S-2\n  Scenario: two\n"
GHERKIN = '{"extractors": {"gherkin": {"paths": ["*.feature"]}}}'


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return what puts packages with the extractor ``todos`` on the path, and takes those of before from there."""
    known, before = set(sys.modules), list(sys.path)
    folders = iter(f"packages {number}" for number in range(9))

    def install(*codes: str) -> None:
        for name in set(sys.modules) - known:
            if name.startswith("kb_sync_todos"):
                del sys.modules[name]
        folder = tmp_path / next(folders)
        for number, code in enumerate(codes):
            name = f"kb_sync_todos_{number}"
            info = folder / f"{name}-1.0.dist-info"
            info.mkdir(parents=True)
            (folder / f"{name}.py").write_text(code)
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            (info / "entry_points.txt").write_text(f"[kb.extractors]\ntodos = {name}:EXTRACTOR\n")
        monkeypatch.setattr(sys, "path", [str(folder), *before])

    yield install
    install()


def codes(project: Project, files: dict[str, str | bytes | None], **options: bool) -> list[str]:
    return sorted(one.code for _, one in project.sync(files, **options).problems if one.severity != "note")


FAULTS: dict[str, tuple[str, ...]] = {
    "uninstalled": (),
    "broken": ("1 / 0",),
    "lost": (CODE.replace('[PathRule("TODO*")]', "1 / 0"),),
    "twice": (CODE, CODE),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_files_of_an_extractor_that_cannot_be_used_are_kept(
    project: Project, packages: Callable[..., None], fault: str
) -> None:
    packages(CODE)
    project.sync({"TODO": "A B", "TODO2": "C", "TODO3": "D", DOCUMENT: req("REQ-1")})
    packages(*FAULTS[fault])
    code = "missing_package" if fault == "uninstalled" else "broken_extractor"
    found = codes(project, {"TODO": "A", "TODO3": None, DOCUMENT: req("REQ-1", title="Another")})
    assert set(found) == {code}
    assert project.node("REQ-1").fields["title"] == "Another"
    assert [bool(project.node(key)) for key in "ABCD"] == [True, True, True, False]
    assert {one.path for one in project.view().sources(["TODO", "TODO2"]) if not one.is_ok} == {"TODO"}
    [said] = run_checks(project.workspace(), project.view(), branch="main", only=["unreadable-source"]).violations
    if fault == "uninstalled":
        assert (said.id, said.severity, said.code, said.values) == ("TODO", "warning", code, ("todos",))
        assert "Install the package that brings it" in said.hint
    else:
        ways = "Run `kb sync` to see whether the extractor 'todos' can be used here"
        assert (said.id, said.severity, said.hint.partition(".")[0]) == ("TODO", "error", ways)
    reported = faults(project.sync(), {}, None).lines
    assert any("extractor 'todos'" in one.text for one in reported)
    answer = project.sync()
    assert (answer.outcome.applied, answer.changed, {one.code for _, one in answer.problems}) == (False, 0, {code})
    assert not project.sync(rebuild=True).outcome.applied

    packages(CODE)
    assert codes(project, {}) == []
    assert [bool(project.node(key)) for key in "ABCD"] == [True, False, True, False]


def test_the_files_of_an_extractor_that_is_switched_off_go(project: Project, packages: Callable[..., None]) -> None:
    packages(CODE)
    project.sync({"TODO": "A", DOCUMENT: req("REQ-1")})
    packages()
    assert codes(project, {".kb/config.json": '{"extractors": {"todos": false}}'}) == []
    assert project.node("A") is None


def test_settings_for_an_extractor_that_is_not_installed_stop_nothing(project: Project) -> None:
    files = {".kb/config.json": '{"extractors": {"todos": {"x": 1}}}', DOCUMENT: req("REQ-1")}
    assert codes(project, files) == ["missing_package"]
    assert project.node("REQ-1")


def test_settings_for_a_name_that_is_nearly_one_of_an_extractor_are_refused(project: Project) -> None:
    with pytest.raises(InvalidConfig):
        project.sync({".kb/config.json": '{"extractors": {"markdwon": {}}}', DOCUMENT: req("REQ-1")})


def test_feature_files_are_kept_while_their_package_is_missing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.sync({".kb/config.json": GHERKIN, "a.feature": FEATURE, DOCUMENT: req("REQ-1")})
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "gherkin", None)
        changed = {"a.feature": FEATURE[:40], "b.feature": FEATURE.replace("S-", "T-"), DOCUMENT: None}
        answer = project.sync(changed)
        [(_, first)] = answer.problems
        assert (first.code, first.severity) == ("missing_package", "warning")
        assert first.message.endswith("Not read: a.feature, b.feature."), first
        [(_, again)] = project.sync().problems
        assert "Not read" not in again.message
        found = run_checks(project.workspace(), project.view(), branch="main", only=["unreadable-source"]).violations
        assert {(one.severity, one.code, one.hint.partition(",")[0]) for one in found} == {
            ("warning", "missing_package", 'Install it with `pip install "kb-memory[gherkin]"`')
        }
        assert [bool(project.node(key)) for key in ("S-1", "S-2", "T-1", "REQ-1")] == [True, True, False, False]
    project.sync()
    assert [bool(project.node(key)) for key in ("S-1", "S-2", "T-1")] == [True, False, True]


def test_a_document_that_another_extractor_would_read_is_left_to_its_own(
    project: Project, packages: Callable[..., None]
) -> None:
    path = "docs/adr/TODO.md"
    packages(CODE.replace('"TODO*"', '"docs/adr/TODO.md"').replace('"todos", 1', '"todos", 2'))
    project.sync({path: "A", ".kb/config.json": '{"extractors": {"markdown": {"paths": {"adr": "nowhere/*.md"}}}}'})
    assert project.node("A")
    packages()
    assert codes(project, {".kb/config.json": "{}"}) == ["missing_package"]
    assert project.node("A")


def test_documents_of_a_commit_are_kept_as_well(project: Project, packages: Callable[..., None]) -> None:
    from kbcore.git import blobs
    from kbcore.sync.documents import RepositoryDocuments

    packages(CODE)
    project.sync({"TODO": "A B", DOCUMENT: req("REQ-1")})
    project.write({"TODO": "A"})
    git(project.root, "add", "-A")
    git(project.root, "commit", "-q", "-m", "x")
    packages()
    workspace = project.workspace()
    tree = blobs.tree_of(workspace.repo, workspace.machine.env, "HEAD")
    found = RepositoryDocuments(workspace, workspace.store("main").claims).differing(project.view(), tree)
    assert [one.path for one in found.read] == ["TODO"]
    assert not found.read[0].facts.is_complete
    assert found.gone == []


def test_the_same_unknown_type_in_several_files_is_one_entry(project: Project) -> None:
    from kbcore.checks.grouping import grouped

    files = {f"docs/requirements/{n}.md": req(f"REQ-{n}", type="nonsense") for n in range(1, 8)}
    files |= {f"docs/requirements/x{n}.md": req(f"X-{n}", type="rubbish") for n in range(1, 4)}
    project.sync(files)
    found = run_checks(project.workspace(), project.view(), branch="main", only=["unreadable-source"]).violations
    assert {one.values for one in found if one.code == "unknown_type"} == {("nonsense",), ("rubbish",)}
    [group] = grouped(found)
    assert [1 + len(one.others) for one in group.shown] == [7, 3]
