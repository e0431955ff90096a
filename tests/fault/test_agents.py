"""F15 as it is lived: agents over MCP, people with git and ``kb``, hooks that fire, watchers, worktrees that switch."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kbcore.storage.fs import RealFs
from tests.support.crowd.crowd_git import make_lines
from tests.support.crowd.crowd_jobs import pair
from tests.support.crowd.scene import PROGRAMS, Agent, Person, ran, user_env
from tests.support.crowd.whereabouts import Stores, judge_answers, lasting, stays
from tests.support.effort.scale import SEED, tries
from tests.support.processes.cli import run_kb
from tests.support.repository import hooks
from tests.support.repository.project import Project
from tests.support.repository.repos import git, make_repository
from tests.support.repository.watched import Watched

SHARED = ("main", "one", "two")


@pytest.fixture
def project(tmp_path: Path):
    """A repository as ``kb init`` leaves it, with the hooks, and a document on each branch."""
    root = make_repository(tmp_path / "a project")
    assert run_kb(root, "init", env=user_env()).status == 0
    git(root, "add", ".kb")
    git(root, "commit", "--quiet", "-m", "kb")
    made = Project(root, fs=RealFs(), is_new=False)
    yield made
    made.close()


def worktrees_of(project: Project, homes: list[str]) -> list[Path]:
    """Return a worktree for each of these branches, each with a document of its line."""
    with_hooks_off = project.root / ".git/hooks"
    with_hooks_off.rename(project.root / ".git/hooks-off")
    make_lines(project.root, [*SHARED, *homes])
    git(project.root, "switch", "--quiet", homes[0])
    folders = [project.root, *(project.root.parent / f"tree {number}" for number in range(1, len(homes)))]
    for folder, branch in zip(folders[1:], homes[1:], strict=True):
        git(project.root, "worktree", "add", "--quiet", folder, branch)
    (project.root / ".git/hooks-off").rename(with_hooks_off)
    return folders


@pytest.mark.sliced
@pytest.mark.fault("F15")
def test_agents_people_and_hooks_in_three_worktrees_lose_nothing(project: Project, tally) -> None:
    agents_count, trees, steps = tries(1, 8), tries(2, 3), tries(6, 40, 200)
    homes = [f"own{number}" for number in range(trees)]
    folders = worktrees_of(project, homes)
    people = [
        Person(folder, f"p{number}", [home, *SHARED], SEED + number)
        for number, (folder, home) in enumerate(zip(folders, homes, strict=True))
    ]
    with contextlib.ExitStack() as stack, ThreadPoolExecutor(agents_count + trees) as pool:
        for folder in folders[:-1]:  # in the last one watchers come and go
            stack.enter_context(Watched(folder))
        starting = [
            pool.submit(Agent, folders[number % trees], f"a{number}", SEED + number) for number in range(agents_count)
        ]
        agents = [one.result() for one in starting]
        acting = [pool.submit(agent.act, steps, tries(0, 1, 5)) for agent in agents]
        acting += [pool.submit(person.act, tries(1, 8, 60)) for person in people[-tries(1, trees) :]]
        for one in acting:
            one.result()
    of = [stays(person.moves, home) for person, home in zip(people, homes, strict=True)]
    wrong = [what for one in (*agents, *people) for what in one.wrong]
    answers = []
    for number, one in (*enumerate(agents), *enumerate(people)):
        wrong += judge_answers(one.answers, of[number % trees])
        answers += one.answers
        tally.tried(len(one.answers))
    answers = [one for one in answers if one.get("tool") != "kb_delete"]
    wrong += [*lasting(project, [*SHARED, *homes], answers), *Stores(project).wrong(answers)]
    for folder in folders[: tries(1, trees)]:
        done = ran(folder, "kb", "--json", "verify")
        if not json.loads(done.stdout).get("ok"):
            wrong.append(f"kb verify: {done.stdout}")
    for what in wrong:
        tally.violated("the end", what)
    tally.done(at_least=tries(1, 40, 200))


@pytest.mark.sliced
@pytest.mark.fault("F15")
def test_hooks_that_git_runs_in_all_worktrees_at_once_write_each_to_its_branch(project: Project, tally) -> None:
    trees, rounds = tries(2, 3), tries(1, 5, 60)
    homes = [f"own{number}" for number in range(trees)]
    folders = worktrees_of(project, homes)
    # git gives its hooks GIT_INDEX_FILE, and in a linked worktree GIT_DIR as well.
    hook = "#!/bin/sh\nprintf '%s' \"$CROWD_REQUEST\" | kb apply --quiet -\n"
    path = hooks.hook(project.root, "pre-commit", hook.encode())
    assert path.exists()
    assert (PROGRAMS / "kb").exists() or "kb" in user_env()["PATH"]
    answers = []

    def act(number: int, turn: int) -> None:
        branch = [*SHARED, homes[number]][(turn + number) % 4]
        key = f"pair-{number}-{turn}"
        folder = folders[number]
        done = ran(folder, "git", "switch", "--quiet", "--ignore-other-worktrees", branch)
        assert done.returncode == 0, done.stderr
        done = ran(
            folder.parent, "git", "-C", str(folder), "commit", "--quiet", "--allow-empty", "-m", key,
            CROWD_REQUEST=json.dumps(pair(key)),
        )  # fmt: skip
        answers.append({"key": key, "branch": branch, "status": done.returncode, "said": done.stderr})

    with ThreadPoolExecutor(trees) as pool:
        for turn in range(rounds):
            # A slice has only the linked one.
            list(pool.map(act, range(trees)[-tries(1, trees) :], [turn] * trees))
    places = Stores(project).places()
    for one in answers:
        tally.tried(2)
        found = {line for line, _ in places.get(one["key"], set())}
        if one["status"] or found != {one["branch"]}:
            tally.violated(one["key"], f"{one} is in {found}")
    for branch in {one["branch"] for one in answers}:
        if not project.view(branch).nodes([f"DOC-{branch}"]):
            tally.violated(branch, "the hook of the switch did not sync")
    for what in Stores(project).wrong([]):
        tally.violated("the end", what)
    tally.done(at_least=2 * rounds)
