"""Jobs of the members of a crowd: each function is the whole life of one process, controlled over its line.

A changeset ``pair`` writes two entities and the edge between them, so that half of it can be seen for what it is: in
any head there are twice as many of these entities as there are such records.
"""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbcore.clock import SystemClock
from kbcore.editing.creation import Wish, make
from kbcore.editing.documents import WriteTarget
from kbcore.editing.renaming import rename
from kbcore.editing.setting import set_fields
from kbcore.errors import KBError, LockTimeout
from kbcore.limits import FILES_S
from kbcore.maintenance.compacting import compact
from kbcore.storage import lock
from kbcore.storage.fs import RealFs
from kbcore.store.answers import Outcome
from kbcore.store.write_request import Author
from kbcore.sync.overlay import WorktreeFiles
from kbcore.view.view import View
from tests.support.disk.faultfs import LoggingFs
from tests.support.processes.lines import Line, Message
from tests.support.repository.project import Project

TOKEN = "TOKEN"
"""The id of an entity that all want."""


class DyingFs(LoggingFs):
    """Kills its process before the ``at``-th call (from 0), as the kernel may."""

    def __init__(self, at: int) -> None:
        super().__init__(RealFs())
        self.at = at

    def _run(self, kind: str, method: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if len(self.calls) > self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._run(kind, method, args)


def pair(key: str, content: str = "") -> Message:
    """Return the changeset of that id."""
    entities = [
        {"id": f"{key}:{end}", "type": "req", "title": f"{key}{content}", "status": "open"} for end in ("a", "b")
    ]
    edges = [{"type": "depends_on", "from": f"{key}:a", "to": f"{key}:b"}]
    return {"changeset_id": key, "entities": entities, "edges": edges}


def opened(root: str, fs: Any = None) -> Project:
    """Return the project as a process sees it that has just begun."""
    return Project(Path(root), fs=fs or RealFs(), is_new=False)


def writing(line: Line, root: str, name: str = "", branch: str | None = None) -> None:
    """Write what is asked for: ``pairs`` by their ids, or ``race`` for the token that many times."""
    project = opened(root)
    while (asked := line.receive()) is not None and "stop" not in asked:
        for key in asked.get("pairs", ()):
            _tell(line, key, functools.partial(project.apply, branch=branch, **pair(key)))
        for number in range(asked.get("race", 0)):
            _race(line, project, f"{name}-{number}")
        line.send(done=True)


def _tell(line: Line, key: str, write: Callable[[], Any], **more: Any) -> None:
    """Write, and tell how that ended, and how long it took."""
    begun_s = time.monotonic()
    try:
        answer = write()
    except KBError as error:
        reported = {"refused": error.code, "applied": error.applied, "message": error.message}
    else:
        reported = {"seq": answer.seq, "duplicate": answer.duplicate, "branch": answer.branch}
    line.send(key=key, begun_s=begun_s, took_s=time.monotonic() - begun_s, **reported, **more)


def _race(line: Line, project: Project, owner: str) -> None:
    """Take the token from where it was seen: of all who saw it there, one can."""
    view = project.view()
    seq, [(version,)] = view.seq, view.rows("select version from node where id = ?", [TOKEN])
    request = {"expected_seq": seq, "entities": [{"id": TOKEN, "owner": owner}]}
    _tell(line, owner, lambda: project.apply(**request), base=version)


def editing(line: Line, root: str, name: str = "") -> None:
    """Edit documents as is asked for, each time as a program that has just begun.

    ``["set", ID, WORD]``, ``["rename", OLD, NEW]`` or ``["new", ID, TITLE]``.
    """
    while (asked := line.receive()) is not None and "stop" not in asked:
        for edit in asked.get("edits", ()):
            project = opened(root)
            _tell(line, edit[2], functools.partial(_edited, project, *edit))
            project.close()
        line.send(done=True)


def _edited(project: Project, verb: str, key: str, value: str) -> Outcome:
    files, workspace = WorktreeFiles(), project.workspace()

    def read(use: Callable[[View], Any]) -> Any:
        return files.read(workspace, "main", lambda view, _: use(view), time_s=FILES_S)

    target = WriteTarget(workspace, "main", Author("ann", "cli", "kb/test"), read, follows_head=True)
    if verb == "set":
        return set_fields(target, key, [value]).outcome
    if verb == "rename":
        return rename(target, key, value).outcome
    return make(target, Wish("req", title=value, key=key)).outcome


def reading(line: Line, root: str, name: str = "", pause_s: float = 0.0) -> None:
    """Read until asked to stop: every head is whole, and none is older than the one before."""
    project = opened(root)
    last = reads = 0
    slowest_s = 0.0
    while not line.is_spoken_to():
        if reads % 50 == 49:
            project.close()
        begun_s = time.monotonic()
        seq, records, counted = _seen(project.view())
        slowest_s = max(slowest_s, time.monotonic() - begun_s)
        reads += 1
        if seq < last or records != seq or len(set(counted)) != 1:
            line.send(violated=f"after seq {last}: seq {seq}, {records} records, pairs {counted}")
        last = seq
        time.sleep(pause_s)
    project.close()
    line.send(reads=reads, seq=last, slowest_s=slowest_s)


def _seen(view: View) -> tuple[int, int, list[float]]:
    """Return the seq of a view, its records, and the number of its pairs, counted in four ways."""
    sql = """select (select count(*) from record),
        (select count(*) from record where changeset_id like 'pair-%'),
        (select count(*) from node where id like 'pair-%:a'), (select count(*) from node where id like 'pair-%:b'),
        (select count(*) from link where is_resolved and from_id like 'pair-%:a' and to_id like 'pair-%:b')"""
    [(records, *counted)] = view.rows(sql)
    return view.seq, records, counted


def compacting(line: Line, root: str, name: str = "") -> None:
    """Compact when asked to, after ``pause_s``; with ``die_at`` this process is killed at that call of its own."""
    while (asked := line.receive()) is not None and "stop" not in asked:
        fs = DyingFs(asked["die_at"]) if "die_at" in asked else LoggingFs(RealFs())
        project = opened(root, fs)
        time.sleep(asked.get("pause_s", 0.0))
        fs.calls.clear()
        try:
            done = compact(project.workspace(), "main", prune_before=asked.get("prune_before"))
            line.send(compacted=done.seq, calls=len(fs.calls))
        except KBError as error:
            line.send(refused=error.code, applied=error.applied, message=error.message)
        project.close()


def first_using(line: Line, root: str, name: str = "") -> None:
    """Use a branch when it gets its name, by writing a pair to it; with ``die_at`` this process is killed meanwhile."""
    while (asked := line.receive()) is not None and "stop" not in asked:
        fs = DyingFs(asked["die_at"]) if "die_at" in asked else LoggingFs(RealFs())
        project = opened(root, fs)
        fs.calls.clear()
        # All begin at the same moment.
        time.sleep(max(0.0, asked.get("at_s", 0.0) - time.monotonic()))
        write = functools.partial(project.apply, branch=asked["branch"], **pair(asked["pair"]))
        _tell(line, asked["pair"], write)
        line.send(calls=len(fs.calls))
        project.close()


def watching(line: Line, folder: str, name: str = "") -> None:
    """Look for new stores until asked to stop: what has the name of a branch is a whole store from the first moment."""
    seen: set[Path] = set()
    while not line.is_spoken_to():
        for place in set(Path(folder).iterdir()) - seen:
            seen.add(place)
            if place.name.startswith("."):
                continue
            names = {one.name for one in place.iterdir()}
            if not {"head.json", "lock"} <= names or not any(one.startswith("journal-") for one in names):
                line.send(violated=f"{place.name} has only {sorted(names)}")
        time.sleep(0.001)


def holding(line: Line, path: str, how: str, name: str = "") -> None:
    """Hold a lock: until asked to leave it, or until the end; some start another process meanwhile."""
    children: list[Any] = []
    with lock.held(RealFs(), SystemClock(), Path(path), wait_s=10, command="kb sync"):
        if how == "forks":
            child = os.fork()
            if child == 0:
                line.connection.close()
                time.sleep(30)
                os._exit(0)
            children.append(child)
        elif how == "starts":
            started = subprocess.Popen(["sleep", "30"], start_new_session=True)
            children.append(started.pid)
        line.send(held=True, children=children)
        line.receive()
    line.send(left_s=time.monotonic())
    line.receive()


def taking(line: Line, path: str, name: str = "") -> None:
    """Take a lock each time when asked to, and report when that was; or how it was refused, and after how long."""
    fs, clock = RealFs(), SystemClock()
    while (asked := line.receive()) is not None and "stop" not in asked:
        line.send(begun=True)
        begun_s = time.monotonic()
        try:
            with lock.held(fs, clock, Path(path), wait_s=asked["wait_s"], command="kb apply"):
                line.send(taken_s=time.monotonic())
        except LockTimeout as error:
            holder: dict[str, Any] = error.data["holder"] or {}
            line.send(refused_after_s=time.monotonic() - begun_s, pid=holder.get("pid"), message=error.message)
