"""KB's own requirements and decisions, taken in and checked as ``make check`` does: nothing to report."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.support.processes.cli import ROOT, Ran, write


def test_the_documents_of_this_repository_have_no_violation(kb: Callable[..., Ran], root: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", ".kb", "docs"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    write(root, {name: (ROOT / name).read_text("utf-8") for name in listed if name.endswith((".md", ".yaml", ".json"))})
    synced = kb("sync", "--strict")
    assert synced.status == 0, synced
    checked = kb("check", "--fail-on", "warning")
    assert checked.status == 0, checked.out
