"""A text index that took changes in step by step holds exactly what one holds that was filled at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbcore.query.asof import nodes
from kbcore.query.text import tables
from kbcore.view import database, textdocuments, texttables
from tests.support.grown import built
from tests.support.histories import basis_at, entries_of, laws, records

ANEW = tables.Index("anew_")


def held(view, index):
    """Return everything that an index holds, by id; and its terms, as far as an entity has them."""
    return (
        view.rows(f"select id, length, lacks_body from {index['entity']} order by all"),
        view.rows(
            f"select p.term, e.id, p.weight, t.term is not null from {index['posting']} p "
            f"join {index['entity']} e using (doc) left join (select distinct term from {index['term']}) t "
            "on t.term = p.term order by all"
        ),
    )


def read(wanted):
    """Read documents that say their own hashes; some cannot be read."""
    return [(digest, f"The document {digest}") for _, digest in wanted if digest and digest[0] != "2"]


@laws(6)
@given(records(), st.lists(st.integers(0, 3), min_size=1, max_size=4))
def test_an_index_caught_up_in_any_steps_is_one_filled_at_once(history, steps):
    entries = entries_of(history)
    position = min(steps[0], len(entries))
    with database.scratch_folder() as folder, built(entries, position) as view:
        textdocuments.attach_bodies(view, "")
        texttables.build(view, ":memory:", read)
        for step, size in enumerate([*steps[1:], len(entries)]):
            before, part = view.seq, entries[position : position + size]
            position += len(part)
            if part:
                view.extend(iter(part), basis_at(entries, position))
            texttables.catch_up(view, before, read)
            if size == 1:
                texttables.merge(view, f"{folder}/{step}.duckdb")
                assert texttables.tail_share(view)[0] == 0
            tables.create(view.rows, ANEW)
            tables.fill(view.rows, ANEW, "node", texttables.documents_at_hand(None))
            assert held(view, texttables.WHOLE) == held(view, ANEW)
        texttables.fill_past(view, position // 2, read)
        tables.create(view.rows, ANEW)
        tables.fill(view.rows, ANEW, nodes(position // 2), texttables.documents_at_hand(position // 2))
        assert held(view, texttables.PAST) == held(view, ANEW)
