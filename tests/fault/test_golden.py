"""F20: stores of every release are read for ever; what a newer KB wrote is refused whole, and nothing is written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbcore.clock import SystemClock
from kbcore.errors import ChangesetIdReused, FormatTooNew
from kbcore.ids import encode_branch
from kbcore.model.record import VOCABULARY
from kbcore.storage import frame, head, snapshot
from kbcore.storage.fs import RealFs
from kbcore.storage.head import SnapshotRef
from kbcore.storage.layout import GIT_REF
from kbcore.store.pool import Machine, StorePool
from kbcore.store.workspace import open_workspace
from tests.support.effort.scale import tries
from tests.support.oracles.golden import ANSWERS, GOLDEN, SUMS, ask, opened, sums
from tests.support.processes.cli import environment
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import git

RELEASES = sorted(path for path in GOLDEN.iterdir() if path.is_dir())


@pytest.fixture(autouse=True)
def user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a user of whom nothing is known but a name."""
    wanted = environment()
    for name in os.environ:
        if name not in wanted and name.startswith(("GIT_", "KB_")) and not name.startswith("KB_FAULT"):
            monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)


def written(root: Path) -> dict[str, bytes]:
    """Return every file of the stores but the locks, whose text is only for people, and the notes of git's refs.

    A note is no part of the history, and is written again whenever it is missing or of another format.
    """
    files = [path for path in stores_at(root).rglob("*") if path.is_file()]
    paths = [path for path in files if "lock" not in path.name and path.name != GIT_REF]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def missing(reported: Any, wanted: Any, where: str = "") -> str:
    """Return the first thing that an answer of then has and that of now has not, or ""; new members are welcome."""
    if isinstance(wanted, dict) and isinstance(reported, dict):
        # A cursor is for the next page, and for no later release. A newer version of an extractor reads each file once
        # more before the first sync: then the files count as not recorded, whatever they say. A reason is a sentence.
        names = wanted.keys() - {"next_cursor", "freshness", "pending_files", "freshness_reason"}
        return next((what for name in sorted(names) if (what := _member(reported, wanted, name, where))), "")
    if isinstance(wanted, list) and isinstance(reported, list) and len(wanted) == len(reported):
        pairs = enumerate(zip(reported, wanted, strict=True))
        return next((what for at, pair in pairs if (what := missing(*pair, f"{where}[{at}]"))), "")
    is_same = type(reported) is type(wanted) and reported == wanted
    return "" if is_same else f"{where}: {str(reported)[:200]} instead of {str(wanted)[:200]}"


def _member(reported: dict[str, Any], wanted: dict[str, Any], name: str, where: str) -> str:
    return missing(reported[name], wanted[name], f"{where}.{name}") if name in reported else f"{where}.{name} is gone"


@pytest.mark.sliced(1)
@pytest.mark.fault("F20")
@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_a_store_of_every_release_answers_as_it_did_and_can_be_written_on(release: Path, tmp_path: Path, tally) -> None:
    root, then = opened(release, tmp_path / "repo"), json.loads((release / ANSWERS).read_text(encoding="utf-8"))
    before = written(root)
    for branch, known in then["branches"].items():
        for one in known["answers"][:: tries(6, 1)]:
            status, answer = ask(root, *one["asked"], "--branch", branch)
            tally.tried()
            # Which words a text is found by, and in what order, may get better from release to release.
            is_ranked = "--text" in one["asked"]
            what = f"status {status}" if status else "" if is_ranked else missing(answer, one["answer"])
            if what:
                tally.violated((release.name, branch, one["asked"]), what)
        status, proof = ask(root, "verify", "--branch", branch)
        tally.tried()
        if status or {name: known[name] for name in ("seq", "hash", "history_from")} != {
            name: proof[name] for name in ("seq", "hash", "history_from")
        }:
            tally.violated((release.name, branch, "verify"), proof)
    if written(root) != before:
        tally.violated(release.name, "reading wrote something")
    _continue(root, then, tally)
    tally.done(at_least=20)


def _continue(root: Path, then: dict[str, Any], tally: Any) -> None:
    """Send again what was sent then, write something new, and compact, on every branch; sync once."""
    before = written(root)
    for branch, known in [*reversed(then["branches"].items())][: tries(2, 100)]:
        for sent, request in then["sent"].items():
            again = ask(root, "apply", "-", "--branch", branch, stdin=json.dumps(request))
            other = ask(root, "apply", "-", "--branch", branch, stdin=json.dumps({**request, "message": "no"}))
            tally.tried(2)
            if again[1].get("duplicate") is not True or other[0] != ChangesetIdReused.exit_status:
                tally.violated((branch, sent, "sent again"), (again, other))
        for words in (("apply", "-"), ("compact",), ("verify",), ("query", "fact", "--id", "NEW")):
            status, answer = ask(root, *words, "--branch", branch, stdin=ENTITY)
            tally.tried()
            if status or answer["seq"] <= known["seq"] or answer.get("total", 1) != 1:
                tally.violated((branch, words), answer)
    after = written(root)
    for name, data in before.items():
        # Journals only grow, and what was put into quarantine stays there.
        if ("journal" in name or "quarantine" in name) and not after[name].startswith(data[: data.rfind(b"\n") + 1]):
            tally.violated(name, "what was there was changed")
    status, answer = ask(root, "sync", "--branch", "main")
    tally.tried()
    if status:
        tally.violated("sync", answer)


@pytest.mark.fault("F20")
@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_what_was_frozen_is_byte_for_byte_what_it_was(release: Path, tally) -> None:
    listed = dict(reversed(line.split("  ", 1)) for line in (release / SUMS).read_text(encoding="utf-8").splitlines())
    found = sums(release)
    tally.tried(len(listed))
    for name in sorted(listed.keys() | found.keys()):
        if listed.get(name) != found.get(name):
            tally.violated((release.name, name), f"{found.get(name)} instead of {listed.get(name)}")
    tally.done(at_least=30)


@pytest.mark.fault("F20")
def test_git_converts_nothing_that_is_frozen(tally) -> None:
    paths = [str(path) for path in GOLDEN.rglob("*") if path.is_file() and path.parent != GOLDEN]
    asked = ["git", "check-attr", "-z", "text", "--", *paths]
    done = subprocess.run(asked, cwd=GOLDEN, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        pytest.skip("this is no git repository")
    values = done.stdout.split("\0")[2::3]
    tally.tried(len(values))
    for path, value in zip(paths, values, strict=True):
        if value != "unset":
            tally.violated(path, f"the attribute text is {value}")
    tally.done(at_least=30)


# What a newer KB may have written


class Store:
    """One branch of a golden store, to be written to as a newer KB might."""

    def __init__(self, root: Path, branch: str) -> None:
        self.branch = branch
        self.directory = stores_at(root) / encode_branch(branch)
        self.head = head.read(RealFs(), self.directory)

    def publish(self, **changes: Any) -> None:
        new = msgspec.structs.replace(self.head, **changes)
        (self.directory / "head.json").write_bytes(head.encode(new))

    def raw_head(self, *swaps: tuple[bytes, bytes]) -> None:
        """Rewrite the head's text, with a right checksum."""
        body = head.encode(self.head)[: -head.CHECK_BYTES]
        for old, new in swaps:
            assert old in body
            body = body.replace(old, new, 1)
        check = b',"sum":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'
        (self.directory / "head.json").write_bytes(body + check)

    def append(self, rec: dict[str, Any] | None = None, *, v: int = frame.FORMAT, is_acknowledged: bool = True) -> None:
        """Append a record to the journal, of a newer frame format if need be."""
        tip, path = self.head.head, self.directory / self.head.head.file
        raw = json.dumps(rec or self.last(), separators=(",", ":"), ensure_ascii=False).encode()
        total = frame.checksum(v, tip.seq + 1, tip.hash, raw)
        line = b'{"v":%d,"seq":%d,"prev":"%b","sum":"%b","rec":%b}\n'
        line %= (v, tip.seq + 1, tip.hash.encode(), total.encode(), raw)
        path.write_bytes(path.read_bytes()[: tip.length] + line)
        if is_acknowledged:
            self.publish(head=head.Tip(tip.seq + 1, total, tip.file, tip.length + len(line), tip.at))

    def last(self) -> dict[str, Any]:
        """Return the last record as plain values, with an id of its own."""
        data = (self.directory / self.head.head.file).read_bytes()[: self.head.head.length]
        return {**json.loads(data.splitlines()[-1])["rec"], "changeset_id": "from-the-future"}

    def with_op(self, **members: Any) -> None:
        self.append({**self.last(), "ops": [members]})

    def snapshot(self, change: Callable[[bytes, list[bytes]], tuple[bytes, list[bytes]]]) -> None:
        """Rewrite the snapshot that history begins with; its digests are right."""
        ref = self.head.snapshots[0]
        facts = list(snapshot.read(RealFs(), self.directory, self.head, ref))
        begin = (self.directory / ref.file).read_bytes().partition(b"\n")[0] + b"\n"
        begin, facts = change(begin, facts)
        data = b"".join(snapshot._parts(begin, facts))
        (self.directory / ref.file).write_bytes(data)
        new = SnapshotRef(ref.file, ref.seq, ref.hash, len(data), hashlib.sha256(data).hexdigest())
        self.publish(snapshots=(new, *self.head.snapshots[1:]))


FUTURE: dict[str, tuple[str, Callable[[Store], Any]]] = {
    "a newer frame": ("main", lambda store: store.append(v=2)),
    "an unknown operation": ("main", lambda store: store.with_op(op="merge", id="REQ-1", base=0)),
    "an unknown member of a record": ("main", lambda store: store.append({**store.last(), "mood": "good"})),
    "an unknown member of an operation": (
        "main", lambda store: store.with_op(op="drop", id="REQ-1", base=1, softly=True)
    ),
    "a newer vocabulary": ("main", lambda store: store.append({**store.last(), "schema": VOCABULARY + 1})),
    "a newer head": ("main", lambda store: store.publish(format=2)),
    "an unknown feature": ("main", lambda store: store.publish(features_required=("encryption",))),
    "a newer head of another shape": (
        "main",
        lambda store: store.raw_head((b'"format":1', b'"format":2'), (b'"segments":', b'"parts":')),
    ),
    "a newer snapshot": (
        "pruned",
        lambda store: store.snapshot(lambda begin, facts: (begin.replace(b'"format":1', b'"format":2'), facts)),
    ),
    "an unknown fact in a snapshot": (
        "pruned", lambda store: store.snapshot(lambda begin, facts: (begin, [*facts, b'{"group":{"id":"G"}}']))
    ),
    "an unknown member of a problem": (
        "main",
        lambda store: store.with_op(
            op="source", path="a.md", hash="1", extractor="markdown", base=0,
            problems=[{"line": 1, "code": "c", "message": "m", "hint": "", "mood": "bad"}],
        ),
    ),
    "an unknown member of a changeset": (
        "pruned",
        lambda store: store.snapshot(
            lambda begin, facts: (begin, [*facts[:-1], facts[-1].replace(b"]}", b',"aura"]}', 1)])
        ),
    ),
    "an unknown member of a fact": (
        "pruned",
        lambda store: store.snapshot(
            lambda begin, facts: (begin, [fact.replace(b'"node":{', b'"node":{"aura":1,', 1) for fact in facts])
        ),
    ),
}  # fmt: skip
ENTITY = json.dumps({"entities": [{"id": "NEW", "type": "fact", "title": "New", "status": "open"}]})
READS = (("query", "fact"), ("query", "fact", "--at", "SEQ"), ("log",), ("show", "FACT-1"), ("diff", "SEQ"), ("check",))
WRITES = (
    ("apply", "-"),
    ("delete", "FACT-1", "--yes"),
    ("sync",),
    ("revert", "SEQ"),
    ("rollback", "--to", "SEQ"),
    ("compact",),
    ("apply", "-", "--dry-run"),
)
PROOFS = (("verify",), ("doctor", "--rebuild-snapshots"), ("doctor", "--rebuild-head"))


@pytest.mark.sliced(5)
@pytest.mark.fault("F20")
@pytest.mark.parametrize("name", FUTURE)
def test_what_a_newer_kb_wrote_is_refused_whole_and_nothing_is_written(name: str, tmp_path: Path, tally) -> None:
    root = opened(RELEASES[-1], tmp_path / "repo")
    branch, change = FUTURE[name]
    git(root, "symbolic-ref", "HEAD", f"refs/heads/{branch}")
    store = Store(root, branch)
    # The view of the state before must not answer for the one that cannot be read.
    assert ask(root, "query", "fact", "--branch", branch)[0] == 0
    change(store)
    _forget_view(root, branch)
    before = written(root)
    for words in (*READS[: tries(1, 6)], *WRITES[: tries(1, 7)], *PROOFS[: tries(0, 3)]):
        tally.tried()
        asked = [str(store.head.seq) if word == "SEQ" else word for word in words]
        status, answer = ask(root, *asked, "--branch", branch, stdin=ENTITY)
        reported = json.dumps(answer)
        # There may be nothing to repair, and then a repair says so.
        is_harmless = words[0] == "doctor" and status == 0 and written(root) == before
        if not is_harmless and (status != FormatTooNew.exit_status or FormatTooNew.code not in reported):
            tally.violated((name, words), f"status {status}: {reported[:300]}")
        if words[0] != "verify" and ('"entities"' in reported or '"records"' in reported):
            tally.violated((name, words), "a part was read")
        if written(root) != before:
            tally.violated((name, words), "something was written")
            break
    tally.done()


def _forget_view(root: Path, branch: str) -> None:
    """Delete the view where it has what a snapshot holds already: only who has none needs the snapshot."""
    if branch == "pruned":
        shutil.rmtree(caches_at(root) / encode_branch(branch))


@pytest.mark.sliced(1)
@pytest.mark.fault("F20")
@pytest.mark.parametrize("name", list(FUTURE)[: tries(2, 20)])
def test_the_core_refuses_it_as_well_with_a_view_that_is_open_and_without(name: str, tmp_path: Path, tally) -> None:
    root = opened(RELEASES[-1], tmp_path / "repo")
    branch, change = FUTURE[name]
    pool = StorePool()
    workspace = open_workspace(root, Machine(RealFs(), SystemClock(), os.environ), pool)
    warm = workspace.store(branch)
    seen = warm.read(lambda view: view.seq)
    change(Store(root, branch))
    before = written(root)
    fresh = open_workspace(root, Machine(RealFs(), SystemClock(), os.environ), StorePool()).store(branch)
    stores = {"fresh": fresh} if branch == "pruned" else {"open": warm, "fresh": fresh}
    _forget_view(root, branch)
    for which, store in stores.items():
        for how, use in (
            ("read", lambda s: s.read(lambda view: view.seq)),
            ("until", lambda s: s.view_until(seen + 1)),
        ):
            tally.tried()
            try:
                found = use(store)
            except FormatTooNew:
                continue
            tally.violated((name, which, how), f"it answered {found}")
    if written(root) != before:
        tally.violated(name, "something was written")
    pool.close()
    fresh.close()
    tally.done()


@pytest.mark.fault("F20")
def test_a_newer_frame_beyond_the_head_is_left_to_the_newer_kb(tmp_path: Path, tally) -> None:
    root = opened(RELEASES[-1], tmp_path / "repo")
    Store(root, "main").append(v=2, is_acknowledged=False)
    before = written(root)
    tally.tried(2)
    status, answer = ask(root, "query", "fact", "--branch", "main")
    if status:
        tally.violated("a reader", answer)
    status, answer = ask(root, "apply", "-", stdin=ENTITY)
    if (status, answer["error"]["applied"]) != (FormatTooNew.exit_status, "no") or written(root) != before:
        tally.violated("a writer", answer)
    tally.done()
