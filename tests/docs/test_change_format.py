"""A second reader of change files, written from ``docs/change-format.md`` alone, checks the sample of that page."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import msgspec
import pytest

from kbcore.model.claims.change import SELF, Change, EntityRef, SetField, identified, redacted
from kbcore.model.claims.change_file import decode, encode, encode_packs, file_path
from tests.support.generators.change_histories import DOCUMENTS, play, random_steps

PAGE = Path(__file__).parents[2] / "docs" / "change-format.md"
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_HIDDEN = ("now", "salt", "was")
_VALUED = ("set", "add", "remove")
_EMPTY = '""'


def sample() -> tuple[str, str]:
    found = re.search(
        r"^`(\S+\.jsonl)`:\n\n```json\n(.*?)```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert found
    return found[1], found[2]


def sample_pack() -> tuple[str, str]:
    found = re.search(
        r"in a pack, `(\S+\.jsonl)`:\n\n```json\n(.*?)```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert found
    return found[1], found[2]


def members(line: str) -> dict[str, str]:
    """Return the members of an object as they are spelled, by name."""
    found, at, decoder = {}, 1, json.JSONDecoder()
    while True:
        name, after = decoder.raw_decode(line, at)
        _, end = decoder.raw_decode(line, after + 1)
        assert line[after] == ":"
        found[name] = line[after + 1 : end]
        if line[end] == "}":
            assert line[end + 1 :] == ""
            return found
        assert line[end] == ","
        at = end + 1


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def sorted_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def claim_digest(line: str) -> str:
    parts = members(line)
    if parts["op"] == '"redacted"':
        return str(json.loads(parts["hash"]))
    rest = {name: json.loads(text) for name, text in parts.items() if name not in (*_HIDDEN, "change")}
    if rest["op"] in _VALUED:
        assert ("hash" in parts) != ("now" in parts)
        assert "hash" not in parts or not parts.keys() & {*_HIDDEN}
    if rest["op"] in _VALUED and "hash" not in rest:
        rest["hash"] = sha256(f"[{parts.get('salt', _EMPTY)},{parts['now']}]")
    if rest["op"] == "rename":
        rest["now"] = json.loads(parts["now"])
    return sha256(sorted_json(rest))


def read(path: str, text: str) -> list[str]:
    """Return the ids of the changes of a file, all of it checked."""
    lines = text.split("\n")
    assert lines.pop() == ""
    found = []
    times = []
    while lines:
        header = members(lines.pop(0))
        claims = [lines.pop(0) for _ in range(int(header["claims"]))]
        assert {members(line)["change"] for line in claims} <= {header["change"]}
        found.append(checked_id(header, claims))
        times.append(json.loads(header["at"]))
    name = re.fullmatch(r"(\d{4}-\d\d)/([0-9a-z]{26})-([0-9a-f]{8})\.jsonl", path)
    assert name
    month, ulid, digest = name.groups()
    assert month == times[0][:7]
    assert digest == sha256(text)[:8]
    number = 0
    for sign in ulid:
        number = number * 32 + _DIGITS.index(sign)
    assert number & (1 << 80) - 1 == int(found[0][:20], 16)
    assert number >> 80 == milliseconds(times[0])
    return found


def read_pack(path: str, text: str) -> list[str]:
    """Return the ids of the changes of a pack, all of it checked."""
    name = re.fullmatch(r"pack-(\d{4}-\d\d)-([0-9a-f]{8})\.jsonl", path)
    assert name
    assert name[2] == sha256(text)[:8]
    assert text.endswith("\n")
    order = []
    for line in text.removesuffix("\n").split("\n"):
        header = members(line)
        assert [*header][:2] == ["change", "pack"]
        assert header["pack"] == "1"
        at = json.loads(header["at"])
        assert at[:7] == name[1]
        order.append((at, checked_id(header, elements(header["claims"]))))
    assert order == sorted(set(order))
    return [key for _, key in order]


def elements(text: str) -> list[str]:
    """Return the elements of a list of objects as they are spelled."""
    found, at, decoder = [], 1, json.JSONDecoder()
    while text[at] != "]":
        _, end = decoder.raw_decode(text, at)
        found.append(text[at:end])
        at = end + (text[end] == ",")
    assert text[at:] == "]"
    return found


def checked_id(header: dict[str, str], claims: list[str]) -> str:
    """Return the id of a change, which must be that of what it says."""
    assert "message_hash" not in header or not header.keys() & {"message", "salt"}
    message = header.get("message_hash") or json.dumps(
        sha256(f"[{header.get('salt', _EMPTY)},{header.get('message', _EMPTY)}]")
    )
    head = ",".join([header["at"], header["actor"], header["tool"], header.get("session", _EMPTY), message])
    digests = ",".join(f'"{claim_digest(line)}"' for line in claims)
    key = sha256(f'[["kb-change",1,{head}],[{digests}]]')[:32]
    assert json.loads(header["change"]) == key
    return key


def milliseconds(at: str) -> int:
    year, month, day, hour, minute, second, micro = map(int, re.findall(r"\d+", at))
    days = (153 * ((month - 3) % 12) + 2) // 5 + day - 1  # of a year that begins in March
    year -= month < 3
    days += 365 * year + year // 4 - year // 100 + year // 400 - 719_468
    return ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + micro // 1000


def test_the_sample_of_the_page_is_read_by_both_readers() -> None:
    path, text = sample()
    found = decode(text.encode(), path)
    assert found.problem is None
    assert [one.id for one in found.changes] == read(path, text)
    assert len(found.changes) == 2


def test_the_pack_of_the_page_is_read_by_both_readers_and_holds_the_changes_of_the_sample() -> None:
    path, text = sample_pack()
    found = decode(text.encode(), path)
    assert found.problem is None
    assert [one.id for one in found.changes] == read_pack(path, text)
    [name, data] = sample()
    assert found.changes == decode(data.encode(), name).changes


def test_the_second_reader_agrees_with_the_first_on_generated_packs() -> None:
    read_packs = 0
    for seed in range(60):
        made = [*play(random_steps(seed), DOCUMENTS[seed % 3]).made.values()]
        for path, data in encode_packs(identified(redacted_or_not(one, at)) for at, one in enumerate(made)).items():
            assert read_pack(path, data.decode()) == [one.id for one in decode(data, path).changes]
            read_packs += 1
    assert read_packs > 50


def test_the_second_reader_agrees_with_the_first_on_generated_files() -> None:
    read_files = 0
    for seed in range(60):
        made = [*play(random_steps(seed), DOCUMENTS[seed % 3]).made.values()]
        changes = [identified(redacted_or_not(one, at)) for at, one in enumerate(made)]
        if changes:
            text = encode(changes).decode()
            assert read(file_path(changes, text.encode()), text) == [one.id for one in changes]
            read_files += 1
    assert read_files > 50


def test_both_readers_refuse_what_is_beside_the_hash_that_replaces_it() -> None:
    on = EntityRef("A", (SELF,))
    change = Change("", "2026-02-01T12:00:00.000000Z", "ann", "kb/1", (SetField(on, "title", now="Pay", salt="s"),))
    hidden = redacted(identified(msgspec.structs.replace(change, message="m", salt="s")), message=True, claims=[0])
    [claim] = hidden.claims
    for forged in (
        msgspec.structs.replace(hidden, message="forged"),
        msgspec.structs.replace(hidden, salt="s"),
        *(
            msgspec.structs.replace(hidden, claims=(msgspec.structs.replace(claim, **{name: "forged"}),))
            for name in _HIDDEN
        ),
    ):
        assert identified(forged).id == hidden.id
        data = encode([forged])
        path = file_path([forged], data)
        assert decode(data, path).problem is not None
        with pytest.raises(AssertionError):
            read(path, data.decode())


def redacted_or_not(change: Change, at: int) -> Change:
    stamped = msgspec.structs.replace(change, at=f"2026-02-{1 + at % 28:02}T12:00:00.{at:06}Z", message="m", salt="s")
    return redacted(stamped, message=True, claims=range(9), names=range(at % 2 * 9)) if at % 3 == 0 else stamped
