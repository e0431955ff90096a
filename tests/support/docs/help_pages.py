"""The help of the command line as text, and its index, for the documentation and for tests that compare the two."""

from __future__ import annotations

import os
from typing import Any

from kbcli.invocation import command_tree
from kbcli.invocation.context import Session
from kbcli.invocation.options import GLOBAL
from kbcli.terminal.output import Output

WIDTH = 100


def commands() -> dict[str, Any]:
    """Return every command that users should know by its full name, those below others included."""
    root = command_tree.root()
    found: dict[str, Any] = {}
    for name in root.list_commands(None):
        command = root.get_command(None, name)
        found[name] = command
        found |= {f"{name} {below}": one for below, one in getattr(command, "commands", {}).items()}
    return found


def help_of(name: str) -> str:
    """Return what ``kb NAME --help`` shows, without the global options; for "" that of ``kb`` itself, with them."""
    command = commands()[name] if name else command_tree.root()
    context = command.make_context(
        f"kb {name}".strip(),
        [],
        resilient_parsing=True,
        terminal_width=WIDTH,
        help_option_names=["-h", "--help"],
        obj=Session(os.environ, Output(os.environ)),
    )
    text = str(command.get_help(context))
    if not name:
        return text
    before, _, after = text.partition(f"\n\n{GLOBAL}:\n")
    rest = after.partition("\n\n")[2]
    return before + (f"\n\n{rest}" if rest else "")


def help_blocks() -> list[tuple[str, str]]:
    """Return the name of each generated block of the page about the command line, and the command it is about."""
    groups = {
        name
        for name, command in commands().items()
        if getattr(command, "commands", None) and not command.invoke_without_command
    }
    return [("kb", ""), *((f"kb {name}", name) for name in commands() if name not in groups)]


def command_index() -> str:
    """Return a table of all commands by task, each linked to its section on the page about the command line."""
    rows = ["| task | command | what it does |", "|---|---|---|"]
    for task, tops in command_tree.TASKS.items():
        names = sorted(
            (name for _, name in help_blocks() if name.partition(" ")[0] in tops),
            key=lambda name: tops.index(name.partition(" ")[0]),
        )
        for name in names:
            listed = command_tree.COMMANDS.get(name)
            words = listed.help if listed else commands()[name].help.partition("\n")[0]
            first = task if name == names[0] else ""
            rows.append(f"| {first} | [`kb {name}`](#kb-{name.replace(' ', '-')}) | {words} |")
    return "\n".join(rows)
