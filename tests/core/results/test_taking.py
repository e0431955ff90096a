"""Reports become verdicts of tests: one record, none where nothing changed, and nobody else's work is lost."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from kbcli.messages import run_results
from kbcore import limits
from kbcore.errors import InvalidChangeset, InvalidReport, LimitExceeded
from kbcore.model.claims.change import SetField
from kbcore.model.verdict import RUN, VERDICT, Verdict
from kbcore.query.coverage import count as count_coverage
from kbcore.query.coverage import read as read_coverage
from kbcore.query.impact import impact, impact_json
from kbcore.query.subject import find
from kbcore.results import taking
from kbcore.results.recording import record
from kbcore.results.taking import commit_named
from kbcore.rules.edge_confirmation import suspect_edges
from kbcore.storage.fs import RealFs
from kbcore.store.history import undo
from tests.core.results.reporting import COMMIT, DOCUMENTS, junit, take, take_files, verdict
from tests.support.repository.project import AUTHOR, Project, document
from tests.support.repository.repos import git

FAILING = junit(("adds up", "failure", "expected 4"), ("is empty", "", ""))
PASSING = junit(("adds up", "", ""), ("is empty", "", ""))


def test_outcomes_are_one_record_of_the_source_results(tested):
    answer = take(tested, FAILING)
    outcome = answer.recorded.outcome
    assert (outcome.applied, outcome.updated) == (True, ("T-1", "T-2"))
    assert [one.id for one in answer.new_failures] == ["T-1"]
    found = verdict(tested, "T-1")
    assert (found.outcome, found.message, found.commit, found.duration_s) == ("failed", "expected 4", COMMIT, 0.5)
    assert (found.since, found.since_commit) == (found.at, COMMIT)
    record = tested.view().rows("select source, message from record where seq = ?", [outcome.seq])
    assert record == [("results", "build/r0.xml")]


def test_the_same_outcomes_again_leave_no_record(tested):
    take(tested, FAILING)
    before, seq = verdict(tested, "T-1"), tested.seq()
    answer = take(tested, FAILING.replace('time="0.5"', 'time="9"'), commit="b" * 40)
    assert (answer.recorded.outcome.applied, answer.recorded.unchanged) == (False, 2)
    assert (tested.seq(), verdict(tested, "T-1")) == (seq, before)


def test_another_message_is_recorded_and_the_test_fails_since_the_first_failure(tested):
    take(tested, FAILING)
    since = verdict(tested, "T-1").since
    take(tested, FAILING.replace("expected 4", "expected 5"), commit="b" * 40)
    found = verdict(tested, "T-1")
    assert (found.message, found.commit) == ("expected 5", "b" * 40)
    assert (found.since, found.since_commit) == (since, COMMIT)
    fixed = take(tested, PASSING).fixed
    assert [(one.id, one.before.since) for one in fixed] == [("T-1", since)]
    assert verdict(tested, "T-1").since == ""


def test_of_a_test_in_several_reports_the_worst_outcome_counts(tested):
    take(tested, PASSING, FAILING, junit(("adds up", "skipped", "")))
    assert verdict(tested, "T-1").outcome == "failed"
    assert verdict(tested, "T-2").outcome == "passed"


def test_an_earlier_run_than_the_recorded_one_changes_nothing_and_is_named(tested):
    def at(text: str, day: int) -> str:
        return text.replace("<testsuite>", f'<testsuite timestamp="2026-01-{day:02}T12:00:00Z">')

    take(tested, at(FAILING, 20))
    answer = take(tested, at(PASSING, 10))
    assert answer.recorded.earlier == ("T-1",)
    assert verdict(tested, "T-1").outcome == "failed"


def test_a_run_of_a_clock_that_is_ahead_does_not_make_later_runs_earlier_ones(tested):
    take(tested, FAILING.replace("<testsuite>", '<testsuite timestamp="2999-01-01T12:00:00Z">'))
    take(tested, PASSING)
    assert verdict(tested, "T-1").outcome == "passed"


def test_tests_that_are_unknown_are_counted_and_the_first_are_named(tested):
    cases = [(f"unknown {number}", "failure" if number < 3 else "", "no") for number in range(50)]
    answer = take(tested, junit(*cases))
    assert (answer.unmatched_count, answer.unmatched_failing, len(answer.unmatched)) == (50, 3, 10)
    assert answer.unmatched[0].name == "unknown 0"
    assert not answer.recorded.outcome.applied


def test_a_verdict_that_a_file_states_stays_its_own(tested):
    tested.sync({"docs/tests/a.md": document("T-1", title="adds up", status="active", test_verdict="failed by hand")})
    answer = take(tested, FAILING)
    assert answer.recorded.stated == {"T-1": "docs/tests/a.md"}
    assert answer.recorded.outcome.updated == ("T-2",)


def test_a_test_of_a_manifest_is_run_by_the_file_that_it_names(project):
    listed = "symbols:\n  - {id: T-9, type: test, title: All of it, status: active, file: tests/test_a.py}\n"
    project.sync({"symbols.yaml": listed})
    text = '<testsuite><testcase classname="tests.test_a.TestX" name="test_{}">{}</testcase></testsuite>'
    take(project, text.format("b", ""), text.format("c", "<failure/>"))
    assert verdict(project, "T-9").outcome == "failed"


def test_a_sync_and_other_clients_leave_a_verdict_as_it_is(tested):
    take(tested, FAILING)
    before = verdict(tested, "T-1")
    tested.sync({"docs/tests/a.md": document("T-1", title="adds up", status="retired", type="test")})
    tested.apply(entities=[{"id": "T-1", "attributes": {"lab": 3}, "replace": True}])
    assert verdict(tested, "T-1") == before
    tested.sync({"docs/tests/a.md": None, "docs/tests/moved.md": DOCUMENTS["docs/tests/a.md"]})
    assert verdict(tested, "T-1") == before


@pytest.mark.parametrize("attributes", [{"test_verdict": "passed"}, {"test_run": {}}, {"test_verdict": None}])
def test_no_other_client_sets_or_removes_a_verdict(tested, attributes):
    take(tested, FAILING)
    before = verdict(tested, "T-1")
    with pytest.raises(InvalidChangeset) as refused:
        tested.apply(entities=[{"id": "T-1", "attributes": attributes}])
    assert [one.code for one in refused.value.details] == ["set_by_kb"]
    assert verdict(tested, "T-1") == before
    with pytest.raises(InvalidChangeset):
        tested.apply(entities=[{"id": "T-9", "type": "test", "title": "n", "status": "a", "test_verdict": "passed"}])


def test_a_verdict_makes_no_edge_suspect_and_confirms_none(tested):
    tested.apply(entities=[{"id": "T-1", "attributes": {"lab": 3}}])
    suspect = {one.id for one in suspect_edges(tested.view().rows, None)}
    take(tested, FAILING)
    take(tested, PASSING)
    assert suspect
    assert {one.id for one in suspect_edges(tested.view().rows, None)} == suspect


def test_a_verdict_is_no_claim_of_a_change(tested):
    take(tested, FAILING)
    workspace = tested.workspace()
    undo.revert(workspace, "main", AUTHOR, [tested.seq()], options=undo.UndoOptions(), follows_head=True)
    assert verdict(tested, "T-1") is None
    store = workspace.store("main")
    tested.apply(entities=[{"id": "T-1", "owner": "ann"}])
    claims = [claim for change in store.claims().all_changes() for claim in change.claims]
    fields = {one.field for one in claims if isinstance(one, SetField)}
    assert "owner" in fields
    assert not fields & {VERDICT, RUN}


def test_a_revert_takes_a_verdict_back(tested):
    take(tested, PASSING)
    take(tested, FAILING)
    undo.revert(tested.workspace(), "main", AUTHOR, [tested.seq()], options=undo.UndoOptions(), follows_head=True)
    assert verdict(tested, "T-1").outcome == "passed"


def test_a_dry_run_says_what_would_change_and_writes_nothing(tested):
    answer = take(tested, FAILING, dry_run=True)
    assert [one.id for one in answer.recorded.flips] == ["T-1", "T-2"]
    assert verdict(tested, "T-1") is None


def test_verdicts_are_of_the_branch_that_is_checked_out(tested):
    tested.switch("topic", create=True)
    take(tested, FAILING)
    assert verdict(tested, "T-1").outcome == "failed"
    tested.switch("main")
    assert verdict(tested, "T-1") is None


def test_of_several_reports_none_is_taken_in_where_some_cannot_be_used(tested):
    seq = tested.seq()
    with pytest.raises(InvalidReport) as refused:
        take(tested, FAILING, "<testsuite>", "")
    assert [(one.code, one.path) for one in refused.value.details] == [
        ("malformed_xml", "build/r1.xml:1"),
        ("empty_report", "build/r2.xml"),
    ]
    assert all(one.hint for one in refused.value.details)
    assert tested.seq() == seq


def test_a_glob_means_the_reports_below_a_folder_and_what_is_not_there_is_refused(tested):
    tested.write({"build/a/x.xml": FAILING, "build/b/y.xml": PASSING})
    assert len(take_files(tested, "build/**/*.xml").reports) == 2
    for name, code in (("build/none.xml", "not_found"), ("none/*.xml", "not_found"), ("../*.xml", "bad_glob")):
        with pytest.raises(InvalidReport) as refused:
            take_files(tested, name)
        assert [one.code for one in refused.value.details] == [code]


def test_more_tests_than_the_limit_are_refused(tested, monkeypatch):
    monkeypatch.setattr(limits, "MAX_REPORTED_TESTS", 1)
    with pytest.raises(LimitExceeded, match="More than 1 tests"):
        take(tested, PASSING)


def test_more_verdicts_than_a_changeset_of_a_client_may_have_are_one_record(project):
    count = limits.MAX_CHANGESET_ITEMS + 1
    listed = "".join(
        f'  - {{id: "T-{number}", type: test, title: "test {number}", status: active}}\n' for number in range(count)
    )
    project.sync({"symbols.yaml": f"symbols:\n{listed}"})
    answer = take(project, junit(*((f"test {number}", "", "") for number in range(count))))
    assert (answer.matched, len(answer.recorded.outcome.updated)) == (count, count)


def test_a_revision_names_the_commit_that_was_tested(tested):
    head = git(tested.root, "rev-parse", "HEAD").strip()
    assert commit_named(tested.workspace(), "HEAD") == head
    with pytest.raises(InvalidReport, match="is no commit of this clone"):
        commit_named(tested.workspace(), "no-such")


def test_a_new_edge_to_a_failing_test_is_warned_of_when_it_is_written(tested):
    take(tested, FAILING)
    answer = tested.apply(edges=[{"type": "verified_by", "from": "REQ-1", "to": "T-1"}])
    assert not [one for one in answer.warnings if one.startswith("failing-test")], "it was so before"
    answer = tested.apply(
        entities=[{"id": "REQ-2", "type": "req", "title": "New", "status": "open"}],
        edges=[{"type": "verified_by", "from": "REQ-2", "to": "T-1"}],
    )
    [warning] = [one for one in answer.warnings if one.startswith("failing-test")]
    assert warning.startswith("failing-test (error): REQ-2 is verified by T-1, but that test fails since ")


def test_coverage_and_impact_say_which_requirement_fails_and_since_when(tested):
    take(tested, FAILING)
    view, schema = tested.view(), tested.workspace().schema
    [requirement] = read_coverage(view.rows, None).requirements
    assert [one.id for one in requirement.failing] == ["T-1"]
    assert count_coverage(view.rows, None).total.as_json()["failing"] == 1
    start = find(view.rows, "REQ-1", None)
    found = impact_json(impact(view.rows, schema, start), depth=5, limit=10)
    [failing] = found["failing"]
    assert (failing["id"], failing["tests"][0]["since_commit"]) == ("REQ-1", COMMIT)
    assert found["tests"][0]["verdict"]["outcome"] == "failed"
    before = view.seq - 1
    assert read_coverage(view.rows, before).requirements[0].failing == ()


def test_two_processes_that_record_at_once_lose_nothing(tested):
    tested.sync({f"docs/tests/n{number}.md": document(f"N-{number}", title=f"n {number}", status="active", type="test")
                 for number in range(20)})  # fmt: skip
    others = [Project(Path(tested.root), fs=RealFs(), is_new=False) for _ in range(2)]
    reports = [junit((f"n {number}", "failure", "no")) for number in range(20)]
    tested.write({f"build/n{number}.xml": text for number, text in enumerate(reports)})

    def record(part: int) -> None:
        for number in range(part, 20, 2):
            take_files(others[part], f"build/n{number}.xml")

    threads = [threading.Thread(target=record, args=(part,)) for part in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in others:
        one.close()
    assert all(verdict(tested, f"N-{number}").outcome == "failed" for number in range(20))


def test_a_folder_in_the_place_of_a_report_is_named(tested):
    (Path(tested.root) / "build/a.xml").mkdir(parents=True)
    with pytest.raises(InvalidReport, match="cannot be"):
        take_files(tested, "build/a.xml")


def test_a_test_that_went_while_reports_were_read_gets_no_verdict_and_is_named(tested):
    verdicts = {"T-1": Verdict("failed"), "T-9": Verdict("failed")}
    recorded = record(tested.workspace(), "main", AUTHOR, verdicts, message="r.xml", follows_head=True)
    assert ([one.id for one in recorded.flips], recorded.gone) == (["T-1"], ("T-9",))
    answer = msgspec.structs.replace(take(tested, FAILING), recorded=recorded)
    assert answer.as_json()["gone"] == ["T-9"]
    assert any("1 test went" in line and "T-9" in line for line in run_results.warnings(answer))


def test_more_pairs_of_requirements_and_tests_than_the_limit_are_refused(tested, monkeypatch):
    monkeypatch.setattr(taking, "MAX_VERIFIED", 1)
    named = '<property name="verifies" value="REQ-1 REQ-2"/>'
    with pytest.raises(LimitExceeded, match="pairs of a requirement and a test"):
        take(tested, f'<testsuite><testcase name="adds up">{named}</testcase></testsuite>')
