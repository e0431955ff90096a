"""The time of the Prolog workspace in one process, against the bare engine over a pipe, and against other writes of KB.

Each engine that is there is measured: a start, requests and queries, KB's graph as facts, clauses that are asserted,
imported and looked up, and the replay after an engine was killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count as counting
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.inside import opened, series_of
from benchmarks.measure import Sample, call, in_turns
from benchmarks.place import Place
from benchmarks.sizes import Sizes
from benchmarks.table import Row
from tests.support.logic.engines import ENGINES, engine_variables, why_missing

if TYPE_CHECKING:
    from kbcore.logic.engine.installation import Launch

ROUND_TRIP = 5.0
"""The goal of a request against the bare engine."""
WRITE = 1.5
"""The goal of an assert against an upsert of as many entities."""
GRAPH_S = 1.0
"""The goal for the native engine to load KB's graph of 100,000 facts."""
REFRESH_S = 0.02
"""The goal to follow one change of the graph."""
_FLOOR = Path(__file__).with_name("floor_prolog")
_SETTINGS = '{"logic": {"maxClauses": 1000000}}'


def usable_engines() -> Iterator[str]:
    """Yield the engines of this machine; say on standard error which is missing."""
    for engine in ENGINES:
        missing = why_missing(engine)
        if missing:
            print(missing, file=sys.stderr)
        else:
            yield engine


def run(place: Place) -> list[Row]:
    """Measure each engine of this machine; say on standard error which is missing."""
    rows = []
    for engine in usable_engines():
        root = place.copy_of(place.store(place.sizes.graph), f"prolog-{engine}")
        (root / ".kb" / "config.json").write_text(_SETTINGS, encoding="utf-8")
        sizes = json.dumps({name: getattr(place.sizes, name) for name in Sizes.__struct_fields__})
        taken = place.answer("-m", "benchmarks.prolog", engine, json.dumps(engine_variables(engine)), str(root), sizes)
        for one in taken:
            kb, floor = series_of(one.pop("taken"))
            rows.append(Row(**{**one, "name": f"Prolog, {engine}: {one['name']}"}, kb=kb, floor=floor, peak_bytes=None))
    return rows


class Bare:
    """A bare engine and the pipes to it."""

    def __init__(self, command: Iterable[str], env: dict[str, str]) -> None:
        """Start the engine and wait for its first answer."""
        self._child = subprocess.Popen(
            [*command], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.ask(b"hello.\n")

    def ask(self, request: bytes) -> None:
        """Send a request and wait for its answer."""
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.write(request)
        self._child.stdin.flush()
        if self._child.stdout.readline() != b"ok\n":
            raise RuntimeError(request[:200])

    def kill(self) -> None:
        """End the engine."""
        self._child.kill()
        self._child.communicate()


def bare_engine(engine: str, launch: Launch) -> Bare:
    """Return a bare engine of the kind that the launch starts."""
    server = str(_FLOOR / "server.pl")
    if engine == "native":
        command = [launch.command[0], "-q", "-f", "none", "--no-packs", "-g", "kb_server:serve", server]
    else:
        at = next(at for at, word in enumerate(launch.plain) if word.endswith("launcher.js"))
        launcher, package, _, stack = launch.plain[at : at + 4]
        floor = [package, str(_FLOOR), stack, "kb_server:prepare", "serve"]
        command = [launch.plain[0], "--no-warnings", launcher, *floor]
    return Bare(command, launch.environment)


class Measured:
    """A workspace of a repository and a bare engine, and what both took so far."""

    def __init__(self, engine: str, root: str, sizes: Sizes) -> None:
        from kbcore.logic.pool import ClausePool
        from kbcore.logic.source import BranchSource
        from kbcore.logic.workspace import PrologWorkspace
        from kbcore.store.write_request import Author

        self.engine, self.sizes, self.rows = engine, sizes, list[dict[str, Any]]()
        self.prolog = PrologWorkspace(os.environ)
        self._kb = opened(root)
        self._author = Author("bench", "cli", "kb/bench")
        clauses = ClausePool().store(self._kb, "main", self._author, follows_head=True)
        self.source = BranchSource(self._kb, "main", clauses, self._read)
        self._numbers = counting()

    def _read(self, use: Callable[[Any], Any]) -> Any:
        return self._kb.store("main").read(use)

    def bare(self) -> Bare:
        """Return a bare engine, started."""
        return bare_engine(self.engine, self.prolog.engines.required())

    def query(self, goal: str) -> dict[str, Any]:
        """Return the first answer of a query."""
        self.prolog.start_query(self.source, goal, "engine")
        return self.prolog.next_answer(self.source)

    def upsert(self, amount: int = 1) -> str:
        """Write so many entities as one record; return the id of the last."""
        from kbcore.model.changeset import parse
        from kbcore.store import apply

        ids = [f"UP-{next(self._numbers)}" for _ in range(amount)]
        entities = [{"id": key, "type": "req", "title": f"about {key}", "status": "open"} for key in ids]
        apply.apply_changeset(self._kb, "main", self._author, parse({"entities": entities}), follows_head=True)
        return ids[-1]

    def took(self, name: str, against: str, count: int, unit: str, series: Iterable[Any], **aims: float) -> None:
        """Note what a question and its floor took."""
        taken = [one.walls_s for one in series]
        self.rows.append({"name": name, "against": against, "count": count, "unit": unit, "taken": taken, **aims})


def _loaded(bare: Bare, facts: list[str]) -> None:
    bare.ask("".join([f"load({len(facts)}).\n", *facts]).encode())


def _requests(measured: Measured) -> None:
    """Measure a start, a request, and a query."""
    from kbcore.logic.engine import EngineProcess

    launch, rounds = measured.prolog.engines.required(), measured.sizes.rounds

    def timed_start(start: Callable[[], Any]) -> Sample:
        begun = time.perf_counter()
        engine = start()
        sample = Sample(time.perf_counter() - begun)
        engine.kill()
        return sample

    starts = in_turns(
        lambda: timed_start(lambda: EngineProcess(launch)), lambda: timed_start(measured.bare), rounds=rounds
    )
    measured.took("start", "bare engine", 1, "engine", starts)
    engine, bare = EngineProcess(launch), measured.bare()
    asked = in_turns(
        lambda: call(lambda: engine.ask("hello.\n", time_limit_s=60)),
        lambda: call(lambda: bare.ask(b"hello.\n")),
        rounds=measured.sizes.calls,
        warm_ups=measured.sizes.calls // 10,
    )
    measured.took("request", "bare engine", 1, "request", asked, at_most=ROUND_TRIP)
    queries = in_turns(
        lambda: call(lambda: measured.query("X = 1")),
        lambda: call(lambda: bare.ask(b"call(X = 1).\n")),
        rounds=measured.sizes.calls,
        warm_ups=measured.sizes.calls // 10,
    )
    measured.took("query of a workspace, first answer", "bare engine", 1, "query", queries)
    engine.kill()
    bare.kill()


def _graph(measured: Measured) -> None:
    """Measure the load of KB's graph, and the first answer after one change of it."""
    from kbcore.logic.graph_facts import all_facts

    facts = [f"{one}\n" for one in measured.source.read(all_facts)]

    def load() -> Sample:
        measured.prolog.close()
        measured.query("true")
        return call(lambda: measured.query("entity(_, _, _, _)"))

    def load_bare() -> Sample:
        bare = measured.bare()
        sample = call(lambda: _loaded(bare, facts))
        bare.kill()
        return sample

    aims = {"at_most_s": GRAPH_S} if measured.engine == "native" else {}
    taken = in_turns(load, load_bare, rounds=measured.sizes.long_rounds)
    measured.took("graph loaded", "bare engine, the same facts", len(facts), "facts", taken, **aims)
    bare = measured.bare()

    def refresh() -> Sample:
        key = measured.upsert()
        return call(lambda: measured.query(f"entity('{key}', _, _, _)"))

    refreshed = in_turns(
        refresh,
        lambda: call(lambda: _loaded(bare, ["n('UP-1',req,\"about\",open).\n"])),
        rounds=measured.sizes.rounds,
    )
    measured.took(
        "graph after one change", "bare engine, one fact", len(facts), "facts", refreshed, at_most_s=REFRESH_S
    )
    bare.kill()
    measured.prolog.close()


def _asserts(measured: Measured) -> None:
    """Measure clauses that are added, each time as one record."""
    for amount in measured.sizes.asserts:
        _assert(measured, amount)


def _assert(measured: Measured, amount: int) -> None:
    from kbcore.logic import contents

    texts = [f'p{amount}({number}, foo, "text {number}").' for number in range(amount)]
    taken = in_turns(
        lambda: call(lambda: measured.prolog.assert_clauses(measured.source, texts)),
        lambda: call(lambda: measured.upsert(amount)),
        rounds=measured.sizes.long_rounds if amount > 1 else measured.sizes.rounds,
    )
    measured.took("assert as one record", "upsert of entities, the library", amount, "clauses", taken, at_most=WRITE)
    contents.reset(measured.source.clauses)


def _imports(measured: Measured) -> None:
    """Measure an import, look-ups in it, and the replay after an engine was killed."""
    for amount in measured.sizes.facts:
        _import(measured, amount)


def _import(measured: Measured, amount: int) -> None:
    from kbcore.logic import contents

    facts = [f'big({number}, foo, "text {number}").\n' for number in range(amount)]
    text, rounds = "".join(facts), max(2, measured.sizes.long_rounds_of(amount))
    files, keys = counting(), counting()

    def read() -> Sample:
        contents.reset(measured.source.clauses)
        return call(lambda: measured.prolog.import_file(measured.source, f"{next(files)}.pl", text))

    def read_bare() -> Sample:
        bare = measured.bare()
        sample = call(lambda: _loaded(bare, facts))
        bare.kill()
        return sample

    def replay() -> Sample:
        begun = time.perf_counter()
        measured.prolog.close()
        measured.query("big(1, _, _)")
        return Sample(time.perf_counter() - begun)

    def start_bare() -> Sample:
        begun = time.perf_counter()
        bare = measured.bare()
        _loaded(bare, facts)
        sample = Sample(time.perf_counter() - begun)
        bare.kill()
        return sample

    taken = in_turns(read, read_bare, rounds=rounds, warm_ups=0)
    measured.took("import as one record", "bare engine, the same facts", amount, "facts", taken)
    replayed = in_turns(replay, start_bare, rounds=rounds)
    measured.took("kill and replay", "bare engine started, the same facts", amount, "facts", replayed)
    bare = measured.bare()
    _loaded(bare, facts)
    found = in_turns(
        lambda: call(lambda: measured.query(f"big({next(keys) % amount}, X, Y)")),
        lambda: call(lambda: bare.ask(f"call(big({next(keys) % amount}, X, Y)).\n".encode())),
        rounds=measured.sizes.calls,
        warm_ups=2,
    )
    measured.took("look-up, first answer", "bare engine", amount, "facts", found)
    bare.kill()
    contents.reset(measured.source.clauses)


def main(engine: str, variables: str, root: str, sizes: str) -> None:
    """Print the rows of one engine, with the seconds of each run."""
    os.environ.update(json.loads(variables))
    measured = Measured(engine, root, Sizes(**json.loads(sizes)))
    for question in (_requests, _graph, _asserts, _imports):
        question(measured)
    measured.prolog.close()
    print(json.dumps(measured.rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
