"""The work that a sleep cycle leaves, as an agent takes it over the wire and answers it in KIP."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kbcore.kip.sleep.worklist import KINDS
from tests.mcp.agents import MODES, Agent, agent, text_of, without_note
from tests.mcp.test_listing import unportable
from tests.mcp.test_resources import refused
from tests.support.repository.project import Project
from tests.support.repository.sleeping import LONG_AGO, Sleeper

FILL = {
    "task": {"result": "looked at it"},
    "event": {"type": "Person", "name": "Jo", "description": "Someone", "domain": "Team"},
    "unsorted": {"domain": "Team"},
    "domain": {"domain": "Team"},
}
MEMORY = """UPSERT {
  CONCEPT ?t { {type: "Domain", name: "Team"} SET ATTRIBUTES { keep: true } }
  CONCEPT ?s { {type: "Domain", name: "Small"} }
  CONCEPT { {type: "Person", name: "Ines Maria"} SET PROPOSITIONS { ("belongs_to_domain", ?s) } }
  CONCEPT { {type: "Person", name: "Inez Maria"} }
  CONCEPT { {type: "Event", name: "talk"} SET ATTRIBUTES { start_time: "2026-01-01" } }
  CONCEPT { {type: "SleepTask", name: "t"} SET ATTRIBUTES { requested_action: "review" } }
} WITH METADATA { created_at: :at }"""


@pytest.fixture(scope="module")
def asleep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sleeper, Agent]]:
    """A memory after a cycle, and an agent on it."""
    made = Sleeper(tmp_path_factory.mktemp("asleep") / "repo")
    made(MEMORY, {"at": LONG_AGO})
    made.sleep()
    with agent(made.project.root, "--toolsets", "kip", mode=MODES[-1]) as found:
        yield made, found
    made.project.close()


@pytest.mark.sliced
def test_every_item_is_answered_by_its_commands_and_then_disappears(asleep):
    _, speaker = asleep
    first = speaker.call("kb_sleep")
    assert [item["kind"] for item in first["items"]] == ["task", "duplicate", "event", "unsorted", "unsorted", "domain"]
    assert [one["name"] for one in first["metrics"]][:2] == ["orphans", "unsorted"]
    assert "execute_kip" in first["note"]
    answered = []
    while items := speaker.call("kb_sleep", limit=1)["items"]:
        [item] = items
        chosen = item["answers"][0]
        fill = FILL.get(item["kind"], {})
        given = {name: fill[name] if value is None else value for name, value in chosen["parameters"].items()}
        answer = speaker.call("execute_kip", commands=chosen["commands"], parameters=given)
        assert all("result" in one for one in answer["result"])
        assert (item["kind"], item["id"]) not in answered
        answered.append((item["kind"], item["id"]))
    assert {kind for kind, _ in answered} == set(KINDS)


def test_the_head_says_when_a_cycle_is_due(asleep):
    made, speaker = asleep
    blocks = " ".join(f'CONCEPT {{ {{type: "Person", name: "p{at:02}"}} }}' for at in range(11))
    made(f"UPSERT {{ {blocks} }}")
    [content] = speaker._portal.call(speaker._client.read_resource, "kb://head").contents
    reported = json.loads(content.text)["sleep"]
    assert (reported["due"], reported["last_cycle"]) == (True, "2026-11-20T09:30:00.000000Z")
    assert reported["reasons"] == ["11 concepts belong to no domain; more than 10 is much."]


def test_pages_hold_every_item_once_within_the_budget(asleep):
    made, speaker = asleep
    before = [item["id"] for item in speaker.call("kb_sleep", kind="event")["items"]]
    text = "a rather long summary " * 100
    said = 'SET ATTRIBUTES { start_time: "2026-01-01", content_summary: :t }'
    blocks = [f'CONCEPT {{ {{type: "Event", name: "e{at:02}"}} {said} }}' for at in range(30)]
    made(f"UPSERT {{ {' '.join(blocks)} }}", {"t": text})
    seen, cursor = [], {}
    while True:
        result = speaker.result("kb_sleep", {"kind": "event", "limit": 25, **cursor})
        assert len(text_of(result)) <= 20_000
        answer = json.loads(text_of(result))
        seen += [item["id"] for item in answer["items"]]
        if not answer["next_cursor"]:
            break
        cursor = {"cursor": answer["next_cursor"]}
    assert seen == [*(f"Event:e{at:02}" for at in range(30)), *before]
    assert answer["total"] == len(seen)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"kind": "events"}, "`kind` must be 'task', 'duplicate', 'event', 'unsorted' or 'domain'."),
        ({"limit": 0}, "from 1 to 200"),
        ({"limit": 201}, "from 1 to 200"),
        ({"limit": "2"}, "Write 2 without quotes."),
        ({"page": 2}, "There is no argument 'page'."),
        ({"kind": ""}, "`kind` is empty."),
        ({"cursor": ""}, "`cursor` is empty."),
        ({"cursor": "x"}, "cursor"),
        ({"action": "run", "kind": "task"}, "`kind` does not apply to the action run."),
        ({"action": "run", "limit": 3}, "`limit` does not apply to the action run."),
        ({"action": "try", "cursor": "x"}, "`cursor` does not apply to the action try."),
        ({"force": True}, "Only the action try or run takes it."),
    ],
)
def test_arguments_that_are_none_are_refused(asleep, arguments, said):
    _, speaker = asleep
    result = speaker.result("kb_sleep", arguments)
    assert result.is_error
    assert said in text_of(result)


def test_the_tool_says_truly_what_it_takes(asleep):
    _, speaker = asleep
    [tool] = [tool for tool in speaker.tools() if tool.name == "kb_sleep"]
    assert tool.annotations.read_only_hint is None
    assert [*unportable(tool.input_schema)] == []
    assert tool.input_schema["properties"]["kind"]["enum"] == [*KINDS]
    assert speaker.call("kb_sleep", kind=None, limit=None)["counts"] == speaker.call("kb_sleep")["counts"] != {}


def test_the_resource_is_the_first_page_and_only_there_with_its_toolset(asleep, shared: Project):
    _, speaker = asleep
    [content] = speaker._portal.call(speaker._client.read_resource, "kb://kip/work").contents
    reported, listed = json.loads(content.text), speaker.call("kb_sleep")
    assert without_note(reported).keys() == listed.keys()
    assert [item["id"] for item in reported["items"]] == [item["id"] for item in listed["items"]] != []
    assert "kb://kip/work" in uris(speaker)
    assert "kb://kip/work" in hint_for(speaker, "kb://kip/wrok")
    with agent(shared.root) as other:
        assert "kb://kip/work" not in uris(other)
        assert "kb://kip" not in hint_for(other, "kb://kip/wrok")


def hint_for(found, uri):
    return refused(found, uri).data["error"]["hint"]


def uris(found):
    return [one.uri for one in found._portal.call(found._client.list_resources).resources]


@pytest.mark.sliced
def test_an_agent_tries_and_runs_a_cycle(tmp_path):
    made = Sleeper(tmp_path / "repo")
    made(MEMORY, {"at": LONG_AGO})
    with agent(made.project.root, "--toolsets", "kip", mode=MODES[-1]) as speaker:
        before = speaker.call("kb_sleep")["seq"]
        tried = speaker.call("kb_sleep", action="try")
        assert (tried["dry_run"], tried["seq"], speaker.call("kb_sleep")["seq"]) == (True, before, before)
        ran = speaker.call("kb_sleep", action="run")
        assert ran["seq"] > before
        assert [one["name"] for one in ran["phases"]] == [one["name"] for one in tried["phases"]]
        assert ran["left"] == tried["left"] != {"total": 0, "counts": {}}
        assert "without `action`" in ran["note"]
        again = speaker.call("kb_sleep", action="run")
        assert again["waits_hours"] > 0
        assert "`force`" in again["note"]
        assert speaker.call("kb_sleep", action="run", force=True)["waits_hours"] == 0
    made.project.close()


def test_a_server_that_only_reads_runs_no_cycle(asleep):
    made, _ = asleep
    with agent(made.project.root, "--toolsets", "kip", "--read-only") as found:
        result = found.result("kb_sleep", {"action": "run"})
        assert result.is_error
        assert "--read-only" in text_of(result)
        [tool] = [tool for tool in found.tools() if tool.name == "kb_sleep"]
        assert tool.input_schema["properties"]["action"]["enum"] == ["list", "try"]
        assert "run:" not in tool.description
        assert found.call("kb_sleep", action="try")["dry_run"]


def test_a_server_that_only_reads_lists_the_work_for_the_user(asleep):
    made, _ = asleep
    with agent(made.project.root, "--toolsets", "kip", "--read-only") as found:
        assert "tell the user" in found.call("kb_sleep", kind="event")["note"]
