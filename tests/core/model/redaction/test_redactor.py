"""Records without what is taken out: every operation, what follows from it in others, and what would reveal it."""

from __future__ import annotations

import json
import typing
from typing import Any

import msgspec
import pytest

from kbcore.errors import InvalidQuery
from kbcore.ids import link_id
from kbcore.model.claims.change import (
    AddMember,
    Change,
    EdgeRef,
    EntityRef,
    RemoveMember,
    SetField,
    UnsetField,
    identified,
)
from kbcore.model.graph import FORMER_IDS
from kbcore.model.record import Operation
from kbcore.model.redaction import redactor
from kbcore.model.redaction.changes import without_claims
from kbcore.model.redaction.redactor import Redactor
from kbcore.model.redaction.target import RedactionTarget, names_of, pattern_of

FRAME = {"schema": 2, "changeset_id": "c", "digest": "d" * 64, "at": "2026-11-20", "actor": "a", "source": "cli"}


def payload(*ops: dict[str, Any], **members: Any) -> bytes:
    return json.dumps({**FRAME, "tool": "t", "ops": list(ops), **members}, separators=(",", ":")).encode()


def put(key: str, **fields: Any) -> dict[str, Any]:
    return {"op": "put", "id": key, "base": 0, "set": {"type": "req", **fields}}


def taken(target: RedactionTarget, *payloads: bytes, sums: Any = None) -> list[dict[str, Any]]:
    """Return the records without what is taken out, as the second reading makes them."""
    survey = Redactor(target)
    for seq, raw in enumerate(payloads, 1):
        survey.payload(seq, raw, {})
    made = Redactor(target, survey)
    return [json.loads(made.payload(seq, raw, sums or {})) for seq, raw in enumerate(payloads, 1)]


def of_pattern(text: str) -> RedactionTarget:
    return RedactionTarget(matches=pattern_of(text))


def test_every_operation_of_the_vocabulary_is_handled() -> None:
    tags = {one.__struct_config__.tag for one in typing.get_args(Operation)}
    assert tags == redactor._OPERATIONS.keys()


def test_a_record_that_has_nothing_of_it_keeps_its_bytes() -> None:
    raw = payload(put("A", title="plain")).replace(b'"ops"', b' "ops"')  # no spelling that KB would write
    assert Redactor(of_pattern("secret")).payload(1, raw, {}) == raw


def test_a_changed_record_names_the_places_and_loses_the_digest_of_the_request() -> None:
    (one,) = taken(of_pattern("secret"), payload(put("A", title="a secret"), message="secret"))
    assert one["redacted"] == ["message", "ops.0.set.title", "digest"]
    assert (one["digest"], one["message"], one["ops"][0]["set"]["title"]) == ("", "[redacted]", "a [redacted]")


def test_an_id_is_the_same_new_one_everywhere_and_edges_about_its_edges_follow() -> None:
    old = link_id("depends_on", "", "A-secret", "B")
    first = payload(
        put("A-secret", title="x"),
        {"op": "link", "type": "depends_on", "from": "A-secret", "to": "B", "base": 0},
    )
    second = payload({"op": "link", "type": "relates_to", "kind": "on", "from": "B", "to": old, "base": 0})
    third = payload({"op": "unlink", "type": "depends_on", "from": "A-secret", "to": "B", "base": 1})
    found = taken(of_pattern("secret"), first, second, third)
    assert found[0]["ops"][0]["id"] == found[0]["ops"][1]["from"] == found[2]["ops"][0]["from"] == "A-redacted"
    assert found[1]["ops"][0]["to"] == link_id("depends_on", "", "A-redacted", "B")


def test_two_ids_never_become_one() -> None:
    found = taken(
        RedactionTarget(matches=pattern_of("secret[0-9]", is_regex=True)),
        payload(put("A-secret1", title="x"), put("A-secret2", title="y"), put("A-redacted", title="z")),
    )
    assert len({op["id"] for op in found[0]["ops"]}) == 3


def test_the_digests_of_a_file_that_stated_it_go_from_then_on() -> None:
    read = {"op": "source", "path": "a.md", "hash": "1" * 64, "extractor": "markdown/1", "base": 0}
    other = {**read, "path": "b.md"}
    before, after = payload(read), payload(read, other, {**put("A", title="secret"), "src": "a.md"})
    found = taken(of_pattern("secret"), before, after, payload(read))
    assert [op["hash"] for one in found for op in one["ops"] if op["op"] == "source"] == ["1" * 64, "", "1" * 64, ""]


def test_a_confirmation_loses_the_digest_of_an_entity_that_held_it_under_any_id() -> None:
    def confirm(key: str) -> dict[str, Any]:
        return {"op": "confirm", "type": "uses", "from": "A", "to": key, "base": 1, "seen": "a0" * 32}

    records = [
        payload(put("OLD", title="secret"), put("B", title="none")),
        payload(put("NEW", **{FORMER_IDS: ["OLD"]}), {"op": "drop", "id": "OLD", "base": 1}),
        payload(confirm("NEW"), confirm("B")),
    ]
    [*_, last] = taken(of_pattern("secret"), *records)
    assert [op.get("seen") for op in last["ops"]] == [None, "a0" * 32]
    assert last["redacted"] == ["ops.0.seen", "digest"]


def test_an_id_that_is_a_digest_of_the_name_goes_with_the_name() -> None:
    key = f"Person:~{'0' * 32}"
    found = taken(of_pattern("secret"), payload(put(key, status="open")), payload(put(key, title="the secret")))
    assert [one["ops"][0]["id"] for one in found] == ["Person:redacted"] * 2


def test_the_digest_of_a_clause_goes_with_its_text() -> None:
    fields = {"attributes.text": "key(secret).", "attributes.key": "0" * 32, "attributes.order": 7}
    (one,) = taken(of_pattern("secret"), payload(put("clause:0123456789abcdef", **fields)))
    assert one["ops"][0]["set"]["attributes.key"] == "[redacted]"
    (one,) = taken(RedactionTarget(seqs=frozenset([1])), payload(put("clause:0123456789abcdef", **fields)))
    assert one["ops"][0]["set"]["attributes.order"] == 7


def test_hashes_of_the_chain_in_other_records_become_the_new_ones() -> None:
    old, new = "a" * 64, "b" * 64
    hole = {"first": 2, "last": 3, "before": old, "after": "c" * 64}
    note = payload(source="salvage", digest="", holes=[hole], repair=f"between hash {old[:12]} and hash {'c' * 12}.")
    found = taken(of_pattern("secret"), payload(put("A", title="secret")), note, sums={1: (old, new)})
    assert found[1]["holes"][0]["before"] == new
    assert found[1]["repair"] == f"between hash {'b' * 12} and hash {'c' * 12}."
    assert found[1]["redacted"] == ["holes.before", "repair"]


def test_the_digests_of_an_earlier_redaction_go_where_they_would_reveal_it() -> None:
    made = {"first": 1, "records": [{"seq": 1, "digest": "1" * 64}, {"seq": 2, "digest": "2" * 64}], "kept": "3" * 64}
    note = payload(source="redaction", redaction={**made, "since": 1})
    found = taken(of_pattern("secret"), payload(put("A", title="secret")), payload(put("B")), note)
    assert found[2]["redaction"]["records"] == [{"seq": 1, "digest": ""}, {"seq": 2, "digest": "2" * 64}]
    assert found[2]["redaction"]["kept"] == ""


def test_what_is_left_between_two_matches_is_no_match() -> None:
    (one,) = taken(of_pattern("d]xy"), payload(put("A", title="d]xyxy")))
    assert one["ops"][0]["set"]["title"] == "[redacted]"
    (one,) = taken(of_pattern("xyxy"), payload(put("A", title="xyxyxyxy", tags=["xyxy", "zxyxy", "xyxy"])))
    assert one["ops"][0]["set"]["tags"] == ["[redacted]", "z[redacted]"]


def test_the_whole_values_of_a_record_go_but_for_what_makes_an_element() -> None:
    fields = {
        "title": "t",
        "tags": ["a"],
        "attributes.n": 7,
        "created_at": "2026-11-20",
        "attributes.former_ids": ["B"],
    }
    (one,) = taken(RedactionTarget(seqs=frozenset([1])), payload(put("A", **fields), message="m", warnings=["w", "v"]))
    assert one["ops"][0]["set"] == {
        "type": "req", "title": "[redacted]", "tags": ["[redacted]"], "attributes.n": "[redacted]",
        "created_at": "2026-11-20", "attributes.former_ids": ["B"],
    }  # fmt: skip
    assert (one["message"], one["warnings"]) == ("[redacted]", ["[redacted]", "[redacted]"])


def test_all_names_of_an_entity_are_found_in_either_direction() -> None:
    former = {"C": {"B"}, "B": {"A"}, "Z": {"Y"}}
    assert names_of(["A"], former) == names_of(["C"], former) == {"A", "B", "C"}


@pytest.mark.parametrize("op", [
    put("A", **{"attributes.secret": 1}), {"op": "put", "id": "A", "base": 1, "unset": ["attributes.secret"]},
    {"op": "put", "id": "A", "base": 0, "set": {"type": "secret"}},
    {"op": "link", "type": "secret", "from": "A", "to": "B", "base": 0},
])  # fmt: skip
def test_a_pattern_in_the_name_of_a_field_or_a_type_is_refused(op: dict[str, Any]) -> None:
    with pytest.raises(InvalidQuery, match="part of the name"):
        taken(of_pattern("secret"), payload(op))


@pytest.mark.parametrize("path", ["", "contested."])
def test_a_field_goes_with_its_name_and_no_place_names_it(path: str) -> None:
    target = msgspec.structs.replace(of_pattern("secret"), takes_names=True)
    name = f"{path}attributes.my_secret"
    made = put("A", **{name: [{"value": "kept"}], "title": "t"})
    link = {"op": "link", "type": "depends_on", "from": "A", "to": "B", "base": 1, "set": {name: []}, "unset": [name]}
    only = {"op": "put", "id": "A", "base": 1, "unset": [name, "title"]}
    first, second, third = taken(target, payload(made), payload(link), payload(only))
    assert first["ops"] == [put("A", title="t")]
    assert second["ops"] == [{"op": "link", "type": "depends_on", "from": "A", "to": "B", "base": 1}]
    assert third["ops"][0]["unset"] == ["title"]
    assert all(one["redacted"] for one in (first, second, third))
    assert "secret" not in json.dumps([first, second, third])
    with pytest.raises(InvalidQuery, match="name of a type"):
        taken(target, payload({"op": "put", "id": "A", "base": 0, "set": {"type": "secret"}}))


@pytest.mark.parametrize(
    "target", [RedactionTarget(ids=frozenset(["A"])), RedactionTarget(seqs=frozenset([1])), of_pattern("secret")]
)
def test_a_value_that_only_the_note_of_a_conflict_has_is_taken_out_and_documented(target: RedactionTarget) -> None:
    by = [{"change": "c" * 32, "actor": "a", "at": "2026-11-20"}]
    raw = payload(put("A", **{"contested.title": [{"value": "a secret", "changes": by}]}))
    (one,) = taken(target, raw)
    [left] = one["ops"][0]["set"]["contested.title"]
    assert left["changes"] == by
    assert "secret" not in json.dumps(one)
    assert one["redacted"] == ["ops.0.set.contested.title", "digest"]


def test_a_value_that_only_a_note_has_is_taken_out_of_the_facts_of_a_snapshot() -> None:
    fields = {"type": "req", "title": "one", "contested.attributes.key": [{"value": "a secret", "changes": []}]}
    node = {"id": "A", "fields": fields, "owners": {}, "created_at": "t", "updated_at": "t", "created_seq": 1}
    line = json.dumps({"node": {**node, "version": 1, "source": ""}}).encode()
    [left], is_changed = Redactor(RedactionTarget(ids=frozenset(["A"]), fields=frozenset(["attributes.key"]))).facts(
        [line]
    )
    assert is_changed
    assert b"secret" not in left


def test_members_of_a_value_stay_where_their_names_become_equal_and_so_do_equal_members_of_a_list() -> None:
    target = RedactionTarget(matches=pattern_of("secret[0-9]", is_regex=True))
    members = {"secret1": 1, "secret2": 2, "[redacted]": 3, "x": [1, 1, "secret1", "secret2"]}
    (one,) = taken(target, payload(put("A", **{"attributes.key": members})))
    left = one["ops"][0]["set"]["attributes.key"]
    assert left == {"[redacted]-2": 1, "[redacted]-3": 2, "[redacted]": 3, "x": [1, 1, "[redacted]"]}


def test_a_text_in_another_form_of_unicode_is_found() -> None:
    (one,) = taken(of_pattern("cafe\u0301s"), payload(put("A", title="caf\u00e9s")))
    assert one["ops"][0]["set"]["title"] == "[redacted]"


# Changes

NODE, EDGE = EntityRef("A"), EdgeRef("depends_on", EntityRef("A"), EntityRef("B"))
OF_RECORD = RedactionTarget(changes=frozenset(["first"]))


def change(key: str, *claims: Any, message: str = "") -> Change:
    return Change(key, "2026-11-20", "a", "t", claims, message=message, salt="0" if message else "")


def test_a_change_of_a_record_loses_its_values_and_its_message() -> None:
    claims = SetField(NODE, "title", "old", "new", "1"), SetField(NODE, "type", now="req", salt="2")
    found = without_claims(change("first", *claims, message="m"), OF_RECORD)
    (first, second) = found.claims
    assert isinstance(first, SetField)
    assert (first.was, first.now, first.salt, first.is_redacted) == (msgspec.UNSET, msgspec.UNSET, "", True)
    assert second == claims[1]
    assert (found.message, bool(found.message_hash)) == ("", True)
    of_field = without_claims(
        change("first", *claims, message="m"), msgspec.structs.replace(OF_RECORD, fields=frozenset(["x"]))
    )
    assert of_field == change("first", *claims, message="m")


def test_a_later_change_loses_what_it_shows_of_a_change_of_a_record() -> None:
    later = change(
        "second",
        SetField(NODE, "title", "new", "newer", "1", after=("first",)),
        UnsetField(NODE, "status", "open", ("zero", "first")),
        RemoveMember(NODE, "tags", now="new", salt="3", removes=("first.2",)),
        SetField(EDGE, "attributes.note", "new", "new", "4", after=("first",)),  # the edge is bound again
        SetField(NODE, "owner", "bob", "ann", "5", after=("zero",)),
        RemoveMember(NODE, "tags", now="other", salt="6", removes=("zero.1",)),
        message="m",
    )
    found = without_claims(later, OF_RECORD)
    assert [getattr(one, "was", None) for one in found.claims] == [*[msgspec.UNSET] * 4, "bob", msgspec.UNSET]
    assert [getattr(one, "now", "") for one in found.claims] == [
        "newer", "", msgspec.UNSET, msgspec.UNSET, "ann", "other"
    ]  # fmt: skip
    assert found.message == "m"
    assert identified(found).id == identified(later).id
    assert without_claims(found, OF_RECORD) == found
    stated = change("second", SetField(EDGE, "attributes.note", now="own", salt="4", after=("first",)))
    assert without_claims(stated, OF_RECORD) == stated


def test_a_record_that_took_a_change_in_loses_the_values_of_that_change_alone() -> None:
    edge = EdgeRef("depends_on", EntityRef("A"), EntityRef("B"))
    taken_in = change(
        "first",
        SetField(NODE, "title", now="new", salt="1"),
        SetField(NODE, "status", now="open", salt="2"),
        SetField(NODE, "created_at", now="2026-11-20", salt="5"),
        AddMember(NODE, "tags", now="new", salt="3"),
        SetField(edge, "attributes.note", now="new", salt="4"),
    )
    take = {"op": "take", "id": "first", "file": "f", "change": msgspec.to_builtins(taken_in)}
    link = {"op": "link", "type": "depends_on", "from": "A", "to": "B", "base": 0, "set": {"attributes.note": "new"}}
    fields = {"title": "new", "status": "done", "tags": ["a", "new"], "owner": "new", "created_at": "2026-11-20"}
    ops = put("A", **fields), put("C", title="new"), link
    (one,) = taken(OF_RECORD, payload(*ops, take))
    assert one["ops"][0]["set"] == {
        "type": "req", "title": "[redacted]", "status": "done", "tags": ["a", "[redacted]"], "owner": "new",
        "created_at": "2026-11-20",
    }  # fmt: skip
    assert one["ops"][1]["set"]["title"] == "new"
    assert one["ops"][2]["set"] == {"attributes.note": "[redacted]"}
    kept = [claim["field"] for claim in one["ops"][3]["change"]["claims"] if "now" in claim]
    assert kept == ["created_at"]
