"""The Prolog workspace of one process: an engine that follows the clauses and the graph, and the query that is open.

Invariant: the engine is a cache. Before each request it holds the clauses that the store has now; what is added or
removed is a record first and loaded from it. A lost engine loses nothing but the open query.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, Final, Literal

import msgspec

from kbcore.errors import KBError, PrologFailed
from kbcore.errors.remedies import by_front_end, kb, shell
from kbcore.limits import MAX_CLAUSE_CHARS, MAX_ENGINE_BYTES, MAX_PROBLEMS, MIB
from kbcore.logic.clauses import NO_RETRY, ChangedClauses, Clause, ClauseChange, Clauses, NewClause, Plan, RetryKey
from kbcore.logic.engine import EngineEnded, Engines, Launch, available
from kbcore.logic.engine.libraries import NO_LIBRARIES, Libraries
from kbcore.logic.engine.terms import listed, string
from kbcore.logic.findings import NEST_LESS, near_predicates, reason, remedy
from kbcore.logic.loaded_engine import LOAD_LIMIT_S, LoadedEngine, is_library
from kbcore.logic.nesting import TOO_DEEP, deep_clauses, without_clauses
from kbcore.logic.parsed_clauses import (
    ClauseOutcome,
    ClauseOutcomes,
    ParsedClause,
    added_before,
    digest_of_text,
    failed,
    first_variants,
    new_clause,
    no_clause,
    parsed_clause,
    retracted,
    unusable,
)
from kbcore.logic.source import BranchSource
from kbcore.text.escaping import escape_controls
from kbcore.text.prolog_tokens import without_script_line

Mode = Literal["engine", "standard"]
Checks = Literal["checked", "unchecked"]
"""Clauses are only read, or checked as well for what may not be added."""

_CLOSE_LIMIT_S: Final = 5.0
_UNCLEAN: Final = (
    f"The query that was open did not finish its cleanup within {_CLOSE_LIMIT_S:g} seconds, and its engine was ended."
    " The next call starts another one. No clause was lost."
)
_NONE_OPEN: Final = "No query is open."
_REFUSED: Final = "No query is open: the last one was refused when it was started."
_FAILED: Final = "No query is open: the last one ended with an error."
_HINTS: Final = {
    "timeout": "Narrow the query, or raise that limit.",
    "slow": "Send fewer clauses at once.",
    "memory": "Narrow the query: fewer solutions in one list, less recursion.",
    "stack": NEST_LESS,
    "killed": "Send it again.",
    "crash": "The same request may end it again: change it, and report it.",
}
_LOADING_HINT: Final = (
    by_front_end(
        f"{shell('prolog', '-g', ':unimport FILE')} removes the clauses of a file,"
        f" and {shell('prolog', '-g', ':reset')} all",
        "The tool `files` with the operation unimport removes the clauses of a file, and `workspace` with reset all",
    )
    + f". {kb('query', 'clause')} lists the ids of clauses: {kb('delete', '…')} with one removes that clause."
    f" {kb('log')} shows what was added last, and {kb('revert', '…')} undoes it. None of these needs an engine."
)
"""The remedy where an engine cannot load the clauses: each request would end so."""


class FileOutcome(msgspec.Struct, frozen=True):
    """The result of an import. ``errors`` are the lines that were not taken, with the reason."""

    status: Literal["success", "partial", "failed"]
    added: int
    errors: tuple[tuple[int, str], ...]
    changed: ChangedClauses


class PrologWorkspace:
    """An engine and an open query, for one client. Its methods may be called by any thread, one at a time."""

    def __init__(self, env: Mapping[str, str], libraries: Libraries = NO_LIBRARIES) -> None:
        self._env = env
        self._lock = threading.RLock()
        self._engines: Engines | None = None
        self._engine = LoadedEngine(self._launch, libraries, self.lose_query, self._lost_with_engine)
        self._has_query = False
        self._is_done = False
        """The query that is open has no further answer."""
        self._lost = ""
        """The reason that the open query was lost; "" when none was."""
        self._without_query = _NONE_OPEN
        """The sentence that says why no query is open."""
        self.is_last = False
        """The engine knows that the last answer has none after it."""
        self.notices = self._engine.notices

    @property
    def engines(self) -> Engines:
        """Return the engines of this machine, looked for once."""
        with self._lock:
            if self._engines is None:
                self._engines = available(self._env)
            return self._engines

    @property
    def held_back(self) -> dict[str, Any]:
        """Return the clauses that the engine did not take, which no goal sees, as a member of an answer; {} for none.

        The first ones are named, each with its id and the reason, and all are counted.
        """
        with self._lock:
            if not self._engine.held_back:
                return {}
            named = [{"id": key, "message": why} for key, why in islice(self._engine.held_back.items(), MAX_PROBLEMS)]
            return {"held_back": {"count": len(self._engine.held_back), "clauses": named}}

    def close(self) -> None:
        """End the engine."""
        with self._lock:
            self._engine.drop("")

    # Clauses

    def assert_clauses(self, source: BranchSource, texts: Sequence[Any], changeset_id: str = "") -> ClauseOutcomes:
        """Add the clauses of texts, as one record; a text may hold several. It is done once for an id.

        Raises: ``PrologUnavailable``; ``PrologFailed``; as ``ClauseStore.change``.
        """
        with self._lock:
            items = self._items(source, texts, "checked")
            added = [new_clause(one) for one in items if not one.error]
            retry = RetryKey(changeset_id, {"operation": "assert", "clauses": [*texts]})
            changed = self._change(source, lambda _: ClauseChange(added=added), "Add clauses", added, retry)
            if changed.is_duplicate:
                return added_before(items, source, changed)
            ids = iter(changed.ids)
            outcomes = tuple(
                failed(one) if one.error else ClauseOutcome("success", one.text, id=next(ids), line=one.line)
                for one in items
            )
            return ClauseOutcomes(outcomes, changed)

    def retract_clauses(self, source: BranchSource, texts: Sequence[Any], changeset_id: str = "") -> ClauseOutcomes:
        """Remove for each clause of the texts the first that is a variant of it, all as one record.

        Raises: as ``assert_clauses``.
        """
        with self._lock:
            items = self._items(source, texts, "unchecked")
            keys = self._other_keys(source, items)
            matched: list[Clause | None] = []

            def plan(clauses: Clauses) -> ClauseChange:
                nonlocal matched
                matched = first_variants(items, clauses.clauses, keys)
                return ClauseChange(removed=[one.id for one in matched if one])

            retry = RetryKey(changeset_id, {"operation": "retract", "clauses": [*texts]})
            changed = source.clauses.change(plan, message="Remove clauses", retry=retry)
            if changed.is_duplicate:
                removed = frozenset(changed.removed)
                gone = [one for one in source.clauses.read(changed.seq - 1).clauses if one.id in removed]
                matched = first_variants(items, gone, self._keys_of(source, gone))
            outcomes = tuple(retracted(item, found) for item, found in zip(items, matched, strict=True))
            return ClauseOutcomes(outcomes, changed)

    def _other_keys(self, source: BranchSource, items: Sequence[ParsedClause]) -> dict[str, str]:
        """Return by id the key of the text of each clause that may be meant and whose record has another key.

        A record that was written without an engine may have any key. Where too few records have the key that is meant,
        the engine is asked for the clauses that it has loaded and that may be meant.
        """
        wanted = {item.key: item.text for item in items if item.key}
        clauses = source.clauses.read(source.at).clauses
        keys = self._keys_of(source, (one for one in clauses if one.key in wanted and one.text != wanted[one.key]))
        left = Counter(item.key for item in items if item.key)
        left.subtract(one.key for one in clauses if one.key in wanted and one.id not in keys)
        lacking = listed(string(wanted[key]) for key, number in left.items() if number > 0)
        alike = frozenset(self._request(source, f"alike({lacking}).\n", limit_s=LOAD_LIMIT_S)["ids"])
        return keys | self._keys_of(source, (one for one in clauses if one.id in alike))

    def _keys_of(self, source: BranchSource, clauses: Iterable[Clause]) -> dict[str, str]:
        """Return by id the key of the text of each clause whose record has another one, "" for one without."""
        given = [*clauses]
        parsed = self._parsed(source, [one.text for one in given], "unchecked") if given else []
        keys = [read[0].key if len(read) == 1 else "" for read in parsed]
        return {one.id: key for one, key in zip(given, keys, strict=True) if key != one.key}

    def import_file(self, source: BranchSource, file: str, text: str) -> FileOutcome:
        """Add the clauses of a file, as one record, which also says that the file was imported.

        Raises: as ``assert_clauses``; ``PrologFailed`` of the kind ``already_imported``.
        """
        with self._lock:
            taken, errors = self.clauses_of_file(source, file, text)
            mark = NewClause(text="", key=digest_of_text(text), kind="import", name="", file=file)

            def plan(clauses: Clauses) -> ClauseChange:
                if any(one.file == file for one in clauses.clauses):
                    message = f"{file} is imported already."
                    hint = "Unimport it first to read it again."
                    raise PrologFailed(message, hint=hint, data={"kind": "already_imported"})
                return ClauseChange(added=[mark, *taken] if taken else ())

            changed = self._change(source, plan, f"Import {file}", taken)
            status: Literal["success", "partial", "failed"] = (
                "success" if not errors and taken else "partial" if taken else "failed"
            )
            return FileOutcome(status, len(taken), errors, changed)

    def _change(
        self, source: BranchSource, plan: Plan, message: str, added: Sequence[NewClause], retry: RetryKey = NO_RETRY
    ) -> ChangedClauses:
        """Carry out a plan that adds clauses, for which the engine has loaded the libraries that they name."""
        try:
            return source.clauses.change(plan, message=message, retry=retry)
        except KBError:
            if any(is_library(one) for one in added):
                self._engine.drop("the engine was started again")
            raise

    def clauses_of_file(
        self, source: BranchSource, file: str, text: str
    ) -> tuple[list[NewClause], tuple[tuple[int, str], ...]]:
        """Return the clauses of a file, and the lines that cannot be taken, with the reason. Nothing is added.

        Raises: ``PrologUnavailable``; ``PrologFailed``.
        """
        items = self.parse(source, without_script_line(text), "checked")
        errors = tuple((one.line, one.error) for one in items if one.error)
        return [new_clause(one, file=file) for one in items if not one.error], errors

    def parse(self, source: BranchSource, text: str, checks: Checks) -> list[ParsedClause]:
        """Return the clauses or goals of a text, in their order. Raises: as ``clauses_of_file``."""
        with self._lock:
            [items] = self._parsed(source, [text], checks)
            return items

    def known_names(self, source: BranchSource) -> list[str]:
        """Return all predicates that a goal may call, as ``name/arity``. Raises: as ``clauses_of_file``."""
        with self._lock:
            known = self._known(source)
            return sorted({*known["own"], *known["others"]})

    def _known(self, source: BranchSource) -> dict[str, Any]:
        return self._request(source, "known.\n", limit_s=LOAD_LIMIT_S)

    # Queries

    def start_query(self, source: BranchSource, text: str, mode: Mode) -> None:
        """Close the query that is open, and open another one.

        Raises: ``PrologUnavailable``; ``PrologFailed`` for a text that is no query, or one that is refused: no query is
        open then.
        """
        with self._lock:
            self.close_query(_REFUSED)  # by a request of its own: its cleanup has not the time of this query
            self._is_done = False
            if len(text) > MAX_CLAUSE_CHARS:
                message = f"The query has {len(text):,} characters; {MAX_CLAUSE_CHARS:,} are allowed."
                raise PrologFailed(message, data={"kind": "too_long"})
            self._request(source, f"query({string(text)}, {mode}).\n")
            self._has_query = True

    def next_answer(self, source: BranchSource) -> dict[str, Any]:
        """Return the next answer: ``status`` is "success" or "done".

        Raises: ``PrologUnavailable``; ``PrologFailed``: no query is open, it was lost, or it ended by an error, after
        which it is closed.
        """
        with self._lock:
            if not (self._has_query or self._lost):
                hint = "Start one with query_start."
                raise PrologFailed(self._without_query, hint=hint, data={"kind": "no_active_session"})
            limit_s = source.time_limit_s
            if self._is_done and self._has_query:
                return {"status": "done"}
            try:
                engine, facts = self._engine.follow(source), self._engine.facts_of(source)
                reply = {} if self._lost else engine.ask("next.\n", time_limit_s=limit_s, facts=facts)
            except EngineEnded as ended:
                self._engine.drop("the engine was killed")
                if ended.is_loading or ended.reason != "killed":
                    self._lost, self._without_query = "", _FAILED
                    raise _ended(ended, limit_s, source.time_limit_by) from ended
            if self._lost:
                why, self._lost = self._lost, ""
                hint = "Start it again with query_start."
                raise PrologFailed(f"The query was lost: {why}.", hint=hint, data={"kind": "query_lost"})
            if reply["status"] == "error":
                self._has_query, self._without_query = False, _FAILED
                raise self._error(source, reply)
            self._is_done = reply["status"] == "done"
            self.is_last = self._is_done or reply.pop("is_last")
            return reply

    def close_query(self, because: str = "") -> bool:
        """Close the open query; tell whether there was one. ``because`` says why none is open then."""
        with self._lock:
            had, self._has_query, self._lost = self._has_query or bool(self._lost), False, ""
            self._without_query = because or _NONE_OPEN
            if had and (process := self._engine.process) is not None:
                try:
                    process.ask("close.\n", time_limit_s=_CLOSE_LIMIT_S)
                except EngineEnded as ended:
                    self._engine.drop("")
                    if ended.reason == "timeout":
                        self.notices.append(_UNCLEAN)
            return had

    def lose_query(self, why: str) -> None:
        """Close the open query, and say why when its next answer is asked for."""
        with self._lock:
            if self._has_query:
                self.close_query()
                self._lost = why

    def _launch(self) -> Launch:
        return self.engines.required()

    def _lost_with_engine(self, why: str) -> None:
        if self._has_query:
            self._has_query, self._lost = False, why

    # The engine

    def _request(self, source: BranchSource, request: str, *, limit_s: float = 0) -> dict[str, Any]:
        """Return the reply of an engine that holds what a source has now; a dead engine is replaced once.

        Raises: ``PrologUnavailable``; ``PrologFailed`` for a reply that is an error, and for an engine that ended.
        """
        limit = limit_s or source.time_limit_s
        for is_last in (False, True):
            try:
                engine, facts = self._engine.follow(source), self._engine.facts_of(source)
                reply = engine.ask(request, time_limit_s=limit, facts=facts)
                break
            except EngineEnded as ended:
                self._engine.drop("the engine was started again")
                if is_last or ended.reason not in {"crash", "killed"}:
                    raise _ended(ended, limit, "" if limit_s else source.time_limit_by) from ended
                self.notices.append("The engine had ended and was started again. No clause was lost.")
        if reply["status"] == "error":
            raise self._error(source, reply)
        return reply

    def _error(self, source: BranchSource, reply: Mapping[str, Any]) -> PrologFailed:
        hint = remedy(reply)
        if reply["kind"] == "unknown_predicate":
            hint = near_predicates(reply["name"], self._known(source))
        data = {name: reply[name] for name in ("kind", "name", "reason", "output") if reply.get(name)}
        if "name" in data:
            data["name"] = escape_controls(data["name"])
        return PrologFailed(reason(reply), hint=hint, data=data)

    # Reading clauses

    def _items(self, source: BranchSource, texts: Sequence[Any], checks: Checks) -> list[ParsedClause]:
        """Return the clauses of the texts of a request, in their order; what is no text is one item with an error."""
        found: list[list[ParsedClause]] = [unusable(text) for text in texts]
        usable = [at for at, items in enumerate(found) if not items]
        for at, items in zip(usable, self._parsed(source, [texts[at] for at in usable], checks), strict=True):
            found[at] = items or [no_clause(texts[at])]
        return [item for items in found for item in items]

    def _parsed(self, source: BranchSource, texts: Sequence[str], checks: Checks) -> list[list[ParsedClause]]:
        deep = [deep_clauses(text) for text in texts]
        readable = (string(without_clauses(text, clauses)) for text, clauses in zip(texts, deep, strict=True))
        reply = self._request(source, f"parse({listed(readable)}, {checks}).\n", limit_s=LOAD_LIMIT_S)
        found = [
            [(one.start, ParsedClause(text[one.start : one.end], one.line, error=TOO_DEEP)) for one in clauses]
            for text, clauses in zip(texts, deep, strict=True)
        ]
        for part in reply.get("parts", ()):
            found[part["at"]].append((part["clause"]["start"], parsed_clause(texts[part["at"]], part["clause"])))
        return [[item for _, item in sorted(items, key=itemgetter(0))] for items in found]


def _ended(ended: EngineEnded, limit_s: float, limit_by: str) -> PrologFailed:
    """Return the error for an engine that was ended, or died, while it worked on a request.

    ``limit_by`` is the setting that its time comes from, "" for none.
    """
    data = {"memory_mib": MAX_ENGINE_BYTES // MIB, "exit_status": ended.status}
    if ended.is_loading:
        kind = f"loading_{ended.reason}"
        said = reason(data | {"kind": kind, "seconds": LOAD_LIMIT_S})
        return PrologFailed(said, hint=_LOADING_HINT, data={"kind": kind})
    kind = "slow" if ended.reason == "timeout" and not limit_by else ended.reason
    said = reason(data | {"kind": kind, "seconds": limit_s, "by": limit_by})
    message = f"{said} The engine is started again by the next call."
    shown = "memory" if ended.reason == "stack" else ended.reason
    return PrologFailed(message, hint=_HINTS[kind], data={"kind": shown})
