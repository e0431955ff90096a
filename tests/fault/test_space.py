"""F9: the disk is full, at any byte. F11: the store cannot be written. Queries answer, and writes say why not."""

from __future__ import annotations

import contextlib
import copy
import errno
import json
import os
import random
import resource
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kbcore.errors import CommitUncertain, GitUnusable, KBError, ReadOnlyStore, StorageFull
from kbcore.storage import branchdir, files, head, verify
from kbcore.storage.fs import RealFs
from tests.fault.workloads import CLOCK, LINEAGE, WORKLOADS, Acked, Workload, append, bytes_of, check, numbers
from tests.support.disk.disk import Folder, MemoryDisk
from tests.support.disk.faultfs import NoSyncFs
from tests.support.effort.scale import SCALE, SEED, tries
from tests.support.processes.cli import Ran, environment, program, write
from tests.support.processes.second_user import without_powers
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import req
from tests.support.repository.repos import make_repository

ROOT = Path("/store")
MAIN = ROOT / "main"
PAGE_BYTES = 4096


class FullDisk(MemoryDisk):
    """A disk in memory that takes so many bytes of files and no more: a short write first, then ENOSPC."""

    def __init__(self, root: Folder, capacity: float) -> None:
        super().__init__(root)
        self.capacity = capacity
        self.peak = self.used()

    def used(self) -> int:
        """Return how many bytes the files take that have a name."""
        sizes, waiting = dict[int, int](), [self.root]
        while waiting:
            for node in waiting.pop().names.values():
                if isinstance(node, Folder):
                    waiting.append(node)
                else:
                    sizes[id(node)] = len(node.data)
        return sum(sizes.values())

    def _taken(self, fd: int, data: bytes | memoryview, offset: int) -> bytes:
        size, used = len(self._open[fd][0].data), self.used()
        room = max(0, self.capacity - used)
        taken = bytes(data)[: int(min(len(data), max(0, size + room - offset)))]
        if data and not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.peak = max(self.peak, used + max(0, offset + len(taken) - size))
        return taken

    def write(self, fd: int, data: bytes | memoryview) -> int:
        file, position, flags, _ = self._open[fd]
        return super().write(fd, self._taken(fd, data, len(file.data) if flags & os.O_APPEND else position[0]))

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        return super().pwrite(fd, self._taken(fd, data, offset), offset)


class Noting(Acked):
    """A list that calls something after each thing that was acknowledged."""

    def __init__(self, note: Callable[[], None]) -> None:
        super().__init__()
        self.note = note

    def append(self, one: object) -> None:
        super().append(one)
        self.note()


def prepared(work: Workload) -> Folder:
    fs = MemoryDisk()
    fs.mkdir(ROOT)
    work.prepare(fs, ROOT)
    return fs.root


def segment_of(fs: Any, directory: Path) -> bytes:
    """Return the bytes of the segment that takes new records."""
    return bytes_of(fs, directory / head.read(fs, directory).head.file)


def half_copies(fs: FullDisk) -> str:
    """Return what is wrong with the copies that a refused repair left, and forget those that are whole."""
    if "quarantine" not in fs.listdir(MAIN):
        return ""
    kept = MAIN / "quarantine"
    for name in [name for name in fs.listdir(kept) if name.startswith("before-rebuild")]:
        for part in fs.listdir(MAIN):
            if part.startswith("journal") and bytes_of(fs, kept / name / part) != bytes_of(fs, MAIN / part):
                return f"a part of a copy was left: {name}/{part}"
        files.remove_tree(fs, kept / name)
    return ""


def run_full(work: Workload, fs: FullDisk) -> str:
    """Run a workload on a disk that becomes full, and once more with space; return what was wrong."""
    before = [b"" if work.name == "rebuild the head" else segment_of(fs, MAIN)]

    def note() -> None:
        before.append(segment_of(fs, ROOT / work.branch if "made" in acked else MAIN))

    acked, refused = Noting(note), None
    try:
        work.run(fs, ROOT, acked)
    except KBError as error:
        refused = error
    if refused is None:
        return "" if fs.peak <= fs.capacity else "it took more than there was"
    if not isinstance(refused, StorageFull) and not (work.maybe and isinstance(refused, CommitUncertain)):
        return f"answered {refused!r}"
    if work.name != "rebuild the head":
        # A torn tail may have gone to quarantine: that is no change of what was acknowledged.
        is_torn = bool(work.torn) and not acked
        now, directory = segment_of(fs, ROOT / work.branch if "made" in acked else MAIN), MAIN
        if now != before[-1] and not (is_torn and now == before[-1][: head.read(fs, directory).head.length]):
            return f"the refused write left {len(now)} bytes of {len(before[-1])}"
        numbers(fs, directory)
    if not acked and (what := half_copies(fs)):
        return what
    fs.capacity = float("inf")
    if acked and isinstance(acked[0], str):
        append(fs, ROOT / work.branch, 100)
        acked.append(100)
    else:
        branchdir.clear_unfinished(fs, ROOT)
        work.run(fs, ROOT, acked)
    check(work, fs, ROOT, acked, is_refused=refused.applied == "no")
    return ""


@pytest.mark.sliced(4)
@pytest.mark.fault("F9")
@pytest.mark.parametrize("work", WORKLOADS, ids=lambda work: work.name)
def test_a_disk_that_is_full_at_any_byte_refuses_and_the_same_call_succeeds_later(work: Workload, tally) -> None:
    base = prepared(work)
    roomy = FullDisk(copy.deepcopy(base), float("inf"))
    used = roomy.used()
    assert run_full(work, roomy) == ""
    growth = roomy.peak - used
    # Every byte of a line and of a head; of a snapshot and of longer lines every few.
    most = tries(12, {"commits": 4000, "compact": 900}.get(work.name, 120), 4000)
    for room in [*range(0, growth, max(1, growth // most)), growth - 1, growth]:
        fs = FullDisk(copy.deepcopy(base), used + room)
        tally.tried()
        try:
            what = run_full(work, fs)
        except (KBError, AssertionError, OSError, ValueError) as error:
            what = f"{type(error).__name__}: {error}"
        if what:
            tally.violated((work.name, room), what)
    tally.done()


class SmallDisk:
    """A real file system that can be filled; where none can be mounted, a limit on the size of files stands for it."""

    def __init__(self, path: Path, *, is_mounted: bool) -> None:
        self.path = path
        self.is_mounted = is_mounted
        self.ballast = path / "ballast"

    def fill(self, left_bytes: int, grown: Path) -> None:
        """Leave no more room than this; ``grown`` is the file that is about to grow."""
        if not self.is_mounted:
            _limit_files(grown.stat().st_size + left_bytes)
            return
        with contextlib.suppress(OSError), self.ballast.open("ab", buffering=0) as file:
            while file.write(b"x" * PAGE_BYTES):
                pass
        os.truncate(self.ballast, self.ballast.stat().st_size - left_bytes)

    def free(self) -> None:
        """Make room again."""
        if self.is_mounted:
            self.ballast.unlink(missing_ok=True)
        else:
            _limit_files(resource.RLIM_INFINITY)


def _limit_files(size: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if size == resource.RLIM_INFINITY else size, hard))


def mounted(path: Path, *options: str) -> bool:
    """Mount something at a path; say whether that was possible."""
    if not shutil.which("mount"):
        return False
    return subprocess.run(["mount", *options, str(path)], capture_output=True, timeout=30, check=False).returncode == 0


@contextlib.contextmanager
def small_disk(path: Path, size: str) -> Iterator[SmallDisk]:
    path.mkdir()
    disk = SmallDisk(path, is_mounted=mounted(path, "-t", "tmpfs", "-o", f"size={size}", "none"))
    try:
        yield disk
    finally:
        disk.free()
        if disk.is_mounted:
            subprocess.run(["umount", str(path)], timeout=30, check=True)


@pytest.mark.fault("F9")
def test_a_real_disk_that_is_full_keeps_the_journal_and_its_readers(tmp_path: Path, tally) -> None:
    drawn, fs, stores = random.Random(SEED), RealFs(), 0
    with small_disk(tmp_path / "disk", "256k") as disk:
        directory = disk.path / "0"
        branchdir.create(fs, directory, CLOCK, branch="main", lineage=LINEAGE)
        for point in range(tries(30, 400, 4000)):
            if len(segment_of(fs, directory)) > 60_000:
                shutil.rmtree(directory)
                stores += 1
                directory = disk.path / str(stores)
                branchdir.create(fs, directory, CLOCK, branch="main", lineage=LINEAGE)
            pad, left = drawn.choice([10, 700, 5000, 9000]) + drawn.randrange(500), drawn.randrange(4) * PAGE_BYTES
            disk.fill(left, directory / head.read(fs, directory).head.file)
            before, seen = segment_of(fs, directory), numbers(fs, directory)
            tally.tried()
            try:
                append(fs, directory, point, pad)
            except StorageFull:
                if segment_of(fs, directory) != before or numbers(fs, directory) != seen:
                    tally.violated((point, pad, left), "the refused write changed the journal")
                disk.free()
                append(fs, directory, point, pad)
            except KBError as error:
                tally.violated((point, pad, left), repr(error))
            disk.free()
            if numbers(fs, directory) != [*seen, point]:
                tally.violated((point, pad, left), numbers(fs, directory)[-3:])
        assert verify.prove(fs, directory).is_sound
    tally.done()


def asked(root: Path, *words: str, prefix: tuple[str, ...] = (), stdin: str = "", **extra: str) -> Ran:
    """Run the installed ``kb`` with ``--json``."""
    done = subprocess.run(
        [*prefix, *program(), *words, "--json"], cwd=root, env=environment(extra), input=stdin, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)


def changeset(key: str, count: int = 1, pad: int = 0) -> str:
    entities = [
        {"id": f"{key}-{number}", "type": "req", "title": key, "status": "open", "attributes": {"a": "x" * pad}}
        for number in range(count)
    ]
    return json.dumps({"changeset_id": key, "entities": entities})


def entities(ran: Ran) -> Any:
    return (ran.status, [one["id"] for one in ran.json.get("entities", [])] if ran.out else ran.err)


@pytest.mark.sliced(1)
@pytest.mark.fault("F9")
@pytest.mark.parametrize("rows", [0, 2500][: tries(1, 2)], ids=lambda rows: f"{rows} rows")
def test_the_program_on_a_full_disk_answers_queries_and_refuses_writes(rows: int, tmp_path: Path, tally) -> None:
    with small_disk(tmp_path / "disk", "48m") as disk:
        root = make_repository(disk.path / "repo")
        (disk.path / "tmp").mkdir()
        extra = {"TMPDIR": str(disk.path / "tmp")}
        assert asked(root, "init", "--no-hooks", **extra).status == 0
        if rows:
            # As many as make the next reader publish a view, for which there is no room.
            assert asked(root, "apply", "-", stdin=changeset("ROW", rows), **extra).status == 0
        segment = stores_at(root) / "main/journal-0000000001.jsonl"
        write(root, {"docs/requirements/a.md": req("REQ-1") + "y" * 9000})
        for number, left in enumerate(([0] if rows else [0, 7, 3, 1])[: tries(1, 4)]):
            answer = entities(asked(root, "query", "req", "--limit", "5", **extra))
            disk.fill(left * PAGE_BYTES, segment)
            before = segment.read_bytes()
            sent = changeset(f"BIG-{number}", 3, 10_000)
            for words, stdin in ((("apply", "-"), sent), (("sync",), "")):
                if left and words == ("sync",):
                    continue
                ran = asked(root, *words, stdin=stdin, **extra)
                tally.tried()
                is_right = ran.status == StorageFull.exit_status and ran.error["applied"] == "no"
                if not is_right or segment.read_bytes() != before:
                    tally.violated((rows, left, words), f"{ran} {len(before)} {segment.stat().st_size}")
            tally.tried()
            found = entities(asked(root, "query", "req", "--limit", "5", **extra))
            if found != answer or segment.read_bytes() != before:
                tally.violated((rows, left, "query"), found)
            disk.free()
            for words, stdin in ((("apply", "-"), sent), (("sync",), "")):
                ran = asked(root, *words, stdin=stdin, **extra)
                if ran.status or (words[0] == "apply" and ran.json["duplicate"]):
                    tally.violated((rows, left, words, "with space"), ran)
        ran = asked(root, "verify", **extra)
        if ran.status:
            tally.violated((rows, "verify"), ran)
    tally.done()


def _tree(root: Path, keep: Callable[[Path], bool] = lambda path: True) -> list[Path]:
    return [path for path in [root, *root.rglob("*")] if keep(path)]


def _without(bits: int, paths: list[Path]) -> None:
    for path in reversed(paths):
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~bits)


def read_only(root: Path) -> None:
    _without(0o222, _tree(stores_at(root).parent))


def read_only_directories(root: Path) -> None:
    _without(0o222, _tree(stores_at(root).parent, Path.is_dir))


def no_right_to_the_lock(root: Path) -> None:
    (stores_at(root) / "main/lock").chmod(0)


def no_right_to_write_the_journal(root: Path) -> None:
    _without(0o222, [stores_at(root) / "main/journal-0000000001.jsonl"])


def _give_back(root: Path) -> None:
    for path in _tree(stores_at(root).parent):
        path.chmod(0o755 if path.is_dir() else 0o644)


ANOTHER = 12345


def _give_away(paths: list[Path]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    for path in paths:
        os.chown(path, ANOTHER, ANOTHER, follow_symlinks=False)


def of_another_owner(root: Path) -> None:
    """Give the whole repository to another user, and have git's settings of this user trust it."""
    _give_away(_tree(root))
    settings_of(root).write_text(f'[safe]\n\tdirectory = "{root}"\n')


def store_of_another_owner(root: Path) -> None:
    """Give away the stores alone: as git sees it, the repository is this user's."""
    _give_away(_tree(stores_at(root).parent))


def settings_of(root: Path) -> Path:
    """Return git's settings of the user, which are as good as none where nothing was written there."""
    return root.with_name("gitconfig")


def on_a_read_only_mount(root: Path) -> None:
    if not (mounted(root, "--bind", str(root)) and mounted(root, "-o", "remount,bind,ro")):
        pytest.skip("nothing can be mounted here")


def no_right_to_the_cache(root: Path) -> None:
    _without(0o222, _tree(caches_at(root)))


SETUPS = (
    read_only,
    on_a_read_only_mount,
    no_right_to_the_lock,
    of_another_owner,
    store_of_another_owner,
    read_only_directories,
    no_right_to_write_the_journal,
    no_right_to_the_cache,
)
COMMANDS: tuple[tuple[str, ...], ...] = (("apply", "-"), ("sync",), ("delete", "REQ-0", "--yes"), ("compact",))


TAKEN = (read_only, read_only_directories, no_right_to_the_lock, no_right_to_write_the_journal)
"""Functions that take away a right that can be given back."""
GIVEN_AWAY = (of_another_owner, store_of_another_owner)
CACHED = (no_right_to_the_lock, no_right_to_write_the_journal)
"""Places to which a view may still be published."""


def contents(root: Path, *, with_cache: bool = True) -> dict[str, bytes]:
    """Return every file but the locks, whose text is only for people."""
    is_shown = lambda path: with_cache or caches_at(root) not in path.parents  # noqa: E731
    paths = [path for path in _tree(root, is_shown) if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose KB holds one requirement."""
    root = make_repository(tmp_path_factory.mktemp("filled") / "repo")
    assert asked(root, "init", "--no-hooks").status == 0
    assert asked(root, "apply", "-", stdin=changeset("REQ")).status == 0
    write(root, {"docs/requirements/a.md": req("REQ-1")})
    return root


@pytest.mark.sliced(1)
@pytest.mark.fault("F11")
@pytest.mark.parametrize("setup", SETUPS[: tries(2, 8)], ids=lambda setup: setup.__name__)
def test_a_store_that_cannot_be_written_answers_queries_and_gets_no_file(
    setup: Callable[[Path], None], filled: Path, tmp_path: Path, tally
) -> None:
    prefix, root = without_powers(), shutil.copytree(filled, tmp_path / "repo", symlinks=True)
    settings_of(root).touch()
    setup(root)
    asked_here = partial(asked, root, prefix=prefix, GIT_CONFIG_GLOBAL=str(settings_of(root)))
    left = [contents(root, with_cache=setup not in CACHED)]
    reading = (("query", "req"), ("check", "--fail-on", "never"), ("log",))
    try:
        for words in (*reading[: 1 if SCALE == "slice" else None], *COMMANDS[: 1 if SCALE == "slice" else None]):
            ran = asked_here(*words, stdin=changeset("NEW"))
            tally.tried()
            if words in reading or setup is no_right_to_the_cache:
                is_right = ran.status == 0 and (words[0] != "query" or "REQ-0" in entities(ran)[1])
            else:
                is_right = ran.status == ReadOnlyStore.exit_status and ran.error["applied"] == "no"
                if setup in GIVEN_AWAY:
                    is_right = is_right and f"it belongs to uid {ANOTHER}" in ran.error["message"]
            left.append(contents(root, with_cache=setup not in CACHED))
            if not is_right or (left[0] != left[-1] and setup is not no_right_to_the_cache):
                tally.violated((setup.__name__, words), ran)
        if setup in TAKEN:
            _give_back(root)
            ran = asked_here("apply", "-", stdin=changeset("NEW"))
            tally.tried()
            if ran.status or ran.json["duplicate"] or not verify.prove(NoSyncFs(), stores_at(root) / "main").is_sound:
                tally.violated((setup.__name__, "after the right was given back"), ran)
    finally:
        if setup is on_a_read_only_mount:
            subprocess.run(["umount", str(root)], timeout=30, check=True)
    tally.done()


@pytest.mark.sliced
@pytest.mark.fault("F11")
def test_a_repository_of_another_owner_that_git_does_not_trust_is_left_alone(filled: Path, tmp_path, tally) -> None:
    root = shutil.copytree(filled, tmp_path / "repo", symlinks=True)
    _give_away(_tree(root))
    before = contents(root)
    for words in (("query", "req"), ("log",), ("status",), ("verify",), *COMMANDS):
        ran = asked(root, *words, prefix=without_powers(), stdin=changeset("NEW"))
        tally.tried()
        is_right = ran.status == GitUnusable.exit_status and ran.error["applied"] == "no"
        if not is_right or "safe.directory" not in ran.error["hint"] or contents(root) != before:
            tally.violated(words, ran)
    tally.done()
