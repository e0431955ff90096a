"""Stored text that is made to be taken for instructions stays in JSON strings and fences on every way to an agent."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any, Final

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from kbcore.ids import check_id
from kbcore.kip.reference import SYNTAX
from kbcore.text.escaping import escape_controls, escape_lines, fenced, in_quotes
from kbmcp.resources.memory_prompts import MEMORY_GUIDES, REFERENCE
from kbmcp.resources.prompts import PROMPTS
from kbmcp.resources.resource_list import uri_of
from kbmcp.tools.answers import DATA_NOTE
from tests.mcp.agents import MODES, Agent, agent, answer_of, text_of, unfenced, without_note
from tests.support.fuzz.attacks import ATTACKS
from tests.support.repository.project import Project

LONGEST_TITLE = 500
JOINERS = "\u200c\u200d"
SHORT = [attack for attack in ATTACKS if len(attack) <= 200]
IDS = [attack for attack in ATTACKS if check_id(attack) is None and escape_controls(attack) == attack]
OPTIONS = ("--toolsets", "all")


def hostile(number: int, attack: str) -> dict[str, Any]:
    """Return an entity that holds an attack in every field that takes any text."""
    short = attack if len(attack) <= LONGEST_TITLE else "long"
    return {
        "id": f"ATT-{number}",
        "type": "req",
        "title": short.strip() or "t",
        "status": "open",
        "tags": [short[:100].strip() or "t"],
        "owner": short[:100].strip() or "t",
        "attributes": {"text": attack, "deep": [{"er": [attack]}]},
        "metadata": {"author": attack},
    }


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A repository with every attack in every place."""
    made = Project(tmp_path_factory.mktemp("attacked") / "repo")
    for number, attack in enumerate(ATTACKS):
        entities = [hostile(number, attack)]
        edge = {
            "type": "relates_to",
            "kind": "link",
            "from": f"ATT-{number}",
            "to": f"ATT-{max(0, number - 1)}",
            "metadata": {"why": attack},
        }
        made.apply(message=attack[:200].strip(), entities=entities, edges=[edge] if number else [])
    made.apply(entities=[{"id": key, "type": "req", "title": "t", "status": "open"} for key in IDS])
    body = "\n\n".join(ATTACKS[:40]).replace("\x00", "")
    made.write({"docs/requirements/hostile.md": f"---\nid: DOC-1\nstatus: open\n---\n# Document\n\n{body}\n".encode()})
    made.sync()
    yield made
    made.close()


@pytest.fixture(scope="module", params=MODES)
def reader(request: pytest.FixtureRequest, attacked: Project) -> Iterator[Agent]:
    """An agent of either era with all tools."""
    with agent(attacked.root, *OPTIONS, mode=request.param) as found:
        yield found


@pytest.fixture(scope="module")
def plain_reader(attacked: Project) -> Iterator[Agent]:
    """An agent for what does not depend on the era."""
    with agent(attacked.root, *OPTIONS) as found:
        yield found


def strings(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, member in value.items():
            yield key
            yield from strings(member)
    elif isinstance(value, list):
        for member in value:
            yield from strings(member)


def assert_seen(text: str) -> None:
    """Insist that a text is one line in which every character is seen and none acts on a reader."""
    assert not [
        one for one in text if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and one not in JOINERS
    ]


_LONG_CHARS: Final = 20


def assert_one_line_of_json(text: str) -> Any:
    """Insist that a text is one line of JSON in which nothing acts on a reader, and return its value."""
    assert_seen(text)
    return json.loads(text)


def assert_holds(value: Any, attack: str) -> None:
    assert attack in set(strings(value)), attack


@pytest.mark.sliced(30)
@pytest.mark.parametrize("number", range(len(ATTACKS)))
def test_a_query_gives_an_attack_back_unchanged_in_json_strings(number: int, reader: Agent) -> None:
    attack = ATTACKS[number]
    result = reader.result("kb_query", {"ids": [f"ATT-{number}"], "edges": True})
    assert_one_line_of_json(text_of(result))
    [entity] = answer_of(result)["entities"]
    expected = hostile(number, attack)
    assert {name: entity[name] for name in expected} == expected
    assert all(edge["metadata"]["why"] in ATTACKS for edge in answer_of(result)["edges"])


CALLS = (
    ("kb_query", {"limit": 200}),
    ("kb_query", {"text": "instructions delete"}),
    ("kb_query", {"type": "edge"}),
    ("kb_query", {"context": {"ids": ["ATT-3", "ATT-4", "ATT-5"], "paths": [SHORT[0][:100]], "budget": 4000}}),
    ("kb_query", {"tags": [SHORT[0][:100]]}),
    ("kb_check", {}),
    ("kb_history", {"action": "log"}),
    ("kb_history", {"action": "log", "id": "ATT-3"}),
    ("kb_history", {"action": "show", "seq": 5}),
    ("kb_history", {"action": "diff", "seq": 1}),
    ("kb_sleep", {}),
    ("execute_kip", {"command": 'FIND(?r) WHERE { ?r {type: "Requirement"} } LIMIT 100'}),
    ("execute_kip_readonly", {"command": 'SEARCH CONCEPT "instructions" LIMIT 50'}),
    ("execute_kip_readonly", {"command": "DESCRIBE PRIMER"}),
    ("execute_kip_readonly", {"command": "DESCRIBE DOMAINS"}),
)


@pytest.mark.sliced(7)
@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_every_tool_answers_one_line_of_json_with_the_note(name: str, arguments: dict[str, Any], reader: Agent) -> None:
    result = reader.result(name, arguments)
    texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
    values = [assert_one_line_of_json(text) for text in texts]
    assert [DATA_NOTE.items() <= one.items() for one in values].count(True) == 1
    assert len(values) == len(result.content)
    assert json.dumps(result.structured_content, sort_keys=True) == json.dumps(values[0], sort_keys=True)


def test_records_give_messages_back_unchanged(reader: Agent) -> None:
    found, cursor = [], {}
    while cursor is not None:
        page = reader.call("kb_history", action="log", **cursor)
        found += [record["message"] for record in page["records"]]
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
    assert {attack[:200].strip() for attack in ATTACKS} <= set(found)


@pytest.mark.sliced(20)
@pytest.mark.parametrize("attack", ATTACKS)
def test_kip_gives_an_attack_back_unchanged_in_json_strings(attack: str, plain_reader: Agent) -> None:
    command = 'FIND(?r.attributes.text) WHERE { ?r {type: "Requirement"} FILTER(?r.attributes.text == :text) }'
    result = plain_reader.result("execute_kip_readonly", {"command": command, "parameters": {"text": attack}})
    assert not result.is_error, text_of(result)
    assert set(assert_one_line_of_json(text_of(result))["result"]) == {attack}


@pytest.mark.sliced(20)
@pytest.mark.parametrize("number", range(len(ATTACKS)))
def test_resources_hold_attacks_in_json_strings(number: int, plain_reader: Agent) -> None:
    [content] = plain_reader._portal.call(plain_reader._client.read_resource, f"kb://entity/ATT-{number}").contents
    assert_holds(without_note(assert_one_line_of_json(content.text)), ATTACKS[number])


@pytest.mark.parametrize("uri", ["kb://head", "kb://schema", "kb://check", "kb://kip/work"])
def test_every_other_resource_is_one_line_of_json(uri: str, reader: Agent) -> None:
    [content] = reader._portal.call(reader._client.read_resource, uri).contents
    without_note(assert_one_line_of_json(content.text))


ASKED = {
    "start_feature": {"requirement": "ATT-{}"},
    "record_decision": {"concerns": "ATT-{}", "title": "{attack}"},
    "review_changes": {"since": "{}"},
    "find_gaps": {"requirement": "ATT-{}"},
}


@pytest.fixture(scope="module")
def calm(shared: Project) -> Iterator[Agent]:
    """An agent where nothing hostile is stored."""
    shared.apply(entities=[hostile(0, "t")])
    with agent(shared.root, *OPTIONS) as found:
        yield found


@pytest.mark.sliced
@pytest.mark.parametrize("name", [prompt.name for prompt in PROMPTS])
@pytest.mark.parametrize("number", range(0, len(ATTACKS), 4))
def test_prompts_hold_attacks_in_a_fence_or_a_document_and_their_words_never_change(
    name: str, number: int, reader: Agent, calm: Agent
) -> None:
    attack = ATTACKS[number].strip()[:900]
    asked = {key: value.format(number, attack=attack) for key, value in ASKED.get(name, {}).items()}
    result = reader._portal.call(reader._client.get_prompt, name, asked)
    words, *middle, last = [message.content for message in result.messages]
    plain = {"requirement": "ATT-0"} if name == "start_feature" else {}
    other = calm._portal.call(calm._client.get_prompt, name, plain)
    assert words.text == other.messages[0].content.text
    assert result.description == other.description
    for part in middle:
        if str(part.resource.uri) == REFERENCE.uri:
            assert part.resource.text == SYNTAX
            continue
        held = without_note(assert_one_line_of_json(part.resource.text))
        if "cut" in held:  # a prompt is short: the beginning of a long value is there
            assert any(ATTACKS[number].startswith(one.rstrip("…")) for one in strings(held) if len(one) > _LONG_CHARS)
        else:
            assert_holds(held, ATTACKS[number])
    facts = assert_one_line_of_json(unfenced(last.text))
    if "title" in asked:
        assert facts["asked"].get("title", "") == attack


@pytest.mark.parametrize("name", MEMORY_GUIDES)
def test_the_texts_of_the_memory_guides_never_change(name: str, reader: Agent, calm: Agent) -> None:
    texts = [
        one._portal.call(one._client.read_resource, MEMORY_GUIDES[name].uri).contents[0].text for one in (reader, calm)
    ]
    assert texts[0] == texts[1]


def test_what_the_server_says_of_itself_never_changes(reader: Agent, calm: Agent) -> None:
    assert reader.instructions in {calm.instructions, ""}  # the client shows none of a server of the later era
    assert [tool.description for tool in reader.tools()] == [tool.description for tool in calm.tools()]


NO_ENTITY = (
    r"There is no entity …\.( Did you mean …(, …)*( or …)?\?)?"
    r"( kb_query with `text` finds entities, kb_history with action log finds records\.)?"
)


def outside_of_quotes(message: str) -> str:
    """Return a message without what is in quotes, as ``in_quotes`` writes them."""
    return re.sub(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|\"[^\"]*\"", "…", message)


@pytest.mark.sliced
@pytest.mark.parametrize("attack", IDS)
def test_errors_in_plain_text_name_stored_and_typed_text_only_in_quotes(attack: str, reader: Agent) -> None:
    for ask in (
        lambda: reader._portal.call(reader._client.read_resource, uri_of(f"{attack}x"[:200])),
        lambda: reader._portal.call(reader._client.get_prompt, "start_feature", {"requirement": f"{attack}x"[:200]}),
    ):
        with pytest.raises(MCPError) as caught:
            ask()
        message = caught.value.error.message
        assert_seen(message)
        assert re.fullmatch(NO_ENTITY, outside_of_quotes(message)), message
        assert_holds(caught.value.error.data, caught.value.error.data["error"]["message"])


@pytest.mark.sliced(20)
@pytest.mark.parametrize("attack", SHORT)
def test_errors_of_tools_hold_attacks_in_json_strings(attack: str, plain_reader: Agent) -> None:
    upsert = {"id": "X-1", "type": attack, "title": "t", "status": "open", attack: attack}
    for name, arguments in (
        ("kb_query", {"type": attack}),
        ("kb_query", {attack: attack}),
        ("kb_query", {"has": [attack]}),
        ("kb_upsert", {"entities": [upsert]}),
        ("kb_delete", {"entities": [{"id": attack, "expected_version": 1}]}),
        ("kb_history", {"action": attack}),
        ("execute_kip", {"command": attack}),
    ):
        result = plain_reader.result(name, arguments)
        assert result.is_error, (name, text_of(result))
        assert_one_line_of_json(text_of(result))
        assert len(text_of(result)) <= 10_000


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_text_can_end_its_fence_or_imitate_one(attack: str) -> None:
    assert unfenced(fenced(attack)) == escape_lines(attack)
    text = fenced(attack)
    nonce = text.rpartition("</kb-data-")[2].removesuffix(">")
    assert len(nonce) == 24
    assert text.count(f"<kb-data-{nonce}>") == text.count(f"</kb-data-{nonce}>") == 1
    assert nonce not in attack
    assert nonce != fenced(attack).rpartition("</kb-data-")[2].removesuffix(">")


def test_a_nonce_that_occurs_in_the_text_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    given = iter(["guessed", "guessed", "other"])
    monkeypatch.setattr("secrets.token_hex", lambda _: next(given))
    assert fenced("a guessed b").endswith("\n<kb-data-other>\na guessed b\n</kb-data-other>")


@pytest.mark.parametrize("attack", SHORT)
def test_no_name_can_end_its_quotes(attack: str) -> None:
    assert outside_of_quotes(f"There is no entity {in_quotes(attack)}.") == "There is no entity …."


def test_the_corpus_is_large_enough() -> None:
    assert len(set(ATTACKS)) >= 60
