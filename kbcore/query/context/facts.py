"""A fact as an agent is shown it, in the shortest form: the statement first, then id, type, status, tie and origin.

Pure. ``as_json`` is one member of a list of an answer, ``as_line`` one line of a text; both say the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kbcore.model.graph import CONTESTED, PROPOSED
from kbcore.model.schema import TASK
from kbcore.model.statuses import CLOSED, RETIRED, is_status
from kbcore.query.walk import AGAINST
from kbcore.text.escaping import escape_controls
from kbcore.text.wording import pluralize

STALE: Final = "stale"
FAILING: Final = "failing"
_NOT_ACCEPTED: Final = ("draft", "proposed")
"""The first words of statuses of what nobody has accepted yet."""
_STATEMENT_CHARS: Final = 160
"""The most characters of a statement: the title, and what the first sentence adds to it."""
_ID_CHARS: Final = 80
_SHORT_CHARS: Final = 60
"""The most characters of a status, a type, a tie, an actor and a source."""
_SENTENCE: Final = re.compile(r"(.+?[.!?])(?:\s|$)", re.DOTALL)
_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_NO_PROSE: Final = re.compile(r"\s*(?:#|\||<|!\[|---|===|>|$)")
_LIST_SIGN: Final = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_MARKUP: Final = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}")
_WORD: Final = re.compile(r"\w+")


OF_FILE: Final = "file"
"""The tie of a note or a task that names the file that was asked for."""


class Tie(msgspec.Struct, frozen=True):
    """The way a fact is tied to what was asked for, ``steps`` edges away.

    ``edge`` is the type, with the kind after a colon; ``is_against`` means that the edge leads from the fact to
    ``near``. ``near`` is "" where the edge is at what was asked for itself. Of what was asked for itself, ``near`` is
    the file that was asked for, and ``edge`` how it has changed.
    """

    edge: str = ""
    is_against: bool = False
    near: str = ""
    steps: int = 1
    is_proposed: bool = False
    """Nobody has accepted the edge."""

    def as_text(self, source: str = "") -> str:
        """Return it as ``implements``, or ``^guards`` against the edge, after the near end where that is not known.

        ``source`` is the source that is shown as well, and not repeated.
        """
        name = f"{AGAINST}{self.edge}" if self.is_against else self.edge
        mark = f"({PROPOSED})" if self.is_proposed else ""
        return " ".join(filter(None, ("" if self.near == source else self.near, name, mark)))


class Fact(msgspec.Struct, frozen=True):
    """An entity as a fact. ``version`` is the seq that last changed it; ``path`` the file that states it, "" for none.

    ``by`` is who wrote it and ``source`` through what, or the file; ``at`` the day of its last change.
    """

    id: str
    type: str
    title: str
    status: str
    tie: Tie
    path: str = ""
    by: str = ""
    source: str = ""
    at: str = ""
    version: int = 0
    marks: tuple[str, ...] = ()
    detail: str = ""
    """The first sentence of its document, where it says more than the title."""

    @property
    def is_retired(self) -> bool:
        """Return whether its status takes it out of service; a task that is done is."""
        return is_status(self.status, CLOSED if self.type == TASK else RETIRED)

    @property
    def is_accepted_and_fresh(self) -> bool:
        """Return whether nothing is known that casts doubt on it: for what is said unasked."""
        is_draft = is_status(self.status, _NOT_ACCEPTED)
        return not (is_draft or self.is_retired or self.tie.is_proposed or {PROPOSED, STALE, CONTESTED} & {*self.marks})

    @property
    def is_start(self) -> bool:
        """Return whether it is what was asked for itself."""
        return self.tie.steps == 0

    @property
    def statement(self) -> str:
        """Return what it says, in one line."""
        title = " ".join(self.title.split()) or self.id
        said = f"{title.rstrip('.:')}: {self.detail}" if self.detail else title
        return _cut(said, _STATEMENT_CHARS)

    def as_json(self) -> dict[str, Any]:
        """Return the members that are set."""
        shown: dict[str, Any] = {
            "fact": self.statement,
            "id": _cut(self.id, _ID_CHARS),
            "type": _cut(self.type, _SHORT_CHARS),
            "status": _cut(self.status, _SHORT_CHARS),
            "tie": _cut(self.tie.as_text(self.source), _ID_CHARS),
            "by": _cut(self.by, _SHORT_CHARS),
            "source": _cut(self.source, _ID_CHARS),
            "at": self.at,
            "marks": list(self.marks),
        }
        return {name: value for name, value in shown.items() if value}

    def as_line(self) -> str:
        """Return it as one line of text, with control characters as escapes."""
        shown = self.as_json()
        about = " ".join(shown[name] for name in ("id", "type", "status") if name in shown)
        origin = " ".join(shown[name] for name in ("by", "source", "at") if name in shown)
        marks = f" [{', '.join(self.marks)}]" if self.marks else ""
        said = "; ".join(filter(None, (about, shown.get("tie", ""), origin)))
        return escape_controls(f"- {shown['fact']} ({said}){marks}")


def marks_of(*, is_proposed: bool, is_stale: bool, is_contested: bool) -> tuple[str, ...]:
    """Return the marks of an entity, in a fixed order. The status says of itself that something is a draft."""
    found = {PROPOSED: is_proposed, STALE: is_stale, CONTESTED: is_contested}
    return tuple(name for name, holds in found.items() if holds)


def first_sentence(body: str, title: str) -> str:
    """Return the first sentence of the prose of a document, "" where it says no more than the title."""
    paragraph, is_code = list[str](), False
    for line in body.splitlines():
        is_fence = _FENCE.match(line) is not None
        is_code ^= is_fence
        if not (is_code or is_fence or _NO_PROSE.match(line)):
            paragraph.append(_LIST_SIGN.sub("", line, count=1).strip())
        elif paragraph:
            break
    prose = _MARKUP.sub("", " ".join(paragraph)).strip()
    found = _SENTENCE.match(prose)
    sentence = found[1] if found else prose
    return sentence if _words(sentence) - _words(title) else ""


def counted_line(omitted: Mapping[str, int]) -> str:
    """Return in words what is left out, "" where nothing is."""
    said = ", ".join(pluralize(number, kind) for kind, number in omitted.items() if number)
    return f"Left out: {escape_controls(said)}." if said else ""


def _words(text: str) -> set[str]:
    return {one.lower() for one in _WORD.findall(text)}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
