"""Jobs of members of a crowd in worktrees that share one KB: switching, renaming, writing, collecting.

A branch is of a line, which is its name up to a ``+``; all branches of a line have the same document, and no other
line has it. So a fact that came to the wrong store shows where it is from.
"""

from __future__ import annotations

import fcntl
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kbcore.errors import KBError
from kbcore.store import branches
from tests.support.crowd.crowd_jobs import opened, pair
from tests.support.processes.lines import Line
from tests.support.repository.project import req
from tests.support.repository.repos import git, run_git

DOCUMENT = "docs/requirements/line.md"
RENAMED, SCRATCH = "r", "s"
"""The text after the ``+`` in the name of a branch that was renamed to it, and of one that will be deleted."""
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")


def line_of(branch: str) -> str:
    """Return the line that a branch is of."""
    return branch.partition("+")[0]


def make_lines(root: Path, lines: Sequence[str]) -> None:
    """Give each of these branches its document, in a commit of its own; the last one is then checked out."""
    for name in lines:
        git(root, "switch", "--quiet", *([] if name == "main" else ["-c"]), name)
        (root / DOCUMENT).parent.mkdir(parents=True, exist_ok=True)
        (root / DOCUMENT).write_text(req(f"DOC-{name}"), encoding="utf-8")
        git(root, "add", "--", DOCUMENT)
        git(root, "commit", "--quiet", "-m", name)


class _Mover:
    """One worktree's git: moves HEAD, and tells between which moments that was."""

    def __init__(self, line: Line, worktree: str, seed: int) -> None:
        self.line = line
        self.folder = Path(worktree)
        self.random = random.Random(seed)

    def git(self, *words: str, head: str = "", since_s: float | None = None, **reported: Any) -> bool:
        """Run git, and tell what it did; another git may be in the way, and then nothing happened, as a rule."""
        begun_s = time.monotonic()
        done = run_git(self.folder, *_NO_HOOKS, *words)
        ended_s = time.monotonic()
        if done.returncode == 0:
            self.line.send(git=words[0], head=head, begun_s=since_s or begun_s, ended_s=ended_s, **reported)
        elif "lock" not in done.stderr:
            self.line.send(trouble=f"git {words}: {done.stderr}")
        return done.returncode == 0

    def rename(self, old: str, new: str) -> bool:
        """Rename a branch, one worktree at a time: git keeps the reflog of all renames in one file meanwhile."""
        with (Path(__file__)).open("rb") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            begun_s = time.monotonic()
            reported = {"head": new, "gone": old, "made": new}
            if self.git("branch", "-m", old, new, **reported):
                return True
            is_half = not run_git(self.folder, "rev-parse", "--verify", "--quiet", f"refs/heads/{new}").returncode
            # git says of this that the branch is renamed, but HEAD is not updated.
            return is_half and self.git("symbolic-ref", "HEAD", f"refs/heads/{new}", since_s=begun_s, **reported)

    def switch(self, branch: str, *, is_new: bool = False) -> bool:
        reported = {"made": branch} if is_new else {}
        flags = ["-c"] if is_new else ["--ignore-other-worktrees"]
        return self.git("switch", "--quiet", *flags, branch, head=branch, **reported)


def moving(line: Line, worktree: str, home: str, others: Sequence[str], seed: int, steps: int, name: str = "") -> None:
    """Switch about: to branches of other worktrees too, with a branch of its own that is renamed on the way.

    ``home`` is the branch of this worktree alone, which is never deleted; what is made on the way is deleted again.
    """
    mover = _Mover(line, worktree, seed)
    chosen = mover.random
    current = own = home
    for step in range(steps):
        time.sleep(chosen.uniform(0, 0.03))
        what = chosen.random()
        if what < 0.2 and current == own:
            new = f"{home}+{RENAMED}{step}"
            if mover.rename(own, new):
                current = own = new
        elif what < 0.35:
            scratch = f"{line_of(current)}+{SCRATCH}{name}-{step}"
            if mover.switch(scratch, is_new=True):
                time.sleep(chosen.uniform(0, 0.03))
                current = own if mover.switch(own) else scratch
                if current == own:
                    mover.git("branch", "-D", scratch, gone=scratch)
        elif what < 0.45:
            mover.git("commit", "--quiet", "--allow-empty", "-m", "on the way")
        else:
            branch = chosen.choice([own, *others])
            current = branch if mover.switch(branch) else current
    line.send(moved=True, own=own)
    line.receive()


def renaming(line: Line, worktree: str, home: str, seed: int, steps: int, name: str = "") -> None:
    """Rename the branch of this worktree again and again; other worktrees may have it checked out as well."""
    mover = _Mover(line, worktree, seed)
    own = home
    for step in range(steps):
        time.sleep(mover.random.uniform(0, 0.05))
        new = f"{home}+{RENAMED}{step}"
        if mover.rename(own, new):
            own = new
    line.send(moved=True, own=own)
    line.receive()


def following(line: Line, worktree: str, name: str, seed: int) -> None:
    """Write to whatever is checked out, until asked to stop: pairs, and what the files say."""
    project = opened(worktree)
    chosen = random.Random(seed)
    number = 0
    while not line.is_spoken_to():
        number += 1
        key, is_sync = f"pair-{name}-{number}", chosen.random() < 0.4
        begun_s = time.monotonic()
        try:
            if is_sync:
                outcome = project.sync().outcome
                reported: dict[str, Any] = {"sync": True}
            else:
                outcome = project.apply(**pair(key))
                reported = {}
        except KBError as error:
            reported = {"refused": error.code, "applied": error.applied, "message": error.message, "sync": is_sync}
        else:
            reported |= {"branch": outcome.branch, "seq": outcome.seq}
        line.send(key=key, begun_s=begun_s, took_s=time.monotonic() - begun_s, **reported)
        time.sleep(chosen.uniform(0, 0.01))
    project.close()


def collecting(line: Line, root: str, name: str = "") -> None:
    """Collect the stores of branches that are gone, until asked to stop."""
    project = opened(root)
    rounds = 0
    while not line.is_spoken_to():
        begun_s = time.monotonic()
        try:
            removed = branches.collect(project.workspace()).removed
        except KBError as error:
            line.send(refused=error.code, applied=error.applied, message=error.message)
        else:
            rounds += 1
            if removed:
                line.send(removed=removed, begun_s=begun_s, ended_s=time.monotonic())
        time.sleep(0.01)
    line.send(rounds=rounds)
