"""What a changeset introduces, as warnings of its answer: the rules over what it changed, before it and after it.

The rules look up what may have been broken, without the lock, also where the changeset is only tried. Nothing that they
find, and nothing that stops them, changes what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

import msgspec

from kbcore import rehearsal, writes
from kbcore.answers import Outcome
from kbcore.branchtree import tree_of
from kbcore.changeset import Changeset
from kbcore.checks import look_at
from kbcore.errors import KBError, NotFound, Rejected
from kbcore.introduced.compare import introduced
from kbcore.introduced.identity import numbers_in
from kbcore.introduced.sides import Sides
from kbcore.locate import check_unrecorded, with_places
from kbcore.rules import RULES, Violation
from kbcore.state import Changes, Draft
from kbcore.store import Author, Request
from kbcore.view.view import View
from kbcore.workspace import Workspace
from kbcore.writes import Reading

LOOKING: Final = frozenset(rule.id for rule in RULES if rule.look is not None)
"""All but those that planning holds or warns of by itself, and one of files."""
_MOST_ITEMS: Final = 500
"""A changeset of more items, or that changes more elements, is left to a check."""


def carry_out(
    workspace: Workspace,
    branch: str,
    author: Author,
    changeset: Changeset,
    *,
    follows_head: bool,
    read: Reading | None = None,
) -> Outcome:
    """Do as ``writes.carry_out``, and warn of what then breaks KB's own rules and did not before.

    A refusal names the file, and its line, that states what it is about; with ``read`` also what files state that no
    record has.

    Raises: what ``writes.carry_out`` raises; ``NotSynced``. What stops the rules is a warning.
    """
    drafts: list[Draft] = []
    if read is not None and not changeset.problems:
        check_unrecorded(read, changeset)
    try:
        outcome = writes.carry_out(
            workspace, branch, author, changeset, follows_head=follows_head, read=read, note=drafts.append
        )
    except (Rejected, NotFound) as refused:
        placed = with_places(workspace, changeset, refused, branch=branch, read=read)
        if placed is refused:
            raise
        raise placed from refused
    if outcome.duplicate or not (drafts and drafts[-1].changes):
        return outcome
    warnings = warnings_of(workspace, branch, author, drafts[-1], is_tried=changeset.dry_run)
    return msgspec.structs.replace(outcome, warnings=(*outcome.warnings, *warnings)) if warnings else outcome


def warnings_of(workspace: Workspace, branch: str, author: Author, draft: Draft, *, is_tried: bool) -> list[str]:
    """Return a sentence for each rule that a draft newly breaks: the last record of a branch, or one that is tried.

    What stops the rules is such a sentence too.
    """
    changes = draft.changes
    number = max(len(draft.ops), len(changes.nodes) + len(changes.links))
    if number > _MOST_ITEMS:
        return [_not_run(f"it has {number} items, more than {_MOST_ITEMS}. `kb check` runs them.")]

    def on(view: View) -> list[str]:
        return _found(workspace, branch, view, changes)

    try:
        return (
            _tried(workspace, branch, author, draft) if is_tried else workspace.store(branch).read(on, publishes=False)
        )
    except KBError as error:
        return [_not_run(error.message)]


def _tried(workspace: Workspace, branch: str, author: Author, draft: Draft) -> list[str]:
    """Return the warnings of a plan that a view of its own takes in."""

    def on(view: View) -> list[str]:
        rehearsal.take(view, author, Request(), lambda _view, _stamp: draft, workspace.machine.clock.now())
        return _found(workspace, branch, view, draft.changes)

    own = rehearsal.unshared_view(workspace, branch)
    try:
        return own.ask(workspace.store(branch).head(), on)
    finally:
        own.close()


def _found(workspace: Workspace, branch: str, view: View, changes: Changes) -> list[str]:
    """Return a sentence for each rule that the last record of a view newly breaks, or that could not run."""
    sides = Sides(view, changes, view.seq, view.schema(workspace.schema), cache(lambda: tree_of(workspace, branch)))
    after = look_at(workspace, sides.after(), LOOKING, view.renamed)
    broken = {one.rule for one in after.violations}
    stopped = [f"The rule {run.id} could not run: {run.reason}" for run in after.rules if run.status == "not_run"]
    if not broken:
        return stopped
    before = look_at(workspace, sides.before(), broken, view.renamed)
    numbers = numbers_in([*before.violations, *after.violations])
    names = {node.id for node in view.nodes(sorted(numbers))} if numbers else set[str]()
    return [*by_rule(introduced(before, after, names).report.violations), *stopped]


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
