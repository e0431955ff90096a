"""The secret that tests redact in a project, and the questions that they ask of its store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kbcore.maintenance import redaction, redaction_preview
from kbcore.maintenance.proof import Verified, verify_branch
from kbcore.maintenance.redaction import RedactAnswer
from kbcore.maintenance.redaction_preview import Preview, Wanted
from kbcore.model import record
from kbcore.storage import head, journal
from kbcore.storage.head import Head
from kbcore.store.folders import DATA
from tests.support.disk.secrets import files_with
from tests.support.repository.project import AUTHOR, Project

SECRET = "hunter2-Pa$$w0rd"


def entity(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def pattern(text: str = SECRET, *, is_regex: bool = False) -> Wanted:
    return Wanted("pattern", text, is_regex)


def redact(project: Project, wanted: Wanted, branch: str = "main") -> RedactAnswer:
    answer = redaction.redact(project.workspace(), branch, wanted, AUTHOR)
    assert answer.is_whole, answer
    return answer


def preview(project: Project, wanted: Wanted) -> Preview:
    return redaction_preview.preview(project.workspace(), "main", wanted)


def head_of(project: Project, branch: str = "main") -> Head:
    return head.read(project.machine.fs, project.workspace().folders.directory_of(branch))


def verify(project: Project, branch: str = "main") -> Verified:
    return verify_branch(project.workspace(), branch, with_view=True)


def records(project: Project, branch: str = "main") -> list[record.Record]:
    directory, of = project.workspace().folders.directory_of(branch), head_of(project, branch)
    entries = journal.scan(project.machine.fs, directory, of)
    return [record.decode(entry.frame.rec, seq=entry.frame.seq) for entry in entries]


def folders(project: Project) -> tuple[Path, ...]:
    """Return every folder in which KB keeps something of a clone, the notes outside of the repository among them."""
    return project.root / ".git" / DATA, project.root / ".kb", Path(project.machine.env.get("XDG_STATE_HOME", "none"))


def is_gone(project: Project, secret: str = SECRET) -> bool:
    assert files_with(secret, *(one for one in folders(project) if one.is_dir())) == []
    return True


def again(project: Project, root: Path | None = None) -> Project:
    """Return the same repository, or a copy of it, as another process of the same user has it."""
    other = Project(root or project.root, is_new=False)
    other.machine = project.machine
    return other
