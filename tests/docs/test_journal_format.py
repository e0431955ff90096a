"""A second reader, written from ``docs/journal-format.md`` alone and with the standard library only.

It checks the sample on that page and stores that KB has just written; what it refuses, KB refuses too.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import zlib
from pathlib import Path

import pytest

from kbcore import canonical, record
from kbcore.errors import KBError
from kbcore.storage import branchdir, compaction, head, journal, snapshot, verify
from tests.core.storage.making import CLOCK, FS, NO_SYNC, append, fill, new_store

PAGE = Path(__file__).parents[2] / "docs" / "journal-format.md"

_LINE = re.compile(
    rb'\{"v":(0|[1-9][0-9]*),"seq":([1-9][0-9]*),"prev":"([0-9a-f]{64})","sum":"([0-9a-f]{64})","rec":(\{.*\})\}\n',
    re.DOTALL,
)
_FACT = re.compile(rb'\{"crc":"([0-9a-f]{8})","fact":(.+)\}\n', re.DOTALL)


class Refused(Exception):
    """The page says that this is not a sound store."""


def require(is_so: bool, what: str) -> None:
    if not is_so:
        raise Refused(what)


def lines_of(data: bytes) -> list[bytes]:
    require(data.endswith(b"\n") or not data, "the last line has no newline")
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


def read_head(directory: Path) -> dict:
    data = (directory / "head.json").read_bytes()
    body, check = data[:-75], data[-75:]
    require(check == b',"sum":"%b"}\n' % hashlib.sha256(body).hexdigest().encode(), "head.json")
    fields = json.loads(data)
    require(fields["format"] == 1 and not fields["features_required"], "head.json is newer")
    segments, tip = fields["segments"], fields["head"]
    pruned = fields["pruned"] or {"before": 1, "hash": fields["lineage"]}
    require((segments[0]["first_seq"], segments[0]["base_hash"]) == (pruned["before"], pruned["hash"]), "beginning")
    for one, following in itertools.pairwise(segments):
        ends = (one["sealed"]["last_seq"] + 1, one["sealed"]["hash"])
        require(ends == (following["first_seq"], following["base_hash"]), "segments")
    require(segments[-1]["sealed"] is None and tip["file"] == segments[-1]["file"], "last segment")
    for part in segments:
        require(part["file"] == f"journal-{part['first_seq']:010}.jsonl", "name of a segment")
    for part in fields["snapshots"]:
        require(part["file"] == f"snapshot-{part['seq']:010}.jsonl" and part["seq"] <= tip["seq"], "snapshot")
    return fields


def read_segment(data: bytes, seq: int, prev: str) -> tuple[list[dict], int, str]:
    """Return the payloads, and seq and sum of the last record."""
    payloads = []
    for line in lines_of(data):
        found = _LINE.fullmatch(line)
        require(found is not None, f"record {seq + 1} is no record")
        assert found is not None
        covered = b"kb-record %010d %020d %b\n" % (int(found[1]), int(found[2]), found[3])
        assert len(covered) == 107
        require(int(found[1]) == 1 and int(found[2]) == seq + 1 and found[3].decode() == prev, f"record {seq + 1}")
        require(hashlib.sha256(covered + found[5]).hexdigest().encode() == found[4], f"sum of record {seq + 1}")
        payloads.append(json.loads(found[5]))
        seq, prev = seq + 1, found[4].decode()
    return payloads, seq, prev


def read_snapshot(data: bytes, lineage: str, ref: dict) -> list:
    require((len(data), hashlib.sha256(data).hexdigest()) == (ref["length"], ref["sha256"]), ref["file"])
    first, *facts, last = lines_of(data)
    header = f'{{"kb":"snapshot","format":1,"lineage":"{lineage}","seq":{ref["seq"]},"hash":"{ref["hash"]}"}}\n'
    require(first == header.encode(), "header")
    values = []
    for line in facts:
        found = _FACT.fullmatch(line)
        require(found is not None and b"%08x" % zlib.crc32(found[2]) == found[1], "fact")
        assert found is not None
        values.append(json.loads(found[2]))
    above = hashlib.sha256(b"".join([first, *facts])).hexdigest()
    require(last.decode() == f'{{"count":{len(facts)},"sha256":"{above}"}}\n', "footer")
    return values


def read_store(directory: Path) -> tuple[list[dict], dict[int, list]]:
    """Return every payload, and the facts of every snapshot by seq."""
    fields = read_head(directory)
    payloads: list[dict] = []
    hashes = {}
    for part in fields["segments"]:
        data = (directory / part["file"]).read_bytes()
        end = part["sealed"] or {
            "length": fields["head"]["length"],
            "last_seq": fields["head"]["seq"],
            "hash": fields["head"]["hash"],
        }
        require(len(data) == end["length"] or (part["sealed"] is None and len(data) > end["length"]), part["file"])
        more, seq, last = read_segment(data[: end["length"]], part["first_seq"] - 1, part["base_hash"])
        require((seq, last) == (end["last_seq"], end["hash"]), f"end of {part['file']}")
        payloads += more
        hashes[seq] = last
    facts = {}
    for ref in fields["snapshots"]:
        require(hashes.get(ref["seq"], ref["hash"]) == ref["hash"], "snapshot of another history")
        facts[ref["seq"]] = read_snapshot((directory / ref["file"]).read_bytes(), fields["lineage"], ref)
    return payloads, facts


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """The sample on the page, as files."""
    directory = tmp_path / "sample"
    directory.mkdir()
    text = PAGE.read_text(encoding="utf-8")
    for name, content in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", text, re.DOTALL):
        (directory / name).write_text(content, encoding="utf-8", newline="")
    return directory


def test_the_sample_on_the_page_is_sound(sample: Path) -> None:
    payloads, facts = read_store(sample)
    assert [payload["changeset_id"] for payload in payloads] == ["login-1", "login-2", "login-3"]
    assert len(facts[2]) == 5


def test_kb_reads_the_sample_and_understands_it(sample: Path) -> None:
    proof = verify.prove(FS, sample)
    assert proof.findings == ()
    of = proof.head
    assert of is not None
    entries = list(journal.scan(FS, sample, of))
    assert [record.decode(entry.frame.rec, seq=entry.frame.seq).actor for entry in entries] == ["Ada"] * 3
    folded = canonical.read(snapshot.read(FS, sample, of, of.snapshots[0]))
    assert sorted(folded.state.nodes) == ["REQ-1", "TEST-1"]


def fresh_stores(tmp_path: Path) -> list[Path]:
    plain = new_store(tmp_path, 0, name="plain")
    for number in (1, 2, 3):
        append(plain, number)
    empty = new_store(tmp_path, 0, name="empty")
    long = new_store(tmp_path, 4, name="long")
    for _ in range(3):
        compaction.compact(NO_SYNC, long, CLOCK, lambda of: [b'{"seq":%d}' % of.seq, b'"\xc3\xa9"'])
        fill(long, 2)
    branchdir.copy(NO_SYNC, long, tmp_path / "copy", branch="copy")
    compaction.compact(NO_SYNC, tmp_path / "copy", CLOCK, lambda of: [], prune_before=7)
    append(tmp_path / "copy", 11)
    return [plain, empty, long, tmp_path / "copy"]


def test_freshly_written_stores_are_sound(tmp_path: Path) -> None:
    read = [read_store(directory) for directory in fresh_stores(tmp_path)]
    assert [len(payloads) for payloads, _ in read] == [3, 0, 10, 5]
    assert [sorted(facts) for _, facts in read] == [[], [], [4, 6, 8], [6, 8, 10]]
    assert read[2][1][6] == [{"seq": 6}, "é"]


def test_a_torn_end_is_not_read(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    with (directory / head.read(FS, directory).head.file).open("ab") as file:
        file.write(b'{"v":1,"seq":3')
    assert len(read_store(directory)[0]) == 2


@pytest.mark.parametrize("kind", ["head", "journal", "snapshot"])
def test_both_readers_refuse_the_same_damage(sample: Path, kind: str) -> None:
    for path in sorted(sample.glob(f"{kind}*")):
        data = path.read_bytes()
        for bit in range(0, 8 * len(data), 13):
            damaged = bytearray(data)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            with pytest.raises((Refused, ValueError)):
                read_store(sample)
            assert not verify.prove(FS, sample).is_sound, (path.name, bit)
        path.write_bytes(data)
    read_store(sample)


def test_both_readers_compute_the_same_checksums(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 5)
    of = head.read(FS, directory)
    assert read_segment((directory / of.head.file).read_bytes(), 0, of.lineage)[1:] == (5, of.hash)
    with pytest.raises(KBError):
        head.decode(b"{}\n", directory)
