"""Clones of one small repository, which the tests of sharing begin with."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path

import pytest

from kbcore.store.pool import Machine
from tests.support.repository.clones import Clone, clone_of, upstream
from tests.support.repository.project import req

FILES = {
    "docs/requirements/REQ-1.md": req("REQ-1"),
    "docs/requirements/REQ-2.md": req("REQ-2"),
    ".kb/config.json": "{}\n",
}


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """The clone of ann beside its bare repository, both to be copied: an entity, an edge, a note on a document."""
    made = clone_of(upstream(tmp_path_factory.mktemp("shared"), FILES), "ann")
    made.fact("FACT-1", tags=["base"], attributes={"k": 0})
    made.link("FACT-1", "REQ-1")
    made.add("REQ-1", attributes={"note": "as agreed"})
    made.commit("the first changes")
    made.push()
    made.close()
    return made


@pytest.fixture
def up(tmp_path: Path, shared: Clone) -> Path:
    """A bare repository with two documents, and what ann has shared, on main."""
    return shutil.copytree(shared.root.with_name("up.git"), tmp_path / "up.git")


@pytest.fixture
def clone(up: Path) -> Iterator[Callable[..., Clone]]:
    """Makes clones of it: ``clone(ACTOR, OPTION, …)``."""
    made: list[Clone] = []

    def make(actor: str, *options: str, machine: Machine | None = None) -> Clone:
        made.append(clone_of(up, actor, *options, machine=machine))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def ann(up: Path, shared: Clone) -> Iterator[Clone]:
    """The clone of ann, who has shared an entity with an edge and a note on a document."""
    made = Clone(shutil.copytree(shared.root, up.parent / "ann", symlinks=True), "ann")
    made.own, made.once_committed = deepcopy(shared.own), deepcopy(shared.once_committed)
    made.git("remote", "set-url", "origin", up.as_uri())
    yield made
    made.close()


@pytest.fixture
def bob(ann: Clone, clone: Callable[..., Clone]) -> Clone:
    """The clone of bob, who has what ann has shared."""
    return clone("bob")
