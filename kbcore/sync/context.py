"""The context of paths, of an uncommitted diff, or of ids: the entities that are meant, and the facts tied to them.

Paths and changed lines are those of the worktree as it is now. What a deleted file held is looked up in the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import NotFound
from kbcore.git.uncommitted import FileChange, LineRange, uncommitted
from kbcore.query.context.facts import Fact, Tie, first_sentence
from kbcore.query.context.fitting import RETIRED_COUNT, fit, ranked
from kbcore.query.context.gathering import about_files, tied_to
from kbcore.query.data_names import known_paths, nearest_id
from kbcore.query.former_ids import called
from kbcore.store.workspace import Workspace
from kbcore.sync.searching import documents
from kbcore.sync.symbol_at import at_path, components_around, entities_of, lines_of_file, near_paths, place_in
from kbcore.text.escaping import escape_and_cut
from kbcore.view.view import View

_NEAR: Final = 3
_MOST_CHARS: Final = 120
"""Of a name of which nothing is known."""
_WITH_TEXT: Final = frozenset({"req", "adr", "scenario", "task", "note"})
"""Types whose documents say more than their titles."""
_LAST_SEQ: Final = """
select max(ended) - 1 from node_history where path = $1 or json_extract_string(attributes, '$.file') = $1
"""

_UNRESOLVED: Final = """
select from_id, to_id from link where not is_resolved
and (from_id in (select unnest($1::varchar[])) or to_id in (select unnest($1::varchar[])))
"""


class ContextRequest(msgspec.Struct, frozen=True):
    """The subject of a context: paths (``PATH`` or ``PATH:LINE``), ids, and with ``diff`` the uncommitted changes.

    ``start`` is the folder of the worktree that paths are taken from.
    """

    paths: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    diff: bool = False
    start: str = ""

    @property
    def default_tokens(self) -> int:
        """Return the budget where none is given."""
        is_file = len(self.paths) == 1 and not (self.ids or self.diff)
        return limits.FILE_CONTEXT_TOKENS if is_file else limits.CONTEXT_TOKENS


class UnknownName(msgspec.Struct, frozen=True):
    """A path or an id of which nothing is known, and those that are most like it."""

    asked: str
    nearest: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "unknown": escape_and_cut(self.asked, _MOST_CHARS),
            **({"nearest": list(self.nearest)} if self.nearest else {}),
        }


UNKNOWN_KIND: Final = "unknown name"
"""The name under which paths and ids are counted of which nothing is known."""


class Context(msgspec.Struct, frozen=True):
    """The facts of a context, ranked, and what they lack. ``retired`` facts are left out: they bind nothing any more.

    With ``goes_on`` more is tied to what was asked for than is looked at.
    """

    facts: tuple[Fact, ...] = ()
    unknown: tuple[UnknownName, ...] = ()
    retired: int = 0
    goes_on: bool = False
    names: frozenset[str] = frozenset()
    """The ids and the files that were looked at, retired ones and ends of unresolved links too: without ``goes_on``, a
    record that has none of these texts in it changes nothing here."""

    @property
    def left_out(self) -> dict[str, int]:
        """Return the counts of what is left out whatever the budget."""
        return {RETIRED_COUNT: self.retired} if self.retired else {}

    def fitted(self, chars: int, size: Callable[[Any], int]) -> dict[str, Any]:
        """Return the members of an answer in JSON: what fits into so many characters, and the counts of the rest.

        ``size`` is the length of a value in the answer.
        """
        items: list[UnknownName | Fact] = [*self.unknown, *self.facts]
        found = fit(
            items,
            chars - size({"facts": [], "unknown": [], "omitted": {}, "goes_on": True}),
            size=lambda one: size(one.as_json()) + 1,
            kind=lambda one: one.type if isinstance(one, Fact) else UNKNOWN_KIND,
            omitted_size=size,
            already_omitted=self.left_out,
        )
        taken = [items[at] for at in found.taken]
        shown: dict[str, Any] = {
            "facts": [one.as_json() for one in taken if isinstance(one, Fact)],
            "unknown": [one.as_json() for one in taken if isinstance(one, UnknownName)],
            "omitted": found.omitted,
            "goes_on": self.goes_on,
        }
        return {name: value for name, value in shown.items() if value or name == "facts"}


def find_context(workspace: Workspace, view: View, branch: str, asked: ContextRequest) -> Context:
    """Return the facts that are tied to what is asked for, ranked.

    Raises: ``GitUnusable`` where git cannot say what is uncommitted.
    """
    found = _Starts(workspace, view, branch)
    for id_ in asked.ids:
        found.add_id(id_)
    for path in asked.paths:
        found.add_path(path, asked.start)
    changes = uncommitted(workspace.repo, workspace.machine.env) if asked.diff else ()
    for change in changes[: limits.MAX_CONTEXT_PATHS]:
        found.add_change(change)
    facts, goes_on = found.facts()
    facts += found.memos()
    kept = ranked(one for one in facts if one.is_start or not one.is_retired)
    retired = {one.id for one in facts} - {one.id for one in kept}
    return Context(
        tuple(_with_sentences(workspace, view, branch, kept)),
        tuple(found.unknown),
        len(retired),
        goes_on or len(changes) > limits.MAX_CONTEXT_PATHS,
        found.names(facts),
    )


class _Starts:
    """The entities that are meant: of the head, with the files, and of an earlier seq for what is deleted."""

    def __init__(self, workspace: Workspace, view: View, branch: str) -> None:
        self._workspace = workspace
        self._view = view
        self._branch = branch
        self.now: dict[str, Tie] = {}
        self.then: dict[str, tuple[Tie, int]] = {}
        self.unknown: list[UnknownName] = []
        self._files: dict[str, str] = {}
        """The files that are asked for, each with the text that named it."""

    def memos(self) -> list[Fact]:
        """Return the notes and tasks that name one of the files; of such a file something is known then."""
        found = about_files(self._view.rows, self._files) if self._files else ()
        named = {self._files[one.tie.near] for one in found}
        self.unknown = [one for one in self.unknown if one.asked not in named]
        return [msgspec.structs.replace(one, tie=Tie("file")) if len(self._files) == 1 else one for one in found]

    def add_id(self, id_: str) -> None:
        """Add an entity, under its present id."""
        present = called(self._view, [id_]).get(id_, id_)
        if self._view.nodes([present]):
            self.now.setdefault(present, Tie(steps=0))
        else:
            near = nearest_id(self._view.rows, id_)
            self.unknown.append(UnknownName(id_, (near,) if near else ()))

    def add_path(self, path: str, start: str) -> None:
        """Add what is at a path: of a line the innermost entity, of a file that is gone what it held."""
        for folder in dict.fromkeys((start, "")):
            self._files.setdefault(place_in(path, str(self._workspace.repo.worktree), folder).path, path)
        try:
            found = at_path(self._workspace, self._view, path, None, branch=self._branch, start=start)
        except NotFound:  # the file has fewer lines: all of it is meant
            path = path.rpartition(":")[0]
            found = at_path(self._workspace, self._view, path, None, branch=self._branch, start=start)
        is_gone = found is None or found.is_around
        if is_gone and self._add_gone(place_in(path, str(self._workspace.repo.worktree), start).path, "deleted"):
            return
        if found is not None:
            self._add(Tie(near=found.place.path, steps=0), [one.id for one in found.subjects])
        else:
            self.unknown.append(UnknownName(path, self._near(path, start)))

    def add_change(self, change: FileChange) -> None:
        """Add what a change of a file touches; of a file of which nothing is known there is nothing to say."""
        rows, path = self._view.rows, change.path
        self._files.setdefault(path, path)
        ids = [one.id for one in entities_of(rows, path, None)]
        tie = Tie(change.way, near=path, steps=0)
        if change.way == "deleted" and not ids:
            self._add_gone(path, change.way)
        elif change.lines:
            symbols = lines_of_file(self._workspace, self._branch, path)
            touched = innermost(symbols, change.lines) & {*ids}
            self._add(tie, sorted(touched) or ids or self._around(path))
        else:
            self._add(tie, ids or self._around(path))
        if change.was:
            self._add_gone(change.was, change.way)

    def facts(self) -> tuple[list[Fact], bool]:
        """Return the facts of all of them, and whether there are more. What is tied to deleted ones is still there."""
        rows, goes_on = self._view.rows, False
        names_near = len(self.now.keys() | self.then.keys()) > 1
        facts = list[Fact]()
        if self.now:
            found = tied_to(rows, self.now, names_near=names_near)
            facts, goes_on = [*found.facts], found.goes_on
        for seq in sorted({seq for _, seq in self.then.values()}):
            ties = {id_: tie for id_, (tie, at) in self.then.items() if at == seq}
            found = tied_to(rows, ties, seq, names_near=names_near)
            there = {one.id for one in self._view.nodes(sorted({one.id for one in found.facts}))}
            facts += [one for one in found.facts if one.is_start or one.id in there]
            goes_on = goes_on or found.goes_on
        return facts, goes_on

    def names(self, facts: Iterable[Fact]) -> frozenset[str]:
        """Return the ids of all that facts were looked for at, the ends of unresolved links there, and the files."""
        facts = [*facts]
        ids = {*self.now, *self.then, *(one.id for one in facts)}
        missing = [end for ends in self._view.rows(_UNRESOLVED, [sorted(ids)]) for end in ends] if ids else []
        return frozenset({*ids, *missing, *self._files, *(one.path for one in facts)} - {""})

    def _add(self, tie: Tie, ids: Iterable[str]) -> None:
        for id_ in ids:
            self.now.setdefault(id_, tie)

    def _around(self, path: str) -> list[str]:
        return [one.id for one in components_around(self._view.rows, path, None)]

    def _add_gone(self, path: str, way: str) -> bool:
        """Add what a file held that is gone, as of the last seq at which it held anything."""
        [(seq,)] = self._view.rows(_LAST_SEQ, [path])
        ids = [] if seq is None else [one.id for one in entities_of(self._view.rows, path, seq)]
        for id_ in ids:
            if id_ not in self.now:
                self.then.setdefault(id_, (Tie(way, near=path, steps=0), seq))
        return bool(ids)

    def _near(self, path: str, start: str) -> tuple[str, ...]:
        """Return the known files that are most like a path; of a folder those below it."""
        root, known = str(self._workspace.repo.worktree), known_paths(self._view.rows)
        places = [place_in(path.rstrip("/"), root, folder).path for folder in dict.fromkeys((start, ""))]
        below = [one for place in places for one in known if place and one.startswith(f"{place}/")]
        return tuple(below[:_NEAR]) or near_paths(self._view.rows, places[0])[:_NEAR]


def innermost(symbols: Mapping[str, LineRange], lines: Sequence[LineRange]) -> set[str]:
    """Return the symbols that are the innermost ones around any of these lines.

    ``symbols`` has the first and the last line of each, an outer one before those in it.
    """
    found = set[str]()
    for first, last in lines:
        around = [(one, max(begin, first), min(end, last)) for one, (begin, end) in symbols.items()]
        around = [one for one in around if one[1] <= one[2]]
        for at, (key, begin, end) in enumerate(around):
            inner = [(one, other) for _, one, other in around[at + 1 :] if begin <= one and other <= end]
            if not _is_covered(begin, end, inner):
                found.add(key)
    return found


def _is_covered(first: int, last: int, ranges: Iterable[LineRange]) -> bool:
    """Tell whether every line from the first to the last is in one of these ranges."""
    left = first
    for begin, end in sorted(ranges):
        if begin > left:
            break
        left = max(left, end + 1)
    return left > last


def _with_sentences(workspace: Workspace, view: View, branch: str, facts: Sequence[Fact]) -> list[Fact]:
    """Return the facts, the first of them with what the first sentence of their document adds."""
    wanted = [one.id for one in facts if one.type in _WITH_TEXT and not one.detail][: limits.MAX_CONTEXT_TEXTS]
    nodes = {node.id: node for node in view.nodes(wanted)}
    in_order = [nodes[id_] for id_ in wanted if id_ in nodes]
    bodies = documents(workspace, branch, view, in_order, None, room=limits.MAX_TEXT_BYTES) if in_order else {}
    return [
        msgspec.structs.replace(one, detail=first_sentence(bodies.get(one.id) or "", one.title))
        if bodies.get(one.id)
        else one
        for one in facts
    ]
