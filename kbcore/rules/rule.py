"""A rule: a question to the view whose answers are findings. Plain data.

A rule reads and never writes, says the same about the same state, and takes one or two statements however large
the graph is: nothing is asked entity by entity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import msgspec

from kbcore.errors.remedies import kb
from kbcore.model.schema import Schema
from kbcore.rules.elsewhere import KnownReferences
from kbcore.text.wording import some_of
from kbcore.view.tables import Rows

if TYPE_CHECKING:
    from kbcore.rules.look_ups import Look

Severity = Literal["error", "warning"]

MAX_SHOWN: Final = 10
"""The most names of one kind in a finding."""

_FILES_SHOWN: Final = 3
_DIGITS: Final = re.compile(r"\d+")
_WIDEST: Final = 20


class SqlSandbox(Protocol):
    """A place for SQL that is not KB's own: it reaches the tables that are named, and nothing else."""

    def rows(
        self,
        sql: str,
        params: Sequence[Any] | Mapping[str, Any] = (),
        *,
        tables: Iterable[str] = (),
        time_s: float | None = None,
    ) -> list[tuple[Any, ...]]:
        """Answer one statement over these relations, within its time or the usual one. Raises: ``SqlRefused``."""


class PrologFile(msgspec.Struct, frozen=True):
    """A file of rules in Prolog: its path and text, and the line of each rule that it states, by its id."""

    path: str
    text: str
    rules: dict[str, int]


class PrologViolation(msgspec.Struct, frozen=True):
    """A violation as a rule in Prolog gives it."""

    id: str
    message: str
    severity: Severity


class PrologRules(Protocol):
    """A place for Prolog that is not KB's own: a file is loaded by itself, and reaches KB's graph and nothing else."""

    def violations(self, file: PrologFile, rule: str) -> list[PrologViolation]:
        """Return the different violations of a rule of a file.

        Raises: ``InvalidQuery`` with file and line when the file or the rule cannot be used, a limit was hit, or there
        is no engine.
        """


class BranchFiles(Protocol):
    """The files of the branch that is checked."""

    def missing(self, paths: Collection[str]) -> set[str]:
        """Return those of these paths, from the root, at which there is neither file nor folder of the repository.

        Raises: ``NotApplicable`` when the branch has no files that could be looked at.
        """


class NotApplicable(Exception):
    """The reason why a rule does not apply to this branch, as a sentence; that is no failure."""


Creations = Callable[[Collection[str]], Mapping[str, Sequence[tuple[str, str]]]]
"""Returns, of those of some ids under which several changes created entities, what names each, and who made it."""


class RuleContext(msgspec.Struct, frozen=True):
    """The input of rules. With ``ids``, only what concerns one of these is reported.

    ``rows`` asks the whole branch; ``around``, where it is available, what is around ``ids`` alone. Rules of the
    project's own run in ``sandbox``, those in Prolog in ``prolog``, or not at all. ``tree`` holds the files of the
    branch.
    """

    rows: Rows
    schema: Schema
    ids: frozenset[str] | None = None
    sandbox: SqlSandbox | None = None
    tree: BranchFiles | None = None
    around: Rows | None = None
    prolog: PrologRules | None = None
    now_s: Callable[[], float] = lambda: 0.0
    """A clock for saying which rule took how long."""
    creations: Creations = lambda _: {}
    """Entities that several changes created under one id."""
    elsewhere: KnownReferences | None = None
    """The known references of other repositories, None where the repository belongs to no fleet."""
    with_proposals: RuleContext | None = None
    """The same with what is only proposed, where there is any: it is left out of this one."""

    @property
    def near(self) -> Rows:
        """Ask for rules that look at an entity, its links and what these lead to, and at nothing beyond.

        With ``ids`` they may find too much of what is around these, which is not reported; ``main.node`` means all
        nodes at any time, ``main.link`` all links.
        """
        return self.around or self.rows


class OtherSide(msgspec.Struct, frozen=True):
    """The place in another revision that a finding is about as well; ``line`` is 0 where it is not known."""

    ref: str
    source: str
    line: int


class Finding(msgspec.Struct, frozen=True):
    """One thing that breaks a rule. ``source`` is the file to edit, "" where no file states it.

    ``concerns`` are further ids for which this is shown when only some were asked for. ``code``, ``field`` and
    ``values`` say without words what is wrong: of which kind it is where the rule finds several, the field, and the
    values and other ids, without ``id`` itself.
    """

    id: str
    message: str
    remedy: str = ""
    source: str = ""
    concerns: frozenset[str] = frozenset()
    code: str = ""
    field: str = ""
    values: tuple[str, ...] = ()
    line: int = 0
    """The line of ``source``, counted from 1, where the rule knows it; 0 where what the file states now gives it."""
    is_minor: bool = False
    """It is a warning even where the rule finds errors."""
    names_id: bool = True
    """The message names ``id``, so that it need not be shown before the message."""
    other: OtherSide | None = None


class Rule(msgspec.Struct, frozen=True):
    """A rule: its stable name, its severity where the project says nothing, what it asks for, and how it is run.

    ``example`` is what it finds where it is broken, ``remedy`` what then helps.
    """

    id: str
    severity: Severity
    description: str
    run: Callable[[RuleContext], list[Finding]]
    example: str = ""
    remedy: str = ""
    look: Callable[[Look], list[Finding]] | None = None
    """The same by look-ups, for what a change of few elements may have broken (``kbcore.rules.look_ups``)."""
    sees_proposals: bool = False
    """It is about facts whether they are accepted or not."""
    sort_ids: Callable[[tuple[str, ...]], tuple[str, ...]] | None = None
    """Puts the id and the values of a finding in the order that the rule gives them, where that goes by the ids."""


def first_file(files: Sequence[str] | None) -> str:
    """Return the first of the files that state an edge, "" when only a client does."""
    return min(files) if files else ""


def listed(names: Sequence[str]) -> str:
    """Return several names as a sentence has them, the first of many."""
    shown = names if len(names) <= MAX_SHOWN else [*names[:MAX_SHOWN], f"{len(names) - MAX_SHOWN} more"]
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def in_brackets(files: Sequence[str]) -> str:
    """Return the first few files of a remedy in brackets, with a space in front; nothing without any."""
    return f" ({some_of(files, _FILES_SHOWN)})" if files else ""


def numeric_order(text: str) -> str:
    """Return what sorts a text by the values of the numbers in it, so that line 6 comes before line 13."""
    return _DIGITS.sub(lambda found: found[0].zfill(_WIDEST), text)


def edge_name(type_: str, kind: str) -> str:
    """Return the type of an edge, with its kind if it has one, as commands take it."""
    return f"{type_}:{kind}" if kind else type_


def edge_remedy(edge: tuple[str, str, str], source: str) -> str:
    """Return the end of a sentence that says how an edge (from, ``edge_name``, to) is taken away."""
    from_id, name, to_id = edge
    if source:
        return f"take the link out of the file and {kb('sync', lead='run')}"
    return f"remove it: {kb('delete', '--edge', from_id, name, to_id)}"


def shell_word(text: str) -> str:
    """Return a text as one word of a shell."""
    import shlex  # noqa: PLC0415 - only violations pay for it

    return shlex.quote(text)
