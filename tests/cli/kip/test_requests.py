from __future__ import annotations

import pytest

from kbcli.invocation.parameters import parameters_of
from kbcli.kip.requests import is_whole, pieces_of, request_of
from kbcore.errors import InvalidQuery, KipRefused
from kbcore.kip.binding import read
from kbcore.limits import MAX_KIP_BYTES


def test_a_value_is_json_if_it_is_json_else_text():
    words = ["a=1", "b=true", "c=null", "d=x=y", 'e={"k": [1]}', ":f=-", "g= 1", "h=1.5e3", 'i="q"', "j={k}"]
    values = [1, True, None, "x=y", {"k": [1]}, "-", " 1", 1500.0, "q", "{k}"]
    assert parameters_of(words) == dict(zip("abcdefghij", values, strict=True))


@pytest.mark.parametrize("word", ["", "a", "=1", ":=1"])
def test_what_is_no_pair_is_refused(word):
    with pytest.raises(InvalidQuery):
        parameters_of([word])


def test_each_command_keeps_the_line_and_column_that_it_has():
    text = "// one\nDESCRIBE PRIMER\n\n  DESCRIBE DOMAINS"
    pieces = [("\nDESCRIBE PRIMER", 1), ("\n\n\n  DESCRIBE DOMAINS", 5)]
    assert pieces_of(text) == pieces_of(text.replace("\n", "\r\n")) == pieces_of(text.replace("\n", "\r")) == pieces
    assert request_of(text, {}, dry_run=True).is_batch
    assert not request_of("", {}, dry_run=False).is_batch


def test_text_before_a_command_is_no_part_of_its_length():
    long = 'UPSERT { CONCEPT { {type: "Person", name: "A"} SET ATTRIBUTES { d: "%s" } } } ' % ("x" * 60_000)
    commands = request_of((long + "DESCRIBE PRIMER ") * 6, {}, dry_run=True).commands
    assert len(commands) == 12
    column = 6 * len(long) + 5 * len("DESCRIBE PRIMER ")
    tree = read(commands[-1].text, lead=commands[-1].lead)
    assert tree.at == column
    with pytest.raises(KipRefused, match="262144"):
        read(commands[-1].text + " " * MAX_KIP_BYTES, lead=commands[-1].lead)


def test_places_that_take_too_much_memory_are_refused_with_a_way_out(monkeypatch):
    monkeypatch.setattr("kbcli.kip.requests._MOST_BLANKS", 50)
    assert len(pieces_of("DESCRIBE PRIMER " * 3)) == 3
    with pytest.raises(KipRefused, match="line 1, column 49") as caught:
        pieces_of("DESCRIBE PRIMER " * 4)
    assert "a line of its own" in caught.value.hint


def test_a_text_is_whole_or_lacks_something_or_is_wrong():
    assert is_whole("DESCRIBE PRIMER")
    assert not is_whole("FIND(?x)\nWHERE {")
    with pytest.raises(KipRefused):
        is_whole("FIND(?x))")


def test_a_file_has_as_many_commands_as_a_batch():
    with pytest.raises(KipRefused, match="257 commands"):
        request_of("DESCRIBE PRIMER " * 257, {}, dry_run=False)


def test_a_parameter_that_is_given_twice_is_refused():
    with pytest.raises(InvalidQuery, match="--param 'n' is given twice"):
        parameters_of(["n=1", ":n=2"])
