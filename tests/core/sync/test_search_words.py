"""The words that a search finds: ids, typos, forms, scripts, and the snippets around them."""

from __future__ import annotations

import shutil
import unicodedata

import pytest

from tests.core.sync.searched import FILES, ask, doc, ids
from tests.support.repository.project import Project


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path / "repo")
    made.sync(FILES)
    yield made
    made.close()


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
    assert first == f"Nothing relevant: no entity contains '{text.lower()}'."
    assert [one[: len(near)] for one in more] == ([near] if near else [])


def test_a_name_of_no_kind_of_ids_is_found_by_its_parts(numbered, tmp_path):
    other = Project(shutil.copytree(numbered.root, tmp_path / "repo"), is_new=False)
    other.apply(entities=[{"id": "REQ-100", "type": "req", "title": "Dates of ISO 8601", "status": "open"}])
    assert ids(other, "iso-8601") == ["ADR-0003", "REQ-100"]
    assert ids(other, "REQ-1") == ["REQ-001"]
    assert ids(other, "REQ-10") == ["REQ-100"]
    other.close()


@pytest.fixture(scope="module")
def versioned(tmp_path_factory):
    """A project of texts with a version or a hyphened word, and of those that have the parts alone in their titles."""
    made = Project(tmp_path_factory.mktemp("versioned") / "repo")
    rest = "and the other parts of the whole system keep what they had before"
    texts = {
        "APART": ("1, 10, 2", "1 10 2"),
        "LETTER": ("Upgrade", f"Since v1.10.2 {rest}."),
        "PLAIN": ("Upgrade", f"Since 1.10.2 {rest}."),
        "LONGER": ("Upgrade", f"Since lib-v1.10.2-rc1 {rest}."),
        "OTHER": ("1.10.2rc1 v1.10.20", "11.10.2"),
        "MODE": ("A replica", f"It is read-only {' '.join([rest] * 6)}."),
        "WORDS": ("Read only", "Only read."),
        "HYPHEN": ("Notices", f"Each goes out as an E-Mail. {rest}"),
        "ONE": ("Addresses", f"An email is confirmed. {rest}"),
    }
    made.sync({f"docs/requirements/{id_}.md": doc(id_, *text) for id_, text in texts.items()})
    yield made
    made.close()


@pytest.mark.parametrize("text", ["1.10.2", "v1.10.2", "V1.10.2"])
def test_a_version_is_found_with_and_without_its_letter_before_its_separate_numbers(versioned, text):
    page = ask(versioned, text)
    found = [one.id for one in page.entities]
    assert set(found[:3]) == {"LETTER", "PLAIN", "LONGER"}
    assert set(found[3:]) == {"APART", "OTHER"}
    assert "«v1.10.2»" in page.found.snippets["LETTER"].marked()
    assert "«1.10.2»" in page.found.snippets["PLAIN"].marked()


def test_a_hyphened_word_is_found_before_its_parts_alone_on_every_page(versioned):
    page = ask(versioned, "read-only", limit=1)
    assert [one.id for one in page.entities] == ["MODE"]
    following = ask(versioned, "read-only", limit=1, cursor=page.next_cursor)
    assert [one.id for one in following.entities] == ["WORDS"]
    assert ids(versioned, "read-only", type="req")[:2] == ["MODE", "WORDS"]


@pytest.mark.parametrize(("text", "first"), [("email", "ONE"), ("e-mail", "HYPHEN"), ("emails", None)])
def test_two_words_with_a_hyphen_are_found_as_one_word_and_the_other_way_round(versioned, text, first):
    page = ask(versioned, text)
    found = [one.id for one in page.entities]
    assert set(found) == {"HYPHEN", "ONE"}
    assert found[0] == (first or found[0])
    assert "«E-Mail»" in page.found.snippets["HYPHEN"].marked()
    assert "«email»" in page.found.snippets["ONE"].marked()


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
        "No entity contains all of the words as they are; looked for 'board' as well."
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
    assert "No entity contains 'äußerungen'" in " ".join(page.found.sentences(page.total))
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


def test_a_hit_far_after_a_longer_word_that_begins_like_it_is_shown(project):
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


def test_a_text_that_never_ends_a_word_is_split_in_one_pass(project):
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


def test_a_name_of_several_words_that_a_correction_found_has_a_snippet(project):
    project.sync({"docs/requirements/k.md": doc("K-1", "Node.js runtime", "On servers.")})
    page = ask(project, "nodejs")
    assert [one.id for one in page.entities] == ["K-1"]
    assert page.found.snippets["K-1"].marked() == "«Node.js» runtime"


def test_where_a_text_has_a_name_as_it_was_asked_for_its_parts_alone_are_no_hits(project):
    texts = {
        "K-1": "Send, e.g. once, an e-mail to all users.",
        "K-2": "Send e.g. a mail to all users.",
        "K-3": "A user reads the read-only page only once.",
    }
    project.sync({f"docs/requirements/{key}.md": doc(key, "T", text) for key, text in texts.items()})

    def shown(text, key):
        return ask(project, text).found.snippets[key].marked()

    assert shown("e-mail", "K-1") == "Send, e.g. once, an «e-mail» to all users."
    assert shown("e-mail", "K-2") == "Send «e».g. a «mail» to all users."
    assert shown("e-mail users", "K-1") == "Send, e.g. once, an «e-mail» to all «users»."
    assert shown("read-only", "K-3") == "A user reads the «read-only» page only once."
    assert shown("read only", "K-3") == "A user «reads» the «read-only» page «only» once."


def test_a_long_question_of_which_a_few_words_are_known_finds_the_best_partial_matches(project):
    question = "session ends members passkey quorum frobnicate zymurgy latency throughput gizmo widget sprocket gadget"
    page = ask(project, question)
    assert page.entities
    assert page.found.is_partial
    assert "these are the best partial matches" in " ".join(page.found.sentences(page.total))
