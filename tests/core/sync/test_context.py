"""The innermost symbols of changed lines, and the context of what is not there any more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbcore.sync.context import ContextRequest, find_context, innermost

NESTED = {"file": (1, 30), "class": (3, 20), "one": (4, 8), "two": (9, 20), "inner": (10, 12), "last": (22, 25)}
LINE = st.integers(1, 30)


def at_line(line):
    return [name for name, (first, last) in NESTED.items() if first <= line <= last][-1]


@given(st.lists(st.tuples(LINE, LINE).map(lambda ends: (min(ends), max(ends))), max_size=4))
def test_changed_lines_mean_the_symbols_that_are_innermost_around_one_of_them(ranges):
    expected = {at_line(line) for first, last in ranges for line in range(first, last + 1)}
    assert innermost(NESTED, ranges) == expected


def context_of(project, **asked):
    workspace = project.workspace()
    branch = workspace.head().branch
    return workspace.store(branch).read(lambda view: find_context(workspace, view, branch, ContextRequest(**asked)))


def document(key, title, links=""):
    return f"---\nid: {key}\ntitle: {title}\nstatus: agreed\n{links}---\n"


def test_a_file_that_is_gone_and_recorded_so_is_answered_with_what_it_bound(project):
    project.sync(
        {
            "docs/requirements/a.md": document("R-1", "One"),
            "docs/requirements/b.md": document("R-2", "Two", "links: [R-1]\n"),
        }
    )
    project.sync({"docs/requirements/b.md": None})
    found = context_of(project, paths=("docs/requirements/b.md",))
    assert [(one.id, one.tie.as_text(one.source)) for one in found.facts] == [("R-2", "deleted"), ("R-1", "depends_on")]
    assert found.unknown == ()


def test_a_file_of_which_nothing_is_known_belongs_to_the_component_of_the_nearest_folder(project):
    components = [
        {"id": key, "type": "component", "title": key, "status": "active", "attributes": {"file": folder}}
        for key, folder in (
            ("all", "src/"),
            ("store", "src/store"),
            ("api", "src/api/"),
            ("web", "src/api"),
            ("other", "src/sto"),
        )
    ]
    decision = {"id": "ADR-1", "type": "adr", "title": "Sync first", "status": "accepted"}
    project.apply(entities=[*components, decision], edges=[{"type": "affects", "from": "ADR-1", "to": "store"}])
    for path, bound in {
        "src/store/deep/new.py": ["ADR-1", "store"],
        "src/store": ["ADR-1", "store"],
        "src/x.py": ["all"],
        "src/api/q.py": ["api", "web"],
        "src/api/": ["api", "web"],
    }.items():
        assert [one.id for one in context_of(project, paths=(path,)).facts] == bound
    assert context_of(project, paths=("lib/x.py",)).facts == ()


def test_a_file_that_is_gone_is_answered_with_what_it_held_before_the_component_around_it(project):
    component = {"id": "docs", "type": "component", "title": "Docs", "status": "active", "attributes": {"file": "docs"}}
    project.apply(entities=[component])
    project.sync({"docs/requirements/b.md": document("R-2", "Two")})
    project.sync({"docs/requirements/b.md": None})
    assert [one.id for one in context_of(project, paths=("docs/requirements/b.md",)).facts] == ["R-2"]


def test_an_unknown_id_is_answered_with_the_nearest(project):
    project.apply(entities=[{"id": "REQ-LOGIN", "type": "req", "title": "One", "status": "agreed"}])
    found = context_of(project, ids=("REQ-LOGIN", "REQ-LOGON"))
    assert [one.id for one in found.facts] == ["REQ-LOGIN"]
    assert [(one.asked, one.nearest) for one in found.unknown] == [("REQ-LOGON", ("REQ-LOGIN",))]


def test_what_is_retired_is_counted_unless_it_is_asked_for(project):
    entities = [
        {"id": "R-1", "type": "req", "title": "One", "status": "agreed"},
        {"id": "R-2", "type": "req", "title": "Two", "status": "superseded"},
    ]
    project.apply(entities=entities, edges=[{"type": "depends_on", "from": "R-1", "to": "R-2"}])
    assert [one.id for one in context_of(project, ids=("R-1",)).facts] == ["R-1"]
    assert context_of(project, ids=("R-1",)).left_out == {"retired fact": 1}
    assert [one.id for one in context_of(project, ids=("R-2",)).facts] == ["R-2", "R-1"]
