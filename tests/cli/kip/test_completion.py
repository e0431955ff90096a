from __future__ import annotations

import pytest

from kbcli.kip.prompt import BREAKS, KipNames, candidates

NAMES = KipNames(["Person", "Preference", "Requirement"], ["prefers", "verified_by"])


@pytest.mark.parametrize(
    ("before", "word", "found"),
    [
        ("", "DES", ["DESC", "DESCRIBE"]),
        ("", "fin", ["FIND"]),
        ("", "", []),
        ("FIND(?person) WHERE { ?pet (", "?p", ["?person", "?pet"]),
        ("FIND(", "?p.a", ["?p.attributes."]),
        ("FIND(?p) WHERE { ?p {type: ", '"Pre', ['"Preference"']),
        ("FIND(?p) WHERE { ?p {type:", '"P', ['"Person"', '"Preference"']),
        ("DESCRIBE CONCEPT TYPE ", '"R', ['"Requirement"']),
        ("WHERE { (?a, ", '"', ['"prefers"', '"verified_by"']),
        ("SET PROPOSITIONS { (", '"ver', ['"verified_by"']),
        ("SEARCH CONCEPT ", '"p', ['"prefers"']),
        ("WHERE { ?p {name: :", "na", []),
    ],
)
def test_a_word_is_completed_by_words_that_are_valid_there(before, word, found):
    assert not before or before[-1] in BREAKS, "the terminal divides a line there"
    assert not {*word} & {*BREAKS}
    assert candidates(before, word, NAMES) == found
