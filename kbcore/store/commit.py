"""One write on its way into a store: read, lock, plan, append, publish.

What is appended was planned on the state at the head, as far as the plan has read it: under the branch lock, or before
it and compared with the head under it. The answer is given after the record is durable.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import msgspec

from kbcore.clock import Clock, Moment, moment_after
from kbcore.errors import ChangesetIdReused, ContentRedacted, LimitExceeded
from kbcore.errors.remedies import for_shell
from kbcore.model import record
from kbcore.model.concepts import DEFINING
from kbcore.model.read_set import NOTHING, needs
from kbcore.model.record import Operation, Record, TakeChange
from kbcore.model.redaction.changes import taken_out_by_others
from kbcore.model.state import Draft, Stamp, StateReads, restamped
from kbcore.process import interrupting
from kbcore.storage import journal, known_damage
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.storage.witness import BranchWitness
from kbcore.store import answers
from kbcore.store.answers import Outcome
from kbcore.store.write_request import Author, Planner, Request
from kbcore.view import redacted_changes, replay
from kbcore.view.cache_files import CacheFiles
from kbcore.view.gaps import absent
from kbcore.view.pool import ViewPool
from kbcore.view.record_rows import FoldedRecord
from kbcore.view.view import View

T = TypeVar("T")

PLANS_AHEAD: Final = 3
"""Plans that are made before the branch is locked. A writer who changes what it reads each time makes it wait for
no more than that: the next one is made under the lock."""
_QUICK_S: Final = 0.05
"""A plan that took no longer, and cannot be used, is made again under the lock at once."""

_SOURCES: Final = """select (select count(*) from source where version > $1)
+ (select count(*) from source_history where ended > $1)"""
_NODES: Final = """select id, type, files from any_node where version > $1
union all select id, type, files from any_node_history where ended > $1"""
_LINKS: Final = """select id, from_id, to_id, files from link where version > $1
union all select id, from_id, to_id, files from link_history where ended > $1"""
"""Each version that a record made or ended."""


class StoreParts(msgspec.Struct, frozen=True):
    """The parts of a branch's store: its files, its cache and views, and the witness, None where none is kept."""

    fs: Fs
    clock: Clock
    directory: Path
    cache: CacheFiles
    views: ViewPool
    witness: BranchWitness | None


class Write(msgspec.Struct, frozen=True):
    """One write: who asks for what, how it is planned, and what is asked shortly before it is appended.

    ``guard`` refuses by raising, ``head_commit`` returns the commit that the record is made at, "" for none; both are
    called under the lock. ``loads`` has a view read what ``plan`` will ask it for, while the write waits for the lock.
    """

    author: Author
    request: Request
    plan: Planner
    branch: str
    guard: Callable[[], None] | None
    head_commit: Callable[[], str]
    loads: Callable[[View], object] | None


class MadeAt(NamedTuple):
    """The place of a record: the commit that is checked out, "" for none, and the id of the store."""

    commit: str = ""
    epoch: str = ""


class _Plan(NamedTuple):
    """A plan, and the moment and the stamp of the record that it would become."""

    now: Moment
    stamp: Stamp
    draft: Draft


class _PlanAhead(NamedTuple):
    """A plan that was made before the branch was locked: in which store, and after which record."""

    plan: _Plan
    store_id: str
    sum: str


class Commit:
    """One write to one store."""

    def __init__(self, store: StoreParts, write: Write) -> None:
        self._store = store
        self._write = write
        self._repairs: list[str] = []
        """The actions of recovery under the lock: stated in the record and in the answer."""
        self._unpublished: Callable[[], None] | None = None
        """Writes the rows of a record that no view has taken in."""

    def run(self) -> Outcome:
        """Append what is planned, once no writer changes meanwhile what the plan has read.

        Raises: as ``BranchStore.commit``, and ``MustAskGit`` where git has to be asked without the lock. It may be
        called again then.
        """
        plans_left = PLANS_AHEAD if self._write.request.plans_ahead else 0
        while True:
            ahead, took_s = self._plan_ahead() if plans_left else (None, 0.0)
            with self._locked() as writer:
                outcome = self._find_duplicate(writer.head)
                if outcome is None:
                    plan = self._plan_still(ahead, writer.head) if plans_left else self._ask(writer.head, self._plan_of)
                    outcome = self._append(writer, plan) if plan else None
            if outcome is not None:
                if self._unpublished is not None:
                    self._unpublished()
                return _with_warnings(outcome, self._repairs)
            plans_left = 0 if took_s < _QUICK_S else plans_left - 1

    def dry_run(self, head: Head) -> Outcome:
        """Plan and append nothing, but refuse what an append would refuse."""
        known = self._find_duplicate(head)
        if known:
            return known
        self._refuse_loss(head)
        known_damage.refuse(self._store.fs, self._store.directory, head, self._store.cache.directory)
        # It holds no lock, and may get a view of a later head than the one that was read.
        plan = self._ask(head, self._plan_of)
        if not plan.draft.is_empty:
            self._record_of(plan, MadeAt(epoch=head.store_id), self._write.request)
        return self._outcome_of(plan)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[journal.Writer]:
        """Hold the branch lock; what others write meanwhile is read before it is held."""
        store, request = self._store, self._write.request
        with journal.writing(
            store.fs,
            store.directory,
            store.clock,
            wait_s=request.lock_wait_s,
            command=self._write.author.tool,
            meanwhile=lambda: self._ask_at_head(self._load),
        ) as writer:
            self._refuse_loss(writer.head)
            known_damage.refuse(store.fs, store.directory, writer.head, store.cache.directory)
            self._repairs += writer.recovery.sentences()
            yield writer

    def _ask(self, head: Head, use: Callable[[View], T]) -> T:
        """Return ``use(view)`` on a view of this head, without waiting for those that read."""
        return self._store.views.ask(head, use, is_writing=True)

    def _ask_at_head(self, use: Callable[[View], T]) -> T:
        """Return ``use(view)`` on a view of the head of this moment."""
        return journal.reading(self._store.fs, self._store.directory, lambda head: self._ask(head, use))

    def _load(self, view: View) -> None:
        """Have a view load what the plan will ask it for."""
        view.prepare()
        if self._write.loads and not self._write.request.plans_ahead:
            self._write.loads(view)

    def _refuse_loss(self, head: Head) -> None:
        if self._store.witness is not None:
            self._store.witness.refuse(head)

    def _find_duplicate(self, head: Head) -> Outcome | None:
        """Return the answer that this changeset id got the first time, if it is known.

        Raises: ``ChangesetIdReused`` when it came with other content.
        """
        if not self._write.request.changeset_id:
            return None
        store, write = self._store, self._write
        return self._ask(
            head, lambda view: find_duplicate(store.fs, store.directory, view, write.request, write.branch)
        )

    def _plan_of(self, view: View) -> _Plan:
        # A view may show a later head than the one that was read: the time of the record comes after what it shows.
        now = moment_after(view.basis.at, self._store.clock.now())
        return _Plan(now, *make_draft(view, self._write.author, self._write.plan, now.at))

    def _plan_ahead(self) -> tuple[_PlanAhead | None, float]:
        """Plan on the state at the head of this moment; return the plan and how long that took, in seconds.

        There is none for a changeset that has an answer already.
        """
        clock = self._store.clock
        began_s = clock.monotonic_s()
        return self._ask_at_head(self._plan_ahead_of), clock.monotonic_s() - began_s

    def _plan_ahead_of(self, view: View) -> _PlanAhead | None:
        changeset_id = self._write.request.changeset_id
        if changeset_id and view.changeset(changeset_id):
            return None
        return _PlanAhead(self._plan_of(view), view.basis.store_id, view.basis.sum)

    def _plan_still(self, ahead: _PlanAhead | None, head: Head) -> _Plan | None:
        """Return a plan as one on the state at the head, which is locked; None when it may come out otherwise there.

        Where no record was added since, the time of the record is that of the plan, as when planning under the lock.
        """
        if ahead is None or ahead.store_id != head.store_id:
            return None
        old, draft = ahead.plan.stamp, ahead.plan.draft
        planned_on = old.seq - 1
        if (planned_on, ahead.sum) == (head.seq, head.hash):
            return ahead.plan

        def is_other(view: View) -> bool:
            return not view.has_record(planned_on, ahead.sum) or _is_moved(view, planned_on, draft.reads)

        if self._ask(head, is_other):
            return None
        now = moment_after(head.head.at, self._store.clock.now())
        stamp = msgspec.structs.replace(old, seq=head.seq + 1, at=now.at)
        return _Plan(now, stamp, msgspec.structs.replace(draft, changes=restamped(draft.changes, old, stamp)))

    def _append(self, writer: journal.Writer, plan: _Plan) -> Outcome:
        """Append the record of a plan, if it changes anything, and publish it to the views and the witness."""
        outcome = self._outcome_of(plan)
        if plan.draft.is_empty:
            return outcome
        before = writer.head
        made_at = MadeAt(self._write.head_commit(), before.store_id)
        request = msgspec.structs.replace(self._write.request, changeset_id=outcome.changeset_id)
        raw, written = self._record_of(plan, made_at, request)
        if self._write.guard:
            self._write.guard()
        self._note_redacted(before, plan.draft.ops)
        interrupting.note_commit()
        head = writer.append(raw, plan.stamp.at)
        return _with_warnings(outcome, self._publish(before, head, written, plan.draft))

    def _note_redacted(self, head: Head, ops: Sequence[Operation]) -> None:
        """Note what others took out of changes that a record brings: a file of another branch may have it still."""
        brought = {one.id: one.change for one in ops if isinstance(one, TakeChange) and one.change}
        if not any(one.is_redacted or one.message_hash for one in brought.values()):
            return
        from kbcore.view.claim_index_cache import BranchClaims  # noqa: PLC0415 - most records bring no such change

        store = self._store
        known = BranchClaims(store.fs, store.directory, store.cache).at(head).bodies(brought)
        found = taken_out_by_others((known.get(key, one), one) for key, one in brought.items())
        redacted_changes.note(store.fs, store.clock, store.directory.parent, found)

    def _record_of(self, plan: _Plan, made_at: MadeAt, request: Request) -> tuple[bytes, Record]:
        author, repair = self._write.author, " ".join(self._repairs)
        return make_record(author, request, plan.draft, plan.stamp, made_at, clock=plan.now.wall, repair=repair)

    def _publish(self, before: Head, head: Head, written: Record, draft: Draft) -> list[str]:
        """Have the views take in the record, and the witness note the head; return warnings about its notes.

        Under the lock: whoever sees this head then finds it noted, and need not note it as well. What takes long is
        left for afterwards.
        """
        start, length_bytes = before.head, head.head.length - before.head.length
        entry = FoldedRecord(head.seq, head.hash, written, start.file, start.length, length_bytes)
        if draft.encoded is None:
            self._store.views.adopt(entry, draft.changes, before, head)
        else:
            self._unpublished = partial(self._store.views.publish_rows, entry, draft.encoded, head)
        replaced = self._store.witness.note(head) if self._store.witness is not None else None
        return [replaced.was_replaced()] if replaced else []

    def _outcome_of(self, plan: _Plan) -> Outcome:
        """Return the answer to a request that is planned so."""
        request, draft = self._write.request, plan.draft
        will_write = not draft.is_empty and not request.dry_run
        summary = answers.summary_of(draft)
        return Outcome(
            branch=self._write.branch,
            seq=plan.stamp.seq if will_write else plan.stamp.seq - 1,
            changeset_id=request.changeset_id or secrets.token_hex(16),
            applied=will_write,
            duplicate=False,
            dry_run=request.dry_run,
            created=summary.created,
            updated=summary.updated,
            unchanged=draft.unchanged,
            deleted=summary.deleted,
            edges=summary.edges,
            warnings=draft.warnings,
            renamed=summary.renamed,
        )


def find_duplicate(fs: Fs, directory: Path, view: View, request: Request, branch: str) -> Outcome | None:
    """Return the answer that a changeset id got the first time, if a view of the store in a directory knows it.

    Raises: ``ChangesetIdReused`` when it came with other content; ``ContentRedacted`` when that is not known any more.
    """
    known = view.changeset(request.changeset_id)
    if known is None:
        return None
    seq, digest = known
    first = replay.record_at(fs, directory, view.past.records, seq)
    if request.digest and not digest and (first is None or first.redacted):
        raise ContentRedacted(
            f"The changeset {request.changeset_id!r} took effect at seq {seq}, and its record was redacted since: "
            "whether this is the same one is not known.",
            hint="Nothing has to be sent again. For other content use a new changeset_id, and leave the secret out.",
            data={"seq": seq},
        )
    if digest != request.digest:
        raise ChangesetIdReused(f"The changeset id {request.changeset_id!r} was used at seq {seq} with other content.")
    summary = answers.summarize_at(view, seq)
    note = () if first else (f"Only the id of this changeset is known: {absent(view.rows, seq)}.",)
    return Outcome(
        branch=branch,
        seq=seq,
        changeset_id=request.changeset_id,
        applied=not request.dry_run,
        duplicate=True,
        dry_run=request.dry_run,
        created=summary.created,
        updated=summary.updated,
        unchanged=first.unchanged if first else (),
        deleted=summary.deleted,
        edges=msgspec.structs.replace(summary.edges, unchanged=first.edges_unchanged if first else 0),
        warnings=first.warnings if first else note,
        renamed=summary.renamed,
    )


def make_draft(view: View, author: Author, plan: Planner, at: str) -> tuple[Stamp, Draft]:
    """Return what a planner makes of the state that a view is of, and the stamp of the record that it would become.

    Raises: what ``plan`` raises.
    """
    # The time is an object of its own, by which ``restamped`` knows it.
    stamp = Stamp(view.seq + 1, "".join([*at]), author.actor, author.source, author.session)
    draft = plan(view, stamp)
    lacking = NOTHING if draft.loaded.enough_for is draft.ops else needs(draft.ops) - draft.loaded
    if lacking:
        # What was not loaded counts as absent, and the changes would not be those of a replay.
        raise AssertionError(f"planned without looking at {lacking}")
    return stamp, draft


def make_record(
    author: Author, request: Request, draft: Draft, stamp: Stamp, made: MadeAt, *, clock: str, repair: str = ""
) -> tuple[bytes, Record]:
    """Return the record that a draft becomes, as bytes and as itself.

    ``made`` says where it is made, ``clock`` is the wall clock where it was behind (``Moment.wall``), ``repair`` what
    recovery did before it.

    Its sentences are in the words of the command line: a record is read by every front end, and has no marks.

    Raises: ``LimitExceeded`` when it is larger than the request allows.
    """
    written = Record(
        schema=record.vocabulary_of(draft.ops, restores=request.restores)
        if draft.encoded is None
        else draft.encoded.vocabulary,
        changeset_id=request.changeset_id,
        digest=request.digest,
        at=stamp.at,
        actor=author.actor,
        source=author.source,
        tool=author.tool,
        ops=draft.ops,
        message=request.message,
        unchanged=draft.unchanged,
        edges_unchanged=draft.edges_unchanged,
        warnings=tuple(map(for_shell, draft.warnings)),
        clock=clock,
        repair=for_shell(repair),
        commit=made.commit,
        session=author.session,
        epoch=made.epoch,
        restores=request.restores,
    )
    encoded = draft.encoded
    raw = record.encode(written) if encoded is None else record.encode_with(written, encoded.operations())
    if len(raw) > request.limit_bytes:
        raise LimitExceeded(f"The changeset makes a record of {len(raw)} bytes; the limit is {request.limit_bytes}.")
    return raw, written


def _with_warnings(outcome: Outcome, sentences: list[str]) -> Outcome:
    """Return the answer with more warnings."""
    return msgspec.structs.replace(outcome, warnings=(*outcome.warnings, *sentences))


def _is_moved(view: View, seq: int, reads: StateReads | None) -> bool:
    """Tell whether a plan made at a seq might come out otherwise on this view.

    False is certain; True may be said of a plan that would come out the same. Files are asked as one: what is known of
    any of them counts, because every sync has looked at all.
    """
    if view.seq == seq:
        return False
    if reads is None or not view.basis.history_from <= seq <= view.seq:
        return True
    if view.rows(_SOURCES, [seq])[0][0]:
        return True
    needs, paths = reads.needs, reads.paths
    nodes, types = needs.nodes | needs.typed.keys(), reads.types.union(DEFINING)
    for key, kind, files in view.rows(_NODES, [seq]):
        if key in nodes or kind in types or _is_of(files, paths):
            return True
    for key, from_id, to_id, files in view.rows(_LINKS, [seq]):
        if key in needs.links or from_id in needs.touching or to_id in needs.touching or _is_of(files, paths):
            return True
    return False


def _is_of(files: list[str], paths: frozenset[str] | None) -> bool:
    """Tell whether one of some files is among those that were asked for."""
    return bool(files) if paths is None else not paths.isdisjoint(files)
