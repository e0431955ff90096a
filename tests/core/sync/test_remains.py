"""What a state says of files: the same whether it stands in the base of a view or came after it."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kbcore.record import ReadSource
from kbcore.sync.difference import RECONSIDERED
from kbcore.sync.pending import taken_in_by
from kbcore.sync.remains import remains
from kbcore.view.tables import ELEMENTS
from kbcore.view.view import View
from tests.support.grown import built
from tests.support.histories import basis_at, entries_of, laws, records

PATHS = (None, (), ("docs/a.md",), ("docs/a.md", "import"))
PLACES = (None, ("docs",), ("",), ("docs/a.md",), ("doc", "docs/b's.md"))
CODES = sorted(RECONSIDERED)


def coded(op: object) -> object:
    """Return an operation whose problems are such as other files may mend, if it has any."""
    if not isinstance(op, ReadSource):
        return op
    notes = [msgspec.structs.replace(note, code=CODES[note.line % len(CODES)]) for note in op.problems]
    return msgspec.structs.replace(op, problems=tuple(notes))


def told(view: View) -> list[object]:
    return [
        *(remains(view, paths) for paths in PATHS),
        *(sorted(taken_in_by(view, below)) for below in PLACES),
    ]


@laws(20)
@given(records(max_size=5), st.integers(0, 5))
def test_what_came_after_a_base_is_told_as_what_stands_in_it(history, position) -> None:
    entries = entries_of([[coded(op) for op in ops] for ops in history])
    first = min(position, len(entries))
    with built(entries, len(entries)) as whole, built(entries, first) as view:
        view.extend(iter(entries[first:]), basis_at(entries, len(entries)))
        wanted = told(whole)
        assert told(view) == wanted
        for table in ELEMENTS:  # and when SQL has seen it
            assert len(view.rows(f"select * from {table}")) == len(whole.rows(f"select * from {table}"))
        assert told(view) == wanted
        assert wanted[len(PATHS)] == wanted[len(PATHS) + 2], "the root is everything"
