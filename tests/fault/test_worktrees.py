"""F15: worktrees with one KB, in which branches are switched, renamed and deleted. F16: the first use of a branch."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest

from kbcore.storage import head
from kbcore.storage.fs import RealFs
from kbcore.store import branches
from tests.support.crowd import aftermath
from tests.support.crowd.crowd import WAIT_S, Crowd, Member, fast_place, until
from tests.support.crowd.crowd_git import make_lines
from tests.support.crowd.crowd_jobs import pair
from tests.support.crowd.whereabouts import Stores, judge_answers, lasting, removed_too_early, stays
from tests.support.effort.scale import SEED, tries
from tests.support.processes.lines import Message
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import git

SHARED = ("main", "one", "two")
"""Branches that every worktree goes to."""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with fast_place(tmp_path) as place:
        made = Project(place / "a project", fs=RealFs())
        yield made
        made.close()


def worktrees_on(project: Project, branches: list[str]) -> list[Path]:
    """Return a worktree for each branch, the first of which is that of the repository itself."""
    folders = [project.root, *(project.root.parent / f"tree {number}" for number in range(1, len(branches)))]
    git(project.root, "switch", "--quiet", branches[0])
    for folder, branch in zip(folders[1:], branches[1:], strict=True):
        git(project.root, "worktree", "add", "--quiet", "--force", folder, branch)
    return folders


def run(crowd: Crowd, movers: list[Member], writers: list[list[Member]], root: Path) -> tuple[list, list, list, list]:
    """Let all move and write until the movers are done; return moves, their last branches, answers and removals."""
    collector = crowd.member("crowd_git:collecting", root=str(root))
    moves: list[list[Message]] = [[] for _ in movers]
    answers: list[list[Message]] = [[] for _ in writers]
    removals: list[Message] = []

    def is_over() -> bool:
        for number, member in enumerate(movers):
            moves[number] += member.news()
        for number, members in enumerate(writers):
            answers[number] += [one for member in members for one in member.news()]
        removals.extend(collector.news())
        return all(one and "moved" in one[-1] for one in moves)

    until(is_over, movers, wait_s=10 * WAIT_S)
    for number, members in enumerate(writers):
        answers[number] += [one for member in members for one in member.dismissed()]
    removals += collector.dismissed()
    own = [one.pop()["own"] for one in moves]
    for member in movers:
        member.dismissed()
    return moves, own, answers, removals


def troubles(said: Iterable[Message]) -> list[str]:
    """Return what went wrong for those who moved and for the collector, in words.

    A collector may give up for now, with nothing removed, where branches are renamed without a pause: but not always.
    """
    reported = [*said]
    given_up = [one for one in reported if one.get("refused") == "git_unusable" and one["applied"] == "no"]
    wrong = [f"{one}" for one in reported if ("trouble" in one or "refused" in one) and one not in given_up]
    rounds = sum(one.get("rounds", 0) for one in reported)
    return wrong + ([f"the collector gave up {len(given_up)} times of {rounds}"] if len(given_up) >= rounds else [])


@pytest.mark.sliced
@pytest.mark.fault("F15")
def test_worktrees_that_move_about_keep_every_write_each_on_its_branch(crowd: Crowd, project: Project, tally) -> None:
    count, steps = tries(2, 3), tries(6, 170, 700)
    homes = [f"own{number}" for number in range(count)]
    make_lines(project.root, [*SHARED, *homes])
    git(project.root, "switch", "--quiet", "main")
    project.sync()
    folders = worktrees_on(project, homes)
    movers, writers = [], []
    for number, (folder, home) in enumerate(zip(folders, homes, strict=True)):
        given = {"worktree": str(folder), "seed": SEED + number}
        movers.append(
            crowd.member("crowd_git:moving", home=home, others=SHARED, steps=steps, name=str(number), **given)
        )
        writers.append([crowd.member("crowd_git:following", name=f"{number}{word}", **given) for word in "ab"])
    moves, own, answers, removals = run(crowd, movers, writers, project.root)
    of = [stays(one, home) for one, home in zip(moves, homes, strict=True)]
    wrong = troubles((*chain(*moves), *removals))
    for said, where in zip(answers, of, strict=True):
        wrong += judge_answers(said, where)
        tally.tried(len(said))
    gone = [one for one in removals if "removed" in one]
    wrong += [
        *removed_too_early(gone, [*chain(*moves)], of, SHARED),
        *lasting(project, [*SHARED, *own], [*chain(*answers)]),
    ]
    wrong += Stores(project).wrong([*chain(*answers)])
    for what in wrong:
        tally.violated("the end", what)
    tally.tried(sum(map(len, moves)))
    tally.done(at_least=count * steps)


@pytest.mark.sliced
@pytest.mark.fault("F15")
def test_a_branch_that_two_worktrees_have_out_is_renamed_and_keeps_every_write(
    crowd: Crowd, project: Project, tally
) -> None:
    steps = tries(3, 60, 500)
    make_lines(project.root, [*SHARED, "both"])
    git(project.root, "switch", "--quiet", "main")
    project.sync()
    folders = worktrees_on(project, ["both", "both"])
    mover = crowd.member("crowd_git:renaming", worktree=str(folders[0]), home="both", steps=steps, seed=SEED)
    writers = [
        [
            crowd.member("crowd_git:following", worktree=str(folder), name=f"{number}{word}", seed=number)
            for word in "ab"
        ]
        for number, folder in enumerate(folders)
    ]
    [moves], own, answers, removals = run(crowd, [mover], writers, project.root)
    of = stays(moves, "both")
    said = [*chain(*answers)]
    wrong = troubles((*moves, *removals))
    wrong += [*judge_answers(said, of), *lasting(project, [*SHARED, *own], said), *Stores(project).wrong(said)]
    for what in wrong:
        tally.violated("the end", what)
    tally.tried(len(said) + len(moves))
    tally.done(at_least=steps)


@pytest.mark.fault("F15")
def test_a_write_that_waited_while_head_moved_does_not_go_to_the_former_branch(
    crowd: Crowd, project: Project, tally
) -> None:
    rounds, root = tries(2, 50, 400), str(project.root)
    make_lines(project.root, ["main", "one"])
    project.apply(branch="main", **pair("pair-main"))
    project.apply(branch="one", **pair("pair-one"))
    writer = crowd.member("crowd_jobs:writing", root=root)
    refused, moves = 0, ["main", "one"]
    for turn in range(rounds):
        new, old = moves[turn % 2], moves[(turn + 1) % 2]
        holder = crowd.member("crowd_jobs:holding", path=str(stores_at(project.root) / old / "lock"), how="holds")
        holder.heard()
        writer.send(pairs=[f"pair-{turn}"])
        time.sleep(0.02)
        git(project.root, "switch", "--quiet", new)
        holder.send(leave=True)
        answer = writer.heard()
        writer.heard()
        holder.heard()
        holder.dismissed()
        tally.tried()
        refused += answer.get("refused") == "branch_moved"
        if answer.get("refused", "branch_moved") != "branch_moved" or answer.get("branch", new) != new:
            tally.violated(turn, answer)
    writer.dismissed()
    if not refused:
        tally.violated("all", "no write came to wait")
    tally.done(at_least=rounds)


class Users:
    """Members that use branches at the same moment; one that was killed is replaced."""

    def __init__(self, crowd: Crowd, project: Project, count: int) -> None:
        self.crowd = crowd
        self.root = str(project.root)
        self.members = [self._new() for _ in range(count)]
        self.calls = 30
        self.wrong: list[str] = []

    def _new(self) -> Member:
        return self.crowd.member("crowd_jobs:first_using", root=self.root)

    def use(self, branch: str, dying: dict[int, int]) -> dict[str, int]:
        """Let all write to a branch, and return what was acknowledged; some die at a call of their own."""
        at_s = time.monotonic() + 0.003
        for number, member in enumerate(self.members):
            order = {"die_at": dying[number]} if number in dying else {}
            member.send(branch=branch, pair=f"pair-{branch}-{number}", at_s=at_s, **order)
        acked = {}
        for number, member in enumerate(self.members):
            answer, after = member.receive(WAIT_S), member.receive(WAIT_S)
            if answer is not None and "seq" in answer:
                acked[answer["key"]] = answer["seq"]
            elif answer is not None or number not in dying:
                self.wrong.append(f"{branch}: {answer}")
            if after is None:
                member.ended()
                self.members[number] = self._new()
            else:
                self.calls = max(self.calls, after["calls"])
        return acked


def of_copy(place: Path, sums: dict[int, str], acked: dict[str, int]) -> Iterator[str]:
    """Yield what is wrong with a store that many used first: it is a copy of one head of main, and has their writes."""
    origin = head.read(RealFs(), place).origin
    copied = {one.seq: one.sum for one in aftermath.records(place) if origin and one.seq <= origin.seq}
    if origin is None or origin.branch != "main" or not copied or not copied.items() <= sums.items():
        yield f"{place.name} is a copy of {origin}"
    yield from (f"{place.name}: {what}" for what in aftermath.unsound(place, acked))


@pytest.mark.sliced
@pytest.mark.fault("F16")
def test_a_branch_that_many_use_first_at_once_gets_one_whole_copy(crowd: Crowd, project: Project, tally) -> None:
    chosen, count, rounds = random.Random(SEED + 16), tries(4, 8), tries(3, 50, 400)
    root, folder = str(project.root), stores_at(project.root)
    project.apply(**pair("pair-first"))
    source = crowd.member("crowd_jobs:writing", root=root, branch="main")
    source.send(pairs=[f"pair-main-{number}" for number in range(3 * rounds)])
    watcher, users = crowd.member("crowd_jobs:watching", folder=str(folder)), Users(crowd, project, count)
    acked = {}
    for turn in range(rounds):
        git(project.root, "branch", f"new{turn}")
        dying = {chosen.randrange(count): chosen.randrange(users.calls)} if turn % 2 else {}
        acked[f"new{turn}"] = users.use(f"new{turn}", dying)
        tally.tried(count)
    wrong = users.wrong
    while "done" not in (answer := source.heard()):
        wrong += [f"main: {answer}"] if "refused" in answer else []
    said = [message for member in (watcher, source, *users.members) for message in member.dismissed()]
    wrong += [message["violated"] for message in said if "violated" in message]
    sums = {one.seq: one.sum for one in aftermath.records(folder / "main")}
    for branch, keys in acked.items():
        wrong += of_copy(folder / branch, sums, keys)
    branches.collect(project.workspace())
    wrong += [f"{one.name} was left" for one in folder.iterdir() if one.name.startswith(".tmp-")]
    for what in wrong:
        tally.violated("the end", what)
    tally.done(at_least=count * rounds)
