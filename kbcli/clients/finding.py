"""Finds the clients of a repository that cannot start KB's server, by the files in it.

The files of the user's home are not read. A command that is not this program is searched for, not started.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcli.clients import installing, kinds, trial
from kbcli.clients.entries import PROGRAMS, ClientEntry, fault_of, start_of
from kbcli.clients.installing import ClientFile
from kbcli.clients.kinds import ClientKind
from kbcore.clock import Clock
from kbcore.errors import KBError
from kbcore.maintenance.findings import DoctorFinding

CHECK: Final = "clients"


def client_findings(worktree: Path, env: Mapping[str, str], clock: Clock) -> Iterator[DoctorFinding]:
    """Look at every client's file in a worktree that has one, and at each entry there that is KB's."""
    for name, kind in kinds.KINDS.items():
        if "project" not in kind.places:
            continue
        place = ClientFile(worktree, kinds.file_of(kind, "project", sys.platform))
        try:
            tables = installing.servers(kind, place)
        except KBError as error:
            remedy = f"Correct it: {kind.title} reads it."
            yield DoctorFinding(CHECK, "warning", "client_file", error.message, remedy, file=str(place.path))
            continue
        remedy = f"Run `kb mcp install {name} --write`, or correct the entry by hand."
        yield from _misplaced(kind, place, tables, remedy)
        for server, entry in tables.get(kind.table, {}).items():
            label = f"{kind.title}, {server} in {place.below}"
            fault, start = fault_of(server, entry), start_of(server, entry, worktree)
            if fault:
                yield DoctorFinding(CHECK, "warning", "client_entry", f"{label}: {fault}.", remedy)
            elif start is not None:
                yield _finding(_Entry(label, remedy, start), worktree, env, clock)


def entry_fault(kind: ClientKind, place: ClientFile, server: str, worktree: Path, env: Mapping[str, str]) -> str:
    """Return why an entry cannot start KB's server, as far as that is seen without starting it; "" where it can.

    Raises: as ``installing.servers``.
    """
    entry = installing.servers(kind, place).get(kind.table, {}).get(server)
    if fault := fault_of(server, entry):
        return fault
    start = start_of(server, entry, worktree)
    return "it starts nothing of KB" if start is None else _start_fault(start, worktree, env)[1]


def _misplaced(
    kind: ClientKind, place: ClientFile, tables: Mapping[str, Mapping[str, Any]], remedy: str
) -> Iterator[DoctorFinding]:
    """Yield findings on entries of KB under a table that only another client reads."""
    for table, servers in tables.items():
        for server, entry in servers.items():
            if table != kind.table and (start_of(server, entry, place.base) or fault_of(server, entry)):
                label = f"{kind.title}, {server} in {place.below}"
                message = f"{label}: it is under `{table}`, but {kind.title} reads `{kind.table}`."
                yield DoctorFinding(CHECK, "warning", "client_table", message, remedy)


class _Entry(msgspec.Struct, frozen=True):
    """An entry of KB's: its name in messages, its remedy, and the program that it starts."""

    label: str
    remedy: str
    start: ClientEntry


def _finding(entry: _Entry, worktree: Path, env: Mapping[str, str], clock: Clock) -> DoctorFinding:
    label, remedy, start = entry.label, entry.remedy, entry.start
    code, fault = _start_fault(start, worktree, env)
    if fault:
        return DoctorFinding(CHECK, "warning", code, f"{label}: {fault}.", remedy)
    program = _program(start.command, worktree, env)
    own = _own(program) if program else None
    if own is None or not start.is_serving(own.name):
        return DoctorFinding(CHECK, "ok", "client", f"{label}: `{start.command}` is there; it was not started.")
    trouble = trial.try_to_start([str(own), *start.arguments], worktree, {**env, **start.env}, clock)
    if trouble:
        return DoctorFinding(CHECK, "warning", "client_start", f"{label}: {trouble}.", remedy)
    return DoctorFinding(CHECK, "ok", "client", f"{label}: `{start.command}` starts and answers.")


def _start_fault(start: ClientEntry, worktree: Path, env: Mapping[str, str]) -> tuple[str, str]:
    """Return the code and the sentence of what is seen to be wrong with a start; both are "" where nothing is."""
    program = _program(start.command, worktree, env)
    if program is None:
        where = "is not there" if _has_folder(start.command) else "is in no folder of PATH"
        return "client_command", f"`{start.command}` {where}"
    own = _own(program)
    if own and (fault := start.fault(own.name)):
        return "client_arguments", fault
    if own and start.is_serving(own.name) and start.folder and not (worktree / start.folder).is_dir():
        return "client_folder", f"the folder {start.folder} that it names is not there"
    return "", ""


def _program(command: str, worktree: Path, env: Mapping[str, str]) -> str | None:
    """Return the path of a command as a client finds it that is started in the worktree; None where there is none."""
    return shutil.which(str(worktree / command) if _has_folder(command) else command, path=env.get("PATH", ""))


def _has_folder(command: str) -> bool:
    return "/" in command or "\\" in command


def _own(program: str) -> Path | None:
    """Return the program of this very installation that a path leads to; None where it leads elsewhere."""
    own = (Path(sys.executable).with_name(name) for name in PROGRAMS)
    return next((path for path in own if path.is_file() and path.samefile(program)), None)
