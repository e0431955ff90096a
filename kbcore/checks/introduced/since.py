"""Violations since a point of a branch's history: ``kb check --since``."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kbcore import gc_pause
from kbcore.checks import creation_lookup, idle_in, judge
from kbcore.checks.branch_files import tree_of
from kbcore.checks.introduced.compare import Introduced, introduced, of_entities
from kbcore.checks.introduced.point import Point, point_of
from kbcore.git import blobs
from kbcore.git.tracked_paths import kept_of
from kbcore.model.state import Changes
from kbcore.rules import CheckReport, suspect_edge
from kbcore.store.history.compare import entities_changed_by
from kbcore.store.history.log import EVERYTHING, RecordFilter
from kbcore.store.history.when import When
from kbcore.store.workspace import Workspace
from kbcore.sync.documents import RepositoryDocuments
from kbcore.view.scratch_copy import scratch_copy
from kbcore.view.view import View


class Since(msgspec.Struct, frozen=True):
    """New violations, and the point of comparison."""

    point: Point
    found: Introduced


def check_since(
    workspace: Workspace,
    view: View,
    branch: str,
    text: str,
    *,
    only: Sequence[str] = (),
    changed_by: RecordFilter = EVERYTHING,
    is_local: bool = False,
) -> Since:
    """Run the rules over a branch as it is and as it was, and return the violations that only exist now.

    ``text`` is the point, as ``point_of`` takes it; ``only`` names the rules to run.
    With a selection in ``changed_by``, only violations of what these records changed since the point are returned; none
    where there are no such records.
    ``is_local`` is as in ``point_of``.

    Raises: as ``judge`` and ``point_of``; ``StorageError`` when there is no room to look at the past.
    """
    point = point_of(workspace, view, branch, text, is_local=is_local)
    made = creation_lookup(workspace, branch)
    now = judge(workspace, view, tree_of(workspace, branch), only=only, idle=idle_in(view), creations=made)
    files = tree_of(workspace, branch)  # of how they were at a seq nothing is known
    back = Changes()
    with gc_pause.paused(), scratch_copy(view, point.seq) as before:
        if point.commit is not None:
            repo, env = workspace.repo, workspace.machine.env
            tree = blobs.tree_of(repo, env, point.commit)
            back = RepositoryDocuments(workspace, workspace.store(branch).claims).sync_tree(before, tree)
            files = kept_of(repo, env, tree)
        was = judge(workspace, before, files, only=only)
        if point.is_older:
            # The store began after the commit: what it holds came on top of the commit, not before it.
            was = _at_first(was)
            with scratch_copy(view, view.seq, base_state=(point.seq, back)) as after:
                there = tree_of(workspace, branch)
                now = judge(workspace, after, there, only=only, idle=idle_in(after), creations=made)
        found = introduced(was, now, view.renamed)
    if changed_by == EVERYTHING:
        return Since(point, found)
    seqs = msgspec.structs.replace(changed_by, since=When("", seq=point.seq)).seqs(view)
    return Since(point, of_entities(found, entities_changed_by(view, seqs, changed_by.writer)))


def _at_first(report: CheckReport) -> CheckReport:
    """Return a report over a state before which nothing is known, so that no edge of it is suspect."""
    kept = [one for one in report.violations if one.rule != suspect_edge.RULE.id]
    return msgspec.structs.replace(report, violations=kept)
