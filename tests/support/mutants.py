"""Programs with one guard taken out, to see whether some test misses it. The switch is here and nowhere in KB.

A guard is a statement that refuses (``raise``), a call made for its effect (a sync, a rename, a lock, a check), or one
part of a condition (a digest that must match). Applying a mutant exchanges the code of one function; the rest of the
program, and the files, stay as they are.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import msgspec


class Mutant(msgspec.Struct, frozen=True):
    """One guard of one function: where it stands, and its source. ``part`` is the number of the part of a condition."""

    module: str
    function: str
    line: int
    column: int
    text: str
    part: int = -1

    def __str__(self) -> str:
        """Return what names it in a report."""
        return f"{self.module}.{self.function} without `{self.text}`"


def mutants(module: str) -> list[Mutant]:
    """Return a mutant for each guard of a module, in the order of its source."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    found: list[Mutant] = []
    for name, function in _functions(tree):
        for node in ast.walk(function):
            if isinstance(node, ast.BoolOp):
                for part, value in enumerate(node.values):
                    found.append(Mutant(module, name, node.lineno, node.col_offset, _text(value), part))
            elif _is_guard(node):
                found.append(Mutant(module, name, node.lineno, node.col_offset, _text(node)))
    return sorted(found, key=lambda one: (one.line, one.column, one.part))


def _is_guard(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise):
        return isinstance(node.exc, ast.Call)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:80]


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{one.name}", one) for one in node.body if isinstance(one, ast.FunctionDef))


class _LeaveOut(ast.NodeTransformer):
    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def visit(self, node: ast.AST) -> Any:
        node = self.generic_visit(node)
        place = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        if place != (self.mutant.line, self.mutant.column):
            return node
        if self.mutant.part < 0:
            is_it = isinstance(node, ast.Raise | ast.Expr) and _text(node) == self.mutant.text
            return ast.copy_location(ast.Pass(), node) if is_it else node
        if isinstance(node, ast.BoolOp) and _text(node.values[self.mutant.part]) == self.mutant.text:
            del node.values[self.mutant.part]
            return node.values[0] if len(node.values) == 1 else node
        return node


@contextlib.contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """Leave the guard out for the length of the block."""
    module = importlib.import_module(mutant.module)
    tree = ast.fix_missing_locations(_LeaveOut(mutant).visit(ast.parse(inspect.getsource(module))))
    code = _code_of(compile(tree, str(module.__file__), "exec"), mutant.function)
    function = _function_of(module, mutant.function)
    kept = function.__code__
    if code == kept:
        raise ValueError(f"{mutant} is no other program")
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = kept


def _code_of(code: CodeType, name: str) -> CodeType:
    first, _, rest = name.partition(".")
    found = next(one for one in code.co_consts if isinstance(one, CodeType) and one.co_name == first)
    return _code_of(found, rest) if rest else found


def _function_of(module: ModuleType, name: str) -> FunctionType:
    found: Any = module
    for part in name.split("."):
        found = found.__dict__[part]
    found = inspect.unwrap(getattr(found, "fget", None) or getattr(found, "__func__", found))
    if not isinstance(found, FunctionType):
        raise TypeError(f"{module.__name__}.{name} is no plain function")
    return found
