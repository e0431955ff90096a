"""Numbers of things in words, wherever one is told of: ``1 file``, ``2 files``. Pure."""

from __future__ import annotations

import re
from typing import Final

_TO_IES: Final = re.compile(r"(?<=[^aeiou])y$")
_HISSING: Final = ("ch", "s", "sh", "x")


def counted(number: int, noun: str) -> str:
    """Return ``1 file``, ``2 files`` or ``2 more entities``; ``noun`` is one of them, with the words before it."""
    if number == 1:
        return f"1 {noun}"
    plural = _TO_IES.sub("ies", noun)
    return f"{number} {plural}{'' if plural != noun else 'es' if noun.endswith(_HISSING) else 's'}"
