"""``kb dml``: run and check programs whose steps are tasks for a language model, list tools, make one of a text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kbcli.invocation.command_tree import HelpfulCommand, group_of
from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbcli.dml.running import RunRequest
    from kbcore.dml import Budget

app = group_of(
    """Run programs whose steps are tasks for a language model.

    They are written in DML, which is Prolog. `kb dml run kb:review` runs a program that KB ships, and any other from
    its file. A program calls only the tools that it is given, has the files of one folder at most, and changes nothing
    in the store unless it is allowed to."""
)

Texts = list[str] | None
Param = Annotated[
    Texts,
    typer.Option("--param", metavar="NAME=VALUE", help="A param: JSON if it is JSON, else text; may be repeated."),
]
Arg = Annotated[Texts, typer.Option("--arg", metavar="VALUE", help="An argument by position; may be repeated.")]
Tools = Annotated[
    str, typer.Option("--tools", metavar="FILE.py", help="Functions of its list TOOLS are tools.", show_default=False)
]
Allow = Annotated[
    Texts,
    typer.Option(
        "--allow", metavar="PATTERN", help="Only tools of such names, as `kb_*`, also to write; may be repeated."
    ),
]
Deny = Annotated[Texts, typer.Option("--deny", metavar="PATTERN", help="No tools of such names; may be repeated.")]
ModelName = Annotated[
    str, typer.Option("--model", metavar="NAME", help="The model; else KB_DML_MODEL.", show_default=False)
]
BaseUrl = Annotated[
    str, typer.Option("--base-url", metavar="URL", help="Its provider; else KB_DML_BASE_URL.", show_default=False)
]
_FILE = typer.Argument(metavar="FILE|-", help="The program; - is standard input, kb:NAME one that KB ships.")


@app.command("run", cls=HelpfulCommand)
def run(
    ctx: typer.Context,
    file: Annotated[str, _FILE],
    *,
    param: Param = None,
    arg: Arg = None,
    tools: Tools = "",
    allow: Allow = None,
    deny: Deny = None,
    model: ModelName = "",
    base_url: BaseUrl = "",
    gas: Annotated[int | None, typer.Option("--gas", metavar="N", help="Steps of Prolog at most.")] = None,
    timeout: Annotated[str | None, typer.Option("--timeout", metavar="S", help="Seconds at most.")] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", metavar="N", help="Turns of the model at most.")] = None,
    task_rounds: Annotated[
        int | None,
        typer.Option("--task-rounds", metavar="N", help="Turns in one task; with more it fails. [default: 50]"),
    ] = None,
    tokens: Annotated[int | None, typer.Option("--tokens", metavar="N", help="Tokens of all turns at most.")] = None,
    cost: Annotated[str | None, typer.Option("--cost", metavar="USD", help="US dollars at most.")] = None,
    workspace: Annotated[
        str, typer.Option("--workspace", metavar="DIR", help="The folder whose files it has.", show_default=False)
    ] = "",
    stream: Annotated[bool, typer.Option("--stream", help="Show what the model says while it comes.")] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Show requests, turns and calls of tools.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Record the run as an event of the branch.")] = False,
) -> int:
    """Run a program, and show its events as they come.

    Outputs and answers go to standard output, logs to standard error; with --json each event is one line. The status is
    0 where the program succeeds, 1 where it fails, and that of the error where one ends it. KB's own tools that write
    run only where --allow names them.
    """
    from kbcli.dml import running
    from kbcli.dml.program_tools import ToolChoice
    from kbcli.invocation.parameters import parameters_of, value_of
    from kbcore.errors import KBError

    session = session_of(ctx)
    numbers = {
        "gas": gas,
        "timeout": timeout,
        "rounds": rounds,
        "task-rounds": task_rounds,
        "tokens": tokens,
        "cost": cost,
    }

    def asked() -> RunRequest:
        chosen, name = running.model_of(model, base_url, session.env)
        return running.RunRequest(
            file=file,
            params=parameters_of(param or ()),
            args=[value_of(one) for one in arg or ()],
            tools=ToolChoice(tools, allow or (), deny or ()),
            model=chosen,
            model_name=name,
            budget=_budget(numbers),
            workspace=running.folder_of(session, workspace) if workspace else None,
            stream=stream,
            trace=trace,
            record=record,
        )

    if not session.output.is_json:
        return running.run_program(session, asked())
    try:
        return running.run_program(session, asked())
    except KBError as error:
        return running.show_unrun(session, error)
    except KeyboardInterrupt:
        running.show_unrun(session, running.interrupted())
        raise


def _budget(given: Mapping[str, int | str | None]) -> Budget:
    """Return the budget that options state, by their names. Raises: ``InvalidQuery`` for one that is out of bounds."""
    from kbcore.dml import Budget
    from kbcore.errors import InvalidQuery
    from kbcore.limits import MAX_RUN_COST_USD, MAX_RUN_NUMBER, MAX_RUN_S
    from kbcore.text.escaping import in_quotes

    fields = {"timeout": "timeout_s", "task-rounds": "task_rounds", "cost": "cost_usd"}
    bounds = {"timeout": MAX_RUN_S, "cost": MAX_RUN_COST_USD}
    stated: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        most = bounds.get(name, MAX_RUN_NUMBER)
        number = _number(value) if isinstance(value, str) else value
        if not 0 < number <= most:
            raise InvalidQuery(f"--{name} must be a number above 0 and at most {most:,}, not {in_quotes(str(value))}.")
        stated[fields.get(name, name)] = number
    return Budget(**stated)


def _number(text: str) -> float:
    """Return the number that a text is; 0, which no budget is, for any other text."""
    try:
        number = float(text)
    except ValueError:
        return 0
    return 0 if math.isnan(number) else number


@app.command("tools", cls=HelpfulCommand)
def tools(ctx: typer.Context, *, tools: Tools = "") -> None:
    """List the tools that programs may call, those of KB and those of a file, each with the schema of its arguments."""
    from kbcli.dml.program_tools import RunTools, ToolChoice, show_tools
    from kbcore.dml.recording import new_run

    session = session_of(ctx)
    choice = ToolChoice(tools, allow=("*",))
    found = RunTools(choice, session.start, session.env, new_run("tools"), session.named_branch)
    try:
        show_tools(session.output, found.toolset)
    finally:
        found.close()


@app.command("check", cls=HelpfulCommand)
def check(
    ctx: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="FILE|-", help="The programs; - is standard input.")],
    *,
    tools: Tools = "",
    format_: Annotated[
        Literal["text", "json", "sarif"], typer.Option("--format", help="How to write what is found.")
    ] = "text",
    fail_on: Annotated[
        Literal["error", "warning", "never"], typer.Option("--fail-on", help="What makes the status 1.")
    ] = "error",
) -> int:
    """Say what is wrong with programs, with line and column, and list their params, tools and tasks.

    Nothing of a program is run. With --tools a tool that neither the program nor KB nor the file has is an error.
    Ends with status 1 when something is found that counts as a failure.
    """
    from kbcli.dml import check_programs
    from kbcli.invocation.bounds import check_format

    session = session_of(ctx)
    check_format(format_, {"text", "json"}, is_json=session.output.is_json)
    session.output.is_json = session.output.is_json or format_ == "json"
    return check_programs.check(session, check_programs.ProgramCheckRequest(files, tools, format_, fail_on))


@app.command("compile", cls=HelpfulCommand)
def compile_(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE.md", help="The description of a program.")],
    *,
    tools: Tools = "",
    model: ModelName = "",
    base_url: BaseUrl = "",
    tokens: Annotated[int | None, typer.Option("--tokens", metavar="N", help="Tokens of all attempts at most.")] = None,
    cost: Annotated[str | None, typer.Option("--cost", metavar="USD", help="US dollars at most.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a program that was edited.")] = False,
) -> None:
    """Have a model write the program that a description says, into FILE.dml.

    It is checked as `kb dml check` does, and its errors are sent back to the model, three attempts at most. A
    description that has not changed is not sent again.
    """
    from kbcli.dml import running
    from kbcli.dml.compile_program import CompileRequest, compile_program
    from kbcli.dml.program_tools import RunTools, ToolChoice
    from kbcore.dml.recording import new_run

    session = session_of(ctx)
    chosen, name = running.model_of(model, base_url, session.env)
    choice = ToolChoice(tools, allow=("*",))
    found = RunTools(choice, session.start, session.env, new_run("compile"), session.named_branch)
    try:
        known = [tool for one in found.toolset.names if (tool := found.toolset.find(one))]
        budget = _budget({"tokens": tokens, "cost": cost})
        compile_program(session, CompileRequest(file, chosen, name, known, budget, force))
    finally:
        found.close()
