"""The answer to a changeset names the violations that it introduces, also in a dry run."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.checks import judge, run_checks
from kbcore.checks.branch_files import tree_of
from kbcore.checks.introduced import written
from kbcore.checks.introduced.compare import introduced
from kbcore.editing.documents import WriteTarget
from kbcore.editing.renaming import rename
from kbcore.editing.setting import set_fields
from kbcore.errors import KBError
from kbcore.errors.remedies import for_shell
from kbcore.model import changeset
from kbcore.model.state import Draft
from kbcore.rules import CheckReport, acyclic, orphans
from kbcore.store import apply, branches
from kbcore.store.answers import Outcome
from kbcore.store.history import undo
from kbcore.store.history.undo import UndoOptions
from kbcore.sync.overlay import WorktreeFiles
from kbcore.view.view import View
from tests.support.generators.histories import laws
from tests.support.repository.project import AUTHOR, Project, caches_at, document
from tests.support.repository.project import req as req_document

CYCLE = "acyclic (error): depends_on forms a cycle: A → B → A."


def req(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def depends(from_id: str, to_id: str) -> dict[str, Any]:
    return {"type": "depends_on", "from": from_id, "to": to_id}


def carried_out(project: Project, request: dict[str, Any], *, deletes: bool = False) -> Outcome:
    workspace = project.workspace()
    _, choice, _ = branches.open_branch(workspace, None)
    parsed = changeset.parse_deletion(request) if deletes else changeset.parse(request)
    return written.apply_changeset(workspace, choice.branch, AUTHOR, parsed, follows_head=choice.follows_head)


def renamed(project: Project, old: str, new: str) -> None:
    workspace = project.workspace()
    rename(WriteTarget(workspace, "main", AUTHOR, workspace.store("main").read, follows_head=False), old, new)


@pytest.fixture
def linked(project: Project) -> Project:
    project.apply(
        entities=[req("A"), req("B"), req("M", priority="must")], edges=[depends("A", "B"), depends("M", "A")]
    )
    return project


def test_a_dry_run_and_a_write_say_which_rules_they_break(linked: Project) -> None:
    request = {"edges": [depends("B", "A")]}
    before = linked.seq()
    assert carried_out(linked, request | {"dry_run": True}).warnings == (CYCLE,)
    assert linked.seq() == before
    assert carried_out(linked, request).warnings == (CYCLE,)
    assert carried_out(linked, request).warnings == (), "nothing is written"


def test_a_revert_and_its_dry_run_say_which_rules_they_break(linked: Project) -> None:
    carried_out(linked, {"edges": [depends("B", "A")]})
    carried_out(linked, {"edges": [depends("B", "A")]}, deletes=True)
    workspace, seq = linked.workspace(), linked.seq()
    for dry_run in (True, False):
        options = UndoOptions(dry_run=dry_run)
        outcome = written.undone(undo.revert, workspace, "main", AUTHOR, [seq], options=options, follows_head=True)
        assert outcome.warnings[-1] == CYCLE


def test_a_forced_revert_of_a_type_says_which_edges_do_not_fit_any_more(linked: Project) -> None:
    linked.apply(entities=[req("P"), req("Q", type="component")])
    linked.apply(entities=[{"id": "P", "type": "adr"}])
    seq = linked.seq()
    linked.apply(edges=[{"type": "affects", "from": "P", "to": "Q"}])
    outcome = written.undone(
        undo.revert, linked.workspace(), "main", AUTHOR, [seq], options=UndoOptions(force=True), follows_head=True
    )
    [said] = [one for one in outcome.warnings if one.startswith("endpoint-types")]
    assert said.startswith("endpoint-types (error): P affects Q leads from req to component")


def test_a_rollback_says_which_rules_it_breaks(linked: Project) -> None:
    carried_out(linked, {"edges": [depends("B", "A")]})
    seq = linked.seq()
    carried_out(linked, {"edges": [depends("B", "A")]}, deletes=True)
    outcome = written.undone(undo.rollback, linked.workspace(), "main", AUTHOR, seq, follows_head=True)
    assert outcome.warnings[-1] == CYCLE


def test_a_rename_says_what_it_breaks_and_not_what_was_broken_under_the_earlier_id(linked: Project) -> None:
    linked.apply(entities=[req("C")])  # C is linked to nothing
    view = linked.workspace().store("main").read
    target = WriteTarget(linked.workspace(), "main", AUTHOR, view, follows_head=True)
    assert rename(target, "C", "D").outcome.warnings == ()
    for dry_run in (True, False):
        [said] = rename(target, "D", "a", dry_run=dry_run).outcome.warnings
        assert said.startswith("similar-ids (warning): ")


def test_the_warning_names_the_record_of_the_write_and_not_one_that_came_after_it(linked: Project) -> None:
    drafts: list[Draft] = []
    workspace = linked.workspace()
    parsed = changeset.parse({"entities": [{"id": "B", "owner": "ann"}]})
    outcome = apply.apply_changeset(workspace, "main", AUTHOR, parsed, follows_head=True, note=drafts.append)
    linked.apply(entities=[req("C")])
    linked.apply(entities=[req("D")])
    [said] = written.with_warnings(workspace, "main", AUTHOR, outcome, drafts, is_tried=False).warnings
    assert f"changed at seq {outcome.seq};" in said


def test_what_files_settle_that_no_record_has_yet_is_not_said(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    project.sync({"docs/requirements/c.md": req_document("REQ-3")})
    project.write(
        {
            "docs/requirements/a.md": req_document("REQ-1"),
            "docs/requirements/b.md": req_document("REQ-2", links="[REQ-1, REQ-9]"),
        }
    )
    workspace, files = project.workspace(), WorktreeFiles()

    def read(use: Any) -> Any:
        return files.read(workspace, "main", lambda view, _: use(view), time_s=10)

    target = WriteTarget(workspace, "main", AUTHOR, read, follows_head=True)
    for dry_run in (True, False):
        said = set_fields(target, "REQ-2", ["owner=ann"], dry_run=dry_run).outcome.warnings
        assert [one for one in said if "unresolved-reference" in one] == [
            "unresolved-reference (error): REQ-2 links to REQ-9, but there is no REQ-9."
        ]
    assert project.node("REQ-1") is None
    said = carried_out(project, {"entities": [{"id": "REQ-3", "priority": "must"}]}).warnings
    assert any("must-coverage" in one for one in said)


def test_what_was_broken_before_is_not_said_again(linked: Project) -> None:
    linked.apply(edges=[depends("B", "A")])
    [warning] = carried_out(linked, {"entities": [{"id": "M", "owner": "ann"}, {"id": "A", "tags": ["x"]}]}).warnings
    assert warning.startswith("suspect-edge (warning): B depends_on A, but A has changed at seq 3")


def test_a_removal_says_what_lacks_the_removed(linked: Project) -> None:
    cover = {"type": "verified_by", "from": "M", "to": "T"}
    test = {"id": "T", "type": "test", "title": "t", "status": "active"}
    linked.apply(entities=[test], edges=[cover])
    for dry_run in (True, False):
        request = {"entities": [{"id": "T"}], "cascade": True, "dry_run": dry_run}
        [warning] = carried_out(linked, request, deletes=True).warnings
        assert warning.startswith("must-coverage (error): M has priority must, but no test")


def test_a_rule_that_is_off_is_not_run_and_many_entities_are_left_to_a_check(linked: Project) -> None:
    linked.write({".kb/config.json": '{"rules": {"acyclic": "off"}}'})
    assert carried_out(linked, {"edges": [depends("B", "A")]}).warnings == ()
    [warning] = carried_out(linked, {"entities": [req(f"R-{number}") for number in range(501)]}).warnings
    assert (
        for_shell(warning)
        == "The rules were not run on what this changes: it has 501 items, more than 500. `kb check` runs them."
    )


def test_an_edge_that_was_suspect_already_is_not_said_again(linked: Project) -> None:
    def said(**fields: Any) -> list[str]:
        return [one.split(",")[0] for one in carried_out(linked, {"entities": [{"id": "A", **fields}]}).warnings]

    suspect = ["suspect-edge (warning): M depends_on A"]
    assert said(title="Another title") == suspect
    assert said(title="A third title") == []
    assert said(title="Title of A") == [], "it says again what was confirmed"
    assert said(status="draft") == suspect
    linked.apply(edges=[depends("M", "A")])
    assert said(attributes={"line": 7}) == [], "where it is said does not count"
    linked.apply(entities=[{"id": "M", "owner": "ann"}])
    assert said(status="open") == suspect, "a change of what it comes from confirmed it"
    assert said(status="draft") == []


@pytest.mark.sliced(1)
@pytest.mark.parametrize("was", ["A", "M"])
def test_an_edge_that_was_suspect_before_a_rename_is_not_said_again(linked: Project, was: str) -> None:
    def said(key: str, title: str) -> list[str]:
        outcome = carried_out(linked, {"entities": [{"id": key, "title": title}]})
        return [one.split(",")[0] for one in outcome.warnings]

    assert said("A", "Another title") == ["suspect-edge (warning): M depends_on A"]
    renamed(linked, was, f"{was}{was}")
    target, source = ("AA", "M") if was == "A" else ("A", "MM")
    assert said(target, "A third title") == [], "it was suspect before"
    linked.apply(edges=[depends(source, target)])
    renamed(linked, "B", "BB")
    assert said(target, "A fourth title") == [f"suspect-edge (warning): {source} depends_on {target}"]


def test_an_edge_that_held_before_a_rename_is_said_to_be_suspect_after_it(linked: Project) -> None:
    renamed(linked, "A", "AA")
    [warning] = carried_out(linked, {"entities": [{"id": "AA", "title": "Other"}]}).warnings
    assert warning.startswith("suspect-edge (warning): M depends_on AA, but AA has changed at seq 3; ")
    assert "the edge was last confirmed at seq 1." in warning


def test_what_is_alike_is_found_in_a_base_and_in_what_came_after_it(linked: Project) -> None:
    shutil.rmtree(caches_at(linked.root))
    caches_at(linked.root).mkdir()
    again = Project(linked.root, is_new=False)
    again.view()
    for one, other in (("A", "a"), ("B", "b"), ("M", "m"), ("m2", "M2"), ("M2", "M02")):
        entities = [req(other, title=f"title OF  {one}")]
        warnings = carried_out(again, {"entities": entities}).warnings
        rules = [warning.split(" (")[0] for warning in warnings]
        assert rules == ["similar-ids", "duplicate-title"] * (one != "m2"), warnings
    assert again.view().rows("select count(*) from base.node") == [(3,)]


def test_a_circle_that_was_there_is_not_said_with_a_new_one_that_leads_to_it(linked: Project) -> None:
    circle = [depends("X", "Y"), depends("Y", "X"), depends("X", "X"), depends("A", "X"), depends("A", "A")]
    linked.apply(entities=[req("X"), req("Y"), req("Z")], edges=circle)
    [warning] = carried_out(linked, {"edges": [depends("A", "Z"), depends("Z", "A")]}).warnings
    assert warning == "acyclic (error): depends_on forms a cycle: A → Z → A."
    [warning] = carried_out(linked, {"edges": [depends("Z", "Z")]}).warnings
    assert warning == "acyclic (error): depends_on forms a cycle: Z → Z."


def test_a_walk_that_meets_too_many_is_left_to_a_check(linked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acyclic, "_MOST_WALKED", 2)
    linked.apply(entities=[req("C"), req("D")], edges=[depends("B", "C"), depends("C", "D"), depends("D", "M")])
    [warning] = carried_out(linked, {"edges": [depends("D", "A")]}).warnings
    assert warning.startswith("The rule acyclic could not run: More than 2 entities are on the paths from here")


TYPES = {
    "REQ-1": "req",
    "REQ-01": "req",
    "REQ-2": "req",
    "TEST-1": "test",
    "SCN-1": "scenario",
    "SYM-1": "symbol",
    "ADR-1": "adr",
    "ADR-2": "adr",
    "EV-1": "event",
    "FLAG-1": "flag",
}
EDGES = (
    *(("depends_on", one, other) for one in ("REQ-1", "REQ-01", "REQ-2") for other in ("REQ-1", "REQ-01", "REQ-2")),
    ("verified_by", "REQ-1", "TEST-1"),
    ("specified_by", "REQ-1", "SCN-1"),
    ("verified_by", "REQ-2", "TEST-1"),
    ("implements", "SYM-1", "REQ-1"),
    ("implements", "SYM-1", "REQ-2"),
    ("constrained_by", "SYM-1", "ADR-1"),
    ("constrained_by", "SYM-1", "ADR-2"),
    ("supersedes", "ADR-2", "ADR-1"),
    ("supersedes", "ADR-1", "ADR-2"),
    ("publishes", "SYM-1", "EV-1"),
    ("consumes", "SYM-1", "EV-1"),
    ("guards", "FLAG-1", "SYM-1"),
)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "title": st.sampled_from(["Log in", "LOG  in", "Straße", "STRASSE", "Other"]),
    "status": st.sampled_from(["draft", "open", "accepted", "retired", "superseded"]),
    "priority": st.sampled_from(["must", "Must", "could"]),
    "text_ref": st.sampled_from(["gone.md", "README.md#here"]),
    "attributes": st.sampled_from(
        [{"file": "gone.py"}, {"not_applicable": {"verified": "by hand"}}, {"not_applicable": {"specified": " "}}]
    ),
}
_entity = st.builds(
    lambda key, title, status, more: {"id": key, "type": TYPES[key], "title": title, "status": status, **more},
    st.sampled_from(sorted(TYPES)),
    _VALUES["title"],
    _VALUES["status"],
    st.fixed_dictionaries({}, optional={key: _VALUES[key] for key in ("priority", "text_ref", "attributes")}),
)
_edge = st.sampled_from(EDGES).map(lambda one: {"type": one[0], "from": one[1], "to": one[2]})
_put = st.builds(
    lambda entities, edges: {"entities": entities, "edges": edges},
    st.lists(_entity, max_size=5, unique_by=lambda one: str(one["id"])),
    st.lists(_edge, max_size=4, unique_by=str),
)
_removal = st.builds(
    lambda ids, edges: {"entities": [{"id": key} for key in ids], "edges": edges, "cascade": True},
    st.lists(st.sampled_from(sorted(TYPES)), max_size=2, unique=True),
    st.lists(_edge, max_size=2, unique_by=str),
)
_step = st.one_of(_put, _put, _put, _removal)
_ALL = [{"id": key, "type": type_, "title": key, "status": "open"} for key, type_ in TYPES.items()]
_FIRST: dict[str, Any] = {
    "entities": _ALL,
    "edges": [{"type": type_, "from": one, "to": other} for type_, one, other in EDGES if one > other or one[0] != "R"],
}


@pytest.mark.sliced
@laws(36)
@given(st.sampled_from([{"entities": []}, {"entities": _ALL}, _FIRST]), st.lists(_step, min_size=2, max_size=6))
def test_the_warnings_are_those_of_the_rules_run_whole_before_and_after(
    first: dict[str, Any], steps: list[dict[str, Any]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "repo")
        if first["entities"]:
            project.apply(**first)
        for step in steps:
            request = {key: value for key, value in step.items() if value}
            is_removal = "cascade" in request
            seq = project.seq()
            try:
                tried = carried_out(project, request | {"dry_run": True}, deletes=is_removal)
            except KBError:
                continue  # what is refused breaks nothing
            done = carried_out(project, request, deletes=is_removal)
            reported = [one for one in done.warnings if one.split(" (")[0] in written.LOOKING]
            assert reported == [one for one in tried.warnings if one.split(" (")[0] in written.LOOKING]
            assert reported == whole(project, seq, is_removal=is_removal), f"{request} at seq {seq}"


def whole(project: Project, seq: int, *, is_removal: bool) -> list[str]:
    """Return the warnings that the rules give that are run over everything at a seq and now."""
    workspace = project.workspace()
    now = project.view()
    if now.seq == seq:
        return []
    why = orphans.why_it_waits(now.rows)

    def idle(name: str) -> str:
        # A circle that is there still, when a larger one was opened, is not new.
        return why if name == "orphans" else "a removal closes no circle" if name == "acyclic" and is_removal else ""

    def found(view: View) -> CheckReport:
        tree = tree_of(workspace, "main")
        return judge(workspace, view, tree, only=sorted(written.LOOKING), is_own=True, idle=idle)

    with workspace.store("main").view_until(seq) as before:
        news = introduced(found(before), found(now), now.renamed).report
        created = {*now.rows("select id from node")} - {*before.rows("select id from node")}
    return [*written.by_rule([one for one in news.violations if one.rule != "orphans" or (one.id,) not in created])]


def test_a_write_that_removes_the_last_edge_but_links_in_texts_warns_of_the_orphans_that_it_makes(
    project: Project,
) -> None:
    mentioning = document("A", "[b](b.md)", title="a", status="open")
    project.sync({"docs/requirements/a.md": mentioning, "docs/requirements/b.md": req_document("B")})
    carried_out(project, {"entities": [req("C"), req("D")], "edges": [depends("C", "D")]})
    removal = {"entities": [], "edges": [depends("C", "D")]}
    for dry_run in (True, False):
        [warning] = carried_out(project, removal | {"dry_run": dry_run}, deletes=True).warnings
        assert warning.startswith("orphans (warning): C (req) is linked to nothing. (1 more; ")


def test_an_entity_is_no_orphan_for_the_write_that_creates_it_and_for_a_later_one_and_a_check_it_is(
    linked: Project,
) -> None:
    for dry_run in (True, False):
        assert carried_out(linked, {"entities": [req("NEW")], "dry_run": dry_run}).warnings == ()
    workspace, view = linked.workspace(), linked.view()
    report = run_checks(workspace, view, branch="main", only=["orphans"])
    assert [one.id for one in report.violations] == ["NEW"]
    carried_out(linked, {"edges": [depends("NEW", "A")]})
    for dry_run in (True, False):
        edge = {"entities": [], "edges": [depends("NEW", "A")], "dry_run": dry_run}
        [warning] = carried_out(linked, edge, deletes=True).warnings
        assert warning.startswith("orphans (warning): NEW (req) is linked to nothing.")


def test_what_is_accepted_under_a_former_id_is_not_said(linked: Project) -> None:
    document = "---\nid: Z\ntitle: Z\nstatus: open\npriority: must\nformer_ids: [OLD]\n---\n"
    linked.sync({"docs/requirements/z.md": document})
    cover = {"type": "verified_by", "from": "Z", "to": "T"}
    linked.apply(entities=[{"id": "T", "type": "test", "title": "t", "status": "active"}], edges=[cover])
    request = {"entities": [{"id": "T"}], "cascade": True, "dry_run": True}

    def said() -> list[str]:
        return [one.split(" (")[0] for one in carried_out(linked, request, deletes=True).warnings]

    assert said() == ["must-coverage", "orphans"]
    entry = '{"rule": "must-coverage", "id": "OLD", "reason": "why"}'
    linked.write({".kb/config.json": f'{{"suppress": [{entry}]}}'})
    assert said() == ["orphans"]
    baseline = '{"format": 1, "violations": [{"rule": "orphans", "id": "OLD"}]}'
    linked.write({".kb/baseline.json": baseline})
    assert said() == []
