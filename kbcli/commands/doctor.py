"""``kb doctor``: diagnose the installation, with a remedy for every finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kbcli.options import session_of

if TYPE_CHECKING:
    from kbcli.context import Session
    from kbcli.render import Style
    from kbcore.upkeep.doctor import Diagnosis


def run(
    ctx: typer.Context,
    *,
    rebuild_head: Annotated[
        bool,
        typer.Option("--rebuild-head", help="Make a new head file out of the journal, after a copy of the store."),
    ] = False,
) -> int:
    """Diagnose the installation, with a remedy for every finding. Writes nothing, unless told to.

    Looks at every branch. Ends with the status of the first error that it finds.
    """
    session = session_of(ctx)
    if rebuild_head:
        return _rebuild(session)
    return _diagnose(session)


def _diagnose(session: Session) -> int:
    from kbcli import diagnosis, exits
    from kbcore.upkeep.doctor import diagnose

    session.is_read_only = True
    workspace = session.workspace_as_it_is()
    with session.output.waiting("Looking at everything"):
        found = diagnose(workspace, diagnosis.findings(session, workspace))
    if session.output.is_json:
        session.output.document(found.as_json())
    else:
        _tell(session, found)
    return exits.status_of(found.findings)


def _tell(session: Session, found: Diagnosis) -> None:
    from kbcli.render import visible, visible_lines
    from kbcli.wording import counted

    output = session.output
    output.is_paged = True
    colours: dict[str, Style] = {"ok": "green", "note": "cyan", "warning": "yellow"}
    for one in found.findings:
        mark = output.styled(f"{one.severity.replace('_', ' '):11}", colours.get(one.severity, "red"))
        place = f"{one.check} {one.branch}" if one.branch else one.check
        output.data(f"{mark} {visible(f'{place}: {one.message}')}\n")
        for line in visible_lines(one.remedy).splitlines():
            output.data(f"{'':11}   {line}\n")
    counts = {name: sum(one.severity == name for one in found.findings) for name in ("error", "warning")}
    said = [counted(number, name) for name, number in counts.items() if number]
    output.say(", ".join(said) if said else "All is well." if found.is_sound else "Not everything could be checked.")


def _rebuild(session: Session) -> int:
    from kbcli import exits
    from kbcli.context import TOOL
    from kbcli.render import visible
    from kbcore import branches
    from kbcore.storage import rebuild, verify

    output, workspace, machine = session.output, session.workspace, session.machine
    branch = branches.choose(workspace, session.named_branch).branch
    directory = workspace.directory_of(branch)
    proof = verify.prove(machine.fs, directory)
    if proof.is_sound:
        if output.is_json:
            output.document({"branch": branch, "rebuilt": False, "seq": proof.head.seq if proof.head else None})
        output.say(visible(f"{branch}: the head is sound; nothing was done."))
        return exits.DONE
    done = rebuild.rebuild_head(
        machine.fs, directory, machine.clock, branch=branch, wait_s=workspace.config.lock_wait_s, command=TOOL
    )
    if output.is_json:
        answer = {"branch": branch, "rebuilt": True, "seq": done.head.seq, "copy": done.copy, "unproven": done.unproven}
        output.document(answer)
        return exits.DONE
    output.say(visible(f"{branch}: the head was made anew, at seq {done.head.seq}."))
    output.say(visible(f"The store as it was is in {done.copy}."))
    for doubt in done.unproven:
        output.warn(visible(doubt))
    return exits.DONE
