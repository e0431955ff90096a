"""One cycle: its phases in order, each committed as one changeset, and what is reported of it.

A process that ends in the middle leaves whole phases. What a phase did is in the state that it left, so that running
again does what is still to be done, and nothing twice.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final, TypeVar

import msgspec

from kbcore import limits
from kbcore.errors import AlreadyAsleep, InvalidQuery, KBError
from kbcore.errors.remedies import kb
from kbcore.kip.kml.intent import Intent, changeset_of
from kbcore.kip.kml.refusals import DraftSources
from kbcore.kip.sleep import decay, domains, duplicates, events, finish, placing, similar, tasks
from kbcore.kip.sleep.assess import Assessment, assess
from kbcore.kip.sleep.finish import last_cycle
from kbcore.kip.sleep.memory import Memory, hours_between
from kbcore.kip.sleep.phase import Phase, PhaseDone, PhaseResult
from kbcore.kip.sleep.worklist import WorklistPage, page
from kbcore.model.changeset import digest_of
from kbcore.model.state import Draft, Stamp
from kbcore.model.values import normal_time
from kbcore.storage import lock
from kbcore.store import dry_run
from kbcore.store.apply import planner
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author, Request
from kbcore.text.wording import some_of
from kbcore.view.view import View

T = TypeVar("T")

_PHASES: Final = (
    Phase(1, "assess", "look at the memory"),
    Phase(2, "tasks", "archive what tasks name, list the rest", tasks.plan),
    Phase(similar.MERGING, "duplicates", "merge concepts of one name", duplicates.plan),
    Phase(3, "inbox", "move what has a domain out of Unsorted", placing.plan_inbox),
    Phase(4, "orphans", "put what belongs to no domain into one", placing.plan_orphans),
    Phase(5, "events", "mark events that grew old", events.plan),
    Phase(7, "decay", "lower the confidence of what was not confirmed", decay.plan),
    Phase(8, "domains", "archive empty domains", domains.plan),
    Phase(finish.NUMBER, "finish", "write down the cycle", finish.plan),
)
"""In the order in which they run; each keeps its number.

Duplicates are merged before domains are given, so that nothing is put into Unsorted whose other half has a domain.
"""
_NUMBERS: Final = tuple(sorted(one.number for one in _PHASES))
_COMMAND: Final = "kb sleep"


class SleepOptions(msgspec.Struct, frozen=True):
    """Options of a cycle: its phases (none named: all), only tried or not, and whether within the interval too."""

    phases: tuple[int, ...] = ()
    dry_run: bool = False
    force: bool = False


class CycleReport(msgspec.Struct, frozen=True):
    """A cycle's result. ``waits_hours`` is how long it is too early; nothing was done then.

    ``seq`` is the head after it. What is only tried moves no head: its phases have the seqs that they would get.
    """

    branch: str
    seq: int
    cycle: str
    dry_run: bool
    last_cycle: str
    waits_hours: float
    phases: tuple[PhaseDone, ...]
    before: Assessment
    after: Assessment
    work: WorklistPage

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown


def run(
    workspace: Workspace,
    branch: str,
    author: Author,
    options: SleepOptions,
    *,
    follows_head: bool,
) -> CycleReport:
    """Carry out a cycle on a branch, or the phases that are named, or only say what it would do.

    Raises: ``InvalidQuery`` for a phase that there is not; ``AlreadyAsleep``; what ``BranchStore.commit`` raises: the
    phases before are written then, each whole, and the error names them.
    """
    unknown = sorted({*options.phases} - {*_NUMBERS})
    if unknown:
        hint = f"Phases are numbered from {_NUMBERS[0]} to {_NUMBERS[-1]}."
        raise InvalidQuery(f"There is no phase {unknown[0]}.", hint=hint)
    if options.dry_run:
        view = dry_run.unshared_view(workspace, branch)
        try:
            head = workspace.store(branch).head()
            return view.ask(head, lambda own: _Cycle(workspace, branch, _Trial(workspace, own, author)).run(options))
        finally:
            view.close()
    with sleep_lock(workspace, branch):
        return _Cycle(workspace, branch, _Real(workspace, branch, author, follows_head=follows_head)).run(options)


class _Trial:
    """The place of a cycle that is only tried: a view of its own."""

    is_real: Final = False

    def __init__(self, workspace: Workspace, view: View, author: Author) -> None:
        self.view = view
        self.author = author
        self.now = workspace.machine.clock.now()

    def read(self, use: Callable[[View], T]) -> T:
        return use(self.view)

    def commit(self, source: str, request: Request, plan: Callable[[View, Stamp], Draft]) -> bool:
        return dry_run.take(self.view, _with_source(self.author, source), request, plan, self.now)


class _Real:
    """The place of a cycle: the store of the branch."""

    is_real: Final = True

    def __init__(self, workspace: Workspace, branch: str, author: Author, *, follows_head: bool) -> None:
        self.branch = branch
        self.workspace = workspace
        self.author = author
        self.guard = workspace.guard(branch) if follows_head else None
        self.head_commit = workspace.head_commit(branch)
        self.now = workspace.machine.clock.now()

    def read(self, use: Callable[[View], T]) -> T:
        return self.workspace.store(self.branch).read(use)

    def commit(self, source: str, request: Request, plan: Callable[[View, Stamp], Draft]) -> bool:
        author = _with_source(self.author, source)
        outcome = self.workspace.store(self.branch).commit(
            author, request, plan, guard=self.guard, head_commit=self.head_commit, branch=self.branch
        )
        return outcome.applied


def _with_source(author: Author, source: str) -> Author:
    return msgspec.structs.replace(author, source=source)


class _Cycle:
    """A cycle on its way; ``place`` is where it reads and writes."""

    def __init__(self, workspace: Workspace, branch: str, place: _Trial | _Real) -> None:
        self.workspace = workspace
        self.branch = branch
        self.place = place

    def memory(self, view: View) -> Memory:
        workspace = self.workspace
        return Memory(view, view.schema(workspace.schema), workspace.config.sleep, self.place.now)

    def run(self, options: SleepOptions) -> CycleReport:
        head, before, last = self.place.read(lambda view: (view.seq, *_look(self.memory(view))))
        left = 0.0
        if self.place.is_real and not options.force and not options.phases:
            left = hours_left(last, self.place.now, self.workspace.config.sleep.interval_hours)
        wanted: Collection[int] = () if left else options.phases or _NUMBERS
        done: list[PhaseDone] = []
        try:
            done += (self.run_phase(phase) for phase in _PHASES if phase.number in wanted)
            seq, after, work = self.place.read(lambda view: (view.seq, *self._assessed(view)))
        except KBError as error:
            if self.place.is_real:
                _add_progress(error, done, [phase for phase in _PHASES if phase.number in wanted][len(done) :])
            raise
        return CycleReport(
            branch=self.branch,
            seq=seq if self.place.is_real else head,
            cycle=self.place.now,
            dry_run=not self.place.is_real,
            last_cycle=last,
            waits_hours=round(left, 2),
            phases=tuple(done),
            before=before,
            after=after,
            work=work,
        )

    def _assessed(self, view: View) -> tuple[Assessment, WorklistPage]:
        memory = self.memory(view)
        return assess(memory), page(memory, self.branch)

    def run_phase(self, phase: Phase) -> PhaseDone:
        """Carry out one phase, as one changeset or none."""
        if phase.plan is None:
            return PhaseDone(phase.number, phase.name, 0, {}, {}, ())
        steps: list[PhaseResult] = []
        seqs: list[int] = []

        def plan(view: View, stamp: Stamp) -> Draft:
            memory = self.memory(view)
            step = phase.plan(memory) if phase.plan else PhaseResult(memory.work())
            steps.append(step)
            seqs.append(stamp.seq)
            return self.draft(view, stamp, step)

        request = Request(
            digest=digest_of("sleep", {"phase": phase.number, "cycle": self.place.now}),
            message=phase.message,
            limit_bytes=limits.MAX_RECORD_BYTES,
            lock_wait_s=self.workspace.config.lock_wait_s,
            plans_ahead=True,
        )
        is_written = self.place.commit(phase.source, request, plan)
        step = steps[-1]
        seq = seqs[-1] if is_written else 0
        return PhaseDone(phase.number, phase.name, seq, step.done, step.left, tuple(step.issues[: limits.MAX_PROBLEMS]))

    def draft(self, view: View, stamp: Stamp, step: PhaseResult) -> Draft:
        """Return what the changeset of a phase comes to, by the way that KIP's own commands go."""
        intent = Intent(lambda _: {}, step.concepts, step.propositions)
        most = 2 * limits.MAX_SLEEP_ITEMS
        changeset = changeset_of(step.work, intent, DraftSources(), most=most, most_deleted=most)
        # What a phase asks for cannot be named: its plan is of use at the same head only.
        plan = planner(changeset, self.workspace, warns_of_overwriting=False)
        return msgspec.structs.replace(plan(view, stamp), reads=None)


def _add_progress(error: KBError, done: Sequence[PhaseDone], left: Sequence[Phase]) -> None:
    """Add to an error which phases of the cycle were written before it, and which were not run."""
    written = [one for one in done if one.seq]
    if not written:
        return
    rows = some_of([f"{one.phase} {one.name} (record {one.seq})" for one in written], len(written))
    not_done = some_of([f"{one.number} {one.name}" for one in left], len(left)) or "none"
    error.applied = "yes" if error.applied == "no" else error.applied
    error.add(f"These phases were written before: {rows}; not run: {not_done}.")
    error.remedy = f"{error.remedy} {kb('sleep', lead='Run')} again: it does what is left, and nothing twice.".lstrip()
    error.data |= {
        "phases_written": [{"phase": one.phase, "name": one.name, "seq": one.seq} for one in written],
        "phases_left": [one.number for one in left],
    }


def _look(memory: Memory) -> tuple[Assessment, str]:
    return assess(memory), last_cycle(memory)


@contextlib.contextmanager
def sleep_lock(workspace: Workspace, branch: str) -> Iterator[None]:
    """Hold the lock of a branch's cycle; the kernel frees it with its holder. Raises: ``AlreadyAsleep``."""
    fs = workspace.machine.fs
    mark = hashlib.sha256(branch.encode()).hexdigest()[:16]
    path = workspace.folders.branches_dir / f".sleep-{mark}.lock"
    already, clock = f"A cycle of {branch} runs already", workspace.machine.clock
    with lock.alone(fs, clock, path, command=_COMMAND, refusal=AlreadyAsleep, already=already):
        yield


def hours_left(last: str, now: str, interval_hours: float) -> float:
    """Return how many hours are left until the next cycle; 0 where it may begin, and where the last one is no time."""
    ended = normal_time(last) if last else None
    if ended is None or ended > now:
        return 0.0
    return max(0.0, interval_hours - hours_between(ended, now))
