"""Points in time as people of git say them, on the command line."""

from __future__ import annotations

import json
import time

import pytest

from tests.support.repository.repos import git


@pytest.fixture
def grew(grown):
    """A repository with three commits, each with a requirement that was taken in after it; the second one is v1."""
    return grown(three_commits, "ready")


def three_commits(root, kb):
    (root / "docs" / "requirements").mkdir(parents=True)
    for number in (1, 2, 3):
        (root / f"docs/requirements/{number}.md").write_text(f"---\nid: REQ-{number}\ntitle: T\nstatus: open\n---\n")
        git(root, "add", ".")
        git(root, "commit", "--quiet", "-m", f"c{number}")
        kb("sync")
    git(root, "tag", "v1", "HEAD~1")


def apply(kb, id_: str, *words: str) -> None:
    entity = {"id": id_, "type": "req", "title": "T", "status": "open"}
    assert kb("apply", "-", *words, stdin=json.dumps({"entities": [entity]})).status == 0


def ids(ran) -> list[str]:
    assert ran.status == 0, ran
    return [one["id"] for one in ran.json["entities"]]


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("point", "seq"), [("HEAD~2", 1), ("v1", 2), ("HEAD", 3), ("main", 3), ("today", 3), ("now", 3), ("2", 2)]
)
def test_every_command_takes_a_point_and_says_which_record_it_is(kb, grew, point, seq):
    found = kb("query", "--at", point, "--json")
    assert ids(found) == [f"REQ-{number}" for number in range(1, seq + 1)]
    assert found.json["seq"] == seq
    assert (f"seq {seq} is the last" in found.json["freshness_reason"]) == (point != "2")
    for words in (["query"], ["coverage"], ["impact", "REQ-1"], ["graph"], ["export", "-"], ["show", "REQ-1"]):
        ran = kb(*words, "--at", point)
        assert ran.status == 0, ran
        assert (f"note: '{point}' is" in ran.err) == (point != "2"), ran
    assert kb("export", "-", "--at", point).out.count('"id"') == seq
    query = 'FIND(?r.name) WHERE { ?r {type: "Requirement"} } AT "%s"'
    assert kb("kip", query % point).status == 0


def test_a_revert_takes_a_commit_or_a_tag_and_says_which_record_it_is(kb, grew):
    apply(kb, "CLIENT")
    git(grew, "commit", "--quiet", "--allow-empty", "-m", "c4")
    git(grew, "tag", "v4")
    for point in ("HEAD", "v4"):
        ran = kb("revert", point, "--dry-run", "--json")
        assert (ran.status, ran.json["deleted"]) == (0, ["CLIENT"])
        assert "seq 4 is the last record" in ran.json["points"][0]
    ran = kb("revert", "nowhere")
    assert (ran.status, "git knows no such commit" in ran.err) == (2, True)
    assert "seq 4 is the last record" in kb("revert", "v4").err


@pytest.mark.sliced
def test_a_record_is_shown_by_a_point_unless_an_entity_has_that_name(kb, grew):
    assert kb("show", "v1").out.startswith("record 2\n")
    assert kb("show", "HEAD~2", "--json").json["seq"] == 1
    apply(kb, "v1")
    assert kb("show", "v1", "--json").json["entity"]["id"] == "v1"
    assert kb("show", "nothing").status == 64


@pytest.mark.sliced
def test_a_difference_goes_from_point_to_point(kb, grew):
    assert ids(kb("diff", "v1", "--json")) == ["REQ-3"]
    assert ids(kb("diff", "HEAD~2..v1", "--json")) == ["REQ-2"]
    ran = kb("diff", "HEAD~2", "HEAD~1")
    assert ran.err.count("note: 'HEAD~") == 2
    points = kb("diff", "v1", "--json").json["points"]
    assert points == [f"'v1' is commit {git(grew, 'rev-parse', 'v1')[:12]}: seq 2 is the last record made at it."]


@pytest.mark.sliced
def test_a_range_of_branches_is_what_came_after_they_diverged(kb, grew):
    git(grew, "switch", "-q", "-c", "x")
    apply(kb, "REQ-9")
    for _ in range(2):  # on x, and on main
        assert [one["seq"] for one in kb("log", "main..x", "--json").json["records"]] == [4]
        found = kb("diff", "main..x", "--json")
        assert (ids(found), found.json["branch"]) == (["REQ-9"], "x")
        assert "the last record that is also in 'main'" in kb("log", "main..x").err
        git(grew, "switch", "-q", "main")
    git(grew, "switch", "-q", "x")
    assert [one["seq"] for one in kb("log", "main..", "--json").json["records"]] == [4]
    ran = kb("diff", "main")
    assert (ran.status, ran.out) == (2, "")
    assert "`kb branch diff A B` compares branches" in ran.err


@pytest.mark.sliced
def test_log_diff_and_check_are_narrowed_to_an_actor_and_a_session(kb, user, grew):
    user.setenv("KB_SESSION", "s-1")
    user.setenv("KB_ACTOR", "bot")
    apply(kb, "REQ-8")
    user.delenv("KB_SESSION")
    apply(kb, "REQ-9")
    user.delenv("KB_ACTOR")
    apply(kb, "REQ-10")
    assert [one["seq"] for one in kb("log", "--session", "s-1", "--json").json["records"]] == [4]
    assert [one["seq"] for one in kb("log", "v1..", "--actor", "bot", "--json").json["records"]] == [5, 4]
    assert ids(kb("diff", "v1", "--actor", "bot", "--json")) == ["REQ-8", "REQ-9"]
    assert ids(kb("diff", "--since", "today", "--session", "s-1", "--json")) == ["REQ-8"]
    edge = {"type": "relates_to", "kind": "x", "from": "REQ-10", "to": "REQ-1"}  # orphans waits for the first edge
    kb("apply", "-", stdin=json.dumps({"edges": [edge]}))
    new = [("--actor", "bot"), ("--session", "s-1"), ("--actor", "tester")]
    found = [[one["id"] for one in kb("check", "--since", "v1", *by, "--json").json["violations"]] for by in new]
    assert found == [["REQ-8", "REQ-9"], ["REQ-8"], []]
    checked = kb("check", "--since", "v1", "--actor", "bot", "--session", "s-1", "--json").json
    assert checked["since"] | {"actor": "bot", "session": "s-1"} == checked["since"]
    assert "by 'bot' in session 's-1'" in kb("check", "--since", "v1", "--actor", "bot", "--session", "s-1").out
    for option, wrong, near in (("--actor", "bott", "'bot'"), ("--session", "s-2", "'s-1'")):
        refused = kb("check", "--since", "v1", option, wrong)
        assert (refused.status != 0, near in refused.err) == (True, True), refused
    assert kb("check", "--actor", "bot").status == 2
    assert kb("diff", "v1", "--since", "today").status == 2
    assert kb("diff").status == 2


@pytest.mark.sliced
def test_the_log_shows_the_changes_of_each_record_or_names_them_all(kb, grew):
    patch = kb("log", "-n", "1", "-p")
    assert "record 3 (head)" in patch.out
    assert "+ REQ-3 (req) T\n    status: open\n" in patch.out
    assert "REQ-2" not in patch.out
    entities = [{"id": f"N-{number}", "type": "req", "title": "T", "status": "open"} for number in range(9)]
    kb("apply", "-", stdin=json.dumps({"entities": entities}))
    assert "N-8" not in kb("log", "-n", "1").out
    assert "N-8" in kb("log", "-n", "1", "--stat").out
    [record] = kb("log", "-n", "1", "--stat", "--json").json["records"]
    assert [one["id"] for one in record["touched"]] == [one["id"] for one in entities]
    [record] = kb("log", "-n", "1", "-p", "--json").json["records"]
    assert [one["after"]["title"] for one in record["operations"]] == ["T"] * 9
    [record] = kb("log", "N-3", "-p", "--json").json["records"]
    assert [one["id"] for one in record["operations"]] == ["N-3"]
    assert kb("log", "--oneline", "-p").status == 2


def test_a_time_without_a_zone_is_a_local_one(kb, user, grew):
    user.setenv("TZ", "Pacific/Kiritimati")  # 14 hours before UTC: the day of the records began there earlier
    time.tzset()
    try:
        said = kb("query", "--at", "today").err
        assert "T10:00:00Z: seq 3 is the last record until then." in said
    finally:
        user.delenv("TZ")
        time.tzset()


@pytest.mark.sliced
def test_an_entity_is_shown_as_it_was_with_its_edges_and_its_history_up_to_then(kb, grew):
    (grew / "docs/requirements/1.md").write_text(
        "---\nid: REQ-1\ntitle: Old\nstatus: open\nlinks: [{depends_on: [REQ-2]}]\n---\nThe old text.\n"
    )
    git(grew, "commit", "--quiet", "-a", "-m", "old")
    kb("sync")
    assert kb("rename", "REQ-1", "REQ-10").status == 0
    assert kb("set", "REQ-10", "title=New").status == 0
    assert kb("delete", "REQ-2", "--yes").status != 0
    found = kb("show", "REQ-1", "--at", "4", "--json").json
    assert (found["seq"], found["entity"]["title"]) == (4, "Old")
    assert [(one["from"], one["to"]) for one in found["edges"]] == [("REQ-1", "REQ-2")]
    assert [one["seq"] for one in found["history"]] == [4, 1]
    page = kb("show", "REQ-10", "--at", "4")
    assert page.status == 0, page
    assert "Old" in page.out
    assert "REQ-1 depends_on REQ-2" in page.out
    assert "New" not in page.out
    assert "'REQ-10' was called 'REQ-1' at seq 4." in page.err
    assert "body" not in kb("show", "REQ-1", "--at", "4", "--no-body", "--json").json
    gone = kb("show", "REQ-3", "--at", "1")
    assert (gone.status, gone.err.splitlines()[0]) == (64, "error: There was no entity 'REQ-3' at seq 1.")
    assert "`kb show 1` shows the record, without --at." in kb("show", "1", "--at", "2").err
    assert "There is no record 99 yet." in kb("show", "REQ-1", "--at", "99").err


def change(root, number: int, status: str) -> None:
    path = root / f"docs/requirements/{number}.md"
    path.write_text(f"---\nid: REQ-{number}\ntitle: T\nstatus: {status}\n---\n")


def status_at(kb, point: str, key: str = "REQ-1") -> tuple[str, str]:
    ran = kb("query", "--id", key, "--at", point, "--fields", "id,status")
    assert ran.status == 0, ran
    return ran.out.splitlines()[-1].split("\t")[1], ran.err


@pytest.mark.sliced
def test_a_commit_is_the_record_that_has_its_files(kb, grew):
    """A change is recorded, then committed: what is made at a commit may be what the next one has."""
    change(grew, 1, "blocked")
    assert kb("sync").status == 0
    git(grew, "commit", "-qam", "c4")
    assert status_at(kb, "HEAD~1")[0] == "open"
    assert "seq 3 is the last record made at it with its files; later ones" in status_at(kb, "HEAD~1")[1]
    assert [one["fields"] for one in kb("diff", "HEAD~1", "HEAD", "--json").json["entities"]] != []
    assert [one["seq"] for one in kb("log", "HEAD~1..HEAD", "--json").json["records"]] == [4]
    for status in ("draft", "open"):  # c5 and c6, of which no record is made at the commit itself
        change(grew, 1, status)
        kb("sync")
        git(grew, "commit", "-qam", status)
    assert [status_at(kb, f"HEAD~{back}")[0] for back in (3, 2, 1, 0)] == ["open", "blocked", "draft", "open"]


@pytest.mark.sliced
def test_a_commit_of_whose_files_there_is_no_record_is_the_last_one_made_there_and_that_is_said(kb, grew):
    change(grew, 1, "blocked")
    git(grew, "commit", "-qam", "never recorded")
    change(grew, 1, "draft")
    kb("sync")
    git(grew, "commit", "-qam", "c5")
    status, said = status_at(kb, "HEAD~1")
    assert status == "draft"
    assert "seq 4 is the last record made at it. No record near it has its files as git has them." in said


@pytest.mark.sliced
def test_a_commit_has_the_record_of_a_removed_file_and_what_clients_recorded_at_it(kb, grew):
    apply(kb, "C-1")
    (grew / "docs/requirements/2.md").unlink()
    kb("sync")
    apply(kb, "C-2")
    git(grew, "commit", "-qam", "c4")
    git(grew, "commit", "-qm", "c5", "--allow-empty")
    assert ids(kb("query", "--at", "HEAD~2", "--json")) == ["C-1", "REQ-1", "REQ-2", "REQ-3"]
    assert ids(kb("query", "--at", "HEAD~1", "--json")) == ["C-1", "C-2", "REQ-1", "REQ-3"]


def test_a_condition_reads_times_as_other_options_do_and_says_the_instant(kb, user, synced):
    user.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    try:
        found = kb("query", "--where", "created_at<2026-11-29", "--json").json
        assert found["points"] == ["'2026-11-29' is since 2026-11-28T10:00:00Z and before 2026-11-29T10:00:00Z."]
        in_words = kb("query", "--where", "created_at>yesterday", "--where", "updated_at<=now")
        assert "note: 'yesterday' is since 20" in in_words.err
        assert "note: 'now' is 20" in in_words.err
        assert kb("query", "--where", "updated_at>2h ago").status == 0
        assert kb("query", "--where", "updated_at>2 hours ago").status == 0
        assert "is a time" in kb("query", "--where", "updated_at>2 fortnights ago").err
        in_utc = kb("query", "--where", "created_at<2026-11-29T00:00:00Z", "--json").json
        assert "points" not in in_utc
    finally:
        user.delenv("TZ")
        time.tzset()
