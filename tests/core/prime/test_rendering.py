"""The forms of a briefing: never above the budget, all counted, and nothing that acts on a terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbcore.limits import HOOK_TOKENS, MIN_CONTEXT_TOKENS, MIN_PRIME_TOKENS
from kbcore.prime.briefing import Briefing, LastRecord
from kbcore.prime.rendering import hook_text_of, json_of, text_of
from kbcore.query.context.facts import Fact, Tie
from kbcore.sync.context import Context, UnknownName
from kbcore.text.escaping import has_unsafe, json_text
from kbcore.text.tokens import tokens_of

TEXTS = st.text(max_size=250)
FACTS = st.lists(
    st.builds(
        Fact,
        id=st.text(min_size=1, max_size=200),
        type=st.sampled_from(("adr", "req", "scenario", "symbol", "x" * 100)),
        title=TEXTS,
        status=TEXTS,
        tie=st.builds(Tie, TEXTS),
        by=TEXTS,
        source=TEXTS,
        marks=st.sampled_from(((), ("proposed",), ("stale", "contested"))),
    ),
    max_size=12,
    unique_by=lambda one: one.id,
).map(tuple)
BRIEFINGS = st.builds(
    Briefing,
    branch=st.text(min_size=1, max_size=200),
    seq=st.integers(0, 10**9),
    last=st.none()
    | st.builds(
        LastRecord,
        seq=st.integers(0, 10**9),
        at=st.just("2026-01-31T10:00:00.000000Z"),
        records=st.dictionaries(st.text(max_size=100), st.integers(1, 9), max_size=5),
        deleted=st.integers(0, 99),
    ),
    changed=FACTS,
    tasks=FACTS,
    sharing=st.lists(TEXTS, max_size=2).map(tuple),
    context=st.builds(
        Context,
        facts=FACTS,
        unknown=st.lists(st.builds(UnknownName, TEXTS, st.lists(TEXTS, max_size=3).map(tuple)), max_size=3).map(tuple),
        retired=st.integers(0, 99),
        goes_on=st.booleans(),
    ),
    pending=st.none() | st.integers(0, 99),
)
SAFE = BRIEFINGS.filter(lambda one: not any("\x02" in text or "\x03" in text for text in one.sharing))


@given(SAFE, st.integers(300, 4000))
def test_a_text_is_never_above_its_budget_and_is_safe(found, tokens):
    text = text_of(found, tokens)
    assert tokens_of(text) <= tokens
    assert not has_unsafe(text.replace("\n", ""))


@given(SAFE, st.integers(MIN_CONTEXT_TOKENS, HOOK_TOKENS))
def test_the_text_of_a_hook_is_never_above_its_budget_and_has_only_accepted_and_fresh_facts(found, tokens):
    text = hook_text_of(found.context, tokens)
    assert tokens_of(text) <= tokens
    assert "[proposed]" not in text.replace("\\", "") or any("[proposed]" in one.title for one in found.context.facts)
    if not any(one.is_accepted_and_fresh and one.type != "symbol" for one in found.context.facts):
        assert text == ""


@given(SAFE, st.integers(1000, 4000))
def test_json_is_never_above_its_budget_and_counts_what_it_leaves_out(found, tokens):
    shown = json_of(found, {"freshness": "current", "pending_files": 0}, tokens)
    assert tokens_of(json_text(shown) + "\n") <= tokens
    listed = sum(len(shown[name]) for name in ("sharing", "unknown", "facts", "tasks", "changed"))
    ids = {one.id for one in (*found.context.facts, *found.tasks)}
    whole = (*found.sharing, *found.context.unknown, *found.context.facts, *found.tasks)
    number = len(whole) + sum(one.id not in ids for one in found.changed) + found.context.retired
    assert listed + sum(shown["omitted"].values()) == number


def test_the_least_budget_of_a_briefing_has_room_for_its_frame():
    last = LastRecord(10**6, "2026-01-31T10:00:00.000000Z", {"a" * 100: 1, "b" * 100: 2, "c" * 100: 3, "d": 4}, 10**4)
    found = Briefing("b" * 200, 10**6, last, (), (), (), Context(goes_on=True), 10**4)
    assert tokens_of(text_of(found, MIN_PRIME_TOKENS)) <= MIN_PRIME_TOKENS
    assert tokens_of(json_text(json_of(found, {"freshness": "unknown"}, MIN_PRIME_TOKENS)) + "\n") <= MIN_PRIME_TOKENS
