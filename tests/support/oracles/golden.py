"""Freezes a store of this release, with what it answers: ``python -m tests.support.oracles.golden``.

Run once a release, and once for each step of the vocabulary.

The result is ``tests/golden/VERSION-vocabulary-NUMBER``: ``kb`` is what is ``.kb`` in a repository, ``files`` are
its documents, ``answers.json`` is what was asked of it and answered. Nothing in it names a machine. It is never made
again: later releases must read it as it is.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import io
import json
import os
import shutil
import socket
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kbcli import app
from kbcore import __version__
from kbcore.clock import SystemClock
from kbcore.ids import link_id
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.repair import rebuild_head
from kbcore.model.record import VOCABULARY, StateLink
from kbcore.storage import frame, journal
from kbcore.store.history.undo import revert, rollback
from kbcore.store.write_request import Author, Request
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project, req
from tests.support.repository.repos import git, make_repository
from tests.support.repository.stores import planner

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
SUMS = "SHA256SUMS"
ANSWERS = "answers.json"
ANN = Author("ann", "cli", f"kb/{__version__}")
BOT = Author("bot", "mcp", f"kb/{__version__}", "a-session")
TORN = b'{"v":1,"seq":99,"prev":"a write that was cut o'

CONFIG = {"defaultBranch": "main", "rules": {"orphans": "off"}}
SCHEMA = """\
entities:
  fact:
    description: Something that is known.
    attributes:
      weight: {type: number, required: false, description: How much it counts.}
edges:
  constrains:
    description: A fact narrows a requirement.
    from: [fact]
    to: [req]
"""
FILES = {
    "docs/requirements/login.md": req("REQ-1", tags="[auth, web]") + "# Log in\n",
    "docs/requirements/logout.md": req("REQ-2", links="[REQ-1, REQ-99]"),
    "docs/requirements/target.md": req("REQ-3", priority="must", owner="zoë"),
    "docs/requirements/bad.md": "---\nid: REQ-4\ntitle: [never closed\n---\n",
    "docs/tests/login.md": "---\nid: TEST-1\ntitle: Login works\nstatus: active\nkind: e2e\nlinks: [REQ-1]\n---\n",
    "docs/symbols.yaml": "symbols:\n  - {id: SYM-1, title: login, kind: function, file: src/a.py, line: 3,"
    " status: active, relationships: [{type: implements, target: REQ-1}]}\n",
}
QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("query", "--edges"),
    ("query", "edge"),
    ("query", "req", "--has", "verified_by", "--limit", "2"),
    ("query", "--text", "login"),
    ("log", "--limit", "100"),
    ("show", "REQ-1"),
    ("schema", "fact"),
)
"""The questions to every branch; the state at each of its seqs, and what its records did."""
OPERATIONS = ("put", "drop", "link", "unlink", "source", "forget")
MEMBERS = ('"clock":"2026', '"repair":"', '"message":"', '"warnings":[', '"commit":"', '"session":"', '"epoch":"')


class FrozenClock(SystemClock):
    """A clock that goes on by a second at each look, from one fixed moment."""

    def __init__(self) -> None:
        self.time = datetime(2026, 1, 5, 8, tzinfo=UTC)

    def now(self) -> str:
        self.time += timedelta(seconds=1)
        return self.time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def epoch_ns(self) -> int:
        return int(self.time.timestamp()) * 10**9


def ask(root: Path, *words: str, stdin: str = "") -> tuple[int, Any]:
    """Run ``kb`` in this process and return its status and the document that it prints."""
    printed, before = io.StringIO(), sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            status = app.main(["-C", str(root), *words, "--json"])
    finally:
        sys.stdin = before
    return status, json.loads(printed.getvalue() or "null")


def opened(source: Path, root: Path) -> Path:
    """Lay a golden store out as a repository in an empty folder; return the folder."""
    make_repository(root)
    shutil.copytree(source / "kb", root / ".kb", ignore=shutil.ignore_patterns("branches"))
    shutil.copytree(source / "kb" / "branches", stores_at(root))
    shutil.copytree(source / "files", root, dirs_exist_ok=True)
    return root


def sums(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file below a golden folder but the list itself."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def branches_of(root: Path) -> dict[str, dict[str, Any]]:
    """Return what every branch answers, by its name: head, history_from, and each question with its answer."""
    listed = ask(root, "branch", "list")[1]["branches"]
    found: dict[str, dict[str, Any]] = {}
    for branch in sorted(one["name"] for one in listed):
        seq = next(one["seq"] for one in listed if one["name"] == branch)
        status, proof = ask(root, "verify", "--branch", branch)
        assert status == 0, proof
        first = proof["history_from"]
        # The branches share most of their history: what is in it is asked of one of them.
        seqs = range(first, seq + 1) if branch == "main" else sorted({first, seq - 1})
        questions = [*QUESTIONS, ("diff", str(first), str(seq)), ("show", str(seq))]
        questions += [("query", "--edges", "--at", str(at)) for at in seqs]
        questions += [("show", str(at)) for at in seqs if at > first]
        answers = []
        for words in questions:
            status, answer = ask(root, *words, "--branch", branch)
            assert status == 0, (branch, words, answer)
            answers.append({"asked": list(words), "answer": answer})
        found[branch] = {"seq": seq, "hash": proof["hash"], "history_from": first, "answers": answers}
    return found


SENT: dict[str, dict[str, Any]] = {
    "golden-1": {
        "changeset_id": "golden-1",
        "message": "what clients say",
        "entities": [
            {"id": "ADR-1", "type": "adr", "title": "Sessions in cookies", "status": "accepted"},
            {"id": "FLAG-1", "type": "flag", "title": "New login", "status": "active"},
            {
                "id": "FACT-1", "type": "fact", "title": "Nur über TLS \U0001f512", "status": "open",
                "attributes": {"weight": 0.5, "nested": {"a.b": [1, 1.0, None, True, "\u2028"]}},
                "metadata": {"confidence": 0.25},
            },
        ],
        "edges": [
            {"type": "constrained_by", "from": "SYM-1", "to": "ADR-1", "confidence": 0.9},
            {"type": "relates_to", "kind": "why", "from": "ADR-1", "to": "REQ-2", "metadata": {"by": "ann"}},
            {"type": "constrains", "from": "FACT-1", "to": "REQ-1"},
            {"type": "guards", "from": "FLAG-1", "to": "REQ-1"},
        ],
    },
    "golden-2": {
        "changeset_id": "golden-2",
        "entities": [{"id": "ADR-1", "status": "superseded", "owner": "ann", "tags": ["b", "a"]}],
    },
}  # fmt: skip


def _main(project: Project, clock: FrozenClock) -> None:
    """Write a history with every operation to the main branch."""
    project.sync(FILES)
    for request in SENT.values():
        project.apply(author=ANN, **request)
    project.delete(author=BOT, entities=[{"id": "FLAG-1", "expected_version": 2}], cascade=True, message="not used")
    workspace = project.workspace()
    compact(workspace, "main")
    project.sync({"docs/requirements/target.md": None, "docs/requirements/login.md": req("REQ-1", status="done")})
    about = link_id("constrained_by", "", "SYM-1", "ADR-1")
    link = StateLink(type="relates_to", kind="about", from_id=about, to_id="REQ-2", base=0, set={"attributes.a": [1]})
    workspace.store("main").commit(BOT, Request(message="an edge about an edge"), planner([link]), branch="main")
    revert(workspace, "main", ANN, [3], follows_head=True)
    clock.time -= timedelta(days=1)
    project.apply(author=ANN, message="by a clock that went back", entities=[{"id": "ADR-1", "owner": "bea"}])
    project.delete(author=ANN, edges=[{"type": "constrains", "from": "FACT-1", "to": "REQ-1"}])
    clock.time += timedelta(days=2)
    rollback(workspace, "main", ANN, 4, follows_head=True)
    with _segment(project, "main").open("ab") as file:
        file.write(TORN)
    project.apply(author=ANN, message="after a crash", entities=[{"id": "ADR-1", "priority": "low"}])
    compact(workspace, "main")
    project.sync({"docs/requirements/target.md": FILES["docs/requirements/target.md"]})


def _segment(project: Project, branch: str) -> Path:
    directory = project.workspace().folders.directory_of(branch)
    return directory / journal.read_head(project.machine.fs, directory).head.file


def _others(project: Project) -> None:
    """Make branches: one with an odd name, a pruned one, a repaired one, and one that is as a crash left it."""
    for branch in ("feature/Login-Ü", "pruned", "repaired", "crashed"):
        git(project.root, "branch", branch)
        project.apply(author=BOT, branch=branch, entities=[{"id": "FACT-1", "owner": branch}])
    workspace = project.workspace()
    compact(workspace, "pruned")
    project.apply(author=ANN, branch="pruned", entities=[{"id": "FACT-1", "severity": "high"}])
    compact(
        workspace, "pruned", prune_before=journal.read_head(project.machine.fs, _segment(project, "pruned").parent).seq
    )
    project.apply(author=ANN, branch="pruned", entities=[{"id": "FACT-1", "severity": "low"}])
    (workspace.folders.directory_of("repaired") / "head.json").unlink()
    rebuild_head(workspace, "repaired", ANN)
    segment, of = (
        _segment(project, "crashed"),
        journal.read_head(project.machine.fs, workspace.folders.directory_of("crashed")),
    )
    last = json.loads(segment.read_bytes().splitlines()[-1])["rec"]
    whole = json.dumps({**last, "changeset_id": "unanswered", "ops": []}, separators=(",", ":")).encode()
    with segment.open("ab") as file:
        file.write(frame.encode(of.seq + 1, of.hash, whole)[1] + TORN)


def make(target: Path) -> None:
    """Write a golden folder, which must not exist."""
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "repo")
        git(project.root, "symbolic-ref", "HEAD", "refs/heads/main")
        project.write({".kb/config.json": json.dumps(CONFIG, indent=2) + "\n", ".kb/schema/project.yaml": SCHEMA})
        clock = FrozenClock()
        project.machine.clock = clock
        _main(project, clock)
        _others(project)
        project.close()
        kept = shutil.ignore_patterns("cache", "lock", ".lock", ".tmp*")
        shown = shutil.ignore_patterns("cache", "branches")  # they only show where the stores are
        shutil.copytree(project.root / ".kb", target / "kb", ignore=shown)
        shutil.copytree(stores_at(project.root), target / "kb" / "branches", ignore=kept)
        for name in FILES:
            (target / "files" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(project.root / name, target / "files" / name)
        os.environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "KB_ACTOR": "tester"}
        branches = branches_of(project.root)
    _check_operations(target)
    lines = [
        *(f'"version": {_json(__version__)},', f'"sent": {_json(SENT)},', '"branches": {'),
        ",\n".join(f"{_json(name)}: {_branch(found)}" for name, found in branches.items()),
    ]
    (target / ANSWERS).write_text("{" + "\n".join(lines) + "\n}}\n", encoding="utf-8")
    for path in target.rglob("*"):
        names = [name for name in (folder, socket.gethostname(), getpass.getuser(), str(Path.home())) if len(name) > 1]
        reported = [name for name in names if path.is_file() and name.encode() in path.read_bytes()]
        assert not reported, f"{path} names this machine: {reported}"
    lines = [f"{digest}  {name}\n" for name, digest in sums(target).items()]
    (target / SUMS).write_text("".join(lines), encoding="utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _branch(found: dict[str, Any]) -> str:
    """Return what a branch answers as JSON, with one line for each question."""
    answers = ",\n".join(map(_json, found["answers"]))
    rest = {name: value for name, value in found.items() if name != "answers"}
    return f'{_json(rest)[:-1]},"answers":[\n{answers}\n]}}'


def _check_operations(target: Path) -> None:
    """Every operation, and every member of a record, is somewhere in the main branch."""
    text = "".join(path.read_text(encoding="utf-8") for path in (target / "kb/branches/main").glob("journal-*"))
    wanted = [*(f'"op":"{name}"' for name in OPERATIONS), *MEMBERS]
    missing = [part for part in wanted if part not in text]
    assert not missing, f"nothing in the journal has {missing}"


if __name__ == "__main__":
    make(GOLDEN / f"{'.'.join(__version__.split('.')[:2])}-vocabulary-{VOCABULARY}")
