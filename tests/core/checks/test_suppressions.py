"""Suppressions without effect are named, whether or not the entity breaks a rule."""

from __future__ import annotations

import json

import pytest

from kbcore.checks import idle_suppressions
from tests.support.repository.project import req


def idle(project):
    return [(one.path, one.code, one.hint) for one in idle_suppressions(project.workspace(), project.view())]


@pytest.mark.parametrize(
    ("stated", "code", "hint"),
    [
        ("{orphanz: why}", "unknown_rule", "Did you mean 'orphans'?"),
        ("orphans", "wrong_type", "It takes a reason for each rule, as in `suppress: {RULE: why}`."),
        ("{orphans: ''}", "no_reason", "Write why."),
    ],
)
def test_what_a_document_suppresses_in_vain_is_named_with_what_was_meant(project, stated, code, hint):
    project.sync({"docs/requirements/1.md": req("REQ-1", suppress=stated)})
    assert idle(project) == [("docs/requirements/1.md", code, hint)]


def test_a_setting_for_an_id_that_does_not_exist_is_named_and_a_file_or_an_entity_is_not(project):
    ids = ["REQ-11", "REQ-1", "docs/requirements/1.md"]
    suppress = [{"rule": "orphans", "id": one, "reason": "x"} for one in ids]
    project.write({".kb/config.json": json.dumps({"suppress": suppress})})
    project.sync({"docs/requirements/1.md": req("REQ-1", suppress="{orphans: alone on purpose}")})
    assert idle(project) == [(".kb/config.json", "idle_suppression", "Did you mean 'REQ-1'?")]


def test_what_may_be_meant_is_looked_for_with_the_first_few_ids_that_do_not_exist(project):
    suppress = [{"rule": "orphans", "id": f"REQ-1{at:02}", "reason": "x"} for at in range(40)]
    project.write({".kb/config.json": json.dumps({"suppress": suppress})})
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    hints = [hint for _, _, hint in idle(project)]
    assert (len(hints), hints.count("Did you mean 'REQ-1'?")) == (40, 5)


def test_a_setting_for_paths_of_which_no_file_is_read_is_named(project):
    suppress = [{"rule": "orphans", "paths": [one], "reason": "x"} for one in ("docs/nope/**", "docs/**")]
    project.write({".kb/config.json": json.dumps({"suppress": suppress})})
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    assert idle(project) == [
        (".kb/config.json", "idle_suppression", "Correct the path, or remove the suppression."),
    ]
