"""What the hooks of sharing add to `git commit`, against the same commit without hooks."""

from __future__ import annotations

import itertools
import json

from benchmarks import generate
from benchmarks.measure import Sample, Series, in_turns, process
from benchmarks.place import Place
from benchmarks.table import Row
from tests.support.repository.repos import git

_AT_MOST_S = {1: 0.1, 100: 0.15}


def run(place: Place) -> list[Row]:
    """Measure commits that take along so many changes, each change a record of its own."""
    return [_row(place, count) for count in place.sizes.unshared]


def _row(place: Place, count: int) -> Row:
    root = place.copy_of(place.documents(place.sizes.documents[0]), f"committing-{count}")
    place.kb(root, "config", "set", "share.mode", "auto")
    place.kb(root, "hooks", "install")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--no-verify", "-m", "share")
    place.settle(root)
    numbers = itertools.count(1)

    def commit() -> Sample:
        for _ in range(count):
            path = root / "changeset.json"
            target = generate.document_id(place.sizes.documents[0])
            path.write_text(json.dumps(generate.changeset(f"NEW-{next(numbers):06d}", target)))
            place.kb(root, "apply", path.name)
            path.unlink()
        return process(["git", "commit", "--quiet", "--allow-empty", "-m", "change"], cwd=root, env=place.env)

    def without() -> Sample:
        return process(
            ["git", "-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--allow-empty", "-m", "change"],
            cwd=root,
            env=place.env,
        )

    with_hooks, floor = in_turns(commit, without, rounds=place.sizes.long_rounds_of(count))
    added = [Sample(one.wall_s - alone.wall_s) for one, alone in zip(with_hooks.samples, floor.samples, strict=True)]
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
