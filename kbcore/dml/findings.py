"""Findings about a program, in sentences: what an engine replies, and what `kb dml check` finds besides. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from kbcore.dml.values import MAX_VALUE_NESTING
from kbcore.errors import Problem
from kbcore.limits import MAX_CLAUSE_NESTING
from kbcore.logic import findings
from kbcore.logic.engine.libraries import LISTED
from kbcore.text.escaping import escape_controls

Severity = Literal["error", "warning"]


class FindingKind(msgspec.Struct, frozen=True):
    """A kind of finding; `{name}` and `{other}` in its texts stand for what it is about."""

    severity: Severity
    message: str
    remedy: str = ""


_UNKNOWN_NAME: Final = (
    "The text has `{{{name}}}`, and the clause has no variable `{name}`.",
    "Name a variable of the clause, or write `{{{{{name}}}}}` for these characters.",
)
_REASONS: Final[Mapping[str, tuple[str, str]]] = {
    "old_instruction": (
        '`@("…")` is of an earlier language.',
        'Write `task("…", Output)`: the model is asked, and its result is bound to the output.',
    ),
    "old_chat": ("`chat/1` is of an earlier language.", 'Write `task("…")`.'),
    "old_tool": ("A goal `tool(Call, Result)` is of an earlier language.", "Write `exec(Call, Result)`."),
    "tool_goal": ("`tool/1` defines a tool and is no goal.", "`exec(Call, Result)` calls one."),
    "model_only": ("`{name}` is for the model of a task, and no goal.", "A program binds outputs, succeeds or fails."),
    "program_head": ("`{name}` is built in and cannot be defined.", "Choose another name."),
    "program_directive": (
        "The directive `{name}` is not known: `param`, `use_module`, `dynamic` and `discontiguous` are.",
        "What is to run belongs into `agent_main`.",
    ),
    "unknown_name": _UNKNOWN_NAME,
    "unbound_name": ("`{name}` of `{{{name}}}` has no value when the goal is called.", "Bind it before."),
    "unbound_value": ("A value has an unbound variable: `{name}`.", "Bind it before the goal is called."),
    "cyclic_value": ("A value contains itself.", "Send a part of it."),
    "not_finite": ("`{name}` is no number that JSON has.", "Send a text in its place."),
    "large_number": ("A number has more than 4,000 digits.", "Send a text in its place."),
    "nested_value": (f"A value is nested more than {MAX_VALUE_NESTING} times.", "Send a part of it."),
    "no_graph": (
        "`{name}` is a predicate of the Prolog workspace: a program has no graph.",
        "`exec(kb_query(…), R)` asks KB.",
    ),
    "open_files": ("The program has more files open than it may.", "Close each with `close/1`."),
    "unlisted_name": (
        "The text has `{{{name}}}`, and `{name}` is not in the parentheses of its `string(…)`.",
        "Add it there, or write `{{{{{name}}}}}` for these characters.",
    ),
    "quoted_head": ("A quasi quotation with names is in the head of a clause.", "Write it in the body."),
    "user_input": ("`user_input` is never readable.", "`wait_for_input(Prompt, Text)` asks the user."),
    "param_twice": ("The param `{name}` is declared twice.", "Remove one of them."),
    "tool_description": ("The second argument of `tool/2` is the description, which is a text.", "Write a text."),
    "tool_arity": ("The tool `{name}` has another number of arguments than a clause before.", "Make them equal."),
    "tool_head": ("The argument of `tool` is the call of the tool, as in `tool(search(Query, Results))`.", ""),
    "tool_arguments": ("The tool takes other arguments; it is `{name}`, where the last one is the result.", ""),
    "tool_added": ("A tool cannot be added while the program runs.", "Define it by a clause of the program."),
    "state_change": ("`{name}` is refused: a program changes nothing but its own clauses.", ""),
    "stream": ("`{name}` is refused: it writes to no stream of the program.", "`open/3` makes one."),
}
_STOPPED: Final = {
    "inference_limit": "The program took more steps than it may.",
    "output_limit": "The program printed more at once than it may.",
    "file_limit": "The program wrote more into a file than it may have.",
    "memory": "The program took more memory than it may.",
    "timeout": "The program took longer than it may.",
}


_SYNTAX_REMEDIES: Final = {
    "operator_expected": "Put a comma or an operator there, or the full stop that ends the clause.",
    "end_of_clause_expected": "Put the full stop there that ends the clause.",
    "operator_balance": "Something is missing before or after the operator, or the comma is one too many.",
}
"""By the name of the error."""


KINDS: Final[dict[str, FindingKind]] = {
    "too_deep": FindingKind(
        "error",
        f"The clause is nested too deeply: {MAX_CLAUSE_NESTING:,} brackets inside of each other are the most.",
        "Write it as several clauses, or as a list.",
    ),
    "too_long": FindingKind(
        "error", "The program has {name} characters; {other} are the most.", "Make two programs of it."
    ),
    "not_checked": FindingKind(
        "error", "The engine ended while it read the program ({name}).", "Make the program smaller."
    ),
    "no_main": FindingKind("error", "There is no clause of `agent_main`, which is run.", "Write `agent_main :- ….`."),
    "no_goal": FindingKind("error", "This is no goal.", "A goal is an atom, or a name with arguments."),
    "unknown_predicate": FindingKind("error", "There is no predicate `{name}`."),
    "unknown_tool": FindingKind("error", "There is no tool `{name}`."),
    "tool_not_listed": FindingKind(
        "warning",
        "The tool `{name}` is none of the program and none of KB.",
        "`--tools FILE.py` names the file that has it, so that it is checked.",
    ),
    "unknown_name": FindingKind("error", *_UNKNOWN_NAME),
    "unbound_name": FindingKind(
        "warning",
        "`{name}` of `{{{name}}}` has no value here: no goal before this one, and no argument of the head, has it.",
        "Bind it before this goal.",
    ),
    "tool_name": FindingKind(
        "error", "The tool `{name}` needs a name of letters, digits and `_`, at most 64 of them.", "Rename it."
    ),
    "tool_reserved": FindingKind(
        "error", "Every task has a tool `{name}` of its own, so that of the program is not called.", "Rename it."
    ),
    "tool_arguments": FindingKind("error", "The tool `{name}` of the program takes {other}."),
    "tool_hidden": FindingKind(
        "warning",
        "`exec` calls the tool `{name}` of the caller, and not the one of the program.",
        "Rename the one of the program.",
    ),
    "tool_described_twice": FindingKind(
        "warning",
        "The tool `{name}` has another description in line {other}, which is the one that the model sees.",
        "Describe it once, or give one of the two tools another name.",
    ),
    "unreachable": FindingKind(
        "warning",
        "`{name}` is never called: nothing names it that `agent_main` or a tool leads to.",
        "Remove its clauses, or call it.",
    ),
    "after_cut": FindingKind(
        "warning",
        "This clause is never tried: the one in line {other} takes all arguments, and cuts.",
        "Remove one of the two, or put this one before the other.",
    ),
    "same_clause": FindingKind("warning", "This clause is the same as the one in line {other}.", "Remove one of them."),
    "param_not_asked": FindingKind(
        "warning",
        "The param `{name}` has to be given, and no goal asks for it.",
        'Write `param("{name}", Value)` where it is needed, or remove the directive.',
    ),
    "param_not_declared": FindingKind(
        "warning",
        "The param `{name}` is asked for, and not declared.",
        'Write `:- param("{name}", "What it is").` at the top.',
    ),
    "several_mains": FindingKind(
        "warning",
        "`agent_main` has another number of arguments here ({other}) than in line {name}: what is given decides"
        " which runs.",
        "Write one of them, or give one of them another name.",
    ),
    "singleton": FindingKind("warning", "The variable `{name}` occurs only once.", "Write `_{name}` if that is meant."),
    "unused_argument": FindingKind(
        "warning",
        "The argument `{name}` of `agent_main` has to be given, and is never used.",
        "Use it, or remove it.",
    ),
    "unused_output": FindingKind(
        "warning", "The output `{name}` of the task is never used.", "Use it, or write `_{name}`, or leave it out."
    ),
    "output_type": FindingKind(
        "warning",
        "No result of a task is equal to this term, so that the task always fails.",
        "The types are `string`, `integer`, `number`, `boolean`, `object` and `list`, around a variable.",
    ),
}
"""By code. A program that cannot be loaded has further ones: the kinds and reasons of the engine."""


def sentence(reply: Mapping[str, Any]) -> tuple[str, str]:
    """Return what a reply of an engine says, and the remedy, "" for none."""
    kind, why = reply["kind"], reply.get("reason", "")
    if kind == "refused" and why in _REASONS:
        said, remedy = _REASONS[why]
        name = escape_controls(reply.get("name", "")).strip("'\"")
        return said.format(name=name), remedy.format(name=name)
    if kind == "refused" and why == "library" and reply.get("library") in LISTED:
        library = reply["library"]
        return findings.reason(reply), f"Write `:- use_module(library({library})).` at the top of the program."
    if kind in _STOPPED:
        return _STOPPED[kind], ""
    return findings.reason(reply), _SYNTAX_REMEDIES.get(reply.get("name", ""), "") if kind == "syntax_error" else ""


def problem_of(reply: Mapping[str, Any], text: str, file: str) -> Problem:
    """Return the problem of a clause; its ``values`` are the line and the column, counted from 1."""
    message, remedy = sentence(reply)
    begin = text.rfind("\n", 0, reply["start"]) + 1
    line = reply["line"]
    values = (str(line), str(reply["start"] - begin + 1))
    return Problem("$", code_of(reply), message, remedy, source=file, line=line, values=values)


def code_of(reply: Mapping[str, Any]) -> str:
    """Return the stable code of a reply of an engine: the reason of a refusal, else the kind."""
    return str(reply.get("reason") or reply["kind"])
