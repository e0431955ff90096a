"""The text of KB's lines: put in, taken out, and harmless by themselves."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcli.hooks import script
from tests.support.repository.hooks import (
    NO_KB,
    calls,
    env_with,
    make_program,
)


@given(st.binary(max_size=60), st.sampled_from([b"", b"#!/bin/sh\n", b"#!/usr/bin/env bash\n"]))
def test_taking_the_lines_out_gives_back_what_was_there(body, first):
    content = first + body
    lines = script.block("post-merge", Path("/opt/k'b"))
    with_lines = script.with_block(content, lines)
    assert script.has_block(with_lines)
    assert script.with_block(with_lines, lines) == with_lines
    lone_first_line = content.startswith(b"#!") and b"\n" not in content
    expected = content + b"\n" if lone_first_line else content or script.SHEBANG
    assert script.without_block(with_lines) == expected


def test_the_line_for_other_hooks_runs_kb_and_never_fails(root, program):
    line = script.snippet("post-checkout")
    for env in (env_with(program.parent), NO_KB):
        subprocess.run(["/bin/sh", "-ec", line, "hook", "a", "b"], env=env, cwd=root, check=True)
    assert calls(program) == [f"{root}: hook post-checkout a b"]


@pytest.mark.parametrize("body", ["echo said; exit 3", "cat; kill -9 $$", "exec /nowhere/python"])
def test_the_lines_neither_fail_nor_speak_on_standard_output_nor_read_input(root, tmp_path, body):
    broken = make_program(tmp_path / "broken", body)
    text = b"set -eu\n" + script.block("post-merge", None) + b"echo after\n"
    done = subprocess.run(
        ["/bin/sh", "-c", os.fsdecode(text)],
        env=env_with(broken.parent),
        cwd=root,
        input=b"typed",
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"after\n")
    assert b"typed" not in done.stderr
