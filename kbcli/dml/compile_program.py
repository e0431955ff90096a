"""``kb dml compile``: a description becomes a program in a file next to it, unless a person has edited that file."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from kbcli.input import changeset_file
from kbcore.dml import Budget, Model, compiling
from kbcore.dml.check import CallerTools
from kbcore.dml.check_with_engines import errors_finder
from kbcore.dml.compiling import CompiledProgram
from kbcore.dml.tools import Tool
from kbcore.errors import InvalidQuery, StorageError
from kbcore.storage.replacing import replace_file
from kbcore.storage.user_cache import UserCache, key_of
from kbcore.text.escaping import escape_controls
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcli.invocation.context import Session

_ENDING: Final = ".dml"
_MODE: Final = 0o644
_CACHE: Final = "dml"
_MOST_KEPT: Final = 200


class CompileRequest(msgspec.Struct, frozen=True):
    """The request of the command line."""

    file: str
    model: Model
    model_name: str
    tools: Sequence[Tool]
    budget: Budget
    force: bool = False


def compile_program(session: Session, asked: CompileRequest) -> None:
    """Write the program of a description, and say where it came from.

    Raises: ``InvalidQuery`` for a file that cannot be read, or one of a program that was edited; as
    ``compiling.compile_description``; ``StorageError`` where it cannot be written.
    """
    source = session.start / asked.file
    target = source.with_suffix(_ENDING)
    if asked.file == changeset_file.STDIN or source == target:
        raise InvalidQuery("A description is a file that does not end in `.dml`.", hint="Name it NAME.md.")
    description = changeset_file.text_in(asked.file, session.start)
    if not description.strip():
        raise InvalidQuery(f"{escape_controls(asked.file)} is empty.", hint="Describe in it what the program does.")
    if _is_current(target, description, force=asked.force):
        _show(session, target, "file", None)
        return
    cache = UserCache(session.env, _CACHE, _MOST_KEPT)
    key = key_of([description, asked.model_name, compiling.instructions(asked.tools)])
    kept = cache.read(key)
    if kept is not None:
        _write(target, kept, description, source.name)
        _show(session, target, "cache", None)
        return
    shown = escape_controls(target.name)
    tools = CallerTools([tool.name for tool in asked.tools], is_whole=True)
    find_errors = errors_finder(shown, tools, session.env)
    made = asyncio.run(compiling.compile_description(description, asked.model, find_errors, asked.tools, asked.budget))
    cache.keep(key, made.code)
    _write(target, made.code, description, source.name)
    _show(session, target, "model", made)


def _is_current(target: Path, description: str, *, force: bool) -> bool:
    """Tell whether the file has the program of this description already.

    Raises: ``InvalidQuery`` where a person has edited it, and it is not to be overwritten by ``force``.
    """
    if not target.exists():
        return False
    state = compiling.state_of(changeset_file.text_in(str(target), target.parent), description)
    if state == "edited" and not force:
        shown = escape_controls(str(target))
        raise InvalidQuery(
            f"{shown} was edited, or written by hand.",
            hint="--force overwrites it; or give the description another name.",
        )
    return state == "current"


def _write(target: Path, code: str, description: str, name: str) -> None:
    try:
        replace_file(target, compiling.with_header(code, description, name).encode(), _MODE)
    except OSError as error:
        raise StorageError(f"{escape_controls(str(target))} cannot be written: {error.strerror}.") from error


def _show(
    session: Session, target: Path, origin: Literal["file", "cache", "model"], made: CompiledProgram | None
) -> None:
    output = session.output
    used: dict[str, Any] = {}
    if made:
        used = {"attempts": made.attempts, "input_tokens": made.usage.input_tokens}
        used |= {"output_tokens": made.usage.output_tokens}
    if output.is_json:
        output.document({"file": str(target), "from": origin} | used)
        return
    shown = escape_controls(str(target))
    if origin == "file":
        output.say(f"{shown} is the program of this description already.")
    elif made is None:
        output.say(f"Written: {shown}, as the model wrote it before.")
    else:
        output.say(f"Written: {shown} ({pluralize(made.attempts, 'attempt')}, {made.usage.tokens:,} tokens).")
