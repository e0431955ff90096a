"""The cost that the hooks of sharing add to `git commit`, against the same commit without hooks."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from benchmarks import generate
from benchmarks.inside import opened
from benchmarks.measure import Sample, Series, in_turns, process
from benchmarks.place import Place
from benchmarks.table import Row
from tests.support.repository.repos import git

_AT_MOST_S = {1: 0.1, 100: 0.15}


def run(place: Place) -> list[Row]:
    """Measure commits that take along so many changes, each change a record of its own."""
    return [_row(place, count) for count in place.sizes.unshared]


def _row(place: Place, count: int) -> Row:
    documents = place.sizes.documents[0]
    root = place.copy_of(place.documents(documents), f"committing-{count}")
    place.kb(root, "config", "set", "share.mode", "auto")
    place.kb(root, "hooks", "install")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--no-verify", "-m", "share")
    place.settle(root)
    place.kb(root, "hook", "post-commit")
    bare = place.copy_of(root, f"committing-without-{count}")  # a commit without hooks between others costs these more
    numbers = itertools.count(1, count)
    commit = ["commit", "--quiet", "--allow-empty", "-m", "change"]

    def with_hooks() -> Sample:
        place.python("-m", "benchmarks.shared_commit", str(root), str(next(numbers)), str(count), str(documents))
        return process(["git", *commit], cwd=root, env=place.env)

    def without() -> Sample:
        return process(["git", "-c", "core.hooksPath=/dev/null", *commit], cwd=bare, env=place.env)

    hooked, floor = in_turns(with_hooks, without, rounds=place.sizes.long_rounds)
    _check_shared(root, (place.sizes.long_rounds + 1) * count)
    added = [
        Sample(one.wall_s - alone.wall_s, (one.cpu_s or 0.0) - (alone.cpu_s or 0.0))
        for one, alone in zip(hooked.samples, floor.samples, strict=True)
    ]
    return Row(
        name="what hooks add to git commit",
        against="git commit",
        count=count,
        unit="unshared changes",
        kb=Series(tuple(added)),
        floor=floor,
        peak_bytes=None,
        at_most_s=_AT_MOST_S[count],
    )


def _check_shared(root: Path, count: int) -> None:
    """Refuse figures of commits that did not take all changes along. Raises: ``AssertionError``."""
    names = git(root, "ls-tree", "-r", "--name-only", "HEAD", ".kb/changes").split()
    texts = [git(root, "show", f"HEAD:{name}") for name in names]
    found = sum(text.count('"kb":1') for text in texts)
    if found != count:
        raise AssertionError(f"the commits have {found} changes, and not {count}")


def main(root: str, first: str, count: str, documents: str) -> None:
    """Apply so many changesets, each a record of its own, in one process: a process for each takes most of the time."""
    from kbcore.model.changeset import parse
    from kbcore.store import apply
    from kbcore.store.write_request import Author

    workspace, target = opened(root), generate.document_id(int(documents))
    author = Author("bench", "cli", "kb")
    for number in range(int(first), int(first) + int(count)):
        changeset = parse(generate.changeset(f"NEW-{number:06d}", target))
        apply.apply_changeset(workspace, workspace.head().branch, author, changeset, follows_head=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
