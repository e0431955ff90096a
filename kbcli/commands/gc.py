"""``kb gc``: remove the stores of branches that no longer exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeVar

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from kbcli.terminal.output import Output
    from kbcore.maintenance.leftovers import RemovedFiles
    from kbcore.store.branches import CollectedStores, Emptied, Trashed
    from kbcore.store.workspace import Workspace

T = TypeVar("T")

_MAX_DAYS: Final = 36_500
_SHOWN: Final = 5
"""The number of notes that are named although it is not known whether they are needed, and of stores that stay."""


class _Removed(NamedTuple):
    """The result: stores, texts of documents, files of the cache, notes on repositories, and the emptied trash."""

    done: CollectedStores
    documents: int
    swept: RemovedFiles
    notes: Sequence[str]
    emptied: Emptied | None
    warnings: Sequence[str]


def run(
    ctx: typer.Context,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed; remove nothing.")] = False,
    empty_trash: Annotated[
        bool,
        typer.Option("--empty-trash", help="Permanently delete stores that have been in the trash for a long time."),
    ] = False,
    older_than: Annotated[
        int | None,
        typer.Option(
            "--older-than",
            metavar="DAYS",
            help="With --empty-trash: those moved there at least so many days ago; 90 by default.",
        ),
    ] = None,
) -> None:
    """Remove the stores of branches that no longer exist in any worktree or local ref.

    They are moved to the trash next to the stores; `kb branch trash` lists it, and `kb branch restore` brings one back.
    The text of documents that no branch has any more is removed from the cache, and so are unfinished files there,
    after a day, and reports of bugs after four weeks. Notes on a repository outside its stores are removed once
    that repository was not there at twelve looks, each a month or more after the one before.
    """
    import msgspec

    from kbcore.errors import Interrupted, KBError
    from kbcore.maintenance.leftovers import RemovedFiles, sweep
    from kbcore.maintenance.search_documents import forget_documents
    from kbcore.storage.bug_reports import BUGS
    from kbcore.store import branches

    session = session_of(ctx)
    workspace, now_ns = session.workspace, session.machine.clock.epoch_ns()
    # First, so that nothing is moved to the trash and deleted by one command.
    emptied = _empty_trash(workspace, older_than, dry_run=dry_run, is_wanted=empty_trash)
    done = branches.collect(workspace, dry_run=dry_run)
    # Stores may have been moved: whatever fails from here on is a warning, and what was done is reported.
    warnings = list[str]()

    def attempt(clear: Callable[[], T], otherwise: T) -> T:
        try:
            return clear()
        except Interrupted:
            raise
        except KBError as error:
            warnings.append(str(error))
            return otherwise

    documents = attempt(lambda: forget_documents(workspace, done.kept, dry_run=dry_run), 0)
    swept = attempt(lambda: sweep(workspace, BUGS, dry_run=dry_run), RemovedFiles(0, 0))
    noted = workspace.place.sweep(now_ns, dry_run=dry_run)
    gone = noted.gone
    warnings += _unknown_repositories(noted.problems)
    output = session.output
    if output.is_json:
        output.document(
            {
                **msgspec.to_builtins(done),
                "documents": documents,
                **msgspec.to_builtins(swept),
                "notes": gone,
                **({"emptied": msgspec.to_builtins(emptied)} if emptied else {}),
                "warnings": warnings,
            }
        )
        return
    _show(output, _Removed(done, documents, swept, gone, emptied, warnings), workspace.default_branch, dry_run=dry_run)


def _show(output: Output, removed: _Removed, default_branch: str, *, dry_run: bool) -> None:
    """Say what was removed, and why the other stores are kept."""
    from kbcore.text.escaping import escape_controls, escaped_sentence
    from kbcore.text.wording import pluralize

    done, swept = removed.done, removed.swept
    for warning in removed.warnings:
        output.warn(escaped_sentence(warning))
    would = "would remove" if dry_run else "removed"
    _show_emptied(output, removed.emptied, "would delete" if dry_run else "deleted")
    for one in done.trash:
        output.say(escape_controls(f"{'would move' if dry_run else 'moved'} {one.name} to the trash"))
        if said := _unmerged_words(one, default_branch):
            output.warn(escaped_sentence(said))
    cached = {
        f"the text of {pluralize(removed.documents, 'document')} from the cache of searches": removed.documents,
        f"{pluralize(swept.unfinished, 'unfinished file')} from the cache": swept.unfinished,
        f"{pluralize(swept.reports, 'old report')} of bugs": swept.reports,
        f"the notes of {pluralize(len(removed.notes), 'deleted repository')}": len(removed.notes),
    }
    for what in filter(cached.get, cached):
        output.say(f"{would} {what}")
    kept = f"{pluralize(len(done.kept), 'store')} kept."
    output.say(kept if done.removed or any(cached.values()) else f"Nothing to remove; {kept}")
    _show_kept(output, done.reasons)


def _unknown_repositories(problems: Sequence[str]) -> Iterator[str]:
    """Yield a message for each note on a repository of which it is not known whether it still exists."""
    left = len(problems) - _SHOWN
    for problem in problems[:_SHOWN]:
        yield (
            f"Notes of a repository are kept, because it is not known whether it still exists: {problem} The next "
            "write in that repository corrects them. If it no longer exists, remove them."
        )
    if left > 0:
        yield f"So are {left} more."


def _show_kept(output: Output, reasons: Mapping[str, str]) -> None:
    """Say of the stores that are kept why, those of one reason together."""
    from kbcore.text.escaping import escape_controls

    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    for reason, kept_so in names.items():
        for line in output.wrapped(escape_controls(f"{', '.join(kept_so)}: {reason}"), "  "):
            output.say(line)


def _empty_trash(workspace: Workspace, days: int | None, *, dry_run: bool, is_wanted: bool) -> Emptied | None:
    """Empty the trash if that is wanted. Raises: ``InvalidQuery`` for days where it is not; as ``branches.empty``."""
    from kbcli.invocation.bounds import check_bounds
    from kbcore.errors import InvalidQuery
    from kbcore.store import branches

    if is_wanted:
        older_than_days = branches.KEPT_DAYS if days is None else days
        check_bounds("--older-than", older_than_days, _MAX_DAYS, branches.KEPT_DAYS, least=0)
        return branches.empty(workspace, older_than_days=older_than_days, dry_run=dry_run)
    if days is not None:
        raise InvalidQuery("--older-than needs --empty-trash.", hint="Say both, or neither.")
    return None


def _show_emptied(output: Output, emptied: Emptied | None, would: str) -> None:
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize

    if emptied is None:
        return
    for one in emptied.deleted:
        ended = "" if one.seq is None else f", at seq {one.seq}"
        output.say(
            escape_controls(f"{would} the store of {one.branch} that was moved to the trash on {one.moved_at}{ended}")
        )
    for one in emptied.kept:
        why = f"acknowledged records of {one.branch} are missing, and it may have them; `kb doctor` says what to do"
        output.warn(escape_controls(f"{one.place} stays in the trash: {why}."))
    output.say(f"{pluralize(emptied.left, 'store')} left in the trash.")
    for one in emptied.waiting[:_SHOWN]:
        output.say(escape_controls(f"  {one.branch}: stays until {one.until}, as it was moved there on {one.moved_at}"))
    if len(emptied.waiting) > _SHOWN:
        output.say(f"  and {len(emptied.waiting) - _SHOWN} more; `kb branch trash` lists them")
    if emptied.waiting:
        output.say("`--older-than DAYS` deletes those that were moved there at least so many days ago.")


def _unmerged_words(one: Trashed, default: str) -> str:
    """Return what clients wrote on a deleted branch and the default branch does not have; "" where that is nothing."""
    import shlex

    from kbcore.text.wording import pluralize

    if one.facts == 0:
        return ""
    name = shlex.quote(one.name)
    if one.records is None:
        said = f"{one.name} has a damaged journal"
    elif one.facts is None:
        said = f"It is not known whether clients wrote on {one.name} what {default} has not"
    else:
        said = f"Clients wrote {pluralize(one.facts, 'fact')} on {one.name} that {default} has not"
        if one.unshared:
            said += f" ({pluralize(one.unshared, 'change')} not shared)"
    if one.place:
        said += f"; the store is kept in {one.place}, and `kb branch restore {name}` brings it back"
    elif one.facts:
        said += f"; `kb merge {name} --branch {shlex.quote(default)}` brings them"
    return f"{said}.{_taken(one.name, one.renamed_to)}"


def _taken(name: str, by: str) -> str:
    """Say of a store whose branch was renamed over another one how that one gets it."""
    import shlex

    if not by:
        return ""
    command = f"kb branch ensure {shlex.quote(by)} --from {shlex.quote(name)} --replace"
    return f" git renamed {name} to {by}, which had a store already; `{command}` takes this one instead."
