"""The memory of a run is a tree: a node is the conversation up to it, and never changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbcore.dml.memory import ROOT, MessageTree
from kbcore.dml.model import Message


@given(st.lists(st.tuples(st.integers(0), st.lists(st.sampled_from(["system", "user", "assistant"]), max_size=3))))
def test_a_conversation_is_the_path_from_the_root_whatever_is_added_elsewhere(
    added: list[tuple[int, list[str]]],
) -> None:
    memory = MessageTree()
    nodes: list[tuple[int, list[Message]]] = [(ROOT, [])]
    for number, (at, roles) in enumerate(added):
        node, path = nodes[at % len(nodes)]
        messages = [Message(role, f"{number}") for role in roles]  # type: ignore[arg-type]
        nodes.append((memory.add(node, *messages), path + messages))
    for node, path in nodes:
        assert memory.conversation(node) == path
        assert memory.conversation(memory.fresh(node)) == [one for one in path if one.role == "system"]
