"""Snapshots: equal state, equal bytes; any damage is found at its line."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.errors import FormatTooNew, HistoryPruned, SnapshotCorrupt, StorageFull
from kbcore.storage import compaction, head, snapshot
from kbcore.storage.head import Head, Pruned, SnapshotRef
from tests.core.storage.making import CLOCK, FS, LINEAGE, fill, holed_store, new_store
from tests.support.disk.faultfs import FailingFs, LoggingFs

FACTS = [b'{"id":"REQ-1","title":"Login"}', b'{"id":"REQ-2","title":"p\xc3\xa2t\xc3\xa9"}', b"[1,2]"]


@pytest.fixture
def store(tmp_path: Path) -> tuple[Path, Head]:
    directory = new_store(tmp_path, 2)
    return directory, head.read(FS, directory)


def test_what_is_written_is_read_back(store) -> None:
    directory, of = store
    ref = snapshot.write(FS, directory, of, iter(FACTS))
    assert list(snapshot.read(FS, directory, of, ref)) == FACTS
    assert (ref.file, ref.seq, ref.hash) == ("snapshot-0000000002.jsonl", 2, of.hash)
    data = (directory / ref.file).read_bytes()
    assert (ref.length, ref.sha256) == (len(data), hashlib.sha256(data).hexdigest())


@given(facts=st.lists(st.text(min_size=1).map(lambda text: json.dumps(text).encode()), max_size=5))
def test_any_facts_come_back_in_their_order(tmp_path_factory, facts: list[bytes]) -> None:
    directory = tmp_path_factory.mktemp("any")
    of = some_head(7)
    ref = snapshot.write(FS, directory, of, facts)
    assert list(snapshot.read(FS, directory, of, ref)) == facts
    assert snapshot.inspect(FS, directory, ref.file) == (of.lineage, ref)


def some_head(seq: int) -> Head:
    tip = head.Tip(seq, "b" * 64, "journal-0000000001.jsonl", 1, "")
    first = head.Segment("journal-0000000001.jsonl", 1, LINEAGE)
    return Head(1, (), "c" * 32, LINEAGE, "main", None, None, (), (first,), tip)


def test_equal_state_gives_equal_bytes(tmp_path: Path) -> None:
    refs = [snapshot.write(FS, made(tmp_path / name), some_head(7), FACTS) for name in ("one", "two")]
    assert refs[0] == refs[1]
    assert (tmp_path / "one" / refs[0].file).read_bytes() == (tmp_path / "two" / refs[0].file).read_bytes()


def made(path: Path) -> Path:
    path.mkdir()
    return path


def test_every_line_is_json_and_facts_are_as_written(store) -> None:
    directory, of = store
    ref = snapshot.write(FS, directory, of, FACTS)
    lines = [json.loads(line) for line in (directory / ref.file).read_bytes().splitlines()]
    assert lines[0] == {"kb": "snapshot", "format": 1, "lineage": LINEAGE, "seq": 2, "hash": of.hash}
    assert [line["fact"] for line in lines[1:-1]] == [json.loads(fact) for fact in FACTS]
    assert lines[-1]["count"] == 3


def test_every_bit_flip_is_found_at_its_line(store) -> None:
    directory, of = store
    ref = snapshot.write(FS, directory, of, FACTS)
    path = directory / ref.file
    data = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for bit in range(8 * len(data)):
            at = bit // 8
            os.pwrite(file.fileno(), bytes([data[at] ^ 1 << bit % 8]), at)
            with pytest.raises(SnapshotCorrupt) as caught:
                list(snapshot.read(FS, directory, of, ref))
            expected = (str(path), data[:at].count(b"\n") + 1)
            assert (caught.value.data["file"], caught.value.data["line"]) == expected, bit
            os.pwrite(file.fileno(), data[at : at + 1], at)
    assert list(snapshot.read(FS, directory, of, ref)) == FACTS


def test_every_truncation_is_found(store) -> None:
    directory, of = store
    ref = snapshot.write(FS, directory, of, FACTS)
    path = directory / ref.file
    for length in reversed(range(path.stat().st_size)):
        os.truncate(path, length)
        with pytest.raises(SnapshotCorrupt):
            list(snapshot.read(FS, directory, of, ref))


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [*lines[:2], *lines[3:]],
        lambda lines: [*lines[:2], lines[1], *lines[2:]],
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
        lambda lines: lines[:-1],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [*lines, b"\n"],
        lambda lines: [b"<<<<<<< HEAD\n", *lines],
        lambda lines: [line.replace(b"\n", b"\r\n") for line in lines],
        lambda lines: [],
    ],
    ids=["deleted", "doubled", "swapped", "no footer", "two footers", "newline", "merge", "crlf", "empty"],
)
def test_lines_that_were_moved_are_found(store, change) -> None:
    directory, of = store
    ref = snapshot.write(FS, directory, of, FACTS)
    path = directory / ref.file
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    with pytest.raises(SnapshotCorrupt) as caught:
        list(snapshot.read(FS, directory, of, ref))
    assert caught.value.message.startswith(f"{path}, line {caught.value.data['line']}, byte ")
    assert "kb doctor" in caught.value.hint


def test_the_reference_to_a_snapshot_is_known_without_writing_it(store) -> None:
    directory, of = store
    for facts in (FACTS, [], [b'"%b"' % (b"x" * 1000)] * 3000):
        assert snapshot.reference(of, facts) == snapshot.write(FS, directory, of, facts)


@pytest.mark.parametrize(
    ("pruned_before", "snapshots", "said"),
    [
        (0, (2, 4), "Nothing is lost: the journal has every fact. Run "),
        (3, (2, 4), "snapshot-0000000002.jsonl and the journal after it lead to its facts. Run "),
        (4, (3, 4), "snapshot-0000000003.jsonl and the journal after it lead to its facts. Run "),
        (5, (4,), "It replaces the records before 5, which were pruned. Put the file back from a backup, or run "),
    ],
)
@pytest.mark.parametrize("harm", ["changed", "missing"])
def test_the_hint_says_what_still_holds_the_facts(
    store, pruned_before: int, snapshots: tuple[int, ...], said: str, harm: str
) -> None:
    directory, of = store[0], fill(store[0], 2)
    refs = tuple(SnapshotRef(f"snapshot-{seq:010d}.jsonl", seq, "0" * 64, 9, "0" * 64) for seq in snapshots)
    first = msgspec.structs.replace(of.segments[0], first_seq=pruned_before or 1)
    note = Pruned(pruned_before, "0" * 64, "") if pruned_before else None
    named = msgspec.structs.replace(of, branch="a b", snapshots=refs, segments=(first,), pruned=note)
    (directory / "head.json").write_bytes(head.encode(msgspec.structs.replace(of, snapshots=refs)))
    if harm == "changed":
        (directory / refs[-1].file).write_bytes(b"not the")
    with pytest.raises(SnapshotCorrupt) as caught:
        snapshot.check(FS, directory, named, refs[-1])
    assert said + "`kb doctor --rebuild-snapshots --branch 'a b'`: it " in caught.value.hint


def test_a_sound_snapshot_of_another_state_is_refused(store) -> None:
    directory, of = store
    ref = snapshot.write(FS, directory, of, FACTS)
    snapshot.write(FS, directory, of, FACTS[:2])
    with pytest.raises(SnapshotCorrupt, match="this is not the snapshot that the head names"):
        list(snapshot.read(FS, directory, of, ref))
    other = msgspec.structs.replace(of, lineage="d" * 64)
    with pytest.raises(SnapshotCorrupt, match="line 1, byte 0: the header is not the one that belongs here"):
        list(snapshot.read(FS, directory, other, ref))


def test_a_lost_snapshot_is_damage_and_a_pruned_one_is_not(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    compaction.compact(FS, directory, CLOCK, lambda at: FACTS)
    old = head.read(FS, directory)
    path = directory / old.snapshots[0].file
    path.rename(tmp_path / "away")
    with pytest.raises(SnapshotCorrupt, match="is missing, and the head names it"):
        list(snapshot.read(FS, directory, old, old.snapshots[0]))
    (tmp_path / "away").rename(path)
    fill(directory, 1)
    compaction.compact(FS, directory, CLOCK, lambda at: FACTS, prune_before=4)
    with pytest.raises(HistoryPruned):
        list(snapshot.read(FS, directory, old, old.snapshots[0]))


@pytest.mark.parametrize("fact", [b"", b'{"a":\n1}'])
def test_a_fact_that_is_not_one_line_is_a_bug(store, fact: bytes) -> None:
    directory, of = store
    with pytest.raises(ValueError, match="one line of JSON"):
        snapshot.write(FS, directory, of, [fact])
    assert not list(directory.glob("snapshot*"))


def test_a_snapshot_that_does_not_read_back_is_not_published(store) -> None:
    class Garbling(LoggingFs):
        def _run(self, kind, method, args):
            if kind == "write":
                args = (args[0], bytes(args[1]).replace(b"Login", b"Logon"))
            return super()._run(kind, method, args)

    directory, of = store
    with pytest.raises(SnapshotCorrupt, match=r"snapshot-0000000002\.jsonl\.tmp, line 2, byte"):
        snapshot.write(Garbling(), directory, of, FACTS)
    assert not list(directory.glob("snapshot*"))


def test_no_room_leaves_nothing(store) -> None:
    directory, of = store
    probe = LoggingFs()
    snapshot.write(probe, directory, of, FACTS)
    (directory / "snapshot-0000000002.jsonl").unlink()
    for at in range(probe.calls.index(("replace", "snapshot-0000000002.jsonl"))):
        if probe.calls[at][0] == "close":
            continue
        with pytest.raises(StorageFull):
            snapshot.write(FailingFs(at, 28, when="half"), directory, of, FACTS)
        assert not list(directory.glob("snapshot*"))


def test_a_large_state_is_written_in_chunks(store) -> None:
    directory, of = store
    facts = [b'"%b"' % (b"x" * 1000)] * 3000
    probe = LoggingFs()
    ref = snapshot.write(probe, directory, of, facts)
    assert [kind for kind, _ in probe.calls].count("write") == 3
    assert sum(1 for _ in snapshot.read(FS, directory, of, ref)) == 3000


def test_a_snapshot_that_contradicts_itself_is_found_without_a_head(store) -> None:
    directory, of = store
    ref = snapshot.write(FS, directory, of, FACTS)
    path = directory / ref.file
    data = path.read_bytes()
    path.write_bytes(data.replace(b"Login", b"Logon"))
    with pytest.raises(SnapshotCorrupt, match="line 2") as caught:
        snapshot.inspect(FS, directory, ref.file)
    assert caught.value.remedy.endswith(SnapshotCorrupt.default_hint)
    path.write_bytes(b"nothing")
    with pytest.raises(SnapshotCorrupt, match="the header is not a snapshot's"):
        snapshot.inspect(FS, directory, ref.file)
    path.write_bytes(data.replace(b'"format":1', b'"format":2'))
    with pytest.raises(FormatTooNew):
        snapshot.inspect(FS, directory, ref.file)
    assert isinstance(ref, SnapshotRef)


@pytest.mark.parametrize("left", [2, 3])
def test_a_snapshot_that_is_cut_while_it_is_read_is_refused(store, left: int) -> None:
    directory, of = store
    ref = snapshot.write(FS, directory, of, FACTS)
    lines = (directory / ref.file).read_bytes().splitlines(keepends=True)

    class Cutting(LoggingFs):
        def _run(self, kind, method, args):
            result = super()._run(kind, method, args)
            if [one for one, _ in self.calls].count("fstat") == 2:
                os.truncate(directory / ref.file, sum(map(len, lines[:left])))
            return result

    with pytest.raises(SnapshotCorrupt, match="the file ends too early"):
        snapshot.inspect(Cutting(), directory, ref.file)


def test_only_the_very_snapshot_that_the_head_names_can_be_of_a_newer_format(store) -> None:
    directory, of = store
    ref = snapshot.write(FS, directory, of, FACTS)
    with pytest.raises(SnapshotCorrupt, match="the header is not the one that belongs here"):
        list(snapshot.read(FS, directory, msgspec.structs.replace(of, lineage="e" * 64), ref))
    newer = (directory / ref.file).read_bytes().replace(b'"format":1', b'"format":2')
    (directory / ref.file).write_bytes(newer)
    with pytest.raises(SnapshotCorrupt, match="the header is not the one that belongs here"):
        list(snapshot.read(FS, directory, of, ref))
    named = msgspec.structs.replace(ref, sha256=hashlib.sha256(newer).hexdigest())
    with pytest.raises(FormatTooNew, match="has a newer format"):
        list(snapshot.read(FS, directory, of, named))


@pytest.mark.parametrize(
    ("seq", "said"),
    [
        (3, "Nothing is lost: the journal has every fact. "),
        (5, "It replaces the records before 6, which "),
    ],
)
def test_the_hint_says_what_still_holds_the_facts_where_records_are_missing(
    tmp_path: Path, seq: int, said: str
) -> None:
    directory = holed_store(tmp_path)
    of = head.read(FS, directory)
    [ref] = [one for one in of.snapshots if one.seq == seq]
    (directory / ref.file).write_bytes(b"not the")
    with pytest.raises(SnapshotCorrupt) as caught:
        snapshot.check(FS, directory, of, ref)
    assert said in caught.value.hint
