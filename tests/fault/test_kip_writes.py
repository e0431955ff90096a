"""K2: random commands of KML leave what a plain model of KIP's data comes to, and answer what it answers.

Each is repeated, tried as a dry run, now and then reverted, and in the end everything is folded again.
"""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kbcore.errors import KipRefused
from kbcore.model.concepts import DEFINING
from kbcore.store.history.undo import revert
from tests.support.effort.scale import SEED, in_time, tries
from tests.support.generators.kip_writes import DEFINED, PREDICATES, TYPES, Dice, text_of
from tests.support.oracles.kip_model import Key, Model, Refused, in_order, same
from tests.support.repository.kip_writing import Kip
from tests.support.repository.places import caches_at
from tests.support.repository.project import AUTHOR

COMMANDS = 14
_STAMPS = frozenset(
    {
        "source",
        "author",
        "created_at",
        "updated_at",
        "decay_applied_at",
        "_created_at",
        "_version",
        "_merged_from",
        "_merged_values",
    }
)
State = dict[Key, dict[str, dict[str, Any]]]


def state_of(kip: Kip) -> State:
    """Return what a store holds, as the model would."""
    return {
        key: {
            "attributes": one["attributes"],
            "metadata": {name: value for name, value in one["metadata"].items() if name not in _STAMPS},
        }
        for key, one in kip.shown_by_key()
        if one.get("type") not in DEFINING
    }


def outcome_of(kip: Kip, command: dict[str, Any], **options: Any) -> Any:
    """Return the answer of a command, or the code of its refusal; ids as the keys of the model."""
    try:
        reported = kip(text_of(command), **options)
    except KipRefused as error:
        return error.data["kip_code"]
    if reported.get("merged"):
        values = [[one["key"], one["kept"]["value"], one["other"]["value"]] for one in reported["conflicts"]]
        return reported | {"conflicts": in_order(values)}
    if "blocks" not in reported:
        return reported
    reported["nodes"] = len(reported.pop("upsert_concept_nodes"))
    reported["links"] = len(reported.pop("upsert_proposition_links"))
    del reported["blocks"]
    return reported


def expected_of(model: Model, command: dict[str, Any]) -> Any:
    try:
        reported = model.run(command)
    except Refused as refused:
        return str(refused)
    return {name: len(found) for name, found in reported.items()} if "nodes" in reported else reported


def run(root: Path, seed: int) -> int:
    """Run one sequence; returns how many commands were carried out or refused."""
    kip, dice = Kip(root), Dice(seed)
    kip(DEFINED)
    model = Model(set(TYPES), set(PREDICATES))
    for _ in range(COMMANDS):
        command = dice.command(list(model.elements))
        before, seq = copy.deepcopy(model.elements), kip.seq()
        dry = outcome_of(kip, command, dry_run=True)
        expected = expected_of(model, command)
        found = outcome_of(kip, command)
        assert same(found, expected), f"{text_of(command)}\nfound    {found}\nexpected {expected}"
        assert dry == ({"dry_run": True, **found} if isinstance(found, dict) else found), text_of(command)
        assert same(state_of(kip), model.elements), text_of(command)
        is_changed = kip.seq() > seq
        changes = not same(before, model.elements) or _merged(command, expected)
        # Stating a link again whose target has changed since confirms it: a record that changes nothing else.
        assert is_changed if changes else not is_changed or command["do"] == "upsert", text_of(command)
        if command["do"] == "upsert":
            outcome_of(kip, command)
            assert kip.seq() == seq + is_changed, f"written again: {text_of(command)}"
        if dice.random.random() < 0.15:
            kip.project.close()  # what is opened next is folded into a base
        if is_changed and dice.random.random() < 0.15:
            workspace = kip.project.workspace()
            revert(workspace, "main", AUTHOR, [kip.seq()], follows_head=True)
            model.elements = before
            assert same(state_of(kip), before), f"reverted: {text_of(command)}"
    kip.project.close()
    shutil.rmtree(caches_at(root) / "main", ignore_errors=True)
    assert same(state_of(kip), model.elements), "folded again"
    kip.project.close()
    return COMMANDS


def _merged(command: dict[str, Any], expected: Any) -> bool:
    return command["do"] == "merge" and isinstance(expected, dict)


@pytest.mark.sliced
@pytest.mark.fault("K2")
def test_random_commands_leave_and_answer_what_the_model_does(tmp_path: Path, tally) -> None:
    for seed in in_time(range(SEED * 1000, SEED * 1000 + tries(6, 60, 2000)), 60):
        root = tmp_path / str(seed)
        try:
            tally.tried(run(root, seed))
        except AssertionError as error:
            tally.violated(seed, json.dumps(str(error)))
        shutil.rmtree(root)
    tally.done()
