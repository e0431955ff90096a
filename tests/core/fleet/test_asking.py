"""A fleet answers what a loop over its single stores answers, row by row."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from kbcore.checks import idle_in, judge
from kbcore.clock import SystemClock
from kbcore.config.user import UserSettings
from kbcore.errors import InvalidQuery
from kbcore.fleet import asking, head, local, reading
from kbcore.fleet.asking import CheckQuestion, CoverageQuestion, RowsQuestion
from kbcore.fleet.exporting import ExportRequest, export
from kbcore.fleet.local import Answer
from kbcore.fleet.place import FolderPlace
from kbcore.fleet.reading import Failure, Member, Selection
from kbcore.query import Query, parse_pattern, parse_where
from kbcore.store import branches
from kbcore.store.pool import Machine
from kbcore.view.relations import RELATIONS
from tests.support.disk.faultfs import NoSyncFs
from tests.support.effort.scale import SEED, tries
from tests.support.repository.project import Project, document, req
from tests.support.repository.repos import git_env

COUNT = tries(6, 200)
MACHINE = Machine(NoSyncFs(), SystemClock(), git_env())
USER = UserSettings()
RULE = """
rules:
  - id: titles-are-short
    description: Titles are short.
    severity: warning
    sql: "select id, 'The title is long.' as message from entity where length(title) > 12"
"""
FAULTY = req("REQ-7", title="A title that is long", priority="must", depends_on="REQ-99")
"""What the first repository has in every step: it breaks several rules whatever the seed is."""


def files_of(dice, step):
    """Return the files that a repository has after a step: some change, some go."""
    names = [f"REQ-{n}" for n in range(1, 7)]
    found: dict[str, Any] = {}
    for name in names:
        if dice.random() < 0.7:
            links = {"verified_by": dice.choice(["T-1", "T-2", "T-9"])} if dice.random() < 0.6 else {}
            links |= {"depends_on": dice.choice(names)} if dice.random() < 0.5 else {}
            title = f"Title {step} of {name}" if dice.random() < 0.3 else f"Title {name}"
            owner = dice.choice(["ann", "bob", ""])
            links |= {"owner": owner} if owner else {}
            status, priority = dice.choice(["open", "closed", "odd"]), dice.choice(["must", "should"])
            found[f"docs/requirements/{name}.md"] = req(name, title=title, status=status, priority=priority, **links)
    for name in ("T-1", "T-2"):
        found[f"docs/tests/{name}.md"] = document(name, title=f"Test {step}", status="ok", tags="[fast, slow]")
    if dice.random() < 0.4:
        found["docs/tests/broken.md"] = "---\nid: [\n---\n"
    return found


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Repositories with several records, clients' facts, rules of their own and several branches, all exported."""
    root, dice = tmp_path_factory.mktemp("fleet"), random.Random(SEED)
    place = FolderPlace(NoSyncFs(), SystemClock(), root / "place")
    projects = {}
    for number in range(COUNT):
        project = Project(root / f"r{number}")
        name = f"org{number % 2}/r{number}"
        if not number or dice.random() < 0.2:
            project.write({".kb/rules/own.yaml": RULE})
        before: dict[str, Any] = {}
        for step in range(dice.randint(1, 3) if number else 3):
            files = files_of(dice, step) | ({} if number else {"docs/requirements/REQ-7.md": FAULTY})
            project.sync({**dict.fromkeys(before.keys() - files.keys()), **files})
            before = files
            if not number or dice.random() < 0.7:
                project.apply(
                    entities=[{"id": f"ADR-{step}", "type": "adr", "title": "A decision", "status": "accepted"}],
                    edges=[{"type": "relates_to", "kind": "see", "from": f"ADR-{step}", "to": "T-1"}],
                )
            if dice.random() < 0.6:
                exported(project, place, name)
        exported(project, place, name)
        projects[name, "main"] = project
    yield place, projects
    for project in projects.values():
        project.close()


def exported(project, place, name, branch="main", *, is_default=True):
    workspace = project.workspace()
    store, choice, _ = branches.open_branch(workspace, None)
    asked = ExportRequest(name, branch, is_default=is_default)
    store.read(lambda view: export(workspace, choice.branch, view, place, asked))


def asked(fleet, question):
    place, _ = fleet
    found = reading.find(place, Selection())
    assert not found.failures
    return {(one.repo, one.branch): one.value for one in local.ask(place, found.heads, question, MACHINE, USER)}


def single(project):
    """Return the store of a repository as a member: its own view, and its own settings."""
    return Member(None, project.view(), project.workspace())


def test_rules_find_the_same(fleet):
    found = asked(fleet, CheckQuestion())
    assert len(found) == COUNT
    rules = set()
    for name, project in fleet[1].items():
        member = single(project)
        alone = judge(member.settings, member.view, None, idle=idle_in(member.view)).as_json()
        for run in alone["rules"]:
            run.pop("seconds", None)
        assert msgspec.json.encode(found[name]) == msgspec.json.encode(alone)
        rules |= {one["rule"] for one in alone["violations"]}
    assert {"unresolved-reference", "must-coverage", "suspect-edge", "titles-are-short"} <= rules


QUERIES = {
    "all": Query(),
    "type": Query(type="req"),
    "edges": Query(type="edge"),
    "status": Query(status="open"),
    "tag": Query(tags=("fast",)),
    "where": Query(where=(parse_where("priority=must OR owner^=a"), parse_where("title~2"))),
    "has": Query(has=(parse_pattern("verified_by:T-1"),), lacks=(parse_pattern("depends_on"),)),
    "text": Query(text="title decision"),
    "walk": Query(from_id="T-1", follow=("^verified_by",), depth=3),
    "sort": Query(type="req", sort="-title", limit=3),
    "fields": Query(type="req", fields=("id", "owner")),
    "count": Query(type="req", count=True),
    "path": Query(path=("docs/tests/",)),
}


@pytest.mark.parametrize("name", QUERIES)
def test_queries_find_the_same(fleet, name):
    question = RowsQuestion(QUERIES[name])
    found = asked(fleet, question)
    for key, project in fleet[1].items():
        assert found[key] == asking.rows(single(project), question)
    assert any(one["total"] for one in found.values())


@pytest.mark.parametrize("query", [Query(type="req"), Query(type="req", status="open")])
def test_coverage_is_the_same(fleet, query):
    question = CoverageQuestion(query)
    found = asked(fleet, question)
    for key, project in fleet[1].items():
        assert found[key] == asking.answer(question, single(project))


@pytest.mark.parametrize("relation", RELATIONS)
def test_statements_give_the_same(fleet, relation):
    place, projects = fleet
    heads = reading.find(place, Selection()).heads
    listed = ", ".join(f'"{one.name}"' for one in RELATIONS[relation].columns)
    statement = f"select repo, branch, {listed} from {relation}"
    found = local.sql(place, heads, statement, 100_000, asked_by=(MACHINE, USER))
    alone = []
    for (repo, branch), project in projects.items():
        alone += [(repo, branch, *row) for row in project.view().rows(RELATIONS[relation].select)]
    assert not found.is_cut
    assert sorted(map(repr, found.rows)) == sorted(map(repr, alone))
    assert found.columns[:3] == ["repo", "branch", RELATIONS[relation].columns[0].name]


def test_a_time_is_answered_as_of_the_last_record_before_it(fleet):
    place, projects = fleet
    heads = reading.find(place, Selection()).heads
    before = max(heads, key=lambda one: one.seq)
    project = projects[before.repo, before.branch]
    [(instant,)] = project.view().rows("select written_at from record where seq = ?", [before.seq])
    question = RowsQuestion(Query(type="req"), instant)
    [found] = local.ask(place, [before], question, MACHINE, USER)
    assert found.value == asking.rows(single(project), question)
    rows = local.sql(
        place, [before], "select id from entity order by id", 1000, before=instant, asked_by=(MACHINE, USER)
    )
    past = asking.rows(single(project), RowsQuestion(Query(), instant))
    assert [row[0] for row in rows.rows] == sorted(one["id"] for one in past["rows"])


@pytest.mark.parametrize(
    "statement",
    [
        "select 1; select 2",
        "create table x (a int)",
        "copy entity to 'x.parquet'",
        "select * from nowhere",
        "selec",
        "attach 'x.db'",
        "set memory_limit = '1GB'",
        "select * from read_text('/etc/passwd')",
    ],
)
def test_a_statement_that_does_not_only_read_the_fleet_is_refused(fleet, statement):
    place, _ = fleet
    heads = reading.find(place, Selection()).heads[:1]
    with pytest.raises(InvalidQuery, match="refused"):
        local.sql(place, heads, statement, 10, asked_by=(MACHINE, USER))


def test_a_repository_that_cannot_be_read_is_named_and_the_others_are_asked(project, tmp_path):
    place = FolderPlace(NoSyncFs(), SystemClock(), tmp_path / "place")
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    for name in ("a", "b", "c", "d", "e"):
        exported(project, place, name)
    paths = {name: tmp_path / "place" / head.head_path(name, "main") for name in "abcde"}
    of_b = head.decode(paths["b"].read_bytes(), "b")
    (tmp_path / "place" / of_b.parts[0].path).unlink()
    of_c = head.decode(paths["c"].read_bytes(), "c")
    paths["c"].write_bytes(head.encode(msgspec.structs.replace(of_c, format=9)))
    paths["d"].write_bytes(b"{")
    found = reading.find(place, Selection())
    answers = list(local.ask(place, found.heads, CheckQuestion(), MACHINE, USER))
    failed = [*found.failures, *(one for one in answers if isinstance(one, Failure))]
    assert [one.repo for one in answers if isinstance(one, Answer)] == ["a", "e"]
    assert {one.repo: one.code for one in failed} == {
        "b": "storage_error",
        "c": "format_too_new",
        "d": "storage_error",
    }
    assert all(one.hint for one in failed)
    rows = local.sql(place, found.heads, "select distinct repo from entity order by 1", 10, asked_by=(MACHINE, USER))
    assert (rows.rows, [one.repo for one in rows.failures]) == ([("a",), ("e",)], ["b"])


def test_a_selection_means_the_default_branch_unless_one_is_named(project, tmp_path):
    place = FolderPlace(NoSyncFs(), SystemClock(), tmp_path / "place")
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    exported(project, place, "acme/a")
    exported(project, place, "acme/a", "feature/x", is_default=False)
    exported(project, place, "acme/b", "release", is_default=False)

    def meant(**selected):
        return [(one.repo, one.branch) for one in reading.find(place, Selection(**selected)).heads]

    assert meant() == [("acme/a", "main"), ("acme/b", "release")]
    assert meant(branch="*") == [("acme/a", "feature/x"), ("acme/a", "main"), ("acme/b", "release")]
    assert meant(repos=("*/a",), branch="feature/*") == [("acme/a", "feature/x")]
    assert meant(repos=("x",)) == []


def test_edges_across_repositories_are_resolved_where_both_ends_are_there(tmp_path):
    place = FolderPlace(NoSyncFs(), SystemClock(), tmp_path / "place")
    files = {
        "acme/api": {
            "docs/requirements/1.md": req("REQ-1", depends_on="REQ-2"),
            "docs/requirements/2.md": req("REQ-2", depends_on="acme/gone:REQ-1"),
        },
        "acme/web": {
            "docs/requirements/1.md": req("REQ-1", depends_on="acme/api:REQ-2"),
            "docs/requirements/2.md": req("REQ-2", depends_on="acme/api:REQ-9"),
            "docs/requirements/3.md": req("REQ-3", depends_on="REQ-4"),
            "docs/requirements/5.md": req("REQ-5", depends_on="tool:REQ-1"),
        },
        "tool": {"docs/requirements/1.md": req("REQ-1", depends_on="other:REQ-1")},
    }
    for number, (name, content) in enumerate(files.items()):
        project = Project(tmp_path / str(number))
        project.sync(content)
        exported(project, place, name)
        project.close()
    heads = reading.find(place, Selection()).heads
    cells = "repo, type, from_repo, from_id, to_repo, to_id, is_resolved"
    found = local.sql(place, heads, f"select {cells} from across order by all", 100, asked_by=(MACHINE, USER))
    assert found.rows == [
        ("acme/api", "depends_on", "acme/api", "REQ-2", "acme/gone", "REQ-1", False),
        ("acme/web", "depends_on", "acme/web", "REQ-1", "acme/api", "REQ-2", True),
        ("acme/web", "depends_on", "acme/web", "REQ-2", "acme/api", "REQ-9", False),
        ("acme/web", "depends_on", "acme/web", "REQ-5", "tool", "REQ-1", True),
    ]
    rests_on = """
    with recursive step as (
      select repo as from_repo, from_id, repo as to_repo, to_id from edge
      union all select from_repo, from_id, to_repo, to_id from across where is_resolved
    ), affected as (
      select 'acme/api' as repo, 'REQ-2' as id
      union select s.from_repo, s.from_id from step s join affected a on s.to_repo = a.repo and s.to_id = a.id
    ) select repo, id from affected order by all"""
    walked = local.sql(place, heads, rests_on, 100, asked_by=(MACHINE, USER)).rows
    assert walked == [("acme/api", "REQ-1"), ("acme/api", "REQ-2"), ("acme/web", "REQ-1")]
