"""Carries out ``kb_upsert`` and ``kb_delete``: a request is read whole, then planned and committed in one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcore import limits
from kbcore.changeset import Changeset, parse, parse_deletion
from kbcore.errors import InvalidChangeset, Problem
from kbmcp import wire
from kbmcp.calls import Call
from kbmcp.replies import Payload, fit

if TYPE_CHECKING:
    from kbcore.answers import Outcome

_LISTS: Final = ("unchanged", "created", "updated", "deleted", "warnings")


class Write(msgspec.Struct, frozen=True):
    """A write as it was asked for, valid in shape."""

    changeset: Changeset
    expect_branch: str = ""


def read_upsert(arguments: Mapping[str, Any]) -> Write:
    """Return what ``kb_upsert`` is asked to write.

    Raises: ``InvalidChangeset`` with every fault of shape; ``LimitExceeded``.
    """
    return _read(arguments, wire.UpsertArguments, parse)


def read_delete(arguments: Mapping[str, Any]) -> Write:
    """Return what ``kb_delete`` is asked to remove; every entity comes with the version that was read.

    Raises: as ``read_upsert``.
    """
    return _read(arguments, wire.DeleteArguments, lambda request: parse_deletion(request, needs_version=True))


def _read(arguments: Mapping[str, Any], model: type[wire.M], parse_items: Callable[[Any], Changeset]) -> Write:
    """Return the write, after both the arguments and what stands inside them were looked at."""
    _, problems = wire.read(model, arguments)
    known = {*wire.names_of(model)} - {"expect_branch"} - {_argument(problem) for problem in problems}
    try:
        changeset = parse_items({name: value for name, value in arguments.items() if name in known})
    except InvalidChangeset as error:
        problems += [problem for problem in error.details if not problems or problem.code != "empty"]
    if problems:
        count = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
        raise InvalidChangeset(
            f"The request has {count}; nothing was written.", details=problems[: limits.MAX_PROBLEMS]
        )
    return Write(changeset, str(arguments.get("expect_branch") or ""))


def _argument(problem: Problem) -> str:
    """Return the argument that a problem is about, out of a path such as ``$.edges[0].to``."""
    return problem.path.removeprefix("$.").partition(".")[0].partition("[")[0]


def carry_out(call: Call, asked: Write) -> Payload:
    """Commit a write while HEAD stays where it was, and return its answer; lists too long are cut and counted.

    Raises: everything that ``kbcore.writes.carry_out`` raises.
    """
    from kbcore import writes

    outcome = writes.carry_out(
        call.workspace, call.branch, call.author, asked.changeset, follows_head=call.follows_head
    )
    return answer_of(outcome)


def answer_of(outcome: Outcome) -> Payload:
    """Return the answer of a write that was carried out or planned."""
    payload = outcome.as_json()
    fitted = fit(payload, [(name, payload) for name in _LISTS])
    if "omitted" in fitted:
        fitted["note"] = "The lists of ids are cut, as `omitted` counts; the request was carried out whole."
    return fitted
