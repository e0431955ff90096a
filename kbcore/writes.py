"""Carry out what a client asks: plan it on the branch's state, and commit it while HEAD stays where it was."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from kbcore.answers import Outcome
from kbcore.changeset import Changeset
from kbcore.concepts import DEFINING, PREDICATE, TYPE, Concept, extended
from kbcore.errors import Rejected
from kbcore.locate import DERIVED, with_lines
from kbcore.model import Node
from kbcore.planning.findings import Surroundings, Users
from kbcore.planning.plan import plan, reads
from kbcore.planning.secrets import CODE as SECRET
from kbcore.query.known import nearest_id as nearest_known
from kbcore.record import IMPORT
from kbcore.schema import Schema
from kbcore.state import Change, Draft, Reads, Stamp, State
from kbcore.store import Author, Request
from kbcore.suspects import suspects
from kbcore.view.defined import definition_of
from kbcore.view.view import View
from kbcore.view.working import plan_on
from kbcore.workspace import Workspace

MANY_ITEMS: Final = 500
"""A changeset of more items is planned before the branch is locked."""

MOST_PRELOADED: Final = 200
"""The working set of a changeset of more items is loaded under the lock, and not while others wait for it."""

_USERS: Final = {
    TYPE: """select id, count(*) over () from node
where type = ? and id not in (select unnest(?::varchar[])) order by id limit 3""",
    PREDICATE: """select from_id || ' ' || type || ' ' || to_id, count(*) over () from link
where stands and type = ? and id not in (select unnest(?::varchar[])) order by id limit 3""",
}


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
            plans_ahead=changeset.size > MANY_ITEMS,
        )
    store = workspace.store(branch)
    guard = workspace.guard(branch) if follows_head else None
    try:
        return store.commit(
            author,
            request,
            planner(changeset, workspace),
            guard=guard,
            head_commit=workspace.head_commit(branch),
            loads=preloading(changeset),
            branch=branch,
        )
    except Rejected as refused:
        if all(problem.code != DERIVED for problem in refused.details):
            raise
        raise with_lines(workspace, changeset, refused, branch=branch) from refused


def importing(author: Author) -> Author:
    """Return an author who imports: the record is marked as an import by its source."""
    return msgspec.structs.replace(author, source=IMPORT)


def preloading(changeset: Changeset) -> Callable[[View], object] | None:
    """Return what loads the working set of a changeset while it waits for the lock; None where that may be large.

    Others wait meanwhile, though the lock may be free. Whatever hangs on what is deleted is loaded with it.
    """
    if changeset.size > MOST_PRELOADED or changeset.entity_deletes:
        return None
    return lambda view: view.gather(reads(changeset))


def planner(
    changeset: Changeset, workspace: Workspace, called: Callable[[str], str] = str
) -> Callable[[View, Stamp], Draft]:
    """Return the function that plans a changeset on a view, by the schema of its branch and a workspace's settings.

    ``called`` returns what the client calls a type.
    """
    level = workspace.config.rules.get(SECRET, "warning")

    def draft(view: View, stamp: Stamp) -> Draft:
        schema = schema_after(view, workspace.schema, changeset)

        def on(state: State) -> Draft:
            around = Surroundings(
                schema=schema,
                stamp=stamp,
                gone=_removed(view, changeset, state) if changeset.expected_seq is not None else {},
                suggest=lambda word: nearest_id(view, word),
                secrets=level,
                pruned=view.basis.history_from,
                suspect=lambda ids: {one.id for one in suspects(view.rows, ids)},
                called=called,
                users=partial(users, view),
            )
            return plan(changeset, state, around)

        planned, state = plan_on(view, reads(changeset), on)
        # What uses a type that is defined anew, or defined no more, is looked for everywhere.
        read = None if any(defines(change) for change in planned.changes.nodes) else Reads(state.loaded)
        return msgspec.structs.replace(planned, loaded=state.loaded, reads=read)

    return draft


def defines(change: Change[Node]) -> bool:
    """Tell whether a change is one of what the branch defines of types, which what uses them depends on."""
    return any(node is not None and node.type in DEFINING for node in (change.before, change.after))


def users(view: View, kind: str, name: str, gone: Collection[str]) -> Users:
    """Return what uses a type or predicate of the branch, besides the elements that go."""
    rows = view.rows(_USERS[kind], [name, sorted(gone)])
    return Users([row[0] for row in rows], rows[0][1] if rows else 0)


def schema_after(view: View, project: Schema, changeset: Changeset) -> Schema:
    """Return the schema of a branch with what a changeset itself defines, so that it can use that at once."""
    known = view.definitions()
    written = [item for item in changeset.entities if item.id in known or item.values.get("type") in DEFINING]
    deleted = [item.id for item in changeset.entity_deletes if item.id in known]
    if not written and not deleted:
        return view.schema(project)
    after = {key: definition_of(node) for key, node in known.items() if key not in deleted}
    for item in written:
        old = after.get(item.id)
        kind = item.values.get("type", old.type if old else "")
        if kind in DEFINING:
            name = item.values.get("name", old.name if old else item.id.removeprefix(f"{kind}:"))
            attributes = item.objects.get("attributes", old.attributes if old else {})
            after[item.id] = Concept(kind, name, attributes)
        else:
            after.pop(item.id, None)
    return extended(project, (after[key] for key in sorted(after)))


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
    return nearest_known(view.rows, word)
