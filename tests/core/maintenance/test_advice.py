"""The advice to restore a backup names the branch that it is about: without that, every branch is put back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kbcore.errors import KBError, StoreWentBack
from kbcore.errors.remedies import for_shell
from kbcore.maintenance import epochs
from kbcore.maintenance.caches import views_set_aside
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.salvage import salvage
from kbcore.store.branches import lost
from tests.core.store.branches.losing import accepted, copied, fresh, put, put_back, store_of
from tests.support.processes.advice import spelled_out
from tests.support.processes.cli import run_kb
from tests.support.repository.project import AUTHOR, Project

BRANCH = "feature/x"
COMMAND = "restore FILE --only feature/x --replace"


def hint_of(act: Callable[[], object]) -> str:
    with pytest.raises(KBError) as caught:
        act()
    return caught.value.hint


def commands(*texts: str) -> list[str]:
    return [command for text in texts for command in re.findall(r"`kb (restore [^`]*)`", text)]


@pytest.fixture
def feature(project: Project) -> Iterator[Project]:
    """A project whose branch has a sealed journal file, and records after it."""
    project.switch(BRANCH, create=True)
    put(project, "A", "B")
    compact(project.workspace(), BRANCH)
    put(project, "C")
    project.close()
    yield project
    project.close()


def segments(project: Project) -> list[Path]:
    return sorted(store_of(project, BRANCH).glob("journal-*.jsonl"))


def changed(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


DAMAGE: dict[str, Callable[[Project], object]] = {
    "a changed byte": lambda project: changed(segments(project)[-1], lambda data: data.replace(b'"C"', b'"X"')),
    "a shorter file": lambda project: changed(segments(project)[-1], lambda data: data[:-1]),
    "a longer sealed file": lambda project: changed(segments(project)[0], lambda data: data + b"x"),
    "a missing file": lambda project: segments(project)[-1].unlink(),
    "an emptied folder": lambda project: [one.unlink() for one in store_of(project, BRANCH).iterdir()],
}


@pytest.mark.sliced(2)
@pytest.mark.parametrize("damage", [*DAMAGE])
def test_the_advice_about_a_damaged_store_restores_only_that_branch(feature: Project, damage: str) -> None:
    DAMAGE[damage](feature)
    hint = hint_of(lambda: compact(fresh(feature).workspace(), BRANCH))
    assert commands(hint) == [COMMAND]


@pytest.mark.parametrize("left", ["nothing", "later records"])
def test_the_advice_where_no_head_can_be_made_restores_only_that_branch(feature: Project, left: str) -> None:
    (store_of(feature, BRANCH) / "head.json").unlink()
    for one in segments(feature)[: 1 if left == "later records" else None]:
        one.write_bytes(b"")
    hint = hint_of(lambda: salvage(feature.workspace(), BRANCH, AUTHOR))
    assert commands(hint) == [COMMAND]


def test_the_advice_about_lost_records_restores_only_that_branch(feature: Project) -> None:
    copy = copied(feature, BRANCH)
    put(feature, "D")
    put_back(feature, copy, BRANCH)
    [loss] = lost.losses(feature.workspace())
    assert commands(loss.remedy()) == [COMMAND]
    changed(segments(feature)[-1], lambda data: data.replace(b'"C"', b'"X"'))
    assert commands(hint_of(lambda: salvage(feature.workspace(), BRANCH, AUTHOR))) == [COMMAND]


def test_the_advice_about_a_view_of_lost_records_restores_only_that_branch(project: Project) -> None:
    project.switch(BRANCH, create=True)
    put(project, "A")
    copy = copied(project, BRANCH)
    put(project, *"BCD")
    fresh(project).node("A")
    put_back(project, copy, BRANCH)
    fresh(project).node("A")
    accepted(project, BRANCH)
    fresh(project).node("A")
    [kept] = views_set_aside(project.workspace(), BRANCH)
    assert commands(kept.remedy) == [COMMAND]


def test_the_advice_where_the_branch_is_not_known_has_a_place_for_its_name() -> None:
    assert commands(for_shell(StoreWentBack.default_hint)) == ["restore FILE --only BRANCH --replace"]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("begins", ["the warning", "a new epoch"])
def test_the_advice_about_a_damaged_store_that_lacks_records_works_word_by_word(feature: Project, begins: str) -> None:
    copy = copied(feature, BRANCH)
    put(feature, "D")
    put_back(feature, copy, BRANCH)
    changed(segments(feature)[-1], lambda data: data.replace(b'"C"', b'"X"'))
    [loss] = lost.losses(feature.workspace())
    hint = loss.warning()
    if begins == "a new epoch":
        hint = hint_of(lambda: epochs.accept(feature.workspace(), BRANCH, AUTHOR))
    *_, command = re.findall(r"`(kb doctor --salvage [^`]*)`", spelled_out(hint))
    done = run_kb(feature.root, *command.split()[1:], "--yes")
    assert done.status == 0, done.err
    assert not lost.losses(fresh(feature).workspace())
    assert fresh(feature).node("A")
