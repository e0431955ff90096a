"""The tools of the toolset logic: clauses, files, the workspace as a whole, and queries of it.

An answer has up to 1 MiB. What is left out of a longer one is counted in ``omitted``, or marked by ``truncated``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
import msgspec

from kbcore.errors import Problem, PrologFailed
from kbcore.limits import MIB
from kbmcp.tools import answers
from kbmcp.tools.answers import Payload, fit, leading, length_of
from kbmcp.tools.argument_models import (
    ClausesArguments,
    FilesArguments,
    NoArguments,
    QueryStartArguments,
    WorkspaceArguments,
)
from kbmcp.tools.call import Call
from kbmcp.tools.hints import in_tool_words
from kbmcp.tools.refusals import refused_arguments
from kbmcp.tools.run_call import CallResult

if TYPE_CHECKING:
    from kbcore.logic.clauses import ChangedClauses, Clauses, ClauseStore
    from kbcore.logic.contents import ImportedFile
    from kbcore.logic.source import BranchSource
    from kbcore.logic.source_files import Roots
    from kbmcp.tools.prolog_connection import PrologConnection

MOST_CHARS: Final = MIB - 1_000
"""The most characters of an answer, besides the note and the name of the repository."""
_FAILED: Final = frozenset({"failed", "not_found"})
"""The words of ``status`` of an answer that is an error although nothing was wrong with the call."""


def finished(outcome: CallResult) -> types.CallToolResult:
    """Return the result of a call: one in which everything failed is an error, and says of each part why."""
    payload = outcome.payload
    summary = payload.get("summary", {})
    if outcome.error or payload.get("status") in _FAILED or summary.get("succeeded") == 0:
        return answers.failure(payload)
    return answers.success(payload)


def clauses(call: Call, asked: ClausesArguments, problems: Sequence[Problem]) -> Payload:
    """Add or remove clauses, and return what became of each. Raises: ``InvalidQuery``, and as ``PrologWorkspace``."""
    texts = [asked.clauses] if isinstance(asked.clauses, str) else asked.clauses
    if not texts:
        problems = [*problems, Problem("$.clauses", "empty", "`clauses` is empty.", "Name at least one clause.")]
    _refuse(problems)
    prolog = _connection(call)
    change = {"assert": prolog.workspace.assert_clauses, "retract": prolog.workspace.retract_clauses}[asked.operation]
    found = change(_source(call), texts, asked.changeset_id)
    total, succeeded = len(found.outcomes), found.succeeded
    shown: Payload = {
        "operation": asked.operation,
        "outcomes": [msgspec.to_builtins(one) for one in found.outcomes],
        "summary": {"total": total, "succeeded": succeeded, "failed": total - succeeded},
        **_changed(call, found.changed),
    }
    if length_of(shown) > MOST_CHARS:
        shown["outcomes"] = _shown_outcomes(shown["outcomes"])
        shown["omitted"] = {"outcomes": total - len(shown["outcomes"])}
    return shown


def _shown_outcomes(outcomes: list[Payload]) -> list[Payload]:
    """Return as many outcomes as fit, in their order: those that failed first."""
    by_weight = sorted(outcomes, key=lambda one: one["status"] == "success")
    kept = {id(one) for one in by_weight[: leading(by_weight, MOST_CHARS - 1_000)]}
    return [one for one in outcomes if id(one) in kept]


def files(call: Call, asked: FilesArguments, problems: Sequence[Problem]) -> Payload:
    """List the imported files, import one, or remove what came from one. Raises: as ``clauses``."""
    found = [*problems]
    if asked.operation == "list" and asked.filename:
        message = "`filename` does not apply to the operation list."
        found.append(Problem("$.filename", "not_for_action", message, "Leave it out."))
    is_named = any(problem.path == "$.filename" for problem in problems)
    if asked.operation != "list" and not (asked.filename or is_named):
        message = f"The operation {asked.operation} needs `filename`."
        found.append(Problem("$.filename", "missing_argument", message, "Name the file."))
    _refuse(found)
    if asked.operation == "list":
        return list_files(call)
    if asked.operation == "import":
        _connection(call).workspace.engines.required()
        return _import(call, asked.filename)
    return _unimport(call, asked.filename)


def list_files(call: Call) -> Payload:
    """Return the imported files, and which of them changed since."""
    from kbcore.logic import contents

    now, roots = _store(call).read(), _roots(call)
    listed = [_listed_file(roots, one) for one in contents.files(now)]
    shown: Payload = {"type": "files_list", "files": listed, "count": len(listed), **_at(call, now)}
    return fit(shown, [("files", shown)], MOST_CHARS)


def _listed_file(roots: Roots, one: ImportedFile) -> Payload:
    """Return a row of the list; ``changed`` and ``problem`` only where the file is not what it was at the import."""
    from kbcore.logic.parsed_clauses import digest_of_text
    from kbcore.logic.source_files import absolute, read_file

    row: Payload = {"filename": absolute(roots, one.file), "clauseCount": one.clauses, "timestamp": one.added_at}
    try:
        is_changed = digest_of_text(read_file(roots, one.file).text) != one.digest
    except PrologFailed as error:
        return row | {"problem": error.data["kind"]}
    return row | ({"changed": True} if is_changed else {})


def _import(call: Call, filename: str) -> Payload:
    from kbcore.logic.source_files import absolute, read_file

    roots = _roots(call)
    file = read_file(roots, filename)
    found = _connection(call).workspace.import_file(_source(call), file.name, file.text)
    errors = [{"line": line, "message": message} for line, message in found.errors]
    if not (errors or found.added):
        errors = [{"line": 1, "message": "There is no clause in this file."}]
    shown: Payload = {
        "type": "file_import",
        "filename": absolute(roots, file.name),
        "clausesAdded": found.added,
        "status": found.status,
        "errors": errors,
        **_changed(call, found.changed),
    }
    return fit(shown, [("errors", shown)], MOST_CHARS)


def _unimport(call: Call, filename: str) -> Payload:
    from kbcore.logic import contents
    from kbcore.logic.source_files import absolute

    store, roots = _store(call), _roots(call)
    name = _imported_name(roots, contents.files(store.read()), filename)
    changed, removed = contents.remove_file(store, name)
    return {
        "type": "file_unimport",
        "filename": absolute(roots, name),
        "clausesRemoved": removed,
        "status": "success" if changed.is_written else "not_found",
        **_changed(call, changed),
    }


def _imported_name(roots: Roots, imported: Sequence[ImportedFile], filename: str) -> str:
    """Return the name in records of a file that shall be removed. It need not be there any more, nor be readable.

    Raises: ``PrologFailed`` for one that was not imported and could not be.
    """
    from kbcore.logic.source_files import name_of, recorded_name

    return recorded_name(roots, [one.file for one in imported], filename) or name_of(roots, filename)[0]


def workspace(call: Call, asked: WorkspaceArguments, problems: Sequence[Problem]) -> Payload:
    """Return the text or the predicates of the workspace, or remove everything. Raises: as ``clauses``."""
    _refuse(problems)
    run = {"snapshot": snapshot, "list_symbols": symbols, "reset": _reset}[asked.operation]
    return run(call)


def snapshot(call: Call, most_chars: int = MOST_CHARS) -> Payload:
    """Return the text of the workspace, or what of it has so many characters: whole clauses."""
    from kbcore.logic import contents
    from kbcore.logic.clauses import MARK

    now = _store(call).read()
    dump, count = contents.snapshot(now), contents.count(now)
    shown: Payload = {"type": "workspace_snapshot", "dump": dump, "clauseCount": count, **_at(call, now)}
    if length_of(shown) <= most_chars:
        return shown
    texts = [one.text for one in now.clauses if one.kind != MARK]
    kept = leading(texts, most_chars - 1_000)
    note = "The dump is cut; the resource prolog://workspace/snapshot has all of it."
    return shown | {"dump": "\n".join(texts[:kept]), "omitted": {"clauses": count - kept}, "note": note}


def symbols(call: Call) -> Payload:
    """Return the predicates that have clauses or are declared; those without a clause are in ``declared`` as well."""
    from kbcore.logic import contents

    now = _store(call).read()
    found = contents.symbols(now)
    shown: Payload = {
        "type": "workspace_symbols",
        "predicates": found.names,
        "count": len(found.names),
        **({"declared": found.declared} if found.declared else {}),
        **_at(call, now),
    }
    return fit(shown, [(name, shown) for name in ("declared", "predicates") if name in shown], MOST_CHARS)


def _reset(call: Call) -> Payload:
    from kbcore.logic import contents

    prolog = _connection(call).workspace
    changed, removed = contents.reset(_store(call))
    prolog.lose_query("the workspace was reset")
    return {"type": "workspace_reset", "status": "success", "removed": removed, **_changed(call, changed)}


def query_start(call: Call, asked: QueryStartArguments, problems: Sequence[Problem]) -> Payload:
    """Open a query, and say so. Raises: as ``PrologWorkspace.start_query``."""
    _refuse(problems)
    mode: Any = "engine" if asked.use_engine else "standard"
    prolog = _connection(call).workspace
    prolog.start_query(_source(call), asked.query, mode)
    shown: Payload = {"type": "query_start", "query": asked.query, "mode": mode, "status": "ready"}
    return shown | prolog.held_back | _head(call)


def query_next(call: Call, _: NoArguments, problems: Sequence[Problem]) -> Payload:
    """Return the next answer of the open query. Raises: as ``PrologWorkspace.next_answer``."""
    _refuse(problems)
    prolog = _connection(call).workspace
    prolog.engines.required()
    found = prolog.next_answer(_source(call))
    return _cut_answer(found) | _head(call)


def _cut_answer(found: Payload) -> Payload:
    """Return an answer with its texts cut to equal shares of the room, where they do not fit."""
    if length_of(found) <= MOST_CHARS:
        return found
    texts = [*found.get("bindings", {}).values(), *found.get("residual", ()), found.get("output", "")]
    share = MOST_CHARS // (3 * len(texts))

    def cut(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: cut(one) for name, one in value.items()}
        if isinstance(value, list):
            return [cut(one) for one in value]
        return value[:share] if isinstance(value, str) else value

    shown: Payload = cut(found)
    return shown | {"truncated": True}


def query_close(call: Call, _: NoArguments, problems: Sequence[Problem]) -> Payload:
    """Close the open query, and say whether there was one."""
    _refuse(problems)
    had = _connection(call).workspace.close_query()
    return {"status": "closed" if had else "no_active_session"} | _head(call)


# What the tools share


def _refuse(problems: Sequence[Problem]) -> None:
    if problems:
        raise refused_arguments(problems)


def _connection(call: Call) -> PrologConnection:
    if call.prolog is None:
        raise ValueError("the toolset logic is not offered")
    return call.prolog


def _store(call: Call) -> ClauseStore:
    return _connection(call).pool.store(call.workspace, call.branch, call.author, follows_head=call.follows_head)


def _source(call: Call) -> BranchSource:
    from kbcore.logic.source import BranchSource

    return BranchSource(workspace=call.workspace, branch=call.branch, clauses=_store(call), read_view=call.read)


def _roots(call: Call) -> Roots:
    repo = call.workspace.repo
    return _connection(call).roots(repo.worktree if repo.has_worktree else None)


def _at(call: Call, now: Clauses) -> Payload:
    """Return the branch and the seq that clauses were read at; those of a process are at no seq of the branch."""
    return {"branch": call.branch, "seq": now.seq} if now.branch else _head(call)


def _changed(call: Call, changed: ChangedClauses) -> Payload:
    """Return the branch and the seq after a change, and its warnings."""
    found = {"branch": call.branch, "seq": changed.seq} if changed.branch else _head(call)
    warnings = [in_tool_words(one, is_dotted=call.is_dotted, has_core=call.has_core) for one in changed.warnings]
    return found | ({"duplicate": True} if changed.is_duplicate else {}) | ({"warnings": warnings} if warnings else {})


def _head(call: Call) -> Payload:
    return {"branch": call.branch, "seq": call.store.head().seq}
