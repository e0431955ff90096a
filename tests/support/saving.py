"""Saves something in the very moment in which KB replaces a file, as an editor or another process may."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_SAVING: list[tuple[str, Callable[[], object]]] = []


def _save(event: str, args: tuple[Any, ...]) -> None:
    if event == "os.rename" and _SAVING and str(args[1]).endswith(_SAVING[0][0]):
        _SAVING.pop()[1]()


sys.addaudithook(_save)


@contextmanager
def saving_while_written(path: str, save: Callable[[], object]) -> Iterator[None]:
    """Call ``save`` once, when a file whose path ends so is about to be replaced."""
    _SAVING[:] = [(path, save)]
    try:
        yield
    finally:
        _SAVING.clear()
