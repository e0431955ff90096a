"""``kb branch``: list, make and compare branch stores."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from kbcli.invocation.command_tree import HelpfulCommand, group_of, run_by_default
from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from kbcore.store.branches import BranchInfo, Held

app = group_of("List, make and compare branch stores; without a command, list them.")


@app.command("list", cls=HelpfulCommand)
def list_(ctx: typer.Context) -> None:
    """List the branches that have a store; the current one has a star."""
    import msgspec

    from kbcore.store import branches
    from kbcore.store.branches import lost

    session = session_of(ctx)
    session.is_read_only = True
    found = branches.listing(session.workspace)
    if not all(one.exists_in_git for one in found):
        # No part of the stored data: it only shows later that a branch was deleted.
        branches.note_gone(session.workspace, session.real_fs)
    if session.output.is_json:
        session.output.document({"branches": [msgspec.to_builtins(branch) for branch in found]})
        return
    output = session.output
    shown = [
        (
            one.error or str(one.seq),
            _of_git(one),
            f"from {one.origin['branch']} at {one.origin['seq']}" if one.origin else "",
        )
        for one in found
    ]
    names = ((one.name, "*" if one.current else "") for one in found)
    if not output.aligns:
        rows = [(name, seq, current, *rest) for (name, current), (seq, *rest) in zip(names, shown, strict=True)]
        output.stream(f"{line}\n" for line in output.list_lines(("BRANCH", "SEQ", "CURRENT", "GIT", "COPIED"), rows))
    elif found:
        rows = [(f"{current or ' '} {name}", *rest) for (name, current), rest in zip(names, shown, strict=True)]
        output.stream(f"{line}\n" for line in output.list_lines(("  BRANCH", "SEQ", "GIT", "COPIED"), rows))
    if found:
        if any(one.error for one in found):
            output.note("`kb doctor` says what is wrong with those that have no seq.")
        if any(one.exists_in_git and (one.is_made_again or one.is_doubted) for one in found):
            output.note(
                "`kb doctor` says what to do about stores that are, or may be, of an earlier branch of that name."
            )
    elif lost.losses(session.workspace):
        output.note("No branch has a store any more; `kb doctor` says what to do.")
    else:
        output.note(f"No branch has a store yet; {session.sync_command()} makes the first.")


def _of_git(one: BranchInfo) -> str:
    """Say whether a store is of the branch that git has; nothing where it is, which is the rule."""
    if not one.exists_in_git:
        return "not in git"
    if one.is_made_again:
        return "made again"
    return "doubtful" if one.is_doubted else ""


run_by_default(app, list_)


@app.command("ensure", cls=HelpfulCommand)
def ensure(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The branch; by default the current one.")] = None,
    *,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="BRANCH", help="Copy the store of this branch, which may be in the trash."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="With --from: an existing store is moved to the trash.")
    ] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="The store that is there is right, also where git made the branch after it.")
    ] = False,
) -> None:
    """Make the store of a branch, if it has none: a copy of the default branch's.

    A branch that git renamed takes its store along. One that git deleted and made again gets a new store; that of the
    earlier branch is moved to the trash.
    """
    import msgspec

    from kbcore.errors import InvalidQuery
    from kbcore.store import branches
    from kbcore.text.escaping import escape_controls

    session = session_of(ctx)
    workspace = session.workspace
    if replace and source is None:
        raise InvalidQuery("--replace needs --from.", hint="Name with --from the branch whose store is to be copied.")
    if keep and source is not None:
        raise InvalidQuery("--keep and --from exclude each other.", hint="Say one of them.")
    named = session.named_branch if name is None else name
    if keep:
        branches.keep(workspace, branches.choose(workspace, named).branch)
    if source is None:
        _, _, done = branches.open_branch(workspace, named)
    else:
        done = branches.copy_from(workspace, branches.choose(workspace, named).branch, source, replaces=replace)
    seq = workspace.store(done.branch).head().seq
    if session.output.is_json:
        session.output.document({**msgspec.to_builtins(done), "seq": seq})
        return
    session.show_ensured(done)
    session.output.say(escape_controls(f"{done.branch}: {'made' if done.is_new else 'was there'}, at seq {seq}"))


@app.command("restore", cls=HelpfulCommand)
def restore(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The branch.")],
    *,
    even_damaged: Annotated[
        bool, typer.Option("--even-damaged", help="Also bring back a store that fails the proof, unchanged.")
    ] = False,
) -> None:
    """Bring back the store of a branch that was moved to the trash last, once it is proven.

    A store that the branch has meanwhile is moved to the trash instead; run it again to swap them back.
    """
    import shlex

    import msgspec

    from kbcore.store import branches
    from kbcore.text.escaping import escape_controls

    session = session_of(ctx)
    done = branches.restore(session.workspace, name, even_damaged=even_damaged)
    output = session.output
    if output.is_json:
        output.document(msgspec.to_builtins(done))
        return
    output.say(escape_controls(f"{done.branch}: is back{'' if done.seq is None else f', at seq {done.seq}'}"))
    if done.is_damaged:
        output.warn(escape_controls(f"{done.branch} is damaged: `kb doctor` says how, and what can be repaired."))
    if done.replaced:
        output.note(escape_controls(f"note: the store that was there is in {done.replaced} now."))
    if not done.exists_in_git:
        output.note(
            escape_controls(
                f"note: git has no branch {done.branch}, so the next `kb gc` moves it away again. "
                f"`kb branch ensure NAME --from {shlex.quote(done.branch)}` gives its records to another branch."
            )
        )


@app.command("trash", cls=HelpfulCommand)
def trash(
    ctx: typer.Context,
    *,
    verify: Annotated[bool, typer.Option("--verify", help="Prove each store, as `kb verify` does.")] = False,
) -> int:
    """List the stores in the trash, the newest first.

    `kb branch restore` brings one back. `kb gc --empty-trash` deletes those that have been there for a long time.
    """
    from kbcli.invocation import exits
    from kbcore.errors import JournalCorrupt
    from kbcore.store import branches
    from kbcore.text.escaping import escape_controls

    session = session_of(ctx)
    output, workspace = session.output, session.workspace
    with output.waiting("Proving the stores in the trash" if verify else "Looking at the trash"):
        found = list(branches.held(workspace, max_proven=sys.maxsize if verify else 0))
    damaged = [one for one in found if one.damage]
    if output.is_json:
        output.document(
            {
                "folder": str(workspace.folders.branches_dir / branches.TRASH),
                "trash": [
                    {
                        "branch": one.branch,
                        "seq": one.seq,
                        "moved_at": branches.moment_of(one.entry),
                        "kept_until": branches.kept_until(one.entry),
                        "size_bytes": one.size_bytes,
                        "place": str(one.entry.path),
                        "is_restored_next": one.is_newest,
                        "damage": one.damage,
                    }
                    for one in found
                ],
            }
        )
    elif found:
        rows = [_trash_row(one, is_proven=verify) for one in found]
        head = ("BRANCH", "SEQ", "SIZE", "MOVED", "KEPT UNTIL", *(["PROOF"] if verify else []))
        output.stream(f"{line}\n" for line in output.list_lines(head, rows))
        if not verify:
            output.note("note: Whether they are sound was not proven; --verify does.")
    else:
        output.note("The trash is empty.")
    for one in damaged if not output.is_json else []:
        output.warn(escape_controls(f"{one.entry.path} does not prove: {one.damage}."))
    return JournalCorrupt.exit_status if damaged else exits.DONE


def _trash_row(one: Held, *, is_proven: bool) -> tuple[str, ...]:
    from kbcli.messages.lines import size
    from kbcore.store import branches

    length = "?" if one.size_bytes is None else size(one.size_bytes)
    row = (
        one.branch,
        "?" if one.seq is None else str(one.seq),
        length,
        branches.moment_of(one.entry),
        branches.kept_until(one.entry),
    )
    return (*row, "damaged" if one.damage else "sound") if is_proven else row


@app.command("diff", cls=HelpfulCommand)
def diff(
    ctx: typer.Context,
    a: Annotated[str, typer.Argument(metavar="A", help="A branch.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another branch.")],
) -> None:
    """Show what differs between two branches, going from the first to the second."""
    from kbcli.messages.changes import show_difference
    from kbcore.store import branches
    from kbcore.store.history.compare import diff_branches
    from kbcore.text.escaping import escape_controls

    session = session_of(ctx)
    stores = []
    for name in (a, b):
        store, _, ensured = branches.open_to_read(session.workspace, name)
        session.show_ensured(ensured)
        session.watch(store)
        stores.append(store)
    found = stores[0].read(lambda first: stores[1].read(lambda second: diff_branches(first, second)))
    output = session.output
    if output.is_json:
        output.document({"branches": {"from": a, "to": b}, **found})
        return
    show_difference(output, found["entities"], found["edges"])
    if not found["entities"] and not found["edges"]:
        output.note(escape_controls(f"{a} and {b} have the same content."))
