"""The jobs of `kb prove`: done with KB and with Markdown, within their limits, and judged by what is really there."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator

import pytest

from kbcli import app
from kbcli.prove import report, run, situation
from kbcli.prove.job import SYSTEMS, Job, JobStep, Result, Script, bash
from kbcli.prove.report import JOBS
from kbcli.prove.scene import Scene
from tests.support.docs.console import environment
from tests.support.docs.regenerate_docs import PROVED
from tests.support.processes.forked import ROOT, stand_in

STAND_IN = """\
#!{python}
import json, os, sys
from pathlib import Path
from kbcli.demo.client import ServerCall, ServerProgram, converse
from kbcli.prove.report import JOBS

if sys.argv[1:] == ["--version"]:
    sys.exit(print("stand-in 1.2.3"))
entry = json.loads(Path(".mcp.json").read_text())["mcpServers"]["kb"]
[steps] = [one.scripts["kb"].calls for one in JOBS if one.request == sys.argv[-1]]
server = ServerProgram(entry["command"], tuple(entry["args"]), dict(os.environ), Path.cwd())
done = converse(server, "stand-in", [ServerCall(one.tool, dict(one.arguments)) for one in steps])
print({said})
"""
"""A client that makes the calls of the script of a job."""
CALLS, TOKENS = 45, 9_000
"""The most that all jobs may take with KB."""
MEMORY = run.find_memory(os.environ.get("PATH"))


@pytest.fixture(scope="module")
def around(tmp_path_factory) -> Iterator[None]:
    with environment(tmp_path_factory.mktemp("around")):
        yield


@pytest.fixture(scope="module")
def runner(around, tmp_path_factory) -> Iterator[run.ProveRunner]:
    """A runner with a server that has imported what it needs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(situation, "KB_SERVER", (str(stand_in("kb-mcp")),))
        yield run.ProveRunner(Scene(tmp_path_factory.mktemp("prove"), dict(os.environ)), MEMORY)


def prove(*words: str) -> tuple[int, str]:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        status = app.main(["prove", *words])
    return status, shown.getvalue()


def job(script: Script, **rest: tuple[str, ...]) -> Job:
    return Job("one", "?", {"markdown": script, "kb": script}, **rest)


def test_all_jobs_are_done_with_kb_within_the_limits(runner):
    results = [runner.run(one, "kb") for one in JOBS]
    assert [(one.job, one.why) for one in results if one.verdict != "done"] == []
    assert sum(one.calls for one in results) <= CALLS
    assert sum(one.tokens for one in results) <= TOKENS


@pytest.mark.parametrize(
    "system",
    [
        "markdown",
        pytest.param("memory", marks=pytest.mark.skipif(MEMORY is None, reason="mcp-server-memory is missing")),
    ],
)
def test_other_systems_finish_nothing_wrongly_either(runner, system):
    results = [runner.run(one, system) for one in JOBS]
    assert {one.why for one in results if one.verdict == "wrong"} == set()
    assert {one.job for one in results if one.verdict == "impossible"} == {
        one.name for one in JOBS if one.scripts[system].impossible
    }


def test_a_job_does_not_see_what_another_one_did(runner):
    rewritten = job(Script((bash("echo one > NOTES.md; cat NOTES.md"),)), facts=("one",))
    untouched = job(Script((bash("cat NOTES.md"),)), facts=("Vans send",), not_facts=("one\n",))
    assert [runner.run(one, "markdown").verdict for one in (rewritten, untouched)] == ["done", "done"]


@pytest.mark.parametrize(
    ("script", "checks", "why"),
    [
        (Script((bash("echo a"),)), {"facts": ("b",)}, "'b' is missing in the answers."),
        (Script((bash("echo a"),)), {"not_facts": ("a",)}, "'a' is in the answers."),
        (Script((bash("echo a"),)), {"holds": ("a",)}, "'a' is missing in the result."),
        (
            Script((bash("echo a"),), afterwards=(bash("echo b"),)),
            {"not_holds": ("b",)},
            "'b' is in the result.",
        ),
        (Script((bash("exit 7"),)), {}, "bash answered: "),
    ],
)
def test_a_job_that_is_not_done_is_wrong(runner, script, checks, why):
    result = runner.run(job(script, **checks), "markdown")
    assert (result.verdict, result.why) == ("wrong", why)


def test_what_the_model_works_out_may_be_among_other_facts(runner):
    read = job(Script((bash("echo a b"),), is_read=True), facts=("a",), not_facts=("b",))
    assert runner.run(read, "markdown").verdict == "by reading"


def test_a_refusal_that_is_not_expected_is_wrong(runner):
    refused = JobStep("kb_query", {"type": "rq"})
    assert "no entity type" in runner.run(job(Script((refused,))), "kb").why


def test_only_the_calls_of_the_agent_are_counted(runner):
    script = Script((bash("echo abc"), bash("echo def", "another")), before=(bash("true"),))
    result = runner.run(job(script), "markdown")
    assert (result.calls, result.tokens_in, result.tokens_out) == (1, len('bash {"command":"echo abc"}') // 4 + 1, 1)


def test_there_are_20_jobs_and_each_has_a_script_for_each_system():
    assert len({one.name for one in JOBS}) == len(JOBS) == 20
    for one in JOBS:
        assert set(one.scripts) == set(SYSTEMS)
        assert not one.scripts["kb"].impossible
        assert all(bool(script.calls) != bool(script.impossible) for script in one.scripts.values())
        assert one.facts or one.holds


def test_the_command_answers_in_json_with_totals(around):
    status, out = prove("--job", "remember", "--system", "markdown", "--format", "json")
    answer = json.loads(out)
    assert status == 0
    assert answer["totals"] == {"markdown": {"calls": 1, "tokens": 20, "verdicts": {"done": 1}}}
    assert [(one["job"], one["verdict"]) for one in answer["results"]] == [("remember", "done")]


def test_a_job_has_a_number_and_an_unknown_one_is_refused(around):
    assert "must-without-test  1 call" in prove("--job", "1", "--system", "markdown")[1]
    status, out = prove("--job", "remeber")
    assert status == 2
    assert "Did you mean 'remember'?" in out


def client(folder, patch, said: str) -> None:
    """Put a stand-in for Claude Code on the PATH."""
    program = folder / "claude"
    program.write_text(STAND_IN.format(python=sys.executable, said=said))
    program.chmod(0o755)
    patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    patch.setenv("PYTHONPATH", str(ROOT))
    patch.setattr(situation, "KB_SERVER", (str(stand_in("kb-mcp")),))


def test_a_client_does_jobs_by_calls_of_its_own(around, monkeypatch, tmp_path):
    client(tmp_path, monkeypatch, "done.answers[-1].text")
    names = ("must-without-test", "undo-hour", "lost-update")
    words = [word for name in names for word in ("--job", name)]
    status, out = prove(*words, "--client", "claude-code", "--format", "json")
    answer = json.loads(out)
    found = {one["job"]: (one["verdict"], one["calls"]) for one in answer["results"]}
    assert found == {
        "must-without-test": ("done", 1),
        "undo-hour": ("done", 2),
        "lost-update": ("not run", 0),
    }
    assert status == 0
    assert answer["versions"]["claude-code"] == "1.2.3"
    assert all(one["tokens_in"] and one["tokens_out"] for one in answer["results"] if one["calls"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "verdict", "why"),
    [
        ("'It is done.'", "by reading", ""),
        ("sys.exit('No credit.')", "wrong", "claude ended with status 1: No credit."),
    ],
)
def test_an_answer_of_a_client_is_judged_by_what_it_says(around, monkeypatch, tmp_path, said, verdict, why):
    client(tmp_path, monkeypatch, said)
    status, out = prove("--job", "1", "--client", "claude-code", "--format", "json")
    [result] = json.loads(out)["results"]
    assert (result["verdict"], result["why"], result["calls"]) == (verdict, why, 1)
    assert status == (verdict == "wrong")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--client", "zed"), "'zed' cannot be started for one request."),
        (("--client", "codx"), "Did you mean 'codex'?"),
        (("--client", "gemini"), "gemini is not on the PATH."),
        (("--client", "codex", "--system", "kb"), "--client and --system exclude each other."),
    ],
)
def test_a_client_that_cannot_be_run_is_refused(around, monkeypatch, tmp_path, words, message):
    monkeypatch.setenv("PATH", str(tmp_path))
    status, out = prove(*words)
    assert status == 2
    assert message in out


def test_without_the_memory_server_its_jobs_are_not_run(around, monkeypatch):
    monkeypatch.setattr(run, "MEMORY_PROGRAM", "no-such-program")
    status, out = prove("--job", "remember", "--system", "memory")
    assert status == 0
    assert "not run with server-memory. mcp-server-memory is not installed." in out
    assert "0 calls" not in out


def test_jobs_that_take_more_tokens_with_kb_are_named():
    results = [
        *(Result("a", "kb", "done", 1, 5, 5), Result("a", "markdown", "done", 1, 5, 4)),
        *(Result("b", "kb", "done", 1, 5, 5), Result("b", "markdown", "wrong", 1, 1, 1, "It is wrong.")),
    ]
    found = report.ProveReport("2026-11-30", {"KB": "1"}, {"kb": 700}, results)
    said = report.markdown(found)
    assert "KB takes more tokens than Markdown and grep for a.\n" in said
    assert "| b |  | 1 call, 10 | 1 call, 2, wrong |" in said
    assert "- b: wrong with Markdown and grep. It is wrong." in said


def test_the_stored_run_is_of_these_jobs_and_within_the_limits():
    stored = report.read(PROVED)
    assert stored.jobs == [one.name for one in JOBS]
    assert stored.systems == list(SYSTEMS)
    total = stored.total("kb")
    assert total.verdicts == {"done": 20}
    assert total.calls <= CALLS
    assert total.tokens <= TOKENS
