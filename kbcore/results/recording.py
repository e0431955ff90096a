"""Verdicts as one record: what changed of them, planned on the state at the head, and the tests of a branch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.model.folding import apply
from kbcore.model.read_set import NOTHING
from kbcore.model.record import RESULTS, Operation, PutNode
from kbcore.model.state import Changes, Draft, Stamp, State, StateReads
from kbcore.model.verdict import FIELDS, TEST, Verdict, is_earlier, next_verdict, verdict_of
from kbcore.results.matching import AUTOMATED_BY, KnownTest
from kbcore.store.answers import Outcome
from kbcore.store.apply import MANY_ITEMS
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author, Request
from kbcore.view.tables import IS_OF_CODE, Rows
from kbcore.view.view import View
from kbcore.view.working_set import plan_until_stable

_TESTS: Final = f"""
select id, coalesce(title, ''), if({IS_OF_CODE}, path, ''), json_extract(attributes, '$.{AUTOMATED_BY}'),
  if({IS_OF_CODE}, null, json_extract(attributes, '$.file'))
from node where type = '{TEST}' order by id
"""  # noqa: S608 - constants


class Flip(msgspec.Struct, frozen=True):
    """A verdict that changes: of which test, and what it was before, None where there was none."""

    id: str
    before: Verdict | None
    after: Verdict


class Recorded(msgspec.Struct, frozen=True):
    """The result of a write: its answer, the verdicts that changed, and those that were left as they are.

    ``earlier`` are the tests whose recorded verdict is of a later run; ``stated`` maps those of which a file states
    the field to this file; ``gone`` are those that there are no more.
    """

    outcome: Outcome
    flips: tuple[Flip, ...] = ()
    unchanged: int = 0
    earlier: tuple[str, ...] = ()
    stated: dict[str, str] = {}
    gone: tuple[str, ...] = ()


class _Planned(msgspec.Struct, frozen=True):
    """The operations for some verdicts, what they change, and what is said of the others."""

    ops: tuple[Operation, ...]
    changes: Changes
    flips: tuple[Flip, ...]
    unchanged: int
    earlier: tuple[str, ...]
    stated: dict[str, str]
    gone: tuple[str, ...]


def tests_of(rows: Rows) -> list[KnownTest]:
    """Return the tests of a branch; one of a document or a manifest may name its file, which then runs it."""
    return [
        KnownTest(id_, title, file, (*_texts(automated), *_texts(named)))
        for id_, title, file, automated, named in rows(_TESTS, [])
    ]


def _texts(value: str | None) -> tuple[str, ...]:
    """Return the texts in an attribute as JSON: it is one, or a list of them."""
    found: Any = json.loads(value) if value else []
    listed = found if isinstance(found, list) else [found]
    return tuple(one for one in listed if isinstance(one, str))


def record(
    workspace: Workspace,
    branch: str,
    author: Author,
    verdicts: Mapping[str, Verdict],
    *,
    message: str,
    follows_head: bool,
    dry_run: bool = False,
) -> Recorded:
    """Record the verdicts that are others than before, as one changeset; without any there is no record.

    Raises: what ``BranchStore.commit`` raises; ``BranchMoved``.
    """
    last: list[_Planned] = []
    wanted = msgspec.structs.replace(NOTHING, nodes=frozenset(verdicts))

    def plan(view: View, stamp: Stamp) -> Draft:
        planned, state = plan_until_stable(
            view,
            wanted,
            lambda state: _plan(state, stamp, verdicts),
        )
        last.append(planned)
        return Draft(planned.ops, planned.changes, state.loaded, reads=StateReads(state.loaded))

    request = Request(
        message=message,
        dry_run=dry_run,
        limit_bytes=limits.MAX_RECORD_BYTES,
        lock_wait_s=workspace.config.lock_wait_s,
        plans_ahead=len(verdicts) > MANY_ITEMS,
    )
    outcome = workspace.store(branch).commit(
        msgspec.structs.replace(author, source=RESULTS),
        request,
        plan,
        guard=workspace.guard(branch) if follows_head else None,
        head_commit=workspace.head_commit(branch),
        branch=branch,
    )
    planned = last[-1]
    return Recorded(outcome, planned.flips, planned.unchanged, planned.earlier, planned.stated, planned.gone)


def _plan(state: State, stamp: Stamp, verdicts: Mapping[str, Verdict]) -> _Planned:
    """Return the operations for verdicts on a state, which is changed to what it will be."""
    ops: list[Operation] = []
    flips: list[Flip] = []
    earlier: list[str] = []
    stated: dict[str, str] = {}
    gone: list[str] = []
    for id_, verdict in verdicts.items():
        node = state.nodes.get(id_)
        if node is None or node.type != TEST:
            gone.append(id_)
            continue
        owner = next((node.owners[name] for name in sorted(FIELDS) if name in node.owners), "")
        if owner:
            stated[id_] = owner
            continue
        old = verdict_of(node.fields)
        new = next_verdict(old, verdict)
        if new is not None:
            flips.append(Flip(id_, old, new))
            ops.append(PutNode(id=id_, base=node.version, set=new.fields()))
        elif old is not None and is_earlier(verdict, old) and old.outcome != verdict.outcome:
            earlier.append(id_)
    unchanged = len(verdicts) - len(flips) - len(earlier) - len(stated) - len(gone)
    changes = apply(state, stamp, ops)
    return _Planned(tuple(ops), changes, tuple(flips), unchanged, tuple(earlier), stated, tuple(gone))
