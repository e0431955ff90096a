"""Carry out what a client asks: plan it on the branch's state, and commit it while HEAD stays where it was."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from kbcore.errors import IntegrityViolation, InvalidChangeset, Problem, of_problems
from kbcore.ids import NUMBER_MARK
from kbcore.model.changeset import Changeset, EdgeDelete, EdgeWrite, EntityWrite
from kbcore.model.concepts import DEFINING, PREDICATE, TYPE, Concept, extended
from kbcore.model.graph import Node, nested
from kbcore.model.record import IMPORT
from kbcore.model.schema import ORDER, TASK, Schema
from kbcore.model.state import Draft, ElementChange, Stamp, State, StateReads
from kbcore.query.data_names import nearest_id
from kbcore.query.former_ids import successors
from kbcore.rules.edge_confirmation import suspect_edges
from kbcore.store import id_allocation
from kbcore.store.answers import Outcome
from kbcore.store.history.authorship import other_setters
from kbcore.store.history.writers import maker_of
from kbcore.store.planning.plan import plan as plan_changes
from kbcore.store.planning.plan import reads
from kbcore.store.planning.plan_builder import PlanContext, Users, members_wanted
from kbcore.store.planning.secrets import CODE as SECRET
from kbcore.store.proposing import proposing
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author, Request
from kbcore.text.escaping import in_quotes
from kbcore.view import numbering
from kbcore.view.branch_definitions import definition_of
from kbcore.view.tables import WHOLE
from kbcore.view.view import View
from kbcore.view.working_set import plan_until_stable

MANY_ITEMS: Final = 500
"""A changeset of more items is planned before the branch is locked."""

MOST_PRELOADED: Final = 200
"""The working set of a changeset of more items is loaded under the lock, and not while others wait for it."""

NUMBERED: Final = 5
"""Attempts to give a changeset other numbers, where another writer who did not ask for one wrote the same id."""

AnyEdge = TypeVar("AnyEdge", EdgeWrite, EdgeDelete)

Noting = Callable[[Draft], object]
"""Is given each plan; the last is the one that is carried out."""
_USERS: Final = {
    TYPE: """select id, count(*) over () from node
where type = ? and id not in (select unnest(?::varchar[])) order by id limit 3""",
    PREDICATE: """select from_id || ' ' || type || ' ' || to_id, count(*) over () from link
where is_resolved and type = ? and id not in (select unnest(?::varchar[])) order by id limit 3""",
}
_LAST_TASK: Final = """
select max(try_cast(json_extract_string(attributes, '$.' || $2) as double)) from node where type = $1
"""


def _not_noted(_: Draft) -> None:
    """Do nothing with a plan."""


class _InUse(Exception):
    """The allocated id in the argument names an entity by now."""


Reading = Callable[[Callable[[View], Any]], Any]
"""Returns what a function returns of a view of the branch with what its files say."""


def apply_changeset(
    workspace: Workspace,
    branch: str,
    author: Author,
    changeset: Changeset,
    *,
    follows_head: bool,
    read: Reading | None = None,
    elsewhere: Callable[[Sequence[str]], Sequence[str]] = lambda _: (),
    note: Noting = _not_noted,
) -> Outcome:
    """Commit a client's changeset to a branch.

    With ``follows_head`` the branch came from HEAD, and a move of HEAD meanwhile refuses the changeset. One that has
    problems already is only planned, to find the others: it takes no lock, and its id is not looked up. An entity whose
    id ends in ``{n}`` gets the next number of its series, and one without an id that of its type. ``read`` gives the
    view in which numbers in use are looked up, where the files of the worktree say more than the branch's own, and
    ``elsewhere`` returns the highest ids of series that are in use in other places.

    Raises: everything that ``planning.plan.plan`` and ``BranchStore.commit`` raise; ``BranchMoved``; with ids to
    allocate, as ``id_allocation.reserved``.
    """
    if changeset.problems or not _marks_of(changeset):
        return _apply(workspace, branch, author, changeset, follows_head=follows_head, note=note)
    ask = read or workspace.store(branch).read
    for _ in range(NUMBERED):
        try:
            return _numbered(
                workspace,
                branch,
                author,
                changeset,
                ask=ask,
                elsewhere=elsewhere,
                follows_head=follows_head,
                note=note,
            )
        except _InUse as error:
            taken = error.args[0]
    message = f"{in_quotes(taken)} was taken by another writer, as were the numbers before it."
    raise IntegrityViolation(message, hint="Send it again.")


def _numbered(
    workspace: Workspace,
    branch: str,
    author: Author,
    changeset: Changeset,
    *,
    ask: Reading,
    elsewhere: Callable[[Sequence[str]], Sequence[str]],
    follows_head: bool,
    note: Noting,
) -> Outcome:
    """Carry out a changeset with the next numbers in place of the marks. Raises ``_InUse`` where one is in use."""

    def used(view: View) -> tuple[dict[str, str], list[tuple[str, list[str]]], bool]:
        prefixes = _prefixes_of(view, workspace.schema, changeset)
        is_known = bool(changeset.changeset_id) and view.changeset(changeset.changeset_id) is not None
        return prefixes, [(one, [numbering.highest(view.rows, one)]) for one in prefixes.values()], is_known

    prefixes, wanted, is_known = ask(used)
    if not is_known:
        others = elsewhere([prefix for prefix, _ in wanted])
        wanted = [(prefix, [*known, *others]) for prefix, known in wanted]
    with contextlib.ExitStack() as stack:
        if is_known or changeset.dry_run:
            # Nothing will be written: the answer of the first time comes again, or what would be done is asked.
            keys: list[str] = []
            for prefix, known in wanted:
                keys.append(id_allocation.known_next(workspace, prefix, [*known, *keys]))
        else:
            keys = stack.enter_context(id_allocation.reserved(workspace, wanted))
        ids = dict(zip(prefixes, keys, strict=True))
        given = _with_ids(changeset, ids)
        outcome = _apply(workspace, branch, author, given, follows_head=follows_head, note=note, fresh=frozenset(keys))
        if outcome.duplicate:
            ids = _ids_given(changeset, prefixes, outcome.created)
        unnamed = {one.id: one.id.removesuffix(NUMBER_MARK) for one in changeset.entities if one.is_unnamed}
        return msgspec.structs.replace(outcome, ids={unnamed.get(mark, mark): key for mark, key in ids.items()})


def _prefixes_of(view: View, project: Schema, changeset: Changeset) -> dict[str, str]:
    """Return the series of each id whose number is to be allocated: that of the type where there is no id.

    Raises: ``InvalidChangeset`` for an entity without an id whose type is one of the memory: its name makes the id.
    """
    schema = view.schema(project)
    prefixes: dict[str, str] = {}
    problems = list[Problem]()
    for one in changeset.entities:
        kind = one.values.get("type", "")
        if one.is_unnamed and kind in schema.memory_types:
            message = f"A {kind} needs an `id`."
            hint = f"It is the type and the name, such as {in_quotes(f'{kind}:NAME')}."
            problems.append(Problem(f"{one.path}.id", "missing_field", message, hint))
        elif one.is_unnamed:
            prefixes[one.id] = numbering.prefix_of(view.rows, kind)
        elif (prefix := numbering.marked_prefix(one.id)) is not None:
            prefixes[one.id] = prefix
    if problems:
        raise of_problems(InvalidChangeset, "The changeset is not valid", problems)
    return prefixes


def _marks_of(changeset: Changeset) -> list[str]:
    """Return the ids of new entities whose number is to be allocated."""
    return [one.id for one in changeset.entities if numbering.marked_prefix(one.id)]


def _ids_given(changeset: Changeset, prefixes: Mapping[str, str], created: Sequence[str]) -> dict[str, str]:
    """Return which id each mark got when a changeset was carried out before; nothing where that is not certain.

    The numbers of one prefix were given in the order of the marks.
    """
    named = {one.id for one in changeset.entities}
    by_prefix: dict[str, list[str]] = {}
    for mark, prefix in prefixes.items():
        by_prefix.setdefault(prefix, []).append(mark)
    ids: dict[str, str] = {}
    for prefix, its in by_prefix.items():
        numbers = [(numbering.number_in(key, prefix), key) for key in created if key not in named]
        found = sorted((number, key) for number, key in numbers if number is not None)
        if len(found) != len(its):
            return {}
        ids |= {mark: key for mark, (_, key) in zip(its, found, strict=True)}
    return ids


def _with_ids(changeset: Changeset, ids: Mapping[str, str]) -> Changeset:
    """Return a changeset with ids in place of marks, wherever it names them."""
    swap = msgspec.structs.replace
    entities = tuple(swap(one, id=ids.get(one.id, one.id)) for one in changeset.entities)
    edges = tuple(_with_ends(one, ids) for one in changeset.edges)
    return swap(changeset, entities=entities, edges=edges)


def _apply(
    workspace: Workspace,
    branch: str,
    author: Author,
    changeset: Changeset,
    *,
    follows_head: bool,
    note: Noting,
    fresh: Collection[str] = (),
) -> Outcome:
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
    plan = planner(changeset, workspace, fresh=fresh, warns_of_overwriting=not changeset.is_review)
    plan = plan if changeset.is_review else proposing(workspace, author, plan)

    def noted(view: View, stamp: Stamp) -> Draft:
        draft = plan(view, stamp)
        note(draft)
        return draft

    return store.commit(
        author,
        request,
        noted,
        guard=guard,
        head_commit=workspace.head_commit(branch),
        loads=preloading(changeset),
        branch=branch,
    )


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
    asked: Changeset,
    workspace: Workspace,
    called: Callable[[str], str] = str,
    *,
    warns_of_overwriting: bool = True,
    fresh: Collection[str] = (),
) -> Callable[[View, Stamp], Draft]:
    """Return the function that plans a changeset on a view, by the schema of its branch and a workspace's settings.

    ``called`` returns what the client calls a type. ``warns_of_overwriting`` is False for a write whose purpose is to
    overwrite what others have set. The planner raises ``_InUse`` if an id among ``fresh`` is in use.
    """
    level = workspace.config.rules.get(SECRET, "warning")

    def draft(view: View, stamp: Stamp) -> Draft:
        former = view.renamed(_named(asked))
        changeset, warnings = _with_present_ids(asked, former)
        schema = schema_after(view, workspace.schema, changeset)

        def on(state: State) -> Draft:
            around = PlanContext(
                schema=schema,
                stamp=stamp,
                gone=_removed(view, changeset, state) if _needs_removals(changeset) else {},
                suggest=lambda word: nearest_id(view.rows, word),
                secrets=level,
                pruned=view.basis.history_from,
                suspect=lambda ids: {one.id: one.changed_seq for one in suspect_edges(view.rows, ids)},
                sources=view.sources,
                called=called,
                users=partial(users, view),
                writer=partial(maker_of, view),
                setters=partial(other_setters, view, stamp) if warns_of_overwriting else lambda _: {},
                former=former,
                later=partial(_later_id, view),
                last_task=partial(_last_task, view),
                holders=lambda keys: {one.id: one.id for one in view.nodes([*keys])} | view.renamed(keys),
            )
            return plan_changes(changeset, state, around)

        for node in view.nodes(list(fresh)) if fresh else ():
            raise _InUse(node.id)
        planned, state = plan_until_stable(view, reads(changeset), on)
        # What uses a type that is redefined, or defined no more, is looked for everywhere.
        read = None if any(defines(change) for change in planned.changes.nodes) else StateReads(state.loaded)
        said = (*warnings, *planned.warnings)
        return msgspec.structs.replace(planned, loaded=state.loaded, reads=read, warnings=said)

    return draft


def _named(changeset: Changeset) -> list[str]:
    """Return the ids that a changeset names."""
    entities = [*(one.id for one in changeset.entities), *(one.id for one in changeset.entity_deletes)]
    return [*entities, *_ends(changeset)]


def _ends(changeset: Changeset) -> list[str]:
    written = [end for one in changeset.edges for end in (one.from_id, one.to_id)]
    return written + [end for one in changeset.edge_deletes for end in (one.from_id, one.to_id)]


def _with_present_ids(changeset: Changeset, former: Mapping[str, str]) -> tuple[Changeset, list[str]]:
    """Return a changeset that names renamed entities by their present ids, and what to say about that.

    That holds for the ends of edges, and for items that can only be updates: an item that could make an entity with
    the former id, and a deletion, name what they mean, and are refused.
    """
    written = Counter(former.get(item.id, item.id) for item in changeset.entities)
    updated = {
        item.id
        for item in changeset.entities
        if item.id in former
        and written[former[item.id]] == 1
        and (item.mode == "update" or (item.mode == "upsert" and "type" not in item.values))
    }
    ends = updated | (former.keys() & _ends(changeset))
    if not ends:
        return changeset, []
    entities = tuple(
        msgspec.structs.replace(item, id=former[item.id]) if item.id in updated else item for item in changeset.entities
    )
    edges = tuple(_with_ends(one, former) for one in changeset.edges)
    deletes = tuple(_with_ends(one, former) for one in changeset.edge_deletes)
    warnings = [f"{in_quotes(end)} is called {in_quotes(former[end])} now." for end in sorted(ends)]
    return msgspec.structs.replace(changeset, entities=entities, edges=edges, edge_deletes=deletes), warnings


def _with_ends(edge: AnyEdge, present: Mapping[str, str]) -> AnyEdge:
    """Return an edge with present ids in place of others."""
    from_id, to_id = present.get(edge.from_id, edge.from_id), present.get(edge.to_id, edge.to_id)
    return msgspec.structs.replace(edge, from_id=from_id, to_id=to_id)


def defines(change: ElementChange[Node]) -> bool:
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
            attributes = _attributes_after(item, old.attributes if old else {})
            after[item.id] = Concept(kind, name, attributes)
        else:
            after.pop(item.id, None)
    return extended(project, (after[key] for key in sorted(after)))


def _attributes_after(item: EntityWrite, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a definition after an item; what planning refuses to remove may be missing."""
    members, gone = members_wanted(item, {f"attributes.{name}": value for name, value in before.items()}, {})
    after = {f"attributes.{name}": value for name, value in before.items() if f"attributes.{name}" not in gone}
    return nested(after | members, "attributes")


def _last_task(view: View) -> float:
    """Return the highest order of a task, 0 where none has one."""
    return float(view.rows(_LAST_TASK, [TASK, ORDER])[0][0] or 0)


def _needs_removals(changeset: Changeset) -> bool:
    items: list[EntityWrite | EdgeWrite] = [*changeset.entities, *changeset.edges]
    return changeset.expected_seq is not None or any(item.mode == "update" for item in items)


def _removed(view: View, changeset: Changeset, state: State) -> dict[str, int]:
    """Return, for what the changeset names and what does not exist now, the seq that removed it."""
    nodes = [item.id for item in changeset.entities if item.id and item.id not in state.nodes]
    links = [item.id for item in changeset.edges if item.id and item.id not in state.links]
    return {**last_removals(view, WHOLE["node"], nodes), **last_removals(view, "link", links)}


def _later_id(view: View, key: str) -> str:
    """Return the present id of an entity that was renamed from an id which names none now; "" where there is none."""
    later = successors(view, [key], view.recorded_seq).get(key)
    return later.id if later and not later.removed else ""


def last_removals(view: View, table: str, ids: Sequence[str]) -> dict[str, int]:
    """Return, for ids of nodes or links that do not exist now, the seq that removed them."""
    if not ids:
        return {}
    sql = f"select id, max(ended) from {table}_history where id in (select unnest(?::varchar[])) group by id"  # noqa: S608
    rows: list[tuple[Any, ...]] = view.rows(sql, [list(ids)])
    return dict(rows)
