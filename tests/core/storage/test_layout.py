"""Names inside a branch directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.ids import MAX_DIRECTORY_CHARS, encode_branch
from kbcore.storage import layout


@given(st.integers(min_value=0, max_value=10**15))
def test_a_number_and_its_file_name_say_the_same(number: int) -> None:
    assert layout.segment_first_seq(layout.segment_name(number)) == number
    assert layout.snapshot_seq(layout.snapshot_name(number)) == number
    assert layout.segment_first_seq(layout.snapshot_name(number)) is None


@given(st.integers(min_value=1, max_value=10**9), st.integers(min_value=1, max_value=10**8))
def test_the_name_of_a_file_says_which_redaction_wrote_it(number: int, generation: int) -> None:
    name, other = layout.segment_name(number, generation), layout.snapshot_name(number, generation)
    assert (layout.segment_first_seq(name), layout.snapshot_seq(other)) == (number, number)
    assert {layout.generation_of(one) for one in (name, other)} == {generation}
    assert layout.generation_of(layout.segment_name(number)) == layout.generation_of("head.json") == 0


@pytest.mark.parametrize(
    "name",
    [
        "journal-0000000001-r0.jsonl",
        "journal-0000000001-r01.jsonl",
        "journal-0000000001-r.jsonl",
        "journal-0000000001-1.jsonl",
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


LONG = "a" * (MAX_DIRECTORY_CHARS + 1)


@pytest.mark.parametrize(
    ("directory", "stated", "branch"),
    [
        ("feature%2fx", "", "feature/x"),
        ("feature%2fx", "other", "feature/x"),
        (encode_branch(LONG), LONG, LONG),
        (encode_branch(LONG), "", "BRANCH"),
    ],
)
def test_a_command_names_the_branch_of_a_directory(directory: str, stated: str, branch: str) -> None:
    assert layout.branch_of(Path("stores", directory), stated) == branch
