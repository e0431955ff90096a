"""The laws of a budget: never above it, all counted, the same for the same facts, and every kind has its turn."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kbcore.query.context.facts import OF_FILE, Fact, Tie, counted_line
from kbcore.query.context.fitting import fit, ranked

TYPES = ("adr", "req", "scenario", "test", "flag", "symbol", "risk")
STEPS = st.integers(0, 2)
FACTS = st.lists(
    st.builds(
        Fact,
        id=st.text("abc", min_size=1, max_size=3),
        type=st.sampled_from(TYPES),
        title=st.text(max_size=300),
        status=st.sampled_from(("open", "draft", "superseded")),
        tie=st.builds(
            Tie, st.sampled_from(("implements", "guards")), st.booleans(), st.text(max_size=5), st.integers(0, 2)
        ),
        version=st.integers(0, 9),
    ),
    max_size=30,
)


def fitted(facts, room, before=None):
    return fit(
        facts,
        room,
        size=lambda one: len(one.as_line()) + 1,
        kind=lambda one: one.type,
        omitted_size=lambda counts: len(counted_line(counts)) + 1,
        already_omitted=before,
    )


@given(FACTS, st.integers(150, 4000), st.dictionaries(st.just("retired fact"), st.integers(1, 999)))
def test_what_is_taken_and_what_is_counted_never_take_more_than_the_room(facts, room, before):
    found = fitted(facts, room, before)
    counts = counted_line(found.omitted)
    text = "".join(f"{facts[at].as_line()}\n" for at in found.taken) + (f"{counts}\n" if counts else "")
    assert len(text) <= room
    left = Counter(one.type for at, one in enumerate(facts) if at not in found.taken) + Counter(before)
    assert found.omitted == dict(left)


@given(FACTS, st.randoms(use_true_random=False))
def test_the_order_does_not_depend_on_the_order_in_which_facts_are_found(facts, random):
    once = {(one.id, one.tie.steps, one.version, one.statement): one for one in facts}
    shuffled = [*once.values()]
    random.shuffle(shuffled)
    key = [(one.id, one.tie.steps, one.version, one.statement) for one in ranked(once.values())]
    assert [(one.id, one.tie.steps, one.version, one.statement) for one in ranked(shuffled)] == key
    assert len({one.id for one in ranked(facts)}) == len(ranked(facts)) == len({one.id for one in facts})


def fact(key, type_, *, steps=1, version=1, title=""):
    return Fact(key, type_, title or key, "open", Tie("implements", steps=steps), version=version)


def test_kinds_take_turns_and_within_a_kind_the_nearest_comes_first_then_the_latest():
    requirements = [fact(f"R-{at}", "req", version=at) for at in range(5)]
    facts = [fact("T-1", "test"), fact("S-1", "scenario", steps=2), *requirements, fact("A-1", "adr", steps=2)]
    assert [one.id for one in ranked(facts)] == ["A-1", "R-4", "R-3", "R-2", "S-1", "T-1", "R-1", "R-0"]


def test_of_two_facts_about_one_entity_the_nearer_is_kept():
    far, near = fact("R-1", "req", steps=2), fact("R-1", "req", steps=0)
    assert ranked([far, near]) == [near]


def test_notes_about_the_very_file_come_before_what_is_linked_to_it():
    about = Fact("N-1", "note", "x", "active", Tie(OF_FILE, near="src/a.py"), version=1)
    facts = [fact("R-1", "req"), fact("A-1", "adr"), about, fact("N-2", "note")]
    assert [one.id for one in ranked(facts)] == ["N-1", "A-1", "R-1", "N-2"]
