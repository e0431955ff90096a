"""All that KB has written for clients in a repository, and what it has written in the user's home for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from kbcli.clients import installing, kinds, setup
from kbcli.clients.entries import start_of
from kbcli.clients.parts import ServerEntry
from kbcli.clients.receipts import Receipts
from kbcli.clients.setup import PartTarget, Surroundings
from kbcore.errors import KBError


def targets_of(around: Surroundings) -> Iterator[PartTarget | tuple[PartTarget, KBError]]:
    """Yield every part that is there: in the repository's files whoever wrote it, in those of the user if it is ours.

    A part of the user is left where another repository that is still there had it written too. A part whose file cannot
    be read comes with the error; a file to which a link leads has none, as KB writes none.
    """
    for scope in kinds.SCOPES:
        if (around.home if scope == "user" else around.worktree) is None:
            continue
        kept = Receipts(around.receipts_place(scope))
        for target in setup.skills(around, [*kinds.SKILLS], scope):
            yield from _if_there(around, kept, target)
        for client, kind in kinds.KINDS.items():
            for name in _names(kept, client):
                named = msgspec.structs.replace(around, server_name=name)
                only = setup.PARTS if name == around.server_name else ("server",)
                only = tuple(one for one in only if one != "server" or scope in kind.places)
                for target in setup.targets(named, client, scope, only):
                    yield from _if_there(around, kept, target)


def leave(around: Surroundings) -> bool:
    """Note that this repository wants nothing of the user's files any more; return whether another one does.

    Raises: ``LockTimeout``; ``StorageError`` and its kin.
    """
    place = around.receipts_place("user")
    if place is None:
        return False
    with installing.alone(around.machine, place, around.cache_dir):
        kept = Receipts(place)
        for path in kept.paths():
            receipt = kept.of(path)
            if receipt and str(around.common_dir) in receipt.repositories:
                others = tuple(one for one in receipt.repositories if one != str(around.common_dir))
                kept.keep(path, msgspec.structs.replace(receipt, repositories=others))
        return bool(kept.paths())


def left_elsewhere(around: Surroundings) -> list[Path]:
    """Return the files that KB has written into for clients and that are still there: of other worktrees, at last."""
    return [path for path in Receipts(around.receipts_place("project")).paths() if path.exists()]


def _names(kept: Receipts, client: str) -> list[str]:
    """Return the names of servers that were written for a client, the usual one first."""
    keys = {key for path in kept.paths() for key in getattr(kept.of(path), "written", {})}
    return list(dict.fromkeys(["kb", *sorted(key.split()[2] for key in keys if key.startswith(f"{client} server "))]))


def _if_there(
    around: Surroundings, kept: Receipts, target: PartTarget
) -> Iterator[PartTarget | tuple[PartTarget, KBError]]:
    try:
        if _is_there(around, kept, target):
            yield target
    except KBError as error:
        if kept.of(target.place.path) or installing.link_on_the_way(target.place) is None:
            yield target, error


def _is_there(around: Surroundings, kept: Receipts, target: PartTarget) -> bool:
    part, receipt = target.part, kept.of(target.place.path)
    is_noted = receipt is not None and target.key in receipt.written
    if setup.look(around, target) == "missing" and not is_noted:
        return False
    if target.scope == "project":
        return True
    others = [one for one in (receipt.repositories if receipt else ()) if one != str(around.common_dir)]
    if isinstance(part, ServerEntry):
        start = start_of(
            part.server, part.found(installing.text_of(target.place)), around.worktree or around.common_dir
        )
        if start and start.folder:
            return Path(start.folder) == (around.worktree or around.common_dir)
    return is_noted and not any(Path(one).is_dir() for one in others)
