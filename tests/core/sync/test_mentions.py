"""Links in the text of documents, as edges: whichever file comes first, and without noise."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from kbcli.messages.sync_result import unresolved_line
from kbcore.checks import run_checks
from kbcore.query.impact import impact
from kbcore.query.subject import find
from kbcore.rules import CheckReport
from kbcore.store.facts_export import export, export_at
from kbcore.sync.answer import UnresolvedLink
from kbcore.sync.file_status import unresolved_links
from kbcore.sync.overlay import WorktreeFiles
from kbcore.view.relations import RELATIONS
from kbcore.view.view import View
from tests.support.repository.project import Project, document, req
from tests.support.repository.sleeping import Sleeper

REQS = "docs/requirements"
CONFIG = ".kb/config.json"
A, B = f"{REQS}/a.md", f"{REQS}/b.md"
EDGE = ("A", "mentions", "B", True)
WAITS = ("A", "mentions", B, False)


def text(key: str, body: str, **fields: str) -> str:
    return document(key, body, **{"title": f"Title of {key}", "status": "open", **fields})


LINKS_TO_B = text("A", "See [b](b.md#why) and [b](./b.md), [a](a.md), [page](../guide.md).")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "p")


@pytest.mark.sliced(2)
@pytest.mark.parametrize("order", list(itertools.permutations([A, B, None])))
def test_the_order_of_files_does_not_matter(project: Project, order: list[str | None]) -> None:
    files = {A: LINKS_TO_B, B: req("B")}
    for path in order:
        project.sync({path: files[path]} if path else None)
    assert project.edges("A") == {EDGE, ("A", "mentions", "docs/guide.md", False)}
    assert project.edges(B) == set()
    seq = project.seq()
    assert not project.sync().outcome.applied
    assert project.seq() == seq


def checked(project: Project, *rules: str) -> CheckReport:
    return run_checks(project.workspace(), project.view(), branch="main", only=rules)


def settings(value: str) -> dict[str, str]:
    return {CONFIG: f'{{"extractors": {{"markdown": {{"mentions": {value}}}}}}}'}


@pytest.mark.parametrize("options", [{}, {"paths": (B,)}, {"touched": (B,)}])
def test_a_mention_becomes_an_edge_when_its_document_defines_an_entity(
    project: Project, options: dict[str, object]
) -> None:
    project.sync({A: text("A", "[b](b.md)")})
    assert project.edges("A") == {WAITS}
    answer = project.sync({B: req("B")}, **options)
    assert project.edges("A") == {EDGE}
    assert (answer.unresolved, answer.problems) == ((), ())


def test_a_mention_follows_what_its_path_defines(project: Project) -> None:
    project.sync({A: text("A", "[b](b.md)"), B: req("B")})
    project.sync({B: req("B2")})
    assert project.edges("A") == {("A", "mentions", "B2", True)}
    project.sync({B: None, f"{REQS}/c.md": req("B2")})
    assert project.edges("A") == {WAITS}
    project.sync({f"{REQS}/c.md": None, B: req("B2")})
    assert project.edges("A") == {("A", "mentions", "B2", True)}
    project.sync({A: None})
    assert project.edges("B2") == set()


def test_pages_that_are_no_entity_are_in_no_report(project: Project) -> None:
    answer = project.sync({A: LINKS_TO_B, "docs/guide.md": "# Guide"})
    assert (answer.unresolved, answer.problems, answer.unresolved_elsewhere) == ((), (), 0)
    assert (answer.outcome.edges.created, answer.waiting_mentions, answer.as_json()["waiting_mentions"]) == (2, 2, 2)
    assert (
        unresolved_line(answer)
        == "2 of the edges are links in texts, or of an index, to what is no entity; they are unresolved."
    )
    again = project.sync()
    assert (again.outcome.applied, again.changed, again.problems, unresolved_line(again)) == (False, 0, (), "")
    view = project.view()
    assert unresolved_links(view) == ()
    assert checked(project, "unresolved-reference").violations == []
    assert (export(view).waiting, export_at(view, view.seq).waiting) == (0, 0)
    assert view.rows(f"select count(*) from ({RELATIONS['unresolved'].select})") == [(0,)]
    assert len(view.touching(["A"])) == 2
    project.sync({B: req("B")})
    assert (export_at(project.view(), 1).waiting, len(export_at(project.view(), 1).edges)) == (0, 0)


def test_the_state_that_a_process_starts_with_has_the_same_in_no_report(project: Project) -> None:
    """The links are asked of the base of a view there, and not of its tail."""
    project.sync({A: text("A", "[b](b.md)", depends_on="REQ-9")})
    project.close()
    later = Project(project.root, is_new=False)
    waiting = (UnresolvedLink("A", "depends_on", "", "REQ-9", A, "A"),)
    assert unresolved_links(later.view()) == unresolved_links(later.view(), [A]) == waiting
    assert [one.id for one in checked(later, "unresolved-reference").violations] == ["A"]
    later.close()


def test_an_id_that_a_text_names_and_that_is_unknown_is_reported(project: Project) -> None:
    config = '{"extractors": {"markdown": {"mentionIds": ["REQ-"]}}}'
    answer = project.sync({CONFIG: config, A: text("A", "[REQ-9] and [REQ-1] and [[x]]"), B: req("REQ-1")})
    assert answer.unresolved == (UnresolvedLink("A", "mentions", "", "REQ-9", A, "A"),)
    assert project.edges("REQ-1") == {("A", "mentions", "REQ-1", True)}
    assert len(checked(project, "unresolved-reference").violations) == 1


def test_a_file_that_states_another_edge_to_an_entity_does_not_mention_it(project: Project) -> None:
    project.sync({A: text("A", "[b](b.md)", depends_on="B"), B: text("B", "[a](a.md)")})
    assert project.edges("A") == {("A", "depends_on", "B", True), ("B", "mentions", "A", True)}
    project.sync({A: LINKS_TO_B})
    assert EDGE in project.edges("A")
    project.sync({A: text("A", "[b](b.md)", superseded_by="b.md")})
    assert project.edges("A") == {("B", "supersedes", "A", True), ("B", "mentions", "A", True)}


def test_the_setting_removes_the_edges_and_brings_them_back(project: Project) -> None:
    project.sync({A: LINKS_TO_B, B: text("B", "[a](a.md)")})
    answer = project.sync(settings("false"))
    assert project.edges("A") == project.edges("B") == set()
    assert answer.problems == ()
    project.sync(settings(f'["{B}"]'))
    assert project.edges("B") == {("B", "mentions", "A", True)}
    project.sync(settings("true"))
    assert EDGE in project.edges("A")


def test_a_schema_in_which_the_edge_is_another_one_leaves_the_mentions_out(project: Project) -> None:
    schema = "edges: {mentions: {from: [req], to: [adr], description: Its own.}}\n"
    adr = "docs/adr/c.md"
    answer = project.sync(
        {".kb/schema/own.yaml": schema, A: text("A", "[b](b.md) [c](../adr/c.md)"), B: req("B"), adr: req("C")}
    )
    assert project.edges("A") == {("A", "mentions", "C", True)}
    assert [one.code for _, one in answer.problems] == ["missing_config"]


def test_a_mention_carries_no_effect_and_is_never_suspect(project: Project) -> None:
    project.sync({A: text("A", "[b](b.md)"), B: req("B")})
    project.sync({B: text("B", "other", title="other")})
    view = project.view()
    start = find(view.rows, "B", None)
    found = impact(view.rows, view.schema(project.workspace().schema), start)
    assert (found.direct, found.related, found.decisions) == ([], [], [])
    assert checked(project, "suspect-edge").violations == []


def test_mentions_alone_do_not_start_the_rule_about_orphans(project: Project) -> None:
    files = {A: text("A", "[b](b.md)"), B: req("B"), f"{REQS}/c.md": req("C")}
    project.sync(files)
    [waits] = checked(project, "orphans").rules
    assert (waits.status, waits.reason) == (
        "not_applicable",
        "The branch has no edge yet but links in texts; the rule is run from the first other one on.",
    )
    project.sync({f"{REQS}/d.md": req("D", depends_on="E"), f"{REQS}/e.md": req("E")})
    assert [one.id for one in checked(project, "orphans").violations] == ["C"]


def test_a_document_that_cannot_be_read_whole_keeps_what_it_mentioned(project: Project) -> None:
    project.sync({A: text("A", "[b](b.md)"), B: req("B")})
    torn = "---\nid: A\ntitle: T\nstatus: open\n---\n<<<<<<< ours\n[b](b.md)\n=======\n>>>>>>> theirs\n"
    project.sync({A: torn})
    assert project.edges("A") == {EDGE}
    project.sync({A: text("A", "")})
    assert project.edges("A") == set()


def test_an_export_of_mentions_can_be_imported(project: Project, tmp_path: Path) -> None:
    project.sync({A: LINKS_TO_B, B: req("B")})
    exported = export(project.view())
    other = Project(tmp_path / "other")
    other.import_(entities=exported.entities, edges=exported.edges)
    assert other.edges("A") == {EDGE}


def test_readers_see_a_mention_whose_document_was_not_synced_yet(project: Project) -> None:
    project.sync({A: text("A", "[b](b.md)")})
    project.write({B: req("B")})
    files = WorktreeFiles(None)

    def resolved_edges(view: View) -> list[tuple[str, str, str]]:
        return view.rows("select from_id, type, to_id from link where is_resolved")

    found = files.read(project.workspace(), "main", lambda view, _: resolved_edges(view), time_s=60.0)
    assert found == [EDGE[:3]]
    assert resolved_edges(project.view()) == []
    files.close()


def test_mentions_of_files_are_no_memory_that_a_sleep_cycle_logs(tmp_path: Path) -> None:
    kip = Sleeper(tmp_path / "repo")
    kip.project.sync({A: LINKS_TO_B, B: req("B")})
    seq = kip.seq()
    kip.sleep(force=True)
    assert kip.seq() == seq
    kip.project.close()
