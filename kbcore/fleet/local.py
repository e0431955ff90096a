"""The engine ``local``: asks one branch after the other in this process, and runs SQL over the parts of all at once."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kbcore import progress
from kbcore.config.user import UserSettings
from kbcore.errors import InvalidQuery, KBError
from kbcore.fleet.asking import Question, answer, kinds_of, seq_before
from kbcore.fleet.head import FleetHead
from kbcore.fleet.place import Place
from kbcore.fleet.reading import Asker, UnreadRepository, copied, failure_of, opened, settings_in, shared_database
from kbcore.model.schema import CORE
from kbcore.storage import files
from kbcore.storage.fs import RealFs
from kbcore.store.pool import Machine
from kbcore.view import database
from kbcore.view.database import Connection
from kbcore.view.fleet_sql import NAMES, BranchParts, open_branches
from kbcore.view.parquet import HISTORY, KINDS
from kbcore.view.relations import SqlRefused


class Answer(msgspec.Struct, frozen=True):
    """The answer of one branch, as JSON values."""

    repo: str
    branch: str
    seq: int
    value: dict[str, Any]


class SqlAnswer(msgspec.Struct, frozen=True):
    """The answer to a statement: the names of its columns and its rows. There are more where ``is_cut``."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    is_cut: bool
    failures: list[UnreadRepository]


def ask(
    place: Place, heads: Iterable[FleetHead], question: Question, machine: Machine, user: UserSettings
) -> Iterator[Answer | UnreadRepository]:
    """Yield the answer of each branch, in their order, or why there is none."""
    found, kinds = list(heads), kinds_of(question)
    with shared_database(user) as shared:
        for head in progress.track(found, len(found), "repositories asked", every=1):
            try:
                with opened(place, head, machine, user, shared, kinds=kinds) as member:
                    value = answer(question, member)
                yield Answer(head.repo, head.branch, head.seq, value)
            except KBError as error:
                yield failure_of(head.repo, head.branch, error)


def sql(
    place: Place,
    heads: Sequence[FleetHead],
    statement: str,
    most_rows: int,
    asker: Asker,
) -> SqlAnswer:
    """Run a statement over the relations of all these branches. A branch that cannot be read is left out.

    Raises: ``InvalidQuery`` for a statement that the database refuses.
    """
    with opened_together(place, heads, asker) as found:
        try:
            columns, rows = found.connection.select(statement, most_rows + 1)
        except SqlRefused as error:
            hint = f"The relations are {', '.join(NAMES[:-1])} and {NAMES[-1]}, each with repo and branch."
            raise InvalidQuery(f"The statement is refused: {error}.", hint=hint) from error
    return SqlAnswer(columns, rows[:most_rows], len(rows) > most_rows, found.failures)


class OpenedTogether(NamedTuple):
    """A database over the parts of many branches, these branches, and those that could not be read."""

    connection: Connection
    branches: list[BranchParts]
    failures: list[UnreadRepository]


@contextlib.contextmanager
def opened_together(
    place: Place,
    heads: Sequence[FleetHead],
    asker: Asker,
    kinds: Collection[str] = KINDS,
    *,
    is_graph: bool = False,
) -> Iterator[OpenedTogether]:
    """Open branches in one database for the length of the block: their parts of these kinds, as of ``asker.before``.

    ``is_graph`` is that of ``open_branches``. Raises: ``ViewDamaged``; what the block raises.
    """
    branches, failures = list[BranchParts](), list[UnreadRepository]()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(database.scratch_folder())
        shared = stack.enter_context(shared_database(asker.user)) if asker.before else None
        for number, head in enumerate(progress.track(heads, len(heads), "repositories read", every=1)):
            own = Path(folder) / str(number)
            files.make_directory(RealFs(), own)
            try:
                at = None
                if shared:
                    with opened(place, head, asker.machine, asker.user, shared, kinds=HISTORY) as member:
                        at = seq_before(member.view, asker.before)
                schema = settings_in(place, head, asker.machine, asker.user).schema if "edge" in kinds else CORE
                branches.append(BranchParts(head.repo, head.branch, copied(place, head, own, kinds), at, schema))
            except KBError as error:
                failures.append(failure_of(head.repo, head.branch, error))
        found = open_branches(branches, [folder], is_graph=is_graph)
        yield OpenedTogether(stack.enter_context(contextlib.closing(found)), branches, failures)
