"""KIP answered with changes that are in no record: those of files, and those of a dry run."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kbcore.errors import KBError
from kbcore.kip.request import read
from kbcore.kip.run import KipAnswer, KipContext, run
from kbcore.query import Query
from kbcore.store import branches
from kbcore.sync.overlay import WorktreeFiles
from kbcore.sync.searching import search
from kbcore.view.view import View
from kbcore.watch.changed_paths import listen
from tests.support.repository.places import caches_at
from tests.support.repository.project import AUTHOR, Project, req

ONE = "docs/requirements/1.md"
PERSON = 'UPSERT {{ CONCEPT {{ {{type: "Person", name: "Pelican {0}"}} }} }}'
TITLES = 'FIND(?r.attributes.title) WHERE { ?r {type: "Requirement"} }'


@pytest.fixture
def files() -> Iterator[WorktreeFiles]:
    found = WorktreeFiles(listen)
    yield found
    found.close()


def ask(project: Project, files: WorktreeFiles | None, request: str | dict[str, Any]) -> KipAnswer:
    workspace = project.workspace()
    _, choice, _ = branches.open_branch(workspace, None)
    around = KipContext(workspace, choice.branch, AUTHOR, choice.follows_head, files=files)
    return run(around, read(request if isinstance(request, dict) else {"command": request}))


def error_of(answer: KipAnswer) -> dict[str, Any]:
    assert answer.is_error
    error: dict[str, Any] = answer.response["error"]
    return error


def test_a_time_means_records_also_where_files_say_something_else(project, files):
    project.sync({ONE: req("REQ-1", title="One")})
    project.write({ONE: req("REQ-1", title="Eins")})
    assert ask(project, files, TITLES).response["result"] == ["Eins"]
    now = project.machine.clock.now()
    answer = ask(project, files, f'{TITLES} AT "{now}"')
    assert (answer.response["result"], answer.seq) == (["One"], 1)


@pytest.mark.parametrize(
    ("when", "hint"),
    [
        ("2", "The head is at seq 1."),
        ('"soon"', "Give a seq, a time"),
        ('"2999-01-01"', "The head is at seq 1;"),
    ],
)
def test_hints_name_the_last_record_where_files_say_something_else(project, files, when, hint):
    project.sync({ONE: req("REQ-1", title="One")})
    project.write({ONE: req("REQ-1", title="Eins")})
    assert error_of(ask(project, files, f"{TITLES} AT {when}"))["hint"].startswith(hint)


def test_errors_of_queries_name_the_last_record_where_files_say_something_else(project, files):
    project.sync({ONE: req("REQ-1", title="One")})
    project.write({ONE: req("REQ-1", title="Eins")})

    def message_of(view: View, query: Query) -> str:
        with pytest.raises(KBError) as refused:
            search(project.workspace(), project.workspace().store("main"), "main", view, query)
        return refused.value.message

    def messages(view: View, _: object) -> list[str]:
        return [message_of(view, Query(at=2)), message_of(view, Query(from_id="REQ-9"))]

    beyond, unknown = files.read(project.workspace(), "main", messages, time_s=60.0)
    assert beyond == "There is no seq 2 yet; the head is 1."
    assert "at seq 1," in unknown


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    "command",
    [
        'UPSERT { CONCEPT { {type: "Requirement", name: "REQ-7"} SET ATTRIBUTES {owner: "x"} } }',
        'UPSERT { CONCEPT { {id: "REQ-7"} SET ATTRIBUTES {owner: "x"} } }',
        'UPSERT { CONCEPT { {id: "REQ-1"} SET PROPOSITIONS { ("depends_on", {id: "REQ-7"}) } } }',
        'UPSERT { PROPOSITION { ({id: "REQ-7"}, "depends_on", {id: "REQ-1"}) } }',
        'UPDATE ?a SET ATTRIBUTES {owner: "x"} WHERE { ?a {id: "REQ-7"} }',
        'UPDATE ?a SET ATTRIBUTES {owner: "x"} WHERE { ?a {type: "Requirement", name: "REQ-7"} }',
        'DELETE CONCEPT ?a DETACH WHERE { ?a {id: "REQ-7"} }',
        'MERGE CONCEPT ?a INTO ?b WHERE { ?a {id: "REQ-7"} ?b {id: "REQ-1"} }',
    ],
)
def test_a_write_names_the_file_of_an_entity_that_no_record_has(project, files, command):
    seven = "docs/requirements/7.md"
    project.sync({ONE: req("REQ-1", title="One")})
    project.write({seven: req("REQ-7", title="Seven")})
    for request in ({"command": command}, {"command": command, "dry_run": True}):
        error = error_of(ask(project, files, request))
        assert (error["code"], error["hint"]) == ("KIP_3002", "Run `kb sync` first.")
        assert f"'{seven}' states 'REQ-7', but it is not recorded yet" in error["message"]
        assert error["data"]["offset"] > 0
    batch = ask(project, files, {"commands": [PERSON.format(1), command], "dry_run": True})
    assert f"'{seven}' states 'REQ-7'" in batch.response["result"][1]["error"]["message"]
    assert not ask(project, files, PERSON.format(1)).is_error


def walruses(project: Project, files: WorktreeFiles | None, cursor: str = "") -> KipAnswer:
    parameters = {"c": cursor} if cursor else {}
    text = 'SEARCH CONCEPT "walrus" LIMIT 2' + (" CURSOR :c" if cursor else "")
    return ask(project, files, {"command": text, "parameters": parameters})


@pytest.mark.sliced
def test_a_search_does_not_go_on_where_files_say_something_else_than_for_its_first_page(project, files):
    project.sync({f"docs/requirements/{n}.md": req(f"REQ-{n}", title=f"Walrus {n}") for n in range(1, 6)})
    recorded = walruses(project, files).response["next_cursor"]
    project.write({ONE: req("REQ-1", title="Walrus walrus")})
    first = walruses(project, files)
    assert not walruses(project, files, first.response["next_cursor"]).is_error
    error = error_of(walruses(project, files, recorded))
    assert "the branch is at 1, with changes that are in no record" in error["message"]
    project.write({"docs/requirements/4.md": req("REQ-4", title="Sea walrus")})
    error = error_of(walruses(project, files, first.response["next_cursor"]))
    assert error["code"] == "KIP_1001"
    assert "have changed since the first page" in error["message"]
    project.sync()
    assert "have changed" in error_of(walruses(project, files, first.response["next_cursor"]))["message"]


@pytest.mark.sliced
def test_a_search_does_not_go_on_with_other_documents_than_for_its_first_page(project):
    documents = {f"docs/requirements/{n}.md": req(f"REQ-{n}", title=f"Walrus {n}") for n in range(1, 6)}
    project.sync(documents)
    project.write(dict.fromkeys(documents))
    first = walruses(project, None).response["next_cursor"]
    project.write(documents)
    assert not walruses(project, None, first).is_error
    other = Project(project.root, is_new=False)  # whose index has the documents
    try:
        error = error_of(walruses(other, None, first))
    finally:
        other.close()
    assert "documents, or the owners of files, differ from those" in error["message"]


def kept_index(project: Project) -> list[tuple[Path, int, list[str]]]:
    """Return the seq and the entities of each text index that is kept."""
    found = []
    for path in sorted(caches_at(project.root).rglob("text.db")):
        with closing(sqlite3.connect(path)) as index:
            [(seq,)] = index.execute("select seq from stamp").fetchall()
            found.append((path, seq, [id_ for (id_,) in index.execute("select id from entity order by id")]))
    return found


@pytest.mark.sliced(1)
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_dry_run_finds_what_it_would_write_and_keeps_none_of_it(project, is_kept):
    project.sync({f"docs/requirements/{n}.md": req(f"REQ-{n}", title=f"Walrus {n}") for n in range(1, 6)})
    if is_kept:
        walruses(project, None)
    before = kept_index(project)
    assert len(before) == is_kept
    writes = [PERSON.format(number) for number in range(40)]
    request = {"commands": [*writes, 'SEARCH CONCEPT "pelican"'], "dry_run": True}
    answer = ask(project, None, request)
    assert len(answer.response["result"][-1]["result"]) == 10
    # The index of the records is kept, which holds them alone.
    assert [one[1:] for one in kept_index(project)] == [(1, [f"REQ-{n}" for n in range(1, 6)])]
    assert ask(project, None, 'SEARCH CONCEPT "pelican"').response["result"] == []
    assert len(walruses(project, None).response["result"]) == 2


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    "command",
    [
        'FIND(?p.name) WHERE { ?p {type: "Person"} } LIMIT 2',
        'SEARCH CONCEPT "pelican" LIMIT 2',
        'EXPORT ?p WHERE { ?p {type: "Person"} } LIMIT 2',
    ],
)
def test_a_cursor_of_a_dry_run_is_none_of_the_branch(project, command):
    for number in range(3):
        ask(project, None, PERSON.format(number))
    answer = ask(project, None, {"commands": [PERSON.format("dry"), command], "dry_run": True})
    following = {"command": f"{command} CURSOR :c", "parameters": {"c": answer.response["result"][1]["next_cursor"]}}
    assert error_of(ask(project, None, following))["code"] in {"KIP_1001", "KIP_3005"}
    ask(project, None, PERSON.format("real"))
    assert "have changed" in error_of(ask(project, None, following))["message"]
