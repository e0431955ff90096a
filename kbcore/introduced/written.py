"""What a changeset introduces, as warnings of its answer: the rules over what it touches, before it and after it.

The rules are run on the records, without the lock, also where the changeset is only tried. Nothing that they find, and
nothing that stops them, changes what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from kbcore import rehearsal, writes
from kbcore.answers import Outcome
from kbcore.changeset import Changeset
from kbcore.checks import run_checks
from kbcore.errors import KBError
from kbcore.introduced.compare import introduced
from kbcore.rules import RULES, Report, Violation
from kbcore.store import Author, Request
from kbcore.view.view import View
from kbcore.workspace import Workspace

_LEFT_OUT: Final = frozenset(
    {"required-fields", "endpoint-types", "unknown-type", "unknown-status", "secret", "unreadable-source"}
)
"""Rules that planning holds or warns of by itself, and one of files."""
_MOST_IDS: Final = 500
"""A changeset that touches more is left to a check of its own."""


def carry_out(
    workspace: Workspace,
    branch: str,
    author: Author,
    changeset: Changeset,
    *,
    follows_head: bool,
    read: writes.Reading | None = None,
) -> Outcome:
    """Do as ``writes.carry_out``, and warn of what then breaks KB's own rules and did not before.

    Raises: what ``writes.carry_out`` raises. What stops the rules is a warning.
    """
    if changeset.problems:
        return writes.carry_out(workspace, branch, author, changeset, follows_head=follows_head, read=read)
    check = _Check(workspace, branch, changeset)
    is_tried = changeset.dry_run
    before = None if is_tried else check.recorded()
    outcome = writes.carry_out(workspace, branch, author, changeset, follows_head=follows_head, read=read)
    edges = outcome.edges
    if not (outcome.created or outcome.updated or outcome.deleted or edges.created or edges.updated or edges.deleted):
        return outcome
    warnings = check.tried(author) if is_tried else check.compared(before, check.recorded())
    return msgspec.structs.replace(outcome, warnings=(*outcome.warnings, *warnings))


class _Check:
    """The rules over what a changeset touches. What stopped them is kept as text in the place of a report."""

    def __init__(self, workspace: Workspace, branch: str, changeset: Changeset) -> None:
        self.workspace = workspace
        self.branch = branch
        self.changeset = changeset
        self.ids: Sequence[str] = ()

    def recorded(self) -> Report | str:
        """Return what the rules find at the head. Of a large changeset nothing is read: that would delay its answer."""
        if self.changeset.size > _MOST_IDS:
            return _too_many(self.changeset.size)
        try:
            return self.workspace.store(self.branch).read(self.found)
        except KBError as error:
            return error.message

    def tried(self, author: Author) -> list[str]:
        """Return the warnings of a changeset that a view of its own takes in."""

        def on(view: View) -> list[str]:
            before = self.found(view)
            plan = writes.planner(self.changeset, self.workspace, warns_of_overwriting=False)
            rehearsal.take(view, author, Request(), plan, self.workspace.machine.clock.now())
            return self.compared(before, self.found(view))

        if self.changeset.size > _MOST_IDS:
            return self.compared(None, _too_many(self.changeset.size))
        try:
            head = self.workspace.store(self.branch).head()
            own = rehearsal.unshared_view(self.workspace, self.branch)
            try:
                return own.ask(head, on)
            finally:
                own.close()
        except KBError as error:
            return self.compared(error.message, error.message)

    def found(self, view: View) -> Report | str:
        """Return what the rules find of what is touched; the first time, what that is."""
        self.ids = self.ids or _touched(view, self.changeset)
        if len(self.ids) > _MOST_IDS:
            return _too_many(len(self.ids))
        known = [node.id for node in view.nodes(self.ids)]
        levels = self.workspace.config.rules
        only = [rule.id for rule in RULES if rule.id not in _LEFT_OUT and levels.get(rule.id) != "off"]
        if not known or not only:
            return Report(ok=True, violations=[], rules=[])
        return run_checks(self.workspace, view, branch=self.branch, only=only, ids=known, is_own=True)

    def compared(self, before: Report | str | None, after: Report | str) -> list[str]:
        """Return the warnings: a sentence for each rule that is broken, or that could not run."""
        if isinstance(after, str) or not isinstance(before, Report):
            reason = after if isinstance(after, str) else before
            return [f"The rules were not run on what this touches: {reason}"]
        found = introduced(before, after).report
        stopped = [f"The rule {run.id} could not run: {run.reason}" for run in found.rules if run.status == "not_run"]
        return [*_by_rule(found.violations), *stopped]


def _too_many(number: int) -> str:
    return f"it has {number} items, more than {_MOST_IDS}. `kb check` runs them."


def _touched(view: View, changeset: Changeset) -> list[str]:
    """Return what the changeset names, the ends of its edges, and those of the edges of what it removes."""
    removed = sorted(item.id for item in changeset.entity_deletes)
    ids = {item.id for item in changeset.entities}
    ids |= {end for edge in changeset.edges for end in (edge.from_id, edge.to_id)}
    ids |= {end for edge in changeset.edge_deletes for end in (edge.from_id, edge.to_id)}
    ids |= {end for link in view.touching(removed) for end in (link.from_id, link.to_id)}
    return sorted(ids)


def _by_rule(violations: list[Violation]) -> Iterator[str]:
    """Yield a sentence for each rule that is broken: its first violation, and how many more there are."""
    found: dict[str, list[Violation]] = {}
    for violation in violations:
        found.setdefault(violation.rule, []).append(violation)
    for rule, broken in found.items():
        first = broken[0]
        what = first.message if first.id in first.message else f"{first.id}: {first.message}"
        more = f" ({len(broken) - 1} more; `kb check --rule {rule}` lists them.)" if len(broken) > 1 else ""
        yield f"{rule} ({first.severity}): {what}{more}"
