"""The folders in which the clients of one call are set up, and the programs of KB that they are to run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbcli.clients.kinds import Scope
    from kbcli.clients.setup import Surroundings
    from kbcli.invocation.context import Session


def of(
    session: Session,
    scopes: Sequence[Scope] = ("project", "user"),
    *,
    offering: Sequence[str] = (),
    server_name: str = "kb",
    quiet: bool = False,
) -> Surroundings:
    """Return where the clients of this call are set up, and which programs they are to run.

    ``offering`` are options of the server. Raises: ``NotARepository``; ``GitUnusable``.
    """
    from kbcli.clients.setup import Surroundings
    from kbcore import git
    from kbcore.store.folders import CACHE, data_dir_of

    repo = git.find_own_repository(session.start, session.env, **session.git_places)
    home = session.env.get("HOME") or session.env.get("USERPROFILE")
    notes = dict[str, None]()
    servers: dict[Scope, Sequence[str]] = {
        one: [*_command(session, one, "kb-mcp", "kbmcp.server", notes if one in scopes else {}), *offering]
        for one in ("project", "user")
    }
    hooks: dict[Scope, Sequence[str]] = {
        one: _command(session, one, "kb", "kbcli.app", {}) for one in ("project", "user")
    }
    for note in [] if quiet else notes:
        session.output.note(note)
    return Surroundings(
        machine=session.machine,
        worktree=repo.worktree if repo.has_worktree else None,
        common_dir=repo.common_dir,
        data_dir=data_dir_of(repo),
        cache_dir=data_dir_of(repo) / CACHE,
        home=Path(home) if home and Path(home).is_absolute() else None,
        platform=_platform(),
        server_command=servers,
        hook_command=hooks,
        server_name=server_name,
    )


def _command(session: Session, scope: Scope, name: str, module: str, notes: dict[str, None]) -> list[str]:
    """Return what starts a program: this very one by its path, or by its name in a file that others share."""
    import shutil
    import sys

    from kbcore.text.escaping import escape_controls

    own = Path(sys.executable).with_name(name)
    found = shutil.which(name, path=session.env.get("PATH"))
    if scope == "project" and found and own.is_file() and Path(found).samefile(own):
        return [name]
    if own.is_file():
        if scope == "project":
            why = f"the {name} on your PATH is another one ({found})" if found else f"{name} is not on your PATH"
            notes[escape_controls(f"note: {why}, so the file names this one by its path on this machine.")] = None
        return [str(own)]
    return [sys.executable, "-m", module]


def _platform() -> str:
    import sys

    return sys.platform


def checked_name(name: str) -> str:
    """Return the name for the server. Raises: ``InvalidQuery``; clients make tool names of it."""
    import re

    from kbcore.errors import InvalidQuery
    from kbcore.text.escaping import in_quotes

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", name) or "__" in name:
        hint = "Take at most 32 letters, digits, - and _, without two _ in a row."
        raise InvalidQuery(f"{in_quotes(name)} cannot be the name of a server.", hint=hint)
    return name
