"""Asks a set of questions as an agent does, through the MCP server, and counts what is among the first five.

``own.json`` is about the decisions and requirements of this project. ``documents.json`` is about those of four public
projects, which are no part of this one: a folder holds them as they are in their repositories, ``backlog-md/backlog``,
``madr/docs/decisions``, ``log4brains/docs/adr`` and ``git-town/features``. ``KB_QUESTION_DOCUMENTS`` names it, or
``python -m tests.support.questions.asking FOLDER``, which prints both sets with and without meaning. The symbols of
this project fill the branch up. Every second question was held back while the ranking was chosen.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore.text.tokens import tokens_of
from tests.mcp.agents import agent, text_of
from tests.support.repository.project import Project

ROOT: Final = Path(__file__).resolve().parents[3]
FIRST: Final = 5
_PROFILES: Final = {
    "backlog-md/backlog": ("backlog", {"profile": "backlog"}),
    "madr/docs/decisions": ("docs/decisions", {"profile": "madr"}),
    "log4brains/docs/adr": ("docs/adr", {"profile": "log4brains"}),
}
_SCENARIOS: Final = "git-town/features"


class Question(msgspec.Struct, frozen=True):
    """A question, and the ids of the entities that answer it; ``held_back`` ones were not looked at for the ranking."""

    question: str
    expected: tuple[str, ...]
    held_back: bool


class Answered(msgspec.Struct, frozen=True):
    """The result of a set: how many were answered, those held back for themselves, and tokens on average."""

    asked: int
    found: int
    held_back: int
    found_of_held_back: int
    tokens: float
    missed: tuple[str, ...]

    @property
    def share(self) -> float:
        """Return how many of the questions are answered."""
        return self.found / self.asked

    def __str__(self) -> str:
        tuned, found = self.asked - self.held_back, self.found - self.found_of_held_back
        return (
            f"{self.found} of {self.asked} ({found} of {tuned} tuned, {self.found_of_held_back} of {self.held_back} "
            f"held back), {self.tokens:.0f} tokens on average"
        )


def questions(name: str) -> list[Question]:
    """Return a set of questions by its name."""
    path = Path(__file__).with_name(f"{name}.json")
    return msgspec.json.decode(path.read_bytes(), type=list[Question])


def own_project(root: Path, code: Iterable[str] = ("kbcore/storage", "kbcore/store", "kbcore/view")) -> None:
    """Make a synced project of this one's own decisions and requirements, and of the symbols of some of its code."""
    for folder in ("docs/requirements", "docs/adr"):
        shutil.copytree(ROOT / folder, root / folder)
    _synced(
        root, code, {"markdown": {"paths": {"req": ["docs/requirements/[0-9]*.md"], "adr": ["docs/adr/[0-9]*.md"]}}}
    )


def project_of_documents(root: Path, documents: Path) -> None:
    """Make a synced project of the documents of other projects, and of the symbols of this one."""
    for source, (target, _) in _PROFILES.items():
        shutil.copytree(documents / source, root / target, copy_function=shutil.copyfile)
    shutil.copytree(documents / _SCENARIOS, root / "features", copy_function=shutil.copyfile)
    for path in (root, *root.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    extractors = {"markdown": {"paths": {}}, "gherkin": {"paths": ["features/**/*.feature"]}}
    _synced(root, ("kbcore", "kbcli", "kbmcp"), extractors, [profile for _, profile in _PROFILES.values()])


def _synced(
    root: Path, code: Iterable[str], extractors: dict[str, Any], sources: Iterable[dict[str, Any]] = ()
) -> None:
    for folder in code:
        for path in (ROOT / folder).rglob("*.py"):
            target = root / "src" / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    made = Project(root)
    settings = {"extractors": {**extractors, "code": {"paths": ["src/**/*.py"]}}, "sources": [*sources]}
    made.sync({".kb/config.json": json.dumps(settings)})
    made.close()


def set_meaning(root: Path, mode: str) -> None:
    """Say whether searches in a project look for the meaning of a text."""
    path = root / ".kb/config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "search": {"meaning": mode}}))


def ask_all(root: Path, asked: list[Question]) -> Answered:
    """Return how a project answers questions, each in one call for the ids and titles of the first five."""
    missed, tokens = [], 0
    with agent(root) as client:
        for one in asked:
            text = text_of(client.result("kb_query", {"text": one.question, "fields": ["title"], "limit": FIRST}))
            tokens += tokens_of(text)
            if not {entity["id"] for entity in json.loads(text)["entities"]} & {*one.expected}:
                missed.append(one)
    held_back = sum(one.held_back for one in asked)
    return Answered(
        asked=len(asked),
        found=len(asked) - len(missed),
        held_back=held_back,
        found_of_held_back=held_back - sum(one.held_back for one in missed),
        tokens=tokens / len(asked),
        missed=tuple(one.question for one in missed),
    )


def main() -> None:
    """Print what each set finds with and without meaning."""
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("KB_QUESTION_DOCUMENTS", "")
    with tempfile.TemporaryDirectory() as folder:
        roots = {"own": Path(folder) / "own"}
        own_project(roots["own"])
        if given:
            roots["documents"] = Path(folder) / "documents"
            project_of_documents(roots["documents"], Path(given))
        for name, root in roots.items():
            for mode in ("off", "on"):
                set_meaning(root, mode)
                found = ask_all(root, questions(name))
                print(f"{name}, meaning {mode}: {found}")
                print("".join(f"  missed: {question}\n" for question in found.missed), end="")


if __name__ == "__main__":
    main()
