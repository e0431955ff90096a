"""A fault of one entry of a file holds back what is known of this entry; the rest is taken in, deletions too."""

from __future__ import annotations

import msgspec
import pytest

from kbcore.model.graph import NoteOnFile, SyncedFile
from kbcore.query import stale_ids
from tests.support.repository.project import Project, req

MANIFEST = "symbols.yaml"
FIRST = """\
symbols:
  - id: a
    title: Title of a
    owner: ann
    implements: REQ-1
  - id: b
    title: Title of b
    owner: bob
    implements: REQ-1
  - id: c
    title: Title of c
"""
SECOND = """\
symbols:
  - id: a
    title: Title of a
  - id: b
    title: Title of b
  - id: d
    title: Title of d
"""


@pytest.fixture
def manifest(project: Project) -> Project:
    """Three symbols, two of them with an owner and an edge."""
    project.sync({MANIFEST: FIRST, "docs/requirements/1.md": req("REQ-1")})
    return project


def stated_owners(project: Project) -> dict[str, tuple[object, bool]]:
    """Return the owner of each symbol, and whether its edge to the requirement is there."""
    rows = project.view().rows("select id from node where type = 'symbol' order by id")
    linked = {from_id for from_id, _, _, resolved in project.edges("REQ-1") if resolved}
    nodes = {key: project.node(key) for (key,) in rows}
    return {key: (node.fields.get("owner"), key in linked) for key, node in nodes.items() if node}


def codes(project: Project, text: str) -> list[str]:
    answer = project.sync({MANIFEST: text})
    return sorted(one.code for path, one in answer.problems if path == MANIFEST and one.severity != "note")


RIGHT = {"a": (None, False), "b": (None, False), "d": (None, False)}
OF_B = {**RIGHT, "b": ("bob", True)}


def test_without_a_fault_the_manifest_is_what_counts(manifest: Project) -> None:
    assert stated_owners(manifest) == {"a": ("ann", True), "b": ("bob", True), "c": (None, False)}
    assert codes(manifest, SECOND) == []
    assert stated_owners(manifest) == RIGHT


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("  - id: b\n    title: A copy\n", "repeated_id"),
        ("  - id: b\n", "repeated_id"),
    ],
)
def test_a_repeated_id_holds_back_its_own_entity(manifest: Project, fault: str, code: str) -> None:
    assert codes(manifest, SECOND + fault) == [code]
    assert stated_owners(manifest) == OF_B


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("    title: [x]\n", "wrong_shape"),
        ("    title: Title of b\n    kind: x\n    kind: y\n", "duplicate_key"),
        ("    title: Title of b\n    type: nonsense\n", "unknown_type"),
        ("    title: Title of b\n    type: [x]\n", "wrong_shape"),
        ("    title: Title of b\n    links: [../../../x.md]\n", "bad_link"),
    ],
)
def test_a_fault_of_a_value_holds_back_its_own_entity(manifest: Project, entry: str, code: str) -> None:
    assert codes(manifest, SECOND.replace("    title: Title of b\n", entry)) == [code]
    assert stated_owners(manifest) == OF_B
    assert codes(manifest, SECOND) == []
    assert stated_owners(manifest) == RIGHT


def test_an_entry_whose_id_was_lost_keeps_the_entity_of_its_title(manifest: Project) -> None:
    text = SECOND.replace("  - id: b\n    title", "  - title")
    assert codes(manifest, text) == ["kept_entities", "missing_id"]
    assert stated_owners(manifest) == OF_B
    assert codes(manifest, SECOND) == []
    assert stated_owners(manifest) == RIGHT


def test_a_new_entry_without_an_id_holds_nothing_back(manifest: Project) -> None:
    assert codes(manifest, SECOND + "  - title: Title of a new one\n") == ["missing_id"]
    assert stated_owners(manifest) == RIGHT


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    "fault",
    [
        "  - kind: class\n",  # neither id nor title
        "  - text\n",
        "  - id: z\n    id: c\n",  # the dash of the second one is missing
        "  - id: z\n    tags: [x\n",
        "symbols:\n  - id: c\n",
    ],
)
def test_where_any_entity_may_be_meant_all_that_are_not_listed_are_kept(manifest: Project, fault: str) -> None:
    assert "kept_entities" in codes(manifest, SECOND + fault)
    found = stated_owners(manifest)
    assert found["c"] == (None, False)
    assert (found["a"], found["b"]) == ((None, False), (None, False))
    assert codes(manifest, SECOND) == []
    assert stated_owners(manifest) == RIGHT


def test_the_kept_entities_are_counted_and_named(manifest: Project) -> None:
    answer = manifest.sync({MANIFEST: "symbols:\n  - id: a\n  - text\n"})
    message = next(one.message for _, one in answer.problems if one.code == "kept_entities")
    assert message == "2 entities that the file no longer states are kept: b, c."


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("symbols:\n  - id: a\n  - text\n", "whose ids cannot be read"),
        ("symbols:\n  - id: a\n  - id: a\n    title: Title of b\n", "that repeat an id"),
        (
            "symbols:\n  - id: a\n  - id: a\n    title: Title of b\n  - text\n",
            "whose ids cannot be read or that repeat an id",
        ),
    ],
)
def test_the_hint_of_kept_entities_names_the_entries_that_are_at_fault(manifest: Project, text: str, what: str) -> None:
    manifest.sync({MANIFEST: "symbols:\n  - id: a\n  - id: b\n    title: Title of b\n"})
    answer = manifest.sync({MANIFEST: text})
    hint = next(one.hint for _, one in answer.problems if one.code == "kept_entities")
    assert hint == f"Correct the entries {what}: they may be these."


FEATURE = """\
Feature: Payments

  @id:PAY-1
  Scenario: Pay by card

  @id:PAY-2
  Scenario: Pay by invoice
"""


@pytest.mark.parametrize("wrong", ["PAY-1", "link:0123456789abcdef0123456789abcdef"])
def test_an_entry_with_the_id_of_another_one_or_none_keeps_the_entity_of_its_title(
    project: Project, wrong: str
) -> None:
    project.sync({".kb/config.json": '{"extractors": {"gherkin": {"paths": ["*.feature"]}}}', "pay.feature": FEATURE})
    answer = project.sync({"pay.feature": FEATURE.replace("PAY-2", wrong)})
    assert sorted(one.code for _, one in answer.problems if one.code != "default_status") == (
        ["kept_entities", "repeated_id"] if wrong == "PAY-1" else ["bad_id", "kept_entities"]
    )
    hint = next(one.hint for _, one in answer.problems if one.code == "kept_entities")
    what = "that repeat an id" if wrong == "PAY-1" else "whose ids cannot be read"
    assert hint == f"Correct the entries {what}: they may be these."
    assert project.node("PAY-2").fields["title"] == "Pay by invoice"
    project.sync({"pay.feature": FEATURE.replace("PAY-2", "PAY-3")})
    assert project.node("PAY-2") is None


def test_an_entity_that_is_held_back_keeps_its_id_from_other_files(manifest: Project) -> None:
    text = SECOND.replace("  - id: b\n    title: Title of b", "  - id: b\n    type: [x]")
    manifest.sync({MANIFEST: text, "docs/requirements/2.md": req("b", title="Another")})
    assert manifest.node("b").fields["title"] == "Title of b"
    manifest.sync({MANIFEST: SECOND.replace("  - id: b\n    title: Title of b\n", "")})
    assert manifest.node("b").fields["title"] == "Another"


def test_a_bare_link_that_is_kept_follows_the_type_of_its_target(project: Project) -> None:
    linked = "symbols:\n  - id: a\n    links: [X]\n"
    project.sync({MANIFEST: linked, "docs/x.yaml": "", "docs/requirements/x.md": req("X")})
    assert {edge[1] for edge in project.edges("a")} == {"implements"}
    broken = "symbols:\n  - id: a\n    title: [x]\n"
    project.sync({MANIFEST: broken, "docs/requirements/x.md": None, "docs/tests/x.md": req("X")})
    assert {edge[1] for edge in project.edges("a")} == {"covered_by"}
    assert project.sync(rebuild=True).outcome.applied is False


def stale(project: Project, seq: int | None = None) -> set[str]:
    """Return the symbols that are marked as stale, now or as of a seq."""
    view = project.view()
    nodes = view.nodes([key for (key,) in view.rows("select id from node where type = 'symbol'")])
    return set(stale_ids(view, nodes, seq or view.seq))


def test_one_id_that_another_file_states_marks_no_other_entity_of_the_manifest(manifest: Project) -> None:
    manifest.sync({"docs/symbols.yaml": "symbols:\n- {id: a, title: Other}\n- {id: z, title: Z}\n"})
    assert [one.is_ok for one in manifest.view().sources([MANIFEST])] == [False]
    assert stale(manifest) == set()


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("text", "marked"),
    [
        (SECOND + "  - id: b\n", {"b"}),
        (SECOND.replace("title: Title of b", "title: [b]"), {"b"}),
        (SECOND.replace("title: Title of b", "title: Title of b\n    type: no_such"), {"b"}),
        (SECOND + "  - title: Title of c\n", {"a", "b", "c", "d"}),
        (SECOND + "  - {\n", {"a", "b", "c", "d"}),
    ],
    ids=["repeated", "wrong value", "wrong type", "no id", "broken"],
)
def test_a_fault_of_one_entity_marks_this_one_and_any_other_fault_marks_all(
    manifest: Project, text: str, marked: set[str]
) -> None:
    manifest.sync({MANIFEST: text})
    assert stale(manifest) == marked
    seq = manifest.seq()
    manifest.sync({MANIFEST: SECOND})
    assert (stale(manifest), stale(manifest, seq)) == (set(), marked & {"a", "b", "d"})


def test_a_note_of_a_record_that_names_no_entity_is_about_all_of_the_file() -> None:
    notes = msgspec.json.decode(b'[{"line":3,"code":"duplicate_id","message":"x"}]', type=tuple[NoteOnFile, ...])
    assert SyncedFile("a", "h", "e", is_ok=False, problems=notes, version=1).may_be_newer("b")
    about = (msgspec.structs.replace(notes[0], id="b"),)
    source = SyncedFile("a", "h", "e", is_ok=False, problems=about, version=1)
    assert (source.may_be_newer("b"), source.may_be_newer("c")) == (True, False)
