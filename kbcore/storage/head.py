"""The head file of one branch: which files count, and up to which byte; format in ``docs/journal-format.md``.

Invariant: it is replaced as a whole and carries a checksum over all of itself, so a reader has one whole head
or an error; and what it names is consistent, so a reader never meets a file name that KB did not make.
"""

from __future__ import annotations

import hashlib
import itertools
import secrets
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from kbcore.errors import FormatTooNew, HeadDamaged, UnknownBranch, new_head_advice
from kbcore.errors.remedies import kb
from kbcore.limits import MAX_HEAD_BYTES
from kbcore.storage import byte_diagnosis, files, layout
from kbcore.storage.fs import Fs
from kbcore.storage.places import MissingRecords, Position

FORMAT: Final = 1
EPOCHS: Final = "epochs"
"""The feature of a head with ``epochs``."""
HOLES: Final = "holes"
"""The feature of a journal in which records are missing: its segments do not all follow each other."""
GIT_DIRECTORY: Final = "git_directory"
"""The feature of a store that was moved into the git directory: a KB that looks for it elsewhere refuses it."""
REDACTED: Final = "redacted"
"""The feature of a store from which something was taken out: its files may have the names of a later generation."""
KNOWN_FEATURES: Final[frozenset[str]] = frozenset({EPOCHS, GIT_DIRECTORY, HOLES, REDACTED})
"""The names allowed in ``features_required``; any other was written by a newer KB."""
MAX_EPOCHS: Final = 64
"""The most epochs that a head keeps; the oldest is dropped for a new one."""

_SUM_KEY: Final = b',"sum":"'
_SUM_END: Final = b'"}\n'
CHECK_BYTES: Final = len(_SUM_KEY) + 64 + len(_SUM_END)
"""The end of the file that holds the checksum; in every format, over all bytes before it."""


class Sealed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The end of a segment that no record will be added to."""

    length: int
    last_seq: int
    hash: str
    """``sum`` of its last record."""


class Segment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One journal file; only the last one of a head is not sealed."""

    file: str
    first_seq: int
    base_hash: str
    """``sum`` of the record before its first one."""
    sealed: Sealed | None = None

    @property
    def start(self) -> Position:
        """The position before its first record."""
        return Position(self.first_seq - 1, self.base_hash, self.file, 0)


class SnapshotRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A snapshot that counts."""

    file: str
    seq: int
    hash: str
    """``sum`` of record ``seq``."""
    length: int
    sha256: str
    """Of the whole file."""


class CopiedFrom(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The head that this branch was copied from."""

    branch: str
    seq: int
    hash: str


class Pruned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The note that history before a seq was given up on purpose."""

    before: int
    """The first seq that is still there."""
    hash: str
    """``sum`` of the record before it."""
    at: str


class Epoch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An id that the store had before, and the last record that it is known to have of the time under that id.

    A reference is a store id and a seq. ``(store_id, n)`` means a record of this store for n up to ``seq``; the records
    after it under the same id are lost, or belong to another copy of the store. ``seq`` is 0 where nothing is known of
    the records under that id.
    """

    store_id: str
    seq: int
    hash: str
    """``sum`` of record ``seq``; the lineage for 0."""
    seen: int
    """The highest seq that is known to have been acknowledged under this id; ``seq`` when none is known to be lost."""
    at: str


class Redacted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last redaction of a store."""

    generation: int
    """Their number; the files that the last one wrote have it in their names."""
    seq: int
    """The record that documents it. Files of an earlier generation that begin no later, and that do not count, go."""
    store_id: str
    """The id that the store had up to it."""
    removes: tuple[str, ...] = ()
    """The entries of ``quarantine/`` that it removes, without those whose names have a digest: they name a segment."""


class Tip(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last acknowledged record, and where the acknowledged bytes end."""

    seq: int
    hash: str
    file: str
    length: int
    at: str
    """Time of that record; of the store's creation while there is none."""


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All that a head file says. Field order is the order in the file; ``epochs`` is left out where it is empty."""

    format: int
    features_required: tuple[str, ...]
    store_id: str
    """32 hex digits, of this directory alone."""
    lineage: str
    """64 hex digits: ``prev`` of record 1; shared by all copies of one store, and by nothing else."""
    branch: str
    """The branch's real name; a directory's name may be an encoding of it."""
    origin: CopiedFrom | None
    pruned: Pruned | None
    snapshots: tuple[SnapshotRef, ...]
    """Oldest first."""
    segments: tuple[Segment, ...]
    """Oldest first; the last one takes new records."""
    head: Tip
    epochs: tuple[Epoch, ...] = ()
    """The ids that the store had before, oldest first."""
    redacted: Redacted | None = None
    """Left out where nothing was redacted."""

    @property
    def generation(self) -> int:
        """The number of redactions of this store."""
        return self.redacted.generation if self.redacted else 0

    @property
    def seq(self) -> int:
        """Position of the last acknowledged record; 0 in an empty store."""
        return self.head.seq

    @property
    def hash(self) -> str:
        """``sum`` of the last acknowledged record; the lineage in an empty store."""
        return self.head.hash

    @property
    def start(self) -> Position:
        """The position before the first record that is still there."""
        return self.segments[0].start

    @property
    def end(self) -> Position:
        """The position of the head itself."""
        return Position(self.seq, self.hash, self.head.file, self.head.length)

    @property
    def active(self) -> Segment:
        """The segment that takes new records."""
        return self.segments[-1]

    @property
    def first_seq(self) -> int:
        """The first seq whose record is still there, or will be."""
        return self.segments[0].first_seq

    @property
    def holes(self) -> tuple[MissingRecords, ...]:
        """The records that are missing between two segments, oldest first."""
        return tuple(
            MissingRecords(part.sealed.last_seq + 1, following.first_seq - 1, part.sealed.hash, following.base_hash)
            for part, following in itertools.pairwise(self.segments)
            if part.sealed is not None and part.sealed.last_seq + 1 < following.first_seq
        )

    @property
    def parts(self) -> tuple[tuple[int, int], ...]:
        """First and last seq of each part of the journal in which no record is missing, oldest first."""
        holes = self.holes
        firsts = (self.first_seq, *(hole.last + 1 for hole in holes))
        return tuple(zip(firsts, (*(hole.first - 1 for hole in holes), self.seq), strict=True))

    @property
    def whole_from(self) -> int:
        """The first seq from which on no record is missing."""
        return self.holes[-1].last + 1 if self.holes else self.first_seq

    def ends_at_hole(self, segment: Segment) -> bool:
        """Return whether records are missing after a segment: its file may then hold damaged bytes after its end."""
        end = segment.sealed
        return end is not None and any(hole.first == end.last_seq + 1 for hole in self.holes)

    @property
    def files(self) -> frozenset[str]:
        """Names of the segments and snapshots that count."""
        return frozenset([*(part.file for part in self.segments), *(ref.file for ref in self.snapshots)])

    def epoch_of(self, store_id: str) -> Epoch | None:
        """Return the epoch under an id that the store had before, None when it never had that id."""
        return next((one for one in reversed(self.epochs) if one.store_id == store_id), None)


class _Preamble(msgspec.Struct, frozen=True):
    format: int
    features_required: tuple[str, ...]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Head).decode
_decode_preamble = msgspec.json.Decoder(_Preamble).decode


def new_store_id() -> str:
    """Return a random id for one store directory."""
    return secrets.token_hex(16)


def new_lineage() -> str:
    """Return the random beginning of a new history."""
    return secrets.token_hex(32)


def with_epoch(of: Head, ended: Epoch) -> Head:
    """Return the head with an epoch that ended; where that was the one of its present id, it gets a new id."""
    return msgspec.structs.replace(
        of,
        store_id=new_store_id() if of.store_id == ended.store_id else of.store_id,
        features_required=tuple(sorted({*of.features_required, EPOCHS})),
        epochs=(*of.epochs, ended)[-MAX_EPOCHS:],
    )


def redaction_of(names: Iterable[str], old: Head | None, seq: int) -> Redacted | None:
    """Return what a head says of redactions that is made from files with these names, where ``old`` may be lost.

    ``seq`` is the last record of the files.
    """
    if old is not None and old.redacted is not None:
        return old.redacted
    generation = max(map(layout.generation_of, names), default=0)
    return Redacted(generation, seq, "") if generation else None


def encode(head: Head) -> bytes:
    """Return the bytes of a head file: a JSON object whose last key is the SHA-256 of all bytes before it."""
    return with_sum(_encode(head))


def with_sum(data: bytes) -> bytes:
    """Return a JSON object as one line with one key more at its end: the SHA-256 of all bytes before that key."""
    body = data.removesuffix(b"}")
    return body + _SUM_KEY + hashlib.sha256(body).hexdigest().encode() + _SUM_END


def without_sum(data: bytes) -> bytes | None:
    """Return the object that was given to ``with_sum``; None for bytes with a wrong checksum, or with none."""
    body, check = data[:-CHECK_BYTES], data[-CHECK_BYTES:]
    is_sound = check == _SUM_KEY + hashlib.sha256(body).hexdigest().encode() + _SUM_END
    return body + b"}" if is_sound else None


def decode(data: bytes, path: Path) -> Head:
    """Read the bytes of a head file; ``path`` is only named in messages.

    Raises:
        HeadDamaged: the checksum does not match, or the content contradicts itself.
        FormatTooNew: the format, or a feature it requires, is unknown.
    """
    body = without_sum(data)
    if body is None:
        _damaged(
            path, "its checksum does not match", byte_diagnosis.diagnose_bytes(data) if data else "The file is empty."
        )
    try:
        preamble = _decode_preamble(body)
        unknown = [name for name in preamble.features_required if name not in KNOWN_FEATURES]
        if preamble.format > FORMAT or unknown:
            needs = f"feature {', '.join(unknown)}" if unknown else f"format {preamble.format}"
            raise FormatTooNew(f"{path} needs a newer KB: {needs}", data={"file": str(path)})
        head = _decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        _damaged(path, f"it is not a head file of format {FORMAT}: {error}")
    contradiction = _contradiction(head)
    if contradiction:
        _damaged(path, contradiction)
    return head


def decode_unproven(data: bytes) -> Head | None:
    """Read what a damaged head file seems to say, checksum or not; only for a repair that says so.

    The name of a feature in which one character is wrong is that feature: no KB would open a head with the wrong name.

    Raises: ``FormatTooNew`` for any other feature that is not known: a newer KB seems to have written this.
    """
    try:
        found = _decode(data[:-CHECK_BYTES] + b"}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    features = {_nearest_feature(name) for name in found.features_required}
    unknown = sorted(features - KNOWN_FEATURES)
    if unknown:
        raise FormatTooNew(f"The damaged head file needs a newer KB: feature {', '.join(unknown)}")
    return msgspec.structs.replace(found, features_required=tuple(sorted(features)))


def _nearest_feature(name: str) -> str:
    for known in KNOWN_FEATURES:
        if len(known) == len(name) and sum(a != b for a, b in zip(known, name, strict=True)) <= 1:
            return known
    return name


def read(fs: Fs, directory: Path) -> Head:
    """Read and verify the head file of a branch. No lock is needed; cheap enough for every request.

    Raises:
        UnknownBranch: there is no such directory.
        HeadDamaged: it is missing from the directory, or is not what was written.
        FormatTooNew: a newer KB wrote it.
        StorageError: it cannot be read.
    """
    path = files.below(directory, layout.HEAD)
    data = files.read_file(fs, path, MAX_HEAD_BYTES)
    return _decoded(_sought(fs, directory) if data is None else data, path)


@lru_cache(maxsize=4)
def _decoded(data: bytes, path: Path) -> Head:
    """Return what these bytes say. The file is read for every request; only what it says is remembered."""
    return decode(data, path)


def publish(fs: Fs, directory: Path, head: Head) -> None:
    """Replace the head file as a whole and make it durable.

    Raises:
        StorageFull, ReadOnlyStore, StorageError: the old or the new head is in place, whole in either case.
    """
    files.publish_file(fs, directory / layout.HEAD, encode(head))


def _sought(fs: Fs, directory: Path) -> bytes:
    """Return the head file that was not there a moment ago: a store that was renamed to here brings its own."""
    if not files.is_directory(fs, directory):
        raise UnknownBranch(f"there is no store in {directory}", data={"file": str(directory)})
    with files.explained(directory, "list", reading=True):
        names = fs.listdir(directory)
    data = files.read_file(fs, directory / layout.HEAD, MAX_HEAD_BYTES) if names else None
    if data is not None:
        return data
    if any(layout.kind_of(name) in {"segment", "snapshot"} for name in names):
        _damaged(directory / layout.HEAD, "it is missing although there is a journal")
    # KB renames whole stores into their places: another program removed the files, or made the folder.
    what = f"only {', '.join(sorted(names))}" if names else "nothing"
    undo = "move it away" if {*names} - {layout.LOCK} else "remove it"
    new_epoch = kb("doctor", "--new-epoch", "--branch", layout.branch_of(directory))
    raise HeadDamaged(
        f"{directory} holds {what}, and no store",
        hint=f"Restore the folder from a backup, or {undo}. The next use of the branch makes a new store then; where "
        f"KB has noted records of the old one, {new_epoch} makes it. If {kb('backup')} wrote the backup: "
        f"{layout.restore_command(directory)}.",
        data={"file": str(directory)},
    )


def _damaged(path: Path, what: str, cause: str = "") -> NoReturn:
    hint = f"{cause} {new_head_advice(layout.branch_of(path.parent))}".lstrip()
    raise HeadDamaged(f"{path} is damaged: {what}", hint=hint, data={"file": str(path), "line": 1, "offset": 0})


def _contradiction(head: Head) -> str:
    """Return how a head contradicts itself, or nothing. Costs a few microseconds: it runs on every read."""
    return _unchained(head) or _misplaced_tip(head) or _misnamed(head) or _misdated(head)


def _unchained(head: Head) -> str:
    if not head.segments:
        return "it names no journal file"
    first = head.segments[0]
    beginning = (1, head.lineage) if head.pruned is None else (head.pruned.before, head.pruned.hash)
    if (first.first_seq, first.base_hash) != beginning:
        return "its first journal file is not where its history begins"
    may_have_holes = HOLES in head.features_required
    for segment, following in itertools.pairwise(head.segments):
        sealed = segment.sealed
        if sealed is None or not _follows(segment, sealed, following, may_have_holes=may_have_holes):
            return f"its journal files do not follow each other after {segment.file}"
    return ""


def _follows(segment: Segment, sealed: Sealed, following: Segment, *, may_have_holes: bool) -> bool:
    """Return whether one segment can come after another; before a hole, a segment may be empty."""
    is_hole = sealed.last_seq + 1 < following.first_seq
    if is_hole and not may_have_holes:
        return False
    if sealed.last_seq < segment.first_seq:
        is_empty = (sealed.last_seq, sealed.length, sealed.hash) == (segment.first_seq - 1, 0, segment.base_hash)
        return is_hole and is_empty
    return is_hole or (sealed.last_seq + 1, sealed.hash) == (following.first_seq, following.base_hash)


def _misplaced_tip(head: Head) -> str:
    last, tip = head.active, head.head
    is_empty = tip.seq == last.first_seq - 1
    if (
        last.sealed is not None
        or tip.file != last.file
        or tip.seq < last.first_seq - 1
        or is_empty != (tip.length == 0)
        or (is_empty and tip.hash != last.base_hash)
    ):
        return "its last record is not in its last journal file"
    return ""


def _misnamed(head: Head) -> str:
    if any(layout.segment_first_seq(segment.file) != segment.first_seq for segment in head.segments):
        return "it names a journal file that KB would not name so"
    if any(layout.snapshot_seq(ref.file) != ref.seq for ref in head.snapshots):
        return "it names a snapshot that KB would not name so"
    if any(layout.generation_of(file) > head.generation for file in head.files):
        return "it names a file of a redaction that it does not know"
    seqs = [ref.seq for ref in head.snapshots]
    if seqs != sorted(set(seqs)) or any(seq > head.seq for seq in seqs):
        return "its snapshots are out of order"
    return ""


def _misdated(head: Head) -> str:
    if any(not 0 <= one.seq <= min(one.seen, head.seq) for one in head.epochs):
        return "it has an epoch that ended after the last record"
    if head.epoch_of(head.store_id):
        return "its store id is that of an epoch that ended"
    if head.epochs and EPOCHS not in head.features_required:
        return f"it has epochs and does not require the feature {EPOCHS}"
    if (head.redacted is not None) != (REDACTED in head.features_required):
        return f"it says of a redaction another thing than the feature {REDACTED}"
    return ""
