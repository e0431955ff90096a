"""Phase 2: tasks for the sleeping mind. One that asks to archive is done; any other is handed over to judgement.

A task goes from pending to in_progress, where it waits for an agent, or straight to completed or failed.
"""

from __future__ import annotations

from typing import Any, Final

from kbcore.errors import KipRefused
from kbcore.errors.remedies import shell
from kbcore.kip import syntax as s
from kbcore.kip.confidence import created_at
from kbcore.kip.kml.drafts import NodeDraft
from kbcore.kip.sleep.assess import TASKS
from kbcore.kip.sleep.memory import Memory
from kbcore.kip.sleep.phase import LATER, PhaseResult
from kbcore.kip.sleep.writing import edit, put_away
from kbcore.model.concepts import DEFINING, VOCABULARY
from kbcore.store.planning.conflicts import contested_in

ARCHIVE: Final = "archive"
_SAID: Final = ", ".join(
    f"nullif(try_cast({place} as double), 'nan'::double)" for place in ("n.attributes ->> '$.priority'", "n.priority")
)
PRIORITY: Final = f"coalesce({_SAID}, 1)"
"""The priority of a task. Its author may write anything there: what is no number, such as ``nan``, counts as 1."""
_PENDING: Final = f"""select n.id, n.attributes ->> '$.requested_action', n.attributes ->> '$.target_type',
  n.attributes ->> '$.target_name' {TASKS} and coalesce(n.status, 'pending') = 'pending'
order by {PRIORITY} desc, {created_at("n")}, n.id
"""


def plan(memory: Memory) -> PhaseResult:
    """Return what is done about the tasks that are pending, the most urgent first."""
    step = PhaseResult(memory.work())
    rows = memory.ask(_PENDING)
    taken = rows[: step.room // 4]  # a task, what it archives, and two memberships
    step.leave(LATER, len(rows) - len(taken))
    step.work.look_up(row[0] for row in taken)
    targets = {row[0]: _matcher(*row[2:]) for row in taken if row[1] == ARCHIVE}
    step.work.prefetch(matcher for matcher in targets.values() if matcher)
    archived: dict[str, NodeDraft] = {}
    for key, action, *_ in taken:
        task = step.work.node(key, 0)
        assert task is not None  # noqa: S101 - it was found on this view
        if action != ARCHIVE:
            edit(step, task, {"status": "in_progress", "started_at": memory.now})
            step.count("tasks handed over")
            continue
        target, why = _target(step, targets[key])
        if target is not None and contested_in(target.old):
            step.leave(f"contested, for {shell('resolve')}")
            continue
        if target is not None:
            archived[target.id] = target
        _end(step, memory, task, why)
    step.count("concepts archived", put_away(step, memory, [*archived.values()]))
    return step


def _matcher(kind: Any, name: Any) -> s.Matcher | None:
    return s.Matcher(type=s.Text(str(kind)), name=s.Text(str(name))) if kind and name else None


def _target(step: PhaseResult, matcher: s.Matcher | None) -> tuple[NodeDraft | None, str]:
    """Return what a task wants archived, if that may be, and else why not. Nothing to do is no failure."""
    if matcher is None or matcher.type is None:
        return None, "The task names no target: target_type and target_name say what to archive."
    try:
        found = step.work.known(matcher)
    except KipRefused as error:
        return None, error.message
    if found is None:
        return None, "There is no such concept."
    if found.type in DEFINING or (found.type, found.name) in VOCABULARY:
        return None, "It is protected: it belongs to every store."
    if step.work.names.is_named_by_id(found.type):
        return None, "It is not a part of the memory: KB's own types, and the project's, are for people to retire."
    if found.old is not None and found.old.owners:
        return None, f"It is stated by {min(found.old.owners.values())}; that file is what to change."
    if found.old is not None and found.old.fields.get("status") == "archived":
        return None, ""
    return found, ""


def _end(step: PhaseResult, memory: Memory, task: NodeDraft, why: str) -> None:
    status = "failed" if why else "completed"
    said = {"status": status, "result": why or "archived", "started_at": memory.now, "completed_at": memory.now}
    edit(step, task, said)
    step.count(f"tasks {status}")
    if why:
        step.issues.append(f"The task {task.name} failed: {why}")
