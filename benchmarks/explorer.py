"""The time of a page of `kb ui` over HTTP, against the same read by the library, and against a file of the same server.

The first page is asked for as soon as the address is printed, of a process that has just started; so are the page of
coverage and a search of a store that has no text index yet. The others are of a process that has shown them before. The
processor time is that of the whole server meanwhile: what it does before anybody asks counts for no page.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks import generate
from benchmarks.inside import samples_of
from benchmarks.measure import Sample, Series, call, cpu_s_of, in_turns
from benchmarks.place import Place
from benchmarks.table import Row

FIRST, FURTHER = "kb ui: first page", "kb ui: "
FIRST_COVERAGE, FIRST_SEARCH = "kb ui: coverage as first page", "kb ui: search as first page"
FIRST_S, FURTHER_S = 0.3, 0.1
"""The goals at 10,000 entities."""
_GOALS = {FIRST: FIRST_S, FIRST_COVERAGE: FIRST_S, FIRST_SEARCH: None}
"""The goals of pages that are no further ones: a search that is the first one makes its index."""
_ROUTES = {"overview": "/", "entities": "/entities", "records": "/records", "entity": "/entity/{key:path}"}
_SEARCH = "/entities?text=draft+label"
_ANSWERED = 200
_BETWEEN = " / "
_BY_LIBRARY, _A_FILE = "the same read by the library", "a file of the same server"
_CPU = "of the processor"
_OVERVIEW = "the overview read by the library"


def run(place: Place) -> list[Row]:
    """Measure three pages as the first one, by the clock and of the processor, and four others, at every size."""
    rows = []
    for count in place.sizes.shown:
        words = [str(place.store(count)), generate.entity_id(count // 2), str(place.sizes.long_rounds_of(count))]
        taken = place.answer("-m", "benchmarks.explorer", *place.kb_words(), *words)
        for key, runs in taken.items():
            name, against = key.split(_BETWEEN)
            kinds = samples_of(runs)
            rows.append(_row(name, against, count, kinds, _GOALS.get(name, FURTHER_S)))
            if name in _GOALS and kinds[0].cpu_s is not None:
                rows.append(_row(f"{name}, {_CPU}", against, count, [*map(_of_processor, kinds)]))
    return rows


def _row(name: str, against: str, count: int, kinds: Sequence[Series], at_most_s: float | None = None) -> Row:
    page, floor = kinds
    return Row(
        name=name,
        against=against,
        count=count,
        unit="records",
        kb=page,
        floor=floor,
        peak_bytes=None,
        at_most_s=at_most_s,
    )


def _of_processor(series: Series) -> Series:
    """Return the same runs by the time of the processor, as far as it is known, in place of the clock's."""
    return Series(tuple(Sample(one.cpu_s, one.cpu_s) for one in series.samples if one.cpu_s is not None))


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

    def timed(self, path: str) -> Sample:
        """Ask for a page, and return what that took by the clock and of the processor of the server."""
        before_s = cpu_s_of(self._process.pid)
        taken = call(lambda: self.page(path))
        after_s = cpu_s_of(self._process.pid)
        return Sample(taken.wall_s, after_s - before_s if after_s is not None and before_s is not None else None)

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
    from benchmarks.inside import opened
    from benchmarks.stores import BRANCH
    from kbcore.view.cache_files import TEXT
    from kbweb.server.pages.page import PageRequest
    from kbweb.server.pages.registry import PAGES

    def read(reader: Any, name: str) -> None:
        from kbweb.links import ServerLinks
        from kbweb.server.request_values import RequestValues

        request = PageRequest(RequestValues(""), ServerLinks({}), reader, key)
        reader.read("", lambda state: PAGES[_ROUTES[name]](request, state))

    def first(path: str, index: Path | None = None) -> Sample:
        if index:
            index.unlink(missing_ok=True)
        running = _Running(program, root)
        running.open()
        taken = running.timed(path)
        running.end()
        return taken

    def first_by_library() -> Sample:
        reader = _reader(root)
        taken = _timed(lambda: read(reader, "overview"))
        reader.close()
        return taken

    def alternately(*works: Callable[[], Sample], warm_ups: int = 1) -> list[list[tuple[float, float | None]]]:
        return [_runs(one) for one in in_turns(*works, rounds=rounds, warm_ups=warm_ups)]

    index = opened(root).folders.cache_of(BRANCH) / TEXT
    figures = {
        f"{name}{_BETWEEN}{_BY_LIBRARY if name == FIRST else _OVERVIEW}": alternately(page, first_by_library)
        for name, page in (
            (FIRST, partial(first, "/")),
            (FIRST_COVERAGE, partial(first, "/coverage")),
            (FIRST_SEARCH, partial(first, _SEARCH, index)),
        )
    }
    running, reader = _Running(program, root), _reader(root)
    running.open()
    for name, path in _ROUTES.items():
        asked = partial(running.timed, path.replace("{key:path}", key))
        by_library = partial(_timed, partial(read, reader, name))
        a_file = partial(running.timed, "/static/style.css")
        for against, floor in ((_BY_LIBRARY, by_library), (_A_FILE, a_file)):
            figures[f"{FURTHER}{name}{_BETWEEN}{against}"] = alternately(asked, floor, warm_ups=3)
    reader.close()
    running.end()
    print(json.dumps(figures))


def _timed(work: Callable[[], None]) -> Sample:
    """Run a function in this process and return what it took by the clock, and of the processor in all threads."""
    begun_s = time.process_time()
    return Sample(call(work).wall_s, time.process_time() - begun_s)


def _runs(series: Series) -> list[tuple[float, float | None]]:
    return [(one.wall_s, one.cpu_s) for one in series.samples]


def _reader(root: str) -> Any:
    from kbcore.clock import SystemClock
    from kbcore.storage.fs import RealFs
    from kbcore.store.pool import Machine
    from kbcore.store.write_request import Author
    from kbweb.server.reading import Reader
    from kbweb.server.reading import ReadTarget as Where

    return Reader(Where(Path(root), None, Machine(RealFs(), SystemClock(), os.environ), Author("bench", "cli", "kb")))


if __name__ == "__main__":
    main(sys.argv[1:-3], sys.argv[-3], sys.argv[-2], int(sys.argv[-1]))
