"""Points of the history in the words of people: seqs, times, branches and commits."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.errors import InvalidQuery
from kbcore.store.history.moment import meant, seq_at
from kbcore.store.history.when import When, point_in, range_of, when_of
from kbcore.store.workspace import Workspace
from tests.support.repository.project import Project, req
from tests.support.repository.repos import git

NOW = "2026-03-30T09:30:00.000000Z"
"""A Monday; in Berlin the clocks were put forward on the day before."""


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def span(text: str, *, is_local: bool = False) -> tuple[str, str]:
    found = when_of(text, now=NOW, is_local=is_local)
    assert found is not None, text
    assert found.seq is None
    return found.begin, found.end


def day(text: str) -> tuple[str, str]:
    begin = dt.datetime.fromisoformat(text)
    return tuple(f"{one.isoformat()}.000000Z" for one in (begin, begin + dt.timedelta(days=1)))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-01-31", day("2026-01-31")),
        ("today", day("2026-03-30")),
        ("Yesterday", day("2026-03-29")),
        ("monday", day("2026-03-30")),
        ("last monday", day("2026-03-23")),
        ("tuesday", day("2026-03-24")),
        ("sunday", day("2026-03-29")),
        ("9:15", ("2026-03-30T09:15:00.000000Z", "2026-03-30T09:16:00.000000Z")),
        ("11:30", ("2026-03-29T11:30:00.000000Z", "2026-03-29T11:31:00.000000Z")),
        ("09:15:30", ("2026-03-30T09:15:30.000000Z", "2026-03-30T09:15:31.000000Z")),
        ("noon", ("2026-03-29T12:00:00.000000Z", "2026-03-29T12:01:00.000000Z")),
        ("midnight", ("2026-03-30T00:00:00.000000Z", "2026-03-30T00:01:00.000000Z")),
        ("last friday", day("2026-03-27")),
        ("2026-01-31 12:00", ("2026-01-31T12:00:00.000000Z", "2026-01-31T12:01:00.000000Z")),
        ("2026-01-31 12:00:05", ("2026-01-31T12:00:05.000000Z", "2026-01-31T12:00:06.000000Z")),
        ("2026-01-31 12:00:05 +0100", ("2026-01-31T11:00:05.000000Z", "2026-01-31T11:00:06.000000Z")),
        ("now", (NOW, "2026-03-30T09:30:00.000001Z")),
        ("2 hours ago", ("2026-03-30T07:30:00.000000Z", "2026-03-30T07:30:00.000001Z")),
        ("2.hours.ago", ("2026-03-30T07:30:00.000000Z", "2026-03-30T07:30:00.000001Z")),
        ("an hour ago", ("2026-03-30T08:30:00.000000Z", "2026-03-30T08:30:00.000001Z")),
        ("3 days ago", ("2026-03-27T09:30:00.000000Z", "2026-03-27T09:30:00.000001Z")),
        ("last week", ("2026-03-23T09:30:00.000000Z", "2026-03-23T09:30:00.000001Z")),
        ("1 month ago", ("2026-02-28T09:30:00.000000Z", "2026-02-28T09:30:00.000001Z")),
        ("a year ago", ("2025-03-30T09:30:00.000000Z", "2025-03-30T09:30:00.000001Z")),
        ("1h", ("2026-03-30T08:30:00.000000Z", "2026-03-30T08:30:00.000001Z")),
        ("90 min", ("2026-03-30T08:00:00.000000Z", "2026-03-30T08:00:00.000001Z")),
        ("30m", ("2026-03-30T09:00:00.000000Z", "2026-03-30T09:00:00.000001Z")),
        ("2 days", ("2026-03-28T09:30:00.000000Z", "2026-03-28T09:30:00.000001Z")),
        ("last hour", ("2026-03-30T08:30:00.000000Z", "2026-03-30T08:30:00.000001Z")),
        ("last 24 hours", ("2026-03-29T09:30:00.000000Z", "2026-03-29T09:30:00.000001Z")),
        ("-1h", ("2026-03-30T08:30:00.000000Z", "2026-03-30T08:30:00.000001Z")),
        ("1234d ago", ("2022-11-12T09:30:00.000000Z", "2022-11-12T09:30:00.000001Z")),
    ],
)
def test_a_time_is_the_span_that_its_words_name(text: str, wanted: tuple[str, str]) -> None:
    assert span(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-01-31", ("2026-01-30T23:00:00.000000Z", "2026-01-31T23:00:00.000000Z")),
        ("2026-03-29", ("2026-03-28T23:00:00.000000Z", "2026-03-29T22:00:00.000000Z")),
        ("yesterday", ("2026-03-28T23:00:00.000000Z", "2026-03-29T22:00:00.000000Z")),
        ("2026-07-01 12:00", ("2026-07-01T10:00:00.000000Z", "2026-07-01T10:01:00.000000Z")),
        ("2026-07-01T12:00Z", ("2026-07-01T12:00:00.000000Z", "2026-07-01T12:01:00.000000Z")),
        ("2 days ago", ("2026-03-28T10:30:00.000000Z", "2026-03-28T10:30:00.000001Z")),
        ("48 hours ago", ("2026-03-28T09:30:00.000000Z", "2026-03-28T09:30:00.000001Z")),
    ],
)
@pytest.mark.usefixtures("berlin")
def test_a_local_time_without_a_zone_is_one_of_the_machine(text: str, wanted: tuple[str, str]) -> None:
    assert span(text, is_local=True) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "-1",
        "1.5",
        "24:00",
        "11:60",
        "11:3",
        "2026-13-01",
        "someday",
        "2 parsecs ago",
        "999999 years ago",
        "1234d",
        "1y",
        "h",
    ],
)
def test_what_is_neither_a_seq_nor_a_time_is_none(text: str) -> None:
    assert when_of(text, now=NOW) is None


def test_words_mean_nothing_without_a_clock_and_digits_are_a_seq() -> None:
    assert when_of("yesterday") is None
    assert when_of(" 20260131 ") == When(" 20260131 ", seq=20260131)


@given(st.text(max_size=40) | st.from_regex(r"(last )?[0-9a-z]{0,6}[ .](day|month|year)s? ago", fullmatch=True))
def test_no_text_fails(text: str) -> None:
    found = when_of(text, now=NOW, is_local=True)
    assert found is None or found.seq is not None or found.begin < found.end


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("main..x", ("main", "x")), ("v1..", ("v1", "")), ("..x", ("", "x")), ("..", None), ("main", None)],
)
def test_a_range_has_two_dots(text: str, wanted: tuple[str, str] | None) -> None:
    assert range_of(text) == wanted


def test_three_dots_are_refused_with_what_two_mean() -> None:
    with pytest.raises(InvalidQuery) as refused:
        range_of("main...x")
    assert "two dots" in refused.value.hint


class Commits:
    """A project whose commits are made one after another, each with a requirement."""

    def __init__(self, root: Path) -> None:
        self.project = Project(root)
        self.names: list[str] = []

    def commit(self, *, is_synced: bool = True) -> str:
        """Commit a further requirement, and take it in afterwards, as the hook does."""
        number = len(self.names)
        self.project.write({f"docs/requirements/{number}.md": req(f"REQ-{number}")})
        git(self.project.root, "add", ".")
        git(self.project.root, "commit", "--quiet", "-m", f"c{number}")
        self.names.append(git(self.project.root, "rev-parse", "HEAD").strip())
        if is_synced:
            self.project.sync()
        return self.names[-1]

    @property
    def workspace(self) -> Workspace:
        return self.project.workspace()

    def seq(self, text: str, branch: str = "main") -> tuple[int, str]:
        point = point_in(self.workspace, branch, text)
        return self.project.workspace().store(branch).read(lambda view: meant(view, point))[:2]


@pytest.fixture
def commits(tmp_path: Path):
    made = Commits(tmp_path / "repo")
    yield made
    made.project.close()


def test_a_commit_is_the_last_record_made_at_it(commits: Commits) -> None:
    for _ in range(3):
        commits.commit()
    git(commits.project.root, "tag", "v1", "HEAD~1")
    for text, seq in (("HEAD", 3), ("HEAD~1", 2), ("HEAD~2", 1), ("v1", 2), (commits.names[0], 1), ("main", 3)):
        found, said = commits.seq(text)
        assert (text, found) == (text, seq)
        assert f"seq {seq}" in said
    commits.project.apply(entities=[{"id": "REQ-9", "type": "req", "title": "T", "status": "open"}])
    assert commits.seq("HEAD")[0] == 4, "the record counts for the commit that is checked out"
    assert commits.seq("HEAD~1")[0] == 2


def test_a_commit_without_records_is_its_newest_ancestor_with_one(commits: Commits) -> None:
    first = commits.commit()
    commits.commit(is_synced=False)
    commits.commit(is_synced=False)
    commits.commit()
    seq, said = commits.seq("HEAD~1")
    assert seq == 1
    assert said.endswith(f"seq 1 is the last one at its ancestor {first[:12]}.")


def test_a_commit_that_is_checked_out_is_the_head_also_where_nothing_was_written_at_it(commits: Commits) -> None:
    commits.commit()
    commits.commit()
    git(commits.project.root, "commit", "--quiet", "--amend", "-m", "other words")
    name = git(commits.project.root, "rev-parse", "HEAD")[:12]
    assert commits.seq("HEAD") == (2, f"'HEAD' is commit {name}, which is checked out: seq 2 is the last record.")


def test_a_commit_before_all_records_is_refused(commits: Commits) -> None:
    commits.commit(is_synced=False)
    commits.commit()
    with pytest.raises(InvalidQuery, match="no record of this branch was made at it or at an ancestor") as refused:
        commits.seq("HEAD~1")
    assert "git show -s --format=%cI" in refused.value.hint


def test_another_branch_is_the_last_record_that_both_share(commits: Commits) -> None:
    commits.commit()
    commits.commit()
    commits.project.switch("x", create=True)
    commits.commit()
    assert commits.seq("main", "x") == (2, "Seq 2 is the last record that is also in 'main'.")
    assert commits.seq("x", "x")[0] == 3


@pytest.mark.parametrize("text", ["nowhere", "-all", "--help", "a\nb", "x" * 2000, "HEAD~99", ""])
def test_what_git_does_not_know_is_refused(commits: Commits, text: str) -> None:
    commits.commit()
    with pytest.raises(InvalidQuery, match="is neither a seq nor a time"):
        commits.seq(text)


def test_a_branch_without_records_says_so(tmp_path: Path) -> None:
    project = Project(tmp_path / "repo")
    with pytest.raises(InvalidQuery, match="has no record yet"):
        seq_at(project.view(), "2026-01-31")
    project.close()
