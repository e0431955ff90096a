"""The entities that a connection was shown, so that it gets one notice where others have changed them since.

Bounded: the latest entities of each of the latest branches. Only records count, and none of the connection's own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kbcore.errors import KBError
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import some_of

if TYPE_CHECKING:
    from kbcore.store.branch_store import BranchStore
    from kbcore.view.view import View

MOST_READ: Final = 1_000
"""Entities of a branch that are remembered."""
_MOST_BRANCHES: Final = 4
_MOST_NAMED: Final = 5
_LISTS: Final = ("entities", "facts")
_CHANGED: Final = """
with known as (select unnest($1::varchar[]) as id, unnest($2::bigint[]) as seq)
select n.id, n.version, r.actor, false from node n join known using (id) join record r on r.seq = n.version
where n.version > known.seq and r.session is distinct from $3
union all
select h.id, h.ended, r.actor, true from node_history h join known using (id) join record r on r.seq = h.ended
where h.ended > known.seq and r.session is distinct from $3 and not exists (select 1 from node n where n.id = h.id)
order by 2, 1
"""


class ChangedSince(NamedTuple):
    """An entity that was read, and the record by which another one changed it since, or deleted it."""

    id: str
    seq: int
    actor: str
    is_deleted: bool

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"id": self.id, "seq": self.seq, "by": self.actor} | ({"deleted": True} if self.is_deleted else {})


class EntitiesRead:
    """The entities that the client of this process was shown, each with the seq of the answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seqs: dict[str, dict[str, int]] = {}
        self._looked: dict[str, int] = {}
        """The head up to which a branch was looked at."""

    def ids(self, branch: str) -> list[str]:
        """Return the entities of a branch that are remembered, the latest last."""
        with self._lock:
            return [*self._seqs.get(branch, {})]

    def note(self, branch: str, store: BranchStore, session: str, answer: Mapping[str, Any]) -> str:
        """Remember what an answer shows, and return what others have changed of what was shown before; "" for nothing.

        An answer of an earlier state is not remembered. ``session`` is that of the connection.
        """
        try:
            head = store.head().seq
            changed = self.changed(branch, store, session) if self._is_behind(branch, head) else []
        except KBError:  # the call is answered; the next one says what is wrong with the store
            return ""
        with self._lock:
            self._looked[branch] = head
            seqs = self._seqs.setdefault(branch, {})
            seqs |= {one.id: one.seq for one in changed if one.id in seqs}
            if answer.get("seq") == head:
                for key in _shown(answer):
                    seqs.pop(key, None)
                    seqs[key] = head
            for old in [*seqs][: max(0, len(seqs) - MOST_READ)]:
                del seqs[old]
            for other in [*self._seqs][: max(0, len(self._seqs) - _MOST_BRANCHES)]:
                del self._seqs[other]
        return _words(changed)

    def changed(self, branch: str, store: BranchStore, session: str) -> list[ChangedSince]:
        """Return what others have changed of what was shown. Raises: as reading the store."""
        with self._lock:
            seqs = dict(self._seqs.get(branch, {}))
        if not seqs:
            return []

        def found(view: View) -> list[ChangedSince]:
            rows = view.rows(_CHANGED, [[*seqs], [*seqs.values()], session])
            return [ChangedSince(*row) for row in rows]

        return store.read(found)

    def _is_behind(self, branch: str, head: int) -> bool:
        with self._lock:
            return self._looked.get(branch, 0) < head


def _shown(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ids of the entities in an answer, and in the answers of several queries."""
    for one in (answer, *answer.get("answers", ())):
        lists = [found for name in _LISTS if isinstance(found := one.get(name), list)]  # kb://head has numbers there
        yield from (str(entity["id"]) for found in lists for entity in found)


def _words(changed: Sequence[ChangedSince]) -> str:
    if not changed:
        return ""
    said = [
        f"{in_quotes(one.id)} ({'deleted ' if one.is_deleted else ''}at seq {one.seq} by {in_quotes(one.actor)})"
        for one in changed
    ]
    return f"Others changed what you have read: {some_of(said, _MOST_NAMED)}."
