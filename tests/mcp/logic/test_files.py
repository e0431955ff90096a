"""The tool files: imports of files, and which ones are refused."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_a_file_is_imported_with_its_source_and_its_place(prolog):
    text = "% Family\nparent(ann, Child) :-\n    child(Child, ann).\n\nchild(bob, ann).\n"
    answer = prolog.import_("rules/family.pl", text)
    path = str(prolog.root / "rules/family.pl")
    assert {key: answer[key] for key in ("type", "filename", "clausesAdded", "status", "errors")} == {
        "type": "file_import",
        "filename": path,
        "clausesAdded": 2,
        "status": "success",
        "errors": [],
    }
    assert prolog.snapshot() == "parent(ann, Child) :-\n    child(Child, ann).\nchild(bob, ann)."
    assert prolog.solutions("parent(ann, X)") == [{"X": "bob"}]
    [listed] = prolog.files()
    assert (listed["filename"], listed["clauseCount"]) == (path, 2)
    assert listed["timestamp"] > 1_600_000_000_000
    assert listed.keys() == {"filename", "clauseCount", "timestamp"}
    [clause] = prolog.call("kb_query", type="clause", where=["attributes.name=child/2"])["entities"]
    assert (clause["attributes"]["file"], clause["attributes"]["line"]) == ("rules/family.pl", 5)


def test_a_file_is_imported_once_by_whatever_name(prolog):
    prolog.import_("once.pl", "p(1).")
    for name in ("once.pl", "./once.pl", str(prolog.root / "once.pl")):
        assert prolog.error("files", operation="import", filename=name)["kind"] == "already_imported"
    assert prolog.snapshot() == "p(1)."


def test_two_files_are_tracked_each_by_itself(prolog):
    prolog.add("p(0).")
    prolog.import_("one.pl", "p(1).\np(2).\n")
    prolog.import_("two.pl", "p(3).\n")
    prolog.add("p(4).")
    assert [(Path(one["filename"]).name, one["clauseCount"]) for one in prolog.files()] == [
        ("one.pl", 2),
        ("two.pl", 1),
    ]
    assert prolog.snapshot() == "p(0).\np(1).\np(2).\np(3).\np(4)."
    answer = prolog.call("files", operation="unimport", filename="one.pl")
    assert (answer["type"], answer["clausesRemoved"], answer["status"]) == ("file_unimport", 2, "success")
    assert answer["filename"] == str(prolog.root / "one.pl")
    assert prolog.snapshot() == "p(0).\np(3).\np(4)."
    assert [one["X"] for one in prolog.solutions("p(X)")] == ["0", "3", "4"]
    assert [Path(one["filename"]).name for one in prolog.files()] == ["two.pl"]


def test_an_empty_list_of_files(prolog):
    answer = prolog.call("files", operation="list")
    assert (answer["type"], answer["files"], answer["count"]) == ("files_list", [], 0)


def test_a_file_that_was_not_imported_cannot_be_removed(prolog):
    prolog.write("other.pl", "p(1).")
    answer = prolog.failed("files", operation="unimport", filename="other.pl")
    assert (answer["status"], answer["clausesRemoved"]) == ("not_found", 0)
    assert "error" not in answer


def test_a_file_that_is_gone_can_be_removed_from_the_workspace(prolog):
    prolog.import_("gone.pl", "p(1).")
    (prolog.root / "gone.pl").unlink()
    [listed] = prolog.files()
    assert listed["problem"] == "file_not_found"
    assert prolog.call("files", operation="unimport", filename=listed["filename"])["clausesRemoved"] == 1


def test_a_file_that_changed_since_its_import_is_named(prolog):
    prolog.import_("changing.pl", "p(1).")
    prolog.write("changing.pl", "p(2).")
    assert prolog.files()[0]["changed"] is True
    assert prolog.snapshot() == "p(1)."
    prolog.call("files", operation="unimport", filename="changing.pl")
    prolog.call("files", operation="import", filename="changing.pl")
    assert "changed" not in prolog.files()[0]
    assert prolog.snapshot() == "p(2)."


def test_a_file_with_faults_is_imported_in_part(prolog):
    answer = prolog.import_("faulty.pl", "p(1).\np(2.\np(3).\nwrite(x) :- true.\np(4).\n")
    assert (answer["status"], answer["clausesAdded"]) == ("partial", 3)
    assert [one["line"] for one in answer["errors"]] == [2, 4]
    assert all(one["message"] for one in answer["errors"])
    assert prolog.snapshot() == "p(1).\np(3).\np(4)."


@pytest.mark.parametrize("text", ["", "% only a comment\n", "p(\n", ":- initialization(main).\n"])
def test_a_file_without_a_usable_clause_fails(prolog, text):
    prolog.write("failing.pl", text)
    answer = prolog.failed("files", operation="import", filename="failing.pl")
    assert (answer["type"], answer["status"], answer["clausesAdded"]) == ("file_import", "failed", 0)
    assert answer["errors"]
    assert prolog.files() == []


def test_comments_are_left_out_and_directives_are_honoured_or_refused_by_name(prolog):
    text = (
        "/* a comment */\n% another\n:- use_module(library(assoc)).\n:- dynamic(known/1).\n"
        ":- initialization(main).\n:- use_module(library(process)).\nmap(A) :- list_to_assoc([a-1], A). % end\n"
    )
    answer = prolog.import_("directives.pl", text)
    assert (answer["status"], answer["clausesAdded"]) == ("partial", 3)
    assert [one["line"] for one in answer["errors"]] == [5, 6]
    assert "initialization" in answer["errors"][0]["message"]
    assert "process" in answer["errors"][1]["message"]
    assert prolog.solutions("map(A), get_assoc(a, A, V)")[0]["V"] == "1"
    assert prolog.solutions("known(X)") == []
    assert "comment" not in prolog.snapshot()


@pytest.mark.sliced
def test_a_file_may_use_what_the_library_has_that_it_loads(prolog):
    text = ":- use_module(library(clpb)).\nt(X, Y) :- sat(X + ~Y), sat(~X), labeling([X, Y]).\n"
    assert prolog.import_("library.pl", text)["status"] == "success"
    assert prolog.solutions("t(X, Y)") == [{"X": "0", "Y": "0"}]


def test_what_cannot_be_read_is_refused_each_with_its_kind(prolog, tmp_path):
    (prolog.root / "folder").mkdir(exist_ok=True)
    (prolog.root / "latin.pl").write_bytes("p('\xe9').\n".encode("latin-1"))
    (tmp_path / "outside.pl").write_text("p(1).")
    link = prolog.root / "link.pl"
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path / "outside.pl")
    kinds = {
        "missing.pl": "file_not_found",
        "folder": "is_directory",
        "latin.pl": "encoding",
        "../outside.pl": "file_path_violation",
        str(tmp_path / "outside.pl"): "file_path_violation",
        "link.pl": "file_path_violation",
        "/etc/passwd": "file_path_violation",
        "/proc/self/environ": "file_path_violation",
    }
    found = {name: prolog.error("files", operation="import", filename=name)["kind"] for name in kinds}
    assert found == kinds


def test_a_file_with_a_very_long_name_is_not_there_and_its_name_is_cut_in_the_message(prolog):
    error = prolog.error("files", operation="import", filename="x" * 5000)
    assert (error["kind"], len(error["message"]) < 300) == ("file_not_found", True)
