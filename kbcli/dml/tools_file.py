"""Loads the tools of a Python file: the functions of its list ``TOOLS``."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kbcore.dml.tools import Tool, tool_of
from kbcore.errors import InvalidQuery
from kbcore.text.escaping import escape_controls

_NAME: Final = "kb_dml_tools"
"""The name of the module that the file becomes."""
_LIST: Final = "TOOLS"


def read_tools(path: Path) -> list[Tool]:
    """Return the tools of a file, which is run as Python runs it: modules next to it can be imported.

    Raises: ``InvalidQuery`` where it cannot be read or run, or its ``TOOLS`` is no list of functions with schemas.
    """
    listed = getattr(_module(path), _LIST, None)
    shown = escape_controls(str(path))
    if not isinstance(listed, list | tuple):
        raise InvalidQuery(
            f"--tools: {shown} has no list {_LIST}.", hint=f"It ends with `{_LIST} = [first, second]`, its functions."
        )
    return [_tool(one, shown) for one in listed]


def _tool(one: Tool | Callable[..., Any], shown: str) -> Tool:
    if isinstance(one, Tool):
        return one
    if not callable(one):
        raise InvalidQuery(f"--tools: {_LIST} of {shown} has a {type(one).__name__}, which is no function.")
    try:
        return tool_of(one)
    except ValueError as error:
        raise InvalidQuery(
            f"--tools: {shown}: {error}.", hint="Name each parameter, and give it a type that JSON has."
        ) from error


def _module(path: Path) -> Any:
    """Return the module that a file is. Raises: ``InvalidQuery``."""
    shown = escape_controls(str(path))
    if not path.is_file():
        raise InvalidQuery(f"--tools: there is no file {shown}.", hint="Name a Python file with a list `TOOLS`.")
    spec = importlib.util.spec_from_file_location(_NAME, path)
    if spec is None or spec.loader is None:
        raise InvalidQuery(f"--tools: {shown} is no Python file.", hint="Its name ends in `.py`.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever a file of the user raises is a fault of that file
        line = next(
            (one.lineno for one in reversed(traceback.extract_tb(error.__traceback__)) if one.filename == str(path)), 0
        )
        place = f"{shown}:{line}" if line else shown
        said = escape_controls(f"{type(error).__name__}: {error}")
        raise InvalidQuery(f"--tools: {place} cannot be run: {said}.", hint="Correct the file.") from error
    return module
