"""One entity out of two files, each of which owns its fields."""

from __future__ import annotations

import itertools
import json

import pytest

from tests.support.repository.project import Project
from tests.support.repository.repos import git

SETTINGS = json.dumps(
    {
        "sources": [
            {
                "glob": "keps/{number:d}-{slug}/kep.yaml",
                "with": "README.md",
                "withFields": {"heading": "long_title"},
                "type": "adr",
                "id": "KEP-{number}",
                "links": {"see": {"edge": "relates_to", "kind": "see", "id": "KEP-{value}"}},
            }
        ]
    }
)
YAML, README = "keps/12-foo/kep.yaml", "keps/12-foo/README.md"
ABOUT = "title: Foo\nstatus: open\n"


@pytest.fixture
def keps(project: Project) -> Project:
    project.write({".kb/config.json": SETTINGS})
    return project


def state(project: Project) -> dict[str, object] | None:
    node = project.node("KEP-12")
    return node and {"fields": node.fields, "owners": node.owners}


def test_each_of_two_files_owns_the_fields_that_it_states(keps: Project) -> None:
    answer = keps.sync({YAML: ABOUT, README: "# All of Foo\n\nSee [bar](../13-bar/README.md).\n"})
    assert answer.problems == ()
    node = keps.node("KEP-12")
    assert node
    assert node.path == YAML
    assert node.owners == {
        **dict.fromkeys(("type", "title", "status"), YAML),
        **dict.fromkeys(("text_ref", "attributes.long_title"), README),
    }
    assert node.fields["attributes.long_title"] == "All of Foo"
    assert not keps.sync().outcome.applied


def test_a_link_to_the_file_beside_leads_to_the_entity(keps: Project) -> None:
    keps.sync({YAML: ABOUT, README: "# Foo\n"})
    keps.sync({"keps/13-bar/kep.yaml": ABOUT, "keps/13-bar/README.md": "See [foo](../12-foo/README.md).\n"})
    assert ("KEP-13", "mentions", "KEP-12", True) in keps.edges("KEP-13")


ORDERS = [
    order
    for length in (2, 3)
    for order in itertools.permutations(((YAML, ABOUT), (README, "# Foo\n"), (YAML, None), (README, None)), length)
]


@pytest.mark.parametrize(
    "steps", ORDERS, ids=lambda steps: " ".join(f"{path[-9:]}{'+' if text else '-'}" for path, text in steps)
)
def test_files_that_come_and_go_in_any_order_give_the_state_of_one_sync(
    keps: Project, steps: tuple[tuple[str, str | None], ...]
) -> None:
    there: dict[str, str] = {YAML: ABOUT, README: "# Foo\n"} if steps[0][1] is None else {}
    keps.sync(there)
    for path, text in steps:
        if text is None:
            if there.pop(path, None) is None:
                continue
            keps.sync({path: None})
        else:
            there[path] = text
            keps.sync({path: text})
    after = state(keps)
    expected = {"title": YAML, "status": YAML, "type": YAML} if YAML in there else {}
    expected |= (
        dict.fromkeys(("text_ref", "attributes.long_title"), README) if YAML in there and README in there else {}
    )
    assert (after["owners"] if after else {}) == expected
    assert not keps.sync(rebuild=True).outcome.applied


def test_a_file_beside_nothing_is_a_note(keps: Project) -> None:
    answer = keps.sync({README: "# Foo\n"})
    assert keps.node("KEP-12") is None
    assert [(path, one.code, one.severity) for path, one in answer.problems] == [(README, "part_without_whole", "note")]


def test_sources_come_before_extractors_and_the_first_entry_that_means_a_file_reads_it(project: Project) -> None:
    entries = [
        {"glob": "docs/adr/0*.md", "type": "adr", "id": "FIRST-{file.stem}"},
        {"glob": "docs/adr/*.md", "type": "adr", "id": "SECOND-{file.stem}"},
    ]
    project.write({".kb/config.json": json.dumps({"sources": entries})})
    project.sync({"docs/adr/01.md": "# A\n", "docs/adr/b.md": "---\nid: B\n---\n# B\n"})
    assert project.node("FIRST-01")
    assert project.node("SECOND-b")
    assert project.node("B") is None


def test_an_entry_that_goes_takes_its_entities_along(keps: Project) -> None:
    keps.sync({YAML: ABOUT, README: "# Foo\n"})
    keps.sync({".kb/config.json": "{}"})
    assert keps.node("KEP-12") is None


def test_an_entity_of_two_files_is_that_of_its_own_file_with_the_dates_of_both(keps: Project) -> None:
    keps.write({YAML: ABOUT, README: "# Foo\n"})
    git(keps.root, "add", "--all")
    git(keps.root, "commit", "--quiet", "-m", "x", "--date", "2020-01-03T12:00:00Z")
    keps.write({README: "# All of Foo\n"})
    git(keps.root, "commit", "--quiet", "--all", "-m", "y", "--date", "2020-01-05T12:00:00Z")
    keps.sync()
    node = keps.node("KEP-12")
    assert node
    assert (node.created_at[:10], node.updated_at[:10], node.source) == ("2020-01-03", "2020-01-05", YAML)
    keps.sync({README: "# Other\n"})
    node = keps.node("KEP-12")
    assert node
    assert node.source == YAML
