"""Change files: one spelling, which comes back as it was written; anything else is refused whole, with its place."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore import limits
from kbcore.model.claims.change import SELF, Change, Create, EntityRef, SetField, identified, redacted
from kbcore.model.claims.change_file import decode, encode, encode_packs, file_path
from kbcore.text.problems import FileProblem
from tests.support.effort.scale import tries
from tests.support.generators.change_histories import DOCUMENTS, play, random_steps

AT = "2026-11-28T12:00:00.000000Z"
A = EntityRef("A", (SELF,))
CHANGE = identified(
    Change("", AT, "ann", "kb/1", (Create("A"), SetField(A, "title", now="Pay\nnow", salt="s1")), "why", "s0")
)
DATA = encode([CHANGE])
PATH = file_path([CHANGE], DATA)


def problem(data: bytes, path: str = "") -> FileProblem:
    found = decode(data, path or PATH)
    assert found.changes == ()
    assert found.problem
    return found.problem


@given(st.integers(0, 1 << 32), st.booleans())
@settings(max_examples=tries(50, 2000), deadline=None)
def test_changes_come_back_as_they_were_written(seed: int, hides: bool) -> None:
    made = [*play(random_steps(seed), DOCUMENTS[seed % 3]).made.values()]
    stamped = [identified(Change("", AT, one.actor, one.tool, one.claims, one.actor, "s")) for one in made]
    changes = [redacted(one, message=True, claims=range(9), names=range(4)) if hides else one for one in stamped]
    data = encode(changes)
    if changes:
        assert decode(data, file_path(changes, data)) == (tuple(changes), None)
        assert decode(data.replace(b"\n", b"\r\n"), file_path(changes, data)) == (tuple(changes), None)


def test_every_line_begins_with_the_id_of_its_change_and_says_one_claim() -> None:
    first, *claims = DATA.decode().splitlines()
    assert first == (
        f'{{"change":"{CHANGE.id}","kb":1,"at":"{AT}","actor":"ann","tool":"kb/1","message":"why","salt":"s0","claims":2}}'
    )
    on = '{"is":"entity","id":"A","of":["@"]}'
    assert claims == [
        f'{{"change":"{CHANGE.id}","op":"create","id":"A"}}',
        f'{{"change":"{CHANGE.id}","op":"set","on":{on},"field":"title","now":"Pay\\nnow","salt":"s1"}}',
    ]


def test_the_name_is_safe_in_every_file_system() -> None:
    month, _, name = PATH.partition("/")
    assert month == "2026-11"
    assert name.isascii()
    assert name == name.lower()
    assert len(name) <= 60
    assert name.startswith(f"01{PATH[10:15]}")


@pytest.mark.parametrize(
    ("data", "line", "code"),
    [
        (DATA[:-1], 3, "truncated"),
        (b"", 1, "truncated"),
        (b"".join(DATA.splitlines(keepends=True)[:2]), 2, "truncated"),
        (DATA.splitlines(keepends=True)[0], 1, "truncated"),
        (DATA.replace(b"Pay", b"Pan"), 1, "wrong_id"),
        (DATA.replace(b'"ann"', b'"bob"'), 1, "wrong_id"),
        (DATA.replace(b'"title"', b'"owner"'), 1, "wrong_id"),
        (DATA.replace(b'"op":"create",', b'"op": "create",'), 2, "not_canonical"),
        (DATA.replace(b'"op":"create","id":"A"', b'"id":"A","op":"create"'), 2, "not_canonical"),
        (DATA.replace(b"Pay", b"P\\u0061y"), 3, "not_canonical"),
        (DATA.replace(b'"op":"create"', b'"op":"crate"'), 2, "not_canonical"),
        (DATA.replace(b'"salt":"s1"', b'"salt":"s1","new":1'), 3, "not_canonical"),
        (DATA.replace(b'"kb":1', b'"kb":2'), 1, "newer_format"),
        (DATA.replace(AT.encode(), b"yesterday"), 1, "not_canonical"),
        (b"<<<<<<< HEAD\n" + DATA, 1, "merge_conflict"),
        (DATA + b">>>>>>> other\n", 4, "merge_conflict"),
        (DATA.replace(b"Pay", b"P\xe9y"), 3, "not_utf8"),
        (b"\xef\xbb\xbf" + DATA, 1, "not_canonical"),
        (DATA + b"\n", 4, "not_canonical"),
        (b"[]\n" + DATA, 1, "not_canonical"),
        (b"x" * (limits.MAX_CHANGE_FILE_BYTES + 1), 0, "too_long"),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_refused_with_its_place(data: bytes, line: int, code: str) -> None:
    found = problem(data)
    assert (found.line, found.code) == (line, code)
    assert found.hint


HIDDEN = redacted(CHANGE, message=True, claims=[1])
FORGED = (
    (msgspec.structs.replace(HIDDEN, message="forged"), 1),
    (msgspec.structs.replace(HIDDEN, salt="s0"), 1),
    *(
        (
            msgspec.structs.replace(
                HIDDEN, claims=(HIDDEN.claims[0], msgspec.structs.replace(HIDDEN.claims[1], **one))
            ),
            3,
        )
        for one in ({"now": "forged"}, {"now": None}, {"salt": "s1"}, {"was": "forged"})
    ),
    (msgspec.structs.replace(CHANGE, claims=(Create("A"), SetField(A, "title"))), 3),
)
"""Changes with what the id says nothing of, and one without a value; and the lines of their files."""


@pytest.mark.parametrize(("change", "line"), FORGED, ids=range(len(FORGED)))
def test_a_value_beside_its_hash_and_a_claim_with_neither_are_refused_with_their_line(
    change: Change, line: int
) -> None:
    data = encode([change])
    found = problem(data, file_path([change], data))
    assert (found.line, found.code) == (line, "not_canonical")
    [(name, packed)] = encode_packs([change]).items()
    found = problem(packed, name)
    assert (found.line, found.code) == (1, "not_canonical")


def test_a_file_under_another_name_is_refused_with_the_name_that_it_should_have() -> None:
    found = problem(DATA, PATH.replace("2026-11", "2026-12"))
    assert (found.code, PATH in found.message) == ("wrong_name", True)
    more = encode([CHANGE, identified(Change("", AT, "bob", "kb/1", (Create("B"),)))])
    assert problem(more).code == "wrong_name"


@pytest.mark.parametrize("sign", ["\x1b", "\u202e", "\u200b", "\ufeff", "\x7f", "\r"])
def test_text_that_a_reviewer_does_not_see_is_refused(sign: str) -> None:
    for change in (
        Change("", AT, "ann", "kb/1", (Create("A"), SetField(A, "attributes.k", now={"a": [sign]}))),
        Change("", AT, f"ann{sign}", "kb/1", (Create("A"),)),
    ):
        made = identified(change)
        data = encode([made])
        assert problem(data, file_path([made], data)).code == "unsafe_text"


def test_text_that_is_not_seen_in_a_deeply_nested_value_is_refused() -> None:
    value: Any = "\u200b"
    for _ in range(700):
        value = [value]
    made = identified(Change("", AT, "ann", "kb/1", (SetField(A, "attributes.k", now=value),)))
    data = encode([made])
    assert problem(data, file_path([made], data)).code == "not_canonical"


def test_a_reference_that_no_client_can_make_is_refused_after_one_that_it_can() -> None:
    wrong = EntityRef(" ")
    claims = SetField(A, "title", now="Pay"), SetField(A, "owner", now="ann"), SetField(wrong, "owner", now="bob")
    made = identified(Change("", AT, "ann", "kb/1", claims))
    data = encode([made])
    found = problem(data, file_path([made], data))
    assert (found.code, found.line) == ("impossible", 4)


def test_no_single_changed_byte_goes_unnoticed() -> None:
    chosen = random.Random(0)
    for at in range(len(DATA)):
        other = bytearray(DATA)
        other[at] ^= 1 << chosen.randrange(8)
        assert problem(bytes(other))
