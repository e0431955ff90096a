"""Carries out ``kb_upsert`` and ``kb_delete``: a request is read whole, then planned and committed in one step.

What is around the changeset is checked here, the changeset by the core, which refuses it with the faults of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcore.errors import KBError, Problem
from kbcore.model.changeset import Changeset, parse, parse_deletion
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import pluralize
from kbmcp.tools import argument_models
from kbmcp.tools.answers import Payload, cut_deep, fit
from kbmcp.tools.call import Call
from kbmcp.tools.elicitation import confirm
from kbmcp.tools.hints import in_tool_words

if TYPE_CHECKING:
    from kbcore.store.answers import Outcome
    from kbcore.sync.answer import SyncAnswer

_AROUND: Final = frozenset({"expect_branch", "sync", "rename", "purge"})
"""The arguments of a write that are no part of its changeset."""
_INSIDE: Final[dict[type, frozenset[str]]] = {
    model: frozenset(argument_models.names_of(model)) - _AROUND
    for model in (argument_models.UpsertArguments, argument_models.DeleteArguments)
}
"""The arguments of each tool that are read as its changeset."""
_NO_DRY_SYNC: Final = "A dry run records nothing, so `sync` contradicts `dry_run`."
_RENAME_ALONE: Final = "A rename is a record of its own: one a call, and no entities or edges with it."
_ANY: Final = "Give `entities`, `edges` or both; or `rename`, or `sync` true."
_PURGE_ALONE: Final = "A purge is of one entity."
_OF_CHANGESET: Final = ("message", "changeset_id", "expected_seq", "mode")
"""The arguments that apply to a changeset only: the record of a sync has a message and an id of its own."""
_MOST_BESIDE_ERROR: Final = 10
"""The number of warnings of a sync that are added to the error of its changeset."""
_LEFT_CHARS: Final = 3_000
"""Characters for what a purge did not reach."""
_LISTS: Final = ("unchanged", "created", "updated", "deleted", "warnings", "files")


class RequestedWrite(msgspec.Struct, frozen=True):
    """A write as it was asked for. With ``sync`` what the files say is recorded first."""

    changeset: Changeset
    expect_branch: str = ""
    sync: bool = False
    rename: tuple[str, str] | None = None
    """The id of an entity, and the one that it is to have."""
    purge: bool = False
    """Deleted entities are also taken out of every record of this clone."""

    @property
    def dry_run(self) -> bool:
        """Return whether it is only planned."""
        return self.changeset.dry_run


def read_upsert(arguments: Mapping[str, Any]) -> tuple[RequestedWrite, list[Problem]]:
    """Return what ``kb_upsert`` is asked to write; what is wrong with it is among the changeset's problems.

    Raises: ``LimitExceeded``.
    """
    return _read(arguments, argument_models.UpsertArguments, parse)


def read_delete(arguments: Mapping[str, Any]) -> tuple[RequestedWrite, list[Problem]]:
    """Return what ``kb_delete`` is asked to remove; every entity comes with the version that was read.

    Raises: as ``read_upsert``.
    """
    return _read(
        arguments, argument_models.DeleteArguments, lambda request: parse_deletion(request, needs_version=True)
    )


def _read(
    arguments: Mapping[str, Any],
    model: type[argument_models.UpsertArguments | argument_models.DeleteArguments],
    parse_items: Callable[[Any], Changeset],
) -> tuple[RequestedWrite, list[Problem]]:
    inside = _INSIDE[model]
    outside = {name: arguments[name] for name in arguments if name not in inside}
    around, problems = argument_models.read(model, outside) if outside else (model.model_construct(), [])
    request = {name: arguments[name] for name in arguments if name in inside and arguments[name] is not None}
    changeset = parse_items(request)
    if model is argument_models.UpsertArguments:
        reworded = [
            msgspec.structs.replace(one, remedy=_ANY) if one.code == "empty" else one for one in changeset.problems
        ]
        changeset = msgspec.structs.replace(changeset, problems=tuple(reworded))
    syncs = bool(around and getattr(around, "sync", False))
    if syncs and changeset.dry_run:
        problems.append(Problem("$.sync", "contradiction", _NO_DRY_SYNC, "Leave out `sync` or `dry_run`."))
    renames = getattr(around, "rename", {}) if around else {}
    problems += _misfits_of_rename(renames, request, changeset)
    if syncs and not (changeset.size or renames):
        problems += _misfits_of_sync(request)
    if (syncs or renames) and not problems:
        changeset = msgspec.structs.replace(
            changeset, problems=tuple(one for one in changeset.problems if one.code != "empty")
        )
    if problems:  # a list that was mistyped names something all the same
        problems += [problem for problem in changeset.problems if problem.code != "empty"]
        changeset = msgspec.structs.replace(changeset, problems=tuple(problems))
    purges = bool(getattr(around, "purge", False))
    if purges and (len(changeset.entity_deletes) != 1 or changeset.edge_deletes) and not changeset.problems:
        problem = Problem("$.purge", "contradiction", _PURGE_ALONE, "Name one entity, and send the rest without it.")
        changeset = msgspec.structs.replace(changeset, problems=(problem,))
    rename = next(iter(renames.items()), None)
    return RequestedWrite(changeset, around.expect_branch if around else "", syncs, rename, purges), []


def _misfits_of_rename(
    renames: Mapping[str, Any], request: Mapping[str, Any], changeset: Changeset
) -> Iterator[Problem]:
    """Yield what is wrong with a rename, and with what comes with it."""
    for name, value in renames.items():
        if not isinstance(value, str):
            yield Problem("$.rename", "wrong_type", f"The new id of {in_quotes(name)} is no text.", "")
    if renames and (len(renames) > 1 or changeset.size):
        yield Problem("$.rename", "contradiction", _RENAME_ALONE, "Send anything else in another call.")
    if renames and request.get("mode", "upsert") != "upsert":
        message = "`mode` says how entities are written, and a rename writes none."
        yield Problem("$.mode", "contradiction", message, "Leave it out.")


def _misfits_of_sync(request: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the arguments that a sync without a changeset would ignore."""
    for name in _OF_CHANGESET:
        if request.get(name, "") not in ("", "upsert"):  # no set: the value may be a list or an object
            message = f"`{name}` applies to entities and edges, and `sync` comes without any."
            yield Problem(f"$.{name}", "contradiction", message, "Leave it out.")


def apply_request(call: Call, asked: RequestedWrite, _: Sequence[Problem]) -> Payload:
    """Commit a write while HEAD stays where it was, and return its answer; lists too long are cut and counted.

    Raises: everything that ``kbcore.store.apply.apply_changeset`` raises and, where files are to be recorded first, a
    sync.
    """
    if asked.purge and not asked.changeset.problems:
        return _purged(call, asked)
    if asked.rename and not (asked.changeset.problems or asked.sync):
        return _renamed(call, *asked.rename, asked.changeset)
    if not asked.sync:
        return answer_of(call, _applied(call, asked))
    if asked.changeset.problems:
        return answer_of(call, _applied(call, asked))  # it is refused before anything is recorded
    from kbcore.sync.run import SyncOptions, check_worktree, sync

    check_worktree(call.workspace, call.branch)
    answer = sync(call.workspace, call.branch, call.author, SyncOptions())
    synced, said = answer.outcome, _said_of_files(call, answer)
    recorded = f"What the files say was recorded first, up to seq {synced.seq}."
    if not (asked.changeset.size or asked.rename):
        return answer_of(call, msgspec.structs.replace(synced, warnings=said))
    try:
        if asked.rename:
            call.notes.extend((recorded, *said))
            return _renamed(call, *asked.rename, asked.changeset)
        written = _applied(call, asked)
    except KBError as error:
        error.written_before = recorded
        if not asked.rename:
            call.notes.extend(said[:_MOST_BESIDE_ERROR])
        raise
    shown = answer_of(call, msgspec.structs.replace(written, warnings=(*said, *written.warnings)))
    return shown | {"note": f"{recorded} {shown.get('note', '')}".strip()}


def _said_of_files(call: Call, answer: SyncAnswer) -> tuple[str, ...]:
    """Return what a sync warns of, and what it found wrong in the files, whether it read them this time or before."""
    from kbcore.checks import known_to
    from kbcore.sync.faults import about, faults, has_faults

    if not has_faults(answer):
        return answer.outcome.warnings
    known, broken = known_to(call.workspace, call.branch, about(answer.problems, answer.unresolved))
    found = faults(answer, call.workspace.config.rules, known).lines
    return (*answer.outcome.warnings, *[broken] * bool(broken), *(f"{one.severity}: {one.text}" for one in found))


def _renamed(call: Call, old: str, new: str, changeset: Changeset) -> Payload:
    from kbcore.editing.documents import WriteTarget
    from kbcore.editing.renaming import rename
    from kbcore.share.separating import separate, separation_of

    target = WriteTarget(call.workspace, call.branch, call.author, call.read, call.follows_head)
    frame: dict[str, Any] = {
        "message": changeset.message,
        "dry_run": changeset.dry_run,
        "changeset_id": changeset.changeset_id,
        "expected_seq": changeset.expected_seq,
    }
    if what := target.read(lambda view: separation_of(view, old, new)):
        return answer_of(call, separate(call.workspace, call.branch, what, call.author, **frame))
    outcome, edits = rename(target, old, new, **frame)
    return answer_of(call, outcome, [edit.path for edit in edits])


def _purged(call: Call, asked: RequestedWrite) -> Payload:
    """Delete an entity, and take its values out of every store of this clone, once a person has confirmed that.

    Raises: ``NeedsPerson``; ``StaleBase`` as ``confirm``; as ``_applied`` and ``redaction.redact``.
    """
    from kbcore.maintenance import redaction, redaction_preview

    [item] = asked.changeset.entity_deletes
    tried = msgspec.structs.replace(asked, changeset=msgspec.structs.replace(asked.changeset, dry_run=True))
    planned = _applied(call, tried)
    wanted = redaction_preview.Wanted("entity", item.id)
    found = redaction_preview.preview(call.workspace, call.branch, wanted)
    records = sum(len(store.records) for store in found.stores)
    where = f"{pluralize(records, 'record')} of {pluralize(len(found.stores), 'store')}"
    if asked.dry_run:
        return answer_of(call, planned) | {"purge": {"records": records, "stores": len(found.stores)}}
    what = f"to delete {in_quotes(item.id)} and to take its values out of {where} of this clone"
    confirm(call, what, "Nothing brings them back. Documents, git's history, other clones and backups keep theirs.")
    outcome = _applied(call, asked)
    try:
        done = redaction.redact(call.workspace, call.branch, wanted, call.author)
    except KBError as error:
        error.written_before = f"{in_quotes(item.id)} was deleted before, at seq {outcome.seq}."
        raise
    left = [*done.failed, *(f"{one.branch}: {part}" for one in done.stores for part in one.left), *done.elsewhere]
    purge = {"records": sum(one.records for one in done.stores), "stores": len(done.stores), "ok": done.is_whole}
    return answer_of(call, outcome) | {"purge": purge | ({"left": cut_deep(left, _LEFT_CHARS)} if left else {})}


def _applied(call: Call, asked: RequestedWrite) -> Outcome:
    from kbcore.checks.introduced import written

    return written.apply_changeset(
        call.workspace,
        call.branch,
        call.author,
        asked.changeset,
        follows_head=call.follows_head,
        read=call.files.reading(call.workspace, call.branch),
    )


def answer_of(call: Call, outcome: Outcome, files: Sequence[str] = ()) -> Payload:
    """Return the answer of a write that was carried out or planned, with the files that were edited for it."""
    payload = outcome.as_json() | ({"files": list(files)} if files else {})
    payload["warnings"] = [
        in_tool_words(call.workspace.located(warning, call.branch), is_dotted=call.is_dotted)
        for warning in outcome.warnings
    ]
    fitted = fit(payload, [(name, payload) for name in _LISTS])
    if "omitted" in fitted:
        fitted["note"] = "The lists are cut, as `omitted` counts; the request was applied completely."
    return fitted
