"""A remedy: a text in which commands are data, so that each front end names them in its own words.

``kb("log", "REQ-1")`` returns a mark that is put into the text as any other piece is. A mark holds a ``Command`` as
JSON between two control characters, which neither ids nor quoted text contain (``text.escaping``). ``shown`` returns
the text with the marks as commands for a shell; ``said`` lets a caller choose the words. No front end reads a command
out of a sentence.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Final, Literal

import msgspec

from kbcore.secrets import masked

Lead = Literal["", "Run", "run", "See", "see"]

_BEGIN: Final = "\x02"
_END: Final = "\x03"
_REST: Final = "…"
_IN_WORKTREE: Final = "in a worktree of the repository"
# fmt: off
_OF_BRANCH: Final = frozenset({
    "apply", "check", "confirm", "coverage", "delete", "diff", "export", "fetch", "graph", "impact", "kip", "link",
    "log", "new", "prime", "push", "query", "rename", "revert", "rollback", "set", "show", "status", "unlink",
})
# fmt: on
"""Commands that read or write the branch that is checked out, or the one of ``--branch``."""


HELP_TOPICS: Final[dict[tuple[str, str], str]] = {
    ("doctor", "--new-epoch"): "new-epoch",
    ("doctor", "--salvage"): "salvage",
    ("doctor", "--rebuild-head"): "rebuild-head",
    ("doctor", "--even-damaged"): "even-damaged",
    ("branch", "--even-damaged"): "even-damaged",
    ("compact", "--prune-before"): "prune",
    ("gc", "--empty-trash"): "empty-trash",
    ("redact", "--yes"): "redaction",
    **{(name, "--force"): "force" for name in ("backup", "dml", "export", "report", "revert")},
}
"""By command and option: the topic of ``kb help`` on what loses data or overrides a refusal.

No message spells such a command out: whoever reads one, such as an agent, might run it without a second thought.
"""
_encode: Final = msgspec.json.Encoder().encode


class EdgeWords(msgspec.Struct, frozen=True, array_like=True):
    """The arguments that name an edge for the tools, which know no ids of edges."""

    type: str
    from_id: str
    to_id: str
    kind: str = ""


class Command(msgspec.Struct, frozen=True, array_like=True):
    """A call of ``kb``: its name and the words after it, not quoted; ``lead`` is the verb before it, if any.

    ``place`` is where it has to be run, in words, "" where that is the place of the one who reads it. ``branch`` is the
    branch that it is for, "" for the one that is checked out. ``edge`` says for tools which edge an id among the words
    is of.
    """

    name: str
    args: tuple[str, ...] = ()
    lead: Lead = ""
    place: str = ""
    branch: str = ""
    edge: EdgeWords | None = None

    def words(self) -> str:
        """Return the command as it is typed. A ``…`` that ends a word means what a person chooses."""
        branch = ["--branch", shlex.quote(self.branch)] if self.branch else []
        return " ".join(["kb", self.name, *map(_word, self.args), *branch])

    @property
    def topic(self) -> str:
        """Return the topic of help that replaces the command in messages, "" where it is spelled out."""
        return next((topic for one in self.args if (topic := HELP_TOPICS.get((self.name, one)))), "")

    def shown(self) -> str:
        """Return the command with its verb, for people at a shell; one that has a help topic is not spelled out."""
        if self.topic:
            named = dict(zip(self.args, self.args[1:], strict=False)).get("--branch", self.branch)
            place = f"for the branch {shlex.quote(named)}" if named else ""
            return " ".join(filter(None, [self.lead, f"what `kb help {self.topic}` describes", place, self.place]))
        return f"{self.lead} `{self.words()}` {self.place}".strip()


def _word(text: str) -> str:
    start = text.removesuffix(_REST)
    is_open = start != text and (not start or shlex.quote(start) == start)
    return text if is_open else shlex.quote(text)


class Wording(msgspec.Struct, frozen=True, array_like=True):
    """Words that differ between the command line and the tools, such as the names of options."""

    shell: str
    tools: str


class Referral(msgspec.Struct, frozen=True, array_like=True):
    """A sentence that refers to ``kb doctor``, whose own findings go without it; it may hold marks."""

    text: str


Part = Command | Wording

_decoders: Final[dict[str, Callable[[str], Command | Wording | Referral]]] = {
    "C": msgspec.json.Decoder(Command).decode,
    "W": msgspec.json.Decoder(Wording).decode,
    "R": msgspec.json.Decoder(Referral).decode,
}


def kb(name: str, *args: str | int, lead: Lead = "") -> str:
    """Return the mark of a command. What looks like a secret in its words is masked."""
    return _mark(Command(name, tuple([masked(str(one)) for one in args]), lead))


def decision(key: str, field: str, taken: str, edge: EdgeWords | None = None) -> str:
    """Return the mark of a command that decides a conflict; ``edge`` is that of the id ``key``, None for an entity."""
    return _mark(Command("resolve", (key, field, "--take", taken), edge=edge))


def _mark(one: Part | Referral) -> str:
    kind = "C" if isinstance(one, Command) else "W" if isinstance(one, Wording) else "R"
    return f"{_BEGIN}{kind}{_encode(one).decode()}{_END}"


def located(text: str, *, has_worktree: bool, branch: str = "") -> str:
    """Return a text whose commands concern what was asked for.

    In a bare repository `kb sync` has no files to read. ``branch`` is the one that was asked for, where that is not the
    one that is checked out: `kb sync` reads the files of that one, and other commands have to name the branch.
    """
    if (has_worktree and not branch) or _BEGIN not in text:
        return text
    place = f"with {branch} checked out (`git switch {shlex.quote(branch)}`)" if has_worktree else _IN_WORKTREE

    def placed(one: str | Part | Referral) -> str:
        if isinstance(one, Command) and one.name == "sync":
            one = msgspec.structs.replace(one, place=place)
        elif isinstance(one, Command) and one.name in _OF_BRANCH and "--branch" not in one.args:
            one = msgspec.structs.replace(one, branch=branch)
        return one if isinstance(one, str) else _mark(one)

    return "".join(map(placed, parts_of(text)))


def shell(name: str, *args: str | int, lead: Lead = "") -> str:
    """Return a command in the words of the command line, for a text that only that shows."""
    return Command(name, tuple(map(str, args)), lead).shown()


def brought_back(begin: str = "") -> str:
    """Return how a store without its records gets what else holds them; ``begin`` is the first word."""
    both = f"{shell('sync')} brings back what files hold, and {shell('fetch')} what was pushed by {shell('push')}."
    return f"{begin} {both}".strip()


def by_front_end(shell: str, tools: str) -> str:
    """Return the mark of words that differ; in those for the tools ``{kb_query}`` means the name of a tool."""
    return _mark(Wording(shell, tools))


def referral(text: str) -> str:
    """Return the mark of a sentence that refers to ``kb doctor``."""
    return _mark(Referral(text))


def without_referrals(text: str) -> str:
    """Return a remedy without its referrals; other marks stay."""
    pieces = text.split(_BEGIN)
    kept = [piece.partition(_END)[2] if piece.startswith("R") else f"{_BEGIN}{piece}" for piece in pieces[1:]]
    return "".join([pieces[0], *kept]).strip()


def render(text: str, say: Callable[[Part], str]) -> str:
    """Return a text with each mark in it in the words of ``say``."""
    if _BEGIN not in text:
        return text
    return "".join(
        part if isinstance(part, str) else render(part.text, say) if isinstance(part, Referral) else say(part)
        for part in parts_of(text)
    )


def for_shell(text: str) -> str:
    """Return a text in the words of the command line."""
    return render(text, lambda part: part.shown() if isinstance(part, Command) else part.shell)


def parts_of(text: str) -> Iterator[str | Part | Referral]:
    """Yield the pieces of a text and the marks between them. What only looks like a mark is text."""
    first, *rest = text.split(_BEGIN)
    yield first
    for piece in rest:
        mark, _, after = piece.partition(_END)
        try:
            yield _decoders[mark[:1]](mark[1:])
        except (KeyError, msgspec.DecodeError):
            yield f"{_BEGIN}{piece}"
            continue
        yield after
