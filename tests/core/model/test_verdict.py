"""The verdict of a test: when a run is another verdict, since when a test fails, and what of a message is kept."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.model.verdict import (
    MAX_MESSAGE_CHARS,
    OUTCOMES,
    RUN,
    VERDICT,
    Verdict,
    next_verdict,
    recorded_message,
    verdict_of,
)

TIMES = st.integers(1, 28).map(lambda day: f"2026-01-{day:02}T12:00:00.000000Z") | st.just("")
RUNS = st.builds(
    Verdict,
    outcome=st.sampled_from(OUTCOMES),
    at=TIMES,
    commit=st.sampled_from(["", "a" * 40, "b" * 40]),
    duration_s=st.none() | st.floats(0, 10),
    message=st.sampled_from(["", "expected 4", "expected 5"]),
)


@given(RUNS, TIMES, st.none() | st.floats(0, 10))
def test_the_same_outcome_and_message_again_is_no_other_verdict_whatever_else_differs(run, at, duration_s):
    old = next_verdict(None, run)
    again = msgspec.structs.replace(run, at=at, duration_s=duration_s, commit="c" * 40)
    assert old is not None
    assert next_verdict(old, again) is None


@given(st.lists(RUNS, max_size=8))
def test_a_test_fails_since_the_first_of_its_last_failing_runs_in_a_row(runs):
    verdict: Verdict | None = None
    first: tuple[str, str] | None = None
    for run in runs:
        following = next_verdict(verdict, run)
        verdict = following or verdict
        if following is not None:
            first = (first or (run.at, run.commit)) if run.is_failing else None
        assert verdict is not None
        assert (verdict.since, verdict.since_commit) == (first or ("", ""))


@given(RUNS)
def test_a_verdict_is_what_its_fields_say(run):
    assert verdict_of(run.fields()) == run


def test_an_earlier_run_is_no_other_verdict():
    late = Verdict("failed", at="2026-01-02T00:00:00.000000Z")
    early = Verdict("passed", at="2026-01-01T00:00:00.000000Z")
    assert next_verdict(late, early) is None
    assert next_verdict(early, late) is not None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({VERDICT: "fine"}, None),
        ({VERDICT: ["failed"]}, None),
        ({VERDICT: "failed"}, Verdict("failed")),
        ({VERDICT: "failed", RUN: "yesterday"}, Verdict("failed")),
        ({VERDICT: "failed", RUN: {"at": 7}}, Verdict("failed")),
    ],
)
def test_fields_that_a_file_states_in_another_form_are_read_as_far_as_they_can_be(fields, expected):
    assert verdict_of(fields) == expected


def test_a_failure_is_said_with_its_commit_and_time():
    verdict = Verdict("failed", since="2026-01-31T12:00:00.123456Z", since_commit="0123456789abcdef")
    assert verdict.failing_since() == "since 0123456789ab of 2026-01-31T12:00:00Z"
    assert Verdict("failed").failing_since() == ""


def test_a_message_is_masked_cut_and_without_addresses():
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    assert token not in recorded_message(f"no access with {token}")
    assert len(recorded_message("x" * 5000)) == MAX_MESSAGE_CHARS
    # The token would be cut, and its beginning not be recognized any more.
    assert "a1B2c3D4e5F6g7H8" not in recorded_message("x" * (MAX_MESSAGE_CHARS - 20) + token)
    assert recorded_message("<Cart at 0x7f3a2b1c>") == recorded_message("<Cart at 0x7f00000000aa>")
