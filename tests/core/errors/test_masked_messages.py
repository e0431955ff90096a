"""Texts that look like a secret are masked in errors, problems and violations, whatever made them, and in warnings."""

from __future__ import annotations

import pytest

from kbcore.errors import InvalidChangeset, KBError, Problem, of_problems
from kbcore.errors.remedies import kb
from kbcore.rules import Violation
from kbcore.rules.accepted import key_of, read_baseline
from kbcore.rules.conflict import RULE as CONFLICT
from kbcore.sync.answer import UnresolvedLink, unresolved_words
from kbcore.text.problems import FileProblem
from kbcore.text.wording import shortened
from kbcore.text.yaml_text import cut_value
from tests.support.repository.project import Project, req
from tests.support.views.graph import graph_of, node
from tests.support.views.rules import violations

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
PASSWORD = "kX9-vR2_pL7qW4zN"


def test_an_error_shows_no_secret_in_its_message_hint_details_and_data() -> None:
    problem = Problem("$", "bad", f"{TOKEN!r} is bad.", f"Not {TOKEN}.")
    error = of_problems(InvalidChangeset, f"About {TOKEN}", [problem], hint=f"No {TOKEN}.", data={"given": [TOKEN]})
    assert TOKEN not in f"{error}{error.as_json()}{error.hint}{error.args}"
    assert error.as_json()["given"] == ["ghp_…"]


def test_a_problem_of_a_file_and_an_unresolved_link_show_no_secret() -> None:
    problem = FileProblem(3, "bad", f"{TOKEN!r} is bad", f"Not {TOKEN}.", values=(TOKEN,))
    link = UnresolvedLink("REQ-1", "depends_on", TOKEN, TOKEN, "docs/a.md", "REQ-1")
    assert TOKEN not in f"{problem}{link.as_json()}{unresolved_words(link.as_json())}"
    assert link.target == TOKEN


def test_a_violation_shows_no_secret_and_is_known_by_its_id() -> None:
    one = Violation("own", "error", TOKEN, f"{TOKEN} is bad.", f"Not {TOKEN}.", "", values=(TOKEN,), names_id=False)
    assert TOKEN not in f"{one.sentence}{one.hint}{one.as_json()}{one.kind}{key_of(one)}"
    assert one.id == TOKEN


def test_a_secret_is_masked_before_a_text_is_cut() -> None:
    assert shortened(f"xx {TOKEN}", 30) == "xx ghp_……"
    assert TOKEN[:30] not in cut_value("note", f"{'x' * 30} {TOKEN}", 1).message


def test_a_baseline_that_holds_a_secret_matches_what_masks_it() -> None:
    text = f'{{"format": 1, "violations": [{{"rule": "own", "id": "A", "values": ["{TOKEN}"]}}]}}'
    assert (
        read_baseline(text, "baseline.json")[key_of(Violation("own", "error", "A", "", "", "", values=(TOKEN,)))] == 1
    )


def test_contested_values_show_no_secret() -> None:
    by = {"changes": [{"actor": "ann"}]}
    contested = {"attributes.db_password": [{"value": PASSWORD, **by}, {"value": TOKEN, **by}]}
    fields = {f"contested.{name}": values for name, values in contested.items()}
    [found] = violations(graph_of([node("A", **{k.replace(".", "__", 1): v for k, v in fields.items()})]), CONFLICT.id)
    assert (PASSWORD in f"{found}", TOKEN in f"{found}") == (False, False)
    assert '"kX9-…" by ann; "ghp_…" by ann' in found.message


def test_a_refused_changeset_shows_no_secret(project: Project) -> None:
    given = [req("A", status=TOKEN, created_at=TOKEN), {"id": "B", "type": TOKEN, "title": "b"}]
    with pytest.raises(KBError) as refused:
        project.apply(entities=given, edges=[{"type": "depends_on", "from": "A", "to": TOKEN}])
    assert TOKEN not in f"{refused.value}{refused.value.as_json()}"
    assert "ghp_…" in f"{refused.value.as_json()}"


def test_a_secret_in_a_command_of_a_remedy_is_masked_and_the_remedy_stays_whole() -> None:
    name = "PuTTY-User-Key-File-2: ssh-rsa"
    one = Problem("$", "gone", "It is gone.", f"Run {kb('show', name, TOKEN)} first.")
    assert one.hint == "Run `kb show PuTT… ghp_…` first."
