"""KB against Doorstop: import the same requirements, and check them."""

from __future__ import annotations

import csv
import shutil

from benchmarks import generate, peer_documents, peers
from benchmarks.measure import Sample, in_turns, process
from benchmarks.peers import Found
from benchmarks.place import Place
from benchmarks.table import Versus
from tests.support.repository.repos import make_repository

TOOL = peers.DOORSTOP


def run(place: Place, tool: Found) -> list[Versus]:
    """Measure ``doorstop import`` of a table against a first sync, and ``doorstop`` against ``kb check``."""
    root = make_repository(place.directory / "doorstop")
    count = place.sizes.requirements
    with (root / "requirements.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["uid", "level", "header", "text", "links"])
        for number, one in enumerate(generate.requirements(count), 1):
            table.writerow([_uid(one.id), f"1.{number}", one.title, one.text, _uid(one.target or "")])

    def doorstop(*words: str) -> Sample:
        return process([tool.program, *words], cwd=root, env=place.env)

    def imported() -> Sample:
        shutil.rmtree(root / "items", ignore_errors=True)
        doorstop("create", "REQ", "items", "--digits", "5")
        return doorstop("import", "requirements.csv", "REQ")

    rounds = max(1, place.sizes.long_rounds // 2)
    kb, theirs = in_turns(lambda: peer_documents.taken_in(place), imported, rounds=rounds, warm_ups=0)
    checks, their_checks = in_turns(lambda: peer_documents.checked(place), doorstop, rounds=rounds)
    return [
        Versus(work, count, "requirements", ours, tool.label, other, ours.peak_bytes, other.peak_bytes)
        for work, ours, other in (("take in", kb, theirs), ("check", checks, their_checks))
    ]


def _uid(key: str) -> str:
    """Return an id as Doorstop writes it."""
    return key.replace("-", "")
