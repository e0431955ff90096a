"""Shortcuts of the tests that install git hooks and fire them."""

from __future__ import annotations

import stat
from pathlib import Path

from kbcli import hooks
from kbcore.git import find_repository
from tests.support.repository.repos import git, git_env

ENV = git_env()
EVENTS = ["post-checkout", "post-merge", "post-rewrite", "post-commit", "pre-commit"]
NO_KB = ENV | {"PATH": "/usr/bin:/bin"}


def make_program(folder: Path, body: str) -> Path:
    folder.mkdir()
    path = folder / "kb"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def install(folder, **options):
    return hooks.install(find_repository(folder), ENV, **options)


def uninstall(folder, **options):
    return hooks.uninstall(find_repository(folder), ENV, **options)


def status(folder, **options):
    return hooks.status(find_repository(folder), ENV, **options)


def hook(root, event="post-checkout", content=None, mode=0o755) -> Path:
    path = root / ".git" / "hooks" / event
    if content is not None:
        path.write_bytes(content)
        path.chmod(mode)
    return path


def calls(program) -> list[str]:
    log = program.parent / "calls"
    return log.read_text().splitlines() if log.exists() else []


def mode_of(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def outcome(results):
    return [(result.event, result.state, result.action) for result in results]


def make_husky(root: Path) -> None:
    """Lay out what husky 9 does: stubs in ``.husky/_`` that run ``.husky/<event>`` with ``sh -e``."""
    inner = root / ".husky" / "_"
    inner.mkdir(parents=True)
    (inner / "h").write_text(
        's=$(dirname "$(dirname "$0")")/$(basename "$0")\n[ ! -f "$s" ] && exit 0\nsh -e "$s" "$@"\n'
    )
    for event in EVENTS:
        (inner / event).write_text('#!/usr/bin/env sh\n. "${0%/*}/h"')
        (inner / event).chmod(0o755)
    git(root, "config", "core.hooksPath", ".husky/_")


def env_with(folder: Path) -> dict[str, str]:
    return ENV | {"PATH": f"{folder}:/usr/bin:/bin"}
