"""Notices of the operating system about real files."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import pytest

from kbcore.watch import inotify
from kbcore.watch.inotify_coverage import folders_below
from kbcore.watch.notices import NoNotices, NotedPaths
from tests.support.processes.fenced import as_somebody, with_few_watches

WAIT_S = 5.0


@pytest.fixture(params=["system", "library"])
def each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Either way of listening: what Linux offers itself, and the library that other systems need."""
    if request.param == "library":
        monkeypatch.setattr("kbcore.watch.inotify.IS_AVAILABLE", False)
    elif not inotify.IS_AVAILABLE:
        pytest.skip("this system has no inotify")
    return str(request.param)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listen by the library."""
    monkeypatch.setattr("kbcore.watch.inotify.IS_AVAILABLE", False)


def noticed(notices: NotedPaths, is_enough: Callable[[set[str]], bool]) -> set[str]:
    """Return what was noticed, once it is enough."""
    found: set[str] = set()
    end_s = time.monotonic() + WAIT_S
    while not is_enough(found):
        assert time.monotonic() < end_s, found
        found |= notices.take(0.1)
    return found


@pytest.mark.usefixtures("each_way")
def test_changes_far_below_deep_folders_and_among_the_entries_of_flat_ones_are_noticed(tmp_path: Path) -> None:
    for name in ("deep/er", "flat/inner"):
        (tmp_path / name).mkdir(parents=True)
    with NotedPaths([tmp_path / "deep"], [tmp_path / "flat"]) as notices:
        assert notices.take(0) == set()
        (tmp_path / "flat/inner/not told").write_text("x")
        (tmp_path / "flat/told").write_text("x")
        (tmp_path / "deep/er/told").write_text("x")
        (tmp_path / "deep/new").mkdir()
        wanted = {str(tmp_path / one) for one in ("flat/told", "deep/er/told", "deep/new")}
        found = noticed(notices, wanted.issubset)
        assert str(tmp_path / "flat/inner/not told") not in found
        (tmp_path / "deep/new/told").write_text("x")
        noticed(notices, {str(tmp_path / "deep/new/told")}.issubset)


@pytest.mark.usefixtures("each_way")
def test_a_folder_that_is_deleted_and_made_again_is_noticed_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    with NotedPaths([tmp_path / "deep"], [tmp_path]) as notices:
        shutil.rmtree(tmp_path / "deep")
        (tmp_path / "deep").mkdir()
        noticed(notices, {str(tmp_path / "deep")}.issubset)


@pytest.mark.usefixtures("library")
def test_a_name_that_is_no_text_means_that_no_more_is_noticed_and_that_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    with NotedPaths([tmp_path / "deep"], []) as notices:
        assert not notices.has_ended
        (Path(os.fsdecode(os.fsencode(tmp_path / "deep") + b"/\xff.md"))).write_text("x")
        end_s = time.monotonic() + WAIT_S
        while not notices.has_ended:
            assert time.monotonic() < end_s
            notices.take(WAIT_S)
    with NotedPaths([tmp_path / "deep"], []) as notices:
        pass
    assert not notices.has_ended


@pytest.mark.usefixtures("each_way")
def test_waiting_ends_with_time_or_when_woken_also_by_another_thread(tmp_path: Path) -> None:
    with NotedPaths([], [tmp_path]) as notices:
        assert notices.take(0.01) == set()
        begun_s = time.monotonic()
        threading.Timer(0.05, notices.wake).start()
        assert notices.take(WAIT_S) == set()
        assert notices.take(WAIT_S) == set()
        assert time.monotonic() - begun_s < WAIT_S


@pytest.mark.usefixtures("library")
def test_a_place_that_cannot_be_listened_to_is_said_so(tmp_path: Path) -> None:
    hostile = tmp_path / os.fsdecode(b"\xff")
    hostile.mkdir()
    with NotedPaths([hostile], []) as notices, pytest.raises(NoNotices):
        notices.take(WAIT_S)


def test_where_the_system_tells_nothing_folders_are_looked_at(tmp_path: Path) -> None:
    deep, flat = tmp_path / "deep", tmp_path / "flat"
    for folder in (deep / "er", flat / "inner"):
        folder.mkdir(parents=True)
        (folder / "edited").write_text("x")
    (deep / "gone").write_text("x")
    with NotedPaths([deep], [flat], is_polling=True) as notices:
        assert notices.take(0) == set()
        (flat / "inner/edited").write_text("not told")
        (deep / "er/edited").write_text("told")
        (deep / "gone").unlink()
        (deep / os.fsdecode(b"\xff.md")).write_text("x")
        (deep / "new").mkdir()
        (deep / "new/in it").write_text("x")
        (flat / "told").write_text("x")
        wanted = {deep / "er/edited", deep / "gone", deep / os.fsdecode(b"\xff.md"), deep / "new", deep / "new/in it"}
        wanted = {str(path) for path in (*wanted, flat / "told")}
        assert noticed(notices, wanted.issubset) == wanted


def test_a_folder_that_another_one_replaces_is_noticed_by_its_own_name_where_folders_are_looked_at(
    tmp_path: Path,
) -> None:
    deep = tmp_path / "deep"
    deep.mkdir()
    with NotedPaths([deep], [tmp_path], is_polling=True) as notices:
        deep.rename(tmp_path / "aside")
        deep.mkdir()
        noticed(notices, {str(deep)}.issubset)
        (deep / "new").write_text("x")
        noticed(notices, {str(deep / "new")}.issubset)


def test_links_that_lead_in_a_circle_end_no_looking(tmp_path: Path) -> None:
    for name, target in (("itself", "itself"), ("back", "."), ("nowhere", "gone")):
        (tmp_path / name).symlink_to(target)
    with NotedPaths([tmp_path], [], is_polling=True) as notices:
        (tmp_path / "later").symlink_to("later")
        (tmp_path / "a").write_text("x")
        assert noticed(notices, {str(tmp_path / "a")}.issubset) == {str(tmp_path / "a"), str(tmp_path / "later")}
        assert not notices.has_ended


BEHIND_A_LINK = """
import sys; from pathlib import Path; from kbcore.watch.notices import *
deep = Path(sys.argv[1]) / "deep"
with Notices([deep], []) as notices:
    print(repr(notices.refusal))
    (deep / "er/a").write_text("x")
    while str(deep / "er/a") not in notices.take(10):
        pass
    (deep / "er/new").mkdir()
    (deep / "er/new/b").write_text("x")
    while str(deep / "er/new/b") not in notices.take(10):
        pass
"""


def test_the_target_of_a_link_to_a_folder_is_not_watched_and_takes_no_watch_of_the_system(
    tmp_path: Path,
) -> None:
    for name in "abcdefgh":
        (tmp_path / "outside" / name).mkdir(parents=True)
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/link").symlink_to(tmp_path / "outside")
    assert with_few_watches(6, BEHIND_A_LINK, tmp_path) == "''\n"


NO_WATCHES = "the system has no more watches (fs.inotify.max_user_watches)"
FROM_THE_BEGINNING = """
import sys; from pathlib import Path; from kbcore.watch.notices import *
try:
    Notices([Path(sys.argv[1])], []).take(5)
except NoNotices as error:
    print(error)
"""
LATER = """
import sys, time; from pathlib import Path; from kbcore.watch.notices import *
root = Path(sys.argv[1])
with Notices([root], []) as notices:
    (root / "new/a/b").mkdir(parents=True)
    end_s = time.monotonic() + 10
    while not notices.has_ended and time.monotonic() < end_s:
        notices.take(1)
    print(notices.has_ended)
"""


@pytest.mark.usefixtures("library")
def test_a_folder_that_comes_while_the_folders_are_listed_one_by_one_ends_the_listener(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("deep", "outside"):
        (tmp_path / name).mkdir()
    (tmp_path / "deep/link").symlink_to(tmp_path / "outside")

    def listed(folders: Sequence[Path]) -> tuple[list[Path], bool]:
        found = folders_below(folders)
        (tmp_path / "deep/late").mkdir(exist_ok=True)
        return found

    monkeypatch.setattr("kbcore.watch.notices.folders_below", listed)
    with NotedPaths([tmp_path / "deep"], []) as late:
        late.take(WAIT_S)
        assert late.has_ended
    with NotedPaths([tmp_path / "deep"], []) as notices:
        (tmp_path / "deep/another").symlink_to(tmp_path / "outside")  # is no folder, and changes nothing
        (tmp_path / "deep/late/file").touch()
        noticed(notices, lambda found: str(tmp_path / "deep/late/file") in found)
        assert not notices.has_ended


def test_a_limit_of_the_system_is_said_at_the_beginning_and_ends_the_listener_later(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}").mkdir()
    assert with_few_watches(3, FROM_THE_BEGINNING, tmp_path) == f"{NO_WATCHES}\n"
    assert with_few_watches(6, LATER, tmp_path) == "True\n"


HIDDEN = """
import os, sys, time; from pathlib import Path; from kbcore.watch.notices import *
root = Path(sys.argv[1])
for name in "abcdef":
    (root / name / "deep").mkdir(parents=True)
(root / "c").chmod(0)

def until(notices, is_enough):
    found, end_s = set(), time.monotonic() + 10
    while not is_enough(found) and time.monotonic() < end_s:
        found |= notices.take(1)
    return is_enough(found)

for is_polling in (False, True):
    with Notices([root], [root / "c"], is_polling=is_polling) as notices:
        for name in "abdef":
            (root / name / f"deep/{is_polling}").write_text("x")
        wanted = {str(root / name / f"deep/{is_polling}") for name in "abdef"}
        print(until(notices, wanted.issubset), notices.has_ended)
        if not is_polling:
            (root / "c/deep").parent.chmod(0o755)
            print(until(notices, lambda found: str(root / "c/deep") in found))
            (root / "c/deep/late").write_text("x")
            print(until(notices, lambda found: str(root / "c/deep/late") in found))
            (root / "c").chmod(0)
(root / "c").chmod(0o755)
"""


def test_a_folder_that_may_not_be_read_hides_no_other_and_is_listened_to_when_it_may_be(tmp_path: Path) -> None:
    assert as_somebody(HIDDEN, tmp_path).split() == ["True", "False", "True", "True", "True", "False"]


needs_inotify = pytest.mark.skipif(not inotify.IS_AVAILABLE, reason="this system has no inotify")


@needs_inotify
def test_names_that_are_no_text_are_reported_as_they_are_by_linux(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"\xff")
    odd.mkdir()
    with NotedPaths([tmp_path], []) as notices:
        (odd / "a").write_text("x")
        (tmp_path / os.fsdecode(b"\xfe.md")).write_text("x")
        noticed(notices, {str(odd / "a"), str(tmp_path / os.fsdecode(b"\xfe.md"))}.issubset)
        assert not notices.has_ended


@needs_inotify
def test_a_folder_that_is_moved_is_noticed_by_its_new_name_with_all_that_it_holds(tmp_path: Path) -> None:
    deep, outside = tmp_path / "deep", tmp_path / "outside"
    (deep / "old/er").mkdir(parents=True)
    (deep / "old/er/file").write_text("x")
    (outside / "in").mkdir(parents=True)
    (outside / "in/held").write_text("x")
    with NotedPaths([deep], []) as notices:
        (deep / "old").rename(deep / "new")
        (outside / "in").rename(deep / "come")
        noticed(notices, {str(deep / name) for name in ("old", "new", "new/er/file", "come/held")}.issubset)
        (deep / "new/er/file").write_text("y")
        (deep / "come/held").write_text("y")
        noticed(notices, {str(deep / name) for name in ("new/er/file", "come/held")}.issubset)
        (deep / "come").rename(tmp_path / "gone")
        (deep / "last").touch()
        noticed(notices, {str(deep / "last")}.issubset)
        (tmp_path / "gone/held").write_text("z")
        (deep / "end").touch()
        assert not {text for text in noticed(notices, {str(deep / "end")}.issubset) if "held" in text}


@needs_inotify
def test_nothing_is_missed_in_a_tree_that_grows_while_it_is_listened_to(tmp_path: Path) -> None:
    with NotedPaths([tmp_path], []) as notices:
        wanted = set()
        for number in range(60):
            folder = tmp_path / f"{number % 7}/{number % 5}/{number}"
            folder.mkdir(parents=True)
            (folder / "file").write_text("x")
            wanted.add(str(folder / "file"))
        noticed(notices, wanted.issubset)


@needs_inotify
def test_a_listener_with_nothing_to_tell_does_not_wake_up(tmp_path: Path) -> None:
    for name in ("deep/er", "flat"):
        (tmp_path / name).mkdir(parents=True)
    with NotedPaths([tmp_path / "deep"], [tmp_path / "flat"]) as notices:
        notices.take(0.1)
        before = switches()
        time.sleep(1.0)
        assert switches() - before <= 1


def switches() -> int:
    """Return how often the listeners of this process have gone to sleep so far."""
    threads = {str(one.native_id) for one in threading.enumerate() if one.name == "kb-watch"}
    assert len(threads) == 2
    found = 0
    for name in threads:
        lines = Path(f"/proc/self/task/{name}/status").read_text().splitlines()
        found += next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return found


@pytest.mark.skipif(not inotify.IS_AVAILABLE, reason="this system has no inotify")
def test_a_listener_that_is_ready_after_it_was_given_up_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_closed = threading.Event()

    class Slow(inotify.Listener):
        def __enter__(self) -> Self:
            is_closed.wait(WAIT_S)
            return super().__enter__()

    monkeypatch.setattr("kbcore.watch.inotify.Listener", Slow)
    monkeypatch.setattr("kbcore.watch.notices._START_S", 0.05)
    before = set(threading.enumerate())
    with NotedPaths([], [tmp_path]) as notices, pytest.raises(NoNotices, match="takes longer"):
        notices.take(0)
    [late] = set(threading.enumerate()) - before
    taken = os.pipe()  # it has the numbers of the pipe that was closed
    is_closed.set()
    late.join(2)
    for fd in taken:
        os.close(fd)
    assert not late.is_alive()
