"""``kb uninstall``: take KB out of a repository, and out of the user's folders what is of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from kbcli.clients.setup import PartTarget
    from kbcli.invocation.context import Session
    from kbcore.errors import KBError
    from kbcore.maintenance.uninstalling import Removal

_WHY: Final = {
    "journals": "holds the journals, of which there is no other copy; they stay",
    "not_in_git": "is not in git as it is; it stays",
    "other_repositories": "is used by other repositories; it stays",
}


def run(
    ctx: typer.Context,
    *,
    delete_all: Annotated[
        bool, typer.Option("--delete-all", help="Delete also journals, and settings that git does not have.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")] = False,
) -> int:
    """Take KB out of a repository.

    That is git hooks, what clients need, settings, caches, and what is in your home of it. Shows what goes and what
    stays, and asks. Journals stay unless you say otherwise, with the notes that protect them:
    `kb init` takes them up again. Settings and change files stay where git does not have them as they are. Files of
    clients go back to what they were before, to the byte, unless they were changed since. End servers, watchers and
    agents of KB in the repository first. In other clones, and for other users, nothing changes.
    """
    from kbcli import hooks
    from kbcli.clients import removing, setup
    from kbcli.invocation import client_surroundings, exits
    from kbcore import git
    from kbcore.errors import KBError
    from kbcore.maintenance import uninstalling
    from kbcore.store.pool import StorePool
    from kbcore.store.workspace import Workspace

    session = session_of(ctx)
    output = session.output
    around = client_surroundings.of(session, quiet=True)
    # Not the workspace of the session: at the end that would be looked at again, and set right.
    repo = git.find_own_repository(session.start, session.env, **session.git_places)
    workspace = Workspace(repo, session.machine, StorePool(), settles=False)
    found = list(removing.targets_of(around))
    parts: list[PartTarget] = [one for one in found if not isinstance(one, tuple)]
    failed: list[tuple[PartTarget, KBError]] = [one for one in found if isinstance(one, tuple)]
    planned = uninstalling.plan(workspace, deletes_all=delete_all, is_last=True)
    events = [one for one in hooks.status(repo, session.env) if one.state not in {"absent", "foreign"}]
    ended = _shown(session, planned, parts, [f"{one.event} in {one.path}" for one in events], yes=yes)
    if ended is not None:
        return ended
    session.writes = True
    results = hooks.uninstall(repo, session.env)
    done: list[PartTarget] = []
    changed: list[PartTarget] = []
    for target in parts:
        try:
            is_kept = setup.take_out(around, target, write=True).action == "kept"
        except KBError as error:
            failed.append((target, error))
        else:
            (changed if is_kept else done).append(target)
    planned = uninstalling.plan(workspace, deletes_all=delete_all, is_last=not removing.leave(around))
    uninstalling.carry_out(workspace, planned)
    named = {one.place.path for one in (*changed, *(target for target, _ in failed))}
    left = [path for path in removing.left_elsewhere(around) if path not in named]
    if output.is_json:
        said = {**_as_json(planned, done, failed), "changed_by_hand": [str(one.place.path) for one in changed]}
        said["in_other_worktrees"] = [*map(str, left)]
        output.document({"done": True, **said, "hooks": [one.as_json() for one in results]})
    else:
        _show_done(session, planned, changed, failed, left)
    status = next((error.exit_status for _, error in failed), exits.VIOLATIONS if changed or left else exits.DONE)
    return status or exits.status_of_hooks(results)


def _shown(
    session: Session, planned: Removal, parts: Sequence[PartTarget], events: Sequence[str], *, yes: bool
) -> int | None:
    """Show what would be done; return the status where it is not to be done, None where it is.

    Raises: ``InvalidQuery`` where nobody can be asked.
    """
    from kbcli.invocation import exits
    from kbcore.errors import InvalidQuery
    from kbcore.text.escaping import escape_controls

    output = session.output
    is_nothing = not (events or parts or planned.paths)
    if output.is_json:
        if yes:
            return None
        output.document({"done": False, **_as_json(planned, parts, []), "hooks": list(events)})
        return exits.DONE if is_nothing else InvalidQuery.exit_status
    for line in _lines_of(planned, parts, events):
        output.say(escape_controls(line))
    if is_nothing:
        output.say("Nothing else of KB is here." if planned.kept else "Nothing of KB is here.")
        return exits.DONE
    if yes:
        return None
    if not output.is_interactive:
        output.flush()
        hint = "`kb uninstall --help` says what goes and what stays."
        raise InvalidQuery("Nobody can be asked here: it needs --yes. Nothing was changed.", hint=hint)
    if typer.confirm("Take this out?", err=True):
        return None
    output.note("Nothing was changed.")
    return exits.INTERRUPTED


def _lines_of(planned: Removal, parts: Sequence[PartTarget], events: Sequence[str]) -> Iterator[str]:
    """Yield a line for each thing that goes or stays; several clients may have the same part of a file."""
    yield from (f"git hook     {event}" for event in events)
    clients: dict[tuple[str, Path], list[str]] = {}
    for target in parts:
        clients.setdefault((target.part.name, target.place.path), []).append(target.client)
    for (part, path), names in clients.items():
        yield f"{part.ljust(12)} of {', '.join(names)} in {path}"
    yield from (f"delete       {path}" for path in planned.paths)
    yield from (f"keep         {one.path}: it {_WHY[one.reason]}" for one in planned.kept)


def _show_done(
    session: Session,
    planned: Removal,
    changed: Sequence[PartTarget],
    failed: Sequence[tuple[PartTarget, KBError]],
    left: Sequence[Path],
) -> None:
    from kbcore.errors.remedies import shell
    from kbcore.text.escaping import escape_controls

    output = session.output
    said = [f"{error.message} {error.hint}".strip() for _, error in failed]
    said += [f"{one.place.path}: what KB wrote there was changed by hand; take it out by hand." for one in changed]
    said += [
        f"{path} stays: {shell('agents', 'remove', '--all', '--write')} in its worktree takes it out." for path in left
    ]
    for one in dict.fromkeys(said):
        output.warn(escape_controls(one))
    stays = "; its journals are where they were" if any(one.reason == "journals" for one in planned.kept) else ""
    rest = " What could not be taken out is named above." if failed or changed or left else ""
    output.say(f"KB is taken out of this repository{stays}.{rest}")


def _as_json(
    planned: Removal, parts: Sequence[PartTarget], failed: Sequence[tuple[PartTarget, KBError]]
) -> dict[str, Any]:
    return {
        "parts": [{"client": one.client, "part": one.part.name, "path": str(one.place.path)} for one in parts],
        "failed": [{"path": str(one.place.path), "error": error.as_json(writes=True)} for one, error in failed],
        "deleted": [str(one) for one in planned.paths],
        "kept": [{"path": str(one.path), "reason": one.reason} for one in planned.kept],
    }
