"""Asked of some ids, a rule says what it says of everything, as far as that concerns them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.model.graph import SyncedFile
from kbcore.model.schema import CORE
from kbcore.rules import RULES, RuleContext, acyclic, duplicate_title, similar_ids, suspect_edge
from kbcore.view.neighborhood import neighborhood
from tests.support.generators.histories import laws
from tests.support.views.graph import graph_of, link, node

IDS = ("REQ-1", "REQ-01", "req-1", "REQ-10", "K0", "\u212a0", "é", "e\u0301", "A")
TITLES = ("Log in", " log  IN", "log\tin", "log\fin", "Straße", "STRASSE", "", "Other")

nodes = st.lists(
    st.builds(
        lambda id_, type_, title, status: node(id_, type_, title=title, status=status, path=f"docs/{id_}.md"),
        st.sampled_from(IDS),
        st.sampled_from(["req", "req", "adr"]),
        st.sampled_from(TITLES),
        st.sampled_from(["open", "open", "retired"]),
    ),
    unique_by=lambda one: one.id,
)
links = st.lists(
    st.builds(
        lambda from_id, type_, to_id, resolved: link(from_id, type_, to_id, is_resolved=resolved),
        st.sampled_from(IDS),
        st.sampled_from(["depends_on", "supersedes"]),
        st.sampled_from(IDS),
        st.sampled_from([True, True, True, False]),
    ),
    unique_by=lambda one: one.id,
    max_size=14,
)


FAR = (acyclic.RULE, similar_ids.RULE, duplicate_title.RULE)
"""Rules that look beyond what an entity is linked to."""

NODES = (
    node("REQ", priority="must", path="docs/req.md", text_ref="gone.md"),
    node("TEST", "test", path="docs/req.md", text_ref="gone/into-the-state.md"),
    node("SYM", "symbol", path="symbols.yaml", attributes__file="gone.py"),
    node("SYM-2", "symbol", path="symbols.yaml", title=""),
    node("ADR-1", "adr", path="docs/adr.md", status="accepted"),
    node("ADR-2", "adr", status="accepted"),
    node("ADR-3", "adr", status="draft", attributes__token="ghp_" + "a1B2" * 9),
    node("EVENT", "event", status="finished"),
    node("FLAG", "flag", path="docs/flag.feature"),
    node("RISK", "risk"),
)
_ABOUT = link("ADR-2", "supersedes", "ADR-1", files=["docs/adr.md"])
LINKS = (
    _ABOUT,
    link("ADR-3", "supersedes", "ADR-1"),
    link("SYM", "constrained_by", "ADR-1", files=["symbols.yaml"]),
    link("SYM", "implements", "REQ", files=["symbols.yaml"]),
    link("SYM-2", "implements", "REQ", files=["docs/flag.feature", "docs/req.md"]),
    link("FLAG", "guards", "REQ", files=["docs/flag.feature"]),
    link("REQ", "verified_by", "TEST", files=["docs/req.md"]),
    link("REQ", "relates_to", "EVENT"),
    link("EVENT", "publishes", "SYM"),
    link("RISK", "mends", "REQ"),
    link("SYM", "implements", "req", is_resolved=False),
    link("EVENT", "mends", "adr-1", is_resolved=False),
    link("RISK", "mends", _ABOUT.id),
    link("GONE", "mends", _ABOUT.id, is_resolved=False),
)
FILES = tuple(
    SyncedFile(path, "now", extractor, is_ok, (), 1)
    for path, extractor, is_ok in (
        ("docs/req.md", "markdown/1", True),
        ("docs/adr.md", "markdown/1", False),
        ("docs/flag.feature", "gherkin/1", True),
        ("symbols.yaml", "manifest/1", True),
        ("gone/into-the-state.md", "markdown/1", True),
    )
)


@st.composite
def pasts(draw):
    """Return most of the graph, with any past."""

    def some(elements):
        missing = draw(st.sets(st.sampled_from(range(len(elements))), max_size=2))
        kept = [one for at, one in enumerate(elements) if at not in missing]
        versions = draw(st.lists(st.integers(1, 3), min_size=len(kept), max_size=len(kept)))
        return [msgspec.structs.replace(one, version=version) for one, version in zip(kept, versions, strict=True)]

    def before(element, **other):
        return msgspec.structs.replace(element, version=element.version - 1, **other), element.version

    nodes, files = some(NODES), some(FILES)
    paths = draw(st.sampled_from([{}, {"path": "docs/flag.feature"}]))
    return graph_of(
        nodes,
        some(LINKS),
        files,
        old_nodes=[
            before(one, fields={**one.fields, **draw(st.sampled_from([{}, {"title": "Before"}]))}, **_moved(one, paths))
            for one in nodes
            if one.version > 1
        ],
        old_files=[before(one, hash="before") for one in files if one.version > 1],
    )


def _moved(element, paths):
    """Return the owners of an entity whose file was another one before."""
    return {"owners": dict.fromkeys(element.fields, paths["path"])} if paths and element.owners else {}


class Tree:
    """The files of a repository, of which all but some are there."""

    def missing(self, paths):
        return {path for path in paths if path.startswith("gone")}


def part_for(ids, findings):
    """Return what concerns some ids of what a rule finds."""
    return sorted((one for one in findings if one.id in ids or one.concerns & ids), key=repr)


def limited(graph, rule, ids):
    """Return what a rule finds when it is asked of some ids, and the part that concerns them of all it finds."""
    wanted = frozenset(ids)
    with neighborhood(graph, sorted(wanted)) as near:
        found = rule.run(RuleContext(graph.rows, CORE, wanted, around=near))
    return part_for(wanted, found), part_for(wanted, rule.run(RuleContext(graph.rows, CORE)))


@laws(40)
@given(nodes, links, st.sets(st.sampled_from([*IDS, "NOBODY"]), min_size=1, max_size=3))
def test_what_is_asked_of_some_ids_is_that_part_of_the_whole(nodes, links, ids):
    graph = graph_of(nodes, links)
    for rule in FAR:
        found, part = limited(graph, rule, ids)
        assert found == part, rule.id


@pytest.mark.sliced
@laws(12)
@given(pasts())
def test_the_surroundings_of_an_id_are_enough_to_judge_it(graph):
    near_by = [rule for rule in RULES if rule not in FAR]
    whole = [rule.run(RuleContext(graph.rows, CORE, tree=Tree())) for rule in near_by]
    for key in (*(one.id for one in NODES), "GONE", "docs/adr.md", _ABOUT.id):
        with neighborhood(graph, [key]) as near:
            context = RuleContext(graph.rows, CORE, frozenset([key]), tree=Tree(), around=near)
            for rule, every in zip(near_by, whole, strict=True):
                assert part_for({key}, rule.run(context)) == part_for({key}, every), (key, rule.id)


def suspicions(graph):
    """Return what the rule on suspect edges says of A, asked around A and asked of everything."""
    whole = suspect_edge.RULE.run(RuleContext(graph.rows, CORE))
    with neighborhood(graph, ["A"]) as near:
        found = suspect_edge.RULE.run(RuleContext(graph.rows, CORE, frozenset(["A"]), around=near))
    return [one.message for one in part_for({"A"}, found)], [one.message for one in part_for({"A"}, whole)]


@pytest.mark.parametrize(("path_of_a", "is_confirmed"), [("", True), ("other.md", False)])
def test_a_file_that_states_an_edge_confirms_it_near_by_as_from_afar_if_it_defines_one_entity(path_of_a, is_confirmed):
    graph = graph_of(
        [node("A", path=path_of_a), node("OTHER", path="other.md"), node("B", version=2)],
        [link("A", "depends_on", "B", files=["other.md"])],
        [SyncedFile("other.md", "now", "markdown/1", True, (), 3)],
        old_nodes=[(node("B", title="Before"), 2)],
        old_files=[(SyncedFile("other.md", "before", "markdown/1", True, (), 1), 3)],
    )
    near, whole = suspicions(graph)
    assert (near == whole, bool(whole)) == (True, not is_confirmed)


def test_the_document_that_an_entity_has_left_is_known_near_by_as_from_afar():
    graph = graph_of(
        [node("A"), node("B", version=2, path="new.md")],
        [link("A", "depends_on", "B")],
        [SyncedFile(path, path, "markdown/1", True, (), 1) for path in ("old.md", "new.md")],
        old_nodes=[(node("B", path="old.md"), 2)],
    )
    near, whole = suspicions(graph)
    assert (near == whole, len(whole)) == (True, 1)


def test_a_circle_that_is_found_by_reading_all_is_the_same_one():
    count = 2 * acyclic._MOST_STEPS
    names = [f"N{at:03d}" for at in range(count)]
    ring = [link(name, "depends_on", names[(at + 1) % count]) for at, name in enumerate(names)]
    for links in (ring, ring[:-1], ring[:10]):
        found, part = limited(graph_of(map(node, names), links), acyclic.RULE, [names[4]])
        assert (found, len(found)) == (part, len(links) == count)


@pytest.mark.parametrize("rule", FAR, ids=lambda one: one.id)
def test_what_is_far_from_the_ids_asked_for_is_not_brought_along(rule):
    pairs = [(f"A{at}X", f"a{at}x") for at in range(1, 9)]
    nodes = [node(id_, title=f"Title {pair[0]}") for pair in pairs for id_ in pair]
    links = [link(*ends) for a, b in pairs for ends in ((a, "depends_on", b), (b, "supersedes", a))]
    graph, brought = graph_of(nodes, links), []

    def rows(sql, params):
        found = graph.rows(sql, params)
        brought.extend(found)
        return found

    rule.run(RuleContext(rows, CORE, None))
    everything = len(brought)
    brought.clear()
    rule.run(RuleContext(rows, CORE, frozenset(["A1X"])))
    # Whose title is asked for has to be known first.
    assert (everything, len(brought)) == {"acyclic": (0, 1), "duplicate-title": (8, 2)}.get(rule.id, (8, 1))
