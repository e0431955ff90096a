"""The violations that stand are those of the last look at each of them, and every one comes and goes by name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbcore.rules import Violation
from kbcore.watch.violations import Ledger, ViolationChanges
from tests.support.generators.histories import laws

IDS = ("A", "B", "docs/a.md")


def violation(key: str, rule: str = "orphan", source: str = "") -> Violation:
    return Violation(rule, "warning", key, f"{key} is odd.", "", source, values=(source,))


def suspect(to_id: str, seq: int, source: str = "a.md", line: int = 0) -> Violation:
    message = f"A depends_on {to_id}, but {to_id} has changed at seq {seq}."
    return Violation("suspect-edge", "warning", "A", message, "", source, values=("depends_on", to_id), line=line)


_one = st.builds(violation, st.sampled_from(IDS), st.sampled_from(["orphan", "secret"]), st.sampled_from(["", "A"]))
_found = st.lists(_one, max_size=6)
_look = st.tuples(_found, st.none() | st.frozensets(st.sampled_from(IDS)))


@laws(100)
@given(st.lists(_look, max_size=6), _found)
def test_what_is_new_and_what_is_resolved_add_up_to_what_is_there(
    looks: list[tuple[list[Violation], object]], last: list[Violation]
) -> None:
    ledger, now_present = Ledger(), set[Violation]()
    for found, ids in [*looks, (last, None)]:
        changes = ledger.update(found, ids)
        assert len(set(changes.new)) == len(changes.new)
        assert not set(changes.new) & now_present
        assert set(changes.fixed) <= now_present
        now_present = (now_present - set(changes.fixed)) | set(changes.new)
        assert set(ledger.violations) == now_present
        assert set(found) <= now_present
    assert now_present == set(last)


def test_a_look_at_some_mends_nothing_of_others() -> None:
    ledger = Ledger()
    ledger.update([violation("A"), violation("B"), violation("C", source="A")])
    assert ledger.update([], {"A"}) == ViolationChanges((), (violation("A"),))
    assert ledger.violations == (violation("B"), violation("C", source="A")), (
        "A file that is looked at is not all it states"
    )
    assert ledger.update([violation("B"), violation("A")], {"A"}) == ViolationChanges((violation("A"),), ())
    ledger.clear()
    assert ledger.violations == ()
    assert ledger.update([violation("A")]) == ViolationChanges((violation("A"),), ())


def test_a_violation_whose_hint_changes_neither_comes_nor_goes() -> None:
    ledger = Ledger()
    old, new = (Violation("unresolved", "error", "A", "No B.", hint, "a.md") for hint in ("Nearest: C.", "Nearest: D."))
    ledger.update([old, violation("B")])
    assert ledger.update([new], {"A"}) == ViolationChanges((), ())
    assert set(ledger.violations) == {new, violation("B")}
    assert ledger.update([old, violation("B")]) == ViolationChanges((), ())
    assert ledger.violations == (old, violation("B"))


def test_a_violation_with_another_message_file_or_line_neither_comes_nor_goes() -> None:
    ledger = Ledger()
    ledger.update([suspect("B", 15)])
    for now in (suspect("B", 16), suspect("B", 16, "moved/a.md"), suspect("B", 16, "moved/a.md", 7)):
        assert ledger.update([now], {"A", "B"}) == ViolationChanges((), ())
        assert ledger.violations == (now,)
        assert ledger.update([now]) == ViolationChanges((), ())


def test_a_violation_of_what_was_renamed_neither_comes_nor_goes() -> None:
    ledger = Ledger()
    ledger.update([suspect("B", 15), violation("B")])
    now = [suspect("C", 15), violation("C")]
    assert ledger.names_not_found(now) == {"A", "depends_on", "B", ""}
    assert ledger.names_not_found(now, {"B"}) == {"B", ""}
    assert ledger.update(now, present={"B": "C"}) == ViolationChanges((), ())
    assert ledger.violations == tuple(now)


def test_of_two_violations_of_one_key_the_one_that_is_not_found_is_corrected() -> None:
    ledger = Ledger()
    first, second = suspect("B", 15, line=3), suspect("B", 15, line=9)
    ledger.update([first, second])
    assert ledger.update([second]) == ViolationChanges((), (first,))
    assert ledger.update([first, second]) == ViolationChanges((first,), ())
