"""F21: whatever happens to the cached view, it is right or built again, and never gives a wrong row."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kbcore.errors import KBError, ViewDamaged
from kbcore.model.record import PutNode
from kbcore.storage import journal
from kbcore.store.write_request import Request
from kbcore.view import publishing, replay
from kbcore.view.cache_files import AHEAD, VIEW
from kbcore.view.history import state_at
from kbcore.view.view import View
from tests.support.disk.faultfs import NoSyncFs
from tests.support.effort.scale import SEED, tries
from tests.support.generators.histories import IDS, LINKS, drawn, lines_of
from tests.support.repository.stores import AUTHOR, Stored, planner

BLOCK_BYTES = 4096


class Cached:
    """A store whose view is published, with some records after it, and what full replay comes to."""

    def __init__(self, root: Path, fs: Any = None) -> None:
        self.made = Stored(root, fs=fs)
        dice = random.Random(SEED)
        history = drawn(dice, 14)
        for ops in history[:5]:
            self.made.commit(ops)
        self.older = self._published()
        for ops in history[5:10]:
            self.made.commit(ops)
        self.view = self._published()
        self.kept = {path: path.read_bytes() for path in self.made.directory.iterdir() if path.is_file()}
        for ops in history[10:]:
            self.made.commit(ops)
        self.made.store.close()
        self.path = self.made.cache_dir / VIEW
        self.wanted = self.replayed()

    def _published(self) -> bytes:
        """Publish a view of what there is, and return the bytes of it."""
        shutil.rmtree(self.made.cache_dir, ignore_errors=True)
        self.made.reopen().read(lambda view: view.seq)
        self.made.store.close()
        return (self.made.cache_dir / VIEW).read_bytes()

    def replayed(self) -> list[Any]:
        """Return the state at the head and at some seqs before, by the journal alone."""
        head = journal.read_head(self.made.fs, self.made.directory)
        seqs = (head.seq // 2, head.seq)
        states = [replay.folded(self.made.fs, self.made.directory, head, until=seq) for seq in seqs]
        known = [(one.changeset_id, (one.seq, one.digest)) for one in states[-1].known]
        last = states[-1].state
        return [
            [lines_of(one.state) for one in states],
            sorted(last.nodes.keys() & set(IDS)),
            sorted(last.links),
            known,
        ]

    def asked(self) -> list[Any]:
        """Return the same as the view says it, by scans and by look-ups."""
        return self.made.store.read(_read)

    def reset(self) -> None:
        """Put the view back as it was published, with nothing beside it."""
        self.made.store.close()
        shutil.rmtree(self.made.cache_dir)
        self.made.cache_dir.mkdir()
        self.path.write_bytes(self.view)


def _read(view: View) -> list[Any]:
    states = [lines_of(state_at(view, seq)) for seq in (view.seq // 2, view.seq)]
    nodes = sorted(node.id for node in view.nodes(IDS))
    links = sorted({link.id for link in view.touching([*IDS, "nobody", *(edge[2] for edge in LINKS)])})
    ids = [row[0] for row in view.rows("select changeset_id from record order by seq")]
    known = [(key, view.changeset(key)) for key in ids]
    return [states, nodes, links, known]


def flipped(cached: Cached, dice: random.Random) -> None:
    data = bytearray(cached.view)
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    cached.path.write_bytes(data)


def flipped_in_many_places(cached: Cached, dice: random.Random) -> None:
    data = bytearray(cached.view)
    for _ in range(dice.randint(2, 200)):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    cached.path.write_bytes(data)


def flipped_at_the_beginning(cached: Cached, dice: random.Random) -> None:
    data = bytearray(cached.view)
    data[dice.randrange(3 * BLOCK_BYTES)] ^= 1 << dice.randrange(8)
    cached.path.write_bytes(data)


def zeroed(cached: Cached, dice: random.Random) -> None:
    data = bytearray(cached.view)
    at = dice.randrange(len(data) // 512) * 512
    data[at : at + 512] = bytes(512)
    cached.path.write_bytes(data)


def cut(cached: Cached, dice: random.Random) -> None:
    cached.path.write_bytes(cached.view[: dice.randrange(len(cached.view))])


def cut_at_a_block(cached: Cached, dice: random.Random) -> None:
    cached.path.write_bytes(cached.view[: dice.randrange(len(cached.view) // BLOCK_BYTES) * BLOCK_BYTES])


def longer(cached: Cached, dice: random.Random) -> None:
    cached.path.write_bytes(cached.view + dice.randbytes(dice.choice([1, 4096, 300_000])))


def mixed(cached: Cached, dice: random.Random) -> None:
    at = dice.randrange(min(len(cached.view), len(cached.older)) // BLOCK_BYTES) * BLOCK_BYTES
    cached.path.write_bytes(cached.older[:at] + cached.view[at:])


def of_an_earlier_time(cached: Cached, dice: random.Random) -> None:
    cached.path.write_bytes(cached.older)


def with_another_stamp(cached: Cached, dice: random.Random) -> None:
    statement = dice.choice(
        [
            "update stamp set format = format + 1",
            "update stamp set format = 0",
            "update stamp set store_id = repeat('0', 32)",
            "update stamp set lineage = repeat('0', 64)",
            "update stamp set sum = repeat('0', 64)",
            "update stamp set end_bytes = end_bytes - 1",
            "update stamp set end_bytes = 0, seq = 0",
            "update stamp set history_from = 3",
            "update stamp set file = 'journal-0000000009.jsonl'",
            "delete from stamp",
            "insert into stamp select * from stamp",
            "drop table stamp",
            "drop table record",
            "drop table link_history",
            "drop table source_history",
            "drop table node_src",
        ]
    )
    with duckdb.connect(str(cached.path)) as connection:
        connection.execute(statement)


def not_a_view(cached: Cached, dice: random.Random) -> None:
    cached.path.write_bytes(dice.choice([b"", b"\0" * 20_000, b"# text\n", dice.randbytes(50_000)]))


def with_a_stray_log(cached: Cached, dice: random.Random) -> None:
    log = cached.path.with_name(f"{VIEW}.wal")
    log.write_bytes(dice.choice([b"", b"left by a killed writer" * 50, dice.randbytes(5000), b"\0" * 4096]))


def with_the_log_of_a_killed_writer(cached: Cached, dice: random.Random) -> None:
    """Leave what a program leaves that opened the view itself to write to it, and was killed."""
    beside = cached.path.with_name("other.duckdb")
    shutil.copyfile(cached.path, beside)
    with duckdb.connect(str(beside)) as connection:
        connection.execute(dice.choice(["delete from node", "delete from record", "update node set title = 'wrong'"]))
        log = Path(f"{beside}.wal").read_bytes()
    beside.unlink()
    cached.path.with_name(f"{VIEW}.wal").write_bytes(log)


def gone(cached: Cached, dice: random.Random) -> None:
    cached.path.unlink()


def a_directory(cached: Cached, dice: random.Random) -> None:
    cached.path.unlink()
    cached.path.mkdir()


DAMAGES: dict[Callable[[Cached, random.Random], None], int] = {
    flipped: 60,
    flipped_in_many_places: 15,
    flipped_at_the_beginning: 30,
    zeroed: 15,
    cut: 20,
    cut_at_a_block: 10,
    longer: 6,
    mixed: 10,
    of_an_earlier_time: 1,
    with_another_stamp: 30,
    not_a_view: 4,
    with_a_stray_log: 6,
    with_the_log_of_a_killed_writer: 6,
    gone: 1,
    a_directory: 1,
}
"""Each with how often it is tried on a merge."""
LIKELY = 15
"""Cases that are tried as often as that are in the slice as well, once."""


@pytest.fixture
def cached(tmp_path: Path):
    made = Cached(tmp_path)
    yield made
    made.made.close()


@pytest.mark.sliced
@pytest.mark.fault("F21")
def test_a_view_that_was_damaged_in_any_way_never_gives_a_wrong_row(cached: Cached, tally) -> None:
    for damage, count in DAMAGES.items():
        for number in range(tries(int(count >= LIKELY), count, 10 * count)):
            cached.reset()
            damage(cached, random.Random(f"{SEED} {damage.__name__} {number}"))
            cached.made.reopen()
            tally.tried()
            try:
                found = cached.asked()
            except Exception as error:  # noqa: BLE001 - whatever comes of a damaged view is a violation
                found = [f"{type(error).__name__}: {error}"]
            if found != cached.wanted:
                tally.violated((damage.__name__, number), _difference(found, cached.wanted))
    tally.done()


def _difference(found: Any, wanted: Any, where: str = "") -> str:
    """Return the first place at which two nested lists differ, with both values."""
    if isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        pairs = zip(found, wanted, strict=True)
        return next((_difference(*pair, f"{where}/{at}") for at, pair in enumerate(pairs) if pair[0] != pair[1]), "")
    return f"{where}: {str(found)[:200]} instead of {str(wanted)[:200]}"


class MeddlingFs(NoSyncFs):
    """Lets somebody else act before the ``at``-th call on the cache, counted from 0."""

    def __init__(self) -> None:
        super().__init__()
        self.at = -1
        self.calls = 0
        self.meddle: Callable[[], object] = lambda: None

    def _look(self, path: Path) -> None:
        if "cache" in path.parts:
            self.calls += 1
            if self.calls == self.at + 1:
                self.meddle()

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        self._look(path)
        return super().open(path, flags, mode)

    def lstat(self, path: Path) -> Any:
        self._look(path)
        return super().lstat(path)

    def unlink(self, path: Path) -> None:
        self._look(path)
        super().unlink(path)

    def replace(self, source: Path, target: Path, *, is_private: bool = False) -> None:
        self._look(target)
        super().replace(source, target, is_private=is_private)


def publishes_too(cached: Cached) -> None:
    other = cached.made.opened()
    other.commit(AUTHOR, Request(), planner([put(f"X{number}") for number in range(9)]), branch="main")
    other.close()


def deletes_the_cache(cached: Cached) -> None:
    shutil.rmtree(cached.made.cache_dir, ignore_errors=True)


def puts_an_older_view_back(cached: Cached) -> None:
    cached.made.cache_dir.mkdir(exist_ok=True)
    cached.path.unlink(missing_ok=True)
    cached.path.write_bytes(cached.older)


def damages_the_view(cached: Cached) -> None:
    if cached.path.exists():
        data = bytearray(cached.path.read_bytes())
        cached.path.unlink()
        cached.path.write_bytes(bytes(byte ^ 255 if at % 64 == 0 else byte for at, byte in enumerate(data)))


def takes_the_right_away(cached: Cached) -> None:
    deletes_the_cache(cached)
    cached.made.cache_dir.write_bytes(b"a file where a folder should be")


def put(key: str) -> PutNode:
    return PutNode(id=key, base=0, set={"type": "req", "title": key})


MEDDLERS = (publishes_too, deletes_the_cache, puts_an_older_view_back, damages_the_view, takes_the_right_away)


@pytest.mark.sliced(1)
@pytest.mark.fault("F21")
@pytest.mark.parametrize("meddler", MEDDLERS[: tries(1, 5)], ids=lambda one: one.__name__)
def test_whoever_comes_between_two_calls_on_the_cache_changes_no_answer(
    meddler: Callable[[Cached], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally
) -> None:
    # A view is due after a few rows here, so that every commit publishes one.
    monkeypatch.setattr(publishing, "_TAIL_ROWS", 5)
    fs = MeddlingFs()
    cached, at, step = Cached(tmp_path, fs), 0, tries(12, 2, 1)
    while fs.at < fs.calls:
        cached.reset()
        cached.made.reopen()
        fs.at, fs.calls, fs.meddle = at, 0, lambda: meddler(cached)
        tally.tried()
        try:
            for part in range(2):
                cached.made.commit([put(f"Y{at}-{part}-{number}") for number in range(7)])
                cached.made.store.read(lambda view: view.seq)
            first = cached.asked()
            cached.made.reopen()
            found = [first, cached.asked()]
        except (KBError, ViewDamaged, OSError, duckdb.Error) as error:
            found = [f"{type(error).__name__}: {error}"]
        wanted = cached.replayed()
        if found != [wanted, wanted]:
            tally.violated((meddler.__name__, at), _difference(found, [wanted, wanted]))
        if cached.made.cache_dir.is_file():
            cached.made.cache_dir.unlink()
            cached.made.cache_dir.mkdir()
        at += step
    cached.made.close()
    tally.done(at_least=2)


@pytest.mark.fault("F21")
def test_a_view_that_is_ahead_of_the_journal_is_reported_kept_and_not_believed(cached: Cached, tally) -> None:
    for seq in range(1, tries(2, 14)):
        made = Stored(cached.made.directory.parent.parent / f"ahead {seq}")
        for number in range(seq):
            made.put(f"A{number}")
        kept = {path: path.read_bytes() for path in made.directory.iterdir() if path.is_file()}
        for number in range(tries(2, 3)):
            made.put(f"B{number}")
        made.reopen().read(lambda view: view.seq)
        made.store.close()
        for path, data in kept.items():
            path.write_bytes(data)
        store = made.reopen()
        found = store.read(lambda view: [row[0] for row in view.rows("select id from node")])
        tally.tried()
        is_kept = any(path.name.startswith(AHEAD) for path in made.cache_dir.iterdir())
        if sorted(found) != sorted(f"A{number}" for number in range(seq)) or not is_kept or not store.notices:
            tally.violated(seq, (found, store.notices))
        made.close()
    tally.done()
