"""How tools are called: one key each, such as ``kb.query``, listed in one of two spellings and understood in both."""

from __future__ import annotations

import re
from typing import Final

from kbcore.remedies import worded

_PLACE: Final = re.compile(r"\{kb_([a-z]+)\}")


def spelled(key: str, *, is_dotted: bool) -> str:
    """Return the listed name of a tool."""
    return key if is_dotted else key.replace(".", "_")


def of_tools(text: str) -> str:
    """Return the mark of a text for clients alone, as ``in_words`` takes it, to be put into a remedy or a note."""
    return worded("", text)


def in_words(text: str, *, is_dotted: bool) -> str:
    """Return a text for clients, in which ``{kb_query}`` stands for the tool in the listed spelling."""
    return _PLACE.sub(lambda found: spelled(f"kb.{found[1]}", is_dotted=is_dotted), text)
