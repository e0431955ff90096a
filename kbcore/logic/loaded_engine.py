"""An engine of Prolog that follows a store: before each request it holds the clauses and the graph of now.

Invariant: the engine is a cache. What it holds is loaded from records, and may be dropped at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from kbcore.errors.remedies import kb
from kbcore.limits import MAX_CLAUSE_CHARS
from kbcore.logic.clauses import Clause, Clauses, NewClause
from kbcore.logic.engine import EngineEnded, EngineProcess, Launch
from kbcore.logic.engine.libraries import Libraries, names_term
from kbcore.logic.engine.terms import atom, listed
from kbcore.logic.findings import reason
from kbcore.logic.graph_facts import GraphChange, GraphState, all_facts, changed_facts, state_of
from kbcore.logic.nesting import TOO_DEEP, deep_clauses
from kbcore.logic.source import BranchSource
from kbcore.text.wording import pluralize
from kbcore.view.view import View

LOAD_LIMIT_S: Final = 30.0
"""The longest time that an engine may take over a part of what it reads or loads."""
_NOTICED: Final = 10
"""The most clauses that were not loaded that have a notice each."""
_PART: Final = 2_000
"""The clauses that are sent at once."""


class LoadedEngine:
    """An engine, started when it is asked for, and what is loaded into it. For one thread at a time."""

    def __init__(
        self,
        launch: Callable[[], Launch],
        libraries: Libraries,
        lose_query: Callable[[str], None],
        on_drop: Callable[[str], None],
    ) -> None:
        """Prepare; nothing is started.

        Args:
            launch: returns how an engine is started.
            libraries: are loaded by each engine.
            lose_query: closes the open query, for this reason.
            on_drop: takes the reason that the engine, and with it the open query, is gone.
        """
        self._launch = launch
        self._libraries = libraries
        self._lose_query = lose_query
        self._on_drop = on_drop
        self._engine: EngineProcess | None = None
        self._loaded: dict[str, Clause] = {}
        self._shown: Clauses | None = None
        self._key = ""
        self._graph: GraphState | None = None
        self._edge_types: frozenset[str] = frozenset()
        self.held_back: dict[str, str] = {}
        """The clauses of the store that the engine did not take, by id, with the reason."""
        self.notices: list[str] = []
        """Sentences on the engine that go with the next answer."""

    @property
    def process(self) -> EngineProcess | None:
        """Return the engine, None while none runs."""
        return self._engine

    def drop(self, why: str) -> None:
        """End the engine; ``why`` an open query is lost with it."""
        if self._engine is not None:
            self._engine.kill()
        self._on_drop(why)
        self._engine, self._loaded, self._shown, self._graph = None, {}, None, None
        self.held_back = {}
        self._edge_types = frozenset()

    def follow(self, source: BranchSource) -> EngineProcess:
        """Return an engine that holds the clauses of a source as they are now. Raises: ``EngineEnded``."""
        if source.key != self._key:
            if self._key:
                self.drop("the branch is another one now")
            self._key = source.key
        engine = self._started()
        clauses = source.clauses.read(source.at)
        if clauses is not self._shown:
            try:
                engine = self._load(engine, clauses)
            except EngineEnded as ended:
                ended.is_loading = True
                raise
        self._declare_edges(engine, source)
        self._update_graph(engine, source)
        return engine

    def _started(self) -> EngineProcess:
        if self._engine is not None and self._engine.is_killed:
            self.drop("the call that used it was cancelled")
        if self._engine is None:
            engine = EngineProcess(self._launch())
            self._engine = engine
            names = self._libraries.names
            if names:
                loaded = engine.command(f"libraries({names_term(names)}).\n", time_limit_s=LOAD_LIMIT_S)
                missing = [name for name, one in zip(names, loaded["libraries"], strict=True) if one != "loaded"]
                self.notices += [f"This engine has no library({name})." for name in missing]
        return self._engine

    def _load(self, engine: EngineProcess, clauses: Clauses) -> EngineProcess:
        """Return an engine that holds these clauses: the same, or a new one where the order of loading matters."""
        gone, new = _difference(self._shown.clauses if self._shown else (), clauses.clauses)
        last = next(reversed(self._loaded.values())).order if self._loaded else 0
        is_in_order = all(one.order > last for one in new)
        if gone and not any(one.kind != "import" for one in clauses.clauses):
            self._lose_query("the workspace was reset")
        if (
            any(one.kind == "directive" for one in gone)
            or not is_in_order
            or (self._loaded and any(map(is_library, new)))
        ):
            # A library changes what clauses mean that are loaded, and one that an undo brings back is before others.
            self.drop("the clauses were loaded again")
            engine = self._started()
            gone, new = _difference((), clauses.clauses)
        if gone:
            request = f"unload({listed(atom(one.id) for one in gone)}).\n"
            engine.command(request, time_limit_s=LOAD_LIMIT_S)
        held_back = {one.id: TOO_DEEP for one in new if len(one.text) > MAX_CLAUSE_CHARS and deep_clauses(one.text)}
        loadable = [one for one in new if one.id not in held_back]
        for part in _parts(sorted(loadable, key=_libraries_first), _PART):
            names = {name: atom(name) for name in {one.name for one in part}}
            items = listed(f"c({atom(one.id)},{one.kind},{names[one.name]},{len(one.text)})" for one in part)
            text = "".join(f"{one.text}\n" for one in part)
            reply = engine.command(f"load({items},{len(text)}).\n:{text}", time_limit_s=LOAD_LIMIT_S)
            recorded = {one.id: one.name for one in part} if reply["failed"] else {}
            held_back |= {one["id"]: reason(one | {"record": recorded[one["id"]]}) for one in reply["failed"]}
        self.notices += _notices_of(held_back)
        for one in gone:
            del self._loaded[one.id]
            self.held_back.pop(one.id, None)
        self.held_back |= held_back
        self._loaded.update((one.id, one) for one in new)
        self._shown = clauses
        return engine

    def _declare_edges(self, engine: EngineProcess, source: BranchSource) -> None:
        """Define a predicate for each type of edges, after the clauses: a name that they define stays theirs."""
        types = frozenset(source.edge_types)
        if not types <= self._edge_types:
            engine.command(f"edges({listed(map(atom, sorted(types)))}).\n", time_limit_s=LOAD_LIMIT_S)
            self._edge_types |= types

    def _update_graph(self, engine: EngineProcess, source: BranchSource) -> None:
        """Send what changed of the graph, where the engine has loaded it."""
        before = self._graph
        if before is None or source.at is not None:
            return

        def changed(view: View) -> tuple[GraphState, GraphChange | None]:
            now = state_of(view)
            return now, None if now == before else changed_facts(view, before)

        now, change = source.read(changed)
        if now == before:
            return
        if change is None:
            engine.command("forget_graph.\n", time_limit_s=LOAD_LIMIT_S)
            self._graph = None
            return
        facts = [f"{one}\n" for one in change.added]
        engine.command([f"graph({listed(change.removed)},{len(facts)}).\n", *facts], time_limit_s=LOAD_LIMIT_S)
        self._graph = now

    def facts_of(self, source: BranchSource) -> Callable[[], Iterable[str]]:
        """Return what makes the facts of the graph, for an engine that asks for them."""

        def facts() -> Iterable[str]:
            self._graph, found = source.read(lambda view: (state_of(view), all_facts(view, source.at)))
            return found

        return facts


def _notices_of(held_back: Mapping[str, str]) -> Iterator[str]:
    """Yield a notice for each of the first clauses that were not loaded, and how one is removed."""
    for key, why in islice(held_back.items(), _NOTICED):
        yield f"The clause {key} is not loaded: {why}"
    if held_back:
        more = len(held_back) - _NOTICED
        said = f"{pluralize(more, 'further clause')} {'is' if more == 1 else 'are'} not loaded. " if more > 0 else ""
        yield f"{said}{kb('delete', '…', lead='Run')} with the id to remove one of them."


def is_library(clause: Clause | NewClause) -> bool:
    """Tell whether a clause is a directive that loads a library."""
    return clause.kind == "directive" and clause.name == "use_module"


def _difference(before: Sequence[Clause], after: Sequence[Clause]) -> tuple[list[Clause], list[Clause]]:
    """Return the clauses that are not there any more, and the new ones, each in their order; imports are left out."""
    same = len(before)
    if before != after[:same]:
        pairs = enumerate(zip(before, after, strict=False))
        same = next((at for at, (old, new) in pairs if old is not new), min(len(before), len(after)))
    known, wanted = {one.id for one in before[same:]}, {one.id for one in after[same:]}
    gone = [one for one in before[same:] if one.id not in wanted and one.kind != "import"]
    return gone, [one for one in after[same:] if one.id not in known and one.kind != "import"]


def _libraries_first(clause: Clause) -> tuple[bool, int]:
    return not is_library(clause), clause.order


def _parts(clauses: Sequence[Clause], size: int) -> Iterator[Sequence[Clause]]:
    for start in range(0, len(clauses), size):
        yield clauses[start : start + size]
