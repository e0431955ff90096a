"""F18: every way to the state gives what full replay gives. F22: an undo leads to the state that time travel shows."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbcore.errors import RevertConflict
from kbcore.model import canonical, record
from kbcore.model.graph import Node
from kbcore.model.schema import CORE
from kbcore.model.state import State
from kbcore.storage import branchdir, compaction, frame, head, journal, snapshot
from kbcore.storage.head import Head
from kbcore.store.history.undo import revert_planner, rollback_planner
from kbcore.store.write_request import Planner, Request
from kbcore.view import replay
from kbcore.view.history import state_at
from kbcore.view.record_rows import FoldedRecord, fold
from tests.fault.workloads import CLOCK
from tests.support.disk.disk import File, MemoryDisk
from tests.support.effort.scale import SEED, in_time, tries
from tests.support.generators.histories import LINEAGE, content, drawn, entries_of, lines_of, states_of
from tests.support.repository.stores import AUTHOR, Stored
from tests.support.views.grown import WAYS, built, grown
from tests.support.views.late import wrong_when_late

CHANGESETS = 50
MAIN = Path("/main")


class History:
    """A random history, and what full replay comes to at each seq, as canonical bytes."""

    def __init__(self, seed: int, size: int = CHANGESETS) -> None:
        self.dice = random.Random(seed)
        self.entries = entries_of(drawn(self.dice, size))
        self.states = states_of(self.entries)
        self.known = [replay.known_of(entry) for entry in self.entries]
        self.lines = [lines_of(state, self.known[:seq]) for seq, state in enumerate(self.states)]

    def seqs(self, count: int) -> list[int]:
        """Return some seqs, the last one among them."""
        return [*self.dice.sample(range(len(self.entries)), count), len(self.entries)]


def histories(of_slice: int, of_merge: int, of_soak: int = 0) -> Iterator[int]:
    """Yield the seeds of the histories to try; a soak's next round begins where none of its own has been."""
    return in_time(range(SEED * 1000, SEED * 1000 + tries(of_slice, of_merge, of_soak)), of_merge)


@pytest.mark.fault("F18")
def test_every_snapshot_and_the_records_after_it_come_to_what_full_replay_comes_to(tally) -> None:
    for seed in histories(20, 1000, 3000):
        made = History(seed)
        # Each snapshot is taken of every third history.
        for seq in range(seed % 3, len(made.lines), 3):
            folded = canonical.read(made.lines[seq])
            for entry in made.entries[seq:]:
                fold(folded.state, entry)
            tally.tried()
            known = [*folded.known, *made.known[seq:]]
            if lines_of(folded.state, known) != made.lines[-1]:
                tally.violated(seed, f"the snapshot at seq {seq} leads elsewhere")
    tally.done()


@pytest.mark.fault("F18")
def test_a_store_that_was_compacted_and_pruned_anywhere_comes_to_what_full_replay_comes_to(tally) -> None:
    for seed in histories(10, 150, 1000):
        made = History(seed)
        fs = MemoryDisk()
        branchdir.create(fs, MAIN, CLOCK, branch="main", lineage=LINEAGE)
        places = sorted(made.seqs(4))
        for low, high in zip([0, *places], places, strict=False):
            _append(fs, made.entries[low:high])
            compaction.compact(fs, MAIN, CLOCK, _folding(fs))
        for before in (None, *sorted(made.dice.sample(range(1, CHANGESETS + 1), 2))):
            of = compaction.compact(fs, MAIN, CLOCK, _folding(fs), prune_before=before).head
            for ref in of.snapshots:
                tally.tried()
                if list(snapshot.read(fs, MAIN, of, ref)) != made.lines[ref.seq]:
                    tally.violated((seed, before), f"the snapshot at seq {ref.seq} is not the state there")
            for seq in range(replay.history_from(of), of.seq + 1, 7):
                tally.tried()
                if list(_facts(fs, of, until=seq)) != made.lines[seq]:
                    tally.violated((seed, before), f"replay up to seq {seq} leads elsewhere")
    tally.done()


def _folding(fs: MemoryDisk) -> Callable[[Head], Any]:
    return lambda of: _facts(fs, of)


def _facts(fs: MemoryDisk, of: Head, until: int | None = None) -> Any:
    folded = replay.folded(fs, MAIN, of, until=until)
    return canonical.lines(folded.state, folded.known)


def _append(fs: MemoryDisk, entries: Sequence[FoldedRecord]) -> None:
    """Add records as one write, and the head that names them."""
    of = head.read(fs, MAIN)
    tip, data = of.head, b""
    for entry in entries:
        framed, line = frame.encode(entry.seq, tip.hash, record.encode(entry.record))
        data += line
        tip = head.Tip(framed.seq, framed.sum, tip.file, tip.length + len(line), max(tip.at, entry.record.at))
    for name, new in ((of.head.file, data), ("head.json", head.encode(msgspec.structs.replace(of, head=tip)))):
        node = fs._find(MAIN / name)
        assert isinstance(node, File)
        node.data[:] = node.data + new if name == of.head.file else new


@pytest.mark.fault("F18")
def test_views_that_grew_and_views_built_again_hold_what_full_replay_comes_to(tally) -> None:
    for seed in histories(1, 40, 400):
        made = History(seed)
        steps = [(made.dice.choice(WAYS), made.dice.randint(0, 16)) for _ in range(made.dice.randint(2, 8))]
        with tempfile.TemporaryDirectory() as folder:
            for how, view in (
                (str(steps), grown(made.entries, steps, Path(folder))),
                ("built again", built(made.entries, CHANGESETS)),
            ):
                with view:
                    for seq in made.seqs(4):
                        tally.tried()
                        if lines_of(state_at(view, seq), made.known[:seq]) != made.lines[seq]:
                            tally.violated(seed, f"the view ({how}) differs at seq {seq}")
    tally.done()


@pytest.mark.sliced
@pytest.mark.fault("F18")
def test_records_that_are_folded_late_come_to_what_full_replay_comes_to(tally) -> None:
    for seed in histories(4, 300, 2000):
        for what in wrong_when_late(seed):
            tally.violated(seed, what)
        tally.tried()
    tally.done()


class Undoing:
    """A store with a random history, and by full replay how everything stood at each seq."""

    def __init__(self, folder: Path, dice: random.Random, size: int) -> None:
        self.made = Stored(folder)
        for ops in drawn(dice, size, bare=False):
            self.made.commit(ops)
        self.made.reopen()
        self.states = [State()]
        self.undos = 0
        self.replay()

    @property
    def seq(self) -> int:
        return len(self.states) - 1

    @property
    def now(self) -> State:
        return self.states[-1]

    def replay(self) -> None:
        """Fold what is new in the journal."""
        of = journal.read_head(self.made.fs, self.made.directory)
        state = _copy(self.now)
        for entry in replay.entries(self.made.fs, self.made.directory, of, skip=self.seq):
            fold(state, entry)
            self.states.append(_copy(state))

    def journal(self) -> bytes:
        return (self.made.directory / "journal-0000000001.jsonl").read_bytes()

    def undo(self, plan: Planner) -> bool:
        """Commit an undo; return whether it was taken. Raises: ``AssertionError`` when the journal did not grow."""
        before, seq = self.journal(), self.seq
        self.undos += 1
        try:
            self.made.store.commit(AUTHOR, Request(), plan, branch="main")
        except RevertConflict:
            assert self.journal() == before, "a refused undo wrote something"
            return False
        assert self.journal().startswith(before), "history was changed"
        self.replay()
        assert self.seq - seq == self.journal()[len(before) :].count(b"\n") <= 1, "more than one record was written"
        return True


def _copy(state: State) -> State:
    return State(state.nodes.values(), state.links.values(), state.sources.values())


def rolled_back(store: Undoing, dice: random.Random) -> str:
    to = dice.randint(0, store.seq)
    store.undo(rollback_planner(to))
    return "" if content(store.now) == content(store.states[to]) else f"a rollback to {to} leads elsewhere"


def reverted_range(store: Undoing, dice: random.Random) -> str:
    last = store.seq
    first = dice.randint(1, last)
    if not store.undo(revert_planner(range(first, last + 1), CORE)):
        return f"reverting {first} to {last}, the last ones, was refused"
    wanted = content(store.states[first - 1], with_files=False)
    is_right = content(store.now, with_files=False) == wanted
    return "" if is_right else f"reverting {first} to {last} leads elsewhere than seq {first - 1}"


def reverted_some(store: Undoing, dice: random.Random) -> str:
    """Revert one record or a few in the middle; then revert the revert."""
    before = store.seq
    first = dice.randint(1, before)
    seqs = range(first, min(before, first + dice.choice([0, 0, 0, 2, 5])) + 1)
    was, then, is_now = (store.states[seq].nodes for seq in (first - 1, seqs[-1], before))
    touched = {key for key in was.keys() | then.keys() if was.get(key) != then.get(key)}
    if not store.undo(revert_planner(seqs, CORE)) or store.seq == before:
        return ""
    for key in touched:
        found = store.now.nodes.get(key)
        if then.get(key) == is_now.get(key) and _plain(found) != _plain(was.get(key)):
            return f"reverting {[*seqs]} left {key} as {found}, not as {was.get(key)}"
    if not store.undo(revert_planner([store.seq], CORE)):
        return f"reverting the revert of {[*seqs]} was refused"
    is_back = content(store.now, with_files=False) == content(store.states[before], with_files=False)
    return "" if is_back else f"reverting the revert of {[*seqs]} leads elsewhere than seq {before}"


def _plain(node: Node | None) -> list[bytes]:
    return content(State([node] if node else []), with_files=False)


@pytest.mark.fault("F22")
def test_an_undo_of_anything_leads_to_what_time_travel_shows_and_the_journal_only_grows(tally) -> None:
    for seed in histories(1, 46, 300):
        dice = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            store = Undoing(Path(folder), dice, 20)
            for number in range(tries(6, 10)):
                act = dice.choice([rolled_back, reverted_range, reverted_some, reverted_some])
                try:
                    what = act(store, dice)
                except AssertionError as error:
                    what = str(error)
                if what:
                    tally.violated((seed, number), what)
            tally.tried(store.undos)
            view = store.made.view()
            for seq in (*dice.sample(range(store.seq), 3), store.seq):
                if lines_of(state_at(view, seq)) != lines_of(store.states[seq]):
                    tally.violated(seed, f"time travel to seq {seq} is not what replay comes to")
            store.made.close()
    tally.done()
