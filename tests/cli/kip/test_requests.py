from __future__ import annotations

import pytest

from kbcli.kip.requests import is_whole, parameters_of, pieces_of, request_of
from kbcore.errors import InvalidQuery, KipRefused


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
    assert pieces_of(text) == ["\nDESCRIBE PRIMER", "\n\n\n  DESCRIBE DOMAINS"]
    assert request_of(text, {}, dry_run=True).is_batch
    assert not request_of("", {}, dry_run=False).is_batch


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
