"""An edge is suspect when what it leads to has changed since somebody last confirmed the edge."""

from __future__ import annotations

import random

import pytest

from kbcore.checks import run_checks
from kbcore.editing.documents import WriteTarget
from kbcore.editing.renaming import rename
from kbcore.maintenance.compacting import compact
from kbcore.store.history.log import record_json
from kbcore.store.history.undo import revert, rollback
from kbcore.view.replay import folded
from tests.support.repository.project import AUTHOR, Project, document, req

RULE = "suspect-edge"
EDGE = {"type": "implements", "from": "A", "to": "B"}


@pytest.fixture
def project(tmp_path):
    """A symbol that implements a requirement, both stated by a client."""
    found = Project(tmp_path / "p")
    found.apply(
        entities=[
            {"id": "A", "type": "symbol", "title": "a", "status": "active"},
            {"id": "B", "type": "req", "title": "b", "status": "open"},
        ],
        edges=[EDGE],
    )
    return found


def suspects(project):
    report = run_checks(project.workspace(), project.view(), branch="main", only=[RULE])
    assert report.rules[0].status == "ran", report.rules
    return [(one.id, one.message.partition(",")[0]) for one in report.violations]


def hint(project):
    [found] = run_checks(project.workspace(), project.view(), branch="main", only=[RULE]).violations
    return found.hint


SUSPECT = [("A", "A implements B")]


def test_an_edge_is_suspect_when_its_target_changes(project):
    assert suspects(project) == []
    project.apply(entities=[{"id": "B", "title": "other"}])
    assert suspects(project) == SUSPECT
    [found] = run_checks(project.workspace(), project.view(), branch="main", only=[RULE]).violations
    assert (found.severity, found.source) == ("warning", "")
    assert found.message == "A implements B, but B has changed at seq 2; the edge was last confirmed at seq 1."
    assert found.hint.endswith("confirm it: `kb confirm A implements B`")


def test_applying_it_again_confirms_it_and_changes_nothing_else(project):
    project.apply(entities=[{"id": "B", "title": "other"}])
    before = project.link("A", "implements", "B")
    outcome = project.apply(edges=[EDGE])
    assert (outcome.seq, outcome.applied, outcome.edges.updated) == (3, True, 1)
    after = project.link("A", "implements", "B")
    assert (before.version, after.version) == (1, 3)
    assert {**{name: getattr(before, name) for name in before.__struct_fields__}, "version": 3} == {
        name: getattr(after, name) for name in after.__struct_fields__
    }
    assert suspects(project) == []
    assert not project.apply(edges=[EDGE]).applied


def test_a_confirmation_is_on_record_and_folded_the_same_by_a_replay(project):
    project.apply(entities=[{"id": "B", "title": "other"}])
    project.apply(edges=[EDGE], message="looked at it")
    store = project.workspace().store("main")
    record = record_json(store, project.view(), 3)
    [operation] = record["operations"]
    assert (operation["change"], operation["fields"], operation["confirmed"]) == ("updated", {}, True)
    whole = folded(project.machine.fs, store.directory, store.head()).state
    assert whole.links == {link.id: link for link in project.view().touching(["A"])}


def test_the_target_and_its_edge_written_together_are_confirmed(project):
    project.apply(entities=[{"id": "B", "title": "other"}], edges=[EDGE])
    assert suspects(project) == []


def test_both_ends_changed_in_one_record_are_not_suspect(project):
    project.apply(entities=[{"id": "A", "title": "other"}, {"id": "B", "title": "other"}])
    assert suspects(project) == []


def test_a_later_change_of_the_near_end_confirms_and_an_earlier_one_does_not(project):
    project.apply(entities=[{"id": "A", "title": "first"}])
    project.apply(entities=[{"id": "B", "title": "other"}])
    assert suspects(project) == SUSPECT
    project.apply(entities=[{"id": "A", "title": "second"}])
    assert suspects(project) == []


def test_a_target_that_became_again_what_it_was_is_not_suspect(project):
    project.apply(entities=[{"id": "B", "title": "other"}])
    project.apply(entities=[{"id": "B", "title": "b"}])
    assert suspects(project) == []
    project.apply(entities=[{"id": "B", "title": "other"}])
    revert(project.workspace(), "main", AUTHOR, [4], follows_head=True)
    assert suspects(project) == []


def test_a_confirmation_is_reverted_without_harm(project):
    project.apply(entities=[{"id": "B", "title": "other"}])
    project.apply(edges=[EDGE])
    outcome = revert(project.workspace(), "main", AUTHOR, [3], follows_head=True)
    assert (outcome.applied, outcome.seq) == (False, 3)
    assert outcome.warnings[0].startswith("Confirmations of edges are not undone")
    rollback(project.workspace(), "main", AUTHOR, 2, follows_head=True)
    assert project.link("A", "implements", "B").is_resolved
    revert(project.workspace(), "main", AUTHOR, [2], follows_head=True)
    assert project.node("B").fields["title"] == "b"


def test_only_what_an_entity_says_counts(project):
    project.import_(entities=[{"id": "B", "updated_at": "2020-01-01", "source": "elsewhere"}])
    assert suspects(project) == []


SYMBOLS = "symbols:\n- {id: A, name: a, file: a.py, line: %d, relationships: [{type: implements, target: B}]}\n"
FILES = {"docs/symbols.yaml": SYMBOLS % 1, "docs/requirements/b.md": req("B"), "a.py": ""}


@pytest.fixture
def synced(tmp_path):
    found = Project(tmp_path / "p")
    found.sync(FILES)
    return found


def test_a_cold_sync_and_a_second_reading_of_everything_make_nothing_suspect(synced):
    assert suspects(synced) == []
    synced.sync(rebuild=True)
    more = {".kb/schema/more.yaml": "entities: {fact: {description: More.}}\n"}
    synced.sync(more | {"docs/requirements/c.md": req("C")})  # without another change nothing is recorded
    assert synced.view().sources(["docs/symbols.yaml"])[0].version > 1
    assert suspects(synced) == []


def test_the_text_of_a_document_counts_where_it_defines_one_entity(synced):
    synced.sync({"docs/requirements/b.md": req("B") + "\nA window of at most two hours.\n"})
    assert suspects(synced) == SUSPECT
    assert hint(synced).startswith("See `git log -p -- docs/requirements/b.md`. If")
    synced.sync({"docs/requirements/b.md": req("B", title="other") + "\nA window of at most two hours.\n"})
    assert hint(synced).startswith("See `kb log B`. If")
    synced.sync({"docs/symbols.yaml": SYMBOLS.replace("name: a", "name: b") % 1})
    assert suspects(synced) == []


def test_applying_an_edge_of_a_file_confirms_it_and_does_not_state_it(synced):
    synced.sync({"docs/requirements/b.md": req("B", status="done")})
    assert suspects(synced) == SUSPECT
    synced.apply(edges=[EDGE])
    assert suspects(synced) == []
    assert [one.src for one in synced.link("A", "implements", "B").statements] == ["docs/symbols.yaml"]


def test_another_entry_of_a_shared_manifest_confirms_nothing(synced):
    other = "- {id: C, name: c, file: a.py}\n"
    synced.sync({"docs/symbols.yaml": SYMBOLS % 1 + other})
    synced.sync({"docs/requirements/b.md": req("B", status="done")})
    synced.sync({"docs/symbols.yaml": SYMBOLS % 1 + other.replace("name: c", "name: d") + "# looked after\n"})
    assert suspects(synced) == SUSPECT
    synced.sync({"docs/symbols.yaml": SYMBOLS.replace("target: B", "target: B, confidence: 0.5") % 1 + other})
    assert suspects(synced) == []


def test_a_change_of_its_own_entry_in_a_shared_manifest_confirms(synced):
    other = "- {id: C, name: c, file: a.py}\n"
    synced.sync({"docs/symbols.yaml": SYMBOLS % 1 + other})
    synced.sync({"docs/requirements/b.md": req("B", status="done")})
    synced.sync({"docs/symbols.yaml": SYMBOLS.replace("name: a", "name: b") % 1 + other})
    assert suspects(synced) == []


def test_a_last_change_of_the_text_alone_is_looked_up_with_git_as_well(synced):
    """`kb log B` does not list it."""
    synced.sync({"docs/requirements/b.md": req("B", title="other")})
    assert hint(synced).startswith("See `kb log B`. If")
    synced.sync({"docs/requirements/b.md": req("B", title="other") + "\nAnother text.\n"})
    assert hint(synced).startswith("See `kb log B` and `git log -p -- docs/requirements/b.md`. If")


def test_a_text_that_could_not_be_read_for_a_while_is_no_change_of_the_target(synced):
    name, text = "docs/requirements/b.md", req("B", title="other")
    assert synced.sync({name: text}).outcome.seq == 2
    for broken in ("[open", "[done"):
        assert synced.sync({name: req("B", title="other", status=broken)}).problems
    synced.sync({name: text})
    [found] = run_checks(synced.workspace(), synced.view(), branch="main", only=[RULE]).violations
    assert "B has changed at seq 2; the edge was last confirmed at seq 1." in found.message
    assert found.hint.startswith("See `kb log B`. If")
    synced.sync({name: text + "\nAnother text.\n"})
    assert hint(synced).startswith(f"See `kb log B` and `git log -p -- {name}`. If")


def test_edges_that_differ_in_their_kind_are_two_violations(project):
    kinds = [{"type": "relates_to", "from": "A", "to": "B", "kind": kind} for kind in ("part", "see")]
    project.apply(edges=kinds)
    project.apply(entities=[{"id": "B", "title": "other"}])
    found = run_checks(project.workspace(), project.view(), branch="main", only=[RULE]).violations
    assert {one.values for one in found} == {("implements", "B"), ("relates_to:part", "B"), ("relates_to:see", "B")}
    assert any(one.message.startswith("A relates_to:see B, but") for one in found)


def test_a_file_that_moves_makes_nothing_suspect(synced):
    synced.sync({"docs/requirements/b.md": None, "docs/requirements/moved.md": req("B")})
    assert synced.node("B").path == "docs/requirements/moved.md"
    assert suspects(synced) == []
    synced.sync({"docs/requirements/moved.md": None, "docs/requirements/again.md": req("B", status="done")})
    assert suspects(synced) == SUSPECT


def test_a_symbol_that_moves_within_its_file_makes_nothing_suspect(synced):
    guards = {"type": "guards", "from": "F", "to": "A"}
    synced.apply(entities=[{"id": "F", "type": "flag", "title": "f", "status": "active"}], edges=[guards])
    synced.sync({"docs/symbols.yaml": SYMBOLS % 7})
    assert synced.node("A").version > 2
    assert suspects(synced) == []


def test_a_document_with_several_entities_is_judged_by_their_fields(synced):
    scenario = "Feature: One\n\n  @id:S-1\n  Scenario: a\n    Given x\n"
    settings = '{"extractors": {"gherkin": {"paths": ["docs/*.feature"]}}}'
    synced.sync({".kb/config.json": settings, "docs/a.feature": scenario})
    synced.apply(edges=[{"type": "specified_by", "from": "B", "to": "S-1"}])
    synced.sync({"docs/a.feature": scenario + "    When y\n"})
    assert [found for found in suspects(synced) if found[0] == "B"] == []


def test_what_was_pruned_makes_nothing_suspect_and_what_stays_does(project):
    project.apply(entities=[{"id": "B", "title": "other"}])
    project.apply(entities=[{"id": "A", "tags": ["x"]}, {"id": "B", "tags": ["x"]}])
    project.apply(entities=[{"id": "B", "title": "third"}])
    compact(project.workspace(), "main", prune_before=4)
    assert suspects(project) == SUSPECT
    project.apply(edges=[EDGE])
    project.apply(entities=[{"id": "C", "type": "req", "title": "c", "status": "open"}])
    compact(project.workspace(), "main", prune_before=6)
    assert suspects(project) == []


def test_the_near_document_confirms(tmp_path):
    project = Project(tmp_path / "p")
    near = document("B", title="b", status="open", links="[{depends_on: [C]}]")
    project.sync({"docs/requirements/b.md": near, "docs/requirements/c.md": req("C")})
    project.sync({"docs/requirements/c.md": req("C", title="other")})
    assert suspects(project) == [("B", "B depends_on C")]
    project.sync({"docs/requirements/b.md": near + "\nMore.\n"})
    assert suspects(project) == []


def test_every_rule_runs_where_a_manifest_states_the_only_entity(tmp_path):
    project = Project(tmp_path / "p")
    project.sync({"docs/symbols.yaml": "symbols:\n  - {id: SYM-1, title: f, status: active}\n"})
    report = run_checks(project.workspace(), project.view(), branch="main")
    assert [run for run in report.rules if run.status == "not_run"] == []


NEAR = document("B", title="b", status="open", links="[{depends_on: [C]}]")
B_TO_C = [("B", "B depends_on C")]
MANIFEST = "docs/sub/symbols.yaml"
SETTINGS = '{"extractors": {"manifest": {"paths": ["docs/**/symbols.yaml"]}}}'
B_PATH, C_PATH, MOVED = "docs/requirements/b.md", "docs/requirements/c.md", "docs/requirements/moved.md"


@pytest.fixture
def doubted(tmp_path):
    """A document whose edge is suspect."""
    found = Project(tmp_path / "p")
    found.sync({B_PATH: NEAR, C_PATH: req("C")})
    found.sync({C_PATH: req("C", title="other")})
    return found


def test_an_edge_stays_suspect_when_the_document_that_states_it_moves(doubted):
    before = doubted.seq()
    doubted.sync({B_PATH: None, MOVED: NEAR})
    assert doubted.node("B").path == MOVED
    assert suspects(doubted) == B_TO_C
    [found] = run_checks(doubted.workspace(), doubted.view(), branch="main", only=[RULE]).violations
    assert found.message.endswith(f"C has changed at seq {before}; the edge was last confirmed at seq 1.")
    doubted.sync({MOVED: None, B_PATH: NEAR})  # and back, to a path that was in use before
    assert suspects(doubted) == B_TO_C
    doubted.apply(edges=[{"type": "depends_on", "from": "B", "to": "C"}])
    assert suspects(doubted) == []
    doubted.sync({B_PATH: None, MOVED: NEAR})
    assert suspects(doubted) == []


def test_an_edge_becomes_suspect_after_its_document_moved(doubted):
    doubted.apply(edges=[{"type": "depends_on", "from": "B", "to": "C"}])
    doubted.sync({B_PATH: None, MOVED: NEAR})
    doubted.sync({C_PATH: req("C", title="third")})
    assert suspects(doubted) == B_TO_C


def test_a_document_that_moves_and_changes_at_once_confirms_its_edges(doubted):
    doubted.sync({B_PATH: None, MOVED: NEAR + "\nMore.\n"})
    assert suspects(doubted) == []


def test_an_edge_that_says_something_else_where_it_moved_is_confirmed(synced):
    other = "- {id: C, name: c, file: a.py}\n"
    synced.sync({".kb/config.json": SETTINGS, "docs/symbols.yaml": SYMBOLS % 1 + other})
    synced.sync({"docs/requirements/b.md": req("B", status="done")})
    assert suspects(synced) == SUSPECT
    changed = SYMBOLS.replace("target: B", "target: B, confidence: 0.5") % 1 + other
    synced.sync({"docs/symbols.yaml": None, MANIFEST: changed})
    assert synced.link("A", "implements", "B").is_resolved
    assert suspects(synced) == []


def test_an_edge_stays_suspect_when_its_shared_manifest_moves_and_says_more(synced):
    other = "- {id: C, name: c, file: a.py}\n"
    synced.sync({".kb/config.json": SETTINGS, "docs/symbols.yaml": SYMBOLS % 1 + other})
    synced.sync({"docs/requirements/b.md": req("B", status="done")})
    synced.sync({"docs/symbols.yaml": None, MANIFEST: SYMBOLS % 1 + other + "# looked after\n"})
    assert synced.link("A", "implements", "B").is_resolved
    assert suspects(synced) == SUSPECT


def test_a_file_that_states_an_edge_of_a_client_confirms_it(project):
    project.apply(entities=[{"id": "B", "title": "other"}])
    assert suspects(project) == SUSPECT
    project.sync({"docs/symbols.yaml": SYMBOLS % 1, "a.py": ""})
    assert suspects(project) == []


def test_an_edge_whose_document_moves_and_whose_target_is_renamed_at_once_stays_suspect(doubted):
    renamed = req("D", title="other").replace("id: D", "id: D\nformer_ids: [C]")
    doubted.sync({B_PATH: None, MOVED: NEAR.replace("[C]", "[D]"), C_PATH: renamed})
    assert doubted.node("D") is not None
    assert suspects(doubted) == [("B", "B depends_on D")]


def _rename(project, old, new):
    read = project.workspace().store("main").read
    rename(WriteTarget(project.workspace(), "main", AUTHOR, read, follows_head=True), old, new)


@pytest.mark.sliced(1)
@pytest.mark.parametrize("by", ["file", "command"])
def test_a_rename_makes_no_edge_suspect_whose_target_became_again_what_it_was(tmp_path, by):
    project = Project(tmp_path / "p")
    project.sync({B_PATH: NEAR, C_PATH: req("C")})
    project.sync({C_PATH: req("C", title="other")})
    project.sync({C_PATH: req("C")})
    assert suspects(project) == []
    if by == "file":
        project.sync({C_PATH: req("D").replace("Title of D", "Title of C").replace("id: D", "id: D\nformer_ids: [C]")})
    else:
        _rename(project, "C", "D")
    assert project.node("D") is not None
    assert suspects(project) == []
    text = (project.root / C_PATH).read_text()
    project.sync({C_PATH: f"{text}\nMore.\n"})
    assert suspects(project) == [("B", "B depends_on D")]
    project.sync({C_PATH: text})
    assert suspects(project) == []
    project.sync({C_PATH: f"{text}\nMore.\n"})
    _rename(project, "D", "E")
    assert suspects(project) == [("B", "B depends_on E")]


def test_a_move_that_is_reverted_leaves_an_edge_suspect(doubted):
    doubted.sync({B_PATH: None, MOVED: NEAR})
    revert(doubted.workspace(), "main", AUTHOR, [doubted.seq()], follows_head=True)
    assert suspects(doubted) == B_TO_C
    doubted.close()
    assert suspects(doubted) == B_TO_C


@pytest.mark.sliced(1)
@pytest.mark.parametrize("seed", range(6))
def test_moves_of_files_change_nothing_of_which_edges_are_suspect(tmp_path, seed):
    """Two projects with the same changes, of which one has its documents moved in between, have the same suspects."""
    dice = random.Random(seed)
    still, moving = Project(tmp_path / "still"), Project(tmp_path / "moving")
    ids = ["A", "B", "C", "D"]
    texts = {
        id_: document(id_, title=id_, status="open", links=f"[{{depends_on: [{dice.choice(ids)}]}}]") for id_ in ids
    }
    paths = {id_: f"docs/requirements/{id_}.md" for id_ in ids}
    still.sync({paths[id_]: text for id_, text in texts.items()})
    moving.sync({paths[id_]: text for id_, text in texts.items()})
    for step in range(10):
        one = dice.choice(ids)
        texts[one] = document(
            one, title=f"{one} {dice.randrange(3)}", status="open", links=texts[one].split("links: ")[1].split("\n")[0]
        )
        still.sync({f"docs/requirements/{one}.md": texts[one]})
        moving.sync({paths[one]: texts[one]})
        moved = dice.sample(ids, 2)
        changes: dict[str, str | None] = {paths[id_]: None for id_ in moved}
        paths |= {id_: f"docs/requirements/{dice.choice('xyz')}{step}-{id_}.md" for id_ in moved}
        moving.sync(changes | {paths[id_]: texts[id_] for id_ in moved})
        assert suspects(moving) == suspects(still)
    moving.close()
    assert suspects(moving) == suspects(still)
