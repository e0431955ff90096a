"""Owns every error that KB raises on purpose; each class fixes its code, exit status and remedy.

Offers the classes, and the commands in remedies (``remedies``). What looks like a secret is masked in every error.
Never asks which front end shows an error, and opens nothing.

KBError
├─ Rejected       nothing written, correct the request
│    InvalidChangeset · IntegrityViolation · StaleBase · ChangesetIdReused · LimitExceeded
│    DerivedFact · BranchMoved · RevertConflict · KipRefused · NotSynced · PrologFailed · ContentRedacted
│    InvalidReport · ProgramFailed · NeedsPerson · ReviewRequired
├─ Unavailable    nothing written, try later
│    LockTimeout · LockUnsupported · StorageFull · ReadOnlyStore · StorageError · ResourceLimit
│    ClockUnusable · StatementTimeout · Interrupted · FilesUnknown · PrologUnavailable
│    ModelUnavailable · WorkersUnavailable
├─ CommitUncertain  may or may not be durable; retry with the same changeset id
├─ Damaged        stop; a person decides
│    JournalCorrupt · JournalTruncated · HeadDamaged · SnapshotCorrupt · ForeignWrite · StoreWentBack
│    BackupDamaged
├─ Incompatible   written by a newer KB: FormatTooNew
└─ Misuse         wrong place, name or argument
     NotARepository · NotInitialised · UnknownBranch · InvalidConfig · NotFound · InvalidQuery
     HistoryPruned · AlreadyWatched · AlreadyAsleep · GitUnusable · UnexpectedBranch

``ViewDamaged``, ``interrupting.Stopped`` and ``git.MustAskGit`` are no errors: KB catches them, and no user sees them.
Anything else that is raised is a bug: it propagates and is reported, never swallowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from kbcore import limits
from kbcore.errors.remedies import brought_back, for_shell, kb, referral
from kbcore.secrets import mask_fields, masked, masked_in

Applied = Literal["no", "yes", "unknown"]


class Problem(msgspec.Struct, frozen=True):
    """One thing wrong with a request, at one place.

    ``path`` is a JSON path such as ``$.entities[0].title``; ``code`` is stable; ``remedy`` says what to do (the module
    ``remedies``); ``source`` is the file that states the fact, and ``line`` its line, counted from 1, 0 where it is not
    known. ``subject`` is the id of the element that the message names, "" where it names none; ``field`` and
    ``values`` say without words what of it is wrong. What looks like a secret in the message or the remedy is masked.
    """

    path: str
    code: str
    message: str
    remedy: str = ""
    source: str = ""
    line: int = 0
    subject: str = ""
    field: str = ""
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Mask what looks like a secret."""
        mask_fields(self, "message", "remedy")

    @property
    def hint(self) -> str:
        """Return the remedy in the words of the command line."""
        return for_shell(self.remedy)

    @property
    def place(self) -> str:
        """Return the file with its line, as compilers write it; "" where no file states the fact."""
        return f"{self.source}:{self.line}" if self.line else self.source

    def as_json(self) -> dict[str, Any]:
        """Return the problem as the contract shows it; ``source`` only where a file states the fact."""
        found = {"path": self.path, "code": self.code, "message": self.message, "hint": self.hint}
        return found | ({"source": self.place} if self.source else {})


class KBError(Exception):
    """A failure that KB explains. Subclasses fix the facts; instances add the words."""

    code: ClassVar[str] = ""
    exit_status: ClassVar[int] = 0
    retryable: ClassVar[bool] = False
    applied: Applied = "no"
    """Fixed by the class, and other in an error that is raised after something was written."""
    default_hint: str = ""
    what: str = ""
    """The refused action, without the problems; empty where the message is not put together by ``of_problems``."""
    written_before: str = ""
    """A sentence that says what the same request wrote before the part that failed."""

    def __init_subclass__(cls, *, code: str = "", exit_status: int = 0) -> None:
        """Fix the stable code and the exit status of a class that is raised; the others only group."""
        cls.code, cls.exit_status = code, exit_status

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        details: Sequence[Problem] = (),
        data: Mapping[str, Any] | None = None,
        says_first: bool = False,
    ) -> None:
        """Make an error. ``says_first``: the message holds that of the first of the details.

        Marks in the message are put into the words of the command line; only the remedy keeps its own. What looks like
        a secret is masked.
        """
        self.message = masked(for_shell(message))
        super().__init__(self.message)
        self.remedy = masked(hint) or self.default_hint
        self.details = tuple(details)
        self.data: dict[str, Any] = masked_in(dict(data or {}))
        self.says_first = says_first

    @property
    def hint(self) -> str:
        """Return the remedy in the words of the command line."""
        return for_shell(self.remedy)

    @property
    def has_own_remedy(self) -> bool:
        """Tell whether the remedy is of this very error, not that of all errors of its class."""
        return self.remedy not in {"", self.default_hint}

    def locate_remedies(self, locate: Callable[[str], str]) -> None:
        """Name places and branches in the remedies; ``locate`` does so in a text, as ``remedies.located``."""
        self.remedy = locate(self.remedy)
        self.default_hint = locate(self.default_hint)
        self.details = tuple(msgspec.structs.replace(one, remedy=locate(one.remedy)) for one in self.details)

    def message_for(self, *, writes: bool, instead: str = "") -> str:
        """Return the message, or the one ``instead``, and what of a request that ``writes`` was written.

        A request that only reads has nothing to say of it, and the message of ``CommitUncertain`` says it itself. No
        other code adds such a sentence.
        """
        message = instead or self.message
        written = ""
        if writes and self.applied == "no":
            written = "Nothing else was written." if self.written_before else "Nothing was written."
        elif writes and self.applied == "unknown" and not isinstance(self, CommitUncertain):
            written = "It is not known whether all of it was written."
        rest = " ".join(filter(None, (self.written_before, written)))
        return followed_by(message, rest) if rest else message

    def add(self, sentence: str) -> None:
        """Add a sentence to the message."""
        self.message = followed_by(self.message, sentence)
        self.args = (self.message,)

    def as_json(self, *, writes: bool = False) -> dict[str, Any]:
        """Return the body of ``{"error": …}`` as the contract fixes it; ``data`` keys are added to it."""
        return {
            "code": self.code,
            "message": self.message_for(writes=writes),
            "hint": self.hint,
            "retryable": self.retryable,
            "applied": self.applied,
            "details": [problem.as_json() for problem in self.details],
            **self.data,
        }


E = TypeVar("E", bound=KBError)


def followed_by(message: str, sentence: str) -> str:
    """Return a message, which may lack its full stop, with a sentence after it."""
    return f"{message.rstrip('.')}. {sentence}"


def of_problems(
    kind: type[E], what: str, problems: Sequence[Problem], *, hint: str = "", data: Mapping[str, Any] | None = None
) -> E:
    """Return an error of a kind that says what is refused, and the only problem or how many there are.

    Without a ``hint`` the remedy is that of the problems, where all of them have the same one.
    """
    found = problems[0].message if len(problems) == 1 else f"{len(problems)} problems."
    remedies = {problem.remedy for problem in problems}
    own = hint or (remedies.pop() if len(remedies) == 1 else "")
    is_only = len(problems) == 1
    message, details = f"{what}: {found}" if what else found, problems[: limits.MAX_PROBLEMS]
    error = kind(message, hint=own, details=details, data=data, says_first=is_only)
    error.what = what
    return error


class Rejected(KBError):
    """The request cannot be carried out; nothing was written."""


class InvalidChangeset(Rejected, code="invalid_changeset", exit_status=10):
    """The request has the wrong shape or unknown names."""

    default_hint = "Correct every listed problem and send the changeset again."


class IntegrityViolation(Rejected, code="integrity_violation", exit_status=11):
    """The state after the changeset would break a reference or an endpoint type."""

    default_hint = "Write what is missing in the same changeset, choose types that fit, or free what is pointed at."


class StaleBase(Rejected, code="stale_base", exit_status=12):
    """Something that the changeset names changed after the seq that the client had read."""

    default_hint = "Read the listed elements again, then send the changeset with the new expected_seq."


class ChangesetIdReused(Rejected, code="changeset_id_reused", exit_status=13):
    """A changeset id came back with other content."""

    default_hint = "Use a new changeset_id for new content; the earlier changeset is unchanged."


class LimitExceeded(Rejected, code="limit_exceeded", exit_status=14):
    """A request or a value is larger than KB allows."""

    default_hint = "Split the request into smaller ones."


class DerivedFact(Rejected, code="derived_fact", exit_status=15):
    """The fact is stated by a file; the file is what to edit."""

    default_hint = f"Edit the named file and {kb('sync', lead='run')}."


class BranchMoved(Rejected, code="branch_moved", exit_status=16):
    """HEAD moved to another branch while the request ran."""

    retryable = True
    default_hint = "Check which branch you want, then send the request again."


class RevertConflict(Rejected, code="revert_conflict", exit_status=17):
    """A later record changed what the revert would undo."""

    default_hint = "Revert the later records first, or force the revert, which restores the old values."


class NeedsPerson(Rejected, code="needs_person", exit_status=37):
    """A person has to confirm what an agent asks for, and none has."""

    default_hint = "Ask the user to decide."

    @property
    def question(self) -> str:
        """Return what the person is asked, with all that it depends on."""
        return self.message


class KipRefused(Rejected, code="kip_refused", exit_status=18):
    """A KIP command is refused; the KIP code in the answer (`kip_code`) says why."""

    default_hint = "Correct the command as the message says and send it again."


class NotSynced(Rejected, code="not_synced", exit_status=19):
    """The records do not hold what the files say, and the request needs that they do."""

    default_hint = f"{kb('sync', lead='Run')}, then run it again."


class PrologFailed(Rejected, code="prolog_error", exit_status=32):
    """A clause, a file or a query of the Prolog workspace cannot be used; ``kind`` in the answer says why."""

    default_hint = "Correct what the message names, and send it again."


class ContentRedacted(Rejected, code="redacted", exit_status=33):
    """The request needs what a redaction took out of a record."""

    default_hint = "What was taken out is not there any more: set the fields to what they are to be."


class ProgramFailed(Rejected, code="program_failed", exit_status=36):
    """A program of DML cannot be used, or ended with an error."""

    default_hint = "Correct what the message names, and run it again."


class ReviewRequired(Rejected, code="review_required", exit_status=38):
    """The settings leave this decision to somebody else: it accepts what is proposed, or cannot be proposed."""

    default_hint = (
        f"Leave it to a person: {kb('review')} lists what is proposed. `review` in .kb/config.json says who may accept."
    )


class InvalidReport(Rejected, code="invalid_report", exit_status=34):
    """A report of a test run cannot be used: it is not there, not complete, or of a format that KB does not read."""

    default_hint = "Correct or leave out every listed report; none of them was taken in."


class Unavailable(KBError):
    """Nothing was written; the same request may work later."""

    retryable = True


class LockTimeout(Unavailable, code="lock_timeout", exit_status=20):
    """Another process held the branch for longer than the lock wait."""

    default_hint = "Wait for the named process, or end it; the lock is freed when it dies."


class LockUnsupported(Unavailable, code="lock_unsupported", exit_status=21):
    """The file system cannot lock, so writing would not be safe."""

    retryable = False
    default_hint = "Keep the repository on a local file system."


class StorageFull(Unavailable, code="storage_full", exit_status=22):
    """The disk or the quota is full."""

    default_hint = "Free some space and send the same request again; queries keep working meanwhile."


class ReadOnlyStore(Unavailable, code="read_only_store", exit_status=23):
    """The store cannot be written by this user or on this mount."""

    retryable = False
    default_hint = (
        "Give the user write permission on the named file or folder, or remount read-write; queries keep working."
    )


class StorageError(Unavailable, code="storage_error", exit_status=24):
    """The operating system refused a call on the store."""

    default_hint = "Look at the named file and at the system log, then try again."


class ResourceLimit(Unavailable, code="resource_limit", exit_status=25):
    """KB got no more memory, threads, processes or open files."""

    default_hint = (
        "Ask for less, end other programs, or raise the limit: `ulimit -a` shows those of the shell, "
        "and `memoryMiB` in your own `kb/config.json` is that of the database."
    )


class StatementTimeout(Unavailable, code="statement_timeout", exit_status=27):
    """A statement to the database took longer than it may, and was interrupted."""

    default_hint = (
        "Try again when the machine has less to do, and ask for less: fewer ids, a narrower filter, a smaller depth. "
        f"If it comes back, report it with the size of the branch ({kb('status')})."
    )


class Interrupted(Unavailable, code="interrupted", exit_status=28):
    """The program was asked to end while it worked on the request."""

    default_hint = "Send the request again, a write with the same changeset_id, when the program runs again."


class FilesUnknown(Unavailable, code="files_unknown", exit_status=29):
    """The files cannot be compared: those of the worktree with the records, or two revisions with each other."""

    retryable = True
    default_hint = "Run it again when that is over. `--recorded` judges the records alone."


class ClockUnusable(Unavailable, code="clock_unusable", exit_status=26):
    """The clock of the machine is set to a year that no record can have."""

    retryable = False
    default_hint = "Set the clock: `date` shows it."


class PrologUnavailable(Unavailable, code="prolog_unavailable", exit_status=31):
    """There is no Prolog engine on this machine."""

    retryable = False
    default_hint = f"Install one of them, or {kb('prolog', 'install', lead='run')}. All else works without it."


class ModelUnavailable(Unavailable, code="model_unavailable", exit_status=35):
    """The language model could not be asked, or its answer could not be read."""

    default_hint = "Look at the name of the model, the URL and the key, then run it again."


class WorkersUnavailable(Unavailable, code="workers_unavailable", exit_status=39):
    """The workers of an engine of the fleet could not be started or reached, or ended before they answered."""

    default_hint = "Use fewer workers, so that each has more memory, or the engine local."


class CommitUncertain(KBError, code="commit_uncertain", exit_status=30):
    """The record was written, and whether it is durable is not known."""

    retryable = True
    applied = "unknown"
    default_hint = "Send the same changeset again with the same changeset_id; it takes effect at most once."


class Damaged(KBError):
    """The store is not as KB left it; nothing is written until a person decides."""

    default_hint = referral(f"{kb('doctor', lead='Run')}: it says what is known to be good, and writes nothing.")


class JournalCorrupt(Damaged, code="journal_corrupt", exit_status=40):
    """Acknowledged bytes of the journal are not what was written."""


class JournalTruncated(Damaged, code="journal_truncated", exit_status=41):
    """The journal is shorter than its head says."""


def new_head_advice(branch: str) -> str:
    """Return the remedy for the damaged head file of a branch."""
    rebuild = kb("doctor", "--rebuild-head", "--branch", branch)
    return referral(f"{kb('doctor', lead='Run')}; {rebuild} makes a new head and says what it cannot prove.")


class HeadDamaged(Damaged, code="head_damaged", exit_status=42):
    """The head file is missing or unreadable although there is a journal."""

    default_hint = new_head_advice("BRANCH")


class SnapshotCorrupt(Damaged, code="snapshot_corrupt", exit_status=43):
    """A snapshot does not hold what its digest says."""


class ForeignWrite(Damaged, code="foreign_write", exit_status=44):
    """Somebody wrote to the journal without taking the lock."""


class StoreWentBack(Damaged, code="store_went_back", exit_status=45):
    """The store lacks records that were acknowledged: it was put back to an earlier state, or is gone."""

    default_hint = (
        f"If there is a backup, {kb('restore', 'FILE', '--only', 'BRANCH', '--replace')} brings the store back as it "
        "was then. To go on without the missing records, a person runs "
        f"{kb('doctor', '--new-epoch', '--branch', 'BRANCH')}, or, where the journal "
        f"is damaged as well, {kb('doctor', '--salvage', '--branch', 'BRANCH', '--yes')}. {brought_back('Then')}"
    )


class BackupDamaged(Damaged, code="backup_damaged", exit_status=46):
    """A backup is not what `kb backup` wrote."""

    default_hint = "Use another backup; nothing was restored from this one."


class Incompatible(KBError):
    """The store was written by another version of KB."""


class FormatTooNew(Incompatible, code="format_too_new", exit_status=50):
    """The store, or a record in it, needs a newer KB."""

    default_hint = "Install the KB version that wrote this store, or a newer one; nothing was read or written."


class Misuse(KBError):
    """The request names a place, a thing or an argument that does not fit."""


class NotARepository(Misuse, code="not_a_repository", exit_status=60):
    """There is no git repository here."""

    default_hint = "Run it inside a git repository, or name one with -C PATH."


class NotInitialised(Misuse, code="not_initialised", exit_status=61):
    """The repository has no KB yet."""

    default_hint = f"{kb('init', lead='Run')} in the repository."


class UnknownBranch(Misuse, code="unknown_branch", exit_status=62):
    """The named branch exists neither in git nor as a store."""

    default_hint = f"{kb('branch', 'list')} shows the branches that have a store."


class InvalidConfig(Misuse, code="invalid_config", exit_status=63):
    """The configuration, the schema or a rules file cannot be used."""

    default_hint = "Correct the named file; nothing was read or written."


class NotFound(Misuse, code="not_found", exit_status=64):
    """The named entity, edge, record or rule does not exist."""

    default_hint = f"Look for it by a word of its title, or list what there is with {kb('query')}."


class InvalidQuery(Misuse, code="invalid_query", exit_status=2):
    """An argument of a query or a command cannot be used."""

    default_hint = "Correct what the message names, and ask again."


class HistoryPruned(Misuse, code="history_pruned", exit_status=66):
    """The asked part of the history was pruned on purpose, or records of it are missing since a salvage."""

    default_hint = "Ask for a later seq; the record of the pruning says what history ended."

    @classmethod
    def before(cls, first: int, what: str) -> HistoryPruned:
        """Return the error for a question about what lies before the first record that was kept."""
        message = f"Records before seq {first} were pruned; {what} is out of reach."
        hint = f"Ask for record {first} or later, or for the state at seq {first - 1} or later."
        return cls(message, hint=hint, data={"history_from": first - 1, "pruned_before": first})


class AlreadyWatched(Misuse, code="already_watched", exit_status=65):
    """Another process watches this worktree."""

    default_hint = "One watcher is enough for all; end the other one first if it is to be this one."


class AlreadyAsleep(Misuse, code="already_asleep", exit_status=68):
    """Another process is in the middle of a sleep cycle of this branch."""

    retryable = True
    default_hint = (
        f"Wait until it has ended: two cycles never run at once. {kb('sleep', '--dry-run')} can be run meanwhile."
    )


class GitUnusable(Misuse, code="git_unusable", exit_status=67):
    """git is missing, too old for this repository, or refused."""

    default_hint = "Run the named git command yourself; its advice applies."


class UnexpectedBranch(Misuse, code="unexpected_branch", exit_status=69):
    """The branch is not the one that the request expects; sending it again changes nothing."""

    default_hint = "Check out the expected branch, or send the request without it if this branch is meant."


class ViewDamaged(Exception):
    """The published view cannot be read. Never shown to a user: the store folds the journal again and goes on."""


class ViewForeign(ViewDamaged):
    """A cached file holds what KB never puts into one: another program made it. Nothing was answered from it."""
