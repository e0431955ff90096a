"""Makes stores of many records through KB's own core, without syncs: preparation, in a process of its own.

``python -m benchmarks.stores fill DIR COUNT`` makes a repository with a store of so many records and its view,
``change DIR COUNT`` one whose records all change the same entity, and ``say DIR COUNT`` one of so many entities of
fifty words; ``branch DIR COUNT`` makes one of three records, whose branch ``topic`` has so many more. ``compact DIR``
seals the records under a snapshot; ``grow DIR COUNT`` adds more, which the view has not seen; with
``FIRST`` after that those from there on, of which none has to do with an earlier one. ``share DIR COUNT`` adds files
with so many changes to a repository that is there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from benchmarks import generate
from kbcore import git
from kbcore.clock import SystemClock
from kbcore.extract.changes import FOLDER
from kbcore.maintenance import compacting
from kbcore.model import record
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change
from kbcore.share import sharing
from kbcore.share.unshared import find_unshared
from kbcore.share.worktree_changes import new_files
from kbcore.storage import journal
from kbcore.store import branches
from kbcore.store.init import lay_out
from kbcore.store.pool import Machine, StorePool
from kbcore.store.workspace import Workspace, open_workspace
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.repos import commit_files, make_repository
from tests.support.repository.repos import git as run_git

BRANCH = "main"
TOPIC = "topic"
PULLED = "pulled"


class _Beginning:
    """A clock that is fixed at the first time of the records, so that none of them goes back."""

    def __init__(self) -> None:
        clock = SystemClock()
        self.epoch_ns = clock.epoch_ns
        self.monotonic_s = clock.monotonic_s
        self.sleep = clock.sleep

    def now(self) -> str:
        return generate.record_time(0)


def machine() -> Machine:
    """Return a machine without syncs, on which it is the beginning of 2026."""
    return Machine(NoSyncFs(), _Beginning(), os.environ)


def workspace_of(root: Path) -> Workspace:
    """Return the workspace of a repository on that machine."""
    return open_workspace(root, machine(), StorePool())


def fill(root: Path, count: int) -> None:
    """Make a repository with a KB whose main branch has ``count`` records, and publish its view."""
    lay_out_at(root)
    grow(root, count)
    _publish(root)


def change(root: Path, count: int) -> None:
    """Make a repository with a KB in which one entity was changed ``count`` times, and publish its view."""
    lay_out_at(root)
    _append(root, lambda _: generate.changes(count))
    _publish(root)


def say(root: Path, count: int) -> None:
    """Make a repository with a KB that holds ``count`` entities of fifty words each, and publish its view."""
    lay_out_at(root)
    _append(root, lambda _: generate.wordy_records(count))
    _publish(root)


def remember(root: Path, count: int) -> None:
    """Make a repository with a KB that holds ``count`` concepts of KIP with three links each, and publish its view."""
    lay_out_at(root)
    _append(root, lambda _: generate.concept_records(count))
    _publish(root)


def branch(root: Path, count: int) -> None:
    """Make a repository with a KB whose branch ``topic`` has ``count`` records that main lacks."""
    lay_out_at(root)
    commit_files(root, {"README.md": "a project\n"})
    grow(root, 3)
    _publish(root)
    run_git(root, "switch", "--quiet", "--create", TOPIC)
    branches.open_branch(workspace_of(root), TOPIC)
    _append(root, lambda seq: generate.records(count, seq), TOPIC)
    run_git(root, "switch", "--quiet", BRANCH)


def grow(root: Path, count: int, first: int = 0) -> None:
    """Append ``count`` records to the journal, and nothing else; ``first`` is as for ``generate.records``."""
    _append(root, lambda seq: generate.records(count, first or seq, first or 1))


def share(root: Path, count: int) -> None:
    """Commit packs of ``count`` changes in a repository, and 3 % as many in files of their own.

    Its branch ``pulled`` has one more commit, with 1 % as many in such files.
    """
    single, pulled = max(1, count * 3 // 100), max(1, count // 100)
    source = root.with_name(f"{root.name}-source")
    lay_out_at(source)
    commit_files(source, {"README.md": "a project\n"})
    grow(source, count + single + pulled)
    workspace = workspace_of(source)
    new = new_files(workspace, BRANCH)
    changes = sharing.for_review(workspace, BRANCH, find_unshared(workspace, BRANCH, new=new), new)
    files = [*change_file.encode_packs(changes[:count]).items(), *_single(changes[count : count + single])]
    _commit_change_files(root, files)
    run_git(root, "switch", "--quiet", "--create", PULLED)
    _commit_change_files(root, _single(changes[count + single :]))
    run_git(root, "switch", "--quiet", "-")


def _single(changes: Iterable[Change]) -> Iterator[tuple[str, bytes]]:
    for one in changes:
        content = change_file.encode([one])
        yield change_file.file_path([one], content), content


def _commit_change_files(root: Path, files: Iterable[tuple[str, bytes]]) -> None:
    for name, content in files:
        path = root / FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    run_git(root, "add", "--all")
    run_git(root, "commit", "--quiet", "-m", "share")


def lay_out_at(root: Path) -> None:
    """Make a repository with a KB that has no records."""
    make_repository(root, branch=BRANCH)
    lay_out(git.find_repository(root), machine(), StorePool(), BRANCH)


def _append(root: Path, records: Callable[[int], Iterable[record.Record]], name: str = BRANCH) -> None:
    workspace = workspace_of(root)
    fs, clock = workspace.machine.fs, workspace.machine.clock
    with journal.writing(fs, workspace.folders.directory_of(name), clock) as writer:
        for one in records(writer.head.seq + 1):
            writer.append(record.encode(one), one.at)


def _publish(root: Path) -> None:
    workspace_of(root).store(BRANCH).read(lambda view: view.seq)


def compact(root: Path) -> None:
    """Write the snapshot at the head and seal the journal so far."""
    compacting.compact(workspace_of(root), BRANCH)


def main(action: str, root: str, *counts: str) -> None:
    """Do one of the eight."""
    if action == "compact":
        compact(Path(root))
    else:
        actions: dict[str, Callable[..., None]] = {
            "fill": fill, "change": change, "say": say, "remember": remember, "branch": branch, "grow": grow,
            "share": share,
        }  # fmt: skip
        actions[action](Path(root), *map(int, counts))


if __name__ == "__main__":
    main(*sys.argv[1:])
