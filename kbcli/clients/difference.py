"""The difference that a write makes in a client's file, for a person to read. Pure.

Nothing that is in both texts is shown, not even on a line with a change: clients keep keys and
tokens in these files. Only the key right before a changed value is there, to say what was changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kbcore.text.token_diff import Stretch, shared_length, stretches

_TOKENS: Final = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|\w+|.", re.DOTALL)
_SEEN: Final = re.compile(r"\S(?:[^\n]*\S)?")
_KEY: Final = re.compile(r"(?:\"[^\"\n]*\"|[\w-]+)[ \t]*[:=][ \t]*\Z")
_HIDDEN: Final = "…"
_REPEATED: Final = re.compile(f"{_HIDDEN}{{2,}}")
_KEY_CHARS: Final = 200


def diff_lines(path: str, before: str | None, after: str) -> list[str]:
    """Return what is taken out and put in, as lines of a unified diff with one hunk; none where nothing changes.

    ``before`` is None for a file that is not there. What was left out of a line is a ``…`` in it, and lines of which
    nothing is left are not there.
    """
    old, new = _TOKENS.findall(before or ""), _TOKENS.findall(after)
    start = shared_length(old, new)
    end = shared_length(old[start:][::-1], new[start:][::-1])
    olds, news = old[start : len(old) - end], new[start : len(new) - end]
    if not olds and not news:
        return []
    beginning, ending = "".join(old[:start]), "".join(old[len(old) - end :])
    head, tail = _hidden(beginning.rpartition("\n")[2]), _hidden(ending.partition("\n")[0])
    sides = stretches(olds, news, autojunk=True)
    removed, added = (_lines(f"{head}{_shown(side)}{tail}") for side in sides or ())
    line = beginning.count("\n") + 1
    name = "/dev/null" if before is None else path
    where = f"@@ -{_range(line, removed)} +{_range(line, added)} @@"
    return [f"--- {name}", f"+++ {path}", where, *(f"-{one}" for one in removed), *(f"+{one}" for one in added)]


def _shown(side: Sequence[Stretch]) -> str:
    """Return what is on one side, with what is on both hidden."""
    return "".join(_hidden(text) if is_shared else text for text, is_shared in side)


def _hidden(text: str) -> str:
    """Return a text of which only the lines, their indents and a key at the end can be seen."""
    key = _KEY.search(text[-_KEY_CHARS:])
    kept = key[0] if key else ""
    return _SEEN.sub(_HIDDEN, text[: len(text) - len(kept)]) + kept


def _lines(text: str) -> list[str]:
    lines = (_REPEATED.sub(_HIDDEN, line.rstrip("\r")) for line in text.split("\n"))
    return [line for line in lines if line.strip(f" \t{_HIDDEN}")]


def _range(line: int, lines: Sequence[str]) -> str:
    """Return the lines of one side as a hunk names them."""
    return f"{line if lines else line - 1},{len(lines)}"
