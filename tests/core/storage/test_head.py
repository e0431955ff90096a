"""The head file: whole, proven, consistent, or refused."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import msgspec
import pytest

from kbcore.errors import FormatTooNew, HeadDamaged, StorageError, UnknownBranch
from kbcore.storage import compaction, head, layout
from kbcore.storage.head import EPOCHS, HOLES, Epoch, Head, Pruned, Sealed, SnapshotRef
from tests.core.storage.making import CLOCK, FS, fill, new_store
from tests.support.disk.faultfs import LoggingFs


@pytest.fixture
def rich(tmp_path: Path) -> Path:
    """A store whose head has everything: origin aside, snapshots, sealed segments, pruned history."""
    directory = new_store(tmp_path, 3)
    compaction.compact(FS, directory, CLOCK, lambda of: [b"1"])
    fill(directory, 2)
    compaction.compact(FS, directory, CLOCK, lambda of: [b"1", b"2"], prune_before=4)
    fill(directory, 2)
    return directory


def test_it_is_read_back_as_it_was_written(rich: Path) -> None:
    of = head.read(FS, rich)
    assert head.decode(head.encode(of), rich) == of
    assert (of.seq, of.first_seq, len(of.segments), len(of.snapshots)) == (7, 4, 2, 2)
    assert of.pruned is not None
    assert of.pruned.before == 4


def test_its_last_bytes_are_the_checksum_of_the_rest(rich: Path) -> None:
    data = (rich / "head.json").read_bytes()
    body = data[: -head.CHECK_BYTES]
    assert head.CHECK_BYTES == 75
    assert json.loads(data)["sum"] == hashlib.sha256(body).hexdigest()


def test_every_bit_flip_is_damage(rich: Path) -> None:
    data = (rich / "head.json").read_bytes()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(HeadDamaged):
            head.decode(bytes(flipped), rich)


def test_every_truncation_is_damage(rich: Path) -> None:
    data = (rich / "head.json").read_bytes()
    for length in range(len(data)):
        with pytest.raises(HeadDamaged):
            head.decode(data[:length], rich)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "The file is empty"),
        (b"\0" * 600, "zero bytes"),
        (b"<<<<<<< HEAD\n" * 9, "merge marker"),
    ],
)
def test_the_hint_names_the_cause_and_the_remedy(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(HeadDamaged) as caught:
        head.decode(data, tmp_path / "head.json")
    assert caught.value.message == f"{tmp_path}/head.json is damaged: its checksum does not match"
    assert words in caught.value.hint
    assert "`kb help rebuild-head`" in caught.value.hint


def test_no_head_beside_a_journal_is_damage(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 1)
    (directory / "head.json").unlink()
    with pytest.raises(HeadDamaged, match=r"head\.json is damaged: it is missing although there is a journal"):
        head.read(FS, directory)


def test_a_store_that_is_renamed_to_its_place_while_it_is_read_is_found(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    directory.rename(tmp_path / "elsewhere")

    class Renaming(LoggingFs):
        def _run(self, kind, method, args):
            if kind == "lstat":
                (tmp_path / "elsewhere").rename(directory)
            return super()._run(kind, method, args)

    assert head.read(Renaming(), directory).seq == 2


def test_no_store_is_no_damage(tmp_path: Path) -> None:
    with pytest.raises(UnknownBranch, match="there is no store in"):
        head.read(FS, tmp_path / "nothing")


@pytest.mark.parametrize(
    ("names", "said", "undo"),
    [
        ([], "empty holds nothing, and no store", "remove it"),
        (["lock"], "holds only lock, and", "remove it"),
        (["lock", "notes.txt"], "holds only lock, notes.txt, and", "move it away"),
    ],
)
def test_a_folder_without_a_store_is_reported_with_what_lies_there(tmp_path: Path, names, said, undo) -> None:
    (tmp_path / "empty").mkdir()
    for name in names:
        (tmp_path / "empty" / name).touch()
    with pytest.raises(HeadDamaged, match=said) as caught:
        head.read(FS, tmp_path / "empty")
    assert f"Restore the folder from a backup, or {undo}" in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "needs"),
    [({"format": 2}, "format 2"), ({"features_required": ["moon", "sun"]}, "feature moon, sun")],
)
def test_a_newer_format_is_refused_whole(rich: Path, changes: dict, needs: str) -> None:
    data = (rich / "head.json").read_bytes()
    newer = json.loads(data[: -head.CHECK_BYTES] + b"}") | changes | {"unheard_of": 1}
    body = json.dumps(newer).encode()[:-1]
    path = rich / "head.json"
    path.write_bytes(body + b',"sum":"%b"}\n' % hashlib.sha256(body).hexdigest().encode())
    with pytest.raises(FormatTooNew) as caught:
        head.read(FS, rich)
    assert caught.value.message == f"{path} needs a newer KB: {needs}"


def with_epochs(of: Head, *epochs: Epoch) -> Head:
    return msgspec.structs.replace(of, features_required=(EPOCHS,), epochs=epochs)


def with_hole(of: Head, *, before: int = 6, ends: Sealed | None = None) -> Head:
    """Return a head of records from 4 on, whose second segment begins at 6 and whose first ends with record 4."""
    first, active = of.segments
    replace = msgspec.structs.replace
    later = replace(active, file=layout.segment_name(before), first_seq=before, base_hash=of.lineage)
    sealed = replace(first, sealed=ends or Sealed(99, 4, "0" * 64))
    return replace(
        of,
        features_required=(HOLES,),
        snapshots=of.snapshots[:1],
        segments=(sealed, later),
        head=replace(of.head, file=later.file, seq=max(of.head.seq, before)),
    )


def contradictions(of: Head) -> dict[str, Head]:
    replace = msgspec.structs.replace
    first, active = of.segments
    assert first.sealed
    ref = of.snapshots[0]
    return {
        "no segment": replace(of, segments=()),
        "redaction without its feature": replace(of, redacted=head.Redacted(1, 7, "0" * 32)),
        "feature without a redaction": replace(of, features_required=(head.REDACTED,)),
        "file of an unknown redaction": replace(
            of,
            features_required=(head.REDACTED,),
            redacted=head.Redacted(1, 7, "0" * 32),
            segments=(replace(first, file=layout.segment_name(first.first_seq, 2)), active),
        ),
        "outside": replace(of, segments=(replace(first, file="../../etc/passwd"), active)),
        "gap": replace(of, segments=(first, replace(active, first_seq=99))),
        "unsealed middle": replace(of, segments=(replace(first, sealed=None), active)),
        "other base": replace(of, segments=(first, replace(active, base_hash="0" * 64))),
        "other count": replace(of, segments=(replace(first, sealed=replace(first.sealed, last_seq=4)), active)),
        "records twice": replace(of, segments=(replace(first, sealed=replace(first.sealed, last_seq=6)), active)),
        "nothing sealed": replace(of, segments=(replace(first, sealed=Sealed(0, 3, first.base_hash)), first, active)),
        "sealed active": replace(of, segments=(first,)),
        "active and sealed": replace(of, segments=(first, replace(active, sealed=Sealed(1, 7, of.hash)))),
        "beginning": replace(of, pruned=None),
        "pruned elsewhere": replace(of, pruned=Pruned(3, first.base_hash, "")),
        "tip elsewhere": replace(of, head=replace(of.head, file=first.file)),
        "tip before": replace(of, snapshots=(), head=replace(of.head, seq=2)),
        "other hash before any record": replace(of, head=replace(of.head, seq=active.first_seq - 1, length=0)),
        "length without records": replace(of, head=replace(of.head, seq=active.first_seq - 1)),
        "records without length": replace(of, head=replace(of.head, length=0)),
        "snapshot outside": replace(of, snapshots=(replace(ref, file="/etc/passwd"),)),
        "snapshot twice": replace(of, snapshots=(ref, ref)),
        "epoch beyond": with_epochs(of, Epoch("old", of.seq + 1, "", of.seq + 1, "")),
        "epoch that saw less than it has": with_epochs(of, Epoch("old", 5, "", 4, "")),
        "epoch before the beginning": with_epochs(of, Epoch("old", -1, "", 0, "")),
        "epoch of the present id": with_epochs(of, Epoch(of.store_id, 5, "", 5, "")),
        "epoch without the feature": replace(with_epochs(of, Epoch("old", 5, "", 5, "")), features_required=()),
        "hole without the feature": replace(with_hole(of), features_required=()),
        "no hole after an empty segment": with_hole(of, before=4, ends=Sealed(0, 3, first.base_hash)),
        "length of an empty segment": with_hole(of, ends=Sealed(1, 3, first.base_hash)),
        "hash of an empty segment": with_hole(of, ends=Sealed(0, 3, "0" * 64)),
        "count of an empty segment": with_hole(of, ends=Sealed(0, 2, first.base_hash)),
        "snapshot beyond": replace(of, snapshots=(SnapshotRef("snapshot-0000000099.jsonl", 99, "", 1, ""),)),
    }


def test_a_head_that_contradicts_itself_is_damage(rich: Path) -> None:
    for name, wrong in contradictions(head.read(FS, rich)).items():
        with pytest.raises(HeadDamaged):
            head.decode(head.encode(wrong), rich / name)


def test_a_head_with_missing_records_or_with_epochs_is_sound(rich: Path) -> None:
    of = head.read(FS, rich)
    first = of.segments[0]
    for sound in (
        with_epochs(of, Epoch("old", 5, "", 9, ""), Epoch("older", 0, of.lineage, 0, "")),
        with_hole(of),
        with_hole(of, ends=Sealed(0, 3, first.base_hash)),
    ):
        assert head.decode(head.encode(sound), rich) == sound
    holed = with_hole(of)
    assert [(hole.first, hole.last) for hole in holed.holes] == [(5, 5)]
    assert [holed.ends_at_hole(one) for one in holed.segments] == [True, False]


def test_what_a_damaged_head_seems_to_say_is_read_as_far_as_this_kb_knows_it(rich: Path) -> None:
    of = head.read(FS, rich)
    first, active = of.segments

    def seen(changed: Head) -> Head | None:
        return head.decode_unproven(head.encode(changed)[: -head.CHECK_BYTES] + b"?" * head.CHECK_BYTES)

    unsealed = msgspec.structs.replace(of, segments=(msgspec.structs.replace(first, sealed=None), active))
    assert seen(unsealed) == unsealed
    assert unsealed.holes == ()
    for name in ("hoLes", HOLES):
        assert seen(msgspec.structs.replace(of, features_required=(name,))) == msgspec.structs.replace(
            of, features_required=(HOLES,)
        )
    for name in ("hoLEs", "hole", "holess", "moon"):
        with pytest.raises(FormatTooNew, match=f"needs a newer KB: feature {name}"):
            seen(msgspec.structs.replace(of, features_required=(name,)))
    assert head.decode_unproven(b"{") is None


def test_a_valid_checksum_over_something_else_is_damage(tmp_path: Path) -> None:
    body = b'{"format":1,"features_required":[]'
    with pytest.raises(HeadDamaged, match="it is not a head file of format 1"):
        head.decode(body + b',"sum":"%b"}\n' % hashlib.sha256(body).hexdigest().encode(), tmp_path)


def test_a_symbolic_link_is_refused(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 1)
    (directory / "head.json").rename(tmp_path / "elsewhere")
    (directory / "head.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="it is a symbolic link"):
        head.read(FS, directory)


def test_an_endless_head_is_not_read(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 1)
    os.truncate(directory / "head.json", 5 * 1024 * 1024)
    with pytest.raises(StorageError, match="it is larger than"):
        head.read(FS, directory)


def test_ids_are_random() -> None:
    assert head.new_store_id() != head.new_store_id()
    assert len(head.new_lineage()) == 64


def test_a_new_head_says_of_redactions_what_the_old_one_said(rich: Path) -> None:
    said = head.Redacted(1, 5, "the id before it", ("a-copy",))
    old = msgspec.structs.replace(head.read(FS, rich), redacted=said)
    assert head.redaction_of([layout.segment_name(1, 2)], old, 9) == said


def test_a_new_head_knows_a_redaction_by_the_names_of_the_files_where_the_old_one_says_none(rich: Path) -> None:
    names = [layout.segment_name(1), layout.segment_name(1, 2), layout.snapshot_name(4, 1)]
    for old in (None, head.read(FS, rich)):
        assert head.redaction_of(names, old, 9) == head.Redacted(2, 9, "")
        assert head.redaction_of(names[:1], old, 9) is None
