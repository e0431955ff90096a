"""The memory of a run: conversations as a tree, in which a program goes back and forth.

Invariant: a node never changes. What a program has undone is a branch of the tree that no request of it follows.
"""

from __future__ import annotations

from typing import Any, Final

from kbcore.dml.model import Message
from kbcore.errors import ResourceLimit
from kbcore.limits import MAX_CONVERSATION_CHARS, MIB

ROOT = 0
"""The node of the empty conversation."""
_LEAST_CHARS: Final = 100
"""The tokens that a message counts beside its text and the arguments of its calls."""


class MessageTree:
    """A tree of messages. A node is a number and identifies the conversation that ends with it."""

    def __init__(self) -> None:
        self._parents = [ROOT]
        self._messages: list[Message | None] = [None]
        self._chars = 0

    def add(self, node: int, *messages: Message) -> int:
        """Return the node of a conversation that goes on with these messages.

        Raises:
            ResourceLimit: the messages of the run have more characters than they may.
        """
        for message in messages:
            self._chars += _LEAST_CHARS + len(message.text) + sum(_chars_of(call.arguments) for call in message.calls)
            if self._chars > MAX_CONVERSATION_CHARS:
                most = MAX_CONVERSATION_CHARS // MIB
                raise ResourceLimit(
                    f"The messages of the run have more than {most} MiB, those included that it has undone.",
                    hint="Let the program add fewer or shorter messages.",
                )
            self._parents.append(node)
            self._messages.append(message)
            node = len(self._messages) - 1
        return node

    def conversation(self, node: int) -> list[Message]:
        """Return the messages up to a node, the first one first."""
        found: list[Message] = []
        while (message := self._messages[node]) is not None:
            found.append(message)
            node = self._parents[node]
        return found[::-1]

    def fresh(self, node: int) -> int:
        """Return the node of a conversation that has the system messages of this one and nothing else."""
        return self.add(ROOT, *(message for message in self.conversation(node) if message.role == "system"))


def _chars_of(value: Any) -> int:
    """Return about how many characters a value of JSON has that is not nested too deeply."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + _chars_of(one) for key, one in value.items())
    return sum(map(_chars_of, value)) if isinstance(value, list) else 1
