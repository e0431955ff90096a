"""Edges that coverage makes likely."""

from __future__ import annotations

from collections.abc import Collection

from kbcore.errors.remedies import for_shell
from kbcore.results.reported import CoveredLines
from kbcore.results.suggesting import Suggestions, suggest, suggest_verified
from tests.support.views.graph import Graph, graph_of, link, node

FILE = "src/cart.py"


def symbol(name: str, kind: str = "function", path: str = FILE):
    return node(f"{path}#{name}", "symbol", path=path, attributes__file=path, attributes__kind=kind)


LINES = {f"{FILE}#Cart": (1, 9), f"{FILE}#Cart.total": (2, 4), f"{FILE}#Cart.empty": (6, 8)}
NODES = [symbol("Cart", "class"), symbol("Cart.total"), symbol("Cart.empty"), node("REQ-1"), node("T-1", "test")]
VERIFIED = link("REQ-1", "verified_by", "T-1")
IMPLEMENTS = link(f"{FILE}#Cart.total", "implements", "REQ-1")


def ask(graph: Graph, *covered: CoveredLines, run: Collection[str] = (), root: str = "/repo") -> Suggestions:
    named = {"a test": ["T-1"]}
    return suggest(
        graph.rows, covered, lambda path: LINES if path == FILE else {}, root=root,
        tests_named=lambda name: named.get(name, ()), run=run,
    )  # fmt: skip


def edges(found: Suggestions) -> list[tuple[str, str, str]]:
    return [(one.from_id.partition("#")[2], one.type, one.to_id) for one in found.first]


def ran(*lines: int, file: str = FILE, test: str = "", folders: tuple[str, ...] = ()) -> CoveredLines:
    return CoveredLines(file, frozenset(lines), test, folders)


def test_a_function_that_a_named_test_ran_is_covered_by_it_and_may_implement_what_it_verifies():
    found = ask(graph_of(NODES, [VERIFIED]), ran(1, 3, test="a test"))
    assert edges(found) == [("Cart.total", "covered_by", "T-1"), ("Cart.total", "implements", "REQ-1")]
    assert for_shell(found.first[0].command) == "`kb link 'src/cart.py#Cart.total' covered_by T-1`"


def test_the_only_test_of_a_command_is_the_one_that_ran_and_of_several_none_is():
    graph = graph_of(NODES, [VERIFIED])
    assert edges(ask(graph, ran(7), run=["T-1"])) == [
        ("Cart.empty", "covered_by", "T-1"),
        ("Cart.empty", "implements", "REQ-1"),
    ]
    assert ask(graph, ran(7), run=["T-1", "T-2"]).count == 0


def test_without_a_name_the_test_of_an_implemented_requirement_is_taken_for_it():
    graph = graph_of(NODES, [VERIFIED, IMPLEMENTS])
    assert edges(ask(graph, ran(3, 7))) == [("Cart.total", "covered_by", "T-1")]
    assert ask(graph, ran(3), run=["T-2", "T-3"]).count == 0


def test_edges_that_are_there_are_not_suggested():
    covered = link(f"{FILE}#Cart.total", "covered_by", "T-1")
    assert ask(graph_of(NODES, [VERIFIED, IMPLEMENTS, covered]), ran(3, test="a test")).count == 0


def test_the_line_of_a_definition_and_the_body_of_a_class_show_nothing():
    found = ask(graph_of(NODES, [VERIFIED]), ran(1, 2, 5, 6, 9, test="a test"))
    assert (found.count, found.symbols) == (0, 0)


def test_files_are_known_by_their_sources_from_the_root_or_by_the_end_of_their_path():
    graph = graph_of(NODES, [VERIFIED])
    for file, folders in [
        ("cart.py", ("/repo/src",)),
        ("/repo/src/cart.py", ()),
        ("./src/cart.py", ()),
        ("src\\cart.py", ()),
        ("cart.py", ("/ci/build",)),
    ]:
        assert ask(graph, ran(3, test="a test", file=file, folders=folders)).symbols == 1, file
    assert ask(graph, ran(3, file="other.py")).unknown_files == 1
    twice = graph_of([*NODES, symbol("x", path="lib/cart.py")], [VERIFIED])
    assert ask(twice, ran(3, file="cart.py")).unknown_files == 1


def test_a_requirement_that_the_report_of_a_test_names_may_be_verified_by_it():
    nodes = [*NODES, node("REQ-2"), node("T-2", "test")]
    named = [("REQ-1", "T-1"), ("REQ-1", "T-2"), ("REQ-2", "T-1"), ("T-1", "T-2"), ("REQ-9", "T-1")]
    found = suggest_verified(graph_of(nodes, [VERIFIED]).rows, named)
    assert [(one.from_id, one.type, one.to_id) for one in found.first] == [
        ("REQ-1", "verified_by", "T-2"),
        ("REQ-2", "verified_by", "T-1"),
    ]
    assert (found.count, found.unknown) == (2, ("REQ-9", "T-1"))
    assert for_shell(found.first[1].command) == "`kb link REQ-2 verified_by T-1`"
