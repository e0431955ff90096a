"""A store that is removed, lost, put back or replaced while it is watched."""

from __future__ import annotations

import shutil
import time

import pytest

from kbcore.errors import (
    NotInitialised,
    StoreWentBack,
)
from kbcore.maintenance import epochs
from kbcore.storage.fs import RealFs
from kbcore.store import branches
from kbcore.watch.events import Resumed, Synced, Waiting
from tests.core.watch.watching import CALM_S, ONE, REQS, waited_for
from tests.support.repository.places import stores_at
from tests.support.repository.project import AUTHOR, Project, req
from tests.support.repository.repos import git
from tests.support.repository.watched import Watched


@pytest.mark.sliced
def test_a_kb_that_is_removed_is_waited_for_and_not_made_again(watched: Watched) -> None:
    folders = [watched.root / ".kb", stores_at(watched.root).parent]
    for number, folder in enumerate(folders):
        shutil.copytree(folder, watched.root.parent / f"aside{number}")
        shutil.rmtree(folder)
    waited_for(watched, NotInitialised)
    (watched.root / ONE).write_text(req("REQ-1", title="Meanwhile"))
    time.sleep(CALM_S)
    assert not any(folder.exists() for folder in folders)
    assert watched.of(Resumed) == []
    for number, folder in enumerate(folders):
        (watched.root.parent / f"aside{number}").rename(folder)
    watched.until_there("REQ-1", title="Meanwhile")
    watched.until_event(lambda event: isinstance(event, Resumed))
    watched.assert_in_step()


@pytest.mark.sliced(1)
@pytest.mark.parametrize("what", ["main", "."])
def test_a_store_that_is_lost_is_said_and_not_written_until_it_is_back(watched: Watched, what: str) -> None:
    store, aside = stores_at(watched.root) / what, watched.root.parent / "aside"
    (watched.root / ".kb/config.json").write_text("{}")
    (watched.root / REQS / "two.md").write_text(req("REQ-2"))
    watched.until_there("REQ-2")
    shutil.copytree(store, aside)
    shutil.rmtree(store)
    waited_for(watched, StoreWentBack)
    (watched.root / ONE).write_text(req("REQ-1", title="Meanwhile"))
    time.sleep(CALM_S)
    assert not store.exists()
    aside.rename(store)
    watched.until_there("REQ-1", title="Meanwhile")
    watched.assert_in_step()


@pytest.mark.sliced
def test_a_store_that_was_put_back_to_an_earlier_state_is_said_and_not_written(watched: Watched) -> None:
    store, older = stores_at(watched.root) / "main", watched.root.parent / "older"
    shutil.copytree(store, older)
    (watched.root / REQS / "two.md").write_text(req("REQ-2"))
    watched.until_there("REQ-2")
    watched.until(lambda: watched.of(Synced))
    shutil.rmtree(store)
    older.rename(store)
    waited_for(watched, StoreWentBack)
    (watched.root / ONE).write_text(req("REQ-1", title="Meanwhile"))
    time.sleep(CALM_S)
    assert watched.reader.seq() == 1
    reported = watched.of(Waiting)[-1].error
    assert "seen: 2, now: 1; record 2 is missing" in reported.message
    other = Project(watched.root, fs=RealFs(), is_new=False)
    epochs.accept(other.workspace(), "main", AUTHOR)
    other.close()
    watched.until_there("REQ-1", title="Meanwhile")
    watched.until_event(lambda event: isinstance(event, Resumed))
    watched.assert_in_step()


@pytest.mark.sliced
def test_a_store_that_was_replaced_on_purpose_is_followed(watched: Watched) -> None:
    other = Project(watched.root, fs=RealFs(), is_new=False)
    git(watched.root, "branch", "spare")
    branches.ensure(other.workspace(), "spare")
    branches.copy_from(other.workspace(), "main", "spare", replaces=True)
    (watched.root / ONE).write_text(req("REQ-1", title="After"))
    watched.until_there("REQ-1", title="After")
    assert watched.of(Waiting) == []
    other.close()
    watched.assert_in_step()
