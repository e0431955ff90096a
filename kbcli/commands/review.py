"""``kb review``: show what is only proposed, and accept or reject it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun, Message

if TYPE_CHECKING:
    from kbcli.invocation.context import Opened, Session
    from kbcore.store.review import Proposal
    from kbcore.view.view import View

_ANSWERS = "accept, reject, skip, quit (a/r/s/q)"


def run(
    ctx: typer.Context,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Only of these entities, and of their edges.")
    ] = None,
    *,
    seq: Annotated[
        list[int] | None, typer.Option("--seq", metavar="SEQ", help="Only what this record proposed; may be repeated.")
    ] = None,
    actor: Annotated[
        str, typer.Option("--actor", metavar="A", help="Only what this actor proposed.", show_default=False)
    ] = "",
    session_: Annotated[
        str, typer.Option("--session", metavar="S", help="Only what was proposed in this session.", show_default=False)
    ] = "",
    type_: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Only of this type; may be repeated.")
    ] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Accept what is listed.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Reject what is listed.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="With --accept or --reject: all that is proposed.")] = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Decide one by one; needs a terminal.")
    ] = False,
    message: Message = "",
    dry_run: DryRun = False,
) -> None:
    """Show what is only proposed, and accept or reject it.

    What the actors of `review.actors` in .kb/config.json write is proposed. It is marked in every answer, satisfies no
    rule, and is kept out of what hooks give to agents, until somebody accepts it. A decision is a record like
    others: `kb log` shows it, and `kb revert` takes it back.
    """
    from kbcli.messages.options import OPTIONS, placed
    from kbcore.store.review import (
        ProposalFilter,
        check_reviewer,
        check_types,
        deciding_changeset,
        find_proposals,
        with_present_names,
    )

    wanted = ProposalFilter(tuple(ids or ()), tuple(seq or ()), tuple(type_ or ()), actor, session_)
    _check(accept=accept, reject=reject, is_all=all_, is_narrowed=bool(wanted), interactive=interactive)
    session = session_of(ctx)
    decides = accept or reject or interactive
    opened = session.open(dry_run=dry_run) if decides else session.open_to_read()

    def find(view: View) -> tuple[int, list[Proposal]]:
        check_types(wanted, view.schema(opened.workspace.schema))
        return view.recorded_seq, find_proposals(view, with_present_names(view, wanted))

    with placed(session.output, OPTIONS):
        head, found = opened.store.read(find)
    if not decides:
        _list(session, opened, head, found)
        return
    check_reviewer(opened.workspace, session.author)
    accepted, rejected = _asked(session, found) if interactive else ((found, []) if accept else ([], found))
    if not accepted and not rejected:
        _nothing(session, opened, head, is_narrowed=bool(wanted), is_left=bool(found))
        return
    changeset = deciding_changeset(accepted, rejected, seq=head, message=message, dry_run=dry_run)
    session.show_outcome(opened.target.apply(changeset))


def _check(*, accept: bool, reject: bool, is_all: bool, is_narrowed: bool, interactive: bool) -> None:
    """Raises: ``typer.BadParameter`` for options that do not fit together."""
    if accept + reject + interactive > 1:
        raise typer.BadParameter("--accept, --reject and --interactive exclude each other.")
    if is_all and is_narrowed:
        raise typer.BadParameter("--all means all that is proposed; leave out the rest.")
    if is_all and not (accept or reject):
        raise typer.BadParameter("--all goes with --accept or --reject.")
    if (accept or reject) and not (is_all or is_narrowed):
        raise typer.BadParameter("Name what is meant: ids, --seq, --actor, --session, --type or --all.")


def _list(session: Session, opened: Opened, head: int, found: Sequence[Proposal]) -> None:
    from kbcli.messages import proposals

    output = session.output
    if output.is_json:
        output.document(
            {"branch": opened.branch, "seq": head, "total": len(found), "proposals": [one.as_json() for one in found]}
        )
        return
    output.is_paged = True
    for line in proposals.lines(output, found):
        output.say(output.flowed(line))
    output.say(proposals.total(opened.branch, head, found))


def _nothing(session: Session, opened: Opened, head: int, *, is_narrowed: bool, is_left: bool) -> None:
    from kbcore.store.answers import Outcome

    if session.output.is_json:
        session.show_outcome(Outcome.unchanged_at(opened.branch, head, dry_run=False))
    elif is_left:
        session.output.say("Nothing was decided.")
    else:
        session.output.say("Nothing of what you name is proposed." if is_narrowed else "Nothing is proposed.")


def _asked(session: Session, found: Sequence[Proposal]) -> tuple[list[Proposal], list[Proposal]]:
    """Ask at the terminal what becomes of each proposal; return those to accept and those to reject.

    Raises: ``InvalidQuery`` where there is no terminal.
    """
    from kbcli.messages import proposals
    from kbcore.errors import InvalidQuery

    output = session.output
    if not output.is_interactive:
        raise InvalidQuery(
            "--interactive needs a terminal.", hint="Decide with --accept or --reject, and say which are meant."
        )
    decided: dict[str, list[Proposal]] = {"a": [], "r": [], "s": []}
    for at, one in enumerate(found, start=1):
        for line in proposals.lines(output, [one]):
            output.error_detail(line)
        answer = ""
        while answer not in {*decided, "q"}:
            said: str = typer.prompt(f"{at} of {len(found)}: {_ANSWERS}", err=True, default="s", show_default=False)
            answer = said.strip().lower()[:1]
        if answer == "q":
            break
        decided[answer].append(one)
    return decided["a"], decided["r"]
