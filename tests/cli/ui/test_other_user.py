"""Another user of the machine finds no secret of `kb ui` in what the system shows, and gets no page."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.browser.chromium import chromium_program
from tests.support.processes.explorer import WAIT_S, Explorer
from tests.support.processes.second_user import BOB, common, needs_root

__all__ = ["common"]

BECOME = """
import encodings.idna, glob, http.client, json, os, sys
uid = int(sys.argv[1])
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
"""
"""Becomes the other user, after the imports: Python itself may be where that user cannot read it."""

LOOK = """
named, found, denied = sys.argv[2:], {}, []
for place in [*glob.glob("/proc/[0-9]*/*"), *named]:
    if place not in named and os.path.basename(place) not in {"cmdline", "environ", "maps", "status", "cwd", "fd"}:
        continue
    try:
        if os.path.isdir(place):
            os.listdir(place)
            continue
        with open(place, "rb") as file:
            found[place] = file.read(1_000_000).decode("latin-1")
    except OSError:
        denied.append(place)
print(json.dumps({"uid": os.getuid(), "found": found, "denied": denied}))
"""
"""Reads what a user can read of all processes, and of the files and folders that are named."""

ASK = """
port, answers = int(sys.argv[2]), []
for method, target, headers in json.loads(sys.argv[3]):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, target, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    answers.append([answer.status, answer.read().decode(), dict(answer.getheaders())])
    connection.close()
print(json.dumps(answers))
"""
BROWSER = """#!/bin/sh
echo "$1" > "$0.opened"
sleep 20
"""


@pytest.fixture(scope="module")
def root(models, tmp_path_factory):
    return shutil.copytree(models / "synced", tmp_path_factory.mktemp("other") / "repo", symlinks=True)


def as_bob(script, *words):
    """Run a script of Python's library alone as another user, and return what it printed."""
    command = [sys.executable, "-I", "-c", BECOME + script, str(BOB), *words]
    done = subprocess.run(command, cwd="/", env={}, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_root
def test_the_address_is_in_nothing_that_another_user_can_read(root, common):
    program = common / "browser"
    program.write_text(BROWSER)
    program.chmod(0o755)
    with Explorer(root, opens=False, browser=f"{program} %s &") as explorer:
        opened = common / "browser.opened"
        _wait(lambda: opened.exists() and opened.read_text())
        place = Path(opened.read_text().strip().removeprefix("file://"))
        secrets = {explorer.base[1:], explorer.query.removeprefix("token=")}
        assert explorer.base in place.read_text()

        seen = as_bob(LOOK, str(place.parent), str(place))

        assert seen["uid"] == BOB
        assert any(str(program) in text and str(place) in text for text in seen["found"].values())  # it can look
        assert f"/proc/{explorer.process.pid}/cmdline" in seen["found"]
        assert f"/proc/{explorer.process.pid}/environ" in seen["denied"]
        assert {str(place), str(place.parent)} <= {*seen["denied"]}
        assert [name for name, text in seen["found"].items() if any(one in text for one in secrets)] == []


@needs_root
def test_another_user_gets_no_page_whatever_is_asked(root):
    with Explorer(root) as explorer:
        own = f"127.0.0.1:{explorer.port}"
        names = ["evil.example", f"localhost:{explorer.port}", "127.0.0.1", own]
        tries = [
            *(
                ("GET", target, {})
                for target in ("/", "/?token=x", "/entities", "/events", "/static/style.css", "/kb/")
            ),
            *(("GET", f"{explorer.base}{path}", {}) for path in ("/", "/entities", "/events", "/suggest?text=log")),
            *(("GET", f"{explorer.base}/", {"Host": name}) for name in names),
            *(("GET", f"{explorer.base}/", {"Origin": f"http://{name}"}) for name in names),
            *(("GET", f"{explorer.base}/?token={token}", {}) for token in ("", "x", "a" * 43)),
            ("GET", f"{explorer.base}/?{explorer.query}", {}),  # which the browser has used
            ("GET", f"{explorer.base}/", {"Cookie": "kb=" + "a" * 43}),
            ("GET", f"{explorer.base}/", {"X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1"}),
            ("POST", f"{explorer.base}/entity/REQ-1", {"Content-Length": "0"}),
            ("HEAD", f"{explorer.base}/", {}),
        ]

        answers = as_bob(ASK, str(explorer.port), json.dumps(tries))

        assert len(answers) == len(tries)
        for asked, (status, text, headers) in zip(tries, answers, strict=True):
            assert status in {403, 405, 421}, asked
            assert "REQ-1" not in text
            assert "main" not in text
            assert not {"set-cookie", "location"} & {name.lower() for name in headers}
        assert explorer.get("/").status == 200


@needs_root
def test_the_history_of_a_browser_is_private_and_its_addresses_open_nothing(root, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    profile = tmp_path / "profile"
    with Explorer(root, opens=False) as explorer, playwright.sync_playwright() as running:
        context = running.chromium.launch_persistent_context(str(profile), **chromium_program())
        page = context.new_page()
        page.goto(explorer.url)
        page.wait_for_url(f"{explorer.origin}{explorer.base}/")
        page.goto(f"{explorer.origin}{explorer.base}/entities")
        context.close()
        history = profile / "Default/History"
        with sqlite3.connect(f"file:{history}?mode=ro", uri=True) as known:
            visited = [address for (address,) in known.execute("select url from urls")]

        assert any(address.endswith("/entities") for address in visited)
        assert {str(history), str(profile)} <= {*as_bob(LOOK, str(profile), str(history))["denied"]}
        for address in visited:
            target = address.removeprefix(explorer.origin)
            assert explorer.ask("GET", target).status == 403, target


def _wait(is_so):
    until_s = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < until_s
        time.sleep(0.05)
