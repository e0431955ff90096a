"""Questions to one branch of a fleet: the same functions that ask a single store, on a view of the parts.

A question and its answer are plain data, so that an engine can send them to another process.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.checks import idle_in, judge
from kbcore.errors import InvalidQuery
from kbcore.fleet.reading import Member
from kbcore.limits import MAX_PAGE_ROWS
from kbcore.model.graph import Node, edge_json
from kbcore.query import DataNames, Query, page_of, project, shown_entity
from kbcore.query import check as checked
from kbcore.query import coverage as covering
from kbcore.query.coverage import Covered
from kbcore.query.owners import read_owners
from kbcore.rules.elsewhere import KnownReferences
from kbcore.text.code_owners import NONE
from kbcore.view import as_of
from kbcore.view.branch_definitions import schema_at
from kbcore.view.parquet import HISTORY, KINDS
from kbcore.view.text_index import TextIndex
from kbcore.view.view import View

_AT: Final = "select max(seq) from record where written_at < ?"
_NO_BODIES: Final = "(select '' as id, '' as text where false)"


class CheckQuestion(msgspec.Struct, frozen=True, tag="check"):
    """The findings of the rules. ``only`` names the rules to run; none means all.

    ``elsewhere`` is what is known of references to other repositories, None where that is not looked for.
    """

    only: tuple[str, ...] = ()
    elsewhere: KnownReferences | None = None


class RowsQuestion(msgspec.Struct, frozen=True, tag="rows"):
    """The entities or edges that a query finds, at most ``query.limit`` of each branch.

    ``before`` is the first instant that does not count, "" for now.
    """

    query: Query
    before: str = ""


class CoverageQuestion(msgspec.Struct, frozen=True, tag="coverage"):
    """The requirements that a query means, and which of them are specified, verified and implemented."""

    query: Query
    before: str = ""


Question = CheckQuestion | RowsQuestion | CoverageQuestion


class CoverageAnswer(msgspec.Struct, frozen=True):
    """The coverage of one branch, and the owners of its requirements."""

    covered: Covered
    owners: dict[str, tuple[str, ...]]


def kinds_of(question: Question) -> Collection[str]:
    """Return the kinds of parts that a question reads: records are for rules, and for finding a seq by a time."""
    return KINDS if isinstance(question, CheckQuestion) or question.before else [*{*KINDS} - HISTORY]


def answer(question: Question, member: Member) -> dict[str, Any]:
    """Return the answer of one branch, as JSON values.

    Raises: ``InvalidQuery`` for what the branch does not have; ``InvalidConfig``, ``NotFound``.
    """
    match question:
        case CheckQuestion(only, elsewhere):
            return check(member, only, elsewhere)
        case RowsQuestion():
            return rows(member, question)
        case CoverageQuestion():
            found = coverage(member, question)
            return {
                "retired": found.covered.retired,
                "requirements": [
                    {**one.as_json(), "owners": list(found.owners.get(one.id, ()))}
                    for one in found.covered.requirements
                ],
            }


def check(member: Member, only: Sequence[str], elsewhere: KnownReferences | None = None) -> dict[str, Any]:
    """Return the report of the rules. There are no files, and no creations of ids by several changes."""
    view = member.view
    elsewhere = elsewhere and elsewhere.seen_from(member.head.repo)
    report = judge(member.settings, view, None, only=only, idle=idle_in(view), elsewhere=elsewhere).as_json()
    for run in report["rules"]:
        run.pop("seconds", None)  # it is another one each time
    return report


def rows(member: Member, question: RowsQuestion) -> dict[str, Any]:
    """Return what a query finds, in its order, and how much there is."""
    view = member.view
    at = seq_before(view, question.before)
    asked = msgspec.structs.replace(_checked(member, question.query, at), at=at)
    page = page_of(view, asked, "", _Texts(view) if asked.text else None)
    found: dict[str, Any] = {"total": page.total}
    if asked.count:
        return found
    if asked.is_edge:
        return found | {"rows": [project({**edge_json(one), "id": one.id}, asked.fields) for one in page.edges]}
    return found | {
        "rows": [
            project(shown_entity(one, asked.fields), asked.fields)
            | ({"stale": True} if one.id in page.stale else {})
            | page.walked(one.id)
            | (page.found.shown(one.id) if page.found else {})
            for one in page.entities
        ]
    }


def coverage(member: Member, question: CoverageQuestion) -> CoverageAnswer:
    """Return the coverage of a branch. Owners are those of the field ``owner`` alone."""
    view = member.view
    at = seq_before(view, question.before)
    covered = covering.read(view.rows, at, _checked(member, question.query, at))
    owned = read_owners(view.rows, at, [one.id for one in covered.requirements], NONE)
    return CoverageAnswer(covered, {key: one.owners for key, one in owned.items()})


def seq_before(view: View, before: str) -> int | None:
    """Return the last record before an instant, None where none is given.

    Raises: ``InvalidQuery`` where there is no history.
    """
    if not before:
        return None
    if view.seq and not view.rows("select exists (from record)")[0][0]:
        raise InvalidQuery("The history of the branch was not exported.", hint="Leave --at out.")
    found = int(view.rows(_AT, [before])[0][0] or 0)
    if found < view.basis.history_from:
        raise InvalidQuery(
            f"The history of the branch begins at seq {view.basis.history_from}.", hint="Name a later time."
        )
    return found


def _checked(member: Member, query: Query, at: int | None) -> Query:
    """Return a query with the names that the branch has. Raises: ``InvalidQuery`` for one that it does not have."""
    view, own = member.view, member.settings.schema
    schema = view.schema(own) if at is None else schema_at(view.rows, own, at)
    limit = min(query.limit, MAX_PAGE_ROWS)
    return checked(msgspec.structs.replace(query, limit=limit), schema, DataNames(view.rows, is_edge=query.is_edge))


class _Texts:
    """The text index of a branch, made for one question: of fields alone, as documents are not exported.

    Meaning is not searched: its vectors are in the cache of a store.
    """

    remark = ""
    hint = ""

    def __init__(self, view: View) -> None:
        self._view = view

    def index(self, at: int | None) -> TextIndex:
        made = TextIndex()
        made.add(self._view, as_of.nodes(at), _NO_BODIES)
        return made

    def meanings(self, at: int | None) -> None:
        """Return nothing: meaning is not searched."""

    def bodies(self, entities: Sequence[Node], at: int | None) -> Mapping[str, str]:  # noqa: ARG002 - the protocol's
        return {}
