"""``kb check`` of files, folders and ids."""

from __future__ import annotations

import json

import pytest

from tests.cli.check.violations import document
from tests.support.processes.cli import write
from tests.support.repository.repos import commit_files, git


def test_a_similar_id_is_looked_for_of_the_first_unknown_ids_only(kb, synced):
    ran = kb("check", "--json", *(f"REQ-1x{number}" for number in range(8)))
    details = json.loads(ran.out)["error"]["details"]
    assert [bool(one["hint"]) for one in details] == [True] * 5 + [False] * 3


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("targets", "ids"),
    [
        (["B-1"], ["B-1"]),
        (["./docs/requirements/b2.md"], ["B-2"]),
        (["B-1", "docs/requirements/m03.md"], ["B-1", "M-03"]),
        (["docs/tests"], []),
    ],
)
def test_files_folders_and_ids_narrow_it(kb, crowded, targets, ids):
    assert [one["id"] for one in kb("check", *targets, "--json").json["violations"]] == ids


@pytest.mark.sliced
def test_a_file_means_what_it_states_and_edges_of_other_files_at_either_end_of_it(kb, synced):
    write(synced, {"docs/requirements/other.md": document("OTHER", "links: [{depends_on: [REQ-1]}]\n")})
    kb("sync")
    assert kb("set", "REQ-1", "title=Changed").status == 0
    path = kb("query", "--id", "REQ-1", "--json").json["entities"][0]["source"]
    ran = kb("check", path, "--json")
    found = {(one["rule"], one["id"], one["source"]) for one in ran.json["violations"]}
    assert ("suspect-edge", "OTHER", "docs/requirements/other.md") in found
    assert f", of what concerns {path}: " in kb("check", path).out
    assert ", of what concerns REQ-1, docs/tests: " in kb("check", "REQ-1", "docs/tests", "--statistics").err
    assert "concerns" not in kb("check").out


def test_a_target_that_is_nothing_is_refused_with_the_nearest(kb, crowded):
    ran = kb("check", "docs/requirements/b3.md")
    assert (ran.status, "Did you mean 'docs/requirements/b" in ran.err) == (64, True)
    assert kb("check", "B1").status == 64
    assert kb("check", "../elsewhere").status == 2


@pytest.mark.sliced
def test_a_file_from_which_nothing_is_known_is_noted_and_the_rest_judged(kb, crowded):
    commit_files(crowded, {"src/[a].py": "pass\n", "docs/requirements/gone.md": document("GONE")})
    (crowded / "docs/requirements/gone.md").unlink()
    ran = kb("check", "src/[a].py", "docs/requirements/gone.md", "docs/requirements/b1.md", "--json")
    assert (ran.status, [one["id"] for one in ran.json["violations"]]) == (1, ["B-1"])
    noted = "Not checked, as no fact comes from it: 'docs/requirements/gone.md', 'src/[a].py'."
    assert noted in kb("check", "src/[a].py", "docs/requirements/gone.md", "docs/requirements/b1.md").err
    alone = kb("check", "src/[a].py")
    assert (alone.status, "no violations" in alone.out) == (0, True)
    assert kb("check", "src/[a].py", "--since", "1", "--json").json["violations"] == []
    unknown = kb("check", "b1.md", "zzzzzzzz")
    assert (unknown.status, "Known:" in unknown.err) == (64, False)


@pytest.mark.sliced
def test_a_document_that_was_deleted_is_judged_by_what_it_stated_in_every_format(kb, synced):
    other = "docs/requirements/other.md"
    commit_files(synced, {other: document("OTHER", "links: [LAST]\n"), "docs/requirements/last.md": document("LAST")})
    assert kb("sync").status == 0
    path = "docs/requirements/last.md"
    (synced / path).unlink()
    for options in ((), ("--since", "HEAD"), ("--staged",)):
        if "--staged" in options:
            git(synced, "add", "--all")
        ran = kb("check", path, *options)
        assert (ran.status, f"{other}:5: OTHER links to LAST, but there is no LAST." in ran.out) == (1, True), ran
        report = kb("check", path, *options, "--json").json
        [violation] = report["violations"]
        assert (violation["rule"], violation["source"]) == ("unresolved-reference", other)
        assert report["stated_last"] == ([] if "--staged" in options else [path])
    for name, expected in (("sarif", '"ruleId": "unresolved-reference"'), ("junit", "<failure"), ("github", "::error")):
        ran = kb("check", path, "--format", name)
        assert (ran.status, expected in ran.out) == (1, True), name
        assert "Checked by what it stated last, as no fact comes from it any more" in ran.out


@pytest.mark.sliced
def test_a_file_from_which_nothing_is_known_is_named_in_every_format(kb, synced):
    commit_files(synced, {"src/a.py": "pass\n"})
    assert kb("check", "src/a.py", "--json").json["not_checked"] == ["src/a.py"]
    assert kb("check", "REQ-1", "--json").json["not_checked"] == []
    said = "Not checked, as no fact comes from it"
    for name in ("sarif", "junit", "github"):
        ran = kb("check", "src/a.py", "--format", name)
        assert (ran.status, said in ran.out) == (0, True), name


@pytest.mark.sliced
def test_a_former_id_names_what_to_check(kb, crowded):
    kb("rename", "B-1", "B-9")
    assert [one["id"] for one in kb("check", "B-1", "--json").json["violations"]] == ["B-9"]
