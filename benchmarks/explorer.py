"""The time of a page of `kb ui` over HTTP, against the same read by the library, and against a file of the same server.

The first page is asked for as soon as the address is printed, of a process that has just started; the others of one
that has shown them before.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks import generate
from benchmarks.inside import series_of
from benchmarks.measure import call, in_turns
from benchmarks.place import Place
from benchmarks.table import Row

FIRST, FURTHER = "kb ui: first page", "kb ui: "
FIRST_S, FURTHER_S = 0.3, 0.1
"""The goals at 10,000 entities."""
_ROUTES = {"overview": "/", "entities": "/entities", "records": "/records", "entity": "/entity/{key:path}"}
_ANSWERED = 200
_BETWEEN = " / "
_BY_LIBRARY, _A_FILE = "the same read by the library", "a file of the same server"


def run(place: Place) -> list[Row]:
    """Measure the first page and four others at every size."""
    rows = []
    for count in place.sizes.records:
        words = [str(place.store(count)), generate.entity_id(count // 2), str(place.sizes.long_rounds_of(count))]
        taken = place.answer("-m", "benchmarks.explorer", *place.kb_words(), *words)
        for (name, against), walls_s in ((key.split(_BETWEEN), walls_s) for key, walls_s in taken.items()):
            page, floor = series_of(walls_s)
            rows.append(
                Row(
                    name=name,
                    against=against,
                    count=count,
                    unit="records",
                    kb=page,
                    floor=floor,
                    peak_bytes=None,
                    at_most_s=FIRST_S if name == FIRST else FURTHER_S,
                )
            )
    return rows


class _Running:
    """An explorer, and a connection to it as of the browser that has opened it."""

    def __init__(self, program: list[str], root: str) -> None:
        words = [*program, "-C", root, "--json", "ui", "--no-open"]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._process.stdout
        self._parts = urlsplit(json.loads(self._process.stdout.readline())["url"])
        self._headers: dict[str, str] = {}

    def open(self) -> None:
        """Ask for the address that works once."""
        answer, _ = self._ask(f"{self._parts.path}?{self._parts.query}")
        self._headers = {"Cookie": (answer.getheader("set-cookie") or "").split(";")[0]}

    def page(self, path: str) -> None:
        """Ask for a page, and insist that it is answered."""
        answer, body = self._ask(f"{self._parts.path.removesuffix('/')}{path}")
        assert answer.status == _ANSWERED, body

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout
        self._process.stdout.close()

    def _ask(self, target: str) -> tuple[http.client.HTTPResponse, bytes]:
        connection = http.client.HTTPConnection(str(self._parts.hostname), self._parts.port or 0)
        try:
            connection.request("GET", target, headers=self._headers)
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()


def main(program: list[str], root: str, key: str, rounds: int) -> None:
    """Print the seconds of each page, over HTTP and by the library."""
    from kbweb.server.pages.page import Ask
    from kbweb.server.pages.registry import PAGES

    def read(reader: Any, name: str) -> None:
        from kbweb.links import ServerLinks
        from kbweb.server.asked import Asked

        ask = Ask(Asked(""), ServerLinks({}), reader, key)
        reader.read("", lambda state: PAGES[_ROUTES[name]](ask, state))

    def first() -> Any:
        running = _Running(program, root)
        running.open()
        taken = call(lambda: running.page("/"))
        running.end()
        return taken

    def first_by_library() -> Any:
        reader = _reader(root)
        taken = call(lambda: read(reader, "overview"))
        reader.close()
        return taken

    figures = {
        f"{FIRST}{_BETWEEN}{_BY_LIBRARY}": [one.walls_s for one in in_turns(first, first_by_library, rounds=rounds)]
    }
    running, reader = _Running(program, root), _reader(root)
    running.open()
    for name, path in _ROUTES.items():
        asked: Callable[[], None] = partial(running.page, path.replace("{key:path}", key))
        by_library: Callable[[], None] = partial(read, reader, name)
        a_file: Callable[[], None] = partial(running.page, "/static/style.css")
        for against, floor in ((_BY_LIBRARY, by_library), (_A_FILE, a_file)):
            pairs = in_turns(partial(call, asked), partial(call, floor), rounds=rounds, warm_ups=3)
            figures[f"{FURTHER}{name}{_BETWEEN}{against}"] = [one.walls_s for one in pairs]
    reader.close()
    running.end()
    print(json.dumps(figures))


def _reader(root: str) -> Any:
    from kbcore.clock import SystemClock
    from kbcore.storage.fs import RealFs
    from kbcore.store.pool import Machine
    from kbcore.store.write_request import Author
    from kbweb.server.reading import Place as Where
    from kbweb.server.reading import Reader

    return Reader(Where(Path(root), None, Machine(RealFs(), SystemClock(), os.environ), Author("bench", "cli", "kb")))


if __name__ == "__main__":
    main(sys.argv[1:-3], sys.argv[-3], sys.argv[-2], int(sys.argv[-1]))
