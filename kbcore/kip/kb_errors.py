"""Errors of KB in the codes of KIP: one table. Each error says what was and was not written. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kbcore import errors
from kbcore.errors import KBError, KipRefused, followed_by
from kbcore.kip.errors import (
    CONSTRAINT,
    DUPLICATE,
    IMMUTABLE,
    INTERNAL,
    NOT_FOUND,
    RESOURCE,
    SYNTAX,
    TIMEOUT,
    VERSION,
    Code,
    refused,
)

_SHOWN: Final = 20


class KipError(msgspec.Struct, frozen=True):
    """The KIP form of an error of KB: its code, and a remedy where the error has none of its own."""

    code: Code
    hint: str = ""


KIP_CODES: Final[Mapping[str, KipError]] = {
    errors.InvalidChangeset.code: KipError(CONSTRAINT, "Correct every listed problem and send the command again."),
    errors.IntegrityViolation.code: KipError(
        CONSTRAINT, "Write what is missing in the same UPSERT, or leave the link out."
    ),
    errors.StaleBase.code: KipError(VERSION, "FIND the element again, then send the command with its `_version`."),
    errors.NotSynced.code: KipError(VERSION),
    errors.FilesUnknown.code: KipError(TIMEOUT),
    errors.ChangesetIdReused.code: KipError(DUPLICATE),
    errors.ContentRedacted.code: KipError(DUPLICATE),
    errors.LimitExceeded.code: KipError(RESOURCE, "Split the command into smaller ones and send them as a batch."),
    errors.DerivedFact.code: KipError(IMMUTABLE, "Edit the named file and have it synced, or leave that key out."),
    errors.BranchMoved.code: KipError(VERSION, "Check which branch is meant, FIND again, then send the command again."),
    errors.UnexpectedBranch.code: KipError(VERSION),
    errors.RevertConflict.code: KipError(VERSION),
    errors.LockTimeout.code: KipError(
        TIMEOUT, "Another process holds the lock that the message names; send the command again in a moment."
    ),
    errors.LockUnsupported.code: KipError(INTERNAL),
    errors.StorageFull.code: KipError(RESOURCE, "Ask the user to free some space; FIND keeps working meanwhile."),
    errors.ReadOnlyStore.code: KipError(
        IMMUTABLE, "Ask the user for write permission on the named file or folder; FIND keeps working meanwhile."
    ),
    errors.StorageError.code: KipError(INTERNAL),
    errors.StatementTimeout.code: KipError(
        TIMEOUT, "Send the command again in a moment, or ask for less: a more exact type or name, fewer hops."
    ),
    errors.Interrupted.code: KipError(
        TIMEOUT,
        "Send the command again when the server runs. Where it is not known whether the command was written, FIND what "
        "it writes before that.",
    ),
    errors.ClockUnusable.code: KipError(INTERNAL),
    errors.ResourceLimit.code: KipError(RESOURCE, "Ask for less, or ask the user for more memory or threads for KB."),
    errors.PrologUnavailable.code: KipError(INTERNAL),
    errors.ModelUnavailable.code: KipError(INTERNAL),
    errors.WorkersUnavailable.code: KipError(INTERNAL),
    errors.PrologFailed.code: KipError(INTERNAL),
    errors.ProgramFailed.code: KipError(INTERNAL),
    errors.InvalidReport.code: KipError(INTERNAL),
    errors.NeedsPerson.code: KipError(IMMUTABLE),
    errors.ReviewRequired.code: KipError(IMMUTABLE),
    errors.CommitUncertain.code: KipError(
        INTERNAL,
        "FIND what it writes before anything else. UPSERT and DELETE may be sent again as they are; UPDATE only where "
        "FIND shows that it did not take effect.",
    ),
    errors.JournalCorrupt.code: KipError(INTERNAL),
    errors.JournalTruncated.code: KipError(INTERNAL),
    errors.HeadDamaged.code: KipError(INTERNAL),
    errors.SnapshotCorrupt.code: KipError(INTERNAL),
    errors.ForeignWrite.code: KipError(INTERNAL),
    errors.StoreWentBack.code: KipError(INTERNAL),
    errors.BackupDamaged.code: KipError(INTERNAL),
    errors.FormatTooNew.code: KipError(INTERNAL),
    errors.NotARepository.code: KipError(INTERNAL),
    errors.NotInitialised.code: KipError(INTERNAL),
    errors.UnknownBranch.code: KipError(NOT_FOUND),
    errors.InvalidConfig.code: KipError(INTERNAL),
    errors.NotFound.code: KipError(NOT_FOUND, "Look for it with SEARCH or FIND."),
    errors.InvalidQuery.code: KipError(SYNTAX),
    errors.HistoryPruned.code: KipError(NOT_FOUND),
    errors.AlreadyWatched.code: KipError(INTERNAL),
    errors.AlreadyAsleep.code: KipError(INTERNAL),
    errors.GitUnusable.code: KipError(INTERNAL),
}
"""By the code of the error. ``KipRefused`` has its own."""


def in_kip(error: KBError, *, writes: bool) -> KipRefused:
    """Return an error in the codes of KIP; ``writes`` says whether the command would have written.

    What KB says more than KIP is in the data: its own code, whether to try again, and the single problems; one without
    a message is the one that the message of the error says.
    """
    if isinstance(error, KipRefused):
        return error
    kip_error = KIP_CODES[error.code]
    hint = error.remedy if error.has_own_remedy or not kip_error.hint else kip_error.hint
    data: dict[str, Any] = {"kb_code": error.code, "applied": error.applied, "retryable": error.retryable}
    if error.details:
        data["problems"] = [one.as_json() | {"hint": one.remedy} for one in error.details[:_SHOWN]]
        if error.says_first:
            del data["problems"][0]["message"]
    return refused(kip_error.code, error.message_for(writes=writes), hint=hint, data={**data, **error.data})


def bug(kind: str) -> KipRefused:
    """Return what is reported of a failure that KB does not know, by the name of its kind."""
    message = f"An internal error of KB ({kind})."
    return refused(INTERNAL, message, data={"kb_code": "internal_error", "applied": "unknown", "retryable": False})


def in_batch(error: KipRefused, at: int, count: int, *, dry_run: bool) -> KipRefused:
    """Return the error of one of several commands, with what became of the others; ``at`` counts from 0."""
    became = "only checked" if dry_run else "run"
    before = f" The commands before it were {became}." if at else ""
    after = " The commands after it were not run." if at + 1 < count else ""
    message = followed_by(error.message, f"This is command {at + 1} of {count}.{before}{after}")
    return KipRefused(
        message,
        hint=error.remedy,
        details=error.details,
        data={**error.data, "command": at},
        says_first=error.says_first,
    )
