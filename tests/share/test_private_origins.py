"""Changes that say what private changes alone stated: found once for each change, and by computing all again."""

from __future__ import annotations

import random
import time

from kbcore.model.claims.change import (
    SELF,
    AddEdge,
    AddMember,
    Change,
    Claim,
    Create,
    Delete,
    EdgeRef,
    EntityRef,
    RemoveEdge,
    RemoveMember,
    Rename,
    SetField,
    UnsetField,
    claim_name,
    creation_of,
)
from kbcore.share.private_origins import WrittenChange, private_origins

IDS = ("E0", "E1", "E2", "E3")
MOST = 12


def change(number: int, *claims: Claim) -> Change:
    return Change(f"{number:032x}", "2026", "ann", "kb/test", claims)


def claim(chance: random.Random) -> Claim:
    key, maker = chance.choice(IDS), f"{chance.randrange(MOST):032x}"
    on = EntityRef(key, (creation_of(maker, key),)) if chance.random() < 0.5 else EntityRef(key)
    edge = EdgeRef("t", *[EntityRef(key) for key in chance.choices(IDS, k=2)])
    ref, value, was = chance.choice([on, edge]), chance.choice("ab"), chance.choice("ab")
    removes = (claim_name(f"{chance.randrange(MOST):032x}", 0),)
    return chance.choice([
        Create(on.id), SetField(ref, "title", now=value, was=was), UnsetField(ref, "title"), Delete(on),
        AddMember(on, "tags", now=value), RemoveMember(on, "tags", removes=removes), Rename(on, chance.choice(IDS)),
        AddEdge(edge), RemoveEdge(edge, removes),
    ])  # fmt: skip


def test_nothing_is_left_that_what_was_found_makes_private_and_each_is_so_by_what_was_found_before() -> None:
    for seed in range(500):
        chance = random.Random(seed)
        changes = [change(at, *[claim(chance) for _ in range(chance.randrange(1, 4))]) for at in range(MOST)]
        private, shared, rest = changes[:3], changes[3:5], changes[5:]
        others = [WrittenChange(one, chance.random() < 0.3) for one in rest]
        found = private_origins(others, private, shared)
        left = [one for one in others if one.change.id not in found]
        hidden = [*private, *(one.change for one in others if one.change.id in found)]
        assert not private_origins(left, hidden, shared), seed
        mixed = chance.sample(others, len(others))
        assert private_origins(mixed, private[::-1], shared) == found, seed


def test_a_long_chain_of_changes_takes_time_in_proportion_to_its_length() -> None:
    others = []
    for at in range(2_000):
        edge = EdgeRef("t", EntityRef(f"E{at + 1}", (SELF,)), EntityRef(f"E{at}"))
        others.append(WrittenChange(change(at, Create(f"E{at + 1}"), AddEdge(edge)), restores=False))
    begun = time.process_time()
    assert len(private_origins(others, [change(10_000, Create("E0"))])) == len(others)
    assert time.process_time() - begun < 4, "it takes 0.1 s, and 29 s where each round looks at all changes"
