"""A fleet answers what a loop over its single stores answers, row by row."""

from __future__ import annotations

from contextlib import closing

import msgspec
import pytest

from kbcore.checks import idle_in, judge
from kbcore.clock import SystemClock
from kbcore.config.user import UserSettings
from kbcore.errors import InvalidQuery
from kbcore.fleet import asking, head, local, ray_engine, reading
from kbcore.fleet.asking import CheckQuestion, RowsQuestion
from kbcore.fleet.local import Answer
from kbcore.fleet.place import FolderPlace
from kbcore.fleet.ray_engine import RayOptions
from kbcore.fleet.reading import Asker, FleetSelection, UnreadRepository
from kbcore.query import Query
from kbcore.rules import RULES
from kbcore.store.pool import Machine
from kbcore.view.base_stamp import BaseStamp
from kbcore.view.fleet_sql import BranchParts, open_branches
from kbcore.view.parquet import database_of_parts, open_parts
from kbcore.view.relations import RELATIONS
from tests.support.disk.faultfs import NoSyncFs
from tests.support.effort.scale import SEED, spread, tries
from tests.support.repository.fleets import (
    FEATURE,
    NOT_ASKED,
    QUERIES,
    export,
    exported,
    make_fleet,
    needs_ray,
    questions,
    statements,
)
from tests.support.repository.project import Project, req
from tests.support.repository.repos import git_env

COUNT = tries(6, 200)
MACHINE = Machine(NoSyncFs(), SystemClock(), git_env())
USER = UserSettings()
QUESTIONS = dict(questions())


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    made = make_fleet(tmp_path_factory.mktemp("fleet"), COUNT, SEED)
    yield made
    for project in made.projects.values():
        project.close()


def asked(fleet, question):
    """Return what ``local`` answers, by repository and branch; the damaged ones have no answer."""
    found = list(local.ask(fleet.place, fleet.heads(), question, MACHINE, USER))
    assert {one.repo for one in found if isinstance(one, UnreadRepository)} == fleet.damaged
    return {(one.repo, one.branch): one.value for one in found if isinstance(one, Answer)}


def alone(question, member):
    """Return what the same question finds in a store by the functions that ask one."""
    if not isinstance(question, CheckQuestion):
        return asking.answer(question, member)
    report = judge(member.settings, member.view, None, only=question.only, idle=idle_in(member.view)).as_json()
    for run in report["rules"]:
        run.pop("seconds", None)
    return report


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_an_answer_is_that_of_the_single_stores(fleet, name):
    found = asked(fleet, QUESTIONS[name])
    assert sorted(found) == sorted(fleet.sound())
    for key in fleet.sound():
        single = alone(QUESTIONS[name], fleet.single(*key))
        assert msgspec.json.encode(found[key]) == msgspec.json.encode(single)
    if isinstance(QUESTIONS[name], RowsQuestion):
        assert any(one["total"] for one in found.values())


def test_every_rule_every_filter_and_every_statement_is_asked(fleet):
    found = asked(fleet, CheckQuestion())
    seen = {one["rule"] for report in found.values() for one in report["violations"]}
    assert {"unresolved-reference", "must-coverage", "suspect-edge", "conflict", "titles-are-short"} <= seen
    run = {one["id"] for report in found.values() for one in report["rules"]}
    assert run >= {rule.id for rule in RULES}
    usual = Query()
    used = {
        name
        for query in QUERIES.values()
        for name in Query.__struct_fields__
        if getattr(query, name) != getattr(usual, name)
    }
    assert used | NOT_ASKED == set(Query.__struct_fields__)
    assert {FEATURE, "main"} == {branch for _, branch in found}


@pytest.mark.parametrize("relation", RELATIONS)
def test_statements_give_the_same(fleet, relation):
    listed = ", ".join(f'"{one.name}"' for one in RELATIONS[relation].columns)
    statement = f"select repo, branch, {listed} from {relation}"
    found = local.sql(fleet.place, fleet.heads(), statement, 100_000, Asker(MACHINE, USER))
    rows = []
    for key in fleet.sound():
        rows += [(*key, *row) for row in fleet.single(*key).view.rows(RELATIONS[relation].select)]
    assert not found.is_cut
    assert sorted(map(repr, found.rows)) == sorted(map(repr, rows))
    assert found.columns[:3] == ["repo", "branch", RELATIONS[relation].columns[0].name]
    assert {one.repo for one in found.failures} == fleet.damaged


@pytest.mark.slow
@needs_ray
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_of_ray_answer_what_this_process_does(fleet, workers):
    heads = fleet.heads()
    with ray_engine.started(RayOptions(workers, shard=max(1, COUNT // 7))) as engine:
        for name, question in spread([*QUESTIONS.items()], 5):
            here = list(local.ask(fleet.place, heads, question, MACHINE, USER))
            assert msgspec.json.encode(list(engine.ask(fleet.place, heads, question, USER))) == (
                msgspec.json.encode(here)
            ), name
        for statement in spread([*statements().values()], 3):
            here = local.sql(fleet.place, heads, statement, 100_000, Asker(MACHINE, USER))
            assert engine.sql(fleet.place, heads, statement, 100_000, user=USER) == here, statement


def test_a_time_is_answered_as_of_the_last_record_before_it(fleet):
    place = fleet.place
    before = max((one for one in fleet.heads() if one.repo not in fleet.damaged), key=lambda one: one.seq)
    single = fleet.single(before.repo, before.branch)
    [(instant,)] = single.view.rows("select written_at from record where seq = ?", [before.seq])
    question = RowsQuestion(Query(type="req"), instant)
    [found] = local.ask(place, [before], question, MACHINE, USER)
    assert found.value == asking.rows(single, question)
    rows = local.sql(place, [before], "select id from entity order by id", 1000, Asker(MACHINE, USER, instant))
    past = asking.rows(single, RowsQuestion(Query(), instant))
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
    place, heads = fleet.place, fleet.heads()[:1]
    with pytest.raises(InvalidQuery, match="refused"):
        local.sql(place, heads, statement, 10, Asker(MACHINE, USER))


def test_a_repository_that_cannot_be_read_is_named_and_the_others_are_asked(project, tmp_path):
    place = FolderPlace(NoSyncFs(), SystemClock(), tmp_path / "place")
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    for name in ("a", "b", "c", "d", "e"):
        exported(project, place, name)
    paths = {name: tmp_path / "place" / head.head_path(name, "main") for name in "abcde"}
    of_b = head.decode(paths["b"].read_bytes(), head.head_path("b", "main"))
    (tmp_path / "place" / of_b.parts[0].path).unlink()
    of_c = head.decode(paths["c"].read_bytes(), head.head_path("c", "main"))
    paths["c"].write_bytes(head.encode(msgspec.structs.replace(of_c, format=9)))
    paths["d"].write_bytes(b"{")
    found = reading.find(place, FleetSelection())
    answers = list(local.ask(place, found.heads, CheckQuestion(), MACHINE, USER))
    failed = [*found.failures, *(one for one in answers if isinstance(one, UnreadRepository))]
    assert [one.repo for one in answers if isinstance(one, Answer)] == ["a", "e"]
    assert {one.repo: one.code for one in failed} == {
        "b": "storage_error",
        "c": "format_too_new",
        "d": "storage_error",
    }
    assert all(one.hint for one in failed)
    rows = local.sql(place, found.heads, "select distinct repo from entity order by 1", 10, Asker(MACHINE, USER))
    assert (rows.rows, [one.repo for one in rows.failures]) == ([("a",), ("e",)], ["b"])


def test_foreign_files_next_to_heads_are_left_alone(project, tmp_path):
    folder = tmp_path / "place"
    place = FolderPlace(NoSyncFs(), SystemClock(), folder)
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    exported(project, place, "acme/a")
    of_a = folder / head.head_path("acme/a", "main")
    (folder / "heads/.DS_Store").write_bytes(b"x")
    (folder / "heads/notes").mkdir()
    (folder / "heads/notes/branch=main.json").write_bytes(b"x")
    (of_a.parent / "index.json").write_bytes(b"{}")
    found = reading.find(place, FleetSelection())
    assert ([one.repo for one in found.heads], found.failures) == (["acme/a"], [])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"repo": "acme/b"}, "is of another branch: 'main' of 'acme/b'"),
        ({"branch": "x"}, "is of another branch: 'x' of 'acme/a'"),
        ({"hash": "not a number"}, "is no head file"),
        ({"seq": -1}, "is no head file"),
        ({"parts": "/etc/passwd"}, "cannot be one"),
        ({"parts": "../x"}, "cannot be one"),
        ({"parts": "parts/a\0"}, "cannot be one"),
        ({"settings": "/etc/passwd"}, "cannot be one"),
        ({"settings": "settings/../../x"}, "cannot be one"),
    ],
)
def test_a_head_that_cannot_be_one_is_named(project, tmp_path, changed, said):
    folder = tmp_path / "place"
    place = FolderPlace(NoSyncFs(), SystemClock(), folder)
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    exported(project, place, "acme/a")
    path = head.head_path("acme/a", "main")
    sound = head.decode((folder / path).read_bytes(), path)
    paths = {
        "parts": lambda value: (msgspec.structs.replace(sound.parts[0], path=value),),
        "settings": lambda value: msgspec.structs.replace(sound.settings, path=value),
    }
    members = {name: paths.get(name, lambda value: value)(value) for name, value in changed.items()}
    (folder / path).write_bytes(head.encode(msgspec.structs.replace(sound, **members)))
    [failure] = reading.find(place, FleetSelection()).failures
    assert failure.code == "storage_error"
    assert said in failure.message
    assert "--force" in failure.hint
    export(project, place, repo="acme/a", is_default=True, is_whole=True)
    assert not reading.find(place, FleetSelection()).failures


def test_a_selection_means_the_default_branch_unless_one_is_named(project, tmp_path):
    place = FolderPlace(NoSyncFs(), SystemClock(), tmp_path / "place")
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    exported(project, place, "acme/a")
    exported(project, place, "acme/a", "feature/x", is_default=False)
    exported(project, place, "acme/b", "release", is_default=False)

    def meant(**selected):
        return [(one.repo, one.branch) for one in reading.find(place, FleetSelection(**selected)).heads]

    assert meant() == [("acme/a", "main"), ("acme/b", "release")]
    assert meant(branch="*") == [("acme/a", "feature/x"), ("acme/a", "main"), ("acme/b", "release")]
    assert meant(repos=("*/a",), branch="feature/*") == [("acme/a", "feature/x")]
    assert meant(repos=("x",)) == []


def test_no_other_branch_is_asked_in_the_place_of_a_damaged_default_one(project, tmp_path):
    place = FolderPlace(NoSyncFs(), SystemClock(), tmp_path / "place")
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    for name in ("acme/a", "acme/b"):
        exported(project, place, name)
        exported(project, place, name, "next", is_default=False)
    for name, branch in (("acme/a", "main"), ("acme/b", "next")):
        (tmp_path / "place" / head.head_path(name, branch)).write_bytes(b"{")
    found = reading.find(place, FleetSelection())
    assert [(one.repo, one.branch) for one in found.heads] == [("acme/b", "main")]
    assert [(one.repo, one.branch) for one in found.failures] == [("acme/a", "main")]
    found = reading.find(place, FleetSelection(branch="*"))
    assert [(one.repo, one.branch) for one in found.failures] == [("acme/a", "main"), ("acme/b", "next")]


def test_a_repository_without_a_record_has_nothing_at_any_time(project, tmp_path):
    place = FolderPlace(NoSyncFs(), SystemClock(), tmp_path / "place")
    exported(project, place, "acme/new")
    question = RowsQuestion(Query(), "2026-01-01")
    [found] = local.ask(place, reading.find(place, FleetSelection()).heads, question, MACHINE, USER)
    assert found.value["total"] == 0


def test_signs_in_the_names_of_folders_mean_nothing(project, tmp_path):
    place = FolderPlace(NoSyncFs(), SystemClock(), tmp_path / "place")
    project.sync({"docs/requirements/1.md": req("REQ-1", owner="ann")})
    exported(project, place, "acme/a")
    [one] = reading.find(place, FleetSelection()).heads
    folder = tmp_path / "owner=nobody" / "type=nothing"
    folder.mkdir(parents=True)
    paths = reading.copied(place, one, folder)
    basis = BaseStamp("", "", one.seq, "", "", "", 0)
    with closing(database_of_parts([str(tmp_path)])) as shared, open_parts(shared, paths, basis) as view:
        assert view.rows("select type, owner from node") == [("req", "ann")]
    with closing(open_branches([BranchParts("acme/a", "main", paths)], [str(tmp_path)])) as together:
        assert together.rows("select type, owner from entity") == [("req", "ann")]


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
    heads = reading.find(place, FleetSelection()).heads
    cells = "repo, type, from_repo, from_id, to_repo, to_id, is_resolved"
    found = local.sql(place, heads, f"select {cells} from across order by all", 100, Asker(MACHINE, USER))
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
    walked = local.sql(place, heads, rests_on, 100, Asker(MACHINE, USER)).rows
    assert walked == [("acme/api", "REQ-1"), ("acme/api", "REQ-2"), ("acme/web", "REQ-1")]
