"""The process ends at any one call: what was acknowledged is there, and the next command just works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.storage import branchdir, compaction, head, journal, rebuild, verify
from tests.core.storage.making import (
    CLOCK,
    FS,
    NO_SYNC,
    append,
    fill,
    new_store,
    next_line,
    numbers,
    payload,
    segment,
)
from tests.support.disk.faultfs import Crash, CrashingFs, LoggingFs

WHEN = ["before", "half", "after"]


def crash_everywhere(when: str, prepare: Callable[[str], Path], work: Callable[[object, Path], None]):
    """Yield (directory, point) once for each call of the work, which ended there."""
    probe = LoggingFs(NO_SYNC)
    work(probe, prepare("probe"))
    for at in range(len(probe.calls)):
        directory = prepare(f"at{at}")
        fs = CrashingFs(at, when=when, inner=NO_SYNC)
        with pytest.raises(Crash):
            work(fs, directory)
        fs.close_all()
        yield directory, (at, probe.calls[at])


@pytest.mark.parametrize("when", WHEN)
def test_a_crash_while_committing_loses_nothing_that_was_answered(tmp_path: Path, when: str) -> None:
    acked: list[int] = []

    def prepare(name: str) -> Path:
        return new_store(tmp_path, 1, name=name)

    def work(fs, directory: Path) -> None:
        acked[:] = [1]
        with journal.writing(fs, directory, CLOCK, wait_s=0) as writer:
            for number in (2, 3):
                writer.append(payload(number), CLOCK.now())
                acked.append(number)

    for directory, point in crash_everywhere(when, prepare, work):
        next_number = acked[-1] + 1
        assert numbers(directory) in (acked, [*acked, next_number]), point
        append(directory, 9, fs=NO_SYNC)
        assert numbers(directory) in ([*acked, 9], [*acked, next_number, 9]), point
        assert verify.prove(FS, directory).is_sound, point


@pytest.mark.sliced(3)
@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("whole", [0, 1])
@pytest.mark.parametrize("torn", [b"", b'{"v":1,"seq":4'])
def test_a_crash_while_recovering_changes_nothing_about_the_outcome(
    tmp_path: Path, when: str, whole: int, torn: bytes
) -> None:
    def prepare(name: str) -> Path:
        directory = new_store(tmp_path, 2, name=name)
        with segment(directory).open("ab") as file:
            file.write(next_line(directory, 3) * whole + torn)
        return directory

    def work(fs, directory: Path) -> None:
        with journal.writing(fs, directory, CLOCK, wait_s=0):
            pass

    for directory, point in crash_everywhere(when, prepare, work):
        append(directory, 9, fs=NO_SYNC)
        assert numbers(directory) == [1, 2, *[3] * whole, 9], point
        kept = [path.read_bytes() for path in (directory / "quarantine").glob("*.cut")]
        assert kept == [torn] * bool(torn), point
        assert verify.prove(FS, directory).is_sound, point


@pytest.mark.sliced(2)
@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("before", [None, 4])
def test_a_crash_while_compacting_changes_no_answer(tmp_path: Path, when: str, before: int | None) -> None:
    def prepare(name: str) -> Path:
        directory = new_store(tmp_path, 3, name=name)
        compaction.compact(NO_SYNC, directory, CLOCK, fold)
        fill(directory, 3)
        return directory

    def fold(of: head.Head) -> list[bytes]:
        return [b"%d" % of.seq]

    def work(fs, directory: Path) -> None:
        compaction.compact(fs, directory, CLOCK, fold, prune_before=before, wait_s=0)

    for directory, point in crash_everywhere(when, prepare, work):
        old = head.read(FS, directory)
        assert old.seq == 6
        assert numbers(directory) == list(range(old.first_seq, 7)), point
        append(directory, 7, fs=NO_SYNC)
        assert numbers(directory)[-1] == 7
        work(NO_SYNC, directory)
        of = head.read(FS, directory)
        assert numbers(directory) == list(range(before or 1, 8)), point
        assert verify.prove(FS, directory).findings == (), point
        assert {path.name for path in directory.iterdir()} == {*of.files, "head.json", "lock"}, point


@pytest.mark.parametrize("when", WHEN)
def test_a_crash_while_copying_leaves_a_whole_copy_or_none(tmp_path: Path, when: str) -> None:
    source = new_store(tmp_path, 3)
    compaction.compact(FS, source, CLOCK, lambda of: [b"1"])
    fill(source, 2)

    def prepare(name: str) -> Path:
        return tmp_path / name

    def work(fs, target: Path) -> None:
        branchdir.copy(fs, source, target, branch=target.name)

    for target, point in crash_everywhere(when, prepare, work):
        if not target.exists():
            branchdir.clear_unfinished(FS, tmp_path)
            work(NO_SYNC, target)
        assert numbers(target) == [1, 2, 3, 4, 5], point
        assert verify.prove(FS, target).findings == (), point
    assert not list(tmp_path.glob(".tmp-*"))


@pytest.mark.parametrize("when", WHEN)
def test_a_crash_while_creating_leaves_a_whole_store_or_none(tmp_path: Path, when: str) -> None:
    def work(fs, directory: Path) -> None:
        branchdir.create(fs, directory, CLOCK, branch=directory.name)

    for directory, point in crash_everywhere(when, lambda name: tmp_path / name, work):
        if not directory.exists():
            branchdir.clear_unfinished(FS, tmp_path)
            work(NO_SYNC, directory)
        assert verify.prove(FS, directory).findings == (), point
        append(directory, 1, fs=NO_SYNC)


@pytest.mark.parametrize("when", WHEN)
def test_a_crash_while_rebuilding_the_head_can_be_repeated(tmp_path: Path, when: str) -> None:
    def prepare(name: str) -> Path:
        directory = new_store(tmp_path, 3, name=name)
        (directory / "head.json").unlink()
        return directory

    def work(fs, directory: Path) -> None:
        rebuild.rebuild_head(fs, directory, CLOCK, branch="main", wait_s=0)

    for directory, point in crash_everywhere(when, prepare, work):
        work(NO_SYNC, directory)
        assert numbers(directory) == [1, 2, 3], point
        assert verify.prove(FS, directory).is_sound, point
