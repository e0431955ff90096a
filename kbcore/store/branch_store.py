"""One branch's store: reading it at its head, and committing one changeset at a time.

A reader never blocks and never looks past the head. A writer answers only after the record is durable. Whatever it
appends was planned on the state at the head, as far as the plan has read it: it plans under the branch lock, or before
it and looks again under the lock.
"""

from __future__ import annotations

import contextlib
import copy
import secrets
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar

import msgspec

from kbcore import interrupting, limits
from kbcore.clock import Clock, Moment, moment_after
from kbcore.errors import (
    ChangesetIdReused,
    Damaged,
    GitUnusable,
    KBError,
    LimitExceeded,
    ReadOnlyStore,
    StorageError,
    UnknownBranch,
)
from kbcore.git import MustAskGit
from kbcore.model import record
from kbcore.model.read_set import NOTHING, needs
from kbcore.model.record import Record
from kbcore.model.state import Draft, Stamp, restamped
from kbcore.storage import journal, known_damage
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.storage.journal import Position
from kbcore.storage.witness import BranchWitness, Loss
from kbcore.store import answers
from kbcore.store.answers import Outcome
from kbcore.text.escaping import escape_controls
from kbcore.view.branch_view import BranchView, Overlay
from kbcore.view.cache import ViewCache
from kbcore.view.changed_since import is_moved
from kbcore.view.fold import FoldedRecord
from kbcore.view.gaps import absent
from kbcore.view.view import View

if TYPE_CHECKING:
    from kbcore.view.text_search import BranchTexts

T = TypeVar("T")

_MAX_SESSION_CHARS: Final = 100


class Author(msgspec.Struct, frozen=True):
    """Who writes (``actor``), through what (``source``), with which program and version (``tool``).

    ``session`` is the same for all writes that belong together, "" where nothing says so.
    """

    actor: str
    source: str
    tool: str
    session: str = ""


def session_name(text: str) -> str:
    """Return the name of a session as records have it: on one line, with whole escapes, cut to 100 characters."""
    shown = ""
    for one in map(escape_controls, text.strip()[:_MAX_SESSION_CHARS]):
        if len(shown) + len(one) > _MAX_SESSION_CHARS:
            break
        shown += one
    return shown


class MadeAt(NamedTuple):
    """Where a record is made: the commit that is checked out, "" for none, and the id of the store."""

    commit: str = ""
    epoch: str = ""


class Request(msgspec.Struct, frozen=True):
    """What frames a write: the client's id for retries, the digest of its content, and why."""

    changeset_id: str = ""
    digest: str = ""
    message: str = ""
    dry_run: bool = False
    limit_bytes: int = limits.MAX_CHANGESET_BYTES
    lock_wait_s: float = limits.LOCK_WAIT_S
    """How long to wait for other writers, by the configuration in force."""

    plans_ahead: bool = False
    """Planning may take long: it is done before the branch is locked, and again when somebody changes what it read."""


def _no_commit() -> str:
    """Return what a record has that is made at no commit."""
    return ""


Publishing = Literal["at_once", "late", "beside"]
"""When a view is published whose tail has grown long: before the answer; after it, when ``publish_when_due`` is called
or before the next reading (a command that reads again needs the rows in tables anyway); or after it in another thread,
which calls ``publish_beside``."""

PLANS_AHEAD: Final = 3
"""How often a plan is made before the branch is locked. Somebody who changes what it reads each time makes it wait for
no more than that: the next one is made under the lock."""
GIT_ASKED: Final = 10
"""How often git is asked again which branch is checked out, because its refs changed before the branch was locked."""
_QUICK_S: Final = 0.05
"""A plan that took no longer, and cannot be used, is made again under the lock at once."""


Planner = Callable[[View, Stamp], Draft]


class Ahead(msgspec.Struct, frozen=True):
    """A plan that was made before the branch was locked, and where and when: in which store, after which record."""

    now: Moment
    stamp: Stamp
    draft: Draft
    store_id: str
    sum: str


class BranchStore:
    """The store of one branch. Make one per branch and keep it: its view then only takes in what is new."""

    def __init__(
        self,
        fs: Fs,
        clock: Clock,
        directory: Path,
        cache: ViewCache,
        witness: BranchWitness | None = None,
        *,
        refused: Callable[[ReadOnlyStore], ReadOnlyStore] = lambda error: error,
        publishing: Publishing = "at_once",
        on_due: Callable[[BranchStore], object] = lambda _: None,
    ) -> None:
        """``witness`` notes what is acknowledged apart from the store; without one, no loss of records is noticed.

        ``refused`` returns the error to raise for a write that the system refuses. ``on_due`` is called where the view
        is to be published after the answer (``Publishing``). It must not wait.
        """
        self._publishing = publishing
        self._is_due = False
        self._on_due = on_due
        self._refused = refused
        self._fs = fs
        self._clock = clock
        self._cache = cache
        self._seen = BranchView(fs, directory, cache)
        self._witness = witness
        self._only_plans = False
        self._make: Callable[[], BranchStore] | None = None
        self.directory = directory

    @cached_property
    def trial(self) -> BranchStore:
        """This store with the same view, for what plans the writes of a branch without a store: it takes no record."""
        trial = copy.copy(self)
        trial._only_plans = True  # noqa: SLF001 - it is of this class
        return trial

    def planning(self, make: Callable[[], BranchStore]) -> BranchStore:
        """Return the same for a branch whose store ``make`` makes for its first record, once that is planned here."""
        planning = copy.copy(self.trial)
        planning._make = make
        return planning

    @cached_property
    def texts(self) -> BranchTexts:
        """Return the index of text, for whoever searches in a view that ``read`` gives."""
        from kbcore.view.text_search import BranchTexts  # noqa: PLC0415 - who asks for no text does not need its database

        return BranchTexts(self._fs, self._cache)

    def head(self) -> Head:
        """Return the last acknowledged head.

        Raises: ``UnknownBranch``, ``HeadDamaged``, ``FormatTooNew``, ``StorageError``.
        """
        return journal.read_head(self._fs, self.directory)

    @property
    def notices(self) -> list[str]:
        """What a view knew of records that the journal does not have; nothing while the second witness says more."""
        return [] if self.warnings else self._seen.notices

    @property
    def loss(self) -> Loss | None:
        """What the store lacks, as of the last reading."""
        return self._witness.loss if self._witness is not None else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the store as of the last reading: for every answer, until it is put right."""
        if self._witness is None:
            return ()
        loss = self._witness.loss
        said = [loss.warning()] if loss else []
        damaged = self._witness.damaged
        return (*said, *([damaged.sentence()] if damaged else []), *self._witness.copies)

    def close(self) -> None:
        """Let go of the view."""
        self._seen.close()

    def read(self, use: Callable[[View], T], *, publishes: bool = True) -> T:
        """Return ``use(view)`` on a view of the last acknowledged head.

        A view that turns out to be damaged is discarded, built again and asked again. Without ``publishes`` a view
        that is due to be published is left to a later reading: the answer to a write waits for this one.
        """
        return self._read(lambda head: self._seen.ask(head, use), publishes=publishes)

    def read_overlaid(
        self,
        known: Callable[[Head], str | None],
        find: Callable[[View], Overlay | None],
        use: Callable[[View], T],
    ) -> T:
        """Return ``use(view)`` on a view of the last acknowledged head, with changes that are in no record.

        ``known`` returns the mark of the changes for a head, "" where there are none, None where that has to be found
        out: then ``find`` says what they are, None for none, of a view of the head.

        Raises: what ``find`` and ``use`` raise; as ``read``.
        """

        def at(head: Head) -> T:
            mark = known(head)
            if mark is not None:
                self._seen.keep_overlay(mark)
            if mark == "":
                return self._seen.ask(head, use)
            return self._seen.ask_overlaid(head, mark or "", find, use)

        return self._read(at)

    def _read(self, ask: Callable[[Head], T], *, publishes: bool = True) -> T:
        """Return ``ask(head)`` for the last acknowledged head, and publish a view if that is due."""
        if publishes and self._is_due and self._publishing == "late":
            self.publish_when_due()

        def at(head: Head) -> T:
            self._check(head)
            return ask(head)

        with self._noting_damage():
            answer = journal.reading(self._fs, self.directory, at)
        self._note_due()
        return answer

    def view_until(self, seq: int) -> View:
        """Return a view in memory of the state at an earlier seq, from the journal's part up to there alone.

        For a journal whose later part is damaged; in all other cases a view of the head answers for every seq.
        The caller closes it.

        Raises: ``JournalCorrupt``, ``JournalTruncated`` when the damage lies before ``seq``; ``HistoryPruned``.
        """
        head = self.head()
        self._check(head)
        return self._seen.until(head, seq)

    def record_at(self, view: View, seq: int) -> Record | None:
        """Return the record at a seq as it stands in the journal; None when its line was pruned."""
        rows = view.rows("select file, offset_bytes, seq from record where seq = ?", [seq])
        if not rows or not rows[0][0]:
            return None
        before = view.rows("select sum from record where seq = ?", [seq - 1])
        head = self.head()
        bases = {part.file: part.base_hash for part in head.segments if part.first_seq == seq}
        previous = bases.get(rows[0][0]) or (before[0][0] if before else head.lineage)
        found = journal.read_one(self._fs, self.directory, head, Position(seq - 1, previous, rows[0][0], rows[0][1]))
        return record.decode(found.frame.rec, seq=seq)

    def commit(
        self,
        author: Author,
        request: Request,
        plan: Planner,
        *,
        guard: Callable[[], None] | None = None,
        head_commit: Callable[[], str] = _no_commit,
        loads: Callable[[View], object] | None = None,
        branch: str,
    ) -> Outcome:
        """Plan a changeset on the state at the head and append it as one record, all or nothing.

        ``guard`` runs last before anything is written, under the lock, and refuses by raising. Where it raises
        ``MustAskGit``, git is asked without the lock, and all begins again: a slow git keeps nobody else from writing.
        ``plan`` is called again then, and, on another state, when that is not the head's any more (``plans_ahead``).
        ``head_commit`` returns the commit that the record is made at, "" for none; it is called under the lock too.
        ``loads`` has a view read what ``plan`` will ask it for; it is called where there is a wait for the lock, and
        ``plan`` then finds that in memory. It must not take long: others wait meanwhile. Where plans are made ahead it
        is not called.

        Raises: ``StoreWentBack`` when acknowledged records are missing; what ``plan`` and ``guard`` raise;
        ``ChangesetIdReused``, ``LimitExceeded``, ``LockTimeout``, ``CommitUncertain`` and the other errors of the
        journal, each saying truthfully whether it was applied.
        """
        if self._make is not None and not request.dry_run:
            # What refuses it makes no store, and nor does what would write no record.
            drafts: list[Draft] = []

            def noted(view: View, stamp: Stamp) -> Draft:
                drafts.append(plan(view, stamp))
                return drafts[-1]

            tried = self.commit(author, msgspec.structs.replace(request, dry_run=True), noted, branch=branch)
            if drafts and not drafts[-1].changes:
                return msgspec.structs.replace(tried, dry_run=False)
            made = self._make()
            return made.commit(author, request, plan, guard=guard, head_commit=head_commit, loads=loads, branch=branch)
        if self._only_plans and not request.dry_run:
            message = f"{branch} has no store yet, and this request only plans what it would write."
            raise ReadOnlyStore(message, hint="Send it without the dry run.")
        if request.dry_run:
            return journal.reading(
                self._fs,
                self.directory,
                lambda head: (
                    self._first_answer(head, request, branch) or self._tried(author, request, plan, head, branch)
                ),
            )
        interrupting.begin_part()
        try:
            with self._noting_damage():
                self._prepare()
                repairs: list[str] = []
                outcome = _asking(
                    lambda: self._committed(
                        author, request, plan, guard, loads, head_commit=head_commit, branch=branch, repairs=repairs
                    )
                )
        except ReadOnlyStore as error:
            raise self._refused(error) from error
        except (StorageError, UnknownBranch):
            # git may have renamed the branch meanwhile, and its store goes by the new name: the guard says so.
            if guard:
                _asking(guard)
            raise
        self._note_due()
        return outcome

    def publish_when_due(self) -> None:
        """Publish the view that this process uses, if its tail has grown long enough.

        For the end of a command, when the answer is written: nobody else uses the view by then. Nothing is published
        for a store that was removed or replaced meanwhile.
        """
        self._is_due = False
        with contextlib.suppress(KBError):
            self._seen.publish_when_due(self.head())

    def publish_beside(self, wait_s: float) -> None:
        """Publish a view that is opened for this, while other threads go on with the views that they have.

        Another process that publishes is waited for, up to ``wait_s``: its view will do.
        """
        self._seen.publish_beside(self._clock, wait_s)

    def _note_due(self) -> None:
        """Have the view published if it is due. What was answered does not depend on it."""
        if self._publishing == "at_once":
            self._seen.publish_when_due()
            return
        self._is_due = self._seen.is_publishing_due()
        if self._is_due:
            self._on_due(self)

    def _prepare(self) -> None:
        """Do before the branch is locked what takes longer than a commit: build a view, or take in many records."""
        if self._witness is not None:
            self._witness.prepare()

        def at(head: Head) -> None:
            self._check(head)
            if not self._seen.is_ready(head):
                self._seen.ask(head, View.prepare, is_writing=True)

        journal.reading(self._fs, self.directory, at)

    @contextlib.contextmanager
    def _noting_damage(self) -> Iterator[None]:
        try:
            yield
        except Damaged as error:
            with contextlib.suppress(KBError):
                known_damage.note(self._fs, self._cache.directory, self.head(), error.code, str(error.data.get("file")))
            raise

    def _check(self, head: Head) -> None:
        if self._witness is not None:
            loss = self._witness.check(head)
            self._seen.lost_id = loss.store_id if loss else ""

    def _refuse(self, head: Head) -> None:
        if self._witness is not None:
            self._witness.refuse(head)

    def _committed(
        self,
        author: Author,
        request: Request,
        plan: Planner,
        guard: Callable[[], None] | None,
        loads: Callable[[View], object] | None,
        *,
        head_commit: Callable[[], str],
        branch: str,
        repairs: list[str],
    ) -> Outcome:
        """Append under the branch lock what is planned there, or was planned before and comes to the same there.

        What was repaired is added to ``repairs``, and stated in the record.
        """
        left = PLANS_AHEAD if request.plans_ahead else 0

        def read_ahead(head: Head) -> None:
            def on(view: View) -> None:
                view.prepare()
                if loads and not request.plans_ahead:
                    loads(view)

            self._seen.ask(head, on, is_writing=True)

        while True:
            began_s = self._clock.monotonic_s()
            ahead = self._plan_ahead(author, request, plan) if left else None
            is_quick = self._clock.monotonic_s() - began_s < _QUICK_S
            with journal.writing(
                self._fs,
                self.directory,
                self._clock,
                wait_s=request.lock_wait_s,
                command=author.tool,
                # What others write meanwhile is read before it holds the lock, and so is what the plan will ask for.
                meanwhile=lambda: journal.reading(self._fs, self.directory, read_ahead),
            ) as writer:
                self._refuse(writer.head)
                known_damage.refuse(self._fs, self.directory, writer.head, self._cache.directory)
                repairs += writer.recovery.sentences()
                first = self._first_answer(writer.head, request, branch)
                if first:
                    return _with_warnings(first, repairs)
                planned = self._still(ahead, writer.head) if left else self._planned(author, plan, writer.head)
                if planned is None:
                    left = 0 if is_quick else left - 1
                    continue
                now, stamp, draft = planned
                outcome = _outcome(request, stamp, draft, branch)
                if not draft.changes:
                    return _with_warnings(outcome, repairs)
                named = msgspec.structs.replace(request, changeset_id=outcome.changeset_id)
                made = MadeAt(head_commit(), writer.head.store_id)
                raw, written = recorded(author, named, draft, stamp, made, clock=now.wall, repair=" ".join(repairs))
                if guard:
                    guard()
                before = writer.head
                start = before.head
                interrupting.note_commit()
                head = writer.append(raw, stamp.at)
                length = head.head.length - start.length
                entry = FoldedRecord(head.seq, head.hash, written, start.file, start.length, length)
                self._seen.adopt(entry, draft.changes, before, head)
                if self._witness is not None:
                    # Under the lock: whoever sees this head then finds it noted, and need not note it as well.
                    replaced = self._witness.note(head)
                    outcome = _with_warnings(outcome, [replaced.was_replaced()] if replaced else [])
            return _with_warnings(outcome, repairs)

    def _tried(self, author: Author, request: Request, plan: Planner, head: Head, branch: str) -> Outcome:
        """Plan and append nothing, but refuse what an append would refuse."""
        self._refuse(head)
        # It holds no lock, and may get a view of a later head than the one that was read.
        now, stamp, draft = self._planned(author, plan, head)
        if draft.changes:
            recorded(author, request, draft, stamp, MadeAt(epoch=head.store_id), clock=now.wall)
        return _outcome(request, stamp, draft, branch)

    def _planned(self, author: Author, plan: Planner, head: Head) -> tuple[Moment, Stamp, Draft]:
        def on(view: View) -> tuple[Moment, Stamp, Draft]:
            now = self._moment_on(view)
            return now, *drafted(view, author, plan, now.at)

        return self._seen.ask(head, on, is_writing=True)

    def _moment_on(self, view: View) -> Moment:
        """Return the time of a record that is written after what a view shows, which may be a later head's."""
        return moment_after(view.basis.at, self._clock.now())

    def _plan_ahead(self, author: Author, request: Request, plan: Planner) -> Ahead | None:
        """Return a plan on the state at the head of this moment; None for a changeset that has an answer already."""

        def on(view: View) -> Ahead | None:
            if request.changeset_id and view.changeset(request.changeset_id):
                return None
            # An object of its own, by which ``restamped`` knows it.
            now = self._moment_on(view)
            stamp, draft = drafted(view, author, plan, "".join([*now.at]))
            return Ahead(now, stamp, draft, view.basis.store_id, view.basis.sum)

        return journal.reading(self._fs, self.directory, lambda head: self._seen.ask(head, on, is_writing=True))

    def _still(self, ahead: Ahead | None, head: Head) -> tuple[Moment, Stamp, Draft] | None:
        """Return a plan as one on the state at the head, which is locked; None when it may come out otherwise there.

        Where nobody wrote since, the time of the record is that of the plan, as when planning under the lock.
        """
        if ahead is None or ahead.store_id != head.store_id:
            return None
        old, draft = ahead.stamp, ahead.draft
        if (old.seq - 1, ahead.sum) == (head.seq, head.hash):
            return ahead.now, old, draft
        if self._seen.ask(
            head,
            lambda view: not view.has_record(old.seq - 1, ahead.sum) or is_moved(view, old.seq - 1, draft.reads),
            is_writing=True,
        ):
            return None
        now = moment_after(head.head.at, self._clock.now())
        stamp = msgspec.structs.replace(old, seq=head.seq + 1, at=now.at)
        return now, stamp, msgspec.structs.replace(draft, changes=restamped(draft.changes, old, stamp))

    def _first_answer(self, head: Head, request: Request, branch: str) -> Outcome | None:
        """Return the answer that this changeset id got the first time, if it is known.

        Raises: ``ChangesetIdReused`` when it came with other content.
        """
        if not request.changeset_id:
            return None
        return self._seen.ask(head, lambda view: self.answered(view, request, branch), is_writing=True)

    def answered(self, view: View, request: Request, branch: str) -> Outcome | None:
        """Return the answer that this changeset id got the first time, if a view knows it.

        Raises: ``ChangesetIdReused`` when it came with other content.
        """
        if not request.changeset_id:
            return None
        known = view.changeset(request.changeset_id)
        if known is None:
            return None
        seq, digest = known
        if digest != request.digest:
            raise ChangesetIdReused(
                f"The changeset id {request.changeset_id!r} was used at seq {seq} with other content."
            )
        first = self.record_at(view, seq)
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


def _outcome(request: Request, stamp: Stamp, draft: Draft, branch: str) -> Outcome:
    """Return the answer to a request that is planned so."""
    will_write = bool(draft.changes) and not request.dry_run
    summary = answers.summarize(draft.changes, draft.edges_unchanged)
    return Outcome(
        branch=branch,
        seq=stamp.seq if will_write else stamp.seq - 1,
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


def _asking(act: Callable[[], T]) -> T:
    """Return what ``act`` returns, done again each time that git had to be asked first; nothing is locked meanwhile.

    Raises: ``GitUnusable`` when git does not get done; what ``act`` raises.
    """
    for _ in range(GIT_ASKED):
        try:
            return act()
        except MustAskGit as unknown:
            unknown.ask()
    raise GitUnusable("git keeps changing its refs.", hint="Run it again when git is done.")


def drafted(view: View, author: Author, plan: Planner, at: str) -> tuple[Stamp, Draft]:
    """Return what a planner makes of the state that a view is of, and the stamp of the record that it would become.

    Raises: what ``plan`` raises.
    """
    stamp = Stamp(view.seq + 1, at, author.actor, author.source, author.session)
    draft = plan(view, stamp)
    lacking = NOTHING if draft.loaded.enough_for is draft.ops else needs(draft.ops) - draft.loaded
    if lacking:
        # What was not loaded counts as absent, and the changes would not be those of a replay.
        raise AssertionError(f"planned without looking at {lacking}")
    return stamp, draft


def recorded(
    author: Author, request: Request, draft: Draft, stamp: Stamp, made: MadeAt, *, clock: str, repair: str = ""
) -> tuple[bytes, Record]:
    """Return the record that a draft becomes, as bytes and as itself.

    ``made`` says where it is made, ``clock`` is the wall clock where it was behind (``Moment.wall``), ``repair`` what
    recovery did before it.

    Raises: ``LimitExceeded`` when it is larger than the request allows.
    """
    written = Record(
        schema=record.VOCABULARY,
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
        warnings=draft.warnings,
        clock=clock,
        repair=repair,
        commit=made.commit,
        session=author.session,
        epoch=made.epoch,
    )
    raw = record.encode(written)
    if len(raw) > request.limit_bytes:
        raise LimitExceeded(f"The changeset makes a record of {len(raw)} bytes; the limit is {request.limit_bytes}.")
    return raw, written


def _with_warnings(outcome: Outcome, sentences: list[str]) -> Outcome:
    """Return the answer with what recovery did before it."""
    return msgspec.structs.replace(outcome, warnings=(*outcome.warnings, *sentences))
