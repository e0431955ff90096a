"""The reports of test runs are taken in whenever they change, beside a watcher of documents."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from kbcore.clock import SystemClock
from kbcore.errors import InvalidConfig, InvalidReport, LockTimeout
from kbcore.model.verdict import Verdict
from kbcore.results.report_files import ReportFile, found_reports, named_reports, watched_folders
from kbcore.results.taking import ResultsRequest, take_results
from kbcore.storage.fs import RealFs
from kbcore.watch.notices import NotedPaths
from kbcore.watch.reports import ReportEvent, ReportsRefused, ReportsTaken, ReportWatcher
from tests.core.results.reporting import DOCUMENTS, junit, verdict
from tests.support.repository.project import AUTHOR, Project, document
from tests.support.repository.watched import WAIT_S, Watched

GLOBS = ["build/**/*.xml"]
FAILING, PASSING = junit(("adds up", "failure", "no")), junit(("adds up", "", ""))


NONE = Verdict("passed")


class Following:
    """A watcher of reports in a thread."""

    def __init__(self, root: Path, texts: tuple[str, ...] = ()) -> None:
        self._own = Project(root, fs=RealFs(), is_new=False)
        # A reader that keeps a view needs a pool of its own: it would share the statements of a thread that reads.
        self.reader = Project(root, fs=RealFs(), is_new=False)
        self.events: list[ReportEvent] = []
        self.error: BaseException | None = None
        self.fails_with: list[Exception] = []
        self.is_unreadable = False
        self.listened: list[list[Path]] = []
        self.watcher = ReportWatcher(
            SystemClock(),
            lambda: self._find(root, texts),
            lambda: watched_folders(texts, root, () if texts else GLOBS, root),
            self._take,
            self.events.append,
            listen=self._listen(),
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _find(self, root: Path, texts: tuple[str, ...]) -> list[ReportFile]:
        if self.is_unreadable:
            raise InvalidConfig("half of it")
        return named_reports(texts, root, root, may_lack=True) if texts else found_reports(root, GLOBS)

    def _listen(self) -> type[NotedPaths]:
        listened = self.listened

        class Noted(NotedPaths):
            def __init__(self, deep: Sequence[Path], flat: Sequence[Path], *, is_polling: bool = False) -> None:
                super().__init__(deep, flat, is_polling=is_polling)
                listened.append([*deep])

        return Noted

    def _take(self, files):
        if self.fails_with:
            raise self.fails_with.pop()
        workspace = self._own.workspace()
        return take_results(workspace, workspace.head().branch, AUTHOR, ResultsRequest(tuple(files)), follows_head=True)

    def _run(self) -> None:
        try:
            self.watcher.run()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            self.error = error

    def until(self, is_so: Callable[[], object]) -> None:
        end_s = time.monotonic() + WAIT_S
        while not is_so():
            assert self.error is None, self.error
            assert time.monotonic() < end_s, self.events
            time.sleep(0.02)

    def until_outcome(self, key: str, outcome: str) -> None:
        def is_so() -> bool:
            found = verdict(self.reader, key)
            return found is not None and found.outcome == outcome

        self.until(is_so)

    def end(self) -> None:
        self.watcher.stop()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()
        self._own.close()
        self.reader.close()
        assert self.error is None, self.error


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = Project(tmp_path / "repo", fs=RealFs())
    made.sync(DOCUMENTS)
    made.close()
    return tmp_path / "repo"


@pytest.fixture
def following(root: Path) -> Iterator[Following]:
    made = Following(root)
    yield made
    made.end()


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_reports_are_taken_in_when_they_come_change_and_come_back_with_their_folder(root, following):
    write(root, "build/a/r.xml", FAILING)
    following.until_outcome("T-1", "failed")
    write(root, "build/a/r.xml", PASSING)
    following.until_outcome("T-1", "passed")
    shutil.rmtree(root / "build")
    write(root, "build/b/r.xml", FAILING)
    following.until_outcome("T-1", "failed")


def test_a_report_that_is_not_complete_is_refused_once_and_taken_in_when_it_is(root, following):
    write(root, "build/r.xml", "<testsuite>")
    following.until(lambda: any(isinstance(one, ReportsRefused) for one in following.events))
    write(root, "build/r.xml", FAILING)
    following.until_outcome("T-1", "failed")
    assert refusals(following) == [InvalidReport]


def refusals(following: Following) -> list[type]:
    return [type(one.error) for one in following.events if isinstance(one, ReportsRefused)]


@pytest.mark.parametrize("error", [LockTimeout, InvalidConfig])
def test_what_may_work_later_is_tried_again_and_reported_once(root, following, error):
    following.fails_with = [error("busy"), error("busy")]
    write(root, "build/r.xml", FAILING)
    following.until_outcome("T-1", "failed")
    assert refusals(following) == [error]


def test_settings_that_cannot_be_read_for_a_while_end_nothing(root, following):
    for text, outcome in ((FAILING, "failed"), (PASSING, "passed")):
        following.is_unreadable = True
        before = len(refusals(following))
        write(root, "build/r.xml", text)
        following.until(lambda before=before: len(refusals(following)) > before)
        following.is_unreadable = False
        following.until_outcome("T-1", outcome)
    assert refusals(following) == [InvalidConfig, InvalidConfig]


def test_a_folder_that_is_deleted_and_made_again_is_listened_to_again(root, following):
    write(root, "build/r.xml", FAILING)
    following.until_outcome("T-1", "failed")
    following.until(lambda: following.listened[-1] == [root / "build"])
    before = len(following.listened)
    shutil.rmtree(root / "build")
    write(root, "build/r.xml", PASSING)
    following.until(lambda: len(following.listened) > before and following.listened[-1] == [root / "build"])
    following.until_outcome("T-1", "passed")


def test_of_a_test_in_two_reports_the_worse_outcome_stays_when_the_other_report_changes(root, following):
    write(root, "build/a.xml", FAILING)
    following.until_outcome("T-1", "failed")
    write(root, "build/b.xml", junit(("adds up", "", ""), ("is empty", "", "")))
    following.until_outcome("T-2", "passed")
    assert verdict(following.reader, "T-1").outcome == "failed"


def test_a_named_report_may_come_later_also_with_its_folder(root):
    following = Following(root, ("out/deep/r.xml",))
    try:
        write(root, "out/deep/r.xml", FAILING)
        following.until_outcome("T-1", "failed")
    finally:
        following.end()


def test_beside_a_watcher_of_documents_nothing_is_lost(root, following):
    with Watched(root) as watched:
        for number in range(5):
            title = f"adds up {number}"
            write(root, f"docs/tests/w{number}.md", document(f"W-{number}", title=title, status="active"))
            write(root, "build/r.xml", junit(("adds up", "failure", f"no {number}")))
        watched.until_there(*(f"W-{number}" for number in range(5)))
        following.until(lambda: (verdict(following.reader, "T-1") or NONE).message == "no 4")
        following.until(lambda: any(isinstance(one, ReportsTaken) for one in following.events))
