"""No code reads a sentence: with every message of the core replaced, all else of each answer stays the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.mcp.agents import ROOT

SCRAMBLED = """
import hashlib, sys
import msgspec
from kbcore import errors
from kbcore.rules import registry, rule

def scramble(text):
    return "x" + hashlib.sha256(text.encode()).hexdigest()[:12] + "."

def scrambling(kind):
    class Scrambled(kind, frozen=True):
        def __post_init__(self):
            if not self.message.startswith("x"):
                msgspec.structs.force_setattr(self, "message", scramble(self.message))
    Scrambled.__name__ = kind.__name__
    return Scrambled

errors.Problem = scrambling(errors.Problem)
rule.Finding = scrambling(rule.Finding)
made = errors.KBError.__init__
def init(self, message, **rest):
    made(self, scramble(message), **rest)
errors.KBError.__init__ = init
"""
RUN = """
import json, sys
from pathlib import Path
from tests.mcp.agents import direct
from tests.mcp.test_hints import CALLS, fill
from tests.support.project import Project

project = Project(Path(sys.argv[1]))
fill(project)
with direct(project.root) as tools:
    answers = [tools.answer(name, **arguments) for name, arguments in CALLS]
    answers += [tools.answer("kb_check"), tools.answer("kb_upsert", edges=[
        {"type": "depends_on", "from": "ENDS", "to": "OWN"}])]
print(json.dumps(answers))
"""


def answers(folder: Path, before: str) -> Any:
    """Return what the calls of ``test_hints`` are answered in a process of their own, after some code."""
    command = [sys.executable, "-c", before + RUN, str(folder)]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def without_sentences(value: Any) -> Any:
    """Return an answer without its messages, and without what differs from run to run."""
    if isinstance(value, dict):
        volatile = {"message", "warnings", "note", "at", "created_at", "updated_at", "expected_at", "changeset_id"}
        return {name: without_sentences(inner) for name, inner in value.items() if name not in volatile}
    return [without_sentences(inner) for inner in value] if isinstance(value, list) else value


def sentences(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["message"]] if isinstance(value.get("message"), str) else []
        return own + [one for inner in value.values() for one in sentences(inner)]
    return [one for inner in value for one in sentences(inner)] if isinstance(value, list) else []


def test_answers_are_the_same_but_for_the_sentences_when_every_message_is_another(tmp_path: Path) -> None:
    usual, scrambled = answers(tmp_path / "a" / "repo", ""), answers(tmp_path / "b" / "repo", SCRAMBLED)
    assert without_sentences(scrambled) == without_sentences(usual)
    changed = [one for one, other in zip(sentences(scrambled), sentences(usual), strict=True) if one != other]
    assert len(changed) > 30, "the messages were not replaced"
