"""EXPORT of a random graph, page by page, and the import of its capsules into an empty store give the same graph."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from kbcore.config.settings import KipLimits
from kbcore.errors import KipRefused
from kbcore.kip.binding import read
from kbcore.kip.elements import element_json, is_restated, without_stamps
from kbcore.kip.kml.export import export
from kbcore.kip.run_statement import prepared
from tests.support.generators.kip_writes import DEFINED, PREDICATES, TYPES, Dice, text_of
from tests.support.oracles.kip_model import Key
from tests.support.repository.kip_writing import Kip

COMMANDS = 24
OTHERS = {8: Dice.update, 14: Dice.merge, 18: Dice.delete_keys, 20: Dice.update}
EVERY_TYPE = " UNION ".join(f'{{ ?x {{type: "{name}"}} }}' for name in ("$PropositionType", *TYPES))
EVERYTHING = f'EXPORT ?x WHERE {{ ?x {{type: "$ConceptType"}} UNION {EVERY_TYPE} UNION {{ ?x (?s, ?p, ?o) }} }}'


def graph(kip: Kip) -> dict[str, Any]:
    """Return what a store holds beside the vocabulary that is the same everywhere, as KIP shows it."""
    made = prepared(kip.project.view(), kip.schema()).vocabulary
    core = {one.id: element_json(one, made.names) for one in (*made.nodes, *made.links)}
    return {
        key: {**one, "metadata": without_stamps(one["metadata"])}
        for key, one in kip.shown().items()
        if key not in core or not is_restated(one, core[key])
    }


def keys_of(kip: Kip) -> list[Key]:
    """Return the elements of a store as those that draw commands name them."""
    own = {*PREDICATES}
    return [key for key, one in kip.shown_by_key() if one.get("type") in TYPES or one.get("predicate") in own]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("seed", [2, 3, 6])
def test_a_random_graph_comes_back_from_its_capsules(tmp_path: Path, seed: int) -> None:
    kip, dice = Kip(tmp_path / "from"), Dice(seed)
    kip(DEFINED)
    for number in range(COMMANDS):
        draw = OTHERS.get(number, Dice.upsert)
        with contextlib.suppress(KipRefused):  # what is refused leaves the graph as it was
            kip(text_of(draw(dice, keys_of(kip))))
    wanted = graph(kip)
    assert len(wanted) > 8
    for limit in (0, 3):
        other = Kip(tmp_path / f"to{limit}")
        cursor, ended = "", False
        while not ended:
            page = (f" LIMIT {limit}" if limit else "") + (f' CURSOR "{cursor}"' if cursor else "")
            tree: Any = read(EVERYTHING + page)
            found = export(kip.project.view(), kip.schema(), tree, KipLimits())
            if found.result["capsule"]:
                other(found.result["capsule"])
            cursor, ended = found.next_cursor, not found.next_cursor
        assert graph(other) == wanted
        other.project.close()
        shutil.rmtree(tmp_path / f"to{limit}")
    kip.project.close()
