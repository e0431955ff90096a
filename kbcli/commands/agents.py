"""``kb agents``: install, check, remove and print what agents' programs need to use KB unasked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.invocation import client_surroundings
from kbcli.invocation.command_tree import HelpfulCommand, group_of
from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbcli.clients.kinds import Scope
    from kbcli.clients.setup import PartTarget, SetupResult, Surroundings
    from kbcli.invocation.context import Session

app = group_of("Install, check, remove or print what clients of agents need.")


_CLIENTS = typer.Argument(
    metavar="CLIENT",
    help="claude-code, codex, cursor, vscode, gemini, zed, opencode, windsurf; claude and junie get the server alone.",
)
_ALL = typer.Option("--all", help="Every client that KB knows.")
_WRITE = typer.Option("--write", help="Change the files; without it, show what would change.")
_SCOPE = typer.Option(
    "--scope", metavar="SCOPE", help="project (its files are shared) or user; by default project, where there is one."
)
_SKILL = typer.Option("--skill", help="The skill as well: the file SKILL.md that these clients read.")
_REPLACE = typer.Option("--replace", help="Replace also what was changed by hand.")


@app.command("install", cls=HelpfulCommand)
def install(
    ctx: typer.Context,
    clients: Annotated[list[str] | None, _CLIENTS] = None,
    *,
    every: Annotated[bool, _ALL] = False,
    skill: Annotated[bool, _SKILL] = False,
    scope: Annotated[str, _SCOPE] = "",
    write: Annotated[bool, _WRITE] = False,
    replace: Annotated[bool, _REPLACE] = False,
) -> int:
    """Have clients start KB's server, run its hooks, and read how to use it.

    Writes the entry of the server (as `kb mcp install` does), the hooks of the client if it has some, and a block in
    its file of instructions: a short one where hooks bring the rest. All else in these files stays. What was changed by
    hand is not replaced unless --replace says so. With --skill also the skill `kb`, in .agents/skills, or for Claude
    Code in .claude/skills; without CLIENT that alone. Without --write nothing is written.
    """
    from kbcli.clients import kinds, setup

    def one(around: Surroundings, target: PartTarget) -> SetupResult:
        return setup.install(around, target, write=write, replace=replace)

    session = session_of(ctx)
    session.writes = write
    names = _named(clients, every=every, may_be_none=skill)
    status = _each(session, names, scope, one, write=write, skills=_read_by(names) if skill else None)
    if write and not session.output.is_json:
        for client in names:
            session.output.note(f"{kinds.KINDS[client].title}: {kinds.KINDS[client].then}")
    return status


@app.command("remove", cls=HelpfulCommand)
def remove(
    ctx: typer.Context,
    clients: Annotated[list[str] | None, _CLIENTS] = None,
    *,
    every: Annotated[bool, _ALL] = False,
    skill: Annotated[bool, _SKILL] = False,
    scope: Annotated[str, _SCOPE] = "",
    write: Annotated[bool, _WRITE] = False,
) -> int:
    """Take out of the clients' files what `kb agents install` put there.

    A file that was not changed since goes back to what it was, to the byte. Of another one KB's parts are taken out,
    and a file that then holds nothing is removed. The skill goes with --skill or --all. Without --write nothing is
    written.
    """
    from kbcli.clients import kinds, setup

    def one(around: Surroundings, target: PartTarget) -> SetupResult:
        return setup.take_out(around, target, write=write)

    session = session_of(ctx)
    session.writes = write
    names = _named(clients, every=every, may_be_none=skill)
    skills = [*kinds.SKILLS] if every else _read_by(names) if skill else None
    return _each(session, names, scope, one, write=write, is_left=False, skills=skills)


@app.command("check", cls=HelpfulCommand)
def check(
    ctx: typer.Context,
    clients: Annotated[list[str] | None, _CLIENTS] = None,
    *,
    every: Annotated[bool, _ALL] = False,
    scope: Annotated[str, _SCOPE] = "",
) -> int:
    """Say of each part of each client how it is; the status is 1 where one is not as it should be.

    Without CLIENT, those are checked of which something is installed. `kb doctor` starts their servers, too.
    """
    from kbcli.clients import checking
    from kbcli.invocation import exits
    from kbcli.messages.agents import fault_line, part_line

    session = session_of(ctx)
    session.is_read_only = True
    names = _named(clients, every=every, may_be_none=True)
    around = client_surroundings.of(session, quiet=True)
    found = checking.check(around, names, scope, session.env)
    output = session.output
    if output.is_json:
        output.document({"clients": [one.as_json() for one in found]})
    elif not found:
        output.say("Nothing of KB is installed for a client here. `kb agents install CLIENT` shows what would be.")
    else:
        for client in found:
            where = "" if client.program else " (its program is not on the PATH)" if client.has_program_name else ""
            output.say(f"{client.title}{where}")
            for part in client.parts:
                is_fault = part.state == "unusable"
                output.say(
                    fault_line(part.part, part.state, part.problem)
                    if is_fault
                    else part_line(part.part, part.state, str(part.path), part.problem)
                )
    return exits.VIOLATIONS if any(one.is_defect for one in found) else exits.DONE


@app.command("print", cls=HelpfulCommand)
def show(
    ctx: typer.Context,
    clients: Annotated[list[str] | None, _CLIENTS] = None,
    *,
    every: Annotated[bool, _ALL] = False,
    skill: Annotated[bool, _SKILL] = False,
    scope: Annotated[str, _SCOPE] = "",
) -> None:
    """Print the files that a client needs, with nothing else in them; nothing is read or written."""
    from kbcli.clients import setup
    from kbcore.text.escaping import escape_controls, escape_lines

    session = session_of(ctx)
    session.is_read_only = True
    output = session.output
    names = _named(clients, every=every, may_be_none=skill)
    around = client_surroundings.of(session, _scopes(names, scope))
    found = [one for client in names for one in setup.targets(around, client, _fit(client, scope))]
    found += setup.skills(around, _read_by(names), scope) if skill else []
    if output.is_json:
        output.document({"files": [{**_target_json(one), "text": one.part.put("")} for one in found]})
        return
    for one in found:
        output.note(escape_controls(f"{one.client}: {one.part.name}, in {one.place.path}:"))
        output.data(escape_lines(one.part.put("")))


@app.command("hook", cls=HelpfulCommand)
def hook(
    ctx: typer.Context,
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="The client that runs it.")],
    event: Annotated[str, typer.Argument(metavar="EVENT", help="session-start, pre-compact, pre-edit or on-read.")],
) -> int:
    """Answer the hook of a client; it is not typed.

    Reads the client's JSON on standard input, and writes what `kb prime` says in the form that the client gives its
    model as context; nothing where there is nothing to say. The status is always 0.
    """
    # The entry point has answered, but where options of `kb` are in front, which no client puts there.
    del ctx, client, event
    return 0


def _named(clients: list[str] | None, *, every: bool, may_be_none: bool = False) -> list[str]:
    """Return the clients that are meant. Raises: ``InvalidQuery``."""
    from kbcli.clients import kinds
    from kbcore.errors import InvalidQuery

    if every:
        return list(kinds.KINDS)
    if not clients and not may_be_none:
        raise InvalidQuery("No client is named.", hint=f"Name some of {', '.join(kinds.KINDS)}, or give --all.")
    for client in clients or []:
        kinds.find(client)
    return list(dict.fromkeys(clients or []))


def _fit(client: str, scope: str, *, is_one: bool = False) -> str:
    """Return the scope to ask a client for: of many, one that has no such scope is asked for its own."""
    from kbcli.clients import kinds

    return scope if is_one or not scope or scope not in kinds.SCOPES or scope in kinds.find(client).places else ""


def _scopes(clients: Sequence[str], scope: str, *, is_one: bool = False) -> list[Scope]:
    """Return the scopes of the servers of these clients. Raises: ``InvalidQuery`` for one that there is not."""
    from kbcli.clients import kinds

    return [kinds.scope_of(one, _fit(one, scope, is_one=is_one)) for one in clients]


def _read_by(clients: Sequence[str]) -> Sequence[str]:
    """Return the clients whose skill is meant: without any, that which clients share."""
    from kbcli.clients import kinds

    return clients or [kinds.SHARED_SKILL]


def _meant(
    around: Surroundings, clients: Sequence[str], scope: str, skills: Sequence[str] | None
) -> list[tuple[str, list[PartTarget]]]:
    """Return the parts that are meant, by what to call those whom they are for."""
    from kbcli.clients import setup
    from kbcli.clients.checking import title_of

    found = [(one, setup.targets(around, one, _fit(one, scope, is_one=len(clients) == 1))) for one in clients]
    found += [(one.client, [one]) for one in setup.skills(around, skills, scope)] if skills is not None else []
    return [(title_of(client), targets) for client, targets in found]


def _each(
    session: Session,
    clients: Sequence[str],
    scope: str,
    use: Any,
    *,
    write: bool,
    is_left: bool = True,
    skills: Sequence[str] | None = None,
) -> int:
    """Do something with each part of clients; show what was done, and return the status of the first that failed.

    ``skills`` are the clients whose skill is meant too, None where none is.
    """
    from kbcli.messages.agents import action_word, fault_line, part_line
    from kbcore.errors import KBError

    around = client_surroundings.of(session, _scopes(clients, scope, is_one=len(clients) == 1))
    output, status = session.output, 0
    listed: list[dict[str, Any]] = []
    for title, targets in _meant(around, clients, scope, skills):
        if not output.is_json:
            output.say(title)
        for target in targets:
            path = str(target.place.path)
            try:
                done = use(around, target)
            except KBError as error:
                status = status or error.exit_status
                listed.append({**_target_json(target), "action": "failed", "problem": error.as_json()})
                if not output.is_json:
                    output.say(fault_line(target.part.name, "failed", f"{error.message} {error.hint}".strip()))
                continue
            listed.append({**_target_json(target), **_done_json(done, write=write)})
            if not output.is_json:
                word, why = action_word(done.action, done.state, write=write, is_left=is_left)
                output.say(part_line(target.part.name, word, path, why))
                if not write:
                    output.say_difference(done.change.diff)
    if output.is_json:
        output.document({"written": write, "parts": listed})
    elif not write:
        output.note("Nothing was written; --write does so.")
    return status


def _target_json(target: PartTarget) -> dict[str, Any]:
    return {"client": target.client, "part": target.part.name, "scope": target.scope, "path": str(target.place.path)}


def _done_json(done: SetupResult, *, write: bool) -> dict[str, Any]:
    is_done = write or done.action in {"none", "kept"}
    return {
        "state": done.state,
        "action": done.action if is_done else f"would be {done.action}",
        "diff": done.change.diff,
    }
