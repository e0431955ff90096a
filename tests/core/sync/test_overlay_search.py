"""Pages and searches of an answer that has what the files of the worktree say."""

from __future__ import annotations

import pytest

from kbcore.errors import InvalidQuery
from kbcore.query import Query
from kbcore.sync.overlay import FileState
from kbcore.sync.searching import search
from kbcore.view import text_index
from kbcore.view.cache_files import TEXT, VIEW
from kbcore.view.view import View
from tests.core.sync.overlays import FIRST, SECOND, TIME_S
from tests.support.repository.places import caches_at
from tests.support.repository.project import Project, req


def test_a_page_goes_on_in_the_same_state_or_says_why_not(project, files):
    project.sync({f"docs/requirements/{n}.md": req(f"REQ-{n}") for n in range(1, 6)})
    project.write({FIRST: req("REQ-1", title="Eins")})
    workspace, store = project.workspace(), project.workspace().store("main")

    def page(cursor: str):
        def use(view: View, state: FileState):
            return search(workspace, store, "main", view, Query(type="req", limit=2, cursor=cursor))

        return files.read(workspace, "main", use, time_s=TIME_S)

    first = page("")
    assert [node.id for node in page(first.next_cursor).entities] == ["REQ-3", "REQ-4"]
    project.write({SECOND: req("REQ-2", title="Zwei")})
    with pytest.raises(InvalidQuery, match="have changed since the first page"):
        page(first.next_cursor)


@pytest.mark.sliced(1)
def test_a_text_is_found_in_what_files_say_and_the_kept_index_holds_records_alone(project, files):
    project.sync({FIRST: req("REQ-1", title="One")})
    workspace, store = project.workspace(), project.workspace().store("main")

    def found(text: str) -> list[str]:
        def use(view: View, state: FileState) -> list[str]:
            return [node.id for node in search(workspace, store, "main", view, Query(text=text)).entities]

        return files.read(workspace, "main", use, time_s=TIME_S)

    assert found("one") == ["REQ-1"]
    project.write({f"docs/requirements/{n}.md": req(f"REQ-{n}", title=f"Walrus {n}") for n in range(100, 160)})
    assert len(found("walrus")) == 50
    for n in range(100, 160):
        project.write({f"docs/requirements/{n}.md": None})
    assert found("walrus") == []
    other = Project(project.root, is_new=False)
    try:
        assert store.read(lambda view: search(workspace, store, "main", view, Query(text="walrus")).total) == 0
        again = other.workspace().store("main")
        assert again.read(lambda view: search(other.workspace(), again, "main", view, Query(text="walrus")).total) == 0
    finally:
        other.close()


@pytest.mark.sliced(1)
@pytest.mark.parametrize("memory_bytes", [1 << 40, 0], ids=["small", "large"])
def test_every_overlay_is_searched_beside_the_one_index_of_the_records(project, files, monkeypatch, memory_bytes):
    monkeypatch.setattr(text_index, "_MEMORY_BYTES", memory_bytes)
    project.sync({FIRST: req("REQ-1", title="One")})
    workspace, store = project.workspace(), project.workspace().store("main")
    folder = caches_at(project.root) / "main"

    def found(text: str) -> list[str]:
        def use(view: View, state: FileState) -> list[str]:
            assert state.freshness == "overlay"
            names = [node.id for node in search(workspace, store, "main", view, Query(text=text)).entities]
            places = {name: file for _, name, file in store.texts.index(view, None, list).rows("pragma database_list")}
            assert bool(places["main"]) == (not memory_bytes)
            return names

        return files.read(workspace, "main", use, time_s=TIME_S)

    kept = set()
    for word in ("ashore", "afloat", "asleep"):
        project.write({SECOND: req("REQ-2", title=f"Walrus {word}")})
        assert found("walrus") == ["REQ-2"]
        assert found(word) == ["REQ-2"]
        assert {one.name for one in folder.iterdir() if one.is_file()} - {VIEW} == {TEXT}
        kept.add((folder / TEXT).stat().st_ino)
    assert text_index.inspect(str(folder / TEXT)) == (1, 1)
    assert len(kept) == 1
