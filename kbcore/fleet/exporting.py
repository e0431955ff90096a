"""Exporting a branch to a fleet: its new facts as Parquet parts, then its head file, which is replaced last.

Whoever reads meanwhile, or after the process was ended, sees the facts of the head before. No part is changed or
removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from kbcore import __version__
from kbcore.fleet import head as heads
from kbcore.fleet.head import FACTS_HASH_DIGITS, FORMAT, FleetHead, PartFile, check_name
from kbcore.fleet.place import MAX_PART_BYTES, Place, read_head
from kbcore.fleet.settings import SettingsTexts, exported_settings
from kbcore.fleet.withholding import find_withheld
from kbcore.git.commands import run_git
from kbcore.storage import files
from kbcore.storage.fs import RealFs
from kbcore.store.workspace import Workspace
from kbcore.view import database
from kbcore.view.parquet import LeftOut, PartWriter
from kbcore.view.view import View

MAX_PARTS: Final = 64
"""The most parts of a branch: with more, everything is written again, so that reading does not grow with refreshes."""


class ExportRequest(msgspec.Struct, frozen=True):
    """The subject of an export: the names of the repository and of the branch in the fleet.

    Without ``has_history`` there are only present facts, as of a store that is thrown away. ``is_whole`` writes every
    part again. ``is_default`` says that it is the default branch of the repository.
    """

    repo: str
    branch: str
    has_history: bool = True
    is_whole: bool = False
    is_default: bool = False


class ExportResult(msgspec.Struct, frozen=True):
    """The result of an export: nothing where all was there. ``left_out`` counts elements that are not to be shared.

    ``replaced`` is the head before, where it is of another store, has other facts, and a later last record.
    ``had_more`` tells that the parts before, which stay in the place, may hold what is left out.
    """

    head: FleetHead
    written: tuple[PartFile, ...]
    is_new: bool
    left_out: int
    replaced: FleetHead | None = None
    had_more: bool = False

    @property
    def bytes(self) -> int:
        """Return how many bytes of parts were written."""
        return sum(one.bytes for one in self.written)


def export(workspace: Workspace, branch: str, view: View, place: Place, request: ExportRequest) -> ExportResult:
    """Export the records of a branch, whose view this is, to a place.

    Raises: ``InvalidQuery`` for a name that cannot be one; ``InvalidConfig``; ``LockTimeout``; ``StorageError`` and its
    kin, with the head as it was; as ``find_withheld``.
    """
    check_name("repository", request.repo)
    check_name("branch", request.branch)
    plan = _Plan(
        view,
        place,
        request,
        lambda judged: find_withheld(workspace, branch, view, judged),
        exported_settings(workspace),
    )
    if (found := plan.unchanged()) is not None:
        return found
    with place.writing(plan.path):
        return plan.unchanged() or plan.carried_out()


class _Plan:
    """One export; ``unchanged`` reads the head of the place, and ``carried_out`` goes on from it."""

    def __init__(
        self,
        view: View,
        place: Place,
        request: ExportRequest,
        find_left_out: Callable[[int], LeftOut | None],
        texts: SettingsTexts,
    ) -> None:
        self._view = view
        self._place = place
        self._request = request
        self._find_left_out = find_left_out
        self._settings = texts.encoded()
        self._head: FleetHead | None = None
        self._hash = ""
        self.path = heads.head_path(request.repo, request.branch)

    @cached_property
    def _left_out(self) -> LeftOut | None:
        return self._find_left_out(self._judged)

    @property
    def _judged(self) -> int:
        """Return the seq up to which this version of KB found nothing to be withheld, by these settings; 0 for none."""
        head = self._head
        if head is None or (head.kb, head.settings.sha256) != (__version__, _digest(self._settings)):
            return 0
        return head.seq if self._continues(head) else 0

    @property
    def _has_history(self) -> bool:
        return self._request.has_history and self._left_out is None

    def unchanged(self) -> ExportResult | None:
        """Return the answer where the place has all that would be written, else None."""
        if self._request.is_whole:
            return None  # a damaged head is replaced, also one that cannot be read
        data = read_head(self._place, self.path)
        self._head = None if data is None else heads.decode(data, self.path)
        head = self._head
        if head is None or (head.settings.sha256, head.is_default) != (
            _digest(self._settings),
            self._request.is_default,
        ):
            return None
        if head.store == self._view.basis.store_id and head.has_history:
            # With these settings everything was to be exported then.
            is_there = head.seq > self._view.seq or (head.seq, head.sum) == (self._view.seq, self._view.basis.sum)
            return ExportResult(head, (), is_new=False, left_out=0) if is_there else None
        if self._has_history > head.has_history:
            return None
        if head.store == self._view.basis.store_id and head.seq > self._view.seq:
            return self._answer(head, ())
        return self._answer(head, ()) if head.hash == self._fingerprint() else None

    def carried_out(self) -> ExportResult:
        """Write the parts that are missing, then the head."""
        basis, since, before = self._view.basis, self._since(), self._head
        written = list[PartFile]()
        with database.scratch_folder() as folder:
            writer = PartWriter(self._view, self._left_out)
            try:
                for one in writer.write(Path(folder), FORMAT, since=since, has_history=self._has_history):
                    data = files.read_file(RealFs(), one.path, MAX_PART_BYTES) or b""
                    files.remove_quietly(RealFs(), one.path)
                    written.append(self._write_part(one.kind, one.rows, data))
                if since and before is not None:
                    self._hash = f"{int(before.hash, 16) ^ writer.fingerprint(since):0{FACTS_HASH_DIGITS}x}"
            finally:
                writer.close()
        sha256 = _digest(self._settings)
        at = heads.settings_path(self._request.repo, self._request.branch, sha256)
        self._write(at, self._settings)
        head = FleetHead(
            FORMAT,
            self._request.repo,
            self._request.branch,
            basis.store_id,
            basis.lineage,
            basis.seq,
            basis.sum,
            basis.at,
            self._fingerprint(),
            self._has_history,
            basis.history_from,
            basis.listed_from,
            PartFile(at, "settings", 0, len(self._settings), sha256),
            (*(before.parts if since and before else ()), *written),
            self._request.is_default,
            __version__,
        )
        self._place.write(self.path, heads.encode(head))
        return msgspec.structs.replace(
            self._answer(head, tuple(written)), replaced=self._replaced(head), had_more=self._had_more()
        )

    def _replaced(self, head: FleetHead) -> FleetHead | None:
        before = self._head
        is_other = before is not None and before.store != head.store and before.hash != head.hash
        return before if is_other and before is not None and before.at > head.at else None

    def _had_more(self) -> bool:
        """Tell whether the head before was written when less was left out: with history, or by other settings."""
        before = self._head
        if self._left_out is None or before is None:
            return False
        return before.has_history or before.settings.sha256 != _digest(self._settings)

    def _since(self) -> int:
        """Return the seq after which the place lacks records of this store, 0 where everything is to be written."""
        head, basis = self._head, self._view.basis
        if head is None or self._request.is_whole or not self._has_history:
            return 0
        is_same = head.format == FORMAT and head.history_from == basis.history_from <= head.seq
        return head.seq if is_same and len(head.parts) < MAX_PARTS and self._continues(head) else 0

    def _continues(self, head: FleetHead) -> bool:
        """Tell whether a head has all records of this store up to its own seq."""
        is_same = head.has_history and head.store == self._view.basis.store_id
        return is_same and self._view.has_record(head.seq, head.sum)

    def _fingerprint(self) -> str:
        if not self._hash:
            writer = PartWriter(self._view, self._left_out)
            try:
                self._hash = f"{writer.fingerprint():0{FACTS_HASH_DIGITS}x}"
            finally:
                writer.close()
        return self._hash

    def _write_part(self, kind: str, rows: int, data: bytes) -> PartFile:
        sha256 = _digest(data)
        path = heads.part_path(kind, self._request.repo, self._request.branch, self._view.seq, sha256)
        self._write(path, data)
        return PartFile(path, kind, rows, len(data), sha256)

    def _write(self, path: str, data: bytes) -> None:
        """Write a file that is named by its content, unless it is there."""
        if self._request.is_whole or self._place.size(path) != len(data):
            self._place.write(path, data)

    def _answer(self, head: FleetHead, written: tuple[PartFile, ...]) -> ExportResult:
        left = self._left_out
        count = len(left.ids) + len(left.nodes) + len(left.links) if left else 0
        return ExportResult(head, written, is_new=bool(written), left_out=count)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def usual_repo_name(workspace: Workspace) -> str:
    """Return the usual name of a repository in a fleet: the last two parts of its remote's URL, else its folder.

    Raises: ``GitUnusable``.
    """
    answer = run_git(workspace.repo, workspace.machine.env, ["config", "--get", "remote.origin.url"], allowed=(0, 1))
    url = answer.output.decode("utf-8", "replace").strip().rstrip("/").removesuffix(".git")
    if "://" in url or "@" in url:
        parts = url.rpartition("://")[2].replace(":", "/").split("/")
        if len(parts) > 2:  # noqa: PLR2004 - a host, an owner and a name
            return "/".join(parts[-2:])
    return workspace.repo.kb_root.name if not workspace.repo.has_worktree else workspace.repo.worktree.name
