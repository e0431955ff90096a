"""``kb prolog``: goals of Prolog on the branch, from options, from standard input, and at a prompt; and its engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from kbcli.invocation.command_tree import WITHOUT_COMMAND, HelpfulCommand, group_of
from kbcli.invocation.context import session_of
from kbcli.invocation.options import At

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kbcli.invocation.context import Session
    from kbcli.prolog.prolog_call import Asking
    from kbcli.prolog.running import InputRunner
    from kbcli.terminal.colours import Style
    from kbcore.logic.engine.installation import EngineName

app = group_of(
    """Run goals of Prolog on the clauses and the graph of the branch.

    Without a goal it shows a prompt, or reads goals from standard input where that is no terminal. The exit status is
    0 where each goal has a solution, and 1 where one has none. An error ends the run with its status, and `halt.`
    ends it as the end of the input does. `:help` as a goal lists the statements that show and change clauses."""
)

Texts = list[str] | None
Goal = Annotated[
    Texts, typer.Option("-g", "--goal", metavar="GOAL", help="Run it and show all solutions; may be repeated.")
]
File = Annotated[
    Texts,
    typer.Option(
        "-f", "--file", metavar="FILE|-", help="Add its clauses for this run, without a record; may be repeated."
    ),
]
Limit = Annotated[int | None, typer.Option("--limit", metavar="N", help="At most so many solutions of each goal.")]
ModeOption = Annotated[
    Literal["engine", "standard"],
    typer.Option("--mode", help="Keep the goal suspended, or run it again for each solution."),
]
KbLibraries = Annotated[
    Texts,
    typer.Option("-l", "--kb-libraries", metavar="NAME[,NAME]", help="Load libraries as well; may be repeated."),
]
KbRoots = Annotated[
    Texts,
    typer.Option(
        "--kb-roots",
        metavar="DIR",
        help="A folder beside the worktree whose files `:import` may read; may be repeated.",
    ),
]
_UNUSABLE: Final = frozenset({"missing", "broken"})


@app.callback(**WITHOUT_COMMAND)
def run(
    ctx: typer.Context,
    *,
    goal: Goal = None,
    file: File = None,
    limit: Limit = None,
    mode: ModeOption = "engine",
    at: At = None,
    kb_libraries: KbLibraries = None,
    kb_roots: KbRoots = None,
) -> int | None:
    """Run goals of Prolog on the branch, unless a command of the group is typed."""
    if ctx.invoked_subcommand:
        return None
    from kbcli.invocation.bounds import check_bounds
    from kbcore.errors import InvalidQuery

    if limit is not None:
        check_bounds("--limit", limit, 1_000_000, 1_000_000)
    session = session_of(ctx)
    files = file or []
    is_prompt = not goal and session.output.is_interactive and not session.output.is_json
    if "-" in files and (not goal or files.count("-") > 1):
        raise InvalidQuery("-f - reads standard input, which has no goals then.", hint="Give the goals with -g.")
    from kbcli.prolog.prolog_call import Asking
    from kbcli.prolog.running import InputRunner

    asking = Asking(session, at=at, libraries=kb_libraries or (), roots=kb_roots or ())
    runner = InputRunner(asking, mode, limit)
    try:
        _load(asking, files, is_strict=not is_prompt)
        if is_prompt:
            from kbcli.prolog.prompt import converse

            return converse(asking, runner)
        return _run_all(asking, runner, goal)
    finally:
        asking.close()


def _load(asking: Asking, files: list[str], *, is_strict: bool) -> None:
    """Add the clauses of files for this run; at a prompt (not ``is_strict``) what cannot be used is only warned of."""
    from kbcli.input import changeset_file
    from kbcore.errors import Problem, PrologFailed
    from kbcore.limits import MAX_PROBLEMS
    from kbcore.text.wording import pluralize

    if not files:
        return
    texts = [(name, changeset_file.text_in(name, asking.session.start)) for name in files]
    faults = asking.add_of_run([("standard input" if name == "-" else name, text) for name, text in texts])
    if faults and is_strict:
        problems = [Problem(f"{one.file}:{one.line}", "clause", one.message) for one in faults]
        message = f"{pluralize(len(faults), 'clause')} cannot be used; no goal was run."
        raise PrologFailed(message, details=problems[:MAX_PROBLEMS], data={"kind": "clause"})
    for one in faults[:MAX_PROBLEMS]:
        asking.session.output.warn(one.shown)


def _run_all(asking: Asking, runner: InputRunner, goals: Texts) -> int:
    """Run the goals of the options, else those of standard input, until one is ``halt``; an error ends it."""
    from kbcli.prolog.inputs import HALT
    from kbcore.errors import KBError

    session = asking.session
    status = 0
    try:
        for text in goals or _of_stdin(asking):
            if text.strip() in HALT:
                break
            runner.run(text)
    except KBError as error:
        session.output.flush()
        if session.output.is_json:
            around: dict[str, Any] = {**session.output.around, **asking.prolog.held_back, "answers": runner.answers}
            session.output.around = around
        status = session.show_error(error)
    else:
        if session.output.is_json:
            session.output.document(asking.head() | {"answers": runner.answers})
    asking.show_notices()
    return status or runner.status


def _of_stdin(asking: Asking) -> Iterator[str]:
    from kbcli.input import changeset_file
    from kbcli.prolog.inputs import Inputs
    from kbcore.errors import InvalidQuery

    inputs = Inputs(asking)
    text = changeset_file.text_in(changeset_file.STDIN, asking.session.start)
    if not text.strip():
        raise InvalidQuery("Standard input has no goal.", hint="Give one with -g; a terminal has a prompt.")
    for line in text.split("\n"):
        yield from inputs.feed(line)
    yield from inputs.rest()


@app.command("install", cls=HelpfulCommand)
def install(ctx: typer.Context) -> int:
    """Fetch the WebAssembly build of SWI-Prolog into the user's data folder, and start it once.

    It is one npm package, by name, version and digest; no script of it is run. It needs Node.js with npm.
    """
    from kbcore.errors import PrologUnavailable
    from kbcore.logic.engine import package
    from kbcore.logic.engine.installation import PACKAGE, PACKAGE_VERSION
    from kbcore.text.escaping import escape_controls

    session = session_of(ctx)
    with session.output.waiting(f"Fetching {PACKAGE}"):
        done, folder = package.install(session.env)
    row = _row("wasm", session)
    status = PrologUnavailable.exit_status if row["status"] in _UNUSABLE else 0
    if session.output.is_json:
        document = {"package": PACKAGE, "version": PACKAGE_VERSION, "status": done, "folder": str(folder)}
        session.output.document(document | {"engine": row})
        return status
    verb = "is installed in" if done == "installed" else "was there already, in"
    session.output.say(escape_controls(f"{PACKAGE} {PACKAGE_VERSION} {verb} {folder}."))
    session.output.say(escape_controls(row["message"]))
    return status


@app.command("engines", cls=HelpfulCommand)
def engines(ctx: typer.Context) -> int:
    """Show which engine is used, and what is missing of each other one.

    Each engine that is found is started once. The status is 31 where none can be used.
    """
    from kbcore.errors import PrologUnavailable
    from kbcore.logic.engine import available
    from kbcore.logic.engine.installation import ENGINES
    from kbcore.text.escaping import escaped_sentence

    session = session_of(ctx)
    used = available(session.env).launch
    rows = [_row(name, session) for name in ENGINES]
    for one in rows:
        if used and one["name"] == used.name and one["status"] not in _UNUSABLE:
            one["status"] = "used"
    if session.output.is_json:
        session.output.document({"used": used.name if used else None, "engines": rows})
    else:
        for one in rows:
            style: Style = "green" if one["status"] == "used" else "yellow"
            mark = session.output.styled(f"{one['status']:9}", style)
            session.output.data(f"{mark} {escaped_sentence(one['message'])}\n")
    return 0 if any(one["status"] == "used" for one in rows) else PrologUnavailable.exit_status


def _row(name: EngineName, session: Session) -> dict[str, Any]:
    """Return whether an engine can be used, after starting it, and a sentence on it."""
    from kbcore.logic.engine import EngineEnded, EngineProcess
    from kbcore.logic.engine.installation import Launch, find

    found = find(name, session.env)
    if not isinstance(found, Launch):
        return {"name": name, "status": "missing", "message": f"{found}."}
    program = found.command[0]
    try:
        engine = EngineProcess(found)
    except (EngineEnded, OSError):
        return {"name": name, "status": "broken", "message": f"{name}: {program} does not start."}
    engine.kill()
    version = f"{engine.version // 10000}.{engine.version // 100 % 100}.{engine.version % 100}"
    message = f"{name}: SWI-Prolog {version}, run by {program}."
    return {"name": name, "status": "available", "version": version, "program": program, "message": message}
