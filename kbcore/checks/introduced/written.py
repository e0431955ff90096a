"""What a changeset introduces, as warnings of its answer: the rules over what it changed, before it and after it.

The rules look up what may have been broken, without the lock, also where the changeset is only tried. Nothing that they
find, and nothing that stops them, changes what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import msgspec

from kbcore.checks import look_at
from kbcore.checks.branch_files import tree_of
from kbcore.checks.introduced.compare import introduced
from kbcore.checks.introduced.identity import numbers_in
from kbcore.checks.introduced.misspelled import misspelled
from kbcore.checks.introduced.sides import Sides
from kbcore.errors import KBError, NotFound, Rejected
from kbcore.model.changeset import Changeset
from kbcore.model.renames import renamed_in
from kbcore.model.state import Changes, Draft
from kbcore.rules import RULES, Violation, orphans
from kbcore.store import apply, dry_run
from kbcore.store.answers import Outcome
from kbcore.store.apply import Reading
from kbcore.store.history import undo
from kbcore.store.history.undo import UndoOptions
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author, Request
from kbcore.sync.locate import check_unrecorded, with_places
from kbcore.view.view import View

LOOKING: Final = frozenset(rule.id for rule in RULES if rule.look is not None)
"""All but those that planning holds or warns of by itself, and one of files."""
_MOST_ITEMS: Final = 500
"""A changeset of more items, or that changes more elements, is left to a check."""


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
    if read is not None and not changeset.problems:

        def missing(ids: Sequence[str]) -> set[str]:
            return workspace.store(branch).read(lambda view: {*ids} - {one.id for one in view.nodes(ids)})

        check_unrecorded(read, changeset, missing)
    try:
        outcome = apply.apply_changeset(
            workspace, branch, author, changeset, follows_head=follows_head, read=read, note=drafts.append
        )
    except (Rejected, NotFound) as refused:
        placed = with_places(workspace, changeset, refused, branch=branch, read=read)
        if placed is refused:
            raise
        raise placed from refused
    return with_warnings(workspace, branch, author, outcome, drafts, is_tried=changeset.dry_run)


def revert(
    workspace: Workspace, branch: str, author: Author, seqs: Sequence[int], options: UndoOptions, *, follows_head: bool
) -> Outcome:
    """Do as ``undo.revert``, and warn as ``apply_changeset`` does. Raises: what ``undo.revert`` raises."""
    drafts: list[Draft] = []
    outcome = undo.revert(workspace, branch, author, seqs, options, follows_head=follows_head, note=drafts.append)
    return with_warnings(workspace, branch, author, outcome, drafts, is_tried=options.dry_run)


def rollback(
    workspace: Workspace,
    branch: str,
    author: Author,
    to_seq: int,
    options: UndoOptions = UndoOptions(),  # noqa: B008 - frozen
    *,
    follows_head: bool,
) -> Outcome:
    """Do as ``undo.rollback``, and warn as ``apply_changeset`` does. Raises: what ``undo.rollback`` raises."""
    drafts: list[Draft] = []
    outcome = undo.rollback(workspace, branch, author, to_seq, options, follows_head=follows_head, note=drafts.append)
    return with_warnings(workspace, branch, author, outcome, drafts, is_tried=options.dry_run)


def with_warnings(
    workspace: Workspace, branch: str, author: Author, outcome: Outcome, drafts: Sequence[Draft], *, is_tried: bool
) -> Outcome:
    """Return the answer of a write, with a warning for each rule that the last one of its drafts newly breaks."""
    if outcome.duplicate or not (drafts and drafts[-1].changes):
        return outcome
    warnings = warnings_of(workspace, branch, author, drafts[-1], seq=None if is_tried else outcome.seq)
    return msgspec.structs.replace(outcome, warnings=(*outcome.warnings, *warnings)) if warnings else outcome


def warnings_of(workspace: Workspace, branch: str, author: Author, draft: Draft, *, seq: int | None) -> list[str]:
    """Return a sentence for each rule that a draft newly breaks, and for what stops the rules.

    ``seq`` is that of its record; None where it is only tried. Others may have recorded something since.
    """
    changes = draft.changes
    number = max(len(draft.ops), len(changes.nodes) + len(changes.links))
    if number > _MOST_ITEMS:
        return [_not_run(f"it has {number} items, more than {_MOST_ITEMS}. `kb check` runs them.")]

    def on(view: View) -> list[str]:
        return _found(workspace, branch, view, changes, seq or view.seq)

    try:
        return (
            _warnings_of_plan(workspace, branch, author, draft)
            if seq is None
            else workspace.store(branch).read(on, publishes=False)
        )
    except KBError as error:
        return [_not_run(error.message)]


def _warnings_of_plan(workspace: Workspace, branch: str, author: Author, draft: Draft) -> list[str]:
    """Return the warnings of a plan that a view of its own takes in."""

    def on(view: View) -> list[str]:
        dry_run.take(view, author, Request(), lambda _view, _stamp: draft, workspace.machine.clock.now())
        return _found(workspace, branch, view, draft.changes, view.seq)

    own = dry_run.unshared_view(workspace, branch)
    try:
        return own.ask(workspace.store(branch).head(), on)
    finally:
        own.close()


def _found(workspace: Workspace, branch: str, view: View, changes: Changes, seq: int) -> list[str]:
    """Return a sentence for each rule that the record at a seq of a view newly breaks, or that could not run.

    What may be a misspelled field is warned of as well.
    """
    misspelled_names = misspelled(view, changes, view.schema(workspace.schema))
    return [*_broken(workspace, branch, view, changes, seq), *misspelled_names]


def _broken(workspace: Workspace, branch: str, view: View, changes: Changes, seq: int) -> list[str]:
    sides = Sides(view, changes, seq, view.schema(workspace.schema), cache(lambda: tree_of(workspace, branch)))
    after = look_at(workspace, sides.after(), LOOKING, view.renamed)
    broken = {one.rule for one in after.violations}
    stopped = [f"The rule {run.id} could not run: {run.reason}" for run in after.rules if run.status == "not_run"]
    if not broken:
        return stopped
    before = look_at(workspace, sides.before(), broken, view.renamed)
    numbers = numbers_in([*before.violations, *after.violations])
    names = {node.id for node in view.nodes(sorted(numbers))} if numbers else set[str]()
    present = {earlier: now for now, earlier in renamed_in(changes.nodes).items()}
    found = introduced(before, after, names, present).report.violations
    # Whoever has just created an entity could not link it to anything before.
    created = {one.key for one in changes.nodes if one.before is None}
    warned = [one for one in found if one.rule != orphans.RULE.id or one.id not in created]
    return [*by_rule(warned), *stopped]


def _not_run(reason: str) -> str:
    return f"The rules were not run on what this touches: {reason}"


def by_rule(violations: list[Violation]) -> Iterator[str]:
    """Yield a sentence for each rule that is broken: its first violation, and how many more there are."""
    found: dict[str, list[Violation]] = {}
    for violation in violations:
        found.setdefault(violation.rule, []).append(violation)
    for rule, broken in found.items():
        first = broken[0]
        more = f" ({len(broken) - 1} more; `kb check --rule {rule}` lists them.)" if len(broken) > 1 else ""
        yield f"{rule} ({first.severity}): {first.sentence}{more}"
