"""The meaning of names in the trash, and the stores that they account for."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore import ids
from kbcore.clock import SystemClock
from kbcore.storage import branchdir, head, trashed
from kbcore.storage.head import Head
from tests.support.disk.faultfs import NoSyncFs

FS = NoSyncFs()
WHEN = "20261231T235959.{:06d}Z"


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    (tmp_path / trashed.TRASH).mkdir()
    return tmp_path


def store(place: Path) -> Head:
    branchdir.create(FS, place, SystemClock(), branch="main")
    return head.read(FS, place)


def trash(parent: Path, number: int, *, by: Path | None = None) -> Head:
    """Put a new store of main into the trash; ``by`` took its place, or KB deleted it."""
    made = store(parent / "made")
    directory = by or parent / "main"
    path = trashed.trash_path(FS, directory, WHEN.format(number), is_vacated=by is None)
    (parent / "made").rename(path.with_name(path.name.replace(directory.name, "main", 1)))
    return made


def is_accounted(parent: Path, wanted: Head, of: Head | None) -> bool:
    return trashed.accounts_for(FS, parent / "main", of, lambda _, there: there.store_id == wanted.store_id)


def test_a_deleted_store_is_accounted_for_whatever_is_in_its_place(parent: Path) -> None:
    gone = trash(parent, 1)
    assert is_accounted(parent, gone, None)
    assert is_accounted(parent, gone, store(parent / "main"))


def test_a_replaced_store_is_accounted_for_only_while_its_successor_is_there(parent: Path) -> None:
    new = store(parent / "new")
    old = trash(parent, 1, by=parent / "new")
    assert is_accounted(parent, old, new)
    assert not is_accounted(parent, old, None)
    assert not is_accounted(parent, old, store(parent / "main"))


def test_a_store_is_followed_through_all_that_replaced_it(parent: Path) -> None:
    new, second = store(parent / "new"), parent / "second"
    store(second)
    first = trash(parent, 1, by=second)
    place = trashed.trash_path(FS, parent / "new", WHEN.format(2), is_vacated=False)
    second.rename(place.with_name(place.name.replace("new", "main", 1)))
    assert is_accounted(parent, first, new)
    assert not is_accounted(parent, first, None)


@pytest.mark.parametrize("name", ["main~kept by hand", f"main~{WHEN.format(1)}~other", f"main~{WHEN.format(1)}~by-zz"])
def test_a_name_that_kb_did_not_give_is_no_entry(parent: Path, name: str) -> None:
    store(parent / "made")
    (parent / "made").rename(parent / trashed.TRASH / name)
    assert trashed.stores_in_trash(FS, parent) == []


def test_a_store_whose_fate_is_not_stated_is_not_accounted_for(parent: Path) -> None:
    made = store(parent / "made")
    (parent / "made").rename(parent / trashed.TRASH / f"main~{WHEN.format(1)}")
    assert [one.fate for one in trashed.stores_in_trash(FS, parent)] == [""]
    assert not is_accounted(parent, made, None)


def test_the_longest_name_of_a_branch_fits_into_the_trash(parent: Path) -> None:
    directory = parent / ids.encode_branch("x" * 1000)
    store(directory)
    names = [trashed.trash_path(FS, directory, WHEN.format(1), is_vacated=one).name for one in (True, False)]
    assert all(len(name) <= 255 for name in names)
    for name in names:
        (parent / trashed.TRASH / name).mkdir()
    assert {one.name for one in trashed.stores_in_trash(FS, parent)} == {directory.name}
