"""Contested values of two branches, settled by commands of KIP: one change after all that it decides between."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kbcore.editing.documents import WriteTarget
from kbcore.editing.renaming import rename
from kbcore.query.conflicts import find_conflicts
from kbcore.share.merging import merge
from kbcore.store import branches
from tests.support.repository.kip_writing import Kip
from tests.support.repository.project import AUTHOR

SETUP = """
UPSERT {
  CONCEPT ?a { {type: "Person", name: "A"} SET ATTRIBUTES { tier: "none", other: "kept" } }
  WITH METADATA { place: "none" }
  CONCEPT ?b { {type: "Person", name: "B"} }
  CONCEPT ?s { {type: "Symbol", name: "S-1"} SET ATTRIBUTES { title: "None", status: "active" } }
  PROPOSITION ?l { (?a, "mentions", ?b) SET ATTRIBUTES { role: "none" } } WITH METADATA { confidence: 0.5 }
}
"""
PERSON = '{type: "Person", name: "A"}'
LINK = f'({PERSON}, "mentions", {{type: "Person", name: "B"}})'

ATTRIBUTE = (f"CONCEPT {{ {PERSON} VERSION SET ATTRIBUTES {{ tier: VALUE }} }}", "attributes.tier", "Person:A")
METADATA = (f"CONCEPT {{ {PERSON} VERSION }} WITH METADATA {{ place: VALUE }}", "metadata.place", "Person:A")
STATUS = (f"CONCEPT {{ {PERSON} VERSION SET ATTRIBUTES {{ status: VALUE }} }}", "status", "Person:A")
TITLE = ('CONCEPT { {type: "Symbol", name: "S-1"} VERSION SET ATTRIBUTES { title: VALUE } }', "title", "S-1")
ROLE = (f"PROPOSITION {{ {LINK} VERSION SET ATTRIBUTES {{ role: VALUE }} }}", "attributes.role", "link")
CONFIDENCE = (f"PROPOSITION {{ {LINK} VERSION }} WITH METADATA {{ confidence: VALUE }}", "confidence", "link")
FORMS = [ATTRIBUTE, METADATA, STATUS, TITLE, ROLE, CONFIDENCE]
IDS = ["attribute", "metadata", "core field", "title", "attribute of a link", "confidence"]

Form = tuple[str, str, str]


@pytest.fixture
def known(kip: Kip) -> Kip:
    """A store with some concepts, of which branch topic has a copy."""
    kip(SETUP)
    kip.project.switch("topic", create=True)
    branches.open_branch(kip.project.workspace(), None)
    kip.project.switch("main")
    return kip


def contest(kip: Kip, theirs: Callable[[], Any], ours: Callable[[], Any]) -> None:
    """Have both branches write, and bring what topic has to main."""
    kip.project.switch("topic")
    theirs()
    kip.project.switch("main")
    ours()
    bring(kip, "topic", "main")


def bring(kip: Kip, source: str, target: str) -> None:
    merge(kip.project.workspace(), target, source, AUTHOR)


def upsert(form: Form, value: Any, version: int | None = None) -> str:
    expected = "" if version is None else f"EXPECT VERSION {version}"
    block = form[0].replace("VERSION", expected).replace("VALUE", json.dumps(value))
    return f"UPSERT {{ {block} }}"


def choosing(form: Form, choices: dict[str, Any], version: int | None = None) -> str:
    expected = "" if version is None else f"EXPECT VERSION {version}"
    head = form[0].replace("VERSION", expected).partition("SET ATTRIBUTES")[0].partition("WITH METADATA")[0]
    head += " }" * (head.count("{") - head.count("}"))
    return f"UPSERT {{ {head} WITH METADATA {{ _resolve: {json.dumps(choices)} }} }}"


def values_of(form: Form) -> tuple[Any, Any, Any]:
    return (0.2, 0.9, 0.6) if form is CONFIDENCE else ("theirs", "ours", "both")


def contested(kip: Kip) -> dict[tuple[str, str], list[Any]]:
    """Return the values of what is contested, by element and field; the element of an edge is "link"."""
    return {
        ("link" if one.edge else one.id, one.field): [value.get("value") for value in one.values]
        for one in find_conflicts(kip.project.view())
    }


def element(kip: Kip, form: Form) -> dict[str, Any]:
    link = kip.project.link("Person:A", "mentions", "Person:B").id
    return kip.element(link if form[2] == "link" else form[2])


def value(kip: Kip, form: Form) -> Any:
    shown = element(kip, form)
    part, _, key = form[1].rpartition(".")
    key, part = (form[1], "attributes") if not part else (key, part)
    return shown["metadata" if form is CONFIDENCE else part].get(key)


def contested_by(kip: Kip, form: Form) -> None:
    theirs, ours, _ = values_of(form)
    contest(kip, lambda: kip(upsert(form, theirs)), lambda: kip(upsert(form, ours)))
    assert {key: sorted(values) for key, values in contested(kip).items()} == {form[2:0:-1]: sorted([theirs, ours])}


def holds_everywhere(kip: Kip, form: Form, expected: Any) -> None:
    """Insist that a value holds here, and on topic once it has what main has: the decision came after both."""
    for branch in ("main", "topic"):
        kip.project.switch(branch)
        assert (contested(kip), value(kip, form)) == ({}, expected), branch
        if branch == "main":
            bring(kip, "main", "topic")


@pytest.mark.parametrize("form", FORMS, ids=IDS)
def test_a_plain_write_is_refused_and_names_both_remedies(known: Kip, form: Form) -> None:
    contested_by(known, form)

    error = known.refusal(upsert(form, values_of(form)[2]))

    assert (error["code"], "is contested" in error["message"]) == ("KIP_2002", True)
    assert "EXPECT VERSION" in error["hint"]
    assert f'WITH METADATA {{ _resolve: {{ "{form[1]}": 1 }} }}' in error["hint"]


@pytest.mark.parametrize("form", FORMS, ids=IDS)
def test_a_write_with_the_version_that_shows_the_conflict_settles_it(known: Kip, form: Form) -> None:
    contested_by(known, form)
    version = element(known, form)["metadata"]["_version"]
    both = values_of(form)[2]
    stale = known.refusal(upsert(form, both, version - 1))
    assert stale["code"] == "KIP_3005"

    known(upsert(form, both, version))

    holds_everywhere(known, form, both)


@pytest.mark.parametrize("form", FORMS, ids=IDS)
def test_the_value_that_is_shown_settles_too(known: Kip, form: Form) -> None:
    contested_by(known, form)
    shown, version = value(known, form), element(known, form)["metadata"]["_version"]

    known(upsert(form, shown, version))

    holds_everywhere(known, form, shown)


@pytest.mark.parametrize("form", FORMS, ids=IDS)
@pytest.mark.parametrize("number", [1, 2])
def test_a_number_takes_a_value_as_it_is_listed(known: Kip, form: Form, number: int) -> None:
    contested_by(known, form)
    listed = element(known, form)["metadata"]["_contested"][form[1]]

    known(choosing(form, {form[1]: number}))

    holds_everywhere(known, form, listed[number - 1]["value"])


def test_a_number_with_the_version_is_refused_where_the_version_has_moved(known: Kip) -> None:
    contested_by(known, ATTRIBUTE)
    version = element(known, ATTRIBUTE)["metadata"]["_version"]
    known(f"UPSERT {{ CONCEPT {{ {PERSON} SET ATTRIBUTES {{ note: 1 }} }} }}")

    assert known.refusal(choosing(ATTRIBUTE, {"attributes.tier": 1}, version))["code"] == "KIP_3005"
    known(choosing(ATTRIBUTE, {"attributes.tier": 1}, version + 1))

    assert contested(known) == {}


@pytest.mark.parametrize("form", [ATTRIBUTE, METADATA, ROLE], ids=["attribute", "metadata", "attribute of a link"])
def test_the_side_that_took_a_value_away_can_be_taken(known: Kip, form: Form) -> None:
    part, _, key = form[1].partition(".")
    where = f"WHERE {{ ?x {LINK if form is ROLE else PERSON} }}"
    drop = f'DELETE {part.upper()} {{"{key}"}} FROM ?x {where}'
    contest(known, lambda: known(drop), lambda: known(upsert(form, "ours")))
    listed = element(known, form)["metadata"]["_contested"][form[1]]
    number = next(at for at, one in enumerate(listed, start=1) if "value" not in one)

    known(choosing(form, {form[1]: number}))

    holds_everywhere(known, form, None)


def test_two_fields_are_settled_at_once_one_by_value_and_one_by_number(known: Kip) -> None:
    both = "UPSERT {{ CONCEPT {{ {} SET ATTRIBUTES {{ tier: {}, other: {} }} }} }}"
    contest(
        known,
        lambda: known(both.format(PERSON, '"t1"', '"t2"')),
        lambda: known(both.format(PERSON, '"o1"', '"o2"')),
    )
    shown = element(known, ATTRIBUTE)["metadata"]
    number = next(at for at, one in enumerate(shown["_contested"]["attributes.other"], start=1) if one["value"] == "t2")

    known(
        f'UPSERT {{ CONCEPT {{ {PERSON} EXPECT VERSION {shown["_version"]} SET ATTRIBUTES {{ tier: "x" }} }} '
        f'WITH METADATA {{ _resolve: {{ "attributes.other": {number} }} }} }}'
    )

    assert (contested(known), known.attributes("Person:A")) == ({}, {"tier": "x", "other": "t2"})


def test_a_number_of_one_field_does_not_settle_another_one_that_is_written(known: Kip) -> None:
    both = "UPSERT {{ CONCEPT {{ {} SET ATTRIBUTES {{ tier: {}, other: {} }} }} }}"
    contest(
        known,
        lambda: known(both.format(PERSON, '"t1"', '"t2"')),
        lambda: known(both.format(PERSON, '"o1"', '"o2"')),
    )

    error = known.refusal(
        f'UPSERT {{ CONCEPT {{ {PERSON} SET ATTRIBUTES {{ tier: "x" }} }} '
        'WITH METADATA { _resolve: { "attributes.other": 1 } } }'
    )

    assert "`attributes.tier`" in error["message"]


@pytest.mark.parametrize("form", [ATTRIBUTE, METADATA, ROLE], ids=["attribute", "metadata", "attribute of a link"])
def test_other_keys_are_written_and_dropped_while_one_is_contested(known: Kip, form: Form) -> None:
    contested_by(known, form)
    before = contested(known)
    where = f"WHERE {{ ?x {LINK if form is ROLE else PERSON} }}"

    known(upsert(form, 1).replace("tier:", "new:").replace("place:", "new:").replace("role:", "new:"))
    known(f"UPDATE ?x SET METADATA {{ newer: 2 }} {where}")
    part = "METADATA" if form is METADATA else "ATTRIBUTES"
    known(f'DELETE {part} {{"new"}} FROM ?x {where}')

    assert contested(known) == before
    assert element(known, form)["metadata"]["newer"] == 2
    assert "new" not in element(known, form)[part.lower()]


def test_the_version_settles_only_what_is_written(known: Kip) -> None:
    contested_by(known, ATTRIBUTE)
    version = element(known, ATTRIBUTE)["metadata"]["_version"]

    known(f"UPSERT {{ CONCEPT {{ {PERSON} EXPECT VERSION {version} SET ATTRIBUTES {{ other: 1 }} }} }}")

    assert [*contested(known)] == [("Person:A", "attributes.tier")]


@pytest.mark.parametrize(
    "text",
    [
        f'UPDATE ?x SET ATTRIBUTES {{ tier: "both" }} WHERE {{ ?x {PERSON} }}',
        f'DELETE ATTRIBUTES {{"tier"}} FROM ?x WHERE {{ ?x {PERSON} }}',
    ],
)
def test_what_cannot_name_a_version_is_refused_with_the_command_that_can(known: Kip, text: str) -> None:
    contested_by(known, ATTRIBUTE)
    assert "UPSERT it in a block of its own" in known.refusal(text)["hint"]


@pytest.mark.parametrize("form", [ATTRIBUTE, ROLE], ids=["concept", "link"])
def test_a_merge_loses_no_contested_value(known: Kip, form: Form) -> None:
    contested_by(known, form)
    known('UPSERT { CONCEPT { {type: "Person", name: "C"} } }')
    merging = 'MERGE CONCEPT ?x INTO ?y WHERE {{ ?x {{type: "Person", name: "{}"}} ?y {{type: "Person", name: "{}"}} }}'

    error = known.refusal(merging.format("A", "C"))
    assert (error["code"], f"is contested: {form[1]}" in error["message"]) == ("KIP_2002", True)
    known(merging.format("C", "A"))

    assert [*contested(known)] == [form[2:0:-1]]
    assert known.attributes("Person:A")["aliases"] == ["C"]


def test_a_deletion_that_had_not_seen_all_is_decided_by_keep_or_by_another_one(known: Kip) -> None:
    gone = f"DELETE CONCEPT ?x DETACH WHERE {{ ?x {PERSON} }}"
    contest(known, lambda: known(gone), lambda: known(upsert(ATTRIBUTE, "ours")))
    assert [*contested(known)] == [("Person:A", "deleted")]
    assert known.refusal(choosing(ATTRIBUTE, {"deleted": 1}))["code"] == "KIP_2002"

    assert known(choosing(ATTRIBUTE, {"deleted": "keep"}), dry_run=True)["dry_run"]
    assert [*contested(known)] == [("Person:A", "deleted")]
    known(choosing(ATTRIBUTE, {"deleted": "keep"}))

    assert contested(known) == {}
    bring(known, "main", "topic")
    known.project.switch("topic")
    assert (contested(known), known.attributes("Person:A")["tier"]) == ({}, "ours")


def test_deleting_settles_a_deletion(known: Kip) -> None:
    gone = f"DELETE CONCEPT ?x DETACH WHERE {{ ?x {PERSON} }}"
    contest(known, lambda: known(gone), lambda: known(upsert(ATTRIBUTE, "ours")))

    known(gone)

    assert (contested(known), known.project.node("Person:A")) == ({}, None)


def test_the_id_that_is_shown_is_kept(known: Kip) -> None:
    def renamed(new: str) -> None:
        workspace = known.project.workspace()
        store, choice, _ = branches.open_branch(workspace, None)
        rename(WriteTarget(workspace, choice.branch, AUTHOR, store.read, choice.follows_head), "S-1", new)

    contest(known, lambda: renamed("S-2"), lambda: renamed("S-3"))
    [(key, field)] = contested(known)
    assert field == "id"

    known(
        f'UPSERT {{ CONCEPT {{ {{type: "Symbol", name: "{key}"}} }} WITH METADATA {{ _resolve: {{ id: "keep" }} }} }}'
    )

    assert contested(known) == {}
    bring(known, "main", "topic")
    known.project.switch("topic")
    assert (contested(known), known.project.node(key) is None) == ({}, False)


@pytest.mark.parametrize("form", FORMS, ids=IDS)
@pytest.mark.parametrize("is_chosen", [False, True], ids=["value", "number"])
def test_a_dry_run_answers_as_the_real_run_and_settles_nothing(known: Kip, form: Form, is_chosen: bool) -> None:
    contested_by(known, form)
    before, seq = contested(known), known.seq()
    version = element(known, form)["metadata"]["_version"]
    text = choosing(form, {form[1]: 2}) if is_chosen else upsert(form, values_of(form)[2], version)

    tried = known(text, dry_run=True)

    assert (contested(known), known.seq()) == (before, seq)
    assert {**known(text), "dry_run": True} == tried
    assert contested(known) == {}


@pytest.mark.parametrize(
    ("choices", "code", "said"),
    [
        ({"attributes.tier": 3}, "KIP_2002", "There is no value 3 of 'attributes.tier' of 'Person:A'; there are 2"),
        ({"attributes.tier": 0}, "KIP_2002", "There is no value 0"),
        ({"attributes.tier": "keep"}, "KIP_2002", "There is no value 'keep'"),
        ({"attributes.other": 1}, "KIP_2002", "'attributes.other' of 'Person:A' is not contested"),
        ({"attributes.tier": "ours"}, "KIP_2003", "`_resolve` maps contested fields to the numbers of their values"),
        ({"attributes.tier": True}, "KIP_2003", "`_resolve` maps"),
        (["attributes.tier"], "KIP_2003", "`_resolve` maps"),
    ],
)
def test_a_choice_that_there_is_not_is_refused(known: Kip, choices: Any, code: str, said: str) -> None:
    contested_by(known, ATTRIBUTE)

    error = known.refusal(choosing(ATTRIBUTE, choices))

    assert (error["code"], said in error["message"]) == (code, True), error["message"]
    assert ("_contested" in error["hint"]) == (code == "KIP_2002")
    assert error["data"]["line"] == 1
    assert error["data"]["column"] > 50  # the place of `_resolve`, not of the block


def test_a_field_is_not_written_and_chosen_at_once(known: Kip) -> None:
    contested_by(known, ATTRIBUTE)
    version = element(known, ATTRIBUTE)["metadata"]["_version"]
    text = upsert(ATTRIBUTE, "x", version)[:-1] + 'WITH METADATA { _resolve: { "attributes.tier": 1 } } }'
    error = known.refusal(text)
    assert "is written and resolved at once" in error["message"]
    assert error["hint"] == "Leave one of the two out."


def test_choices_belong_to_a_block(known: Kip) -> None:
    contested_by(known, ATTRIBUTE)
    texts = [
        f'UPSERT {{ CONCEPT {{ {PERSON} }} }} WITH METADATA {{ _resolve: {{ "attributes.tier": 1 }} }}',
        f'UPDATE ?x SET METADATA {{ _resolve: {{ "attributes.tier": 1 }} }} WHERE {{ ?x {PERSON} }}',
    ]
    for text in texts:
        error = known.refusal(text)
        assert (error["code"], "a block of UPSERT" in error["hint"]) == ("KIP_2002", True)
    nested = f'{PERSON} SET PROPOSITIONS {{ ("mentions", {{type: "Person", name: "B"}}) }}'
    known(f'UPSERT {{ CONCEPT {{ {nested} }} WITH METADATA {{ _resolve: {{ "attributes.tier": 1 }} }} }}')
    assert contested(known) == {}


@pytest.mark.parametrize(
    ("concept", "code"),
    [
        ('{type: "Person", name: "$self"}', "KIP_3004"),
        ('{type: "$ConceptType", name: "Person"}', "KIP_2002"),
        ('{type: "$ConceptType", name: "Requirement"}', "KIP_3004"),
        ('{type: "Domain", name: "CoreSchema"}', "KIP_3004"),
        ('{type: "Person", name: "Nobody"}', "KIP_2002"),
    ],
)
def test_choices_for_what_is_protected_or_new_are_refused(known: Kip, concept: str, code: str) -> None:
    text = f'UPSERT {{ CONCEPT {{ {concept} }} WITH METADATA {{ _resolve: {{ "attributes.core_directives": 1 }} }} }}'
    assert known.refusal(text)["code"] == code
