"""Writes of actors whose facts are only proposed: every way to write, and what rules and coverage make of them."""

from __future__ import annotations

import json

import pytest

from kbcore.checks import run_checks
from kbcore.errors import InvalidChangeset, ReviewRequired
from kbcore.kip.request import read
from kbcore.kip.run import KipContext, run
from kbcore.model.graph import is_proposed, proposed_values
from kbcore.query import coverage
from kbcore.store.history import undo
from kbcore.store.proposing import may_accept
from kbcore.store.review import ProposalFilter, check_reviewer, deciding_changeset, find_proposals
from kbcore.store.write_request import Author
from tests.support.repository.project import AUTHOR, Project, req

BOT = Author("bot/1.0", "mcp:bot", "kb/test", "s1")
MUST = req("REQ-1", priority="must")
COVER = {
    "entities": [
        {"id": "TEST-1", "type": "test", "title": "T", "status": "passing"},
        {"id": "SCN-1", "type": "scenario", "title": "S", "status": "open"},
    ],
    "edges": [
        {"type": "verified_by", "from": "REQ-1", "to": "TEST-1"},
        {"type": "specified_by", "from": "REQ-1", "to": "SCN-1"},
    ],
}
SQL_RULE = """rules:
- id: no-test
  description: d
  severity: error
  sql: >
    select id as id, 'none' as message from entity
    where type = 'req' and id not in (select from_id from edge)
"""


@pytest.fixture
def reviewed(project: Project) -> Project:
    project.write({".kb/config.json": json.dumps({"review": {"actors": ["bot/*"]}})})
    project.sync({"docs/requirements/1.md": MUST})
    return project


def check(project: Project, *ids: str):
    return run_checks(project.workspace(), project.view(), branch="main", ids=ids)


def broken(project: Project, *ids: str) -> set[str]:
    return {f"{one.rule}:{'.'.join(one.values)}" for one in check(project, *ids).violations}


def decide(project: Project, what: str, wanted: ProposalFilter = ProposalFilter()):  # noqa: B008 - frozen
    found = find_proposals(project.view(), wanted)
    accepted, rejected = (found, []) if what == "accept" else ([], found)
    return project._carry_out(deciding_changeset(accepted, rejected, seq=project.seq()), None, AUTHOR)


def test_a_proposal_satisfies_no_rule_until_it_is_accepted(reviewed):
    before = broken(reviewed)
    outcome = reviewed.apply(author=BOT, **COVER)
    assert "Only proposed: 4 new facts." in outcome.warnings[0]
    lacking = {"must-coverage:verified_by", "must-coverage:specified_by"}
    assert lacking <= before & broken(reviewed) & broken(reviewed, "REQ-1")
    assert check(reviewed).proposed == 4
    decide(reviewed, "accept")
    assert not {one for one in broken(reviewed) if one.startswith("must-coverage")}
    assert check(reviewed).proposed == 0


def test_a_rule_of_the_project_sees_no_proposal(reviewed):
    reviewed.write({".kb/rules/own.yaml": SQL_RULE})
    reviewed.apply(author=BOT, **COVER)
    assert "no-test:" in broken(reviewed)
    decide(reviewed, "accept")
    assert "no-test:" not in broken(reviewed)


def test_a_proposal_breaks_no_rule_either_and_a_secret_in_it_is_found(reviewed):
    reviewed.apply(
        author=BOT, entities=[{"id": "REQ-9", "type": "req", "title": "A", "status": "o", "priority": "must"}]
    )
    token = "ghp_" + "a1B2" * 9
    reviewed.apply(author=BOT, entities=[{"id": "REQ-9", "attributes": {"note": token}}])
    found = [one.rule for one in check(reviewed).violations if one.id == "REQ-9"]
    assert found == ["secret"]


def test_the_warnings_of_a_write_leave_proposals_out(reviewed):
    outcome = reviewed.apply(author=BOT, **COVER)
    assert len(outcome.warnings) == 1
    mine = reviewed.apply(
        entities=[{"id": "REQ-2", "type": "req", "title": "B", "status": "open", "priority": "must"}],
        edges=[{"type": "verified_by", "from": "REQ-2", "to": "TEST-1"}],
    )
    assert any("no test" in one or "must-coverage" in one for one in mine.warnings)


def test_coverage_counts_what_is_accepted_and_names_the_rest(reviewed):
    reviewed.apply(author=BOT, **COVER)
    reviewed.apply(author=BOT, entities=[{"id": "REQ-8", "type": "req", "title": "B", "status": "open"}])
    covered = coverage.read(reviewed.view().rows, None)
    [one] = covered.requirements
    assert (one.state("verified"), one.proposed) == ("no", {"specified": ("SCN-1",), "verified": ("TEST-1",)})
    assert covered.proposed == 1
    decide(reviewed, "accept")
    covered = coverage.read(reviewed.view().rows, None)
    assert [(one.state("verified"), one.proposed) for one in covered.requirements] == [("yes", {}), ("no", {})]


def test_a_change_of_a_document_s_entity_is_beside_what_the_document_says(reviewed):
    reviewed.apply(author=BOT, entities=[{"id": "REQ-1", "owner": "ann"}])
    node = reviewed.node("REQ-1")
    assert ("owner" in node.fields, proposed_values(node)) == (False, {"owner": {"value": "ann"}})
    decide(reviewed, "accept")
    assert (reviewed.node("REQ-1").fields["owner"], proposed_values(reviewed.node("REQ-1"))) == ("ann", {})


def test_a_rejected_proposal_is_gone_and_a_revert_brings_it_back(reviewed):
    reviewed.apply(author=BOT, **COVER)
    outcome = decide(reviewed, "reject", ProposalFilter(ids=("TEST-1",)))
    assert outcome.deleted == ("TEST-1",)
    assert reviewed.node("TEST-1") is None
    assert len(find_proposals(reviewed.view())) == 2
    undo.revert(reviewed.workspace(), "main", AUTHOR, [outcome.seq], follows_head=False)
    assert is_proposed(reviewed.node("TEST-1"))


def test_a_proposal_is_selected_by_entity_record_type_actor_and_session(reviewed):
    first = reviewed.apply(author=BOT, **COVER).seq
    other = Author("bot/2.0", "mcp:bot", "kb/test", "s2")
    reviewed.apply(author=other, entities=[{"id": "TEST-2", "type": "test", "title": "T", "status": "passing"}])
    view = reviewed.view()
    counts = [
        len(find_proposals(view, one))
        for one in (
            ProposalFilter(ids=("TEST-1",)),
            ProposalFilter(seqs=(first,)),
            ProposalFilter(types=("test",)),
            ProposalFilter(actor="bot/2.0"),
            ProposalFilter(session="s1"),
        )
    ]
    assert counts == [2, 4, 2, 1, 4]
    assert {(one.by, one.session, one.source) for one in find_proposals(view, ProposalFilter(seqs=(first,)))} == {
        ("bot/1.0", "s1", "mcp:bot")
    }


def test_a_decision_on_what_has_changed_since_it_was_read_is_refused(reviewed):
    reviewed.apply(author=BOT, **COVER)
    found, seq = find_proposals(reviewed.view()), reviewed.seq()
    reviewed.apply(author=BOT, entities=[{"id": "TEST-1", "title": "Another"}])
    with pytest.raises(Exception, match="changed"):
        reviewed._carry_out(deciding_changeset(found, [], seq=seq), None, AUTHOR)


def test_every_way_to_write_proposes(reviewed):
    reviewed.apply(entities=[{"id": "FACT", "type": "component", "title": "Old", "status": "active"}])
    reviewed.apply(entities=[{"id": "FACT", "title": "New"}])
    workspace = reviewed.workspace()
    undo.revert(workspace, "main", BOT, [reviewed.seq()], follows_head=False)
    assert reviewed.node("FACT").fields["title"] == "New"
    assert proposed_values(reviewed.node("FACT")) == {"title": {"value": "Old"}}
    reviewed.delete(author=BOT, entities=[{"id": "FACT"}])
    assert proposed_values(reviewed.node("FACT"))["deleted"] == {"value": True}
    answer = run(
        KipContext(workspace, "main", BOT, follows_head=False),
        read({"command": 'UPSERT { CONCEPT { {type: "Person", name: "Ann"} SET ATTRIBUTES { age: 7 } } }'}),
    )
    assert not answer.is_error, answer
    assert is_proposed(reviewed.node("Person:Ann"))


def test_who_proposes_accepts_nothing_in_any_way(reviewed):
    reviewed.apply(author=BOT, **COVER)
    accepted = decide(reviewed, "accept")
    undo.revert(reviewed.workspace(), "main", AUTHOR, [accepted.seq], follows_head=False)
    with pytest.raises(ReviewRequired):
        undo.revert(reviewed.workspace(), "main", BOT, [reviewed.seq()], follows_head=False)
    with pytest.raises(ReviewRequired):
        check_reviewer(reviewed.workspace(), BOT)
    for author in (BOT, AUTHOR):
        with pytest.raises(InvalidChangeset) as refused:
            reviewed.apply(author=author, entities=[{"id": "TEST-1", "metadata": {"proposed": None}}])
        assert refused.value.details[0].code == "set_by_kb"
    reviewed.apply(entities=[{"id": "TEST-1", "metadata": {"k": 1}, "replace": True}])
    assert is_proposed(reviewed.node("TEST-1"))


def test_an_agent_accepts_only_where_the_settings_list_it(project):
    settings = project.workspace().config.review
    person, agent = Author("ann", "cli", "kb"), Author("codex/1", "mcp:codex", "kb")
    assert (may_accept(settings, person), may_accept(settings, agent)) == (True, False)
    project.write({".kb/config.json": json.dumps({"review": {"actors": ["*"], "accept": ["codex/*"]}})})
    settings = project.workspace().config.review
    assert (may_accept(settings, person), may_accept(settings, agent)) == (False, True)


def test_nothing_is_proposed_without_the_setting(project):
    project.sync({"docs/requirements/1.md": MUST})
    project.apply(author=BOT, **COVER)
    assert find_proposals(project.view()) == []
    assert check(project).proposed == 0


def test_an_import_of_an_export_keeps_what_is_proposed(reviewed, tmp_path):
    reviewed.apply(author=BOT, **COVER)
    from kbcore.store.facts_export import _entity

    shown = _entity(reviewed.node("TEST-1"))
    other = Project(tmp_path / "other")
    other.import_(entities=[shown])
    assert is_proposed(other.node("TEST-1"))
    other.close()


def test_a_proposal_makes_no_edge_suspect_and_confirms_none(reviewed):
    edge = {"type": "verified_by", "from": "REQ-1", "to": "TEST-1"}
    reviewed.apply(**{**COVER, "edges": [edge]})
    reviewed.apply(author=BOT, entities=[{"id": "TEST-1", "title": "Another"}])
    assert "suspect-edge:verified_by" not in {one.partition(".")[0] for one in broken(reviewed)}
    decide(reviewed, "accept")
    suspect = {one for one in broken(reviewed) if one.startswith("suspect-edge")}
    assert suspect
    outcome = reviewed.apply(author=BOT, edges=[edge])
    assert any("1 confirmation is left out" in one for one in outcome.warnings)
    with pytest.raises(ReviewRequired, match="is suspect"):
        reviewed.apply(author=BOT, edges=[{**edge, "confidence": 0.5}])
    assert suspect <= broken(reviewed)
