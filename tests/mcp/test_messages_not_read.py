"""No code reads a sentence: with every message of the core replaced, all else of each answer stays the same.

Each message is replaced by one that no other has, so that code which compares two of them is found as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.agents import ROOT

SCRAMBLED = """
import itertools
import msgspec
from kbcore import errors
from kbcore.extract import facts
from kbcore.maintenance import findings
from kbcore.model import graph
from kbcore.rules import registry, rule
from kbcore.storage import verify
from kbcore.text import problems

numbers = itertools.count()

def scrambling(kind):
    def scrambled(self):
        if not self.message.startswith("~"):
            msgspec.structs.force_setattr(self, "message", f"~{next(numbers)}.")
    return scrambled

def replace(module, name):
    kind = getattr(module, name)
    options = {"frozen": True, "omit_defaults": kind.__struct_config__.omit_defaults}
    new = type(kind)(name, (kind,), {"__post_init__": scrambling(kind), "__module__": kind.__module__}, **options)
    for loaded in [*sys.modules.values()]:
        for attribute, value in [*vars(loaded).items()] if loaded else ():
            if value is kind:
                setattr(loaded, attribute, new)

import sys
import kbcli.app, kbmcp.server
from kbcore import checks, config, editing, extract, git, kip, maintenance, query, rules, store, sync, view, watch
from kbcore.checks.introduced import since, staged, written
from kbcore.kip import run
from kbcore.maintenance import doctor, proof
from kbcore.sync import run as sync_run
replace(errors, "Problem")
replace(rule, "Finding")
replace(problems, "FileProblem")
replace(findings, "DoctorFinding")
replace(verify, "ProofFinding")
made = errors.KBError.__init__
def init(self, message, **rest):
    made(self, f"~{next(numbers)}.", **rest)
errors.KBError.__init__ = init
"""
TOOLS = """
import json, sys
from pathlib import Path
from tests.mcp.agents import direct
from tests.mcp.test_hints import CALLS, fill
from tests.support.repository.project import Project

project = Project(Path(sys.argv[1]))
fill(project)
with direct(project.root) as tools:
    answers = [tools.answer(name, **arguments) for name, arguments in CALLS]
    answers += [tools.answer("kb_check"), tools.answer("kb_upsert", edges=[
        {"type": "depends_on", "from": "ENDS", "to": "OWN"}])]
print(json.dumps(answers))
"""
COMMANDS = """
import contextlib, io, json, os, sys
from pathlib import Path
from kbcli.app import main
from tests.support.repository.project import Project, document

project = Project(Path(sys.argv[1]))
REQS = "docs/requirements"
project.sync({
    f"{REQS}/1.md": document("REQ-1", title="T", status="open", priority="must", links="[REQ-9]"),
    f"{REQS}/2.md": document("REQ-2", title="T", status="open", links="[REQ-8]"),
    f"{REQS}/bad.md": "---\\nid: [\\n---\\n",
    "docs/symbols.yaml": "symbols:\\n  - {id: f, title: f}\\n  - {id: f, title: g}\\n",
})
answers = []

def run(*words):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        status = main(["-C", str(project.root), *words])
    try:
        said = json.loads(out.getvalue() or "null")
    except ValueError:
        said = len(out.getvalue().splitlines())
    answers.append([words, status, said])

run("check", "--json")
run("sync", "--json")
run("check", "--since", "1", "--json")
(project.root / REQS / "3.md").write_text(document("REQ-3", title="T", status="open", priority="must"))
(project.root / REQS / "bad.md").write_text("---\\nid: {\\n---\\n")
run("check", "--json")
run("sync", "--json")
run("check", "--since", "1", "--json")
run("check", "--staged", "--json")
run("check", "--format", "sarif")
run("check", "--write-baseline", "--json")
run("check", "--json")
run("set", "REQ-1", "status=done", "--json")
run("set", "REQ-1", "statu=done", "--dry-run", "--json")
run("rename", "REQ-1", "REQ-2", "--json")
run("rename", "REQ-2", "REQ-4", "--json")
run("check", "--json")
run("revert", "1", "--json")
run("kip", "--json", 'UPSERT { CONCEPT { {type:"Requirement",name:"REQ-3"} SET ATTRIBUTES {title:"x", nothing:1} } }')
run("kip", "--json", 'UPSERT { CONCEPT { {type:"Person",name:"Ada"} } }')
run("kip", "--json", "FIND(?x WHERE")
run("sleep", "--json", "--force")
run("config", "set", "kip", '{"rowLimit": 1.5}', "--json")
(project.root / ".kb" / "config.json").write_text('{"rulez": 1, "kip": {"rowLimit": "x"}}')
run("check", "--json")
run("doctor", "--json")
(project.root / ".kb" / "config.json").write_text("{}")
run("verify", "--json")
head = project.workspace().folders.directory_of("main")
journal = sorted(head.glob("journal*"))[-1]
journal.write_bytes(journal.read_bytes()[:-20] + b"x" * 20)
run("verify", "--json")
run("doctor", "--json")
run("query", "--json")
print(json.dumps(answers))
"""
VOLATILE = {
    "message",
    "text",
    "warnings",
    "note",
    "notes",
    "at",
    "created_at",
    "updated_at",
    "expected_at",
    "changeset_id",
}
VOLATILE |= {
    "store_id",
    "took_ms",
    "seconds",
    "cycle",
    "last_cycle",
    "reason",
    "hash",
    "size",
    "mtime",
    "problems",
    "offset",
    "actual",
}


def answers(folder: Path, before: str, calls: str) -> Any:
    """Return what calls are answered in a process of their own, after some code."""
    command = [sys.executable, "-c", before + calls, str(folder)]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1].replace(str(folder), "REPO"))


def without_sentences(value: Any) -> Any:
    """Return an answer without its messages, and without what differs from run to run."""
    if isinstance(value, dict):
        return {name: without_sentences(inner) for name, inner in value.items() if name not in VOLATILE}
    return [without_sentences(inner) for inner in value] if isinstance(value, list) else value


def sentences(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["message"]] if isinstance(value.get("message"), str) else []
        return own + [one for inner in value.values() for one in sentences(inner)]
    return [one for inner in value for one in sentences(inner)] if isinstance(value, list) else []


@pytest.mark.sliced(1)
@pytest.mark.parametrize("calls", [TOOLS, COMMANDS], ids=["tools", "commands"])
def test_answers_are_the_same_but_for_the_sentences_when_every_message_is_another(tmp_path: Path, calls: str) -> None:
    usual, scrambled = answers(tmp_path / "a" / "repo", "", calls), answers(tmp_path / "b" / "repo", SCRAMBLED, calls)
    for one, other in zip(without_sentences(scrambled), without_sentences(usual), strict=True):
        assert one == other
    assert sum(one.startswith("~") for one in sentences(scrambled)) > 30, "the messages were not replaced"
