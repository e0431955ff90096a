"""The clauses of a branch and those of a process keep the same rules."""

from __future__ import annotations

import threading

import pytest

from kbcore.errors import InvalidChangeset, LimitExceeded, NotFound
from kbcore.logic.branch_clauses import ClauseCache
from kbcore.logic.clauses import ClauseChange, Clauses, ClauseStore, NewClause
from kbcore.logic.unrecorded_clauses import SessionClauses
from tests.support.repository.clauses import change, clause_store, new, texts
from tests.support.repository.project import Project

MOST = 20


@pytest.fixture(params=["branch", "session"])
def store(request: pytest.FixtureRequest, project: Project) -> ClauseStore:
    """A workspace of at most 20 clauses."""
    if request.param == "session":
        return SessionClauses(project.machine.clock, MOST)
    project.write({".kb/config.json": f'{{"logic": {{"maxClauses": {MOST}}}}}'})
    return clause_store(project, ClauseCache())


def test_an_empty_workspace_has_no_clauses_and_seq_0(store: ClauseStore) -> None:
    found = store.read()
    assert (found.seq, found.clauses, found.last_order) == (0, (), 0)


def test_added_clauses_are_read_as_they_were_given_in_the_order_of_the_plan(store: ClauseStore) -> None:
    given = [
        new("likes(ann, wine).", key="k1"),
        new(":- dynamic p/1.", key="k2", kind="directive", file="rules/a.pl", line=3),
        new("greet --> [hello], 'Zoë😀\\n'.", key="k3", file="/elsewhere/b.pl", line=70),
    ]
    done = store.change(lambda _: ClauseChange(given), message="three")
    found = store.read()
    assert [NewClause(one.text, one.key, one.name, one.kind, one.file, one.line) for one in found.clauses] == given
    assert tuple(one.id for one in found.clauses) == done.ids
    assert (done.seq, done.is_written, found.seq) == (1, True, 1)
    assert [one.order for one in found.clauses] == [1, 2, 3]


def test_two_clauses_of_the_same_text_are_two(store: ClauseStore) -> None:
    first = change(store, "p.", "p.")
    assert len({*first.ids}) == 2
    change(store, removed=first.ids[:1])
    assert [one.id for one in store.read().clauses] == [first.ids[1]]


def test_the_time_of_a_clause_is_that_of_its_record_in_milliseconds(store: ClauseStore, project: Project) -> None:
    before_ms = project.machine.clock.epoch_ns() // 10**6
    change(store, "p.")
    after_ms = project.machine.clock.epoch_ns() // 10**6
    [clause] = store.read().clauses
    assert before_ms <= clause.added_at <= after_ms


def test_order_numbers_of_removed_clauses_are_not_given_again(store: ClauseStore) -> None:
    done = change(store, "a.", "b.")
    change(store, removed=[done.ids[1]])
    change(store, "c.")
    assert [(one.text, one.order) for one in store.read().clauses] == [("a.", 1), ("c.", 3)]


def test_a_clause_can_be_replaced_in_one_change(store: ClauseStore) -> None:
    done = change(store, "a.", "b.")
    changed = change(store, "c.", removed=[done.ids[0]])
    assert changed.removed == done.ids[:1]
    assert texts(store.read()) == ["b.", "c."]


def test_an_empty_change_writes_nothing(store: ClauseStore) -> None:
    change(store, "a.")
    done = store.change(lambda _: ClauseChange())
    assert (done.is_written, done.ids, done.seq) == (False, (), 1)
    assert store.read().seq == 1


def test_a_plan_gets_the_present_clauses(store: ClauseStore) -> None:
    change(store, "a.", "b.")
    done = store.change(lambda now: ClauseChange(removed=[one.id for one in now.clauses if one.text == "a."]))
    assert len(done.removed) == 1
    assert texts(store.read()) == ["b."]


def test_a_change_above_the_limit_is_refused_whole_with_setting_and_numbers(store: ClauseStore) -> None:
    change(store, *(f"p({number})." for number in range(15)))
    with pytest.raises(LimitExceeded) as refused:
        change(store, *(f"q({number})." for number in range(6)))
    assert "has 15 clauses and would have 21" in refused.value.message
    assert "`logic.maxClauses` allows 20" in refused.value.message
    assert len(store.read().clauses) == 15
    change(store, *(f"q({number})." for number in range(5)))
    assert len(store.read().clauses) == 20


def test_what_a_change_removes_makes_room_for_what_it_adds(store: ClauseStore) -> None:
    done = change(store, *(f"p({number})." for number in range(20)))
    change(store, "q.", removed=done.ids[:1])
    assert len(store.read().clauses) == 20


@pytest.mark.parametrize("removed", [["clause:0000000000000000"], ["x", "y"]])
def test_an_unknown_id_is_refused_by_name(store: ClauseStore, removed: list[str]) -> None:
    change(store, "a.")
    with pytest.raises(NotFound, match=removed[0]):
        change(store, "b.", removed=removed)
    assert texts(store.read()) == ["a."]


def test_an_id_that_is_named_twice_is_refused(store: ClauseStore) -> None:
    done = change(store, "a.")
    with pytest.raises(InvalidChangeset, match="named twice"):
        change(store, removed=[*done.ids, *done.ids])


@pytest.mark.parametrize("text", ["a\0b.", "a('\ud800').", "a('" + "x" * 70_000 + "')."])
def test_a_text_that_cannot_be_kept_is_refused_with_its_place(store: ClauseStore, text: str) -> None:
    with pytest.raises(InvalidChangeset) as refused:
        change(store, "a.", text)
    assert [one.path for one in refused.value.details] == ["$.added[1].text"]
    assert store.read().clauses == ()


def test_threads_that_add_at_once_lose_nothing(store: ClauseStore) -> None:
    def add(name: str) -> None:
        for number in range(4):
            change(store, f"{name}({number}).")

    threads = [threading.Thread(target=add, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = store.read()
    assert sorted(texts(found)) == sorted(f"{name}({number})." for name in "abc" for number in range(4))
    assert [one.order for one in found.clauses] == list(range(1, 13))


def test_what_a_plan_raises_reaches_the_caller_and_nothing_is_written(store: ClauseStore) -> None:
    def plan(_: Clauses) -> ClauseChange:
        raise KeyError("x")

    with pytest.raises(KeyError):
        store.change(plan)
    assert store.read().seq == 0


def test_the_mark_of_an_import_is_no_clause_of_the_limit(store: ClauseStore) -> None:
    mark, clauses = new("", kind="import", file="a.pl"), [new(f"p({number}).") for number in range(MOST)]
    done = store.change(lambda _: ClauseChange([mark, *clauses]))
    assert len(done.ids) == MOST + 1
    with pytest.raises(LimitExceeded, match=f"has {MOST} clauses and would have {MOST + 1};"):
        change(store, "p(a).")
    store.change(lambda _: ClauseChange([new("p(a).")], done.ids[:2]))
    with pytest.raises(LimitExceeded, match=f"has {MOST} clauses and would have {MOST + 1};"):
        store.change(lambda _: ClauseChange([mark, new("p(b).")]))
