"""Statements beside goals: they show and change the workspace, as tools do over MCP."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kbcore.clock import text_of
from kbcore.errors import InvalidQuery, Problem, PrologFailed
from kbcore.errors.remedies import kb
from kbcore.limits import MAX_PROBLEMS
from kbcore.logic import contents, source_files
from kbcore.text.escaping import escape_controls, escape_lines, escaped_sentence, in_quotes
from kbcore.text.suggest import is_it, near_ones
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcli.prolog.prolog_call import Asking
    from kbcore.logic.clauses import ChangedClauses
    from kbcore.logic.parsed_clauses import ClauseOutcomes

_STATEMENT: Final = re.compile(r":([a-zA-Z_]+)\.?(?:\s+(.*))?", re.DOTALL)
TAKES_CLAUSES: Final = frozenset({"assert", "retract"})

HELP: Final = """\
A goal ends with a full stop and may run over several lines. After a solution `;` shows the next one, Enter stops.

  likes(ann, X).                a goal: what makes it true
  :assert likes(ann, wine).     add clauses to the branch
  :retract likes(ann, wine).    remove for each clause the first one that is a variant of it
  :import FILE                  add the clauses of a file
  :unimport FILE                remove the clauses that came from a file
  :files                        the imported files
  :snapshot                     the text of all clauses
  :symbols                      the predicates that have clauses, and those that are declared
  :reset                        remove all clauses
  :help                         this text

entity/4, attr/3, edge/3, edge/4 and one predicate for each type of edges are the graph of the branch.
Tab completes names of predicates; the arrow keys recall earlier input. Ctrl-C interrupts a goal, Ctrl-D or `halt.`
leaves. docs/logic.md has the rest."""
_REFUSED: Final = {"kind": "clause"}
_CHANGED: Final = "changed"
_NO_CLAUSE: Final = "  % declared, no clause"
_PROBLEMS: Final = {
    "": "", _CHANGED: "changed since", "file_not_found": "not there", "file_path_violation": "outside of the folders",
}  # fmt: skip


class PromptStatement(NamedTuple):
    """A statement: its name without the colon, and the text after it."""

    name: str
    argument: str


def parse(text: str) -> PromptStatement | None:
    """Return the statement that a text is, None for a goal."""
    found = _STATEMENT.fullmatch(text.strip())
    return PromptStatement(found[1], (found[2] or "").strip()) if found else None


def run(asking: Asking, statement: PromptStatement) -> dict[str, Any]:
    """Carry out a statement, show what it did, and return it as data.

    Raises: ``InvalidQuery`` for a statement that there is not, or an argument too many or too few; ``PrologFailed``;
    as reading and writing the branch.
    """
    known = _STATEMENTS.get(statement.name)
    if known is None:
        near = is_it([f":{one}" for one in near_ones(statement.name, _STATEMENTS)])
        message = f"There is no statement {in_quotes(f':{statement.name}')}."
        raise InvalidQuery(message, hint=near or "`:help` lists them.")
    if known.takes and not statement.argument:
        raise InvalidQuery(
            f"`:{statement.name}` needs {known.takes} after its name.", hint=f"`:{statement.name} {known.takes}`."
        )
    if statement.argument and not known.takes:
        raise InvalidQuery(f"`:{statement.name}` takes nothing after its name.", hint=f"`:{statement.name}` alone.")
    return known.run(asking, statement.argument)


def _assert(asking: Asking, text: str) -> dict[str, Any]:
    return _clauses(asking, asking.prolog.assert_clauses(asking.source(writes=True), [text]), "added")


def _retract(asking: Asking, text: str) -> dict[str, Any]:
    return _clauses(asking, asking.prolog.retract_clauses(asking.source(writes=True), [text]), "removed")


def _clauses(asking: Asking, found: ClauseOutcomes, verb: str) -> dict[str, Any]:
    """Say what became of each clause. Raises: ``PrologFailed`` where any was refused; the others are recorded."""
    failed = [one for one in found.outcomes if one.status == "error"]
    if found.succeeded:
        _say(asking, f"{pluralize(found.succeeded, 'clause')} {verb}", found.changed)
    if failed:
        problems = [Problem(one.clause, "clause", one.message) for one in failed]
        done = [one.clause for one in found.outcomes if one.status == "success"]
        data = _REFUSED | ({verb: done} | _where(found.changed) if done else {})
        message = f"{pluralize(len(failed), 'clause')} not {verb}."
        refused = PrologFailed(message, details=problems[:MAX_PROBLEMS], data=data)
        refused.applied = "yes" if found.succeeded else "no"
        raise refused
    return {verb: [one.clause for one in found.outcomes]} | _where(found.changed)


def _import(asking: Asking, given: str) -> dict[str, Any]:
    file = source_files.read_file(asking.roots(), _path(asking, given))
    found = asking.prolog.import_file(asking.source(writes=True), file.name, file.text)
    if found.added:
        _say(asking, f"{pluralize(found.added, 'clause')} of {file.name} added", found.changed)
    if found.errors:
        problems = [Problem(f"{file.name}:{line}", "clause", message) for line, message in found.errors]
        message = f"{pluralize(len(problems), 'clause')} of {file.name} not added."
        data = _REFUSED | ({"file": file.name, "added": found.added} | _where(found.changed) if found.added else {})
        refused = PrologFailed(message, details=problems[:MAX_PROBLEMS], data=data)
        refused.applied = "yes" if found.added else "no"
        raise refused
    if not found.added:
        raise PrologFailed(f"{file.name} has no clause.", data=_REFUSED)
    return {"file": file.name, "added": found.added} | _where(found.changed)


def _unimport(asking: Asking, given: str) -> dict[str, Any]:
    source = asking.source(writes=True)
    known = sorted(one.file for one in contents.files(source.clauses.read()))
    name = source_files.recorded_name(asking.roots(), known, given, _path(asking, given))
    if name is None:
        hint = is_it(near_ones(given, known)) or "`:files` lists what is imported."
        raise PrologFailed(f"{escape_controls(given)} is not imported.", hint=hint, data={"kind": "not_found"})
    changed, removed = contents.remove_file(source.clauses, name)
    _say(asking, f"{pluralize(removed, 'clause')} of {name} removed", changed)
    return {"file": name, "removed": removed} | _where(changed)


def _files(asking: Asking, _: str) -> dict[str, Any]:
    source = asking.source()
    found = contents.files(source.clauses.read(source.at))
    problems = {one.file: "" if asking.is_past else _problem(asking, one) for one in found}
    output = asking.session.output
    rows = [
        [one.file, str(one.clauses), _time(one.added_at), _PROBLEMS.get(problems[one.file], "cannot be read")]
        for one in found
    ]
    if rows and not output.is_json:
        output.stream(f"{line}\n" for line in output.list_lines(["FILE", "CLAUSES", "IMPORTED", ""], rows))
    elif not rows:
        output.note("No file is imported.")
    return {"files": [_as_json(one, problems[one.file]) for one in found]}


def _as_json(one: contents.ImportedFile, problem: str) -> dict[str, Any]:
    shown = {"file": one.file, "clauses": one.clauses, "added_at": one.added_at, "is_changed": problem == _CHANGED}
    return shown | ({"problem": problem} if problem not in {"", _CHANGED} else {})


def _time(at_ms: int) -> str:
    return f"{text_of(datetime.fromtimestamp(at_ms / 1000, UTC))[:16].replace('T', ' ')} UTC" if at_ms else ""


def _problem(asking: Asking, one: contents.ImportedFile) -> str:
    """Return the code of what is wrong with a file; "" for one that is what was imported."""
    from kbcore.logic.parsed_clauses import digest_of_text

    try:
        text = source_files.read_file(asking.roots(), source_files.absolute(asking.roots(), one.file)).text
    except PrologFailed as error:
        kind: str = error.data["kind"]
        return kind
    return _CHANGED if digest_of_text(text) != one.digest else ""


def _snapshot(asking: Asking, _: str) -> dict[str, Any]:
    source = asking.source()
    clauses = source.clauses.read(source.at)
    text = contents.snapshot(clauses)
    _show(asking, escape_lines(text), "There is no clause.")
    return {"snapshot": text, "clauses": contents.count(clauses)}


def _symbols(asking: Asking, _: str) -> dict[str, Any]:
    source = asking.source()
    found = contents.symbols(source.clauses.read(source.at))
    declared = frozenset(found.declared)
    lines = (f"{escape_controls(one)}{_NO_CLAUSE if one in declared else ''}" for one in found.names)
    _show(asking, "\n".join(lines), "No predicate has clauses, and none is declared.")
    return {"predicates": found.names} | ({"declared": found.declared} if found.declared else {})


def _reset(asking: Asking, _: str) -> dict[str, Any]:
    changed, removed = contents.reset(asking.source(writes=True).clauses)
    _say(asking, f"{pluralize(removed, 'clause')} removed", changed)
    if changed.branch and changed.is_written:
        asking.session.output.note(f"{kb('revert', changed.seq)} brings them back.")
    return {"removed": removed} | _where(changed)


def _help(asking: Asking, _: str) -> dict[str, Any]:
    _show(asking, HELP, "")
    return {}


def _path(asking: Asking, given: str) -> str:
    """Return the path that a user means: from the folder that the command runs in."""
    is_quoted = len(given) > 1 and given[0] == given[-1] and given[0] in "'\""
    return str(asking.session.start / (given[1:-1] if is_quoted else given))


def _say(asking: Asking, what: str, changed: ChangedClauses) -> None:
    where = f"Branch {changed.branch} is at seq {changed.seq}." if changed.branch else ""
    asking.session.output.say(escape_controls(f"{what}. {where}".strip()))
    for warning in changed.warnings:
        asking.session.output.warn(escaped_sentence(warning))


def _show(asking: Asking, text: str, nothing: str) -> None:
    if not text:
        asking.session.output.note(nothing)
    elif not asking.session.output.is_json:
        asking.session.output.data(f"{text}\n")


def _where(changed: ChangedClauses) -> dict[str, Any]:
    return {"seq": changed.seq}


class _Known(NamedTuple):
    run: Callable[[Asking, str], dict[str, Any]]
    takes: str = ""


_STATEMENTS: Final[Mapping[str, _Known]] = {
    "assert": _Known(_assert, "CLAUSE."),
    "retract": _Known(_retract, "CLAUSE."),
    "import": _Known(_import, "FILE"),
    "unimport": _Known(_unimport, "FILE"),
    "files": _Known(_files),
    "snapshot": _Known(_snapshot),
    "symbols": _Known(_symbols),
    "reset": _Known(_reset),
    "help": _Known(_help),
}
NAMES: Final = tuple(f":{name}" for name in _STATEMENTS)
