"""Edges of an index of source code join symbols that other files state, whichever comes first."""

from __future__ import annotations

import pytest

from kbcore.checks import run_checks
from tests.support.repository.project import Project, req
from tests.support.sources.scip_indexes import defined, index_of, named, sources, written

CONFIG = '{"extractors": {"code": {"paths": ["src/**/*.ts"]}, "scip": {"paths": ["*.scip"]}}}'
INDEX = {"index.scip": index_of("typescript")}
CODE = {path: text for path, text in sources("typescript") if path.endswith(".ts")}
RULES = ["stale-index", "unresolved-reference", "orphans", "similar-ids", "duplicate-title"]


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path / "p")
    project.write({".kb/config.json": CONFIG})
    yield project
    project.close()


def ends_at(project, key):
    """Return the resolved edges of an index that lead to a symbol, as kind and other end."""
    links = project.view().touching([key])
    return {(one.kind, one.from_id) for one in links if one.is_resolved and one.to_id == key}


def found_by(project, only=RULES):
    report = run_checks(project.workspace(), project.view(), branch="main", only=only)
    assert all(one.status != "not_run" for one in report.rules)
    return [(one.rule, one.id, one.message) for one in report.violations]


def test_the_edges_are_there_whichever_file_comes_first(project):
    expected = {("uses", "src/cart.ts#Cart.add"), ("uses", "src/cart.ts#discount")}
    project.sync(INDEX | CODE)
    assert ends_at(project, "src/price.ts#round") == expected
    project.sync(dict.fromkeys(CODE))
    assert project.node("src/price.ts#round") is None
    assert found_by(project) == []  # what an index names need not be there
    answer = project.sync(CODE)
    assert ends_at(project, "src/price.ts#round") == expected
    assert answer.unresolved == ()


def test_edges_without_an_end_are_counted_and_are_no_fault(project):
    answer = project.sync(INDEX | {"src/cart.ts": CODE["src/cart.ts"]})
    assert answer.waiting_mentions == 4
    assert answer.unresolved == ()
    assert found_by(project) == []


def test_an_edge_follows_a_symbol_that_is_renamed_also_where_the_index_is_read_again(project):
    project.sync(INDEX | CODE)
    project.sync({path: text.replace("round(", "roundUp(") for path, text in CODE.items()})
    expected = {("uses", "src/cart.ts#Cart.add"), ("uses", "src/cart.ts#discount")}
    assert ends_at(project, "src/price.ts#roundUp") == expected
    project.sync({".kb/config.json": CONFIG.replace('["*.scip"]', '["*.scip"], "ignore": ["other.ts"]')})
    assert ends_at(project, "src/price.ts#roundUp") == expected


def test_edges_go_with_the_index_and_with_a_newer_one(project):
    project.sync(INDEX | CODE)
    a, b = "x . s 1 src/`cart.ts`/Cart#", "x . s 1 src/`price.ts`/round()."
    newer = written(
        {
            "relative_path": "src/cart.ts",
            "occurrences": [defined(a, [2, 13, 17], [2, 0, 12, 1]), named(b, [6, 20, 25])],
        },
        {"relative_path": "src/price.ts", "occurrences": [defined(b, [4, 16, 21], [4, 0, 6, 1])]},
    )
    project.sync({"index.scip": newer})
    assert ends_at(project, "src/price.ts#round") == {("uses", "src/cart.ts#Cart")}
    project.sync({"index.scip": None})
    assert ends_at(project, "src/price.ts#round") == set()
    assert project.node("src/cart.ts#Cart").path == "src/cart.ts"


def test_a_broken_index_keeps_the_edges_and_is_reported(project):
    project.sync(INDEX | CODE)
    project.sync({"index.scip": INDEX["index.scip"][:-7]})
    assert len(ends_at(project, "src/price.ts#round")) == 2
    [(_, path, message)] = found_by(project, ["unreadable-source"])
    assert (path, message) == ("index.scip", "it is no SCIP index: it ends within a field")


def test_symbols_of_files_without_a_grammar_are_those_of_the_index_and_need_no_edge(project):
    data = written(
        *[
            {"relative_path": f"lib/{name}.rb", "occurrences": [defined(f"x . s 1 lib/{name}/run().", [1, 4, 7])]}
            for name in "ab"
        ]
    )
    project.sync(
        {"index.scip": data, "docs/requirements/r.md": req("R-1", links="[R-2]"), "lib/a.rb": "", "lib/b.rb": ""}
    )
    project.sync({"docs/requirements/q.md": req("R-2")})
    assert project.node("lib/a.rb#run").fields["attributes.kind"] == "function"
    assert found_by(project) == []
    project.sync({"lib/b.rb": None})
    [(_, key, message)] = found_by(project, ["missing-file"])
    assert (key, message) == (
        "lib/b.rb#run",
        "lib/b.rb#run has lib/b.rb as its `file`, which is not in the repository.",
    )


def test_a_file_that_changed_since_the_index_was_read_is_reported_until_it_is_as_before(project):
    project.sync(INDEX | CODE)
    assert found_by(project) == []
    project.sync(
        {"src/price.ts": CODE["src/price.ts"] + "\nexport function floor() {}\n", "src/other.ts": "let a = 1;\n"}
    )
    assert found_by(project) == [
        ("stale-index", "index.scip", "1 file changed since this index was read: src/price.ts.")
    ]
    project.sync({"src/price.ts": CODE["src/price.ts"]})
    assert found_by(project) == []
    project.sync({"src/price.ts": CODE["src/price.ts"] + "\nexport function floor() {}\n"})
    project.sync({"index.scip": INDEX["index.scip"] + b"\x1a\x00"})  # a new index
    assert found_by(project) == []


def test_an_index_may_be_larger_than_a_document(project):
    text = "x" * (5 * 1024 * 1024)
    data = written({"relative_path": "lib/a.rb", "text": text, "occurrences": [defined("x . s 1 a/run().", [1, 4, 7])]})
    answer = project.sync({"index.scip": data})
    assert [problem.code for _, problem in answer.problems] == ["idle_glob"]
    assert project.node("lib/a.rb#run").type == "symbol"
