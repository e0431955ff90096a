"""The estimate of how many tokens of a language model a text takes. Pure.

No model is asked: four characters count as one token, whatever the language. Every budget in tokens is counted by it.
"""

from __future__ import annotations

from typing import Final

CHARS_PER_TOKEN: Final = 4


def tokens_of(text: str) -> int:
    """Return how many tokens a text is estimated to take, a begun one included."""
    return -(-len(text) // CHARS_PER_TOKEN)


def chars_of(tokens: int) -> int:
    """Return how many characters a text of so many tokens has at most."""
    return tokens * CHARS_PER_TOKEN
