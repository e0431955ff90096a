"""The kinds of findings of `kb dml check`, beside those that an engine tells: severity, sentence and remedy. Pure."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from kbcore.limits import MAX_CLAUSE_NESTING

Severity = Literal["error", "warning"]


class Kind(msgspec.Struct, frozen=True):
    """A kind of finding; `{name}` and `{other}` in its texts stand for what it is about."""

    severity: Severity
    message: str
    remedy: str = ""


KINDS: Final[dict[str, Kind]] = {
    "too_deep": Kind(
        "error",
        f"The clause is nested too deeply: {MAX_CLAUSE_NESTING:,} brackets inside of each other are the most.",
        "Write it as several clauses, or as a list.",
    ),
    "too_long": Kind("error", "The program has {name} characters; {other} are the most.", "Make two programs of it."),
    "not_checked": Kind("error", "The engine ended while it read the program ({name}).", "Make the program smaller."),
    "no_main": Kind("error", "There is no clause of `agent_main`, which is run.", "Write `agent_main :- ….`."),
    "no_goal": Kind("error", "This is no goal.", "A goal is an atom, or a name with arguments."),
    "unknown_predicate": Kind("error", "There is no predicate `{name}`."),
    "unknown_tool": Kind("error", "There is no tool `{name}`."),
    "tool_not_listed": Kind(
        "warning",
        "The tool `{name}` is none of the program and none of KB.",
        "`--tools FILE.py` names the file that has it, so that it is checked.",
    ),
    "unknown_name": Kind(
        "error",
        "The text has `{{{name}}}`, and the clause has no variable `{name}`.",
        "Name a variable of the clause, or write `{{{{{name}}}}}` for these characters.",
    ),
    "unbound_name": Kind(
        "warning",
        "`{name}` of `{{{name}}}` has no value here: no goal before this one, and no argument of the head, has it.",
        "Bind it before this goal.",
    ),
    "tool_name": Kind(
        "error", "The tool `{name}` needs a name of letters, digits and `_`, at most 64 of them.", "Rename it."
    ),
    "tool_reserved": Kind(
        "error", "Every task has a tool `{name}` of its own, so that of the program is not called.", "Rename it."
    ),
    "tool_arguments": Kind("error", "The tool `{name}` of the program takes {other}."),
    "tool_hidden": Kind(
        "warning",
        "`exec` calls the tool `{name}` of the caller, and not the one of the program.",
        "Rename the one of the program.",
    ),
    "tool_described_twice": Kind(
        "warning",
        "The tool `{name}` has another description in line {other}, which is the one that the model sees.",
        "Describe it once, or give one of the two tools another name.",
    ),
    "unreachable": Kind(
        "warning",
        "`{name}` is never called: nothing names it that `agent_main` or a tool leads to.",
        "Remove its clauses, or call it.",
    ),
    "after_cut": Kind(
        "warning",
        "This clause is never tried: the one in line {other} takes all arguments, and cuts.",
        "Remove one of the two, or put this one before the other.",
    ),
    "same_clause": Kind("warning", "This clause is the same as the one in line {other}.", "Remove one of them."),
    "param_not_asked": Kind(
        "warning",
        "The param `{name}` has to be given, and no goal asks for it.",
        'Write `param("{name}", Value)` where it is needed, or remove the directive.',
    ),
    "param_not_declared": Kind(
        "warning",
        "The param `{name}` is asked for, and not declared.",
        'Write `:- param("{name}", "What it is").` at the top.',
    ),
    "several_mains": Kind(
        "warning",
        "`agent_main` has another number of arguments here ({other}) than in line {name}: what is given decides"
        " which runs.",
        "Write one of them, or give one of them another name.",
    ),
    "singleton": Kind("warning", "The variable `{name}` occurs only once.", "Write `_{name}` if that is meant."),
    "unused_argument": Kind(
        "warning",
        "The argument `{name}` of `agent_main` has to be given, and is never used.",
        "Use it, or remove it.",
    ),
    "unused_output": Kind(
        "warning", "The output `{name}` of the task is never used.", "Use it, or write `_{name}`, or leave it out."
    ),
    "output_type": Kind(
        "warning",
        "No result of a task is equal to this term, so that the task always fails.",
        "The types are `string`, `integer`, `number`, `boolean`, `object` and `list`, around a variable.",
    ),
}
"""By code. A program that cannot be loaded has further ones: the kinds and reasons of the engine."""
