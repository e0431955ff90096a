"""Questions: ranked by how many of the words an entity has, and by what it means; the ranks are in the answer."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbcore.errors import InvalidQuery
from tests.core.sync.searched import ask, doc
from tests.support.effort.scale import tries
from tests.support.repository.project import Project
from tests.support.repository.repos import git_env

TITLES = {
    "REQ-1": ("Log out inactive users", "Whoever does nothing for ten minutes has to sign in again."),
    "REQ-2": ("Refunds", "Money goes back to the card within a week after the parcel arrived."),
    "REQ-3": ("Export", "Every table can be downloaded as a spreadsheet by an administrator."),
    "REQ-4": ("Sessions end", "A session that is idle ends; how long it may stay idle is a setting of the tenant."),
    "REQ-5": ("Passwords", "A password has twelve characters, and is never shown."),
    "ADR-1": ("PostgreSQL", "Rows are kept in a relational database, because reports join many tables."),
    "ADR-2": ("Queues", "Letters are sent by a background worker, so that a request never waits for mail."),
    "REQ-6": ("Abmeldung", "Nach zehn Minuten ohne Eingabe wird der Benutzer automatisch abgemeldet."),
    "REQ-7": ("Выход", "Через десять минут бездействия пользователь автоматически выходит из системы."),
    "REQ-8": ("自动退出", "用户十分钟没有操作后会话自动退出 需要重新登录。"),
    "REQ-9": ("تسجيل الخروج", "يتم تسجيل خروج المستخدم تلقائيا بعد عشر دقائق من عدم النشاط."),
}
QUESTION = "how long may a session stay idle before somebody has to sign in again"


def folder(key):
    return "adr" if key.startswith("ADR") else "requirements"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project of a few documents in several languages, and of twenty others; it is only read."""
    made = Project(tmp_path_factory.mktemp("questions") / "repo")
    files = {f"docs/{folder(key)}/{key}.md": doc(key, *texts) for key, texts in TITLES.items()}
    files |= {
        f"docs/requirements/o{n}.md": doc(f"OTHER-{n}", f"Report {n}", f"Row {n} is long, and may stay a while.")
        for n in range(20)
    }
    made.sync(files)
    yield made
    made.close()


def meant(project, text, **asked):
    return ask(project, text, is_of_words=False, **asked)


def ids(page):
    return [node.id for node in page.entities]


def test_an_answer_to_a_question_has_the_rank_by_words_and_by_meaning(project):
    page = meant(project, QUESTION)
    assert set(ids(page)[:2]) == {"REQ-4", "REQ-1"}
    assert page.found.shown("REQ-4")["ranks"]["words"] == 1
    assert 1 <= page.found.shown("REQ-1")["ranks"]["meaning"] <= 2
    assert page.found.shown("REQ-4", ["title"]).keys() == {"score", "ranks"}
    assert all(0 < score <= 1 for score in page.found.scores.values())


def test_what_is_found_by_its_meaning_alone_is_shown_by_its_beginning(project):
    page = meant(project, "send emails asynchronously using message broker")
    [only] = [id_ for id_, ranks in page.found.ranks.items() if "words" not in ranks and id_ in TITLES][:1]
    snippet = page.found.snippets[only]
    assert (snippet.spans, snippet.is_cut) == ((), (False, False))
    assert snippet.text == TITLES[only][1]


def test_short_texts_that_entities_hold_are_searched_by_words_alone(project):
    page = meant(project, "session idle")
    assert (ids(page), page.found.ranks) == (["REQ-4"], {})
    assert meant(project, "REQ-4").found.ranks == {}


@pytest.mark.parametrize("text", ["xqzt wvvk pljj grrx", "qqqq"])
def test_what_is_about_nothing_is_still_found_nowhere(project, text):
    page = meant(project, text)
    assert ids(page) == []
    assert page.found.document(0)["note"].startswith("Nothing relevant")


LANGUAGES = {
    "wann wird der Benutzer ohne Eingabe automatisch abgemeldet": "REQ-6",
    "nach wie vielen Minuten erfolgt automatisch die Abmeldung": "REQ-6",
    "когда пользователь автоматически выходит из системы": "REQ-7",
    "через сколько минут бездействия пользователь выходит": "REQ-7",
    "会话多久没有操作会自动退出": "REQ-8",
    "自动退出": "REQ-8",
    "متى يتم تسجيل خروج المستخدم تلقائيا": "REQ-9",
    "بعد كم دقائق من عدم النشاط يتم الخروج": "REQ-9",
}


@pytest.mark.parametrize("is_of_words", [True, False])
@pytest.mark.parametrize("text", LANGUAGES)
def test_questions_in_other_languages_find_their_document_first(project, text, is_of_words):
    assert ids(ask(project, text, is_of_words=is_of_words))[0] == LANGUAGES[text]


def test_an_entity_with_more_and_rarer_words_comes_before_one_with_a_common_one_often(project):
    page = ask(project, "may a password stay visible twelve reports")
    assert ids(page)[0] == "REQ-5"
    assert page.found.is_partial
    assert page.found.document(page.total)["unknown"] == ["visible"]


TERMS = (
    "session idle ends password report rows long stay mail worker refund card money table spreadsheet sign out "
    "пользователь 会话 abgemeldet expires login inactivity database letters unrelated zebra"
)
WORDS = st.sampled_from(TERMS.split())


@settings(max_examples=tries(10, 60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, min_size=1, max_size=7, unique=True), st.integers(1, 6), st.sampled_from(["", "req", "adr"]))
def test_pages_of_a_question_give_every_row_once_in_the_same_order(project, words, limit, type_):
    whole = meant(project, " ".join(words), type=type_)
    assert whole.total == len(whole.entities)
    again = meant(project, " ".join(words), type=type_)
    assert ([*again.found.scores.items()], again.found.ranks) == ([*whole.found.scores.items()], whole.found.ranks)
    found, scores, cursor = [], {}, ""
    while True:
        page = meant(project, " ".join(words), type=type_, limit=limit, cursor=cursor)
        assert page.total == whole.total
        found += ids(page)
        scores |= page.found.scores
        cursor = page.next_cursor
        if not cursor:
            break
    assert found == ids(whole)
    assert scores == whole.found.scores
    assert all(node.fields["type"] == type_ for node in whole.entities if type_)
    assert meant(project, " ".join(words), type=type_, count=True).total == whole.total


def test_a_cursor_of_an_answer_by_meaning_does_not_fit_one_by_words(project):
    first = meant(project, QUESTION, limit=1)
    with pytest.raises(InvalidQuery, match="differ from those"):
        ask(project, QUESTION, limit=1, cursor=first.next_cursor)


def test_other_filters_hold_for_what_is_found_by_meaning(project):
    assert set(ids(meant(project, "which relational database keeps reports", type="adr"))) <= {"ADR-1", "ADR-2"}
    assert ids(meant(project, QUESTION, sort="id")) == sorted(ids(ask(project, QUESTION)))


def test_the_setting_says_whether_meaning_is_searched(tmp_path):
    made = Project(tmp_path / "repo")
    files = {f"docs/{folder(key)}/{key}.md": doc(key, *texts) for key, texts in TITLES.items()}
    for mode, has_ranks in (("off", False), ("on", True), ("auto", True)):
        made.sync({**files, ".kb/config.json": json.dumps({"search": {"meaning": mode}})})
        assert bool(meant(made, QUESTION).found.ranks) == has_ranks, mode
    made.close()


@pytest.mark.parametrize(("mode", "is_said"), [("on", True), ("auto", False), ("off", False)])
def test_without_the_extra_words_alone_are_searched_and_with_on_it_is_said_how_to_get_it(
    tmp_path, monkeypatch, mode, is_said
):
    made = Project(tmp_path / "repo")
    made.sync({"docs/requirements/a.md": doc("REQ-4", *TITLES["REQ-4"])})
    made.write({".kb/config.json": json.dumps({"search": {"meaning": mode}})})
    monkeypatch.setitem(sys.modules, "wordllama", None)
    page = meant(made, QUESTION)
    assert (ids(page), page.found.ranks) == (["REQ-4"], {})
    hint = page.found.document(page.total).get("hint", "")
    assert ('pip install "kb-memory[semantic]"' in hint) == is_said
    assert (hint in [*page.found.sentences(page.total)]) == is_said
    made.close()


def test_a_search_for_words_that_entities_hold_imports_no_model(project):
    code = (
        "import sys; from kbcli.app import main; sys.argv = ['kb', 'query', '--text', 'session idle']\n"
        "try:\n    main()\nfinally:\n    print(sorted({'numpy', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project.root, env=git_env(), capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_words_outside_of_a_filter_let_what_passes_it_be_found_by_its_meaning(project):
    question = "twelve users sign in to mysql"
    assert "ADR-1" in ids(meant(project, question))
    assert ids(meant(project, question, type="adr")) == ["ADR-1"]
