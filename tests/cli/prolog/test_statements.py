"""``kb prolog``: statements, which show and change the workspace, and the records of their changes."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.processes.cli import WINE, write


@pytest.mark.sliced
def test_what_a_statement_adds_is_a_record_that_log_and_revert_know(synced, kb, engine):
    ran = kb("prolog", "-g", f":assert {WINE}", "-g", "likes(ann, X)")
    assert ran.status == 0, ran.err
    assert ran.out == "3 clauses added. Branch main is at seq 2.\nX = red ;\nX = white.\n"
    assert kb("prolog", "-g", ":snapshot").out == WINE
    assert kb("prolog", "-g", ":symbols").out == "likes/2\nwine/1\n"
    assert kb("prolog", "-g", ":retract wine(_). wine(red).").status == 32
    assert kb("prolog", "-g", "wine(X)").out == "X = white.\n"
    assert kb("prolog", "-g", "wine(X)", "--at", "2").out == "X = red ;\nX = white.\n"
    assert kb("revert", "3").status == 0
    assert kb("prolog", "-g", "wine(X)").out == "X = red ;\nX = white.\n"
    ran = kb("prolog", "-g", ":reset")
    assert ran.out == "3 clauses removed. Branch main is at seq 5.\n"
    assert ran.err == "`kb revert 5` brings them back.\n"
    assert kb("prolog", "-g", ":snapshot").err == "There is no clause.\n"


@pytest.mark.sliced
def test_one_wrong_clause_keeps_no_other_from_being_added(synced, kb, engine):
    ran = kb("prolog", "-g", ":assert p(1). p(. p(2). append(a, b, c).")
    assert ran.status == 32
    assert ran.out == "2 clauses added. Branch main is at seq 2.\n"
    lines = ran.err.splitlines()
    assert lines[0] == "error: 2 clauses not added."
    assert lines[1].startswith("  p(.: Syntax error: ")
    assert lines[2] == (
        "  append(a, b, c).: `append/3` is refused as the head of a clause: it is built in, or of a library. "
        "Choose another name."
    )
    assert "Nothing was written" not in ran.err
    found = kb("prolog", "-g", ":assert p(", "--json").json["error"]
    assert (found["code"], found["applied"], "added" in found) == ("prolog_error", "no", False)
    found = kb("prolog", "-g", ":assert p(3). p(", "--json").json["error"]
    assert (found["applied"], found["added"], found["seq"]) == ("yes", ["p(3)."], 3)
    assert [one["path"] for one in found["details"]] == ["p("]


@pytest.mark.sliced
def test_files_are_imported_listed_and_removed(synced, kb, engine, tmp_path):
    write(synced, {"rules/wine.pl": f"{WINE}% the end\n", "bad.pl": "p(1).\np(.\n:- initialization(main).\n"})
    assert kb("prolog", "-g", ":files").err == "No file is imported.\n"
    ran = kb("prolog", "-g", ":import wine.pl", cwd=synced / "rules")
    assert ran.out == "3 clauses of rules/wine.pl added. Branch main is at seq 2.\n"
    again = kb("prolog", "-g", ":import rules/wine.pl")
    assert (again.status, "rules/wine.pl is imported already." in again.err) == (32, True)
    bad = kb("prolog", "-g", ":import bad.pl")
    assert bad.status == 32
    assert [line.partition(": ")[0] for line in bad.err.splitlines()[1:3]] == ["  bad.pl:2", "  bad.pl:3"]
    write(synced, {"rules/wine.pl": "wine(rose).\n"})
    listed = kb("prolog", "-g", ":files").out.splitlines()
    assert re.fullmatch(r"rules/wine\.pl\s+3\s+\S+ \S+ UTC\s+changed since", listed[1])
    assert re.fullmatch(r"bad\.pl\s+1\s+\S+ \S+ UTC\s*", listed[2])
    assert kb("prolog", "-g", ":unimport 'rules/wine.pl'").out.startswith("3 clauses of rules/wine.pl removed.")
    gone = kb("prolog", "-g", ":unimport rules/wine.pl")
    assert (gone.status, "rules/wine.pl is not imported." in gone.err) == (32, True)
    outside = tmp_path / "outside"
    write(outside, {"a.pl": "a(1).\n"})
    refused = kb("prolog", "-g", f":import {outside / 'a.pl'}")
    assert (refused.status, "--kb-roots" in refused.err) == (32, True)
    assert kb("prolog", "-g", f":import {outside / 'a.pl'}", "--kb-roots", outside).status == 0


def test_a_file_of_another_folder_is_unimported_without_that_folder(synced, kb, any_engine, tmp_path):
    outside = tmp_path / "outside"
    write(outside, {"a.pl": "a(1).\n", "b.pl": "b(1).\n"})
    write(synced, {"c.pl": "c(1).\n"})
    for name in (outside / "a.pl", outside / "b.pl", "c.pl"):
        assert kb("prolog", "-g", f":import {name}", "--kb-roots", outside).status == 0
    (synced / "c.pl").unlink()
    (synced / "c.pl").symlink_to(outside / "a.pl")
    listed = kb("prolog", "-g", ":files").out.splitlines()[1:]
    assert [line.split("UTC")[1].strip() for line in listed] == ["outside of the folders"] * 3
    found = kb("prolog", "-g", ":files", "--json").json["answers"][0]["files"]
    assert [(one["is_changed"], one["problem"]) for one in found] == [(False, "file_path_violation")] * 3
    (outside / "b.pl").unlink()
    for name in (outside / "a.pl", outside / "b.pl", "c.pl"):
        ran = kb("prolog", "-g", f":unimport {name}")
        assert (ran.status, ran.out[:12]) == (0, "1 clause of "), ran.err
    gone = kb("prolog", "-g", f":unimport {outside / 'a.pl'}")
    assert (gone.status, "is not imported" in gone.err) == (32, True)


def test_what_a_record_says_of_a_file_outside_is_unimported_by_that_name(synced, kb, any_engine):
    clause = {"text": "p(1).", "key": "a", "name": "p/1", "kind": "clause", "order": 1, "file": "../../../etc/passwd"}
    entity = {"id": "clause:00000000000000aa", "type": "clause", "attributes": clause}
    write(synced, {"changeset.json": json.dumps({"entities": [entity]})})
    assert kb("apply", "changeset.json").status == 0
    assert kb("prolog", "-g", ":unimport ../../../etc/passwd").out.startswith(
        "1 clause of ../../../etc/passwd removed."
    )


def test_an_entity_of_the_type_of_clauses_with_another_id_is_refused_with_the_form_of_the_id(synced, kb):
    entity = {"id": "mine", "type": "clause", "attributes": {"text": "p(1)."}}
    write(synced, {"changeset.json": json.dumps({"entities": [entity]})})
    ran = kb("apply", "changeset.json")
    assert "'mine' is no id of an entity of KB's own type 'clause'" in ran.err
    assert "`clause:` and 16 hexadecimal digits" in ran.err


def test_a_predicate_that_is_declared_is_listed_and_marked(synced, kb, any_engine):
    words = ("prolog", "-g", ":assert :- dynamic d/1, p/1. p(1).", "-g", ":symbols")
    assert kb(*words).out.splitlines()[-2:] == ["d/1  % declared, no clause", "p/1"]
    [answer] = kb("prolog", "-g", ":symbols", "--json").json["answers"]
    assert answer == {"statement": ":symbols", "predicates": ["d/1", "p/1"], "declared": ["d/1"]}


def test_a_clause_whose_record_has_any_key_is_retracted(synced, kb, any_engine):
    clause = {"text": "h(3).", "key": "00", "kind": "clause", "name": "h/1", "order": 1}
    entity = {"id": "clause:0000000000000002", "type": "clause", "attributes": clause}
    write(synced, {"changeset.json": json.dumps({"entities": [entity]})})
    assert kb("apply", "changeset.json").status == 0
    assert kb("prolog", "-g", ":retract h(3).").status == 0
    assert kb("prolog", "-g", "h(X)").status == 32


def test_of_an_import_with_very_many_faults_the_first_ones_are_described_and_all_are_counted(synced, kb, any_engine):
    write(synced, {"many.pl": "a b.\n" * 1000 + "c.\n"})
    ran = kb("prolog", "-g", ":import many.pl", "--json")
    assert ran.status == 32
    error = ran.json["error"]
    assert error["message"] == "1000 clauses of many.pl not added."
    assert (len(error["details"]), error["details"][-1]["path"]) == (200, "many.pl:200")
    assert kb("prolog", "-g", ":snapshot").out == "c.\n"
