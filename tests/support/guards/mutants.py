"""Programs with one guard taken out, to see whether some test misses it. The switch is here and nowhere in KB.

A guard is a statement that refuses (``raise``), a call made for its effect (a sync, a rename, a lock, a check), a
branch that is taken in a special case (``if``), one part of a condition or of a comparison (a digest that must match),
or what surrounds a block (``with``). A rename may also be done by a copy. Applying a mutant exchanges the code of one
function; the rest of the program, and the files, stay as they are.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import importlib
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import msgspec

TRANSLATING = frozenset({"explained", "suppress"})
"""Statements around a block that matter only when an error passes."""


class Mutant(msgspec.Struct, frozen=True):
    """One guard, the ``number``-th of its module, in a function; ``name`` is its own within the module."""

    module: str
    function: str
    number: int
    name: str

    def __str__(self) -> str:
        """Return what names it in a report."""
        return f"{self.module}.{self.name}"


def mutants(module: str) -> list[Mutant]:
    """Return a mutant for each guard of a module, in the order of its source."""
    walk = _Walk()
    walk.visit(_tree(module))
    counts: collections.Counter[str] = collections.Counter()
    found = []
    for number, (function, what) in enumerate(walk.found):
        name = f"{function}: {what}"
        counts[name] += 1
        again = f" [{counts[name]}]" if counts[name] > 1 else ""
        found.append(Mutant(module, function, number, name + again))
    return found


@contextlib.contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Leave the guard out for the length of the block."""
    tree = _tree(mutant.module)
    with _exchanged(mutant.module, _Walk(out=mutant.number).visit(tree), {mutant.function}, {"__copied__": _copied}):
        yield


@contextlib.contextmanager
def watched(module: str) -> Iterator[set[int]]:
    """Note, for the length of the block, the number of each guard that makes a difference when it is come upon."""
    seen: set[int] = set()
    names = {"__seen__": seen.add, "__part__": _part(seen), "__equal__": _equal(seen), "__passed__": _passed(seen)}
    walk = _Walk(is_watching=True)
    tree = walk.visit(_tree(module))
    with _exchanged(module, tree, {function for function, _ in walk.found}, names):
        yield seen


def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 80 else text[:79] + "…"


def _called(node: ast.expr) -> str:
    """Return the last name of what an expression calls; empty if it calls nothing."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


class _Walk(ast.NodeTransformer):
    """Meets the guards of a module, always in the same order: one is left ``out``, or all are watched."""

    def __init__(self, out: int = -1, *, is_watching: bool = False) -> None:
        self.found: list[tuple[str, str]] = []
        """(function, what is done to it)."""
        self._out = out
        self._is_watching = is_watching
        self._scope: list[str] = []
        self._in_function = 0
        self._tests: set[ast.expr] = set()
        """Expressions of which only the truth counts."""

    def _meet(self, what: str) -> int:
        self.found.append((".".join(self._scope), what))
        return len(self.found) - 1

    def visit(self, node: ast.AST) -> Any:
        """Note what is only asked for its truth, and go on as usual."""
        if isinstance(node, ast.If) and not self._in_function:
            return node  # what only type checkers import
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            self._tests.add(node.test)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self._tests.add(node.operand)
        elif isinstance(node, ast.comprehension):
            self._tests.update(node.ifs)
        return super().visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self._scope.append(node.name)
        self.generic_visit(node)
        self._scope.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if not self._in_function:
            self._scope.append(node.name)
        self._in_function += 1
        node.body = [part for one in node.body for part in _flat(self.visit(one))]
        self._in_function -= 1
        if not self._in_function:
            self._scope.pop()
        return node

    def visit_Raise(self, node: ast.Raise) -> Any:
        return self._statement(node, f"no `{_text(node)}`")

    def visit_Expr(self, node: ast.Expr) -> Any:
        if not isinstance(node.value, ast.Call):
            return self.generic_visit(node)
        if _called(node.value) == "replace" and len(node.value.args) == 2:
            receiver = node.value.func.value if isinstance(node.value.func, ast.Attribute) else node.value
            copy = ast.Expr(_call("__copied__", receiver, *node.value.args))
            return self._statement(node, f"a copy for `{_text(node)}`", copy, f"no `{_text(node)}`")
        return self._statement(node, f"no `{_text(node)}`")

    def _statement(self, node: ast.stmt, what: str, other: ast.stmt | None = None, *more: str) -> Any:
        numbers = [self._meet(one) for one in (what, *more)]
        self.generic_visit(node)
        if self._is_watching:
            return [*(ast.Expr(_call("__seen__", ast.Constant(number))) for number in numbers), node]
        if self._out == numbers[0]:
            return other or ast.Pass()
        return ast.Pass() if self._out in numbers else node

    def visit_If(self, node: ast.If) -> Any:
        is_guard = len(node.body) > 1 or not isinstance(node.body[0], ast.Raise | ast.Expr)
        number = self._meet(f"never `if {_text(node.test)}`") if is_guard else -1
        self.generic_visit(node)
        if number < 0:
            return node
        if self._is_watching:
            node.test = _call("__part__", ast.Constant(number), node.test, ast.Constant(value=True))
        elif self._out == number:
            return node.orelse or ast.Pass()
        return node

    def visit_With(self, node: ast.With) -> Any:
        numbers = {}
        for place, item in enumerate(node.items):
            if item.optional_vars is None:
                numbers[place] = self._meet(f"no `with {_text(item.context_expr)}`")
        self.generic_visit(node)
        before: list[ast.stmt] = []
        for place, number in sorted(numbers.items(), reverse=True):
            context = node.items[place].context_expr
            if self._is_watching and _called(context) in TRANSLATING:
                node.items[place].context_expr = _call("__passed__", ast.Constant(number), context)
            elif self._is_watching:
                before.append(ast.Expr(_call("__seen__", ast.Constant(number))))
            elif self._out == number:
                del node.items[place]
        return [*before, node] if node.items else node.body

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        is_test, is_or = node in self._tests, isinstance(node.op, ast.Or)
        word = "or" if is_or else "and"
        numbers = [self._meet(f"no `{word} {_text(value)}`") for value in node.values]
        if is_test:
            self._tests.update(node.values)
        self.generic_visit(node)
        for place in reversed(range(len(numbers))):
            if self._is_watching:
                decides = ast.Constant(is_or if is_test or place < len(numbers) - 1 else None)
                node.values[place] = _call("__part__", ast.Constant(numbers[place]), node.values[place], decides)
            elif self._out == numbers[place]:
                del node.values[place]
        return node if len(node.values) > 1 else node.values[0]

    def visit_Compare(self, node: ast.Compare) -> Any:
        left, right = node.left, node.comparators[0]
        if not (isinstance(left, ast.Tuple) and isinstance(right, ast.Tuple) and len(node.ops) == 1):
            return self.generic_visit(node)
        numbers = [self._meet(f"no comparison of `{_text(one)}`") for one in left.elts]
        self.generic_visit(node)
        if self._is_watching:
            every = ast.Tuple([ast.Constant(number) for number in numbers], ast.Load())
            equal = _call("__equal__", every, left, right)
            return equal if isinstance(node.ops[0], ast.Eq) else ast.UnaryOp(ast.Not(), equal)
        if self._out in numbers:
            del left.elts[numbers.index(self._out)], right.elts[numbers.index(self._out)]
        return node


def _flat(node: Any) -> list[Any]:
    return node if isinstance(node, list) else [node]


def _part(seen: set[int]) -> Callable[[int, Any, bool | None], Any]:
    def part(number: int, value: Any, decides: bool | None) -> Any:
        if decides is None or bool(value) == decides:
            seen.add(number)
        return value

    return part


def _equal(seen: set[int]) -> Callable[..., bool]:
    def equal(numbers: tuple[int, ...], left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
        unequal = [number for number, one, other in zip(numbers, left, right, strict=True) if one != other]
        if len(unequal) == 1:
            seen.update(unequal)
        return not unequal

    return equal


def _passed(seen: set[int]) -> Callable[..., Any]:
    @contextlib.contextmanager
    def passed(number: int, context: contextlib.AbstractContextManager[None]) -> Iterator[None]:
        with context:
            try:
                yield
            except BaseException:
                seen.add(number)
                raise

    return passed


def _copied(fs: Any, source: Path, target: Path) -> None:
    """Do what a rename does in steps that a crash can come between."""
    data = b""
    fd = fs.open(source, os.O_RDONLY)
    while part := fs.pread(fd, 1 << 20, len(data)):
        data += part
    fs.close(fd)
    fd = fs.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    fs.write(fd, data)
    fs.fsync(fd)
    fs.close(fd)
    fs.unlink(source)


@contextlib.contextmanager
def _exchanged(name: str, tree: ast.Module, functions: set[str], names: dict[str, Any]) -> Iterator[None]:
    module = importlib.import_module(name)
    code = compile(ast.fix_missing_locations(tree), str(module.__file__), "exec")
    kept = {one: _function_of(module, one).__code__ for one in functions}
    vars(module).update(names)
    try:
        for one in functions:
            _function_of(module, one).__code__ = _code_of(code, one)
        yield
    finally:
        for one in functions:
            _function_of(module, one).__code__ = kept[one]
        for one in names:
            del vars(module)[one]


def _code_of(code: CodeType, name: str) -> CodeType:
    first, _, rest = name.partition(".")
    found = next(one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == first)
    return _code_of(found, rest) if rest else found


def _function_of(module: ModuleType, name: str) -> FunctionType:
    found: Any = module
    for part in name.split("."):
        found = vars(found)[part]
    inner = (getattr(found, name, None) for name in ("fget", "func", "__func__"))
    found = inspect.unwrap(next(filter(None, inner), found))
    if not isinstance(found, FunctionType):
        raise TypeError(f"{module.__name__}.{name} is no plain function")
    return found
