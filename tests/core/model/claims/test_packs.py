"""Packs of changes: one spelling for a set of changes of a month; anything else is refused whole, with its place."""

from __future__ import annotations

import random
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore import limits
from kbcore.extract.changes import EXTRACTOR, FOLDER
from kbcore.extract.facts import SourceFile
from kbcore.model.claims.change import SELF, Change, Create, EntityRef, SetField, identified, redacted, union
from kbcore.model.claims.change_file import decode, encode_packs, file_path, is_pack, rewritten
from kbcore.text.problems import FileProblem
from tests.support.effort.scale import tries
from tests.support.generators.change_histories import DOCUMENTS, play, random_steps

A = EntityRef("A", (SELF,))


def change(day: int, title: str = "Pay", month: str = "2026-11", salt: str = "s1") -> Change:
    claims = (Create("A"), SetField(A, "title", now=title, salt=salt))
    return identified(Change("", f"{month}-{day:02}T12:00:00.000000Z", "ann", "kb/1", claims, "why", "s0"))


FIRST, LAST = change(1), change(2, "Pay\nnow")
[(PATH, DATA)] = encode_packs([LAST, FIRST]).items()
LINES = DATA.splitlines(keepends=True)


def problem(data: bytes, path: str = PATH) -> FileProblem:
    found = decode(data, path)
    assert found.changes == ()
    assert found.problem
    return found.problem


def history(seed: int) -> list[Change]:
    """Return changes of one history, of several months, some of them redacted."""
    chance = random.Random(seed)
    made = []
    for one in play(random_steps(seed), DOCUMENTS[seed % 3]).made.values():
        at = f"2026-{chance.randrange(1, 5):02}-{chance.randrange(1, 29):02}T12:00:00.000000Z"
        stamped = identified(Change("", at, one.actor, one.tool, one.claims, one.actor, "s"))
        made.append(
            redacted(stamped, message=True, claims=range(9), names=range(4)) if chance.random() < 0.3 else stamped
        )
    return made


@given(st.integers(0, 1 << 32))
@settings(max_examples=tries(50, 2000), deadline=None)
def test_the_packs_of_a_set_of_changes_hold_it_by_month_whatever_its_order(seed: int) -> None:
    changes = history(seed)
    found = encode_packs(changes)
    random.Random(seed).shuffle(changes)
    assert encode_packs([*changes, *changes]) == found
    read = [one for path, data in found.items() for one in decode(data, path).changes]
    assert {one.id: one for one in read} == union(changes)
    assert len(read) == len(union(changes))
    assert {path[5:12] for path in found} == {one.at[:7] for one in changes}
    for path, data in found.items():
        assert decode(data.replace(b"\n", b"\r\n"), path) == decode(data, path)
        assert rewritten(path, decode(data, path).changes) == (path, data)


def test_a_line_is_a_change_with_its_claims_and_begins_with_its_id() -> None:
    on = '{"is":"entity","id":"A","of":["@"]}'
    assert LINES[0].decode() == (
        f'{{"change":"{FIRST.id}","pack":1,"at":"{FIRST.at}","actor":"ann","tool":"kb/1","message":"why","salt":"s0",'
        f'"claims":[{{"op":"create","id":"A"}},{{"op":"set","on":{on},"field":"title","now":"Pay","salt":"s1"}}]}}\n'
    )
    assert len(LINES) == 2


def test_the_name_of_a_pack_is_safe_and_no_other_name_means_one() -> None:
    assert re.fullmatch(r"pack-2026-11-[0-9a-f]{8}\.jsonl", PATH)
    assert is_pack(PATH)
    assert not is_pack(file_path([FIRST], b""))
    assert not is_pack(f"2026-11/{PATH}")


def test_a_month_that_one_file_cannot_hold_is_split_in_the_order_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = [change(day, "x" * 1000) for day in range(1, 11)]
    monkeypatch.setattr(limits, "MAX_CHANGE_FILE_BYTES", 4000)
    found = encode_packs(changes)
    assert len(found) == 4
    assert [one for path, data in found.items() for one in decode(data, path).changes] == changes
    assert all(len(data) <= 4000 for data in found.values())


def test_what_one_copy_redacted_is_redacted_in_the_pack() -> None:
    hidden = redacted(FIRST, message=True, claims=[1])
    assert encode_packs([FIRST, hidden]) == encode_packs([hidden, FIRST]) == encode_packs([hidden])


@pytest.mark.parametrize(
    ("data", "line", "code"),
    [
        (DATA[:-1], 2, "truncated"),
        (b"", 1, "truncated"),
        (LINES[1] + LINES[0], 2, "not_canonical"),
        (LINES[0] + LINES[0], 2, "not_canonical"),
        (LINES[0] + next(iter(encode_packs([change(1, month="2026-12")]).values())), 2, "not_canonical"),
        (DATA.replace(b'"ann"', b'"bob"'), 1, "wrong_id"),
        (LINES[0] + LINES[1].replace(b"Pay", b"Pan"), 2, "wrong_id"),
        (LINES[0] + LINES[1].replace(b'"op":"create",', b'"op": "create",'), 2, "not_canonical"),
        (LINES[0] + LINES[1].replace(b"Pay", b"P\\u0061y"), 2, "not_canonical"),
        (LINES[0] + LINES[1].replace(b'"op":"create"', b'"op":"crate"'), 2, "not_canonical"),
        (DATA.replace(b'"pack":1', b'"kb":1'), 1, "not_canonical"),
        (DATA.replace(b'"pack":1', b'"pack":2'), 1, "newer_format"),
        (DATA.replace(FIRST.at.encode(), b"yesterday"), 1, "not_canonical"),
        (b"<<<<<<< HEAD\n" + DATA, 1, "merge_conflict"),
        (DATA.replace(b"Pay", b"P\xe9y"), 1, "not_utf8"),
        (DATA + b"\n", 3, "not_canonical"),
        (b"x" * (limits.MAX_CHANGE_FILE_BYTES + 1), 0, "too_long"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", 0, "filtered"),
    ],
)
def test_what_is_not_as_it_was_written_is_refused_whole_and_named(data: bytes, line: int, code: str) -> None:
    found = problem(data)
    assert (found.line, found.code) == (line, code)
    assert found.hint


def test_the_name_must_be_that_of_the_content() -> None:
    assert problem(LINES[0]).code == "wrong_name"
    assert problem(DATA, PATH.replace("2026-11", "2026-12")).code == "wrong_name"
    assert problem(DATA, f"2026-11/{PATH}").code == "not_canonical", "a change file of another kind"


@pytest.mark.parametrize("bad", ["a\u202eb", "a\u200bb", "a\x07b"])
def test_text_that_is_not_seen_is_refused_in_its_line(bad: str) -> None:
    [(path, data)] = encode_packs([FIRST, change(2, bad)]).items()
    found = problem(data, path)
    assert (found.line, found.code) == (2, "unsafe_text")


def test_a_secret_is_refused_in_its_line() -> None:
    [(path, data)] = encode_packs([FIRST, change(2, "AKIA" + "IOSFODNN7EXAMPLQ")]).items()
    assert decode(data, path).problem is None
    found = EXTRACTOR.extract(SourceFile(f"{FOLDER}/{path}", data), {})
    assert [(one.code, one.line) for one in found.problems] == [("secret", 2)]
    assert not found.changes


def test_a_pack_of_changes_without_claims_is_read() -> None:
    empty = identified(msgspec.structs.replace(FIRST, claims=()))
    [(path, data)] = encode_packs([empty]).items()
    assert data.endswith(b'"claims":[]}\n')
    assert decode(data, path).changes == (empty,)
