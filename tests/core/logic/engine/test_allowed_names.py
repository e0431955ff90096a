"""Each predicate that a goal may call was looked at: a new version of an engine or a library adds none by itself."""

from __future__ import annotations

from pathlib import Path

from kbcore.logic.engine import EngineProcess, available
from kbcore.logic.engine.libraries import LISTED, names_term

ALLOWED = Path(__file__).with_name("allowed_names.txt")
"""The names with all libraries loaded. What is in it computes on its arguments, prints, or has its goals checked."""


def test_an_engine_allows_only_predicates_that_were_looked_at(engine: dict[str, str]) -> None:
    process = EngineProcess(available(engine).required())
    try:
        loaded = process.ask(f"libraries({names_term(LISTED)}).\n", time_limit_s=60)["libraries"]
        known = process.ask("known.\n", time_limit_s=60)
    finally:
        process.kill()
    assert loaded == ["loaded"] * len(LISTED)
    assert {*known["own"], *known["others"]} - {*ALLOWED.read_text(encoding="utf-8").splitlines()} == set()
