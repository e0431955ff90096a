"""The parser takes what the grammar says, no less and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kbcore.errors import KipRefused
from kbcore.kip.grammar import GRAMMAR, KEYWORDS, TOKENS
from kbcore.kip.parsing import parse
from kbcore.kip.printer import write
from tests.support.effort.scale import tries
from tests.support.generators.kip_sentences import recognises, rules, sentences, texts, words
from tests.support.generators.kip_trees import without_places

VALUES = ("?t", "?t.name", '"Person"', ":p", "7", "-1.5", "null", "key")
"""One token of each kind that stands for something."""
BEYOND = ("is here twice", "hops", "reads only", "at least 1")
"""Of refusals: what the words about tokens demand, beside the rules."""


@settings(max_examples=tries(20, 60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_sentence_of_the_grammar_is_parsed_however_it_is_spaced(data) -> None:
    tokens = data.draw(sentences())
    text = data.draw(texts(tokens))
    refusal = refusal_of(text)
    assume(not any(words in refusal for words in BEYOND))
    assert not refusal, text
    tree = parse(text)
    assert without_places(parse(write(tree))) == without_places(tree)


@pytest.mark.sliced
@settings(max_examples=tries(10, 30), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sentences(budget=9), st.lists(st.sampled_from(words()), min_size=4, max_size=4))
def test_nothing_is_parsed_that_the_grammar_does_not_derive(tokens, others) -> None:
    taken = [changed for changed in variants(tokens, [*VALUES, *others]) if not refusal_of(" ".join(changed))]
    for changed in taken[:: 1 + len(taken) // 40]:  # the recogniser is slow, and long sentences have many variants
        assert recognises(changed), " ".join(changed)


def variants(tokens: list[str], others: list[str]) -> Iterator[list[str]]:
    """Yield a sentence with each token left out or said twice, with each pair exchanged, and with others put in."""
    for place, token in enumerate(tokens):
        before, following = tokens[:place], tokens[place + 1 :]
        yield [*before, *following]
        yield [*before, token, token, *following]
        yield [*before, *following[:1], token, *following[1:]]
        for other in others:
            yield [*before, other, *following]
            yield [*before, other, token, *following]


@settings(max_examples=tries(20, 60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_changed_sentence_is_refused_only_where_the_grammar_does_not_derive_it(data) -> None:
    tokens = data.draw(sentences(budget=10))
    changed = data.draw(st.sampled_from(list(variants(tokens, [data.draw(st.sampled_from(tokens))]))))
    refusal = refusal_of(" ".join(changed))
    assume(not any(words in refusal for words in BEYOND))
    assert recognises(changed) == (not refusal), f"{refusal} {' '.join(changed)}"


def refusal_of(text: str) -> str:
    try:
        parse(text)
    except KipRefused as error:
        return error.message
    return ""


def test_every_rule_is_used_and_every_name_in_it_is_explained() -> None:
    bare = re.sub(r'"[^"]*"', "", GRAMMAR)
    for rule in rules():
        assert len(re.findall(rf"\b{rule}\b", bare)) > 1 or rule == "command", rule
    assert set(re.findall(r"\b[A-Z]+\b", bare)) == {name for names, _ in TOKENS for name in names.split(", ")}


def test_the_keywords_are_those_of_the_grammar() -> None:
    assert {"FIND", "IS_NOT_NULL", "CLAMP", "true", "null"} <= KEYWORDS
    assert not {"id", "type", "name"} & KEYWORDS
