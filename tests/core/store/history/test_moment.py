"""The seq that a text means, and reading of what comes before damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.errors import InvalidQuery, JournalCorrupt
from kbcore.store.history.moment import read_at, seq_at
from kbcore.view.history import state_at
from tests.support.generators.histories import lines_of
from tests.support.repository.stores import SteppingClock, Stored


@pytest.fixture
def made(tmp_path: Path) -> Stored:
    """Five records, the clock going back before the fourth."""
    clock = SteppingClock()
    stored = Stored(tmp_path, clock=clock)
    for number in range(1, 6):
        if number == 4:
            clock.elapsed_s = 0
        stored.put(f"N{number}")
    return stored


def test_a_seq_is_a_seq_and_one_beyond_the_head_is_refused_with_the_head(made: Stored) -> None:
    view = made.view()
    assert [seq_at(view, text) for text in ("0", " 3 ", "5")] == [0, 3, 5]
    with pytest.raises(InvalidQuery) as refused:
        seq_at(view, "6")
    assert "seq 5" in refused.value.hint


def test_a_time_means_the_last_record_written_by_then_even_when_the_clock_went_back(made: Stored) -> None:
    view = made.view()
    times = [row[0] for row in view.rows("select written_at from record order by seq")]
    assert times == sorted(times)
    with pytest.raises(InvalidQuery, match="'2026-11-19' is before the first record") as refused:
        seq_at(view, "2026-11-19")
    assert refused.value.hint.startswith("0 is the branch")
    assert seq_at(view, "2026-11-20") == 5, "a date is its whole day"
    assert seq_at(view, times[0]) == 1
    assert seq_at(view, times[1].replace("Z", "+00:00")) == 2
    assert seq_at(view, times[3]) == seq_at(view, times[2]) == seq_at(view, "2999-01-01") == 5


def test_a_time_that_is_yet_to_come_is_refused_unless_a_record_is_of_it(made: Stored) -> None:
    view = made.view()
    now, last = view.rows("select max(written_at) from record where seq = 2")[0][0], view.basis.at
    assert seq_at(view, last, now=now) == seq_at(view, last, now=last) == 5
    with pytest.raises(InvalidQuery, match="'2999-01-01' is yet to come") as refused:
        seq_at(view, "2999-01-01", now=now)
    assert "seq 5" in refused.value.hint


@pytest.mark.parametrize("text", ["", "-1", "now", "1.5", "2026-13-01", "٣", "9" * 5000])
def test_what_is_neither_a_seq_nor_a_time_is_refused_with_an_example(made: Stored, text: str) -> None:
    with pytest.raises(InvalidQuery) as refused:
        seq_at(made.view(), text)
    assert "2026-01-31" in refused.value.hint


@pytest.mark.sliced
def test_the_good_part_of_a_damaged_journal_is_readable_and_the_rest_is_not(made: Stored) -> None:
    states = [lines_of(state_at(made.view(), seq)) for seq in range(6)]
    segment = made.directory / "journal-0000000001.jsonl"
    lines = segment.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b"N4", b"X4", 1)
    segment.write_bytes(b"".join(lines))
    (made.cache_dir / "view.duckdb").unlink(missing_ok=True)
    store = made.reopen()
    for seq in range(4):
        found = read_at(store, str(seq), lambda view, at: (lines_of(state_at(view, at)), view.seq, at))
        assert found == (states[seq], seq, seq)
    for text in ("4", "5", "2026-11-21"):
        with pytest.raises(JournalCorrupt):
            read_at(store, text, lambda view, at: at)


def test_reading_at_a_seq_of_a_sound_journal_needs_no_second_view(made: Stored) -> None:
    assert read_at(made.store, "2", lambda view, at: (view.seq, at)) == (5, 2)
