"""Whatever is edited, a symbol stays the one that it was, and only what changed in it counts."""

from __future__ import annotations

import hashlib
import random
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore.checks import run_checks
from kbcore.extract.code.extractor import EXTRACTOR
from kbcore.extract.facts import SourceFile
from kbcore.model.content import CODE
from kbcore.model.graph import Node, former_ids
from kbcore.sync.id_ownership import FileReading
from kbcore.sync.moved_symbols import moved_symbols
from tests.support.effort.scale import IS_SLICED, tries, turn
from tests.support.generators.edited_code import EDITS, Modules, edit
from tests.support.repository.project import Project

SETTINGS = {"paths": ["src/*", "kbcore/**/*.py"]}
CONFIG = '{"extractors": {"code": {"paths": ["src/*", "kbcore/**/*.py"]}}}'


def readings(texts: dict[str, str]) -> list[FileReading]:
    return [
        FileReading(path, hashlib.sha256(text.encode()).hexdigest(), "code/1", facts_of(path, text))
        for path, text in sorted(texts.items())
    ]


def facts_of(path: str, text: str):
    facts = EXTRACTOR.extract(SourceFile(path, text.encode()), SETTINGS)
    assert facts.is_complete, facts.problems
    return facts


def node(path: str, entity) -> Node:
    fields = {"type": entity.type, **entity.fields}
    return Node(entity.id, fields, dict.fromkeys(fields, path), "", "", "", 1, 1)


@settings(max_examples=tries(60, 400))
@given(st.sampled_from(["py", "go"]), st.lists(st.sampled_from(EDITS), min_size=4, max_size=14), st.integers(0, 2**32))
def test_each_edit_is_taken_for_what_it_is(language, kinds, seed):
    dice, modules = random.Random(seed), Modules(language)
    for kind in ("insert", "insert", "insert_class"):
        edit(modules, dice, kind)
    known = {one.id: node(each.path, one) for each in readings(modules.texts()) for one in each.facts.entities}
    for kind in kinds:
        was, versions = modules.ids(), modules.versions()
        edit(modules, dice, kind)
        now = modules.ids()
        read = readings(modules.texts())
        nodes = {one.id: node(each.path, one) for each in read for one in each.facts.entities}
        assert set(nodes) == set(now.values())
        renames = {one.old: one.new for one in moved_symbols(read, (), [*known.values()], known.keys() & nodes.keys())}
        assert renames == {was[uid]: key for uid, key in now.items() if was.get(uid, key) != key}, kind
        changed = {
            uid
            for uid, key in now.items()
            if uid in was and any(nodes[key].fields[name] != known[was[uid]].fields[name] for name in CODE)
        }
        assert changed == {uid for uid in now if uid in versions and modules.versions()[uid] != versions[uid]}, kind
        known = nodes


@pytest.mark.sliced(2)
@pytest.mark.parametrize("seed", range(8))
def test_edges_follow_their_symbols_and_are_suspect_when_these_change(tmp_path, seed):
    dice, modules = random.Random(seed), Modules("go" if seed % 2 else "py")
    project = Project(tmp_path)
    project.apply(entities=[{"id": "R", "type": "req", "title": "All", "status": "open"}])
    for kind in ("insert", "insert", "insert_class"):
        edit(modules, dice, kind)
    project.sync({".kb/config.json": CONFIG, **modules.texts()})
    first, versions = modules.ids(), modules.versions()
    project.apply(edges=[{"type": "implements", "from": key, "to": "R"} for key in first.values()])
    for _ in range(8):
        edit(modules, dice, dice.choice(EDITS))
        project.sync(modules.texts())
        now = modules.ids()
        edges = {one for one, edge, _, is_resolved in project.edges("R") if is_resolved}
        assert edges == {key for uid, key in now.items() if uid in first}
        found = run_checks(project.workspace(), project.view(), branch="main", only=["suspect-edge"]).violations
        changed = {key for uid, key in now.items() if uid in first and modules.versions()[uid] != versions[uid]}
        assert {one.id for one in found} == changed


ROOT = Path(__file__).parents[3]


def _git(*args: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *args], capture_output=True, text=True, check=True).stdout


def _place() -> str:
    """Return the folder that is replayed: all of the code on a merge, in a slice one room, another one each day."""
    rooms = sorted(path.parent.name for path in (ROOT / "kbcore").glob("*/__init__.py"))
    return f"kbcore/{rooms[turn('replay', len(rooms))]}" if IS_SLICED else "kbcore"


def _commits(number: int, place: str) -> list[str]:
    listed = _git("rev-list", "--first-parent", "--reverse", "HEAD", "--", place).split()
    return listed[-number - 1 :]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the history of KB is in its git repository")
def test_a_replay_of_commits_of_kb_keeps_the_symbols_of_each(tmp_path):
    place = _place()
    commits = _commits(tries(4, 200), place)
    if len(commits) < 2:
        pytest.skip(f"the clone has no history of {place}")
    project = Project(tmp_path)
    listed = _git("ls-tree", "-r", "--name-only", commits[0], "--", place).split("\n")
    present: dict[str, set[str]] = {}

    def bring(commit: str, paths: list[str], removed: list[str]) -> dict[str, str | None]:
        texts = {path: _git("show", f"{commit}:{path}") for path in paths if path.endswith(".py")}
        for path, text in texts.items():
            facts = EXTRACTOR.extract(SourceFile(path, text.encode()), SETTINGS)
            present[path] = {one.id for one in facts.entities}
        for path in removed:
            present.pop(path, None)
        return {**texts, **{path: None for path in removed if path.endswith(".py")}}

    project.sync({".kb/config.json": CONFIG, **bring(commits[0], listed, [])})
    for before, commit in pairwise(commits):
        changes = [
            line.split("\t")
            for line in _git("diff", "--no-renames", "--name-status", before, commit, "--", place).splitlines()
        ]
        removed = [path for status, path in changes if status == "D"]
        answer = project.sync(bring(commit, [path for status, path in changes if status != "D"], removed))
        assert [one for _, one in answer.problems if one.severity == "error"] == []
        view = project.view()
        nodes = view.nodes([key for (key,) in view.rows("select id from node where type = 'symbol'")])
        assert {one.id for one in nodes} == set().union(*present.values())
        former = [key for one in nodes for key in former_ids(one)]
        assert len(former) == len({*former}), "a former id is that of one symbol"
        assert {*former}.isdisjoint(one.id for one in nodes)
