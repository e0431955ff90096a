"""Clones of a repository whose branches are compared by ``kb check --against``."""

from __future__ import annotations

from pathlib import Path

from tests.support.processes.cli import write
from tests.support.repository.repos import git

MAIN = "origin/main"


def document(key: str, title: str, **fields: str) -> str:
    """Return the document of a requirement, a draft unless fields are given."""
    more = "".join(f"{name}: {value}\n" for name, value in (fields or {"status": "draft"}).items())
    return f"---\nid: {key}\ntitle: {title}\n{more}---\n"


def path(name: str) -> str:
    """Return the path of a document."""
    return f"docs/requirements/{name}.md"


def commit(root: Path, files: dict[str, str | None], message: str = "change") -> None:
    """Write files and commit them; None deletes one."""
    write(root, files)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", message)


class Clones:
    """Two clones of a bare upstream; ``there`` is pushed and fetched here by ``meet``."""

    def __init__(self, upstream: Path, here: Path, there: Path) -> None:
        self.upstream, self.here, self.there = upstream, here, there

    def meet(self) -> None:
        git(self.there, "push", "-q", "origin", "HEAD:main")
        git(self.here, "fetch", "-q")


def found(kb, *words: str) -> list[dict]:
    """Return the conflicts with the other side."""
    ran = kb("check", "--against", MAIN, "--json", *words)
    assert ran.status in (0, 1), ran
    assert (ran.status == 1) == bool(ran.json["violations"])
    return ran.json["violations"]


def two_clones(kb, ready: Path) -> Clones:
    """Return the repository and a clone of it, with two requirements and a symbol; a new branch is checked out."""
    base = {
        path("1"): document("REQ-1", "Log in", status="draft", tags="[web]"),
        path("2"): document("REQ-2", "Log out"),
        "docs/symbols.yaml": "symbols:\n- id: SYM-1\n  title: login\n  implements: [REQ-1]\n",
    }
    commit(ready, base)
    upstream, there = ready.parent / "up.git", ready.parent / "there"
    git(ready.parent, "clone", "-q", "--bare", ready, upstream)
    git(ready, "remote", "add", "origin", upstream.as_uri())
    git(ready, "fetch", "-q")
    git(ready.parent, "clone", "-q", upstream.as_uri(), there)
    git(ready, "switch", "-q", "-c", "feature")
    kb("sync")
    return Clones(upstream, ready, there)
