"""Completions: ids by their beginning and by words of titles, in both eras, within what the protocol allows."""

from __future__ import annotations

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from kbmcp.resources.completion import MAX_VALUES
from tests.mcp.agents import MODES, agent

ENTITY = types.ResourceTemplateReference(uri="kb://entity/{id}")


@pytest.fixture(scope="module")
def filled(shared):
    shared.apply(
        entities=[
            {"id": f"REQ-{at:03}", "type": "req", "title": f"The {at}th wish", "status": "open", "tags": ["auth"]}
            for at in range(130)
        ]
        + [{"id": "TEST-1", "type": "test", "title": "Wish granted", "status": "open", "attributes": {"kind": "unit"}}]
    )
    return shared


def completed(found, ref, name, value="", **given):
    prompt = types.PromptReference(name=ref) if isinstance(ref, str) else ref
    result = found._portal.call(found._client.complete, prompt, {"name": name, "value": value}, given or None)
    return result.completion


def test_ids_are_completed_for_resources_and_prompts(filled, each_era):
    assert completed(each_era, ENTITY, "id", "req-00").values == [f"REQ-{at:03}" for at in range(10)]
    assert completed(each_era, ENTITY, "id", "granted").values == ["TEST-1"]
    assert completed(each_era, "start_feature", "requirement", "granted").values == []
    assert completed(each_era, "record_decision", "concerns", "wish gra").values == ["TEST-1"]
    assert completed(each_era, "find_gaps", "requirement", "7th").values == ["REQ-007"]


def test_at_most_a_hundred_come_and_the_rest_is_counted(filled, each_era):
    found = completed(each_era, "start_feature", "requirement")
    assert (len(found.values), found.total, found.has_more) == (
        MAX_VALUES,
        each_era.call("kb_query", type="req", limit=1)["total"],
        True,
    )
    found = completed(each_era, ENTITY, "id", "TEST")
    assert (found.values, found.total, found.has_more) == (["TEST-1"], 1, False)


def test_tags_actors_and_seqs_are_completed(filled, each_era):
    assert completed(each_era, "find_gaps", "tag", "A").values == ["auth"]
    mine = {"id": each_era.protocol_version, "type": "req", "title": "t", "status": "open"}
    written = each_era.call("kb_upsert", entities=[mine])
    assert "tester/1.2" in completed(each_era, "review_changes", "actor", "tester").values
    assert completed(each_era, "review_changes", "since").values[0] == str(written["seq"])
    assert completed(each_era, "review_changes", "since", actor="nobody").values == []
    assert completed(each_era, "record_decision", "title", "any").values == []


@pytest.mark.parametrize(
    ("ref", "name", "says"),
    [
        ("start_featur", "requirement", "Did you mean 'start_feature'?"),
        ("start_feature", "requirements", "Did you mean 'requirement'?"),
        (ENTITY, "key", "There is no argument 'key'"),
        (types.ResourceTemplateReference(uri="kb://entty/{id}"), "id", "Did you mean 'kb://entity/{id}'?"),
    ],
)
def test_what_cannot_be_completed_is_reported_with_the_nearest(filled, each_era, ref, name, says):
    with pytest.raises(MCPError) as caught:
        completed(each_era, ref, name)
    assert caught.value.error.code == -32602
    assert says in caught.value.error.message


@pytest.mark.parametrize("mode", MODES)
def test_a_server_that_only_reads_completes_what_it_offers(filled, mode):
    with agent(filled.root, "--read-only", mode=mode) as reader:
        assert completed(reader, ENTITY, "id", "TEST").values == ["TEST-1"]
        with pytest.raises(MCPError, match="--read-only"):
            completed(reader, "record_decision", "concerns")
