"""A sync that gets the changed paths has the result of a sync of everything, whatever changed before."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kbcore.errors import KBError
from kbcore.store.pool import Machine
from kbcore.view.history import state_at
from tests.support.generators.histories import FACTOR, lines_of
from tests.support.generators.trees import IDS, Edits
from tests.support.repository.clocks import StillClock
from tests.support.repository.places import caches_at
from tests.support.repository.project import Project, req

REQS = "docs/requirements"


class Twins:
    """Two repositories with the same files and one time: one gets the changed paths, the other looks at everything."""

    def __init__(self, folder: Path) -> None:
        self.informed, self.looking = (Project(folder / name / "repo") for name in ("informed", "looking"))
        self.both = (self.informed, self.looking)
        for one in self.both:
            one.machine = Machine(one.machine.fs, StillClock(), one.machine.env)

    def edit(self, change: Callable[[Path], Any]) -> None:
        for one in self.both:
            change(one.root)

    def ask(self, kind: str, **request: Any) -> str:
        """Let a client write the same to both; returns the code of the refusal, which is the same too."""
        refusals = []
        for one in self.both:
            try:
                getattr(one, kind)(**request)
                refusals.append("")
            except KBError as error:
                refusals.append(error.code)
        assert refusals[0] == refusals[1]
        return refusals[0]

    def sync(self, *touched: str) -> tuple[bool, bool]:
        """Sync both; returns whether each wrote a record."""
        return self.informed.sync(touched=touched).outcome.applied, self.looking.sync().outcome.applied

    def replayed(self) -> list[bytes]:
        """Return the state as the journal alone gives it."""
        for path in caches_at(self.informed.root).glob("*/view.duckdb"):
            path.unlink()
        fresh = Project(self.informed.root, is_new=False)
        view = fresh.view()
        lines = lines_of(state_at(view, view.seq))
        fresh.close()
        return lines

    def states(self) -> tuple[list[bytes], list[bytes]]:
        reported, looking = (lines_of(state_at(view, view.seq)) for view in (one.view() for one in self.both))
        return reported, looking


@pytest.fixture
def twins(tmp_path: Path) -> Iterator[Twins]:
    made = Twins(tmp_path)
    yield made
    for one in made.both:
        one.close()


def client_of(twins: Twins, dice: random.Random) -> str:
    """Let a client do something that files may wait for."""
    key = dice.choice(IDS)
    if dice.random() < 0.5:
        entity = {"id": key, "type": dice.choice(["req", "test", "adr"]), "title": "C", "status": "open"}
        return f"apply {entity}: {twins.ask('apply', entities=[entity])}"
    return f"delete {key}: {twins.ask('delete', entities=[{'id': key}], cascade=True)}"


@pytest.mark.sliced(1)
@pytest.mark.parametrize("seed", range(3 * FACTOR))
def test_a_sync_needs_to_know_what_changed_and_nothing_else(twins: Twins, seed: int) -> None:
    dice, edits, story = random.Random(seed), Edits(seed), []
    touched: set[str] = set()
    for _ in range(20):
        touched = set()
        for change in [edits.next() for _ in range(dice.randint(0, 4))]:
            touched |= set(change.touched)
            story.append(str(change))
            twins.edit(change.make)
        if dice.random() < 0.2:
            story.append(client_of(twins, dice))
        # What a link leads to is read under the name of the link.
        applied = twins.sync(*sorted({*touched, *edits.links}))
        story.append(f"sync {applied}")
        assert applied[0] == applied[1], "\n".join(story)
        reported, looking = twins.states()
        assert reported == looking, "\n".join(story)
    for repeated in (tuple(sorted(touched)), (), None):
        assert not twins.informed.sync(touched=repeated).outcome.applied, "\n".join(story)
    assert twins.replayed() == twins.states()[0], "\n".join(story)


def test_a_link_to_a_folder_with_the_name_of_a_document_is_passed_over_also_when_it_is_named(project: Project) -> None:
    project.sync({"docs/requirements/1.md": req("REQ-1"), "docs/requirements/deep/2.md": req("REQ-2")})
    (project.root / "docs/requirements/3.md").symlink_to("deep")
    for limits in ({"touched": ("docs/requirements/3.md",)}, {"paths": ("docs/requirements/3.md",)}, {}):
        answer = project.sync(**limits)
        assert (answer.outcome.applied, answer.bad) == (False, 0)
        assert [one.code for _, one in answer.problems] == ["passed_over"]


def test_who_tells_what_changed_hears_of_what_was_read_and_not_of_the_rest(project: Project) -> None:
    folder = "docs/requirements"
    project.sync({f"{folder}/1.md": req("REQ-1", links="[NO-1]"), f"{folder}/2.md": "---\nid: [\n---\n"})
    project.write({f"{folder}/3.md": req("REQ-3", links="[NO-3]")})
    answer = project.sync(touched=(f"{folder}/3.md",))
    assert [(one.from_id, one.target, one.source) for one in answer.unresolved] == [("REQ-3", "NO-3", f"{folder}/3.md")]
    assert (answer.problems, answer.bad) == ((), 0)
    whole = project.sync()
    assert (len(whole.unresolved), whole.bad, len(whole.problems) > 0) == (2, 1, True)


def test_what_is_gone_or_empty_while_files_are_saved_counts_once_it_is_believed(
    project: Project,
) -> None:
    one, two, empty = (f"{REQS}/{name}.md" for name in ("one", "two", "empty"))
    project.sync({one: req("REQ-1"), two: req("REQ-2"), empty: req("REQ-3")})
    for touched in ((one, empty), None):
        left = project.sync({one: None, empty: ""}, touched=touched, believed=())
        assert (left.doubted, left.outcome.applied, left.is_idle) == ((empty, one), False, False)
        project.write({one: req("REQ-1")})
    (project.root / two).rename(project.root / REQS / "moved.md")
    moved = project.sync({}, touched=(two, f"{REQS}/moved.md"), believed=())
    assert (moved.outcome.updated, moved.doubted, moved.problems) == (("REQ-2",), (), ())
    gone = project.sync({one: None}, believed=(REQS,))
    assert (gone.outcome.deleted, gone.doubted, gone.unread) == (("REQ-1",), (), 1)
    settings = '{"extractors": {"markdown": {"paths": {"req": ["specs/**/*.md"]}}}}'
    unwanted = project.sync({".kb/config.json": settings}, believed=())
    assert (unwanted.outcome.deleted, unwanted.doubted) == (("REQ-2", "REQ-3"), ())
