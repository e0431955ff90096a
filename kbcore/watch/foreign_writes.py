"""Records of others on the watched branch, as far as they change what files state.

A record that takes back what a file states leaves the file as it is, and with the next look the file counts again. So
it is looked at when the record comes, and said why.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kbcore.model.record import SYNC, ForgetSource, ReadSource
from kbcore.store.branch_store import BranchStore
from kbcore.text.wording import some_of
from kbcore.view.view import View

_MOST: Final = 20
"""Of so many records at most each is looked into; beyond, everything is looked at."""

_NAMED: Final = 3


class Foreign(msgspec.Struct, frozen=True):
    """The files whose facts others changed, None when they may be any, and in words by which record."""

    paths: tuple[str, ...] | None
    why: str = ""


def foreign_since(store: BranchStore, seq: int) -> Foreign:
    """Return what records after a seq, that no sync wrote, did to what files state.

    Raises: what reading a store raises.
    """
    return store.read(lambda view: _found(store, view, seq))


def _found(store: BranchStore, view: View, seq: int) -> Foreign:
    sql = "select seq, actor, message from record where seq > ? and source <> ? order by seq"
    rows = view.rows(sql, [seq, SYNC])
    if len(rows) > _MOST:
        return Foreign(None)
    said, paths = [], dict[str, None]()
    for number, actor, message in rows:
        record = store.record_at(view, number)
        if record is None:
            return Foreign(None)
        touched = [op.path for op in record.ops if isinstance(op, ReadSource | ForgetSource)]
        if touched:
            paths |= dict.fromkeys(touched)
            said.append(f"seq {number} ({message + ', ' if message else ''}by {actor})")
    if not paths:
        return Foreign(())
    named = some_of([*paths], _NAMED)
    why = f"{', '.join(said)} changed what {named} states; its present content applies again. Edit it to change that."
    return Foreign(tuple(paths), why)
