"""The documents of trees of git, each tree read by the settings that it holds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from kbcore.extract.changes import is_change_file
from kbcore.extract.facts import Facts
from kbcore.git import Tree, blobs
from kbcore.ids import is_misspelled
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change
from kbcore.store.kb_folder import KB
from kbcore.store.settings_files import CONFIG, SCHEMA
from kbcore.store.workspace import Workspace
from kbcore.sync.active_extractors import as_defined, extractors_of
from kbcore.sync.documents import NOWHERE, content_name, wanted_in
from kbcore.sync.scan import FoundFile, content_of, misnamed, unread
from kbcore.view.view import View

if TYPE_CHECKING:
    from kbcore.view.claim_index import ClaimIndex

_CONFIG: Final = f"{KB}/{CONFIG}"
_SCHEMA: Final = f"{KB}/{SCHEMA}/"
_YAML: Final = (".yaml", ".yml")

ReadBefore = dict[tuple[str, str, str], FoundFile]
"""Documents by path, name of the content, and mark of the extractor."""


class TreeDocuments:
    """The documents of trees that are read by the settings of one workspace."""

    def __init__(
        self, workspace: Workspace, view: View | None = None, claims: Callable[[View], ClaimIndex] | None = None
    ) -> None:
        """With a view, the types and predicates that its branch defines are known in documents too.

        With ``claims``, the index of its changes, the changes of files are taken from that which were recorded.
        """
        self._workspace = workspace
        self._view, self._claims = view, claims
        self._wants = as_defined(extractors_of(workspace), view) if view else extractors_of(workspace)

    @property
    def marks(self) -> tuple[str, ...]:
        """Return what decides which files are documents, and how they are read."""
        return tuple(want.mark for want in self._wants)

    def among(self, files: Tree) -> Iterator[FoundFile]:
        """Yield the documents among some files of a tree, of which nothing is known yet."""
        return wanted_in(files, self._wants)

    def stated(self, files: Tree, tree: Tree, read: ReadBefore) -> Iterator[FoundFile]:
        """Yield the documents among some files of a tree, with what they state; those in ``read`` are the same ones.

        What is read is added to ``read``. Raises: ``GitUnusable``.
        """
        by_name: dict[str, list[FoundFile]] = {}
        for blank in self.among(files):
            name = content_name(blank.path, tree, self._text_of)
            if is_misspelled(blank.path):
                yield misnamed(blank)
            elif name is None:
                yield unread(blank, NOWHERE)
            elif (known := read.get((blank.path, name, blank.wanted.mark))) and known.type == blank.type:
                yield known
            else:
                by_name.setdefault(name, []).append(blank)
        for name, data in blobs.contents(self._workspace.repo, self._workspace.machine.env, by_name):
            for blank in by_name[name]:
                found = self._recorded(blank, data) or content_of(blank, data)
                read[blank.path, name, blank.wanted.mark] = found
                yield found

    def _recorded(self, blank: FoundFile, data: bytes | None) -> FoundFile | None:
        """Return a change file of which the records have all changes, whole; None for any other file."""
        view, path = self._view, blank.path
        if view is None or self._claims is None or data is None or not is_change_file(path):
            return None
        if view.seq != view.recorded_seq:  # what is known of the file may be in no record
            return None
        digest = hashlib.sha256(data).hexdigest()
        if not any(
            one.is_ok and not one.problems and (one.hash, one.extractor) == (digest, blank.wanted.mark)
            for one in view.sources([path])
        ):
            return None
        index = self._claims(view)
        ids = change_file.change_ids(data)
        bodies = index.bodies(ids)
        if bodies.keys() != {*ids} or any(map(_is_redacted, bodies.values())) or bodies.keys() & index.taken_out.keys():
            return None
        return msgspec.structs.replace(blank, hash=digest, facts=Facts(changes=tuple([bodies[one] for one in ids])))

    def _text_of(self, name: str) -> bytes | None:
        return dict(blobs.contents(self._workspace.repo, self._workspace.machine.env, [name]))[name]


def _is_redacted(change: Change) -> bool:
    return change.is_redacted or bool(change.message_hash)


class TreeSettings:
    """Workspaces with the settings of trees, one for the same settings.

    A tree without a configuration is read by that of the worktree, as where ``.kb`` is not committed.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[tuple[tuple[str, str], ...], Workspace] = {}

    def of(self, tree: Tree) -> Workspace:
        """Return the workspace with the settings of a tree.

        Raises: ``InvalidConfig`` where these cannot be used; ``GitUnusable``.
        """
        mark = tuple((path, blob.id) for path, blob in tree.items() if is_setting(path) and blob.mode != blobs.LINK)
        if not any(path == _CONFIG for path, _ in mark):
            return self._workspace
        if mark not in self._known:
            self._known[mark] = self._read(mark)
        return self._known[mark]

    def _read(self, mark: tuple[tuple[str, str], ...]) -> Workspace:
        found = dict(blobs.contents(self._workspace.repo, self._workspace.machine.env, [name for _, name in mark]))
        texts = {path: (found[name] or b"").decode("utf-8", "replace") for path, name in mark}
        return self._workspace.with_settings(texts.pop(_CONFIG), texts)


def is_setting(path: str) -> bool:
    """Tell whether the file at a path of a tree decides how its documents are read."""
    return path == _CONFIG or (
        path.startswith(_SCHEMA) and path.endswith(_YAML) and "/" not in path.removeprefix(_SCHEMA)
    )
