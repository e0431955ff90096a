"""The request of a command to a fleet: the place that is meant, its branches, and their answers as one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import typer

    from kbcli.invocation.context import Session
    from kbcore.config.user import UserSettings
    from kbcore.fleet.asking import Question
    from kbcore.fleet.head import FleetHead
    from kbcore.fleet.local import Answer
    from kbcore.fleet.place import Place
    from kbcore.fleet.ray_engine import RayOptions
    from kbcore.fleet.reading import Asker, UnreadRepository

T = TypeVar("T")


class FoundFleet(NamedTuple):
    """A fleet that a command asks: its place, its heads, those that could not be read, the user, and the workers."""

    place: Place
    heads: list[FleetHead]
    failures: list[UnreadRepository]
    user: UserSettings
    workers: RayOptions | None = None
    """None for this process."""


def begin(ctx: typer.Context, format_: str | None) -> tuple[Session, str]:
    """Return the session, and the format to write."""
    from kbcli.invocation.bounds import check_format, table_format

    session = session_of(ctx)
    check_format(format_, {None, "json"}, is_json=session.output.is_json)
    session.output.is_json = session.output.is_json or format_ == "json"
    session.is_read_only = True
    return session, table_format(format_, session.output)


def workers_of(engine: str, workers: int | None, address: str | None, shard: int | None) -> RayOptions | None:
    """Return the workers that are to ask, None for this process. Raises: ``InvalidQuery``."""
    from kbcli.invocation.bounds import check_bounds
    from kbcore.errors import InvalidQuery
    from kbcore.fleet.ray_engine import RayOptions
    from kbcore.limits import FLEET_SHARD, MAX_FLEET_SHARD, MAX_FLEET_WORKERS

    if engine == "local":
        if (workers, address, shard) != (None, None, None):
            message = "--workers, --address and --shard are of the engine ray."
            raise InvalidQuery(message, hint="Add --engine ray, or leave them out.")
        return None
    if workers is not None:
        check_bounds("--workers", workers, MAX_FLEET_WORKERS, os.cpu_count() or 1)
    if shard is not None:
        check_bounds("--shard", shard, MAX_FLEET_SHARD, FLEET_SHARD)
    return RayOptions(workers or 0, address or "", shard or FLEET_SHARD)


def find(session: Session, place: str | None, repos: list[str] | None, workers: RayOptions | None = None) -> FoundFleet:
    """Return what is in the place that is meant.

    Raises: ``InvalidQuery`` where none is meant; ``NotFound`` where nothing is there, or nothing that one of ``repos``
        means.
    """
    from kbcore.errors import NotFound
    from kbcore.fleet import reading
    from kbcore.fleet.place import place_at
    from kbcore.store.settings_files import user_settings

    named, start = _place(session, place)
    where = place_at(named, start, session.machine.fs, session.machine.clock)
    branch = session.branch or ""  # KB_BRANCH is of one repository
    found = reading.find(where, reading.FleetSelection(tuple(repos or ()), branch))
    there = {one.repo for one in found.heads} | {one.repo for one in found.failures}
    absent = [one for one in repos or () if not any(reading.is_named((one,), name) for name in there)]
    if absent or not there:
        message, hint = _nothing(where, named, absent, branch)
        raise NotFound(message, hint=hint)
    return FoundFleet(where, found.heads, found.failures, user_settings(session.env), workers)


def _place(session: Session, place: str | None) -> tuple[str, Path]:
    """Return the place that is meant, and the folder that it begins at. Raises: ``InvalidQuery`` where none is."""
    from kbcore.errors import InvalidQuery, NotARepository, NotInitialised
    from kbcore.fleet.setting_up import root_of

    named = place if place is not None else session.env.get("KB_FLEET") or None
    if named is not None:
        return named, session.start
    try:
        workspace = session.workspace
        stated = workspace.config.fleet.place
    except (NotARepository, NotInitialised):
        stated = None
    if stated is None:
        hint = "Add --place PLACE, set the variable KB_FLEET, or run `kb fleet init PLACE` in a repository."
        raise InvalidQuery("No place is named.", hint=hint)
    return stated, root_of(workspace)


def _nothing(where: Place, named: str, repos: list[str], branch: str) -> tuple[str, str]:
    """Return what to say where these repositories, or a branch, mean nothing of a place, and what helps."""
    import shlex

    from kbcli.messages.fleet import place_name
    from kbcore.fleet import reading
    from kbcore.text.escaping import escape_controls, in_quotes
    from kbcore.text.suggest import did_you_mean

    found = reading.find(where, reading.FleetSelection((), "*"))
    there = {(one.repo, one.branch) for one in found.heads} | {(one.repo, one.branch) for one in found.failures}
    names = {"repository": {repo for repo, _ in there}, "branch": {name for _, name in there}}
    if not there or not (repos or branch):
        word = escape_controls(shlex.quote(named))
        export = f"`kb export --parquet {word}`, or `kb fleet init {word}` and then `kb export --fleet`"
        return f"Nothing was exported to {place_name(named)}.", f"Run {export}, in each repository."
    asked = [("repository", one) for one in repos] + ([("branch", branch)] if branch else [])
    said = " and ".join(f"the {what} {in_quotes(name)}" for what, name in asked)
    what, name = next(((what, name) for what, name in asked if name not in names[what]), asked[0])
    hint = did_you_mean(name, names[what]) or "`kb fleet status` lists what is."
    return f"Nothing of {said} is in {place_name(named)}.", hint


def ask(
    session: Session, fleet: FoundFleet, question: Question, merge: Callable[[Iterator[Answer]], T]
) -> tuple[T, list[UnreadRepository]]:
    """Return the answers, merged as they come, and every repository that could not be asked.

    Raises: ``InvalidQuery`` or ``NotFound`` where each one refuses the question for the same reason.
    """
    from contextlib import ExitStack

    from kbcore.errors import InvalidQuery, NotFound
    from kbcore.fleet import local
    from kbcore.fleet.local import Answer

    failures = [*fleet.failures]
    with session.output.waiting("Asking"), ExitStack() as stack:
        if fleet.workers is None:
            found = local.ask(fleet.place, fleet.heads, question, session.machine, fleet.user)
        else:
            from kbcore.fleet import ray_engine

            asks = stack.enter_context(ray_engine.started(fleet.workers))
            found = asks.ask(fleet.place, fleet.heads, question, fleet.user)

        def answers() -> Iterator[Answer]:
            for one in found:
                if isinstance(one, Answer):
                    yield one
                else:
                    failures.append(one)

        merged = merge(answers())
    if not answered(fleet, failures) and len({(one.code, one.message) for one in failures}) == 1:
        for error in (InvalidQuery, NotFound):
            if failures[0].code == error.code:
                raise error(failures[0].message, hint=failures[0].hint)
    return merged, failures


def answered(fleet: FoundFleet, failures: list[UnreadRepository]) -> int:
    """Return how many branches answered."""
    return len(fleet.heads) + len(fleet.failures) - len(failures)


def asker_of(session: Session, fleet: FoundFleet, at: str | None) -> Asker:
    """Return who asks, and as of when. Raises: ``InvalidQuery`` for a text that is no time."""
    from kbcore.fleet.reading import Asker

    return Asker(session.machine, fleet.user, instant_before(session, at))


def entity_named(name: str, fleet: FoundFleet) -> tuple[str, str]:
    """Return the repository and the id that an argument names.

    Raises: ``InvalidQuery`` for one of another form; ``StorageError`` for a repository that cannot be read.
    """
    from kbcore.errors import InvalidQuery, StorageError
    from kbcore.text.escaping import in_quotes

    names = [one.repo for one in fleet.heads] + [one.repo for one in fleet.failures]
    known = [one for one in names if name.startswith(f"{one}:")]
    repo = max(known, key=len, default=name.partition(":")[0])
    id_ = name[len(repo) + 1 :]
    if not (repo and id_):
        raise InvalidQuery(f"{in_quotes(name)} is no REPO:ID.", hint="Name repository and id, as acme/pay:REQ-1.")
    if repo not in {one.repo for one in fleet.heads} and (
        failed := next((one for one in fleet.failures if one.repo == repo), None)
    ):
        raise StorageError(f"{repo} could not be read: {failed.message}", hint=failed.hint)
    return repo, id_


def each_once(failures: list[UnreadRepository]) -> list[UnreadRepository]:
    """Return the first failure of each branch."""
    return [*{(one.repo, one.branch): one for one in reversed(failures)}.values()][::-1]


def instant_before(session: Session, at: str | None) -> str:
    """Return the first instant after the time that is meant, "" for now. Raises: ``InvalidQuery`` for no time."""
    from kbcore.errors import InvalidQuery
    from kbcore.store.history.when import span_meant
    from kbcore.text.escaping import in_quotes

    if at is None:
        return ""
    span = span_meant(at, now=session.machine.clock.now(), is_local=True)
    if span is None:
        hint = "Give a time, as 2026-11-20 or `2 days ago`: seqs and commits mean something else in each repository."
        raise InvalidQuery(f"--at: {in_quotes(at)} is no time.", hint=hint)
    return span[1]


def status_of(failures: list[UnreadRepository]) -> int:
    """Return the status of the first failure, 0 without any."""
    from kbcli.invocation import exits

    return exits.statuses().get(failures[0].code, exits.VIOLATIONS) if failures else exits.DONE
