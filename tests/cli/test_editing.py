"""`kb set`, `kb link` and `kb confirm`: fields and edges are changed where they are stated."""

from __future__ import annotations

import pytest

from kbcore.editing import setting
from kbcore.editing.setting import find
from tests.cli.editing import DOCUMENT, client, read_all, records, shown, suspect
from tests.support.processes.cli import LOGIN, write
from tests.support.repository.repos import git


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


def test_a_field_of_a_client_is_set_in_the_store_with_its_other_attributes(kb, synced):
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


@pytest.mark.sliced
def test_unsynced_edits_are_named_where_another_field_is_set(kb, synced):
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


@pytest.mark.sliced
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
    assert kb("set", "REQ-1", "metadata.author=me", "owner=ann", "metadata.x=w", "metadata_note=z").status == 0
    text = "web]\nowner: ann\nmetadata_note: z\nmetadata:\n  author: me\n  x: w\n---"
    assert text in (synced / DOCUMENT).read_text()


@pytest.mark.parametrize("words", ["tags+= , ", "tags-=", "names+=,"])
def test_a_change_of_a_list_that_names_no_item_says_so(kb, synced, words):
    ran = kb("set", "REQ-1", words)
    assert (ran.status, "names no item." in ran.err) == (2, True), ran
    assert (synced / DOCUMENT).read_text() == LOGIN


@pytest.mark.sliced(2)
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


@pytest.mark.sliced(2)
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


@pytest.mark.sliced
def test_suspect_edges_of_an_entity_are_confirmed(kb, synced):
    assert kb("confirm", "REQ-1").out == "main at seq 1: nothing to change.\n"
    kb("set", "REQ-1", "title=Log in again")
    assert suspect(kb) == 1
    assert kb("confirm", "REQ-1", "--dry-run").out == "Would change main at seq 2: edges: 1 updated.\n"
    assert kb("confirm", "REQ-1").out == "main at seq 3: edges: 1 updated.\n"
    assert suspect(kb) == 0
    assert records(kb)[0]["message"] == "confirm REQ-1"


@pytest.mark.sliced(1)
@pytest.mark.parametrize("words", [("", "REQ-1"), ("depends_on", ""), ("", ""), ("",)])
def test_an_empty_word_does_not_confirm_every_edge(kb, synced, words):
    kb("set", "REQ-1", "title=Log in again")
    ran = kb("confirm", "REQ-2", *words)
    assert (ran.status, "An edge has two ends." in ran.err) == (2, True)
    assert suspect(kb) == 1


@pytest.mark.sliced
def test_one_edge_is_confirmed_and_what_is_not_recorded_yet_is_not(kb, synced):
    words = ("confirm", "REQ-2", "depends_on", "REQ-1")
    write(synced, {DOCUMENT: LOGIN.replace("title: Log in", "title: Log in again")})
    assert "is not synced yet" in kb(*words).err
    kb("sync")
    assert kb(*words).out == "main at seq 3: edges: 1 updated.\n"
    [edge] = kb("query", "edge", "--where", "from=REQ-2", "--json").json["edges"]
    assert edge["source"] == "docs/requirements/logout.md"  # and by nobody else
    assert "There is no edge" in kb("confirm", "REQ-2", "implements", "REQ-1").err
    assert "An edge has two ends." in kb("confirm", "REQ-2", "implements").err


def test_an_edge_that_is_not_there_is_named_with_its_kind(kb, synced):
    assert kb("link", "REQ-1", "relates_to:a", "REQ-2").status == 0
    for type_ in ("relates_to", "relates_to:b"):
        ran = kb("unlink", "REQ-1", type_, "REQ-2")
        assert f"There is no edge REQ-1 {type_} REQ-2." in ran.err
        assert "`kb show REQ-1` lists the edges of REQ-1, each with its kind." in ran.err
    assert "relates_to:a" in kb("show", "REQ-1").out


@pytest.mark.sliced
def test_an_edge_made_suspect_by_a_change_that_no_record_has_yet_names_the_sync(kb, synced):
    assert kb("link", "REQ-1", "depends_on", "REQ-2").status == 0
    path = next(path for path, text in read_all(synced).items() if "id: REQ-2\n" in text)
    (synced / path).write_text((synced / path).read_text().replace("title: ", "title: Other "))
    ran = kb("check", "--rule", "suspect-edge")
    assert "REQ-1 depends_on REQ-2, but REQ-2 has changed; " in ran.out
    assert f"See `git diff HEAD -- {path}`, and record the change with `kb sync`. If" in ran.out
    assert kb("sync").status == 0
    assert "See `kb log REQ-2`. If" in kb("check", "--rule", "suspect-edge").out


@pytest.mark.sliced(2)
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
def test_a_write_to_an_entity_whose_document_was_deleted_is_refused_until_that_is_recorded(kb, synced, words, stdin):
    write_document(synced, "---\nid: REQ-7\ntitle: T\nstatus: open\n---\n")
    assert kb("sync").status == 0
    (synced / "docs/requirements/7.md").unlink()
    ran = kb(*words, stdin=stdin)
    assert ran.status in {18, 19}
    assert "No file states 'REQ-7' any more, which is not recorded yet" in ran.err
    assert "Run `kb sync` first." in ran.err
    assert len(records(kb)) == 2


@pytest.mark.sliced(1)
@pytest.mark.parametrize("words", [("new", "req", "--title", "N", "--id", "REQ-7"), ("rename", "REQ-1", "REQ-7")])
@pytest.mark.parametrize("is_gone", [False, True])
def test_an_id_that_no_file_states_any_more_is_given_again_only_once_that_is_recorded(kb, synced, words, is_gone):
    document = write_document(synced, "---\nid: REQ-7\ntitle: T\nstatus: open\n---\n")
    assert kb("sync").status == 0
    document.write_text(document.read_text().replace("REQ-7", "REQ-8"))
    if is_gone:
        document.unlink()
    ran = kb(*words)
    assert (ran.status, "No file states 'REQ-7' any more, which is not recorded yet" in ran.err) == (19, True)
    assert kb("sync").status == 0
    assert kb(*words).status == 0


@pytest.mark.sliced
def test_a_status_that_was_not_stated_is_set_in_the_document(kb, synced):
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


@pytest.mark.sliced
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


@pytest.mark.sliced(1)
@pytest.mark.parametrize("words", ["links=", "links-=REQ-1", "links=REQ-1", "links+=REQ-1"])
def test_links_to_entities_are_not_set_as_a_field(kb, synced, words):
    write_document(synced, "---\nid: REQ-7\ntitle: T\nstatus: open\nlinks: [REQ-1]\n---\n")
    assert kb("sync", "--quiet").status == 0
    ran = kb("set", "REQ-7", words)
    assert (ran.status, "is an edge" in ran.err, "kb link REQ-7" in ran.err) == (2, True, True)
    assert len(records(kb)) == 2


def test_a_former_id_of_an_entity_whose_document_is_gone_is_refused_as_well(kb, synced):
    document = write_document(synced, "---\nid: REQ-7\ntitle: T\nstatus: open\n---\n")
    assert kb("sync", "--quiet").status == 0
    assert kb("rename", "REQ-7", "REQ-8").status == 0
    document.unlink()
    ran = kb("apply", "-", stdin='{"entities": [{"id": "REQ-7", "owner": "ann"}]}')
    assert (ran.status, "No file states 'REQ-7' any more" in ran.err) == (19, True)
    assert "'REQ-8' is gone: no file states it any more, which is not recorded yet." in kb("query", "--id", "REQ-8").err


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("line", "word", "after"),
    [
        ("owner:", "owner=ann", "owner: ann"),
        ('priority: ""', "priority=must", 'priority: "must"'),
        ("tags: []", "tags+=web", "tags: [web]"),
        ("status: # later", "status=open", "status: open # later"),
    ],
)
def test_a_key_without_a_value_gets_it_on_its_line(kb, synced, line, word, after):
    document = write_document(synced, f"---\nid: REQ-7\ntitle: T\n{line}\n---\n")
    assert kb("sync", "--quiet").status == 0
    assert kb("set", "REQ-7", word).status == 0
    assert document.read_text() == f"---\nid: REQ-7\ntitle: T\n{after}\n---\n"


def test_a_document_that_has_moved_is_not_set_before_that_is_recorded(kb, synced):
    document = write_document(synced, "---\nid: REQ-7\ntitle: T\nstatus: open\n---\n")
    assert kb("sync", "--quiet").status == 0
    document.rename(document.with_name("8.md"))
    ran = kb("set", "REQ-7", "owner=ann")
    assert (ran.status, "Run `kb sync` first." in ran.err) == (19, True)
    assert "'docs/requirements/8.md', and was in 'docs/requirements/7.md'" in ran.err


def test_a_default_status_that_changes_with_the_type_is_no_other_change(kb, synced):
    write_document(synced, "---\nid: REQ-7\ntitle: T\n---\n")
    assert kb("sync", "--quiet").status == 0
    ran = kb("set", "REQ-7", "type=symbol")
    assert (ran.status, "not recorded yet" in ran.err) == (0, False)


@pytest.mark.sliced
def test_a_type_that_edges_do_not_allow_is_set_with_a_warning(kb, synced):
    write_document(synced, "---\nid: REQ-7\ntitle: T\nstatus: open\n---\n")
    assert kb("sync", "--quiet").status == 0
    assert kb("link", "REQ-1", "depends_on", "REQ-7").status == 0
    for options in (("--dry-run",), ()):
        ran = kb("set", "REQ-7", "type=adr", *options)
        assert (ran.status, "endpoint-types (error): REQ-1 depends_on REQ-7 leads from req to adr" in ran.err) == (
            0,
            True,
        )
    assert "endpoint-types" in kb("check").out
    assert "endpoint-types" not in kb("set", "REQ-7", "type=req").err


def test_an_edge_to_an_entity_whose_document_is_gone_can_be_removed(kb, synced):
    document = write_document(synced, "---\nid: REQ-7\ntitle: T\nstatus: open\n---\n")
    assert kb("sync", "--quiet").status == 0
    assert kb("link", "REQ-1", "depends_on", "REQ-7").status == 0
    document.unlink()
    assert kb("unlink", "REQ-1", "depends_on", "REQ-7").status == 0


def write_document(root, text):
    path = root / "docs/requirements/7.md"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.sliced(1)
@pytest.mark.parametrize("words", [("set", "REQ-1", "status=done"), ("confirm", "REQ-1")])
def test_an_entity_whose_document_is_gone_is_said_to_be_gone_from_files(kb, synced, words):
    (synced / "docs/requirements/login.md").unlink()
    refused = kb(*words, "--json")
    assert refused.error["code"] == "not_synced"
    assert refused.error["message"].startswith("No file states 'REQ-1' any more, which is not recorded yet.")
    assert "There is no entity 'REQ-9'." in kb(words[0], "REQ-9", *words[2:]).err


def test_a_field_that_is_no_list_takes_no_item(kb, synced):
    refused = kb("set", "REQ-1", "owner+=x")
    assert "`owner` is no list." in refused.err
    assert "Set it: owner=…." in refused.err


def test_an_empty_id_is_refused(kb, synced):
    refused = kb("new", "req", "--id", "", "--title", "T")
    assert refused.status != 0
    assert "--id is empty." in refused.err


def test_what_other_readers_take_for_another_value_is_put_in_quotes(kb, synced):
    assert kb("new", "req", "--id", "true", "--title", "yes", "priority=1.10", "tags=on,web").status == 0
    head = (synced / "docs/requirements/true-yes.md").read_text().split("---")[1]
    lines = ['id: "true"', 'title: "yes"', "status: draft", 'priority: "1.10"', 'tags: ["on", web]']
    assert sorted(head.split("\n")[1:-1]) == sorted(lines)
