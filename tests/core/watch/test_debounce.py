"""All that was noticed is looked at: not before its time, and never much later."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.watch.debounce import (
    DOUBT_S,
    FLOOD,
    FLOOD_LONGEST_S,
    FLOOD_QUIET_S,
    LONGEST_S,
    QUIET_S,
    STREAM_LONGEST_S,
    STREAM_S,
    Debouncer,
    PendingWork,
)
from tests.support.generators.histories import laws

STREAM_QUIET_S = 16 * QUIET_S
"""The longest that the end of a burst within a stream is waited for."""
STEP_S = 0.004
"""The interval at which the law looks at what is due."""

_path = st.sampled_from(["a", "b", "c"])
_happening = st.one_of(
    st.tuples(st.just("notice"), _path),
    st.tuples(st.just("gone"), _path),
    st.tuples(st.just("there"), _path),
    st.tuples(st.just("all"), st.just("")),
    st.tuples(st.just("fail"), st.just("")),
    st.tuples(st.just("end_pause"), st.just("")),
)
happenings = st.lists(st.tuples(st.integers(0, 60), _happening), max_size=25)


def never(_: str) -> bool:
    return False


@laws(200)
@given(happenings)
def test_nothing_noticed_is_forgotten_and_nothing_waits_for_long(happened: list[tuple[int, tuple[str, str]]]) -> None:
    debouncer, gone, owed = Debouncer(), set[str](), dict[str, float]()
    whole_since, pause_until, fails, at = None, 0.0, 0, 0.0
    for steps, (what, path) in [*happened, (400, ("end", ""))]:
        for _ in range(steps):
            at += STEP_S
            work = debouncer.due(at, gone.__contains__)
            if work and fails:
                fails -= 1
                debouncer.put_back(work, at, 0.1)
                pause_until = at + 0.1
            elif work:
                assert work.since_s <= at
                owed = (
                    {} if work.paths is None else {one: since for one, since in owed.items() if one not in work.paths}
                )
                whole_since = None if work.paths is None else whole_since
            if at > pause_until + STREAM_LONGEST_S + DOUBT_S:
                assert all(at - since <= STREAM_LONGEST_S + DOUBT_S + 0.1 + 2 * STEP_S for since in owed.values())
        if what in {"notice", "gone", "there"}:
            (gone.add if what == "gone" else gone.discard)(path)
            debouncer.add([path], at)
            owed.setdefault(path, at)
        elif what == "all":
            debouncer.add_all(at)
            whole_since = at if whole_since is None else whole_since
        fails += what == "fail"
        if what == "end_pause":
            debouncer.end_pause()
    if not fails:
        assert not owed
        assert whole_since is None
        assert debouncer.wait_s(at) is None


@laws(100)
@given(st.lists(st.floats(0, 0.3), min_size=1, max_size=40), st.booleans())
def test_a_path_is_due_in_time_whatever_else_goes_on(pauses: list[float], is_gone: bool) -> None:
    debouncer, at, end = Debouncer(), 0.0, 0.0
    debouncer.add(["it"], at)
    for number, pause in enumerate(pauses):
        while at < end + pause:
            at += STEP_S
            work = debouncer.due(at, lambda path: is_gone and path == "it")
            if work and "it" in (work.paths or ()):
                assert at <= LONGEST_S + DOUBT_S + 2 * STEP_S
                return
        end = at
        debouncer.add([f"other {number}"], at)
    assert at <= LONGEST_S + DOUBT_S + 2 * STEP_S


def test_a_burst_is_looked_at_when_it_is_over_and_one_that_does_not_end_all_the_same() -> None:
    debouncer = Debouncer()
    debouncer.add(["b", "a"], 1.0)
    assert debouncer.due(1.0, never) is None
    debouncer.add(["b"], 1.0 + QUIET_S / 2)
    assert debouncer.due(1.0 + QUIET_S, never) is None
    assert debouncer.due(1.0 + 2 * QUIET_S, never) == PendingWork(("a", "b"), 1.0)
    assert debouncer.due(5.0, never) is None
    assert debouncer.wait_s(5.0) is None
    at = 6.0
    while at < 6.0 + LONGEST_S:
        debouncer.add(["c"], at)
        assert debouncer.due(at, never) is None
        at += QUIET_S / 2
    assert debouncer.due(at, never) == PendingWork(("c",), 6.0)


def test_a_file_is_gone_when_it_was_seen_gone_for_a_moment_however_long_ago_it_was_noticed() -> None:
    debouncer = Debouncer()
    debouncer.add(["a", "b"], 1.0)
    late = 1.0 + 2 * DOUBT_S
    assert debouncer.due(late, lambda path: path == "a") == PendingWork(("b",), 1.0, doubt=("a",))
    assert debouncer.due(late + DOUBT_S / 2, lambda _: True) is None
    assert debouncer.due(late + DOUBT_S / 2, never) == PendingWork(("a",), 1.0)
    debouncer.add(["a"], 3.0)
    assert debouncer.due(3.1, lambda _: True) is None
    assert debouncer.due(3.2 + DOUBT_S, lambda _: True) == PendingWork(("a",), 3.0, believed=("a",))


def test_a_look_at_everything_waits_for_files_that_are_being_saved_and_not_for_ever() -> None:
    debouncer = Debouncer()
    debouncer.add(["a"], 1.0)
    debouncer.add_all(1.0)
    assert debouncer.due(1.0 + QUIET_S, lambda _: True) is None
    assert debouncer.due(1.0 + 2 * QUIET_S, never) == PendingWork(None, 1.0)
    at = 2.0
    debouncer.add_all(at)
    while at < 2.0 + FLOOD_LONGEST_S:
        debouncer.add([f"saving {at}"], at)
        assert debouncer.due(at, lambda path: path != "x") is None
        at += DOUBT_S
    work = debouncer.due(at, lambda path: path != "saving 2.0")
    assert work
    assert (work.paths, work.since_s) == (None, 2.0)
    assert "saving 2.15" in work.believed
    assert "saving 2.0" not in work.believed


def test_a_flood_is_one_look_at_everything_once_it_has_passed() -> None:
    debouncer = Debouncer()
    debouncer.add((str(number) for number in range(FLOOD - 1)), 1.0)
    debouncer.add(["last"], 1.0 + QUIET_S / 2)
    assert debouncer.due(1.0 + 2 * QUIET_S, never) is None
    assert debouncer.due(1.0 + 2 * FLOOD_QUIET_S, lambda _: True) == PendingWork(None, 1.0)
    assert debouncer.wait_s(9.0) is None


def test_what_could_not_be_done_keeps_its_age_and_a_hurry_ends_the_pause() -> None:
    debouncer = Debouncer()
    debouncer.add(["a"], 1.0)
    work = debouncer.due(2.0, never)
    assert work
    debouncer.put_back(work, 2.0, pause_s=1.0)
    debouncer.add(["a"], 2.1)
    assert debouncer.due(2.5, never) is None
    assert debouncer.wait_s(2.5) == 0.5
    debouncer.end_pause()
    assert debouncer.due(2.5, never) == PendingWork(("a",), 1.0)
    debouncer.put_back(PendingWork((), 1.0), 2.5, pause_s=0.0)
    assert debouncer.due(2.5, never) == PendingWork(None, 1.0)
    debouncer.put_back(PendingWork(None, 0.0), 3.0, pause_s=0.0)
    debouncer.add_all(3.0)
    assert debouncer.due(3.1, never) == PendingWork(None, 0.0)


def test_what_was_found_gone_is_looked_at_again_when_it_may_be_believed_or_is_noticed() -> None:
    debouncer = Debouncer()
    debouncer.hold(["a", "b"], 1.0, 2.0)
    debouncer.hold(["a"], 1.0, 2.0 + DOUBT_S / 2)
    debouncer.add(["b"], 2.1)
    assert debouncer.due(2.1 + QUIET_S, never) == PendingWork(("b",), 1.0, doubt=("a",))
    assert debouncer.due(2.01 + DOUBT_S, never) == PendingWork(("a",), 1.0, believed=("a",))
    debouncer.hold([str(number) for number in range(FLOOD)], 3.0, 3.0)
    assert debouncer.due(3.0 + DOUBT_S / 2, never) is None
    work = debouncer.due(3.01 + DOUBT_S, never)
    assert work
    assert (work.paths, len(work.believed)) == (None, FLOOD)


def test_settings_that_are_gone_keep_everything_waiting_until_that_is_believed() -> None:
    debouncer = Debouncer()
    debouncer.add(["config"], 1.0, are_settings=True)
    debouncer.add(["a"], 1.0)
    assert debouncer.due(1.1, "config".__eq__) is None
    assert debouncer.due(1.12, never) == PendingWork(None, 1.0)
    debouncer.add(["config"], 2.0, are_settings=True)
    debouncer.add((str(number) for number in range(FLOOD)), 2.0)
    assert debouncer.due(2.1, "config".__eq__) is None
    assert debouncer.due(2.11 + DOUBT_S, "config".__eq__) == PendingWork(None, 2.0, believed=("config",))


@pytest.mark.parametrize(("pause_s", "lasts_s", "most"), [(0.002, 8.0, 8), (0.02, 10.0, 9), (0.1, 10.0, 9)])
def test_a_stream_of_saves_is_few_records_and_the_first_is_as_quick_as_ever(
    pause_s: float, lasts_s: float, most: int
) -> None:
    debouncer, at, next_s, taken = Debouncer(), 5.0, 5.0, list[float]()
    while at < 5.0 + lasts_s:
        if at >= next_s:
            debouncer.add([f"{at}"], at)
            next_s += pause_s
        if debouncer.due(at, never):
            taken.append(at)
            at += 0.05  # a sync takes its time
        debouncer.wait_s(at)
        at += 0.001
    assert taken[0] <= 5.0 + LONGEST_S + 0.002
    assert len(taken) <= most, taken
    at = taken[-1] + STREAM_LONGEST_S
    debouncer.add(["last"], at)
    assert debouncer.due(at + STREAM_QUIET_S + 0.001, never)
    debouncer.wait_s(at + STREAM_QUIET_S)
    at += STREAM_QUIET_S + STREAM_S + 0.001
    debouncer.add(["alone"], at)
    assert debouncer.due(at + QUIET_S + 0.001, never) == PendingWork(("alone",), at)


def test_only_what_is_looked_at_soon_counts_as_settling():
    debouncer = Debouncer()
    assert not debouncer.is_settling(0.0)
    debouncer.add(["a"], 0.0)
    assert debouncer.is_settling(QUIET_S / 2)
    assert debouncer.due(QUIET_S, lambda _: True) is None
    assert not debouncer.is_settling(QUIET_S)
    debouncer.add_all(QUIET_S)
    assert debouncer.is_settling(QUIET_S)
    debouncer.put_back(PendingWork(None, 0.0), QUIET_S, 1.0)
    assert not debouncer.is_settling(2 * QUIET_S)
    assert debouncer.is_settling(QUIET_S + 1.0)
