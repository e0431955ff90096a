"""The state of sharing on a branch: what is not shared, was taken back or is contested. In numbers, for every answer.

A branch on which nothing was ever shared or merged costs two looks at the file system, and gets no index.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import msgspec

from kbcore.extract.changes import FOLDER
from kbcore.model.claims.change import fields_redacted
from kbcore.model.redaction.changes import without
from kbcore.remedies import by_front_end, kb
from kbcore.share.faults import FAULTS
from kbcore.share.unshared import find_unshared, find_withdrawn
from kbcore.share.worktree_changes import changes_in, content_of
from kbcore.store.workspace import Workspace
from kbcore.sync.shared_changes import WholeCopy
from kbcore.text.wording import pluralize, some_of
from kbcore.view.view import View

_ACTORS: Final = 5
_SETTLES: Final = by_front_end("lists and settles", "lists")
_CONTESTED: Final = """select coalesce(sum(len(json_keys(contested))), 0) from (
select contested from node where contested <> '{}' union all select contested from link where contested <> '{}')"""


class SharingState(msgspec.Struct, frozen=True):
    """The numbers of changes: not shared and to be, by actor; refused by a fault; private; taken back with their file.

    ``contested`` is the number of fields.
    """

    mode: str
    unshared: dict[str, int]
    refused: int
    private: int
    withdrawn: int
    contested: int
    whole: int = 0
    """The number of changes that files have whole although they are redacted in this clone."""

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found | {"unshared": sum(self.unshared.values()), "actors": self.unshared}

    def sentences(self, *, with_actors: bool = True) -> list[str]:
        """Return what a reader can do something about, as texts with commands (``kbcore.remedies``)."""
        said = []
        if self.unshared:
            by = [f"{number} of {actor}" for actor, number in sorted(self.unshared.items())] if with_actors else []
            named = f" ({some_of(by, _ACTORS)})" if by else ""
            number = sum(self.unshared.values())
            said.append(f"{_are(number, 'change')} not shared{named}: {kb('share')} writes {_them(number)}.")
        if self.refused:
            listed = f"{kb('share', '--list')} says why"
            said.append(
                f"{_are(self.refused, 'change')} not shared, because no file may hold {_them(self.refused)}: {listed}."
            )
        if self.whole:
            said.append(
                f"{_are(self.whole, 'change')} whole in a file, although redacted in this clone: {kb('doctor')} says"
                " how to take the values out."
            )
        if self.contested:
            said.append(f"{_are(self.contested, 'field')} contested: {kb('resolve')} {_SETTLES} them.")
        return said


def has_changes_folder(workspace: Workspace) -> bool:
    """Tell whether the worktree has the folder of change files, which may be empty."""
    return workspace.repo.has_worktree and (workspace.repo.worktree / FOLDER).is_dir()


def is_in_use(workspace: Workspace, branch: str) -> bool:
    """Tell whether changes of a branch are shared in files, or were merged with others."""
    return _is_shared(workspace) or workspace.changes(branch).is_there()


def find_state(workspace: Workspace, branch: str, view: View) -> SharingState | None:
    """Return the state of a branch at the head; None where nothing is shared or merged.

    Raises: as ``find_unshared``.
    """
    if not is_in_use(workspace, branch):
        return None
    contested = int(view.rows(_CONTESTED)[0][0])
    if not _is_shared(workspace):
        return SharingState(workspace.config.share.mode, {}, 0, 0, 0, contested)
    found = find_unshared(workspace, branch)
    unshared = Counter(one.change.actor for one in found if not one.withheld)
    refused = sum(one.withheld in FAULTS for one in found)
    return SharingState(
        mode=workspace.config.share.mode,
        unshared=dict(unshared),
        refused=refused,
        private=len(found) - unshared.total() - refused,
        withdrawn=len(find_withdrawn(workspace, branch)),
        contested=contested,
        whole=len(find_whole_copies(workspace, branch)) if workspace.repo.has_worktree else 0,
    )


def find_whole_copies(workspace: Workspace, branch: str) -> list[WholeCopy]:
    """Return the changes that files of a branch have whole although they are redacted in this clone.

    Raises: what reading the journal raises.
    """
    taken, files = workspace.changes(branch).read(
        lambda index, seq: (index.taken_out, index.files_of(index.taken_out, seq) if index.taken_out else {})
    )
    found = list[WholeCopy]()
    for path in sorted({one for paths in files.values() for one in paths}):
        for one in changes_in(path, content_of(workspace, path)):
            if fields := fields_redacted(one, without(one, taken.get(one.id))):
                found.append(WholeCopy(path, one.id, one.actor, fields))
    return found


def _is_shared(workspace: Workspace) -> bool:
    return workspace.config.share.mode != "off" or has_changes_folder(workspace)


def _them(number: int) -> str:
    return "it" if number == 1 else "them"


def _are(number: int, what: str) -> str:
    return f"{pluralize(number, what)} {'is' if number == 1 else 'are'}"
