"""Every file that states facts could be read."""

from __future__ import annotations

from kbcore.model.graph import NoteOnFile, SyncedFile
from tests.support.views.graph import graph_of
from tests.support.views.rules import violations

RULE = "unreadable-source"


def source(path, *notes, is_ok=False):
    return SyncedFile(path, "hash", "markdown", is_ok, notes, 1)


def test_files_that_were_read_break_nothing_whatever_was_noted():
    assert violations(graph_of(files=[source("a.md", NoteOnFile(1, "c", "Odd."), is_ok=True)]), RULE) == []


def test_each_error_of_a_file_is_a_violation_with_its_line_and_remedy():
    notes = [
        NoteOnFile(3, "yaml", "A quote is missing.", "Close it."),
        NoteOnFile(0, "encoding", "It is not UTF-8."),
        NoteOnFile(9, "default_status", "No status.", severity="note"),
    ]
    whole, line = violations(graph_of(files=[source("docs/r.md", *notes)]), RULE)
    assert (line.id, line.severity, line.source) == ("docs/r.md", "error", "docs/r.md")
    assert (line.message, line.line) == ("A quote is missing.", 3)
    assert line.hint.startswith("Close it. Until then")
    assert (whole.message, whole.line) == ("It is not UTF-8.", 0)
    assert whole.hint.startswith("Until then")


def test_faults_come_in_the_order_of_lines_and_say_once_what_becomes_of_them():
    notes = [
        NoteOnFile(13, "a", "Late.", "Mend it; until then it is left out.", id="A"),
        NoteOnFile(6, "a", "Early.", "Mend it."),
    ]
    early, late = violations(graph_of(files=[source("docs/r.md", *notes)]), RULE)
    assert [(one.line, one.message) for one in (early, late)] == [(6, "Early."), (13, "Late.")]
    assert early.hint.lower().count("until then") == late.hint.lower().count("until then") == 1


def test_a_file_without_a_reason_is_reported_all_the_same():
    [found] = violations(graph_of(files=[source("docs/r.md")]), RULE)
    assert "kb sync" in found.hint


def test_what_is_left_out_of_a_file_that_is_read_is_a_warning_unless_another_rule_reports_it():
    notes = [
        NoteOnFile(8, "second_front_matter", "A second block is not read.", "Join them.", "warning"),
        NoteOnFile(3, "unknown_status", "'x' is no status.", "", "warning"),
        NoteOnFile(4, "unresolved_path", "It defines nothing.", "", "warning"),
        NoteOnFile(9, "default_status", "No status.", severity="note"),
    ]
    for is_ok in (True, False):
        found = violations(graph_of(files=[source("a.md", *notes, is_ok=is_ok)]), RULE)
        assert [(one.severity, one.line, one.code) for one in found if one.line] == [
            ("warning", 8, "second_front_matter")
        ]
        assert [one.severity for one in found if not one.line] == ["error"] * (not is_ok)
        [warning] = [one for one in found if one.line]
        assert warning.hint == "Join them."
