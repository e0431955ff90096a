"""Violations of a changeset, as warnings of its answer: the rules over what it changed, before it and after it.

The rules look up what may have been broken, without the lock, also where the changeset is only tried. Nothing that they
find, and nothing that stops them, changes what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec

from kbcore.checks import look_at
from kbcore.checks.branch_files import tree_of
from kbcore.checks.introduced.before_after import Sides
from kbcore.checks.introduced.compare import introduced
from kbcore.errors import KBError, NotFound, Rejected
from kbcore.errors.remedies import kb
from kbcore.model.changeset import Changeset
from kbcore.model.concepts import ORIGIN
from kbcore.model.graph import CORE_FIELDS, FORMER_KEY, STAMPS, Node
from kbcore.model.renames import renamed_in
from kbcore.model.schema import EntityType, Schema
from kbcore.model.state import Changes, Draft, without_hidden
from kbcore.rules import RULES, Violation, orphans, suspect_edge
from kbcore.rules.accepted import BaselineEntry, key_of
from kbcore.store import apply, dry_run
from kbcore.store.answers import Outcome
from kbcore.store.apply import Noting, Reading
from kbcore.store.history.undo import UndoOptions
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author, Request
from kbcore.sync.ids_elsewhere import in_use_elsewhere
from kbcore.sync.locate import check_unrecorded, check_withdrawn, check_withdrawn_of_undo, with_places
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import is_it, near_ones
from kbcore.text.wording import pluralize
from kbcore.view.view import View

Point = TypeVar("Point", contravariant=True)  # noqa: PLC0105 - one name for all of its users

LOOKING: Final = frozenset(rule.id for rule in RULES if rule.look is not None)
"""All but those that planning holds or warns of by itself, and one of files."""
_MOST_ITEMS: Final = 500
"""A changeset of more items, or that changes more elements, is left to a check."""
_PREFIX: Final = "attributes."
_LEAST_ALIKE: Final = 0.8
_MOST_NAMED: Final = 5
_FIELDS: Final = tuple(name for name in CORE_FIELDS if name not in {*STAMPS, "type", "links", "text_ref"})
_IN_USE: Final = """select distinct name from (
  select unnest(json_keys(attributes)) as name from node where type = $1 and id not in (select unnest($2::varchar[])))
where name in (select unnest($3::varchar[]))"""


def apply_changeset(
    workspace: Workspace,
    branch: str,
    author: Author,
    changeset: Changeset,
    *,
    follows_head: bool,
    read: Reading | None = None,
) -> Outcome:
    """Do as ``store.apply.apply_changeset``, and warn of what then breaks KB's own rules and did not before.

    A refusal names the file, and its line, that states what it is about; with ``read`` also what files state that no
    record has.

    Raises: what ``store.apply.apply_changeset`` raises; ``NotSynced``. What stops the rules is a warning.
    """
    drafts: list[Draft] = []
    if read is not None and not changeset.problems and read(lambda view: bool(view.overlay_mark)):
        recorded = workspace.store(branch).read
        check_unrecorded(read, recorded, changeset)
        check_withdrawn(read, recorded, changeset)
    try:
        outcome = apply.apply_changeset(
            workspace,
            branch,
            author,
            changeset,
            follows_head=follows_head,
            read=read,
            elsewhere=partial(in_use_elsewhere, workspace, branch),
            note=drafts.append,
        )
    except (Rejected, NotFound) as refused:
        placed = with_places(workspace, changeset, refused, branch=branch, read=read)
        if placed is refused:
            raise
        raise placed from refused
    return with_warnings(workspace, branch, author, outcome, drafts, is_tried=changeset.dry_run, read=read)


class Undo(Protocol[Point]):
    """``undo.revert`` of some records, or ``undo.rollback`` to a record."""

    def __call__(
        self,
        workspace: Workspace,
        branch: str,
        author: Author,
        point: Point,
        /,
        *,
        options: UndoOptions,
        follows_head: bool,
        note: Noting | None,
    ) -> Outcome:
        """Undo as one new record; ``note`` gets each draft that is made of it."""


def undone(
    undo: Undo[Point],
    workspace: Workspace,
    branch: str,
    author: Author,
    point: Point,
    *,
    options: UndoOptions = UndoOptions(),  # noqa: B008 - frozen
    follows_head: bool,
    read: Reading | None = None,
) -> Outcome:
    """Do as ``undo``, with the warnings and, with ``read``, the refusals of ``apply_changeset``.

    Raises: what ``undo`` raises; ``NotSynced``.
    """

    def carry_out(options: UndoOptions, note: Noting) -> Outcome:
        return undo(workspace, branch, author, point, options=options, follows_head=follows_head, note=note)

    if read is not None and read(lambda view: bool(view.overlay_mark)):
        planned: list[Draft] = []
        carry_out(msgspec.structs.replace(options, dry_run=True), planned.append)
        for draft in planned[-1:]:
            check_withdrawn_of_undo(read, workspace.store(branch).read, draft.changes)
    drafts: list[Draft] = []
    outcome = carry_out(options, drafts.append)
    return with_warnings(workspace, branch, author, outcome, drafts, is_tried=options.dry_run, read=read)


def with_warnings(
    workspace: Workspace,
    branch: str,
    author: Author,
    outcome: Outcome,
    drafts: Sequence[Draft],
    *,
    is_tried: bool,
    read: Reading | None = None,
) -> Outcome:
    """Return the answer of a write, with a warning for each rule that the last one of its drafts newly breaks."""
    if outcome.duplicate or not (drafts and drafts[-1].changes):
        return outcome
    seq = None if is_tried else outcome.seq
    warnings = warnings_of(workspace, branch, author, drafts[-1], seq=seq, read=read)
    return msgspec.structs.replace(outcome, warnings=(*outcome.warnings, *warnings)) if warnings else outcome


class _Broken(NamedTuple):
    """The violations that a draft introduces, and sentences on what else was found or could not run."""

    violations: list[Violation]
    others: list[str]


def warnings_of(
    workspace: Workspace, branch: str, author: Author, draft: Draft, *, seq: int | None, read: Reading | None = None
) -> list[str]:
    """Return a sentence for each rule that a draft newly breaks, and for what stops the rules.

    ``seq`` is that of its record; None where it is only tried. Others may have recorded something since. With ``read``
    a violation that is none by what the files say now, which no record has yet, is left out.
    """
    changes = without_hidden(draft.changes)
    if not changes:
        return []
    number = max(len(draft.ops), len(changes.nodes) + len(changes.links))
    if number > _MOST_ITEMS:
        return [_not_run(f"it has {number} items, more than {_MOST_ITEMS}. {kb('check')} runs them.")]

    def on(view: View) -> _Broken:
        return _found(workspace, branch, view, changes, seq or view.seq)

    try:
        found = (
            _found_of_plan(workspace, branch, author, draft, changes)
            if seq is None
            else workspace.store(branch).read(on, publishes=False)
        )
        if read is not None and any(one.rule != suspect_edge.RULE.id for one in found.violations):
            found = found._replace(violations=_not_settled(workspace, branch, read, changes, found.violations))
    except KBError as error:
        return [_not_run(error.message)]
    return [*by_rule(found.violations), *found.others]


def _not_settled(
    workspace: Workspace, branch: str, read: Reading, changes: Changes, found: list[Violation]
) -> list[Violation]:
    """Return the violations but for those that are none by what the files say now: a sync records that.

    What has changed since an edge was confirmed is a question of the records, so suspect edges stay.
    """
    rules = {one.rule for one in found} - {suspect_edge.RULE.id}

    def on(view: View) -> set[BaselineEntry] | None:
        if not view.overlay_mark:
            return None
        tree, proposes = cache(lambda: tree_of(workspace, branch)), bool(workspace.config.review.actors)
        sides = Sides(view, changes, view.seq, view.schema(workspace.schema), tree, has_proposals=proposes)
        report = look_at(workspace, sides.after(), rules, view.renamed)
        return {*map(key_of, report.violations)}

    present = read(on)
    if present is None:
        return found
    return [one for one in found if one.rule not in rules or key_of(one) in present]


def _found_of_plan(workspace: Workspace, branch: str, author: Author, draft: Draft, changes: Changes) -> _Broken:
    """Return what a plan introduces by these of its changes, by a view of its own that takes it in."""

    def on(view: View) -> _Broken:
        dry_run.take(view, author, Request(), lambda _view, _stamp: draft, workspace.machine.clock.now())
        return _found(workspace, branch, view, changes, view.seq)

    own = dry_run.unshared_view(workspace, branch)
    try:
        return own.ask(workspace.store(branch).head(), on)
    finally:
        own.close()


def _found(workspace: Workspace, branch: str, view: View, changes: Changes, seq: int) -> _Broken:
    """Return what the record at a seq of a view newly breaks, which rules could not run, and misspelled fields."""
    found = _broken(workspace, branch, view, changes, seq)
    return found._replace(others=[*found.others, *_misspelled(view, changes, view.schema(workspace.schema))])


def _broken(workspace: Workspace, branch: str, view: View, changes: Changes, seq: int) -> _Broken:
    tree, proposes = cache(lambda: tree_of(workspace, branch)), bool(workspace.config.review.actors)
    sides = Sides(view, changes, seq, view.schema(workspace.schema), tree, has_proposals=proposes)
    after = look_at(workspace, sides.after(), LOOKING, view.renamed)
    broken = {one.rule for one in after.violations}
    stopped = [f"The rule {run.id} could not run: {run.reason}" for run in after.rules if run.status == "not_run"]
    if not broken:
        return _Broken([], stopped)
    before = look_at(workspace, sides.before(), broken, view.renamed)
    present = {earlier: now for now, earlier in renamed_in(changes.nodes).items()}
    found = introduced(before, after, lambda _: present).report.violations
    # Whoever has just created an entity could not link it to anything before.
    created = {one.key for one in changes.nodes if one.before is None}
    warned = [one for one in found if one.rule != orphans.RULE.id or one.id not in created]
    return _Broken(warned, stopped)


def _not_run(reason: str) -> str:
    return f"The rules were not run on what this changes: {reason}"


def by_rule(violations: list[Violation]) -> Iterator[str]:
    """Yield a sentence for each rule that is broken: its first violation, and how many more there are."""
    found: dict[str, list[Violation]] = {}
    for violation in violations:
        found.setdefault(violation.rule, []).append(violation)
    for rule, broken in found.items():
        first = broken[0]
        more = f" ({len(broken) - 1} more; {kb('check', '--rule', rule)} lists them.)" if len(broken) > 1 else ""
        yield f"{rule} ({first.severity}): {first.sentence}{more}"


def _misspelled(view: View, changes: Changes, schema: Schema) -> list[str]:
    """Return a sentence for each new attribute whose name is like that of a field, and that no other entity has.

    ``view`` holds the changes. Types of KIP are left out: their attributes are free. What the schema declares is known,
    and so is what another entity of the type has.
    """
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for change in changes.nodes:
        definition = schema.entities.get(change.after.type) if change.after else None
        if change.after is None or definition is None or definition.origin == ORIGIN:
            continue
        for name in _new_names(change.before, change.after):
            if (definition.name, name) not in found and (near := _near(name, definition)):
                found[definition.name, name] = change.key, near
    changed = [change.key for change in changes.nodes]
    for kind in {kind for kind, _ in found}:
        names = [name for one, name in found if one == kind]
        for (known,) in view.rows(_IN_USE, [kind, changed, names]):
            del found[kind, known]
    warnings = [
        f"{in_quotes(name)} of {in_quotes(key)} is stored as an attribute: a {kind} has no field of that name. "
        + is_it([near])
        for (kind, name), (key, near) in found.items()
    ]
    left = len(warnings) - _MOST_NAMED
    more = [f"{pluralize(left, 'more attribute')} may be misspelled."] if left > 0 else []
    return [*warnings[:_MOST_NAMED], *more]


def _new_names(before: Node | None, after: Node) -> list[str]:
    known = before.fields if before else {}
    return [
        name.removeprefix(_PREFIX)
        for name in after.fields
        if name.startswith(_PREFIX) and name not in known and name != f"{_PREFIX}{FORMER_KEY}"
    ]


def _near(name: str, definition: EntityType) -> str:
    """Return the field of a type that is most like a name which is none of them, or the empty text."""
    if name in definition.attributes:
        return ""
    known = [*_FIELDS, *definition.attributes]
    return next(iter(near_ones(name, known, 1, least_alike=_LEAST_ALIKE, stems=False)), "")
