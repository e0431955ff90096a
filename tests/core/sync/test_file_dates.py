"""The dates of documents as git knows them."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore import limits
from kbcore.git.file_dates import DateChanges, FileDates, read_date_changes
from kbcore.git.repository import find_repository
from kbcore.maintenance.doctor import diagnose
from kbcore.store.pool import Machine
from kbcore.sync import file_dates
from kbcore.sync.file_dates import DateLines, lines_of
from tests.support.effort.scale import tries
from tests.support.repository.project import Project, req
from tests.support.repository.repos import git, git_env

PATH = "docs/requirements/1.md"


def commit(project: Project, day: int, author: str = "Ann") -> None:
    git(project.root, "add", "--all")
    moment = f"2020-01-{day:02}T12:00:00Z"
    git(
        project.root,
        "commit",
        "--quiet",
        "--allow-empty",
        "-m",
        "x",
        "--author",
        f"{author} <a@x.org>",
        "--date",
        moment,
    )


def dates(project: Project, key: str = "REQ-1") -> tuple[str, str, object]:
    node = project.node(key)
    assert node
    return node.created_at[:10], node.updated_at[:10], node.fields.get("metadata.committed_by")


def test_a_new_entity_has_the_dates_and_the_author_of_the_commits_of_its_document(project: Project) -> None:
    project.write({PATH: req("REQ-1")})
    commit(project, 3)
    project.write({PATH: req("REQ-1", owner="ann")})
    commit(project, 5, "Bob")
    project.sync()
    assert dates(project) == ("2020-01-03", "2020-01-05", "Ann")
    assert not project.sync(rebuild=True).outcome.applied


def test_a_document_that_changes_later_keeps_its_first_date_and_its_author(project: Project) -> None:
    project.write({PATH: req("REQ-1")})
    commit(project, 3)
    project.sync()
    project.sync({PATH: req("REQ-1", owner="ann")})
    created, updated, author = dates(project)
    assert (created, author) == ("2020-01-03", "Ann")
    assert updated > "2026"


def test_a_document_without_a_commit_has_the_time_of_the_sync_and_no_author(project: Project) -> None:
    project.sync({PATH: req("REQ-1")})
    created, updated, author = dates(project)
    assert created == updated > "2026"
    assert author is None


def test_a_date_that_a_document_states_goes_first(project: Project) -> None:
    project.write({PATH: req("REQ-1", created_at="2001-02-03")})
    commit(project, 3)
    project.sync()
    assert dates(project) == ("2001-02-03", "2020-01-03", "Ann")


def test_an_id_that_another_document_takes_over_has_its_dates_and_its_author(project: Project) -> None:
    original, copy = "docs/requirements/z.md", "docs/requirements/m.md"
    project.write({original: req("REQ-1")})
    commit(project, 3)
    project.sync()
    project.write({copy: req("REQ-1", title="Other")})
    commit(project, 4, "Bob")
    project.sync()
    assert dates(project) == ("2020-01-04", "2020-01-04", "Bob")

    project.sync({copy: req("REQ-2", title="Other")})
    assert dates(project) == ("2020-01-03", "2020-01-03", "Ann")
    assert dates(project, "REQ-2")[2] == "Bob"


def test_a_document_that_is_moved_keeps_its_first_date_and_its_author(project: Project) -> None:
    project.write({PATH: req("REQ-1")})
    commit(project, 3)
    project.sync()
    (project.root / PATH).rename(project.root / "docs/requirements/2.md")
    commit(project, 4, "Bob")
    project.sync()
    created, _, author = dates(project)
    assert (created, author) == ("2020-01-03", "Ann")


def test_what_came_since_the_last_pass_is_added_to_it(project: Project) -> None:
    project.write({PATH: req("REQ-1")})
    commit(project, 3)
    project.sync()
    project.write({"docs/requirements/2.md": req("REQ-2")})
    commit(project, 4, "Bob")
    project.sync()
    assert dates(project, "REQ-2") == ("2020-01-04", "2020-01-04", "Bob")


def test_a_shallow_clone_knows_no_dates(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    project.write({PATH: req("REQ-1"), ".kb/config.json": "{}"})
    commit(project, 3)
    project.write({PATH: req("REQ-1", owner="ann")})
    commit(project, 5)
    there = tmp_path_factory.mktemp("shallow") / "clone"
    git(project.root, "clone", "--quiet", "--depth", "1", f"file://{project.root}", str(there))
    clone = Project(there, is_new=False)
    clone.sync()
    assert dates(clone)[2] is None
    clone.close()


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5) | st.sampled_from(
    ["a", "a,", 'a"', "ab"]
)
DATES = st.builds(FileDates, st.integers(0, 9), st.integers(0, 9), st.text(max_size=3).filter(str.isprintable))


@given(st.dictionaries(NAMES, DATES, max_size=20), NAMES)
def test_dates_are_found_by_the_name_of_the_file_alone(known: dict[str, FileDates], other: str) -> None:
    lines = DateLines(lines_of("c", ["d"], known))
    assert lines.all() == known
    assert {name: lines.of(name) for name in known} == known
    assert lines.of(other) == known.get(other)


def cached(project: Project) -> dict[str, bytes]:
    folder = project.workspace().folders.cache_dir
    return {path.name: path.read_bytes() for path in folder.glob("file-dates*")}


def test_one_new_document_writes_what_came_and_not_all_dates_again(project: Project) -> None:
    project.write({f"docs/requirements/{n}.md": req(f"REQ-{n}") for n in range(1, 5)})
    commit(project, 3)
    project.sync()
    before = cached(project)
    project.write({"docs/requirements/9.md": req("REQ-9")})
    commit(project, 4, "Bob")
    (project.root / "docs/requirements/1.md").rename(project.root / "docs/requirements/8.md")
    commit(project, 5, "Cy")
    project.sync()
    assert dates(project, "REQ-9") == ("2020-01-04", "2020-01-04", "Bob")
    after = cached(project)
    assert after["file-dates.jsonl"] == before["file-dates.jsonl"]
    assert b"9.md" in after["file-dates-later.json"]


def test_dates_are_written_together_where_much_came(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_dates, "_MOST_LATER", 2)
    project.write({PATH: req("REQ-1")})
    commit(project, 3)
    project.sync()
    for day, number in enumerate((2, 3, 4), 4):
        project.write({f"docs/requirements/{number}.md": req(f"REQ-{number}")})
        commit(project, day)
        project.sync()
    assert b"3.md" in cached(project)["file-dates.jsonl"]
    assert [dates(project, f"REQ-{number}")[0] for number in (1, 2, 3, 4)] == [
        f"2020-01-{day:02}" for day in (3, 4, 5, 6)
    ]


@pytest.mark.parametrize("name", ["file-dates.jsonl", "file-dates-later.json"])
@pytest.mark.parametrize("data", [b"", b"x", b"{}\n", b'{"format":2}', b"\xff\n[", b'["a"'])
def test_a_damaged_cache_of_dates_costs_another_pass(project: Project, name: str, data: bytes) -> None:
    project.write({PATH: req("REQ-1")})
    commit(project, 3)
    project.sync()
    project.write({"docs/requirements/2.md": req("REQ-2")})
    commit(project, 4)
    project.sync()
    (project.workspace().folders.cache_dir / name).write_bytes(data)
    project.write({"docs/requirements/3.md": req("REQ-3")})
    commit(project, 5, "Bob")
    project.sync()
    assert dates(project, "REQ-3") == ("2020-01-05", "2020-01-05", "Bob")


SLOW_GIT = """#!/bin/sh
for word; do
  if [ "$word" = log ]; then echo asked >> {asked}; exec sleep 60; fi
done
exec {git} "$@"
"""


def test_a_history_that_git_cannot_read_in_time_is_asked_for_once_a_day_and_reported(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "GIT_DATES_S", 0.2)
    asked, program = tmp_path / "asked", tmp_path / "slow" / "git"
    program.parent.mkdir()
    program.write_text(SLOW_GIT.format(asked=asked, git=shutil.which("git")))
    program.chmod(0o755)
    project.write({PATH: req("REQ-1"), "docs/requirements/2.md": req("REQ-2")})
    commit(project, 3)
    quick = project.machine
    env = {**quick.env, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    project.machine = Machine(quick.fs, quick.clock, env)
    project.sync()
    project.sync({"docs/requirements/3.md": req("REQ-3")})
    assert asked.read_text() == "asked\n"
    workspace = project.workspace()
    slow = file_dates.slow_history(workspace)
    assert slow is not None
    [found] = [one for one in diagnose(workspace).findings if one.code == "slow_history"]
    assert (found.check, found.severity) == ("git", "warning")
    assert all(found.message.count(word) == 1 for word in ("0.2 s", "dates of their sync"))
    project.machine = quick
    note = workspace.folders.cache_dir / "file-dates-slow.json"
    note.write_bytes(msgspec.json.encode(msgspec.structs.replace(slow, at_s=slow.at_s - 86_401)))
    project.write({"docs/requirements/4.md": req("REQ-4")})
    commit(project, 4)
    project.sync()
    assert dates(project, "REQ-4") == ("2020-01-04", "2020-01-04", "Ann")
    assert file_dates.slow_history(project.workspace()) is None


@pytest.mark.parametrize("time_s", [253_402_300_800, 99_999_999_999_999, 0])
def test_a_commit_at_a_time_that_cannot_be_one_says_nothing_of_dates(project: Project, time_s: int) -> None:
    project.write({PATH: req("REQ-1")})
    commit(project, 3)
    tree = git(project.root, "write-tree").strip()
    text = f"tree {tree}\nauthor Ann <a@b> {time_s} +0000\ncommitter Ann <a@b> 1577836800 +0000\n\nx\n"
    bad = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--literally", "--stdin"],
        cwd=project.root, input=text, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    git(project.root, "update-ref", "HEAD", bad)
    project.sync()
    created, updated, author = dates(project)
    assert created == updated > "2026"
    assert author is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.showRoot", "false"),
        ("log.follow", "true"),
        ("log.showSignature", "true"),
        ("diff.orderFile", "not-there"),
        ("i18n.logOutputEncoding", "ISO-8859-1"),
        ("i18n.logOutputEncoding", "UTF-16"),
    ],
)
def test_no_setting_of_git_changes_dates_and_authors(project: Project, name: str, value: str) -> None:
    project.write({PATH: req("REQ-1")})
    commit(project, 3, "Jürgen")
    project.write({PATH: req("REQ-1", owner="ann")})
    commit(project, 5)
    git(project.root, "config", name, value)
    project.sync()
    assert dates(project) == ("2020-01-03", "2020-01-05", "Jürgen")


EDITS = st.lists(
    st.tuples(st.sampled_from(["write", "delete", "rename"]), st.integers(0, 2), st.integers(0, 2)),
    min_size=1,
    max_size=8,
)


@settings(max_examples=tries(8, 25))
@given(EDITS, st.integers(0, 7))
def test_dates_are_those_of_a_walk_through_the_history(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, int, int]], cut: int
) -> None:
    project = Project(tmp_path_factory.mktemp("dates"))
    model: dict[str, FileDates] = {}
    texts = itertools.count()
    halfway: tuple[str, DateChanges] = ("", DateChanges())
    repo = find_repository(project.root)

    def changes(commits: str) -> DateChanges:
        return read_date_changes(repo, git_env(), commits, ["d"], timeout_s=30)

    for day, (kind, one, other) in enumerate(edits, 1):
        at, author = 1_577_880_000 + 86_400 * (day - 1), f"A{day}"
        path, target = f"d/{one}.md", f"d/{other}.md"
        if kind == "write":
            text = f"{next(texts)} {path} " * 40
            project.write({path: text})
            before = model.get(path)
            model[path] = FileDates(before.created_s if before else at, at, before.author if before else author)
        elif kind == "delete" and path in model:
            project.write({path: None})
            del model[path]
        elif kind == "rename" and path in model and target not in model:
            (project.root / path).rename(project.root / target)
            before = model.pop(path)
            model[target] = FileDates(before.created_s, at, before.author)
        commit(project, day, author)
        if day == cut:
            head = git(project.root, "rev-parse", "HEAD").strip()
            halfway = (head, changes(head))
    whole = changes("HEAD")
    assert whole.found == model
    if halfway[0]:
        later = changes(f"{halfway[0]}..HEAD")
        before = halfway[1].found
        assert later.of_all(before) == model
        assert halfway[1].then(later).found == model
        names = [f"d/{number}.md" for number in range(3)]
        dates = later.lookup(before.get)
        assert {name: dates(name) for name in names} == {name: model.get(name) for name in names}
    project.close()
