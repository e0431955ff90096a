"""``kb check`` of what is staged or new since a point, by itself and before a commit of git."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbcore.rules import RULES
from tests.cli.check.violations import RAN, UNRESOLVED
from tests.support.processes.cli import LOGIN, environment, path_with_kb, write
from tests.support.repository.repos import add_worktree, git, run_git


@pytest.mark.sliced
def test_only_changes_since_a_point_are_reported(kb, synced):
    write(synced, UNRESOLVED)
    kb("sync")
    kb("apply", "-", stdin='{"entities": [{"id": "REQ-3", "type": "req", "title": "t", "status": "open"}]}')
    ran = kb("check", "--since", "2")
    assert (ran.status, ran.out.splitlines()[-1]) == (0, f"main at seq 3, since seq 2: 1 new warning {RAN}")
    assert "REQ-77" not in ran.out
    write(synced, {"docs/tests/b.md": None})
    kb("sync")
    answer = kb("check", "--since", "2", "--json").json
    shape = {"branch", "seq", "freshness", "pending_files", "ok", "violations", "rules", "since", "fixed"}
    assert set(answer) == shape
    assert answer["since"] == {"seq": 2, "commit": None}
    assert [one["rule"] for one in answer["fixed"]] == ["unresolved-reference"]
    assert kb("check", "--since", "2").out.endswith(f"since seq 2: 1 new warning, 1 fixed {RAN}\n")
    assert kb("check", "--since", "2", "--fail-on", "warning", "--rule", "acyclic").status == 0
    assert kb("check", "--since", "2", "--fail-on", "warning").status == 1


@pytest.mark.sliced
def test_only_what_is_staged_is_reported_with_its_line(kb, synced):
    git(synced, "add", "--all")
    git(synced, "commit", "--quiet", "-m", "documents")
    write(synced, UNRESOLVED)
    ran = kb("check", "--staged")
    idle = len(RULES) + 1
    assert (ran.status, ran.out) == (
        0,
        f"main at seq 1, nothing is staged: no new violations (0 rules ran, {idle} not applicable)\n",
    )
    assert ran.err == f"{idle} rules were not run: Nothing is staged.\n"
    git(synced, "add", "docs")
    ran = kb("check", "--staged", "--rule", "unresolved-reference")
    assert ran.status == 1
    assert ran.out.startswith(
        "error unresolved-reference: 1\n  docs/tests/b.md:4: T-2 links to REQ-77, but there is no REQ-77. ("
    )
    answer = kb("check", "--staged", "--json").json
    assert (answer["staged"], answer["fixed"], answer["comments"], answer["seq"]) == (1, [], [], 1)
    assert [one["source"] for one in answer["violations"]] == ["docs/tests/b.md"]


def test_a_comment_that_counts_without_being_a_fact_is_reported(kb, synced):
    git(synced, "add", "--all")
    git(synced, "commit", "--quiet", "-m", "documents")
    settings = json.loads((synced / ".kb/config.json").read_text())
    (synced / ".kb/config.json").write_text(json.dumps({**settings, "staged": {"symbols": ["src/**"]}}))
    write(synced, {"src/a.py": "x = 1\n# kb: implements REQ-1\n"})
    git(synced, "add", "src")
    ran = kb("check", "--staged", "--rule", "staged-symbol")
    assert ran.status == 0
    assert "1 comment `kb: implements` counts for this check only: src/a.py:2 (REQ-1). `kb coverage`" in ran.err
    answer = kb("check", "--staged", "--rule", "staged-symbol", "--json").json
    assert answer["comments"] == [{"file": "src/a.py", "line": 2, "id": "REQ-1"}]


def test_a_comment_in_a_file_that_is_not_checked_is_named_where_it_names_no_requirement(kb, synced):
    git(synced, "add", "--all")
    git(synced, "commit", "--quiet", "-m", "documents")
    files = {"src/q.py": "\n# KB:  implements NO-SUCH, REQ-1\n", "src/r.py": "# kb: implements REQ-1\n"}
    write(synced, {**files, "README.md": "A comment is `kb: implements ID`.\n"})
    git(synced, "add", "--all")
    ran = kb("check", "--staged")
    assert ran.status == 0
    said = "1 comment `kb: implements` names no requirement: src/q.py:2 (NO-SUCH). Only files that `staged.symbols`"
    assert said in ran.err
    answer = kb("check", "--staged", "--json").json
    assert answer["comments_not_checked"] == [{"file": "src/q.py", "line": 2, "id": "NO-SUCH"}]
    git(synced, "commit", "--quiet", "-m", "q")
    write(synced, {"src/s.py": "x = 1\n"})
    git(synced, "add", "--all")
    assert "comments_not_checked" not in kb("check", "--staged", "--json").json


HOOK = """#!/bin/sh
exec kb check --staged
"""


def hooked(root: Path) -> dict[str, str]:
    """Commit what there is, have git check each commit from then on, and return the environment for git."""
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "documents")
    hook = root / ".git/hooks/pre-commit"
    hook.write_text(HOOK, encoding="utf-8")
    hook.chmod(0o755)
    return environment({"PATH": path_with_kb()})


@pytest.mark.sliced(1)
@pytest.mark.parametrize("how", [[], ["--all"], ["--only", "docs/requirements/login.md"]])
def test_git_does_not_commit_what_introduces_a_violation(kb, synced, how):
    env = hooked(synced)
    write(synced, {"docs/requirements/login.md": LOGIN.replace("tags:", "links: [GONE]\ntags:")})
    if not how:
        git(synced, "add", "docs")
        write(synced, {"docs/requirements/login.md": LOGIN})  # what is staged counts
    refused = run_git(synced, "commit", *how, "-m", "broken", env=env)
    assert refused.returncode == 1
    assert "REQ-1 links to GONE, but there is no GONE." in refused.stdout + refused.stderr
    write(synced, {"docs/requirements/login.md": LOGIN.replace("Log in", "Sign in")})
    git(synced, "add", *([] if how else ["docs"]))
    done = run_git(synced, "commit", *how, "-m", "whole", env=env)
    assert done.returncode == 0, done.stderr


@pytest.mark.sliced
def test_git_does_not_commit_source_code_that_names_no_requirement_in_a_linked_worktree(kb, synced, tmp_path):
    write(synced, {".kb/config.json": '{"staged": {"symbols": ["src/**"]}}'})
    env = hooked(synced)
    linked = add_worktree(synced, tmp_path / "linked", "feature")
    write(linked, {"src/login.py": "def login(): ...\n"})
    git(linked, "add", "src")
    refused = run_git(linked, "commit", "-m", "code", env=env)
    assert refused.returncode == 1
    assert "src/login.py: The file names no requirement." in refused.stdout + refused.stderr
    write(linked, {"src/login.py": "# kb: implements REQ-1\ndef login(): ...\n"})
    git(linked, "add", "src")
    done = run_git(linked, "commit", "-m", "code", env=env)
    assert done.returncode == 0, done.stderr
