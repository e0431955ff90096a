"""Text search as requests use it: the index of a branch, and its documents, from this worktree or from git."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kbcore.errors import ViewDamaged
from kbcore.model import Node
from kbcore.query import Page, Query, page_of
from kbcore.store import BranchStore
from kbcore.sync.bodies import committed_bodies, read_bodies
from kbcore.view.textdocuments import hashes as hashes_of
from kbcore.view.view import View
from kbcore.workspace import Workspace

if TYPE_CHECKING:  # what reads text, and its database, is imported where a text is asked for
    from kbcore.query.text.reading import Index
    from kbcore.texts import BranchTexts


class _Texts:
    """The index of one branch's view, with its documents."""

    def __init__(self, workspace: Workspace, branch: str, texts: BranchTexts, view: View) -> None:
        self._workspace = workspace
        self._branch = branch
        self._texts = texts
        self._view = view

    def index(self, at: int | None) -> Index:
        return self._texts.index(self._view, at, self._read)

    def bodies(self, entities: Sequence[Node], at: int | None) -> Mapping[str, str]:
        return self._texts.bodies(self._view, entities, at, self._read)

    def _read(self, wanted: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        return _at_hand(self._workspace, self._branch, wanted)


def _at_hand(workspace: Workspace, branch: str, wanted: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the documents that this worktree has, then those that the branch has committed, each with its hash."""
    repo = workspace.repo
    found = set()
    for digest, text in read_bodies(repo.worktree, wanted) if repo.has_worktree else ():
        found.add(digest)
        yield digest, text
    gone = [one for one in wanted if one[1] not in found]
    yield from committed_bodies(repo, workspace.machine.env, branch, gone)


def documents(
    workspace: Workspace, branch: str, view: View, entities: Sequence[Node], at: int | None
) -> dict[str, str | None]:
    """Return the text of the documents that state one entity each, by its id, as of a seq (None: the head).

    It is None for a document that neither the worktree nor the last commit of the branch holds as it was then.
    """
    hashes = hashes_of(view, sorted({node.path for node in entities if node.path}), at)
    texts = dict(_at_hand(workspace, branch, sorted(hashes.items())))
    return {node.id: texts.get(hashes[node.path]) for node in entities if node.path in hashes}


def search(workspace: Workspace, store: BranchStore, branch: str, view: View, query: Query) -> Page:
    """Return the page that a checked query asks for, from a view of the branch's store.

    A text is searched in the index that the cache keeps, which is built now if there is none, and in the documents that
    this worktree or the last commit of the branch has.

    Raises: as ``kbcore.query.page_of``; ``ViewDamaged`` when it is the view that is damaged.
    """
    if not query.text:
        return page_of(view, query, branch)
    texts = _Texts(workspace, branch, store.texts, view)
    try:
        return page_of(view, query, branch, texts)
    except ViewDamaged:
        # It is one of the files for text, or else the view itself is damaged and cannot be read again either.
        store.texts.distrust()
        return page_of(view, query, branch, texts)
