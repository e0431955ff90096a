"""The global options, those that several commands share, and how what was typed becomes a value.

The global options are defined once and attached to every command.

Text, numbers and choices are all that commands take, so no validation library is imported for them.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperArgument, TyperOption

from kbcli.invocation import completion
from kbcli.invocation.context import Session, session_of
from kbcli.terminal.colours import When
from kbcore.model.values import text_problem
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import nearest

Parameter = TyperOption | TyperArgument

Message = Annotated[str, typer.Option("--message", "-m", metavar="TEXT", help="Why, for the record.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")]
At = Annotated[
    str | None, typer.Option("--at", metavar="POINT", help="As the branch was then, as `kb diff --help` says.")
]
Actor = Annotated[
    str, typer.Option("--actor", metavar="A", help="Only what this person or agent changed.", show_default=False)
]
Source = Annotated[
    str,
    typer.Option(
        "--source", metavar="S", help="Only what was changed through it: cli, sync, mcp, …", show_default=False
    ),
]
SessionName = Annotated[
    str, typer.Option("--session", metavar="S", help="Only what was changed in this session.", show_default=False)
]
Tags = Annotated[list[str] | None, typer.Option("--tag", metavar="T", help="Has the tag; twice means both.")]
Status = Annotated[str | None, typer.Option("--status", metavar="S", help="Has the status.")]
Paths = Annotated[
    list[str] | None,
    typer.Option(
        "--path", metavar="GLOB", help="Of these files, or of those below a folder; twice means either of them."
    ),
]
Branches = Annotated[
    list[str] | None, typer.Option("--only", metavar="BRANCH", help="Only this branch; may be repeated.")
]
Remote = Annotated[str, typer.Argument(metavar="REMOTE", help="The git remote, as `git remote` lists it.")]
TABLE_FORMAT: Final = "How to write it. [default: table at a terminal, else tsv]"
"""The help of ``--format`` of a command that shows a table."""

GLOBAL: Final = "Global options"
_PLACES: Final = frozenset({"PATH", "DIR", "FILE|-"})
"""Metavars of names of files, which are whatever bytes the file system has; all else is text."""
_SHOWN: Final = 60
_MAX_DIGITS: Final = 18


def backup_file(session: Session, name: str) -> Path:
    """Return the path of a backup. Raises: ``InvalidQuery`` for the sign that other programs take for a pipe."""
    from kbcore.errors import InvalidQuery

    if name in {"", "-"}:
        given = "The name is empty" if not name else "`-` is no file, and KB does not stream backups"
        raise InvalidQuery(
            f"{given}: a backup is a file that is read back and proven.",
            hint="Name a file: `kb backup ../kb.backup`. A file that is called - is `./-`.",
        )
    return session.start / name


def _keep_directory(ctx: typer.Context, value: list[str] | None) -> None:
    # Also while a shell completes: it offers what there is in that folder.
    session_of(ctx).directories += value or []


def _keep_branch(ctx: typer.Context, value: str | None) -> None:
    if value is not None and ctx.resilient_parsing:
        session_of(ctx).branch = value
    elif value is not None:
        if not value:
            raise typer.BadParameter("it is empty.")
        if session_of(ctx).branch:
            raise typer.BadParameter("it is given before and after the command, and takes one value.")
        session_of(ctx).branch = value


def _keep_json(ctx: typer.Context, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        session_of(ctx).output.is_json = True


def _keep_quiet(ctx: typer.Context, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        session_of(ctx).output.is_quiet = True


def _keep_color(ctx: typer.Context, value: When | None) -> None:
    if value and not ctx.resilient_parsing:
        session_of(ctx).output.color = value


def _keep_no_color(ctx: typer.Context, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        session_of(ctx).output.color = "never"


def _declared(
    directory: Annotated[
        list[str] | None,
        typer.Option(
            "-C",
            metavar="PATH",
            help="Run as if started there; may be repeated, as with git.",
            expose_value=False,
            callback=_keep_directory,
        ),
    ] = None,
    branch: Annotated[
        str | None,
        typer.Option(
            "--branch",
            metavar="NAME",
            help="The branch to use; else KB_BRANCH, else the one that is checked out.",
            expose_value=False,
            callback=_keep_branch,
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option("--json", help="Answer with one JSON document.", expose_value=False, callback=_keep_json),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="Write only what was asked for.", expose_value=False, callback=_keep_quiet),
    ] = False,
    color: Annotated[
        When | None,
        typer.Option(
            "--color",
            metavar="WHEN",
            help="Colours: always, never, or auto for a terminal.",
            expose_value=False,
            callback=_keep_color,
        ),
    ] = None,
    no_color: Annotated[
        bool, typer.Option("--no-color", help="The same as --color never.", expose_value=False, callback=_keep_no_color)
    ] = False,
) -> None:
    """Declare the global options; never run."""


@cache
def _names() -> frozenset[str]:
    return frozenset(option for parameter in global_options() for option in parameter.opts)


@cache
def global_options() -> tuple[Parameter, ...]:
    """Return the global options, which all commands share: Typer takes milliseconds to make them."""
    app = typer.Typer(add_completion=False)
    app.command()(_declared)
    return tuple(_plain(parameter) for parameter in typer.main.get_command(app).params)


def is_global(parameter: Any) -> bool:
    """Return whether a parameter of a command is one of the global options."""
    return not _names().isdisjoint(parameter.opts)


def make_plain(parameters: list[Any]) -> None:
    """Let the parameters of a command read their values without help.

    An option whose metavar has several words takes as many values.
    """
    for parameter in parameters:
        if _is_ours(parameter):
            _plain(parameter)


def check_once(command: Any, ctx: Any, words: list[str]) -> None:
    """Refuse an option that takes one value and is given several times: the last would count, without any warning.

    Raises: ``typer.BadParameter``, or what else is wrong with the words.
    """
    _, _, given = command.make_parser(ctx).parse_args(args=list(words))
    for parameter in given if not ctx.resilient_parsing else ():
        is_single = isinstance(parameter, TyperOption) and not (parameter.is_flag or parameter.multiple)
        if is_single and given.count(parameter) > 1:
            raise typer.BadParameter("it is given more than once, and takes one value.", ctx=ctx, param=parameter)


def _is_ours(parameter: Any) -> bool:
    return isinstance(parameter, Parameter)


def _plain(parameter: Any) -> Any:
    parameter._runtime_param = _Plain(parameter)  # noqa: SLF001 - Typer would import pydantic here: 60 ms a call
    if parameter.metavar in completion.METAVARS or not completion.OPTIONS.isdisjoint(parameter.opts):
        parameter._custom_shell_complete = completion.complete  # noqa: SLF001 - what `autocompletion=` of Typer sets
    words = len((parameter.metavar or "").split())
    if isinstance(parameter, TyperOption) and parameter.multiple and words > 1:
        parameter.nargs = words
    return parameter


def _check_text(value: Any, param: Parameter, ctx: Any) -> None:
    """Refuse what no stored text can be: everything beyond this boundary may take it for text."""
    if isinstance(value, tuple | list):
        for one in value:
            _check_text(one, param, ctx)
    elif isinstance(value, str) and (fault := text_problem(value)):
        # Python keeps the bytes of an argument that are no UTF-8 as halves of surrogate pairs.
        what = "is not UTF-8" if fault.code == "bad_text" else fault.message
        raise typer.BadParameter(f"{in_quotes(value[:_SHOWN])} {what}.", ctx=ctx, param=param)


class _Plain:
    """Converts the texts of one parameter to its values."""

    def __init__(self, parameter: Parameter) -> None:
        descriptor = parameter.type_descriptor
        self._is_number = descriptor.annotation is int
        self._choices = [str(choice) for choice in descriptor.choices or ()]
        self._is_place = parameter.metavar in _PLACES

    def coerce(self, value: Any, param: Parameter, ctx: Any) -> Any:
        """Return the value; an absent one is None, or empty where there may be several."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if not self._is_place:
            _check_text(value, param, ctx)
        if isinstance(value, str) and self._is_number:
            return self._number(value, param, ctx)
        for word in [value] if isinstance(value, str) else value if isinstance(value, tuple) else ():
            if self._choices and word not in self._choices:
                near = nearest(str(word), self._choices)
                hint = f" Did you mean {near!r}?" if near else ""
                message = f"{in_quotes(str(word))} is none of {', '.join(self._choices)}.{hint}"
                raise typer.BadParameter(message, ctx=ctx, param=param)
        if isinstance(value, tuple | list) and self._is_list_of_numbers(param):
            return tuple(self._number(word, param, ctx) for word in value)
        return value

    def _is_list_of_numbers(self, param: Parameter) -> bool:
        return bool(param.type_descriptor.annotation == list[int])

    @staticmethod
    def _number(word: Any, param: Parameter, ctx: Any) -> int:
        text = str(word)
        if not text.removeprefix("-").isdecimal():
            raise typer.BadParameter(f"{in_quotes(text)} is not a whole number.", ctx=ctx, param=param)
        if len(text) > _MAX_DIGITS:
            raise typer.BadParameter(f"{in_quotes(text)} is too large a number.", ctx=ctx, param=param)
        return int(text)
