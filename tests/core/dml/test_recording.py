"""The author of what a run writes, and what its event says."""

from __future__ import annotations

import hashlib

from kbcore.dml.recording import author_of, begun, new_run

AT = "2026-11-20T09:30:00.000000Z"


def test_two_runs_of_one_program_have_different_sessions():
    first, second = new_run("a.dml"), new_run("a.dml")
    assert first.program == second.program == "a.dml"
    assert author_of(first).session != author_of(second).session


def test_the_source_of_a_write_names_program_run_and_task():
    run = new_run("a.dml")
    assert author_of(run, 3).source == f"dml:a.dml/{run.id}/task-3"
    assert author_of(run).source == f"dml:a.dml/{run.id}"
    assert author_of(run).session == run.id


def test_the_name_of_a_program_is_escaped_and_cut():
    run = new_run("a\x1b[31m" + "b" * 100)
    assert "\x1b" not in run.program
    assert len(run.program) == 60


def test_secrets_in_params_are_masked():
    params = {"token": "q8Zr2vKp9WxT4nBs7Lyd", "note": "ghp_" + "a1B2" * 9, "topic": "tea", "list": ["AKIA" + "B" * 16]}
    found = begun(new_run("a"), "agent_main.", params, "m", AT)
    assert found["params"] == {"token": "q8Zr…", "note": "ghp_…", "topic": "tea", "list": ["AKIA…"]}


def test_a_long_param_is_cut_and_the_program_is_named_by_its_digest():
    found = begun(new_run("a"), "agent_main.", {"text": "x" * 10_000, "data": list(range(5_000))}, "", AT)
    assert len(found["params"]["text"]) == 2_001
    assert len(found["params"]["data"]) == 2_001
    assert found["program_sha256"] == hashlib.sha256(b"agent_main.").hexdigest()
    assert found["outcome"] == "running"
