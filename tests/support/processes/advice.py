"""The commands that an advice means: those that it names, and those whose topic of help it names."""

from __future__ import annotations

import re
from typing import Final

_TOPIC: Final = re.compile(
    r"what\s+`kb help ([a-z-]+)`\s+describes(?:\s+for\s+the\s+branch\s+(\S+?)(?=[.,;:)]*(?:\s|$)))?"
)
_COMMANDS: Final = {
    "new-epoch": "doctor --new-epoch",
    "salvage": "doctor --salvage",
    "rebuild-head": "doctor --rebuild-head",
    "even-damaged": "branch restore --even-damaged",
}


def spelled_out(advice: str) -> str:
    """Return an advice with the commands that its topics of help describe; a person confirms them by ``--yes``."""

    def command(found: re.Match[str]) -> str:
        words = _COMMANDS.get(found[1])
        if words is None:
            return found[0]
        return f"`kb {words} --branch {found[2]}`" if found[2] else f"`kb {words}`"

    return _TOPIC.sub(command, advice)
