"""Texts of several commands: where each of them begins and ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.errors import KipRefused
from kbcore.kip.parsing import parse, spans
from kbcore.kip.printer import write
from tests.support.generators.kip_trees import commands


def pieces(text):
    return [text[begin:end].strip() for begin, end in spans(text)]


def test_a_command_ends_where_the_next_one_begins():
    text = '// first\nDESCRIBE PRIMER FIND(?x) WHERE { ?x {name: "a"} }\nLIMIT 3\n\nSEARCH CONCEPT "FIND(" // last\n'
    assert pieces(text) == [
        "DESCRIBE PRIMER",
        'FIND(?x) WHERE { ?x {name: "a"} }\nLIMIT 3',
        'SEARCH CONCEPT "FIND(" // last',
    ]


@pytest.mark.parametrize("text", ["", " \n", "// nothing"])
def test_a_text_without_a_command_has_none(text):
    assert spans(text) == []


@pytest.mark.parametrize("text", ["FIND(?x)", "UPSERT {", "DESCRIBE", 'FIND(?x) WHERE { ?x {name: "a"} } LIMIT'])
def test_what_more_could_make_whole_is_refused_at_its_end(text):
    with pytest.raises(KipRefused) as caught:
        spans(f"DESCRIBE PRIMER {text}")
    assert caught.value.data["offset"] == len(f"DESCRIBE PRIMER {text}")


@pytest.mark.parametrize("text", ["FIND(?x))", "DESCRIBE PRIMER LIMIT 3", "hello", 'SEARCH CONCEPT "a'])
def test_what_nothing_after_it_can_correct_is_refused_where_it_is(text):
    with pytest.raises(KipRefused) as caught:
        spans(text)
    assert caught.value.data["offset"] < len(text)


@pytest.mark.sliced
@given(st.lists(commands(), max_size=4))
def test_commands_that_are_written_one_after_the_other_are_separated(trees):
    texts = [write(tree) for tree in trees]
    found = pieces("\n".join(texts))
    upserts = [text for text in texts if text.startswith("UPSERT")]
    if len(upserts) < 2:  # UPSERTs in a row are one command
        assert found == texts
    assert [parse(text) for text in found] or not texts
