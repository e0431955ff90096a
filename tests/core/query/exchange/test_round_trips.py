"""Exports in the format of another tool, read again by its profile, are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kbcore.ids import check_id
from kbcore.model.schema import CORE
from kbcore.query.exchange.formats import FORMATS, PROFILES, Exchanged, Format, exchanged
from tests.support.effort.scale import tries
from tests.support.repository.project import Project
from tests.support.sources import shapes

NAMES = frozenset(CORE.edges)
WORDS = st.text("abcxyzÄß,;:'\"&<>#|-", min_size=1, max_size=12).map(lambda text: f"w{text}w")
LINES = st.lists(WORDS, min_size=1, max_size=3).map("\n".join)
PLAIN_TYPES = st.sampled_from(["req", "test", "adr", "doc", "task", "component"])
STATUSES = st.sampled_from(["draft", "open", "accepted", "retired", "Waiting for Ann"])


@st.composite
def graphs(draw: st.DrawFn, *, is_odd: bool = False) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A small graph; one that is odd has ids, names and values of every kind."""
    plain = [f"{prefix}-{number}" for prefix in ("REQ", "TC") for number in range(1, 5)]
    ids = st.sampled_from([*plain, *(["x/y", "a.md", "REQ-001", "req-1", "[[x]]", "é, ü", "_kb-type-0", "Z"] * is_odd)])
    keys = sorted(draw(st.lists(ids, min_size=1, max_size=6, unique=True)))
    names = st.sampled_from(["risk", "Rest of it", "text", *(["level", "depends-on", "id", "a\nb", "links"] * is_odd)])
    values = st.one_of(LINES, st.sampled_from([3, None, ["a"], {"b": "c"}, " x ", "", "\x01"])) if is_odd else LINES
    types = st.one_of(PLAIN_TYPES, st.sampled_from(["fact", "symbol"])) if is_odd else PLAIN_TYPES
    statuses = st.one_of(STATUSES, st.sampled_from(["superseded by REQ-2", "*odd*", "true"])) if is_odd else STATUSES
    entities = []
    for key in keys:
        entity: dict[str, Any] = {"id": key, "type": draw(types), "title": draw(WORDS), "status": draw(statuses)}
        entity |= draw(st.fixed_dictionaries({}, optional={"owner": WORDS, "priority": WORDS, "severity": WORDS}))
        tags = draw(st.lists(WORDS.map(lambda text: text.replace(",", "")), max_size=2, unique=True))
        entity |= {"tags": tags} if tags else {}
        entity |= {"links": ["https://example.org/a?b=c"]} if draw(st.booleans()) else {}
        attributes = draw(st.dictionaries(names, values, max_size=3))
        entity |= {"attributes": attributes} if attributes else {}
        if is_odd and draw(st.booleans()):
            entity |= {"metadata": {"from": "a tool"}, "text_ref": "docs/a.md"}
        entities.append(entity)
    kinds = st.sampled_from(["parent", "links", "part-of", "Is like", *(["depends_on", "link", " x"] * is_odd)])
    edges = st.one_of(
        st.tuples(st.just("relates_to"), kinds), st.tuples(st.sampled_from(["depends_on", "supersedes"]), st.just(""))
    )
    stated = draw(st.lists(st.tuples(st.sampled_from(keys), edges, st.sampled_from(keys)), max_size=6, unique=True))
    return entities, [
        {"type": type_, "from": begin, "to": end} | ({"kind": kind} if kind else {})
        for begin, (type_, kind), end in stated
        if begin < end
    ]


@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=tries(8, 30))
@given(graph=graphs())
def test_every_format_holds_what_is_plain(format_: Format, graph: tuple[list[Any], list[Any]]) -> None:
    found = exchanged(format_, *graph, NAMES)
    assert (found.entities, found.edges, found.values, found.added) == ([], [], [], [])


@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=tries(12, 50))
@given(graph=graphs(is_odd=True))
def test_no_format_says_what_is_not_there(format_: Format, graph: tuple[list[Any], list[Any]]) -> None:
    found = exchanged(format_, *graph, NAMES)
    assert found.added == []
    assert found.files == exchanged(format_, *graph, NAMES).files


HOSTILE = st.text(
    st.sampled_from("ab=+-@'\"\\,;:#|[]{}<>&_x0 \t\r\n\x01\x1b\x7f\x85\u2028\ufeff\ufffe\U000e0041é1"),
    min_size=1,
    max_size=6,
)
HOSTILE_IDS = st.one_of(
    HOSTILE.filter(lambda text: check_id(text) is None), st.sampled_from(["REQ-1", "_x0041_", "\ufffe"])
)


@st.composite
def hostile_graphs(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A small graph whose texts, names and ids have signs that mean something in some format, or are in none."""
    keys = draw(st.lists(HOSTILE_IDS, min_size=1, max_size=3, unique=True))
    entities = []
    for key in keys:
        plain = {"id": key, "type": "req", "title": draw(HOSTILE), "status": draw(HOSTILE)}
        more = {"owner": HOSTILE, "tags": st.lists(HOSTILE, min_size=1, max_size=2), "text_ref": HOSTILE}
        more |= {
            "links": HOSTILE.map(
                lambda text: [f"https://x.org/{text}"] if check_id(text) is None else ["https://x.org"]
            )
        }
        more |= {"attributes": st.dictionaries(HOSTILE, HOSTILE, max_size=2)}
        entities.append(plain | draw(st.fixed_dictionaries({}, optional=more)))
    ends = st.sampled_from(keys)
    return entities, [
        {"type": "relates_to", "kind": draw(HOSTILE), "from": draw(ends), "to": draw(ends)},
        {"type": "depends_on", "from": draw(ends), "to": draw(ends)},
    ]


@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=tries(25, 100))
@given(graph=hostile_graphs())
@example(graph=([{"id": "\ufffe", "type": "req", "title": "a", "status": "\r_x0041_"}], []))
@example(
    graph=([{"id": "R-1", "type": "req", "title": "\ufffe", "status": "a", "links": ['https://x.org/@"\ufffe']}], [])
)
@example(graph=([{"id": "R-1", "type": "req", "title": "a", "status": "a", "links": ["https://x.org/0 0"]}], []))
def test_no_format_says_of_a_hostile_graph_what_is_not_there(
    format_: Format, graph: tuple[list[dict[str, Any]], list[dict[str, Any]]]
) -> None:
    found = exchanged(format_, *graph, NAMES)
    assert found.added == []
    assert bool(found.named()) == bool(found.left_out)


def synced(root: Path, format_: Format, found: Exchanged) -> Project:
    """Return a repository that has what is exported, with the profile as its only setting."""
    project = Project(root)
    place = {"reqif": "x/a.reqif", "needs": "needs.json", "csv": "tables/a.csv", "xlsx": "tables/a.xlsx"}
    files = {f"reqs/{path}" if path else place[format_]: data for path, data in found.files.items()}
    project.sync({".kb/config.json": shapes.settings([{"profile": PROFILES[format_]}]), **files})
    return project


@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=tries(3, 8))
@given(graph=graphs(is_odd=True))
def test_an_export_that_is_synced_is_the_graph_without_what_was_left_out(
    tmp_path_factory: pytest.TempPathFactory, format_: Format, graph: tuple[list[Any], list[Any]]
) -> None:
    entities, edges = graph
    entities = [one | {"type": "req"} if one["type"] == "fact" else one for one in entities]
    edges = [one for one in edges if one["type"] != "depends_on"]
    found = exchanged(format_, entities, edges, NAMES)
    project = synced(tmp_path_factory.mktemp("x"), format_, found)
    left = {*found.values}
    for entity in entities:
        node = project.node(entity["id"])
        if entity["id"] in found.entities:
            assert node is None
            continue
        assert node
        for name in ("title", "status", "owner", "priority", "severity", "tags", "links"):
            if name in entity and (entity["id"], name) not in left:
                assert node.fields[name] == entity[name]
        for name, value in entity.get("attributes", {}).items():
            if (entity["id"], f"attributes.{name}") not in left:
                assert node.fields[f"attributes.{name}"] == value
    links = project.view().rows("select from_id, type, coalesce(kind, ''), to_id from link order by all")
    kept = {(one["from"], one["type"], one.get("kind", ""), one["to"]) for one in edges} - {*found.edges}
    project.close()
    assert set(links) == kept
