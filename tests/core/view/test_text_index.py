"""A text index that took changes in step by step answers exactly as one that was filled at once; no file is trusted."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.errors import StatementTimeout, ViewDamaged, ViewForeign
from kbcore.process import interrupting
from kbcore.view import database, text_documents, text_index
from kbcore.view.text_index import TextIndex
from kbcore.view.text_query import Alternative, MatchExpression, Ranking
from tests.support.generators.histories import basis_at, entries_of, laws, records
from tests.support.views.graph import graph_of, node
from tests.support.views.grown import built

NO_BODIES = "(select '' as id, '' as text where false)"


def held(index):
    """Return everything that an index holds, by id, with what each word of it scores."""
    entities = index.rows("select id, folded, lacks_body from entity order by id")
    index.rows("create virtual table temp.listed using fts5vocab(main, text, row)")
    terms = index.rows("select term, doc, cnt from temp.listed order by term")
    index.rows("drop table temp.listed")
    scores = [
        index.ranked(Ranking((MatchExpression(f'"{term}"'),)), None) for term, _, _ in terms[:40] if term[0] != "\ue000"
    ]
    return entities, terms, scores


def read(wanted):
    """Read documents that say their own hashes; some cannot be read."""
    return [(digest, f"The document {digest}") for _, digest in wanted if digest and digest[0] != "2"]


@laws(6)
@given(records(), st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_an_index_caught_up_in_any_steps_is_one_filled_at_once(history, steps):
    entries = entries_of(history)
    position = min(steps[0], len(entries))
    with database.scratch_folder() as folder, built(entries, position) as view:
        text_documents.attach_bodies(view, "")
        index = text_index.build(view, ":memory:", read)
        for step, size in enumerate([*steps[1:], len(entries)]):
            before, part = view.seq, entries[position : position + size]
            position += len(part)
            if part:
                view.extend(iter(part), basis_at(entries, position))
            changed = text_index.changed_since(view, index, before, read)
            text_index.take_in(view, index, changed, read)
            if size == 1:
                path = f"{folder}/{step}.db"
                index.copied(path).close()
                published = text_index.opened(view, path)
                assert published is not None
                assert held(published) == held(index)
            assert held(index) == held(text_index.build(view, ":memory:", read))
        past = text_index.build(view, ":memory:", read, position // 2)
        with built(entries, position // 2) as then:
            text_documents.attach_bodies(then, "")
            assert held(past) == held(text_index.build(then, ":memory:", read))


MATCHING = "select count(*) from text where text match ?"


def filled(path: str = ":memory:", title: str = "Refund a payment") -> TextIndex:
    graph = graph_of([node("REQ-1", title=title)])
    index = TextIndex(path)
    index.add(graph, "node", NO_BODIES)
    return index


def test_a_published_index_is_not_changed_and_nothing_is_made_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    filled(str(path)).close()
    path.chmod(stat.S_IRUSR)
    before = path.read_bytes()
    index = TextIndex(str(path), is_published=True)
    assert index.ranked(Ranking((MatchExpression('"refund"'),)), 5)[1] == 1
    with pytest.raises(ViewDamaged, match="readonly"):
        index.rows("delete from entity")
    copy = index.copied()
    copy.forget(["REQ-1"])
    assert (copy.counts()[0], index.counts()[0]) == (0, 1)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["text.db"]


@pytest.mark.parametrize(
    "statement",
    [
        "create view other as select * from entity",
        "create trigger mine after insert on entity begin delete from entity; end",
        "create table other (i integer, j integer generated always as (i + 1))",
        "create table other (i integer default (random()))",
        "create table other (i integer check (i > 0))",
        "create virtual table other using fts5(x)",
        "create index mine on entity (length(id))",
        "drop table entity; create view entity as select 1 as doc, 'x' as id, '' as folded, 0 as lacks_body",
    ],
)
def test_a_file_with_what_kb_does_not_make_is_refused_by_name(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "text.db"
    filled(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.executescript(statement)
    connection.close()
    with pytest.raises(ViewForeign, match="which KB does not make"):
        TextIndex(str(path), is_published=True)


@pytest.mark.parametrize("statement", ["create table other (i integer)", "drop index entity_by_id"])
def test_a_file_with_other_plain_tables_is_one_of_another_version(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "text.db"
    filled(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.executescript(statement)
    connection.close()
    with pytest.raises(ViewDamaged, match="not those of this version") as caught:
        TextIndex(str(path), is_published=True)
    assert not isinstance(caught.value, ViewForeign)


def test_a_damaged_schema_is_damage_even_where_it_is_a_syntax_error(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    filled(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("pragma writable_schema = on")
        connection.execute("update sqlite_master set sql = 'create tabel entity (x)' where name = 'entity'")
    connection.close()
    with pytest.raises(ViewDamaged, match="malformed database schema"):
        TextIndex(str(path), is_published=True)


@pytest.mark.parametrize(("sql", "params"), [("selekt 1", []), (MATCHING, ['"a" OR OR']), (MATCHING, ["(('"])])
def test_a_wrong_statement_is_an_error_of_its_own_and_no_damage(sql: str, params: list[str]) -> None:
    with pytest.raises(sqlite3.OperationalError, match="syntax error"):
        filled().rows(sql, params)


class Rows(list):
    """Rows of a view that note how many of them were looked at, and stop a work before the first."""

    def __init__(self, rows: list[Any], work: interrupting.CurrentWork) -> None:
        super().__init__(rows)
        self.work, self.seen = work, 0

    def __iter__(self) -> Iterator[Any]:
        self.work.stop()
        for row in super().__iter__():
            self.seen += 1
            yield row


def test_words_are_split_no_further_when_the_work_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    index, graph, work = TextIndex(), graph_of(node(f"REQ-{n}") for n in range(9)), interrupting.CurrentWork()
    found, rows = [], graph.rows

    def noted(sql: str, params: Sequence[Any] = ()) -> list[Any]:
        if not sql.startswith("select n.id"):
            return rows(sql, params)
        found.append(Rows(rows(sql, params), work))
        return found[0]

    monkeypatch.setattr(graph, "rows", noted)
    with interrupting.done_for(work), pytest.raises(interrupting.Stopped):
        index.add(graph, "node", NO_BODIES)
    assert (len(found[0]), found[0].seen) == (9, 1)


def test_a_copy_has_the_time_of_a_statement() -> None:
    index, target = filled(), sqlite3.connect(":memory:")
    index.rows("insert into text_content (id, c0) values (99, zeroblob(64000000))")
    token = interrupting._statement_s.set(0.0)
    try:
        with pytest.raises(StatementTimeout):
            index.copy_to(target)
    finally:
        interrupting._statement_s.reset(token)
    index.copy_to(target)
    assert target.execute("select count(*) from entity").fetchall() == [(1,)]
    target.close()


def test_a_term_with_a_quote_is_still_one_term() -> None:
    index = filled(title="Refund")
    assert index.held_by(MatchExpression(Alternative('refund" OR "payment').expression)) == 0
    assert index.held_by(MatchExpression(Alternative("refund").expression)) == 1


def test_no_other_file_can_be_reached_from_an_index(tmp_path: Path) -> None:
    index = filled()
    with pytest.raises(ViewDamaged, match="too many attached"):
        index.rows("attach ? as other", [str(tmp_path / "other.db")])
    assert list(tmp_path.iterdir()) == []


def test_a_word_that_most_of_a_few_entities_hold_still_ranks_by_where_it_is() -> None:
    graph = graph_of([node("A", title="plan", owner="gate"), node("B", title="gate"), node("C", title="gate shut")])
    index = TextIndex()
    index.add(graph, "node", NO_BODIES)
    found, total = index.ranked(Ranking((MatchExpression('"gate"'),)), 9)
    assert ([id_ for id_, _ in found], total) == (["B", "C", "A"], 3)
    assert found[0][1] > found[2][1] > 0.001
