"""MERGE where two elements contradict each other: the surer one wins with its source, and the other stays readable."""

from __future__ import annotations

import pytest

from kbcore.errors import IntegrityViolation, KipRefused
from tests.core.editing.renamed import renamed
from tests.support.repository.kip_writing import Kip
from tests.support.repository.project import req

MERGE = "MERGE CONCEPT ?x INTO ?y WHERE { ?x {id: :gone} ?y {id: :kept} }"
BOTH = {"gone": "Person:gone", "kept": "Person:kept"}
WRITE = 'UPSERT { CONCEPT { {type: "Person", name: :name} SET ATTRIBUTES :attributes } } WITH METADATA :metadata'
LINK = (
    'UPSERT { CONCEPT ?s { {type: "Person", name: :name} } '
    'PROPOSITION { (?s, "mentions", {type: "Person", name: "C"}) '
    "SET ATTRIBUTES :attributes } WITH METADATA :metadata }"
)


def said(source, confidence=None, **more):
    return {"source": source, "author": f"the author of {source}", **more} | (
        {} if confidence is None else {"confidence": confidence}
    )


@pytest.fixture
def people(kip):
    kip('UPSERT { CONCEPT { {type: "Person", name: "C"} } }')

    def write(name, attributes, metadata, *, text=WRITE):
        kip(text, {"name": name, "attributes": attributes, "metadata": metadata})

    kip.write = write
    return kip


def provenance(shown):
    return {key: shown["metadata"][key] for key in ("source", "author", "confidence") if key in shown["metadata"]}


@pytest.mark.parametrize(
    ("kept", "gone", "wins"),
    [(0.9, 0.3, False), (0.3, 0.9, True), (0.5, 0.5, False), (None, 0.9, False), (0.1, None, False)],
)
def test_of_two_values_that_of_the_surer_concept_stays_with_its_source(people, kept, gone, wins):
    people.write("kept", {"n": 1, "same": [1], "own": "k"}, said("k", kept))
    people.write("gone", {"n": 2, "same": [1], "more": "g"}, said("g", gone))
    reported = people(MERGE, BOTH)
    sides = [{"value": 1, **said("k", kept)}, {"value": 2, **said("g", gone)}]
    stays, goes = reversed(sides) if wins else sides
    [conflict] = [one for one in reported["conflicts"] if one["key"] == "attributes.n"]
    assert conflict == {"id": "Person:kept", "key": "attributes.n", "kept": stays, "other": goes}
    shown = people.element("Person:kept")
    assert shown["attributes"] == {"n": stays["value"], "same": [1], "own": "k", "more": "g", "aliases": ["gone"]}
    assert provenance(shown) == (said("g", gone) if wins else said("k", kept))
    [entry] = shown["metadata"]["_merged_values"]
    lost = said("k", kept) if wins else said("g", gone)
    keys = ["own"] if wins else ["more"]
    key = "Person:kept" if wins else "Person:gone"
    assert entry == {"id": key, "attributes": {"n": goes["value"]}, "metadata": lost, "kept_keys": keys}


@pytest.mark.parametrize(("kept", "gone", "wins"), [(0.9, 0.3, False), (0.3, 0.9, True), (None, 0.3, True)])
def test_of_two_links_that_become_one_the_surer_one_stays_with_its_source(people, kept, gone, wins):
    for name, confidence in (("kept", kept), ("gone", gone)):
        people.write(name, {"w": name}, said(name, confidence), text=LINK)
    reported = people(MERGE, BOTH)
    stays, goes = ("gone", "kept") if wins else ("kept", "gone")
    assert {one["key"] for one in reported["conflicts"]} == {"attributes.w", *(["metadata.confidence"] if kept else [])}
    [link] = people('FIND(?l) WHERE { ?l ({type: "Person", name: "kept"}, "mentions", ?o) }')
    assert link["attributes"] == {"w": stays}
    assert provenance(link) == said(stays, gone if wins else kept)
    [entry] = link["metadata"]["_merged_values"]
    assert (entry["attributes"], entry["metadata"]) == ({"w": goes}, said(goes, kept if wins else gone))


@pytest.mark.parametrize(("kept", "gone"), [({"confidence": 0.9}, {"source": "g", "confidence": 0.2}),
                                            ({"source": "k", "confidence": 0.2}, {"confidence": 0.9})])  # fmt: skip
def test_never_does_the_confidence_of_one_side_stand_with_the_source_of_the_other(people, kept, gone):
    for text in (LINK, WRITE):
        people.write("kept", {}, kept, text=text)
        people.write("gone", {}, gone, text=text)
    people(MERGE, BOTH)
    [link] = people('FIND(?l) WHERE { ?l ({type: "Person", name: "kept"}, "mentions", ?o) }')
    for shown in (link, people.element("Person:kept")):
        assert provenance(shown) == {"confidence": 0.9}
        assert shown["metadata"]["_merged_values"][0]["metadata"]["source"] in "kg"


def test_what_was_said_by_one_side_alone_goes_into_a_link_that_says_nothing_of_it(people):
    people.write("kept", {}, {}, text=LINK)
    people.write("gone", {"w": 1}, {"source": "g", "note": "n"}, text=LINK)
    assert people(MERGE, BOTH)["conflicts"] == []
    [link] = people('FIND(?l) WHERE { ?l ({type: "Person", name: "kept"}, "mentions", ?o) }')
    assert (link["attributes"], link["metadata"]["note"], provenance(link)) == ({"w": 1}, "n", {"source": "g"})
    assert "_merged_values" not in link["metadata"]


def test_values_of_earlier_merges_stay_readable(people):
    for number, name in enumerate(("kept", "gone", "third")):
        people.write(name, {"n": number}, said(name, 0.9 - number / 10))
    people(MERGE, {"gone": "Person:third", "kept": "Person:gone"})
    people(MERGE, BOTH)
    [values] = people('FIND(?x.metadata._merged_values) WHERE { ?x {type: "Person", name: "kept"} }')
    found = {one["id"]: one["attributes"]["n"] for one in values}
    assert found == {"Person:third": 2, "Person:gone": 1}


def test_a_dry_run_tells_what_the_merge_answers_and_writes_nothing(people):
    people.write("kept", {"n": 1}, said("k", 0.3))
    people.write("gone", {"n": 2}, said("g", 0.9))
    reported = people(MERGE, BOTH, dry_run=True)
    assert (reported["dry_run"], reported["merged"], reported["merged_concepts"], len(reported["conflicts"])) == (
        True,
        True,
        1,
        2,
    )
    assert people.attributes("Person:kept") == {"n": 1}
    assert {"dry_run": True, **people(MERGE, BOTH)} == reported


def test_a_receipt_lists_so_many_conflicts_and_counts_the_rest(people):
    people.write("kept", {f"k{n:03}": 1 for n in range(120)}, {})
    people.write("gone", {f"k{n:03}": 2 for n in range(120)}, {})
    reported = people(MERGE, BOTH)
    assert (len(reported["conflicts"]), reported["conflicts_left_out"]) == (100, 20)
    [entry] = people.element("Person:kept")["metadata"]["_merged_values"]
    assert len(entry["attributes"]) == 120


def test_what_a_file_states_wins_whatever_the_confidence(kip):
    kip.project.sync({"docs/requirements/a.md": req("A")})
    kip.project.apply(entities=[{"id": "B", "type": "req", "title": "Another", "status": "done",
                                 "metadata": {"confidence": 1.0}}])  # fmt: skip
    kip('UPDATE ?x SET METADATA { confidence: 0.1 } WHERE { ?x {type: "Requirement", name: "A"} }')
    before = kip.attributes("A")
    reported = kip(MERGE, {"gone": "B", "kept": "A"})
    assert "attributes.title" in {one["key"] for one in reported["conflicts"]}
    assert kip.attributes("A") == before | {"aliases": ["B"]}


@pytest.mark.parametrize("in_unsorted", ["kept", "gone", "both"])
def test_what_belongs_to_another_domain_leaves_unsorted_by_a_merge(people, in_unsorted):
    join = (
        'UPSERT { PROPOSITION { ({type: "Person", name: :name}, "belongs_to_domain", {type: "Domain", name: :to}) } }'
    )
    people('UPSERT { CONCEPT { {type: "Domain", name: "Work"} } }')
    for name in ("kept", "gone"):
        people.write(name, {}, {})
        if in_unsorted in {name, "both"}:
            people(join, {"name": name, "to": "Unsorted"})
        if in_unsorted != name and not (in_unsorted == "both" and name == "kept"):
            people(join, {"name": name, "to": "Work"})
    people(MERGE, BOTH)
    where = 'WHERE { ({type: "Person", name: "kept"}, "belongs_to_domain", ?d) }'
    assert people(f"FIND(?d.name) {where}") == ["Work"]


def test_two_that_only_wait_in_unsorted_still_wait_there_when_merged(people):
    for name in ("kept", "gone"):
        people.write(name, {}, {})
        people('UPSERT { CONCEPT { {type: "Person", name: :n} SET PROPOSITIONS { ("belongs_to_domain", '
               '{type: "Domain", name: "Unsorted"}) } } }', {"n": name})  # fmt: skip
    people(MERGE, BOTH)
    assert people('FIND(?p.name) WHERE { (?p, "belongs_to_domain", {type: "Domain", name: "Unsorted"}) }') == ["kept"]


@pytest.mark.parametrize("wins", [0.2, 0.8])
def test_what_did_not_win_comes_back_from_a_capsule(people, tmp_path, wins):
    for name, confidence in (("kept", 0.5), ("gone", wins)):
        people.write(name, {"n": confidence}, said(name, confidence))
        people.write(name, {"x": confidence}, said(name, confidence), text=LINK)
    people(MERGE, BOTH)
    concept = 'EXPORT ?x WHERE { ?x {type: "Person", name: "kept"} UNION { ?x (?s, "mentions", ?o) } }'
    capsule = people(concept)["capsule"]
    other = Kip(tmp_path / "other")
    for _ in range(2):  # stated again it says the same
        other(capsule)
        merged = [one["metadata"].get("_merged_values") for one in other.shown().values() if "n" in one["attributes"]]
        merged += [one["metadata"].get("_merged_values") for one in other.shown().values() if "x" in one["attributes"]]
        assert [len(one) for one in merged] == [1, 1]
        here = [one["metadata"].get("_merged_values") for one in people.shown().values() if "n" in one["attributes"]]
        assert merged[:1] == here
    other.project.close()


def test_values_of_merges_that_are_stated_are_added_and_none_is_removed(people):
    write = 'UPSERT { CONCEPT { {type: "Person", name: "A"} } WITH METADATA { _merged_values: :values } }'
    people(write, {"values": [{"id": "Person:b", "attributes": {"n": 1}}]})
    people(write, {"values": []})
    people(write, {"values": [{"id": "Person:c"}]})
    assert [one["id"] for one in people.element("Person:A")["metadata"]["_merged_values"]] == ["Person:b", "Person:c"]
    for wrong in (None, "x", [1], [{"n": 1}], [{"id": "a", "other": 1}]):
        with pytest.raises(KipRefused, match="not as MERGE writes it"):
            people(write, {"values": wrong})


def renamed_concept(kip: Kip, old: str, new: str) -> None:
    """Write a scenario, and give it another id."""
    item = {"id": old, "type": "scenario", "title": old, "status": "draft"}
    kip.project.apply(entities=[item])
    if new != old:
        renamed(kip.project, old, new)


@pytest.mark.parametrize("kept", ["SCN-1", "SCN-ONE"], ids=["that was never renamed", "that was renamed"])
def test_a_merge_gives_the_former_ids_of_a_concept_to_the_one_that_stays(kip: Kip, kept: str) -> None:
    renamed_concept(kip, "SCN-1", kept)
    renamed_concept(kip, "SCN-2", "SCN-TWO")
    answer = kip(MERGE, {"gone": "SCN-TWO", "kept": kept})
    assert [one for one in answer["conflicts"] if "former_ids" in one["key"]] == []
    former = kip.project.node(kept).fields["attributes.former_ids"]
    assert former == [*(["SCN-1"] if kept != "SCN-1" else []), "SCN-2"]
    assert kip.project.view().renamed(["SCN-2"]) == {"SCN-2": kept}
    with pytest.raises(IntegrityViolation, match="is a former id of"):
        renamed_concept(kip, "SCN-2", "SCN-2")


def test_a_merge_into_a_concept_whose_document_states_its_former_ids_lists_those_of_the_other_one(kip: Kip) -> None:
    document = {"docs/requirements/1.md": req("REQ-9", former_ids="[REQ-1]")}
    kip.project.sync(document)
    kip.project.apply(entities=[{"id": "REQ-2", "type": "req", "title": "T", "status": "open"}])
    renamed(kip.project, "REQ-2", "REQ-7")
    answer = kip(MERGE, {"gone": "REQ-7", "kept": "REQ-9"})
    [conflict] = [one for one in answer["conflicts"] if one["key"] == "attributes.former_ids"]
    assert (conflict["kept"]["value"], conflict["other"]["value"]) == (["REQ-1"], ["REQ-2"])


def test_former_ids_of_a_concept_are_not_deleted_and_not_said_to_be(kip: Kip) -> None:
    renamed_concept(kip, "SCN-2", "SCN-TWO")
    text = 'DELETE ATTRIBUTES {"former_ids"} FROM ?s WHERE { ?s {type: "Scenario"} }'
    with pytest.raises(KipRefused, match="`former_ids` is set by KB"):
        kip(text)
    assert kip.project.node("SCN-TWO").fields["attributes.former_ids"] == ["SCN-2"]


def test_a_client_cannot_give_the_former_ids_of_an_entity_that_stays_to_another_one(kip: Kip) -> None:
    renamed_concept(kip, "SCN-1", "SCN-1")
    renamed_concept(kip, "SCN-2", "SCN-TWO")
    text = 'UPDATE ?s SET ATTRIBUTES { former_ids: ["SCN-2"] } WHERE { ?s {id: "SCN-1"} }'
    with pytest.raises(KipRefused, match="former_ids"):
        kip(text)
