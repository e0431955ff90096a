"""Laws of undo, on real stores with random histories."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kbcore.errors import NotFound, RevertConflict
from kbcore.ids import link_id
from kbcore.model.graph import FORMER_IDS
from kbcore.model.inverse import differs, node_units
from kbcore.model.record import DropNode, Operation, PutNode, ReadSource, StateLink, WithdrawLink
from kbcore.model.renames import rename_ops
from kbcore.model.schema import CORE
from kbcore.model.state import State
from kbcore.store.history.undo import UndoOptions, revert_planner, rollback_planner
from kbcore.store.write_request import Request
from kbcore.view.history import changes_at, state_at
from tests.support.generators.histories import IDS, LINKS, content, laws, lines_of, records
from tests.support.repository.stores import AUTHOR, Stored

LAWS = laws(12)

_VERIFIED = ("verified_by", "", "A", "B")
_ABOUT = {"type": "relates_to", "kind": "about", "from_id": link_id(*_VERIFIED), "to_id": "é c", "base": 0}
BARE_EDGE_OF_OTHER_TYPES = [
    [PutNode(id=key, base=0, set={"type": "req", "title": key}) for key in IDS],
    [StateLink(type="verified_by", kind="", from_id="A", to_id="B", base=0, src="docs/a.md", said="A")],
    [StateLink(**_ABOUT)],
    [WithdrawLink(**_ABOUT), DropNode(id="B", base=0)],
]
"""A bare link that is not the edge which the types of its ends mean now, and an edge about it."""


@contextmanager
def stored(history: list[list[Operation]]) -> Iterator[Stored]:
    with tempfile.TemporaryDirectory() as folder:
        made = Stored(Path(folder))
        for ops in history:
            made.commit(ops)
        yield made
        made.close()


def now(made: Stored) -> State:
    view = made.view()
    return state_at(view, view.seq)


def rolled_back(made: Stored, seq: int) -> State:
    made.store.commit(AUTHOR, Request(), rollback_planner(seq), branch="main")
    return now(made)


def reverted(made: Stored, *seqs: int, force: bool = False) -> State:
    """Return the state after a revert; of records that only noted files it is refused, and the state is as it was."""
    try:
        made.store.commit(AUTHOR, Request(), revert_planner(seqs, CORE, UndoOptions(force=force)), branch="main")
    except NotFound as error:
        assert "only what is known of files" in error.message  # noqa: PT017 - which records are refused is random
    return now(made)


@LAWS
@given(records(), st.data())
def test_a_rollback_leads_to_the_state_of_that_seq_and_the_journal_only_grows(history, data) -> None:
    with stored(history) as made:
        head = made.view().seq
        target = data.draw(st.integers(0, head))
        past = [lines_of(state_at(made.view(), seq)) for seq in range(head + 1)]
        lines = (made.directory / "journal-0000000001.jsonl").read_bytes()
        assert content(rolled_back(made, target)) == content(state_at(made.view(), target))
        view = made.view()
        assert head <= view.seq <= head + 1
        assert (made.directory / "journal-0000000001.jsonl").read_bytes().startswith(lines)
        assert [lines_of(state_at(view, seq)) for seq in range(head + 1)] == past
        rebuilt = made.store.view_until(view.seq)
        assert lines_of(state_at(rebuilt, view.seq)) == lines_of(now(made))
        rebuilt.close()
        assert content(rolled_back(made, head)) == content(state_at(made.view(), head))


@LAWS
@given(records())
@example(BARE_EDGE_OF_OTHER_TYPES)
@example([*BARE_EDGE_OF_OTHER_TYPES[:3], [DropNode(id="B", base=0)]])
def test_reverting_the_last_record_undoes_it_whole_and_reverting_that_brings_it_back(history) -> None:
    with stored(history) as made:
        head = made.view().seq
        if head == 0:
            return
        before = content(state_at(made.view(), head - 1), with_files=False)
        after = content(now(made), with_files=False)
        assert content(reverted(made, head), with_files=False) == before
        if made.view().seq == head + 1:
            assert content(reverted(made, head + 1), with_files=False) == after


@LAWS
@given(records(), st.integers(0, 7))
@example(BARE_EDGE_OF_OTHER_TYPES, 1)
def test_reverting_the_last_records_together_is_going_back_before_them(history, more) -> None:
    with stored(history) as made:
        head = made.view().seq
        if head == 0:
            return
        first = max(1, head - more)
        before = content(state_at(made.view(), first - 1), with_files=False)
        assert content(reverted(made, *range(first, head + 1)), with_files=False) == before


@LAWS
@given(records(), st.integers(0, 7))
@example(BARE_EDGE_OF_OTHER_TYPES, 0)
@example(BARE_EDGE_OF_OTHER_TYPES, 1)
def test_reverting_the_last_records_is_never_refused_whatever_stood_before_them(history, more) -> None:
    with stored(history) as made:
        head = made.view().seq
        if head:
            reverted(made, *range(max(1, head - more), head + 1))


@LAWS
@given(records(), st.data())
def test_a_forced_revert_puts_every_field_of_an_entity_back_that_the_record_changed(history, data) -> None:
    with stored(history) as made:
        head = made.view().seq
        if head == 0:
            return
        seq = data.draw(st.integers(1, head))
        changes, then = changes_at(made.view(), seq), now(made)
        if not (changes.nodes or changes.links):
            return  # it only noted files, and is refused
        state = reverted(made, seq, force=True)
        for change in changes.nodes:
            before, after = node_units(change.before), node_units(change.after)
            names = {name for name in before.keys() | after.keys() if differs(before.get(name), after.get(name))}
            units, were = node_units(state.nodes.get(change.key)), node_units(then.nodes.get(change.key))
            if change.before is None:
                assert change.key not in state.nodes
                continue
            if change.key not in then.nodes:
                assert units == (before if names else {}), "what was removed since comes back as it was"
                continue
            for name in names:
                found, old, new = units.get(name), before.get(name), after.get(name)
                # Value and who states it are undone each by itself, where the record changed it: another file may
                # state it since, and a value that the record left alone may have been removed.
                if old is None or new is None:
                    assert found == old
                elif differs(old[0], new[0]):
                    assert (found[0] == old[0]) if old[1] == new[1] else (found == old)
                else:
                    assert found is None if name not in were else found[1] == old[1]


@LAWS
@given(records(), st.data())
def test_after_an_undo_every_file_that_owns_a_fact_is_noted(history, data) -> None:
    with stored(history) as made:
        head = made.view().seq
        if head == 0:
            return
        before = now(made)
        try:
            state = reverted(made, data.draw(st.integers(1, head)), force=True)
        except NotFound:
            assert made.view().seq == head, "a record of files alone is refused"
            return
        assert owners(state) - owners(before) <= state.sources.keys()


RENAMED = "Z"
NAMES = {"A": RENAMED}
"""Each key that changes with the id of A, with the later one."""
for _name, _kind, _begin, _end in LINKS:
    NAMES[link_id(_name, _kind, _begin, _end)] = link_id(_name, _kind, NAMES.get(_begin, _begin), NAMES.get(_end, _end))
_EDGES = NAMES.keys() - {"A"}


def with_later_id(op: Operation) -> Operation:
    """Return an operation on A, or on what has it as an end, as one on what A is renamed to."""
    changed: dict[str, Any] = {
        name: NAMES[value] for name in ("id", "from_id", "to_id", "said") if (value := getattr(op, name, None)) in NAMES
    }
    if isinstance(op, PutNode) and op.id == op.set.get("name") == "A":  # a name that is the id is none
        changed["set"] = {**op.set, "name": RENAMED}
    return msgspec.structs.replace(op, **changed)


def has_edge_about_none(made: Stored) -> bool:
    """Tell whether an edge, now or earlier, is about an edge that is not there: a rename leaves the id of that."""
    states = (state_at(made.view(), seq) for seq in range(made.view().seq + 1))
    return any(
        end in _EDGES and end not in state.links
        for state in states
        for link in state.links.values()
        for end in (link.from_id, link.to_id)
    )


def makes_again(record: Sequence[Operation]) -> bool:
    """Tell whether a record removes A and makes it again: of a renamed entity, that takes the former ids away."""
    is_dropped = False
    for op in record:
        is_dropped |= isinstance(op, DropNode) and op.id == "A"
        if is_dropped and isinstance(op, PutNode) and op.id == "A":
            return True
    return False


def renaming(state: State) -> list[Operation]:
    """Return the operations that rename A; none where it does not exist."""
    node = state.nodes.get("A")
    if node is None:
        return []
    fields, owners = {**node.fields, FORMER_IDS: ["A"]}, {**node.owners, FORMER_IDS: node.path}
    owners = {name: owner for name, owner in owners.items() if owner}
    return rename_ops(state, node, msgspec.structs.replace(node, id=RENAMED, fields=fields, owners=owners))


def as_if_renamed(state: State) -> State:
    """Return a state in which A has the later id, as if it had had it from the start; without former ids."""
    links = [
        msgspec.structs.replace(
            link,
            id=link_id(link.type, link.kind, NAMES.get(link.from_id, link.from_id), NAMES.get(link.to_id, link.to_id)),
            from_id=NAMES.get(link.from_id, link.from_id),
            to_id=NAMES.get(link.to_id, link.to_id),
            statements=tuple(
                msgspec.structs.replace(one, said=NAMES.get(one.said, one.said)) for one in link.statements
            ),
        )
        for link in state.links.values()
    ]
    nodes = []
    for node in state.nodes.values():
        # A name that is the id is none, and the earlier id may have been given as a name.
        left_out = {FORMER_IDS} | ({"name"} if node.fields.get("name") in {"A", RENAMED} else set())
        fields = {name: value for name, value in node.fields.items() if name not in left_out}
        owners = {name: owner for name, owner in node.owners.items() if name not in left_out}
        key = NAMES.get(node.id, node.id)
        nodes.append(msgspec.structs.replace(node, id=key, fields=fields, owners=owners))
    return State(nodes, links)


def undone_content(made: Stored, seqs: list[int], *, force: bool) -> list[bytes] | list[tuple[object, ...]]:
    """Return what a revert leads to with the later id, or what prevents it."""
    try:
        return content(as_if_renamed(reverted(made, *seqs, force=force)), with_files=False)
    except RevertConflict as error:
        found = error.as_json()["conflicts"]
        return [(len(error.details), *sorted((one["seq"], one["change"], one.get("field", "")) for one in found))]


@LAWS
@given(records(bare=False), records(max_size=4, bare=False), st.data(), st.booleans())
def test_a_revert_across_a_rename_is_the_revert_without_it_but_for_the_id(before, after, data, force) -> None:
    nothing = [ReadSource(path="docs/other.md", hash="3" * 64, extractor="markdown", base=0)]
    with stored(before) as plain, stored(before) as other:
        ops = renaming(now(other))
        assume(ops)
        assume(not any(map(makes_again, after)) and not has_edge_about_none(plain))
        plain.commit(nothing)
        at = plain.view().seq
        other.commit(ops)
        for record in after:
            plain.commit(record)
            other.commit([with_later_id(op) for op in record])
        assert content(as_if_renamed(now(other)), with_files=False) == content(
            as_if_renamed(now(plain)), with_files=False
        )
        seqs = [seq for seq in range(1, plain.view().seq + 1) if seq != at]
        chosen = data.draw(st.lists(st.sampled_from(seqs), min_size=1, max_size=3, unique=True))
        assert undone_content(other, chosen, force=force) == undone_content(plain, chosen, force=force)


@LAWS
@given(records(bare=False), records(max_size=4, bare=False))
def test_the_revert_of_a_rename_keeps_what_came_after_it_under_the_earlier_id(before, after) -> None:
    with stored(before) as made:
        ops = renaming(now(made))
        assume(ops and not has_edge_about_none(made))
        made.commit(ops)
        at = made.view().seq
        for record in after:
            made.commit([with_later_id(op) for op in record])
        expected = now(made)
        assume("Z" in expected.nodes)
        assert content(as_if_renamed(reverted(made, at)), with_files=False) == content(
            as_if_renamed(expected), with_files=False
        )
        assert RENAMED not in now(made).nodes


def test_the_revert_of_a_rename_leaves_an_edge_about_an_edge_that_is_withdrawn_since() -> None:
    edge = StateLink(type="depends_on", from_id="A", to_id="B", base=0)
    about = StateLink(type="relates_to", from_id=link_id("depends_on", "", "A", "B"), to_id="B", base=0, kind="about")
    nodes = [PutNode(id=key, base=0, set={"type": "req", "title": key}) for key in ("A", "B")]
    with stored([nodes, [edge], [about]]) as made:
        made.commit(renaming(now(made)))
        at = made.view().seq
        made.commit([WithdrawLink(type="depends_on", from_id=RENAMED, to_id="B", base=0)])
        [left] = reverted(made, at).links.values()
        assert (left.from_id, left.is_resolved) == (about.from_id, False)


def owners(state: State) -> set[str]:
    files = {owner for node in state.nodes.values() for owner in node.owners.values()}
    return files | {one.src for link in state.links.values() for one in link.statements if one.src}
