"""``kb sync`` and ``kb status``: what the files say, taken in; and what a sync would find, without writing."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.disk.unlistable import refuse_listing
from tests.support.processes.cli import DOCUMENTS, LOGIN, write
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import add_worktree, commit_files, git, run_git

BAD = "---\nid: [\n---\n"


def everything(root: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of change of every file and folder of the KB."""
    found = {}
    for path in [root / ".kb", *sorted((root / ".kb").rglob("*"))]:
        status = path.lstat()
        found[str(path)] = (status.st_size, status.st_mtime_ns)
    return found


def test_sync_reads_the_files_and_answers_in_the_fixed_shape(kb, ready):
    write(ready, DOCUMENTS)
    answer = kb("sync", "--json").json
    assert set(answer) >= {"branch", "seq", "files", "created", "updated", "deleted", "edges", "unresolved", "problems"}
    assert (answer["branch"], answer["seq"]) == ("main", 1)
    assert answer["files"] == {"scanned": 3, "changed": 3, "removed": 0, "bad": 0, "not_read": {}}
    assert (answer["created"], answer["updated"], answer["deleted"]) == (3, 0, 0)
    assert answer["edges"] == {"created": 2, "updated": 0, "unchanged": 0, "deleted": 0}
    assert (answer["unresolved"], answer["problems"]) == ([], [])


def test_unchanged_files_write_no_record(kb, synced):
    ran = kb("sync")
    assert ran == (0, "main at seq 1: up to date with 3 files.\n", "")
    assert kb("sync", "--rebuild", "--json").json["seq"] == 1


def test_a_changed_and_a_removed_file_are_reported(kb, synced):
    write(synced, {"docs/requirements/login.md": LOGIN.replace("open", "done"), "docs/tests/login.md": None})
    assert kb("sync").out == "main at seq 2: 1 updated, 1 deleted; edges: 1 deleted from 1 of 2 files and 1 removed.\n"


def test_a_dry_run_says_what_would_change_and_leaves_the_store_as_it_is(kb, synced):
    write(synced, {"docs/requirements/new.md": LOGIN.replace("REQ-1", "REQ-9")})
    ran = kb("sync", "--dry-run")
    assert ran.out == "Would change main at seq 1: 1 created from 1 of 4 files.\n"
    answer = kb("query", "--json").json
    assert (answer["seq"], answer["freshness"], answer["pending_files"]) == (1, "overlay", 1)


def test_only_the_named_paths_are_recorded_relative_to_the_current_folder(kb, synced):
    more = {"docs/requirements/a.md": LOGIN.replace("REQ-1", "REQ-A"), "docs/tests/b.md": "---\nid: TEST-B\n---\n# B\n"}
    write(synced, more)
    assert kb("sync", "a.md", "--json", cwd=synced / "docs/requirements").json["created"] == 1
    assert kb("sync", "requirements", "--json", cwd=synced / "docs").json["created"] == 0
    assert kb("-C", synced, "sync", "docs/tests", "--json", cwd=synced.parent).json["created"] == 1


def test_a_path_outside_of_the_repository_is_refused(kb, synced, tmp_path):
    ran = kb("sync", tmp_path, "--json")
    assert ran.status == 2
    assert ran.error["details"][0]["path"] == "$.paths[0]"


def test_a_path_above_the_repository_is_refused_by_name(kb, synced):
    ran = kb("sync", "../..", cwd=synced / "docs")
    assert (ran.status, ran.out) == (2, "")
    assert "../.. is not inside the repository" in ran.err


def test_a_path_at_which_there_is_nothing_is_refused_by_name(kb, synced):
    ran = kb("sync", "docs", "nosuchpath", "--json")
    assert ran.status == 2
    assert ran.error["details"][0]["path"] == "$.paths[1]"
    assert "nosuchpath" in ran.error["message"]
    write(synced, {"docs/tests/login.md": None})
    assert kb("sync", "docs/tests/login.md").out.endswith("1 deleted; edges: 1 deleted from 1 removed file.\n")


def test_problems_outside_the_named_paths_are_counted(kb, synced):
    bad = {f"docs/requirements/{name}.md": BAD for name in ("bad", "worse")}
    write(synced, bad | {"docs/tests/b.md": "---\nid: T-2\nlinks: [REQ-77]\n---\n# B\n"})
    kb("sync")
    ran = kb("sync", "docs/tests")
    assert not any(path in ran.err for path in bad)
    assert "T-2 links to REQ-77" in ran.err
    assert "Elsewhere: 2 problems; `kb sync` without paths lists them." in ran.err
    assert "Elsewhere: 1 unresolved link" in kb("sync", "docs/requirements", "--strict").err
    assert kb("sync", "docs/tests", "--strict").status == 0


def test_what_is_said_of_many_files_alike_is_one_line_with_the_number(kb, ready):
    write(ready, {f"docs/tests/{number}.md": f"---\nid: T-{number}\n---\n# T\n" for number in range(3)})
    ran = kb("sync")
    assert ran.err.count("No status is stated") == 1
    assert "3 notes (default_status) such as docs/tests/0.md:2: No status is stated" in ran.err
    write(ready, {"docs/tests/9.md": "---\nid: T-9\n---\n# T\n"})
    assert kb("sync").err.startswith("docs/tests/9.md:2: No status is stated")


def test_a_file_that_could_not_be_read_does_not_count_as_recorded(kb, synced):
    write(synced, {"docs/requirements/login.md": BAD})
    ran = kb("sync")
    assert ran.out == "main at seq 2: no entity or edge changed, from 1 of 3 files, 1 of them not read completely.\n"
    assert "What could not be read stays as it was known." in ran.err
    write(synced, {"docs/requirements/login.md": BAD + "more", "docs/requirements/logout.md": LOGIN + "more"})
    assert "from 2 of 3 files, 2 of them not read completely" in kb("sync").out


def test_a_bad_file_is_reported_with_place_and_remedy_and_the_others_are_recorded(kb, ready):
    write(ready, DOCUMENTS | {"docs/requirements/bad.md": BAD})
    ran = kb("sync")
    assert ran.status == 0
    assert "docs/requirements/bad.md:2: " in ran.err
    assert "3 created" in ran.out
    assert kb("sync", "--strict").status == 3
    assert kb("sync", "--strict", "--json").json["files"]["bad"] == 1
    write(ready, {"docs/requirements/bad.md": None})
    assert kb("sync", "--strict").status == 0


def test_an_unresolved_link_is_reported_until_its_target_exists(kb, synced):
    document = LOGIN.replace("tags", "links: [REQ-77]\ntags").replace("REQ-1", "REQ-9")
    write(synced, {"docs/requirements/new.md": document})
    ran = kb("sync")
    assert "unresolved: REQ-9 links to REQ-77 (stated in docs/requirements/new.md)" in ran.err


def test_another_branch_than_the_one_checked_out_is_refused(kb, synced, user):
    git(synced, "branch", "other")
    ran = kb("sync", "--branch", "other")
    assert (ran.status, ran.out) == (2, "")
    assert "main" in ran.err
    assert "other" in ran.err
    user.setenv("KB_BRANCH", "other")
    assert kb("sync").status == 2
    assert kb("sync", "--branch", "main").status == 0


def test_sync_in_a_bare_repository_is_refused_and_deletes_nothing(kb, tmp_path):
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "-q", "--bare", "--initial-branch=main", bare)
    kb("init", cwd=bare)
    ran = kb("sync", cwd=bare)
    assert ran.status == 2
    assert "bare" in ran.err


def test_where_there_are_no_documents_sync_says_where_they_belong(kb, ready):
    ran = kb("sync")
    assert ran.status == 0
    assert "docs/requirements" in ran.err


def test_the_first_sync_on_a_branch_says_where_its_store_comes_from(kb, synced):
    git(synced, "switch", "-q", "-c", "feature/x")
    ran = kb("sync")
    assert "copied from main" in ran.err
    assert ran.out.startswith("feature/x at seq 1: up to date")
    assert kb("sync").err == ""


def test_the_author_is_the_user(kb, ready, user, monkeypatch):
    write(ready, DOCUMENTS)
    user.delenv("KB_ACTOR")
    user.delenv("GIT_AUTHOR_NAME")
    git(ready, "config", "user.name", "Zoë \x1b[31m")
    kb("sync")
    edge = kb("query", "edge", "--json").json["edges"][0]
    assert edge["created_by"] == r"Zoë \x1b[31m"


def test_status_shows_the_branch_and_what_a_sync_would_find(kb, synced):
    write(
        synced,
        {
            "docs/requirements/login.md": LOGIN.replace("open", "done"),
            "docs/requirements/new.md": LOGIN.replace("REQ-1", "REQ-9"),
            "docs/tests/login.md": None,
        },
    )
    found = kb("status", "--json").json
    assert (found["branch"], found["seq"], found["default_branch"]) == ("main", 1, "main")
    assert found["checked_out"]["kind"] == "branch"
    assert found["files"] == {
        "scanned": 3,
        "changed": ["docs/requirements/login.md", "docs/requirements/new.md"],
        "removed": ["docs/tests/login.md"],
        "bad": [],
        "not_read": {},
        "not_listed": [],
    }
    assert found["store"]["records"] == 1
    text = kb("status").out
    assert "On branch main\n" in text
    assert "Files removed:\n  docs/tests/login.md\n" in text
    assert text.endswith("Next: `kb sync`\n")


def test_status_after_a_sync_says_that_all_is_in_step(kb, synced):
    assert kb("status").out.splitlines()[-1] == "In step with 3 files."


def test_status_shows_bad_files_and_unresolved_links(kb, synced):
    write(synced, {"docs/requirements/bad.md": BAD, "docs/tests/b.md": "---\nid: T-2\nlinks: [REQ-77]\n---\n# B\n"})
    kb("sync")
    found = kb("status", "--json").json
    assert found["files"]["bad"] == ["docs/requirements/bad.md"]
    assert found["unresolved"] == [{"from": "T-2", "type": "", "target": "REQ-77", "source": "docs/tests/b.md"}]
    assert "T-2 links to REQ-77" in kb("status").out


def test_unresolved_edges_of_a_client_are_listed_as_stated_each_on_its_own_line(kb, synced):
    edges = ["depends_on", "relates_to:see", "relates_to:part"]
    for edge in edges:
        assert kb("link", "REQ-1", edge, "REQ-2").status == 0
    (synced / "docs/requirements/login.md").unlink()
    ran = kb("sync")
    status = kb("status").out
    for edge in edges:
        assert f"unresolved: REQ-1 {edge} REQ-2 (stated in cli)" in ran.err
        assert f"  REQ-1 {edge} REQ-2 (stated in cli)\n" in status
    found = [one for one in kb("status", "--json").json["unresolved"] if one["source"] == "cli"]
    ends = {"from": "REQ-1", "target": "REQ-2", "source": "cli"}
    assert found == [
        {**ends, "type": "depends_on"},
        {**ends, "type": "relates_to", "kind": "part"},
        {**ends, "type": "relates_to", "kind": "see"},
    ]


def test_an_unresolved_edge_that_kb_check_accepts_is_accepted_by_sync_and_status(kb, synced):
    kb("link", "REQ-1", "depends_on", "REQ-2")
    (synced / "docs/requirements/login.md").unlink()
    kb("sync")
    assert kb("check", "--write-baseline").status == 0
    assert "REQ-1 depends_on REQ-2" not in kb("sync", "--rebuild").err
    assert "REQ-1 depends_on REQ-2" not in kb("status").out


def test_status_names_an_unread_and_deleted_file_once(kb, synced):
    write(synced, {"docs/requirements/bad.md": BAD})
    kb("sync")
    write(synced, {"docs/requirements/bad.md": None})
    files = kb("status", "--json").json["files"]
    assert (files["removed"], files["bad"]) == (["docs/requirements/bad.md"], [])
    assert kb("status").out.count("docs/requirements/bad.md") == 1


@pytest.mark.parametrize("has_cache", [True, False])
def test_status_writes_nothing_at_all(kb, synced, has_cache):
    write(synced, {"docs/requirements/login.md": LOGIN.replace("open", "done")})
    if not has_cache:
        for path in sorted(caches_at(synced).rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        caches_at(synced).rmdir()
    git(synced, "switch", "-q", "-c", "feature")
    before = everything(synced)
    assert "No store yet" in kb("status").out
    assert kb("status", "--json").json["store"] is None
    assert "(feature is checked out)" in kb("status", "--branch", "main").out
    assert everything(synced) == before


def test_a_sync_names_a_missing_configuration_once(kb, ready):
    (ready / ".kb/config.json").unlink()
    write(ready, DOCUMENTS)
    warning = kb("sync").err.splitlines()[0]
    assert warning.startswith("warning: .kb/config.json: the file is missing, so KB's defaults apply.")
    assert warning.count("config.json") == 1


def test_a_sync_says_how_many_of_the_created_edges_are_unresolved(kb, ready):
    text = "---\nid: {}\ntitle: T\nstatus: open\nlinks: [{}]\n---\n"
    write(ready, {f"docs/requirements/{one}.md": text.format(one, "GONE") for one in ("A", "B")})
    assert kb("sync").out == "main at seq 1: 2 created; edges: 2 created (2 unresolved) from 2 of 2 files.\n"
    assert "The branch has no resolved edge yet;" in kb("check").err
    write(ready, {"docs/requirements/C.md": text.format("C", "A")})
    assert "edges: 1 created from 1 of 3 files" in kb("sync").out


def test_status_lists_the_new_document_alone_after_a_type_was_defined(kb, synced):
    kb("kip", "-", stdin='UPSERT {CONCEPT ?t {{type: "$ConceptType", name: "Idea"} SET ATTRIBUTES {description: "d"}}}')
    assert kb("status", "--json").json["files"]["changed"] == []
    write(synced, {"docs/requirements/new.md": "---\nid: NEW-1\ntitle: New\nstatus: open\n---\n"})
    assert kb("status", "--json").json["files"]["changed"] == ["docs/requirements/new.md"]


def test_status_of_a_branch_without_a_store_compares_with_what_it_will_copy(kb, synced):
    git(synced, "switch", "-q", "-c", "feature")
    found = kb("status", "--json").json
    assert (found["store"], found["copy_of"], found["files"]["changed"]) == (None, "main", [])
    write(synced, {"docs/requirements/login.md": LOGIN.replace("open", "done"), "docs/tests/login.md": None})
    text = kb("status").out
    assert "No store yet: the first write copies that of main" in text
    assert "Files changed:\n  docs/requirements/login.md\nFiles removed:\n  docs/tests/login.md\n" in text
    assert not (stores_at(synced) / "feature").exists()


def test_status_where_there_is_nothing_to_copy_says_so(kb, synced):
    shutil.rmtree(stores_at(synced) / "main")
    shutil.rmtree(caches_at(synced) / "main")
    found = kb("status", "--json").json
    assert (found["copy_of"], len(found["files"]["changed"])) == (None, 3)
    assert "No store yet: `kb sync` makes an empty one and reads the files.\n" in kb("status").out


def test_status_does_not_count_a_file_that_waits_for_another_as_changed(kb, synced):
    write(synced, {"docs/requirements/twin.md": LOGIN})
    assert "already stated" in kb("sync").err
    found = kb("status", "--json").json["files"]
    assert (found["changed"], found["bad"]) == ([], ["docs/requirements/twin.md"])
    assert kb("status").out.endswith("In step with 4 files.\n")
    assert kb("sync", "--json").json["files"]["changed"] == 0


def test_status_keeps_the_content_of_a_folder_that_it_cannot_list(kb, synced, monkeypatch):
    refuse_listing(monkeypatch, "docs/tests")
    found = kb("status", "--json").json["files"]
    assert (found["removed"], found["not_listed"]) == ([], ["docs/tests"])


def test_quiet_status_says_what_was_asked_for(kb, synced):
    write(synced, {"docs/requirements/login.md": LOGIN.replace("open", "done")})
    text = kb("status", "-q").out
    assert "On branch main\n" in text
    assert "docs/requirements/login.md" in text
    assert "Next:" not in text


def test_status_of_a_branch_that_is_not_checked_out_says_nothing_of_files(kb, synced):
    git(synced, "branch", "other")
    found = kb("status", "--branch", "other", "--json").json
    assert found["files"]["scanned"] is None
    assert found["checked_out"]["branch"] == "main"


def test_status_names_the_state_of_a_detached_head(kb, synced):
    commit = commit_files(synced, {"x": "1"})
    git(synced, "switch", "-q", "--detach")
    found = kb("status", "--json").json
    assert (found["branch"], found["checked_out"]["kind"]) == (f"detached:{commit}", "detached")


def test_a_worktree_is_compared_with_its_own_files(kb, synced, tmp_path):
    commit_files(synced, DOCUMENTS)
    linked = add_worktree(synced, tmp_path / "linked", "feature")
    kb("sync", cwd=linked)
    write(linked, {"docs/requirements/login.md": LOGIN + "more\n"})
    assert kb("status", "--json", cwd=linked).json["files"]["changed"] == ["docs/requirements/login.md"]
    assert kb("status", "--json").json["files"]["changed"] == []


def test_names_that_are_no_text_are_shown_safely(kb, synced):
    (synced / "docs/requirements" / os.fsdecode(b"\xff\x1b.md")).write_text(LOGIN)
    ran = kb("sync")
    assert ran.status == 0
    assert "\x1b" not in ran.out + ran.err
    assert kb("status", "--json").status == 0


def test_where_the_extractors_look_is_said_as_it_is_configured(kb, ready):
    (ready / ".kb" / "config.json").write_text('{"extractors": {"markdown": {"paths": {"req": ["specs/*.md"]}}}}')
    assert "no file is where the extractors look (specs/*.md, " in kb("sync").err


def test_the_command_that_the_first_sync_names_reads_the_documents_that_lie_elsewhere(kb, ready):
    (ready / "my notes").mkdir()
    (ready / "my notes" / "a.md").write_text(LOGIN)
    said = kb("sync").err
    assert "1 Markdown file is elsewhere, such as 'my notes/a.md'." in said
    command = said.partition("`kb ")[2].partition("`")[0]
    assert kb(*shlex.split(command)).status == 0
    assert "from 1 of 1 file" in kb("sync").out


def test_the_first_sync_names_the_setting_for_gherkin_files_that_lie_elsewhere(kb, ready):
    write(
        ready, {f"features/{name}/a.feature": "Feature: A\n\n  Scenario: B\n    Given C\n" for name in ("one", "two")}
    )
    said = kb("sync").err
    assert "2 Gherkin files are elsewhere, such as 'features/one/a.feature'." in said
    command = said.partition("`kb ")[2].partition("`")[0]
    assert kb(*shlex.split(command)).status == 0
    assert "from 2 of 2 files" in kb("sync").out
    # Ids by position go on with their file: a new entity gets one of its own.
    assert kb("id", "next", "scenario").out == "SCENARIO-1\n"


def test_front_matter_over_the_limit_is_the_only_fault_of_its_file(kb, synced):
    write(synced, {"docs/requirements/big.md": f"---\nid: BIG\ntitle: {'x' * 300_000}\n---\n"})
    said = kb("sync").err
    assert "the limit is 262144" in said
    assert "states no id" not in said


def test_a_conflict_in_the_title_of_a_new_document_is_its_only_fault(kb, ready):
    write(
        ready,
        {"docs/requirements/a.md": LOGIN.replace("title:", "<<<<<<< HEAD\ntitle: A\n=======\ntitle: B\n>>>>>>> b\nx:")},
    )
    said = kb("sync").err
    assert "conflict" in said
    assert "is missing" not in said


def test_a_sync_during_a_merge_names_a_check_that_runs_then(kb, synced):
    commit_files(synced, {"docs/requirements/login.md": LOGIN})
    git(synced, "switch", "-qc", "other")
    commit_files(synced, {"docs/requirements/login.md": LOGIN.replace("title: ", "title: Other ")})
    git(synced, "switch", "-q", "main")
    commit_files(synced, {"docs/requirements/login.md": LOGIN.replace("title: ", "title: Main ")})
    assert run_git(synced, "merge", "other").returncode == 1
    command = kb("sync").err.partition("`kb ")[2].partition("`")[0]
    assert command == "check --recorded --rule unreadable-source"
    again = kb("sync").err
    assert "1 error in files; `kb check --recorded` and `kb sync --strict` list them." in again
    for words in (command, "check --recorded"):
        ran = kb(*shlex.split(words))
        assert (ran.status, "docs/requirements/login.md" in ran.out) == (1, True)


def test_an_edge_that_does_not_fit_is_said_to_be_left_out(kb, synced):
    wrong = LOGIN.replace("---\n", "---\nimplements: REQ-2\n", 1)
    write(synced, {"docs/requirements/login.md": wrong})
    err = kb("sync").err
    assert "Until then the link is left out." in err
    assert "What was known is kept" not in err
    assert "stays as it is" not in kb("check", "--rule", "unreadable-source").out


def test_an_export_warns_of_files_that_are_not_recorded(kb, ready):
    write(ready, DOCUMENTS)
    ran = kb("export", "-")
    assert "3 files differ from the records of main, and the export is only of the records." in ran.err
    kb("sync")
    assert kb("export", "-").err == ""
