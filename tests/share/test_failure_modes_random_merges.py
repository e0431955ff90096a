"""Failure mode of sharing: clones that write through KB alone, pack and merge at random never have a conflict of text.

In every other history files are packed, and in one of three values are redacted.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence

import pytest

from kbcore.errors import InvalidQuery, NotFound, Rejected
from tests.support.effort.scale import SCALE, SEED
from tests.support.repository.clones import Clone, hold
from tests.support.repository.repos import run_git

ACTORS = ("ann", "bob", "eve")
IDS = [f"FACT-{number}" for number in range(5)]
TAGS = ("red", "blue", "green")
MERGES = 30
SECRETS = ("(New|Title) [23]", "green")
"""The texts that the clones of a history redact: git has a conflict where two take different texts out of one pack."""


def write(clone: Clone, chance: random.Random) -> None:
    """Write something that a client may write; what the store refuses is not written."""
    key, other = chance.sample(IDS, 2)
    value = chance.randrange(4)
    there = clone.titles()
    writes: Sequence[Callable[[], object]] = [
        lambda: clone.fact(key, f"New {value}", tags=chance.sample(TAGS, 2)),
        lambda: clone.add(key, title=f"Title {value}"),
        lambda: clone.add(key, attributes={"k": value}),
        lambda: clone.add(key, tags=chance.sample(TAGS, value % 3)),
        lambda: clone.add("REQ-1", attributes={"note": value}),
        lambda: clone.link(key, other, confidence=value / 4),
        lambda: clone.remove(key),
        lambda: clone.rename(key, f"FACT-{chance.randrange(5, 9)}"),
        lambda: clone.resolve(*min(clone.conflicts()), 1) if clone.conflicts() else None,
    ]
    do = writes[0] if key not in there and chance.random() < 0.8 else chance.choice(writes)
    with contextlib.suppress(Rejected, NotFound, InvalidQuery):
        do()


def merge(clone: Clone, other: Clone) -> None:
    """Merge what another clone has committed; text must never conflict."""
    done = run_git(
        clone.root, "pull", "--quiet", "--no-rebase", "--no-edit", f"../{other.actor}", "main", env=clone.machine.env
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not clone.git("status", "--porcelain")


def pack(clone: Clone, chance: random.Random) -> None:
    """Pack the change files that are older than some of them, and commit that, with new ones or alone."""
    times = sorted(change.at for changes in clone.committed().values() for change in changes)
    if not times or not clone.pack(chance.choice([*times, "2100"])).removed:
        return
    if chance.random() < 0.5:
        clone.git("commit", "--quiet", "-m", "pack")
    else:
        write(clone, chance)
        clone.commit("pack and more")


@pytest.mark.sliced(1)
@pytest.mark.parametrize("seed", range(34))
def test_random_merges_never_conflict_as_text_and_agree(clone: Callable[..., Clone], seed: int) -> None:
    chance = random.Random(SEED + seed)
    clones = [clone(actor) for actor in ACTORS]
    for number in range(MERGES):
        one, other = chance.sample(clones, 2)
        for _ in range(chance.randrange(1, 4)):
            write(one, chance)
        one.commit()
        if seed % 2 and chance.random() < 0.3:
            pack(one, chance)
        if seed % 3 == 0 and chance.random() < 0.2:
            one.redact(SECRETS[seed % 2])
            one.commit()
        merge(one, other)
        if number % 10 == 0 or SCALE != "slice":
            hold(one)
        else:
            one.sync()
    for one in (*clones, *clones):
        one.commit()
        for other in clones:
            if other is not one:
                merge(one, other)
    hold(*clones)
    assert [one.facts() for one in clones] == [clones[0].facts()] * len(clones)
