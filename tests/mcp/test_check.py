"""The answers of ``kb_check``."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from kbmcp.tools.answers import text_of
from tests.mcp.agents import agent, direct, pages_of
from tests.support.processes.cli import run_kb
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project, req
from tests.support.repository.repos import commit_files, git, run_git

COUNT = 150


@pytest.fixture(scope="module", autouse=True)
def stored(shared):
    shared.apply(
        entities=[
            {"id": f"REQ-{number:03}", "type": "req", "title": "t" * 80, "status": "open", "priority": "must"}
            for number in range(COUNT)
        ],
        edges=[{"type": "depends_on", "from": "REQ-148", "to": "REQ-149"}],
    )


def test_violations_come_with_the_rules_that_ran(each_era):
    answer = each_era.call("kb_check", limit=5)
    assert (answer["branch"], answer["seq"], answer["ok"]) == ("main", 1, False)
    shape = {"rule", "severity", "id", "message", "hint", "source"}
    assert set(answer["violations"][0]) - {"values", "field", "line"} == shape
    assert answer["rules_run"] > 15
    assert "rules" not in answer
    assert answer["total"] > len(answer["violations"]) == 5
    assert "repeat the call with this next_cursor" in answer["note"]


@pytest.mark.sliced
def test_paging_gives_every_violation_once(kb):
    pages = list(pages_of(kb, "kb_check", "violations", limit=100))
    found = [(one["rule"], one["id"], one["message"]) for page in pages for one in page]
    assert len(found) == len(set(found)) == kb.call("kb_check", limit=1)["total"] >= COUNT
    assert [one["severity"] for page in pages for one in page] == sorted(
        one["severity"] for page in pages for one in page
    )


def test_equal_problems_are_one_entry_with_their_count_and_the_first_few(kb):
    whole = kb.call("kb_check")
    assert "next_cursor" not in whole
    assert whole["total"] > COUNT
    counted = Counter()
    for one in whole["violations"]:
        counted[one["rule"]] += one.get("count", 1)
    assert sum(counted.values()) + sum(whole.get("more", {}).values()) == whole["total"]
    orphan = next(one for one in whole["violations"] if one["rule"] == "orphans")
    assert (orphan["count"], orphan["others"][0]) == (COUNT - 2, {"id": "REQ-001"})
    assert len(orphan["others"]) == 4
    assert "`limit`" in whole["note"]
    assert len(text_of(whole)) < 4_000


def test_more_kinds_than_are_shown_are_counted_by_rule(project):
    gone = [f"GONE-{at}" for at in range(9)]
    project.sync({f"docs/requirements/{at}.md": req(f"REQ-{at}", links=f"[{one}]") for at, one in enumerate(gone)})
    with direct(project.root) as tools:
        answer = tools.answer("kb_check", rules=["unresolved-reference"])
    assert (len(answer["violations"]), answer["more"]) == (5, {"unresolved-reference": 4})


def test_files_and_folders_narrow_it_and_unknown_ones_are_named(project):
    project.sync({f"docs/requirements/{name}.md": req(f"REQ-{name}", links="[GONE]") for name in ("a/1", "a/2", "b")})
    project.write({"src/x.py": "x"})
    with direct(project.root) as tools:
        folder = tools.answer("kb_check", paths=["docs/requirements/a"])
        both = tools.answer("kb_check", paths=["docs/requirements/b.md", "src/x.py"])
        like = tools.answer("kb_check", paths=["docs/requirements/*/*.md"])
        refused = tools.answer("kb_check", paths=["no/such"])["error"]
    assert {one["source"] for one in folder["violations"]} == {f"docs/requirements/a/{at}.md" for at in (1, 2)}
    assert like["violations"] == folder["violations"]
    assert {one["id"] for one in both["violations"]} == {"REQ-b"}
    assert "'src/x.py'" in both["note"]
    assert refused["code"] == "not_found"


def test_a_file_that_is_gone_is_judged_by_what_it_stated_last(project):
    docs = [f"docs/requirements/{name}.md" for name in ("a", "b")]
    project.sync({docs[0]: req("REQ-1"), docs[1]: req("REQ-2", links="[REQ-1]")})
    project.write({docs[0]: None})
    with direct(project.root) as tools:
        answer = tools.answer("kb_check", paths=[docs[0]])
    assert (answer["ok"], [(one["rule"], one["id"]) for one in answer["violations"]]) == (
        False,
        [("unresolved-reference", "REQ-2")],
    )
    assert answer["note"].startswith(f"Checked by what it stated last, as no fact comes from it any more: '{docs[0]}'.")


def test_a_severity_and_counts_alone_can_be_asked_for(kb):
    errors = kb.call("kb_check", severity="error", statistics=True)
    whole = kb.call("kb_check", statistics=True)
    assert "violations" not in whole
    assert sum(one["count"] for one in whole["statistics"]) == whole["total"]
    assert errors["statistics"] == [one for one in whole["statistics"] if one["severity"] == "error"]
    assert kb.refused("kb_check", statistics=True, limit=3)["details"][0]["path"] == "$.statistics"


def test_rules_and_ids_narrow_it(kb):
    rule = kb.call("kb_check", limit=1)["violations"][0]["rule"]
    answer = kb.call("kb_check", rules=[rule], ids=["REQ-007"])
    assert {(one["rule"], one["id"]) for one in answer["violations"]} == {(rule, "REQ-007")}
    assert answer["rules_run"] == 1
    error = kb.refused("kb_check", rules=["no-such-rule"])
    assert error["code"] == "not_found"


def test_a_value_of_a_rules_file_that_a_comment_cuts_is_named(project):
    rule = "rules:\n- id: no-x\n  description: See #12\n  sql: select id, 'x' as message from entity where false\n"
    project.sync({"docs/requirements/a.md": req("REQ-1"), ".kb/rules/own.yaml": rule})
    with direct(project.root) as tools:
        assert ".kb/rules/own.yaml:3: The value of `description` is 'See'" in json.dumps(tools.answer("kb_check"))


def test_a_cursor_belongs_to_its_request(kb):
    cursor = kb.call("kb_check", limit=1)["next_cursor"]
    assert kb.refused("kb_check", ids=["REQ-001"], cursor=cursor)["code"] == "invalid_query"
    assert kb.refused("kb_check", limit=0)["code"] == "invalid_query"


def test_pages_continue_although_violations_are_fixed_meanwhile(shared, kb):
    first = kb.call("kb_check", limit=3)
    fixed = first["violations"][2]["id"]
    shared.apply(entities=[{"id": fixed, "priority": "could"}])
    following = kb.call("kb_check", limit=3, cursor=first["next_cursor"])
    before = {(one["rule"], one["id"]) for one in first["violations"]}
    assert not before & {(one["rule"], one["id"]) for one in following["violations"]}


def test_the_rules_of_the_project_run_too(project):
    project.write({".kb/rules/own.yaml": "rules: [{id: no-x, sql: \"select id, 'is x' as message from entity\"}]"})
    project.sync({"docs/requirements/a.md": req("REQ-1")})
    with agent(project.root) as found:
        answer = found.call("kb_check", rules=["no-x"])
        assert [(one["id"], one["message"]) for one in answer["violations"]] == [("REQ-1", "is x")]
        project.write({".kb/rules/own.yaml": "rules: [{id: no-x, sql: select nonsense from node}]"})
        answer = found.call("kb_check")
        assert answer["ok"] is False
        assert next(rule for rule in answer["rules"] if rule["id"] == "no-x")["status"] == "not_run"
        project.write({".kb/rules/own.yaml": "rules: ["})
        assert found.refused("kb_check")["code"] == "invalid_config"


def test_an_id_of_which_nothing_is_known_is_refused_with_the_nearest_one(kb):
    error = kb.refused("kb_check", ids=["REQ-001", "REQ-0O1", "NOPE"])
    assert error["code"] == "not_found"
    assert [(one["path"], one["hint"]) for one in error["details"]] == [
        ("$.ids[1]", "Did you mean 'REQ-001'?"),
        ("$.ids[2]", ""),
    ]
    assert "kb_query" in error["hint"]


def test_all_wrong_arguments_are_named_in_one_refusal(kb):
    error = kb.refused(
        "kb_check", rules=["orphan"], ids=["REQ-0O1"], paths=["../x", "no/such"], limit=0, cursor="x", severity="bad"
    )
    assert error["code"] == "invalid_query"
    assert sorted((one["path"], one["code"]) for one in error["details"]) == [
        ("$.cursor", "bad_value"),
        ("$.ids", "unknown_id"),
        ("$.limit", "out_of_range"),
        ("$.paths[0]", "outside"),
        ("$.paths[1]", "unknown_id"),
        ("$.rules", "unknown_rule"),
        ("$.severity", "bad_value"),
    ]
    assert {one["hint"] for one in error["details"]} >= {"Did you mean 'orphans'?", "Did you mean 'REQ-001'?"}


def test_a_single_wrong_path_is_named_by_the_argument_that_has_it(kb):
    [detail] = kb.refused("kb_check", paths=["/etc"])["details"]
    assert (detail["path"], detail["code"]) == ("$.paths[0]", "outside")


def test_a_server_that_only_reads_names_no_tool_that_writes(shared):
    with direct(shared.root, is_read_only=True) as reader:
        answer = reader.answer("kb_check", rules=["orphans"], ids=["REQ-001"])
    assert "`kb link`" in answer["violations"][0]["hint"]
    assert "kb_upsert" not in answer["violations"][0]["hint"]


MOST_CLEAN_CHARS = 4 * 50
"""A clean check takes at most 50 tokens, of four characters each."""


def test_a_clean_check_says_no_more_than_that_it_is_clean(project):
    ends = [{"id": f"E-{at}", "type": "component", "title": f"T{at}", "status": "active"} for at in (1, 2)]
    project.apply(entities=ends, edges=[{"type": "relates_to", "kind": "part", "from": "E-1", "to": "E-2"}])
    with direct(project.root) as tools:
        tools.answer("kb_query")  # the first answer has advice
        answer = tools.answer("kb_check")
    assert (answer["ok"], answer["total"], answer["violations"]) == (True, 0, [])
    assert len(text_of(answer)) <= MOST_CLEAN_CHARS


@pytest.mark.parametrize("size", [5, 150])
def test_the_suppressions_without_effect_are_named_in_whole_sentences(project, size):
    ids = [f"{at:02}{'-gone' * size}"[:size] for at in range(30)]
    suppress = [{"rule": "orphans", "id": one, "reason": "x"} for one in ids]
    project.write({".kb/config.json": json.dumps({"suppress": suppress})})
    project.apply(entities=[{"id": "OTHER", "type": "req", "title": "t", "status": "open"}])
    with direct(project.root) as tools:
        note = tools.answer("kb_check")["note"]
    named = note.count("which does not exist. ")
    assert named == note.count("was removed for good. ") > 0
    assert note.endswith(f" {30 - named} more suppressions have no effect.")


def test_a_check_in_an_unfinished_merge_gives_the_violations_of_the_records_and_says_how_it_ends(project):
    project.sync({"docs/requirements/a.md": req("REQ-1", links="[GONE]")})
    (project.root / ".git" / "MERGE_HEAD").write_text("0" * 40 + "\n")
    with direct(project.root) as found:
        answer = found.answer("kb_check")
        wrong = found.answer("kb_check", limit=0)["error"]
        (project.root / ".git" / "MERGE_HEAD").unlink()
        after = found.answer("kb_check")
    assert (answer["ok"], answer["code"], answer["freshness"]) == (None, "files_unknown", "unknown")
    assert answer["freshness_reason"] == "A merge of git is not finished."
    assert [one["rule"] for one in answer["violations"]] == ["unresolved-reference"]
    assert "`git status` says how to end it; call this tool again then." in answer["note"]
    assert wrong["code"] == "invalid_query"
    assert (after["ok"], "code" in after) == (False, False)


def test_a_similar_id_is_looked_for_of_the_first_unknown_ids_only(project):
    project.apply(entities=[{"id": "REQ-1", "type": "req", "title": "T", "status": "open"}])
    with direct(project.root) as server:
        details = server.answer("kb_check", ids=[f"REQ-1x{number}" for number in range(8)])["error"]["details"]
    assert [bool(one.get("hint")) for one in details] == [True] * 5 + [False] * 3


@pytest.mark.sliced(1)
@pytest.mark.parametrize("place", ["another branch", "a bare repository"])
def test_a_check_that_cannot_judge_the_files_is_not_ok_and_gives_the_violations_of_the_records(
    project, tmp_path, place
):
    commit_files(project.root, {"docs/requirements/a.md": req("REQ-1", links="[GONE]")})
    if place == "a bare repository":
        root = tmp_path / "bare.git"
        git(tmp_path, "clone", "--quiet", "--bare", project.root, root)
        (root / ".kb").mkdir()
        stores_at(root).mkdir(parents=True)
        git(root, "worktree", "add", "--quiet", tmp_path / "tree", "main")
        tree = Project(tmp_path / "tree", is_new=False)
        tree.sync()
        tree.close()
    else:
        root = project.root
        project.sync()
        project.switch("other", create=True)
    with direct(root, branch="main") as tools:
        answer = tools.answer("kb_check")
        clean = tools.answer("kb_check", rules=["acyclic"])
        counted = tools.answer("kb_check", statistics=True)
    assert [one["rule"] for one in answer["violations"]] == ["unresolved-reference"]
    for one in (answer, clean, counted):
        assert (one["ok"], one["code"], one["freshness"]) == (None, "files_unknown", "unknown"), one
        assert one["freshness_reason"]
        assert one["note"].startswith("`ok` is null: the files cannot be judged")
    assert (clean["total"], clean["violations"]) == (0, [])


def test_violations_since_a_point_are_those_that_are_new(project):
    """A point is a seq, a time or a revision of git, as everywhere."""
    one, two = "docs/requirements/1.md", "docs/requirements/2.md"
    commit_files(project.root, {one: req("REQ-1", depends_on="NO-1")})
    project.sync()
    git(project.root, "tag", "v1")
    commit_files(project.root, {two: req("REQ-2", depends_on="NO-2")})
    project.sync()
    with agent(project.root) as found:
        rule = {"rules": ["unresolved-reference"]}
        assert found.call("kb_check", **rule)["total"] == 2
        for point in ("v1", "HEAD~1", 1, "1"):
            answer = found.call("kb_check", since=point, **rule)
            assert [one["id"] for one in answer["violations"]] == ["REQ-2"]
            assert (answer["fixed"], answer["ok"]) == (0, False)
            is_of_git = point in {"v1", "HEAD~1"}
            assert answer["since"].get("commit") == (git(project.root, "rev-parse", "v1") if is_of_git else None)
        for point in ("HEAD", "main", "now"):
            answer = found.call("kb_check", since=point, **rule)
            assert (answer["total"], answer["ok"]) == (0, True)
        assert found.call("kb_check", since="v1", paths=[one], **rule)["total"] == 0
        assert found.call("kb_check", since="v1", ids=["REQ-2"], **rule)["total"] == 1
        assert found.call("kb_check", since="v1", limit=1, **rule)["total"] == 1
        project.sync({one: req("REQ-1")})
        assert found.call("kb_check", since="v1", **rule)["fixed"] == 1
        error = found.refused("kb_check", since="nowhere", ids=["REQ-3"])
        assert {one["path"] for one in error["details"]} >= {"$.since"}


def test_a_cursor_of_a_check_since_a_point_belongs_to_that_point(kb):
    cursor = kb.call("kb_check", since=0, limit=1)["next_cursor"]
    assert kb.call("kb_check", since=0, limit=1, cursor=cursor)["violations"]
    assert kb.refused("kb_check", limit=1, cursor=cursor)["code"] == "invalid_query"


def test_what_a_merge_would_not_bring_together_is_what_the_command_says(project):
    def titled(key: str, title: str) -> dict[str, str]:
        return {f"docs/requirements/{key}.md": f"---\nid: {key}\ntitle: {title}\nstatus: open\n---\n"}

    commit_files(project.root, titled("REQ-1", "Before") | titled("REQ-2", "Before"))
    git(project.root, "branch", "other")
    commit_files(project.root, titled("REQ-1", "Ours") | titled("REQ-2", "Ours"))
    git(project.root, "switch", "-q", "other")
    commit_files(project.root, titled("REQ-1", "Theirs") | titled("REQ-2", "Theirs"))
    git(project.root, "switch", "-q", "main")
    project.sync()
    said = run_kb(project.root, "check", "--against", "other", "--json").json
    with agent(project.root) as reader:
        answer = reader.call("kb_check", against="other", limit=10)
        assert answer["against"] == said["against"]
        assert answer["violations"] == said["violations"]
        assert (answer["ok"], answer["total"], answer["rules_run"]) == (False, 2, 4)
        first = reader.call("kb_check", against="other", limit=1)
        assert first["violations"] == said["violations"][:1]
        again = reader.call("kb_check", against="other", cursor=first["next_cursor"])
        assert again["violations"] == said["violations"][1:]
        assert reader.refused("kb_check", against="main", cursor=first["next_cursor"])["code"] == "invalid_query"
        [one] = reader.call("kb_check", against="other", ids=["REQ-2"])["violations"]
        assert one["id"] == "REQ-2"
        assert reader.call("kb_check", against="other", rules=["against-id"])["total"] == 0
        assert reader.refused("kb_check", against="other", rules=["orphans"])["details"][0]["path"] == "$.rules[0]"
        assert reader.refused("kb_check", against="gone")["code"] == "files_unknown"
        refused = reader.refused("kb_check", against="other", since="other")
        assert [problem["path"] for problem in refused["details"]] == ["$.against"]
        run_git(project.root, "merge", "-q", "other")
        assert reader.refused("kb_check", against="other")["code"] == "files_unknown"


def test_a_branch_that_is_not_checked_out_is_compared_as_its_last_commit_has_it(project):
    commit_files(project.root, {"docs/requirements/1.md": "---\nid: REQ-1\ntitle: Before\nstatus: open\n---\n"})
    project.sync()
    git(project.root, "branch", "other")
    with agent(project.root, "--branch", "main") as reader:
        git(project.root, "switch", "-q", "other")
        commit_files(project.root, {"docs/requirements/1.md": "---\nid: REQ-1\ntitle: After\nstatus: open\n---\n"})
        answer = reader.call("kb_check", against="other")
        assert (answer["ok"], answer["total"], answer["against"]["ref"]) == (True, 0, "other")
