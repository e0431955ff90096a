"""``kb check``: the status to build on, the shape of an answer, and what it says of files that are not read."""

from __future__ import annotations

import shlex

import pytest

from tests.cli.check.violations import UNRESOLVED, document
from tests.mcp.agents import direct
from tests.support.processes.cli import LOGIN, write
from tests.support.repository.repos import git


def test_check_answers_in_the_fixed_shape(kb, synced):
    ran = kb("check", "--json")
    assert ran.status == 0
    answer = ran.json
    keys = {"branch", "seq", "freshness", "pending_files", "ok", "violations", "rules", "idle_suppressions"}
    assert set(answer) == keys
    assert (answer["branch"], answer["seq"], answer["ok"]) == ("main", 1, True)
    assert set(answer["rules"][0]) == {"id", "severity", "status", "reason", "seconds"}
    assert {rule["status"] for rule in answer["rules"]} == {"ran"}


def test_violations_end_with_status_1_and_name_file_and_remedy(kb, synced):
    write(synced, UNRESOLVED)
    kb("sync")
    ran = kb("check")
    assert ran.status == 1
    head, first, *_ = ran.out.splitlines()
    assert head == "error unresolved-reference: 1"
    assert first.startswith("  docs/tests/b.md:4: T-2 links to REQ-77")
    assert ran.out.splitlines()[-1].startswith("main at seq 2: 1 error")
    answer = kb("check", "--json").json
    assert answer["ok"] is False
    assert set(answer["violations"][0]) == {"rule", "severity", "id", "message", "hint", "source", "values", "line"}
    assert answer["violations"][0]["source"] == "docs/tests/b.md"


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("words", "status"),
    [([], 1), (["--fail-on", "never"], 0), (["--rule", "acyclic"], 0), (["--rule", "unresolved-reference"], 1)],
)
def test_what_fails_can_be_chosen(kb, synced, words, status):
    write(synced, UNRESOLVED)
    kb("sync")
    assert kb("check", *words).status == status


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--fail-on=warnin", "error, warning, never. Did you mean 'warning'?"),
        ("--format=xml", "is none of text, short, json, sarif, junit, github."),
    ],
)
def test_an_unknown_choice_is_refused_with_those_that_there_are(kb, root, option, said):
    ran = kb("check", option)
    assert ran.status == 2
    assert said in ran.err.splitlines()[0]


NAMES_IN_DOUBT = """{
"extractors": {"markdwn": {}, "markdown": {"pats": {}, "paths": {"rq": ["docs/*.md"]}}},
"rules": {"cylces": "error"}
}"""


def test_settings_that_name_what_there_is_not_are_refused_by_every_command(kb, ready):
    write(ready, {".kb/config.json": NAMES_IN_DOUBT})
    for words in (["check"], ["query", "--id", "REQ-1"], ["sync"], ["status"], ["schema"], ["log"]):
        ran = kb(*words, "--json")
        assert ran.status == 63, words
        assert [(one["source"], one["path"]) for one in ran.error["details"]] == [
            (".kb/config.json:2", "$.extractors.markdown.pats"),
            (".kb/config.json:2", "$.extractors.markdwn"),
            (".kb/config.json:2", "$.extractors.markdown.paths.rq"),
            (".kb/config.json:3", "$.rules.cylces"),
        ]


def test_unknown_rules_and_broken_rules_files_are_refused(kb, synced):
    ran = kb("check", "--rule", "acyclick", "--rule", "orphan")
    assert ran.status == 64
    assert "Did you mean 'acyclic'?" in ran.err
    assert "\n  at --rule\n  --rule: There is no rule 'orphan'. (Did you mean 'orphans'?)\n" in ran.err
    paths = [one["path"] for one in kb("check", "--rule", "a", "--rule", "b", "--json").error["details"]]
    assert paths == ["$.rules[0]", "$.rules[1]"]
    write(synced, {".kb/rules/own.yaml": "rules:\n- id: Bad Name\n  sql: select 1\n"})
    ran = kb("check")
    assert ran.status == 63
    assert ".kb/rules/own.yaml:2" in ran.err
    (synced / ".kb/rules/own.yaml").write_bytes(b"\xff")
    assert kb("check").status == 63


def test_stored_text_in_a_message_is_shown_safely(kb, synced):
    document = LOGIN.replace("REQ-1", '"R\\e[31m"').replace("tags", "links: [GONE]\ntags")
    write(synced, {"docs/requirements/x.md": document})
    kb("sync")
    ran = kb("check")
    assert "\x1b" not in ran.out + ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--staged", "--since", "1"], "leave out --staged or --since"),
        (["--staged", "--require-synced"], "--staged judges what is staged"),
        (["--json", "--format", "sarif"], "contradict each other"),
        (["--staged", "--branch", "other"], "does not write them to other"),
        (["--since", "mian"], "Did you mean 'main'?"),
    ],
)
def test_what_cannot_be_asked_together_or_means_nothing_is_refused(kb, synced, words, said):
    ran = kb("check", *words)
    assert ran.status == 2
    assert said in ran.out + ran.err


@pytest.mark.sliced
def test_a_suspect_edge_is_reported_with_the_command_that_confirms_it(kb, synced):
    kb(
        "apply",
        "-",
        stdin='{"entities": [{"id": "S", "type": "symbol", "title": "s", "status": "active"}], '
        '"edges": [{"type": "implements", "from": "S", "to": "REQ-1"}]}',
    )
    write(synced, {"docs/requirements/login.md": LOGIN + "\nMore is wanted now.\n"})
    kb("sync")
    ran = kb("check", "--rule", "suspect-edge")
    [reported] = [line for line in ran.out.splitlines() if "S implements REQ-1, but REQ-1 has changed at seq 3" in line]
    command = reported.partition("`kb confirm ")[2].partition("`")[0]
    assert kb("confirm", *shlex.split(command)).status == 0
    assert "S implements" not in kb("check", "--rule", "suspect-edge").out
    assert "~ S implements REQ-1 (confirmed)" in kb("show", "4").out
    assert "nothing to change" in kb("revert", "4").out


@pytest.mark.sliced
def test_an_answer_of_the_records_alone_says_so(kb, synced):
    assert "not of the files" not in kb("check").err
    git(synced, "checkout", "-q", "-b", "topic")
    said = "note: The answer is only of the records of main, not of the files. topic is checked out"
    for words in (("query", "req"), ("impact", "REQ-1")):
        assert said in kb("--branch", "main", *words).err, words
    for options in ((), ("--statistics",), ("--quiet",), ("--require-synced",)):
        ran = kb("--branch", "main", "check", *options)
        assert (ran.status, "topic is checked out" in ran.err, "--recorded" in ran.err) == (29, True, True)
    kb("branch", "ensure")
    assert "note: The answer is of the records of topic as of seq 1, not of the files." in kb("query", "--at", "1").err
    assert kb("--branch", "main", "check", "--recorded").err == ""


def test_a_check_of_a_project_of_which_nothing_is_read_says_where_the_documents_lie(kb, ready):
    write(ready, {"notes/a.md": LOGIN})
    kb("sync")
    ran = kb("check")
    assert "Nothing is read: no file is where the extractors look (" in ran.err
    assert "1 Markdown file is elsewhere, such as 'notes/a.md'." in ran.err
    with direct(ready) as found:
        assert "1 Markdown file is elsewhere" in found.answer("kb_check")["note"]


@pytest.mark.sliced
def test_a_missing_configuration_is_said_by_what_answers_without_it(kb, synced):
    write(synced, {".kb/schema/own.yaml": "entities: {}\n"})
    assert kb("check").err == ""
    (synced / ".kb/config.json").unlink()
    for words in (("check",), ("query",), ("query", "--json"), ("show", "REQ-1"), ("coverage",), ("impact", "REQ-1")):
        assert kb(*words).err.count(".kb/config.json is missing, so KB's defaults apply.") == 1, words
    with direct(synced) as found:
        assert ".kb/config.json is missing" in found.answer("kb_check")["note"]
        assert ".kb/config.json is missing" in found.answer("kb_query", type="req")["note"]


@pytest.mark.sliced
def test_a_missing_extractor_is_said_by_what_answers_without_it(kb, synced):
    write(synced, {".kb/config.json": '{"extractors": {"todos": {"paths": ["TODO"]}}}'})
    for words in (("check",), ("query",), ("show", "REQ-1")):
        assert kb(*words).err.count("No installed package has the extractor 'todos'.") == 1, words
    with direct(synced) as found:
        for tool, request in (("kb_check", {}), ("kb_query", {"type": "req"})):
            assert "No installed package has the extractor 'todos'." in found.answer(tool, **request)["note"], tool


def test_orphans_wait_for_the_first_edge_and_coverage_does_not(kb, ready):
    write(ready, {"docs/requirements/a.md": document("REQ-1", "priority: must\n")})
    ran = kb("check")
    assert (ran.status, "must-coverage: 2" in ran.out, "orphans" in ran.out) == (1, True, False)
    assert (
        ran.err == "The rule orphans was not run: The branch has no edge yet; the rule is run from the first one on.\n"
    )
    write(ready, {"docs/requirements/b.md": document("REQ-2", "links: [{depends_on: [REQ-1]}]\n")})
    assert "orphans" not in kb("check").err


@pytest.mark.parametrize("is_synced", [True, False], ids=["recorded", "pending"])
def test_orphans_are_found_when_the_last_edge_of_a_branch_is_gone(kb, ready, is_synced):
    write(ready, {"docs/requirements/a.md": document("REQ-1")})
    write(ready, {"docs/requirements/b.md": document("REQ-2", "links: [{depends_on: [REQ-1]}]\n")})
    assert kb("sync").status == 0
    write(ready, {"docs/requirements/b.md": document("REQ-2")})
    if is_synced:
        assert kb("sync").status == 0
    found = kb("check", "--rule", "orphans", "--json").json["violations"]
    assert [one["id"] for one in found] == ["REQ-1", "REQ-2"]
