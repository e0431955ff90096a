"""Edges across repositories: impact and coverage as in one store that holds everything, and what leads nowhere."""

from __future__ import annotations

import random

import duckdb
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.checks import known_to, run_checks
from kbcore.checks.introduced import written
from kbcore.clock import SystemClock
from kbcore.config.user import UserSettings
from kbcore.errors import NotFound, StorageError
from kbcore.fleet import across, local, reading
from kbcore.fleet.asking import CheckQuestion, CoverageQuestion
from kbcore.fleet.local import Answer
from kbcore.fleet.place import FolderPlace
from kbcore.fleet.reading import Asker, FleetSelection
from kbcore.ids import OTHER_REPO, in_other_repo
from kbcore.model.schema import CORE
from kbcore.query import Query, coverage, subject
from kbcore.query.impact import PARTS, impact
from kbcore.store.pool import Machine
from kbcore.store.review import deciding_changeset, find_proposals
from kbcore.store.write_request import Author
from kbcore.sync import faults
from tests.support.disk.faultfs import NoSyncFs
from tests.support.effort.scale import SEED, tries
from tests.support.repository.fleets import exported
from tests.support.repository.project import Project, document, req
from tests.support.repository.repos import git_env

MACHINE, USER = Machine(NoSyncFs(), SystemClock(), git_env()), UserSettings()
ASKER = Asker(MACHINE, USER)
REPOS = [f"acme/r{number}" for number in range(tries(3, 12))]
FOLDERS = {"REQ": "requirements", "T": "tests", "SCN": "scenarios"}
IDS = ["REQ-1", "REQ-2", "REQ-3", "T-1", "T-2", "SCN-1"]
LINKS = {"depends_on": "REQ", "verified_by": "T", "specified_by": "SCN"}


def generated(dice):
    """Return of each entity of each repository its fields, and its links as (type, repository, id).

    The first requirement is open and has all links, to another repository, whatever the dice say.
    """
    found = {}
    for repo in REPOS:
        for id_ in IDS:
            fields = {"owner": dice.choice(["ann", "bob"]), "status": dice.choice(["open", "retired"])}
            links = []
            if id_.startswith("REQ"):
                fields["priority"] = dice.choice(["must", "should"])
                for type_, kind in LINKS.items():
                    if dice.random() < 0.5:
                        ends = [one for one in IDS if one.startswith(kind)]
                        links.append((type_, dice.choice(REPOS), dice.choice(ends)))
            found[repo, id_] = (fields, links)
    links = [(type_, REPOS[1], f"{kind}-1") for type_, kind in LINKS.items()]
    found[REPOS[0], "REQ-1"] = ({"owner": "ann", "status": "open", "priority": "must"}, links)
    return found


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A fleet, and one store with the same entities and edges, whose ids begin with the repository."""
    root, entities = tmp_path_factory.mktemp("across"), generated(random.Random(SEED))
    place = FolderPlace(NoSyncFs(), SystemClock(), root / "place")
    union: dict[str, str] = {}
    for number, repo in enumerate(REPOS):
        files = {}
        for (own, id_), (fields, links) in entities.items():
            if own == repo:
                folder = f"docs/{FOLDERS[id_.partition('-')[0]]}"
                near = {type_: end if of == repo else f"{of}:{end}" for type_, of, end in links}
                far = {type_: f"{of}:{end}" for type_, of, end in links}
                files[f"{folder}/{id_}.md"] = document(id_, title=f"Of {id_}", **fields, **near)
                union[f"{folder}/{number}-{id_}.md"] = document(f"{repo}:{id_}", title=f"Of {id_}", **fields, **far)
        project = Project(root / str(number))
        project.write({".kb/config.json": '{"fleet": {"place": "../place"}}'})
        project.sync(files)
        exported(project, place, repo)
        project.close()
    whole = Project(root / "whole")
    whole.sync(union)
    yield place, whole.view()
    whole.close()


def test_impact_is_that_of_one_store_with_everything(both):
    place, view = both
    heads = reading.find(place, FleetSelection()).heads
    is_elsewhere = False
    for repo in REPOS:
        for id_ in IDS[::2]:
            name = f"{repo}:{id_}"
            alone = impact(view.rows, view.schema(CORE), subject.find(view.rows, name, None))
            found = across.affected(place, heads, (repo, id_), ASKER)
            for part in PARTS:
                assert getattr(found.found, part) == getattr(alone, part)
            assert {f"{row['repo']}:{row['id']}" for row in found.rows} == {
                one.subject.id for part in PARTS for one in getattr(alone, part)
            }
            assert found.found.people == alone.people
            is_elsewhere = is_elsewhere or any(row["repo"] != repo for row in found.rows)
    assert is_elsewhere


def test_coverage_is_that_of_one_store_with_everything(both):
    place, view = both
    heads = reading.find(place, FleetSelection()).heads
    answers = [*local.ask(place, heads, CoverageQuestion(Query(type="req")), MACHINE, USER)]
    counted, failures = across.find_others(place, heads, ASKER)
    found = [counted(one) for one in answers]
    assert not failures
    alone = {one.id: one for one in coverage.read(view.rows, None).requirements}
    seen = 0
    for answer in found:
        for row in answer.value["requirements"]:
            one = alone.pop(f"{answer.repo}:{row['id']}")
            for aspect in ("specified", "verified", "implemented"):
                shown = [end if in_other_repo(end) else f"{answer.repo}:{end}" for end in row[aspect]]
                assert sorted(shown) == sorted(getattr(one, aspect))
            seen += any(map(in_other_repo, row["verified"]))
    assert not alone
    assert seen


def test_rules_take_what_is_elsewhere_for_there(both):
    place, view = both
    heads = reading.find(place, FleetSelection()).heads
    elsewhere = across.find_elsewhere(place, heads, ASKER)
    answers = [*local.ask(place, heads, CheckQuestion(("unresolved-reference",), elsewhere), MACHINE, USER)]
    assert [one.value["violations"] for one in answers] == [[]] * len(REPOS)
    must = [*local.ask(place, heads, CheckQuestion(("must-coverage",), elsewhere), MACHINE, USER)]
    lacking = {(f"{one.repo}:{row['id']}", row["values"][0]) for one in must for row in one.value["violations"]}
    needed = {"specified": "specified_by", "verified": "verified_by"}
    assert lacking == {
        (one.id, edge)
        for one in coverage.read(view.rows, None, Query(type="req")).requirements
        for aspect, edge in needed.items()
        if one.priority == "must" and not getattr(one, aspect)
    }


@pytest.fixture
def place(tmp_path):
    return FolderPlace(NoSyncFs(), SystemClock(), tmp_path / "place")


def add(tmp_path, place, name, files, *, config='{"fleet": {"place": "../place"}}'):
    project = Project(tmp_path / name.replace("/", "-"))
    project.write({".kb/config.json": config})
    project.sync(files)
    exported(project, place, name)
    return project


def violations(place, *, repos=(), rule="unresolved-reference"):
    heads = reading.find(place, FleetSelection(repos)).heads
    elsewhere = across.find_elsewhere(place, heads, ASKER)
    answers = [*local.ask(place, heads, CheckQuestion((rule,), elsewhere), MACHINE, USER)]
    return {
        (one.repo, row["id"], row["message"], row["severity"])
        for one in answers
        if isinstance(one, Answer)
        for row in one.value["violations"]
    }


def test_what_leads_nowhere_is_reported_at_the_repository_that_states_it(tmp_path, place):
    add(tmp_path, place, "acme/api", {"docs/requirements/1.md": req("REQ-1")}).close()
    links = "[acme/api:REQ-1, acme/api:REQ-9, acme/gone:REQ-1, REQ-7]"
    project = add(tmp_path, place, "acme/web", {"docs/requirements/1.md": req("REQ-1", depends_on=links)})
    said = {
        ("acme/web", "REQ-1", "REQ-1 depends_on acme/api:REQ-9, but there is no acme/api:REQ-9.", "error"),
        (
            "acme/web",
            "REQ-1",
            "REQ-1 depends_on acme/gone:REQ-1, but no repository acme/gone is in the fleet.",
            "error",
        ),
        ("acme/web", "REQ-1", "REQ-1 depends_on REQ-7, but there is no REQ-7.", "error"),
    }
    assert violations(place) == said
    assert violations(place, repos=("acme/web",)) == said
    project.write({".kb/config.json": '{"rules": {"unresolved-reference": "warning"}}'})
    exported(project, place, "acme/web")
    assert {row[-1] for row in violations(place)} == {"warning"}
    project.close()


def test_a_repository_that_cannot_be_read_leaves_nothing_dangling(tmp_path, place):
    add(tmp_path, place, "acme/api", {"docs/requirements/1.md": req("REQ-1")}).close()
    add(tmp_path, place, "acme/old", {"docs/requirements/1.md": req("REQ-1")}).close()
    links = "[acme/api:REQ-1, acme/old:REQ-1]"
    add(tmp_path, place, "acme/web", {"docs/requirements/1.md": req("REQ-1", depends_on=links)}).close()
    for one in (tmp_path / "place").glob("kind=entity/repo=acme%2Fapi/*/*"):
        one.unlink()
    for one in (tmp_path / "place").glob("heads/repo=acme%2Fold/*.json"):
        one.write_bytes(b"{")
    assert violations(place, repos=("acme/web",)) == set()
    heads = reading.find(place, FleetSelection()).heads
    found = across.affected(place, heads, ("acme/web", "REQ-1"), ASKER)
    assert [one.repo for one in found.failures] == ["acme/api"]
    with pytest.raises(StorageError, match="is missing"):
        across.affected(place, heads, ("acme/api", "REQ-1"), ASKER)
    for name in (("acme/wep", "REQ-1"), ("acme/web", "REQ-2")):
        with pytest.raises(NotFound) as refused:
            across.affected(place, heads, name, ASKER)
        assert "Did you mean" in refused.value.remedy


def test_an_edge_counts_whichever_repository_states_it(tmp_path, place):
    add(tmp_path, place, "acme/api", {"docs/requirements/1.md": req("REQ-1", priority="must")}).close()
    test = document("T-1", title="A", status="active", links="[acme/api:REQ-1]")
    add(tmp_path, place, "acme/tests", {"docs/tests/1.md": test}).close()
    assert {row[2] for row in violations(place, rule="must-coverage")} == {
        "REQ-1 has priority must, but no scenario (no edge specified_by)."
    }
    heads = reading.find(place, FleetSelection(("acme/api",))).heads
    answers = [*local.ask(place, heads, CoverageQuestion(Query(type="req")), MACHINE, USER)]
    counted, _ = across.find_others(place, reading.find(place, FleetSelection()).heads, ASKER)
    [one] = map(counted, answers)
    assert one.value["requirements"][0]["verified"] == ["acme/tests:T-1"]
    heads = reading.find(place, FleetSelection()).heads
    statement = "select repo, type, kind, from_repo, from_id, to_id, is_resolved from across"
    assert local.sql(place, heads, statement, 9, ASKER).rows == [
        ("acme/tests", "verified_by", None, "acme/api", "REQ-1", "T-1", True)
    ]
    [row] = across.affected(place, heads, ("acme/api", "REQ-1"), ASKER).rows
    assert (row["part"], row["repo"], row["id"]) == ("tests", "acme/tests", "T-1")


GADGETS = """
entities:
  gadget: {description: A thing., attributes: {}}
edges:
  checked_by: {from: [req], to: [gadget], description: The gadget checks it., impact: both}
"""


def test_a_link_without_a_type_means_what_the_schema_of_its_repository_says(tmp_path, place):
    add(tmp_path, place, "acme/api", {"docs/requirements/1.md": req("REQ-1")}).close()
    files = {
        ".kb/schema/own.yaml": GADGETS,
        "docs/requirements/1.md": req("REQ-9", links="[acme/api:REQ-1]"),
        "docs/requirements/2.md": req("G-2", type="gadget", links="[acme/api:REQ-1]"),
    }
    add(tmp_path, place, "acme/gadgets", files).close()
    heads = reading.find(place, FleetSelection()).heads
    statement = "select type, kind, from_repo, from_id, to_repo, to_id from across order by all"
    assert local.sql(place, heads, statement, 9, ASKER).rows == [
        ("checked_by", None, "acme/api", "REQ-1", "acme/gadgets", "G-2"),
        ("depends_on", None, "acme/gadgets", "REQ-9", "acme/api", "REQ-1"),
    ]
    paths = {row["id"]: row["path"] for row in across.affected(place, heads, ("acme/api", "REQ-1"), ASKER).rows}
    assert paths["G-2"] == "acme/api:REQ-1 → checked_by → acme/gadgets:G-2"
    assert violations(place) == set()
    assert ("acme/api:REQ-1", "checked_by") in across.find_elsewhere(place, heads, ASKER).edges


def test_what_is_only_proposed_elsewhere_covers_nothing(tmp_path, place):
    must = {"docs/requirements/1.md": req("REQ-1", priority="must", verified_by="acme/tests:T-2", specified_by="S-1")}
    scenario = {"docs/scenarios/1.md": document("S-1", title="One", status="active")}
    add(tmp_path, place, "acme/api", must | scenario).close()
    config = '{"fleet": {"place": "../place"}, "review": {"actors": ["tester"], "accept": ["ann"]}}'
    project = add(
        tmp_path,
        place,
        "acme/tests",
        {
            "docs/tests/1.md": document("T-1", title="One", status="active"),
            "docs/requirements/1.md": req("acme/api:REQ-1"),
        },
        config=config,
    )
    project.apply(
        entities=[{"id": "T-2", "type": "test", "title": "Two", "status": "active"}],
        edges=[{"type": "verified_by", "from": "acme/api:REQ-1", "to": "T-1"}],
    )
    project.sync({"docs/requirements/1.md": None})  # the edge is left, and names an entity of the other repository
    exported(project, place, "acme/tests")
    heads = reading.find(place, FleetSelection()).heads
    assert {row[:3] for row in violations(place, rule="must-coverage")} == {
        ("acme/api", "REQ-1", "REQ-1 has priority must, but no test (no edge verified_by).")
    }
    assert violations(place) == set()
    statement = "select from_id, to_id, is_proposed from across order by all"
    assert local.sql(place, heads, statement, 9, ASKER).rows == [
        ("REQ-1", "T-1", True),
        ("REQ-1", "T-2", False),
    ]
    view = project.view()
    accepting = deciding_changeset([one for one in find_proposals(view) if one.id == "T-2"], [], seq=view.seq)
    written.apply_changeset(project.workspace(), "main", Author("ann", "cli", "t"), accepting, follows_head=True)
    exported(project, place, "acme/tests")
    assert violations(place, rule="must-coverage") == set()
    project.close()


def test_the_name_of_the_own_repository_before_an_id_is_reported(tmp_path, place):
    files = {
        "docs/requirements/1.md": req("REQ-1"),
        "docs/requirements/2.md": req("REQ-2", depends_on="acme/api:REQ-1", priority="must", specified_by="acme/api:S"),
    }
    config = '{"fleet": {"place": "../place", "repo": "acme/api"}}'
    project = add(tmp_path, place, "acme/api", files, config=config)
    other = {"docs/requirements/1.md": req("REQ-1", depends_on="acme/api:REQ-1")}
    add(tmp_path, place, "acme/web", other).close()
    said = {
        "REQ-2 depends_on acme/api:REQ-1, but acme/api is this repository itself.",
        "REQ-2 specified_by acme/api:S, but acme/api is this repository itself.",
    }
    alone = run(project, "unresolved-reference")
    assert {row.message for row in alone} == said
    assert alone[0].remedy.startswith("Write REQ-1 alone in the file and ")
    assert [row.values for row in run(project, "must-coverage")] == [("specified_by",), ("verified_by",)]
    project.close()
    assert {row[:3] for row in violations(place)} == {("acme/api", "REQ-2", one) for one in said}
    heads = reading.find(place, FleetSelection()).heads
    rows = across.affected(place, heads, ("acme/api", "REQ-1"), ASKER).rows
    assert {(row["repo"], row["id"]) for row in rows} == {("acme/web", "REQ-1")}


def test_a_repository_whose_settings_are_missing_is_named_and_edges_of_others_are_followed(tmp_path, place):
    add(tmp_path, place, "acme/api", {"docs/requirements/1.md": req("REQ-1")}).close()
    add(tmp_path, place, "acme/old", {"docs/requirements/1.md": req("REQ-1")}).close()
    add(tmp_path, place, "acme/web", {"docs/requirements/1.md": req("REQ-1", depends_on="acme/api:REQ-1")}).close()
    for one in (tmp_path / "place").glob("settings/repo=acme%2Fold/*/*"):
        one.unlink()
    found = across.affected(place, reading.find(place, FleetSelection()).heads, ("acme/api", "REQ-1"), ASKER)
    assert [row["repo"] for row in found.rows] == ["acme/web"]
    assert [one.repo for one in found.failures] == ["acme/old"]


def test_of_several_branches_the_default_one_is_followed(tmp_path, place):
    project = add(tmp_path, place, "acme/api", {"docs/requirements/1.md": req("REQ-1")})
    project.sync({"docs/requirements/2.md": req("REQ-2", depends_on="REQ-1")})
    exported(project, place, "acme/api", "next", is_default=False)
    project.close()
    heads = reading.find(place, FleetSelection((), "*")).heads
    assert len(heads) == 2
    assert across.affected(place, heads, ("acme/api", "REQ-1"), ASKER).rows == []
    heads = reading.find(place, FleetSelection((), "next")).heads
    [row] = across.affected(place, heads, ("acme/api", "REQ-1"), ASKER).rows
    assert (row["repo"], row["id"], row["part"]) == ("acme/api", "REQ-2", "direct")


def test_impact_is_as_of_a_time(tmp_path, place):
    project = add(tmp_path, place, "acme/api", {"docs/requirements/1.md": req("REQ-1")})
    [(instant,)] = project.view().rows("select max(written_at) from record", [])
    project.sync({"docs/requirements/2.md": req("REQ-2", depends_on="REQ-1")})
    exported(project, place, "acme/api")
    project.close()
    heads = reading.find(place, FleetSelection()).heads
    assert len(across.affected(place, heads, ("acme/api", "REQ-1"), ASKER).rows) == 1
    before = msgspec.structs.replace(ASKER, before=_after(instant))
    assert across.affected(place, heads, ("acme/api", "REQ-1"), before).rows == []


def _after(instant):
    return f"{instant[:-1]}~"  # the first text after it


@given(st.from_regex(r"[a.#:/ 0]{0,9}|acme/[a-z:/#]{0,6}:[A-Z:/0-9]{0,4}", fullmatch=True))
def test_the_database_takes_the_same_for_a_reference(text):
    [(found,)] = CONNECTION.execute("select regexp_full_match(?, ?)", [text, OTHER_REPO]).fetchall()
    assert found == (in_other_repo(text) is not None)


CONNECTION = duckdb.connect()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("acme/pay:REQ-1", ("acme/pay", "REQ-1")),
        ("group/acme/pay:src/a.py#f", ("group/acme/pay", "src/a.py#f")),
        ("acme/pay:a:b", ("acme/pay", "a:b")),
        ("pay:REQ-1", None),
        ("tests/test_a.py::test_b", None),
        ("src/a.cpp#ns::f", None),
        ("https://forge.example/acme:REQ-1", None),
        ("./a/b:REQ-1", None),
        ("/a/b:REQ-1", None),
        ("acme/pay:", None),
        ("acme/pay", None),
        ("link:00", None),
    ],
)
def test_a_reference_is_owner_name_colon_and_an_id(text, named):
    assert in_other_repo(text) == named


def test_one_repository_leaves_references_to_others_to_the_fleet(project):
    links = "[acme/api:REQ-1, REQ-7]"
    files = {"docs/requirements/1.md": req("REQ-1", depends_on=links, priority="must", verified_by="acme/api:T-1")}
    answer = project.sync(files)
    assert found_alone(project) == {"acme/api:REQ-1", "REQ-7", "acme/api:T-1"}
    assert faults_of(project, answer) == 3
    project.write({".kb/config.json": '{"fleet": {"place": "../place"}}'})
    assert found_alone(project) == {"REQ-7"}
    assert faults_of(project, answer) == 1
    assert [row.values for row in run(project, "must-coverage")] == [("specified_by",)]


def run(project, rule):
    return run_checks(project.workspace(), project.view(), branch="main", only=[rule]).violations


def found_alone(project):
    return {row.values[-1] for row in run(project, "unresolved-reference")}


def faults_of(project, answer):
    known, broken = known_to(project.workspace(), "main", faults.about(answer.problems, answer.unresolved))
    assert not broken
    return len(faults.links_not_accepted(answer.unresolved, known))
