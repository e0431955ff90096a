"""F25: what is too large is refused before anything is written, and a long history costs no more than its length."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbcore import limits
from kbcore.errors import InvalidChangeset, KBError, LimitExceeded, Rejected
from kbcore.model import record
from kbcore.model.record import PutNode, Record
from kbcore.storage import files, frame, head, journal
from kbcore.store.write_request import Request
from tests.support.disk.faultfs import NoSyncFs
from tests.support.effort.scale import tries
from tests.support.processes.cli import run_kb
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project
from tests.support.repository.stores import AUTHOR, Stored, planner


def entity(key: str = "REQ-1", **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": "A title", "status": "open", **fields}


def nested(depth: int) -> Any:
    """Return a value of so many lists in each other."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def value_of(size: int) -> Any:
    """Return an object of exactly so many bytes as JSON."""
    whole = (size - len('{"a":[""]}')) // len(f'"{"x" * 1000}",')
    rest = size - len('{"a":[""]}') - whole * len(f'"{"x" * 1000}",')
    return {"a": ["x" * 1000] * whole + ["x" * rest]}


def of_items(count: int) -> dict[str, Any]:
    return {"entities": [entity(f"REQ-{number}") for number in range(count)]}


def of_bytes(size: int) -> dict[str, Any]:
    """Return a changeset whose record has about so many bytes, in values that are small enough by themselves."""
    parts = range(size // limits.MAX_TEXT_BYTES + 1)
    return {"entities": [entity(f"REQ-{part}", title="x" * (size // len(parts))) for part in parts]}


Sized = Callable[[int], dict[str, Any]]
LIMITS: dict[str, tuple[Sized, int, type[KBError]]] = {
    "id": (lambda size: {"entities": [entity("R" * size)]}, limits.MAX_ID_CHARS, InvalidChangeset),
    "title": (lambda size: {"entities": [entity(title="é" * (size // 2))]}, limits.MAX_TEXT_BYTES, InvalidChangeset),
    "type": (lambda size: {"entities": [entity(type="t" * size)]}, limits.MAX_NAME_CHARS, InvalidChangeset),
    "depth": (
        lambda size: {"entities": [entity(attributes={"a": nested(size - 1)})]}, limits.MAX_DEPTH, InvalidChangeset
    ),
    "great depth": (lambda size: {"entities": [entity(attributes={"a": nested(size)})]}, 900, InvalidChangeset),
    "value": (lambda size: {"entities": [entity(attributes=value_of(size))]}, limits.MAX_VALUE_BYTES, InvalidChangeset),
    "tags": (lambda size: {"entities": [entity(tags=[str(one) for one in range(size)])]}, 1000, InvalidChangeset),
    "attribute": (lambda size: {"entities": [entity(attributes={"a" * size: 1})]}, 100, InvalidChangeset),
    "changeset id": (
        lambda size: {"changeset_id": "c" * size, "entities": [entity()]},
        limits.MAX_CHANGESET_ID_CHARS,
        InvalidChangeset,
    ),
    "items": (of_items, limits.MAX_CHANGESET_ITEMS, LimitExceeded),
    "record": (of_bytes, limits.MAX_CHANGESET_BYTES, LimitExceeded),
}  # fmt: skip
STEPS = {"title": 2}
TAKEN = {
    "type": "unknown types are refused by name before they are too long",
    "great depth": "there is a smaller limit",
    "record": "the frame and the other fields take some of it",
}
"""The reason that a value of exactly the limit is refused."""


def contents(root: Path) -> dict[str, bytes]:
    """Return every file of the stores but the locks, whose text is only for people."""
    paths = [path for path in sorted(stores_at(root).rglob("*")) if path.is_file() and "lock" not in path.name]
    return {str(path): path.read_bytes() for path in paths}


@pytest.mark.sliced
@pytest.mark.fault("F25")
def test_one_more_than_a_limit_is_refused_before_any_write_and_the_limit_itself_is_taken(
    project: Project, tally
) -> None:
    project.apply(entities=[entity("FIRST")])
    before = contents(project.root)
    for name, (request, limit, kind) in LIMITS.items():
        sizes = [limit + STEPS.get(name, 1)] + ([] if name == "great depth" else [limit * 2])
        for size in sizes[: tries(1, 2)]:
            tally.tried()
            try:
                project.apply(**request(size))
            except Rejected as error:
                if type(error) is not kind or error.applied != "no" or len(error.message) > 1000:
                    tally.violated((name, size), f"{error!r}")
            else:
                tally.violated((name, size), "it was taken")
            if contents(project.root) != before:
                tally.violated((name, size), "something was written")
                before = contents(project.root)
    for name, (request, limit, _) in LIMITS.items():
        if name in TAKEN or (name == "items" and tries(0, 1) == 0):
            continue
        tally.tried()
        try:
            assert project.apply(**request(limit), dry_run=True).dry_run
        except KBError as error:
            tally.violated((name, limit), error)
    tally.done()


@pytest.mark.fault("F25")
def test_no_more_is_deleted_in_one_call_than_the_limit(project: Project, tally) -> None:
    project.apply(**of_items(limits.MAX_DELETE_IDS + 1))
    before = contents(project.root)
    tally.tried()
    with pytest.raises(LimitExceeded):
        project.delete(entities=[{"id": f"REQ-{one}"} for one in range(limits.MAX_DELETE_IDS + 1)])
    if contents(project.root) != before:
        tally.violated("delete", "something was written")
    tally.done()


@pytest.mark.fault("F25")
def test_a_record_above_what_any_line_may_hold_is_refused_before_any_write(tmp_path: Path, tally, monkeypatch) -> None:
    made = Stored(tmp_path)
    made.put("FIRST")
    path = made.directory / "journal-0000000001.jsonl"
    before = {name: (made.directory / name).read_bytes() for name in ("head.json", path.name)}
    # The true limit is half a gigabyte: the check is the same with a smaller one.
    monkeypatch.setattr(frame, "MAX_RECORD_BYTES", 5000)
    plan = planner((PutNode(id="BIG", base=0, set={"type": "req", "title": "x" * 6000}),))
    request = Request(limit_bytes=limits.MAX_RECORD_BYTES)
    tally.tried()
    with pytest.raises(LimitExceeded) as refused:
        made.store.commit(AUTHOR, request, plan, branch="main")
    if refused.value.applied != "no" or any(
        (made.directory / name).read_bytes() != was for name, was in before.items()
    ):
        tally.violated("a long record", refused.value)
    made.put("NEXT")
    made.close()
    tally.done()


@pytest.mark.fault("F25")
def test_a_body_above_the_limit_is_refused_by_the_program(project: Project, tally) -> None:
    project.apply(entities=[entity("FIRST")])
    before = contents(project.root)
    bodies = {
        "a long body": (json.dumps({"message": "x" * limits.MAX_CHANGESET_BYTES}), LimitExceeded),
        "a deep body": ('{"entities": ' + "[" * 100_000 + "]" * 100_000 + "}", InvalidChangeset),
    }
    for name, (body, kind) in list(bodies.items())[: tries(1, 2)]:
        ran = run_kb(project.root, "apply", "-", "--json", stdin=body)
        tally.tried()
        if ran.status != kind.exit_status or ran.error["applied"] != "no" or contents(project.root) != before:
            tally.violated(name, ran)
    tally.done()


class CountingFs(NoSyncFs):
    """Counts the calls, and the bytes of the journal that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.journal_bytes = 0
        self.journals: set[int] = set()

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        self.calls += 1
        fd = super().open(path, flags, mode)
        (self.journals.add if path.name.startswith("journal") else self.journals.discard)(fd)
        return fd

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        self.calls += 1
        data = super().pread(fd, length, offset)
        self.journal_bytes += len(data) * (fd in self.journals)
        return data

    def lstat(self, path: Path) -> Any:
        self.calls += 1
        return super().lstat(path)


def long_history(made: Stored, count: int, first: int = 1) -> int:
    """Add records, as one write and one head; return how many bytes the journal has."""
    of = journal.read_head(made.fs, made.directory)
    tip, lines = of.head, []
    for number in range(first, first + count):
        one = Record(
            schema=record.VOCABULARY, changeset_id=f"cs-{number}", digest="", at=tip.at, actor="tester", source="cli",
            tool="kb/test", ops=(PutNode(id=f"R{number}", base=0, set={"type": "req", "title": f"Title {number}"}),),
        )  # fmt: skip
        framed, line = frame.encode(number, tip.hash, record.encode(one))
        lines.append(line)
        tip = msgspec.structs.replace(tip, seq=number, hash=framed.sum)
    data = b"".join(lines)
    with (made.directory / tip.file).open("ab") as file:
        file.write(data)
    tip = msgspec.structs.replace(tip, length=tip.length + len(data))
    files.publish_file(made.fs, made.directory / "head.json", head.encode(msgspec.structs.replace(of, head=tip)))
    return tip.length


@pytest.mark.fault("F25")
def test_a_long_history_is_read_once_and_after_that_only_its_end(tmp_path: Path, tally) -> None:
    count, tail = tries(3000, 100_000), 50
    fs = CountingFs()
    made = Stored(tmp_path, fs=fs)
    length = long_history(made, count)
    more = 0
    for name in ("the first opening", "a later opening", "an opening after more records"):
        if name == "an opening after more records":
            more = long_history(made, tail, count + 1) - length
        most = length if name == "the first opening" else more
        fs.calls = fs.journal_bytes = 0
        store = made.reopen()
        found = store.read(lambda view: (view.seq, view.rows("select count(*) from node")[0][0]))
        tally.tried()
        if fs.journal_bytes > most or found != (count + (tail if more else 0),) * 2:
            tally.violated(name, f"{fs.journal_bytes} bytes of the journal were read; {most} are enough; {found}")
        # A call for each part of the journal that is read, and a few to look around.
        if fs.calls > 20 + most // files.CHUNK_BYTES:
            tally.violated(name, f"{fs.calls} calls were made")
    made.close()
    tally.done()
