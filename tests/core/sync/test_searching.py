"""Searching what documents say: the index and the documents that are kept for it."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3

import pytest

from kbcore import limits, query
from kbcore.errors import InvalidQuery
from tests.core.sync.searched import FILES, ask, doc, ids
from tests.support.repository.places import caches_at
from tests.support.repository.project import Project
from tests.support.repository.repos import git


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path / "repo")
    made.sync(FILES)
    yield made
    made.close()


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A project in which somebody has searched, so that its cache has everything; it is only read and copied."""
    made = Project(tmp_path_factory.mktemp("searched") / "repo")
    made.sync(FILES)
    ids(made, "password")
    yield made
    made.close()


def cache(project):
    return caches_at(project.root)


def test_documents_are_searched_and_shown_around_the_hit(searched):
    page = ask(searched, "password kept")
    assert [one.id for one in page.entities] == ["REQ-1"]
    found = page.found.shown("REQ-1")
    assert found["snippet"] == {"field": "body", "text": "Members come in with a passkey. No «password» is «kept»."}
    assert found["score"] > 0
    assert ids(searched, "title status") == []


def test_filters_and_words_conjoin(project):
    assert ids(project, "passkey") == ["ADR-1", "REQ-1"]
    assert ids(project, "passkey", type="adr") == ["ADR-1"]
    project.apply(entities=[{"id": "TEST-1", "type": "test", "title": "Passkey test", "status": "active"}])
    project.apply(edges=[{"type": "verified_by", "from": "REQ-1", "to": "TEST-1"}])
    assert ids(project, "passkey", has=(query.Pattern("verified_by"),)) == ["REQ-1"]
    assert ids(project, "passkey", lacks=(query.Pattern("verified_by"),)) == ["TEST-1", "ADR-1"]
    assert ids(project, "passkey", from_id="REQ-1", follow=("verified_by",)) == ["TEST-1"]
    assert ids(project, "passkey", sort="-id") == ["TEST-1", "REQ-1", "ADR-1"]
    nothing = ask(project, "passkey", type="flag")
    assert "nothing that passes the other filters" in next(nothing.found.sentences(0))


def test_what_is_written_is_found_at_once_and_what_is_gone_is_not(project):
    assert ids(project, "badge") == []
    project.apply(entities=[{"id": "REQ-9", "type": "req", "title": "Badge reader", "status": "open"}])
    assert ids(project, "badge") == ["REQ-9"]
    project.apply(entities=[{"id": "REQ-9", "title": "Card reader"}])
    assert (ids(project, "badge"), ids(project, "card")) == ([], ["REQ-9"])
    version = project.node("REQ-9").version
    project.delete(entities=[{"id": "REQ-9", "expected_version": version}])
    assert ids(project, "card") == []


def test_a_document_whose_body_alone_changed_is_found_by_what_it_says_now(project):
    assert ids(project, "session") == ["REQ-2"]
    project.sync({"docs/requirements/out.md": doc("REQ-2", "Log out", "The cookie is deleted.")})
    assert (ids(project, "session"), ids(project, "cookie")) == ([], ["REQ-2"])
    assert ids(project, "session", at=1) == ["REQ-2"]
    project.sync({"docs/requirements/out.md": None})
    assert ids(project, "cookie") == []


def test_a_past_answer_ranks_what_stood_then(project):
    for number in range(3):
        project.apply(entities=[{"id": f"REQ-{number}x", "type": "req", "title": "passkey", "status": "open"}])
    assert ids(project, "passkey", at=1) == ["ADR-1", "REQ-1"]
    assert ids(project, "passkey", at=2) == ["REQ-0x", "ADR-1", "REQ-1"]
    assert len(ids(project, "passkey")) == 5
    first = ask(project, "passkey", limit=2)
    project.apply(entities=[{"id": "REQ-7x", "type": "req", "title": "passkey", "status": "open"}])
    second = ask(project, "passkey", limit=9, cursor=first.next_cursor)
    assert [one.id for one in [*first.entities, *second.entities]] == ["REQ-0x", "REQ-1x", "REQ-2x", "ADR-1", "REQ-1"]


def test_a_cursor_says_so_when_other_documents_are_available_than_before(project):
    path = project.root / "docs/adr/keys.md"
    stated = path.read_bytes()
    path.unlink()
    first = ask(project, "passkey", limit=1)
    assert ([one.id for one in first.entities], first.total, first.found.search.lacking) == (["ADR-1"], 2, 1)
    path.write_bytes(stated)
    assert [one.id for one in ask(project, "passkey", cursor=first.next_cursor).entities] == ["REQ-1"]
    other = Project(project.root, is_new=False)
    with pytest.raises(InvalidQuery, match="readable documents, or the owners of files, differ") as caught:
        ask(other, "passkey", cursor=first.next_cursor)
    assert caught.value.hint == "Ask for the first page again, without a cursor."
    again = ask(other, "passkey", limit=1)
    assert [one.id for one in ask(project, "passkey", cursor=first.next_cursor).entities] == ["REQ-1"]
    assert [one.id for one in ask(other, "passkey", cursor=again.next_cursor).entities] == ["REQ-1"]
    other.close()


def test_pages_of_one_answer_hold_everything_once_whatever_is_synced_in_between(project):
    first = ask(project, "passkey", limit=1)
    project.sync({"docs/adr/keys.md": doc("ADR-1", "Why", "No word of it."), "docs/requirements/login.md": None})
    other = Project(project.root, is_new=False)
    for one in (project, other):
        assert [node.id for node in ask(one, "passkey", cursor=first.next_cursor).entities] == ["REQ-1"]
    other.close()


def test_the_index_is_built_by_the_first_search_and_by_no_write(project):
    project.sync({"docs/requirements/more.md": doc("REQ-3", "More", "of it")})
    assert not [*cache(project).glob("**/text*"), *cache(project).glob(".bodies*")]
    ids(project, "passkey")
    assert (cache(project) / "main/text.db").exists()
    assert (cache(project) / ".bodies.duckdb").exists()


def test_another_process_goes_on_with_the_index_and_needs_no_document(project):
    assert ids(project, "password") == ["REQ-1", "ADR-1"]
    for path in (project.root / "docs").rglob("*.md"):
        path.unlink()
    other = Project(project.root, is_new=False)
    page = ask(other, "leak")
    assert [one.id for one in page.entities] == ["ADR-1"]
    assert page.found.search.lacking == 0
    assert page.found.snippets["ADR-1"].marked() == "Passwords «leak». A passkey cannot be told."
    other.close()


def test_documents_that_are_not_available_are_counted_and_taken_in_when_they_are(project):
    path = project.root / "docs/adr/keys.md"
    stated = path.read_bytes()
    path.write_text("edited, not synced")
    page = ask(project, "leak")
    assert page.entities == []
    assert page.found.search.lacking == 1
    assert "The document of 1 entity is not available: only its fields" in " ".join(page.found.sentences(0))
    assert ids(project, "why") == ["ADR-1"]
    path.write_bytes(stated)
    other = Project(project.root, is_new=False)
    page = ask(other, "leak")
    assert ([one.id for one in page.entities], page.found.search.lacking) == (["ADR-1"], 0)
    other.close()


def test_documents_of_a_branch_that_is_not_checked_out_are_read_from_git(project):
    git(project.root, "add", "--all")
    git(project.root, "commit", "--quiet", "-m", "documents")
    assert ids(project, "leak") == ["ADR-1"]
    project.switch("side", create=True)
    project.sync({"docs/adr/keys.md": doc("ADR-1", "Why passkeys", "Nothing to steal.")})
    git(project.root, "commit", "--quiet", "-am", "other words")
    project.switch("main")
    page = ask(project, "steal", branch="side")
    assert ([one.id for one in page.entities], page.found.search.lacking) == (["ADR-1"], 0)
    assert page.found.snippets["ADR-1"].marked() == "Nothing to «steal»."
    assert ids(project, "steal") == []


def test_a_document_that_a_search_read_is_kept(project):
    assert ids(project, "leak") == ["ADR-1"]
    project.sync({"docs/adr/keys.md": doc("ADR-1", "Why passkeys", "Nothing to steal.")})
    assert ids(project, "steal") == ["ADR-1"]
    (project.root / "docs/adr/keys.md").unlink()
    other = Project(project.root, is_new=False)
    assert ids(other, "steal") == ["ADR-1"]
    other.close()


def test_documents_that_two_processes_read_are_all_kept(project):
    other = Project(project.root, is_new=False)
    assert ids(project, "leak") == ids(other, "leak") == ["ADR-1"]
    project.sync({"docs/adr/keys.md": doc("ADR-1", "Why passkeys", "Nothing to steal.")})
    assert ids(project, "steal") == ["ADR-1"]
    project.sync({"docs/requirements/out.md": doc("REQ-2", "Log out", "A cookie.")})
    assert ids(other, "cookie") == ["REQ-2"]
    for path in (project.root / "docs").rglob("*.md"):
        path.unlink()
    again = Project(project.root, is_new=False)
    assert (ids(again, "steal"), ids(again, "cookie")) == (["ADR-1"], ["REQ-2"])
    again.close()
    other.close()


def test_branches_share_documents_and_a_new_one_begins_with_the_index(project):
    assert ids(project, "leak") == ["ADR-1"]
    git(project.root, "add", "--all")
    git(project.root, "commit", "--quiet", "-m", "documents")
    project.switch("side", create=True)
    project.sync({"docs/adr/keys.md": doc("ADR-1", "Why passkeys", "Nothing to steal.")})
    assert (cache(project) / "side/text.db").samefile(cache(project) / "main/text.db")
    assert (ids(project, "steal"), ids(project, "leak")) == (["ADR-1"], [])
    assert (ids(project, "leak", branch="main"), ids(project, "steal", branch="main")) == (["ADR-1"], [])


@pytest.mark.sliced(3)
@pytest.mark.parametrize("name", ["main/text.db", ".bodies.duckdb"])
@pytest.mark.parametrize("harm", ["gone", "garbage", "cut", "folder", "log"])
def test_harm_to_the_cache_costs_time_and_no_answer(searched, tmp_path, name, harm):
    other = Project(shutil.copytree(searched.root, tmp_path / "repo"), is_new=False)
    path = cache(other) / name
    if harm == "log":
        path.with_name(f"{path.name}.wal").write_bytes(b"foreign")
    else:
        whole = path.read_bytes()
        path.unlink()
        if harm == "folder":
            path.mkdir()
        elif harm != "gone":
            path.write_bytes({"garbage": b"x" * 50_000, "cut": whole[: len(whole) // 2]}[harm])
    assert ids(other, "password") == ["REQ-1", "ADR-1"]
    assert ask(other, "leak").found.snippets["ADR-1"].field == "body"
    other.close()


def test_however_much_is_taken_in_at_once_the_answer_is_the_same(project, monkeypatch):
    files = {f"docs/requirements/{n}.md": doc(f"K-{n}", f"gate {n}", "same words " * (n // 2)) for n in range(9)}
    project.sync({**files, "docs/requirements/twin.md": doc("K-9", "gate 0", "")})
    whole = ask(project, "gate same words")
    (cache(project) / "main/text.db").unlink()
    (cache(project) / ".bodies.duckdb").unlink()
    monkeypatch.setattr("kbcore.view.text_index._CHUNK_BYTES", 1000)
    monkeypatch.setattr("kbcore.view.text_documents._CHUNK_CHARS", 50)
    other = Project(project.root, is_new=False)
    page = ask(other, "gate same words")
    assert ([one.id for one in page.entities], page.found.scores) == (
        [one.id for one in whole.entities],
        whole.found.scores,
    )
    assert len(page.entities) == 7
    other.close()


@pytest.mark.parametrize("place", ["docs/adr", "docs/adr/keys.md"])
def test_the_target_of_a_link_out_of_the_repository_is_not_read(project, tmp_path, place):
    path, outside = project.root / place, tmp_path / "outside"
    path.rename(outside)
    path.symlink_to(outside)
    assert ask(project, "leak").found.search.lacking == 1


@pytest.mark.parametrize("name", ["main/text.db", ".bodies.duckdb"])
def test_damage_that_comes_to_light_in_a_search_costs_the_branch_no_view(project, name):
    project.sync({f"docs/requirements/{n}.md": doc(f"K-{n}", f"gate {n}", f"{n} same words") for n in range(9)})
    before = ids(project, "same gate 7")
    path = cache(project) / name
    whole = path.read_bytes()
    for begin in range(3 * 4096, len(whole), 256 * 1024):
        path.write_bytes(whole[: begin + 8] + b"\x55" * 1000 + whole[begin + 1008 :])
        other = Project(project.root, is_new=False)
        view = other.view()
        page = ask(other, "same gate 7")
        assert ([one.id for one in page.entities], page.found.search.lacking) == (before, 0)
        assert other.view() is view
        other.close()


def test_the_index_of_another_history_is_not_used(project):
    ids(project, "password")
    other = Project(project.root.parent / "other")
    other.sync({"docs/requirements/a.md": doc("REQ-5", "Other", "words")})
    ids(other, "words")
    (cache(project) / "main/text.db").replace(cache(other) / "main/text.duckdb")
    again = Project(other.root, is_new=False)
    assert (ids(again, "words"), ids(again, "password")) == (["REQ-5"], [])
    again.close()
    other.close()


def test_a_cache_that_cannot_be_written_is_searched_in_memory(project):
    (cache(project) / "main").write_text("in the way")
    other = Project(project.root, is_new=False)
    assert ids(other, "password") == ["REQ-1", "ADR-1"]
    assert not (cache(project) / ".bodies.duckdb").exists()
    other.close()


def test_an_index_that_much_came_after_is_written_again(project, monkeypatch):
    monkeypatch.setattr("kbcore.view.text_index_cache._TAIL_ROWS", 2)
    ids(project, "password")
    first = (cache(project) / "main/text.db").stat().st_ino
    project.apply(entities=[{"id": "REQ-7", "type": "req", "title": "one more", "status": "open"}])
    ids(project, "password")
    assert (cache(project) / "main/text.db").stat().st_ino == first
    project.sync({"docs/requirements/out.md": doc("REQ-2", "Log out", "A cookie.")})
    assert ids(project, "cookie") == ["REQ-2"]
    assert (cache(project) / "main/text.db").stat().st_ino != first
    other = Project(project.root, is_new=False)
    assert ids(other, "cookie") == ["REQ-2"]
    other.close()


def test_the_documents_that_are_kept_are_bounded_and_those_in_use_come_first(project, monkeypatch):
    monkeypatch.setattr("kbcore.view.text_index_cache._TAIL_ROWS", 1)
    monkeypatch.setattr(limits, "MAX_KEPT_BODIES_BYTES", 100)
    ids(project, "password")
    project.sync({"docs/requirements/out.md": doc("REQ-2", "Log out", "A cookie.")})
    assert ids(project, "cookie") == ["REQ-2"]
    import duckdb

    with duckdb.connect(str(cache(project) / ".bodies.duckdb"), read_only=True) as kept:
        [(total,)] = kept.execute("select sum(strlen(text)) from body").fetchall()
    assert 0 < total <= 100


@pytest.mark.parametrize(
    ("text", "said"),
    [("—", "no word"), ("...", "no word"), (" ".join(f"w{n}" for n in range(10_000)), "10000 different words")],
)
def test_a_text_that_cannot_be_searched_for_is_refused(searched, text, said):
    with pytest.raises(InvalidQuery, match=said) as caught:
        ids(searched, text)
    assert caught.value.details[0].path == "$.text"


@pytest.mark.parametrize(
    "text", ["p", "C++", "'; drop table node; --", "100%", "\u202epasskey", "😀 passkey", "$1 {} \\"]
)
def test_odd_texts_are_words_like_any_other(searched, text):
    page = ask(searched, text)
    assert page.total == len(page.entities)


def test_a_search_that_was_broken_off_is_done_whole_the_next_time(project):
    store = project.workspace().store("main")

    def broken_off(wanted):
        yield wanted[0][1], "half of it"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.read(lambda view: store.texts.index(view, None, broken_off))
    assert not (cache(project) / "main/text.db").exists()
    assert ids(project, "passkey") == ["ADR-1", "REQ-1"]
    assert ids(project, "session") == ["REQ-2"]


def test_what_another_branch_holds_changes_no_score(project):
    scores = ask(project, "passkey").found.scores
    git(project.root, "add", "--all")
    git(project.root, "commit", "--quiet", "-m", "documents")
    project.switch("side", create=True)
    project.apply(entities=[{"id": f"S-{n}", "type": "req", "title": "passkey", "status": "open"} for n in range(40)])
    assert len(ask(project, "passkey").entities) == 42
    assert ask(project, "passkey", branch="main").found.scores == scores


@pytest.mark.sliced(1)
@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
def test_an_index_with_a_log_of_sqlite_beside_it_is_made_again_and_the_log_is_gone(project, suffix):
    assert ids(project, "leak") == ["ADR-1"]
    path = cache(project) / "main/text.db"
    with contextlib.closing(sqlite3.connect(path)) as index, index:
        index.execute("update entity set id = 'REQ-1', folded = 'req-1' where id = 'ADR-1'")
    log = path.with_name(f"{path.name}{suffix}")
    log.write_bytes(b"left by a program that was ended")
    other = Project(project.root, is_new=False)
    assert ids(other, "leak") == ["ADR-1"]
    assert (path.exists(), log.exists()) == (True, False)
    before = path.stat().st_ino
    again = Project(project.root, is_new=False)
    assert ids(again, "leak") == ["ADR-1"]
    assert path.stat().st_ino == before
    other.close()
    again.close()


@pytest.mark.sliced(5)
@pytest.mark.parametrize(
    "statement",
    [
        "update entity set id = 'NOBODY' where id = 'ADR-1'",
        "update entity set id = 7 where id = 'ADR-1'",
        "update entity set id = null where id = 'ADR-1'",
        "update entity set id = x'ff00' where id = 'ADR-1'",
        "update entity set id = cast(x'ff' as text) where id = 'ADR-1'",
        "update entity set lacks_body = 1, id = null where id = 'REQ-1'",
        "update text_docsize set sz = x'ffffffff'",
        "update text_data set block = x'00' where id = 1",
        "update text_data set block = x'ffffffffffffffffff00000000' where id = 1",
        "delete from text_data",
        "update text_config set v = 99",
        "delete from text_content",
        "insert into text (rowid, id) values (1000, 'leak')",
        "pragma writable_schema = on; update sqlite_master set sql = 'create tabel entity (x)' where name = 'entity'",
        "pragma writable_schema = on; update sqlite_master set sql = 'create table (' where name = 'text_data'",
        "pragma writable_schema = on; update sqlite_master set rootpage = 99 where name = 'text_data'",
    ],
)
def test_an_index_whose_file_was_changed_is_made_again_and_costs_no_answer(project, statement):
    assert ids(project, "leak") == ["ADR-1"]
    path = cache(project) / "main/text.db"
    with contextlib.closing(sqlite3.connect(path)) as index:
        index.executescript(statement)
    other = Project(project.root, is_new=False)
    for text in ("leak", "leek", "no leak", "passwrd leaks"):
        assert "ADR-1" in ids(other, text)
        assert all(0 < score <= 1 for score in ask(other, text).found.scores.values())
    other.close()
