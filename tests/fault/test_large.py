"""L1: every command, tool, prompt, resource and KIP question ends on large stores, whatever lies in base and tail.

Statements that are right on a small store may never end on a large one: it depends on how many rows are in the base, on
how many came after it, and on whether anything was ever changed. Each command is a process that is ended when it has
taken ``TIME_S`` by itself: what it waits for a processor or a disk that others use does not count. A call of a server
has the time of ``Session``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import pytest

from benchmarks.kip_read import QUESTIONS
from kbcli.invocation import command_tree, exits
from kbcore.limits import MAX_RECORD_BYTES
from kbcore.model.record import Operation, PutNode, StateLink
from kbcore.store.write_request import Request
from tests.support.docs.help_pages import commands
from tests.support.effort.scale import SCALE
from tests.support.logic.engines import engine_variables
from tests.support.processes.cli import environment, program
from tests.support.processes.own_time import own_time_s
from tests.support.processes.session import Session
from tests.support.repository.project import AUTHOR, Project, req
from tests.support.repository.repos import git
from tests.support.repository.stores import planner

TIME_S: Final = 60.0
MANY_OPS: Final = 2_000


class Shape(NamedTuple):
    """A store: entities in its base, each with an edge; how many of them were changed; and what came after the base."""

    entities: int
    changed: int
    records_after: int
    rows_after: int

    def __str__(self) -> str:
        return f"{self.entities}-{self.changed}-{self.records_after}x{self.rows_after}"


def shapes(size: int) -> list[Shape]:
    """Return all proportions of a store of one size."""
    tails = [(0, 0), (60, 1), (1, MANY_OPS)]
    return [Shape(size, changed, *tail) for changed in (0, 1, size // 10) for tail in tails]


SMALLEST: Final = Shape(70_000, 1, 60, 1)
"""The shape on which statements were found that never ended."""

MERGE: Final = [SMALLEST, Shape(130_000, 13_000, 1, MANY_OPS), Shape(200_000, 0, 0, 0)]
SHAPES: Final = {
    "slice": [SMALLEST],
    "merge": MERGE,
    "soak": [one for size in (70_000, 130_000, 200_000) for one in shapes(size)],
}[SCALE]

RESULTS: Final = '<testsuite><testcase name="one more"/></testsuite>'
CHANGES: Final = {
    "entities": [{"id": "REQ-NEW", "type": "req", "title": "new", "status": "open"}],
    "edges": [{"type": "depends_on", "from": "REQ-100", "to": "REQ-99"}],
}
"""Names that exist already, and names that do not."""

UPSERT: Final = 'UPSERT { CONCEPT ?a { {type: "Person", name: "A"} SET ATTRIBUTES {x: 1} } }'
KIP: Final = (
    'FIND(?a.id) WHERE { ?a {type: "Requirement"} (?a, "depends_on", ?b) } LIMIT 5',
    'FIND(COUNT(?a)) WHERE { ?a {type: "Requirement"} }',
    'FIND(?a) WHERE { ?a {type: "Requirement"} NOT { ?b {type: "Requirement"} (?b, "depends_on", ?c) } } LIMIT 3',
    'FIND(?a.id) WHERE { ?a {type: "Requirement"} OPTIONAL { (?a, "depends_on", ?b) } } LIMIT 5',
    'FIND(?b.id) WHERE { ({id: "REQ-100"}, "depends_on"{1,3}, ?b) }',
    'SEARCH CONCEPT "title 100" LIMIT 5',
    "DESCRIBE PRIMER",
    "DESCRIBE CONCEPT TYPES",
    UPSERT,
    *(one.kip for one in QUESTIONS),
)

NO_END: Final = "it has no end of its own"
NO_STORE: Final = "it asks no store of this branch"
COMMANDS: Final[dict[str, list[tuple[str, ...]] | str]] = {
    "init": [("init",), ("init", "--dry-run")],
    "sources": [("sources",)],
    "sources list": [("sources", "list")],
    "sources detect": [("sources", "detect", "--dry-run")],
    "sources try": "it reads one file",
    "sources profiles": NO_STORE,
    "status": [("status",)],
    "query": [
        ("query", "--limit", "5"),
        ("query", "edge", "--limit", "5"),
        ("query", "req", "--text", "title 100", "--limit", "5"),
        ("query", "--from", "REQ-100", "--depth", "3"),
        ("query", "req", "--at", "1", "--limit", "5"),
        ("query", "req", "--where", "title=title of REQ-7"),
        ("query", "req", "--lacks", "depends_on", "--limit", "5"),
    ],
    "show": [("show", "REQ-100"), ("show", "2")],
    "log": [("log", "--limit", "5"), ("log", "REQ-100")],
    "diff": [("diff", "1", "2")],
    "impact": [("impact", "REQ-100")],
    "graph": [("graph", "REQ-100")],
    "coverage": [("coverage",)],
    "matrix": [("matrix", "req", "depends_on", "--holes")],
    "report": [("report", "--format", "md", "--out", "-")],
    "schema": [("schema",)],
    "check": [("check", "--fail-on", "never"), ("check", "--since", "1", "--fail-on", "never")],
    "kip": [("kip", KIP[0]), ("kip", UPSERT)],
    "prolog": [("prolog", "-g", "depends_on('REQ-100', X)"), ("prolog", "-g", ":assert p(1).")],
    "prolog install": NO_STORE,
    "prolog engines": NO_STORE,
    "dml run": "What it reads of the store it reads by the tools of the server, which are below.",
    "dml tools": NO_STORE,
    "dml compile": NO_STORE,
    "apply": [("apply", "--dry-run", "changes.json"), ("apply", "changes.json"), ("apply", "changes.json")],
    "results": [("results", "--dry-run", "results.xml"), ("results", "results.xml")],
    "sync": [("sync",), ("sync", "--rebuild")],
    "sleep": [("sleep", "--dry-run", "--force")],
    "new": [("new", "req", "--title", "one more", "--dry-run"), ("new", "test", "--title", "one more")],
    "id": NO_STORE,
    "id next": [("id", "next", "req")],
    "set": [("set", "REQ-40", "owner=ann")],
    "link": [("link", "REQ-40", "depends_on", "REQ-20")],
    "unlink": [("unlink", "REQ-40", "depends_on", "REQ-20")],
    "confirm": [("confirm", "REQ-50")],
    "rename": [("rename", "REQ-60", "REQ-SIXTY")],
    "delete": [("delete", "REQ-30", "--cascade", "--yes")],
    "revert": [("revert", "2", "--force")],
    "branch": NO_STORE,
    "branch list": [("branch", "list")],
    "branch ensure": [("branch", "ensure", "other")],
    "branch diff": [("branch", "diff", "main", "other")],
    "gc": [("gc", "--dry-run")],
    "doctor": [("doctor",)],
    "verify": [("verify",)],
    "export": [("export", "out.jsonl"), ("export", "--parquet", "fleet")],
    "fleet": NO_STORE,
    "fleet init": NO_STORE,
    "fleet status": NO_STORE,
    "fleet check": NO_STORE,
    "fleet query": NO_STORE,
    "fleet coverage": NO_STORE,
    "fleet search": NO_STORE,
    "fleet impact": NO_STORE,
    "fleet sql": NO_STORE,
    "backup": [("backup", "out.backup")],
    "restore": [("restore", "out.backup", "--dry-run"), ("restore", "out.backup", "--replace")],
    "rollback": [("rollback", "--to", "1")],
    "compact": [("compact",), ("check", "--fail-on", "never")],
    "share": [("share", "--dry-run")],
    "share pack": [("share", "pack", "--before", "now", "--dry-run")],
    "merge": "Another branch is needed.",
    **dict.fromkeys(("push", "fetch"), "A remote is needed."),
    "resolve": [("resolve",)],
    "review": [("review",)],
    "redact": [("redact", "REQ-40", "--field", "title", "--yes")],
    "watch": NO_END,
    "agents hook": [("agents", "hook", "codex", "session-start")],
    **dict.fromkeys(("agents install", "agents remove", "agents check", "agents print"), NO_STORE),
    "uninstall": "It reads no store, and removes files.",
    "ui": NO_END,
    "mcp": NO_END,
    "mcp install": NO_STORE,
    "branch restore": NO_STORE,
    "branch trash": [("branch", "trash")],
    **dict.fromkeys(("config", "config list", "config get", "config set", "config unset", "config schema"), NO_STORE),
    "hooks": NO_STORE,
    "hooks install": NO_STORE,
    "hooks uninstall": NO_STORE,
    "hooks status": NO_STORE,
    "demo": NO_STORE,
    "prove": NO_STORE,
}
"""The calls of each command, in this order; a text says why there is none."""

HANGING: Final = [("check", "--fail-on", "never"), ("apply", "--dry-run", "changes.json"), ("kip", UPSERT)]
"""Calls that once did not end: all that an everyday run asks."""

TOOLS: Final[dict[str, list[dict[str, Any]]]] = {
    "kb_query": [{"limit": 5}, {"type": "edge", "limit": 5}, {"from": "REQ-100", "depth": 3}],
    "kb_upsert": [CHANGES],
    "kb_delete": [{"entities": [{"id": "REQ-31", "expected_version": 2}], "cascade": True}],
    "kb_check": [{}, {"ids": ["REQ-100"]}],
    "kb_history": [{"action": "log"}, {"action": "show", "seq": 2}, {"action": "diff", "seq": 1, "to": 2}],
    "execute_kip": [{"command": one} for one in KIP],
    "execute_kip_readonly": [{"command": KIP[0]}],
    "kb_sleep": [{}],
    "clauses": [
        {"operation": "assert", "clauses": "edges(N) :- aggregate_all(count, edge(_, _, _), N)."},
        {"operation": "retract", "clauses": "edges(N) :- aggregate_all(count, edge(_, _, _), N)."},
    ],
    "files": [{"operation": "list"}],
    "workspace": [{"operation": "snapshot"}, {"operation": "list_symbols"}],
    "query_start": [{"query": "entity(Id, req, Title, Status), edge(depends_on, Id, _)"}],
    "query_next": [{}],
    "query_close": [{}],
    "help": [{}],
}
PROMPTS: Final = {
    "start_feature": {"requirement": "REQ-100"},
    "record_decision": {"concerns": "REQ-100", "title": "t"},
    "review_changes": {},
    "find_gaps": {},
    "expert": {},
    "knowledge": {"mode": "analyzer"},
}


def made(root: Path, shape: Shape) -> Project:
    """Make a store of a shape, with its view published before the records of the tail."""
    project = Project(root)
    project.write({"changes.json": json.dumps(CHANGES), "results.xml": RESULTS, "docs/requirements/a.md": req("DOC-1")})
    project.sync()
    store = project.workspace().store("main")

    def commit(ops: list[Operation]) -> None:
        store.commit(AUTHOR, Request(limit_bytes=MAX_RECORD_BYTES), planner(ops), branch="main")

    nodes = [entity(f"REQ-{number}", f"title of REQ-{number}") for number in range(shape.entities)]
    edges = [
        StateLink(type="depends_on", from_id=f"REQ-{number}", to_id=f"REQ-{number - 1}", base=0)
        for number in range(1, shape.entities)
    ]
    commit([*nodes, *edges])
    if shape.changed:
        step = shape.entities // shape.changed
        commit([entity(f"REQ-{number}", "changed") for number in range(step // 2, shape.entities, step)])
    git(root, "branch", "other")
    project.view().rows("select 1")
    for record in range(shape.records_after):
        commit([entity(f"REQ-X{record}-{number}", "new") for number in range(shape.rows_after)])
    project.close()
    return project


def entity(key: str, title: str) -> PutNode:
    return PutNode(id=key, base=0, set={"type": "req", "title": title, "status": "open"})


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Shape], Path]]:
    """Return what gives the repository of a shape, made once; nobody may write to it."""
    known: dict[Shape, Path] = {}

    def get(shape: Shape) -> Path:
        if shape not in known:
            known[shape] = tmp_path_factory.mktemp("large") / "repo"
            made(known[shape], shape)
        return known[shape]

    yield get
    for root in known.values():
        shutil.rmtree(root.parent)


def copied(root: Path, into: Path) -> Path:
    """Copy a repository; what nobody writes to in place is linked."""

    def copy(source: str, target: str) -> None:
        (os.link if source.endswith(".duckdb") else shutil.copy2)(source, target)

    shutil.copytree(root, into, copy_function=copy, symlinks=True)
    return into


def run(root: Path, words: tuple[str, ...]) -> str:
    """Run a command as a process of its own; return what is wrong with it, if anything is."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as warned:
        process = subprocess.Popen([*program(), *words], cwd=root, env=environment(), stdout=said, stderr=warned)
        if own_time_s(process, TIME_S) > TIME_S:
            process.kill()
            process.wait()
            return f"it did not end within {TIME_S:g} s"
        if process.wait() != exits.DONE:
            return f"status {process.returncode}: {_end_of(warned) or _end_of(said)}"
    return ""


def _end_of(output: IO[bytes]) -> str:
    output.seek(0)
    return output.read()[-500:].decode(errors="replace")


@pytest.mark.sliced(1)
@pytest.mark.fault("L1")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_command_ends_on_a_large_store(
    shape: Shape, stores: Callable[[Shape], Path], tmp_path: Path, tally
) -> None:
    root = copied(stores(shape), tmp_path / "repo")
    asked = [words for each in COMMANDS.values() if not isinstance(each, str) for words in each]
    for words in HANGING if SCALE == "slice" else asked:
        tally.tried()
        fault = run(root, words)
        if fault:
            tally.violated(f"{shape} kb {' '.join(words)}", fault)
    tally.done()


@pytest.mark.fault("L1")
@pytest.mark.skipif(SCALE == "slice", reason="an everyday run asks only what hung")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_tool_prompt_and_resource_ends_on_a_large_store(
    shape: Shape, stores: Callable[[Shape], Path], tmp_path: Path, tally
) -> None:
    root = copied(stores(shape), tmp_path / "repo")
    session = Session(root, "--toolsets", "all", env=engine_variables("wasm"))
    try:
        for method, params in requests(session):
            tally.tried()
            try:
                answer = session.ask(method, params)
            except TimeoutError as error:
                tally.violated(f"{shape} {method} {params}", error)
                break
            if answer.get("isError"):
                tally.violated(f"{shape} {method} {params}", answer["content"][0]["text"][:500])
    finally:
        session.kill()
        session.close()
    tally.done()


def requests(session: Session) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a request for everything that a server offers, by its own lists. Raises: ``KeyError`` for what is new."""
    for prompt in session.ask("prompts/list", {})["prompts"]:
        name = prompt["name"]
        given = PROMPTS[name] if prompt.get("arguments") else {}
        yield "prompts/get", {"name": name, "arguments": given}
    for resource in session.ask("resources/list", {})["resources"]:
        yield "resources/read", {"uri": resource["uri"]}
    for template in session.ask("resources/templates/list", {})["resourceTemplates"]:
        yield "resources/read", {"uri": template["uriTemplate"].replace("{id}", "REQ-100")}
    for tool in session.ask("tools/list", {})["tools"]:
        for arguments in TOOLS[tool["name"]]:
            yield "tools/call", {"name": tool["name"], "arguments": arguments}


@pytest.mark.fault("L1")
def test_no_command_is_left_out(tally) -> None:
    tally.tried()
    known = {*commands(), *(name for name, one in command_tree.COMMANDS.items() if one.help)}
    if known != COMMANDS.keys():
        tally.violated("the commands", known ^ COMMANDS.keys())
    tally.done()
