"""The quick look at the text of a change for what looks like a secret misses nothing that the whole look finds."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.extract.changes import change_secrets, may_hold_secret, parts_of
from kbcore.model.claims.change import (
    AddEdge,
    AddMember,
    Change,
    Claim,
    Create,
    EdgeRef,
    EntityRef,
    RemoveMember,
    Rename,
    SetField,
    UnsetField,
)

KEY = "ghp_" + "a1B2" * 9
HEADER = "-----BEGIN RSA PRIVATE KEY-----\nMIIE"
RANDOM = "q8Zr2LxT7vPn4KdW9sYb"
ON = EntityRef("S-1")


def change(*claims: Claim, **fields: Any) -> Change:
    return Change("0" * 32, "2026-01-01T00:00:00.000000Z", "ann", "kb/test", claims, **fields)


@pytest.mark.parametrize(
    "one",
    [
        change(SetField(ON, "title", now=KEY)),
        change(SetField(ON, "title", now=f"two lines\n{KEY}")),
        change(SetField(ON, "title", now=HEADER)),
        change(SetField(ON, "title", was=KEY, now="other")),
        change(UnsetField(ON, "title", was=KEY)),
        change(SetField(ON, "attributes.note", now={"deep": [{"in": KEY}]})),
        change(SetField(ON, "attributes.note", now={KEY: 1})),
        change(SetField(ON, "attributes.note", now={"api_key": RANDOM})),
        change(SetField(ON, "attributes.note", now=[{"Access-Key": RANDOM}])),
        change(SetField(ON, "attributes.note", was={"token": RANDOM}, now=1)),
        change(SetField(ON, "attributes.password", now=RANDOM)),
        change(AddMember(ON, "tags", now=KEY)),
        change(RemoveMember(ON, "tags", now=KEY)),
        change(Create(KEY)),
        change(Rename(ON, KEY)),
        change(AddEdge(EdgeRef("uses", ON, EntityRef(KEY)))),
        change(message=f"with {KEY}"),
        change(session="https://ann:s3cret-word@example.org/"),
    ],
)
def test_a_secret_anywhere_in_a_change_is_seen(one: Change) -> None:
    assert any(next(change_secrets(part), None) for part in parts_of(one))

    assert may_hold_secret(one)


def test_a_change_without_marks_and_names_is_not_looked_at_again() -> None:
    claims = SetField(ON, "title", now=RANDOM), SetField(ON, "attributes.k", now={"a": ["b", RANDOM]}), Create("S-2")

    assert not may_hold_secret(change(*claims, message="a plain change"))
