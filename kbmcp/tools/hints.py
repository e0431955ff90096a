"""The next step for a client of the tools: the remedy of each error, and the core's remedies as tool calls.

The core marks the commands in its remedies (``kbcore.errors.remedies``). Here a command that is also a tool becomes the
tool, and what only the command line does becomes something to ask the user for, so that every hint can be followed.
A tool has one key, such as ``kb.query``; it is listed in one of two spellings and understood in both.
"""

from __future__ import annotations

import json
import re
from typing import Final

import msgspec

from kbcore.errors import KBError
from kbcore.errors.remedies import Command, Part, by_front_end, kb, render
from kbcore.ids import is_link_id
from kbcore.storage.files import WRITABLE_ROOT
from kbcore.text.escaping import in_quotes

_PLACE: Final = re.compile(r"\{kb_([a-z]+)\}")

_TOOL_OF: Final = {
    "query": "{kb_query}",
    "show": "{kb_query} with `ids`",
    "prime": "{kb_query} with `context`",
    "log": "{kb_history} with action log",
    "diff": "{kb_history} with action diff",
    "revert": "{kb_history} with action revert",
    "rollback": "{kb_history} with action rollback",
    "review": "{kb_history} with action proposed",
    "check": "{kb_check}",
    "apply": "{kb_upsert}",
    "set": "{kb_upsert}",
    "link": "{kb_upsert}",
    "confirm": "{kb_upsert} with the edge again",
    "rename": "{kb_upsert} with `rename`",
    "resolve": "{kb_query} with",
    "new": "{kb_upsert}",
    "unlink": "{kb_delete}",
    "delete": "{kb_delete}",
    "sync": "{kb_upsert} with `sync` true",
}
"""The tool call for a command. A command that is not here has no tool: the user is asked to run it."""
_WRITING: Final = frozenset(
    {"apply", "set", "link", "confirm", "rename", "new", "unlink", "delete", "revert", "rollback", "sync"}
)
"""Commands whose tools, or whose arguments, a server that only reads does not offer."""

_OLD_AND_NEW: Final = 2
_NO_TOOL: Final = frozenset({"--import", "--recorded"})
"""Options that no tool has: with one of them a command is one for the user."""

_NEXT: Final = {
    "invalid_changeset": "Correct every problem, then call {kb_TOOL} again with the whole request.",
    "invalid_query": "Correct the arguments, then call {kb_TOOL} again.",
    "integrity_violation": "Write the missing ends in the same {kb_upsert}, or leave it out; {kb_query} finds ids.",
    "stale_base": (
        'Read what is listed again with {kb_query} and `ids`, or an edge with `type` edge, `where` ["from=ID"] and'
        " `provenance`, then send the request again."
    ),
    "derived_fact": (
        f"Edit the named file and {kb('sync', lead='run')}, or leave those fields out and call {{kb_TOOL}} again."
    ),
    "files_unknown": "Call {kb_TOOL} again when that is over.",
    "unexpected_branch": "Check out the expected branch, or leave `expect_branch` out to use this branch.",
    "branch_moved": "Make sure which branch is meant, read again with {kb_query}, then call {kb_TOOL} again.",
    "revert_conflict": "Revert the later records first with {kb_history}, or write the old values with {kb_upsert}.",
    "limit_exceeded": "Split the request into several calls of {kb_TOOL}.",
    "lock_timeout": "Another process holds the lock that the message names; call {kb_TOOL} again in a moment.",
    "not_found": "{kb_query} with `text` finds entities, {kb_history} with action log finds records.",
    "unknown_branch": "The server serves the branch that it was started with, or the one that is checked out.",
    "not_a_repository": "Start the server inside a git repository, or with -C PATH.",
    "not_initialised": f"{kb('init', lead='Run')} in the repository, then call {{kb_TOOL}} again.",
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


def spelled(key: str, *, is_dotted: bool) -> str:
    """Return the listed name of a tool."""
    return key if is_dotted else key.replace(".", "_")


def of_tools(text: str) -> str:
    """Return the mark of a text only for clients, as ``in_words`` takes it, to be put into a remedy or a note."""
    return by_front_end("", text)


def in_words(text: str, *, is_dotted: bool) -> str:
    """Return a text for clients, in which ``{kb_query}`` is replaced by the tool in the listed spelling."""
    return _PLACE.sub(lambda found: spelled(f"kb.{found[1]}", is_dotted=is_dotted), text)


def in_tool_words(text: str, *, is_dotted: bool, is_read_only: bool = False, has_core: bool = True) -> str:
    """Return a remedy for a client of the tools: tools for commands, and the user for what has no tool.

    With ``is_read_only`` what writes has no tool, and without ``has_core``, where the tools of the toolset core are not
    offered, no command has one.
    """

    def say(part: Part) -> str:
        if isinstance(part, Command):
            return _command(part, is_dotted=is_dotted, is_read_only=is_read_only, has_core=has_core)
        return in_words(part.tools, is_dotted=is_dotted)

    return render(text, say)


def _command(one: Command, *, is_dotted: bool, is_read_only: bool, has_core: bool) -> str:
    has_no_tool = not has_core or (is_read_only and one.name in _WRITING)
    tool = None if has_no_tool or one.place or not _NO_TOOL.isdisjoint(one.args) else _TOOL_OF.get(one.name)
    edge = _edge(one)
    if tool is None:
        asks = one.lead or edge
        said = msgspec.structs.replace(one, lead="").shown()
        return f"{'Ask' if one.lead.istitle() else 'ask'} the user to run {said}" if asks else said
    if edge and one.name == "delete":
        return f"{spelled('kb.delete', is_dotted=is_dotted)} with `edges` [{edge}]"
    if edge:
        return f'{spelled("kb.upsert", is_dotted=is_dotted)} with {{"edges": [{edge}]}}'
    if one.name == "resolve" and "--take" in one.args:
        return _choice(one, is_dotted=is_dotted, is_read_only=is_read_only)
    if one.name == "show" and one.args and one.args[0].isdecimal():
        tool = f"{{kb_history}} with action show and `seq` {one.args[0]}"
    lead = {"Run": "Call ", "run": "call "}.get(one.lead, f"{one.lead} ".lstrip())
    return f"{lead}{in_words(tool, is_dotted=is_dotted)}{_arguments(one)}"


def _choice(one: Command, *, is_dotted: bool, is_read_only: bool) -> str:
    """Return the call that takes a value of a contested field."""
    if is_read_only:
        return f"ask the user to run {one.shown()}"
    key, field, _, taken = one.args
    choice = f"{{{_json(field)}: {_json(taken) if taken == 'keep' else taken}}}"
    edge = one.edge
    if edge is None and is_link_id(key):
        return f"{spelled('kb.upsert', is_dotted=is_dotted)} with `resolve` {choice} in the item"
    if edge is None:
        items, named = "entities", {"id": key}
    else:
        items, named = "edges", {"type": edge.type, "from": edge.from_id, "to": edge.to_id}
        named |= {"kind": edge.kind} if edge.kind else {}
    item = f'{_json(named)[:-1]}, "resolve": {choice}}}'
    return f'{spelled("kb.upsert", is_dotted=is_dotted)} with {{"{items}": [{item}]}}'


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _edge(one: Command) -> str:
    """Return the edge that a command names, as JSON; "" where it names none."""
    words = one.args[1:] if one.name == "delete" and one.args[:1] == ("--edge",) else one.args
    if one.name not in {"confirm", "delete", "link"} or len(words) != 3:  # noqa: PLR2004 - from, type, to
        return ""
    from_id, type_, to_id = words
    name, _, kind = type_.partition(":")
    edge = {"type": name, "from": from_id, "to": to_id} | ({"kind": kind} if kind else {})
    return json.dumps(edge, ensure_ascii=False)


def _arguments(one: Command) -> str:
    """Return the arguments of a command that are named with its tool."""
    first = one.args[0] if one.args else ""
    if one.name == "query":
        return ' with type "edge"' if first == "edge" else " with `text`" if "--text" in one.args else ""
    if one.name == "resolve" and is_link_id(first):
        return f' `type` edge and `where` ["id={first}"]'
    if one.name == "resolve":
        return f" `ids` {json.dumps([first], ensure_ascii=False)}" if first else ' `where` ["contested=true"]'
    if one.name == "log" and first and not first.startswith("-"):
        return f" and `id` {first}"
    if one.name == "show" and first and not first.isdecimal():
        return f" {json.dumps([first], ensure_ascii=False)} and `edges` true"
    if one.name == "rename" and len(one.args) == _OLD_AND_NEW:
        return f" {_json({one.args[0]: one.args[1]})}"
    if one.name == "check" and first == "--rule" and len(one.args) > 1:
        return f" with `rules` {json.dumps([one.args[1]], ensure_ascii=False)}"
    return ""


def unwritable_hint(root: str) -> str:
    """Return the remedy where this server itself cannot write to the stores below a folder."""
    return (
        f"This server cannot write to {in_quotes(root)}. Ask the user to give the server write permission there: to "
        "run it outside of the sandbox, or with that folder as a writable root. Reading still works."
    )


def hint_for(error: KBError, key: str, *, is_dotted: bool, has_core: bool = True) -> str:
    """Return the remedy for a client that called the tool with this key, for ``in_tool_words``.

    A remedy of this error has precedence over the one for all errors of its code; what only repeats one of several
    problems is none.
    """
    own = error.remedy if error.has_own_remedy else ""
    if root := error.data.get(WRITABLE_ROOT):
        own = unwritable_hint(str(root))
    if len(error.details) == 1:
        own = error.details[0].remedy or own
    elif own in {problem.remedy for problem in error.details}:
        own = ""

    def ours(template: str) -> str:
        tool = "{" + key.replace(".", "_") + "}" if "." in key else key
        named = template.replace("{kb_TOOL}", tool)
        return in_words(named, is_dotted=is_dotted)

    template = _NEXT.get(error.code, "")
    names_others = "{kb_" in template.replace("{kb_TOOL}", "")
    following = ours(template) if template and (has_core or not names_others) else error.default_hint
    if error.details and all(problem.code == "exists" for problem in error.details):
        return ours(_EXISTS)
    if any(problem.code == "contested" for problem in error.details):
        return own or ours(_EACH)
    if error.code == "integrity_violation" and not own and _lacks_no_end(error):
        return ours(_EACH)
    if error.code in _AND_THEN and key != "kb.check":
        return f"{own} {following}".strip()
    return following if error.code in _BY_CODE else own or following


def _lacks_no_end(error: KBError) -> bool:
    return bool(error.details) and all(problem.code != "unknown_entity" for problem in error.details)
