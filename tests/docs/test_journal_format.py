"""A second reader, written from ``docs/journal-format.md`` alone and with the standard library only.

It checks the sample on that page and stores that KB has just written; what it refuses, KB refuses too.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from kbcore.errors import KBError
from kbcore.maintenance import redaction, redaction_preview
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.proof import redaction_contradictions
from kbcore.model import canonical, record
from kbcore.storage import branchdir, compaction, frame, head, journal, snapshot, verify
from kbcore.store.write_request import Author
from tests.core.storage.making import CLOCK, FS, NO_SYNC, append, fill, new_store
from tests.support.effort.scale import tries
from tests.support.oracles.golden import GOLDEN
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git

PAGE = Path(__file__).parents[2] / "docs" / "journal-format.md"

_LINE = re.compile(
    rb'\{"v":(0|[1-9][0-9]*),"seq":([1-9][0-9]*),"prev":"([0-9a-f]{64})","sum":"([0-9a-f]{64})","rec":(\{.*\})\}\n',
    re.DOTALL,
)
_FACT = re.compile(rb'\{"crc":"([0-9a-f]{8})","fact":(.+)\}\n', re.DOTALL)


ALWAYS = frozenset({"schema", "changeset_id", "digest", "at", "actor", "source", "tool", "ops"})
OTHERS = {"message", "unchanged", "edges_unchanged", "warnings", "clock", "holes", "unproven", "repair"}
REDACTIONS = {"redacted", "redaction", "change"}
MEMBERS = ALWAYS | OTHERS | REDACTIONS
NEW_MEMBERS = frozenset({"commit", "session", "epoch"})
OPERATIONS = {"put", "drop", "link", "unlink", "confirm", "source", "forget"}


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
    # A reader of one folder need not know more of a store in the git directory than that it is there.
    is_known = set(fields["features_required"]) <= {"git_directory", "redacted", "epochs"}
    require(fields["format"] == 1 and is_known, "head.json is newer")
    redacted = fields.get("redacted")
    require((redacted is not None) == ("redacted" in fields["features_required"]), "feature redacted")
    segments, tip = fields["segments"], fields["head"]
    pruned = fields["pruned"] or {"before": 1, "hash": fields["lineage"]}
    require((segments[0]["first_seq"], segments[0]["base_hash"]) == (pruned["before"], pruned["hash"]), "beginning")
    for one, following in itertools.pairwise(segments):
        ends = (one["sealed"]["last_seq"] + 1, one["sealed"]["hash"])
        require(ends == (following["first_seq"], following["base_hash"]), "segments")
    require(segments[-1]["sealed"] is None and tip["file"] == segments[-1]["file"], "last segment")
    last = redacted["generation"] if redacted else 0
    for part in segments:
        require(part["file"] in names_of(f"journal-{part['first_seq']:010}", last), "name of a segment")
    for part in fields["snapshots"]:
        require(part["file"] in names_of(f"snapshot-{part['seq']:010}", last), "name of a snapshot")
        require(part["seq"] <= tip["seq"], "snapshot")
    return fields


def names_of(stem: str, last: int) -> set[str]:
    """Return the names that a file may have, by the redaction that wrote it."""
    return {f"{stem}.jsonl", *(f"{stem}-r{number}.jsonl" for number in range(1, last + 1))}


def check_redactions(fields: dict, payloads: dict[int, bytes]) -> None:
    """Refuse a store whose changed records are not those that later ones name, as these left them."""
    said = {seq: json.loads(raw) for seq, raw in payloads.items()}
    made = {seq: one["redaction"] for seq, one in said.items() if "redaction" in one}
    require(not made or fields.get("redacted") is not None, "a redaction that the head does not know of")
    if fields.get("redacted"):
        require(fields["redacted"]["seq"] in made, "no record documents the last redaction")
    named = {one["seq"]: (seq, one["digest"]) for seq, each in made.items() for one in each["records"]}
    require({seq for seq, one in said.items() if "redacted" in one} == named.keys() & payloads.keys(), "named records")
    for seq, (by, digest) in named.items():
        require(seq < by, "a record that was redacted by an earlier one")
        if seq in payloads:
            require(hashlib.sha256(payloads[seq]).hexdigest() == digest, f"redacted record {seq}")
    for by, each in made.items():
        left_out = {one["seq"] for one in each["records"]}
        kept = [payloads.get(seq) for seq in range(each["since"], by) if seq not in left_out]
        if each["kept"] and None not in kept:
            total = hashlib.sha256(b"".join(raw + b"\n" for raw in kept if raw is not None))
            require(total.hexdigest() == each["kept"], f"records before {by}")


def read_segment(data: bytes, seq: int, prev: str) -> tuple[list[bytes], int, str]:
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
        payloads.append(found[5])
        seq, prev = seq + 1, found[4].decode()
    return payloads, seq, prev


def check_payload(payload: dict) -> None:
    """Refuse a payload with a member that its vocabulary does not have, or with a value that the page rules out."""
    require(payload["schema"] in {1, 2}, "the vocabulary is newer")
    known = MEMBERS | (NEW_MEMBERS if payload["schema"] == 2 else frozenset())
    require(payload.keys() <= known and payload.keys() >= ALWAYS, "members")
    require({op["op"] for op in payload["ops"]} <= OPERATIONS, "operations")
    if payload["schema"] == 2:
        require(re.fullmatch(r"[0-9a-f]{32}", payload["epoch"]) is not None, "epoch")
        require(re.fullmatch(r"|[0-9a-f]{40}|[0-9a-f]{64}", payload.get("commit", "")) is not None, "commit")
        session = payload.get("session", "-")
        require(1 <= len(session) <= 100 and session.isprintable(), "session")


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
    payloads: dict[int, bytes] = {}
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
        payloads |= dict(enumerate(more, part["first_seq"]))
        hashes[seq] = last
    facts = {}
    for ref in fields["snapshots"]:
        require(hashes.get(ref["seq"], ref["hash"]) == ref["hash"], "snapshot of another history")
        facts[ref["seq"]] = read_snapshot((directory / ref["file"]).read_bytes(), fields["lineage"], ref)
    check_redactions(fields, payloads)
    return [json.loads(raw) for raw in payloads.values()], facts


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
    assert [payload["changeset_id"] for payload in payloads] == ["login-1", "login-2", "login-3", "login-4"]
    assert [payload["schema"] for payload in payloads] == [1, 1, 1, 2]
    for payload in payloads:
        check_payload(payload)
    assert len(facts[2]) == 5


def test_kb_reads_the_sample_and_understands_it(sample: Path) -> None:
    proof = verify.prove(FS, sample)
    assert proof.findings == ()
    of = proof.head
    assert of is not None
    entries = list(journal.scan(FS, sample, of))
    assert [record.decode(entry.frame.rec, seq=entry.frame.seq).actor for entry in entries] == ["Ada"] * 3 + [
        "claude/2.1"
    ]
    last = record.decode(entries[-1].frame.rec, seq=4)
    assert (last.commit[:12], last.session, last.epoch) == ("8f4d2c6b1f0e", "b7c19d40aa52e6f3", of.store_id)
    assert not any((of_old := record.decode(entries[0].frame.rec, seq=1)).commit + of_old.session + of_old.epoch)
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


def test_what_a_write_records_is_as_the_page_says(tmp_path: Path) -> None:
    project = Project(tmp_path / "repo")
    bot = Author("bot", "mcp:bot", "kb/test", "s-1")
    entity = {"id": "REQ-1", "type": "req", "title": "One", "status": "open"}
    project.apply(entities=[entity])
    project.apply(author=bot, entities=[{**entity, "title": "Two"}])
    git(project.root, "branch", "other")
    project.apply(author=bot, branch="other", entities=[{**entity, "title": "Three"}])
    commit = git(project.root, "rev-parse", "HEAD").strip()
    stores = [project.workspace().folders.directory_of(branch) for branch in ("main", "other")]
    (main, other), ids = [read_store(one)[0] for one in stores], [read_head(one)["store_id"] for one in stores]
    project.close()
    for payload in (*main, *other):
        check_payload(payload)
    made = [[payload.get(name) for name in ("commit", "session", "epoch")] for payload in (*main, other[-1])]
    # A record of a branch that HEAD is not on has no commit.
    assert made == [[commit, None, ids[0]], [commit, "s-1", ids[0]], [None, "s-1", ids[1]]]
    assert [payload["epoch"] for payload in other] == [ids[0], ids[0], ids[1]]


@pytest.mark.parametrize("release", sorted(path.name for path in GOLDEN.iterdir() if path.is_dir()))
def test_the_records_of_every_golden_store_are_as_the_page_says(release: str) -> None:
    directory = GOLDEN / release / "kb" / "branches" / "main"
    payloads, _ = read_store(directory)
    for payload in payloads:
        check_payload(payload)
    assert {payload["schema"] for payload in payloads} == {2 if "vocabulary-2" in release else 1}


@pytest.fixture
def redacted(tmp_path: Path) -> Iterator[Path]:
    """The directory of a store from which a title was taken out, then a message, with a snapshot before both."""
    project = Project(tmp_path / "repo")
    entity = {"id": "REQ-1", "type": "req", "title": "One hunter2", "status": "open"}
    project.apply(entities=[{**entity, "id": "REQ-0", "title": "Zero"}])
    project.apply(entities=[entity])
    compact(project.workspace(), "main")
    project.apply(entities=[{**entity, "title": "Two"}], message="not swordfish")
    for secret in ("hunter2", "swordfish"):
        redaction.redact(project.workspace(), "main", redaction_preview.Wanted("pattern", secret), AUTHOR)
    yield project.workspace().folders.directory_of("main")
    project.close()


def test_a_redacted_store_is_as_the_page_says(redacted: Path) -> None:
    payloads, facts = read_store(redacted)
    for payload in payloads:
        check_payload(payload)
    assert [bool(payload.get("redacted")) for payload in payloads] == [False, True, True, True, False]
    assert [one["redaction"]["kept"] != "" for one in payloads[3:]] == [False, True]
    assert facts[2]
    assert read_head(redacted)["redacted"]["generation"] == 2


def test_both_readers_refuse_a_redacted_record_that_was_changed_or_is_not_named(redacted: Path) -> None:
    path = redacted / read_head(redacted)["segments"][-1]["file"]
    fields, saved = read_head(redacted), {one: one.read_bytes() for one in redacted.glob("*.json*")}
    for old, new in (
        (b"not [redacted]", b"not [REDACTED]"),
        (b'"redacted":["message","digest"]', b'"warnings":["none at all now"]'),
    ):
        prev, data = fields["segments"][-1]["base_hash"], b""
        for line in path.read_bytes().splitlines(keepends=True):
            sound = frame.peek(line)
            assert sound is not None
            made, again = frame.encode(sound.seq, prev, sound.rec.replace(old, new))
            prev, data = made.sum, data + again
        assert data != saved[path]
        path.write_bytes(data)
        of = head.read(FS, redacted)
        tip = msgspec.structs.replace(of.head, hash=prev, length=len(data))
        (redacted / "head.json").write_bytes(head.encode(msgspec.structs.replace(of, head=tip)))
        with pytest.raises(Refused):
            read_store(redacted)
        assert [*redaction_contradictions(FS, redacted, head.read(FS, redacted))]
        for one, content in saved.items():
            one.write_bytes(content)
    read_store(redacted)


@pytest.mark.sliced(3)
@pytest.mark.parametrize("kind", ["head", "journal", "snapshot"])
def test_both_readers_refuse_the_same_damage(sample: Path, kind: str) -> None:
    for path in sorted(sample.glob(f"{kind}*")):
        data = path.read_bytes()
        for bit in range(0, 8 * len(data), tries(53, 13)):
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
