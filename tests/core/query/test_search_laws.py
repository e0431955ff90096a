"""The index ranks as a slow and obvious reading does, whatever way it came to hold what it holds."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbcore import query
from kbcore.model.schema import CORE
from kbcore.query import Query
from kbcore.text import terms
from tests.support.effort.scale import tries
from tests.support.oracles import ranking
from tests.support.views.graph import Texts, graph_of, node

LAW = settings(max_examples=tries(5, 15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
VOCABULARY = [
    *(
        "login",
        "logni",
        "logins",
        "logout",
        "log",
        "logged",
        "logging",
        "the",
        "how",
        "in",
        "out",
        "token",
        "tokens",
        "page",
        "pages",
        "gape",
        "tokn",
        "pag",
        "logi",
        "REQ-7",
        "REQ-70",
        "7",
    ),
    *("REQ-007", "req-0", "REQ-99", "REQ-7.md", "ADR-7", "b-1.x"),
    *(
        "createPlan",
        "plan",
        "create_plan",
        "HTTPServer",
        "C++",
        "C#",
        "c",
        "Café",
        "CAFE",
        "über",
        "Größe",
        "GRÖSSE",
        "GRÖẞE",
        "東京",
        "東京都",
        "京都",
    ),
    *("привет", "превет", "рпивет", "приветы", "Ёлка", "елкк", "δρόμος", "δρμος"),
    *("비밀번호", "비밀변호", "비밀호", "로그인", "로그안", "로그아웃", "문서", "문저", "กรุงเทพ", "กรุง", "ที่นี่"),
    *(
        "😀",
        "don't",
        "parse",
        "parsing",
        "parseQuery",
        "a.b",
        "x--y",
        "-",
        "—",
        "'",
        "%",
        "2026-11-21",
        "naïve",
        "a1b2",
        *("1.10.2", "v1.10.2", "V1.10.2", "lib-1.10.2", "v1.10.2-rc1", "1.10.2rc1", "1.10", "1", "10", "2", "v1"),
        *("log-in", "log-out", "log_in", "e-mail", "email", "E-Mails", "Öl-Stand", "ölstand", "a-b-c", "x-1"),
    ),
]
WORDS = st.sampled_from(VOCABULARY)
PHRASES = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)
IDS = ["REQ-7", "REQ-07", "REQ-70", "login", "A", "b-1", "東京", "x y", "é"]


@st.composite
def _nodes(draw, id_):
    fields = {
        "title": draw(PHRASES),
        "tags": draw(st.none() | st.lists(WORDS, max_size=3)),
        "owner": draw(st.none() | WORDS),
    }
    if draw(st.booleans()):
        fields["attributes.note"] = draw(PHRASES | st.lists(WORDS, max_size=2) | st.integers(0, 99) | st.booleans())
    return node(id_, draw(st.sampled_from(["req", "test"])), **fields)


@st.composite
def graphs(draw):
    return [draw(_nodes(id_)) for id_ in draw(st.sets(st.sampled_from(IDS), min_size=1))]


def pages(graph, ready, asked, limit):
    """Return all that is found, page by page: each id with its score."""
    found, cursor = {}, ""
    while True:
        checked = query.check(Query(**asked, limit=limit, cursor=cursor), CORE)
        page = query.page(checked, graph.rows, 1, texts=ready)
        found |= {one.id: page.found.scores[one.id] for one in page.entities}
        cursor = page.next_cursor
        assert len(found) <= page.total
        if not cursor:
            return found


@LAW
@given(graphs(), st.lists(PHRASES, min_size=2, max_size=5), st.integers(1, 9), st.sampled_from(["", "req"]))
def test_a_search_finds_what_a_slow_reading_finds_in_the_same_order(nodes, texts, limit, type_):
    graph = graph_of(nodes)
    ready = Texts(graph)
    corpus = ranking.Corpus(nodes)
    passing = [one.id for one in nodes if type_ in {"", one.fields["type"]}]
    for text in texts:
        if any(ranking.pieces(text)):
            found, expected = pages(graph, ready, {"text": text, "type": type_}, limit), corpus.ranked(text, passing)
            assert [*found] == [*expected], text
            assert all(0 < score <= 1 for score in found.values()), text
            assert shares(found) == pytest.approx(shares(expected)), text


def shares(scores):
    """Return scores as shares of the highest."""
    return {id_: score / max(scores.values()) for id_, score in scores.items()}


@pytest.mark.parametrize("limit", [5, 100])
@pytest.mark.parametrize("type_", ["", "req"])
def test_a_rare_name_of_common_words_ranks_by_how_well_it_fits(limit, type_):
    nodes = [node(f"A-{n}", title=f"create a plan number {n}") for n in range(59)]
    nodes += [node(f"B-{n:02}", title="createPlan " * (12 - n)) for n in range(12)]
    graph, text = graph_of(nodes), "createPlan"
    found, expected = (
        pages(graph, Texts(graph), {"text": text, "type": type_}, limit),
        ranking.Corpus(nodes).ranked(text),
    )
    assert [*found] == [*expected]
    assert [*found][:12] == [f"B-{n:02}" for n in range(12)]
    assert found["B-00"] == 1
    assert shares(found) == pytest.approx(shares(expected))


@pytest.mark.parametrize("type_", ["", "req"])
def test_the_very_id_comes_first_and_keeps_the_score_of_its_words(type_):
    nodes = [
        node("create-plan", title="Something quite different"),
        *(node(f"B-{n}", title="create-plan " * 9) for n in "123"),
    ]
    nodes += [node(f"A-{n}", title=f"create a plan {n}") for n in range(70)]
    graph, text = graph_of(nodes), "create-plan"
    found, expected = pages(graph, Texts(graph), {"text": text, "type": type_}, 2), ranking.Corpus(nodes).ranked(text)
    assert [*found] == [*expected]
    assert next(iter(found)) == "create-plan"
    assert max(found.values()) == 1
    assert shares(found) == pytest.approx(shares(expected))


@LAW
@given(st.text(max_size=20) | PHRASES)
def test_text_is_split_as_described(text):
    plain = "".join(one for one in text if one.isascii() or one in "éüï東京都😀—Éßẞกรุงที่")
    found = terms.pieces(terms.read(plain))
    assert found == list(ranking.pieces(plain))
    assert [set(terms.all_terms(piece)) for piece in found] == [ranking.terms(piece) for piece in found]
    assert "".join(terms.shown(plain)) == plain
    kept = terms.indexed(plain, terms.indexer())
    tokens = re.findall("[a-z0-9\x80-\U0010ffff]+", kept.lower())
    assert Counter(map(terms.term_of, tokens)) == Counter(term for piece in found for term in terms.all_terms(piece))
