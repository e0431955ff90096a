"""``kb check --against``: conflicts of meaning before a merge, on real git with two clones and a bare upstream."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from kbcore import limits
from tests.support.processes.cli import write
from tests.support.repository.repos import commit_files, git, run_git

MAIN = "origin/main"


def document(key: str, title: str, **fields: str) -> str:
    more = "".join(f"{name}: {value}\n" for name, value in (fields or {"status": "draft"}).items())
    return f"---\nid: {key}\ntitle: {title}\n{more}---\n"


def path(name: str) -> str:
    return f"docs/requirements/{name}.md"


def commit(root: Path, files: dict[str, str | None], message: str = "change") -> None:
    write(root, files)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", message)


class Clones:
    """Two clones of a bare upstream; ``there`` is pushed and fetched here by ``meet``."""

    def __init__(self, upstream: Path, here: Path, there: Path) -> None:
        self.upstream, self.here, self.there = upstream, here, there

    def meet(self) -> None:
        git(self.there, "push", "-q", "origin", "HEAD:main")
        git(self.here, "fetch", "-q")


@pytest.fixture
def clones(kb, ready) -> Clones:
    base = {
        path("1"): document("REQ-1", "Log in", status="draft", tags="[web]"),
        path("2"): document("REQ-2", "Log out"),
        "docs/symbols.yaml": "symbols:\n- id: SYM-1\n  title: login\n  implements: [REQ-1]\n",
    }
    commit(ready, base)
    upstream, there = ready.parent / "up.git", ready.parent / "there"
    git(ready.parent, "clone", "-q", "--bare", ready, upstream)
    git(ready, "remote", "add", "origin", upstream.as_uri())
    git(ready, "fetch", "-q")
    git(ready.parent, "clone", "-q", upstream.as_uri(), there)
    git(ready, "switch", "-q", "-c", "feature")
    kb("sync")
    return Clones(upstream, ready, there)


def found(kb, *words: str) -> list[dict]:
    ran = kb("check", "--against", MAIN, "--json", *words)
    assert ran.status in (0, 1), ran
    assert (ran.status == 1) == bool(ran.json["violations"])
    return ran.json["violations"]


def test_one_new_id_on_two_branches_is_found_and_a_rename_settles_it(kb, clones):
    commit(clones.here, {path("a"): document("REQ-3", "Ours")})
    commit(clones.there, {path("b"): document("REQ-3", "Theirs")})
    clones.meet()
    [one] = found(kb)
    assert (one["rule"], one["id"], one["code"], one["values"]) == (
        "against-id", "REQ-3", "made_twice", ["Ours", "Theirs"],
    )  # fmt: skip
    assert (one["source"], one["line"]) == (path("a"), 2)
    assert one["other"] == {"ref": MAIN, "source": path("b"), "line": 2}
    kb("sync")
    assert kb("rename", "REQ-3", "REQ-{n}").status == 0
    # The former id would keep the other document out after the merge, as a sync says then.
    [one] = found(kb)
    assert (one["code"], one["id"], one["line"]) == ("former_id", "REQ-3", 5)
    assert "kb set REQ-4 former_ids-=REQ-3" in one["hint"]
    assert kb("set", "REQ-4", "former_ids-=REQ-3").status == 0
    assert found(kb) == []
    commit(clones.here, {})
    git(clones.here, "merge", "-q", MAIN)
    kb("sync", "--strict")
    assert kb("check", "--rule", "unreadable-source").status == 0
    ids = [kb("show", f"REQ-{number}", "--json").json["entity"]["title"] for number in (3, 4)]
    assert ids == ["Theirs", "Ours"]


def test_what_is_not_committed_counts_on_this_side(kb, clones):
    commit(clones.there, {path("b"): document("REQ-3", "Theirs")})
    clones.meet()
    assert found(kb) == []
    write(clones.here, {path("a"): document("REQ-3", "Ours")})
    assert [one["id"] for one in found(kb)] == ["REQ-3"]
    write(clones.here, {path("a"): None})
    assert found(kb) == []


def test_one_field_with_two_new_values_is_found_with_both_places(kb, clones):
    write(clones.here, {path("1"): None})
    commit(clones.here, {path("moved"): document("REQ-1", "Log in", priority="high", status="approved", tags="[a]")})
    commit(clones.there, {path("1"): document("REQ-1", "Log in", status="rejected", tags="[web, b]")})
    clones.meet()
    [one] = found(kb)
    assert (one["rule"], one["id"], one["field"]) == ("against-field", "REQ-1", "status")
    assert one["values"] == ["approved", "rejected"]
    assert (one["source"], one["line"]) == (path("moved"), 5)
    assert one["other"] == {"ref": MAIN, "source": path("1"), "line": 4}


def test_an_edge_to_what_the_other_side_deletes_is_found_from_either_side(kb, clones):
    commit(clones.here, {path("3"): document("REQ-3", "New", depends_on="[REQ-2]"), path("1"): None,
                         "docs/symbols.yaml": None})  # fmt: skip
    commit(clones.there, {path("2"): None, path("4"): document("REQ-4", "Other", depends_on="[REQ-1]")})
    clones.meet()
    one, other = sorted(found(kb), key=lambda each: each["source"])
    assert (one["rule"], one["id"], one["values"]) == ("against-edge", "REQ-2", ["REQ-3", "depends_on", "REQ-2"])
    assert (one["source"], one["line"]) == (path("3"), 4)
    assert one["other"] == {"ref": MAIN, "source": path("2"), "line": 2}
    assert (other["id"], other["values"]) == ("REQ-1", ["REQ-4", "depends_on", "REQ-1"])
    assert (other["source"], other["other"]["source"]) == (path("4"), path("4"))
    assert "REQ-1 was deleted here" in other["message"]


def test_what_clients_stated_in_the_store_of_this_side_counts(kb, clones):
    changes = {
        "entities": [
            {"id": "REQ-3", "type": "req", "title": "Agent's", "status": "draft"},
            {"id": "S-2", "type": "symbol", "title": "s", "status": "active"},
        ],
        "edges": [{"type": "implements", "from": "S-2", "to": "REQ-2"}],
    }
    assert kb("apply", "-", stdin=json.dumps(changes)).status == 0
    assert found(kb) == []
    commit(clones.there, {path("2"): None, path("3"): document("REQ-3", "Theirs")})
    clones.meet()
    made, edge = found(kb)
    assert (edge["rule"], edge["values"], edge["source"]) == ("against-edge", ["S-2", "implements", "REQ-2"], "")
    assert (made["rule"], made["values"]) == ("against-id", ["Agent's", "Theirs"])
    assert "(stated by a client)" in made["message"]


def test_a_commit_that_both_sides_have_is_no_conflict(kb, clones):
    commit(clones.there, {path("3"): document("REQ-3", "New"), path("1"): document("REQ-1", "Sign in")})
    clones.meet()
    git(clones.here, "cherry-pick", MAIN)
    assert found(kb) == []


def test_renames_are_no_deletions(kb, clones):
    commit(clones.here, {path("3"): document("REQ-3", "New", depends_on="[REQ-2]")})
    renamed = document("REQ-9", "Log out", status="draft", former_ids="[REQ-2]")
    commit(clones.there, {path("2"): None, path("9"): renamed})
    clones.meet()
    assert found(kb) == []


def test_several_common_ancestors_are_all_asked(kb, clones):
    git(clones.here, "branch", "one", "main")
    git(clones.here, "branch", "two", "main")
    for branch, title in (("one", "One"), ("two", "Two")):
        git(clones.here, "switch", "-q", branch)
        commit(clones.here, {path("1"): document("REQ-1", title), path(branch): document(f"REQ-{branch}", title)})
    git(clones.here, "branch", "was-one", "one")
    for branch, other, strategy in (("one", "two", "ours"), ("two", "was-one", "ours")):
        git(clones.here, "switch", "-q", branch)
        git(clones.here, "merge", "-q", "-X", strategy, "-m", "crosswise", other)
    assert len(git(clones.here, "merge-base", "--all", "one", "two").split()) == 2
    ran = kb("check", "--against", "one", "--json")
    assert len(ran.json["against"]["bases"]) == 2
    # Each took the other's document, and decided on a title of its own.
    assert [(one["id"], one["field"], one["values"]) for one in ran.json["violations"]] == [
        ("REQ-1", "title", ["Two", "One"])
    ]
    commit(clones.here, {path("1"): document("REQ-1", "One")})
    assert kb("check", "--against", "one").status == 0


def test_without_a_common_ancestor_or_a_revision_nothing_is_green(kb, clones):
    commit(clones.there, {path("3"): document("REQ-3", "New")})
    clones.meet()
    for ref in ("nowhere", "", "--all"):
        ran = kb("check", f"--against={ref}", "--json")
        assert (ran.status, ran.error["code"]) == (29, "files_unknown"), ref
    git(clones.here, "switch", "-q", "--orphan", "alone")
    commit(clones.here, {path("1"): document("REQ-1", "Alone")})
    ran = kb("check", "--against", MAIN)
    assert (ran.status, ran.out) == (29, "")
    assert "share no commit in this clone" in ran.err
    assert "git fetch --unshallow" in ran.err


@pytest.mark.parametrize("format_", ["text", "json", "sarif", "junit", "github"])
def test_in_a_shallow_clone_nothing_is_compared_and_no_report_is_written(kb, clones, format_):
    commit(clones.there, {path("3"): document("REQ-3", "New")})
    clones.meet()
    commit(clones.here, {path("4"): document("REQ-4", "Mine")})
    git(clones.here, "push", "-q", "origin", "feature")
    shallow = clones.here.parent / "shallow"
    git(clones.here.parent, "clone", "-q", "--depth", "1", "--no-single-branch", "-b", "feature",
        clones.upstream.as_uri(), shallow)  # fmt: skip
    ran = kb("check", "--against", MAIN, "--format", format_, cwd=shallow)
    assert ran.status == 29
    assert "<testsuite" not in ran.out
    assert "sarif" not in ran.out
    git(shallow, "fetch", "-q", "--unshallow")
    assert kb("check", "--against", MAIN, cwd=shallow).status == 0


def test_a_common_ancestor_that_may_not_be_the_last_one_is_not_compared_with(kb, clones):
    """The history of a merge is cut off on one of its ways: an older common ancestor is left."""
    commit(clones.here, {path("4"): document("REQ-4", "Mine")})
    commit(clones.there, {path("1"): document("REQ-1", "Second")})
    clones.meet()
    shared = git(clones.here, "rev-parse", MAIN)
    git(clones.here, "switch", "-q", "-c", "side", MAIN)
    commit(clones.here, {path("5"): document("REQ-5", "Mine")})
    end = git(clones.here, "rev-parse", "HEAD")
    git(clones.here, "switch", "-q", "feature")
    git(clones.here, "merge", "-q", "-m", "merge", "side")
    commit(clones.there, {path("6"): document("REQ-6", "Theirs")})
    clones.meet()
    kb("sync")
    ran = kb("check", "--against", MAIN, "--json")
    assert (ran.status, ran.json["against"]["bases"]) == (0, [shared])
    (clones.here / ".git/shallow").write_text(f"{end}\n")
    assert git(clones.here, "merge-base", "HEAD", MAIN) not in {"", shared}
    ran = kb("check", "--against", MAIN)
    assert (ran.status, "may share a later commit" in ran.err) == (29, True)


def test_files_that_a_partial_clone_lacks_are_not_fetched_and_not_passed_over(kb, clones):
    commit(clones.there, {path("3"): document("REQ-3", "New")})
    clones.meet()
    git(clones.upstream, "config", "uploadpack.allowFilter", "true")
    partial = clones.here.parent / "partial"
    git(clones.here.parent, "clone", "-q", "--filter=blob:none", clones.upstream.as_uri(), partial)
    git(partial, "switch", "-q", "-c", "mine")
    commit(partial, {path("4"): document("REQ-4", "Mine")})
    commit(clones.there, {path("1"): document("REQ-1", "Changed")})
    git(clones.there, "push", "-q", "origin", "HEAD:main")
    git(partial, "fetch", "-q")
    before = git(partial, "count-objects", "-v")
    ran = kb("check", "--against", MAIN, cwd=partial)
    assert (ran.status, ran.out) == (29, "")
    assert "are not in this clone" in ran.err
    assert git(partial, "count-objects", "-v") == before


def test_each_side_is_read_by_its_own_settings(kb, clones):
    """The other side has moved its documents; read by the settings of this side, all would be deleted there."""
    commit(clones.here, {path("3"): document("REQ-3", "New", depends_on="[REQ-1]")})
    settings = json.loads((clones.there / ".kb/config.json").read_text())
    settings["extractors"]["markdown"]["paths"]["req"] = ["spec/**/*.md"]
    (clones.there / "spec").mkdir()
    git(clones.there, "mv", path("1"), path("2"), "spec")
    commit(clones.there, {".kb/config.json": json.dumps(settings), "spec/3.md": document("REQ-3", "Theirs")})
    clones.meet()
    assert [(one["rule"], one["id"]) for one in found(kb)] == [("against-id", "REQ-3")]
    commit(clones.there, {".kb/config.json": "{"})
    clones.meet()
    ran = kb("check", "--against", MAIN)
    assert ran.status == 29
    assert f"The settings in {MAIN} cannot be used" in ran.err


def test_a_file_that_cannot_be_read_whole_is_a_violation_and_deletes_nothing(kb, clones):
    commit(clones.here, {path("3"): document("REQ-3", "New", depends_on="[REQ-2]")})
    commit(clones.there, {path("2"): "---\nid: REQ-2\ntitle: [\n"})
    clones.meet()
    [one] = found(kb)
    assert (one["rule"], one["code"], one["id"]) == ("against-id", "unread", path("2"))
    assert f"in {MAIN} could not be read whole" in one["message"]


def test_every_format_has_the_conflict_with_both_places(kb, clones):
    commit(clones.here, {path("1"): document("REQ-1", "Ours", status="draft", tags="[web]")})
    commit(clones.there, {path("1"): document("REQ-1", "Theirs", status="draft", tags="[web]")})
    clones.meet()

    def run(format_: str) -> str:
        ran = kb("check", "--against", MAIN, "--format", format_)
        assert ran.status == 1
        return ran.out

    both = f"`title` of REQ-1 was changed here to 'Ours' ({path('1')}:3), and in {MAIN} to 'Theirs' ({path('1')}:3)."
    assert f"{path('1')}:3: {both}" in run("text")
    assert both in run("short")
    [result] = json.loads(run("sarif"))["runs"][0]["results"]
    assert (result["ruleId"], result["locations"][0]["physicalLocation"]["region"]) == (
        "against-field", {"startLine": 3},
    )  # fmt: skip
    [other] = result["relatedLocations"]
    assert other["message"]["text"] == f"In {MAIN}."
    assert other["physicalLocation"]["region"] == {"startLine": 3}
    cases = ET.fromstring(run("junit")).findall("testsuite/testcase[failure]")
    assert [(case.get("classname"), case.get("line")) for case in cases] == [("kb.against-field", "3")]
    assert run("github").startswith(f"::error file={path('1')},line=3,title=against-field::")
    assert kb("check", "--against", MAIN, "--statistics").out.split()[3:] == ["against-field", "error", "1"]


def test_levels_rules_targets_baseline_and_suppressions_hold_as_elsewhere(kb, clones):
    commit(clones.here, {path("1"): document("REQ-1", "Ours"), path("3"): document("REQ-3", "Ours")})
    commit(clones.there, {path("1"): document("REQ-1", "Theirs"), path("3"): document("REQ-3", "Theirs")})
    clones.meet()
    assert [one["id"] for one in found(kb)] == ["REQ-3", "REQ-1"]
    assert [one["id"] for one in found(kb, "--rule", "against-field")] == ["REQ-1"]
    assert [one["id"] for one in found(kb, "REQ-3")] == ["REQ-3"]
    assert [one["id"] for one in found(kb, path("1"))] == ["REQ-1"]
    assert kb("check", "--against", MAIN, "--fail-on", "never").status == 0
    ran = kb("check", "--against", MAIN, "--rule", "orphans")
    assert ran.status == 64
    assert "These compare: against-id, against-field, against-edge, against-pack." in ran.err
    settings = {"rules": {"against-field": "warning", "against-id": "off"}}
    write(clones.here, {".kb/config.json": json.dumps(settings)})
    ran = kb("check", "--against", MAIN, "--json")
    assert (ran.status, [one["severity"] for one in ran.json["violations"]]) == (0, ["warning"])
    assert [(one["id"], one["status"]) for one in ran.json["rules"]] == [
        ("against-field", "ran"), ("against-edge", "ran"), ("against-pack", "ran"), ("against-id", "off"),
    ]  # fmt: skip
    assert kb("check", "--against", MAIN, "--fail-on", "warning").status == 1
    accepted = {"suppress": [{"rule": "against-id", "id": "REQ-3", "reason": "They are one."}]}
    write(clones.here, {".kb/config.json": json.dumps(accepted)})
    baseline = {"rule": "against-field", "id": "REQ-1", "code": "changed_twice", "field": "title",
                "values": ["Ours", "Theirs"]}  # fmt: skip
    write(clones.here, {".kb/baseline.json": json.dumps({"format": 1, "violations": [baseline]})})
    ran = kb("check", "--against", MAIN, "--json")
    assert (ran.status, ran.json["suppressed"], ran.json["in_baseline"]) == (0, 1, 1)
    assert kb("check", "--against", MAIN, "--no-baseline").status == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--since", "1"], "leave out --since."),
        (["--staged"], "leave out --staged."),
        (["--recorded"], "leave out --recorded."),
        (["--write-baseline"], "leave out --against."),
        (["--explain", "against-id"], "leave out --against."),
        (["--test-rules"], "leave out --against."),
    ],
)
def test_what_judges_something_else_is_refused(kb, synced, words, said):
    ran = kb("check", "--against", "main", *words)
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err


def test_another_branch_counts_as_its_last_commit_has_it(kb, clones):
    commit(clones.here, {path("3"): document("REQ-3", "Ours")})
    kb("sync")
    commit(clones.there, {path("b"): document("REQ-3", "Theirs")})
    clones.meet()
    git(clones.here, "switch", "-q", "main")
    write(clones.here, {path("3"): document("REQ-7", "Not of that branch")})
    ran = kb("check", "--against", MAIN, "--branch", "feature", "--json")
    assert [one["id"] for one in ran.json["violations"]] == ["REQ-3"]


def test_while_a_merge_is_not_finished_nothing_is_compared(kb, clones):
    commit(clones.here, {path("1"): document("REQ-1", "Ours")})
    commit(clones.there, {path("1"): document("REQ-1", "Theirs")})
    clones.meet()
    assert run_git(clones.here, "merge", MAIN).returncode == 1
    ran = kb("check", "--against", MAIN)
    assert (ran.status, "A merge of git is not finished." in ran.err) == (29, True)


def test_the_rules_say_of_themselves_when_they_run(kb, synced):
    ran = kb("check", "--rule", "against-id", "--json")
    assert (ran.status, ran.json["rules"][0]["status"]) == (0, "not_applicable")
    assert "Runs with `kb check --against REF`." in kb("check", "--explain", "against-edge").out


def two_sides(kb, root):
    """Return what writes as a client, shares and commits; branches main and topic are there."""

    def write_as(branch, key, **fields):
        git(root, "switch", "-q", branch)
        kb("sync")
        kb("apply", "-", stdin=json.dumps({"entities": [{"id": key, "type": "symbol", "status": "active", **fields}]}))
        kb("share")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", f"{key} on {branch}")
        kb("sync")

    git(root, "branch", "topic")
    return write_as


@pytest.mark.parametrize(("title", "fields"), [("One", []), ("Other", ["title"])])
def test_an_id_that_changes_of_both_sides_make_is_found_with_the_fields_that_differ(kb, synced, title, fields):
    write_as = two_sides(kb, synced)
    write_as("topic", "S-1", title=title)
    write_as("main", "S-1", title="One")
    write_as("main", "S-2", title="Only here")
    ran = kb("check", "--against", "topic", "--json")
    [made] = [one for one in ran.json["violations"] if one["rule"] == "against-id"]
    assert (made["id"], made["code"], made["values"]) == ("S-1", "made_twice", ["One", title])
    assert made["source"].startswith(".kb/changes/")
    assert made["other"]["source"].startswith(".kb/changes/")
    assert made["source"] != made["other"]["source"]
    assert [one["field"] for one in ran.json["violations"] if one["rule"] == "against-field"] == fields

    assert kb("rename", "S-1", "S-3").status == 0
    assert kb("check", "--against", "topic", "--json").json["violations"] == []


def test_an_id_that_a_change_makes_there_and_a_document_or_an_unshared_change_here_is_found(kb, synced):
    write_as = two_sides(kb, synced)
    write_as("topic", "REQ-90", title="There")
    write_as("topic", "S-1", title="There")
    git(synced, "switch", "-q", "main")
    kb("sync")
    write(synced, {path("90"): document("REQ-90", "Here")})
    entity = {"id": "S-1", "type": "symbol", "title": "Here", "status": "active"}
    assert kb("apply", "-", stdin=json.dumps({"entities": [entity]})).status == 0
    ran = kb("check", "--against", "topic", "--json", "--rule", "against-id")
    found = [(one["id"], one["source"], one["values"]) for one in ran.json["violations"]]
    assert found == [("REQ-90", path("90"), ["Here", "There"]), ("S-1", "", ["Here", "There"])]


def test_a_change_that_both_sides_have_is_no_id_that_both_made(kb, synced):
    write_as = two_sides(kb, synced)
    write_as("topic", "S-1", title="One")
    git(synced, "switch", "-q", "main")
    git(synced, "cherry-pick", "topic")
    kb("sync")
    assert kb("check", "--against", "topic").status == 0


def test_changes_in_files_that_would_be_contested_are_found_before_the_merge(kb, synced):
    def share(*words):
        kb(*words)
        kb("share")
        commit_files(synced, {})
        kb("sync")

    entity = {"id": "S-1", "type": "symbol", "title": "One", "status": "active"}
    kb("apply", "-", stdin=json.dumps({"entities": [entity]}))
    share("share")
    git(synced, "switch", "-q", "-c", "topic")
    share("set", "S-1", "title=Topic", "owner=ann")
    git(synced, "switch", "-q", "main")
    kb("sync")
    share("set", "S-1", "title=Main")

    found = kb("check", "--against", "topic", "--json")

    assert found.status == 1
    [violation] = found.json["violations"]
    assert (violation["rule"], violation["id"], violation["field"]) == ("against-field", "S-1", "title")
    assert sorted(violation["values"]) == ["Main", "S-1", "Topic"]
    assert violation["source"] != violation["other"]["source"]
    assert (synced / violation["source"]).is_file()
    assert not (synced / violation["other"]["source"]).exists()
    git(synced, "merge", "-q", "topic")
    kb("sync")
    assert kb("resolve", "--json").json["conflicts"][0]["field"] == "title"


def test_a_large_change_file_is_read_as_kb_writes_it(kb, synced):
    git(synced, "switch", "-q", "-c", "topic")
    notes = {f"note{number}": "word " * 6_000 for number in range(8)}
    for number in range(20):
        entity = {"id": f"S-{number}", "type": "symbol", "title": "One", "status": "active", "attributes": notes}
        assert kb("apply", "-", stdin=json.dumps({"entities": [entity]})).status == 0
    kb("share")
    commit_files(synced, {})
    kb("sync")
    [shared] = (synced / ".kb" / "changes").glob("*/*.jsonl")
    assert limits.MAX_SOURCE_FILE_BYTES < shared.stat().st_size < limits.MAX_CHANGE_FILE_BYTES

    found = kb("check", "--against", "main", "--json")
    assert (found.status, found.json["violations"]) == (0, [])
    new = kb("check", "--since", "main", "--json").json["violations"]
    assert "unreadable-source" not in {one["rule"] for one in new}
    checks = {(one["check"], one["code"]): one["severity"] for one in kb("doctor", "--json").json["findings"]}
    assert checks["sharing", "change_files"] == "ok"


def test_the_status_names_a_merge_that_is_not_finished_and_does_not_send_to_a_sync_of_it(kb, clones):
    commit(clones.here, {path("1"): document("REQ-1", "Ours")})
    kb("sync")
    commit(clones.there, {path("1"): document("REQ-1", "Theirs")})
    clones.meet()
    assert run_git(clones.here, "merge", MAIN).returncode == 1
    said = kb("status").out
    assert "A merge of git is not finished: the files are not those of a commit yet." in said
    assert "Next: end the merge, as `git status` says; then `kb sync`" in said
    assert kb("status", "--json").json["git_operation"] == "merge"


@pytest.mark.parametrize("is_deleted_here", [True, False])
def test_a_deletion_and_a_change_of_the_other_side_are_both_named_with_what_decides(kb, synced, user, is_deleted_here):
    write_as = two_sides(kb, synced)
    user.setenv("KB_ACTOR", "eve")
    write_as("main", "S-1", title="One")
    git(synced, "branch", "-f", "topic")
    git(synced, "switch", "-q", "topic")
    kb("branch", "ensure")

    def delete(branch):
        git(synced, "switch", "-q", branch)
        kb("sync")
        user.setenv("KB_ACTOR", "ann")
        kb("delete", "S-1")
        kb("share")
        commit_files(synced, {})
        user.setenv("KB_ACTOR", "bob")

    if is_deleted_here:
        delete("main")
        write_as("topic", "S-1", owner="bob")
    else:
        delete("topic")
        write_as("main", "S-1", owner="bob")
    git(synced, "switch", "-q", "main")
    kb("sync")
    [found] = kb("check", "--against", "topic", "--json").json["violations"]
    here, there = found["source"], found["other"]["source"]
    assert found["message"] == (
        f"S-1 was deleted by ann here ({here}), and topic has a change of it by bob ({there})."
        if is_deleted_here
        else f"S-1 was deleted by ann in topic ({there}), and was changed here by bob ({here})."
    )
    remedy = "After the merge `kb resolve S-1 deleted --take keep` keeps it, `kb delete S-1` deletes it."
    assert remedy in kb("check", "--against", "topic").out


def test_after_the_merge_the_list_of_conflicts_names_what_separates_an_id_that_was_made_twice(kb, synced):
    write_as = two_sides(kb, synced)
    write_as("topic", "S-1", title="There")
    write_as("main", "S-1", title="Here")
    git(synced, "merge", "-q", "--no-edit", "topic")
    kb("sync")
    said = kb("resolve").out
    assert "S-1 was made more than once: S-1@" in said
    command = said.rpartition("If these are several things: `kb ")[2].partition("`")[0]
    assert kb(*command.replace("NEW", "S-2").split()).status == 0
    assert (kb("resolve").out, kb("show", "S-2").status) == ("Nothing is contested.\n", 0)
