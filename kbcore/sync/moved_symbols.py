"""Symbols of source code that have another id now: they were moved or renamed, by what their bodies say. Pure.

Only symbols that go and symbols that come are compared; one whose id stays is the same symbol, whatever it holds. The
outer ones are paired first, because what is inside of a symbol goes with it. ADR-0042 has the order.
"""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence

import msgspec

from kbcore.extract.code.tokens import SIMILAR, likeness, pairs_of
from kbcore.extract.facts import StatedEntity
from kbcore.model.graph import FILE, Node, former_ids
from kbcore.sync.begun_renames import BegunRename
from kbcore.sync.id_ownership import FileReading, HeldBack
from kbcore.text.wording import pluralize

MAX_COMPARED = 200
"""Symbols of one scope that are compared by their sketches, of those that go and of those that come."""
_ROUNDS = 3
"""A round may find that a scope has moved, by what moved out of it; the next one takes the rest along."""


class _Place(msgspec.Struct, frozen=True):
    """A symbol that goes or comes: its id, file and type, and what its code says."""

    id: str
    path: str
    type: str
    title: str
    body: str
    signature: str
    sketch: str

    @property
    def depth(self) -> int:
        return self.title.count(".")


def is_code(entity: StatedEntity, path: str) -> bool:
    """Tell whether an entity of a file is a symbol or test of source code."""
    return entity.fields.get(FILE) == path


def moved_symbols(
    readings: Sequence[FileReading],
    gone: Collection[str],
    known: Sequence[Node],
    existing: Collection[str],
    warnings: list[str] | None = None,
) -> tuple[BegunRename, ...]:
    """Return the symbols that these files move or rename, as renames.

    ``known`` are the entities that the records have of these files, ``existing`` all ids that are stated and recorded.
    Scopes in which not all could be compared are added to ``warnings``.
    """
    stated = {one.id for reading in readings for one in reading.facts.entities}
    held = HeldBack(readings)
    nodes = {
        node.id: node
        for node in known
        if node.is_of_code and node.id not in stated and (node.path in gone or not held.has(node.path, node.id, node))
    }
    coming = [
        _place(one.id, reading.path, one.type, one.fields)
        for reading in readings
        for one in reading.facts.entities
        if one.id not in existing and is_code(one, reading.path)
    ]
    if not (nodes and coming):
        return ()
    going = [_place(node.id, node.path, node.type, node.fields) for node in nodes.values()]
    pairing = _Pairing(going, coming, frozenset(gone))
    pairs = pairing.paired()
    if warnings is not None:
        warnings += [
            f"{scope} has {pluralize(number, 'new symbol')} beyond the {MAX_COMPARED} that are compared with those that"
            " are gone: one that was renamed and changed may be a new one. Sync renames in smaller steps to find all."
            for scope, number in sorted(pairing.not_compared.items())
        ]
    return tuple(
        BegunRename(old, new, tuple(one for one in (*former_ids(nodes[old]), old) if one not in stated), {})
        for old, new in pairs.items()
    )


def _place(key: str, path: str, type_: str, fields: Mapping[str, object]) -> _Place:
    body, signature, sketch = (
        str(fields.get(f"attributes.{name}", "")) for name in ("body_hash", "signature_hash", "body_sketch")
    )
    return _Place(key, path, type_, str(fields.get("title", "")), body, signature, sketch)


class _Pairing:
    """The pairs of symbols that go and come and are the same."""

    def __init__(self, going: Iterable[_Place], coming: Iterable[_Place], gone: frozenset[str]) -> None:
        self._going = {one.id: one for one in sorted(going, key=lambda one: one.id)}
        self._coming = {one.id: one for one in sorted(coming, key=lambda one: one.id)}
        self._left = Counter(one.path for one in self._going.values())
        self._gone = gone
        self._files: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """The number of symbols that moved from a file, by the files that they are in now."""
        self._file_now: dict[str, str] = {}
        self._pairs: dict[str, str] = {}
        self.not_compared: dict[str, int] = {}
        """Symbols that come in a scope where one goes, and were not compared with it, by the scope."""

    def paired(self) -> dict[str, str]:
        """Return the later ids by the earlier ones."""
        self._alike(lambda one: (one.title, one.body, one.signature) if one.body else None, is_sure=True)
        for _ in range(_ROUNDS):
            before = len(self._pairs)
            self._note_moved_files()
            for depth in sorted({one.depth for one in self._going.values()}):
                self._with_their_scope(depth)
                self._alike(lambda one: (self._scope(one), one.body) if one.body else None, depth=depth)
                self._alike(lambda one: one.body if one.sketch else None, depth=depth)
                self._similar(depth)
            if len(self._pairs) == before:
                break
        return self._pairs

    def _take(self, old: _Place, new: _Place) -> None:
        self._pairs[old.id] = new.id
        self._files[old.path][new.path] += 1
        del self._going[old.id], self._coming[new.id]

    def _now(self, key: str, path: str) -> str:
        """Return the present id of a symbol or scope, as far as it is known what became of what it is in."""
        if key in self._pairs:
            return self._pairs[key]
        if key == path:
            return self._file_now.get(path, path)
        scope, sign, name = _split(key, path)
        return f"{self._now(scope, path)}{sign}{name}"

    def _scope(self, one: _Place) -> str:
        """Return the scope that a symbol is in, of one that goes the one that this is now."""
        scope, _, _ = _split(one.id, one.path)
        return self._now(scope, one.path) if one.id in self._going else scope

    def _note_moved_files(self) -> None:
        """Note what file another one is now: one that is gone and of which half of the symbols moved there."""
        for old, moved_to in self._files.items():
            for new, number in moved_to.most_common(1):
                if old in self._gone and number * 2 >= self._left[old]:
                    self._file_now.setdefault(old, new)

    def _with_their_scope(self, depth: int) -> None:
        for one in [one for one in self._going.values() if one.depth == depth]:
            new = self._coming.get(self._now(one.id, one.path))
            if new and new.type == one.type:
                self._take(one, new)

    def _alike(
        self, key_of: Callable[[_Place], Hashable | None], *, depth: int | None = None, is_sure: bool = False
    ) -> None:
        """Pair the symbols of one key: the only ones, then those between files that others moved between.

        With ``is_sure`` no others; else in the order of ids too, where their bodies are not short.
        """
        groups = self._groups(key_of, depth)
        for going, coming in groups:
            if len(going) == len(coming) == 1:
                self._take(going[0], coming[0])
        for going, coming in groups:
            if len(going) != 1 or len(coming) != 1:
                self._best(going, coming, is_sure=is_sure)

    def _best(self, going: Sequence[_Place], coming: Sequence[_Place], *, is_sure: bool) -> None:
        left = _Candidates(coming)
        for one in going:
            best = left.nearest(one, self._files[one.path])
            if best is None:
                break
            if (one.sketch and not is_sure) or self._files[one.path][best.path]:
                left.remove(best)
                self._take(one, best)

    def _groups(
        self, key_of: Callable[[_Place], Hashable | None], depth: int | None
    ) -> list[tuple[list[_Place], list[_Place]]]:
        """Return the symbols that go, of a depth, and those that come, with the same key."""
        groups: dict[Hashable, tuple[list[_Place], list[_Place]]] = {}
        for one in self._going.values():
            key = key_of(one) if depth in {None, one.depth} else None
            if key is not None:
                groups.setdefault((one.type, key), ([], []))[0].append(one)
        for one in self._coming.values():
            group = groups.get((one.type, key_of(one)))
            if group:
                group[1].append(one)
        return [*groups.values()]

    def _similar(self, depth: int) -> None:
        """Pair the symbols of one scope whose bodies have enough in common, the most alike ones first."""
        scopes: dict[tuple[str, str], list[tuple[_Place, frozenset[int]]]] = defaultdict(list)
        for one in self._coming.values():
            if one.sketch:
                scopes[self._scope(one), one.type].append((one, pairs_of(one.sketch)))
        found = []
        for one in [one for one in self._going.values() if one.depth == depth and one.sketch]:
            pairs = pairs_of(one.sketch)
            candidates = scopes.get((self._scope(one), one.type), ())
            if len(candidates) > MAX_COMPARED:
                self.not_compared[self._scope(one)] = len(candidates) - MAX_COMPARED
            for other, others in candidates[:MAX_COMPARED]:
                share = likeness(pairs, others)
                if share >= SIMILAR:
                    found.append((-share, one.id, other.id))
        for _, old, new in sorted(found):
            if old in self._going and new in self._coming:
                self._take(self._going[old], self._coming[new])


class _Candidates:
    """Symbols that come with the same code; the one that is nearest to a symbol that goes is found by look-ups.

    The nearest has the same name, then the same signature, then is in a file that others moved to, in the same file, or
    in one of the same name; of several the first one.
    """

    def __init__(self, coming: Iterable[_Place]) -> None:
        self._by: defaultdict[Hashable, dict[str, _Place]] = defaultdict(dict)
        for one in coming:
            for key in self._keys(one, [one.path]):
                self._by[key][one.id] = one

    def nearest(self, one: _Place, moved_to: Counter[str]) -> _Place | None:
        """Return the nearest one, None where none is left; ``moved_to`` are files with the number of those in them."""
        paths = [path for path, number in moved_to.most_common() if number]
        found = (self._by.get(key) for key in self._keys(one, [*paths, one.path]))
        return next((next(iter(some.values())) for some in found if some), None)

    def remove(self, one: _Place) -> None:
        """Leave one out from now on."""
        for key in self._keys(one, [one.path]):
            del self._by[key][one.id]

    def _keys(self, one: _Place, paths: Sequence[str]) -> Iterator[Hashable]:
        """Yield what one has in common with others in these files, what makes them nearest first."""
        _, _, name = _split(one.id, one.path)
        for alike in ((name, one.signature), (name, None), (None, one.signature), (None, None)):
            yield from ((alike, "path", path) for path in paths)
            yield alike, "file", posixpath.basename(one.path)
            yield alike, "", ""


def _split(key: str, path: str) -> tuple[str, str, str]:
    """Return the id of the scope of a symbol, of an outermost one its file, and the sign and the name after that."""
    name = key.removeprefix(f"{path}#")
    outer, dot, inner = name.rpartition(".")
    return (f"{path}#{outer}", ".", inner) if dot and outer else (path, "#", name)
