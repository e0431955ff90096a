"""Claims that no client can have made: the file that holds one is refused as a whole, with the line."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kbcore.model.claims.change import (
    CONFIRMED,
    SELF,
    AddEdge,
    AddMember,
    Change,
    Claim,
    Create,
    EdgeRef,
    EntityRef,
    Ref,
    RemoveMember,
    Rename,
    SetField,
    identified,
)
from kbcore.model.claims.change_file import decode, encode, encode_packs, file_path
from kbcore.model.claims.claim_check import claim_fault

A = EntityRef("A", (SELF,))
LINK = EdgeRef("depends_on", A, EntityRef("B"))
DIGEST = "a0" * 32


def value(on: Ref, field: str, now: Any) -> SetField:
    return SetField(on, field, now=now, salt="s" * 16)


def nested(depth: int) -> Ref:
    return EdgeRef("about", nested(depth - 1), A) if depth else A


IMPOSSIBLE: list[tuple[Claim, str]] = [
    (Create(""), "is no id"),
    (Create("A\nB"), "is no id"),
    (Create("x" * 5_000), "is no id"),
    (Create("link:" + "0" * 32), "is no id"),
    (Rename(A, ""), "is no id"),
    (value(EntityRef(""), "title", "t"), "is no id"),
    (value(EntityRef("A", ("0" * 32 + ":",)), "title", "t"), "is no id"),
    (value(A, "tags", "x"), "is no field"),
    (value(A, "tags", ["x"]), "is no field"),
    (value(A, "title", 5), "must be text"),
    (value(A, "type", {"a": 1}), "must be text"),
    (value(A, "links", "x"), "must be a list"),
    (value(A, "created_at", "yesterday"), "is no time"),
    (value(A, "contested.title", []), "is no field"),
    *((value(A, name, "x"), "is no field") for name in ("", "version", "path", "source", "former_ids", "attributes.")),
    (value(A, "attributes.k", 2**70), "beyond 64 bits"),
    (value(LINK, "confidence", "q"), "must be a number"),
    (value(LINK, "title", "q"), "is no field"),
    (AddMember(A, "tags", now=["a"], salt="s"), "is no text"),
    (AddMember(A, "tags", now=1, salt="s"), "is no text"),
    (AddMember(A, "title", now="x", salt="s"), "is no set"),
    (AddMember(LINK, "tags", now="red", salt="s"), "is no set"),
    (AddMember(A, CONFIRMED, now=DIGEST, salt="s"), "is no set"),
    (AddMember(LINK, CONFIRMED, now=DIGEST.upper(), salt="s"), "is no SHA-256"),
    (AddMember(LINK, CONFIRMED, now=["a"], salt="s"), "is no SHA-256"),
    (RemoveMember(LINK, CONFIRMED, now=DIGEST, salt="s"), "is no set"),
    (AddEdge(EdgeRef("a\nb", A, A)), "is no type"),
    (AddEdge(EdgeRef("", A, A)), "is no type"),
    (AddEdge(EdgeRef("about", nested(20), A)), "deep"),
    (AddEdge(EdgeRef("about", EntityRef("link:" + "0" * 32, ("0" * 32 + ":A",)), A)), "is no id"),
    (value(EntityRef("link:" + "0" * 32), "title", "t"), "is no id"),
]


@pytest.mark.parametrize(("claim", "says"), IMPOSSIBLE, ids=range(len(IMPOSSIBLE)))
def test_what_no_client_can_say_is_refused_with_its_line(claim: Claim, says: str) -> None:
    change = identified(Change("", "2026-11-01T10:00:00.000000Z", "eve", "kb/x", (Create("A"), claim)))
    data = encode([change])
    path = file_path([change], data)
    problem = decode(data, path).problem
    assert problem is not None
    assert (problem.code, problem.line) == ("impossible", 3)
    assert says in problem.message
    [(pack, packed)] = encode_packs([change]).items()
    problem = decode(packed, pack).problem
    assert problem is not None
    assert (problem.code, problem.line) == ("impossible", 1)


@pytest.mark.parametrize(
    "claim",
    [
        value(A, "title", "t"),
        value(A, "attributes.k", {"a": [1, None]}),
        value(A, "links", ["https://example.org/a"]),
        value(LINK, "confidence", 0.5),
        value(EdgeRef("about", LINK, A), "metadata.by", "x"),
        AddEdge(EdgeRef("about", EntityRef("link:" + "0" * 32), A)),
        AddMember(A, "tags", now="red", salt="s"),
        AddMember(LINK, CONFIRMED, now=DIGEST, salt="s"),
        AddMember(LINK, CONFIRMED, hash=DIGEST),
        msgspec.structs.replace(value(A, "title", "t"), now=msgspec.UNSET, salt="", hash="0" * 64),
    ],
)
def test_what_a_client_can_say_has_no_fault(claim: Claim) -> None:
    assert claim_fault(claim) == ""


@pytest.mark.parametrize("at", ["2026-11-01T10:00:00", "2026-W01-1", "2026-11-01", "2026-11-01T10:00:00+01:00"])
def test_a_time_that_is_not_in_utc_is_refused(at: str) -> None:
    change = identified(Change("", at, "eve", "kb/x", (Create("A"),)))
    data = encode([change])
    problem = decode(data, file_path([change], data)).problem
    assert problem is not None
    assert "is no time in UTC" in problem.message
