"""Documents as git keeps them, in a commit or staged, and what a state would be if they had been synced.

What git ignores is in no commit: such a document counts as it was last recorded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from kbcore.clock import moment_after
from kbcore.extract.facts import Facts
from kbcore.git import Tree, blobs, staging
from kbcore.git.tracked_paths import TextOf, followed
from kbcore.ids import is_misspelled
from kbcore.model.record import SYNC
from kbcore.model.state import Changes, Stamp
from kbcore.store.workspace import Workspace
from kbcore.sync.active_extractors import as_defined, extractors_of
from kbcore.sync.blob_hash_cache import BlobSums
from kbcore.sync.comparison import Dates, FileSources, compare, no_dates
from kbcore.sync.pending import recorded_files
from kbcore.sync.scan import FoundFile, content_of, misnamed, unread
from kbcore.sync.wanted_files import ActiveExtractor, GlobRule, globs_of, held, rules_of
from kbcore.text.problems import FileProblem
from kbcore.view.view import View

if TYPE_CHECKING:
    from kbcore.view.claim_index import ClaimIndex

_ACTOR: Final = "kb"

Marks = Mapping[str, tuple[str, str]]
"""The recorded hash and extractor's mark of each file of a state."""
_GONE: Final = blobs.Blob("100644", "")
NOWHERE: Final = FileProblem(
    0, "unreadable", "It is a link that points to no file of the commit.", "Commit the file that it points to."
)


class Differing(msgspec.Struct, frozen=True):
    """The documents of a tree, those to read because a state may not know them so, and the paths that are gone.

    It counts as false when there is nothing to read and nothing is gone.
    """

    tree: Tree
    files: Mapping[str, FoundFile]
    read: Sequence[FoundFile]
    gone: Sequence[str]

    def __bool__(self) -> bool:
        """Return whether the tree states anything else than is known."""
        return bool(self.read or self.gone)


class RepositoryDocuments:
    """A repository's documents in git. Contents are read when they are asked for, and hashed once."""

    def __init__(self, workspace: Workspace, claims: Callable[[View], ClaimIndex]) -> None:
        """``claims`` returns the index of the changes of the branch that views are copied from."""
        self._workspace = workspace
        self._claims = claims
        self._sums = BlobSums(workspace.machine.fs, workspace.folders.cache_dir)
        self._wants = extractors_of(workspace)
        self._held: Mapping[str, ActiveExtractor] = {}
        """The documents whose extractor cannot be used."""
        self.schema = workspace.schema

    def differing(self, view: View, tree: Tree) -> Differing:
        """Return what a sync would look at if it found the files of a tree. Raises: ``GitUnusable``."""
        self._wants = as_defined(extractors_of(self._workspace), view)
        known = recorded_files(view)
        taken_in = {path: (digest, mark) for path, digest, mark, _ in known}
        self._held = held(self._wants, self._workspace.config.switched_off, taken_in)
        waiting = {path for path, _, _, is_open in known if is_open and path not in self._held}
        files = dict(self._found(tree, taken_in))
        missing = taken_in.keys() - files.keys()
        gone = sorted(missing - staging.ignored(self._workspace.repo, self._workspace.machine.env, missing))
        read = [
            one for path, one in files.items() if path in waiting or taken_in.get(path) != (one.hash, one.wanted.mark)
        ]
        return Differing(tree, files, read, gone)

    def sync_tree(self, copy: View, tree: Tree, dates: Dates = no_dates) -> Changes:
        """Change a copy of a view as a sync of the files of a tree would; returns what that changed.

        ``dates`` is as ``FileSources`` has it. Raises: ``GitUnusable``.
        """
        return self.sync_files(copy, self.differing(copy, tree), dates)

    def sync_files(self, copy: View, found: Differing, dates: Dates = no_dates) -> Changes:
        """Do as ``sync_tree`` with what was found to differ from the copy. Raises: ``GitUnusable``."""
        if not found:
            return Changes()
        clock = self._workspace.machine.clock
        stamp = Stamp(copy.seq + 1, moment_after(copy.basis.at, clock.now()).at, _ACTOR, SYNC)
        whole: dict[str, FoundFile] = {}

        def read_whole(one: FoundFile) -> FoundFile:
            read = whole[one.path] = whole.get(one.path) or self.whole(one, found.tree)
            return read

        def as_taken_in(_: View, paths: Collection[str]) -> list[FoundFile]:
            return [found.files[path] for path in sorted(paths) if path in found.files]

        schema = copy.schema(self.schema)
        ways = FileSources(schema, found.gone, read_whole, as_taken_in, self._claims, dates=dates)
        last = compare(copy, stamp, found.read, ways).last
        copy.overlay(stamp, last.changes, ops=last.ops)
        return last.changes

    def is_stated_by(self, paths: Collection[str], tree: Tree) -> bool:
        """Return whether a document of a tree may be one of these paths, or a link that leads there."""
        named = {path: tree.get(path, _GONE) for path in paths}
        links = (path for path, blob in tree.items() if blob.mode == blobs.LINK)
        return any(wanted_in(named | {path: tree[path] for path in links}, self._wants))

    def facts_at(self, path: str, tree: Tree) -> Facts | None:
        """Return what the document at a path states; None when no extractor wants it. Raises: ``GitUnusable``."""
        named: Tree = {path: tree[path]} if path in tree else {}
        return next((self.whole(one, tree).facts for one in wanted_in(named, self._wants)), None)

    def whole(self, one: FoundFile, tree: Tree) -> FoundFile:
        """Return a document of a tree with what it states. Raises: ``GitUnusable``."""
        if one.facts is not None:
            return one
        if is_misspelled(one.path):
            return misnamed(one)
        name = content_name(one.path, tree, self.text_of)
        return content_of(one, self.text_of(name)) if name else unread(one, NOWHERE)

    def texts_of(self, names: Iterable[str]) -> dict[str, bytes | None]:
        """Return the content of blobs; None for one that is too large. Raises: ``GitUnusable``."""
        repo, env = self._workspace.repo, self._workspace.machine.env
        return dict(blobs.contents(repo, env, list(names)))

    def text_of(self, name: str) -> bytes | None:
        """Return the content of one blob; None when it is too large for any file. Raises: ``GitUnusable``."""
        return self.texts_of([name])[name]

    def _blanks(self, tree: Tree) -> Iterator[FoundFile]:
        """Yield the documents of a tree, of which nothing is known yet, in the order in which globs are asked."""
        paths = set()
        for blank in wanted_in(tree, self._wants):
            paths.add(blank.path)
            want = self._held.get(blank.path, blank.wanted)
            yield blank if want is blank.wanted else msgspec.structs.replace(blank, wanted=want)
        for path in sorted(self._held.keys() & tree.keys() - paths):
            yield FoundFile(path, self._held[path], None, "")

    def _found(self, tree: Tree, taken_in: Marks) -> Iterator[tuple[str, FoundFile]]:
        """Yield the documents of a tree; those that the state does not know so come with what they state."""
        by_name: dict[str, list[FoundFile]] = {}
        names: dict[str, str] = {}
        for blank in self._blanks(tree):
            name = content_name(blank.path, tree, self.text_of)
            known = self._sums.known(name) if name else None
            if is_misspelled(blank.path):
                yield blank.path, misnamed(blank)
            elif name is None:
                yield blank.path, unread(blank, NOWHERE)
            else:
                names[name] = blank.path
                if known and taken_in.get(blank.path) == (known, blank.wanted.mark):
                    yield blank.path, msgspec.structs.replace(blank, hash=known)
                else:
                    by_name.setdefault(name, []).append(blank)
        repo, env = self._workspace.repo, self._workspace.machine.env
        for name, data in blobs.contents(repo, env, by_name):
            digest = "" if data is None else hashlib.sha256(data).hexdigest()
            if data is not None:
                self._sums.learn({name: digest}, len(data))
            for blank in by_name[name]:
                yield blank.path, _read(blank, data, digest, taken_in)
        self._sums.keep(names)


def _read(blank: FoundFile, data: bytes | None, digest: str, taken_in: Marks) -> FoundFile:
    if taken_in.get(blank.path) == (digest, blank.wanted.mark):
        return msgspec.structs.replace(blank, hash=digest)
    return content_of(blank, data)


def wanted_in(tree: Tree, wants: Collection[ActiveExtractor]) -> Iterator[FoundFile]:
    """Yield the files of a tree that a scan would find."""
    rules = rules_of(wants)
    globs = globs_of(rules)
    for path, blob in tree.items():
        found = [] if blob.mode == blobs.SUBMODULE else globs.all(path)
        if found and ".kb/" in path:
            found = [number for number in found if not _is_hidden(path, rules[number])]
        if found:
            rule = rules[min(found)]
            yield FoundFile(path, rule.want, rule.type, "")


def _is_hidden(path: str, rule: GlobRule) -> bool:
    return ".kb" in path[len(rule.folder) :].split("/")[:-1]


def content_name(path: str, tree: Tree, text_of: TextOf) -> str | None:
    """Return the name of the content at a path, by way of links within the tree; None when they lead nowhere."""
    blob = tree.get(followed(path, tree, text_of) or "")
    return None if blob is None or blob.mode == blobs.SUBMODULE else blob.id
