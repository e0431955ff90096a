"""Text search as a request has it: documents and all, whatever becomes of the cache and of the worktree."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import unicodedata

import pytest

from kbcore import limits, query
from kbcore.errors import InvalidQuery
from kbcore.query import Query
from kbcore.store import branches
from kbcore.sync.searching import search
from tests.support.repository.places import caches_at
from tests.support.repository.project import Project, document
from tests.support.repository.repos import git


def doc(key, title, body):
    return document(key, body, title=title, status="open")


FILES = {
    "docs/requirements/login.md": doc("REQ-1", "Log in", "Members come in with a passkey.\n\nNo password is kept."),
    "docs/requirements/out.md": doc("REQ-2", "Log out", "A session ends at once."),
    "docs/adr/keys.md": doc("ADR-1", "Why passkeys", "Passwords leak. A passkey cannot be told."),
}


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


def ask(project, text, *, branch=None, at=None, **asked):
    workspace = project.workspace()
    store, choice, _ = branches.open_branch(workspace, branch)
    checked = query.check(Query(text=text, **asked), workspace.schema)

    def answer(view):
        from msgspec.structs import replace

        return search(workspace, store, choice.branch, view, replace(checked, at=at))

    return store.read(answer)


def ids(project, text, **asked):
    return [one.id for one in ask(project, text, **asked).entities]


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


def test_a_cursor_says_so_when_other_documents_are_at_hand_than_before(project):
    path = project.root / "docs/adr/keys.md"
    stated = path.read_bytes()
    path.unlink()
    first = ask(project, "passkey", limit=1)
    assert ([one.id for one in first.entities], first.total, first.found.search.lacking) == (["ADR-1"], 2, 1)
    path.write_bytes(stated)
    assert [one.id for one in ask(project, "passkey", cursor=first.next_cursor).entities] == ["REQ-1"]
    other = Project(project.root, is_new=False)
    with pytest.raises(InvalidQuery, match="other documents than those") as caught:
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


def test_documents_that_are_not_at_hand_are_counted_and_taken_in_when_they_are(project):
    path = project.root / "docs/adr/keys.md"
    stated = path.read_bytes()
    path.write_text("edited, not synced")
    page = ask(project, "leak")
    assert page.entities == []
    assert page.found.search.lacking == 1
    assert "The document of 1 entity is not at hand: only its fields" in " ".join(page.found.sentences(0))
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
def test_what_lies_behind_a_link_out_of_the_repository_is_not_read(project, tmp_path, place):
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


def test_an_index_that_much_came_after_is_written_anew(project, monkeypatch):
    monkeypatch.setattr("kbcore.view.text_search._TAIL_ROWS", 2)
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
    monkeypatch.setattr("kbcore.view.text_search._TAIL_ROWS", 1)
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


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    """A project of entities with numbers in their ids, which is only read and copied."""
    made = Project(tmp_path_factory.mktemp("numbered") / "repo")
    files = {
        f"docs/requirements/{n}.md": doc(f"REQ-00{n}", f"Scan at gate {n}", "Kept for 4 days.") for n in range(1, 9)
    }
    files["docs/adr/s.md"] = doc(
        "ADR-0003", "Sockets of Storgatan 4", "Since 2026, as ISO-8601 has it. See [it](REQ-004.md)."
    )
    made.sync(files)
    yield made
    made.close()


@pytest.mark.parametrize("text", ["REQ-4", "req-0004", "REQ-004"])
def test_an_id_is_taken_as_one_word_whose_zeros_do_not_count(numbered, text):
    page = ask(numbered, text)
    assert [one.id for one in page.entities] == ["REQ-004", "ADR-0003"]
    assert page.found.snippets["REQ-004"].marked() == "«REQ-004»"
    assert "(«REQ-004».md)" in page.found.snippets["ADR-0003"].marked()


@pytest.mark.parametrize(
    ("text", "near"), [("REQ-999", ""), ("ADR-2", "Did you mean 'ADR-0003'?"), ("REQ-0041", "Did you mean 'REQ-00")]
)
def test_an_id_that_nothing_holds_finds_nothing_by_its_parts(numbered, text, near):
    page = ask(numbered, text)
    assert page.entities == []
    first, *more = page.found.sentences(0)
    assert first == f"Nothing relevant: no entity holds '{text.lower()}'."
    assert [one[: len(near)] for one in more] == ([near] if near else [])


def test_a_name_of_no_kind_of_ids_is_found_by_its_parts(numbered, tmp_path):
    other = Project(shutil.copytree(numbered.root, tmp_path / "repo"), is_new=False)
    other.apply(entities=[{"id": "REQ-100", "type": "req", "title": "Dates of ISO 8601", "status": "open"}])
    assert ids(other, "iso-8601") == ["ADR-0003", "REQ-100"]
    assert ids(other, "REQ-1") == ["REQ-001"]
    assert ids(other, "REQ-10") == ["REQ-100"]
    other.close()


def test_a_word_that_nothing_holds_counts_as_a_rare_one(numbered):
    page = ask(numbered, "zebra scan")
    assert page.entities == []
    assert "'zebra' is in none, 'scan' is in 8" in " ".join(page.found.sentences(0))
    assert ids(numbered, "zebra storgatan") == ["ADR-0003"]


def test_a_typo_in_the_last_word_is_forgiven_though_it_begins_another_word(project):
    for number, title in enumerate(["Kanban board", "Kanban borders", "Kanban boards"]):
        project.apply(entities=[{"id": f"K-{number}", "type": "req", "title": title, "status": "open"}])
    page = ask(project, "kanban bord")
    assert sorted(one.id for one in page.entities) == ["K-0", "K-1"]
    assert page.found.document(2)["also"] == {"bord": ["board"]}
    assert list(page.found.sentences(2)) == [
        "No entity holds all of the words as they are; looked for 'board' as well."
    ]
    assert ids(project, "kanban border") == ["K-1"]
    project.apply(entities=[{"id": "K-9", "type": "req", "title": "Kanban bord", "status": "open"}])
    assert sorted(ids(project, "kanban bord")) == ["K-1", "K-9"]


@pytest.fixture(scope="module")
def titled(tmp_path_factory):
    """A project whose titles put letters to the test, which is only read."""
    made = Project(tmp_path_factory.mktemp("titled") / "repo")
    titles = {"K-1": "Die Größe", "K-2": "Grosse Messe"}
    titles |= {key_of(letter, much): cut_title(letter, much) for letter in LETTERS for much in range(3)}
    made.apply(entities=[{"id": key, "type": "req", "title": title, "status": "open"} for key, title in titles.items()])
    yield made
    made.close()


@pytest.mark.parametrize("text", ["Größe", "GRÖSSE", "grösse", "GROSSE", "GRÖẞE"])
def test_a_sharp_s_is_two(titled, text):
    page = ask(titled, text)
    assert sorted(one.id for one in page.entities) == ["K-1", "K-2"]
    assert page.found.snippets["K-1"].marked() == "Die «Größe»"
    assert page.found.snippets["K-2"].marked() == "«Grosse» Messe"


@pytest.mark.parametrize(
    ("text", "answered"),
    [
        ("Größe", ["größe"]),
        ("GRÖSSE", ["grösse"]),
        ("grosse", ["grosse"]),
        ("GrößeMesse", ["größe", "messe"]),
        ("eine-Größe Äpfel", ["eine", "größe", "äpfel"]),
        ("\uff27\uff32ÖẞE", ["größe"]),
    ],
)
def test_an_answer_names_the_words_as_they_were_typed(titled, text, answered):
    assert ask(titled, text).found.document(1)["words"] == answered


def test_an_answer_names_what_nothing_holds_as_it_was_typed(titled):
    page = ask(titled, "Größe Äußerungen")
    assert page.found.document(page.total)["unknown"] == ["äußerungen"]
    assert "No entity holds 'äußerungen'" in " ".join(page.found.sentences(page.total))
    misspelled = ask(titled, "grözse")
    assert misspelled.found.document(misspelled.total)["corrected"] == {"grözse": ["grosse"]}


TYPOS = {
    "приветик": ["привтик", "привтеик", "приветикк", "пгиветик"],
    "δρόμολόγιο": ["δρομολγοιο"],
    "비밀번호": ["비밀변호", "비번호"],
    "로그인": ["로그잉"],
    "문서": ["문저"],
    "größe": ["grözse"],
    "𐐨𐐩𐐪𐐫": ["𐐨𐐪𐐩𐐫"],
}


def test_one_typo_is_forgiven_in_any_script(project):
    titles = {f"K-{number}": word for number, word in enumerate(TYPOS)}
    project.apply(
        entities=[{"id": key, "type": "req", "title": f"a {word}", "status": "open"} for key, word in titles.items()]
    )
    for key, word in titles.items():
        for typed in TYPOS[word]:
            page = ask(project, typed)
            assert [one.id for one in page.entities] == [key], typed
            assert page.found.snippets[key].marked() == f"a «{word}»"
    assert ids(project, "пливетикл") == []


def full_width(text):
    return "".join(chr(ord(one) + 0xFEE0) for one in text)


def take_in_titles(project, texts):
    """Take texts in as titles of ``K-0``, ``K-1`` …"""
    project.apply(
        entities=[{"id": f"K-{at}", "type": "req", "title": text, "status": "open"} for at, text in enumerate(texts)]
    )


def assert_marked(project, texts):
    """Take texts in as titles; what each maps to is what is asked, and what is shown of it."""
    take_in_titles(project, texts)
    for number, (asked, shown) in enumerate(texts.values()):
        assert ask(project, asked).found.snippets[f"K-{number}"].marked() == shown, asked


FORMS = {
    "the ﬁle ﬂag": ("file flag", "the «ﬁle» «ﬂag»"),
    f"{full_width('CreatePlan')} here": ("create", f"«{full_width('CreatePlan')}» here"),
    f"see {full_width('RFC-8259')}": ("rfc-8259", f"see «{full_width('RFC-8259')}»"),
    "ｶﾞｷﾞ ﾊﾞｯｸｱｯﾌﾟ": ("バックアップ", "ｶﾞｷﾞ «ﾊﾞｯｸｱｯﾌﾟ»"),
    "step ① of ⑦ in m²": ("1 7 m2", "step «①» of «⑦» in «m²»"),
    "5 µm": ("5 μm", "«5» «µm»"),
    "steps ②③ of 🄰🄱": ("23 ab", "steps «②③» of «🄰🄱»"),
    "ΣΊΣΥΦΟΣ νας": ("σίσυφος ΝΑΣ", "«ΣΊΣΥΦΟΣ» «νας»"),
    "น้ำ ใส": ("น้ำ", "«น้ำ» ใส"),
}


def test_what_unicode_has_two_forms_of_is_found_by_either(project):
    assert_marked(project, FORMS)
    for number, text in enumerate(FORMS):
        found = ask(project, text)
        assert (found.entities[0].id, list(found.found.sentences(found.total))) == (f"K-{number}", []), text
    project.apply(entities=[{"id": "L-1", "type": "req", "title": "A backup file, rfc-8259", "status": "open"}])
    for asked in ("ﬁle", full_width("BACKUP"), full_width("RFC-8259")):
        assert "L-1" in ids(project, asked), asked


BEHIND = {
    "done": ("you don't fail", "don't fail", "you «don»'«t» «fail»"),
    "configuration": ("by the config of each", "config of", "by the «config» of each"),
    "creator": ("what createPlan runs", "create runs", "what «createPlan» «runs»"),
    "httpd": ("for an HTTPServer here", "http for", "for an «HTTPServer» here"),
    "planet": ("by make_plan alone", "plan by", "by make_«plan» alone"),
    "ﬁlet": ("the ﬁle there", "file there", "the «ﬁle» there"),
}


def test_a_hit_far_behind_a_longer_word_that_begins_like_it_is_shown(project):
    texts = {f"{longer} {'nothing ' * 60}{text}": (asked, shown) for longer, (text, asked, shown) in BEHIND.items()}
    take_in_titles(project, texts)
    for number, (asked, shown) in enumerate(texts.values()):
        assert ask(project, asked).found.snippets[f"K-{number}"].marked().endswith(f"nothing {shown}"), asked


SHOWN = {
    "로그인 화면에서": ("로그인", "«로그인» 화면에서"),
    unicodedata.normalize("NFD", "로그아웃 버튼, déjà vu"): ("로그아웃 deja", "«로그아웃» 버튼, «déjà» vu"),
    "ẓ̌ x": ("ž", "«ẓ̌» x"),
    "नमस्ते दुनिया": ("नमस्ते", "«नमस्ते» दुनिया"),
    "👨‍👩‍👧 👍🏽 🇫🇷🇩🇪": ("👨 👍🏽 🇩🇪", "«👨‍👩‍👧» «👍🏽» 🇫🇷«🇩🇪»"),
    "ที่นี่กี่วันกรุงเทพ": ("กรุงเทพ", "ที่นี่กี่วัน«กรุงเทพ»"),
    "東の京、東京都の設計書": ("東京", "東の京、«東京»都の設計書"),
    "東の設計書": ("計", "東の設«計»書"),
    "die straße groẞ": ("GROSS", "die straße «groẞ»"),
}


def test_a_hit_is_marked_in_whole_letters_of_any_script(project):
    assert_marked(project, SHOWN)


def test_a_text_that_never_ends_a_word_is_taken_apart_in_one_go(project):
    """The time that it takes must not grow with the square of its length."""
    long = "京" * 100_000
    project.sync({"docs/requirements/long.md": doc("K-1", "long", f"{long}都 {'กี่' * 30_000}")})
    assert ids(project, "京都") == ["K-1"]
    assert ids(project, long[:20_000]) == ["K-1"]


LETTERS = ("👨‍👩‍👧", "กี่", "ẓ̌", "🇩🇪", "👍🏽", "각")


def key_of(letter, much):
    return f"{LETTERS.index(letter)}-{much}"


def cut_title(letter, much):
    return "." * much + letter * 150 + ",passkeeper," + letter * 150


@pytest.mark.parametrize("letter", LETTERS)
def test_a_snippet_is_cut_between_letters(titled, letter):
    keys = tuple(key_of(letter, much) for much in range(3))
    page = ask(titled, "passkeeper", ids=keys)
    for key in keys:
        snippet = page.found.snippets[key]
        assert snippet.is_cut == (True, True)
        assert snippet.text.replace(letter, "") == ",passkeeper,"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A project whose titles are searched by people who do not know how they are worded; it is only read."""
    made = Project(tmp_path_factory.mktemp("shop") / "repo")
    titles = {
        "REQ-1": "Refund a payment in full",
        "REQ-2": "Refunds need two approvals",
        "REQ-3": "Policies of shipping",
        "SYM-1": "parseQuery",
        "SYM-2": "Planned stops",
        "REQ-4": 'It\'s a "quoted" word-list',
        "REQ-5": "How to be what you are",
        "REQ-6": "Import an important file",
        **{f"X-{n}": f"Something else {n}" for n in range(20)},
    }
    made.apply(entities=[{"id": key, "type": "req", "title": title, "status": "open"} for key, title in titles.items()])
    yield made
    made.close()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("refunds", ["REQ-2", "REQ-1"]),
        ("refunded payments", ["REQ-1"]),
        ("policy", ["REQ-3"]),
        ("stopping a plan", ["SYM-2"]),
        ("parse", ["SYM-1"]),
        ("query parse", ["SYM-1"]),
        ("the refund of the payment", ["REQ-1"]),
        ("how to be", ["REQ-5"]),
        ('"refund a payment"', ["REQ-1"]),
        ('"quoted" word-list', ["REQ-4"]),
        ('word" OR "refund', []),
        ("refund -payment* AND (full)", ["REQ-1"]),
        ("title:refund NEAR payment", []),
    ],
)
def test_forms_stop_words_names_quotes_and_signs(shop, text, found):
    page = ask(shop, text)
    whole = [one.id for one in page.entities] if page.found.is_whole and not page.found.search.unknown else []
    assert whole == found


def test_other_forms_are_marked_in_the_snippet_and_score_less(shop):
    page = ask(shop, "refunds")
    assert page.found.snippets["REQ-1"].marked() == "«Refund» a payment in full"
    assert page.found.scores["REQ-1"] < page.found.scores["REQ-2"]
    assert [one.id for one in ask(shop, "importing").entities] == ["REQ-6"]
    assert page.found.shown("REQ-2")["score"] <= 1


def test_a_question_in_plain_words_is_answered_by_the_best_partial_matches_and_marked(shop):
    page = ask(shop, "how can customers get refunds for a broken parcel?")
    assert {one.id for one in page.entities} == {"REQ-1", "REQ-2"}
    assert page.found.document(page.total)["is_partial"] is True
    assert ask(shop, "shipping refund").found.document(3)["is_partial"] is True
    assert "is_partial" not in ask(shop, "what is a refund?").found.document(2)
    assert ids(shop, "zebra else") == []


def test_what_another_branch_holds_changes_no_score(project):
    scores = ask(project, "passkey").found.scores
    git(project.root, "add", "--all")
    git(project.root, "commit", "--quiet", "-m", "documents")
    project.switch("side", create=True)
    project.apply(entities=[{"id": f"S-{n}", "type": "req", "title": "passkey", "status": "open"} for n in range(40)])
    assert len(ask(project, "passkey").entities) == 42
    assert ask(project, "passkey", branch="main").found.scores == scores


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
