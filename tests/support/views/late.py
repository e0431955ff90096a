"""Random histories that touch several small graphs, and a view that folds some of their records late."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kbcore.ids import is_link_id, link_id
from kbcore.model.record import DropNode, Operation, PutNode, StateLink
from kbcore.model.state import State
from kbcore.view.database import Room
from kbcore.view.history import state_at
from kbcore.view.record_rows import FoldedRecord, fold
from kbcore.view.view import View
from tests.support.generators.histories import FILES, IDS, LINKS, basis_at, drawn, entries_of, lines_of, states_of
from tests.support.views.grown import adopt, built

GROUPS = 4
"""So many graphs of few entities, which records of one history touch in rotation: some records meet, others do not."""


def renamed(end: str, group: int) -> str:
    if not is_link_id(end):
        return f"{end}{group}"
    return link_id(*next(of_group(edge, group) for edge in LINKS if link_id(*edge) == end))


def of_group(edge: tuple[str, str, str, str], group: int) -> tuple[str, str, str, str]:
    name, why, from_id, to_id = edge
    return name, why, renamed(from_id, group), renamed(to_id, group)


def moved(op: Operation, group: int) -> Operation:
    if isinstance(op, PutNode | DropNode):
        return msgspec.structs.replace(op, id=renamed(op.id, group))
    if hasattr(op, "from_id"):
        return msgspec.structs.replace(op, from_id=renamed(op.from_id, group), to_id=renamed(op.to_id, group))
    return op


def history(dice: random.Random, size: int) -> list[FoldedRecord]:
    """Return a history whose records each touch one group, and now and then two."""
    left = [list(drawn(dice, size)) for _ in range(GROUPS)]
    records = []
    for _ in range(size):
        chosen = dice.sample(range(GROUPS), dice.choice([1, 1, 1, 1, 2]))
        records.append([moved(op, group) for group in chosen for op in left[group].pop(0)])
        if dice.random() < 0.2:
            one, other = dice.sample(range(GROUPS), 2)
            records[-1].append(
                StateLink(type="depends_on", from_id=renamed("A", one), to_id=renamed("B", other), base=0)
            )
    return entries_of(records)


KEYS = [renamed(key, group) for key in IDS for group in range(GROUPS)]
LINK_KEYS = [link_id(*of_group(edge, group)) for edge in LINKS for group in range(GROUPS)]


def _wrong_answers(dice: random.Random, view: View, state: State) -> Iterator[str]:
    """Ask the view a few things by key, and yield what differs from the state."""
    for _ in range(dice.randrange(3)):
        ask = dice.choice([_of_nodes, _of_links, _of_ends, _of_files, _of_changesets])
        keys, found, wanted = ask(dice, view, state)
        if found != wanted:
            yield f"{ask.__name__} {keys}"


Answer = tuple[Sequence[str], object, object]


def _of_nodes(dice: random.Random, view: View, state: State) -> Answer:
    keys = dice.sample(KEYS, 2)
    return keys, {one.id: one for one in view.nodes(keys)}, {k: state.nodes[k] for k in keys if k in state.nodes}


def _of_links(dice: random.Random, view: View, state: State) -> Answer:
    keys = dice.sample(LINK_KEYS, 2)
    return keys, {one.id: one for one in view.links(keys)}, {k: state.links[k] for k in keys if k in state.links}


def _of_ends(dice: random.Random, view: View, state: State) -> Answer:
    keys = dice.sample(KEYS + LINK_KEYS, 2)
    wanted = {k: one for k, one in state.links.items() if {one.from_id, one.to_id} & {*keys}}
    return keys, {one.id: one for one in view.touching(keys)}, wanted


def _of_files(dice: random.Random, view: View, state: State) -> Answer:
    paths = dice.sample(FILES, 1)
    return paths, [*view.sources(paths)], [state.sources[path] for path in paths if path in state.sources]


def _of_changesets(_: random.Random, view: View, __: State) -> Answer:
    names = [f"cs-{seq}" for seq in range(1, view.seq + 3)]
    found = [seq for seq, name in enumerate(names, start=1) if (view.changeset(name) or (0,))[0] == seq]
    return names, found, [*range(1, view.seq + 1)]


def wrong_when_late(seed: int, size: int = 40) -> list[str]:
    """Return what was wrong with a view that took in a random history by random steps: nothing, if all is well."""
    dice = random.Random(seed)
    entries = history(dice, size)
    with tempfile.TemporaryDirectory() as folder:
        return list(_stepped(dice, entries, states_of(entries), Path(folder)))


def _stepped(
    dice: random.Random, entries: Sequence[FoldedRecord], states: Sequence[State], folder: Path
) -> Iterator[str]:
    """Let a view take a history in by random steps, and yield what was wrong after each and at the end."""
    position = dice.randrange(len(entries) // 2)
    view, published = built(entries, position, Room(folders=(str(folder),))), 0
    while position < len(entries):
        match dice.randrange(8):
            case 0 | 1 | 2:
                part = entries[position : position + dice.randint(1, 4)]
                position += len(part)
                view.extend(iter(part), basis_at(entries, position))
            case 3 | 4:
                adopt(view, entries, entries[position])
                position += 1
            case 5:
                # Planned on another view of this process.
                was = states[position]
                changes = fold(State(was.nodes.values(), was.links.values(), was.sources.values()), entries[position])
                position += 1
                view.adopt(entries[position - 1], changes, basis_at(entries, position))
            case 6:
                if not view._tail.is_base_empty:
                    view._base.filter.make()
            case _:
                published += 1
                path = str(folder / f"{published}.duckdb")
                view.write_base(path)
                view.rebase(path)
        yield from (f"{what} at seq {position}" for what in _wrong_answers(dice, view, states[position]))
    for seq, state in enumerate(states):
        if lines_of(state_at(view, seq)) != lines_of(state):
            yield f"state at seq {seq}"
    view.close()
