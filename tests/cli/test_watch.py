"""The installed ``kb watch``: what it prints, how it ends, and where it does not begin."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbcli.commands import watch as watching
from kbcli.invocation.signals import Deadline
from kbcli.messages import watch_output
from kbcli.terminal.cells import shortened
from kbcli.terminal.output import Output
from kbcore.rules import Violation
from kbcore.store.answers import Outcome
from kbcore.sync.answer import SyncAnswer
from kbcore.text.problems import FileProblem
from kbcore.watch.events import Checked, Resumed, Synced
from tests.support.processes.cli import environment, program, run_kb, write
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import git, make_repository

WAIT_S = 20.0
HOSTILE = '---\nid: REQ-9\ntitle: "a\\x1b[2Jb"\nstatus: open\nlinks: ["NO\\x1b[31mBODY"]\n---\n'


class Running:
    """``kb watch`` as a process, and the lines that it has written."""

    def __init__(self, root: Path, *words: str) -> None:
        command = [*program(), "watch", *words]
        self.process = subprocess.Popen(
            command, cwd=root, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def until(self, what: str) -> Any:
        """Wait for a line that holds a text, and return it, as an object when it is one."""
        end_s = time.monotonic() + WAIT_S
        while not any(what in line for line in self.lines):
            assert time.monotonic() < end_s, (what, self.lines)
            time.sleep(0.01)
        line = next(line for line in self.lines if what in line)
        return json.loads(line) if line.startswith("{") else line

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; returns the status and standard error."""
        self.process.send_signal(number)
        status = self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        assert self.process.stderr
        said = self.process.stderr.read()
        self.process.stderr.close()
        return status, said

    def switches(self) -> int:
        """Return how often the threads of the process have gone to sleep so far."""
        statuses = [task.read_text() for task in Path(f"/proc/{self.process.pid}/task").glob("*/status")]
        return sum(int(re.findall(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.MULTILINE)[0]) for text in statuses)

    def _read(self) -> None:
        assert self.process.stdout
        with self.process.stdout as out:
            self.lines.extend(iter(out.readline, ""))


@contextlib.contextmanager
def running(root: Path, *words: str) -> Iterator[Running]:
    """Give a running ``kb watch``; it is killed if it is left."""
    made = Running(root, *words)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.end(signal.SIGKILL)


def test_it_says_as_lines_of_json_what_it_does_and_ends_well_on_sigterm(synced: Path) -> None:
    with running(synced, "--json") as watch:
        began = watch.until('"following"')
        assert (began["branch"], began["files"]["scanned"]) == ("main", 3)
        assert watch.until('"is_first":true')["event"] == "checked"
        write(synced, {"docs/requirements/more.md": "---\nid: REQ-3\ntitle: More\nstatus: open\nlinks: [NONE]\n---\n"})
        reported = watch.until('"synced"')
        assert reported["ids"] == {"created": ["REQ-3"], "updated": [], "deleted": []}
        source = "docs/requirements/more.md"
        assert reported["unresolved"] == [{"from": "REQ-3", "type": "", "target": "NONE", "source": source}]
        assert 0 < reported["took_ms"] < 1000 * WAIT_S
        checked = watch.until('"new":[{')
        assert ("checked", "REQ-3") in {(checked["event"], one["id"]) for one in checked["new"]}
        second = run_kb(synced, "watch")
        assert second.status == 65
        assert f"watched already, by kb watch (process {watch.process.pid} on " in second.err
        assert watch.end() == (0, "")
        assert all(line.endswith("\n") and json.loads(line)["event"] for line in watch.lines)


@pytest.mark.sliced
def test_it_says_in_words_what_it_does_and_ends_well_on_sigint(synced: Path) -> None:
    with running(synced) as watch:
        watch.until("main at seq 1: following 3 files.")
        watch.until("main at seq 1: no violations.")
        write(synced, {"docs/requirements/hostile.md": HOSTILE})
        line = watch.until("REQ-9 created")
        assert re.fullmatch(r"\d\d:\d\d:\d\d main at seq 2: REQ-9 created \(\d+ ms\)\n", line), line
        assert watch.until("+ ")
        status, said = watch.end(signal.SIGINT)
        assert (status, said) == (0, "")
        assert "\x1b" not in "".join(watch.lines)


@pytest.mark.sliced
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="this system does not count wake-ups in /proc")
def test_it_sleeps_while_nothing_changes(synced: Path) -> None:
    with running(synced, "--json") as watch:
        watch.until('"is_first":true')
        time.sleep(1.0)
        before = watch.switches()
        time.sleep(3.0)
        assert watch.switches() - before <= 3 * 20
        assert watch.end() == (0, "")


@pytest.mark.sliced
def test_it_ends_cleanly_although_its_output_is_not_read(synced: Path) -> None:
    lone = "---\nid: REQ-{0}\ntitle: Lone {0}\nstatus: open\n---\n"
    write(synced, {f"docs/requirements/{number}.md": lone.format(number) for number in range(20, 220)})
    reading, writing = os.pipe()
    command = [*program(), "watch", "--json", "--check"]
    watch = subprocess.Popen(command, cwd=synced, env=environment(), stdout=writing, stderr=subprocess.PIPE)
    assert watch.stderr
    try:
        end_s = time.monotonic() + WAIT_S
        while select.select([], [writing], [], 0)[1]:
            assert time.monotonic() < end_s, "the pipe does not fill"
            time.sleep(0.01)
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(WAIT_S) == 0
        assert watch.stderr.read() == b""
    finally:
        watch.kill()
        watch.wait()
        watch.stderr.close()
        os.close(writing)
        os.close(reading)


@contextlib.contextmanager
def on_a_screen(words: list[str], cwd: Path, env: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run ``kb`` at a terminal of 24 lines of 80 columns; yields the process and what shows its screen."""
    screen, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [*program(), *words]
    process = subprocess.Popen(command, cwd=cwd, env=env, stdin=its, stdout=its, stderr=its, start_new_session=True)
    os.close(its)
    try:
        yield process, screen
    finally:
        process.kill()
        process.wait()
        os.close(screen)


def test_at_a_narrow_terminal_its_lines_are_broken_between_words(synced: Path) -> None:
    env = environment({"TERM": "dumb", "COLUMNS": "16"})
    seen = ""
    with on_a_screen(["watch"], synced, env) as (process, screen):
        while "violations." not in seen and select.select([screen], [], [], WAIT_S)[0]:
            seen += os.read(screen, 1 << 16).decode()
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
    assert [line[9:] for line in seen.splitlines() if line[2:3] == ":"] == ["main at", "main at"]
    assert max(map(len, seen.splitlines())) <= 16


def test_violations_stay_on_the_screen_and_no_text_of_a_document_takes_it_over(synced: Path) -> None:
    env = environment({"TERM": "xterm"})
    env = {name: value for name, value in env.items() if name not in {"COLUMNS", "LINES"}}
    seen = ""

    def until(what: str) -> None:
        nonlocal seen
        end_s = time.monotonic() + WAIT_S
        while what not in seen.rpartition("\x1b[H\x1b[J")[2]:
            assert time.monotonic() < end_s, seen
            if select.select([screen], [], [], 0.1)[0]:
                seen += os.read(screen, 1 << 16).decode()

    with on_a_screen(["watch", "--check"], synced, env) as (process, screen):
        until("No violations.")
        write(synced, {"docs/requirements/hostile.md": HOSTILE})
        until("REQ-9")
        until("BODY")
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
    shown = seen.replace("\x1b[H\x1b[J", "")
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", shown), shown
    last = seen.rpartition("\x1b[H\x1b[J")[2].splitlines()
    assert len(last) <= 24
    assert max(map(len, last)) <= 80


def test_a_screen_never_holds_more_lines_than_fit_above_the_end_of_the_last() -> None:
    said = [f"line {number}" for number in range(50)]
    present = [Violation("own", "error", f"E-{number}", "m", "", "") for number in range(30)]
    for height, width in product(range(2, 30), (8, 80)):
        for count in (0, 1, 3, 30):
            shown = watch_output.screen(said, present[:count], width, height)
            assert len(shown) <= height - 1
            title = f"{count} error{'s' * (count != 1)}, 0 warnings" if count else "No violations."
            assert shown[0] == shortened(title, width)


def test_a_narrow_screen_says_what_is_wrong_and_not_only_where() -> None:
    one = Violation("own", "error", "REQ-1", "REQ-1 is linked to nothing.", "Link it.", "docs/requirements/REQ-1.md")
    assert watch_output.screen([], [one, one], 40, 7) == [
        "2 errors, 0 warnings",
        "error docs/requirements/REQ-1.md: REQ-1",
        "  is linked to nothing. [own]",
        "… and 1 more; `kb check` lists them all",
        "",
    ]


def test_the_screen_is_redrawn_when_its_size_changes(synced: Path) -> None:
    screen, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    env = {name: value for name, value in environment().items() if name not in {"COLUMNS", "LINES"}}
    command = [*program(), "watch", "--check"]
    process = subprocess.Popen(command, cwd=synced, env=env | {"TERM": "xterm"}, stdin=its, stdout=its, stderr=its)
    seen = ""

    def until(is_so: Callable[[str], bool]) -> None:
        nonlocal seen
        end_s = time.monotonic() + WAIT_S
        while not is_so(seen):
            assert time.monotonic() < end_s, seen
            if select.select([screen], [], [], 0.1)[0]:
                seen += os.read(screen, 1 << 16).decode()

    try:
        until(lambda text: "no violations." in text)
        seen = ""
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 3, 20, 0, 0))
        process.send_signal(signal.SIGWINCH)
        until(lambda text: "No violations." in text)
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(its)
        os.close(screen)


def test_problems_in_files_are_reported_once_and_in_limited_number() -> None:
    outcome = Outcome.unchanged_at("main", 3, dry_run=False)
    problems = tuple((f"{number}.md", FileProblem(2, "bad", "No.", "")) for number in range(30))
    answer = SyncAnswer(outcome, 30, 30, 0, 30, 30, problems, (), (), 0, 0)
    at = "2026-01-02T03:04:05Z"
    messages = watch_output.WatchMessages()
    synced = messages.lines_of(Synced(at, answer, 1))
    assert [line.mark for line in synced].count("!") == 21
    assert synced[-1].text == "and 10 more; `kb sync` lists them all"
    new = tuple(
        Violation("unreadable-source", "error", f"{number}.md", "No.", "", f"{number}.md", line=2)
        for number in range(31)
    )
    checked = Checked(at, "main", 3, new, (), new)
    assert [line.text for line in messages.lines_of(checked)] == ["error 30.md:2: No. [unreadable-source]"]
    assert len(messages.lines_of(checked)) == 21


def test_the_cause_of_an_unreadable_file_is_reported_once_and_its_end_is_worded_to_match() -> None:
    at, messages = "2026-01-02T03:04:05Z", watch_output.WatchMessages()
    outcome = msgspec.structs.replace(Outcome.unchanged_at("main", 3, dry_run=False), applied=True)
    problems = (("docs", FileProblem(0, "unreadable", "The folder cannot be listed.", "")),)
    answer = SyncAnswer(outcome, 1, 1, 0, 1, 1, problems, (), (), 0, 0, noted=("docs/a.md",))
    reported = [line.text for line in messages.lines_of(Synced(at, answer, 7))]
    assert reported[0].endswith("main at seq 3: docs/a.md read with errors, nothing else changed (7 ms)")
    unread = Violation("unreadable-source", "error", "docs/a.md", "not complete.", "Sync.", "docs/a.md")
    other = msgspec.structs.replace(unread, id="b.md", source="b.md", message="not complete.")
    lines = messages.lines_of(Checked(at, "main", 3, (unread, other), (), (unread, other)))
    assert [line.text for line in lines] == ["error b.md: not complete. (Sync.) [unreadable-source]"]
    fixed = messages.lines_of(Checked(at, "main", 4, (), (unread, other), ()))
    assert [line.text for line in fixed] == [
        "fixed docs/a.md: it can be read again. [unreadable-source]",
        "fixed b.md: not complete. [unreadable-source]",
    ]
    edited = msgspec.structs.replace(answer, problems=(), noted=("a.md", "b.md"))
    assert "seq 3: a.md, b.md read, nothing else changed (7 ms)" in messages.lines_of(Synced(at, edited, 7))[0].text
    many = msgspec.structs.replace(edited, noted=tuple(f"{number}.md" for number in range(9)))
    assert "seq 3: 9 files read, nothing else changed (7 ms)" in messages.lines_of(Synced(at, many, 7))[0].text


def test_it_says_that_it_has_resumed() -> None:
    at = "2026-01-02T03:04:05Z"
    assert watch_output.as_json(Resumed(at)) == {"event": "resumed", "at": at}
    assert watch_output.WatchMessages().lines_of(Resumed(at))[0].text.endswith(" resumed.")
    again = Checked(at, "main", 3, (), (), (), run_again=("own",))
    assert watch_output.as_json(again)["run_again"] == ["own"]
    assert watch_output.WatchMessages().lines_of(again)[0].text == "the rule own can be run again."


@pytest.fixture
def _raising_sigint() -> Iterator[None]:
    """Have SIGINT raise KeyboardInterrupt: a shell starts what it runs in the background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_raising_sigint")
def test_a_second_signal_ends_it_at_once_also_the_other_one() -> None:
    stopped: list[bool] = []
    with Deadline().by_signals(lambda: stopped.append(True)):
        signal.raise_signal(signal.SIGTERM)
        assert stopped == [True]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_change_of_size_is_drawn_between_two_things_and_not_by_the_signal(capsys: pytest.CaptureFixture[str]) -> None:
    screen = watching._Screen(Output({}), watch_output.WatchMessages())
    before = signal.getsignal(signal.SIGWINCH)
    with screen.following_its_size():
        signal.raise_signal(signal.SIGWINCH)
        assert capsys.readouterr().out == ""
        screen.draw_when_due()
        assert "No violations." in capsys.readouterr().out
        screen.draw_when_due()
        assert capsys.readouterr().out == ""
    assert signal.getsignal(signal.SIGWINCH) is before


def test_it_ends_when_its_output_is_not_read_any_more(synced: Path) -> None:
    kb = shlex.join(program())
    done = subprocess.run(
        ["sh", "-c", f"{kb} watch --json | head -n 1"], cwd=synced, env=environment(), capture_output=True, text=True,
        timeout=WAIT_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["event"] == "following"


def test_it_does_not_begin_without_a_worktree(root: Path, tmp_path: Path) -> None:
    outside = run_kb(tmp_path, "watch", env=environment({"GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}))
    assert outside.status == 60
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "--quiet", "--bare", root, bare)
    stores_at(bare).mkdir(parents=True)
    refused = run_kb(bare, "--json", "watch")
    assert (refused.status, refused.error["code"]) == (2, "invalid_query")
    assert run_kb(make_repository(tmp_path / "without"), "watch").status == 61


def test_the_watcher_does_not_list_what_the_project_accepts() -> None:
    at = "2026-01-02T03:04:05Z"
    outcome = msgspec.structs.replace(Outcome.unchanged_at("main", 3, dry_run=False), applied=True)
    problems = tuple((path, FileProblem(1, "yaml", "No.", "")) for path in ("a.md", "b.md"))
    answer = SyncAnswer(outcome, 2, 2, 0, 2, 2, problems, (), (), 0, 0)
    messages = watch_output.WatchMessages(lambda answer: answer.problems[1:])
    lines = [line.text for line in messages.lines_of(Synced(at, answer, 1))]
    assert [line for line in lines if ".md" in line] == ["b.md:1: No."]


def test_the_watcher_lists_all_problems_while_the_settings_are_being_saved(project: Project) -> None:
    project.sync({"a.md": "x"})
    outcome = Outcome.unchanged_at("main", 1, dry_run=False)
    problems = (("docs/a.md", FileProblem(1, "yaml", "No.", "")),)
    answer = SyncAnswer(outcome, 1, 1, 0, 1, 1, problems, (), (), 0, 0)
    baseline = {"format": 1, "violations": [{"rule": "unreadable-source", "id": "docs/a.md", "code": "yaml"}]}
    project.write({".kb/baseline.json": json.dumps(baseline), ".kb/config.json": "{}"})
    workspace = project.workspace()
    assert not watching._not_accepted(workspace, answer)
    project.write({".kb/config.json": '{"suppress": ['})
    assert watching._not_accepted(workspace, answer) == problems
