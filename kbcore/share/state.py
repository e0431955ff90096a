"""The state of sharing on a branch: what is not shared, was taken back or is contested. In numbers, for every answer.

A branch on which nothing was ever shared or merged costs two looks at the file system and two queries of its view, and
gets no index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from kbcore.errors.remedies import by_front_end, kb
from kbcore.extract.changes import FOLDER
from kbcore.git import revisions
from kbcore.model.claims.change import Change, Claim, Create, EntityRef, fields_redacted
from kbcore.model.claims.subjects import entities_in
from kbcore.model.redaction.changes import without
from kbcore.secrets import masked
from kbcore.share.faults import FAULTS
from kbcore.share.unshared import find_unshared, find_withdrawn
from kbcore.share.worktree_changes import changes_in, content_of, new_files
from kbcore.store.workspace import Workspace
from kbcore.sync.shared_changes import WholeCopy
from kbcore.text.wording import is_or_are, it_or_them, pluralize, some_of
from kbcore.view.claim_index import ClaimIndex
from kbcore.view.view import View

_ACTORS: Final = 5
_SHOWN: Final = 20
_SETTLES: Final = by_front_end("lists and settles", "lists")
_CONTESTED: Final = """select coalesce(sum(len(json_keys(contested))), 0) from (
select contested from node where contested <> '{}' union all select contested from link where contested <> '{}')"""


class RedactedByOthers(msgspec.Struct, frozen=True):
    """A change of ``actor`` that records have whole and another clone redacted: which fields, of which entities.

    ``by`` is the author of the commit that brought the redacted file, as git has it; "" where that is not known.
    """

    change: str
    actor: str
    ids: tuple[str, ...]
    fields: tuple[str, ...]
    by: str = ""


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
    written: int = 0
    """The number of those to be shared that files of the worktree hold which no commit has."""
    whole: int = 0
    """The number of changes that files have whole although they are redacted in this clone."""
    redacted: int = 0
    """The number of changes that others redacted, and that earlier records of this clone have whole."""
    redactions: tuple[RedactedByOthers, ...] = ()
    """The first of these."""

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found | {"unshared": sum(self.unshared.values()), "actors": self.unshared}

    def sentences(self, *, with_actors: bool = True) -> list[str]:
        """Return what a reader can do something about, as texts with commands (``kbcore.errors.remedies``).

        With sharing off nothing is to be shared, and nothing is said of that.
        """
        said = []
        is_on = self.mode != "off"
        if self.unshared and is_on:
            by = [f"{number} of {actor}" for actor, number in sorted(self.unshared.items())] if with_actors else []
            named = f" ({some_of(by, _ACTORS)})" if by else ""
            number = sum(self.unshared.values())
            said.append(f"{_are(number, 'change')} not shared{named}: {how_shared(number, self.written, kb('share'))}.")
        if self.refused and is_on:
            listed = f"{kb('share', '--list')} says why"
            them = it_or_them(self.refused)
            said.append(f"{_are(self.refused, 'change')} not shared, because no file may hold {them}: {listed}.")
        if self.whole:
            said.append(
                f"{_are(self.whole, 'change')} whole in a file, although redacted in this clone: {kb('doctor')} says"
                " how to take the values out."
            )
        if self.redacted:
            by = sorted({one.by for one in self.redactions} - {""})
            ids = dict.fromkeys(key for one in self.redactions for key in one.ids)
            of = f" of {some_of([*ids], _ACTORS)}" if ids else ""
            were = "was" if self.redacted == 1 else "were"
            said.append(
                f"{pluralize(self.redacted, 'change')}{of} {were} redacted by {some_of(by, _ACTORS) or 'others'}, and"
                " records of this clone have the values: a secret among them is to be revoked and replaced."
                f" {kb('doctor')} says how to take the values out."
            )
        if self.contested:
            said.append(
                f"{_are(self.contested, 'field')} contested: {kb('resolve')} {_SETTLES} {it_or_them(self.contested)}."
            )
        return said


def how_shared(number: int, written: int, command: str) -> str:
    """Return how a command and a commit share so many changes, of which files hold some already (``written``)."""
    them = it_or_them(number)
    if not written:
        return f"{command} writes {them}"
    if written < number:
        return f"{command} writes {number - written} and stages the files of {written}, and a commit shares {them}"
    files, these = ("file that holds it", "that file") if number == 1 else ("files that hold them", "these files")
    # They may be staged already: the commit is named first.
    return f"`git commit` of the {files} shares {them}; {command} stages {these}"


def has_changes_folder(workspace: Workspace) -> bool:
    """Tell whether the worktree has the folder of change files, which may be empty."""
    return workspace.repo.has_worktree and (workspace.repo.worktree / FOLDER).is_dir()


def is_shared(workspace: Workspace) -> bool:
    """Tell whether changes are shared in files, or files in the worktree may have some."""
    return workspace.config.share.mode != "off" or has_changes_folder(workspace)


def find_state(workspace: Workspace, branch: str, view: View) -> SharingState | None:
    """Return the state of a branch at the head; None where nothing is shared, merged or contested.

    Raises: as ``find_unshared``.
    """
    contested = int(view.rows(_CONTESTED)[0][0])
    if not (contested or is_shared(workspace) or view.past.has_shared_changes()):
        return None
    number, redactions = _redacted(workspace, branch)
    if not is_shared(workspace):
        state = SharingState(workspace.config.share.mode, {}, 0, 0, 0, contested)
        return msgspec.structs.replace(state, redacted=number, redactions=redactions)
    new = new_files(workspace, branch)
    found = find_unshared(workspace, branch, new=new)
    unshared = Counter(one.change.actor for one in found if not one.withheld)
    refused = sum(one.withheld in FAULTS for one in found)
    return SharingState(
        mode=workspace.config.share.mode,
        unshared=dict(unshared),
        refused=refused,
        private=len(found) - unshared.total() - refused,
        withdrawn=len(find_withdrawn(workspace, branch, new)),
        contested=contested,
        written=sum(bool(one.file) for one in found if not one.withheld),
        whole=len(find_whole_copies(workspace, branch)) if workspace.repo.has_worktree else 0,
        redacted=number,
        redactions=redactions,
    )


def _redacted(workspace: Workspace, branch: str) -> tuple[int, tuple[RedactedByOthers, ...]]:
    """Return how many changes others redacted that records have whole, and the first of them."""

    def find(index: ClaimIndex, seq: int) -> tuple[list[tuple[Change, tuple[str, ...]]], dict[str, set[str]]]:
        found = index.redacted_since()
        return found, index.files_of([change.id for change, _ in found[:_SHOWN]], seq) if found else {}

    found, files = workspace.changes(branch).read(find)
    paths = {path for held in files.values() for path in held}
    by = revisions.authors_of_addition(workspace.repo, workspace.machine.env, sorted(paths))
    return len(found), tuple(
        RedactedByOthers(
            change.id,
            masked(change.actor),
            tuple(dict.fromkeys(one.id for claim in change.claims if claim.is_redacted for one in _entities(claim))),
            fields,
            next((masked(by[path]) for path in sorted(files.get(change.id, ())) if by.get(path)), ""),
        )
        for change, fields in found[:_SHOWN]
    )


def _entities(claim: Claim) -> Sequence[EntityRef]:
    return () if isinstance(claim, Create) else entities_in(claim.on)


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


def _are(number: int, what: str) -> str:
    return f"{pluralize(number, what)} {is_or_are(number)}"
