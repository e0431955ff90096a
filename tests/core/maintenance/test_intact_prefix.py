"""The intact part of a damaged journal: up to the damage, of whatever kind, and nothing where that is not known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.maintenance.proof import intact_seq
from kbcore.storage import head, rebuild
from kbcore.storage.fs import RealFs
from tests.support.repository.stores import SteppingClock, Stored

JOURNAL = "journal-0000000001.jsonl"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    stored = Stored(tmp_path)
    for key in "ABC":
        stored.put(key)
    stored.close()
    return stored.directory


def good(directory: Path) -> int:
    return intact_seq(RealFs(), directory, head.read(RealFs(), directory))


HARMS: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "nothing": (lambda data: data, 3),
    "a changed record": (lambda data: data.replace(b'"B"', b'"X"'), 1),
    "the first record": (lambda data: data.replace(b'"A"', b'"X"'), 0),
    "a lost line": (lambda data: b"".join(data.splitlines(keepends=True)[:2]), 2),
    "a lost byte": (lambda data: data[:-1], 2),
    "all lost": (lambda _: b"", 0),
    "bytes beyond the head": (lambda data: data + b"x\n", 3),
}


@pytest.mark.parametrize("name", HARMS)
def test_the_records_before_the_damage_are_good(name: str, directory: Path) -> None:
    change, wanted = HARMS[name]
    path = directory / JOURNAL
    path.write_bytes(change(path.read_bytes()))
    assert good(directory) == wanted


def test_of_a_journal_that_is_gone_nothing_is_good(directory: Path) -> None:
    (directory / JOURNAL).unlink()
    assert good(directory) == 0


def test_of_files_from_two_times_nothing_is_known_to_be_good(tmp_path: Path, directory: Path) -> None:
    old = (directory / JOURNAL).read_bytes()
    stored = Stored(tmp_path)
    stored.put("D")
    line = (directory / JOURNAL).read_bytes()[len(old) :]
    (directory / "head.json").unlink()
    (directory / JOURNAL).write_bytes(old)
    stored.close()
    rebuild.rebuild_head(RealFs(), directory, SteppingClock(), branch="main")
    again = Stored(tmp_path)
    again.put("E")
    again.close()
    assert good(directory) == 4
    (directory / JOURNAL).write_bytes(old + line)
    assert good(directory) == 0


def test_of_an_empty_store_there_is_nothing_to_doubt(tmp_path: Path) -> None:
    assert good(Stored(tmp_path).directory) == 0
