"""A dry run of a random command answers what the run after it answers, and writes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kbcore.errors import KipRefused
from tests.core.kip.kml.test_export_laws import keys_of
from tests.support.generators.kip_writes import DEFINED, TYPES, Dice, text_of
from tests.support.repository.kip_writing import Kip

COMMANDS = 30
DRAWN = (Dice.upsert, Dice.delete_keys, Dice.update, Dice.upsert, Dice.merge, Dice.delete_propositions)
"""In turn; each sixth time concepts are deleted."""


def answer_of(kip: Kip, text: str, **options: Any) -> Any:
    """Return the answer of a command, or its refusal."""
    try:
        return kip(text, **options)
    except KipRefused as refused:
        return refused.as_json()


@pytest.mark.sliced(1)
@pytest.mark.parametrize("seed", [1, 4, 5])
def test_a_dry_run_answers_what_the_run_after_it_answers(tmp_path: Path, seed: int) -> None:
    kip, dice = Kip(tmp_path / "kb"), Dice(seed)
    kip(DEFINED)
    made = [f'CONCEPT {{ {{type: "{name}", name: "n{number}"}} }}' for name in TYPES for number in (1, 2, 3)]
    kip(f"UPSERT {{ {' '.join(made)} }}")
    kinds = set()
    for number in range(COMMANDS):
        draw = Dice.delete_concepts if number % 12 == 11 else DRAWN[number % len(DRAWN)]
        text = text_of(draw(dice, keys_of(kip)))
        before = kip.seq()
        tried = answer_of(kip, text, dry_run=True)
        assert kip.seq() == before
        done = answer_of(kip, text)
        if "code" in done:
            assert tried == done
            continue
        assert tried == {"dry_run": True, **done}
        kinds |= {name for name, value in done.items() if value}
    assert kinds >= {"upsert_concept_nodes", "upsert_proposition_links", "updated"}
    kip.project.close()


def test_a_dry_run_of_a_deletion_counts_what_hangs_on_the_concept(kip: Kip) -> None:
    person = '{type: "Person", name: "A"}'
    kip(
        f"UPSERT {{ CONCEPT {{ {person} "
        'SET PROPOSITIONS { ("belongs_to_domain", {type: "Domain", name: "Unsorted"}) } } }'
    )
    text = f"DELETE CONCEPT ?x DETACH WHERE {{ ?x {person} }}"
    assert kip(text, dry_run=True) == {"dry_run": True, "deleted_concepts": 1, "deleted_propositions": 1}
    assert kip(text) == {"deleted_concepts": 1, "deleted_propositions": 1}
