"""The names that the symbols of an index have in KB: those that KB gives to the same definitions in source code.

A symbol of SCIP is a package and descriptors, such as ``src/`cart.ts`/Cart#total().``. Without what says where the file
is, it is the qualified name, ``Cart.total``. A definition that lies within another one is named below that, also where
its descriptors do not say so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from kbcore.extract.scip.index import IndexedFile, Information, Occurrence, Span

MAX_NAME_CHARS: Final = 1000
"""Of a qualified name; a definition with a longer one is no symbol of its own."""
_PART: Final = re.compile(r"(?:[^ ]|  )* ")
"""Scheme, manager, name or version of a package, with the blank that ends it."""
_PARTS: Final = 4
_NAME: Final = r"(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>[\w+\-$]+))"
_DESCRIPTOR: Final = re.compile(
    rf"\[(?P<type_parameter>[^\]]*)\]|\((?P<parameter>[^)]*)\)|{_NAME}(?P<suffix>/|#|\.|:|!|\((?P<number>[\w+\-$]*)\)\.)"
)
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f]+")
_OVERLOAD: Final = re.compile(r"\+(\d{1,4})")
_ACCESSOR: Final = re.compile(r"^<[gs]et>")
_GO: Final = ".go"
_IMPL: Final = "impl"
KINDS: Final = {
    **dict.fromkeys((7, 75), "class"),
    **dict.fromkeys((11,), "enum"),
    **dict.fromkeys((17,), "function"),
    **dict.fromkeys((21, 42), "interface"),
    **dict.fromkeys((25,), "macro"),
    **dict.fromkeys((9, 18, 26, 45, 66, 67, 68, 69, 70, 71, 74, 76, 80), "method"),
    **dict.fromkeys((29, 30, 64), "module"),
    **dict.fromkeys((49,), "struct"),
    **dict.fromkeys((53, 56), "trait"),
    **dict.fromkeys((54, 55), "type"),
    **dict.fromkeys((59,), "union"),
}
"""Kinds of KB by those of ``SymbolInformation.Kind``."""


class NamedSymbol(msgspec.Struct, frozen=True):
    """A definition that is a symbol in KB; ``around`` is where it is, None where the index does not say it."""

    name: str
    kind: str
    around: Span | None


class _Descriptor(NamedTuple):
    name: str
    suffix: str
    end: int
    """Its end in the text of the symbol."""


def descriptors(symbol: str) -> list[_Descriptor] | None:
    """Return the descriptors of a symbol, None for a text that is none."""
    at = 0
    for _ in range(_PARTS):
        part = _PART.match(symbol, at)
        if part is None:
            return None
        at = part.end()
    found: list[_Descriptor] = []
    while at < len(symbol):
        one = _DESCRIPTOR.match(symbol, at)
        if one is None:
            return None
        at = one.end()
        if one["type_parameter"] is not None:
            found.append(_Descriptor(one["type_parameter"].strip("`"), "[]", at))
        elif one["parameter"] is not None:
            found.append(_Descriptor(one["parameter"].strip("`"), "()", at))
        else:
            name = one["quoted"].replace("``", "`") if one["quoted"] else one["plain"]
            name = _as_in_source(name, found[-1].name if found else "")
            suffix = one["suffix"]
            if one["number"] is not None:
                suffix = "()."
                overload = _OVERLOAD.fullmatch(one["number"])
                name += f"~{int(overload[1]) + 1}" if overload else ""
            found.append(_Descriptor(_UNPRINTABLE.sub(" ", name).strip() or "_", suffix, at))
    return found or None


def _as_in_source(name: str, outer: str) -> str:
    """Return the name that a constructor or an accessor has in source code; in Java the first is that of its class."""
    if name == "<init>" and outer:
        return outer
    return _ACCESSOR.sub("", name) or name if name != "<constructor>" else "constructor"


def named(file: IndexedFile) -> tuple[dict[str, NamedSymbol], dict[str, str]]:
    """Return the symbols of a file by their SCIP symbols, and for each other definition the one that it belongs to."""
    naming = _Naming(file)
    for one in sorted(file.definitions.values(), key=lambda one: (one.around or one.at).start):
        listed = descriptors(one.symbol)
        if listed is not None:
            naming.take(one, listed)
    return naming.own, naming.parts_of


class _Naming:
    """The definitions of a file, taken in the order of their places."""

    def __init__(self, file: IndexedFile) -> None:
        self.own: dict[str, NamedSymbol] = {}
        self.parts_of: dict[str, str] = {}
        self._information = file.information
        is_go = file.path.endswith(_GO)
        self._inner = {one.symbol for one in file.definitions.values() if one.at.start != one.at.end and not is_go}
        """Definitions with a name in the file: namespaces among them are in it. Go has its package there."""
        self._times: Counter[str] = Counter()
        self._around: list[tuple[Span, str]] = []
        self._at_place: dict[tuple[int, str], str] = {}

    def take(self, one: Occurrence, listed: list[_Descriptor]) -> None:
        while self._around and self._around[-1][0].end <= one.at.start:
            self._around.pop()
        outer = self._around[-1][1] if self._around else ""
        parents = [one.symbol[: before.end] for before in listed[:-1]]
        information = self._information.get(one.symbol)
        if not _is_symbol(one, listed, information, self._inner):
            holder = next((parent for parent in reversed(parents) if parent in self.own), outer)
            if holder:
                self.parts_of[one.symbol] = holder
            return
        name = ".".join(_names(one.symbol, listed, self._inner))
        if outer and outer not in parents:
            name = f"{self.own[outer].name}.{listed[-1].name}"
        same = self._at_place.get((one.at.start, name))
        if same:
            self.parts_of[one.symbol] = same
        elif len(name) <= MAX_NAME_CHARS:
            self._keep(one, name, _kind(listed, information))

    def _keep(self, one: Occurrence, name: str, kind: str) -> None:
        self._at_place[one.at.start, name] = one.symbol
        self._times[name] += 1
        if self._times[name] > 1:
            name = f"{name}~{self._times[name]}"
        self.own[one.symbol] = NamedSymbol(name, kind, one.around)
        if one.around:
            self._around.append((one.around, one.symbol))


def _is_symbol(one: Occurrence, listed: list[_Descriptor], information: Information | None, inner: set[str]) -> bool:
    """Tell whether a definition is a function, a type or the like: no file, parameter, field or variable."""
    last = listed[-1]
    if last.suffix == "/":
        return len(listed) > 1 and one.symbol in inner
    if last.suffix == ".":
        kind = information.kind if information else 0
        return one.around is not None and (not kind or kind in KINDS)
    return last.suffix in {"#", "().", "!"}


def _names(symbol: str, listed: list[_Descriptor], inner: set[str]) -> Iterator[str]:
    """Yield the parts of a qualified name; of Rust, that of an ``impl`` block is its type, and its trait."""
    for number, one in enumerate(listed):
        follows = listed[number + 1].suffix if number + 1 < len(listed) else ""
        if one.suffix == "/":
            if number and symbol[: one.end] in inner:
                yield one.name
        elif one.suffix == "[]":
            if any(before.name == _IMPL and before.suffix == "#" for before in listed[:number]):
                yield one.name.rpartition("::")[2].partition("<")[0] or "_"
        elif one.suffix not in {"()", ":"} and not (one.name == _IMPL and one.suffix == "#" and follows == "[]"):
            yield one.name


def _kind(listed: list[_Descriptor], information: Information | None) -> str:
    known = KINDS.get(information.kind if information else 0)
    if known:
        return known
    last, before = listed[-1], listed[-2].suffix if len(listed) > 1 else ""
    if last.suffix == "#":
        return "type"
    if last.suffix == "/":
        return "module"
    if last.suffix == "!":
        return "macro"
    return "method" if before in {"#", "[]"} else "function"
