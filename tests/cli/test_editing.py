"""``kb new``, ``kb set``, ``kb link``, ``kb unlink``, ``kb confirm`` and ``kb id``: writes in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kbcore.editing import setting
from kbcore.editing.setting import find
from kbcore.errors import IntegrityViolation
from tests.support.processes.cli import DOCUMENTS, LOGIN, environment, write
from tests.support.repository.repos import git

DOCUMENT = "docs/requirements/login.md"


def shown(kb, key):
    return kb("query", "--id", key, "--json").json["entities"][0]


def records(kb):
    return kb("log", "--json").json["records"]


def naming(new):
    """Return the documents that link to REQ-1, with another id in its place."""
    return {path: text.replace("REQ-1", new) for path, text in DOCUMENTS.items() if path != DOCUMENT}


def client(kb, key="REQ-9", **fields):
    entity = {"id": key, "type": "req", "title": "T", "status": "open", **fields}
    kb("apply", "-", stdin=json.dumps({"entities": [entity]}))


def test_a_field_that_a_document_states_is_set_in_it_as_one_record(kb, synced):
    ran = kb("set", "REQ-1", "status=done", "owner=ann", "-m", "why")
    assert (ran.status, ran.out) == (0, f"main at seq 2: 1 updated.\nWritten: {DOCUMENT}\n")
    wanted = LOGIN.replace("open", "done").replace("[auth, web]\n", "[auth, web]\nowner: ann\n")
    assert (synced / DOCUMENT).read_text() == wanted
    assert records(kb)[0]["message"] == "why"
    assert shown(kb, "REQ-1")["status"] == "done"
    assert kb("sync", "--json").json["seq"] == 2  # nothing is left to take in


def test_a_misspelled_field_is_warned_of_in_a_document_and_in_the_store(kb, synced):
    client(kb)
    for words, name in (
        (["set", "REQ-1"], "statu"),
        (["set", "REQ-9"], "stauts"),
        (["new", "req", "--title", "T"], "statuss"),
    ):
        ran = kb(*words, f"{name}=met")
        assert ran.status == 0
        assert "is stored as an attribute: a req has no field of that name. Did you mean 'status'?" in ran.err


def test_a_status_that_is_removed_from_a_document_becomes_the_default_with_a_warning(kb, synced):
    ran = kb("set", "REQ-1", "status=")
    assert "A document of a req without a status has the default: 'REQ-1' gets 'draft'." in ran.err
    assert shown(kb, "REQ-1")["status"] == "draft"


def test_a_dry_run_shows_the_difference_and_writes_nothing(kb, synced):
    ran = kb("set", "REQ-1", "status=done", "--dry-run")
    assert "-status: open\n+status: done\n" in ran.out
    assert ran.out.endswith("Would change main at seq 1: 1 updated.\n")
    assert (synced / DOCUMENT).read_text() == LOGIN
    assert len(records(kb)) == 1
    assert kb("set", "REQ-1", "status=done", "--dry-run", "--json").json["files"][0]["path"] == DOCUMENT


def test_a_field_of_a_client_is_set_in_the_store_beside_its_other_attributes(kb, synced):
    client(kb, attributes={"size": 3, "team": "a"})
    assert kb("set", "REQ-9", "attributes.size:=4", "team=", "risk=low").status == 0
    assert shown(kb, "REQ-9")["attributes"] == {"size": 4, "risk": "low"}


def test_a_list_is_changed_by_its_items(kb, synced):
    kb("set", "REQ-1", "tags+=x,auth")
    assert shown(kb, "REQ-1")["tags"] == ["auth", "web", "x"]
    kb("set", "REQ-1", "tags+=y", "tags-=y,auth", "tags-=web")
    assert shown(kb, "REQ-1")["tags"] == ["x"]
    assert kb("set", "REQ-1", "tags-=no").status != 0


def test_an_item_is_added_to_the_list_that_the_document_has_in_an_unfinished_merge(kb, synced):
    git(synced, "add", "-A")
    git(synced, "commit", "-qm", "base")
    git(synced, "switch", "-qc", "theirs")
    write(synced, {DOCUMENT: LOGIN.replace("web]", "web, theirs]")})
    git(synced, "commit", "-qam", "theirs")
    git(synced, "switch", "-q", "main")
    git(synced, "merge", "-q", "--no-commit", "--no-ff", "theirs")
    assert "theirs" in (synced / DOCUMENT).read_text()
    ran = kb("set", "REQ-1", "tags+=mine")
    assert ran.status == 0, ran
    assert "tags: [auth, web, theirs, mine]\n" in (synced / DOCUMENT).read_text()


def test_an_item_is_added_to_the_list_that_is_saved_between_two_reads(synced, monkeypatch, kb):
    saved = LOGIN.replace("web]", "web, theirs]")

    def reading(view, key):
        (synced / DOCUMENT).write_text(saved)
        return find(view, key)

    monkeypatch.setattr(setting, "find", reading)
    assert kb("set", "REQ-1", "tags+=mine", "tags-=auth").status == 0
    assert (synced / DOCUMENT).read_text() == LOGIN.replace("[auth, web]", "[web, theirs, mine]")


def test_edits_that_no_sync_saw_are_named_where_a_field_beside_them_is_set(kb, synced):
    client(kb, "REQ-9")
    text = LOGIN.replace("Log in\nstatus", "Enter\nstatus").replace("web]", "web]\ndepends_on: [REQ-2]\nowner: bob")
    write(synced, {DOCUMENT: text})
    said = (
        f"{DOCUMENT} had changes that were not recorded yet; this records them too: "
        "`owner`, `title` of REQ-1, the edge REQ-1 depends_on REQ-2 (created)."
    )
    assert said in kb("set", "REQ-1", "status=done", "--dry-run").err
    ran = kb("set", "REQ-1", "status=done")
    assert (ran.status, said in ran.err) == (0, True), ran
    assert "not recorded yet" not in kb("set", "REQ-1", "status=open").err


NUMBERS = "entities:\n  req:\n    attributes:\n      points: {type: number}\n      urgent: {type: boolean}\n"


def test_declared_numbers_and_booleans_are_written_into_documents(kb, synced):
    write(
        synced,
        {".kb/schema/own.yaml": NUMBERS, DOCUMENT: LOGIN.replace("web]", "web]\npoints: 3  # guess\nurgent: 'no'")},
    )
    assert kb("sync").status == 0
    assert kb("set", "REQ-1", "points=5", "urgent:=true").status == 0
    assert "points: 5  # guess\nurgent: 'true'\n" in (synced / DOCUMENT).read_text()
    assert shown(kb, "REQ-1")["attributes"] == {"points": 5, "urgent": True}
    assert kb("set", "REQ-1", "points:=-2.5e30", "urgent=").status == 0
    assert "points: -2.5e+30  # guess\n---" in (synced / DOCUMENT).read_text()
    assert shown(kb, "REQ-1")["attributes"] == {"points": -2.5e30}
    ran = kb("set", "REQ-1", "size:=4")
    assert (ran.status, "numbers and booleans that the schema declares" in ran.err) == (15, True)
    ran = kb("new", "req", "title=x", "points=4", "urgent=false")
    assert ran.status == 0, ran
    assert shown(kb, "REQ-3")["attributes"] == {"points": 4, "urgent": False}
    assert "points: 4\nurgent: false\n" in next((synced / "docs/requirements").glob("REQ-3*")).read_text()


def test_members_of_a_mapping_that_a_document_lacks_are_added_together(kb, synced):
    assert kb("set", "REQ-1", "metadata.author=me", "owner=ann", "metadata.x=y", "metadata_note=z").status == 0
    text = "web]\nowner: ann\nmetadata_note: z\nmetadata:\n  author: me\n  x: y\n---"
    assert text in (synced / DOCUMENT).read_text()


@pytest.mark.parametrize("words", ["tags+= , ", "tags-=", "names+=,"])
def test_a_change_of_a_list_that_names_no_item_says_so(kb, synced, words):
    ran = kb("set", "REQ-1", words)
    assert (ran.status, "names no item." in ran.err) == (2, True), ran
    assert (synced / DOCUMENT).read_text() == LOGIN


@pytest.mark.parametrize("words", ["title=", "id=REQ-5", "depends_on=REQ-2", "created_at=now", "status"])
def test_what_cannot_be_set_is_refused_with_a_hint_and_nothing_is_written(kb, synced, words):
    ran = kb("set", "REQ-1", words)
    assert ran.status not in {0, 70}
    assert "hint: " in ran.err
    assert "Nothing was written" in ran.err
    assert (synced / DOCUMENT).read_text() == LOGIN
    assert len(records(kb)) == 1


def test_a_field_in_a_file_of_another_kind_is_refused_with_its_line(kb, synced):
    write(synced, {"docs/symbols.yaml": "symbols:\n- id: S-1\n  title: T\n  kind: function\n"})
    kb("sync")
    ran = kb("set", "S-1", "title=New")
    assert "docs/symbols.yaml:3: KB does not change this kind of file." in ran.err


def test_a_list_that_holds_more_than_text_is_changed_by_the_text_of_its_items(kb, synced):
    client(kb, attributes={"sizes": [1, 2.5, "x", True]})
    ran = kb("set", "REQ-9", "sizes-=x,9")
    assert "`attributes.sizes` has no '9'." in ran.err
    assert "It has 1, 2.5, x, true." in ran.err
    assert "sizes:=[…]" in kb("set", "REQ-9", "sizes+=4").err
    assert kb("set", "REQ-9", "sizes-=x,1,true").status == 0
    assert shown(kb, "REQ-9")["attributes"]["sizes"] == [2.5]
    assert "It is empty." in kb("set", "REQ-9", "names-=x").err


@pytest.mark.parametrize("value", ['{"a": 1, "a": 2}', "[1,]", "NaN", "", "99999999999999999999999", "1 2"])
def test_a_value_that_is_not_strict_json_is_refused(kb, synced, value):
    client(kb)
    ran = kb("set", "REQ-9", f"size:={value}")
    assert ran.status != 0
    assert "is not JSON" in ran.err
    assert "attributes" not in shown(kb, "REQ-9")


def test_an_edge_is_stated_confirmed_and_removed(kb, synced):
    assert kb("link", "REQ-1", "depends_on", "REQ-2", "--confidence", "0.5").out.endswith("edges: 1 created.\n")
    assert kb("query", "edge", "--where", "from=REQ-1", "--json").json["edges"][0]["confidence"] == 0.5
    assert kb("link", "REQ-1", "depends_on", "REQ-2", "--confidence", "0.5").out.endswith("nothing to change.\n")
    assert kb("unlink", "REQ-1", "depends_on", "REQ-2", "--dry-run").out.startswith("Would change")
    assert kb("unlink", "REQ-1", "depends_on", "REQ-2").out.endswith("edges: 1 deleted.\n")
    assert [one["message"] for one in records(kb)][:2] == [
        "unlink REQ-1 depends_on REQ-2",
        "link REQ-1 depends_on REQ-2",
    ]


def test_an_edge_of_a_file_is_removed_in_the_file_that_the_refusal_names(kb, synced):
    ran = kb("unlink", "REQ-1", "verified_by", "TEST-1")
    assert "docs/tests/login.md" in ran.err
    assert "verified_by" in kb("link", "REQ-1", "verified_bi", "TEST-1").err


def test_the_next_id_is_reserved_and_follows_what_files_and_history_have_used(kb, synced):
    assert kb("id", "next", "req", "--dry-run").out == "REQ-3\n"
    assert [kb("id", "next", "req").out for _ in range(2)] == ["REQ-3\n", "REQ-4\n"]
    assert kb("id", "next", "req", "--prefix", "REQ-AUTH-").out == "REQ-AUTH-1\n"
    write(synced, {"docs/requirements/new.md": "---\nid: REQ-0017\ntitle: T\n---\n"})
    assert kb("id", "next", "req", "--json").json == {"branch": "main", "id": "REQ-0018", "reserved": True}
    client(kb, "REQ-40")
    kb("delete", "REQ-40", "--yes")
    assert kb("id", "next", "req").out == "REQ-41\n"
    assert "Known: " in kb("id", "next", "nope").err


def test_the_next_id_follows_former_ids_that_a_document_states(kb, synced):
    stated = "---\nid: PAY-1\ntitle: T\nstatus: open\nformer_ids: [REQ-7, OLD-1]\n---\n"
    write(synced, {"docs/requirements/pay.md": stated})
    write(synced, {"docs/requirements/one.md": stated.replace("PAY-1", "PAY-2").replace("[REQ-7, OLD-1]", "ONE-7")})
    assert kb("id", "next", "req", "--prefix", "ONE-", "--dry-run").out == "ONE-8\n"
    assert kb("id", "next", "req", "--prefix", "REQ-", "--dry-run").out == "REQ-8\n"
    assert "Written: docs/requirements/REQ-8-new.md" in kb("new", "req", "--prefix", "REQ-", "--title", "New").out
    entity = {"id": "REQ-{n}", "type": "req", "title": "T", "status": "open"}
    assert kb("apply", "-", "--json", stdin=json.dumps({"entities": [entity]})).json["created"] == ["REQ-9"]


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


def test_a_repeated_changeset_names_the_ids_of_several_series_or_none_where_they_cannot_be_told_apart(kb, synced):
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


def test_a_folder_that_leads_out_of_the_repository_gets_no_document(kb, synced, tmp_path):
    (tmp_path / "outside").mkdir()
    (synced / "docs/adr").symlink_to(tmp_path / "outside")
    err = kb("new", "adr", "--title", "T").err
    assert f"the link docs/adr leads to {os.path.realpath(tmp_path / 'outside')}" in err
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


def suspect(kb):
    found = kb("check", "--rule", "suspect-edge", "--fail-on", "never", "--json").json
    return len(found["violations"])


def test_suspect_edges_of_an_entity_are_confirmed(kb, synced):
    assert kb("confirm", "REQ-1").out == "main at seq 1: nothing to change.\n"
    kb("set", "REQ-1", "title=Log in again")
    assert suspect(kb) == 1
    assert kb("confirm", "REQ-1", "--dry-run").out == "Would change main at seq 2: edges: 1 updated.\n"
    assert kb("confirm", "REQ-1").out == "main at seq 3: edges: 1 updated.\n"
    assert suspect(kb) == 0
    assert records(kb)[0]["message"] == "confirm REQ-1"


@pytest.mark.parametrize("words", [("", "REQ-1"), ("depends_on", ""), ("", ""), ("",)])
def test_an_empty_word_does_not_confirm_every_edge(kb, synced, words):
    kb("set", "REQ-1", "title=Log in again")
    ran = kb("confirm", "REQ-2", *words)
    assert (ran.status, "An edge has two ends." in ran.err) == (2, True)
    assert suspect(kb) == 1


def test_one_edge_is_confirmed_and_what_is_not_recorded_yet_is_not(kb, synced):
    words = ("confirm", "REQ-2", "depends_on", "REQ-1")
    write(synced, {DOCUMENT: LOGIN.replace("title: Log in", "title: Log in again")})
    assert "is not taken in yet" in kb(*words).err
    kb("sync")
    assert kb(*words).out == "main at seq 3: edges: 1 updated.\n"
    [edge] = kb("query", "edge", "--where", "from=REQ-2", "--json").json["edges"]
    assert edge["source"] == "docs/requirements/logout.md"  # and by nobody else
    assert "There is no edge" in kb("confirm", "REQ-2", "implements", "REQ-1").err
    assert "An edge has two ends." in kb("confirm", "REQ-2", "implements").err


def test_a_renamed_entity_is_found_and_its_history_shown_under_both_ids(kb, synced):
    ran = kb("rename", "REQ-1", "REQ-7")
    assert ran.out.startswith("main at seq 2: 1 renamed (REQ-1 -> REQ-7).\nWritten: ")
    assert kb("show", "REQ-1").out.startswith("REQ-7\n")
    assert shown(kb, "REQ-1")["id"] == "REQ-7"
    assert [one["seq"] for one in kb("log", "REQ-7", "--json").json["records"]] == [2, 1]
    assert kb("query", "--has", "depends_on:REQ-1", "--json").json["entities"][0]["id"] == "REQ-2"
    assert kb("query", "--id", "REQ-1", "--at", "1", "--json").json["entities"][0]["id"] == "REQ-1"
    assert "'REQ-1' is called 'REQ-7' now." in kb("rename", "REQ-1", "REQ-8").err
    assert "former id" in kb("new", "req", "--title", "T", "--id", "REQ-1").err
    following = kb("id", "next", "req")
    assert (following.status, following.out) == (0, "REQ-8\n"), following


def test_a_former_id_names_what_to_set_and_to_confirm(kb, synced):
    kb("rename", "REQ-1", "REQ-7")
    assert kb("set", "REQ-1", "title=Log in again").status == 0
    assert (shown(kb, "REQ-7")["title"], suspect(kb)) == ("Log in again", 1)
    assert kb("confirm", "REQ-2", "depends_on", "REQ-1").status == 0
    assert suspect(kb) == 0


def test_a_revert_of_a_rename_shows_the_change_of_the_files_and_makes_it_when_asked(kb, synced):
    kb("rename", "REQ-1", "REQ-7")
    ran = kb("revert", "2")
    assert ran.status == 15
    assert "-id: REQ-7\n+id: REQ-1\n" in ran.out
    assert "`kb revert 2 --files`" in ran.err
    assert kb("revert", "2", "--json").error["files"][0]["path"] == DOCUMENT
    assert len(records(kb)) == 2
    assert kb("revert", "2", "--files").status == 0
    assert (synced / DOCUMENT).read_text() == LOGIN
    assert shown(kb, "REQ-1")["id"] == "REQ-1"
    assert kb("sync", "--json").json["seq"] == 3


def test_a_rename_before_another_one_is_refused_by_name_and_undone_once(kb, synced):
    kb("rename", "REQ-1", "REQ-7")
    kb("rename", "REQ-7", "REQ-8")
    ran = kb("revert", "2", "--files")
    assert (ran.status, "REQ-7 was renamed to REQ-8 by record 3." in ran.err) == (17, True)
    assert kb("revert", "3", "--files").status == 0
    assert kb("revert", "2", "--files").status == 0
    assert "Record 2 is undone already" in kb("revert", "2", "--files").err
    assert (synced / DOCUMENT).read_text() == LOGIN


@pytest.mark.parametrize("files", [[], ["--files"]])
def test_a_rename_that_files_name_is_undone_by_itself_alone(kb, synced, files):
    kb("rename", "REQ-1", "REQ-7")
    client(kb)
    ran = kb("revert", "3", "2", *files)
    assert (ran.status, "Undo it by itself, with the files: `kb revert 2 --files`." in ran.err) == (15, True)
    assert (len(records(kb)), shown(kb, "REQ-9")["id"]) == (3, "REQ-9")
    client(kb, "REQ-10")
    assert kb("revert", "4", "3", *files).status == 0


def renamed_login(title="Log in", new="REQ-11"):
    return LOGIN.replace("id: REQ-1", f"id: {new}\nformer_ids: [REQ-1]").replace("Log in\nstatus", f"{title}\nstatus")


def test_a_rollback_that_renamed_what_files_name_and_more_is_undone_in_the_steps_that_its_revert_names(kb, synced):
    files = {path: (synced / path).read_text() for path in DOCUMENTS}
    kb("rename", "REQ-1", "REQ-11")
    kb(
        "apply",
        "-",
        stdin=json.dumps(
            {"entities": [{"id": one, "type": "req", "title": one, "status": "open"} for one in ("N-1", "N-2")]}
        ),
    )
    ran = kb("rollback", "1", "--files")
    assert (ran.status, {path: (synced / path).read_text() for path in DOCUMENTS}) == (0, files)
    assert kb("sync", "--json").json["seq"] == 4
    for options in [], ["--files"], ["--dry-run"], ["--force"]:
        ran = kb("revert", "4", *options)
        assert ran.status == 15
        assert "It renamed what files name: REQ-11 to REQ-1. It changed more: N-1 (deleted), N-2 (deleted)." in ran.err
        assert "`kb rename REQ-1 REQ-11` gives the earlier id back, in the files too. Then `kb revert 4`" in ran.err
    assert len(records(kb)) == 4
    assert kb("revert", "4", "--json").error["renamed"] == {"REQ-11": "REQ-1"}
    assert kb("rename", "REQ-1", "REQ-11").status == 0
    ran = kb("revert", "4", "--files")
    assert (ran.status, ran.out) == (0, "main at seq 6: 2 created.\n")
    assert "--files changed no file" in ran.err
    assert [shown(kb, one)["id"] for one in ("N-1", "N-2", "REQ-11")] == ["N-1", "N-2", "REQ-11"]


def test_a_sync_of_a_rename_and_a_title_is_not_undone_in_part(kb, synced):
    write(synced, {DOCUMENT: renamed_login("Enter"), **naming("REQ-11")})
    kb("sync")
    ran = kb("revert", "2", "--files")
    assert (ran.status, "It changed more: `title` of REQ-11." in ran.err) == (15, True)
    assert "title: Enter" in (synced / DOCUMENT).read_text()
    kb("rename", "REQ-11", "REQ-1")
    ran = kb("revert", "2")
    assert (ran.status, f"This changes facts of files: {DOCUMENT}." in ran.err) == (0, True)
    assert ran.out == "main at seq 4: 1 updated.\n"


def test_a_sync_of_two_renames_is_undone_by_two(kb, synced):
    logout = DOCUMENTS["docs/requirements/logout.md"]
    both = naming("REQ-11")["docs/requirements/logout.md"].replace("id: REQ-2", "id: REQ-12\nformer_ids: [REQ-2]")
    write(synced, {DOCUMENT: renamed_login(), **naming("REQ-11"), "docs/requirements/logout.md": both})
    kb("sync")
    ran = kb("revert", "2", "--files")
    assert (ran.status, "`kb rename REQ-11 REQ-1`, `kb rename REQ-12 REQ-2` give the earlier" in ran.err) == (15, True)
    assert "undoes the rest" not in ran.err
    kb("rename", "REQ-11", "REQ-1")
    assert kb("revert", "2", "--files").status == 0  # nothing but the other one is left
    assert (synced / "docs/requirements/logout.md").read_text() == logout
    assert "Record 2 is undone already" in kb("revert", "2").err


def test_a_sync_of_a_rename_and_a_move_of_its_document_is_undone_in_the_file(kb, synced):
    moved = "docs/requirements/enter.md"
    write(synced, {DOCUMENT: None, moved: renamed_login(), **naming("REQ-11")})
    kb("sync")
    assert kb("revert", "2", "--files").status == 0
    assert (synced / moved).read_text() == LOGIN
    assert kb("sync", "--json").json["seq"] == 3


@pytest.mark.parametrize(
    ("words", "left"), [(["2", "--force"], ["REQ-8"]), (["3", "2"], ["REQ-8"]), (["1", "2", "3"], [])]
)
def test_a_rename_whose_entity_was_deleted_since_is_reverted_together_with_others(kb, ready, words, left):
    client(kb, "REQ-8")
    kb("rename", "REQ-8", "REQ-9")
    kb("delete", "REQ-9", "--yes")
    ran = kb("revert", "2")
    assert (ran.status, "Record 3 removed REQ-9." in ran.err, "`kb revert 3 2`" in ran.err) == (17, True, True)
    assert kb("revert", *words).status == 0
    assert [one["id"] for one in kb("query", "--json").json["entities"]] == left


TAKER = """
import io, json, sys
from kbcli import app
for number in range(5):
    asked = {"entities": [{"id": "REQ-{n}", "type": "req", "title": "T", "status": "open"}]}
    sys.stdin = io.TextIOWrapper(io.BytesIO(json.dumps(asked).encode()))
    assert app.main(["apply", "-", "--json"]) == 0
    assert app.main(["id", "next", "req", "--json"]) == 0
"""


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


def test_an_upsert_makes_no_entity_that_a_file_states_and_no_sync_has_taken_in(kb, synced):
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


def test_an_edge_that_is_not_there_is_named_with_its_kind(kb, synced):
    assert kb("link", "REQ-1", "relates_to:a", "REQ-2").status == 0
    for type_ in ("relates_to", "relates_to:b"):
        ran = kb("unlink", "REQ-1", type_, "REQ-2")
        assert f"There is no edge REQ-1 {type_} REQ-2." in ran.err
        assert "`kb show REQ-1` lists the edges of REQ-1, each with its kind." in ran.err
    assert "relates_to:a" in kb("show", "REQ-1").out


def test_an_edge_made_suspect_by_a_change_that_no_record_has_yet_names_the_sync(kb, synced):
    assert kb("link", "REQ-1", "depends_on", "REQ-2").status == 0
    path = next(path for path, text in read_all(synced).items() if "id: REQ-2\n" in text)
    (synced / path).write_text((synced / path).read_text().replace("title: ", "title: Other "))
    ran = kb("check", "--rule", "suspect-edge")
    assert "REQ-1 depends_on REQ-2, but REQ-2 has changed; " in ran.out
    assert "See `kb sync --dry-run`, and record the change with `kb sync`. If" in ran.out
    assert kb("sync").status == 0
    assert "See `kb log REQ-2`. If" in kb("check", "--rule", "suspect-edge").out


def read_all(root):
    return {path: (root / path).read_text() for path in DOCUMENTS}


def test_a_rollback_over_renames_shows_the_change_of_the_files_and_makes_it_when_asked(kb, synced):
    before = read_all(synced)
    kb("rename", "REQ-1", "REQ-7")
    kb("rename", "REQ-2", "REQ-8")
    kb("rename", "REQ-7", "REQ-9")
    renamed = read_all(synced)
    ran = kb("rollback", "1")
    assert ran.status == 15
    assert "-id: REQ-9\n" in ran.out
    assert "+id: REQ-1\n" in ran.out
    assert "`kb rollback 1 --files`" in ran.err
    assert {one["path"] for one in kb("rollback", "1", "--json").error["files"]} == {*before}
    ran = kb("rollback", "1", "--dry-run")
    assert (ran.status, "+id: REQ-1\n" in ran.out) == (0, True)
    assert "Would change main at seq 4: 2 renamed (REQ-8 -> REQ-2, REQ-9 -> REQ-1).\n" in ran.out
    assert (read_all(synced), len(records(kb))) == (renamed, 4)
    ran = kb("rollback", "1", "--files")
    assert (ran.status, ran.err) == (0, "")
    assert "Written: " in ran.out
    assert read_all(synced) == before
    assert kb("diff", "1", "--json").json["entities"] == []
    assert kb("sync", "--json").json["seq"] == 5


def test_a_rollback_takes_every_point_and_says_which_seq_is_meant(kb, synced):
    git(synced, "add", "-A")
    git(synced, "commit", "-qm", "one")
    git(synced, "commit", "-qm", "two", "--allow-empty")
    client(kb)
    ran = kb("rollback", "now", "--dry-run")
    assert (ran.status, "seq 2 is the last record until then." in ran.err) == (0, True)
    assert "nothing to change" in ran.out
    ran = kb("rollback", "--to", "now")
    assert (ran.status, "seq 2 is the last record until then." in ran.err) == (0, True)
    ran = kb("rollback", "1", "--dry-run")
    assert (ran.status, ran.out) == (0, "Would change main at seq 2: 1 deleted.\n")
    assert len(records(kb)) == 2
    assert kb("rollback", "HEAD", "--dry-run", "--json").json["points"]
    assert kb("rollback", "nowhere").status == kb("diff", "nowhere").status
    for words in [], ["1", "--to", "1"], [""]:
        assert kb("rollback", *words).status in {2, 64}
    ran = kb("rollback", "1", "--files")
    assert (ran.status, ran.out) == (0, "main at seq 3: 1 deleted.\n")
    assert "--files changed no file" in ran.err


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (("link", "REQ-1", "relates_to:x", "REQ-7"), ""),
        (("delete", "REQ-7"), ""),
        (("apply", "-"), '{"entities": [{"id": "REQ-7", "owner": "ann"}]}'),
        (("apply", "-", "--dry-run"), '{"mode": "update", "entities": [{"id": "REQ-7", "owner": "ann"}]}'),
        (("kip", 'UPSERT { CONCEPT { {type: "Requirement", name: "REQ-7"} SET ATTRIBUTES { owner: "x" } } }'), ""),
    ],
)
def test_a_write_to_an_entity_whose_document_is_gone_is_refused_until_that_is_recorded(kb, synced, words, stdin):
    write_document(synced, "---\nid: REQ-7\ntitle: T\nstatus: open\n---\n")
    assert kb("sync").status == 0
    (synced / "docs/requirements/7.md").unlink()
    ran = kb(*words, stdin=stdin)
    assert ran.status in {18, 19}
    assert "No file states 'REQ-7' any more, which is not recorded yet" in ran.err
    assert "Run `kb sync` first." in ran.err
    assert len(records(kb)) == 2


def test_a_status_that_nobody_stated_is_set_in_the_document(kb, synced):
    document = write_document(synced, "---\nid: REQ-7\ntitle: T\n---\n")
    assert kb("sync").status == 0
    ran = kb("set", "REQ-7", "status=done", "owner=ann")
    assert (ran.status, ran.err) == (0, "")
    assert document.read_text() == "---\nid: REQ-7\ntitle: T\nstatus: done\nowner: ann\n---\n"
    assert kb("set", "REQ-7", "status=").status == 0
    ran = kb("set", "REQ-7", "status=open")
    assert (ran.status, "status: open" in document.read_text()) == (0, True)


def test_a_default_status_is_not_said_to_be_overwritten(kb, synced):
    write_document(synced, "---\nid: REQ-7\ntitle: T\n---\n")
    assert kb("sync", "--quiet").status == 0
    ran = kb("apply", "-", stdin='{"entities": [{"id": "REQ-7", "status": "done"}]}')
    assert (ran.status, "overwrites" in ran.err) == (0, False)


def test_the_type_of_a_document_is_set_in_it(kb, synced):
    document = write_document(synced, "---\nid: REQ-7\ntitle: T\nstatus: open\n---\n")
    assert kb("sync", "--quiet").status == 0
    assert kb("set", "REQ-7", "type=adr").status == 0
    assert (document.read_text().splitlines()[4], kb("show", "REQ-7", "--json").json["entity"]["type"]) == (
        "type: adr",
        "adr",
    )
    assert "no entity type 'nope'" in kb("set", "REQ-7", "type=nope").err
    assert kb("set", "REQ-7", "type=req").status == 0
    assert document.read_text().count("type: req") == 1


@pytest.mark.parametrize("words", ["links=", "links-=REQ-1", "links=REQ-1", "links+=REQ-1"])
def test_links_to_entities_are_not_set_as_a_field(kb, synced, words):
    write_document(synced, "---\nid: REQ-7\ntitle: T\nstatus: open\nlinks: [REQ-1]\n---\n")
    assert kb("sync", "--quiet").status == 0
    ran = kb("set", "REQ-7", words)
    assert (ran.status, "is an edge" in ran.err, "kb link REQ-7" in ran.err) == (2, True, True)
    assert len(records(kb)) == 2


def write_document(root, text):
    path = root / "docs/requirements/7.md"
    path.write_text(text, encoding="utf-8")
    return path
