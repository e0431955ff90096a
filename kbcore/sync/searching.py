"""Text search as requests use it: the index of a branch, and its documents, from this worktree or from git.

Every file is read as a sync reads it, with the same checks: nothing outside of the repository, nothing too large.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kbcore import limits
from kbcore.errors import GitUnusable, ViewDamaged
from kbcore.git import blobs, revisions, worktree_content
from kbcore.git.repository import Repository
from kbcore.model.graph import Node
from kbcore.query import Page, Query, page_of
from kbcore.store.branch_store import BranchStore
from kbcore.store.workspace import Workspace
from kbcore.text.decoding import decode
from kbcore.view.text_documents import documents_of
from kbcore.view.view import View

if TYPE_CHECKING:  # what reads text, and its database, is imported where a text is asked for
    from kbcore.query.text.page import MeaningSource
    from kbcore.query.text.parse_query import Index
    from kbcore.view.text_index_cache import BranchTexts

_MANY_VECTORS: Final = 1000
"""The time that making so many vectors takes is worth a remark."""
_FIRST_DOCUMENTS: Final = 8
"""The number of documents read at first, then twice as many, and so on."""


class _Texts:
    """The index of one branch's view, with its documents."""

    def __init__(
        self, workspace: Workspace, branch: str, texts: BranchTexts, view: View, *, is_of_words: bool = False
    ) -> None:
        self.hint = ""
        self.remark = ""
        self._mode = workspace.config.search_meaning
        self._takes_meaning = self._mode != "off" and not is_of_words
        self._workspace = workspace
        self._branch = branch
        self._texts = texts
        self._view = view

    def index(self, at: int | None) -> Index:
        return self._texts.index(self._view, at, self._read)

    def meanings(self, at: int | None) -> MeaningSource | None:
        if not self._takes_meaning:
            return None
        from kbcore.text import embedding  # noqa: PLC0415 - most searches need no model

        if not embedding.name_of_model():
            if self._mode == "on":
                self.hint = f"The meaning of texts is not searched: {embedding.MISSING} {embedding.HOW_TO_INSTALL}"
            return None
        clock = self._workspace.machine.clock
        begun_s = clock.monotonic_s()
        try:
            found = self._texts.meanings(self._view, at, self._read)
        except embedding.ModelUnusable as error:
            self.hint = f"The meaning of texts is not searched: {error}. {embedding.HOW_TO_INSTALL}"
            return None
        if found is None:
            self.hint = (
                f"The meaning of texts is searched among up to {limits.MAX_MEANINGS:,} entities; there are more."
            )
        elif found.made >= _MANY_VECTORS:
            took_s = clock.monotonic_s() - begun_s
            self.remark = f"The meaning of {found.made:,} texts was computed in {took_s:.1f} s, and is kept for later."
        return found

    def bodies(self, entities: Sequence[Node], at: int | None) -> Mapping[str, str]:
        return self._texts.bodies(self._view, entities, at, self._read)

    def _read(self, wanted: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        return _available(self._workspace, self._branch, wanted)


def _available(workspace: Workspace, branch: str, wanted: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the documents that this worktree has, then those that the branch has committed, each with its hash."""
    repo = workspace.repo
    found = set()
    for digest, text in _worktree_bodies(repo.worktree, wanted) if repo.has_worktree else ():
        found.add(digest)
        yield digest, text
    gone = [one for one in wanted if one[1] not in found]
    yield from _committed_bodies(repo, workspace.machine.env, branch, gone)


def documents(
    workspace: Workspace, branch: str, view: View, entities: Sequence[Node], at: int | None, *, room: int | None = None
) -> dict[str, str | None]:
    """Return the text of the documents that state one entity each, by its id, as of a seq (None: the head).

    It is None for a document that neither the worktree nor the last commit of the branch holds as it was then.

    With ``room`` the document of a single entity is whole; of several, each is cut after so many characters, and no
    more are read once those of the first entities have so many together: at most twice as many, and a few.
    """
    known = documents_of(view, entities, at)
    stated = [node.id for node in entities if node.id in known]
    most = None if len(entities) == 1 else room
    found: dict[str, str | None] = {}
    taken, begin, count = 0, 0, _FIRST_DOCUMENTS
    while begin < len(stated) and (room is None or taken < room):
        some = stated[begin : begin + count]
        begin, count = begin + count, count * 2
        wanted = sorted({known[key] for key in some})
        texts = {digest: text[:most] for digest, text in _available(workspace, branch, wanted)}
        found |= {key: texts.get(known[key][1]) for key in some}
        taken += sum(len(texts.get(known[key][1], "")) for key in some)
    return found


def search(
    workspace: Workspace, store: BranchStore, branch: str, view: View, query: Query, *, is_of_words: bool = False
) -> Page:
    """Return the page that a checked query asks for, from a view of the branch's store.

    A text is searched in the index that the cache keeps, which is built now if there is none, and in the documents that
    this worktree or the last commit of the branch has. What it means counts as well, if the settings and the installed
    packages say so, but not with ``is_of_words``: then each score is of the words alone.

    Raises: as ``kbcore.query.page_of``; ``ViewDamaged`` when it is the view that is damaged.
    """
    if not query.text:
        return page_of(view, query, branch)
    texts = _Texts(workspace, branch, store.texts, view, is_of_words=is_of_words)
    try:
        return page_of(view, query, branch, texts)
    except ViewDamaged:
        # It is one of the files for text, or else the view itself is damaged and cannot be read again either.
        store.texts.discard()
        return page_of(view, query, branch, texts)


def make_searchable(workspace: Workspace, store: BranchStore, branch: str, view: View) -> None:
    """Make the text index of a branch at the head of a view, where none is kept: to catch one up takes a search little.

    Raises: as ``search``.
    """
    if store.texts.is_kept():
        return
    texts = _Texts(workspace, branch, store.texts, view)
    try:
        texts.index(None)
    except ViewDamaged:
        store.texts.discard()
        texts.index(None)


def _worktree_bodies(root: Path, wanted: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield hash and text of the documents below ``root`` that still have the SHA-256 given with their paths.

    A file that is gone, changed, or must not be read is left out: whoever asks counts what is missing.
    """
    inside: dict[str, bool] = {}
    for path, digest in wanted:
        data = _read(root, path, inside)
        if data is not None and hashlib.sha256(data).hexdigest() == digest:
            yield digest, _body(data)


def _committed_bodies(
    repo: Repository, env: Mapping[str, str], branch: str, wanted: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yield hash and text of the documents that the last commit of a branch holds with the SHA-256 given.

    Nothing is fetched. What git cannot give is left out, as with ``_worktree_bodies``.
    """
    here = {**env, "GIT_NO_LAZY_FETCH": "1"}
    with contextlib.suppress(GitUnusable):  # a search continues with the fields, and counts what is missing
        commit = revisions.tip_of(repo, here, branch) if wanted else None
        tree = blobs.tree_of(repo, here, commit) if commit else {}
        hashes: dict[str, set[str]] = {}
        for path, digest in wanted:
            if path in tree and tree[path].mode not in {blobs.LINK, blobs.SUBMODULE}:
                hashes.setdefault(tree[path].id, set()).add(digest)
        for name, data in blobs.contents(repo, here, hashes):
            if data is not None and (digest := hashlib.sha256(data).hexdigest()) in hashes[name]:
                yield digest, _body(data)


def _read(root: Path, path: str, inside: dict[str, bool]) -> bytes | None:
    """Return the content of a file, None where it cannot or must not be read.

    ``inside`` remembers which folders are in the repository: following the links of every path takes longer than
    reading what is there.
    """
    place = os.path.join(root, path)  # noqa: PTH118 - as a scan names it
    try:
        about, folder = os.lstat(place), os.path.dirname(place)  # noqa: PTH120 - likewise
        is_link = stat.S_ISLNK(about.st_mode)
        if folder not in inside:
            inside[folder] = Path(os.path.realpath(folder)).is_relative_to(root)
        about = os.stat(place) if is_link else about  # noqa: PTH116 - likewise
        worktree_content.check(place, about, root, is_direct=inside[folder] and not is_link)
        return worktree_content.read(place)[0]
    except (OSError, ValueError, worktree_content.Unfit):
        return None


def _body(data: bytes) -> str:
    from kbcore.extract import frontmatter  # noqa: PLC0415 - most queries search no text

    text = decode(data).text
    return frontmatter.split(text).body[: limits.MAX_SEARCHED_CHARS] if text else ""
