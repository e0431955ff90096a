"""Carry out what a client asks: plan it on the branch's state, and commit it while HEAD stays where it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kbcore.answers import Outcome
from kbcore.changeset import Changeset
from kbcore.errors import Rejected
from kbcore.locate import DERIVED, with_lines
from kbcore.planning.findings import Surroundings
from kbcore.planning.plan import Plan, plan, reads
from kbcore.planning.secrets import CODE as SECRET
from kbcore.state import Stamp, State
from kbcore.store import Author, Draft, Request
from kbcore.view.view import View
from kbcore.view.working import plan_on
from kbcore.workspace import Workspace


def carry_out(
    workspace: Workspace, branch: str, author: Author, changeset: Changeset, *, follows_head: bool
) -> Outcome:
    """Commit a client's changeset to a branch.

    With ``follows_head`` the branch came from HEAD, and a move of HEAD meanwhile refuses the changeset. One that has
    problems already is only planned, to find the others: it takes no lock, and its id is not looked up.

    Raises: everything that ``planning.plan.plan`` and ``BranchStore.commit`` raise; ``BranchMoved``.
    """
    request = Request(dry_run=True)
    if not changeset.problems:
        request = Request(
            changeset_id=changeset.changeset_id,
            digest=changeset.digest,
            message=changeset.message,
            dry_run=changeset.dry_run,
            lock_wait_s=workspace.config.lock_wait_s,
        )
    store = workspace.store(branch)
    guard = workspace.guard(branch) if follows_head else None
    try:
        return store.commit(author, request, planner(changeset, workspace), guard=guard, branch=branch)
    except Rejected as refused:
        if all(problem.code != DERIVED for problem in refused.details):
            raise
        raise with_lines(workspace, changeset, refused, branch=branch) from refused


def planner(changeset: Changeset, workspace: Workspace) -> Callable[[View, Stamp], Draft]:
    """Return the function that plans a changeset on a view, by the schema and the settings of a workspace."""
    schema, level = workspace.schema, workspace.config.rules.get(SECRET, "warning")

    def draft(view: View, stamp: Stamp) -> Draft:
        def on(state: State) -> Plan:
            around = Surroundings(
                schema=schema,
                stamp=stamp,
                gone=_removed(view, changeset, state) if changeset.expected_seq is not None else {},
                suggest=lambda word: nearest_id(view, word),
                secrets=level,
                pruned=view.basis.history_from,
            )
            return plan(changeset, state, around)

        planned, state = plan_on(view, reads(changeset), on)
        return Draft(
            ops=planned.ops,
            changes=planned.changes,
            loaded=state.loaded,
            unchanged=planned.unchanged,
            edges_unchanged=planned.edges_unchanged,
            warnings=planned.warnings,
        )

    return draft


def _removed(view: View, changeset: Changeset, state: State) -> dict[str, int]:
    """Return, for what the changeset names and what does not exist now, the seq that removed it."""
    nodes = [item.id for item in changeset.entities if item.id and item.id not in state.nodes]
    links = [item.id for item in changeset.edges if item.id and item.id not in state.links]
    return {**last_removals(view, "node", nodes), **last_removals(view, "link", links)}


def last_removals(view: View, table: str, ids: Sequence[str]) -> dict[str, int]:
    """Return, for ids of nodes or links that do not exist now, the seq that removed them."""
    if not ids:
        return {}
    sql = f"select id, max(ended) from {table}_history where id in (select unnest(?::varchar[])) group by id"  # noqa: S608
    rows: list[tuple[Any, ...]] = view.rows(sql, [list(ids)])
    return dict(rows)


def nearest_id(view: View, word: str) -> str:
    """Return the entity id that is most like a mistyped one, or the empty text."""
    rows = view.rows(
        "select id from node where jaro_winkler_similarity(lower(id), lower(?)) > 0.85 "
        "order by jaro_winkler_similarity(lower(id), lower(?)) desc, id limit 1",
        [word, word],
    )
    return str(rows[0][0]) if rows else ""
