"""Modules of source code that are edited step by step, with a model of what becomes of each symbol.

Each function has a body that shares nothing with others, and a version of it. So the model knows which symbol is which
one after an edit, without looking at the text. Names are never used twice; that they are is a test of its own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

FILES = ("src/one", "src/two")
EDITS = (
    "insert",
    "delete",
    "move",
    "rename",
    "change",
    "rename_and_change",
    "insert_class",
    "rename_class",
    "move_class",
)


@dataclass(frozen=True)
class Function:
    """A function: which one it is, its name, the version of its body, and how it is written."""

    uid: int
    name: str
    version: int = 0
    comment: str = ""
    is_spaced: bool = False


@dataclass(frozen=True)
class Class:
    uid: int
    name: str
    methods: tuple[Function, ...] = ()
    comment: str = ""


Item = Function | Class


@dataclass
class Modules:
    """The text of two modules in one language, as data."""

    language: str
    files: dict[str, list[Item]] = field(default_factory=lambda: {one: [] for one in FILES})
    used: int = 0

    def ids(self) -> dict[int, str]:
        """Return the id of each symbol by its number."""
        found = {}
        for file, items in self.files.items():
            for item in items:
                found[item.uid] = f"{self.path(file)}#{item.name}"
                if isinstance(item, Class):
                    found |= {one.uid: f"{self.path(file)}#{item.name}.{one.name}" for one in item.methods}
        return found

    def versions(self) -> dict[int, int]:
        """Return the version of the body of each symbol."""
        items = [item for items in self.files.values() for item in items]
        inside = [one for item in items if isinstance(item, Class) for one in item.methods]
        return {one.uid: one.version if isinstance(one, Function) else 0 for one in [*items, *inside]}

    def path(self, file: str) -> str:
        return f"{file}.{self.language}"

    def texts(self) -> dict[str, str]:
        """Return the text of each file by its path."""
        render = _go if self.language == "go" else _python
        return {self.path(file): render(items) for file, items in self.files.items()}

    def new_uid(self) -> int:
        self.used += 1
        return self.used


def edit(modules: Modules, dice: random.Random, kind: str) -> None:
    """Make one edit of a kind, where there is something to edit, and write some of the rest in another way."""
    functions = [
        (file, at) for file, items in modules.files.items() for at, one in enumerate(items) if isinstance(one, Function)
    ]
    classes = [
        (file, at) for file, items in modules.files.items() for at, one in enumerate(items) if isinstance(one, Class)
    ]
    fresh = modules.new_uid()
    if kind == "insert":
        _put(modules, dice, Function(fresh, f"f{fresh}"))
    elif kind == "insert_class":
        methods = tuple(Function(uid, f"m{uid}") for uid in (modules.new_uid(), modules.new_uid()))
        _put(modules, dice, Class(fresh, f"C{fresh}", methods))
    elif kind.endswith("_class"):
        if classes:
            _edit_item(modules, dice, dice.choice(classes), (kind.removesuffix("_class"), f"C{fresh}"))
    elif functions:
        _edit_item(modules, dice, dice.choice(functions), (kind, f"f{fresh}"))
    for items in modules.files.values():
        if items and dice.random() < 0.5:
            at = dice.randrange(len(items))
            items[at] = _rewritten(items[at], dice)
        if dice.random() < 0.3:
            dice.shuffle(items)


def _edit_item(modules: Modules, dice: random.Random, place: tuple[str, int], edit: tuple[str, str]) -> None:
    (file, at), (kind, name) = place, edit
    items = modules.files[file]
    item = items[at]
    if kind == "delete":
        del items[at]
    elif kind == "move":
        _move(modules, dice, file, at)
    else:
        items[at] = replace(item, name=item.name if kind == "change" else name)
        if isinstance(item, Function) and kind != "rename":
            items[at] = replace(items[at], version=item.version + 1)


def _put(modules: Modules, dice: random.Random, item: Item) -> None:
    items = modules.files[dice.choice(FILES)]
    items.insert(dice.randint(0, len(items)), item)


def _move(modules: Modules, dice: random.Random, file: str, at: int) -> None:
    item = modules.files[file].pop(at)
    other = modules.files[FILES[1 - FILES.index(file)]]
    other.insert(dice.randint(0, len(other)), item)


def _rewritten(item: Item, dice: random.Random) -> Item:
    comment = f"remark {dice.randrange(100)}"
    return (
        replace(item, comment=comment)
        if isinstance(item, Class)
        else replace(item, comment=comment, is_spaced=not item.is_spaced)
    )


def _python(items: list[Item]) -> str:
    parts = ["import os", ""]
    for item in items:
        if isinstance(item, Function):
            parts += _python_function(item, "", "x")
        else:
            parts += [f"class {item.name}:", f'    """{item.comment}."""', "", f"    limit{item.uid} = {item.uid}0", ""]
            for one in item.methods:
                parts += _python_function(one, "    ", "self, x")
    return "\n".join(parts) + "\n"


def _python_function(one: Function, indent: str, params: str) -> list[str]:
    uid, space = one.uid, "  " if one.is_spaced else " "
    lines = [
        f"def {one.name}({params}):",
        f'    """{one.comment}."""',
        f"    all{uid}{space}={space}load{uid}(x, name{uid})  # {one.comment}",
        f"    for part{uid} in all{uid}.parts{uid}:",
        f"        sum{uid} = part{uid}.price{uid} - tax{uid}",
        f"    return sum{uid} + {one.version}",
        "",
    ]
    return [f"{indent}{line}" if line else "" for line in lines]


def _go(items: list[Item]) -> str:
    parts = ["package shop", ""]
    for item in items:
        if isinstance(item, Function):
            parts += _go_function(item, "")
        else:
            parts += [
                f"// {item.comment}",
                f"type {item.name} struct {{",
                f"\tlimit{item.uid} Limit{item.uid}",
                "}",
                "",
            ]
            for one in item.methods:
                parts += _go_function(one, f"(c *{item.name}) ")
    return "\n".join(parts) + "\n"


def _go_function(one: Function, receiver: str) -> list[str]:
    uid, space = one.uid, "  " if one.is_spaced else " "
    return [
        f"// {one.comment}",
        f"func {receiver}{one.name}(x int) (sum{uid} int) {{",
        f"\tall{uid}{space}:={space}load{uid}(x, name{uid}) // {one.comment}",
        f"\tfor _, part{uid} := range all{uid}.parts{uid} {{",
        f"\t\tsum{uid} += part{uid}.price{uid} - tax{uid}",
        "\t}",
        f"\treturn sum{uid} + {one.version}",
        "}",
        "",
    ]
