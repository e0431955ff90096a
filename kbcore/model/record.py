"""One journal record: who, when, why, and the operations. The vocabulary of the journal.

Every operation carries values, never a whole state: the fields it sets or removes on the element it names, the
source that states them (``src``: a file's path, or "" for the client), and ``base``, the version of the element
that it was made on (0: it did not exist). A record with an operation or a member that this program does not know
is refused, never skipped.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any, Final, final

import msgspec

from kbcore.errors import FormatTooNew, JournalCorrupt
from kbcore.model.claims.change import Change
from kbcore.model.graph import CLIENT, NoteOnFile
from kbcore.storage.places import MissingRecords

VOCABULARY: Final = 3
"""Raised when a record can say something new, or an operation changes its meaning. Older records are read as they are.

2: ``commit``, ``session`` and ``epoch``, which are empty in a record of vocabulary 1.
3: the operations ``take`` and ``leave``, the ``values`` of a problem of a file, the ``seen`` of a confirmation, and
``restores``. A record without them is of vocabulary 2 (``vocabulary_of``), so that a store without them is read by
programs that do not know them.
"""
_WITHOUT_CHANGES: Final = 2

SYNC: Final = "sync"
"""The source of the records that a sync writes: what is theirs was not anybody's own decision."""

IMPORT: Final = "import"
"""The source of the records of an import: times, authors and sources in them are those that its file gave."""

RESULTS: Final = "results"
"""The source of the records of verdicts of tests: what was run, and not what anybody decided."""

DML: Final = "dml:"
"""The beginning of the sources of records that a program of DML writes; program, run and task follow."""
SLEEP: Final = "sleep:"
"""The beginning of the sources of records that a sleep cycle writes; the number of the phase follows."""

MERGE: Final = "merge"
"""The source of the records of a merge: the changes that it takes over are those of others."""

REPAIR: Final = "repair"
EPOCH: Final = "epoch"
SALVAGE: Final = "salvage"
UNPROVEN: Final = "unproven"
REDACTION: Final = "redaction"
"""The sources of records about the store itself: of a repair, of the first one of an epoch, of a salvage, of a
salvage that also writes what no record proves, and of a redaction."""


class _Op(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="op", gc=False):
    """The base of all operations: the way they are written."""


@final
class PutNode(_Op, frozen=True, tag="put"):
    """Set and remove fields of an entity, which comes into being if it does not exist."""

    id: str
    base: int
    set: dict[str, Any] = {}
    unset: tuple[str, ...] = ()
    src: str = CLIENT


@final
class DropNode(_Op, frozen=True, tag="drop"):
    """Remove an entity. Links of others to it stay, unresolved."""

    id: str
    base: int


@final
class StateLink(_Op, frozen=True, tag="link", rename={"from_id": "from", "to_id": "to"}):
    """State an edge on behalf of a source, and set or remove its fields."""

    type: str
    from_id: str
    to_id: str
    base: int
    kind: str = ""
    set: dict[str, Any] = {}
    unset: tuple[str, ...] = ()
    src: str = CLIENT
    said: str = ""


@final
class WithdrawLink(_Op, frozen=True, tag="unlink", rename={"from_id": "from", "to_id": "to"}):
    """Withdraw one source's statement of an edge; with the last statement, the edge goes."""

    type: str
    from_id: str
    to_id: str
    base: int
    kind: str = ""
    src: str = CLIENT


@final
class ConfirmLink(_Op, frozen=True, tag="confirm", rename={"from_id": "from", "to_id": "to"}):
    """Note that an edge was looked at and still holds: its version moves, and nothing else.

    ``seen`` says what its target was (``content.confirmed_content``), for other clones; "" where that is not known.
    """

    type: str
    from_id: str
    to_id: str
    base: int
    kind: str = ""
    seen: str = ""


@final
class ReadSource(_Op, frozen=True, tag="source"):
    """Note that a file was read: the SHA-256 of its content and what was wrong with it.

    Without a ``hash`` what it states is as before, and it is to be read again.
    """

    path: str
    hash: str
    extractor: str
    base: int
    is_ok: bool = True
    problems: tuple[NoteOnFile, ...] = ()


@final
class ForgetSource(_Op, frozen=True, tag="forget"):
    """Note that a file is gone."""

    path: str
    base: int


@final
class TakeChange(_Op, frozen=True, tag="take"):
    """Note that a change file holds a change, and whether the file is committed.

    Without a file it comes from the store of another branch, and belongs to this journal from now on. ``change`` is the
    whole change; None where the journal has it already (``claims.derived``). The result of the changes is in the other
    operations of the record.

    ``commit`` and ``restores`` are those of the record that the change was in the other store.
    """

    id: str
    file: str
    is_committed: bool = False
    change: Change | None = None
    commit: str = ""
    restores: bool = False


@final
class LeaveChange(_Op, frozen=True, tag="leave"):
    """Note that a change file does not hold a change any more."""

    id: str
    file: str


EdgeOperation = StateLink | WithdrawLink | ConfirmLink
ChangeOperation = TakeChange | LeaveChange
Operation = (
    PutNode | DropNode | StateLink | WithdrawLink | ConfirmLink | ReadSource | ForgetSource | TakeChange | LeaveChange
)


class Unproven(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The source of a record's operations if no journal record proves them: a cached view.

    ``seq`` and ``hash`` name the proven record that the view was folded up to.
    """

    seq: int
    hash: str


class RedactedRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record that was changed, and the SHA-256 of its payload since; "" where a later redaction changed it again."""

    seq: int
    digest: str


class Redaction(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The changes of a redaction to the records before its own."""

    first: int
    """The first record whose ``sum`` was computed again."""
    records: tuple[RedactedRecord, ...]
    """The changed records, in order."""
    kept: str
    """SHA-256 over the payloads of all other records from ``since`` on, each with a newline; "" since a later redaction
    changed one of them."""
    since: int
    """The first record that was there."""
    snapshots: tuple[int, ...] = ()
    """The snapshots that hold what pruned or missing records led to, and whose facts were changed."""


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One validated changeset in the journal. ``digest`` is of the request's content."""

    schema: int
    changeset_id: str
    digest: str
    at: str
    actor: str
    source: str
    tool: str
    ops: tuple[Operation, ...]
    message: str = ""
    unchanged: tuple[str, ...] = ()
    edges_unchanged: int = 0
    warnings: tuple[str, ...] = ()
    clock: str = ""
    """The wall clock when it was behind the time of the record before (``clock.Moment``).

    Equal to ``at``: it was behind by more than a day, and each earlier record with a later ``at`` was written by a
    clock that was ahead.
    """
    repair: str = ""
    """A change by recovery or a person to the journal before this record."""
    holes: tuple[MissingRecords, ...] = ()
    """The records before this one that a salvage could not keep."""
    unproven: Unproven | None = None
    """Set if what this record writes is not proven."""
    commit: str = ""
    """The commit that was checked out in the worktree that wrote, 40 or 64 hex digits.

    Absent where there was none (an unborn branch), where HEAD was on another branch than that of the record, and in a
    note about the store itself.
    """
    session: str = ""
    """The session of one client's writes: KB_SESSION, or the connection to the MCP server."""
    epoch: str = ""
    """The id that the store had when the record was acknowledged. With ``seq`` it names the record, in copies too."""
    redacted: tuple[str, ...] = ()
    """The places of this record that redactions changed, as ``ops.0.set.title``; a later record has each of these."""
    redaction: Redaction | None = None
    """Set in the record that documents a redaction."""
    restores: bool = False
    """True for a revert and a rollback: the values are those of earlier records, which others may have written."""
    change: Change | None = None
    """The change that the record is, where a redaction made it another than the one that follows from the journal."""


_NO_OPERATIONS: Final = b',"ops":[]'

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


def vocabulary_of(ops: Iterable[Operation], *, restores: bool = False) -> int:
    """Return the vocabulary of a record with these operations: the oldest that has them all."""
    return VOCABULARY if restores or any(map(_is_new, ops)) else _WITHOUT_CHANGES


def _is_new(op: Operation) -> bool:
    if type(op) is PutNode or type(op) is StateLink:
        return False
    if isinstance(op, ConfirmLink):
        return bool(op.seen)
    return isinstance(op, ChangeOperation) or (isinstance(op, ReadSource) and any(one.values for one in op.problems))


def encode(record: Record) -> bytes:
    """Return the record as the JSON text that a journal line carries."""
    return _encoder.encode(record)


def encode_with(record: Record, operations: Iterable[bytes]) -> bytes:
    """Do as ``encode`` for a record without operations, and these, which are encoded already, in their place.

    Each piece is one operation or several with commas between them.
    """
    # In a text of the record the quotes would have backslashes before them.
    before, mark, after = _encoder.encode(record).partition(_NO_OPERATIONS)
    raw = io.BytesIO()  # it gives its content without another copy
    raw.write(before + mark[:-1])
    comma = b""
    for piece in filter(None, operations):
        raw.write(comma)
        raw.write(piece)
        comma = b","
    raw.write(mark[-1:] + after)
    return raw.getvalue()


def decode(raw: bytes, *, seq: int) -> Record:
    """Return the record of a journal line.

    Raises: ``FormatTooNew`` for a vocabulary, operation or member that is not known here; ``JournalCorrupt``
    for bytes that are no record at all, although their digest holds.
    """
    try:
        record = _decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise FormatTooNew(f"Record {seq} holds something that this KB does not know: {error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JournalCorrupt(f"Record {seq} is not JSON: {error}.") from error
    if record.schema > VOCABULARY:
        raise FormatTooNew(f"Record {seq} uses vocabulary {record.schema}; this KB knows up to {VOCABULARY}.")
    return record
