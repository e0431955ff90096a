"""`kb ui` while something else happens to its repository: each page is right, or says why not."""

from __future__ import annotations

import collections
import re
import shutil
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kbweb.server.access import MAX_REQUESTS
from tests.cli.ui.test_pages import apply, kb
from tests.cli.ui.test_writing import post
from tests.support.processes.explorer import Explorer
from tests.support.processes.second_user import without_powers
from tests.support.repository.places import STORES_NAME
from tests.support.repository.repos import git

SECRET = "hunter2-of-the-vault"
ASKED = [
    "/",
    "/entities",
    "/entity/REQ-9",
    f"/entities?text={SECRET}",
    f"/suggest?text={SECRET}",
    "/records",
    "/record/2",
    "/record/4/revert",
    "/changes?from=1&to=3",
    "/?at=3",
    "/entity/REQ-9?at=3",
    "/violations",
    "/activity",
    "/review",
]
ODD = [
    f"/entities?text={'x' * 7000}",
    "/entities?" + "&".join(f"where=a{number}=b" for number in range(190)),
    "/entities?" + "&".join(f"tag=t{number}" for number in range(190)),
    "/entities?where=title~" + "(" * 500,
    "/entities?path=" + "%7Ba," * 600,
    f"/entities?cursor={'A' * 5000}",
    f"/entity/{'x' * 7000}",
    f"/entity/{'%F0%9F%98%80' * 600}",
    *("/entity/%00", "/entity/%zz", "/entity/%ff%fe", "/../../etc/passwd", "//evil.example/", "/static/..%2f..%2fx.py"),
    *("/record/99999999999999999999", "/record/-1", "/record/0", "/record/%D9%A1", "/record/9999999999/revert"),
    *("/?at=99999999999999999999", "/?at=-1", "/?at=--help", "/?at=2999-01-01", "/changes?from=zzz"),
    *("/requirements?offset=99999999", "/requirements?offset=9999999999999", "/records?before=0", "/review?record=x"),
    *("/matrix?type=req&edges=" + "+".join(["relates_to"] * 9), "/entities?format=exe", "/entity/REQ-9?depth=0"),
]


@pytest.fixture
def root(models, tmp_path):
    made = shutil.copytree(models / "synced", tmp_path / "repo", symlinks=True)
    git(made, "add", ".")
    git(made, "commit", "-qm", "documents")
    for number in range(3):
        one = {"id": "REQ-9", "type": "req", "title": f"Pay {SECRET} {number}", "status": "open"}
        apply(made, one, actor="ann")
    return made


class Asking:
    """Asks for pages again and again, from three threads, while its ``with`` block runs."""

    def __init__(self, explorer):
        self._explorer, self._stop = explorer, threading.Event()
        self.wrong, self.statuses = [], collections.Counter()
        self._threads = [threading.Thread(target=self._ask) for _ in range(3)]

    def __enter__(self):
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for one in self._threads:
            one.join()

    def _ask(self):
        while not self._stop.is_set():
            for path in ASKED:
                found = self._explorer.get(path)
                self.statuses[found.status] += 1
                if found.status >= 500 or "Traceback" in found.text:
                    self.wrong.append((path, found.status, found.text))


def ended(explorer):
    """End an explorer, and return what it wrote for its user while it ran."""
    assert explorer.end() == 0
    return explorer.process.stderr.read().decode()


def test_a_compaction_changes_nothing_that_is_shown(root):
    with Explorer(root) as explorer:
        before = [explorer.get(path).main for path in ASKED if "suggest" not in path]
        with Asking(explorer) as asking:
            kb(root, "compact")
        assert [explorer.get(path).main for path in ASKED if "suggest" not in path] == before
        assert asking.wrong == []
        assert {*asking.statuses} == {200}
        assert ended(explorer) == ""


def test_what_is_redacted_is_on_no_page_any_more(root):
    with Explorer(root) as explorer:
        assert all(SECRET in explorer.get(path).text for path in ("/entity/REQ-9", "/record/2", "/entity/REQ-9?at=3"))
        with Asking(explorer) as asking:
            kb(root, "redact", SECRET, "--yes")
        for path in ASKED:
            found = explorer.get(path.replace(SECRET, "Pay"))
            assert found.status in {200, 400}, (path, found.text)
            assert SECRET not in found.text, path
        assert [one for one in asking.wrong if one[1] != 503] == []
        assert ended(explorer) == ""


def test_switches_of_the_branch_and_lost_caches_leave_each_page_as_it_should_be(root):
    with Explorer(root) as explorer:
        before = explorer.get("/entities").main
        with Asking(explorer) as asking:
            git(root, "switch", "-qc", "side")
            explorer.get("/")
            git(root, "switch", "-q", "--detach")
            explorer.get("/")
            git(root, "switch", "-q", "main")
            shutil.rmtree(root / ".git/kb/cache")
            explorer.get("/")
        assert explorer.get("/entities").main == before
        assert asking.wrong == []
        assert "error" not in ended(explorer)


def test_a_store_that_is_lost_is_an_error_with_a_remedy_until_it_is_there_again(root):
    [store] = (root / STORES_NAME).iterdir()
    with Explorer(root) as explorer:
        explorer.get("/")
        with Asking(explorer) as asking:
            kept = store.rename(root.parent / "kept")
            while not any(status >= 400 for status in asking.statuses):
                time.sleep(0.05)
        found = explorer.get("/entities")
        assert (found.status, "kb " in found.main) == (500, True)
        kept.rename(store)
        assert explorer.get("/entity/REQ-9").status == 200
        assert ended(explorer) == ""


def test_a_branch_that_is_deleted_and_purged_is_said_to_be_gone(root):
    git(root, "branch", "side")
    kb(root, "branch", "ensure", "side")
    with Explorer(root, "--branch", "side") as explorer:
        assert "side at seq 4" in explorer.get("/").main
        with Asking(explorer) as asking:
            git(root, "branch", "-D", "side")
            kb(root, "gc")
        found = explorer.get("/")
        assert found.status == 400, found.text
        assert "side" in found.main
        assert asking.wrong == []
        assert ended(explorer) == ""


def test_a_folder_that_cannot_be_written_is_shown_and_refuses_forms(root):
    paths = [root, *root.rglob("*")]
    for path in reversed(paths):
        path.chmod(stat.S_IMODE(path.stat().st_mode) & ~0o222)
    try:
        with Explorer(root, "--write", through=without_powers()) as explorer:
            assert {explorer.get(path).status for path in ASKED} == {200}
            found = post(explorer, "/entity/REQ-9", action="set", field="title", value="x", seq=4)
            assert (found.status, "Nothing was written" in found.main or "read" in found.main) == (503, True), (
                found.text
            )
            assert "Traceback" not in ended(explorer)
    finally:
        for path in paths:
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_settings_that_are_wrong_for_a_while_are_named_with_their_line(root):
    settings = root / ".kb/config.json"
    with Explorer(root) as explorer:
        before = settings.read_text()
        settings.write_text('{"rules": ')
        found = explorer.get("/")
        assert (found.status, ".kb/config.json:1" in found.main) == (400, True)
        settings.write_text(before)
        assert explorer.get("/").status == 200
        assert ended(explorer) == ""


def test_fifty_requests_at_once_are_all_answered(root):
    assert MAX_REQUESTS >= 50
    with Explorer(root) as explorer, ThreadPoolExecutor(50) as threads:
        answers = [*threads.map(lambda number: explorer.get(ASKED[number % len(ASKED)]), range(50))]

        assert {one.status for one in answers} == {200}
        assert explorer.get("/").status == 200
        assert ended(explorer) == ""


def test_odd_addresses_are_refused_in_words_and_break_nothing(root):
    with Explorer(root) as explorer:
        for path in ODD:
            found = explorer.get(path)
            assert found.status in {200, 400, 404}, path
            assert "Traceback" not in found.text
            assert len(found.body) < 200_000, path
        beyond = explorer.get("/requirements?offset=99999999")
        assert "none of 3" in beyond.main
        [last] = re.findall(r'href="([^"]*)" rel="prev"', beyond.text)
        assert "REQ-9" in explorer.get(last.removeprefix(explorer.base)).main
        assert ended(explorer) == ""


def test_after_a_kill_another_one_has_its_port_and_its_address_opens_nothing(root):
    with Explorer(root) as killed:
        killed.process.kill()
        killed.process.wait()
        with Explorer(root, "--port", str(killed.port)) as explorer:
            assert explorer.get("/").status == 200
            assert explorer.ask("GET", f"{killed.base}/", {"Cookie": killed.cookie}).status == 403
            assert explorer.ask("GET", f"{killed.base}/?{killed.query}").status == 403
