"""The errors for a journal that is not as KB left it: place, both sides, and what usually did it.

Invariant: the message names the place, the hint cause and remedy, ``data`` the same for machines. Pure.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kbcore.errors import FormatTooNew, JournalCorrupt, JournalTruncated, KBError
from kbcore.errors.remedies import by_front_end, kb
from kbcore.storage import layout
from kbcore.storage.frame import Flaw
from kbcore.storage.head import Head, Segment
from kbcore.storage.places import BrokenWalk, Position

_UNDO: Final = f"If you know what changed the file, undo exactly that; {kb('verify')} proves it."
_LEFT: Final = f"The records before it, if any, are readable with {by_front_end('--at', '`at`')} N."


def corrupt(directory: Path, segment: Segment, broken: BrokenWalk) -> KBError:
    """Return the error for a bad record within acknowledged bytes."""
    path, line, good = directory / segment.file, broken.at.seq - segment.first_seq + 2, broken.at.seq
    if broken.flaw.too_new:
        return too_new(path, line, broken.at.offset, broken.flaw)
    rest = (
        f"Records up to seq {good} are good and readable with {by_front_end('--at', '`at`')} {good}."
        if good
        else "No record is readable."
    )
    return JournalCorrupt(
        f"{path}, line {line}, byte {broken.at.offset}: {broken.flaw.sentence()}",
        hint=f"{broken.flaw.cause} {rest} {_UNDO} {_restoring(directory)} {JournalCorrupt.default_hint}".strip(),
        data={
            "file": str(path),
            "line": line,
            "offset": broken.at.offset,
            "expected": broken.flaw.expected,
            "actual": broken.flaw.actual,
            "good_seq": good,
        },
    )


def too_new(path: Path, line: int, offset: int, flaw: Flaw) -> FormatTooNew:
    """Return the error for a record of a newer KB."""
    place = {"file": str(path), "line": line, "offset": offset}
    return FormatTooNew(f"{path}, line {line}, byte {offset}: {flaw.what}", data=place)


def truncated(directory: Path, segment: Segment, expected: int, actual: int) -> JournalTruncated:
    """Return the error for a segment that is shorter than was acknowledged."""
    path = directory / segment.file
    cause = "The last newline is missing: an editor removed it. " if actual == expected - 1 else ""
    return JournalTruncated(
        f"{path} has {actual} bytes, and {expected} were acknowledged",
        hint=f"{cause}{_LEFT} {_UNDO} {_restoring(directory)} {JournalTruncated.default_hint}",
        data={"file": str(path), "offset": actual, "expected": expected, "actual": actual},
    )


def grown(directory: Path, segment: Segment, expected: int, actual: int) -> JournalCorrupt:
    """Return the error for a sealed segment that is longer than when it was sealed."""
    path = directory / segment.file
    return JournalCorrupt(
        f"{path} was sealed with {expected} bytes and has {actual}",
        hint=f"Something wrote to a sealed journal file. Keep a copy of it and cut it back to {expected} bytes; "
        f"{kb('verify')} proves it. {_restoring(directory)} {JournalCorrupt.default_hint}",
        data={"file": str(path), "offset": expected, "expected": expected, "actual": actual},
    )


def mixed(directory: Path, to: Head, place: Position) -> JournalCorrupt:
    """Return the error for good records that end elsewhere than the head says."""
    path = directory / place.file
    return JournalCorrupt(
        f"{path}: the records are valid and end with {place.seq}, but the head file does not name this end",
        hint="Files from different times or stores were mixed, as by a partial restore or a sync tool. Put head.json "
        f"and the journal back from one and the same time; {kb('verify')} proves it. " + JournalCorrupt.default_hint,
        data={
            "file": str(path),
            "offset": place.offset,
            "expected": to.hash,
            "actual": place.hash,
            # which of them were acknowledged here, the head alone could say
            "good_seq": 0,
        },
    )


def missing(directory: Path, file: str) -> JournalTruncated:
    """Return the error for a file that the head names and that is lost."""
    return JournalTruncated(
        f"{directory / file} is missing, and the head names it",
        hint=f"{_restoring(directory)} {_LEFT} {JournalTruncated.default_hint}",
        data={"file": str(directory / file)},
    )


def _restoring(directory: Path) -> str:
    return f"If there is a backup, {layout.restore_command(directory)} brings the branch back as it was then."
