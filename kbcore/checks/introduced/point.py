"""The point since which something is new: a seq, a time, or a revision of git.

A revision means the last commit that it shares with the branch. KB then takes the documents from that commit, and
everything else from the record that was the last when the commit was made, or when the two branches diverged.
"""

from __future__ import annotations

import msgspec

from kbcore import ids
from kbcore.errors import InvalidQuery
from kbcore.git import local_branches, revisions
from kbcore.model.record import SYNC
from kbcore.store.history.moment import after, clock_notes
from kbcore.store.history.reach import merge_base
from kbcore.store.history.when import no_such_point, when_of
from kbcore.store.workspace import Workspace
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import nearest
from kbcore.view.history import last_by
from kbcore.view.view import View

_SHOWN = 12


class Point(msgspec.Struct, frozen=True):
    """A seq, the commit whose documents are to be taken instead of those of that time, if any, and both in words.

    ``is_older``: the commit was made before the first record was written, as in a fresh clone. ``notes`` is to be said
    with the answer.
    """

    seq: int
    commit: str | None
    said: str
    is_older: bool = False
    notes: tuple[str, ...] = ()


def point_of(workspace: Workspace, view: View, branch: str, text: str, *, is_local: bool = False) -> Point:
    """Return the point of a branch's history that a text means; ``view`` is that of the branch.

    A time without a zone is one of the machine's own zone with ``is_local``, else of UTC.

    Raises: ``InvalidQuery`` for what is neither seq, time nor revision, or shares nothing with the branch;
    ``HistoryPruned``; ``GitUnusable``.
    """
    word = text.strip()
    when = when_of(word, now=workspace.machine.clock.now(), is_local=is_local)
    if when:
        seq = after(view, when)
        asked = f"{word} (seq {seq})" if when.end else f"seq {seq}"
        return Point(seq, None, f"since {asked}", notes=tuple(clock_notes(view, when)))
    commit = revisions.commit_of(workspace.repo, workspace.machine.env, word) if word else None
    diverged = _diverged_at(workspace, view, branch, word)
    if commit is None:
        if diverged is None:
            raise no_such_point(text, nearest(text, local_branches(workspace.repo, workspace.machine.env)))
        return Point(diverged, None, f"since {word} (seq {diverged})")
    shared = _shared(workspace, branch, word, commit)
    said = f"since {word} (commit {shared[:_SHOWN]})"
    seq, is_older = (diverged, False) if diverged is not None else _by_then(workspace, view, shared)
    return Point(seq, shared, said, is_older)


def seq_of(workspace: Workspace, view: View, branch: str, word: str, shared: str) -> int:
    """Return the last record of a branch that is as old as the commit which it shares with a revision.

    Raises: ``GitUnusable``.
    """
    diverged = _diverged_at(workspace, view, branch, word)
    return _by_then(workspace, view, shared)[0] if diverged is None else diverged


def _diverged_at(workspace: Workspace, view: View, branch: str, word: str) -> int | None:
    """Return the last seq that a branch shares with another one of this name; None without such a store."""
    if word == branch or ids.check_branch_name(word) is not None or not workspace.folders.has_store(word):
        return None
    return workspace.store(word).read(lambda other: merge_base(view, other))


def _shared(workspace: Workspace, branch: str, word: str, commit: str) -> str:
    """Return the last commit that the branch shares with a commit."""
    repo, env = workspace.repo, workspace.machine.env
    head = workspace.head()
    tip = head.commit if head.branch == branch else revisions.tip_of(repo, env, branch)
    if tip is None:
        raise InvalidQuery(f"{branch} has no commit that could be compared with {in_quotes(word)}.", hint="Give a seq.")
    shared = revisions.shared_commit(repo, env, tip, commit)
    if shared is None:
        raise InvalidQuery(
            f"{branch} and {in_quotes(word)} share no commit in this clone.",
            hint="A shallow clone has the last commits alone: `git fetch --unshallow`, or `fetch-depth: 0` in CI.",
        )
    return shared


def _by_then(workspace: Workspace, view: View, commit: str) -> tuple[int, bool]:
    """Return the last record that was written when a commit was made, and whether the commit is older than all.

    A store that is younger than the commit, as in CI, has only its documents to compare: then it is the last record
    before a person or an agent wrote anything.
    """
    time = revisions.commit_time(workspace.repo, workspace.machine.env, commit)
    last = last_by(view, time)
    if last is not None or view.basis.history_from:
        return last or 0, False
    [(first,)] = view.rows("select min(seq) from record where source <> ?", [SYNC])
    return (view.recorded_seq if first is None else int(first) - 1), True
