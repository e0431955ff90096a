"""The log, and one record in full."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from kbcore.clock import SystemClock
from kbcore.errors import InvalidQuery, NotFound
from kbcore.errors.remedies import for_shell, kb
from kbcore.ids import link_id
from kbcore.model import record
from kbcore.model.record import Record
from kbcore.storage import journal
from kbcore.store import branches
from kbcore.store.history.log import RecordFilter, count_operations, log, no_such_entity, operations_from, record_json
from kbcore.store.history.when import when_of
from kbcore.store.write_request import Author
from tests.core.store.history.undoing import revert
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project, req


def entity(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def edge(from_id: str, to_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "depends_on", "from": from_id, "to": to_id, **fields}


def seqs(project: Project, **asked: Any) -> list[int]:
    found = {name: asked.pop(name) for name in RecordFilter.__struct_fields__ if name in asked}
    points = {name: when_of(found[name]) for name in ("since", "until") if name in found}
    return [one["seq"] for one in log(project.view(), RecordFilter(**(found | points)), **asked)]


def shown(project: Project, seq: int) -> dict[str, Any]:
    store, _, _ = branches.open_branch(project.workspace(), None)
    return store.read(lambda view: record_json(store, view, seq))


@pytest.fixture
def recorded(project: Project) -> Project:
    """A branch with five records by three authors."""
    project.apply(author=Author("ann", "cli", "kb/1"), entities=[entity("A"), entity("B")], message="begin")
    project.apply(author=Author("bot", "mcp:agent", "kb/1"), entities=[{"id": "A", "status": "done"}], changeset_id="x")
    project.apply(edges=[edge("A", "B")])
    project.delete(author=Author("tester", "cli", "kb/1", "s-1"), entities=[{"id": "B"}], cascade=True)
    project.apply(author=Author("ann", "mcpx", "kb/1"), entities=[entity("C")])
    return project


def test_the_log_says_who_did_what_through_what_newest_first(recorded: Project) -> None:
    found = log(recorded.view())
    assert [one["seq"] for one in found] == [5, 4, 3, 2, 1]
    first = found[-1]
    assert (first["actor"], first["source"], first["message"]) == ("ann", "cli", "begin")
    assert first["summary"] == {"created": 2, "updated": 0, "deleted": 0, "edges": 0}
    assert found[3]["changeset_id"] == "x"
    assert found[1]["summary"] == {"created": 0, "updated": 0, "deleted": 1, "edges": 1}
    assert first.keys() == {"seq", "changeset_id", "at", "actor", "source", "message", "summary", "commit"}
    assert [one["at"] for one in found] == sorted((one["at"] for one in found), reverse=True)


def test_the_log_of_an_entity_holds_its_own_changes_and_those_of_its_edges(recorded: Project) -> None:
    assert seqs(recorded, id="A") == [4, 3, 2, 1]
    assert seqs(recorded, id="C") == [5]
    assert seqs(recorded, id=link_id("depends_on", "", "A", "B")) == [4, 3]


def test_the_log_of_an_entity_that_was_deleted_is_still_there(recorded: Project) -> None:
    assert recorded.node("B") is None
    assert seqs(recorded, id="B") == [4, 3, 1]


def test_the_log_of_an_id_that_never_was_names_the_nearest(recorded: Project) -> None:
    recorded.apply(entities=[entity("REQ-100")])
    with pytest.raises(NotFound, match="REQ-10") as missing:
        log(recorded.view(), id="REQ-10")
    assert "REQ-100" in missing.value.hint


def test_an_id_that_names_no_entity_now_is_explained(recorded: Project) -> None:
    assert no_such_entity(recorded.view(), "B").message == "'B' was removed at seq 4."
    assert "kb show 4" in no_such_entity(recorded.view(), "B").hint
    recorded.sync({"docs/requirements/d.md": req("D", depends_on="E")})
    waiting = no_such_entity(recorded.view(), "E")
    assert waiting.message == "There is no entity 'E'; there is an unresolved edge to it: D depends_on E."
    assert "`kb log E`" in waiting.hint
    assert seqs(recorded, id="E") == [6]
    edge_id = link_id("depends_on", "", "D", "E")
    assert no_such_entity(recorded.view(), edge_id).message == f"{edge_id!r} is an edge, not an entity."


@pytest.mark.sliced(4)
@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({"actor": "ann"}, [5, 1]),
        ({"source": "mcp"}, [2]),
        ({"source": "mcp:agent"}, [2]),
        ({"source": "agent"}, []),
        ({"limit": 2}, [5, 4]),
        ({"before_seq": 3}, [2, 1]),
        ({"before_seq": 3, "limit": 1, "id": "A"}, [2]),
        ({"since": "2020-01-01"}, [5, 4, 3, 2, 1]),
        ({"since": "2999-01-01T00:00:00Z"}, []),
        ({"since": "2"}, [5, 4, 3]),
        ({"until": "2"}, [2, 1]),
        ({"since": "1", "until": "3", "actor": "tester"}, [3]),
        ({"until": "2020-01-01"}, []),
        ({"session": "s-1"}, [4]),
    ],
)
def test_the_log_is_narrowed_by_each_option(recorded: Project, asked: dict[str, Any], wanted: list[int]) -> None:
    assert seqs(recorded, **asked) == wanted


def test_the_log_since_the_time_of_a_record_begins_with_that_record(recorded: Project) -> None:
    at = log(recorded.view())[2]["at"]
    assert seqs(recorded, since=at) == [5, 4, 3]


def test_a_selection_beyond_the_head_is_refused(recorded: Project) -> None:
    with pytest.raises(InvalidQuery, match="There is no record 6 yet"):
        seqs(recorded, since="6")


def test_a_record_shows_each_element_before_and_after_and_the_fields_that_differ(recorded: Project) -> None:
    found = shown(recorded, 2)
    (operation,) = found["operations"]
    assert (operation["element"], operation["id"], operation["change"]) == ("entity", "A", "updated")
    assert operation["fields"] == {"status": {"before": "open", "after": "done"}}
    assert (operation["before"]["status"], operation["before"]["version"]) == ("open", 1)
    assert (operation["after"]["status"], operation["after"]["version"]) == ("done", 2)
    assert (found["changeset_id"], found["tool"], found["source"]) == ("x", "kb/1", "mcp:agent")
    assert len(found["hash"]) == 64


def test_a_record_shows_what_was_made_and_what_was_removed(recorded: Project) -> None:
    made = shown(recorded, 1)["operations"]
    assert [(one["id"], one["change"], one["before"]) for one in made] == [
        ("A", "created", None),
        ("B", "created", None),
    ]
    assert made[0]["after"]["title"] == "Title of A"
    gone, withdrawn = shown(recorded, 4)["operations"]
    assert (gone["id"], gone["change"], gone["after"]) == ("B", "deleted", None)
    assert (withdrawn["from"], withdrawn["type"], withdrawn["to"]) == ("A", "depends_on", "B")
    assert withdrawn["before"]["sources"] == ["cli"]


def test_a_record_of_a_sync_shows_files_and_who_states_a_field(project: Project) -> None:
    project.apply(entities=[entity("A", priority="low")])
    project.sync({"docs/requirements/a.md": req("A", priority="low")})
    node, file = shown(project, 2)["operations"]
    assert node["fields"]["priority"] == {
        "before": "low",
        "after": "low",
        "stated_by": {"before": "", "after": "docs/requirements/a.md"},
    }
    assert (file["element"], file["path"], file["change"]) == ("file", "docs/requirements/a.md", "created")
    assert file["after"]["ok"] is True


@pytest.mark.sliced
def test_the_operations_of_a_record_in_parts_are_all_of_them_in_the_same_order(project: Project) -> None:
    keys = [f"R{number}" for number in range(3)]
    files = {f"docs/requirements/{key}.md": req(key, depends_on=f"[{', '.join(keys[:3])}]") for key in keys}
    project.sync(files)
    whole, view = shown(project, 1)["operations"], project.view()
    for size, at_once in itertools.product((1, 4, 100), (1, 3, 100)):
        found, place = list[Any](), 0
        while part := list(itertools.islice(operations_from(view, 1, place, at_once=at_once), size)):
            found += [one for _, one in part]
            place = part[-1][0]
        assert found == whole
    assert count_operations(view, 1) == len(whole)
    edges = [(one["from"], one["to"]) for one in whole if one["element"] == "edge"]
    assert edges == sorted(edges)
    assert {one["element"] for one in whole} == {"entity", "edge", "file"}


def test_a_record_shows_an_edge_that_lost_its_end(project: Project) -> None:
    project.sync({"docs/requirements/a.md": req("A"), "docs/requirements/b.md": req("B", depends_on="A")})
    project.sync({"docs/requirements/a.md": None})
    edges = [one for one in shown(project, 2)["operations"] if one["element"] == "edge"]
    assert [one["fields"] for one in edges] == [{"unresolved": {"before": None, "after": True}}]


def test_a_record_keeps_the_warnings_that_its_author_got(project: Project) -> None:
    project.apply(entities=[entity("A", title="Mine")])
    answer = project.sync({"docs/requirements/a.md": req("A", title="Its own")})
    assert answer.outcome.warnings
    assert shown(project, 2)["warnings"] == list(answer.outcome.warnings)


def test_a_record_is_in_plain_words_where_the_answer_names_commands_as_data(project: Project) -> None:
    project.sync({"docs/requirements/a.md": req("A")})
    project.sync({"docs/requirements/a.md": req("A", status="done")})
    [warning] = revert(project, 2).warnings
    assert kb("sync") in warning
    assert b"\\u0002" not in (stores_at(project.root) / "main/journal-0000000001.jsonl").read_bytes()
    assert shown(project, 3)["warnings"] == [for_shell(warning)]


def test_an_early_record_with_marks_is_shown_in_plain_words(project: Project) -> None:
    project.apply(entities=[entity("A")])
    early = Record(2, "early", "", "", "ann", "cli", "kb/1", (), warnings=(f"See {kb('log')}.",), repair=kb("doctor"))
    workspace = project.workspace()
    with journal.writing(workspace.machine.fs, workspace.folders.directory_of("main"), SystemClock()) as writer:
        at = writer.head.head.at
        writer.append(record.encode(msgspec.structs.replace(early, at=at)), at)
    found = shown(project, 2)
    assert (found["warnings"], found["repair"]) == (["See `kb log`."], "`kb doctor`")
    assert log(project.view())[0]["repair"] == "`kb doctor`"


@pytest.mark.parametrize("seq", [0, 6])
def test_a_record_that_is_not_there_is_not_found_and_the_hint_says_which_are(recorded: Project, seq: int) -> None:
    with pytest.raises(NotFound) as missing:
        shown(recorded, seq)
    assert "1 to 5" in missing.value.hint


def test_what_recovery_did_is_in_the_log_of_the_record_that_followed(project: Project) -> None:
    project.apply(entities=[entity("A")])
    segment = stores_at(project.root) / "main/journal-0000000001.jsonl"
    with segment.open("ab") as file:
        file.write(b'{"v":1,"seq":2,"torn')
    outcome = project.apply(entities=[entity("B")])
    assert "quarantine" in outcome.warnings[0]
    newest, first = log(project.view())
    assert "quarantine" in newest["repair"]
    assert "repair" not in first
