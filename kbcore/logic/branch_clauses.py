"""The clauses of a branch: entities of the hidden type ``clause``, each change of them one record of the journal."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from kbcore import gc_pause, limits
from kbcore.clock import epoch_ms
from kbcore.errors import NotFound
from kbcore.logic.clauses import (
    CLAUSE,
    NO_RETRY,
    ChangedClauses,
    Clause,
    ClauseChange,
    Clauses,
    Kind,
    NewClause,
    Plan,
    RetryKey,
    check,
    new_ids,
)
from kbcore.model.changeset import check_frame, digest_of
from kbcore.model.folding import apply
from kbcore.model.graph import Node
from kbcore.model.read_set import NOTHING
from kbcore.model.record import DropNode, Operation, PutNode
from kbcore.model.state import Changes, Draft, Stamp, State, StateReads
from kbcore.store.answers import Outcome
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author, Request
from kbcore.view.base_stamp import BaseStamp
from kbcore.view.history import check_reach
from kbcore.view.tables import IS_HIDDEN
from kbcore.view.view import View

_KEPT_BRANCHES: Final = 4
"""Branches whose clauses stay in memory."""
_IS_CLAUSE: Final = f"type = '{CLAUSE}' and ({IS_HIDDEN})"
_SINCE: Final = f"""select id, created_at, attributes, null from any_node where version > $1 and {_IS_CLAUSE}
union all select id, null, null, try_cast(attributes ->> '$.order' as bigint) from any_node_history
where ended > $1 and {_IS_CLAUSE}"""  # noqa: S608 - constants
"""The clauses of now that changed after a seq; and those that ended after it, with their order."""
_THEN: Final = f"""select id, created_at, attributes from any_node where version <= $1 and {_IS_CLAUSE}
union all select id, created_at, attributes from any_node_history
where version <= $1 and ended > $1 and {_IS_CLAUSE}"""  # noqa: S608 - constants


class _Stored(msgspec.Struct, frozen=True):
    """The attributes of a clause; an import may write whole numbers as 1.0."""

    text: str
    key: str
    name: str
    kind: Kind
    order: int | float
    file: str = ""
    line: int | float = 0


_stored = msgspec.json.Decoder(_Stored)


class _Kept(msgspec.Struct, frozen=True):
    """The clauses of a branch, and the record after which they were read."""

    basis: BaseStamp
    clauses: Clauses


class ClauseCache:
    """The clauses of the branches that were read last, for all threads of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}

    def read(self, view: View, branch: str) -> Clauses:
        """Return the clauses that a view shows; of those known already, only what changed since is read."""
        kept = self._kept.get(branch)
        if kept and _mark(kept.basis) == _mark(view.basis):
            return kept.clauses
        is_known = kept is not None and _continues(view, kept.basis)
        found = _brought_forward(view, kept.clauses if kept and is_known else Clauses(branch, 0))
        with self._lock:
            self._kept.pop(branch, None)
            self._kept[branch] = _Kept(view.basis, found)
            for other in [*self._kept][:-_KEPT_BRANCHES]:
                del self._kept[other]
        return found


class BranchClauses:
    """A ``ClauseStore`` of one branch, for one request of one author.

    With ``follows_head`` the branch came from HEAD, and a move of HEAD meanwhile refuses a change.
    """

    def __init__(
        self, workspace: Workspace, branch: str, author: Author, *, follows_head: bool, cache: ClauseCache
    ) -> None:
        self._workspace = workspace
        self._branch = branch
        self._author = author
        self._guard = workspace.guard(branch) if follows_head else None
        self._cache = cache

    def read(self, at: int | None = None) -> Clauses:
        """Return the clauses as of a seq, None for the head.

        Raises: ``NotFound`` for a seq that is not there yet; ``HistoryPruned``; as ``BranchStore.read``.
        """
        store = self._workspace.store(self._branch)
        return store.read(lambda view: self._cache.read(view, self._branch) if at is None else self._past(view, at))

    def _past(self, view: View, at: int) -> Clauses:
        if not 0 <= at <= view.seq:
            raise NotFound(f"There is no seq {at}; the head is {view.seq}.")
        check_reach(view, at)
        found = sorted(map(_clause, view.rows(_THEN, [at])), key=_place)
        return Clauses(self._branch, at, tuple(found), max((one.order for one in found), default=0))

    def change(self, plan: Plan, *, message: str = "", retry: RetryKey = NO_RETRY) -> ChangedClauses:
        """Carry out a plan as one record.

        Raises: as ``check``; ``InvalidChangeset`` for an id that cannot be one; what ``plan`` raises; as
        ``BranchStore.commit``.
        """
        asked, ids = ClauseChange(), list[str]()

        def draft(view: View, stamp: Stamp) -> Draft:
            nonlocal asked, ids
            clauses = self._cache.read(view, self._branch)
            asked = plan(clauses)
            check(clauses, asked, self._workspace.config.logic.clauses)
            with gc_pause.paused():
                planned, ids = _draft(view, stamp, clauses, asked)
            return planned

        workspace = self._workspace
        request = Request(
            changeset_id=retry.changeset_id,
            digest=digest_of("clauses", {"message": message, **retry.asked}),
            message=message,
            limit_bytes=limits.MAX_RECORD_BYTES,
            lock_wait_s=workspace.config.lock_wait_s,
            plans_ahead=True,
        )
        store = workspace.store(self._branch)
        if retry.changeset_id:
            check_frame(retry.changeset_id, message)
            # Before it is planned: what was refused since must not hide that it was made.
            first = store.read(lambda view: store.find_duplicate(view, request, self._branch))
            if first:
                return self._changed_before(first)
        outcome = store.commit(
            self._author,
            request,
            draft,
            guard=self._guard,
            head_commit=workspace.head_commit(self._branch),
            branch=self._branch,
        )
        if outcome.duplicate:
            return self._changed_before(outcome)
        return ChangedClauses(
            self._branch, outcome.seq, tuple(ids), tuple(asked.removed), outcome.applied, warnings=outcome.warnings
        )

    def _changed_before(self, first: Outcome) -> ChangedClauses:
        """Return what a change did that was made before. Raises: ``HistoryPruned``."""
        created, deleted = frozenset(first.created), frozenset(first.deleted)
        ids = tuple(one.id for one in self.read(first.seq).clauses if one.id in created) if created else ()
        removed = tuple(one.id for one in self.read(first.seq - 1).clauses if one.id in deleted) if deleted else ()
        return ChangedClauses(self._branch, first.seq, ids, removed, is_written=True, is_duplicate=True)


def _mark(basis: BaseStamp) -> tuple[str, int, str]:
    return basis.store_id, basis.seq, basis.sum


def _continues(view: View, basis: BaseStamp) -> bool:
    """Tell whether a view shows the state after a record, or a later one of which all changes since are known."""
    is_later = view.basis.store_id == basis.store_id and view.basis.history_from <= basis.seq <= view.seq
    return is_later and view.has_record(basis.seq, basis.sum)


def _brought_forward(view: View, known: Clauses) -> Clauses:
    """Return the clauses that a view shows, out of those at an earlier seq; none of seq 0 are known."""
    changes = view.changes_since(known.seq)
    present, ended = _clauses_of(changes) if changes is not None else _clauses_since(view, known.seq)
    if not (present or ended):
        return msgspec.structs.replace(known, seq=view.seq)
    # A clause that was changed has an earlier version, which is among those that ended.
    changed = {key for key, _ in ended}
    kept = [one for one in known.clauses if one.id not in changed] if changed else known.clauses
    found = [*kept, *sorted(present, key=_place)]
    if kept and present and _place(found[len(kept)]) < _place(kept[-1]):
        found.sort(key=_place)
    orders = [known.last_order, *(one.order for one in present), *(order for _, order in ended)]
    return Clauses(known.branch, view.seq, tuple(found), max(orders))


def _clauses_of(changes: Iterable[Changes]) -> tuple[list[Clause], list[tuple[str, int]]]:
    """Return of the clauses that changed those that are there now, and the id and the order of each earlier one."""
    present, ended = dict[str, Clause](), list[tuple[str, int]]()
    for change in (one for record in changes for one in record.nodes):
        before, after = map(_clause_of, (change.before, change.after))
        if before:
            ended.append((before.id, before.order))
        present.pop(change.key, None)
        if after:
            present[change.key] = after
    return [*present.values()], ended


def _clauses_since(view: View, seq: int) -> tuple[list[Clause], list[tuple[str, int]]]:
    """Return the same for the changes after a seq."""
    rows = view.rows(_SINCE, [seq])
    present = [_clause(tuple(now)) for *now, _ in rows if now[-1] is not None]
    return present, [(key, order or 0) for key, _, attributes, order in rows if attributes is None]


def _clause_of(node: Node | None) -> Clause | None:
    """Return the clause that an entity is; None for another one."""
    if node is None or node.type != CLAUSE or not node.is_hidden:
        return None
    attributes = {key.removeprefix("attributes."): value for key, value in node.fields.items()}
    return _made(node.id, node.created_at, msgspec.convert(attributes, _Stored))


def _clause(row: tuple[Any, ...]) -> Clause:
    key, created_at, attributes = row
    return _made(key, created_at, _stored.decode(attributes))


def _made(key: str, created_at: str, stored: _Stored) -> Clause:
    order, at_ms = int(stored.order), epoch_ms(created_at)
    return Clause(key, stored.text, stored.key, stored.name, stored.kind, stored.file, int(stored.line), order, at_ms)


def _place(clause: Clause) -> tuple[int, str]:
    """Return what clauses are sorted by. Two branches that were merged may have used a number twice."""
    return clause.order, clause.id


def _draft(view: View, stamp: Stamp, clauses: Clauses, asked: ClauseChange) -> tuple[Draft, list[str]]:
    """Return the draft of a change, and the ids of what it adds."""
    if not (asked.added or asked.removed):
        return Draft((), Changes(), NOTHING), []
    removed, state = frozenset(asked.removed), State()

    def taken(ids: list[str]) -> set[str]:
        nonlocal state
        named = removed.union(ids)
        state = view.gather(msgspec.structs.replace(NOTHING, nodes=named, touching=named))
        return state.nodes.keys() & ids

    ids = new_ids(len(asked.added), taken)
    ops: tuple[Operation, ...] = (
        *(DropNode(id=key, base=state.nodes[key].version) for key in asked.removed),
        *(
            PutNode(id=id_, base=0, set=_fields(one, clauses.last_order + place))
            for place, (id_, one) in enumerate(zip(ids, asked.added, strict=True), start=1)
        ),
    )
    loaded = msgspec.structs.replace(state.loaded, enough_for=ops)
    reads = StateReads(loaded, frozenset(), frozenset({CLAUSE}))
    return Draft(ops, apply(state, stamp, ops), loaded, reads=reads), ids


def _fields(clause: NewClause, order: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": CLAUSE,
        "attributes.text": clause.text,
        "attributes.key": clause.key,
        "attributes.name": clause.name,
        "attributes.kind": clause.kind,
    }
    if clause.file:
        found |= {"attributes.file": clause.file, "attributes.line": clause.line}
    return {**found, "attributes.order": order}
