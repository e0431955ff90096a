"""The id of a change: what it is taken of, and what a redaction leaves of it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import msgspec
import pytest

from kbcore.model.claims.change import (
    MESSAGE,
    SELF,
    Change,
    Create,
    EdgeRef,
    EntityRef,
    RedactedField,
    SetField,
    UnsetField,
    fields_redacted,
    identified,
    named_by,
    redacted,
    union,
)

A = EntityRef("A", (SELF,))
CHANGE = identified(
    Change(
        "", "2026-01-02T03:04:05.678Z", "ann", "kb", (Create("A"), SetField(A, "title", "Buy", "Pay", "s1")),
        message="why", salt="s0",
    )
)  # fmt: skip


def sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, separators=(",", ":"), sort_keys=True).encode()).hexdigest()


def test_the_id_is_that_of_the_written_rule() -> None:
    """The rule, written out once more: what a second reader of the format has to do."""
    header = ["kb-change", 1, CHANGE.at, "ann", "kb", "", sha256(["s0", "why"])]
    on = {"is": "entity", "id": "A", "of": ["@"]}
    claims = [
        sha256({"op": "create", "id": "A"}),
        sha256({"op": "set", "on": on, "field": "title", "hash": sha256(["s1", "Pay"])}),
    ]
    assert CHANGE.id == sha256([header, claims])[:32]


@pytest.mark.parametrize(
    "other",
    [
        {"at": "2026-01-02T03:04:05.679Z"},
        {"actor": "bob"},
        {"tool": "mcp"},
        {"session": "s"},
        {"message": "because"},
        {"claims": CHANGE.claims[:1]},
        {"claims": (CHANGE.claims[0], SetField(A, "title", now="Pay", salt="s2"))},
        {"claims": (CHANGE.claims[0], SetField(A, "title", now="Pay", salt="s1", after=("0" * 32,)))},
    ],
)
def test_other_content_has_another_id(other: dict[str, Any]) -> None:
    assert identified(msgspec.structs.replace(CHANGE, **other)).id != CHANGE.id


def test_the_value_before_is_no_part_of_the_id() -> None:
    claims = (CHANGE.claims[0], SetField(A, "title", "Sell", "Pay", "s1"))
    assert identified(msgspec.structs.replace(CHANGE, claims=claims)).id == CHANGE.id


def test_a_redacted_copy_has_neither_value_nor_salt_and_the_same_id() -> None:
    hidden = redacted(CHANGE, message=True, claims=[0, 1])
    assert identified(hidden).id == CHANGE.id
    text = msgspec.json.encode(hidden).decode()
    assert not any(word in text for word in ('"Pay"', '"Buy"', '"why"', '"s0"', '"s1"'))
    assert redacted(hidden, message=True, claims=[0, 1]) == hidden


def test_what_another_copy_redacted_is_named_each_by_its_place() -> None:
    assert fields_redacted(CHANGE, CHANGE) == ()
    assert fields_redacted(CHANGE, redacted(CHANGE, message=True)) == (MESSAGE,)
    hidden = redacted(CHANGE, message=True, claims=[1])
    assert fields_redacted(CHANGE, hidden) == ("title", MESSAGE)
    assert fields_redacted(redacted(CHANGE, message=True), hidden) == ("title",)
    assert fields_redacted(hidden, CHANGE) == ()


def test_what_either_copy_redacted_is_redacted() -> None:
    without_message, without_value = redacted(CHANGE, message=True), redacted(CHANGE, claims=[1])
    both = redacted(CHANGE, message=True, claims=[1])
    assert union([without_message, without_value, CHANGE])[CHANGE.id] == both
    assert union([CHANGE, without_value, without_message])[CHANGE.id] == both


def test_the_value_before_a_field_was_unset_is_redacted_with_it() -> None:
    change = identified(Change("", "T", "ann", "kb", (UnsetField(A, "title", was="Buy"),)))
    assert redacted(change, claims=[0]).claims[0] == UnsetField(A, "title")


def test_a_reference_to_the_own_creation_is_named_by_others_with_the_change() -> None:
    edge = EdgeRef("t", A, EdgeRef("u", A, EntityRef("B")))
    named = EntityRef("A", ("c1:A",))
    assert named_by("c1", edge) == EdgeRef("t", named, EdgeRef("u", named, EntityRef("B")))


@pytest.mark.parametrize("lacking", [msgspec.UNSET, "another"])
def test_the_value_before_is_only_in_the_union_where_all_copies_have_it(lacking) -> None:
    on = EntityRef("A", ("DOC",))
    whole = identified(Change("", "2026-11-01T10:00:00Z", "ann", "kb/x", (UnsetField(on, "title", was="secret"),)))
    other = msgspec.structs.replace(whole, claims=(msgspec.structs.replace(whole.claims[0], was=lacking),))
    assert other.id == identified(other).id == whole.id
    without = msgspec.structs.replace(whole, claims=(msgspec.structs.replace(whole.claims[0], was=msgspec.UNSET),))
    assert union([whole, other]) == union([other, whole]) == {whole.id: without}
    assert union([whole, whole]) == {whole.id: whole}


KEYED = identified(
    Change(
        "", "2026-01-02T03:04:05.678Z", "ann", "kb",
        (Create("A"), SetField(A, "title", now="Pay", salt="s1"), SetField(A, "attributes.K", now=1, salt="s2"),
         UnsetField(A, "metadata.K", "old"))
    )
)  # fmt: skip


def test_the_name_of_a_field_can_go_and_the_id_stays() -> None:
    hidden = redacted(KEYED, names=range(9))
    assert identified(hidden).id == KEYED.id
    assert hidden.claims[:2] == KEYED.claims[:2], "a name that nobody chose stays"
    assert [type(one) for one in hidden.claims[2:]] == [RedactedField, RedactedField]
    assert fields_redacted(KEYED, hidden) == ("[redacted]",)
    assert fields_redacted(hidden, hidden) == ()


def test_of_copies_without_the_name_of_a_field_and_with_it_the_one_without_it_is_left() -> None:
    hidden, less = redacted(KEYED, names=[2]), redacted(KEYED, claims=[1, 2])
    for copies in ([KEYED, hidden, less], [less, KEYED, hidden], [hidden, less, KEYED]):
        assert union(copies)[KEYED.id] == redacted(KEYED, claims=[1], names=[2])


def test_no_copy_takes_away_a_claim_that_is_on_no_field_of_a_chosen_name() -> None:
    stolen = RedactedField(A, sha256({"op": "create", "id": "A"}))
    other = msgspec.structs.replace(KEYED, claims=(stolen, *KEYED.claims[1:]))
    assert identified(other).id == KEYED.id
    assert union([KEYED, other]) == union([other, KEYED]) == {KEYED.id: KEYED}
