"""Each former id that a file states is followed: one of them is the rename, and the others are taken over."""

from __future__ import annotations

import pytest

from kbcore.store.history.log import no_such_entity
from kbcore.sync.run import SyncAnswer
from tests.support.repository.project import Project, req

REQS = "docs/requirements"
A, B, D, E = (f"{REQS}/{name}.md" for name in ("A", "B", "D", "E"))
TAKEN = "REQ-C takes over REQ-A, with what clients had stated of it: owner."


@pytest.fixture
def stated(project: Project) -> Project:
    """Three requirements, of two of which clients stated something."""
    project.sync({A: req("REQ-A"), B: req("REQ-B"), D: req("REQ-D")})
    project.apply(
        entities=[{"id": "REQ-A", "owner": "ann"}, {"id": "REQ-D", "severity": "high"}],
        edges=[{"type": "depends_on", "from": one, "to": "REQ-B"} for one in ("REQ-A", "REQ-D")],
    )
    return project


def check_joined(project: Project, key: str, answer: SyncAnswer) -> None:
    """Check that an entity has what clients stated of both others, and that nothing is left of these."""
    fields = project.node(key).fields
    assert (fields.get("owner"), fields.get("severity")) == ("ann", "high")
    assert project.edges(key) == {(key, "depends_on", "REQ-B", True)}
    assert project.edges("REQ-A") == project.edges("REQ-D") == set()
    assert project.view().renamed(["REQ-A", "REQ-D"]) == {"REQ-A": key, "REQ-D": key}
    assert not [one for one in answer.outcome.warnings if "It comes back" in one]
    assert project.sync(rebuild=True).outcome.applied is False


@pytest.mark.parametrize("former", ["[REQ-A, REQ-D]", "[REQ-D, REQ-A]"])
@pytest.mark.parametrize("is_gone_before", [True, False], ids=["gone before", "gone now"])
def test_a_document_that_gets_another_id_takes_over_another_one(
    stated: Project, former: str, is_gone_before: bool
) -> None:
    if is_gone_before:
        stated.sync({A: None})
    answer = stated.sync({**({} if is_gone_before else {A: None}), D: req("REQ-C", former_ids=former)})
    assert answer.outcome.renamed == {"REQ-D": "REQ-C"}
    assert answer.outcome.warnings == (TAKEN,)
    check_joined(stated, "REQ-C", answer)
    assert no_such_entity(stated.view(), "REQ-A").message == "'REQ-A' is called 'REQ-C' now."


@pytest.mark.parametrize("former", ["[REQ-A, REQ-D]", "[REQ-D, REQ-A]"])
@pytest.mark.parametrize("gone_before", [(), (A,), (D,), (A, D)], ids=["none", "A", "D", "both"])
def test_a_document_that_joins_two_takes_over_both(stated: Project, former: str, gone_before: tuple[str, ...]) -> None:
    for path in gone_before:
        stated.sync({path: None})
    now: dict[str, str | None] = {path: None for path in (A, D) if path not in gone_before}
    answer = stated.sync({**now, E: req("REQ-C", former_ids=former)})
    assert len(answer.outcome.renamed) == (0 if len(gone_before) == 2 else 1)
    check_joined(stated, "REQ-C", answer)


@pytest.mark.parametrize("gone_before", [(), (A,), (A, D)], ids=["none", "A", "both"])
def test_an_entity_that_exists_takes_over_several(stated: Project, gone_before: tuple[str, ...]) -> None:
    stated.sync({E: req("REQ-C")})
    for path in gone_before:
        stated.sync({path: None})
    now: dict[str, str | None] = {path: None for path in (A, D) if path not in gone_before}
    answer = stated.sync({**now, E: req("REQ-C", former_ids="[REQ-A, REQ-D]")})
    assert answer.outcome.renamed == {}
    check_joined(stated, "REQ-C", answer)


def test_of_a_field_that_two_have_the_latest_former_id_is_followed(stated: Project) -> None:
    stated.apply(entities=[{"id": "REQ-D", "owner": "dan"}])
    stated.sync({A: None, D: None})
    stated.sync({E: req("REQ-C", former_ids="[REQ-D, REQ-A]")})
    assert stated.node("REQ-C").fields["owner"] == "ann"


def test_the_history_has_the_document_as_the_one_that_was_renamed(stated: Project) -> None:
    stated.sync({A: None, D: req("REQ-C", former_ids="[REQ-D, REQ-A]")})
    view = stated.view()
    [(moved,)] = view.rows("select moved from record where renamed > 0")
    assert '"was":"REQ-D","now":"REQ-C"' in moved
    assert stated.view().nodes(["REQ-C"])[0].fields["severity"] == "high"


@pytest.mark.parametrize("later", [True, False], ids=["a sync later", "in one sync"])
def test_a_former_id_that_is_left_out_moves_nothing(stated: Project, later: bool) -> None:
    stated.sync({A: None})
    files = {D: req("REQ-C", former_ids="[REQ-A, REQ-D]"), E: req("REQ-E", former_ids="[REQ-A]")}
    if later:
        stated.sync({D: files[D]})
    answer = stated.sync(files)
    assert [(path, one.code) for path, one in answer.problems if one.severity == "error"] == [(E, "claimed_id")]
    assert stated.node("REQ-C").fields["owner"] == "ann"
    assert stated.edges("REQ-C") == {("REQ-C", "depends_on", "REQ-B", True)}
    assert stated.edges("REQ-E") == set()
    assert "owner" not in stated.node("REQ-E").fields


def test_a_former_id_that_is_left_out_renames_nothing(stated: Project) -> None:
    """Of two documents that come, the one that keeps the claim is the rename, in whichever order they are named."""
    stated.sync({E: req("REQ-X", former_ids="[REQ-0]")})
    answer = stated.sync(
        {A: None, D: None, f"{REQS}/F.md": req("REQ-F", former_ids="[REQ-A]"), B: req("REQ-G", former_ids="[REQ-A]")}
    )
    assert answer.outcome.renamed == {"REQ-A": "REQ-G"}
    assert stated.node("REQ-G").fields["owner"] == "ann"


def test_a_second_takeover_brings_nothing_back_that_a_client_removed_since(stated: Project) -> None:
    stated.sync({A: None, D: req("REQ-D", former_ids="[REQ-A]")})
    stated.apply(entities=[{"id": "REQ-D", "owner": None}])
    answer = stated.sync({D: req("REQ-C", former_ids="[REQ-A, REQ-D]")})
    assert answer.outcome.warnings == ()
    assert "owner" not in stated.node("REQ-C").fields


def test_an_entity_that_was_renamed_is_not_taken_for_removed_where_its_former_id_is_stated_again(
    stated: Project,
) -> None:
    stated.sync({A: req("REQ-X", former_ids="[REQ-A]")})
    stated.sync({A: req("REQ-X")})
    stated.apply(entities=[{"id": "REQ-X", "owner": None}])
    answer = stated.sync({A: req("REQ-X", former_ids="[REQ-A]")})
    assert answer.outcome.warnings == ()
    assert "owner" not in stated.node("REQ-X").fields


def test_a_new_document_with_the_id_of_a_renamed_entity_gets_nothing_of_it(stated: Project) -> None:
    stated.sync({A: req("REQ-X", former_ids="[REQ-A]")})
    stated.sync({A: req("REQ-X")})
    answer = stated.sync({E: req("REQ-A")})
    assert answer.outcome.warnings == ()
    assert "owner" not in stated.node("REQ-A").fields
    assert stated.node("REQ-X").fields["owner"] == "ann"
