"""Laws of what leaves the server: escaping keeps the meaning, and cutting keeps to the room and says what it cut."""

from __future__ import annotations

import json
import unicodedata

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbcore import errors, limits
from kbmcp.tools import answers
from kbmcp.tools.entity_parts import cut_entity, part_of
from kbmcp.tools.refusals import error_json
from kbmcp.tools.tool_list import TOOLS

ODD = '\x00\x1b\x7f\x9b\xad\u061c\u200b\u200d\u200e\u202e\u2028\u2066\ufeff\ud800\U000e0041"\\\n é日👩'
texts = st.text(st.sampled_from(ODD) | st.characters(), max_size=60)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(texts, inner, max_size=8),
    max_leaves=30,
)
names = st.text(st.characters(codec="ascii", categories=["Ll"]), min_size=1, max_size=8)
entities = st.fixed_dictionaries(
    {"id": st.text(max_size=limits.MAX_ID_CHARS), "title": texts.map(lambda text: text * 50)},
    optional={
        "tags": st.lists(texts, max_size=60),
        "attributes": st.dictionaries(names, values | texts.map(lambda text: text * 100), max_size=40),
    },
)


@given(values)
def test_escaping_keeps_the_meaning_and_lets_nothing_unsafe_out(value):
    text = answers.text_of(value)
    assert json.loads(text) == value
    for character in text:
        assert unicodedata.category(character) not in {"Cc", "Cs", "Zl", "Zp"}
        assert unicodedata.bidirectional(character) not in {
            "LRE",
            "RLE",
            "LRO",
            "RLO",
            "PDF",
            "LRI",
            "RLI",
            "FSI",
            "PDI",
        }
        assert not 0xE0000 <= ord(character) <= 0xE0FFF


MANY = {"id": "A", "title": "", "attributes": {f"a{number:02}": "x" * 500 for number in range(40)} | {"z": ""}}


WIDE = {"id": "", "title": "\x1f" * 100, "tags": [], "attributes": {"a": "\U000e0000" * 100, "b": "0" * 500}}
WIDE["attributes"] |= dict.fromkeys(("aa", "aaa"), "\x1f" * 100)
"""A character of ``a`` takes more room than there is for a value: nothing of it is shown."""


@given(entities, st.integers(3000, 6000))
@example(MANY, 3000)
@example(WIDE, 3000)
def test_an_entity_is_cut_to_its_room_and_every_cut_is_named(entity, room):
    kept, cuts = cut_entity(entity, room)
    assert answers.length_of(kept) <= room
    named = {cut["field"] for cut in cuts}

    def flat(shown):
        found = {name: value for name, value in shown.items() if name != "attributes"}
        return found | {f"attributes.{name}": value for name, value in shown.get("attributes", {}).items()}

    whole, shown = flat(entity), flat(kept)
    assert shown["id"] == entity["id"]
    assert "id" not in named
    assert {name: value for name, value in whole.items() if name not in named} == {
        name: value for name, value in shown.items() if name not in named
    }
    for cut in cuts:
        assert (cut["shown"] == 0) is (cut["field"] not in shown)
        assert cut["shown"] < max(
            1, cut["characters"]
        )  # an empty value is left out where there is no room for its name


@given(values, st.integers(200, 3000))
def test_any_value_can_be_cut_to_its_room(value, room):
    shown = answers.cut_deep(value, room)
    assert answers.length_of(shown) <= room
    assert shown == value or answers.length_of(value) > room


@given(texts.map(lambda text: text * 900))
def test_the_parts_of_a_value_make_it_whole(value):
    pieces, offset = [], 0
    while True:
        part, following = part_of({"id": "A", "title": value}, "title", offset)
        assert answers.length_of(part) < answers.PAGE_CHARS
        pieces.append(part["text"])
        if not following:
            break
        assert following > offset
        offset = following
    assert "".join(pieces) == value


@given(st.lists(st.lists(texts, max_size=40), min_size=1, max_size=4), st.integers(600, 2000))
def test_fitting_lists_counts_what_it_leaves_out(lists, most):
    whole = {f"list{at}": items for at, items in enumerate(lists)}
    payload = dict(whole)
    fitted = answers.fit(payload, [(name, payload) for name in whole], most)
    assert answers.length_of(fitted) <= most
    for name, items in whole.items():
        assert fitted[name] == items[: len(fitted[name])]
        assert len(items) - len(fitted[name]) == fitted.get("omitted", {}).get(name, 0)


def test_a_write_that_failed_says_that_nothing_was_written():
    def explained(error, *, writes):
        return error_json(error, "Do this.", {}, writes=writes, is_dotted=False)

    found = explained(errors.StorageFull("The disk is full"), writes=True)
    assert found["error"]["message"] == "The disk is full. Nothing was written."
    uncertain = explained(errors.CommitUncertain("The disk failed."), writes=True)
    assert "Nothing was written" not in uncertain["error"]["message"]
    read = explained(errors.NotFound("There is no A."), writes=False)
    assert read["error"]["message"] == "There is no A."


@pytest.mark.parametrize(("key", "writes"), [("kb.query", False), ("kb.upsert", True)])
def test_an_interrupted_call_says_that_nothing_was_written_only_where_it_writes(project, key, writes):
    import anyio

    from kbcore.process.interrupting import Stopped
    from kbmcp.tools.call import Client
    from kbmcp.tools.run_call import run_tool
    from kbmcp.tools.service import ServerOptions, Service

    def stops(call, asked, problems):
        raise Stopped

    async def run():
        service = Service(ServerOptions(project.root, env=project.machine.env))
        try:
            [tool] = [msgspec.structs.replace(one, run=stops) for one in TOOLS if one.key == key]
            entity = {"id": "A", "type": "req", "title": "t", "status": "open"}
            return await run_tool(service, tool, {"entities": [entity]} if writes else {}, Client())
        finally:
            service.close()

    error = anyio.run(run).structured_content["error"]
    said = " Nothing was written." if writes else ""
    assert (error["code"], error["message"]) == ("interrupted", f"The call was interrupted.{said}")


def test_a_bug_is_reported_as_one_and_the_next_call_works(project):
    import anyio

    from kbmcp.tools.call import Client
    from kbmcp.tools.run_call import McpTool, run_tool
    from kbmcp.tools.service import ServerOptions, Service

    def breaks(call, asked, problems):
        raise ZeroDivisionError("secret path")

    async def run():
        service = Service(ServerOptions(project.root, env=project.machine.env))
        try:
            good = TOOLS[0]
            broken = msgspec.structs.replace(good, run=breaks)
            assert isinstance(broken, McpTool)
            first = await run_tool(service, broken, {}, Client())
            second = await run_tool(service, good, {}, Client())
        finally:
            service.close()
        return first.structured_content, second.structured_content

    failed, worked = anyio.run(run)
    assert (failed["error"]["code"], failed["error"]["applied"], failed["branch"]) == (
        "internal_error",
        "unknown",
        "main",
    )
    assert "secret" not in json.dumps(failed)
    assert worked["entities"] == []
