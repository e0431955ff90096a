"""A large changeset is planned before the branch is locked, and appended only if the head gives the same plan."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore.errors import BranchMoved, InvalidChangeset, KBError, LockTimeout
from kbcore.kip import kml
from kbcore.kip.binding import read
from kbcore.kip.sleep import cycle
from kbcore.kip.sleep.cycle import SleepOptions
from kbcore.kip.syntax import Upserts
from kbcore.model.record import PutNode
from kbcore.model.state import Draft, Stamp
from kbcore.storage import verify
from kbcore.store import apply
from kbcore.store.commit import PLANS_AHEAD
from kbcore.store.history.undo import UndoOptions, revert, rollback
from kbcore.store.write_request import Request
from kbcore.view.history import state_at
from kbcore.view.view import View
from tests.support.effort.scale import tries
from tests.support.generators.histories import lines_of
from tests.support.repository.clocks import StillClock, StoppedClock
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project, req
from tests.support.repository.stores import AUTHOR, Stored, planner


class PlanningClock(StillClock):
    """A clock that lets something happen when planning asks it for the time, before the branch is locked.

    Whatever it measures takes 0.06 s, so that no plan is a quick one.
    """

    def __init__(self, directory: Path) -> None:
        self.seconds = 0.0
        self.lock = directory / "lock"
        self.during: list[Callable[[], object]] = []

    def monotonic_s(self) -> float:
        self.seconds += 0.06
        return self.seconds

    def now(self) -> str:
        if self.during and self._is_free():
            self.during.pop(0)()
        return super().now()

    def _is_free(self) -> bool:
        with self.lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True


class Crossing:
    """A project whose sync is planned, and another process that writes to the same branch meanwhile."""

    def __init__(self, root: Path) -> None:
        self.project = Project(root)
        self.project.machine.clock = self.clock = PlanningClock(stores_at(root) / "main")
        self.other = Project(root, is_new=False)
        self.other.machine.clock = StillClock()
        self.project.write({".kb/config.json": '{"lockWaitSeconds": 0}'})

    def sync(self, files: dict[str, str | None], *meanwhile: Callable[[], object]) -> int:
        """Sync files; one of the others' doings happens after each planning began. Returns how many are left."""
        self.clock.during = [*meanwhile]
        self.project.sync(files)
        left, self.clock.during = len(self.clock.during), []
        return left

    def lines(self) -> list[bytes]:
        view = self.project.view()
        return lines_of(state_at(view, view.seq))

    def close(self) -> None:
        self.project.close()
        self.other.close()


FILES: dict[str, str | None] = {
    "docs/requirements/a.md": req("REQ-A", links="[REQ-B, LATER]"),
    "docs/requirements/b.md": req("REQ-B"),
    "docs/requirements/c.md": req("REQ-C", depends_on="REQ-A"),
}
CHANGED: dict[str, str | None] = {
    "docs/requirements/a.md": req("REQ-A", links="[REQ-B, LATER, OWN-1]"),
    "docs/requirements/b.md": None,
    "docs/requirements/d.md": req("REQ-D", links="[b.md, REQ-C]"),
}
OWN = {"type": "req", "title": "t", "status": "open"}


def begun(root: Path) -> Crossing:
    made = Crossing(root)
    made.project.sync(FILES)
    made.other.apply(
        entities=[{"id": f"OWN-{number}", **OWN} for number in range(4)],
        edges=[{"type": "depends_on", "from": "OWN-3", "to": "REQ-B"}],
    )
    return made


@pytest.fixture
def crossing(tmp_path: Path) -> Iterator[Crossing]:
    made = begun(tmp_path / "repo")
    yield made
    made.close()


def test_others_write_while_a_sync_is_planned_and_it_is_planned_once(crossing: Crossing) -> None:
    others = [lambda: crossing.other.apply(entities=[{"id": "ELSEWHERE", **OWN}]), lambda: pytest.fail("planned again")]
    seq = crossing.project.seq()
    crossing.clock.during = others
    outcome = crossing.project.sync({"docs/requirements/n.md": req("REQ-N")}).outcome
    crossing.clock.during = []
    assert (outcome.seq, outcome.created) == (seq + 2, ("REQ-N",))
    [node] = crossing.project.view().nodes(["REQ-N"])
    assert (node.version, node.created_seq) == (seq + 2, seq + 2)


TOUCHING: dict[str, Callable[[Project], Any]] = {
    "an entity that a file states": lambda other: other.apply(entities=[{"id": "REQ-A", "tags": ["x"]}]),
    "an end of a link that a file states": lambda other: other.apply(entities=[{"id": "LATER", **OWN}]),
    "a link to an entity that goes": lambda other: other.apply(
        edges=[{"type": "depends_on", "from": "OWN-2", "to": "REQ-B"}]
    ),
    "an entity that a file will state": lambda other: other.apply(entities=[{"id": "REQ-D", **OWN}]),
    "what goes and comes again": lambda other: (
        other.delete(entities=[{"id": "OWN-1"}]),
        other.apply(entities=[{"id": "OWN-1", **OWN}]),
    ),
    "a definition": lambda other: other.apply(
        entities=[{"id": "$ConceptType:Thing", "type": "$ConceptType", "name": "Thing", "title": "t"}]
    ),
    "files, by another sync": lambda other: other.sync({"docs/requirements/e.md": req("REQ-E")}),
    "files, by a rollback": lambda other: rollback(other.workspace(), "main", AUTHOR, 0, follows_head=False),
}


@pytest.mark.sliced(3)
@pytest.mark.parametrize("touched", list(TOUCHING))
def test_a_sync_is_planned_again_when_somebody_changes_what_it_read(
    touched: str, crossing: Crossing, tmp_path: Path
) -> None:
    planned = []
    left = crossing.sync(
        CHANGED, lambda: TOUCHING[touched](crossing.other), lambda: planned.append("again"), lambda: None
    )
    assert planned == ["again"]
    assert left <= 1
    after = begun(tmp_path / "after")
    after.project.write(CHANGED)
    TOUCHING[touched](after.other)
    after.project.sync()
    assert crossing.lines() == after.lines()
    after.close()


def test_a_plan_that_somebody_spoils_each_time_is_made_under_the_lock_at_last(crossing: Crossing) -> None:
    spoil = [
        lambda number=number: crossing.other.apply(entities=[{"id": "REQ-A", "owner": f"o{number}"}])
        for number in range(PLANS_AHEAD)
    ]
    assert crossing.sync(CHANGED, *spoil) == 0
    [node] = crossing.project.view().nodes(["REQ-A"])
    assert node.fields["owner"] == f"o{PLANS_AHEAD - 1}"
    assert "OWN-1" in {to_id for _, _, to_id, _ in crossing.project.edges("REQ-A")}


KEYS = ["REQ-A", "REQ-B", "REQ-C", "REQ-D", "LATER", "OWN-0", "OWN-1", "OWN-2", "OWN-3", "NEW"]
key = st.sampled_from(KEYS)
edge = st.tuples(key, key).filter(lambda ends: ends[0] != ends[1])
doing = st.one_of(
    st.builds(
        lambda one, tag: {"entities": [{"id": one, **OWN, "tags": [tag]}]},
        key.filter(lambda one: one[:3] != "REQ"),
        st.sampled_from("xy"),
    ),
    st.builds(lambda ends: {"edges": [{"type": "depends_on", "from": ends[0], "to": ends[1]}]}, edge),
    st.builds(lambda one: {"delete": one}, key),
    st.builds(lambda one: {"entities": [{"id": one, "owner": "somebody"}]}, key),
)


def carry_out(other: Project, done: list[dict[str, Any]]) -> None:
    for one in done:
        with contextlib.suppress(KBError):  # what is refused here is refused there too
            if "delete" in one:
                other.delete(entities=[{"id": one["delete"]}], cascade=True)
            else:
                other.apply(**one)


@pytest.mark.sliced
@settings(max_examples=tries(6, 100))
@given(st.lists(doing, max_size=4))
def test_a_crossed_sync_leaves_what_the_same_sync_leaves_after_the_others(
    tmp_path_factory: Any, done: list[dict[str, Any]]
) -> None:
    root = tmp_path_factory.mktemp("crossed")
    crossed, after = begun(root / "crossed"), begun(root / "after")
    crossed.sync(CHANGED, lambda: carry_out(crossed.other, done))
    carry_out(after.other, done)
    after.project.sync(CHANGED)
    assert crossed.lines() == after.lines()
    directory = crossed.project.workspace().folders.directory_of("main")
    assert verify.prove(crossed.project.machine.fs, directory).is_sound
    fresh = Project(crossed.project.root, is_new=False)
    view = fresh.view()
    assert lines_of(state_at(view, view.seq)) == crossed.lines(), "what was taken in is not what a replay gives"
    for made in (crossed, after, fresh):
        made.close()


def test_others_write_while_a_revert_is_planned_and_it_is_planned_once(crossing: Crossing) -> None:
    crossing.project.apply(entities=[{"id": "OWN-0", "owner": "o"}])
    seq = crossing.project.seq()
    again: list[int] = []
    crossing.clock.during = [
        lambda: crossing.other.apply(entities=[{"id": "ELSEWHERE", **OWN}]),
        lambda: again.append(1),
        lambda: again.append(2),
    ]
    outcome = revert(crossing.project.workspace(), "main", AUTHOR, [seq], follows_head=False)
    # The clock is asked once more, under the lock, for the time of the record.
    assert (outcome.seq, outcome.updated, again) == (seq + 2, ("OWN-0",), [])
    [node] = crossing.project.view().nodes(["OWN-0"])
    assert (node.version, "owner" in node.fields) == (seq + 2, False)


def test_a_rollback_is_planned_again_after_every_record_of_others(crossing: Crossing) -> None:
    seq = crossing.project.seq()
    crossing.clock.during = [lambda: crossing.other.apply(entities=[{"id": "ELSEWHERE", **OWN}])]
    rollback(crossing.project.workspace(), "main", AUTHOR, seq, follows_head=False)
    assert not crossing.project.view().nodes(["ELSEWHERE"])


def undone(made: Crossing, seqs: list[int], *, force: bool) -> tuple[str, object]:
    """Revert records; return the code of the refusal, or what was changed."""
    try:
        done = revert(made.project.workspace(), "main", AUTHOR, seqs, UndoOptions(force=force), follows_head=False)
    except KBError as error:
        return error.code, error.data.get("conflicts")
    return "", (done.created, done.updated, done.deleted, done.edges, done.warnings)


@pytest.mark.sliced
@settings(max_examples=tries(6, 100))
@given(st.lists(doing, min_size=1, max_size=3), st.lists(doing, max_size=3), st.booleans(), st.booleans())
def test_a_crossed_revert_leaves_what_the_same_revert_leaves_after_the_others(
    tmp_path_factory: Any, own: list[dict[str, Any]], done: list[dict[str, Any]], force: bool, is_file: bool
) -> None:
    root = tmp_path_factory.mktemp("crossed")
    crossed, after = begun(root / "crossed"), begun(root / "after")
    for made in (crossed, after):
        carry_out(made.other, own)
    seqs = [1] if is_file else list(range(3, crossed.project.seq() + 1)) or [2]
    crossed.clock.during = [lambda: carry_out(crossed.other, done)]
    first = undone(crossed, seqs, force=force)
    crossed.clock.during = []
    carry_out(after.other, done)
    if not first[0]:  # a refusal is that of the state before the others, and writes nothing
        assert first == undone(after, seqs, force=force)
    assert crossed.lines() == after.lines()
    fresh = Project(crossed.project.root, is_new=False)
    view = fresh.view()
    assert lines_of(state_at(view, view.seq)) == crossed.lines(), "what was taken in is not what a replay gives"
    for made in (crossed, after, fresh):
        made.close()


def test_a_large_changeset_of_a_client_is_planned_ahead_too(crossing: Crossing) -> None:
    many = [{"id": f"M-{number}", **OWN} for number in range(apply.MANY_ITEMS + 1)]
    crossing.clock.during = [lambda: crossing.other.apply(entities=[{"id": "ELSEWHERE", **OWN}])]
    outcome = crossing.project.apply(entities=many, changeset_id="many")
    assert (len(outcome.created), crossing.clock.during) == (len(many), [])
    again = crossing.project.apply(entities=many, changeset_id="many")
    assert (again.duplicate, again.seq) == (True, outcome.seq)


def test_a_small_changeset_is_planned_under_the_lock(tmp_path: Path) -> None:
    made = Stored(tmp_path)
    with pytest.raises(InvalidChangeset, match="planned"):
        made.store.commit(AUTHOR, Request(), refusing(made), branch="main")
    made.close()


def refusing(made: Stored) -> Callable[[View, Stamp], Draft]:
    def plan(view: View, stamp: Stamp) -> Draft:
        raise InvalidChangeset("planned")

    return plan


def test_an_id_that_another_took_while_it_was_planned_has_its_answer(tmp_path: Path) -> None:
    clock = PlanningClock(tmp_path / "branches/main")
    made = Stored(tmp_path, clock=clock)
    other = Stored(tmp_path, clock=StillClock())
    ops = [PutNode(id="A", base=0, set={"type": "req", "title": "A"})]
    clock.during = [lambda: other.commit(ops, changeset_id="one")]
    answer = made.commit(ops, changeset_id="one", plans_ahead=True)
    assert (answer.duplicate, answer.seq, made.view().seq) == (True, 1, 1)
    made.close()
    other.close()


def test_a_plan_of_which_nobody_can_tell_what_it_read_is_made_again(tmp_path: Path) -> None:
    clock = PlanningClock(tmp_path / "branches/main")
    made, other = Stored(tmp_path, clock=clock), Stored(tmp_path, clock=StillClock())
    seen = []

    def plan(view: View, stamp: Stamp) -> Draft:
        seen.append(view.seq)
        return planner([PutNode(id="A", base=0, set={"type": "req", "title": "A"})])(view, stamp)

    clock.during = [lambda: other.put("ELSEWHERE")]
    made.store.commit(AUTHOR, Request(lock_wait_s=0, plans_ahead=True), plan, branch="main")
    assert seen == [0, 1]
    made.close()
    other.close()


def test_a_quick_plan_that_cannot_be_used_is_made_under_the_lock_at_once(tmp_path: Path) -> None:
    made, other = Stored(tmp_path, clock=StoppedClock()), Stored(tmp_path)
    seen: list[int] = []

    def plan(view: View, stamp: Stamp) -> Draft:
        seen.append(view.seq)
        if len(seen) == 1:
            other.put("ELSEWHERE")
        else:
            with pytest.raises(LockTimeout):
                other.put("BLOCKED", lock_wait_s=0)
        return planner([PutNode(id="A", base=0, set={"type": "req", "title": "A"})])(view, stamp)

    made.store.commit(AUTHOR, Request(plans_ahead=True), plan, branch="main")
    assert seen == [0, 1]
    made.close()
    other.close()


def test_the_guard_runs_under_the_lock_after_the_plan_was_looked_at_again(tmp_path: Path) -> None:
    made = Stored(tmp_path)

    def guard() -> None:
        raise BranchMoved("moved")

    with pytest.raises(BranchMoved):
        made.store.commit(
            AUTHOR,
            Request(plans_ahead=True),
            planner([PutNode(id="A", base=0, set={"type": "req"})]),
            guard=guard,
            branch="main",
        )
    assert made.view().seq == 0
    made.close()


def test_a_kip_command_is_planned_before_the_branch_is_locked_and_again_when_anything_changed(
    crossing: Crossing,
) -> None:
    seq = crossing.project.seq()
    command = read('UPSERT { CONCEPT ?a { {type: "Person", name: "Ann"} SET ATTRIBUTES {person_class: "Human"} } }')
    crossing.clock.during = [lambda: crossing.other.apply(entities=[{"id": "ELSEWHERE", **OWN}])]
    assert isinstance(command, Upserts)
    written = kml.execute(crossing.project.workspace(), "main", AUTHOR, command, follows_head=False)
    assert crossing.clock.during == [], "nobody could write while it was planned"
    assert written.outcome.seq == seq + 2
    [node] = crossing.project.view().nodes(["Person:Ann"])
    assert node.version == seq + 2


def test_the_phases_of_a_sleep_cycle_are_planned_before_the_branch_is_locked(crossing: Crossing) -> None:
    """A cycle itself asks for the time twice; each phase asks once before it is planned."""
    seq = crossing.project.seq()
    others = [lambda at=at: crossing.other.apply(entities=[{"id": f"ELSEWHERE-{at}", **OWN}]) for at in range(6)]
    crossing.clock.during = [*others]
    cycle.run(crossing.project.workspace(), "main", AUTHOR, SleepOptions(force=True), follows_head=False)
    assert crossing.clock.during == []
    assert crossing.project.seq() >= seq + len(others)
