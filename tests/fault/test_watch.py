"""F24: notices of files are lost, doubled and late, come in storms, and are of what the watcher did itself."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kbcore.rules import RULES
from kbcore.storage.fs import RealFs
from kbcore.watch.events import Synced
from kbcore.watch.notices import NotedPaths
from tests.support.effort.scale import SEED, tries
from tests.support.repository.project import Project, req
from tests.support.repository.watched import Watched

REQS = "docs/requirements"
CALM_S = 0.3
AT_ONCE = 4
UNCHECKED = json.dumps({"rules": {rule.id: "off" for rule in RULES}})
"""Rules only read, and take as long as all else that a watcher does."""


def hard_of_hearing(seed: int) -> type[NotedPaths]:
    """Return what loses a share of the notices, tells others twice, and some of those late."""
    dice = random.Random(seed)

    class HardOfHearing(NotedPaths):
        def __init__(self, deep: Sequence[Path], flat: Sequence[Path], *, is_polling: bool = False) -> None:
            super().__init__(deep, flat, is_polling=is_polling)
            self._late: set[str] = set()

        def take(self, wait_s: float) -> set[str]:
            heard = {path for path in super().take(min(wait_s, 0.05)) if dice.random() < 0.6}
            reported, self._late = heard | self._late, {path for path in heard if dice.random() < 0.3}
            return reported

    return HardOfHearing


class Writer:
    """Somebody who saves documents in every way that there is; every text has an id of its own."""

    def __init__(self, root: Path, seed: int) -> None:
        self.folder = root / REQS
        self.folder.mkdir(parents=True, exist_ok=True)
        self._dice = random.Random(seed)
        self._count = 0
        self.texts: dict[Path, str] = {}

    def act(self) -> None:
        """Do one thing."""
        dice = self._dice
        path = self.folder / dice.choice(["", "", "sub/"]) / f"{dice.randrange(6)}.md"
        what = dice.choice(["write", "write", "replace", "rename away", "empty first", "delete", "move", "folder"])
        if what == "delete" or (what == "move" and path not in self.texts):
            path.unlink(missing_ok=True)
            self.texts.pop(path, None)
        elif what == "move":
            target = self.folder / f"moved {dice.randrange(3)}.md"
            path.rename(target)
            self.texts[target] = self.texts.pop(path)
        elif what == "folder":
            shutil.rmtree(self.folder / "sub", ignore_errors=True)
            self.texts = {one: text for one, text in self.texts.items() if one.parent == self.folder}
        else:
            self._save(path, what)

    def _save(self, path: Path, how: str) -> None:
        self._count += 1
        links = f"[R-{self._dice.randrange(1, self._count + 3)}]"
        text = self.texts[path] = req(f"R-{self._count}", links=links)
        path.parent.mkdir(exist_ok=True)
        beside = path.with_name(f".{path.name}.swp")
        if how == "replace":
            beside.write_text(text)
            beside.replace(path)
            return
        if how == "rename away" and path.exists():
            path.rename(beside)
        if how == "empty first":
            path.write_text("")
            time.sleep(0.005)
        path.write_text(text)
        beside.unlink(missing_ok=True)


def seen(project: Project) -> list[list[tuple[object, ...]]]:
    """Return what a store holds, but for what depends on how it came to that."""
    questions = (
        "select id, type, name, path from node order by all",
        "select type, kind, from_id, to_id, source from link where is_resolved order by all",
        # One whose end went away keeps the type and the direction that it had.
        "select least(from_id, to_id), greatest(from_id, to_id), source from link where not is_resolved order by all",
        "select path, hash, is_ok, problems::varchar from source order by all",
    )
    view = project.view()
    return [view.rows(one) for one in questions]


def judge(watched: Watched, fresh: Path) -> list[str]:
    """Return what is wrong with the store of a watcher that has ended, against one that takes in all files at once."""
    wrong = []
    left = watched.reader.sync()
    if left.outcome.applied:
        wrong.append(f"it left something to do: {left}")
    other = Project(fresh)
    shutil.copytree(watched.root / "docs", fresh / "docs")
    other.sync()
    if seen(other) != seen(watched.reader):
        wrong.append("the store is not what the files say")
    other.close()
    return wrong


def at_once(act: Callable[[int], tuple[int, list[str]]], rounds: int) -> Iterator[tuple[int, list[str]]]:
    """Yield what comes of each round, the seed first; a few go on at once, because most of one is waiting."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(act, [SEED + number for number in range(rounds)])


@pytest.mark.sliced
@pytest.mark.fault("F24")
def test_notices_that_are_lost_doubled_and_late_are_made_good_by_the_next_look_at_everything(
    tmp_path: Path, tally
) -> None:
    acts = 15

    def act(seed: int) -> tuple[int, list[str]]:
        root = tmp_path / f"{seed}"
        made = Project(root, fs=RealFs())
        made.write({".kb/config.json": UNCHECKED})
        made.close()
        writer, wrong = Writer(root, seed), []
        with Watched(root, listen=hard_of_hearing(seed)) as watched:
            for _ in range(acts):
                writer.act()
                time.sleep(0.01)
            time.sleep(0.05)
            if len(watched.of(Synced)) > 2 * acts:
                wrong.append(f"{len(watched.of(Synced))} records of {acts} changes")
        # Whoever begins looks at everything.
        with Watched(root) as watched:
            watched.end()
            return seed, wrong + judge(watched, tmp_path / f"{seed} fresh")

    for seed, wrong in at_once(act, tries(3, 60, 300)):
        for what in wrong:
            tally.violated(f"seed {seed}", what)
        tally.tried(acts)
    tally.done(at_least=45)


@pytest.mark.sliced
@pytest.mark.fault("F24")
def test_every_notice_is_taken_in_at_once_and_nothing_of_what_the_watcher_does_itself(tmp_path: Path, tally) -> None:
    acts = 15

    def act(seed: int) -> tuple[int, list[str]]:
        root = tmp_path / f"{seed}"
        Project(root, fs=RealFs()).close()
        writer, dice = Writer(root, seed), random.Random(seed)
        with Watched(root) as watched:
            for _ in range(acts):
                writer.act()
                time.sleep(dice.choice([0, 0, 0.02]))
            watched.until_quiet(CALM_S)
            watched.until_in_step()
            watched.end()
            wrong = judge(watched, tmp_path / f"{seed} fresh")
            if len(watched.of(Synced)) > 2 * acts:
                wrong.append(f"{len(watched.of(Synced))} records of {acts} changes")
            return seed, wrong

    for seed, wrong in at_once(act, tries(2, 40, 200)):
        for what in wrong:
            tally.violated(f"seed {seed}", what)
        tally.tried(acts)
    tally.done(at_least=30)


@pytest.mark.sliced
@pytest.mark.fault("F24")
def test_a_storm_of_files_is_few_records_and_so_is_its_end(tmp_path: Path, tally) -> None:
    count, root = tries(200, 10_000), tmp_path / "repo"
    Project(root, fs=RealFs()).close()
    (root / REQS).mkdir(parents=True)
    with Watched(root) as watched:
        for number in range(count):
            (root / REQS / f"{number}.md").write_text(req(f"S-{number}"))
        watched.until(lambda: watched.reader.view().rows("select count(*) from node") == [(count,)])
        if len(watched.of(Synced)) > 10:
            tally.violated("the storm", f"{len(watched.of(Synced))} records")
        shutil.rmtree(root / REQS)
        watched.until(lambda: watched.reader.view().rows("select count(*) from node") == [(0,)])
        if len(watched.of(Synced)) > 20:
            tally.violated("the end of the storm", f"{len(watched.of(Synced))} records")
        (root / REQS).mkdir()
        watched.until_quiet(CALM_S)
        watched.end()
        for what in judge(watched, tmp_path / "fresh"):
            tally.violated("the end", what)
    tally.tried(2 * count)
    tally.done(at_least=2 * count)
