"""The secret that tests of shared changes redact, and where a clone still holds it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from kbcore.maintenance import redaction
from kbcore.maintenance.redaction import RedactAnswer
from kbcore.maintenance.redaction_preview import Wanted
from tests.support.disk.secrets import files_with
from tests.support.repository.clones import Clone
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import git

SECRET = "hunter2-Pa55word"
WANTED = Wanted("pattern", SECRET)
REF = "refs/kb/main"


def redact(clone: Clone, wanted: Wanted = WANTED) -> RedactAnswer:
    return redaction.redact(clone.workspace(), clone.branch, wanted, clone.author())


def staged(root: Path) -> str:
    """Return all that the index holds."""
    names = [line.split()[1] for line in git(root, "ls-files", "--stage").splitlines()]
    return "".join(git(root, "cat-file", "blob", name) for name in names)


def holds(clone: Clone) -> list[Path]:
    """Return the files of a clone that hold the secret."""
    return files_with(SECRET, stores_at(clone.root), caches_at(clone.root), clone.root / ".kb")


def commands_in(text: str) -> list[list[str]]:
    """Return the words of each `kb redact` that a sentence names."""
    return [shlex.split(one) for one in re.findall(r"`kb (redact [^`]+)`", text)]
