"""Ids that are in use elsewhere in this clone: in other branches, their stores, and the worktrees.

Looked at are the commits of all local and remote-tracking branches, the stores of the other branches, and the files of
all worktrees, recorded or not. Each tree is read by the settings that it holds. What change files create or rename
counts too. Nothing is fetched: what cannot be looked at is named with the reason.

What a content states is kept in the cache by its name in git, or by its SHA-256, with the path and the extractor: it
never changes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kbcore import gc_pause, git, limits
from kbcore.errors import KBError
from kbcore.extract.changes import is_change_file
from kbcore.extract.facts import Facts
from kbcore.git import Tree, blobs
from kbcore.model.claims.change import Create, Rename
from kbcore.model.graph import former_ids_of
from kbcore.storage import files
from kbcore.store import branches
from kbcore.store.workspace import Workspace
from kbcore.sync.active_extractors import extractors_of
from kbcore.sync.scan import FoundFile, ScanState, content_of, read_facts, scan
from kbcore.sync.stamps import read_stamps, stamps_file, write_cached
from kbcore.sync.tree_documents import TreeDocuments, TreeSettings, is_setting
from kbcore.sync.wanted_files import ActiveExtractor
from kbcore.text.wording import pluralize
from kbcore.view import numbering

_NAME: Final = "stated-ids.json"
_FORMAT: Final = 1
_MAX_BYTES: Final = 256 * limits.MIB
_WORTH_WRITING: Final = 50
"""The least number of new contents for which the cache is written: fewer are read in no time."""


class SeenId(msgspec.Struct, frozen=True):
    """An id in use, and where: in a ``ref``, ``worktree`` or ``store`` of this name, and in which file."""

    id: str
    kind: str
    name: str
    path: str = ""


class NotSeen(msgspec.Struct, frozen=True):
    """A ref, worktree, store, or file of one, that could not be looked at, and why."""

    kind: str
    name: str
    reason: str


class HighestIds(msgspec.Struct, frozen=True):
    """The id with the highest number of each series that was asked for, as far as there is one."""

    highest: dict[str, SeenId]
    not_seen: tuple[NotSeen, ...]


class _Stated(msgspec.Struct, frozen=True, array_like=True):
    """The ids that a content names; ``is_whole`` is False where it may name more."""

    ids: tuple[str, ...]
    is_whole: bool = True


class _Kept(msgspec.Struct, frozen=True):
    format: int
    stated: dict[str, _Stated]
    """By mark of the extractor, path and name of the content."""
    stores: dict[str, dict[str, str]]
    """By store and head: the highest id of each series that was asked for."""


_decode = msgspec.json.Decoder(_Kept).decode


def ids_elsewhere(workspace: Workspace, branch: str, prefixes: Iterable[str]) -> HighestIds:
    """Return the highest ids of series that are in use elsewhere than in the store of a branch.

    What cannot be looked at stops nothing: it is named in the answer.
    """
    with gc_pause.paused():
        return _Search(workspace, tuple(dict.fromkeys(prefixes))).run(branch)


def in_use_elsewhere(workspace: Workspace, branch: str, prefixes: Iterable[str]) -> list[str]:
    """Return the ids alone of ``ids_elsewhere``."""
    return [seen.id for seen in ids_elsewhere(workspace, branch, prefixes).highest.values()]


class _Search:
    """One search. What is read of the cache and used again is kept in it, with what is new."""

    def __init__(self, workspace: Workspace, prefixes: Sequence[str]) -> None:
        self._workspace = workspace
        self._prefixes = prefixes
        self._path = workspace.folders.cache_dir / _NAME
        self._known = _read(workspace, self._path)
        self._stated: dict[str, _Stated] = {}
        self._stores: dict[str, dict[str, str]] = {}
        self._new = 0
        self._numbers = dict.fromkeys(prefixes, -1)
        self._highest: dict[str, SeenId] = {}
        self._not_seen: list[NotSeen] = []

    def run(self, branch: str) -> HighestIds:
        """Look everywhere, and keep what was read."""
        repo, env = self._workspace.repo, self._workspace.machine.env
        with self._noting("ref"):
            self._look_at_refs(git.tips(repo, env))
        with self._noting("worktree"):
            for one in git.worktree_heads(repo, env):
                with self._noting("worktree", str(one.path)):
                    self._look_at_worktree(one.path)
        with self._noting("store"):
            for name, directory in branches.stores(self._workspace):
                if name != branch and self._workspace.folders.directory_of(name) == directory:
                    with self._noting("store", name):
                        self._look_at_store(name)
        if self._new >= _WORTH_WRITING or self._stores.keys() - self._known.stores.keys():
            kept = _Kept(_FORMAT, self._stated, self._stores)
            write_cached(self._workspace.machine.fs, self._path, msgspec.json.encode(kept))
        return HighestIds(self._highest, tuple(self._not_seen))

    @contextlib.contextmanager
    def _noting(self, kind: str, name: str = "") -> Iterator[None]:
        """Note what stops the block: nothing else is stopped by it."""
        try:
            yield
        except KBError as error:
            self._not_seen.append(NotSeen(kind, name, error.message))

    def _look_at_refs(self, tips: Mapping[str, str]) -> None:
        """Look at the commits of refs: at all of the first one, and at what the others have not in common with it."""
        repo, env = self._workspace.repo, self._workspace.machine.env
        names: dict[str, str] = {}
        for ref, commit in tips.items():
            names.setdefault(commit, ref.removeprefix("refs/heads/").removeprefix("refs/remotes/"))
        if not names:
            return
        first, *others = names
        tree = blobs.tree_of(repo, env, first)
        differing = {first: tree, **dict(blobs.differing_files(repo, env, first, others))}
        links = {path: blob for path, blob in tree.items() if blob.mode == blobs.LINK}
        settings, readers = TreeSettings(self._workspace), dict[str, TreeDocuments]()
        unread: dict[str, list[tuple[str, FoundFile]]] = {}
        for commit, name in names.items():
            with self._noting("ref", name):
                at = differing[commit]
                if commit == first or not any(map(is_setting, at)):
                    # Read as the first one: what both have says the same in both.
                    reader = readers[first] = readers.get(first) or TreeDocuments(settings.of(tree))
                    has_links = bool(links) or any(blob.mode == blobs.LINK for blob in at.values())
                    self._look_at_tree(name, reader, links | at, tree | at if has_links else {}, unread)
                else:
                    own = blobs.tree_of(repo, env, commit)
                    self._look_at_tree(name, TreeDocuments(settings.of(own)), own, own, unread)
        self._look_at_contents(unread)

    def _look_at_tree(
        self, name: str, reader: TreeDocuments, at: Tree, tree: Tree, unread: dict[str, list[tuple[str, FoundFile]]]
    ) -> None:
        """Look at some files of a tree, and add to ``unread`` the contents of which it is not known what they state.

        ``tree`` is needed where links are among them.
        """
        links: Tree = {}
        for one in reader.among(at):
            blob = at[one.path]
            if blob.mode == blobs.LINK:
                links[one.path] = blob
            elif (stated := self._recall(one.wanted.mark, one.path, blob.id)) is not None:
                self._see(stated, "ref", name, one.path)
            else:
                unread.setdefault(blob.id, []).append((name, one))
        for one in reader.stated(links, tree, {}) if links else ():
            self._see(_of_facts(one.facts), "ref", name, one.path)

    def _look_at_contents(self, unread: Mapping[str, Sequence[tuple[str, FoundFile]]]) -> None:
        """Read contents of documents, each with the ref that has it."""
        repo, env = self._workspace.repo, self._workspace.machine.env
        absent = blobs.absent(repo, env, unread)
        lacking: dict[str, list[str]] = {}
        for blob in absent:
            for name, one in unread[blob]:
                lacking.setdefault(name, []).append(one.path)
        for name, paths in sorted(lacking.items()):
            reason = f"{pluralize(len(paths), 'file')} not in this clone, such as {min(paths)}."
            self._not_seen.append(NotSeen("ref", name, reason))
        for blob, data in blobs.contents(repo, env, [blob for blob in unread if blob not in absent]):
            for name, one in unread[blob]:
                stated = _of_facts(content_of(one, data).facts)
                self._keep(one.wanted.mark, one.path, blob, stated)
                self._see(stated, "ref", name, one.path)

    def _look_at_worktree(self, path: Path) -> None:
        """Look at the files of a worktree as they are now."""
        mine = self._workspace
        other = mine
        if path != mine.repo.worktree:
            other = Workspace(git.find_repository(path), mine.machine, mine.pool, settles=False)
        if other.repo.has_worktree and other.repo.common_dir == mine.repo.common_dir:
            self._look_at_files(other, extractors_of(other))

    def _look_at_files(self, other: Workspace, wants: Sequence[ActiveExtractor]) -> None:
        machine, root = self._workspace.machine, other.repo.worktree
        stamps = read_stamps(machine.fs, stamps_file(self._workspace.folders.cache_dir, root))
        found = scan(root, wants, ScanState(stamps, {}, machine.clock.epoch_ns()))
        for path, problem in found.blind.items():
            self._not_seen.append(NotSeen("worktree", str(root), f"{path}: {problem.message}"))
        for one in found.files.values():
            stated = self._recall(one.wanted.mark, one.path, one.hash) if one.hash else None
            if stated is None:
                whole = read_facts(root, one)
                stated = _of_facts(whole.facts)
                if whole.hash:
                    self._keep(one.wanted.mark, one.path, whole.hash, stated)
            self._see(stated, "worktree", str(root), one.path)

    def _look_at_store(self, name: str) -> None:
        store = self._workspace.store(name)
        head = store.head()
        mark = f"{head.store_id} {head.hash}"
        known = self._stores.setdefault(mark, dict(self._known.stores.get(mark, {})))
        asked = [prefix for prefix in self._prefixes if prefix not in known]
        if asked:
            known |= store.read(
                lambda view: {prefix: numbering.highest(view.rows, prefix) for prefix in asked}, publishes=False
            )
            self._new += _WORTH_WRITING
        self._see(_Stated(tuple(key for prefix in self._prefixes if (key := known[prefix]))), "store", name, "")

    def _see(self, stated: _Stated, kind: str, name: str, path: str) -> None:
        keys = stated.ids if stated.is_whole else (*stated.ids, *self._named_by(path))
        if not stated.is_whole and is_change_file(path):
            self._not_seen.append(NotSeen(kind, name, f"The change file {path} is not as KB wrote it."))
        for key in keys:
            for prefix in self._prefixes:
                number = numbering.number_in(key, prefix)
                if number is not None and number > self._numbers[prefix]:
                    self._numbers[prefix] = number
                    self._highest[prefix] = SeenId(key, kind, name, path)

    def _named_by(self, path: str) -> Iterator[str]:
        """Yield the id with which the name of a file begins that could not be read whole: it may be the one there."""
        name = path.rpartition("/")[2]
        for prefix in self._prefixes:
            digits = numbering.leading_digits(name.removeprefix(prefix)) if name.startswith(prefix) else ""
            if digits:
                yield f"{prefix}{digits}"

    def _recall(self, mark: str, path: str, content: str) -> _Stated | None:
        key = f"{mark}\n{path}\n{content}"
        found = self._stated.get(key) or self._known.stated.get(key)
        if found is not None:
            self._stated[key] = found
        return found

    def _keep(self, mark: str, path: str, content: str, stated: _Stated) -> None:
        self._stated[f"{mark}\n{path}\n{content}"] = stated
        self._new += 1


def _read(workspace: Workspace, path: Path) -> _Kept:
    """Return what the cache holds. A file that cannot be read, as anything in a cache, holds nothing."""
    nothing = _Kept(_FORMAT, {}, {})
    try:
        data = files.read_file(workspace.machine.fs, path, _MAX_BYTES)
        kept = _decode(data) if data else nothing
    except (KBError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return nothing
    return kept if kept.format == _FORMAT else nothing


def _of_facts(facts: Facts | None) -> _Stated:
    """Return the ids that a document names: of its entities, their former ones, and the ends of its links.

    Of a change file, those that its changes create, or give by a rename.
    """
    if facts is None:
        return _Stated((), is_whole=False)
    named: dict[str, None] = {}
    for entity in facts.entities:
        named |= dict.fromkeys((entity.id, *former_ids_of(entity.fields)))
    for link in facts.links:
        if link.is_of_others:
            continue
        named |= {link.subject: None} if link.is_path or link.in_text else {link.subject: None, link.target: None}
    for claim in (claim for change in facts.changes for claim in change.claims):
        if isinstance(claim, Create | Rename):
            named[claim.id if isinstance(claim, Create) else claim.now] = None
    return _Stated(_numbered(named), facts.is_complete)


def _numbered(ids: Iterable[str]) -> tuple[str, ...]:
    """Return those of these ids that end in a number: no other is part of a series."""
    return tuple(key for key in dict.fromkeys(ids) if key[-1:].isdecimal())
