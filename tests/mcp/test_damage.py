"""Answers to agents about a store that is damaged, or that was put back to an earlier state."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kbcore.maintenance.salvage import salvage
from tests.mcp.agents import agent, answer_of
from tests.support.repository.places import STORES_NAME, caches_at
from tests.support.repository.project import AUTHOR

BRANCHES = STORES_NAME


def entity(key, **fields):
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


@pytest.fixture
def three(project):
    """Three records, an entity each; no cache."""
    for key in ("A", "B", "C"):
        project.apply(entities=[entity(key)])
    project.pool.close()
    shutil.rmtree(caches_at(project.root), ignore_errors=True)
    return project


def damage_last_record(root: Path) -> None:
    (journal,) = (root / BRANCHES / "main").glob("journal-*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[-1] = lines[-1].replace(b"Title of C", b"Title of X")
    journal.write_bytes(b"".join(lines))


@pytest.mark.sliced
def test_records_before_a_damage_are_still_answered_and_the_rest_refused(three):
    damage_last_record(three.root)
    with agent(three.root) as found:
        assert [one["id"] for one in found.call("kb_query", at=2)["entities"]] == ["A", "B"]
        assert found.call("kb_history", action="show", seq=2)["operations"][0]["id"] == "B"
        [difference] = found.call("kb_history", action="diff", seq=1, to=2)["entities"]
        assert difference["id"] == "B"
        for arguments in ({"action": "show", "seq": 3}, {"action": "diff", "seq": 1}, {"action": "log"}):
            assert found.refused("kb_history", **arguments)["code"] == "journal_corrupt"
        assert found.refused("kb_query", at=3)["code"] == "journal_corrupt"
        assert found.refused("kb_query")["code"] == "journal_corrupt"


def test_a_missing_record_is_refused_as_a_record_and_not_as_a_state(three):
    three.apply(entities=[entity("D")])
    (journal,) = (three.root / BRANCHES / "main").glob("journal-*.jsonl")
    journal.write_bytes(journal.read_bytes().replace(b"Title of B", b"Title of X"))
    three.pool.close()
    shutil.rmtree(caches_at(three.root), ignore_errors=True)
    salvage(three.workspace(), "main", AUTHOR)
    with agent(three.root) as found:
        refused = found.refused("kb_history", action="show", seq=2)
        assert refused["message"] == "Record 2 is missing since the salvage that record 5 documents."
        assert found.call("kb_history", action="show", seq=3)["partial"].startswith("What record 3 changed is not")
        assert found.refused("kb_query", at=3)["message"].startswith("The state at seq 3 is not proven")


@pytest.mark.parametrize("command", ["DESCRIBE PRIMER", 'UPSERT { CONCEPT { {type: "Person", name: "P"} } }'])
def test_a_damage_is_reported_in_kip_with_what_was_written_and_whom_to_ask(three, command):
    damage_last_record(three.root)
    with agent(three.root, "--toolsets", "kip") as found:
        result = found.result("execute_kip", {"command": command})
    error = answer_of(result)["error"]
    assert result.is_error
    assert (error["code"], error["name"]) == ("KIP_4003", "InternalError")
    assert (error["data"]["kb_code"], error["data"]["applied"]) == ("journal_corrupt", "no")
    assert "Ask the user to run `kb doctor`" in error["hint"]
    assert "--at" not in error["hint"]


@pytest.mark.sliced(1)
@pytest.mark.parametrize(("arguments", "is_error"), [({}, False), ({"from": "NOPE"}, True)])
def test_missing_records_are_named_in_every_answer_and_nothing_is_written(three, arguments, is_error):
    root = three.root
    shutil.copytree(root / BRANCHES, root.parent / "saved")
    with agent(root) as found:
        found.call("kb_upsert", entities=[entity("D")])
        assert "note" not in found.call("kb_query")
        shutil.rmtree(root / BRANCHES)
        shutil.copytree(root.parent / "saved", root / BRANCHES)
        result = found.result("kb_query", arguments)
        assert result.is_error is is_error
        assert "seen: 4, now: 3; record 4 is missing" in answer_of(result)["note"]
        assert "seen: 4, now: 3; record 4 is missing" in found.call("kb_query")["note"]
        refused = found.result("kb_upsert", {"entities": [entity("E")]})
        assert answer_of(refused)["error"]["code"] == "store_went_back"
