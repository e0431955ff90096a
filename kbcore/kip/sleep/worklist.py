"""The work that a cycle leaves for an agent to decide, each item with the KIP commands that answer it.

The list is made from the state, never kept: an item is gone as soon as its answer is stored. A page continues after the
last item that was shown, so that none is missed although the branch changes between two pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from kbcore.kip.elements import node_json
from kbcore.kip.names import type_names
from kbcore.kip.sleep import answering
from kbcore.kip.sleep.answering import AnswerOption
from kbcore.kip.sleep.assess import DOMAINS, STALE_FREE, TASKS, WAITING
from kbcore.kip.sleep.domains import KEPT
from kbcore.kip.sleep.duplicates import LikelyDuplicate, likenesses
from kbcore.kip.sleep.memory import Memory
from kbcore.kip.sleep.similar import pairs
from kbcore.kip.sleep.tasks import PRIORITY
from kbcore.text import cursor as cursors
from kbcore.text.escaping import in_quotes

KINDS: Final = ("task", "duplicate", "event", "unsorted", "domain")
"""In the order of the list."""
PAGE: Final = 20

_TASKS: Final = (
    f"select n.id, {PRIORITY} {TASKS} "
    "and coalesce(n.status, 'pending') not in ('pending', 'completed', 'failed', 'archived')"
)
"""Those that are handed over, and those of a status that no task has: no phase handles them."""
_EVENTS: Final = f"select n.id, 0 {STALE_FREE}"
_UNSORTED: Final = f"select n.id, 0 {WAITING}"
_DOMAINS: Final = f"select n.id, members {DOMAINS} where members not between $3 and $4 and members > 0 and not {KEPT}"


class WorkItem(msgspec.Struct, frozen=True):
    """One piece of work: what it is about, why it is there, what an agent needs to know of it, and how to answer."""

    kind: str
    id: str
    type: str
    name: str
    why: str
    about: dict[str, Any]
    answers: tuple[AnswerOption, ...]


class WorklistPage(msgspec.Struct, frozen=True):
    """A page of the list. ``counts`` are those of the whole list, by kind; ``next_cursor`` is "" on the last page."""

    total: int
    counts: dict[str, int]
    items: tuple[WorkItem, ...]
    next_cursor: str = ""


class _Ref(msgspec.Struct, frozen=True):
    """An item without details: its place in the list, and the reason for it."""

    place: str
    kind: str
    id: str
    number: float = 0
    likeness: LikelyDuplicate | None = None


Fits = Callable[[Sequence[WorkItem]], int]
"""Says how many of these items, which come in order, an answer has room for."""


class WorklistQuery(msgspec.Struct, frozen=True):
    """The page: of the whole list or, with ``kind``, of a part of it, after the place of a cursor."""

    kind: str = ""
    limit: int = PAGE
    cursor: str = ""


def page(memory: Memory, branch: str, asked: WorklistQuery = WorklistQuery(), fits: Fits = len) -> WorklistPage:  # noqa: B008 - frozen
    """Return a page of the work that a memory leaves. Raises: ``InvalidQuery`` for a cursor that does not fit."""
    refs = sorted(_refs(memory, asked.kind), key=lambda ref: ref.place)
    mark = cursors.request_mark(("sleep", branch, asked.kind))
    left: Sequence[_Ref] = refs
    if asked.cursor:
        last = cursors.decode(asked.cursor, mark).last
        left = [ref for ref in refs if ref.place > last]
    items = [*_items(memory, left[: asked.limit])]
    shown = items[: max(1, fits(items))]
    more = ""
    if len(shown) < len(left):
        more = cursors.encode(cursors.Cursor(mark, memory.view.seq, len(refs), left[len(shown) - 1].place))
    return WorklistPage(len(refs), dict(Counter(ref.kind for ref in refs)), tuple(shown), more)


def _refs(memory: Memory, kind: str) -> Iterable[_Ref]:
    wanted = memory.settings
    if kind in {"", "task"}:
        for key, priority in memory.ask(_TASKS):
            urgency = f"{10**12 - int(min(max(priority, -1e9), 1e9) * 1000):015d}"
            yield _Ref(_place("task", urgency, key), "task", key, priority)
    if kind in {"", "duplicate"}:
        for one in likenesses(memory, type_names(memory.schema), pairs(memory)):
            place = _place("duplicate", f"{100 - int(one.pair.score * 100):03d}", f"{one.kept.id}\x01{one.gone.id}")
            yield _Ref(place, "duplicate", one.gone.id, one.pair.score, one)
    lists: dict[str, tuple[str, tuple[Any, ...]]] = {
        "event": (_EVENTS, (memory.ago(wanted.stale_event_days),)),
        "unsorted": (_UNSORTED, ()),
        "domain": (_DOMAINS, (wanted.least_members, wanted.most_members)),
    }
    for name, (sql, params) in lists.items():
        if kind in {"", name}:
            yield from (_Ref(_place(name, "", key), name, key, number) for key, number in memory.ask(sql, *params))


def _place(kind: str, order: str, key: str) -> str:
    return f"{KINDS.index(kind)}\x01{order}\x01{key}"


def _items(memory: Memory, refs: Sequence[_Ref]) -> Iterable[WorkItem]:
    names = type_names(memory.schema)
    nodes = {node.id: node for node in memory.view.nodes(sorted({ref.id for ref in refs}))}
    make: dict[str, Callable[[Memory, _Ref, dict[str, Any]], tuple[str, tuple[AnswerOption, ...]]]] = {
        "task": _task,
        "duplicate": _duplicate,
        "event": _event,
        "unsorted": _unsorted,
        "domain": _domain,
    }
    for ref in refs:
        shown = node_json(nodes[ref.id], names)
        why, answers = make[ref.kind](memory, ref, shown)
        about = {"attributes": shown["attributes"]}
        if ref.likeness:
            kept = node_json(ref.likeness.kept, names)
            about |= {"kept": {"id": kept["id"], "name": kept["name"], "attributes": kept["attributes"]}}
            about |= {"contradictions": list(ref.likeness.contradictions)}
        yield WorkItem(ref.kind, ref.id, shown["type"], shown["name"], why, about, answers)


def _task(memory: Memory, ref: _Ref, shown: dict[str, Any]) -> tuple[str, tuple[AnswerOption, ...]]:
    wanted = shown["attributes"]
    action, target = wanted.get("requested_action", "review"), wanted.get("target_name", "")
    why = f"A task asks for {action}" + (f" of {wanted.get('target_type', '')} {target}" if target else "") + "."
    if (status := wanted.get("status")) != "in_progress":
        why += f" Its status {in_quotes(str(status))} is none that a task has."
    return why, answering.task(ref.id, memory.now)


def _duplicate(_: Memory, ref: _Ref, shown: dict[str, Any]) -> tuple[str, tuple[AnswerOption, ...]]:
    one = ref.likeness
    assert one is not None  # noqa: S101 - every duplicate has one
    against = f"; they differ in {', '.join(one.contradictions)}" if one.contradictions else ""
    known = shown["attributes"].get("distinct_from")
    return f"{one.pair.why[0].upper()}{one.pair.why[1:]}{against}.", answering.duplicate(one.gone, one.kept, known)


def _event(memory: Memory, ref: _Ref, _: dict[str, Any]) -> tuple[str, tuple[AnswerOption, ...]]:
    days = memory.settings.stale_event_days
    why = f"It is older than {days:g} days, and nothing lasting was derived from it."
    return why, answering.event(ref.id, memory.now)


def _unsorted(_: Memory, ref: _Ref, __: dict[str, Any]) -> tuple[str, tuple[AnswerOption, ...]]:
    return "It belongs to Unsorted, and to no field of knowledge yet.", answering.unsorted(ref.id)


def _domain(memory: Memory, ref: _Ref, _: dict[str, Any]) -> tuple[str, tuple[AnswerOption, ...]]:
    wanted, members = memory.settings, int(ref.number)
    if members > wanted.most_members:
        why = f"It has {members} members, more than {wanted.most_members}: divide it, or keep it."
    else:
        noun = "member" if members == 1 else "members"
        why = f"It has {members} {noun}, fewer than {wanted.least_members}: join it to another domain, or keep it."
    return why, answering.domain(ref.id)
