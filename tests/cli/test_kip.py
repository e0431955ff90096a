"""``kb kip``: commands from the command line, from a file, from standard input, and at a prompt."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from kbcli.commands import export as export_command
from kbcore.store import facts_export
from tests.support.processes.cli import LOGIN, write
from tests.support.processes.terminal import Terminal
from tests.support.repository.places import stores_at

TYPE = 'UPSERT { CONCEPT {{type: "$ConceptType", name: "Thing"} SET ATTRIBUTES {description: "A thing."}} }'
REQUIREMENTS = 'FIND(?r.name, ?r.attributes.title) WHERE { ?r {type: "Requirement"} }'


def test_rows_are_a_table_and_the_way_to_more_is_said(synced, kb):
    ran = kb("kip", f"{REQUIREMENTS} LIMIT 1")
    assert ran.status == 0
    assert ran.out.splitlines()[0].split() == ["?r.name", "?r.attributes.title"]
    assert ran.out.splitlines()[1].startswith("REQ-1")
    assert 'add CURSOR "' in ran.err


def test_json_is_the_answer_of_execute_kip(synced, kb):
    assert json.loads(kb("kip", 'FIND(COUNT(?r)) WHERE { ?r {type: "Requirement"} }', "--json").out) == {"result": 2}
    ran = kb("kip", "FIND(?r", "--json")
    assert ran.status == 18
    assert json.loads(ran.out)["error"]["code"] == "KIP_1001"
    assert ran.err == ""
    several = json.loads(kb("kip", "DESCRIBE CONCEPT TYPES LIMIT 1 DESCRIBE CONCEPT TYPES LIMIT 1", "--json").out)
    assert [list(one) for one in several["result"]] == [["result", "next_cursor"]] * 2


def test_an_error_shows_the_line_and_marks_the_place(synced, kb):
    ran = kb("kip", 'FIND(?x)\nWHERE { ?x {type: "Persn"} }')
    assert ran.status == 18
    lines = ran.err.splitlines()
    assert lines[0].startswith("error: KIP_2001 TypeMismatch: ")
    assert lines[1] == '  2 | WHERE { ?x {type: "Persn"} }'
    assert lines[2].index("^") == lines[1].index('"Persn"')
    assert lines[3].startswith("hint: ")


def test_parameters_are_json_where_they_are_json_else_text(synced, kb):
    write = 'UPSERT { CONCEPT {{type: "Person", name: :name} SET ATTRIBUTES {n: :n, l: :l, t: :t, e: :e}} }'
    given = ("name=Ann Lee", "n=3", 'l=["a", 1]', "t=[open", "e=")
    ran = kb("kip", write, *(word for one in given for word in ("--param", one)))
    assert ran.status == 0, ran.err
    found = 'FIND(?p.attributes.n, ?p.attributes.l, ?p.attributes.t, ?p.attributes.e) WHERE { ?p {name: "Ann Lee"} }'
    assert json.loads(kb("kip", found, "--json").out) == {"result": [[3], [["a", 1]], ["[open"], [""]]}
    for wrong in ("name", "=3"):
        ran = kb("kip", write, "--param", wrong)
        assert (ran.status, "NAME=VALUE" in ran.err) == (2, True)
    assert "--param name=VALUE" in kb("kip", write).err


def test_a_file_is_a_batch_and_its_errors_name_its_lines(synced, kb):
    (synced / "notes.kip").write_text(f'// first the type\n{TYPE}\n\nDESCRIBE CONCEPT TYPE "Thing"\n  FIND(?x)\n')
    ran = kb("kip", "-f", "notes.kip")
    assert ran.status == 18
    assert ran.out == ""
    assert "(line 6, column 1)" in ran.err
    assert "No command of the text was run: the whole text is parsed first." in ran.err
    assert kb("kip", 'DESCRIBE CONCEPT TYPE "Thing"').status == 18
    (synced / "notes.kip").write_text(f'{TYPE}\n\n  DESCRIBE CONCEPT TYPE "Thng"\nDESCRIBE PRIMER\n')
    ran = kb("kip", "-f", "notes.kip")
    assert ran.status == 18
    assert "$ConceptType:Thing" in ran.out
    assert "(line 3, column 25). This is command 2 of 3." in ran.err
    assert kb("kip", 'DESCRIBE CONCEPT TYPE "Thing"').status == 0


@pytest.mark.parametrize("words", [("-",), ("-f", "-"), ()])
def test_standard_input_is_read(synced, kb, words):
    ran = kb("kip", *words, stdin=f"{REQUIREMENTS}\nDESCRIBE DOMAINS")
    assert ran.status == 0
    assert "REQ-1" in ran.out
    assert "CoreSchema" in ran.out


def test_a_dry_run_writes_nothing(synced, kb):
    ran = kb("kip", TYPE, "--dry-run")
    assert (ran.status, "dry run" in ran.err) == (0, True)
    assert ran.out.splitlines()[0].split() == ["dry", "run", "true"]
    assert "$ConceptType:Thing" in ran.out
    assert kb("kip", 'DESCRIBE CONCEPT TYPE "Thing"').status == 18


@pytest.mark.sliced(3)
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("DESCRIBE PRIMER", ["Person $self", "CoreSchema", "In no domain: Requirement 2, Test 1"]),
        ("DESCRIBE DOMAINS", ["DOMAIN", "Unsorted"]),
        ("DESCRIBE CONCEPT TYPES", ["Requirement\n"]),
        ('DESCRIBE CONCEPT TYPE "Person"', ["ATTRIBUTE", "(AI, Human, Organization, System)", "incoming"]),
        ('SEARCH CONCEPT "person" LIMIT 1', ["SCORE", "1.00", "$ConceptType"]),
        ('SEARCH PROPOSITION "belongs" LIMIT 1', ["SUBJECT", "belongs_to_domain"]),
        ('FIND(?r) WHERE { ?r {type: "Requirement"} }', ["ATTRIBUTES", "title: "]),
        ('FIND(?r.metadata._version) WHERE { ?r {name: "REQ-1"} }', ["?r.metadata._version\n1"]),
        ('FIND(COUNT(?r), COUNT(DISTINCT ?r.type)) WHERE { ?r {name: "REQ-1"} }', ["COUNT(DISTINCT ?r.type)", "1\t1"]),
        ('EXPORT ?r WHERE { ?r {name: "REQ-1"} }', ["UPSERT {"]),
    ],
)
def test_every_answer_has_a_form_for_people(synced, kb, command, shown):
    ran = kb("kip", command)
    assert ran.status == 0, ran.err
    assert [one for one in shown if one not in ran.out] == []


def test_a_description_that_is_no_text_is_shown_as_it_is(synced, kb):
    kb("kip", 'UPSERT { CONCEPT { {type: "Domain", name: "Odd"} SET ATTRIBUTES { description: [1, 2] } } }')
    for command in ("DESCRIBE PRIMER", "DESCRIBE DOMAINS"):
        ran = kb("kip", command)
        assert (ran.status, "[1,2]" in ran.out) == (0, True), ran.err


def test_nothing_found_is_said(synced, kb):
    for command in ('FIND(?x) WHERE { ?x {name: "none"} }', 'SEARCH CONCEPT "zzzqqq"'):
        ran = kb("kip", command)
        assert (ran.status, ran.out) == (0, "")
        assert "Nothing was found." in ran.err


def test_what_is_stored_never_acts_on_the_terminal(synced, kb):
    kb("kip", 'UPSERT { CONCEPT {{type: "Person", name: :n} SET ATTRIBUTES {x: :n}} }', "--param", "n=a\u202eb")
    ran = kb("kip", 'FIND(?p.attributes.x) WHERE { ?p {type: "Person"} FILTER(IS_NOT_NULL(?p.attributes.x)) }')
    assert "\u202e" not in ran.out
    assert r"\u202e" in ran.out


def test_an_error_of_kb_ends_with_its_own_status(synced, kb):
    edit = 'UPSERT { CONCEPT {{type: "Requirement", name: "REQ-1"} SET ATTRIBUTES {title: "x"}} }'
    assert "docs/requirements" in kb("kip", edit).err
    assert kb("kip", "DESCRIBE PRIMER", "-f", "x").status == 2
    assert kb("kip", "-f", "missing.kip").status == 2
    (synced / ".kb" / "config.json").write_text("{broken")
    assert kb("kip", "DESCRIBE PRIMER").status == 63


@pytest.mark.sliced
def test_the_current_state_is_exported_and_applied_elsewhere(synced, kb, tmp_path, models):
    assert "3 entities and" in kb("export", "all.json").out
    (synced / "all.json").write_text("of somebody")
    ran = kb("export", "all.json")
    assert (ran.status, "--force" in ran.err, (synced / "all.json").read_text()) == (2, True, "of somebody")
    assert kb("export", "all.json", "--force").status == 0
    first = (synced / "all.json").read_text()
    assert kb("export").out == first
    lines = kb("export", "-", "--format", "jsonl").out.splitlines()
    assert json.loads(lines[0])["id"] == "REQ-1"
    import shutil

    other = shutil.copytree(models / "ready", tmp_path / "other", symlinks=True)
    assert kb("apply", "--import", synced / "all.json", cwd=other).status == 0
    assert kb("export", cwd=other).out == first
    assert json.loads(kb("export", "again.json", "--json", cwd=other).out)["entities"] == 3


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("name", "hint"),
    [("x.tsv", "kb query --format tsv"), ("x", "with --format"), ("x.txt", ".reqif")],
)
def test_an_export_has_the_format_that_its_ending_names(synced, kb, name, hint):
    ran = kb("export", name)
    assert (ran.status, hint in ran.err, (synced / name).exists()) == (2, True, False)
    assert kb("export", name, "--format", "jsonl").status == 0
    assert kb("export", "y.JSONL").status == 0
    assert (synced / "y.JSONL").read_text() == (synced / name).read_text()


def test_an_export_that_one_changeset_cannot_hold_has_numbered_parts(synced, kb, monkeypatch):
    monkeypatch.setattr(facts_export.limits, "MAX_CHANGESET_ITEMS", 2)
    assert kb("export", "all.json").status == 0
    names = sorted(path.name for path in synced.glob("all.*.json"))
    assert names[:2] == ["all.1.json", "all.2.json"]
    ran = kb("export")
    assert (ran.status, "Name a file" in ran.err) == (14, True)
    assert export_command._names("x/y.json", 2) == ["x/y.1.json", "x/y.2.json"]
    assert kb("export", "no/such/folder.json").status == 24


def at_prompt(cwd, state, *words):
    return Terminal(cwd, state, "kip> ", "kip", *words)


@pytest.mark.sliced
def test_the_prompt_reads_until_a_command_is_whole(synced, tmp_path):
    state = tmp_path / "state"
    at = at_prompt(synced, state, "--param", "name=REQ-1")
    assert "CoreSchema" in at.type("DESCRIBE DOMAINS\n")
    at.type("FIND(?r.name)\n", until=" ... ")
    at.type('WHERE { ?r {type: "Requirement", name: :name} }\n', until=" ... ")
    at.type("LIMIT 5\n", until=" ... ")
    assert re.search(r"^REQ-1$", at.type("\n"), re.MULTILINE)
    at.type("UPSERT {\n\n", until=" ... ")
    assert "error: KIP_1001" in at.type("};\n")
    assert "^" in at.type("FIND(?x) WHER\n")
    at.type(":name = REQ-2\n")
    assert "REQ-2" in at.type('FIND(?r.name) WHERE { ?r {type: "Requirement", name: :name} };\n')
    assert "Ctrl-C" in at.type("help\n")
    at.type("FIND(?r.na", until="FIND(?r.na")
    at.interrupt()
    at.type("UPSERT {\n", until=" ... ")
    at.interrupt()
    assert at.leave() == 0
    kept = state / "kb" / "kip-history"
    assert "DESCRIBE DOMAINS" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0
    assert not [path for path in (synced / ".kb").rglob("*history*") if path.is_file()]
    again = at_prompt(synced, state)
    again.type("\x10", until="UPSERT {")
    again.interrupt()
    assert "REQ-1" in again.type('FIND(?r.name) WHERE { ?r {name: "REQ-1"} }\n')
    assert again.leave("exit\n") == 0


def test_an_answer_with_what_files_say_has_a_note_and_its_json_the_shape_of_kip(synced, kb):
    assert "note:" not in kb("kip", REQUIREMENTS).err
    write(synced, {"docs/requirements/new.md": LOGIN.replace("REQ-1", "REQ-9")})
    ran = kb("kip", REQUIREMENTS)
    assert "REQ-9" in ran.out
    assert "note: 1 file differs from the records of main; the answer has what the files say." in ran.err
    ran = kb("kip", 'FIND(COUNT(?r)) WHERE { ?r {type: "Requirement"} }', "--json")
    assert (ran.json, ran.err) == ({"result": 3}, "")


@pytest.mark.sliced
def test_the_prompt_says_once_that_files_differ_from_the_records(synced, tmp_path):
    write(synced, {"docs/requirements/new.md": LOGIN.replace("REQ-1", "REQ-9")})
    at = at_prompt(synced, tmp_path / "state")
    assert "1 file differs" in at.type(f"{REQUIREMENTS};\n")
    assert "differ" not in at.type(f"{REQUIREMENTS};\n")
    write(synced, {"docs/requirements/more.md": LOGIN.replace("REQ-1", "REQ-8")})
    assert "2 files differ" in at.type(f"{REQUIREMENTS};\n")
    assert at.leave() == 0


def test_the_prompt_completes_keywords_types_and_variables(synced, tmp_path):
    at = at_prompt(synced, tmp_path / "state")
    at.type("FIND(?req.name) WHE\t", until="WHERE")
    at.type('{ ?re\t {type: "Requi\t', until='"Requirement"')
    assert "REQ-1" in at.type("} }\n")
    assert at.leave() == 0


def test_ctrl_c_drops_what_is_typed_after_a_write_too(synced, tmp_path):
    at = at_prompt(synced, tmp_path / "state")
    at.type('UPSERT { CONCEPT {{type: "Person", name: "Ann"} SET ATTRIBUTES {person_class: "Human"}} }\n')
    at.type("FIND(?r.na", until="FIND(?r.na")
    at.interrupt()
    assert at.leave() == 0


def test_an_error_at_the_prompt_mentions_writing_only_after_a_command_that_writes(synced, tmp_path):
    upsert = 'UPSERT { CONCEPT {{type: "Person", name: "Ann"} SET ATTRIBUTES {person_class: "Human"}} }\n'
    at = at_prompt(synced, tmp_path / "state")
    at.type(upsert)  # notes how far the store has got
    shutil.rmtree(stores_at(synced) / "main")
    write = at.type(upsert)
    read = at.type('FIND(?r.name) WHERE { ?r {type: "Requirement"} }\n')
    assert ("error: " in write, "Nothing was written." in write) == (True, True), write
    assert ("error: " in read, "Nothing was written." in read) == (True, False), read
    assert at.leave() == 0
