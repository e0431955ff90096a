"""Change files: the changes of one writer as lines of JSON, and back; packs: those of a month, a line each. Pure.

There is one spelling of a file. Its name has a digest of its content, each line the id of its change, and that id is a
digest of what the change says: a file that was edited, cut short or merged as text never passes for a change.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

import msgspec

from kbcore import limits
from kbcore.model.claims.change import (
    FORMAT,
    ID_CHARS,
    SUFFIX,
    VALUED,
    Change,
    Claim,
    Create,
    Ref,
    identified,
    order_of,
    union,
)
from kbcore.model.claims.claim_check import claim_fault
from kbcore.text import conflict_markers
from kbcore.text.escaping import has_unsafe, in_quotes
from kbcore.text.problems import FileProblem

_BASE_32: Final = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's alphabet, in small letters: the digits of a ULID (github.com/ulid/spec)."""
_ULID_CHARS: Final = 26
_CHANCE_HEX: Final = 20
"""Digits of the id of a change in its ULID: 80 bits, after 48 bits of its time."""
_DIGEST_CHARS: Final = 8
_MONTH_CHARS: Final = 7
_PACK: Final = "pack-"
"""The names of packs begin so; other change files are in a folder of their month."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z", re.ASCII)
"""The spelling of a time in a change: with a time zone of the reader's, the name of the file would differ."""
_BEGIN: Final = re.compile(rb'\n\{"change":"([0-9a-f]{%d})","(?:kb|pack)":' % ID_CHARS)
"""The beginning of the first line of a change, of a file or a pack, and the end of the line before."""
_BEGIN_CHARS: Final = len('{"change":"",') + ID_CHARS
_LINE: Final = re.compile(rf'\{{"change":"([0-9a-f]{{{ID_CHARS}}})",(.*)\}}')
_ESCAPED: Final = re.compile(r"\\[bfru]")
"""Characters that may be invisible, where the rest of a file has none: all others are written as they are."""
_UPDATE: Final = "Update KB, or ask the writer of the file to use the same version."
ATTRIBUTES: Final = "changes/** -text -filter -merge"
"""The line of git's attributes in ``.kb``: line endings stay, no filter keeps the content of a file elsewhere, and no
merge makes one content of two: of two packs in the place of one, git keeps both."""
EARLIER_ATTRIBUTES: Final = "changes/** -text -filter"
"""The line that an earlier KB wrote."""
_FILTERED: Final = (
    (b"version https://git-lfs.github.com/", "Git LFS has put a pointer in the place of the file"),
    (b"\0GITCRYPT\0", "git-crypt has encrypted the file"),
)
"""The beginning of what filters of git leave in the place of a file."""
_UNFILTERED: Final = (
    f"Put the line `{ATTRIBUTES}` into .kb/.gitattributes, after those that set a filter, and commit the file again as "
    "its writer has it."
)
_NOT_OURS: Final = "KB writes no such claim: remove the file, and tell whoever committed it."
_MERGED: Final = "Take the file as the commit has it that wrote it; the doctor of KB names the command."
_RESTORE: Final = "Bring back the file as it was committed; KB never edits one."


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The first line of a change, without its id. ``claims`` is the number of lines that follow."""

    kb: int
    at: str
    actor: str
    tool: str
    session: str = ""
    message: str = ""
    salt: str = ""
    message_hash: str = ""
    claims: int = -1


class _Packed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The line of a change in a pack, without its id.

    ``pack`` is longer than ``kb``: git compares files in pieces of 64 bytes, and these begin elsewhere in a line of a
    pack than in the header of a change, so that git takes no file for one that was renamed to a pack.
    """

    pack: int
    at: str
    actor: str
    tool: str
    session: str = ""
    message: str = ""
    salt: str = ""
    message_hash: str = ""
    claims: tuple[Claim, ...] | None = None


F = TypeVar("F", _Header, _Packed)
_MEMBERS: Final = ("at", "actor", "tool", "session", "message", "salt", "message_hash")


class ReadChanges(NamedTuple):
    """The changes of a file; or none, and why the whole file is refused."""

    changes: tuple[Change, ...] = ()
    problem: FileProblem | None = None


class _RefusedError(Exception):
    """The file is not as KB writes it."""

    def __init__(self, line: int, code: str, message: str, hint: str = _RESTORE) -> None:
        super().__init__(message)
        self.problem = FileProblem(line, code, message, hint)


_encoder: Final = msgspec.json.Encoder(order="deterministic")
_encode = _encoder.encode
_decode_header = msgspec.json.Decoder(_Header).decode
_decode_packed = msgspec.json.Decoder(_Packed).decode
_decode_claim: Final[Callable[[str], Claim]] = msgspec.json.Decoder(Claim).decode
_decode_version = msgspec.json.Decoder(dict[str, Any]).decode


def encode(changes: Sequence[Change]) -> bytes:
    """Return the content of the file that holds these changes, in this order."""
    return b"".join(map(_lines, changes))


def is_pack(path: str) -> bool:
    """Tell whether a path from the folder of change files is that of a pack."""
    return path.startswith(_PACK) and "/" not in path


def encode_packs(changes: Iterable[Change]) -> dict[str, bytes]:
    """Return the packs of these changes by path: one for each month, in the order of time, as large as one may be.

    The same changes are the same packs. Of several copies of one change, what any of them redacted is redacted.
    """
    found: dict[str, bytes] = {}
    lines, size_bytes, month = list[bytes](), 0, ""

    def close() -> None:
        if lines:
            data = b"".join(lines)
            found[_pack_path(month, data)] = data

    for one in sorted(union(changes).values(), key=order_of):
        line = _pack_line(one)
        if one.at[:_MONTH_CHARS] != month or size_bytes + len(line) > limits.MAX_CHANGE_FILE_BYTES:
            close()
            lines, size_bytes, month = [], 0, one.at[:_MONTH_CHARS]
        lines.append(line)
        size_bytes += len(line)
    close()
    return found


def rewritten(path: str, changes: Sequence[Change]) -> tuple[str, bytes]:
    """Return path and content of the file of the same kind as the one at a path, with these changes."""
    if is_pack(path):
        data = b"".join([_pack_line(one) for one in changes])
        return _pack_path(changes[0].at[:_MONTH_CHARS], data), data
    data = encode(changes)
    return file_path(changes, data), data


def file_path(changes: Sequence[Change], data: bytes) -> str:
    """Return the path of a file with these changes from the folder of change files: ``2026-11/ULID-DIGEST.jsonl``.

    The ULID is that of the first change: its time in UTC, and the first 80 bits of its id. The digest is 32 bits of the
    SHA-256 of the content.
    """
    first = changes[0]
    number = _milliseconds(first.at) << 80 | int(first.id[:_CHANCE_HEX], 16)
    ulid = "".join([_BASE_32[number >> 5 * at & 31] for at in reversed(range(_ULID_CHARS))])
    return f"{first.at[:_MONTH_CHARS]}/{ulid}-{_digest(data)}{SUFFIX}"


def decode(data: bytes, path: str) -> ReadChanges:
    """Return the changes of a file, by its content and its path from the folder of change files.

    Lines that end with a carriage return, as a checkout on Windows may make them, are read as those without.
    """
    try:
        return ReadChanges(_decoded(data.replace(b"\r\n", b"\n"), path))
    except _RefusedError as error:
        return ReadChanges(problem=error.problem)
    except RecursionError:
        return ReadChanges(problem=FileProblem(0, "not_canonical", "a value is nested deeper than KB reads", _RESTORE))


def change_ids(data: bytes) -> list[str]:
    """Return the ids of the changes in a file that ``decode`` has not refused, each once, in their order."""
    return [one.decode() for one in dict.fromkeys(_BEGIN.findall(b"\n" + data))]


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_DIGEST_CHARS]


def _pack_path(month: str, data: bytes) -> str:
    return f"{_PACK}{month}-{_digest(data)}{SUFFIX}"


def _members_of(one: Change | _Header | _Packed) -> dict[str, str]:
    """Return what a change and its lines have in common."""
    return {name: getattr(one, name) for name in _MEMBERS}


def _pack_line(change: Change) -> bytes:
    packed = _Packed(pack=FORMAT, claims=change.claims, **_members_of(change))
    return b'{"change":"%b",%b\n' % (change.id.encode(), _encode(packed)[1:])


def _lines(change: Change) -> bytes:
    """Return the lines of a change; no line break is in one, and the ``{`` after each begins the next one."""
    begin = b'{"change":"%b",' % change.id.encode()
    header = _Header(kb=FORMAT, claims=len(change.claims), **_members_of(change))
    lines = _encoder.encode_lines((header, *change.claims))
    return begin + lines[1:].replace(b"\n{", b"\n" + begin)


def _milliseconds(at: str) -> int:
    return int(datetime.fromisoformat(at).timestamp() * 1000)


def _decoded(data: bytes, path: str) -> tuple[Change, ...]:
    text = _text_of(data)
    lines = text.split("\n")
    if lines.pop() or not lines:
        raise _RefusedError(len(lines) + 1, "truncated", "the file ends within a line")
    changes = tuple(_packed_changes(lines) if is_pack(path) else _changes(lines))
    expected, written = rewritten(path, changes)
    if written != data:
        pairs = zip(lines, written.decode().split("\n"), strict=False)
        number = next((at for at, (one, other) in enumerate(pairs, start=1) if one != other), len(lines))
        raise _RefusedError(number, "not_canonical", "the line is not as KB writes it")
    if may_be_unsafe(text):
        _check_text(changes, are_packed=is_pack(path))
    _check_claims(changes, are_packed=is_pack(path))
    if path != expected:
        message = f"the name is not that of the content, which is {in_quotes(expected)}"
        raise _RefusedError(0, "wrong_name", message)
    return changes


def may_be_unsafe(text: str) -> bool:
    """Tell whether the text of a file may have characters that are not seen: as they are, or escaped."""
    return has_unsafe(text) or _ESCAPED.search(text) is not None


def _text_of(data: bytes) -> str:
    """Return the text of a file, which no other program has cut, replaced or merged."""
    if len(data) > limits.MAX_CHANGE_FILE_BYTES:
        message = f"the file is larger than {limits.MAX_CHANGE_FILE_BYTES // limits.MIB} MiB"
        raise _RefusedError(
            0, "too_long", message, "KB writes no such file: remove it, or bring back the one that was committed."
        )
    for begin, message in _FILTERED:
        if data.startswith(begin):
            raise _RefusedError(0, "filtered", message, _UNFILTERED)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        place = data.count(b"\n", 0, error.start) + 1
        raise _RefusedError(place, "not_utf8", f"byte {error.start} is no UTF-8") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if conflict_markers.is_left_over(line):
            raise _RefusedError(number, conflict_markers.CODE, "a git merge left a conflict here", _MERGED)
    return text


def _changes(lines: Sequence[str]) -> Iterator[Change]:
    at = 0
    while at < len(lines):
        key, rest = _parts(lines, at)
        header = _first_line(_decode_header, rest, "kb", at + 1)
        if header.claims < 0 or at + header.claims >= len(lines):
            raise _RefusedError(len(lines), "truncated", f"of {header.claims} claims of a change not all are there")
        claims, begin = [], lines[at][:_BEGIN_CHARS]
        for number in range(at + 1, at + 1 + header.claims):
            line = lines[number]
            is_same = line.startswith(begin) and line.endswith("}")
            other, rest = (key, f"{{{line[len(begin) :]}") if is_same else _parts(lines, number)
            if other != key:
                raise _RefusedError(
                    number + 1, "not_canonical", "the line is of another change than the lines before it"
                )
            claims.append(_claim(rest, number + 1))
        change = Change(id=key, claims=tuple(claims), **_members_of(header))
        _check_hashes(change, [at + 1 + number for number in range(1 + header.claims)])
        _check_id(change, at + 1)
        yield change
        at += 1 + header.claims


def _packed_changes(lines: Sequence[str]) -> Iterator[Change]:
    """Yield the changes of a pack, which are in order, each once, and all of one month."""
    last: Change | None = None
    for at in range(len(lines)):
        key, text = _parts(lines, at)
        packed = _first_line(_decode_packed, text, "pack", at + 1)
        change = Change(id=key, claims=packed.claims or (), **_members_of(packed))
        _check_hashes(change, [at + 1] * (1 + len(change.claims)))
        _check_id(change, at + 1)
        if last and (order_of(last) >= order_of(change) or last.at[:_MONTH_CHARS] != change.at[:_MONTH_CHARS]):
            message = "the change is not of the month of the one before it, or not after it"
            raise _RefusedError(at + 1, "not_canonical", message)
        yield change
        last = change


def _parts(lines: Sequence[str], at: int) -> tuple[str, str]:
    """Return the id of the change that a line belongs to, and the rest of it as an object."""
    found = _LINE.fullmatch(lines[at])
    if not found:
        raise _RefusedError(at + 1, "not_canonical", "the line does not begin with the id of a change")
    return found[1], f"{{{found[2]}}}"


def _first_line(decode: Callable[[str], F], text: str, name: str, line: int) -> F:
    """Return the first line of a change; refuse one of a newer format, which the member of this name says."""
    try:
        found = decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        _check_version(text, name, line)
        _refuse_json(line, error)
    if getattr(found, name) > FORMAT:
        _check_version(text, name, line)
    return found


def _check_version(text: str, name: str, line: int) -> None:
    """Refuse what is of a newer format, by the member that says so."""
    try:
        version = _decode_version(text).get(name)
    except (msgspec.DecodeError, RecursionError) as error:
        _refuse_json(line, error)
    if isinstance(version, int) and version > FORMAT:
        message = f"the file was written by a newer KB, in format {version}; this one reads formats up to {FORMAT}"
        raise _RefusedError(line, "newer_format", message, _UPDATE)


def _claim(text: str, line: int) -> Claim:
    try:
        return _decode_claim(text)
    except (msgspec.DecodeError, RecursionError) as error:
        _refuse_json(line, error)


def _refuse_json(line: int, error: Exception) -> NoReturn:
    raise _RefusedError(line, "not_canonical", f"the line is none that this KB knows: {error}") from error


def _check_hashes(change: Change, lines: Sequence[int]) -> None:
    """Refuse a value beside the hash that replaces it: the id is of the hash, and says nothing of such a value.

    ``lines`` are those of the header and of each claim.
    """
    if change.message_hash and (change.message or change.salt):
        raise _RefusedError(lines[0], "not_canonical", "the line has a message beside the hash that replaces one")
    for claim, line in zip(change.claims, lines[1:], strict=True):
        if not isinstance(claim, VALUED):
            continue
        if claim.hash and (claim.now is not msgspec.UNSET or claim.salt or claim.was is not msgspec.UNSET):
            raise _RefusedError(line, "not_canonical", "the line has a value beside the hash that replaces one")
        if not claim.hash and claim.now is msgspec.UNSET:
            raise _RefusedError(line, "not_canonical", "the line has neither a value nor the hash that replaces one")


def _check_id(change: Change, line: int) -> None:
    try:
        is_time = _TIME.fullmatch(change.at) is not None and _milliseconds(change.at) >= 0
    except ValueError:
        is_time = False
    if not is_time:
        raise _RefusedError(line, "not_canonical", f"{in_quotes(change.at[:60])} is no time in UTC")
    if identified(change).id != change.id:
        raise _RefusedError(line, "wrong_id", "the change does not say what it said when it got its id")


def _check_claims(changes: Sequence[Change], *, are_packed: bool) -> None:
    """Refuse claims that no client can have made: the database has no place for what they say."""
    line = 0
    for number, change in enumerate(changes, start=1):
        line += 1
        checked: Ref | None = None
        for claim in change.claims:
            line += 1
            fault = claim_fault(claim, checked)
            if fault:
                place = number if are_packed else line
                raise _RefusedError(place, "impossible", f"no client can say this: {fault}", _NOT_OURS)
            checked = None if isinstance(claim, Create) else claim.on


def _check_text(changes: Sequence[Change], *, are_packed: bool) -> None:
    """Refuse characters that a reviewer does not see, or that change what is seen around them."""
    line = 0
    for number, change in enumerate(changes, start=1):
        for part in (msgspec.structs.replace(change, claims=()), *change.claims):
            line = number if are_packed else line + 1
            if has_unsafe(msgspec.to_builtins(part)):
                message = "the line holds characters that are not seen, or that change the direction of text"
                raise _RefusedError(
                    line, "unsafe_text", message, "Have the writer correct the value, and share that change."
                )
