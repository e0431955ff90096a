"""Separate creations of one id: two branches that made one id for two things get two entities of it.

The separation is a change of its own, which names the one creation that gets another id, so it holds in every clone.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

import msgspec

from kbcore import ids
from kbcore.errors import IntegrityViolation, InvalidQuery, NotFound
from kbcore.errors.remedies import kb
from kbcore.model.claims.change import CREATED_BY, DOCUMENT, Change, Rename, creation_words, identified, salt_of
from kbcore.model.claims.edits import rename
from kbcore.model.claims.subjects import Subjects
from kbcore.model.state import Stamp
from kbcore.share.merging import take_over
from kbcore.store.answers import Outcome
from kbcore.store.planning.plan_builder import check_stale
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author, Request
from kbcore.text.escaping import in_quotes
from kbcore.view.claim_index import ClaimIndex, WrittenAt
from kbcore.view.view import View

_SEVERAL: Final = 2


class Separation(NamedTuple):
    """The creation of an id that gets another one. ``creation`` begins the id of the change that made it."""

    key: str
    creation: str
    new: str

    @property
    def message(self) -> str:
        """Return what is said of it where its author says nothing."""
        return f"separate {self.new} from {self.key}"


def separation_of(view: View, old: str, new: str) -> Separation | None:
    """Return the separation that a rename of ``old`` means: ``ID@CHANGE``, unless an entity has this id; else None."""
    key, mark, creation = old.rpartition(CREATED_BY)
    return Separation(key, creation, new) if mark and key and not view.nodes([old]) else None


def separate(
    workspace: Workspace,
    branch: str,
    what: Separation,
    author: Author,
    *,
    message: str = "",
    dry_run: bool = False,
    changeset_id: str = "",
    expected_seq: int | None = None,
) -> Outcome:
    """Give one creation of an id another id, as one record. ``changeset_id`` makes a retry do nothing.

    Raises: ``StaleBase`` for an id that changed after ``expected_seq``, ``InvalidChangeset`` for one that is not there
    yet; ``NotFound`` for an id without several creations, or a creation that it does not have; ``InvalidQuery`` for
    an id that cannot be one; ``IntegrityViolation`` for an id in use; as ``BranchStore.commit``.
    """
    reason = ids.check_id(what.new)
    if reason is not None:
        raise InvalidQuery(f"{in_quotes(what.new)} is no id: {reason}.")
    store, message = workspace.store(branch), message or what.message

    def find(view: View, stamp: Stamp) -> list[Change]:
        for node in view.nodes([what.key]):
            check_stale(node, expected_seq, head=stamp.seq - 1)
        claim = _claim(view, store.claims(), what)
        salt = salt_of(view.basis.sum, what.message)
        change = Change("", stamp.at, author.actor, author.tool, (claim,), message, salt, session=author.session)
        return [identified(change)]

    seen = [] if expected_seq is None else [expected_seq]
    digest = hashlib.sha256(msgspec.json.encode([*what, message, *seen])).hexdigest()
    commit = workspace.head_commit(branch)
    return take_over(
        workspace,
        branch,
        author,
        find,
        origins_of=lambda found: {one.id: WrittenAt(commit()) for one in found},
        request=Request(changeset_id, digest, message, dry_run),
    ).outcome


def _claim(view: View, index: ClaimIndex, what: Separation) -> Rename:
    """Return the claim that one creation has another id, after all that is claimed of the id of the entity."""
    key, new = what.key, what.new
    state = index.folded(Subjects(frozenset({key})), view.recorded_seq)
    of = [one for one in state.entities[key].of if one != DOCUMENT] if key in state.entities else []
    is_stated = any(node.owners for node in view.nodes([key]))
    if len(of) + is_stated < _SEVERAL or not of:
        raise NotFound(
            f"{in_quotes(key)} was not created more than once.", hint=f"{kb('rename', key, new)} renames it."
        )
    chosen = [one for one in of if what.creation and one.startswith(what.creation)]
    if len(chosen) != 1:
        made = index.bodies(one.partition(":")[0] for one in of).values()
        shown = [f"{creation_words(one.id, key)} by {one.actor}, {one.at[:10]}" for one in made]
        message = f"{in_quotes(f'{key}{CREATED_BY}{what.creation}')} names no single creation."
        raise NotFound(message, hint=f"There are {'; '.join(sorted(shown))}.")
    if view.nodes([new]) or view.renamed([new]):
        raise IntegrityViolation(f"{in_quotes(new)} is in use.", hint="Choose another one.")
    return rename(state, key, new, creations=chosen)
