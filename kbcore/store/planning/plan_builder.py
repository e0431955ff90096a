"""Results that planning collects: operations, warnings, and problems, which together refuse the changeset.

Each thing that is wrong is said once: what only follows from another problem is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Literal, Protocol

import msgspec

from kbcore.errors import (
    DerivedFact,
    IntegrityViolation,
    InvalidChangeset,
    KBError,
    NotFound,
    Problem,
    StaleBase,
    of_problems,
)
from kbcore.errors.remedies import kb
from kbcore.ids import is_link_id
from kbcore.model.changeset import LEAVE_OUT, SET_BY_KB, Changeset, EdgeWrite, EntityWrite
from kbcore.model.graph import (
    OBJECT_FIELDS,
    Link,
    Node,
    SyncedFile,
    contested_note,
    is_contested_note,
    is_proposed_mark,
)
from kbcore.model.record import Operation
from kbcore.model.schema import Schema
from kbcore.model.state import Stamp, State
from kbcore.secrets import secrets_in
from kbcore.text.escaping import in_quotes, json_text
from kbcore.text.wording import pluralize, shortened, some_of

_PROVENANCE: Final = ("metadata.created_at", "metadata.created_by", "metadata.updated_at")
_MAX_HINTS: Final = 20
"""Each nearest id costs a look at all of them."""
_MAX_LOOKED_UP: Final = 200
_MAX_OVERWRITTEN: Final = 20
_MAX_FIELDS: Final = 5
_MAX_VALUE_CHARS: Final = 60
"""Limits on the warnings of what is overwritten: elements looked up and named, fields of each, the text of a value."""
_REFUSALS: Final[tuple[tuple[frozenset[str], type[KBError], str], ...]] = (
    (frozenset({"not_found"}), NotFound, "names what is not there"),
    (frozenset({"exists"}), StaleBase, "is to create what exists already"),
    (frozenset({"stale"}), StaleBase, "names what changed after it was read"),
    (frozenset({"contested"}), StaleBase, "names what changes state differently"),
    (frozenset({"derived_fact"}), DerivedFact, "names what a file states"),
    (
        frozenset({"unknown_entity", "endpoint_type", "in_use", "former_id"}),
        IntegrityViolation,
        "would break a reference",
    ),
)
"""Codes of problems, the error that they make and its words; first what a client has to correct first. Any other code
makes the changeset invalid."""
STALE_REMEDY: Final = "Read it again and decide again."
_EXISTS: Final = 'Choose other ids for what is new; what exists is changed with the mode "update".'
"""The remedy where several elements that are to be created exist."""


class Users(msgspec.Struct, frozen=True):
    """The users of a definition: the first of them, in words, and how many there are."""

    first: Sequence[str] = ()
    number: int = 0


class RecordedBy(msgspec.Struct, frozen=True):
    """The author of the record at a seq; ``actor`` is "" where it is not known who did, at this seq or earlier.

    ``session`` is set where that alone distinguishes this writer from the one who asks. Of what came by a change file
    or by a merge of stores, ``actor`` is the writer of the change, and ``brought_by`` is the author of the record.
    """

    seq: int
    actor: str = ""
    session: str = ""
    brought_by: str = ""
    through: Literal["", "merge", "sync"] = ""

    def words(self) -> str:
        """Return the writer as part of a sentence."""
        if not self.actor:
            return f"at seq {self.seq} or earlier"
        session = f" in session {in_quotes(self.session)}" if self.session else ""
        way = f" through the {self.through} of {in_quotes(self.brought_by)}" if self.through else ""
        return f"by {in_quotes(self.actor)}{session}{way} at seq {self.seq}"


WHOLE_EXPORT: Final = (
    f"An export of everything is for an empty store; {kb('sync')} records what documents state. {kb('backup')} and "
    f"{kb('restore')} copy a store with its history, and {kb('merge', '…')} brings what clients wrote on another "
    "branch."
)
"""The remedy where an import has what files state that KB reads."""
STATED: Final = ""
"""The name, among fields, of the statement that an element exists."""


class Overwritten(msgspec.Struct, frozen=True):
    """An element of which a changeset gives other values to fields that have one, or that it removes.

    Of a removed one, ``fields`` are ``STATED`` and those that clients set.
    """

    words: str
    before: Node | Link
    fields: tuple[str, ...]
    is_removed: bool = False


class PlanContext(msgspec.Struct, frozen=True):
    """The context of a plan next to the state.

    ``gone`` maps an id that the changeset names and that no longer exists to the seq that removed it;
    ``suggest`` returns the nearest known entity id to a mistyped one, or ""; ``secrets`` is the level of the project's
    rule ``secret``; removals up to the seq ``pruned`` are not known any more.
    """

    schema: Schema
    stamp: Stamp
    gone: Mapping[str, int]
    suggest: Callable[[str], str]
    secrets: Literal["error", "warning", "off"] = "warning"
    pruned: int = 0
    suspect: Callable[[Sequence[str]], Mapping[str, int]] = lambda _: {}
    """Returns those of these edges, by id, whose target has changed since they were last confirmed; with the seq."""
    sources: Callable[[Sequence[str]], Sequence[SyncedFile]] = lambda _: ()
    """Returns what is known of the files of these paths."""
    called: Callable[[str], str] = str
    """Returns what the client calls a type."""
    former: Mapping[str, str] = {}
    """The present id of each named entity that does not exist under the id that is named."""
    later: Callable[[str], str] = lambda _: ""
    """Returns the present id of an entity that was renamed from this id, which no file states any more as a former one;
    "" where there is none."""
    holders: Callable[[Collection[str]], Mapping[str, str]] = lambda _: {}
    """Returns the entity that each of these ids names, or named before."""
    last_task: Callable[[], float] = lambda: 0
    """Returns the highest order of the tasks that there are."""
    users: Callable[[str, str, Collection[str]], Users] = lambda *_: Users()
    """Returns what else than these elements uses what a definition of this type and name defines."""
    writer: Callable[[int, str], RecordedBy] = lambda seq, _: RecordedBy(seq)
    """Returns who created or removed the element with an id, by the record at a seq that did."""
    setters: Callable[[Mapping[str, Overwritten]], Mapping[str, Mapping[str, RecordedBy]]] = lambda _: {}
    """Returns who set fields that are overwritten to what they are, by id and field, where it was another actor, or
    another session of the same one."""


class PlanBuilder:
    """The plan of one changeset while it grows.

    ``types`` holds the type after it of entities that come, go or turn; ``doubtful`` are the ids of entities and edges
    that are at fault themselves, so that their result is not known; ``repeated`` are the edges that are written
    as they stand, by place; ``written`` are the ids of all items, ``deleted`` those of entities to be deleted;
    ``claimed`` maps each former id that they state to the first of them; ``overwritten`` are the elements whose fields
    get other values, by id.
    """

    def __init__(self, state: State, around: PlanContext, changeset: Changeset) -> None:
        self.state = state
        self.around = around
        self.schema = around.schema
        self.problems: list[Problem] = list(changeset.problems)
        self.doubtful: set[str] = set()
        self._unread = changeset.unread
        self.expected_seq = changeset.expected_seq
        self.is_review = changeset.is_review
        self.warnings: list[str] = []
        self.ops: list[Operation] = []
        self.types: dict[str, str | None] = {}
        self.withdrawn: set[str] = set()
        self.written = {item.id for item in changeset.entities}
        self.deleted = {item.id for item in changeset.entity_deletes}
        self.claimed: dict[str, str] = {}
        self.repeated: dict[str, Link] = {}
        self.overwritten: dict[str, Overwritten] = {}
        self._hints_left = _MAX_HINTS
        self._last_task: float | None = None

    def next_task(self) -> int:
        """Return the order of a new task: after all that there are, and after those before it in the changeset."""
        last = self.around.last_task() if self._last_task is None else self._last_task
        self._last_task = math.floor(last) + 1
        return self._last_task

    def wrong(self, path: str, code: str, message: str, hint: str = "", source: str = "", *, subject: str = "") -> None:
        """Note a problem at a JSON path; ``source`` is the file that states the fact, if one does.

        ``subject`` is the id of the element that the message names.
        """
        self.problems.append(Problem(path, code, message, hint, source, subject=subject))

    def check_owned(
        self, item: EntityWrite | EdgeWrite, words: str, owners: Mapping[str, str], names: Iterable[str]
    ) -> None:
        """Note a problem for each of these fields of an element that a file states; ``words`` name the element."""
        for name in names:
            if name in owners:
                path, files = f"{item.path}.{name}", [owners[name]]
                self.problems.append(stated_problem(path, item.id, files, words=words, field=name))

    def keep_marks(self, item: EntityWrite | EdgeWrite, values: Mapping[str, Any], unset: list[str]) -> None:
        """Refuse marks of what is proposed that a client writes; they stay where it replaces all metadata."""
        if self.is_review:
            return
        named = {f"metadata.{key}" for key in item.objects.get("metadata", {})}
        unset[:] = [name for name in unset if not is_proposed_mark(name) or name in named]
        for name in sorted(filter(is_proposed_mark, [*values, *unset])):
            message = f"`{name}` of {in_quotes(item.id)} is set by KB: it says what is only proposed."
            self.wrong(f"{item.path}.{name}", SET_BY_KB, message, f"Leave it out; {kb('review')} decides.")

    def check_provenance(self, item: EntityWrite | EdgeWrite, values: Mapping[str, Any]) -> None:
        """Refuse metadata that KIP would show as KB's own word on who wrote an element of KB's types, and when."""
        for name in _PROVENANCE if not (item.is_import or item.is_of_kip) else ():
            if name in values:
                self.wrong(f"{item.path}.{name}", SET_BY_KB, f"`{name}` is set by KB, not by a client.", LEAVE_OUT)

    def check_source(self, item: EntityWrite | EdgeWrite, values: Mapping[str, Any]) -> None:
        """Note a problem when a client gives a file that KB reads as the source of what it states itself."""
        source = values.get("source")
        if source in self.state.sources:
            message = f"`source` cannot be {in_quotes(source)}: what a file states, the file states itself."
            hint = WHOLE_EXPORT if item.is_import else "Leave `source` out, or name your own program."
            self.wrong(f"{item.path}.source", "foreign_source", message, hint)

    def note_overwritten(self, before: Node | Link | None, words: str, names: Iterable[str]) -> None:
        """Note which of these fields of an element have a value already."""
        fields = before.fields if before else {}
        # Who writes a contested field has seen its values: a write that has not is refused.
        there = tuple(
            name
            for name in names
            if name in fields and not is_contested_note(name) and contested_note(name) not in fields
        )
        if before and there:
            self.overwritten[before.id] = Overwritten(words, before, there)

    def note_removed(self, before: Node | Link, words: str) -> None:
        """Note that what clients stated of an element goes."""
        fields = (STATED, *(name for name in before.fields if name not in before.owners))
        self.overwritten[before.id] = Overwritten(words, before, fields, is_removed=True)

    def warn_overwritten(self) -> None:
        """Add a warning for each element of which the changeset overwrites or removes what another writer had set.

        That is another actor, or another session of the same one.
        """
        if not self.overwritten or self.problems:
            return
        elements = dict(islice(self.overwritten.items(), _MAX_LOOKED_UP))
        setters = self.around.setters(elements)
        warnings = [_overwritten_words(one, setters[key]) for key, one in elements.items() if setters.get(key)]
        self.warnings += warnings[:_MAX_OVERWRITTEN]
        if len(warnings) > _MAX_OVERWRITTEN:
            left = pluralize(len(warnings) - _MAX_OVERWRITTEN, "more element")
            self.warnings.append(f"Of {left} it overwrites or removes what another actor or session had set.")
        if len(self.overwritten) > _MAX_LOOKED_UP:
            left = pluralize(len(self.overwritten) - _MAX_LOOKED_UP, "more element")
            self.warnings.append(f"It changes or removes {left}; who had set those was not looked up.")

    def hint_for_id(self, word: str) -> str:
        """Return a hint with the nearest known id, or the empty text."""
        if self._hints_left == 0:
            return ""
        self._hints_left -= 1
        near = self.around.suggest(word)
        return f"Did you mean {in_quotes(near)}? " if near else ""

    def is_doubtful(self, key: str) -> bool:
        """Tell whether an id may be meant by an item that is at fault itself."""
        return key in self.doubtful or ("edges" if is_link_id(key) else "entities") in self._unread

    def refuse(self) -> None:
        """Raise the error that fits the problems, if there are any; all of them are in its details.

        Raises: ``InvalidChangeset``, ``NotFound``, ``StaleBase``, ``DerivedFact`` or ``IntegrityViolation``.
        """
        if not self.problems:
            return
        error, what = _error_for({problem.code for problem in self.problems})
        are_in_use = len(self.problems) > 1 and all(problem.code == "exists" for problem in self.problems)
        raise of_problems(error, f"The changeset {what}", self.problems, hint=_EXISTS if are_in_use else "")


def _error_for(codes: set[str]) -> tuple[type[KBError], str]:
    """Return the class for a mixture of problems, and its words."""
    if codes <= frozenset[str]().union(*(known for known, _, _ in _REFUSALS)):
        for known, error, what in _REFUSALS:
            if codes & known:
                return error, what
    return InvalidChangeset, "cannot be taken as it is"


def future_seq_problem(seq: int, head: int) -> Problem:
    """Return the problem of an ``expected_seq`` that no record has."""
    message = f"There is no seq {seq}{'' if seq < 0 else ' yet'}; the head is {head}."
    return Problem("$.expected_seq", "out_of_range", message, "Use the seq of the answer that was read.")


def stated_problem(
    path: str, key: str, files: Sequence[str], *, words: str = "", field: str = "", line: int = 0
) -> Problem:
    """Return the problem that files state an element or a field of it.

    ``words`` name the element where its id does not; ``line`` is that of the first file, 0 where it is not known.
    """
    first = in_quotes(files[0])
    place = in_quotes(f"{files[0]}:{line}") if line else first
    named = in_quotes(words or key)
    what = f"`{field}` of {named}" if field else named
    message = f"{what} is stated by {', '.join([place, *map(in_quotes, files[1:])])}."
    hint = f"Delete it in {first} and {kb('sync', lead='run')}."
    if field:
        hint = f"Edit {first} and {kb('sync', lead='run')}; fields that it does not state are free."
    return Problem(path, DerivedFact.code, message, hint, files[0], line, key, field, tuple(files[1:]))


class Ends(Protocol):
    """The ends and the type of an edge that exists or is to be written."""

    @property
    def from_id(self) -> str:
        """Return where it comes from."""

    @property
    def to_id(self) -> str:
        """Return where it leads to."""

    @property
    def type(self) -> str:
        """Return its type, "" for a bare link."""

    @property
    def kind(self) -> str:
        """Return its kind, "" for an edge without one."""


def edge_words(edge: Ends) -> str:
    """Return an edge as a person reads it, with its kind if it has one."""
    type_ = f"{edge.type}:{edge.kind}" if edge.kind else edge.type
    return f"{edge.from_id} {type_ or 'links to'} {edge.to_id}"


def _overwritten_words(one: Overwritten, setters: Mapping[str, RecordedBy]) -> str:
    changed = [
        f"`{name}` was {_value_words(name, one.before.fields[name])}, set {setters[name].words()}"
        if name
        else f"stated {setters[name].words()}"
        for name in one.fields
        if name in setters
    ]
    other = "session" if all(writer.session for writer in setters.values()) else "actor"
    does, said = ("removes", "stated") if one.is_removed else ("overwrites", "set")
    return f"This {does} what another {other} had {said} of {one.words}: {some_of(changed, _MAX_FIELDS)}."


def _value_words(name: str, value: Any) -> str:
    if next(secrets_in(value, name), None) is not None:
        return "what looks like a secret"
    text = in_quotes(value) if isinstance(value, str) else json_text(value)
    return shortened(text, _MAX_VALUE_CHARS)


def members_wanted(
    item: EntityWrite | EdgeWrite, fields: Mapping[str, Any], owners: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Return which attributes and metadata an item sets and which it removes, by the names of flat fields.

    An object that takes the place of the old one leaves what a file states and the client does not name.
    """
    wanted: dict[str, Any] = {}
    gone: list[str] = []
    for prefix in OBJECT_FIELDS:
        members = item.objects.get(prefix, {})
        named = {f"{prefix}.{key}": value for key, value in members.items()}
        if prefix in item.removed or (prefix in item.objects and item.replaces):
            wanted |= named
            gone += [one for one in fields if one.startswith(f"{prefix}.") and one not in named and one not in owners]
        else:
            wanted |= {name: value for name, value in named.items() if value is not None}
            gone += [name for name, value in named.items() if value is None and name in fields]
    return wanted, gone


def check_stale(node: Node, seq: int | None, *, head: int) -> None:
    """Refuse a rename of what changed after the client read it. Raises: ``InvalidChangeset``, ``StaleBase``."""
    if seq is not None and seq > head:
        problem = future_seq_problem(seq, head)
        raise InvalidChangeset(problem.message, hint=problem.remedy, details=[problem], says_first=True)
    if seq is not None and node.version > seq:
        message = f"{in_quotes(node.id)} changed at seq {node.version}, after {seq}."
        raise StaleBase(message, details=[Problem("$.rename", "stale", message, STALE_REMEDY)], says_first=True)
