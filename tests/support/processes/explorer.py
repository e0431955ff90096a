"""``kb ui`` as a process, asked over sockets as a browser would ask it, or as an attacker would."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from tests.support.processes.cli import environment, program
from tests.support.processes.forked import Forked

WAIT_S = 60.0


class Answer(NamedTuple):
    """An answer: its status, its headers with names in lower case, and its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def main(self) -> str:
        """The text of the page below its head, without markup."""
        found = re.search(r"<main.*</main>", self.text, re.DOTALL)
        assert found, self.text
        return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", found[0]))


class Explorer:
    """A running explorer of a repository; its browser has opened it, unless ``opens`` is false.

    ``browser`` is a command that ``kb ui`` itself starts as the browser of the user; without it none is started.
    ``through`` is a program that starts it, with its arguments. With neither it has imported what it needs.
    """

    def __init__(
        self,
        root: Path,
        *words: str,
        opens: bool = True,
        actor: str = "tester",
        browser: str = "",
        through: Sequence[str] = (),
    ) -> None:
        self.process: Forked | subprocess.Popen[bytes]
        if browser or through:
            self.process = subprocess.Popen(
                [*through, *program(), "--json", "ui", *(() if browser else ("--no-open",)), *words],
                cwd=root,
                env=environment({"KB_ACTOR": actor, **({"BROWSER": browser} if browser else {})}),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        else:
            env = environment({"KB_ACTOR": actor})
            self.process = Forked("kb", ["--json", "ui", "--no-open", *words], env, root)
            self.process.stdin.close()
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, self.process.stderr and self.process.stderr.read()
        self.url = json.loads(line)["url"]
        parts = urlsplit(self.url)
        assert parts.hostname == "127.0.0.1"
        assert parts.port
        self.port: int = parts.port
        self.base, self.query = parts.path.removesuffix("/"), parts.query
        self.cookie = ""
        if opens:
            self.cookie = self.opened().headers["set-cookie"].split(";")[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT_S)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream
            stream.close()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def opened(self, **headers: str) -> Answer:
        """Open the address that was printed."""
        return self.ask("GET", f"{self.base}/?{self.query}", headers)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Ask for a page as the browser that has opened the explorer."""
        return self.ask("GET", f"{self.base}{path}", {"Cookie": self.cookie, **(headers or {})})

    def ask(self, method: str, target: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            connection.request(method, target, body or None, dict(headers or {}))
            found = connection.getresponse()
            return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
        finally:
            connection.close()

    def sent(self, data: bytes) -> bytes:
        """Send bytes and return all that comes until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S) as connection:
            connection.sendall(data)
            found = b""
            while part := connection.recv(65536):
                found += part
            return found

    def events(self) -> Events:
        return Events(self)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and return the status of the process once it has ended."""
        self.process.send_signal(number)
        return self.process.wait(WAIT_S)


class Events:
    """The events of an explorer, as they come."""

    def __init__(self, explorer: Explorer) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", explorer.port, timeout=WAIT_S)
        self._connection.request("GET", f"{explorer.base}/events", headers={"Cookie": explorer.cookie})
        self._answer = self._connection.getresponse()
        self.status = self._answer.status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._answer.close()
        self._connection.close()

    def next(self) -> str:
        """Return the data of the next event."""
        while line := self._answer.readline():
            if line.startswith(b"data: "):
                return line.removeprefix(b"data: ").decode().strip()
        raise AssertionError("the events have ended")
