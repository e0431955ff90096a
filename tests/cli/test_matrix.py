"""``kb matrix``: every format has the same rows, and wrong names are refused with what was meant."""

from __future__ import annotations

import csv
import io
import json

import pytest

from tests.support.processes.cli import write

BOUGHT = "---\nid: REQ-3\ntitle: Bought\nnot_applicable: {verified: by the vendor}\n---\n"


@pytest.fixture
def waived(synced, kb):
    """Requirements of which one is verified, one is not, and one need not be."""
    write(synced, {"docs/requirements/bought.md": BOUGHT})
    return synced


def test_a_row_has_what_it_leads_to_none_or_why_it_need_not(kb, waived):
    ran = kb("matrix", "req", "verified_by", "--format", "table")
    assert [line.split()[:2] for line in ran.out.splitlines()[1:]] == [
        ["REQ-1", "TEST-1"],
        ["REQ-2", "none"],
        ["REQ-3", "n/a:"],
    ]
    assert "1 linked, 1 hole, 1 not applicable." in ran.err


def test_holes_alone_keep_the_numbers_of_all(kb, waived):
    found = kb("matrix", "req", "verified_by", "--holes", "--json").json
    assert [row["id"] for row in found["rows"]] == ["REQ-2"]
    assert (found["yes"], found["no"], found["not_applicable"]) == (1, 1, 1)


def test_every_format_has_the_same_rows(kb, waived):
    rows = kb("matrix", "req", "verified_by", "--json").json["rows"]
    found = list(csv.DictReader(io.StringIO(kb("matrix", "req", "verified_by", "--format", "csv").out)))
    assert [(one["id"], one["state"]) for one in found] == [(row["id"], row["state"]) for row in rows]
    assert [json.loads(one["linked"]) for one in found] == [[end["id"] for end in row["linked"]] for row in rows]
    assert kb("matrix", "req", "verified_by").out.count("\n") == len(rows) + 1
    assert "| REQ-1 | TEST-1 |" in kb("matrix", "req", "verified_by", "--format", "markdown").out


def test_rows_are_chosen_as_in_a_query_and_as_of_a_point(kb, waived):
    chosen = kb("matrix", "req", "verified_by", "--where", "id=REQ-2", "--json").json
    assert [row["id"] for row in chosen["rows"]] == ["REQ-2"]
    at_first = kb("matrix", "req", "verified_by", "--at", "1", "--json").json
    assert [row["id"] for row in at_first["rows"]] == ["REQ-1", "REQ-2"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("req", "verifed_by"), "Did you mean 'verified_by'?"),
        (("reqs", "verified_by"), "There is no entity type 'reqs'."),
        (("req", "verified_by", "--to", "tests"), "There is no entity type 'tests'."),
        (("req", *["verified_by"] * 7), "A matrix takes 1 to 6 steps, not 7."),
        (("edge", "verified_by"), "The rows of a matrix are entities."),
    ],
)
def test_what_cannot_be_meant_is_refused(kb, waived, words, said):
    ran = kb("matrix", *words)
    assert (ran.status, ran.out) == (2, "")
    assert said in ran.err


def test_a_wrong_argument_is_named_as_it_was_typed(kb, waived):
    ran = kb("matrix", "req", "verified_by", "verifed_by", "--to", "tests")
    assert "EDGE 2: There is no edge type 'verifed_by'." in ran.err
    assert "--to: There is no entity type 'tests'." in ran.err
    assert "at EDGE 1\n" in kb("matrix", "req", "verifed_by").err
