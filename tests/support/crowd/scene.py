"""The users of a repository: agents over MCP, and people with git and the command line. Each is a thread here.

What they do is a process of its own each time, or a server; their answers are kept for judgement. Some of these
processes are killed at a random moment.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.crowd.crowd_git import SCRATCH
from tests.support.crowd.crowd_jobs import pair
from tests.support.processes.cli import environment, program
from tests.support.processes.lines import Message
from tests.support.processes.session import Gone, Session
from tests.support.repository.project import req

MOST_TRIES = 20
PROGRAMS = Path(program()[0]).parent
"""The folder in which git's hooks find the installed ``kb``."""


def user_env(**more: str) -> dict[str, str]:
    """Return the environment of a person at a terminal, who has ``kb`` on the PATH."""
    return environment({"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}", **more})


def ran(folder: Path, *command: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program as a person would, and return how it ended."""
    return subprocess.run(
        command, cwd=folder, env=user_env(**env), input=stdin, capture_output=True, text=True, timeout=60, check=False
    )


class Agent:
    """One agent: writes pairs, reads, deletes what is its own, and sends again what may be sent again."""

    def __init__(self, folder: Path, name: str, seed: int) -> None:
        self.folder = folder
        self.name = name
        self.random = random.Random(seed)
        self.answers: list[Message] = []
        self.wrong: list[str] = []
        self.killed = 0
        self._unsure: set[str] = set()
        """The calls that were sent to a server that was killed meanwhile: nobody knows what became of that."""
        self._is_modern = seed % 2 == 0
        """One half of the agents speaks the newer era of the protocol."""
        self._seen: dict[str, int] = {}
        self._waited_s = 0.0
        self._session = Session(folder, is_modern=self._is_modern)

    def act(self, steps: int, kills: int) -> None:
        """Do that many things; the server is killed that many times on the way."""
        fatal = set(self.random.sample(range(steps), kills))
        for number in range(steps):
            what = self.random.random()
            if number in fatal or what < 0.6:
                self._write(f"pair-{self.name}-{number}", is_fatal=number in fatal)
            elif what < 0.85:
                self._look()
            elif what < 0.95:
                self._remove(f"own-{self.name}-{number}")
            else:
                self._asked("kb_history", action="log", limit=3)
            time.sleep(self.random.uniform(0, 0.02))
        if self._session.close():
            self.wrong.append(f"{self.name}: the server ended badly")

    def _write(self, key: str, *, is_fatal: bool) -> None:
        request = pair(key)
        for attempt in range(MOST_TRIES):
            if is_fatal and attempt == 0:
                # Before it is asked, while it is at it, or after that: the same is then sent to another server.
                threading.Timer(self.random.uniform(0, 0.015), self._session.kill).start()
            answer = self._written(key, "kb_upsert", **request)
            if "refused" not in answer or not answer["retryable"]:
                return
            time.sleep(0.01)
        self.wrong.append(f"{self.name}: {key} was refused {MOST_TRIES} times")

    def _remove(self, key: str) -> None:
        entity = {"id": key, "type": "req", "title": key, "status": "open"}
        made = self._written(f"make-{key}", "kb_upsert", entities=[entity], changeset_id=f"make-{key}")
        if "seq" in made:
            item = {"id": key, "expected_version": made["seq"]}
            self._written(f"drop-{key}", "kb_delete", entities=[item], expect_branch=made["branch"])

    def _look(self) -> None:
        answer = self._asked("kb_query", type="req", where=[f"title=pair-{self.name}-0"], limit=2)
        if "error" not in answer and len(answer["entities"]) not in {0, 2}:
            self.wrong.append(f"{self.name} saw half of a changeset: {answer}")

    def _written(self, key: str, tool: str, **request: Any) -> Message:
        """Write, and keep how that ended."""
        killed, begun_s = self.killed, time.monotonic()
        answer = self._asked(tool, **request)
        reported: Message = {"key": key, "begun_s": begun_s, "took_s": time.monotonic() - begun_s}
        # What was sent first may have come to the branch that was checked out then; starting a server is no waiting.
        if self.killed > killed:
            self._unsure.add(key)
        reported |= {"again": key in self._unsure, "waited_s": self._waited_s}
        if "error" in answer:
            error = answer["error"]
            reported |= {"refused": error["code"], "applied": error["applied"], "retryable": error["retryable"]}
            reported |= {"message": error["message"]}
        else:
            reported |= {"branch": answer["branch"], "seq": answer["seq"], "tool": tool}
        self.answers.append(reported)
        return reported

    def _asked(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, of another server if this one was killed; no branch may be older than it was seen."""
        while True:
            begun_s = time.monotonic()
            try:
                answer = self._session.call(tool, **arguments)
                self._waited_s = time.monotonic() - begun_s
                break
            except Gone:
                self.killed += 1
                self._session.close()
                self._session = Session(self.folder, is_modern=self._is_modern)
        if "error" not in answer and tool == "kb_query":
            branch, seq = answer["branch"], answer["seq"]
            if seq < self._seen.get(branch, 0):
                self.wrong.append(f"{self.name} saw {branch} at {self._seen[branch]} and then at {seq}")
            self._seen[branch] = seq
        return answer


class Person:
    """One person at a worktree: switches branches, so that the hooks fire, and uses the command line."""

    def __init__(self, folder: Path, name: str, branches: Sequence[str], seed: int) -> None:
        self.folder = folder
        self.name = name
        self.branches = branches
        self.random = random.Random(seed)
        self.moves: list[Message] = []
        self.answers: list[Message] = []
        self.wrong: list[str] = []

    def act(self, steps: int) -> None:
        """Do that many things."""
        for number in range(steps):
            does: Callable[[str], None] = self.random.choice(
                [self._switch, self._switch, self._apply, self._keep, self._edit, self._watch, self._branch, self._kill]
            )
            does(f"pair-{self.name}-{number}")

    def _switch(self, key: str) -> None:
        branch = self.random.choice(self.branches)
        begun_s = time.monotonic()
        done = ran(self.folder, "git", "switch", "--quiet", "--ignore-other-worktrees", branch)
        reported: Message = {"begun_s": begun_s, "ended_s": time.monotonic(), "head": branch}
        if done.returncode == 0:
            self.moves.append(reported)
        elif "lock" not in done.stderr:
            self.wrong.append(f"git switch {branch}: {done.stderr}")
        if "report is in" in done.stderr or "Traceback" in done.stderr:
            self.wrong.append(f"a hook: {done.stderr}")

    def _apply(self, key: str) -> None:
        self._written(key, "apply", "-", stdin=json.dumps(pair(key)))

    def _keep(self, key: str) -> None:
        words = self.random.choice([("sync",), ("compact",), ("gc",), ("status",), ("verify",), ("check",)])
        done = ran(self.folder, *program(), "--json", *words)
        may = {0, 16} | ({1} if words == ("check",) else set())
        if done.returncode not in may or "Traceback" in done.stderr:
            self.wrong.append(f"kb {words[0]}: {done.returncode} {done.stdout[-500:]}{done.stderr[-500:]}")

    def _edit(self, key: str) -> None:
        """Write a document of this worktree that git does not know, which stays when branches are switched."""
        place = self.folder / f"docs/requirements/{self.name}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(req(f"EDIT-{self.name}", title=key), encoding="utf-8")

    def _branch(self, key: str) -> None:
        """Make a branch where HEAD is, give it a store, and delete it again; `kb gc` may meet it at any point."""
        name = f"{self.name}+{SCRATCH}{key}"
        if ran(self.folder, "git", "branch", name).returncode == 0:
            ran(self.folder, *program(), "--json", "branch", "ensure", name)
            ran(self.folder, "git", "branch", "-D", name)

    def _watch(self, _: str) -> None:
        """Watch for a moment; the watcher is ended in good order, or killed."""
        is_killed = self.random.random() < 0.5
        status, said = self._stopped(signal.SIGKILL if is_killed else signal.SIGTERM, "watch", within_s=2.0)
        is_second = "is watched already" in said
        has_not_begun = not said and status in {-signal.SIGTERM, 128 + signal.SIGTERM}
        may = status in {0, 16, -signal.SIGKILL} or is_second or has_not_begun
        if not may or "Traceback" in said:
            self.wrong.append(f"kb watch: {status} {said[-500:]}")

    def _kill(self, key: str) -> None:
        """Kill a command while it writes; a changeset is then sent again until somebody answers."""
        words = self.random.choice([("apply", "-"), ("sync",), ("compact",), ("gc",), ("branch", "ensure", "main")])
        self._stopped(signal.SIGKILL, *words, within_s=0.5, stdin=json.dumps(pair(key)))
        if words[0] == "apply":
            self._written(key, *words, stdin=json.dumps(pair(key)), again=True)

    def _stopped(self, number: signal.Signals, *words: str, within_s: float, stdin: str = "") -> tuple[int, str]:
        """Run a command, send it a signal at some moment, and return its status and what it said."""
        command = [*program(), "--json", *words]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, cwd=self.folder, env=user_env(), stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True
        ) as running:
            timer = threading.Timer(self.random.uniform(0, within_s), running.send_signal, [number])
            timer.start()
            said, _ = running.communicate(stdin, timeout=60)
            timer.join()
        return running.returncode, said

    def _written(self, key: str, *words: str, stdin: str, again: bool = False) -> None:
        begun_s = time.monotonic()
        done = ran(self.folder, *program(), "--json", *words, stdin=stdin)
        answer = json.loads(done.stdout)
        reported: Message = {"key": key, "begun_s": begun_s, "took_s": time.monotonic() - begun_s, "again": again}
        if "error" in answer:
            error = answer["error"]
            reported |= {"refused": error["code"], "applied": error["applied"], "message": error["message"]}
        else:
            reported |= {"branch": answer["branch"], "seq": answer["seq"]}
        self.answers.append(reported)
