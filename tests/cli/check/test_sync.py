"""A sync, a hook and the status report what ``kb check`` finds, and are silent about what the project accepts."""

from __future__ import annotations

import json

import pytest

from tests.cli.check.violations import document
from tests.support.processes.cli import write


def test_a_sync_and_a_check_say_that_the_same_fault_is_as_bad(kb, ready):
    write(
        ready,
        {"docs/requirements/a.md": document("REQ-1", "links: [GONE]\n"), "docs/tests/t.md": "---\ntitle: [x\n---\n"},
    )
    reported = kb("sync").err
    assert "error: unresolved: REQ-1 links to GONE" in reported
    assert "error: docs/tests/t.md:2: not valid YAML" in reported
    assert {one["severity"] for one in kb("check", "--json").json["violations"]} == {"error"}
    write(ready, {".kb/config.json": '{"rules": {"unresolved-reference": "warning", "unreadable-source": "warning"}}'})
    reported = kb("sync", "--rebuild").err
    assert "warning: unresolved: REQ-1 links to GONE" in reported
    assert "warning: docs/tests/t.md:2: not valid YAML" in reported
    assert "error" not in reported
    assert {one["severity"] for one in kb("check", "--json").json["violations"]} == {"warning"}


def test_a_sync_counts_what_is_alike(kb, ready):
    write(ready, {f"docs/requirements/{at}.md": document(f"R-{at}", f"links: [GONE-{at}]\n") for at in range(40)})
    reported = kb("sync").err.splitlines()
    assert len([line for line in reported if "unresolved: " in line]) == 5
    assert "error: 35 more like these; `kb check --rule unresolved-reference --format short` lists them." in reported


@pytest.mark.sliced
def test_a_sync_and_a_hook_are_silent_about_what_the_project_accepts(kb, synced):
    gone = document("B-1", "links: [REQ-1, GONE-1]\n")
    write(synced, {"docs/requirements/bad.md": "---\nid: [\n---\n", "docs/requirements/b1.md": gone})
    ran = kb("sync")
    assert ("bad.md" in ran.err, "GONE-1" in ran.err) == (True, True)
    counts = "2 errors in files; `kb check` and `kb sync --strict` list them.\n"
    assert (kb("sync").err, kb("sync").out.count("\n")) == (counts, 1)
    assert "bad.md" in kb("sync", "--strict").err
    assert "1 file could not be read completely" in kb("hook", "post-merge", "0").err
    kb("check", "--write-baseline")
    assert (kb("sync").err, kb("hook", "post-merge", "0").err) == ("", "")
    write(synced, {"docs/requirements/b2.md": document("B-2", "links: [REQ-1, GONE-2]\n")})
    changed = kb("sync").err
    assert ("GONE-2" in changed, "GONE-1" in changed, "bad.md" in changed) == (True, False, False)
    (synced / ".kb/baseline.json").unlink()
    accepted = [{"rule": "unreadable-source", "paths": ["docs/requirements/bad.md"], "reason": "is a draft"}]
    write(synced, {".kb/config.json": json.dumps({"suppress": accepted})})
    kb("sync")
    assert kb("hook", "post-merge", "0").err == ""
    assert kb("sync").err == "2 errors in files; `kb check` lists them.\n"
    write(synced, {".kb/baseline.json": "{"})
    assert ".kb/baseline.json is no baseline" in kb("sync").err


@pytest.mark.sliced
def test_a_second_block_of_front_matter_is_a_warning_of_a_sync_and_of_a_check(kb, ready):
    path = "docs/requirements/two.md"
    write(ready, {path: document("R-1") + "\nText.\n\n---\nid: R-2\ntitle: Other\n---\n"})
    said = f"warning: {path}:9: a second block of front matter, in lines 9 to 12, is not read"
    assert said in kb("sync").err
    [found] = kb("check", "--json", "--rule", "unreadable-source").json["violations"]
    assert (found["severity"], found["line"], found["code"]) == ("warning", 9, "second_front_matter")
    assert kb("check", "--rule", "unreadable-source").status == 0
    kb("check", "--write-baseline")
    assert (kb("sync").err, kb("check", "--json").json["violations"]) == ("", [])
    assert "1 warning in files" not in kb("sync").err


@pytest.mark.sliced
def test_what_a_document_accepts_is_accepted_by_a_sync_a_hook_and_the_status(kb, ready):
    why = "suppress: {unresolved-reference: is to come, unknown-status: of an old process}\n"
    one = document("R-1", f"links: [GONE]\n{why}").replace("status: open", "status: odd")
    schema = "entities: {req: {statuses: [open], statusDefault: open}}\n"
    write(ready, {"docs/requirements/one.md": one, ".kb/schema/more.yaml": schema})
    assert (kb("sync").err, kb("hook", "post-merge", "0").err) == ("", "")
    strict = kb("sync", "--strict").err
    assert ("R-1 links to GONE" in strict, "'odd' is no status of a req" in strict) == (True, True)
    status = kb("status", "--json").json
    assert status["accepted"]["unresolved"] == status["unresolved"] != []
    assert "GONE" not in kb("status").out
    write(ready, {"docs/requirements/one.md": one.replace(why, "")})
    reported = kb("sync").err
    assert ("R-1 links to GONE" in reported, "'odd' is no status of a req" in reported) == (True, True)
    assert "R-1 links to GONE" in kb("status").out
    kb("check", "--write-baseline")
    assert kb("sync").err == ""


def test_the_status_names_no_file_that_the_project_accepts_as_it_is(kb, ready):
    path = "docs/requirements/bad.md"
    write(ready, {path: "---\nid: [\n---\n"})
    kb("sync")
    assert f"  {path}" in kb("status").out
    kb("check", "--write-baseline")
    status = kb("status", "--json").json
    assert (status["files"]["bad"], status["accepted"]["bad"]) == ([path], [path])
    assert path not in kb("status").out


def test_of_two_equal_statuses_in_a_file_the_one_is_named_that_is_not_accepted(kb, ready):
    suppress = [{"rule": "unknown-status", "id": "a", "reason": "of an old process"}]
    write(
        ready,
        {
            ".kb/config.json": json.dumps({"suppress": suppress}),
            ".kb/schema/more.yaml": "entities: {symbol: {statuses: [open], statusDefault: open}}\n",
            "docs/symbols.yaml": "symbols:\n- {id: b, status: odd}\n- {id: a, status: odd}\n",
        },
    )
    said = kb("sync").err
    assert ("symbols.yaml:2: " in said, "symbols.yaml:3: " in said) == (True, False)
