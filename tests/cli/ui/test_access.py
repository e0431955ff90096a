"""Access to ``kb ui``: each attack is made over a socket, on a real process."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import stat
import time
from pathlib import Path

import pytest

from kbcli import app
from kbweb.server.access import MAX_REQUESTS, Guard, Keys
from kbweb.server.connections import MAX_IDLE
from kbweb.server.opening import write_opening_page
from tests.cli.ui.test_pages import apply
from tests.support.processes.explorer import Explorer

REFUSED = "has not opened the explorer"


@pytest.fixture(scope="module")
def root(models, tmp_path_factory):
    return shutil.copytree(models / "synced", tmp_path_factory.mktemp("access") / "repo", symlinks=True)


@pytest.fixture(scope="module")
def opening(root):
    """An explorer, and the answer to its address when it was first opened, by a link of another program."""
    with Explorer(root, opens=False) as running:
        first = running.opened(**{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
        running.cookie = first.headers["set-cookie"].split(";")[0]
        yield running, first


@pytest.fixture
def explorer(opening):
    return opening[0]


@pytest.fixture
def first(opening):
    return opening[1]


def raw(explorer, *lines, target=None, method="GET"):
    """Send a request whose lines are all given, and return its status and its text."""
    head = [f"{method} {target or explorer.base + '/'} HTTP/1.1", *lines, "Connection: close", "", ""]
    answer = explorer.sent("\r\n".join(head).encode())
    return int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[2].decode()


def test_the_browser_that_opened_the_address_sees_the_pages(explorer):
    found = explorer.get("/")

    assert found.status == 200
    assert "main" in found.main


def test_an_address_opens_the_explorer_once(explorer, first):
    again = explorer.opened()

    assert first.status == 200
    assert (again.status, "set-cookie" in again.headers) == (403, False)
    assert REFUSED in again.text
    # the same browser may load it again: it has the cookie
    assert explorer.opened(Cookie=explorer.cookie).status == 200


def test_of_two_addresses_one_opens_the_explorer():
    keys = Keys()
    printed, opened = (keys.first_place().partition("token=")[2] for _ in range(2))

    assert keys.takes(opened)
    assert not keys.takes(printed)


def test_opening_survives_a_link_from_another_program_or_file(explorer, first):
    assert f'content="0; url={explorer.base}/"' in first.text


def test_the_cookie_is_kept_from_scripts_other_sites_and_other_ports(explorer, first):
    words = {word.strip() for word in first.headers["set-cookie"].split(";")[1:]}
    assert words == {"HttpOnly", "SameSite=Strict", f"Path={explorer.base}/"}
    # Cookies do not know ports. The folder, which other servers cannot name, keeps the cookie from them.
    assert len(explorer.base) > 16


@pytest.mark.parametrize(
    "cookie", ["", "kb=", "kb=x", "kb=" + "a" * 43, "KB={cookie}", "kb={cookie}x", "kb={short}", "other={cookie}"]
)
def test_another_user_without_the_cookie_gets_nothing(explorer, cookie):
    own = explorer.cookie.removeprefix("kb=")
    found = explorer.ask("GET", f"{explorer.base}/", {"Cookie": cookie.format(cookie=own, short=own[:-1])})

    assert found.status == 403
    assert found.text.startswith("This browser has not opened")


@pytest.mark.parametrize("path", ["/", "/entities", "/static/style.css", "/events", "/kb/", "/{almost}/entities"])
def test_the_cookie_alone_opens_nothing_outside_of_the_folder(explorer, path):
    target = path.format(almost=explorer.base[1:-1])
    found = explorer.ask("GET", target, {"Cookie": explorer.cookie})

    assert (found.status, REFUSED in found.text) == (403, True)


@pytest.mark.parametrize("token", ["", "x", "token", "' or 1=1", "%00", "a" * 43])
def test_a_wrong_token_opens_nothing(explorer, token):
    found = explorer.ask("GET", f"{explorer.base}/?token={token.replace(' ', '+')}")

    assert (found.status, "set-cookie" in found.headers) == (403, False)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "localhost:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil.example",
        "127.0.0.1.evil.example:{port}",
        "127.0.0.2:{port}",
        "[::1]:{port}",
        "",
    ],
)
def test_a_name_that_was_rebound_to_this_machine_gets_nothing(explorer, host):
    status, text = raw(explorer, f"Host: {host.format(port=explorer.port)}", f"Cookie: {explorer.cookie}")

    assert status in {400, 421}
    assert "REQ-1" not in text


def test_two_hosts_or_none_are_refused(explorer):
    own = f"Host: 127.0.0.1:{explorer.port}"

    for lines in ([own, "Host: evil.example"], ["Host: evil.example", own], []):
        status, _ = raw(explorer, *lines, f"Cookie: {explorer.cookie}")
        assert status in {400, 421}


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}", "http://localhost:{port}"],
)
def test_pages_of_other_origins_get_nothing(explorer, origin):
    found = explorer.get("/entities", {"Origin": origin.format(port=explorer.port)})

    assert found.status == 403
    assert "REQ-1" not in found.text


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_or_port_gets_nothing_even_with_the_cookie(explorer, site):
    # A page of another port is of the same site, so its requests would have a cookie with SameSite=Strict.
    found = explorer.get("/entities", {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"})

    assert found.status == 403


def test_requests_of_its_own_pages_are_answered(explorer):
    found = explorer.get("/entities", {"Origin": explorer.origin, "Sec-Fetch-Site": "same-origin"})

    assert found.status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_nothing_but_reading_is_taken(explorer, method):
    target = "127.0.0.1:1" if method == "CONNECT" else f"{explorer.base}/"
    status, text = raw(
        explorer, f"Host: 127.0.0.1:{explorer.port}", f"Cookie: {explorer.cookie}", target=target, method=method
    )

    assert status == 405
    assert text.startswith("The explorer only reads")


def test_no_answer_allows_another_origin_to_read_it(explorer):
    for found in (explorer.get("/"), explorer.get("/static/explorer.js"), explorer.ask("GET", "/"), explorer.opened()):
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self'" in policy
        assert found.headers["referrer-policy"] == "no-referrer"
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["cross-origin-resource-policy"] == "same-origin"
        assert found.headers["x-frame-options"] == "DENY"
        assert not any(name.startswith("access-control") for name in found.headers)
        assert "server" not in found.headers
    assert explorer.get("/").headers["cache-control"] == "no-store"


def test_requests_have_limits(explorer):
    own = [f"Host: 127.0.0.1:{explorer.port}", f"Cookie: {explorer.cookie}"]

    assert explorer.get("/entities?text=" + "x" * 9_000).status == 414
    assert raw(explorer, *own, "Content-Length: 10")[0] == 413
    assert raw(explorer, *own, "Transfer-Encoding: chunked")[0] == 413
    assert raw(explorer, *own, "X: " + "x" * 40_000)[0] == 431
    assert explorer.get("/entities?" + "&".join("where=a=b" for _ in range(300))).status == 400
    assert explorer.get("/").status == 200


def test_only_loopback_listens(explorer):
    listed = Path("/proc/net/tcp")
    if not listed.exists():
        pytest.skip("this system does not list sockets in /proc")
    rows = [line.split() for line in listed.read_text("ascii").splitlines()]
    listening = [row[1] for row in rows if row[3] == "0A"]
    places = [one for one in listening if int(one.split(":")[1], 16) == explorer.port]

    assert places == [f"0100007F:{explorer.port:04X}"]


def test_so_many_listeners_are_told_of_changes_and_no_more(explorer):
    opened = [explorer.events() for _ in range(17)]
    try:
        assert [one.status for one in opened] == [200] * 16 + [503]
        assert explorer.get("/").status == 200
    finally:
        for one in opened:
            one.__exit__()
    deadline_s = time.monotonic() + 10
    while True:  # the place of a listener that has gone is free again
        with explorer.events() as one:
            if one.status == 200:
                break
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"])
def test_connections_without_a_request_do_not_keep_the_user_out(explorer, root, begun):
    held = []
    try:
        for _ in range(2 * MAX_IDLE):
            held.append(socket.create_connection(("127.0.0.1", explorer.port), timeout=60))
            held[-1].sendall(begun)
        with explorer.events() as events:
            mark = events.next()
            for _ in range(3):
                assert explorer.get("/static/style.css").status == 200
            held += [socket.create_connection(("127.0.0.1", explorer.port), timeout=60) for _ in range(MAX_IDLE)]
            assert mark in explorer.get("/").text
            apply(root, {"id": f"REQ-{len(begun)}", "type": "req", "title": "New", "status": "open"})
            assert events.next() != mark  # the connection of an answer that goes on is kept
    finally:
        for one in held:
            one.close()


def test_the_port_of_another_program_is_not_taken(root, user):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        user.chdir(root)
        assert app.main(["ui", "--no-open", "--port", str(port)]) == 2


def test_bytes_that_are_no_request_write_nothing_to_the_terminal(root):
    with Explorer(root) as running:
        assert running.sent(b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
        running.end()
        assert running.process.stderr.read() == b""


def test_a_port_that_cannot_be_is_refused_with_what_leaving_it_out_means(root, user, capsys):
    user.chdir(root)

    assert app.main(["ui", "--no-open", "--port", "70000"]) == 2
    assert "Leave it out for any that is free." in capsys.readouterr().err


def test_the_file_that_leads_to_the_explorer_is_for_its_user_alone():
    place = write_opening_page("http://127.0.0.1:1/x/?token=a&b")

    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert place.stat().st_uid == os.geteuid()
    assert "token=a&amp;b" in place.read_text("utf-8")


def test_so_many_requests_run_at_a_time_and_no_more():
    keys, goes_on, statuses = Keys(), asyncio.Event(), []

    async def slow(scope, receive, send):
        await goes_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message):
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def ask(guard):
        path = f"{keys.base}/".encode()
        headers = [(b"host", b"127.0.0.1:1"), (b"cookie", keys.cookie().encode())]
        scope = {"type": "http", "method": "GET", "path": path.decode(), "raw_path": path, "query_string": b""}
        await guard(scope | {"headers": headers}, None, send)

    async def crowd():
        guard = Guard(slow, "127.0.0.1:1", keys)
        asked = [asyncio.create_task(ask(guard)) for _ in range(MAX_REQUESTS + 3)]
        await asyncio.gather(*asked[MAX_REQUESTS:])
        goes_on.set()
        await asyncio.gather(*asked)

    asyncio.run(crowd())

    assert statuses == [503] * 3 + [200] * MAX_REQUESTS
