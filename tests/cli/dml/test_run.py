"""``kb dml run``: events as text and as JSON, exit statuses, input, and what is left of a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.logic.engines import engine_variables, is_running
from tests.support.processes.cli import environment, program, write

LOOP = "agent_main :- log(begun), repeat, fail.\n"
GREET = """agent_main(Topic) :-
    log("looking at {Topic}"), writeln(printed), output("an output"),
    wait_for_input("Your name?", Name), answer("Hello {Name} \\e[31m, {Topic}.").
"""
WRITE = """agent_main(Id) :-
    exec(kb_upsert(entities: [_{id: Id, type: "req", title: "From a run", status: "open"}]), _), answer("written").
"""


@pytest.fixture
def dml(any_engine, kb, tmp_path):
    """Run a program outside of every repository; its text is given on the way."""
    folder = tmp_path / "plain"
    folder.mkdir()

    def run(code, *words, stdin="", cwd=folder):
        write(cwd, {"a.dml": code})
        return kb("dml", "run", "a.dml", *words, cwd=cwd, stdin=stdin)

    return run


def events(ran):
    return [json.loads(line) for line in ran.out.splitlines()]


def test_outputs_go_to_standard_output_and_logs_to_standard_error(dml):
    ran = dml(GREET, "--param", "Topic=tea", stdin="Ines\nmore\n")
    assert ran.status == 0
    assert ran.out == "printed\nan output\nHello Ines \\x1b[31m, tea.\n"
    assert ran.err == "looking at tea\n"


def test_with_json_each_event_is_one_line_and_the_last_one_is_finished(dml):
    ran = dml(GREET, "--param", "Topic=tea", "--json", stdin="Ines\n")
    assert (ran.status, ran.err) == (0, "")
    found = events(ran)
    assert [one["type"] for one in found] == ["log", "output", "output", "input_required", "answer", "finished"]
    assert found[3] == {"type": "input_required", "prompt": "Your name?"}
    assert found[-1]["outcome"] == "success"
    assert found[-1]["run"].startswith("dml-")
    assert "\x1b" not in ran.out


def test_a_program_on_standard_input_cannot_be_answered(any_engine, kb):
    ran = kb("dml", "run", "-", stdin='agent_main :- catch(wait_for_input("?", _), error(E, _), true), answer("{E}").')
    assert (ran.status, ran.out) == (0, "existence_error(input,user)\n")


def test_a_program_that_fails_has_the_status_1(dml):
    ran = dml('agent_main :- output("x"), fail.')
    assert (ran.status, ran.out, ran.err) == (
        1,
        "x\n",
        "The program failed: it found no way to do what it was asked.\n",
    )
    assert events(dml("agent_main :- fail.", "--json"))[-1]["outcome"] == "failure"


@pytest.mark.parametrize(
    ("code", "words", "status", "said"),
    [
        ("agent_main :- chat(x).", (), 36, "`chat/1` is of an earlier language."),
        ("agent_main(A) :- answer(A).", (), 36, "No value is given for 'A'."),
        ("agent_main :- X is foo + 1, log(X).", (), 36, "The program ended with an error in `(is)/2`: Arithmetic: "),
        (
            'agent_main :- task("x").',
            (),
            35,
            "no model is named.\nhint: Name one with `--model NAME`, or set KB_DML_MODEL.",
        ),
        (LOOP, ("--gas", "1000"), 25, "The run has used its budget of 1,000 steps."),
        (LOOP, ("--timeout", "0.5"), 25, "The run has used its budget of 0.5 seconds."),
        ("agent_main.", ("--timeout", "nan"), 2, "--timeout must be a number above 0 and at most 604,800, not 'nan'."),
        ("agent_main.", ("--gas", "0"), 2, "--gas must be a number above 0"),
        ("agent_main.", ("--workspace", "nowhere"), 2, "--workspace: there is no folder "),
        ("agent_main.", ("--param", "x"), 2, "--param 'x' is no NAME=VALUE."),
        ("agent_main.", ("--tools", "nowhere.py"), 2, "--tools: there is no file "),
        ("agent_main.", ("--deny", ""), 2, "--deny is empty."),
        (
            "agent_main(Text) :- answer(Text).",
            ("--param", "Txet=x"),
            36,
            "no param 'Txet'.\nhint: Did you mean 'Text'?",
        ),
        ('agent_main :- wait_for_input("?", _).', (), 2, "standard input has no further line"),
        ("agent_main.", ("--record",), 60, "is in no git repository"),
    ],
)
def test_each_error_has_its_status_as_text_and_as_the_last_events(dml, code, words, status, said):
    text, lines = dml(code, *words), dml(code, *words, "--json")
    assert text.status == lines.status == status, text
    assert said in text.err
    assert text.err.count("hint: ") == 1
    error, finished = events(lines)[-2:]
    assert (error["type"], finished["type"], finished["outcome"]) == ("error", "finished", "error")
    assert error["content"] or error["details"]
    assert lines.err == ""


def test_a_tool_of_kb_that_fails_says_why_and_nothing_else(any_engine, synced, kb):
    code = 'agent_main :- exec(kb_query(type: "reqq"), _).'
    ran = kb("dml", "run", "-", stdin=code)
    assert (ran.status, ran.err.splitlines()) == (
        1,
        [
            "note: The tool `kb_query` failed: invalid_query: There is no entity type 'reqq'. Did you mean 'req'?",
            "The program failed: it found no way to do what it was asked.",
        ],
    )


def test_a_file_that_is_not_there_is_an_event_too(any_engine, kb):
    ran = kb("dml", "run", "nowhere.dml", "--json")
    assert (ran.status, [one["type"] for one in events(ran)]) == (2, ["error", "finished"])
    assert kb("dml", "run", "kb:nothing").status == kb("dml", "run", "kb:nothing", "--json").status == 64


@pytest.mark.parametrize("words", [(), ("--allow", "kb_*"), ("--deny", "execute_kip")])
def test_a_shipped_program_is_not_run_without_the_tools_that_it_needs(any_engine, synced, kb, words):
    ran = kb("dml", "run", "kb:sleep", *words)
    assert (ran.status, ran.out) == (2, "")
    assert "hint: Run it with --allow kb_sleep --allow execute_kip." in ran.err


def test_a_shipped_program_runs_by_its_name(any_engine, synced, kb):
    ran = kb("dml", "run", "kb:sleep", "--allow", "kb_sleep", "--allow", "execute_kip", "--record")
    assert (ran.status, ran.out) == (0, "0 decided, 0 left.\n")
    [event] = kb("query", "Event", "--json").json["entities"]
    assert event["attributes"]["program"] == "kb:sleep"


def test_params_are_json_or_text_and_arguments_go_by_position(dml):
    code = 'agent_main(A, B) :- get_dict(n, A, N), M is N + 1, answer("{M} {B}").'
    assert dml(code, "--param", 'A={"n": 1}', "--param", "B=b c").out == "2 b c\n"
    assert dml(code, "--arg", '{"n": 1}', "--arg", "x").out == "2 x\n"


def test_a_program_has_the_files_of_its_folder_alone(dml, tmp_path):
    write(tmp_path, {"files/in.txt": "inside", "out.txt": "outside"})
    code = "agent_main(F) :- read_file_to_string(F, T, []), answer(T)."
    assert dml(code, "--arg", "in.txt", "--workspace", str(tmp_path / "files")).out == "inside\n"
    assert dml(code, "--arg", "../out.txt", "--workspace", str(tmp_path / "files")).status == 36
    assert dml(code, "--arg", "in.txt").status == 36


def test_tools_of_a_file_are_called_under_the_policy(dml, tmp_path):
    tools = tmp_path / "plain/t.py"
    tools.write_text('def double(n: int) -> int:\n    "Twice."\n    return 2 * n\nTOOLS = [double]\n')
    code = 'agent_main :- exec(double(21), N), answer("{N}").'
    assert dml(code, "--tools", "t.py").out == "42\n"
    assert dml(code, "--tools", "t.py", "--allow", "dou*").out == "42\n"
    denied = dml(code, "--tools", "t.py", "--deny", "d*")
    assert (denied.status, "note: `double` is blocked: the policy denies `d*`." in denied.err) == (1, True)
    assert "it is not on the list of allowed tools" in dml(code, "--tools", "t.py", "--allow", "x").err


def test_a_tool_that_does_not_return_is_left_when_the_time_is_over(dml, tmp_path):
    tools = tmp_path / "plain/t.py"
    tools.write_text("import time\ndef hang() -> None:\n    time.sleep(600)\nTOOLS = [hang]\n")
    begun_s = time.monotonic()
    ran = dml("agent_main :- exec(hang, _).", "--tools", "t.py", "--timeout", "1")
    assert (ran.status, "budget of 1 seconds" in ran.err) == (25, True)
    assert time.monotonic() - begun_s < 300


def test_a_trace_shows_requests_and_calls_of_tools(dml):
    ran = dml('agent_main :- log("x").', "--trace")
    assert 'trace: log {"request":{"kind":"log",' in ran.err
    assert {"trace", "log"} <= {one["type"] for one in events(dml('agent_main :- log("x").', "--trace", "--json"))}


def test_without_an_allowed_tool_nothing_is_written(any_engine, synced, kb):
    write(synced, {"w.dml": WRITE})
    ran = kb("dml", "run", "w.dml", "--arg", "REQ-7")
    assert (ran.status, "it writes, and no policy allows it by name" in ran.err) == (1, True)
    assert kb("log", "--source", "dml", "--json").json["records"] == []


def test_a_recorded_run_is_one_event_and_is_taken_back_as_a_whole(any_engine, synced, kb):
    write(synced, {"w.dml": WRITE})
    before = kb("query", "--json").json["entities"]
    ran = kb("dml", "run", "w.dml", "--arg", "REQ-7", "--allow", "kb_upsert", "--record")
    assert (ran.status, ran.out) == (0, "written\n")
    [event] = kb("query", "Event", "--json").json["entities"]
    run, found = event["name"], event["attributes"]
    assert f"`kb revert --session {run}` takes back all that it wrote." in ran.err
    assert (found["program"], found["outcome"], found["memory_messages"]) == ("w.dml", "success", 1)
    assert {"program_sha256", "params", "model", "duration_s", "input_tokens"} <= set(found)
    records = kb("log", "--session", run, "--json").json["records"]
    assert [one["source"] for one in records] == [f"dml:w.dml/{run}"] * 3
    assert "Event" not in kb("check").out, "a run is linked, and no rule finds fault with it"
    assert kb("revert", "--session", run).status == 0
    assert kb("query", "--json").json["entities"] == before


def test_a_secret_of_a_param_is_neither_recorded_nor_shown(any_engine, synced, kb):
    secret = "q8Zr2vKp9WxT4nBs7Lyd"
    code = 'agent_main :- param("token", T), string_length(T, N), answer("{N}").'
    write(synced, {"s.dml": code})
    ran = kb("dml", "run", "s.dml", "--param", f"token={secret}", "--record", "--json")
    assert events(ran)[0]["content"] == "20"
    journals = list(synced.rglob("journal-*.jsonl"))
    assert journals
    assert all(secret not in one.read_text(encoding="utf-8") for one in journals)
    assert secret not in ran.out + ran.err


def test_a_program_without_tools_of_kb_imports_none_of_them(any_engine, tmp_path):
    write(tmp_path, {"a.dml": 'agent_main :- answer("x").'})
    watched = ["kbmcp", "mcp_types", "anyio", "pydantic", "duckdb", "kbcore.view", "kbcore.kip"]
    script = f"import sys; from kbcli.app import main; main(); print(sorted({watched} & sys.modules.keys()))"
    script = script.replace(str(watched), f"set({watched})")
    done = subprocess.run(
        [sys.executable, "-c", script, "dml", "run", "a.dml"],
        cwd=tmp_path,
        env=environment(engine_variables("auto")),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "x\n[]\n"


def test_a_run_that_fails_or_ends_with_an_error_is_recorded_too(any_engine, synced, kb):
    for code, outcome, status in (
        ("agent_main :- fail.", "failure", 1),
        ("agent_main :- X is a, log(X).", "error", 36),
    ):
        write(synced, {"f.dml": code})
        last = events(kb("dml", "run", "f.dml", "--record", "--json"))[-1]
        assert last["outcome"] == outcome
        found = kb("show", f"Event:{last['run']}", "--json").json["entity"]["attributes"]
        assert (found["outcome"], "error" in found) == (outcome, status == 36)
    ran = kb("dml", "run", "f.dml", "--record")
    assert "Nothing was written" not in ran.err


def test_two_recorded_runs_at_once_are_taken_back_each_by_itself(any_engine, synced, kb):
    write(synced, {"w.dml": WRITE})
    started = [
        subprocess.Popen(
            [*program(), "dml", "run", "w.dml", "--arg", f"REQ-7{n}", "--allow", "kb_upsert", "--record", "--json"],
            cwd=synced,
            env=environment(engine_variables("auto")),
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        for n in range(2)
    ]
    runs = [json.loads(one.communicate()[0].splitlines()[-1])["run"] for one in started]
    assert kb("revert", "--session", runs[0]).status == 0
    assert kb("show", "REQ-70").status != 0
    assert kb("show", "REQ-71").status == 0
    assert kb("revert", "--session", runs[1]).status == 0
    assert kb("query", "Event", "--json").json["entities"] == []


def started(folder: Path, code: str, *words: str, engine: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start a run in a process of its own, and wait until its program has begun."""
    write(folder, {"loop.dml": code})
    process = subprocess.Popen(
        [*program(), "dml", "run", "loop.dml", "--json", *words],
        cwd=folder,
        env=environment(engine),
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    assert b'"begun"' in process.stdout.readline()
    return process


def engines_of(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += (task / "children").read_text().split()
    return sorted(set(map(int, found)))


def all_ended(pids: list[int], within_s: float) -> bool:
    end = time.monotonic() + within_s
    while any(map(is_running, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(is_running, pids))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_and_its_engine(tmp_path, engine, number):
    process = started(tmp_path, LOOP, engine=engine)
    engines = engines_of(process.pid)
    assert engines
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert json.loads(out.splitlines()[-1]) == {"type": "finished", "outcome": "error"}
    assert all_ended(engines, 30)


def test_a_signal_ends_a_run_whose_engine_is_made_for_the_first_time(tmp_path, engine):
    write(tmp_path, {"loop.dml": LOOP})
    process = subprocess.Popen(
        [*program(), "dml", "run", "loop.dml"],
        cwd=tmp_path,
        env=environment(engine) | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    while not (made := engines_of(process.pid)):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert all_ended(made, 30)
    assert list((tmp_path / "cache/kb/prolog").iterdir()) == []


def test_a_killed_run_leaves_a_record_that_is_taken_back(any_engine, synced, kb):
    code = WRITE.replace('answer("written")', "log(begun), repeat, fail")
    process = started(
        synced, code, "--arg", "REQ-7", "--allow", "kb_upsert", "--record", engine=engine_variables("auto")
    )
    engines = engines_of(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert all_ended(engines, 30)
    [event] = kb("query", "Event", "--json").json["entities"]
    assert event["attributes"]["outcome"] == "running"
    assert kb("show", "REQ-7").status == 0
    assert kb("revert", "--session", event["name"]).status == 0
    assert kb("show", "REQ-7").status != 0
    assert kb("query", "Event", "--json").json["entities"] == []
