"""The wire format is read as the library of Protocol Buffers reads it, and what is none is refused."""

from __future__ import annotations

import contextlib

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from kbcore.extract.scip import index, wire
from kbcore.extract.scip.wire import BrokenIndexError
from tests.support.sources.scip_indexes import FIXTURES, Index, index_of, written

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
PLACES = st.lists(st.integers(0, 2**31 - 1), min_size=3, max_size=4)
OCCURRENCES = st.fixed_dictionaries(
    {"symbol": TEXTS, "range": PLACES, "symbol_roles": st.sampled_from([0, 1, 2, 8, 9])},
    optional={"enclosing_range": PLACES},
)
INFORMATION = st.fixed_dictionaries(
    {"symbol": TEXTS, "kind": st.integers(0, 90)},
    optional={
        "relationships": st.lists(
            st.fixed_dictionaries({"symbol": TEXTS, "is_implementation": st.booleans()}), max_size=3
        ),
        "signature_documentation": st.fixed_dictionaries({"text": TEXTS}),
        "documentation": st.lists(TEXTS, max_size=2),
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {
        "relative_path": TEXTS,
        "language": TEXTS,
        "text": TEXTS,
        "occurrences": st.lists(OCCURRENCES, max_size=5),
        "symbols": st.lists(INFORMATION, max_size=3),
    }
)


def place(numbers):
    """Return the first position of a range, as KB counts them."""
    return numbers[0] << 32 | numbers[1]


@given(st.lists(DOCUMENTS, max_size=3))
def test_an_index_is_read_as_the_library_reads_it(documents):
    data = written(*documents)
    found, expected = list(index.files(data)), Index.FromString(data).documents
    assert [(one.path, one.language) for one in found] == [(one.relative_path, one.language) for one in expected]
    for file, document in zip(found, expected, strict=True):
        spoken = [one for one in document.occurrences if one.symbol and not one.symbol.startswith("local ")]
        definitions = [one for one in spoken if one.symbol_roles & 1]
        assert [(one.symbol, one.at.start) for one in file.references] == [
            (one.symbol, place(one.range)) for one in spoken if not one.symbol_roles & 3
        ]
        assert file.definitions.keys() == {one.symbol for one in definitions}
        for one in reversed(definitions):
            around = file.definitions[one.symbol].around
            if one is next(other for other in definitions if other.symbol == one.symbol):
                assert (around.start if around else None) == (
                    place(one.enclosing_range) if one.enclosing_range else None
                )
        for one in document.symbols:
            if one.symbol and not one.symbol.startswith("local "):
                first = next(other for other in document.symbols if other.symbol == one.symbol)
                known = file.information[one.symbol]
                assert (known.kind, known.signature) == (first.kind, first.signature_documentation.text)
                assert known.implemented == tuple(
                    other.symbol for other in first.relationships if other.is_implementation
                )


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_as_the_library_does(data):
    try:
        list(index.files(data))
    except BrokenIndexError:
        return
    try:
        Index.FromString(data)
    except DecodeError:
        pytest.fail("the library refuses it")


@pytest.mark.parametrize("name", [path.name for path in FIXTURES.iterdir()])
def test_an_index_that_ends_early_is_refused_or_read_in_part(name):
    data = index_of(name)
    whole = len(list(index.files(data)))
    for end in range(1, len(data), 23):
        with contextlib.suppress(BrokenIndexError):
            assert len(list(index.files(data[:end]))) <= whole


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it has neither metadata nor documents"),
        (b"# A text.\n", "it has a field of the wire type 3, which SCIP does not use"),
        (b"\x12\x05ab", "it ends within a field"),
        (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "a number has more than ten bytes"),
        (b"\x10\x05", "a number is where a text or a message must be"),
        (b"\x12\x03\x0a\x01\xff", "a text is not UTF-8"),
        (b"\x12\x09\x12\x07\x0a\x02\x01\x02\x12\x01a", "a range has 2 numbers instead of three or four"),
        (b"\x12\x0e\x12\x0c\x0a\x07\x01\x02\xff\xff\xff\xff\x7f\x12\x01a", "a line or column is out of range"),
        (b"\x12\x04\x12\x02\x1a\x00", "a text or a message is where a number must be"),
        (b"\x0d\x01", "it ends within a field"),
    ],
)
def test_bytes_that_are_no_index_are_refused_with_the_reason(data, message):
    with pytest.raises(BrokenIndexError, match=message):
        list(index.files(data))


def test_fields_of_fixed_width_are_passed_over():
    assert list(wire.fields(b"\x09" + b"x" * 8 + b"\x15" + b"y" * 4 + b"\x08\x96\x01")) == [(1, 150)]
