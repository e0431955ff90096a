"""Runs rules of ``kb check`` that are written in Prolog: one engine for a check, an empty workspace for each file.

A repository is not always the user's own. A file of rules has what a query of the workspace has, and no clause of it:
the same list of predicates, the same limits, and KB's graph as the check sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn, Self

from kbcore import limits
from kbcore.errors import InvalidQuery
from kbcore.errors.remedies import for_shell
from kbcore.limits import MIB
from kbcore.logic.engine import EngineEnded, EngineProcess, available
from kbcore.logic.engine.terms import atom, listed, string
from kbcore.logic.findings import near_predicates, reason
from kbcore.logic.nesting import TOO_DEEP, deep_clauses
from kbcore.process import interrupting
from kbcore.process.interrupting import Stopped
from kbcore.rules.prolog_file import EXAMPLE
from kbcore.rules.rule import PrologFile, PrologViolation
from kbcore.text.escaping import escape_controls, in_quotes
from kbcore.text.prolog_tokens import without_script_line
from kbcore.text.suggest import did_you_mean
from kbcore.view.sandbox import TimeLeft, Times

_LOAD_LIMIT_S: Final = 60.0
"""The longest time that an engine may take to load the graph."""


class RulesEngine:
    """An engine for the rules of one check. It is started by the first rule, and again where it had to be ended."""

    def __init__(
        self,
        env: Mapping[str, str],
        graph: Callable[[], Iterable[str]],
        edge_types: Iterable[str],
        times: Times,
        left: TimeLeft,
    ) -> None:
        """``graph`` returns the facts of the state that is checked (``kbcore.logic.graph_facts``)."""
        self._env = env
        self._graph = graph
        self._edge_types = listed(map(atom, sorted(edge_types)))
        self._times = times
        self._left = left
        self._engine: EngineProcess | None = None
        self._loaded = ""
        """The path of the file that the engine has loaded."""
        self._has_library = False
        self._faults: dict[str, str] = {}
        """The fault of a file, by its path; "" where it can be used."""

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the engine."""
        self._drop()

    def violations(self, file: PrologFile, rule: str) -> list[PrologViolation]:
        """Return the different violations of a rule of a file, in no order of their own.

        Raises: ``InvalidQuery`` with file and line when the file or the rule cannot be used, a limit was hit, or there
        is no engine.
        """
        at = f"{file.path}:{file.rules[rule]}"
        begun_s = self._times.now_s()
        try:
            self._load(file, at)
            most, length = limits.MAX_RULE_FINDINGS, limits.MAX_RULE_MESSAGE_CHARS
            request = f"violations({atom(rule)}, {most + 1}, {length}).\n"
            reply = self._ask(request, self._limit_s, at)
            if reply["status"] == "error":
                raise _refused(at, f"{reason(reply)} {self._near(reply, at)}".rstrip())
        finally:
            self._left.seconds -= self._times.now_s() - begun_s
        found = reply["violations"]
        wrong = next((one for one in found if "wrong" in one), None)
        if wrong:
            expected = "`error` or `warning`" if wrong["wrong"] == "severity" else "an atom or a string"
            shown = escape_controls(wrong["term"])
            raise _refused(at, f"the {wrong['wrong']} of a violation is {expected}, not `{shown}`")
        if len(found) > most:
            raise _refused(at, f"the rule gives more than {most} violations; ask for less")
        return [PrologViolation(one["id"], one["message"], one["severity"]) for one in found]

    @property
    def _limit_s(self) -> float:
        """Return the longest time that a request for a rule may take now."""
        return min(self._times.usual_s, self._times.most_s, self._left.seconds)

    def _load(self, file: PrologFile, at: str) -> None:
        """Load a file unless it is the one that is loaded. Raises: ``InvalidQuery``."""
        if self._left.seconds <= 0:
            self._refuse_slow(at)
        fault = self._faults.get(file.path)
        if fault:
            raise InvalidQuery(fault)
        if self._loaded == file.path:
            return
        if self._has_library:  # its predicates would be there for this file as well
            self._drop()
        text = without_script_line(file.text)
        deep = deep_clauses(text)
        if deep:
            fault = self._faults[file.path] = f"{file.path}:{deep[0].line}: {TOO_DEEP}"
            raise InvalidQuery(fault)
        request = f"rules({string(text)}, {self._edge_types}).\n"
        reply = self._ask(request, self._limit_s, at)
        if reply["status"] == "error":
            raise _refused(at, reason(reply))
        fault = self._faults[file.path] = _fault(file, reply)
        if fault:
            self._loaded = ""
            raise InvalidQuery(fault)
        self._loaded, self._has_library = file.path, reply["loads"]

    def _ask(self, request: str, limit_s: float, at: str) -> dict[str, Any]:
        """Return the reply of the engine, which is started if need be. Raises: ``InvalidQuery``; ``Stopped``."""
        try:
            if self._engine is None:
                self._engine = self._started(at)
            return self._asked(self._engine, request, limit_s)
        except EngineEnded as ended:
            self._drop()
            if ended.reason == "timeout":
                self._refuse_slow(at)
            if ended.reason == "memory":
                raise _refused(
                    at, f"the rule was ended: it takes more than {limits.MAX_ENGINE_BYTES // MIB} MiB of memory"
                ) from ended
            raise _refused(at, reason({"kind": ended.reason, "exit_status": ended.status})) from ended
        except BaseException:
            self._drop()
            raise

    def _started(self, at: str) -> EngineProcess:
        engines = available(self._env)
        if engines.launch is None:
            missing = for_shell("; ".join(engines.missing))
            raise _refused(at, f"there is no Prolog engine on this machine ({missing})")
        engine = EngineProcess(engines.launch)
        self._engine = engine
        reply = self._asked(engine, "load_graph.\n", min(_LOAD_LIMIT_S, self._left.seconds))
        if reply["status"] == "error":
            raise _refused(at, reason(reply))
        return engine

    def _asked(self, engine: EngineProcess, request: str, limit_s: float) -> dict[str, Any]:
        with interrupting.step(engine.interrupt, limit_s + _LOAD_LIMIT_S) as step:
            try:
                return engine.ask(request, time_limit_s=limit_s, facts=self._graph)
            except EngineEnded as ended:
                if step.is_stopped:
                    raise Stopped from ended
                if step.is_interrupted:
                    raise EngineEnded("timeout") from ended
                raise

    def _near(self, reply: Mapping[str, Any], at: str) -> str:
        if reply["kind"] != "unknown_predicate":
            return ""
        return near_predicates(reply["name"], self._ask("known.\n", _LOAD_LIMIT_S, at))

    def _refuse_slow(self, at: str) -> NoReturn:
        """Raise ``InvalidQuery`` for what took longer than it may."""
        times, own_s = self._times, min(self._times.usual_s, self._times.most_s)
        if self._left.seconds < own_s:
            said, cause = f"all rules of the project have {times.total_s:g} s, and none is left", times.total_by
        else:
            said, cause = f"it did not end within {own_s:g} s", times.most_by if times.most_s < times.usual_s else ""
        setting = cause or "`ruleTimeLimitSeconds` in .kb/config.json"
        raise _refused(at, f"the rule was ended: {said}; {setting} is the limit")

    def _drop(self) -> None:
        engine, self._engine = self._engine, None
        self._loaded, self._has_library = "", False
        if engine is not None:
            engine.kill()


def _fault(file: PrologFile, reply: Mapping[str, Any]) -> str:
    """Return the first thing that is wrong with a file, with its line; "" where all of it can be used."""
    faults: list[tuple[int, str]] = [(one["line"], reason(one)) for one in reply["failed"]]
    read = {(one["line"], one["name"]) for one in reply["rules"]}
    stated = {(line, name) for name, line in file.rules.items()}
    faults += [(line, f"This fact states no rule. Begin a line with it. {EXAMPLE}") for line, _ in read - stated]
    faults += [(line, "The engine reads no fact `rule` here.") for line, _ in stated - read]
    for head in reply["heads"]:
        if not head["is_any"] and head["name"] not in file.rules:
            hint = did_you_mean(head["name"], file.rules)
            faults.append((head["line"], f"The file states no rule {in_quotes(head['name'])}. {hint}"))
    if not faults and not any(head["is_any"] for head in reply["heads"]):
        given = {head["name"] for head in reply["heads"]}
        faults = [
            (line, f"No clause of `violation/3` or `violation/4` is for the rule {in_quotes(name)}.")
            for name, line in file.rules.items()
            if name not in given
        ]
    if not faults:
        return ""
    line, said = min(faults)
    more = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{file.path}:{line}: {said}{more}"


def _refused(at: str, what: str) -> InvalidQuery:
    return InvalidQuery(f"{at}: {what}{'' if what[-1:] in '.?' else '.'}")
