"""The commands that there are, and the help on them. Only the module of the command that runs is imported."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from kbcli.invocation.options import GLOBAL, check_once, global_options, is_global, make_plain
from kbcore import __version__
from kbcore.text.escaping import in_quotes


class Listed(NamedTuple):
    """A command as ``kb --help`` lists it; ``module`` is in ``kbcli.commands`` and has ``run`` or ``app``."""

    module: str
    help: str


COMMANDS: Final[dict[str, Listed]] = {
    "init": Listed("init", "Set up KB in a repository."),
    "sync": Listed("sync", "Record what the files of the worktree say."),
    "sources": Listed("sources", "List what is read, find more documents, try one."),
    "watch": Listed("watch", "Keep the store in step with the files, until interrupted."),
    "results": Listed("results", "Record what reports of test runs say of the tests."),
    "status": Listed("status", "Show the branch, its head, and what a sync would find."),
    "query": Listed("query", "Find entities or edges."),
    "show": Listed("show", "Show one entity with its edges and history, or one record."),
    "prime": Listed("prime", "Show what to know before a change, within a budget of tokens."),
    "kip": Listed("kip", "Run commands of KIP on the branch."),
    "prolog": Listed("prolog", "Run goals of Prolog on the clauses and the graph of the branch."),
    "dml": Listed("dml", "Run programs whose steps are tasks for a language model."),
    "sleep": Listed("sleep", "Maintain the memory of agents in KIP."),
    "new": Listed("new", "Make an entity with the next free id of its type."),
    "set": Listed("set", "Set fields of one entity, as one record."),
    "rename": Listed("rename", "Give an entity another id, wherever it is named."),
    "link": Listed("link", "State an edge between two entities."),
    "unlink": Listed("unlink", "Remove an edge that a client stated."),
    "confirm": Listed("confirm", "Confirm suspect edges."),
    "id": Listed("id", "Give out ids that are not in use yet."),
    "apply": Listed("apply", "Apply a changeset from a file."),
    "delete": Listed("delete", "Remove entities or edges."),
    "review": Listed("review", "Show what is only proposed, and accept or reject it."),
    "check": Listed("check", "Run the rules."),
    "coverage": Listed("coverage", "Show which requirements are specified, verified and implemented."),
    "matrix": Listed("matrix", "Show which entities lead to which others, and which to none."),
    "report": Listed("report", "Write the state of the branch as one HTML file."),
    "ui": Listed("ui", "Show the branch in the browser, live."),
    "impact": Listed("impact", "Show what a change affects, and which tests to run."),
    "graph": Listed("graph", "Draw a part of the graph as Mermaid, DOT or SVG."),
    "log": Listed("log", "Show what changed, newest first."),
    "diff": Listed("diff", "Show what changed between two points of the history."),
    "revert": Listed("revert", "Undo records by new ones."),
    "rollback": Listed("rollback", "Go back to an earlier state, by a new record."),
    "share": Listed("share", "Write the changes of people and agents into change files."),
    "merge": Listed("merge", "Bring what clients wrote on another branch into this one."),
    "resolve": Listed("resolve", "List what changes state differently, and decide it."),
    "push": Listed("push", "Back up what clients wrote on the branch in a ref of a remote."),
    "fetch": Listed("fetch", "Take over what `kb push` backed up of the branch in a git remote."),
    "branch": Listed("branch", "List, make and compare branch stores."),
    "gc": Listed("gc", "Remove the stores of branches that no longer exist."),
    "compact": Listed("compact", "Write a snapshot and seal the journal so far."),
    "export": Listed("export", "Write all entities and edges of the branch."),
    "fleet": Listed("fleet", "Ask many repositories at once, in a place to which they export."),
    "backup": Listed("backup", "Write the stores of branches into one file."),
    "restore": Listed("restore", "Bring branches back from a backup."),
    "redact": Listed("redact", "Take a leaked secret out of every store of this clone."),
    "verify": Listed("verify", "Prove the journal, record by record."),
    "doctor": Listed("doctor", "Diagnose the installation, with a remedy for every finding."),
    "hooks": Listed("hooks", "Install, remove or show the git hooks."),
    "hook": Listed("hook", ""),
    "schema": Listed("schema", "Show the types of entities and edges."),
    "config": Listed("config", "Show the settings of the repository, set or unset one."),
    "agents": Listed("agents", "Install, check, remove or print what clients of agents need."),
    "uninstall": Listed("uninstall", "Take KB out of a repository."),
    "mcp": Listed("mcp", "Serve agents over MCP on standard input and output."),
    "demo": Listed("demo", "Show KB at work on an example project."),
    "prove": Listed("prove", "Do 20 jobs of an agent, and count their calls and tokens."),
}
"""In the order of the help. A command without help text is not listed."""

TASKS: Final[dict[str, tuple[str, ...]]] = {
    "Begin": ("init", "demo", "uninstall"),
    "Keep the store in step with the files": ("sync", "sources", "watch", "status"),
    "Find and show": ("query", "show", "prime", "kip", "prolog", "dml", "impact", "graph", "ui", "schema"),
    "Change facts by hand": ("new", "set", "rename", "link", "unlink", "confirm", "apply", "delete", "review", "id"),
    "Find what is missing or wrong": ("check", "coverage", "matrix", "report", "results", "fleet"),
    "Show the history, and undo": ("log", "diff", "revert", "rollback"),
    "Work with branches and other clones": ("share", "merge", "resolve", "push", "fetch", "branch", "gc"),
    "Take care of the store": ("sleep", "compact", "backup", "restore", "redact", "verify", "doctor", "export"),
    "Work with git and agents": ("hooks", "agents", "mcp", "prove"),
    "Settings": ("config",),
}
"""The tasks of commands. Commands without a task are listed last."""

WITHOUT_COMMAND: Final[dict[str, Any]] = {
    "invoke_without_command": True,
    "subcommand_metavar": "[COMMAND [ARGS]...]",
}
"""For the callback of a group that does something by itself, too."""
_HELP: Final = "help"
"""`kb help COMMAND` is `kb COMMAND --help`, as users of git expect."""
_EPILOG: Final = "`kb help COMMAND` says more about one, `kb help topics` lists other topics."
_WIDTH: Final = 100
_EXAMPLE_CHARS: Final = 56
_ALIKE: Final = 0.7
"""A command must be so much like a word to be what it misspells: `merge` is not `coverage`."""
SETTINGS: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"], "max_content_width": _WIDTH}


@contextlib.contextmanager
def _named(ctx: Any) -> Iterator[None]:
    """Have an error inside the block name the command that it is about: one of an option without a value does not."""
    try:
        yield
    except TyperException as error:
        if getattr(error, "ctx", None) is None:
            vars(error)["ctx"] = ctx
        raise


class HelpfulCommand(TyperCommand):
    """A command whose help shows its own options first, and no types that mean nothing to users."""

    allow_extra_args = True
    """``parse_args`` refuses them, in words of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return what is left of the words when the options are taken off, which is nothing."""
        with _named(ctx):
            check_once(self, ctx, args)
            left = super().parse_args(ctx, args)
        if left and not ctx.resilient_parsing:
            taken, one = " ".join(arguments_of(self, ctx)), in_quotes(left[0])
            what = f"takes {taken} and no more. Leave out {one}, or put words that belong together into quotes."
            ctx.fail(f"`{ctx.command_path}` {what if taken else f'takes no argument. Leave out {one}.'}")
        return left

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option that shows the help."""
        return _plain_help(super().get_help_option(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line: optional words are in brackets."""
        return ["[OPTIONS]", *arguments_of(self, ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options."""
        _write_parameters(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write examples."""
        _write_examples(ctx, formatter)


def arguments_of(command: Any, ctx: Any) -> list[str]:
    """Return the arguments of a command as its usage line has them, those that may be left out in brackets."""
    found = []
    for parameter in command.get_params(ctx):
        if parameter.param_type_name == "argument":
            name = getattr(parameter, "metavar", None) or str(parameter.name).upper()
            is_whole = name.endswith("...")  # it says itself that it is repeated, and whether it may be left out
            shown = name if is_whole or parameter.required else f"[{name}]"
            found.append(shown + "..." * (parameter.nargs != 1 and not is_whole))
    return found


class CommandGroup(TyperGroup):
    """Commands below a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the command below and its words."""
        with _named(ctx):
            check_once(self, ctx, args)
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is meant; an unknown one gets what may be meant."""
        if (
            args
            and not args[0].startswith("-")
            and not ctx.resilient_parsing
            and self.get_command(ctx, args[0]) is None
        ):
            path = ctx.command_path
            meant = _meant_below(path.partition(" ")[2], args[0], self.list_commands(ctx))
            ctx.fail(f"{path} has no command {in_quotes(args[0])}. {meant}".rstrip())
        return super().resolve_command(ctx, args)

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option that shows the help."""
        return _plain_help(super().get_help_option(ctx))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options and the commands."""
        _write_parameters(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write examples of the command itself, and the closing words."""
        _write_examples(ctx, formatter)
        super().format_epilog(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, each with the first line of its help."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (getattr(command, "help", None) or "").partition("\n")[0]) for name, command in commands]
            )


class Root(CommandGroup):
    """``kb`` itself: looks its commands up when they are asked for."""

    def list_commands(self, _: Any) -> list[str]:
        """Return the names of all commands that users should know."""
        return [name for name, listed in COMMANDS.items() if listed.help]

    def get_command(self, _: Any, cmd_name: str) -> Any:
        """Import and return one command."""
        if cmd_name not in COMMANDS:
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = _load(cmd_name, COMMANDS[cmd_name])
        return self.commands[cmd_name]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is meant; an unknown one gets what may be meant."""
        if args == [_HELP, "agents"] and not ctx.resilient_parsing:
            ctx.obj.output.data(_guide_for_agents())
            ctx.exit()
        if args and args[0] == _HELP and not ctx.resilient_parsing:
            topic = _topic(args[1:])
            if topic:
                ctx.obj.output.data(topic)
                ctx.exit()
            args = [*args[1:], "--help"]
            if len(args) == 1:
                ctx.obj.output.data(ctx.get_help() + "\n")
                ctx.exit()
        if args and args[0] not in COMMANDS and not ctx.resilient_parsing:
            ctx.fail(f"There is no command {in_quotes(args[0])}. {_meant(args[0], self.list_commands(ctx))}".rstrip())
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by what they are for, without importing any."""
        listed = self.list_commands(ctx)
        named = {name for names in TASKS.values() for name in names}
        tasks = {**TASKS, "Other commands": tuple(name for name in listed if name not in named)}
        longest = max(map(len, listed))
        for task, names in tasks.items():
            # Every name is as wide as the longest, so that the words are aligned in all sections.
            rows = [(name.ljust(longest), COMMANDS[name].help) for name in names if name in listed]
            if rows:
                with formatter.section(task):
                    formatter.write_dl(rows)


def _topic(words: Sequence[str]) -> str:
    """Return the text of a topic of help that is no command; "" where none is meant."""
    from kbcli.invocation.help_topics import TOPICS, listed

    if len(words) != 1 or words[0] in COMMANDS:
        return ""
    return listed() if words[0] == "topics" else TOPICS.get(words[0], "")


def _guide_for_agents() -> str:
    """Return the topic `agents` of the help: the text of the skill."""
    from kbcore.prime.agent_text import agent_guide

    return f"{agent_guide()}\n`kb agents --help` lists the commands that set up a client of agents.\n"


def _meant_below(group: str, word: str, commands: Sequence[str]) -> str:
    """Return what may be meant by a word that is no command of a group."""
    from kbcli.invocation.examples import INSTEAD_BELOW
    from kbcore.text.suggest import is_it, near_ones

    instead = INSTEAD_BELOW.get(group, {})
    return instead.get(word, "") or is_it(near_ones(word, commands, least_alike=_ALIKE)) or instead.get("", "")


def _meant(word: str, commands: Sequence[str]) -> str:
    """Return what may be meant by a word that is no command: what others call so comes before what is spelled so."""
    from kbcli.invocation.examples import INSTEAD, SYNONYMS
    from kbcore.text.suggest import is_it, near_ones

    if word in INSTEAD:
        return INSTEAD[word]
    if word in SYNONYMS:
        return is_it(SYNONYMS[word].split())
    near = near_ones(word, commands, least_alike=_ALIKE)
    if near:
        return is_it(near)
    spelled = near_ones(word, SYNONYMS, limit=1, least_alike=_ALIKE)
    return is_it(SYNONYMS[spelled[0]].split()) if spelled else ""


@cache
def root() -> Root:
    """Return ``kb``, made once in a process, as each of its commands is."""
    app = typer.Typer(cls=Root, rich_markup_mode=None, context_settings=SETTINGS)
    app.callback(epilog=_EPILOG)(_root)
    group = typer.main.get_command(app)
    assert isinstance(group, Root)  # noqa: S101 - the class was given above
    make_plain(group.params)
    group.params[:0] = global_options()
    return group


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"kb {__version__}")
        raise typer.Exit


def _root(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """A durable, queryable memory for a repository, kept per git branch."""


def _load(name: str, listed: Listed) -> Any:
    """Return a command as Typer makes it out of its module, with the global options added."""
    module = import_module(f"kbcli.commands.{listed.module}")
    app = getattr(module, "app", None)
    if app is None:
        app = typer.Typer(rich_markup_mode=None, add_completion=False)
        settings = {**SETTINGS, **getattr(module, "SETTINGS", {})}
        app.command(name, cls=HelpfulCommand, context_settings=settings, hidden=not listed.help)(module.run)
    command: Any = typer.main.get_command(app)
    _complete(command)
    return command


def group_of(help_text: str) -> typer.Typer:
    """Return an app for the commands below a command."""
    return typer.Typer(
        cls=CommandGroup, help=help_text, rich_markup_mode=None, add_completion=False, context_settings=SETTINGS
    )


def run_by_default(group: typer.Typer, command: Callable[[typer.Context], int | None]) -> None:
    """Run a command of a group where none of its commands is typed."""

    def default(ctx: typer.Context) -> int | None:
        return None if ctx.invoked_subcommand else command(ctx)

    group.callback(**WITHOUT_COMMAND)(default)


def _complete(command: Any) -> None:
    make_plain(command.params)
    command.params += global_options()
    for below in getattr(command, "commands", {}).values():
        _complete(below)


def _plain_help(option: Any) -> Any:
    if option is not None:
        make_plain([option])
    return option


def _write_examples(ctx: Any, formatter: Any) -> None:
    from kbcli.invocation.examples import EXAMPLES

    rows = EXAMPLES.get(ctx.command_path.partition(" ")[2], ())
    if rows:
        with formatter.section("Examples"):
            formatter.write_dl(rows, col_max=_EXAMPLE_CHARS)


def _write_parameters(command: Any, ctx: Any, formatter: Any) -> None:
    arguments: list[tuple[str, str]] = []
    own: list[tuple[str, str]] = []
    shared: list[tuple[str, str]] = []
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            arguments.append((parameter.metavar or parameter.name.upper(), parameter.help or ""))
        else:
            (shared if is_global(parameter) else own).append(record)
    for title, rows in (("Arguments", arguments), ("Options", own), (GLOBAL, shared)):
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)
