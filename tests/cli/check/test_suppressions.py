"""Suppressions: violations that a document or the settings accept with a reason."""

from __future__ import annotations

import json

import pytest

from tests.cli.check.violations import COUNT, document
from tests.support.processes.cli import write


def test_a_reason_in_the_document_suppresses_a_rule_for_it(kb, crowded):
    alone = {"docs/requirements/m00.md": document("M-00", "suppress: {orphans: it is a glossary}\n")}
    write(crowded, alone | {"docs/requirements/m01.md": document("M-01", 'suppress: {orphans: ""}\n')})
    ran = kb("check", "--rule", "orphans", "--limit", "1")
    assert ran.out.splitlines()[0] == f"warning orphans: {COUNT - 1}"
    assert "M-01 (req) is linked to nothing. (`suppress` names orphans without a reason. Write why." in ran.out
    assert f"{COUNT - 1} warnings, 1 suppressed (1 rule ran)" in ran.out.splitlines()[-1]


def test_a_reason_that_a_client_wrote_suppresses_nothing(kb, crowded):
    stated = {"entities": [{"id": "M-00", "attributes": {"suppress": {"orphans": "trust me"}}}]}
    written = kb("apply", "-", stdin=json.dumps(stated))
    assert written.status == 0, written.err
    first = kb("check", "--rule", "orphans", "--json").json["violations"][0]
    assert first["id"] == "M-00"
    assert first["hint"].startswith("`suppress` is ignored: a client wrote it. It counts only in a document.")


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{orphanz: why}", "`suppress` names 'orphanz', and there is no such rule. Did you mean 'orphans'?"),
        (
            "orphans",
            "`suppress` is ignored: it is no mapping. It takes a reason for each rule, as in `suppress: {RULE: why}`.",
        ),
        ("{secret: an example}", ""),
    ],
)
def test_a_suppression_in_a_document_that_cannot_count_is_named(kb, crowded, text, said):
    usual = kb("check", "--rule", "orphans", "--json").json["violations"][0]["hint"]
    write(crowded, {"docs/requirements/m00.md": document("M-00", f"suppress: {text}\n")})
    first = kb("check", "--rule", "orphans", "--json").json["violations"][0]
    assert (first["id"], first["hint"]) == ("M-00", f"{said} {usual}".lstrip())


@pytest.mark.sliced
def test_a_reason_in_the_configuration_suppresses_a_rule_by_id_or_paths(kb, crowded):
    entries = [
        {"rule": "orphans", "paths": ["docs/requirements/m0*.md"], "reason": "imported"},
        {"rule": "unresolved-reference", "id": "B-1", "reason": "is to come"},
    ]
    write(crowded, {".kb/config.json": json.dumps({"suppress": entries})})
    answer = kb("check", "--json").json
    assert [one["id"] for one in answer["violations"]] == ["B-2", "MUST", "MUST", "M-10", "M-11"]
    assert answer["suppressed"] == 11
    assert kb("check", "B-1").status == 0


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"rule": "orphans", "id": "M-00"}, "has a rule, a reason, and an id or paths"),
        ({"rule": "orphans", "reason": "x"}, "has a rule, a reason, and an id or paths"),
        ({"rule": "orphans", "id": "M-00", "reason": " "}, "must be text that is not empty"),
        ({"rule": "orphan", "id": "M-00", "reason": "x"}, "Did you mean 'orphans'?"),
        ({"rule": "orphans", "ids": "M-00", "reason": "x"}, "Did you mean 'id'?"),
    ],
)
def test_a_suppression_that_cannot_be_used_is_refused(kb, crowded, entry, said):
    write(crowded, {".kb/config.json": json.dumps({"suppress": [entry]})})
    ran = kb("check")
    assert (ran.status, said in ran.err) == (63, True)


def test_of_many_suppressions_without_effect_the_first_are_listed_and_the_others_counted(kb, ready):
    suppress = [{"rule": "orphans", "id": f"GONE-{at}", "reason": "x"} for at in range(22)]
    write(ready, {".kb/config.json": json.dumps({"suppress": suppress})})
    said = kb("check").err
    assert said.count("which does not exist") == 20
    assert "2 more suppressions have no effect. `kb check --json` lists them all." in said
    assert len(kb("check", "--json").json["idle_suppressions"]) == 22


def test_json_lists_the_suppressions_without_effect(kb, ready):
    path = "docs/requirements/one.md"
    write(ready, {path: document("R-1", "suppress: {orphanz: why}\n")})
    kb("sync")
    [idle] = kb("check", "--json").json["idle_suppressions"]
    assert (idle["path"], idle["code"], idle["hint"]) == (path, "unknown_rule", "Did you mean 'orphans'?")
    assert "orphanz" in idle["message"]
    assert "idle_suppressions" not in kb("check", "R-1", "--json").json
    write(ready, {path: document("R-1")})
    assert kb("check", "--json").json["idle_suppressions"] == []
