"""A picture of a section is well-formed SVG with its entities, edges and links, whatever is stored."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore.query.section import Arrow, Section
from kbcore.query.subject import Subject
from kbcore.query.svg_drawing import svg
from tests.core.query.test_diagram import SUBJECTS, TEXTS
from tests.support.effort.scale import tries

SVG = "{http://www.w3.org/2000/svg}"


def section(ids, arrows):
    nodes = [Subject(id_, "req", f"Title of {id_}", "draft", "") for id_ in ids]
    return Section(nodes, [Arrow(*arrow) for arrow in arrows], len(ids), len(arrows))


def drawn(text):
    """Return the texts of the entities and the sentences of the edges of a picture."""
    root = ET.fromstring(text)
    nodes, edges = root.find(f"{SVG}g[@class='nodes']"), root.find(f"{SVG}g[@class='edges']")
    assert nodes is not None
    assert edges is not None
    named = [[one.text for one in node.iter(f"{SVG}text")] for node in nodes]
    return named, [one.findtext(f"{SVG}title") for one in edges]


def test_entities_are_boxes_that_link_to_their_pages_and_edges_are_arrows():
    found = svg(section("AB", [("depends_on", "", "A", "B")]), "A", lambda id_: f"#e/{id_}", "A and more")
    assert drawn(found) == ([["A", "Title of A"], ["B", "Title of B"]], ["A depends_on B"])
    root = ET.fromstring(found)
    assert [one.get("href") for one in root.iter(f"{SVG}a")] == ["#e/A", "#e/B"]
    assert (root.get("aria-label"), root.get("role")) == ("A and more", "group")
    assert [one.get("class") for one in root.find(f"{SVG}g[@class='nodes']")] == ["start", ""]


def test_a_picture_alone_is_an_image_with_a_style_and_without_links():
    root = ET.fromstring(svg(section("AB", [("depends_on", "", "A", "B")]), "A", None, "A and more"))
    assert root.get("role") == "img"
    assert [*root.iter(f"{SVG}a")] == []
    assert root.find(f"{SVG}style") is not None


def test_what_is_only_proposed_or_retired_is_marked_and_a_line_below_says_how():
    nodes = [Subject("A", "req", "", "", "", proposed=True), Subject("B", "req", "", "retired", "")]
    plain = section("AB", [("depends_on", "", "A", "B")])
    text = svg(Section(nodes, [Arrow("depends_on", "", "A", "B", is_proposed=True)], 2, 1), "", None, "all")
    root = ET.fromstring(text)
    boxes = root.find(f"{SVG}g[@class='nodes']")
    assert boxes is not None
    assert [one.get("class") for one in boxes] == ["proposed", "retired"]
    assert [one.findtext(f"{SVG}title") for one in boxes] == ["A, req, proposed", "B, req, retired"]
    assert [one.get("class") for one in root.findall(f"{SVG}g[@class='edges']/{SVG}path")] == ["proposed"]
    assert drawn(text)[1] == ["A depends_on B (proposed)"]
    legend = root.findall(f"{SVG}g[@class='legend']/{SVG}text")
    assert [one.text for one in legend] == ["dotted: proposed", "dashed: retired"]
    left, top, width, height = map(float, str(root.get("viewBox")).split())
    assert all(left <= float(one.get("x", "")) < left + width - 100 for one in legend)
    assert all(top < float(one.get("y", "")) <= top + height for one in legend)
    assert ".start.retired rect{stroke-dasharray" in text  # a thick line with short dashes looks dotted
    assert "legend" not in svg(plain, "", lambda _: "", "all")


@pytest.mark.parametrize(
    "arrows",
    [
        [],
        [("depends_on", "", "A", "A")],
        [("depends_on", "", "A", "B"), ("depends_on", "", "B", "A")],
        [("relates_to", "x", "A", "B"), ("relates_to", "y", "A", "B")],
    ],
)
def test_loops_circles_and_parallel_edges_are_drawn(arrows):
    _, edges = drawn(svg(section("AB", arrows), "", lambda _: "", "all"))
    assert len(edges) == len(arrows)


def test_a_title_is_cut_to_its_box_and_wide_characters_count_twice():
    nodes = [Subject("A", "req", "x" * 5000, "", ""), Subject("B", "req", "字" * 5000, "", "")]
    named, _ = drawn(svg(Section(nodes, [], 2, 0), "", lambda _: "", "all"))
    assert named == [["A", "x" * 29 + "…"], ["B", "字" * 14 + "…"]]


@settings(max_examples=tries(10, 300), deadline=None)
@given(SUBJECTS, st.data())
def test_whatever_is_stored_the_picture_is_well_formed_and_always_the_same(subjects, data):
    ids = [one.id for one in subjects]
    pairs = data.draw(st.lists(st.tuples(TEXTS, TEXTS, st.sampled_from(ids), st.sampled_from(ids)), max_size=8))
    found = Section(subjects, [Arrow(*one) for one in pairs], len(ids), len(pairs))
    text = svg(found, ids[0], quote, "all")
    named, edges = drawn(text)
    assert (len(named), len(edges)) == (len(ids), len(pairs))
    assert svg(found, ids[0], quote, "all") == text
