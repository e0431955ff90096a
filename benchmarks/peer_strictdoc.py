"""KB against StrictDoc: from the same requirements to a checked state, for the first time and again.

StrictDoc checks while it builds a site of HTML, and KB builds none: the figures are the time that a user waits.
"""

from __future__ import annotations

import shutil

from benchmarks import generate, peer_documents, peers
from benchmarks.measure import Sample, in_turns, process
from benchmarks.peers import Found
from benchmarks.place import Place
from benchmarks.table import Versus

TOOL = peers.STRICTDOC


def run(place: Place, tool: Found) -> list[Versus]:
    """Measure ``strictdoc export`` against ``kb sync`` and ``kb check``."""
    root, cache = place.directory / "strictdoc", place.directory / "strictdoc-temporary"
    root.mkdir()
    count = place.sizes.requirements
    text = "".join(_node(one) for one in generate.requirements(count))
    (root / "requirements.sdoc").write_text(f"[DOCUMENT]\nTITLE: Requirements\n{text}", encoding="utf-8")
    env = {**place.env, "TMPDIR": str(cache)}

    def again() -> Sample:
        return process([tool.program, "export", ".", "--output-dir", "site"], cwd=root, env=env)

    def first() -> Sample:
        for folder in (root / "site", cache):
            shutil.rmtree(folder, ignore_errors=True)
        cache.mkdir()
        return again()

    rounds = max(1, place.sizes.long_rounds // 2)
    builds = in_turns(lambda: peer_documents.taken_in_and_checked(place), first, rounds=rounds, warm_ups=0)
    repeats = in_turns(lambda: peer_documents.checked_again(place), again, rounds=rounds)
    return [
        Versus(work, count, "requirements", kb, tool.label, theirs, kb.peak_bytes, theirs.peak_bytes)
        for work, (kb, theirs) in (("take in and check / build", builds), ("the same, nothing changed", repeats))
    ]


def _node(one: generate.Requirement) -> str:
    relation = f"RELATIONS:\n- TYPE: Parent\n  VALUE: {one.target}\n" if one.target else ""
    facts = f"UID: {one.id}\nSTATUS: Active\nTAGS: {', '.join(one.tags)}\nTITLE: {one.title}\n"
    return f"\n[REQUIREMENT]\n{facts}STATEMENT: >>>\n{one.text}\n<<<\n{relation}"
