"""The reasons that a goal, a clause or a directive is refused or failed, in sentences. Pure.

An engine says it in data: a kind, a name and a reason. No code reads these sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kbcore import limits
from kbcore.errors.remedies import by_front_end
from kbcore.logic.engine.libraries import LISTED
from kbcore.text.escaping import escape_controls, in_quotes
from kbcore.text.suggest import is_it, near_ones

_REASONS: Final = {
    "state_change": "`{name}` is refused in a goal: a goal cannot change the workspace.",
    "not_allowed": "`{name}` is refused: it is not in the list of allowed predicates.",
    "arity": f"`{{name}}` is refused: a predicate has at most {limits.MAX_ARITY:,} arguments.",
    "module": "`{name}` is refused: a goal or a head cannot name a module.",
    "head": "`{name}` is refused as the head of a clause: it is built in, or of a library. Choose another name.",
    "graph_head": "`{name}` is refused as the head of a clause: it is a predicate of KB's graph. Choose another name.",
    "hook": "`{name}` is refused: it is a hook that the system calls by itself.",
    "system_name": "`{name}` is refused as the head of a clause: names that begin with `$` are of the system.",
    "match_rule": "A rule with `{name}` is refused: a clause is a fact, or a rule with `:-` or `-->`.",
    "directive": "The directive `{name}` is refused: only `dynamic` and `use_module` of a listed library are known.",
    "not_listed": "`{name}` is refused: it is not in the list of libraries.",
    "import": "`{name}` is refused in `use_module`: a library is loaded whole, and its predicates keep their names.",
    "kind": "Its record says that it is a {name}, and its text does not.",
    "name": "Its record says that it is of {record}, and its text does not.",
    "option": "The option `{name}` is refused: it can call a goal.",
    "stream": "`{name}` is refused: output goes to the answer, or to atom(A), string(S), codes(Cs) or chars(Cs).",
    "format_call": "A format with `~@` or `~W` is refused: it can call a goal.",
    "exception": "`{name}` is refused for this exception: the system itself ends goals and engines by it.",
    "clause": "`{name}` is refused for clause/2: only clauses of the workspace can be read.",
}
_NO_LOCAL: Final = "Of library(yall), `>>` and `/` are known: write `[X]>>Goal` in place of `\\X^Goal`."
_RECORD_SHOWN: Final = 300
"""The most characters of what a record says that a message has."""
_OF_LISTS: Final = by_front_end(
    "docs/logic.md of KB says what a goal may call, and names the libraries.",
    "The tool `help` with the topic security says what a goal may call, and names the libraries.",
)
_REMEDIES: Final = {
    "state_change": by_front_end(
        "`:assert CLAUSE.` adds a clause and `:retract CLAUSE.` removes one, in place of a goal.",
        "The tool `clauses` adds and removes clauses.",
    ),
    "not_allowed": _OF_LISTS,
    "not_listed": _OF_LISTS,
    "library": _OF_LISTS,
}
_IMPORT: Final = by_front_end(
    "`:import FILE` adds the clauses of a file; `-f FILE` adds them for one run.",
    "The tool `files` imports a file.",
)
_LOAD: Final = by_front_end(
    "`:assert :- use_module(library(NAME)).` loads a library, and `-l NAME` does for one run.",
    "The tool `clauses` loads a library: assert `:- use_module(library(NAME)).`.",
)
_SHOW: Final = by_front_end(
    "`:snapshot` shows all clauses, and `clause/2` reads those of a predicate.",
    "The tool `workspace` shows all clauses, and `clause/2` reads those of a predicate.",
)
_BY_NAME: Final = {
    **dict.fromkeys(("consult/1", "load_files/2", "ensure_loaded/1", "'[|]'/2"), _IMPORT),
    **dict.fromkeys(("use_module/1", "use_module/2"), _LOAD),
    **dict.fromkeys(("listing/0", "listing/1"), _SHOW),
}
"""Remedies by the predicate that is refused, where something else does what it is for."""
_KINDS: Final = {
    "memory": "The query took more memory than the {memory} MiB it may.",
    "inference_limit": "The query took more inferences than it may.",
    "output_limit": "The query printed more than the {output} KiB it may.",
    "timeout": "The step took longer than the {seconds:g} s it may; {by} is the limit.",
    "slow": "The request took longer than the {seconds:g} s that an engine has for it.",
    "stack": "A term, or a call inside of calls, is nested more deeply than the stack of the engine can hold.",
    "killed": "The engine was killed.",
    "crash": "The engine died: it ended with {how}.",
    "loading_memory": "The engine took more memory than the {memory} MiB it may while it loaded the workspace.",
    "loading_timeout": "The engine took longer than {seconds:g} seconds to load the workspace.",
    "loading_stack": "A clause is nested more deeply than the stack of the engine holds, which loaded the workspace.",
    "loading_killed": "The engine was killed while it loaded the workspace.",
    "loading_crash": "The engine died while it loaded the workspace: it ended with {how}.",
}
NEST_LESS: Final = "Use a list in place of terms inside of each other, or recursion that is not inside of another call."
_ALIKE: Final = 0.75
"""The likeness to an unknown predicate from which one is named."""
_MOST_LONGER: Final = 2
"""The most characters that a predicate of the system has more or less."""
_NAMES_SHOWN: Final = 3


def reason(reply: Mapping[str, Any]) -> str:
    """Return the sentence for a reply of an engine that has a kind, a message and for some kinds a name.

    ``record`` is the name that the record of a clause has, where the reply is about one.
    """
    kind, name = reply["kind"], escape_controls(reply.get("name", ""))
    if kind == "refused":
        if reply["reason"] == "name":
            return _REASONS["name"].format(record=in_quotes(reply["record"][:_RECORD_SHOWN]))
        return _refusal(reply["reason"], name, escape_controls(reply.get("library", "")))
    if reply.get("of") == "c_stack":
        return _KINDS["stack"]
    if kind in _KINDS:
        most = limits.MAX_ENGINE_BYTES if reply.get("of") == "engine" else limits.MAX_GOAL_STACK_BYTES
        return _KINDS[kind].format(
            memory=reply.get("memory_mib", most // limits.MIB),
            output=limits.MAX_GOAL_CHARS // limits.KIB,
            seconds=reply.get("seconds", 0),
            by=reply.get("by", ""),
            how=_ending(reply.get("exit_status")),
        )
    said = escape_controls(reply["message"]).rstrip(".")
    if kind == "syntax_error":
        return f"Syntax error: {said}."
    return f"{said[:1].upper()}{said[1:]}."


def remedy(reply: Mapping[str, Any]) -> str:
    """Return what to do about an error, "" where its sentence says so."""
    if reply.get("of") == "c_stack":
        return NEST_LESS
    if reply.get("reason") == "library" and reply["library"] in LISTED:
        return _LOAD
    by_name = _BY_NAME.get(reply.get("name", "")) if reply.get("reason") in _REMEDIES else None
    return by_name or _REMEDIES.get(reply.get("reason", ""), "")


def _ending(status: int | None) -> str:
    """Return the way in which a process ended, by its status."""
    if status is None:
        return "an answer that cannot be read"
    return f"the status {status}" if status >= 0 else f"the signal {-status}"


def near_predicates(name: str, known: Mapping[str, Sequence[str]]) -> str:
    """Return the question whether another predicate was meant, or the empty text where none is like it.

    ``known`` has the predicates of the workspace and of the graph (``own``), which come before the ``others``. Those of
    the same name come before those of another one.
    """
    base = name.rpartition("/")[0]
    if base == "(\\)" and not any(one.startswith("(\\)/") for one in known["own"]):
        return _NO_LOCAL
    own, others = (_by_name(known[which]) for which in ("own", "others"))
    for names in (own, others):
        if base in names:
            return is_it(names[base][:_NAMES_SHOWN])
    found = [one for near in near_ones(base, own, least_alike=_ALIKE, stems=False) for one in own[near]]
    if not found:
        alike = near_ones(base, others, least_alike=_ALIKE, stems=False)
        found = [one for near in alike if abs(len(near) - len(base)) <= _MOST_LONGER for one in others[near]]
    arity = name.rpartition("/")[2]
    return is_it(sorted(found, key=lambda one: one.rpartition("/")[2] != arity)[:_NAMES_SHOWN])


def _by_name(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the predicates with each name."""
    found: dict[str, list[str]] = {}
    for one in names:
        found.setdefault(one.rpartition("/")[0], []).append(one)
    return found


def _refusal(why: str, name: str, library: str) -> str:
    if why == "library":
        if library in LISTED:
            directive = f":- use_module(library({library}))."
            return f"`{name}` needs library({library}), which is not loaded. Add the clause `{directive}`."
        return f"`{name}` of library({library}) is refused: the library is not in the list."
    return _REASONS[why].format(name=name)
