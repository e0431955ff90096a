"""Canonical lines hold a whole state, and nothing else is read as one."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from kbcore.errors import FormatTooNew
from kbcore.model import canonical
from kbcore.model.canonical import KnownChangeset
from tests.support.generators.histories import entries_of, laws, records, states_of


@laws(50)
@given(records())
def test_what_canonical_lines_say_is_the_state_they_came_from(history) -> None:
    entries = entries_of(history)
    state = states_of(entries)[-1]
    known = [KnownChangeset(one.record.changeset_id, one.seq, one.record.digest) for one in entries]
    facts = list(canonical.lines(state, known))
    read = canonical.read(facts)
    assert read.known == known
    assert (read.state.nodes, read.state.links, read.state.sources) == (state.nodes, state.links, state.sources)
    assert list(canonical.lines(read.state, reversed(read.known))) == facts
    assert all(b"\n" not in fact and len(msgspec.json.decode(fact)) == 1 for fact in facts)


@pytest.mark.parametrize(
    "line", [b"{}", b"[]", b'{"planet":{}}', b'{"node":{"id":"A"}}', b'{"changeset":["a",1]}', b"nonsense"]
)
def test_a_line_that_is_no_fact_is_refused_with_its_number(line: bytes) -> None:
    with pytest.raises(FormatTooNew, match="Fact 2 "):
        canonical.read([b'{"changeset":["cs",1,"d"]}', line])
