"""What a client of the tools can do next: the remedy of each error, and the core's remedies in the words of the tools.

The core words its remedies for the command line. Here a command that is also a tool becomes the tool, and what only the
command line does becomes something to ask the user for, so that every hint can be followed. Names in quotation marks
are data and stay as they are.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Final

from kbcore.errors import KBError
from kbcore.storage.files import WRITABLE_ROOT
from kbcore.text.escaping import in_quotes
from kbmcp.tools.names import in_words, spelled

_TOOL_OF: Final = {
    "query": "{kb_query}",
    "show": "{kb_query} with `ids`",
    "log": "{kb_history} with action log",
    "diff": "{kb_history} with action diff",
    "revert": "{kb_history} with action revert",
    "rollback": "{kb_history} with action rollback",
    "check": "{kb_check}",
    "apply": "{kb_upsert}",
    "set": "{kb_upsert}",
    "link": "{kb_upsert}",
    "confirm": "{kb_upsert} with the edge again",
    "rename": "{kb_upsert} with `rename`",
    "new": "{kb_upsert}",
    "unlink": "{kb_delete}",
    "delete": "{kb_delete}",
    "sync": "{kb_upsert} with `sync` true",
}
"""What stands for a command. A command that is not here has no tool: the user is asked to run it."""
_WRITING: Final = frozenset(
    {"apply", "set", "link", "confirm", "rename", "new", "unlink", "delete", "revert", "rollback", "sync"}
)
"""Commands whose tools, or whose arguments, a server that only reads does not offer."""

_NO_TOOL: Final = frozenset({"--import", "--recorded"})
"""Options that no tool has: with one of them a command is one for the user."""

_NEXT: Final = {
    "invalid_changeset": "Correct every problem, then call {kb_TOOL} again with the whole request.",
    "invalid_query": "Correct the arguments, then call {kb_TOOL} again.",
    "integrity_violation": "Write the missing ends in the same {kb_upsert}, or leave it out; {kb_query} finds ids.",
    "stale_base": "Read what is listed again with {kb_query} and `ids`, then send the request anew.",
    "derived_fact": "Edit the named file and run `kb sync`, or leave those fields out and call {kb_TOOL} again.",
    "files_unknown": "Call {kb_TOOL} again when that is over.",
    "unexpected_branch": "Check out the expected branch, or leave `expect_branch` out if this branch is meant.",
    "branch_moved": "Make sure which branch is meant, read again with {kb_query}, then call {kb_TOOL} again.",
    "revert_conflict": "Revert the later records first with {kb_history}, or write the old values with {kb_upsert}.",
    "limit_exceeded": "Split the request into several calls of {kb_TOOL}.",
    "lock_timeout": "Another process holds the lock that the message names; call {kb_TOOL} again in a moment.",
    "not_found": "{kb_query} with `text` finds entities, {kb_history} with action log finds records.",
    "unknown_branch": "The server serves the branch that it was started with, or the one that is checked out.",
    "not_a_repository": "Start the server inside a git repository, or with -C PATH.",
    "not_initialised": "Run `kb init` in the repository, then call {kb_TOOL} again.",
}
"""The remedy by code, where it is not the core's own."""
_EXISTS: Final = (
    "For a new entity take another id, as `PREFIX-{n}` for the next free number; to change what exists, read it with "
    "{kb_query} and `ids` and leave out `mode` and `create`."
)
"""The remedy where every problem is an id in use, whatever the code of the error."""
_EACH: Final = "Correct each problem as its `hint` says, then call {kb_TOOL} again with the whole request."
"""The remedy where no problem is that an end of an edge is missing."""
_BY_CODE: Final = frozenset({"stale_base", "revert_conflict"})
"""Codes whose remedy says all that the core's own says, and with which call."""
_AND_THEN: Final = frozenset({"not_found"})
"""Codes whose remedy comes after the core's own, which knows no call."""

_SHELL_WORD: Final = r"(?:'(?:[^']|'\"'\"')*'|[\w@%+=:,./-]+?)"
_REMOVE_EDGE: Final = (
    rf"(?P<remove>[Rr]emove it): `?kb delete --edge (?P<edge>{_SHELL_WORD} \S+ {_SHELL_WORD})`?(?P<stop>\.?)$"
)
_CONFIRM: Final = rf"(?P<confirm>confirm it): `kb confirm (?P<suspect>{_SHELL_WORD} {_SHELL_WORD} {_SHELL_WORD})`$"
_QUOTED: Final = r"(?<!\w)(?P<quoted>'[^']*'|\"[^\"]*\")(?!\w)"
_COMMAND: Final = r"(?P<run>\b(?:[Rr]un|[Ss]ee) |(?<=: ))?`kb (?P<command>[a-z]+)(?P<rest>[^`]*)`"
_PLACE: Final = r"\{kb_(?P<tool>[a-z]+)\}"
_FORCE: Final = r"(?:[,;]?(?: or)? use --force|[,;](?: or)? --force(?= (?:leaves|takes) ))\b(?P<force>[^.;]*)"
_AT: Final = r"(?<=readable with )(?P<at>--at)(?= )"
_SYNC: Final = r"(?P<sync>\band) sync(?=(?: first|; fields that it does not state are free)?\.$)"
"""Only where it ends a remedy: the name of a file, which stands there without quotation marks, may hold such words."""
_CASCADE: Final = r"(?P<cascade>\buse --cascade)\b"
_BRANCH: Final = r"(?P<branch>name one with --branch)\b"
_WORDS: Final = re.compile(
    f"{_REMOVE_EDGE}|{_CONFIRM}|{_QUOTED}|{_COMMAND}|{_PLACE}|{_FORCE}|{_AT}|{_SYNC}|{_CASCADE}|{_BRANCH}"
)


def in_tool_words(text: str, *, is_dotted: bool, is_read_only: bool = False, has_core: bool = True) -> str:
    """Return a remedy for a client of the tools: tools for commands, and the user for what has no tool.

    ``{kb_query}`` stands for the tool in the listed spelling. With ``is_read_only`` what writes has no tool, and
    without ``has_core``, where the tools of the toolset core are not offered, no command has one.
    """
    return _WORDS.sub(
        lambda found: _said(found, is_dotted=is_dotted, is_read_only=is_read_only or not has_core, has_core=has_core),
        text,
    )


def _said(found: re.Match[str], *, is_dotted: bool, is_read_only: bool, has_core: bool) -> str:
    if found["quoted"]:
        return found[0]
    if found["tool"]:
        return spelled(f"kb.{found['tool']}", is_dotted=is_dotted)
    if found["edge"]:
        return _removed(found, is_dotted=is_dotted, is_read_only=is_read_only)
    if found["confirm"]:
        return _confirmed(found, is_dotted=is_dotted, is_read_only=is_read_only)
    if found["command"]:
        words = _command(found, is_read_only=is_read_only, has_core=has_core)
    elif found["sync"]:
        words = "and ask the user to run `kb sync`" if is_read_only else f"and call {_TOOL_OF['sync']}"
    elif found["branch"]:
        words = "have the server started with --branch NAME"
    elif found["cascade"]:
        words = "set `cascade` to true"
    elif found["at"]:
        words = "`at`"
    else:
        words = ", or write the old values with {kb_upsert}" if has_core and "old values" in found["force"] else ""
    return in_words(words, is_dotted=is_dotted)


def _removed(found: re.Match[str], *, is_dotted: bool, is_read_only: bool) -> str:
    if is_read_only:
        return f"{found['remove']}, for which you ask the user to run `kb delete --edge {found['edge']}`{found['stop']}"
    tool = spelled("kb.delete", is_dotted=is_dotted)
    return f"{found['remove']} with {tool} and `edges` {_edges(found['edge'])}{found['stop']}"


def _confirmed(found: re.Match[str], *, is_dotted: bool, is_read_only: bool) -> str:
    if is_read_only:
        return f"{found['confirm']}, for which you ask the user to run `kb confirm {found['suspect']}`"
    tool = spelled("kb.upsert", is_dotted=is_dotted)
    from_id, type_, to_id = shlex.split(found["suspect"])
    name, _, kind = type_.partition(":")
    edge = {"type": name, "from": from_id, "to": to_id} | ({"kind": kind} if kind else {})
    return f"{found['confirm']} with {tool} and {json.dumps({'edges': [edge]}, ensure_ascii=False)}"


def _edges(words: str) -> str:
    """Return the argument that names the edge of ``--edge FROM TYPE TO``."""
    from_id, name, to_id = shlex.split(words)
    return json.dumps([{"type": name, "from": from_id, "to": to_id}], ensure_ascii=False)


def _command(found: re.Match[str], *, is_read_only: bool, has_core: bool) -> str:
    run, command, rest = found["run"], found["command"], found["rest"]
    has_no_tool = not has_core or (is_read_only and command in _WRITING)
    tool = None if has_no_tool or not _NO_TOOL.isdisjoint(rest.split()) else _TOOL_OF.get(command)
    if tool is None:
        ask = "Ask the user to run " if run and run[0].isupper() else "ask the user to run "
        return f"{'' if run is None else ask}`kb {command}{rest}`"
    if command == "show" and rest.strip().isdecimal():
        tool = f"{{kb_history}} with action show and `seq`{rest}"
    if command == "log" and rest.strip() and not rest.lstrip().startswith("-"):
        tool += f" and `id` {shlex.split(rest)[0]}"
    if command == "query":
        tool += ' with type "edge"' if rest.startswith(" edge") else " with `text`" if "--text" in rest else ""
    lead = {"Run ": "Call ", "run ": "call "}.get(run or "", run or "")
    return f"{lead}{tool}"


def unwritable_hint(root: str) -> str:
    """Return the remedy where this server itself cannot write to the stores below a folder."""
    return (
        f"This server cannot write to {in_quotes(root)}. Ask the user to give the server write permission there: to "
        "run it outside of the sandbox, or with that folder as a writable root. What reads keeps working."
    )


def hint_for(error: KBError, key: str, *, has_core: bool = True) -> str:
    """Return the remedy for a client that called the tool with this key, in the words of ``in_tool_words``.

    A remedy of this very error goes before the one for all errors of its code; what only repeats one of several
    problems is none.
    """
    own = error.hint if error.hint != error.default_hint else ""
    if root := error.data.get(WRITABLE_ROOT):
        own = unwritable_hint(str(root))
    if len(error.details) == 1:
        own = error.details[0].hint or own
    elif own in {problem.hint for problem in error.details}:
        own = ""
    following = _NEXT.get(error.code, error.default_hint)
    if not has_core and any(found["tool"] not in {None, "TOOL"} for found in _WORDS.finditer(following)):
        following = error.default_hint
    if error.details and all(problem.code == "exists" for problem in error.details):
        found = _EXISTS
    elif error.code == "integrity_violation" and not own and _lacks_no_end(error):
        found = _EACH
    elif error.code in _AND_THEN and key != "kb.check":
        found = f"{own} {following}".strip()
    else:
        found = following if error.code in _BY_CODE else own or following
    return found.replace("{kb_TOOL}", "{" + key.replace(".", "_") + "}")


def _lacks_no_end(error: KBError) -> bool:
    return bool(error.details) and all(problem.code != "unknown_entity" for problem in error.details)
