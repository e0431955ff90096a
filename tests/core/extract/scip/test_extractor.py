"""An index states edges between symbols, and the symbols of files that nothing else reads."""

from __future__ import annotations

import pytest

from kbcore import limits
from kbcore.extract.code import extractor as code
from kbcore.extract.facts import SourceFile
from kbcore.extract.scip.extractor import EXTRACTOR
from tests.support.sources.scip_indexes import defined, index_of, named, sources, written

EXPECTED = {
    "typescript": {
        ("src/cart.ts#Cart", "implementation_of", "src/price.ts#Priced"),
        ("src/cart.ts#Cart.total", "implementation_of", "src/price.ts#Priced.total"),
        ("src/cart.ts#Cart.add", "uses", "src/price.ts#round"),
        ("src/cart.ts#Shop.open", "uses", "src/cart.ts#Cart"),
        ("src/cart.ts#discount", "uses", "src/cart.ts#Cart"),
        ("src/cart.ts#discount", "uses", "src/cart.ts#Cart.total"),
        ("src/cart.ts#discount", "uses", "src/price.ts#round"),
    },
    "javascript": {
        ("src/order.js#Warehouse", "implementation_of", "src/stock.js#Stock"),
        ("src/order.js#Warehouse.takeAll", "uses", "src/stock.js#Stock.take"),
        ("src/order.js#open", "uses", "src/order.js#Warehouse"),
        ("src/order.js#missing", "uses", "src/stock.js#atLeastZero"),
        ("src/stock.js#Stock.constructor", "uses", "src/stock.js#atLeastZero"),
        ("src/stock.js#Stock.take", "uses", "src/stock.js#atLeastZero"),
        ("src/stock.js#Stock", "uses", "src/stock.js#atLeastZero"),  # the index has no extent of an accessor
    },
    "python": {
        ("shop/cart.py#Cart", "implementation_of", "shop/price.py#Priced"),
        ("shop/cart.py#Cart.total", "implementation_of", "shop/price.py#Priced.total"),
        ("shop/cart.py#Cart.add.inner", "uses", "shop/price.py#round_price"),
        ("shop/cart.py#discount", "uses", "shop/cart.py#Cart"),
        ("shop/cart.py#discount", "uses", "shop/cart.py#Cart.total"),
        ("shop/cart.py#discount", "uses", "shop/price.py#round_price"),
    },
}
"""Made by hand from the source files."""
A, B = "x . shop 1 a/A#", "x . shop 1 b/B#"


def facts_of(data, path="index.scip", **settings):
    return EXTRACTOR.extract(SourceFile(path, data), settings)


def edges_of(facts):
    return {(one.subject, one.kind, one.target) for one in facts.links}


def two_files(*, first="a.x", second="b.x"):
    return written(
        {"relative_path": first, "occurrences": [defined(A, [0, 6, 7], [0, 0, 9, 0]), named(B, [3, 2, 3])]},
        {"relative_path": second, "occurrences": [defined(B, [0, 6, 7], [0, 0, 9, 0])]},
    )


@pytest.mark.parametrize("language", EXPECTED)
def test_the_index_of_a_real_indexer_gives_the_edges_of_the_source_files(language):
    facts = facts_of(index_of(language))
    assert edges_of(facts) == EXPECTED[language]
    assert not facts.problems


@pytest.mark.parametrize("language", EXPECTED)
def test_its_symbols_have_the_ids_that_the_parser_gives_them(language):
    parsed = set()
    for path, text in sources(language):
        if path.endswith((".ts", ".js", ".py")):
            read = code.EXTRACTOR.extract(SourceFile(path, text.encode()), {"paths": ["**"]})
            parsed |= {one.id for one in read.entities}
    assert {one.id for one in facts_of(index_of(language)).entities} == parsed


def test_symbols_of_files_that_are_read_as_source_code_are_left_to_these():
    whole, data = {"paths": ["src/*.ts"], "tests": [], "ignore": ["src/price.ts"]}, index_of("typescript")
    facts = facts_of(data, code=whole)
    assert {one.fields["attributes.file"] for one in facts.entities} == {"src/price.ts"}
    assert edges_of(facts) == EXPECTED["typescript"]
    assert {one.type for one in facts.entities} == {"symbol"}
    unknown = facts_of(two_files(), code={"paths": ["*.x"]})
    assert [one.id for one in unknown.entities] == ["a.x#A", "b.x#B"]  # there is no grammar for it


def test_a_symbol_has_its_kind_signature_and_file():
    information = {"symbol": A, "kind": 49, "signature_documentation": {"text": "struct\n  A"}}
    data = written({"relative_path": "a.x", "occurrences": [defined(A, [0, 6, 7])], "symbols": [information]})
    [entity] = facts_of(data).entities
    assert entity.fields == {
        "title": "A",
        "status": "active",
        "attributes.file": "a.x",
        "attributes.kind": "struct",
        "attributes.signature": "struct A",
    }


def test_paths_begin_at_the_folder_of_the_index_or_at_the_one_that_is_set():
    assert edges_of(facts_of(two_files(), "services/pay/index.scip")) == {
        ("services/pay/a.x#A", "uses", "services/pay/b.x#B")
    }
    assert edges_of(facts_of(two_files(), "build/index.scip", root="")) == {("a.x#A", "uses", "b.x#B")}
    assert edges_of(facts_of(two_files(), "build/index.scip", root="lib/")) == {("lib/a.x#A", "uses", "lib/b.x#B")}


def test_files_that_are_ignored_state_nothing_and_no_edge_leads_there():
    facts = facts_of(two_files(), ignore=["b.x"])
    assert ([one.id for one in facts.entities], facts.links, facts.problems) == (["a.x#A"], (), ())
    [problem] = facts_of(two_files(), ignore=["*"]).problems
    assert (problem.code, problem.severity) == ("empty_index", "warning")


@pytest.mark.parametrize("path", ["../a.x", "/etc/passwd", "src//a.x", "a/./b.x", "", "a\0.x"])
def test_a_path_that_leads_out_of_the_repository_is_left_out_and_reported(path):
    facts = facts_of(two_files(first=path))
    assert ([one.id for one in facts.entities], facts.links) == (["b.x#B"], ())
    [problem] = facts.problems
    assert (problem.code, problem.severity) == ("outside_path", "warning")
    assert "1 of its files" in problem.message


def test_what_a_file_that_comes_twice_says_first_counts():
    occurrences = [defined(A, [0, 6, 7])]
    data = written(*[{"relative_path": "a.x", "occurrences": occurrences}] * 2)
    assert [one.id for one in facts_of(data).entities] == ["a.x#A"]


def test_a_reference_belongs_to_the_innermost_definition_around_it():
    inner, last = "x . shop 1 a/A#inner().", "x . shop 1 a/last()."
    data = written(
        {
            "relative_path": "a.x",
            "occurrences": [
                defined(A, [0, 6, 7], [0, 0, 9, 0]),
                defined(inner, [1, 6, 7], [1, 0, 4, 0]),
                named(B, [2, 2, 3]),
                named(A, [3, 2, 3]),  # what a symbol is in is no edge of it
                named(last, [5, 2, 3]),
                named(B, [12, 2, 3]),  # outside of all definitions
                defined(last, [14, 0, 4], [14, 0, 15, 0]),
                defined(B, [20, 0, 1], [20, 0, 21, 0]),
            ],
        }
    )
    assert edges_of(facts_of(data)) == {("a.x#A.inner", "uses", "a.x#B"), ("a.x#A", "uses", "a.x#last")}


def test_a_reference_to_a_field_is_one_to_what_has_it():
    field = f"{B}count."
    data = written(
        {"relative_path": "a.x", "occurrences": [defined(A, [0, 6, 7], [0, 0, 9, 0]), named(field, [3, 2, 3])]},
        {"relative_path": "b.x", "occurrences": [defined(B, [0, 6, 7], [0, 0, 9, 0]), defined(field, [1, 2, 3])]},
    )
    assert edges_of(facts_of(data)) == {("a.x#A", "uses", "b.x#B")}


def test_an_index_with_too_many_symbols_or_edges_is_not_read_at_all(monkeypatch):
    for name in ("MAX_INDEX_SYMBOLS", "MAX_INDEX_EDGES"):
        with monkeypatch.context() as patch:
            patch.setattr(limits, name, 0)
            facts = facts_of(two_files())
        assert (facts.entities, facts.links, facts.is_complete) == ((), (), False)
        [problem] = facts.problems
        assert (problem.code, problem.severity) == ("too_large_index", "error")


def test_a_file_that_is_no_index_is_reported_and_keeps_what_was_known():
    facts = facts_of(b"# Notes\n")
    assert not facts.is_complete
    [problem] = facts.problems
    assert (problem.code, problem.severity) == ("invalid_scip", "error")


def test_definitions_in_each_other_and_overlapping_ones_take_a_time_in_proportion():
    deep = [defined(f"x . s 1 f{at}().", [at, 0, 1], [at, 0, 30_000 - at, 0]) for at in range(5_000)]
    crossed = [defined(f"x . s 1 g{at}().", [at, 0, 1], [at, 0, at + 9_000, 0]) for at in range(5_000)]
    used = [named("x . s 1 f0().", [at, 1, 2]) for at in range(5_000)]
    for occurrences in (deep, crossed):
        facts = facts_of(written({"relative_path": "a.x", "occurrences": occurrences + used}))
        assert facts.entities
        assert all(len(one.id) <= limits.MAX_ID_CHARS for one in facts.entities)
