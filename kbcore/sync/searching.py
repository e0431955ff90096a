"""Text search as requests use it: the index of a branch, and its documents, from this worktree or from git."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kbcore.errors import ViewDamaged
from kbcore.model.graph import Node
from kbcore.query import Page, Query, page_of
from kbcore.store.branch_store import BranchStore
from kbcore.store.workspace import Workspace
from kbcore.sync.bodies import committed_bodies, read_bodies
from kbcore.view.text_documents import hashes as hashes_of
from kbcore.view.view import View

if TYPE_CHECKING:  # what reads text, and its database, is imported where a text is asked for
    from kbcore.query.text.parse_query import Index
    from kbcore.view.text_search import BranchTexts

_FIRST_DOCUMENTS: Final = 8
"""The number of documents read at first, then twice as many, and so on."""


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
    workspace: Workspace, branch: str, view: View, entities: Sequence[Node], at: int | None, *, room: int | None = None
) -> dict[str, str | None]:
    """Return the text of the documents that state one entity each, by its id, as of a seq (None: the head).

    It is None for a document that neither the worktree nor the last commit of the branch holds as it was then.

    With ``room`` the document of a single entity is whole; of several, each is cut after so many characters, and no
    more are read once those of the first entities have so many together: at most twice as many, and a few.
    """
    hashes = hashes_of(view, sorted({node.path for node in entities if node.path}), at)
    stated = [node for node in entities if node.path in hashes]
    most = None if len(entities) == 1 else room
    found: dict[str, str | None] = {}
    taken, begin, count = 0, 0, _FIRST_DOCUMENTS
    while begin < len(stated) and (room is None or taken < room):
        some = stated[begin : begin + count]
        begin, count = begin + count, count * 2
        wanted = sorted({(node.path, hashes[node.path]) for node in some})
        texts = {digest: text[:most] for digest, text in _at_hand(workspace, branch, wanted)}
        found |= {node.id: texts.get(hashes[node.path]) for node in some}
        taken += sum(len(texts.get(hashes[node.path], "")) for node in some)
    return found


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
        store.texts.discard()
        return page_of(view, query, branch, texts)
