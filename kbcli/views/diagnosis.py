"""Additions of ``kb doctor`` to the core's diagnosis: the program, the git hooks, and facts that only a front end has.

Every finding comes with its remedy, and nothing is changed. A check that cannot be made is a finding itself.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from kbcli.messages.lines import hook_place, size
from kbcore import __version__
from kbcore.errors import Damaged, InvalidConfig, KBError
from kbcore.limits import MIB
from kbcore.maintenance.findings import DoctorFinding, Severity, of_config, of_error
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.store.workspace import Workspace

_LITTLE_SPACE_BYTES: Final = 200 * MIB
_HOOK_SEVERITY: Final[dict[str, Severity]] = {"active": "ok", "absent": "note", "managed": "note"}
_ADD_TO_PATH: Final = "Add the folder of `kb` to PATH."

Check = Callable[["Session", "Workspace"], Iterator[DoctorFinding]]


def findings(session: Session, workspace: Workspace) -> list[DoctorFinding]:
    """Return what was found about everything but the repository's stores and settings."""
    checks: tuple[tuple[str, Check], ...] = (
        ("program", _program),
        ("extractors", _extractors),
        ("rules", _rules),
        ("schema", _schema),
        ("hooks", _hooks),
        ("sharing", _sharing),
        ("clients", _clients),
        ("disk", _disk),
        ("cache", _reports),
        ("memory", _memory),
    )
    found: list[DoctorFinding] = []
    for name, check in checks:
        try:
            found.extend(check(session, workspace))
        except InvalidConfig as error:
            found += of_config(name, error)
        except KBError as error:
            found.append(of_error(name, error))
    return found


def _program(session: Session, _: Workspace) -> Iterator[DoctorFinding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield DoctorFinding("program", "ok", "version", f"kb {__version__} on Python {version}.")
    if not _is_on_path(session):
        message = "`kb` is in no folder of PATH: git hooks find it only where its path was noted in them."
        yield DoctorFinding("program", "note", "not_on_path", message, _ADD_TO_PATH)


def _is_on_path(session: Session) -> bool:
    return shutil.which("kb", path=session.env.get("PATH")) is not None


def _extractors(_: Session, workspace: Workspace) -> Iterator[DoctorFinding]:
    from kbcore.extract import registry
    from kbcore.sync.active_extractors import settings_faults

    faults = settings_faults(workspace)
    broken = {one.path for one in faults}
    names = [one for one in registry.load(workspace.config.switched_off).usable if f"extractors.{one}" not in broken]
    yield DoctorFinding("extractors", "ok", "extractors", f"{', '.join(names)}.")
    for one in faults:
        yield DoctorFinding("settings" if one.path == "$" else "extractors", "warning", one.code, one.message, one.hint)


def _rules(_: Session, workspace: Workspace) -> Iterator[DoctorFinding]:
    from kbcore.rules import NAMES, load_rules
    from kbcore.store.settings_files import RULES

    own = load_rules(workspace.texts_in(RULES))
    yield DoctorFinding("rules", "ok", "rules", f"{len(NAMES)} of KB's own, {len(own)} of the project.")


def _schema(_: Session, workspace: Workspace) -> Iterator[DoctorFinding]:
    from kbcore.config.schema_files import CORE_FILE
    from kbcore.store.settings_files import SCHEMA

    path = workspace.settings_dir / SCHEMA / CORE_FILE
    try:
        is_there = path.is_file()
    except PermissionError:  # the check of the settings names the folder and its owner
        return
    if not is_there:
        yield DoctorFinding("schema", "note", "no_core_schema", f"{path} is not there to be read.", "Run `kb init`.")


def _hooks(session: Session, workspace: Workspace) -> Iterator[DoctorFinding]:
    from kbcli import hooks

    repo, env = workspace.repo, session.env
    if not repo.has_worktree:
        return
    # What is tracked, or serves other repositories, names no path of this machine.
    is_lost = not _is_on_path(session) and hooks.find_place(repo, env, None).is_shared
    is_needed = workspace.config.share.mode == "auto"
    for result in hooks.status(repo, env, fallback=hooks.own_program()):
        severity = _HOOK_SEVERITY.get(result.state, "warning")
        message = f"{result.event}: {result.state} ({hook_place(result)})"
        if result.event == "pre-commit" and result.state != "active":
            severity = "warning" if is_needed else "note"
            message += ", so no commit takes changes along although `share.mode` is auto" if is_needed else ""
        if is_lost and result.state == "active" and result.way == "file":
            message += ", but `kb` is in no folder of PATH, and a file outside of the git directory notes no path of it"
            yield DoctorFinding("hooks", "warning", "hook_without_program", message, _ADD_TO_PATH)
        else:
            yield DoctorFinding("hooks", severity, f"hook_{result.state}", message, result.hint)


def _sharing(session: Session, workspace: Workspace) -> Iterator[DoctorFinding]:
    """Find what keeps changes of people and agents from being shared on this branch."""
    from kbcore.maintenance.share_diagnosis import sharing_findings
    from kbcore.store import branches

    try:
        yield from sharing_findings(workspace, branches.choose(workspace, session.named_branch).branch)
    except Damaged:
        return  # reported by the store's own findings, with the remedy


def _clients(session: Session, workspace: Workspace) -> Iterator[DoctorFinding]:
    from kbcli.clients.finding import client_findings

    if workspace.repo.has_worktree:
        yield from client_findings(workspace.repo.worktree, session.env, workspace.machine.clock)


def _disk(_: Session, workspace: Workspace) -> Iterator[DoctorFinding]:
    free = shutil.disk_usage(workspace.repo.kb_root).free
    is_little = free < _LITTLE_SPACE_BYTES
    remedy = "Free some space; without it nothing can be written." if is_little else ""
    yield DoctorFinding("disk", "warning" if is_little else "ok", "free_space", f"{size(free)} are free.", remedy)


def _memory(session: Session, workspace: Workspace) -> Iterator[DoctorFinding]:
    """Find whether what agents remember on this branch asks for a sleep cycle."""
    from kbcore.kip.sleep.due import due
    from kbcore.store import branches

    choice = branches.choose(workspace, session.named_branch)
    if not workspace.folders.has_store(choice.branch):
        return
    try:
        found = workspace.store(choice.branch).read(lambda view: due(workspace, view))
    except Damaged:
        return  # reported by the store's own findings, with the remedy
    if found and found.reasons:
        yield DoctorFinding("memory", "warning", "sleep_due", " ".join(found.reasons), "Run `kb sleep`.", choice.branch)
    elif found:
        last = f"; the last cycle was at {found.last_cycle}" if found.last_cycle else ""
        yield DoctorFinding("memory", "ok", "in_order", f"What agents remember is in order{last}.", "", choice.branch)


def _reports(_: Session, workspace: Workspace) -> Iterator[DoctorFinding]:
    from kbcore.storage.bug_reports import BUGS

    folder = workspace.folders.cache_dir / BUGS
    bugs = sorted(folder.glob("*.txt")) if folder.is_dir() else []
    if bugs:
        message = f"{pluralize(len(bugs), 'report')} of bugs in {folder}."
        remedy = "Send them to the authors of KB; `kb gc` removes those that are older than four weeks."
        yield DoctorFinding("cache", "note", "bug_reports", message, remedy)
