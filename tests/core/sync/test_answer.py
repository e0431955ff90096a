"""The answer of a sync: of the named paths, each thing once, and no more than was done."""

from __future__ import annotations

import msgspec
import pytest

from kbcore.model.record import StateLink
from kbcore.sync.answer import UnresolvedLink, counted_notes
from kbcore.sync.file_status import stale_sources, unresolved_links
from kbcore.text.problems import FileProblem
from tests.support.repository.project import Project, document, req
from tests.support.repository.stores import Stored

REQS = "docs/requirements"
TESTS = "docs/tests"
BAD = "---\nid: REQ-9\ntitle: [broken\nstatus: open\n---\n"


def test_notes_are_counted_by_code_and_extractor_with_an_example() -> None:
    def note(code: str) -> FileProblem:
        return FileProblem(3, code, "A message.", "A hint.", "note")

    problems = [
        ("a.md", note("default_status")),
        ("b.feature", note("default_status")),
        ("c.md", note("default_status")),
        ("c.md", note("id_from_file_name")),
        ("d.md", FileProblem(1, "bad_link", "Wrong.", "Mend it.")),
    ]
    extractors = {"a.md": "markdown", "b.feature": "gherkin", "c.md": "markdown"}
    found = counted_notes(problems, extractors)
    assert [(one.code, one.extractor, one.count, one.path, one.line) for one in found] == [
        ("default_status", "markdown", 2, "a.md", 3),
        ("default_status", "gherkin", 1, "b.feature", 3),
        ("id_from_file_name", "markdown", 1, "c.md", 3),
    ]
    assert found[0].hint == "A hint."
    assert "statusDefault" in found[1].hint, "a feature file has no place for a status"


def test_json_lists_every_problem_but_counts_the_statuses_that_nobody_stated(project: Project) -> None:
    files = {f"{TESTS}/{number}.md": document(f"T-{number}", title="T") for number in range(3)}
    answer = project.sync({**files, f"{REQS}/1.md": BAD}).as_json()
    assert {one["code"] for one in answer["problems"]} == {"invalid_yaml"}
    assert [(one["code"], one["extractor"], one["count"]) for one in answer["notes"]] == [
        ("default_status", "markdown", 3)
    ]


def test_a_sync_of_some_paths_speaks_of_those_and_counts_the_rest(project: Project) -> None:
    project.sync({f"{REQS}/1.md": BAD, f"{TESTS}/1.md": req("T-1", links="[REQ-77]")})
    answer = project.sync({f"{TESTS}/2.md": req("T-2", links="[REQ-88]")}, paths=(TESTS,))
    assert (answer.problems, answer.bad) == ((), 0)
    assert answer.problems_elsewhere > 0
    assert [one.target for one in answer.unresolved] == ["REQ-77", "REQ-88"]
    other = project.sync(paths=(REQS,))
    assert ({path for path, _ in other.problems}, other.bad) == ({f"{REQS}/1.md"}, 1)
    assert (other.unresolved, other.unresolved_elsewhere, other.problems_elsewhere) == ((), 2, 0)


def test_a_sync_of_the_root_is_one_of_everything(project: Project) -> None:
    project.sync({f"{REQS}/{number}.md": req(f"REQ-{number}") for number in range(2)})
    answer = project.sync({f"{REQS}/1.md": None}, paths=("",))
    assert (answer.changed, answer.removed, answer.outcome.deleted) == (0, 1, ("REQ-1",))


def test_a_file_that_could_not_be_read_is_not_among_those_taken_in(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1")})
    answer = project.sync({f"{REQS}/1.md": BAD.replace("REQ-9", "REQ-1"), f"{REQS}/2.md": req("REQ-2")})
    assert (answer.changed, answer.unread, answer.bad) == (2, 1, 1)
    assert (project.sync().unread, project.sync().bad) == (0, 1)
    dry = project.sync({f"{REQS}/1.md": req("REQ-1"), f"{REQS}/2.md": BAD}, dry_run=True)
    assert (dry.unread, dry.bad) == (1, 1)


def test_stale_sources_are_the_files_whose_last_reading_failed(project: Project) -> None:
    project.sync({f"{REQS}/{number}.md": req(f"REQ-{number}") for number in range(3)})
    assert stale_sources(project.view()) == ()
    project.sync({f"{REQS}/2.md": BAD, f"{REQS}/1.md": BAD})
    assert stale_sources(project.view()) == (f"{REQS}/1.md", f"{REQS}/2.md")
    owners = set(project.node("REQ-1").owners.values())
    assert stale_sources(project.view(), owners) == (f"{REQS}/1.md",)
    assert stale_sources(project.view(), ()) == ()
    project.sync({f"{REQS}/2.md": req("REQ-2"), f"{REQS}/1.md": None})
    assert stale_sources(project.view()) == ()


@pytest.mark.parametrize("said", ["REQ-2", "TEST-9", ""])
def test_an_unresolved_edge_leads_as_it_is_recorded_and_is_reported_of_the_end_that_exists(tmp_path, said) -> None:
    stored = Stored(tmp_path)
    edge = StateLink(
        type="verified_by", kind="", from_id="REQ-2", to_id="TEST-9", base=0, src="b.md", set={}, said=said
    )
    stored.commit([edge])
    found = UnresolvedLink("REQ-2", "verified_by", "", "TEST-9", "b.md", id="REQ-2")
    assert unresolved_links(stored.view()) == (found,)
    stored.put("TEST-9")
    assert unresolved_links(stored.view()) == (msgspec.structs.replace(found, id="TEST-9"),)
    stored.close()
