"""`kb new` and numbers of ids: an entity gets the next id, a document and one record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kbcore.errors import IntegrityViolation
from tests.cli.editing import DOCUMENT, client, records, shown
from tests.support.processes.cli import environment, write


@pytest.mark.sliced
def test_the_next_id_is_reserved_and_follows_what_files_and_history_have_used(kb, synced):
    assert kb("id", "next", "req", "--dry-run").out == "REQ-3\n"
    assert [kb("id", "next", "req").out for _ in range(2)] == ["REQ-3\n", "REQ-4\n"]
    assert kb("id", "next", "req", "--prefix", "REQ-AUTH-").out == "REQ-AUTH-1\n"
    write(synced, {"docs/requirements/new.md": "---\nid: REQ-0017\ntitle: T\n---\n"})
    last = {"id": "REQ-0017", "kind": "branch", "name": "main", "path": ""}
    answer = {"branch": "main", "id": "REQ-0018", "reserved": True, "last": last, "not_looked_at": []}
    assert kb("id", "next", "req", "--json").json == answer
    client(kb, "REQ-40")
    kb("delete", "REQ-40", "--yes")
    assert kb("id", "next", "req").out == "REQ-41\n"
    assert "Known: " in kb("id", "next", "xyzzy").err


@pytest.mark.sliced
def test_the_next_id_follows_former_ids_that_a_document_states(kb, synced):
    stated = "---\nid: PAY-1\ntitle: T\nstatus: open\nformer_ids: [REQ-7, OLD-1]\n---\n"
    write(synced, {"docs/requirements/pay.md": stated})
    write(synced, {"docs/requirements/one.md": stated.replace("PAY-1", "PAY-2").replace("[REQ-7, OLD-1]", "ONE-7")})
    assert kb("id", "next", "req", "--prefix", "ONE-", "--dry-run").out == "ONE-8\n"
    assert kb("id", "next", "req", "--prefix", "REQ-", "--dry-run").out == "REQ-8\n"
    assert "Written: docs/requirements/REQ-8-new.md" in kb("new", "req", "--prefix", "REQ-", "--title", "New").out
    entity = {"id": "REQ-{n}", "type": "req", "title": "T", "status": "open"}
    assert kb("apply", "-", "--json", stdin=json.dumps({"entities": [entity]})).json["created"] == ["REQ-9"]


@pytest.mark.sliced
def test_the_next_id_follows_the_name_of_a_document_that_cannot_be_read_whole(kb, synced):
    unread = "---\nid: REQ-12\ntype: requirement\ntitle: T\n---\n"
    write(synced, {"docs/requirements/REQ-12.md": unread, "docs/requirements/sub/REQ-011-log-in.md": unread})
    assert kb("id", "next", "req", "--dry-run").out == "REQ-13\n"
    kb("sync")
    assert "Written: docs/requirements/REQ-13-new.md" in kb("new", "req", "--title", "New").out
    write(synced, {"docs/requirements/REQ-12.md": unread.replace("requirement\n", "req\n")})
    assert "1 created" in kb("sync").out


def test_a_mark_in_an_id_is_the_next_number_of_a_document_and_any_other_one_is_refused(kb, synced):
    assert "Written: docs/requirements/NEW-1-t.md" in kb("new", "req", "--id", "NEW-{n}", "--title", "T").out
    assert "`PREFIX-{n}`" in kb("new", "req", "--id", "NEW-{m}", "--title", "T").err


def test_a_changeset_gets_the_next_number_wherever_it_names_it_and_the_same_when_it_is_sent_again(kb, synced):
    entity = {"id": "REQ-{n}", "type": "req", "title": "T", "status": "open"}
    edge = {"type": "depends_on", "from": "REQ-{n}", "to": "REQ-{n2}"}
    request = {"changeset_id": "c", "entities": [entity, {**entity, "id": "REQ-{n2}"}], "edges": [edge]}
    first, again = (kb("apply", "-", "--json", stdin=json.dumps(request)).json for _ in range(2))
    assert first["ids"] == {"REQ-{n}": "REQ-3", "REQ-{n2}": "REQ-4"}
    assert again["duplicate"]
    assert again["ids"] == first["ids"]
    assert again["created"] == first["created"] == ["REQ-3", "REQ-4"]
    assert kb("query", "edge", "--where", "from=REQ-3", "--json").json["edges"][0]["to"] == "REQ-4"


@pytest.mark.sliced
def test_a_repeated_changeset_names_the_ids_of_several_series_or_none_where_they_are_ambiguous(kb, synced):
    def sent(name, *keys):
        entities = [{"id": key, "type": "req", "title": "T", "status": "open"} for key in keys]
        stdin = json.dumps({"changeset_id": name, "entities": entities})
        first, again = (kb("apply", "-", "--json", stdin=stdin).json for _ in range(2))
        return first["ids"], again.get("ids")

    client(kb, "A-9")
    first, again = sent("c", "A-{n2}", "B-{n}", "A-{n1}", "A-12", "A-x")
    assert first == again == {"A-{n2}": "A-10", "B-{n}": "B-1", "A-{n1}": "A-11"}
    first, again = sent("d", "C-{n}", "C-1{n}")
    assert (first, again) == ({"C-{n}": "C-1", "C-1{n}": "C-11"}, None)


@pytest.mark.sliced
def test_a_new_entity_gets_the_next_id_and_a_document_as_one_record(kb, synced):
    ran = kb("new", "req", "priority=must", "tags=a,b", "--title", "Pay: later", "-m", "why")
    path = "docs/requirements/REQ-3-pay-later.md"
    assert ran.out == f"REQ-3\nmain at seq 2: 1 created.\nWritten: {path}\n"
    assert (synced / path).read_text() == (
        '---\nid: REQ-3\ntitle: "Pay: later"\nstatus: draft\npriority: must\ntags: [a, b]\n---\n\n# Pay: later\n'
    )
    assert shown(kb, "REQ-3")["title"] == "Pay: later"
    assert records(kb)[0]["message"] == "why"
    assert kb("sync", "--json").json["seq"] == 2


@pytest.mark.parametrize(("key", "title"), [("R" * 200, "T" * 60), ("REQ-3", "語" * 300), ("語" * 200, "語")])
def test_a_long_id_or_title_is_cut_in_the_name_of_the_document(kb, synced, key, title):
    ran = kb("new", "req", "--id", key, "--title", title)
    assert ran.status == 0, ran.err
    [path] = [one for one in (synced / "docs/requirements").iterdir() if one.name.startswith(key[:3])]
    assert len(path.name.encode()) <= 203
    assert shown(kb, key)["title"] == title


def test_a_document_states_fields_as_they_were_asked_for(kb, synced):
    asked = ["size=3", "ratio=3.50", "due=2026-01-31", "flag=true", "none=null", "note=a: b # c", "owner= ann "]
    asked += ["tags=1,b"]
    ran = kb("new", "req", "--title", "'quoted': [x]", *asked)
    assert ran.status == 0, ran.err
    entity = shown(kb, "REQ-3")
    assert entity["title"] == "'quoted': [x]"
    assert entity["attributes"]["note"] == "a: b # c"


def test_a_dry_run_of_a_new_entity_shows_its_document_and_reserves_nothing(kb, synced):
    for _ in range(2):
        ran = kb("new", "req", "--title", "T", "--dry-run")
        assert "+++ b/docs/requirements/REQ-3-t.md" in ran.out
        assert "+title: T\n" in ran.out
    assert not (synced / "docs/requirements/REQ-3-t.md").exists()
    assert len(records(kb)) == 1


def test_a_type_without_documents_is_made_in_the_store(kb, synced):
    assert kb("new", "symbol", "--title", "login").out == "SYMBOL-1\nmain at seq 2: 1 created.\n"
    assert kb("new", "req", "--store", "--title", "T", "--json").json["ids"] == {"REQ-{n}": "REQ-3"}
    assert shown(kb, "REQ-3")["source"] == "cli"


def test_the_template_of_the_project_is_filled_in(kb, synced):
    template = "---\nid: x  # never reused\nowner: ann\ntitle: x\nstatus: x\n---\n# {id} {title}\n\n## Why\n"
    write(synced, {".kb/templates/adr.md": template})
    kb("new", "adr", "--title", "Use it")
    assert (synced / "docs/adr/ADR-1-use-it.md").read_text() == (
        "---\nid: ADR-1  # never reused\nowner: ann\ntitle: Use it\nstatus: proposed\n---\n# ADR-1 Use it\n\n## Why\n"
    )


def test_the_editor_may_change_the_document_before_it_is_written(kb, synced, user):
    user.setenv("GIT_EDITOR", "sed -i 's/^title:.*/title: Edited/'")
    assert kb("new", "req", "--edit").out.startswith("REQ-3\n")
    assert (
        synced / "docs/requirements/REQ-3.md"
    ).read_text() == "---\nid: REQ-3\ntitle: Edited\nstatus: draft\n---\n\n"
    user.setenv("GIT_EDITOR", "sed -i 's/^title:.*/title/'")
    ran = kb("new", "req", "--edit")
    assert "Nothing was written." in ran.err
    kept = Path(ran.err.partition("What you wrote is kept in ")[2].split(". ")[0])
    assert "\ntitle\n" in kept.read_text()
    assert kb("id", "next", "req").out == "REQ-4\n"


@pytest.mark.sliced(4)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("req",), "A new req needs `title`."),
        (
            ("req", "--title", "T", "--id", "REQ-1"),
            "'REQ-1' is the id of a req already, in 'docs/requirements/login.md'.",
        ),
        (("req", "--title", "T", "--file", DOCUMENT), f"'{DOCUMENT}' is there already."),
        (("req", "--title", "T", "--file", "../x.md"), "'../x.md' is not inside the repository."),
        (("req", "--title", "T", "--file", "README.md"), "No Markdown document is read at 'README.md'."),
        (("req", "--title", "T", "--id", " x"), "cannot be an id"),
        (("reqs", "--title", "T"), "There is no entity type 'reqs'."),
        (
            ("req", "--title", "T", "attributes.size:=3"),
            "lists of text, and numbers and booleans that the schema declares.",
        ),
        (("symbol", "--title", "T", "title=U"), "`title` is set twice."),
        (("symbol", "--title", "T", "tags=a", "tags+=b"), "`tags` is set twice."),
        (("req", "--title", "keepme", "attributes.title=zzz"), "cannot state `title` as 'keepme'"),
        (("req", "--title", "T", "attributes.id=REQ-99"), "cannot state `id` as 'REQ-3'"),
        (("req", "--title", "T", "attributes.depends_on=REQ-1"), "cannot state `attributes.depends_on` as 'REQ-1'"),
    ],
)
def test_an_entity_that_cannot_be_made_is_refused_and_nothing_is_written(kb, synced, words, said):
    before = sorted(synced.glob("docs/**/*"))
    ran = kb("new", *words)
    assert ran.status not in {0, 70}
    assert said in ran.err
    assert sorted(synced.glob("docs/**/*")) == before
    assert len(records(kb)) == 1
    assert kb("id", "next", "req").out == "REQ-3\n"  # nothing is left reserved


@pytest.mark.parametrize(
    ("files", "folder"),
    [
        ({"docs/tests/odd.md": "type: req\n"}, "docs/requirements"),
        ({f"docs/requirements/pay/{number}.md": "" for number in range(3)}, "docs/requirements/pay"),
        ({f"docs/requirements/pay/{number}.md": "" for number in range(2)}, "docs/requirements"),
        ({f"docs/requirements/z{number}/a.md": "" for number in range(5)}, "docs/requirements"),
    ],
    ids=["one elsewhere", "most in a folder", "half in a folder", "in many folders"],
)
def test_a_document_goes_to_the_folder_of_most_others_or_to_the_configured_one(kb, synced, files, folder):
    write(synced, {path: f"---\nid: N{at}\n{more}title: N{at}\n---\n" for at, (path, more) in enumerate(files.items())})
    assert kb("sync").status == 0
    assert f"Written: {folder}/NEW-t.md" in kb("new", "req", "--title", "T", "--id", "NEW").out


@pytest.mark.parametrize(("status", "folder"), [("open", "docs/requirements/open"), ("done", "docs/requirements/done")])
def test_a_document_goes_to_the_folder_of_those_with_its_status(kb, synced, status, folder):
    """A project may have a folder for what is done, with more documents than that of what is to be done."""
    files = {f"docs/requirements/done/{number}.md": "done" for number in range(9)}
    files |= {f"docs/requirements/open/{number}.md": "open" for number in range(4)}
    write(
        synced, {path: f"---\ntitle: T\nid: N-{at}\nstatus: {of}\n---\n" for at, (path, of) in enumerate(files.items())}
    )
    assert kb("sync").status == 0
    assert f"Written: {folder}/NEW-t.md" in kb("new", "req", f"status={status}", "--title", "T", "--id", "NEW").out


def test_a_folder_that_leads_out_of_the_repository_gets_no_document(kb, synced, tmp_path):
    (tmp_path / "outside").mkdir()
    (synced / "docs/adr").symlink_to(tmp_path / "outside")
    err = kb("new", "adr", "--title", "T").err
    assert f"the link docs/adr points to {os.path.realpath(tmp_path / 'outside')}" in err
    assert "hint: KB writes no file outside the repository. Replace docs/adr with" in err
    assert "system log" not in err
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("path", ["docs/requirements/../../.git/x.md", "docs/requirements/../../../x.md"])
def test_a_path_that_leads_out_of_the_folders_of_documents_gets_no_document(kb, synced, path):
    ran = kb("new", "req", "--title", "T", "--file", path)
    assert (ran.status != 0, records(kb)[0]["seq"]) == (True, 1)
    assert not (synced / ".git/x.md").exists()
    assert not (synced.parent / "x.md").exists()


def test_a_path_with_a_detour_is_the_file_that_it_means(kb, synced):
    ran = kb("new", "req", "--title", "T", "--file", "docs/requirements/../requirements/./t.md")
    assert "Written: docs/requirements/t.md\n" in ran.out
    assert kb("sync", "--json").json["seq"] == 2  # the record of it stays


def test_no_document_is_made_in_the_folder_of_git(kb, synced):
    (synced / "docs/requirements/inside").symlink_to("../../.git")
    ran = kb("new", "req", "--title", "T", "--file", "docs/requirements/inside/x.md")
    assert ran.status == 24
    assert not (synced / ".git/x.md").exists()
    assert records(kb)[0]["seq"] == 1


TAKER = """
import io, json, sys
from kbcli import app
for number in range(5):
    asked = {"entities": [{"id": "REQ-{n}", "type": "req", "title": "T", "status": "open"}]}
    sys.stdin = io.TextIOWrapper(io.BytesIO(json.dumps(asked).encode()))
    assert app.main(["apply", "-", "--json"]) == 0
    assert app.main(["id", "next", "req", "--json"]) == 0
"""


@pytest.mark.sliced
def test_several_processes_never_get_the_same_id(kb, synced):
    command = [sys.executable, "-c", TAKER]
    running = [
        subprocess.Popen(command, cwd=synced, env=environment(), stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    lines = [line for one in running for line in one.communicate(timeout=120)[0].splitlines()]
    assert [one.returncode for one in running] == [0, 0, 0, 0]
    answers = [json.loads(line) for line in lines]
    taken = [one["ids"]["REQ-{n}"] if "ids" in one else one["id"] for one in answers]
    assert len(taken) == len(set(taken)) == 40
    assert sum("ids" in one for one in answers) == 20


def test_an_option_of_new_that_would_be_ignored_is_refused(kb, synced):
    ran = kb("new", "req", "--id", "X-1", "--prefix", "Y-", "--title", "T")
    assert (ran.status, "Leave one of them out." in ran.err) == (2, True)
    ran = kb("new", "symbol", "--id", "a.B", "--title", "T", "--edit")
    assert (ran.status, "makes it without an editor." in ran.err) == (2, True)
    assert len(records(kb)) == 1


@pytest.mark.sliced
def test_an_upsert_makes_no_entity_that_only_an_unsynced_file_states(kb, synced):
    path = "docs/requirements/new.md"
    write(synced, {path: "---\nid: REQ-50\ntitle: New\nstatus: open\n---\n"})
    before = kb("status", "--json").json["seq"]
    item = '{"id": "REQ-50", "type": "req", "title": "X", "status": "open", "severity": "high"}'
    for word in ("", ', "mode": "create"'):
        ran = kb("apply", "-", stdin=f'{{"entities": [{item}]{word}}}')
        assert f"'{path}' states 'REQ-50', but it is not recorded yet." in ran.err
        assert ("Run `kb sync` first." in ran.err, kb("status", "--json").json["seq"]) == (True, before)
    kb("sync")
    assert kb("apply", "-", stdin='{"entities": [{"id": "REQ-50", "severity": "high"}]}').status == 0
    assert kb("apply", "-", stdin=f'{{"entities": [{item}]}}').status == 15


NAMED = 'FIND(?p.name, ?p.id) WHERE { ?p {type: "Person", name: "P"} }'


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("--title", "P"), "Person:P"),
        (("--title", "Paula", "name=P"), "Person:P"),
        (("--title", "P", "--id", "X-1"), "X-1"),
        (("--title", "P", "--prefix", "X-"), "X-1"),
    ],
)
def test_a_new_concept_of_kip_has_its_title_as_its_name(kb, synced, words, key):
    ran = kb("new", "Person", *words)
    assert (ran.status, ran.out.splitlines()[0]) == (0, key)
    assert kb("kip", NAMED, "--json").json == {"result": [["P"], [key]]}


@pytest.mark.sliced(1)
@pytest.mark.parametrize("words", [("--title", "P"), ("--title", "P", "--id", "X-2"), ("--title", "Q", "name=P")])
def test_a_concept_of_a_name_that_another_one_has_is_refused(kb, synced, words):
    kb("new", "Person", "--title", "P", "--id", "X-1")
    ran = kb("new", "Person", *words)
    assert ran.status == IntegrityViolation.exit_status
    assert "There is a Person 'P' already: 'X-1'." in ran.err
    assert "kb set X-1" in ran.err
    assert kb("new", "Domain", "--title", "P").status == 0
    assert kb("new", "Person", "--title", "X-1").status == 0  # the id of a concept with another name


def test_a_concept_that_every_store_knows_is_not_made_under_another_id(kb, synced):
    ran = kb("new", "Person", "--title", "$self", "--id", "X-1")
    assert ran.status == IntegrityViolation.exit_status
    assert "There is a Person '$self' already" in ran.err


def test_a_sentence_is_remembered_by_one_command_and_open_tasks_are_listed_in_their_order(kb, synced):
    assert kb("new", "note", "Sessions end after 30 minutes", "file=src/a.py").out.startswith("NOTE-1\n")
    for title in ("First", "Second", "Third"):
        assert kb("new", "task", title).status == 0
    kb("set", "TASK-3", "order=0.5")
    kb("set", "TASK-1", "status=done")
    listed = kb("query", "task", "--status", "open", "--sort", "order", "--json").json["entities"]
    assert [one["title"] for one in listed] == ["Third", "Second"]
    primed = kb("prime", "--for", "src/a.py").out
    assert "- Sessions end after 30 minutes (NOTE-1 note active; file;" in primed
    assert primed.index("- Third (TASK-3") < primed.index("- Second (TASK-2")
    assert "TASK-1" not in primed


def test_a_first_word_that_assigns_a_field_is_no_title(kb, synced):
    assert "`title`" in kb("new", "note", "file=a.py").err
    assert kb("new", "note", "--title", "order=1 is first", "--json").json["created"] == ["NOTE-1"]
