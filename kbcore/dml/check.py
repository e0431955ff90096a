"""The check of a program: what is wrong with it, and what it has. Pure over what an engine says of its text.

Invariant: a program that cannot be loaded has an error here.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from kbcore.dml.agent_loop import OWN_TOOLS
from kbcore.dml.call_graph import MAIN, Uses, unreachable
from kbcore.dml.findings import KINDS, Severity, code_of, sentence
from kbcore.dml.places import Lines, TextRange
from kbcore.dml.tools import NAME
from kbcore.errors import Problem
from kbcore.limits import MAX_PROGRAM_FINDINGS
from kbcore.logic.findings import near_predicates
from kbcore.text.escaping import escape_controls
from kbcore.text.suggest import did_you_mean, is_it, near_ones
from kbcore.text.wording import pluralize

_FIRST_NAME: Final = re.compile(r"[^\W\d_A-Z]\w*")
_NAME_SHOWN: Final = 100
_NAMES_COMPARED: Final = 50_000
"""The names that are compared at most to find those that are like unknown predicates."""


class ProgramFinding(msgspec.Struct, frozen=True):
    """One thing that is wrong. ``problem`` has the file, the code, the sentence, the remedy, and what it is about."""

    problem: Problem
    severity: Severity
    place: TextRange

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        one = self.problem
        said = {"severity": self.severity, "code": one.code, "message": one.message, "hint": one.hint}
        return said | {"name": one.subject} | self.place.as_json()


class CheckedParam(msgspec.Struct, frozen=True):
    """A value that the program is given: of a directive, of a goal that asks, or an argument of `agent_main`."""

    name: str
    kind: str
    description: str
    place: TextRange


class CheckedTool(msgspec.Struct, frozen=True):
    """A tool that the program defines."""

    name: str
    inputs: int
    description: str
    place: TextRange


class CheckedTask(msgspec.Struct, frozen=True):
    """A goal that has a model work: its text, None where it is no literal, and its outputs as name and type."""

    text: str | None
    outputs: tuple[tuple[str | None, str], ...]
    place: TextRange


class CheckedCall(msgspec.Struct, frozen=True):
    """A tool that the program calls, where it does so first, and whose it is: `program`, `caller` or `unknown`."""

    name: str
    of: str
    place: TextRange


class CheckedProgram(msgspec.Struct, frozen=True):
    """A checked program. ``findings`` has the first ones, in the order of the text; the counts are those of all."""

    file: str
    findings: tuple[ProgramFinding, ...]
    errors: int
    warnings: int
    params: tuple[CheckedParam, ...] = ()
    tools: tuple[CheckedTool, ...] = ()
    tasks: tuple[CheckedTask, ...] = ()
    calls: tuple[CheckedCall, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        lists = {name: [_flat(one) for one in getattr(self, name)] for name in ("params", "tools", "tasks", "calls")}
        counts = {"file": self.file, "errors": self.errors, "warnings": self.warnings}
        return counts | {"findings": [one.as_json() for one in self.findings]} | lists


class CallerTools(msgspec.Struct, frozen=True):
    """The tools that a program is given by its caller. ``is_whole`` says that there are no others."""

    names: Collection[str] = ()
    is_whole: bool = False


def checked_reply(
    reply: Mapping[str, Any], text: str, file: str, tools: CallerTools, others: Sequence[ProgramFinding] = ()
) -> CheckedProgram:
    """Return the check of a program of which an engine has said this. ``others`` are findings of its text alone."""
    return _Check(reply, text, file, tools, others).checked()


def failed_check(text: str, file: str, code: str, name: str = "", other: str = "") -> CheckedProgram:
    """Return the check of a program that no engine could read."""
    return checked_of(file, [finding_of(code, Lines(text).place(0, 0), file, name, other)])


def checked_of(file: str, findings: Iterable[ProgramFinding], **lists: Any) -> CheckedProgram:
    """Return a check with the first of these findings; errors come before warnings where not all have room."""
    counts: Counter[Severity] = Counter()

    def counted() -> Iterator[ProgramFinding]:
        for one in findings:
            counts[one.severity] += 1
            yield one

    kept = heapq.nsmallest(MAX_PROGRAM_FINDINGS, counted(), key=lambda one: (one.severity, one.place))
    ordered = sorted(kept, key=lambda one: (one.place, one.severity))
    return CheckedProgram(file, tuple(ordered), counts["error"], counts["warning"], **lists)


def finding_of(code: str, place: TextRange, file: str, name: str = "", other: str = "", **more: Any) -> ProgramFinding:
    """Return a finding of a kind of ``KINDS``; ``remedy`` and ``severity`` take the place of those of the kind."""
    kind = KINDS[code]
    shown = escape_controls(name[:_NAME_SHOWN])
    said = kind.message.format(name=shown, other=other)
    remedy = more.get("remedy") or kind.remedy.format(name=shown, other=other)
    return ProgramFinding(_problem(code, (said, remedy), file, place, name), more.get("severity", kind.severity), place)


def _problem(code: str, said: tuple[str, str], file: str, place: TextRange, subject: str) -> Problem:
    values = (str(place.line), str(place.column))
    return Problem("$", code, *said, source=file, line=place.line, subject=subject, values=values)


class _Check:
    """One check while it is made."""

    def __init__(
        self, reply: Mapping[str, Any], text: str, file: str, tools: CallerTools, others: Sequence[ProgramFinding]
    ) -> None:
        self._reply = reply
        self._text = text
        self._file = file
        self._caller = tools
        self._lines = Lines(text)
        self._all = [*_clauses(reply.get("parts", ()))]
        self._clauses = [one for one in self._all if one["kind"] == "clause"]
        self._others = others
        self._unread = [one for one in self._all if one["kind"] == "unread"]
        self._lacks_clauses = bool(others or self._unread)
        """There are clauses of which nothing is known but that they cannot be read."""
        self._items = [one for one in reply["items"] if "tool" in one]
        self._near_ones: dict[str, str] = {}
        self._own: dict[str, dict[str, Any]] = {}
        for one in self._items:
            self._own.setdefault(one["tool"], one)
        self._refused_tools = {one["tool"] for one in self._clauses} - self._own.keys()

    def checked(self) -> CheckedProgram:
        """Return the check."""
        return checked_of(
            self._file,
            self._findings(),
            params=tuple(self._params()),
            tools=tuple(self._tools()),
            tasks=tuple(task for clause in self._clauses for task in self._tasks(clause)),
            calls=tuple(self._calls()),
        )

    def _findings(self) -> Iterator[ProgramFinding]:
        yield from self._others
        yield from self._load_findings()
        yield from self._main_findings()
        yield from self._tool_findings()
        for clause in self._clauses:
            yield from self._part_findings(clause)
        yield from self._param_findings()
        yield from self._order_findings()
        yield from self._reach_findings()

    # What the program cannot be loaded for

    def _load_findings(self) -> Iterator[ProgramFinding]:
        clauses = {one["start"]: one for one in self._all}
        for failed in self._reply["failed"]:
            clause = clauses.get(failed["start"], {})
            if code_of(failed) in {_load_code(part) for part in clause.get("parts", ())}:
                continue  # reported at the very goal
            begin, end = clause.get("head", (clause.get("at", failed["start"]), failed["end"]))
            yield self._of_engine(failed, self._lines.place(begin, end))

    def _of_engine(self, said: Mapping[str, Any], place: TextRange) -> ProgramFinding:
        problem = _problem(code_of(said), sentence(said), self._file, place, said.get("name", ""))
        return ProgramFinding(problem, "error", place)

    # The parts of clauses

    def _part_findings(self, clause: Mapping[str, Any]) -> Iterator[ProgramFinding]:
        filled = self._filled(clause)
        outputs = {one["name"] for one in clause["parts"] if one["kind"] == "output"}
        for part in clause["parts"]:
            place = self._lines.place(part["start"], part["end"])
            match part["kind"]:
                case "refused":
                    yield self._of_engine(part["error"], place)
                case "no_goal":
                    yield self._finding("no_goal", place)
                case "unknown":
                    yield from self._unknown(part["name"], place)
                case "exec":
                    yield from self._exec(part, place)
                case "text" if not (part["known"] and part["bound"]):
                    inner = self._lines.name_place(part["start"], part["end"], part["name"])
                    yield self._finding("unbound_name" if part["known"] else "unknown_name", inner, part["name"])
                case "output" if not part["fits"]:
                    yield self._finding("output_type", place)
                case "singleton" if part["name"] not in filled:
                    is_argument = clause["name"] == MAIN and part["end"] <= clause["head"][1]
                    code = "unused_output" if part["name"] in outputs else "singleton"
                    yield self._finding("unused_argument" if is_argument else code, place, part["name"])

    def _filled(self, clause: Mapping[str, Any]) -> set[str]:
        """Return the variables that texts name, also those of unknown goals: what was meant may fill them in."""
        parts = clause["parts"]
        unknown = (self._lines.names(one["start"], one["end"]) for one in parts if one["kind"] == "unknown")
        return {one["name"] for one in parts if one["kind"] == "text"}.union(*unknown)

    def _unknown(self, name: str, place: TextRange) -> Iterator[ProgramFinding]:
        if name.rpartition("/")[0] in self._unread_names:
            return  # reported where its clause cannot be read
        severity: Severity = "warning" if self._reply["adds_any"] else "error"
        yield self._finding("unknown_predicate", place, name, remedy=self._near(name), severity=severity)

    def _near(self, name: str) -> str:
        """Return the question whether another predicate was meant, for the first unknown ones: it takes time."""
        compared = len(self._reply["own"]) + len(self._reply["others"])
        if name not in self._near_ones and len(self._near_ones) * compared < _NAMES_COMPARED:
            self._near_ones[name] = near_predicates(name, self._reply)
        return self._near_ones.get(name, "")

    @cached_property
    def _unread_names(self) -> set[str]:
        """Return the names with which the clauses begin that cannot be read."""
        texts = (self._text[one["start"] : one["end"]] for one in self._unread)
        return {found[0] for text in texts if (found := _FIRST_NAME.match(text))}

    def _exec(self, part: Mapping[str, Any], place: TextRange) -> Iterator[ProgramFinding]:
        name = part["tool"]
        if name in self._caller.names:
            return
        if name in self._own:
            inputs = self._own[name]["inputs"]
            if part["arguments"] != inputs:
                yield self._finding("tool_arguments", place, name, pluralize(inputs, "argument"))
        elif name not in self._refused_tools and not self._lacks_clauses:
            known = [*self._own, *self._caller.names]
            near = is_it(near_ones(name, known))
            if self._caller.is_whole:
                yield self._finding("unknown_tool", place, name, remedy=near or did_you_mean(name, known))
            else:
                remedy = f"{near} {KINDS['tool_not_listed'].remedy}".strip()
                yield self._finding("tool_not_listed", place, name, remedy=remedy)

    # The program as a whole

    def _main_findings(self) -> Iterator[ProgramFinding]:
        mains = [one for one in self._clauses if one["name"] == MAIN]
        if not mains and MAIN not in self._unread_names and not self._others:
            yield self._finding("no_main", self._lines.place(0, 0))
        for one in mains:
            if one["arity"] != mains[0]["arity"]:
                first = self._lines.place(*mains[0]["head"])
                yield self._finding("several_mains", self._head(one), str(first.line), str(one["arity"]))
                return

    def _tool_findings(self) -> Iterator[ProgramFinding]:
        for name, first in self._own.items():
            place = self._lines.place(first["start"], first["end"])
            if not NAME.fullmatch(name):
                yield self._finding("tool_name", place, name)
            if name in OWN_TOOLS:
                yield self._finding("tool_reserved", place, name)
            if name in self._caller.names:
                yield self._finding("tool_hidden", place, name)
        described: dict[str, dict[str, Any]] = {}
        for one in self._items:
            if one["description"] is None:
                continue
            first = described.setdefault(one["tool"], one)
            if first["description"] != one["description"]:
                place = self._lines.place(one["start"], one["end"])
                yield self._finding("tool_described_twice", place, one["tool"], str(first["line"]))

    def _param_findings(self) -> Iterator[ProgramFinding]:
        asked = self._asked()
        declared = {one["key"]: one for one in self._declared()}
        for key, part in asked.items():
            if key is not None and key not in declared:
                yield self._finding("param_not_declared", self._lines.place(part["start"], part["end"]), key)
        if None in asked or self._lacks_clauses:
            return
        given = {name for names in self._reply["mains"] for name in names}
        for key, one in declared.items():
            if key not in asked and key not in given:
                yield self._finding("param_not_asked", self._lines.place(one["start"], one["end"]), key)

    def _order_findings(self) -> Iterator[ProgramFinding]:
        cut: dict[tuple[str, int], int] = {}
        for one in self._clauses:
            key = (one["name"], one["arity"])
            if key in cut:
                yield self._finding("after_cut", self._head(one), other=str(cut[key]))
            elif one["same"] is not None:
                line = self._lines.place(one["same"], one["same"]).line
                yield self._finding("same_clause", self._head(one), other=str(line))
            if one["cuts"]:
                cut.setdefault(key, self._head(one).line)

    def _reach_findings(self) -> Iterator[ProgramFinding]:
        """Yield what is not within reach, unless a clause is missing: that one may lead to it."""
        if self._lacks_clauses or not any(one["name"] == MAIN for one in self._clauses):
            return
        uses = [
            Uses((one["name"], one["arity"]), [*map(_pair, one["calls"])], [*map(_pair, one["mentions"])])
            for one in self._clauses
        ]
        left = unreachable(uses, map(_pair, self._reply["changed"]))
        failed = {one["start"] for one in self._reply["failed"]}
        for one in self._clauses:
            key = (one["name"], one["arity"])
            if key in left and one["start"] not in failed:
                left.discard(key)
                yield self._finding("unreachable", self._head(one), f"{key[0]}/{key[1]}")

    # What the program has

    def _params(self) -> Iterator[CheckedParam]:
        declared = [*self._declared()]
        for one in declared:
            yield CheckedParam(
                one["key"], one["param"], one["description"], self._lines.place(one["start"], one["end"])
            )
        names = {one["key"] for one in declared}
        for key, part in self._asked().items():
            if key is not None and key not in names:
                names.add(key)
                yield CheckedParam(key, "text", "", self._lines.place(part["start"], part["end"]))
        heads = [one for one in self._clauses if one["name"] == MAIN]
        for names_of_head, head in zip(self._reply["mains"], heads, strict=False):
            for name in names_of_head:
                if name and name not in names:
                    names.add(name)
                    yield CheckedParam(name, "argument", "", self._head(head))

    def _tools(self) -> Iterator[CheckedTool]:
        descriptions: dict[str, str] = {}
        for one in self._items:
            if one["description"]:
                descriptions.setdefault(one["tool"], one["description"])
        for name, first in self._own.items():
            place = self._lines.place(first["start"], first["end"])
            yield CheckedTool(name, first["inputs"], descriptions.get(name, ""), place)

    def _tasks(self, clause: Mapping[str, Any]) -> Iterator[CheckedTask]:
        task: Mapping[str, Any] | None = None
        outputs: list[tuple[str | None, str]] = []
        for part in [*clause["parts"], {"kind": "task"}]:
            if part["kind"] == "task":
                if task is not None:
                    yield CheckedTask(task["text"], tuple(outputs), self._lines.place(task["start"], task["end"]))
                task, outputs = part, []
            elif part["kind"] == "output":
                outputs.append((part["name"], part["type"]))

    def _calls(self) -> Iterator[CheckedCall]:
        seen: set[str] = set()
        for part in self._parts("exec"):
            name = part["tool"]
            if name not in seen:
                seen.add(name)
                of = "caller" if name in self._caller.names else "program" if name in self._own else "unknown"
                yield CheckedCall(name, of, self._lines.place(part["start"], part["end"]))

    def _declared(self) -> Iterator[dict[str, Any]]:
        return (one for one in self._reply["items"] if one["kind"] == "param")

    def _asked(self) -> dict[str | None, Mapping[str, Any]]:
        """Return the first goal that asks for each param; None is one whose key is not known here."""
        found: dict[str | None, Mapping[str, Any]] = {}
        for part in self._parts("param"):
            found.setdefault(part["key"], part)
        return found

    def _parts(self, kind: str) -> Iterator[Mapping[str, Any]]:
        return (part for clause in self._clauses for part in clause["parts"] if part["kind"] == kind)

    def _head(self, clause: Mapping[str, Any]) -> TextRange:
        return self._lines.place(*clause["head"])

    def _finding(self, code: str, place: TextRange, name: str = "", other: str = "", **more: Any) -> ProgramFinding:
        return finding_of(code, place, self._file, name, other, **more)


def _clauses(parts: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the clauses that an engine has reported, each with its ``parts``, which were reported before it."""
    found: list[Mapping[str, Any]] = []
    for part in parts:
        one: dict[str, Any] = part["clause"]
        if one["kind"] in {"clause", "directive", "unread"}:
            yield one | {"parts": found}
            found = []
        else:
            found.append(one)


def _load_code(part: Mapping[str, Any]) -> str:
    """Return the code of what a clause cannot be loaded for because of this part of it, "" where it can."""
    if part["kind"] == "refused":
        return code_of(part["error"])
    if part["kind"] == "text":
        return "" if part["known"] else "unknown_name"
    return "type_error" if part["kind"] == "no_goal" else ""


def _pair(named: Sequence[Any]) -> tuple[str, int]:
    return named[0], named[1]


def _flat(one: Any) -> dict[str, Any]:
    """Return a part of a program as plain JSON values, with its place among them."""
    found: dict[str, Any] = msgspec.to_builtins(one)
    place: dict[str, Any] = found.pop("place")
    if isinstance(one, CheckedTask):
        found["outputs"] = [{"name": name, "type": type_} for name, type_ in one.outputs]
    return found | place
