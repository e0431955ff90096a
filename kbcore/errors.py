"""Every error that KB raises on purpose; each class fixes its code, exit status and remedy.

KBError
├─ Rejected       nothing written, mend the request
│    InvalidChangeset · IntegrityViolation · StaleBase · ChangesetIdReused · LimitExceeded
│    DerivedFact · BranchMoved · RevertConflict
├─ Unavailable    nothing written, try later
│    LockTimeout · LockUnsupported · StorageFull · ReadOnlyStore · StorageError
├─ CommitUncertain  may or may not be durable; retry with the same changeset id
├─ Damaged        stop; a person decides
│    JournalCorrupt · JournalTruncated · HeadDamaged · SnapshotCorrupt · ForeignWrite
├─ Incompatible   written by a newer KB
│    FormatTooNew
└─ Misuse         wrong place, name or argument
     NotARepository · NotInitialised · UnknownBranch · InvalidConfig · NotFound · InvalidQuery
     HistoryPruned · GitUnusable

Anything else that is raised is a bug: it propagates and is reported, never swallowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import msgspec

Applied = Literal["no", "yes", "unknown"]


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing wrong with a request, at one place.

    ``path`` is a JSON path such as ``$.entities[0].title``; ``code`` is stable; ``hint`` says what to do;
    ``source`` is the file that states the fact, with its line where that is known.
    """

    path: str
    code: str
    message: str
    hint: str = ""
    source: str = ""


class KBError(Exception):
    """A failure that KB explains. Subclasses fix the facts; instances add the words."""

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 9
    retryable: ClassVar[bool] = False
    applied: ClassVar[Applied] = "no"
    default_hint: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        details: Sequence[Problem] = (),
        data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint
        self.details = tuple(details)
        self.data = dict(data or {})

    def as_json(self) -> dict[str, Any]:
        """Return the body of ``{"error": …}`` as the contract fixes it; ``data`` keys are added to it."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
            "applied": self.applied,
            "details": [msgspec.to_builtins(problem) for problem in self.details],
            **self.data,
        }


class Rejected(KBError):
    """The request cannot be carried out as it stands; nothing was written."""


class InvalidChangeset(Rejected):
    """The request has the wrong shape or unknown names."""

    code = "invalid_changeset"
    exit_status = 10
    default_hint = "Mend every listed problem and send the changeset again; nothing was written."


class IntegrityViolation(Rejected):
    """The state after the changeset would break a reference or an endpoint type."""

    code = "integrity_violation"
    exit_status = 11
    default_hint = "Write the missing ends in the same changeset, or leave the edge out."


class StaleBase(Rejected):
    """Something that the changeset names changed after the seq that the client had read."""

    code = "stale_base"
    exit_status = 12
    default_hint = "Read the listed elements again, then send the changeset with the new expected_seq."


class ChangesetIdReused(Rejected):
    """A changeset id came back with other content."""

    code = "changeset_id_reused"
    exit_status = 13
    default_hint = "Use a new changeset_id for new content; the earlier changeset stands as it was."


class LimitExceeded(Rejected):
    """A request or a value is larger than KB takes."""

    code = "limit_exceeded"
    exit_status = 14
    default_hint = "Split the request into smaller ones."


class DerivedFact(Rejected):
    """The fact is stated by a file; the file is what to edit."""

    code = "derived_fact"
    exit_status = 15
    default_hint = "Edit the named file and run `kb sync`."


class BranchMoved(Rejected):
    """HEAD moved to another branch while the request ran."""

    code = "branch_moved"
    exit_status = 16
    retryable = True
    default_hint = "Check which branch you want, then send the request again."


class RevertConflict(Rejected):
    """A later record changed what the revert would undo."""

    code = "revert_conflict"
    exit_status = 17
    default_hint = "Revert the later records first, or use --force to take the old values all the same."


class Unavailable(KBError):
    """Nothing was written; the same request may work later."""

    retryable = True


class LockTimeout(Unavailable):
    """Another process held the branch for longer than the lock wait."""

    code = "lock_timeout"
    exit_status = 20
    default_hint = "Wait for the named process, or end it; the lock is freed when it dies."


class LockUnsupported(Unavailable):
    """The file system cannot lock, so writing would not be safe."""

    code = "lock_unsupported"
    exit_status = 21
    retryable = False
    default_hint = "Keep the repository on a local file system."


class StorageFull(Unavailable):
    """The disk or the quota is full."""

    code = "storage_full"
    exit_status = 22
    default_hint = "Free some space and send the same request again; queries keep working meanwhile."


class ReadOnlyStore(Unavailable):
    """The store cannot be written by this user or on this mount."""

    code = "read_only_store"
    exit_status = 23
    retryable = False
    default_hint = "Give the user write permission on .kb, or remount read-write; queries keep working."


class StorageError(Unavailable):
    """The operating system refused a call on the store."""

    code = "storage_error"
    exit_status = 24
    default_hint = "Look at the named file and at the system log, then try again."


class CommitUncertain(KBError):
    """The record was written, and whether it is durable is not known."""

    code = "commit_uncertain"
    exit_status = 30
    retryable = True
    applied = "unknown"
    default_hint = "Send the same changeset again with the same changeset_id; it takes effect at most once."


class Damaged(KBError):
    """The store is not as KB left it; nothing is written until a person decides."""

    default_hint = "Run `kb doctor`: it says what is known to be good, and writes nothing."


class JournalCorrupt(Damaged):
    """Acknowledged bytes of the journal are not what was written."""

    code = "journal_corrupt"
    exit_status = 40


class JournalTruncated(Damaged):
    """The journal is shorter than its head says."""

    code = "journal_truncated"
    exit_status = 41


class HeadDamaged(Damaged):
    """The head file is missing or unreadable although there is a journal."""

    code = "head_damaged"
    exit_status = 42
    default_hint = "Run `kb doctor`; `kb doctor --rebuild-head` makes a new head and says what it cannot prove."


class SnapshotCorrupt(Damaged):
    """A snapshot does not hold what its digest says."""

    code = "snapshot_corrupt"
    exit_status = 43


class ForeignWrite(Damaged):
    """Somebody wrote to the journal without taking the lock."""

    code = "foreign_write"
    exit_status = 44


class Incompatible(KBError):
    """The store was written by another version of KB."""


class FormatTooNew(Incompatible):
    """The store, or a record in it, needs a newer KB."""

    code = "format_too_new"
    exit_status = 50
    default_hint = "Install the KB version that wrote this store, or a newer one; nothing was read or written."


class Misuse(KBError):
    """The request names a place, a thing or an argument that does not fit."""


class NotARepository(Misuse):
    """There is no git repository here."""

    code = "not_a_repository"
    exit_status = 60
    default_hint = "Run it inside a git repository, or name one with -C PATH."


class NotInitialised(Misuse):
    """The repository has no KB yet."""

    code = "not_initialised"
    exit_status = 61
    default_hint = "Run `kb init` in the repository."


class UnknownBranch(Misuse):
    """The named branch exists neither in git nor as a store."""

    code = "unknown_branch"
    exit_status = 62
    default_hint = "`kb branch list` shows the branches that have a store."


class InvalidConfig(Misuse):
    """The configuration, the schema or a rules file cannot be used."""

    code = "invalid_config"
    exit_status = 63
    default_hint = "Mend the named file; nothing was read or written."


class NotFound(Misuse):
    """The named entity, edge, record or rule does not exist."""

    code = "not_found"
    exit_status = 64
    default_hint = "`kb query` lists what there is."


class InvalidQuery(Misuse):
    """An argument of a query or a command cannot be used."""

    code = "invalid_query"
    exit_status = 2
    default_hint = "See `kb COMMAND --help`."


class HistoryPruned(Misuse):
    """The asked part of the history was pruned on purpose."""

    code = "history_pruned"
    exit_status = 66
    default_hint = "Ask for a later seq; the record of the pruning says what history ended."


class GitUnusable(Misuse):
    """git is missing, too old for this repository, or refused."""

    code = "git_unusable"
    exit_status = 67
    default_hint = "Run the named git command yourself; its advice applies."
