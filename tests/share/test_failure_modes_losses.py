"""Failure modes of sharing: stores that are lost, put back, or of a branch that was made again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.errors import StorageError, StoreWentBack
from kbcore.maintenance.backup import back_up, restore
from kbcore.maintenance.epochs import accept
from kbcore.share.merging import merge
from kbcore.share.state import find_state
from kbcore.store import branches
from tests.support.repository.clones import Clone, hold
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import AUTHOR


def test_a_lost_clone_is_back_but_for_what_was_never_shared(ann: Clone, clone: Callable[..., Clone]) -> None:
    ann.add("FACT-1", title="Shared")
    ann.commit()
    ann.push()
    before = ann.facts()
    ann.fact("FACT-2")
    ann.close()
    shutil.rmtree(ann.root)
    again = clone("ann")
    hold(again)
    assert again.facts() == before


def test_lost_stores_are_named_and_back_but_for_what_was_never_shared(ann: Clone) -> None:
    before = ann.facts()
    ann.fact("FACT-2")
    ann.close()
    for place in (stores_at(ann.root), caches_at(ann.root)):
        shutil.rmtree(place)
    again = Clone(ann.root, "ann")
    with pytest.raises(StoreWentBack, match="records 1 to 6 are missing"):
        again.sync()
    accept(again.workspace(), "main", AUTHOR)
    hold(again)
    assert again.facts() == before
    again.close()


def test_a_restored_backup_has_what_was_shared_since(ann: Clone, tmp_path: Path) -> None:
    ann.fact("FACT-2", "Not shared when it was saved")
    own = dict(ann.own["main"])
    back_up(ann.workspace(), tmp_path / "saved", tool="kb/test")
    ann.add("FACT-1", title="Shared since")
    ann.commit()
    ann.add("FACT-1", title="Never shared")
    restore(ann.workspace(), tmp_path / "saved", AUTHOR, replaces=True)
    ann.own["main"] = own
    hold(ann)
    assert ann.titles() | {"FACT-1": "Shared since", "FACT-2": "Not shared when it was saved"} == ann.titles()
    ann.commit()
    hold(ann)


def test_a_branch_that_is_deleted_and_made_again_has_what_its_files_say(ann: Clone) -> None:
    ann.begin("feature")
    ann.fact("FACT-2")
    ann.commit()
    ann.fact("FACT-3", "Never shared")
    tip = ann.git("rev-parse", "HEAD")
    ann.switch("main")
    ann.git("branch", "--quiet", "-D", "feature")
    branches.collect(ann.workspace())
    ann.begin("feature")
    hold(ann)
    assert not {"FACT-2", "FACT-3"} & ann.titles().keys()
    ann.git("merge", "--quiet", tip)
    hold(ann)
    assert "FACT-2" in ann.titles()


def test_a_branch_that_is_copied_from_another_shares_what_that_one_has_not(ann: Clone, bob: Clone) -> None:
    ann.fact("FACT-2", "Not shared yet")
    ann.begin("feature")
    hold(ann)
    ann.add("FACT-2", title="Later")
    ann.commit()
    hold(ann)
    ann.push()
    bob.pull("--no-rebase", "origin", "feature")
    hold(bob)
    assert bob.facts() == ann.facts()
    ann.switch("main")
    hold(ann)
    ann.commit("the same by another file")
    ann.git("merge", "--quiet", "--no-edit", "feature")
    hold(ann)
    assert bob.facts() == ann.facts()


@pytest.mark.parametrize("part", ["index", "view", "all of it"])
def test_a_cache_that_is_gone_or_damaged_changes_nothing(ann: Clone, bob: Clone, part: str) -> None:
    bob.add("FACT-1", title="By bob")
    ann.add("FACT-1", title="By ann")
    ann.commit()
    ann.push()
    bob.commit()
    bob.pull()
    hold(bob)
    bob.close()
    files = [one for one in caches_at(bob.root).rglob("*") if one.is_file()]
    for one in files:
        if part == "all of it":
            one.unlink()
        elif (one.suffix == ".db" and "claims" in one.name) == (part == "index"):
            one.write_bytes(b"damage" * 1000)
    again = Clone(bob.root, "bob")
    again.own, again.once_committed = bob.own, bob.once_committed
    hold(again)
    again.resolve("FACT-1", "title", 1)
    again.commit()
    hold(again)
    assert not again.conflicts()
    again.close()


@pytest.fixture
def merged(ann: Clone) -> Clone:
    """The clone of ann without change files, with sharing off, and a field that a merge made contested."""
    ann.begin("feature")
    ann.add("FACT-1", title="By feature")
    ann.switch("main")
    ann.add("FACT-1", title="By main")
    merge(ann.workspace(), "main", "feature", ann.author())
    shutil.rmtree(ann.root / ".kb/changes")
    assert ann.workspace().config.share.mode == "off"
    return ann


def test_contested_fields_are_counted_whatever_the_cache_has(merged: Clone) -> None:
    state = find_state(merged.workspace(), "main", merged.view())
    assert state is not None
    assert state.contested == 1
    merged.close()
    shutil.rmtree(caches_at(merged.root))
    again = Clone(merged.root, "ann")
    assert find_state(again.workspace(), "main", again.view()) == state
    again.close()


def test_changes_that_are_not_shared_are_counted_with_a_deleted_branch_whatever_the_cache_has(merged: Clone) -> None:
    merged.switch("feature")
    merged.fact("FACT-3", "Never shared")
    merged.switch("main")
    merged.git("branch", "--quiet", "-D", "feature")
    merged.close()
    shutil.rmtree(caches_at(merged.root))
    again = Clone(merged.root, "ann")
    [found] = branches.collect(again.workspace()).trash
    assert (found.name, found.unshared) == ("feature", 1)
    again.close()


@pytest.mark.parametrize("there", [b"", b"edited\n"])
def test_a_file_of_another_content_in_the_place_of_a_new_one_is_not_staged(ann: Clone, there: bytes) -> None:
    ann.fact("FACT-9")
    [path] = ann.share(dry_run=True).files
    (ann.root / path).parent.mkdir(parents=True, exist_ok=True)
    (ann.root / path).write_bytes(there)
    with pytest.raises(StorageError, match="another content"):
        ann.share()
    assert not ann.git("diff", "--cached", "--name-only")
    (ann.root / path).unlink()
    assert [*ann.share().files] == [path]
    hold(ann)
