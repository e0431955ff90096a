"""``kb dml check``: formats, statuses, several files, and tools of a file."""

from __future__ import annotations

import json

import pytest

from kbcore.limits import MAX_PROGRAM_CHARS
from tests.support.logic.engines import engine_variables
from tests.support.processes.cli import write

GOOD = 'agent_main(Topic) :- task("On {Topic}", string(Found)), answer("{Found}").\n'
WARNED = "agent_main :- true.\nb.\n"
WRONG = 'agent_main :-\n    fo(1),\n    log("{X}").\n'
TOOLS = 'def search(query: str) -> str:\n    """Search."""\n    return query\n\n\nTOOLS = [search]\n'


@pytest.fixture
def check(user, kb, tmp_path):
    """Check programs in a folder that is no repository."""
    for name, value in engine_variables("auto").items():
        user.setenv(name, value)
    write(tmp_path, {"good.dml": GOOD, "warned.dml": WARNED, "wrong.dml": WRONG, "tools.py": TOOLS})

    def run(*words, stdin="", cwd=tmp_path):
        return kb("dml", "check", *words, cwd=cwd, stdin=stdin)

    return run


def test_a_program_without_findings_is_listed_with_status_0(check):
    ran = check("good.dml")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (
        "good.dml: no findings\n  params: Topic (argument)\n  task 1:22: 'On {Topic}' gives Found (string)\n"
    )


def test_each_finding_is_a_line_as_compilers_write_it(check):
    ran = check("wrong.dml")
    assert ran.status == 1
    first, second, last = ran.out.splitlines()
    assert first.startswith("wrong.dml:2:5: error: There is no predicate `fo/1`.")
    assert second.startswith("wrong.dml:3:10: error: The text has `{X}`, and the clause has no variable `X`.")
    assert second.endswith("[unknown_name]")
    assert last == "wrong.dml: 2 errors"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["warned.dml"], 0),
        (["warned.dml", "--fail-on", "warning"], 1),
        (["wrong.dml", "--fail-on", "never"], 0),
        (["good.dml", "wrong.dml"], 1),
        (["good.dml", "kb:triage", "--fail-on", "warning"], 0),
        (["missing.dml"], 2),
        (["kb:missing"], 64),
        (["good.dml", "--json", "--format", "sarif"], 2),
        ([], 2),
    ],
)
def test_the_status_says_whether_something_counts_as_a_failure(check, words, status):
    assert check(*words).status == status


def test_json_has_places_with_their_ends(check):
    ran = check("wrong.dml", "-", "--format", "json", stdin=GOOD)
    found = ran.json
    assert (found["errors"], found["warnings"]) == (2, 0)
    assert [one["file"] for one in found["files"]] == ["wrong.dml", "stdin"]
    first = found["files"][0]["findings"][0]
    assert [first[name] for name in ("line", "column", "end_line", "end_column")] == [2, 5, 2, 10]
    assert (first["code"], first["name"], first["severity"]) == ("unknown_predicate", "fo/1", "error")
    assert check("wrong.dml", "-", "--json", stdin=GOOD).json == found


def test_sarif_has_regions_and_paths_from_the_top_of_the_repository(check, project):
    write(project.root, {"agents/a.dml": WRONG})
    ran = check("a.dml", "--format", "sarif", cwd=project.root / "agents")
    assert ran.status == 1
    [run] = json.loads(ran.out)["runs"]
    result = run["results"][0]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "agents/a.dml", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 2, "startColumn": 5, "endLine": 2, "endColumn": 10}
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "unknown_predicate"
    marks = [one["partialFingerprints"]["kbProgram/v1"] for one in run["results"]]
    assert len({*marks}) == len(marks) == 2


def test_a_tool_that_nobody_has_is_an_error_with_the_tools_of_a_file(check, tmp_path):
    write(tmp_path, {"a.dml": 'agent_main :- exec(search("x"), A), exec(serch("x"), B), log("{A} {B}").\n'})
    without, with_tools = check("a.dml"), check("a.dml", "--tools", "tools.py")
    assert (without.status, without.out.count("[tool_not_listed]")) == (0, 2)
    assert with_tools.status == 1
    assert "a.dml:1:42: error: There is no tool `serch`. Did you mean 'search'? [unknown_tool]" in with_tools.out
    assert "tool_not_listed" not in with_tools.out


def test_what_a_program_says_does_not_act_on_the_terminal(check, tmp_path):
    write(tmp_path, {"a\x1b[31m.dml": "agent_main :- 'x\x1b[31m'(1), task(\"\\e[31m \x1b[31m\").\n"})
    for words in ([], ["--json"], ["--format", "sarif"]):
        ran = check("a\x1b[31m.dml", *words)
        assert ran.status == 1
        assert "\x1b" not in ran.out + ran.err


def test_bytes_before_a_text_and_line_ends_of_windows_change_no_place(check, tmp_path):
    (tmp_path / "a.dml").write_bytes(b"\xef\xbb\xbf" + WRONG.replace("\n", "\r\n").encode())
    places = [(one["line"], one["column"]) for one in check("a.dml", "--json").json["files"][0]["findings"]]
    assert places == [(2, 5), (3, 10)]


@pytest.mark.parametrize(
    ("data", "status", "said"),
    [
        (b"agent_main :- \xff.\n", 2, "is not UTF-8"),
        (b"", 1, "[no_main]"),
        (b"agent_main :- a\0b.\n", 1, "[syntax_error]"),
        (b"a" * (MAX_PROGRAM_CHARS + 1), 1, "[too_long]"),
    ],
)
def test_a_file_that_is_no_program_is_said_to_be_none(check, tmp_path, data, status, said):
    (tmp_path / "a.dml").write_bytes(data)
    ran = check("a.dml")
    assert ran.status == status
    assert said in ran.out + ran.err


def test_no_store_is_needed_and_none_is_made(check, tmp_path):
    assert check("good.dml").status == 0
    assert not (tmp_path / ".kb").exists()
