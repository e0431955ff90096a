"""Names inside a branch directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.storage import layout


@given(st.integers(min_value=0, max_value=10**15))
def test_a_number_and_its_file_name_say_the_same(number: int) -> None:
    assert layout.segment_first_seq(layout.segment_name(number)) == number
    assert layout.snapshot_seq(layout.snapshot_name(number)) == number
    assert layout.segment_first_seq(layout.snapshot_name(number)) is None


@pytest.mark.parametrize(
    "name",
    [
        "journal-1.jsonl",
        "journal-00000000001.jsonl",
        "journal--000000001.jsonl",
        "journal-0000000001.jsonl.tmp",
        "../journal-0000000001.jsonl",
        "journal-0000000001.jsonl\n",
        "journal-" + "\u0660" * 9 + "\u0661" + ".jsonl",
        "",
    ],
)
def test_only_the_one_spelling_is_a_segment(name: str) -> None:
    assert layout.segment_first_seq(name) is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("head.json", "head"),
        ("lock", "lock"),
        ("quarantine", "quarantine"),
        ("journal-0000000001.jsonl", "segment"),
        ("snapshot-0000004711.jsonl", "snapshot"),
        ("head.json.tmp", "unfinished"),
        ("snapshot-0000004711.jsonl.tmp", "unfinished"),
        ("journal-0000000001.jsonl.tmp", "unfinished"),
        ("head.json~", "strange"),
        ("lock.tmp", "strange"),
    ],
)
def test_every_name_has_a_kind(name: str, kind: str) -> None:
    assert layout.kind_of(name) == kind


def test_a_file_is_written_beside_its_place() -> None:
    assert layout.tmp_path(Path("/store/head.json")) == Path("/store/head.json.tmp")


@pytest.mark.parametrize(
    ("folder", "branch", "name"),
    [
        ("main", "", "main"),
        ("feature%2fx", "", "feature/x"),
        ("main", "a b", "'a b'"),
        ("backup of a store", "", "BRANCH"),
        ("backup of a store", "main", "main"),
    ],
)
def test_the_command_that_restores_a_store_names_its_branch(folder: str, branch: str, name: str) -> None:
    assert layout.restore_command(Path(folder), branch) == f"`kb restore FILE --only {name} --replace`"
