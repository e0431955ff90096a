"""``kb check --path``: a part of the repository."""

from __future__ import annotations

import json

import pytest

from tests.support.processes.cli import write

SERVICES = {
    ".kb/config.json": json.dumps(
        {"extractors": {"markdown": {"paths": {"req": "services/*/docs/*.md", "test": "tests/*.md"}}}}
    ),
    "services/pay/docs/one.md": "---\nid: REQ-11\nstatus: accepted\ntitle: Pay\nlinks: [REQ-77]\n---\n",
    "services/shop/docs/two.md": "---\nid: REQ-12\nstatus: accepted\ntitle: Shop\nlinks: [REQ-78]\n---\n",
    "tests/t.md": "---\nid: TEST-9\nstatus: active\ntitle: T\nlinks: [REQ-11]\n---\n",
}


@pytest.fixture
def services(grown):
    """A repository with the documents of two services and with a test outside of them."""
    return grown(two_services, "ready")


def two_services(root, kb):
    write(root, SERVICES)
    kb("sync")


def test_a_part_of_the_repository_is_judged_by_itself(kb, services):
    whole = kb("check", "--json").json
    assert {one["id"] for one in whole["violations"]} >= {"REQ-11", "REQ-12"}
    answer = kb("check", "--path", "services/pay", "--json").json
    assert {one["id"] for one in answer["violations"]} == {"REQ-11"}
    assert (answer["ok"], answer["paths"]) == (False, ["services/pay"])
    assert kb("check", "--path", "services/*/docs/*.md", "--rule", "unresolved-reference").status == 1
    both = kb("check", "--path", "services/pay", "--path", "services/shop", "--json").json
    assert {one["id"] for one in both["violations"]} == {"REQ-11", "REQ-12"}


def test_an_entity_outside_of_the_part_is_not_reported_although_a_file_in_it_links_it(kb, services):
    assert kb("check", "--path", "tests").status == 0
    assert kb("check", "tests", "--rule", "unresolved-reference").status == 1


def test_targets_are_judged_only_inside_the_part(kb, services):
    assert kb("check", "REQ-12", "--path", "services/shop").status == 1
    ran = kb("check", "REQ-12", "--path", "services/pay")
    assert ran.status == 0
    assert ran.out.splitlines()[-1].startswith("main at seq 1, of what concerns REQ-12, in services/pay: no violations")


def test_the_folder_of_the_part_is_named_from_where_the_command_runs(kb, services):
    answer = kb("check", "--path", ".", "--json", cwd=services / "services/shop").json
    assert {one["id"] for one in answer["violations"]} == {"REQ-12"}


def test_reports_for_other_tools_are_of_the_part(kb, services):
    sarif = kb("check", "--path", "services/pay", "--format", "sarif").json
    assert {one["ruleId"] for one in sarif["runs"][0]["results"]} >= {"unresolved-reference"}
    for format_ in ("sarif", "junit", "github"):
        report = kb("check", "--path", "services/pay", "--format", format_).out
        assert "REQ-77" in report
        assert "REQ-78" not in report


def test_a_part_in_which_there_is_nothing_is_refused(kb, services):
    for path in ("services/pya", "services/pay/*.rst", "REQ-11"):
        ran = kb("check", "--path", path)
        assert ran.status == 64
        assert path in ran.err
    assert kb("check", "--write-baseline", "--path", "services/pay").status == 2


def test_the_baseline_holds_in_a_part_as_in_the_whole(kb, services):
    kb("check", "--write-baseline")
    answer = kb("check", "--path", "services/pay", "--json").json
    assert answer["ok"]
    assert 0 < answer["in_baseline"] < kb("check", "--json").json["in_baseline"]
