"""``kb doctor``: diagnose the installation, with a remedy for every finding."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcli.terminal.colours import Style
    from kbcli.terminal.output import Output
    from kbcore.maintenance.doctor import Diagnosis
    from kbcore.maintenance.repair import Repaired
    from kbcore.maintenance.salvage import Salvaged

_REPEATED_CHARS: Final = 80
"""Up to this length a remedy is shown again with each finding that has it."""


def run(
    ctx: typer.Context,
    *,
    rebuild_head: Annotated[
        bool,
        typer.Option("--rebuild-head", help="Rebuild the head file from the journal, after a copy of the store."),
    ] = False,
    rebuild_snapshots: Annotated[
        bool,
        typer.Option("--rebuild-snapshots", help="Rebuild damaged snapshots, after a copy of the store."),
    ] = False,
    adopt: Annotated[
        Path | None,
        typer.Option("--adopt", metavar="PATH", help="Take over the stores in a folder, such as .kb/branches."),
    ] = None,
    even_damaged: Annotated[
        bool,
        typer.Option("--even-damaged", help="With --adopt: also take over stores that fail the proof, unchanged."),
    ] = False,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="With --adopt: move a store that exists to the trash, and replace it."),
    ] = False,
    new_epoch: Annotated[
        bool,
        typer.Option("--new-epoch", help="Continue without lost records: the store gets a new id. Asks at a terminal."),
    ] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", "-y", help="Confirm --new-epoch, or --salvage of a store that was reset, without a question."
        ),
    ] = False,
    salvage: Annotated[
        bool,
        typer.Option("--salvage", help="Keep every proven record and note what is lost, after a copy of the store."),
    ] = False,
) -> int:
    """Diagnose the installation, with a remedy for every finding. Changes nothing without an option that says so.

    Looks at every branch, times the disk with a file in the cache that it removes again, and starts KB's server the way
    the repository's MCP clients do. Ends with the status of the first error that it finds.
    """
    session = session_of(ctx)
    session.has_reported_losses = True
    for option, is_given in (("--even-damaged", even_damaged), ("--replace", replace)):
        if is_given and adopt is None:
            raise typer.BadParameter(f"{option} can only be used with --adopt.")
    asked = {
        "--adopt": adopt is not None,
        "--salvage": salvage,
        "--new-epoch": new_epoch,
        "--rebuild-head": rebuild_head,
        "--rebuild-snapshots": rebuild_snapshots,
    }
    _require_one([option for option, is_asked in asked.items() if is_asked])
    if adopt is not None:
        return _adopt(session, adopt, replaces=replace, even_damaged=even_damaged)
    if new_epoch:
        return _begin_epoch(session, is_confirmed=yes)
    if salvage:
        return _salvage(session, is_confirmed=yes)
    if rebuild_head or rebuild_snapshots:
        return _repair(session, rebuild_head=rebuild_head, rebuild_snapshots=rebuild_snapshots)
    return _diagnose(session)


def _require_one(repairs: list[str]) -> None:
    """Refuse several repairs at once; only the two --rebuild options can be combined."""
    if len(repairs) > 1 and set(repairs) != {"--rebuild-head", "--rebuild-snapshots"}:
        commands = ", then ".join(f"`kb doctor {option}`" for option in repairs)
        raise typer.BadParameter(f"{' and '.join(repairs)} do not go together. Run one after the other: {commands}.")


def _adopt(session: Session, path: Path, *, replaces: bool, even_damaged: bool) -> int:
    from kbcli.invocation import exits
    from kbcore.maintenance.adopting import adopt, up_to
    from kbcore.text.escaping import escape_controls

    workspace, output = session.workspace_as_it_is(), session.output
    done = adopt(workspace, session.start / path, replaces=replaces, even_damaged=even_damaged)
    if output.is_json:
        output.document({"adopted": [one.as_json() for one in done]})
        return exits.DONE
    for one in done:
        output.say(escape_controls(f"{one.branch}: taken over from {path}, at seq {one.seq}."))
        if one.replaced:
            output.warn(
                escape_controls(
                    f"The store that {one.branch} had, {up_to(one.replaced_seq)}, is in the trash now: {one.replaced}"
                )
            )
        if one.damage:
            output.warn(escape_controls(f"{one.branch} is damaged ({one.damage}): run `kb doctor`."))
    return exits.DONE


def _diagnose(session: Session) -> int:
    from kbcli.invocation import exits
    from kbcli.views import diagnosis
    from kbcore.maintenance.doctor import diagnose
    from kbcore.maintenance.findings import damaged_journals
    from kbcore.storage import known_damage

    session.is_read_only = True
    workspace = session.workspace_as_it_is()
    with session.output.waiting("Looking at everything"):
        found = diagnose(workspace, diagnosis.findings(session, workspace), probe=session.real_fs)
    for store in found.stores:
        directory, cache = workspace.folders.directory_of(store.branch), workspace.folders.cache_of(store.branch)
        known_damage.renew(session.real_fs, directory, cache, damaged_journals(found.findings, store.branch))
    if session.output.is_json:
        session.output.document(found.as_json())
    else:
        show(session.output, found)
    return exits.status_of(found.findings)


def show(output: Output, found: Diagnosis) -> None:
    """Show a diagnosis: each finding, and its remedy where it has one."""
    from kbcore.text.escaping import escape_controls, escape_lines
    from kbcore.text.wording import pluralize

    output.is_paged = True
    colours: dict[str, Style] = {"ok": "green", "note": "cyan", "warning": "yellow"}
    shown: dict[str, str] = {}  # the place that each remedy was shown for
    for one in found.findings:
        mark = output.styled(f"{one.severity.replace('_', ' '):11}", colours.get(one.severity, "red"))
        place = f"{one.check} {one.branch}" if one.branch else one.check
        output.data(output.flowed(f"{mark} {escape_controls(f'{place}: {one.message}')}") + "\n")
        if not one.remedy:
            continue
        if len(one.remedy) > _REPEATED_CHARS and one.remedy in shown:
            output.data(
                output.flowed(f"{'':11}   {escape_controls(f'The remedy is that of {shown[one.remedy]}, above.')}")
                + "\n"
            )
            continue
        shown.setdefault(one.remedy, place)
        # Only the remedy for a hook has lines of its own, and it names nothing that a repository could choose.
        for line in escape_lines(one.remedy).splitlines() if one.check == "hooks" else [escape_controls(one.remedy)]:
            output.data(f"{'':11}   {line}\n")
    counts = {name: sum(one.severity == name for one in found.findings) for name in ("error", "warning")}
    said = [pluralize(number, name) for name, number in counts.items() if number]
    output.say(", ".join(said) if said else "All is well." if found.is_sound else "Not everything could be checked.")


def _begin_epoch(session: Session, *, is_confirmed: bool) -> int:
    """Begin a new epoch of the branch that is meant, once a person has confirmed it."""
    from kbcli.invocation import exits
    from kbcore.errors import InvalidQuery
    from kbcore.errors.remedies import brought_back, for_shell, shell
    from kbcore.maintenance import epochs
    from kbcore.maintenance.share_diagnosis import lost_changes
    from kbcore.store.branches.choosing import choose_noted
    from kbcore.text.escaping import escape_controls, escaped_sentence

    output, workspace = session.output, session.workspace
    branch = choose_noted(workspace, session.named_branch)
    question = " ".join(filter(None, [lost_changes(workspace, branch), epochs.question(workspace, branch)]))
    if not is_confirmed:
        if not output.is_interactive:
            hint = f"Where a person consents: {shell('doctor', '--new-epoch', '--branch', branch, '--yes')}."
            raise InvalidQuery(f"A new epoch needs a person's consent. {question}", hint=hint)
        if not typer.confirm(escaped_sentence(question), err=True):
            output.note("Nothing was changed.")
            return exits.INTERRUPTED
    begun = epochs.accept(workspace, branch, session.author)
    if output.is_json:
        output.document(begun.as_json())
        return exits.DONE
    for sentence in begun.done:
        output.say(escape_controls(sentence))
    output.say(for_shell(brought_back("Next:")))
    return exits.DONE


def _salvage(session: Session, *, is_confirmed: bool) -> int:
    """Salvage a branch, and those that share its damaged files; a person confirms the loss of a store's end."""
    from kbcli.invocation import exits
    from kbcore.errors import StoreWentBack
    from kbcore.maintenance import salvage
    from kbcore.store import branches
    from kbcore.text.escaping import escape_controls

    output, workspace = session.output, session.workspace
    branch = branches.choose(workspace, session.named_branch).branch

    def salvaged(*, accepts_loss: bool) -> list[salvage.Salvaged]:
        with output.waiting("Salvaging"):
            return salvage.salvage(workspace, branch, session.author, accepts_loss=accepts_loss)

    try:
        made = salvaged(accepts_loss=is_confirmed)
    except StoreWentBack as error:
        if is_confirmed or not output.is_interactive or not error.data.get("is_acceptable"):
            raise
        if not typer.confirm(escape_controls(f"{error.message} {salvage.QUESTION}"), err=True):
            output.note("Nothing was changed.")
            return exits.INTERRUPTED
        made = salvaged(accepts_loss=True)
    if output.is_json:
        output.document({"branch": branch, "salvaged": [one.as_json() for one in made]})
    else:
        _show_salvaged(output, made)
    return exits.DONE


def _show_salvaged(output: Output, made: list[Salvaged]) -> None:
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize

    for one in made:
        if not one.copy and one.doubts:
            output.warn(escape_controls(f"{one.branch} was not salvaged: {' '.join(one.doubts)}"))
            continue
        if not one.copy:
            output.say(escape_controls(f"{one.branch}: everything is proven; nothing was done."))
            continue
        for sentence in one.done:
            output.say(escape_controls(f"{one.branch}: {sentence}"))
        for doubt in one.doubts:
            output.warn(escape_controls(f"{one.branch}: {doubt}"))
        output.say(escape_controls(f"{one.branch} at seq {one.seq} has {pluralize(one.entities, 'entity')}."))
        output.say(escape_controls(f"The store as it was is in {one.copy}."))


def _repair(session: Session, *, rebuild_head: bool, rebuild_snapshots: bool) -> int:
    """Carry out the repairs that were asked for: the head first, because all else needs it."""
    from kbcli.invocation import exits
    from kbcore.maintenance import repair
    from kbcore.store import branches
    from kbcore.text.escaping import escape_controls

    output, workspace = session.output, session.workspace
    branch = branches.choose(workspace, session.named_branch).branch
    made: dict[str, Repaired] = {}
    if rebuild_head:
        made["the head is"] = repair.rebuild_head(workspace, branch, session.author)
    if rebuild_snapshots:
        made["the snapshots are"] = repair.rebuild_snapshots(workspace, branch, session.author)
    if output.is_json:
        output.document({"branch": branch, "repairs": [one.as_json() for one in made.values()]})
        return exits.DONE
    for subject, one in made.items():
        for sentence in one.done or [f"{subject} sound; nothing was done."]:
            output.say(escape_controls(f"{branch}: {sentence}"))
        if one.copy:
            output.say(escape_controls(f"The store as it was is in {one.copy}."))
        for doubt in one.doubts:
            output.warn(escape_controls(doubt))
    return exits.DONE
