"""Runs the ``console`` blocks of a page of documentation and compares what they show with what comes back.

A page begins in a fresh repository, and its blocks run one after the other. Comments say what else is meant:

``<!-- console: in the example project -->``  the next blocks run in a fresh copy of the project of ``kb demo``,
                                              after ``kb init`` and ``kb sync``
``<!-- console: in a new repository -->``     the next blocks run in a fresh repository
``<!-- console: in KB's own repository -->``  the next blocks run in a fresh repository with KB's own documents, after
                                              ``kb init`` and ``kb sync``
``<!-- file: PATH -->``                       the next block of any language is written to PATH
``<!-- tool: NAME -->``                       the next block holds the arguments of a call over MCP, which must succeed

Commands are run at a wide terminal, but where a line has ``--json`` or words of the shell: its output goes into a pipe.
A line ``$ COMMAND`` is a command; it ends with status 0, or with the one that ``# status N`` at its end says. In what
follows, ``…`` stands for any text, on a line of its own for any number of lines. Times and hashes are not compared.

``python -m tests.support.docs.console PAGE`` prints the blocks of a page as they come back.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kbcli import app
from kbcli.demo import client
from kbcore.logic.engine.installation import ENGINE_VARIABLE
from tests.support.logic.engines import engine_folders
from tests.support.processes.cli import path_with_kb, write
from tests.support.processes.forked import stand_in
from tests.support.repository.repos import git, git_env

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "kbcli" / "resources" / "demo"
USER = "Ada Lovelace"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!-- (console|file|tool): (.*?) -->")
_COMMENTS = re.compile(rf"(?:{_COMMENT.pattern}\n+)+\Z")
_STATUS = re.compile(r"\s+# status (\d+)\Z")
_SHELL_WORDS = frozenset("|<>;&$`*?~")
_BARE = re.compile(r"'[^']*'")
"""Characters that the shell leaves as they are."""
_VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| UTC|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r" \((?:less than a|\d+) \w+ ago\)"), ""),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "HASH"),
)


class Block(NamedTuple):
    """A fenced block of a page: its language, text and line, and what the comment before it says."""

    language: str
    text: str
    line: int
    place: str
    file: str
    tool: str


class _Terminal(io.StringIO):
    """Standard output of a terminal."""

    def isatty(self) -> bool:
        return True


class _Errors(io.TextIOBase):
    """Standard error in a pipe, whose text appears between that of standard output."""

    def __init__(self, shown: io.StringIO) -> None:
        self._shown = shown

    def write(self, text: str) -> int:
        return self._shown.write(text)


class Step(NamedTuple):
    """A command with the status it must end with and what it must show."""

    line: str
    status: int
    shown: str


class Ended(NamedTuple):
    """The result of a command."""

    step: Step
    status: int
    output: str

    def fault(self) -> str:
        """Return what is not as the page says, or the empty text."""
        if self.status != self.step.status:
            return f"$ {self.step.line}\nended with status {self.status}, not {self.step.status}:\n{self.output}"
        output_text = _settled(self.output)
        if not _pattern(self.step.shown).fullmatch(output_text + "\n" if output_text else ""):
            return f"$ {self.step.line}\nThe page shows:\n{self.step.shown}\nThis came back:\n{self.output}"
        return ""


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    for found in _FENCE.finditer(text):
        comments = _COMMENTS.search(text[: found.start()])
        said = dict(_COMMENT.findall(comments[0] if comments else ""))
        line = text.count("\n", 0, found.start()) + 1
        yield Block(found[1], found[2], line, *(said.get(name, "") for name in ("console", "file", "tool")))


def steps(block: Block) -> list[Step]:
    """Return the commands of a ``console`` block."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    if parts[0].strip():
        raise ValueError(f"line {block.line}: a console block begins with `$ `")
    found = []
    for part in parts[1:]:
        line, _, shown = part.partition("\n")
        status = _STATUS.search(line)
        found.append(Step(_STATUS.sub("", line), int(status[1]) if status else 0, shown.rstrip("\n")))
    return found


def run_page(text: str, folder: Path) -> Iterator[tuple[Block, list[Ended]]]:
    """Run the blocks of a page in repositories below ``folder``, and yield each with how it ended."""
    with environment(folder) as env:
        home = None
        calls: list[Block] = []
        for number, block in enumerate(blocks(text)):
            if calls and home and not block.tool:
                yield from _called(calls, home, env)
                calls = []
            if home is None or block.place:
                home = _made(folder / f"{number}", block.place)
            if block.tool:
                calls.append(block)
            elif block.file:
                path = home / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, encoding="utf-8")
            elif block.language == "console":
                with contextlib.chdir(home):
                    yield block, [_run(step, env) for step in steps(block)]
        if calls and home:
            yield from _called(calls, home, env)


@contextlib.contextmanager
def environment(folder: Path) -> Iterator[dict[str, str]]:
    """Let this process and what it starts see no settings of the user's, and no home of theirs.

    ``kb`` and this Python are on the PATH.
    """
    chosen = {name: value for name, value in os.environ.items() if name == ENGINE_VARIABLE}
    home = folder / "home"
    home.mkdir(exist_ok=True)
    env = {name: value for name, value in git_env().items() if not name.startswith(("GIT_AUTHOR", "GIT_COMMITTER"))}
    env |= engine_folders() | chosen
    env |= {
        "PATH": path_with_kb(before=Path(sys.executable).parent),
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "TERM": "dumb",
        "NO_COLOR": "1",
        "PAGER": "cat",
        "COLUMNS": "1000",
        "GIT_AUTHOR_DATE": "2026-11-20T09:30:00Z",
        "GIT_COMMITTER_DATE": "2026-11-20T09:30:00Z",
    }
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(env)
    try:
        yield env
    finally:
        os.environ.clear()
        os.environ.update(before)


def _made(folder: Path, place: str) -> Path:
    if place in {"", "in a new repository"}:
        home = folder / "project"
        home.mkdir(parents=True)
        _initialise(home)
        return home
    if place == "in the example project":
        home = folder / "waymark"
        shutil.copytree(_example(), home, symlinks=True)
        return home
    if place == "in KB's own repository":
        home = folder / "kb"
        home.mkdir(parents=True)
        _initialise(home)
        listed = git(ROOT, "ls-files", "-z", ".kb", "docs", ":!*.png").split("\0")
        write(home, {name: (ROOT / name).read_text(encoding="utf-8") for name in filter(None, listed)})
        _prepare(home)
        return home
    raise ValueError(f"no such place: {place}")


def _initialise(home: Path) -> None:
    git(home, "init", "--quiet", "--initial-branch=main")
    git(home, "config", "user.name", USER)
    git(home, "config", "user.email", "ada@example.org")


@cache
def _example() -> Path:
    """Return the example project with its memory, made once for all pages."""
    parent = tempfile.TemporaryDirectory(prefix="kb-docs-")
    _KEPT.append(parent)
    home = Path(parent.name) / "waymark"
    shutil.copytree(EXAMPLE, home)
    _initialise(home)
    git(home, "add", "--all")
    git(home, "commit", "--quiet", "-m", "Waymark as it is today")
    _prepare(home)
    return home


def _prepare(home: Path) -> None:
    """Set up KB in a project and take its documents in."""
    with contextlib.chdir(home), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for words in (["init", "--no-hooks"], ["sync"]):
            assert app.main(words) == 0


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def _run(step: Step, env: dict[str, str]) -> Ended:
    """Run a command: ``kb`` within this process unless the shell has to do something for it, all else by the shell."""
    if step.line.startswith("kb ") and not _SHELL_WORDS & set(_BARE.sub("", step.line)):
        captured = io.StringIO() if "--json" in step.line else _Terminal()
        with contextlib.redirect_stdout(captured), contextlib.redirect_stderr(_Errors(captured)):
            status = app.main(shlex.split(step.line)[1:])
        return Ended(step, status, captured.getvalue())
    ended = subprocess.run(
        ["sh", "-c", step.line],
        env=env,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return Ended(step, ended.returncode, ended.stdout.decode())


def _called(calls: list[Block], home: Path, env: dict[str, str]) -> Iterator[tuple[Block, list[Ended]]]:
    """Make calls over MCP, one after the other in one conversation."""
    server = client.ServerProgram(str(stand_in("kb-mcp")), (), env, home)
    said = client.converse(server, "a-reader", [client.ServerCall(one.tool, json.loads(one.text)) for one in calls])
    for block, answer in zip(calls, said.answers, strict=True):
        step = Step(f"{block.tool} {' '.join(block.text.split())}", 0, "…")
        yield block, [Ended(step, int(answer.is_error), json.dumps(answer.document) + "\n")]


def _settled(text: str) -> str:
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.rstrip("\n").splitlines())


def _pattern(shown: str) -> re.Pattern[str]:
    lines = _settled(shown).splitlines()
    return re.compile(
        "".join(r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n" for line in lines)
    )


def main(names: list[str]) -> None:
    """Print the blocks of pages as they come back."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            for block, ended in run_page(Path(name).read_text(encoding="utf-8"), Path(folder)):
                print(f"--- {name}:{block.line}")
                for one in ended:
                    note = f"  # status {one.status}" if one.status else ""
                    print(f"{'  ' if not one.fault() else '! '}$ {one.step.line}{note}\n{one.output}", end="")


if __name__ == "__main__":
    main(sys.argv[1:])
