"""Rows of a matrix and of the requirements in `kb ui` are those of `kb coverage`, and holes those of `kb check`."""

from __future__ import annotations

import json
import random
import shutil
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbcore.query.matrix import ASPECT_STEPS
from tests.cli.ui.test_pages import apply
from tests.cli.ui.test_pages import kb as run_kb
from tests.support.effort.scale import SEED, tries
from tests.support.processes.cli import write
from tests.support.processes.explorer import Explorer

TAGS = ["a", "B", "ü b"]
STATUSES = ["open", "draft", "retired"]
PRIORITIES = ["must", "should", ""]
COUNT = 40
LAST_SEQ = 5
ENDS = {"specified_by": "scenario", "verified_by": "test", "implements": "symbol"}
RULED = {"specified": "specified_by", "verified": "verified_by"}
"""The aspects that the rule must-coverage asks for, by the edge that its violations name."""


@pytest.fixture(scope="module")
def made(models, tmp_path_factory):
    """Requirements of files and of clients, some of which lead to something, are waived, retired or only proposed."""
    root = shutil.copytree(models / "synced", tmp_path_factory.mktemp("laws") / "repo", symlinks=True)
    chance = random.Random(SEED)
    settings_now = json.loads((root / ".kb/config.json").read_text())
    write(root, {".kb/config.json": json.dumps(settings_now | {"review": {"actors": "agent*"}})})
    files = {
        f"docs/requirements/{'ab'[number % 2]}/{number}.md": (
            f"---\nid: F-{number}\ntitle: Of a file\nstatus: {chance.choice(STATUSES)}\n"
            f"priority: {chance.choice(PRIORITIES[:2])}\n"
            f"tags: {json.dumps(chance.sample(TAGS, chance.randrange(3)))}\n---\n"
        )
        for number in range(10)
    }
    write(root, files)
    run_kb(root, "sync")
    reqs = [f"F-{number}" for number in range(10)] + [f"R-{number}" for number in range(COUNT)]
    entities = [_requirement(f"R-{number}", chance) for number in range(COUNT)]
    entities += [
        {"id": f"{type_}-{number}", "type": type_, "title": "x", "status": chance.choice(["active", "retired"])}
        for type_ in ENDS.values()
        for number in range(6)
    ]
    apply(root, *entities, edges=_edges(reqs, 30, chance))
    apply(root, *(_requirement(f"R-{number}", chance) for number in range(0, COUNT, 3)), edges=_edges(reqs, 20, chance))
    proposed = [_requirement(f"P-{number}", chance) for number in range(5)]
    apply(root, *proposed, edges=_edges(reqs, 15, chance), actor="agent")
    assert json.loads(run_kb(root, "--json", "status"))["seq"] == LAST_SEQ
    return root


def _requirement(id_, chance):
    waived = {aspect: "bought" for aspect in ASPECT_STEPS if chance.random() < 0.2}
    return {
        "id": id_,
        "type": "req",
        "title": f"Title of {id_}",
        "status": chance.choice(STATUSES),
        "priority": chance.choice(PRIORITIES) or None,
        "tags": chance.sample(TAGS, chance.randrange(4)),
        "attributes": {"not_applicable": waived or None},
    }


def _edges(reqs, count, chance):
    found = {}
    for _ in range(count):
        edge, type_ = chance.choice([*ENDS.items()])
        req, other = chance.choice(reqs), f"{type_}-{chance.randrange(6)}"
        ends = {"from": other, "to": req} if edge == "implements" else {"from": req, "to": other}
        found[edge, req, other] = {"type": edge, **ends}
    return [*found.values()]


@pytest.fixture(scope="module")
def explorer(made):
    with Explorer(made) as running:
        yield running


@pytest.fixture
def broken(kb, made):
    """The ids that the rule must-coverage names, by aspect."""
    found = kb("check", "--json", cwd=made).json["violations"]
    said = [(one["id"], one["message"]) for one in found if one["rule"] == "must-coverage"]
    assert said
    return {aspect: {id_ for id_, text in said if f"(no edge {edge})" in text} for aspect, edge in RULED.items()}


FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "tag": st.lists(st.sampled_from(TAGS), min_size=1, max_size=2, unique=True),
        "status": st.sampled_from(STATUSES),
        "path": st.lists(
            st.sampled_from(["docs/**", "docs/requirements/a/**", "docs/requirements/b/1.md", "src"]),
            min_size=1,
            max_size=2,
            unique=True,
        ),
        "at": st.integers(2, LAST_SEQ).map(str),
    },
)


@settings(max_examples=tries(12, 1000), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([*ASPECT_STEPS]), FILTERS, st.booleans())
def test_rows_are_those_of_coverage_and_holes_those_of_check(kb, explorer, broken, made, aspect, asked, holes):
    words = [f"--{name}={value}" for name, values in asked.items() for value in _listed(values)]
    covered = kb("coverage", "--json", *words, cwd=made).json["requirements"]
    step, only = ASPECT_STEPS[aspect], {"holes": "1"} if holes else {}
    query = urlencode({"type": "req", "edges": step, "format": "json", **asked, **only}, doseq=True)
    answer = explorer.get(f"/matrix?{query}")
    assert answer.status == 200, answer.text
    rows = json.loads(answer.text)
    states = {one["id"]: _state(one, aspect) for one in covered}
    assert {row["id"]: row["state"] for row in rows} == {
        id_: state for id_, state in states.items() if state == "no" or not holes
    }
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    ends = {one["id"]: one[aspect] for one in covered}
    assert all([*filter(None, row["leads_to"].split(", "))] == ends[row["id"]] for row in rows)
    if aspect in RULED and "at" not in asked:
        must = {one["id"] for one in covered if one["priority"] == "must"}
        assert {row["id"] for row in rows if row["state"] == "no"} & must == broken[aspect] & {*states}


def _listed(values):
    return values if isinstance(values, list) else [values]


def _state(one, aspect):
    return "yes" if one[aspect] else "not_applicable" if aspect in one["not_applicable"] else "no"


@pytest.fixture(scope="module")
def covered(made):
    return json.loads(run_kb(made, "--json", "coverage"))["requirements"]


@settings(max_examples=tries(12, 1000))
@given(
    st.sampled_from(["", *TAGS]), st.sampled_from(PRIORITIES), st.sets(st.sampled_from([*ASPECT_STEPS])), st.booleans()
)
def test_the_page_of_requirements_has_the_rows_of_coverage(explorer, covered, tag, priority, lacks, holes):
    query = urlencode(
        {"tag": tag, "priority": priority, "lacks": [*lacks], "holes": "1" * holes, "format": "json"}, True
    )
    rows = json.loads(explorer.get(f"/requirements?{query}").text)
    expected = [
        one
        for one in covered
        if (not tag or tag in one["tags"])
        and (not priority or one["priority"] == priority)
        and all(_state(one, aspect) == "no" for aspect in lacks)
        and (not holes or any(_state(one, aspect) == "no" for aspect in ASPECT_STEPS))
    ]
    assert [row["id"] for row in rows] == [one["id"] for one in expected]
    for row, one in zip(rows, expected, strict=True):
        for aspect in ASPECT_STEPS:
            waived = f"not applicable: {one['not_applicable'].get(aspect)}"
            assert row[aspect] == (waived if _state(one, aspect) == "not_applicable" else ", ".join(one[aspect]))
