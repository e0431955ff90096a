"""One branch's store: reading it at its head, and committing one changeset at a time.

A reader never blocks and never looks past the head. A writer answers only after the record is durable (``commit.py``).
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import msgspec

from kbcore.clock import Clock
from kbcore.errors import Damaged, GitUnusable, KBError, ReadOnlyStore, StorageError, UnknownBranch
from kbcore.git import MustAskGit
from kbcore.model.record import Record
from kbcore.model.state import Draft, Stamp
from kbcore.process import interrupting
from kbcore.storage import journal, known_damage
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.storage.loss import Loss
from kbcore.storage.witness import BranchWitness
from kbcore.store.answers import Outcome
from kbcore.store.commit import Commit, StoreParts, Write, find_duplicate
from kbcore.store.write_request import Author, Planner, Request
from kbcore.view import replay
from kbcore.view.cache_files import CacheFiles
from kbcore.view.pool import Overlay, ViewPool
from kbcore.view.view import View

if TYPE_CHECKING:
    from kbcore.view.claim_index import ClaimIndex
    from kbcore.view.claim_index_cache import BranchClaims
    from kbcore.view.text_index_cache import BranchTexts

T = TypeVar("T")
GIT_ASKED: Final = 10
"""Attempts to ask git which branch is checked out, because its refs changed before the branch was locked."""


def _no_commit() -> str:
    """Return what a record has that is made at no commit."""
    return ""


Publishing = Literal["at_once", "late", "in_background"]
"""The time at which a view with a long tail is published: before the answer; after it, when ``publish_when_due`` is
called, or before the next reading (a command that reads again needs the rows in tables anyway); or after it in another
thread, which calls ``publish_from_new_view``."""


class BranchStore:
    """The store of one branch. Make one per branch and keep it: its view then only takes in what is new."""

    def __init__(
        self,
        fs: Fs,
        clock: Clock,
        directory: Path,
        cache: CacheFiles,
        witness: BranchWitness | None = None,
        *,
        refused: Callable[[ReadOnlyStore], ReadOnlyStore] = lambda error: error,
        publishing: Publishing = "at_once",
        on_due: Callable[[BranchStore], object] = lambda _: None,
    ) -> None:
        """``witness`` notes outside of the store what is acknowledged; without one, no loss of records is noticed.

        ``refused`` returns the error to raise for a write that the system refuses. ``on_due`` is called where the view
        is to be published after the answer (``Publishing``). It must not wait.
        """
        self._publishing = publishing
        self._is_due = False
        self._on_due = on_due
        self._refused = refused
        self._damage = ""
        """The warning of noted damage, as of the last reading."""
        self._only_plans = False
        self._make: Callable[[], BranchStore] | None = None
        self.directory = directory
        self._parts = StoreParts(fs, clock, directory, cache, ViewPool(fs, directory, cache), witness)

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
        from kbcore.view.text_index_cache import BranchTexts  # noqa: PLC0415 - who asks for no text does not need its database

        return BranchTexts(self._parts.cache)

    @cached_property
    def changes(self) -> BranchClaims:
        """Return the index of the changes of this branch, for whoever shares or merges them."""
        from kbcore.view.claim_index_cache import BranchClaims  # noqa: PLC0415 - most branches have none

        return BranchClaims(self._parts.fs, self.directory, self._parts.cache)

    def claims(self, _: View | None = None) -> ClaimIndex:
        """Return the index of the changes with all records up to the head. Raises: what reading the journal raises."""
        return journal.reading(self._parts.fs, self.directory, self.changes.at)

    def head(self) -> Head:
        """Return the last acknowledged head.

        Raises: ``UnknownBranch``, ``HeadDamaged``, ``FormatTooNew``, ``StorageError``.
        """
        return journal.read_head(self._parts.fs, self.directory)

    @property
    def notices(self) -> list[str]:
        """Records of a view that the journal does not have; none while the second witness says more."""
        return [] if self.warnings else self._parts.views.notices

    @property
    def loss(self) -> Loss | None:
        """The missing records, as of the last reading."""
        return self._parts.witness.loss if self._parts.witness is not None else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Faults of the store as of the last reading: for every answer, until they are repaired."""
        return self.warnings_of(names_loss=True)

    def warnings_of(self, *, names_loss: bool) -> tuple[str, ...]:
        """Return the same with missing records, or without those."""
        witness = self._parts.witness
        found = [self._damage] if self._damage else []
        if witness is None:
            return tuple(found)
        if names_loss and witness.loss:
            found.append(witness.loss.warning())
        return (*found, *([witness.damaged.sentence()] if witness.damaged else []), *witness.copies)

    def close(self) -> None:
        """Close the views."""
        self._parts.views.close()

    def read(self, use: Callable[[View], T], *, publishes: bool = True) -> T:
        """Return ``use(view)`` on a view of the last acknowledged head.

        A view that turns out to be damaged is discarded, built again and asked again. Without ``publishes`` a view
        that is due to be published is left to a later reading: the answer to a write waits for this one.
        """
        return self._read(lambda head: self._parts.views.ask(head, use), publishes=publishes)

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
                self._parts.views.keep_overlay(mark)
            if mark == "":
                return self._parts.views.ask(head, use)
            return self._parts.views.ask_overlaid(head, mark or "", find, use)

        return self._read(at)

    def _read(self, ask: Callable[[Head], T], *, publishes: bool = True) -> T:
        """Return ``ask(head)`` for the last acknowledged head, and publish a view if that is due."""
        if publishes and self._is_due and self._publishing == "late":
            self.publish_when_due()

        def at(head: Head) -> T:
            self._check(head)
            return ask(head)

        with self._noting_damage():
            answer = journal.reading(self._parts.fs, self.directory, at)
        self._note_due()
        return answer

    def view_until(self, seq: int) -> View:
        """Return a view in memory of the state at an earlier seq, from the journal's part up to there alone.

        For a journal whose later part is damaged; in all other cases a view of the head answers for every seq.
        The caller closes it.

        Raises: ``JournalCorrupt``, ``JournalTruncated`` when the damage is before ``seq``; ``HistoryPruned``.
        """
        head = self.head()
        self._check(head)
        return self._parts.views.until(head, seq)

    def record_at(self, view: View, seq: int) -> Record | None:
        """Return the record at a seq as it is in the journal; None when its line was pruned."""
        return replay.record_at(self._parts.fs, self.directory, view.past.records, seq)

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
        ``MustAskGit``, git is asked without the lock, and all begins again: a slow git keeps no other writer waiting.
        ``plan`` is called again then, and, on another state, when that is not the head's any more (``plans_ahead``).
        ``head_commit`` returns the commit that the record is made at, "" for none; it is called under the lock too.
        ``loads`` has a view read what ``plan`` will ask it for; it is called where there is a wait for the lock, and
        ``plan`` then finds that in memory. It must not take long: others wait meanwhile. Where plans are made ahead it
        is not called.

        Raises: ``StoreWentBack`` when acknowledged records are missing; what ``plan`` and ``guard`` raise;
        ``ChangesetIdReused``, ``LimitExceeded``, ``LockTimeout``, ``CommitUncertain`` and the other errors of the
        journal, each saying truthfully whether it was applied.
        """
        write = Write(author, request, plan, branch, guard, head_commit, loads)
        if request.dry_run:
            return self._dry_run(write)
        if self._make is not None:
            return self._commit_to_new_store(write, self._make)
        if self._only_plans:
            message = f"{branch} has no store yet, and this request only plans what it would write."
            raise ReadOnlyStore(message, hint="Send it without the dry run.")
        return self._commit(write)

    def _commit(self, write: Write) -> Outcome:
        interrupting.begin_part()
        try:
            with self._noting_damage():
                self._prepare()
                outcome = _asking(Commit(self._parts, write).run)
        except ReadOnlyStore as error:
            raise self._refused(error) from error
        except (StorageError, UnknownBranch):
            # git may have renamed the branch meanwhile, and its store goes by the new name: the guard says so.
            if write.guard:
                _asking(write.guard)
            raise
        self._note_due()
        return outcome

    def _dry_run(self, write: Write) -> Outcome:
        with self._noting_damage():
            return journal.reading(self._parts.fs, self.directory, Commit(self._parts, write).dry_run)

    def _commit_to_new_store(self, write: Write, make: Callable[[], BranchStore]) -> Outcome:
        """Make the store for a write that is not refused and changes something, and commit it there."""
        drafts: list[Draft] = []

        def plan(view: View, stamp: Stamp) -> Draft:
            drafts.append(write.plan(view, stamp))
            return drafts[-1]

        request = msgspec.structs.replace(write.request, dry_run=True)
        tried = self._dry_run(msgspec.structs.replace(write, request=request, plan=plan))
        if tried.duplicate or drafts[-1].is_empty:
            return msgspec.structs.replace(tried, dry_run=False, applied=tried.duplicate)
        return make()._commit(write)  # noqa: SLF001 - it is of this class

    def find_duplicate(self, view: View, request: Request, branch: str) -> Outcome | None:
        """Return the answer that this changeset id got the first time, if a view knows it.

        Raises: ``ChangesetIdReused`` when it came with other content.
        """
        return find_duplicate(self._parts.fs, self.directory, view, request, branch)

    def publish_when_due(self) -> None:
        """Publish the view that this process uses, if its tail has grown long enough.

        For the end of a command, when the answer is written: the view is not used by then. Nothing is published
        for a store that was removed or replaced meanwhile.
        """
        self._is_due = False
        with contextlib.suppress(KBError):
            self._parts.views.publish_when_due(self.head())

    def publish_from_new_view(self, wait_s: float) -> None:
        """Publish a view that is opened for this, while other threads go on with the views that they have.

        Another process that publishes is waited for, up to ``wait_s``: its view will do.
        """
        self._parts.views.publish_from_new_view(self._parts.clock, wait_s)

    def _note_due(self) -> None:
        """Have the view published if it is due. What was answered does not depend on it."""
        if self._publishing == "at_once":
            self._parts.views.publish_when_due()
            return
        self._is_due = self._parts.views.is_publishing_due()
        if self._is_due:
            self._on_due(self)

    def _prepare(self) -> None:
        """Do before the branch is locked what takes longer than a commit: build a view, or take in many records."""
        if self._parts.witness is not None:
            self._parts.witness.prepare()

        def at(head: Head) -> None:
            self._check(head)
            if not self._parts.views.is_ready(head):
                self._parts.views.ask(head, View.prepare, is_writing=True)

        journal.reading(self._parts.fs, self.directory, at)

    @contextlib.contextmanager
    def _noting_damage(self) -> Iterator[None]:
        try:
            yield
        except Damaged as error:
            self._damage = ""  # the error says it
            with contextlib.suppress(KBError):
                known_damage.note(
                    self._parts.fs, self._parts.cache.directory, self.head(), error.code, str(error.data.get("file"))
                )
            raise

    def _check(self, head: Head) -> None:
        self._damage = known_damage.warning(self._parts.fs, head, self._parts.cache.directory)
        if self._parts.witness is not None:
            loss = self._parts.witness.check(head)
            self._parts.views.note_lost(loss.store_id if loss else "")


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
