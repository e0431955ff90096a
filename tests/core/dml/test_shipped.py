"""The programs that KB ships, each with a script in place of a model, and what it costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.dml.shipped import PROGRAMS, shipped_code
from kbcore.errors import NotFound
from tests.support.dml.kb_runs import allows, ran_with_kb
from tests.support.dml.scripts import GIVES_UP, Script, done
from tests.support.logic.engines import engine_variables
from tests.support.repository.project import document
from tests.support.repository.sleeping import LONG_AGO, TYPES, Sleeper

MEMORY = """UPSERT {
  CONCEPT ?f { {type: "Domain", name: "Drinks"} }
  CONCEPT { {type: "Person", name: "Ines Maria"} SET PROPOSITIONS { ("belongs_to_domain", ?f) } }
  CONCEPT { {type: "Person", name: "Inez Maria"} SET PROPOSITIONS { ("belongs_to_domain", ?f) } }
  CONCEPT { {type: "Preference", name: "tea"}
    SET PROPOSITIONS { ("belongs_to_domain", {type: "Domain", name: "Unsorted"}) } }
  CONCEPT { {type: "Preference", name: "milk"}
    SET PROPOSITIONS { ("belongs_to_domain", {type: "Domain", name: "Unsorted"}) } }
  CONCEPT ?e { {type: "Event", name: "talk"} SET ATTRIBUTES { start_time: "2026-01-01" }
    SET PROPOSITIONS { ("belongs_to_domain", ?f) } }
  CONCEPT { {type: "SleepTask", name: "u"} SET ATTRIBUTES { requested_action: "review", status: "in_progress" } }
} WITH METADATA { source: "talk-1", author: "$self", confidence: 0.9, created_at: :at }"""

DIFF = "--- a/login.py\n+++ b/login.py\n+def log_in(): ...\n"


@pytest.fixture(scope="module")
def any_engine():
    return engine_variables("auto")


def tools_of(program: str) -> tuple[str, ...]:
    """Return the tools that a shipped program has to be allowed."""
    return next(one for one in PROGRAMS if one.name == program).tools


def run(root: Path, engine, name: str, model: Script, **options):
    return ran_with_kb(root, engine, shipped_code(name), allows(*tools_of(name)), model=model, **options)


def sent(model: Script) -> int:
    """Return how many characters a model was sent in all requests, the descriptions of tools included."""
    messages = sum(
        len(one.text) + sum(len(str(c.arguments)) for c in one.calls) for asked in model.asked for one in asked
    )
    return messages + sum(len(str(tools)) for tools in model.offered)


def test_an_unknown_program_is_refused_with_the_nearest_name():
    with pytest.raises(NotFound) as refused:
        shipped_code("slep")
    assert "sleep" in refused.value.hint


def test_the_sleep_program_decides_each_item_with_one_turn(tmp_path, any_engine):
    kip = Sleeper(tmp_path / "repo")
    kip(TYPES)
    kip(MEMORY, {"at": LONG_AGO})
    assert kip.work().counts == {"task": 1, "duplicate": 1, "event": 1, "unsorted": 2, "domain": 1}
    model = Script(
        done(Choice=2, Values={"result": "nothing to review"}),
        done(Choice=1, Values={}),
        done(
            Choice=1, Values={"type": "Preference", "name": "hot", "description": "Likes it hot.", "domain": "Drinks"}
        ),
        done(Choice=1, Values={"domain": "Drinks"}),
        done(Choice=1, Values={"domain": "Nowhere"}),
        done(Choice=0, Values={}),
    )
    ran = run(kip.project.root, any_engine, "sleep", model)
    assert ran.contents("output") == [
        "task u: it cannot be done; say why.",
        "duplicate Inez Maria: they are one.",
        "event talk: something of it lasts; write that.",
        "unsorted milk: it belongs to that domain, which must be there.",
        "unsorted tea: left.",
        "domain Drinks: left.",
    ]
    assert ran.answers == ["4 decided, 2 left."]
    assert [code for code, _ in ran.notes] == ["tool_failed"]
    assert (ran.run.spent.rounds, model.left, sent(model) < 15_000) == (6, 0, True)
    assert kip.work().counts == {"unsorted": 1, "domain": 1}
    assert kip.domains("Preference:milk") == {"Domain:Drinks"}
    kip.project.close()


def test_the_sleep_program_leaves_what_the_model_gives_up_or_does_not_fill_in(tmp_path, any_engine):
    kip = Sleeper(tmp_path / "repo")
    kip(TYPES)
    kip(MEMORY, {"at": LONG_AGO})
    model = Script(
        *[GIVES_UP] * 3, done(Choice=1, Values={}), done(Choice=1, Values={"domain": None}), done(Choice=7, Values={})
    )
    before = kip.project.seq()
    ran = run(kip.project.root, any_engine, "sleep", model)
    assert ran.answers == ["0 decided, 6 left."]
    assert kip.project.seq() == before
    assert all(len(asked) == 3 for asked in model.asked), "each item is asked about without those before it"
    kip.project.close()


def test_the_review_fails_where_a_requirement_is_violated(project, tmp_path, any_engine):
    project.sync(
        {
            f"docs/requirements/{n}.md": document(f"REQ-{n}", f"# R{n}\nText {n}.", title=f"R{n}", status="open")
            for n in "123"
        }
    )
    (tmp_path / "files").mkdir()
    (tmp_path / "files/x.diff").write_text(DIFF, encoding="utf-8")
    options = {"params": {"diff": "x.diff"}, "workspace": tmp_path / "files"}
    model = Script(
        done(Ids=["REQ-1", "REQ-3", "REQ-404"]),
        done(Verdict="met", Why="log_in"),
        done(Verdict="violated", Why="no log_out"),
    )
    ran = run(project.root, any_engine, "review", model, **options)
    assert ran.outcome == "failure"
    assert ran.contents("output") == [
        "REQ-1: met. log_in",
        "REQ-3: violated. no log_out",
        "Requirements reviewed: 2; at least one is violated.",
    ]
    assert "Text 1." in model.asked[1][-1].text
    assert DIFF in model.asked[1][1].text
    assert len(model.asked[2]) == 3, "a requirement is judged without those before it"
    assert (ran.run.spent.rounds, sent(model) < 5_000) == (3, True)
    fine = run(
        project.root, any_engine, "review", Script(done(Ids=["REQ-2"]), done(Verdict="fine", Why="?")), **options
    )
    assert (fine.outcome, fine.contents("output", "answer")) == (
        "success",
        ["REQ-2: unclear. ?", "Requirements reviewed: 1; none is violated."],
    )


def test_the_review_needs_no_model_where_there_are_no_requirements(project, tmp_path, any_engine):
    (tmp_path / "x.diff").write_text(DIFF, encoding="utf-8")
    ran = run(project.root, any_engine, "review", Script(), params={"diff": "x.diff"}, workspace=tmp_path)
    assert ran.answers == ["There are no requirements."]


def test_the_triage_shows_each_violation_with_one_turn(project, any_engine):
    text = "---\nid: REQ-1\ntitle: A\nstatus: open\nlinks: [REQ-8, REQ-9, REQ-7]\n---\n"
    project.sync({"docs/requirements/1.md": text})
    model = Script(
        done(
            Sorted=[
                {"number": 2, "kind": "complete", "why": "It is to be written."},
                {"number": 2, "kind": "accept", "why": "no"},
                {"number": 1, "kind": "nonsense"},
                {"number": 99, "kind": "accept"},
                {"kind": "accept"},
            ]
        )
    )
    ran = run(project.root, any_engine, "triage", model)
    [first, sorted_, second, *rest] = ran.contents("output")
    assert (first, second) == ("complete:", "not sorted:")
    assert sorted_.endswith("It is to be written.")
    assert len(rest) == 2
    assert ran.answers == ["Violations: 3, sorted: 3."]
    assert (ran.run.spent.rounds, sent(model) < 3_000) == (1, True)
    assert '"number":3' in model.asked[0][-1].text


def test_the_triage_of_a_branch_without_violations_asks_no_model(project, any_engine):
    assert run(project.root, any_engine, "triage", Script()).answers == ["No violations."]
