"""``kb status``: the branch, its head, and what a sync would find. Writes nothing at all."""

from __future__ import annotations

import contextlib
import stat
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kbcli.invocation.context import Session
    from kbcore.storage.fs import Fs
    from kbcore.storage.loss import Loss
    from kbcore.store.branch_store import BranchStore
    from kbcore.store.workspace import Workspace
    from kbcore.sync.answer import UnresolvedLink
    from kbcore.view.view import View

_SHOWN = 10
"""Paths and links of each kind that the text shows; JSON has all of them."""


def run(ctx: typer.Context) -> None:
    """Show the branch, its head, and what a sync would find.

    Writes nothing: a branch without a store gets none.
    """
    from kbcore.store import branches

    session = session_of(ctx)
    session.is_read_only = True
    choice = branches.choose(session.workspace, session.named_branch)
    with session.output.waiting("Looking at files"):
        found = _found(session, choice.branch)
    if session.output.is_json:
        session.output.document(found)
    else:
        _show(session, found)


def _found(session: Session, branch: str) -> dict[str, Any]:
    from kbcore.errors.remedies import for_shell
    from kbcore.git.operations import operation_of
    from kbcore.maintenance.caches import views_set_aside
    from kbcore.store import branches, unread_stores
    from kbcore.store.branches import lost
    from kbcore.sync.file_dates import slow_history, slow_words

    workspace, checked_out = session.workspace, session.workspace.head()
    store = _watched(session, branch) if workspace.folders.has_store(branch) else None
    # A branch without a store is compared with what its first write will copy.
    origin = None if store else branches.find_origin(workspace, branch)
    compared = _watched(session, origin.branch) if origin else store
    head = store.head() if store else None
    losses = lost.losses(workspace)
    seen = {
        "branch": branch,
        "seq": head.seq if head else None,
        "head": {"seq": head.seq, "hash": head.hash, "at": head.head.at} if head else None,
        "git_operation": operation_of(workspace.repo) if workspace.repo.has_worktree else "",
        "checked_out": {"branch": checked_out.branch, "kind": checked_out.kind, "commit": checked_out.commit},
        "default_branch": workspace.default_branch,
        "copy_of": origin.branch if origin else None,
        "is_renamed": origin is not None and origin.is_former,
        "missing": _missing(workspace, losses),
    }
    slow = slow_history(workspace)
    blocking = lost.blocking(workspace, branch, losses, is_copied=origin is not None)
    place = workspace.folders.place_of_stores()
    refusal = None if store else workspace.folders.refusal_to_write()
    has_files = branch == checked_out.branch and workspace.repo.has_worktree
    compare = partial(_compared, session, has_files=has_files, sharing_of=branch if store else "")
    differences, faults = compared.read(compare) if compared else compare(None)
    warnings = [
        *map(str, filter(None, [branches.suspicion(workspace, branch)])),
        *([f"{one.message} {one.remedy}" for one in views_set_aside(workspace, branch)] if store else []),
        # That of this branch is reported by the reader of its store, at the end of every command.
        *(
            one.sentence()
            for one in workspace.place.damaged()
            if not (store and one.directory_name == store.directory.name)
        ),
        *map(str, unread_stores.find_unread(workspace.folders)),
        *([" ".join(slow_words(workspace, slow))] if slow else []),
        *faults,
        *(f"{one.place}: {one.message} {one.remedy}" for one in workspace.cut_values()),
        *([place.sentence()] if place.place == "git" and place.remedy else []),
    ]
    return {
        **seen,
        **differences,
        "store": _size(workspace, branch, store),
        "stores": {"place": place.place, "folder": str(place.folder), "why": place.why, "remedy": place.remedy},
        "refused_for": blocking.branch if blocking else None,
        "unwritable": str(refusal[0]) if refusal else None,
        "warnings": [for_shell(one) for one in warnings],
    }


def _missing(workspace: Workspace, losses: Sequence[Loss]) -> list[dict[str, Any]]:
    """Return what is missing of which branch, as values and as a sentence, and what to do."""
    from kbcore.store.branches import lost

    return [
        {
            "branch": one.branch,
            "seen": one.seen,
            "now": one.now,
            "kind": one.kind,
            "message": one.sentence(),
            "remedy": lost.remedy(workspace, one),
        }
        for one in losses
    ]


def _watched(session: Session, branch: str) -> BranchStore:
    """Return the store that a branch has, its notices reported."""
    store = session.workspace.store(branch)
    session.watch(store)
    return store


def _compared(
    session: Session, view: View | None, *, has_files: bool, sharing_of: str
) -> tuple[dict[str, Any], list[str]]:
    """Return how the files differ from the recorded state of them, the unresolved links, and what is not shared.

    ``sharing_of`` is the branch to look at for that, "" where it has no store.

    With it: why files cannot be read as the project wants them to be.
    """
    from kbcore.errors.remedies import for_shell
    from kbcore.share.state import find_state
    from kbcore.sync.file_status import stale_sources, unresolved_links
    from kbcore.sync.pending import find_pending, place_of
    from kbcore.sync.planned import differing
    from kbcore.sync.stamps import read_stamps, stamps_file

    files: dict[str, Any] = {"scanned": None, "changed": [], "removed": [], "not_read": {}}
    blind: list[str] = []
    faults: list[str] = []
    if has_files:
        workspace, machine = session.workspace, session.machine
        place = place_of(workspace)
        stamps = read_stamps(machine.fs, stamps_file(workspace.folders.cache_dir, place.root))
        now_ns = machine.clock.epoch_ns()
        pending = find_pending(view, place, stamps, now_ns)
        if view:
            claims = workspace.store(workspace.head().branch).claims
            pending = differing(view, place, workspace.schema, pending, now_ns, claims=claims)
        changed = sorted(found.path for found in pending.changed)
        files = {
            "scanned": pending.scanned,
            "changed": changed,
            "removed": list(pending.gone),
            "not_read": pending.scan.not_read,
        }
        blind = sorted(pending.scan.blind)
        faults = [f"{one.message} {one.hint}" for one in pending.faults]
    # A deleted one is named once: the next sync forgets that it could not be read.
    bad = [path for path in stale_sources(view) if path not in files["removed"]] if view else []
    links = unresolved_links(view) if view else ()
    accepted = _accepted(session, view, bad, links) if view else {}
    state = find_state(session.workspace, sharing_of, view) if view and sharing_of else None
    found = {
        "sharing": {**state.as_json(), "sentences": [*map(for_shell, state.sentences())]} if state else None,
        "files": {**files, "bad": bad, "not_listed": blind},
        "unresolved": [link.as_json() for link in links],
        "accepted": {
            "bad": accepted.get("bad", []),
            "unresolved": [link.as_json() for link in accepted.get("unresolved", ())],
        },
    }
    return found, faults


def _accepted(
    session: Session, view: View, bad: Sequence[str], links: Sequence[UnresolvedLink]
) -> dict[str, list[Any]]:
    """Return which of these files and links a project accepts as they are."""
    if not (bad or links):
        return {}
    from kbcore.checks import known_in
    from kbcore.sync.faults import UNREADABLE, about, links_not_accepted, not_accepted
    from kbcore.sync.file_status import file_status

    known, _ = known_in(session.workspace, view, about((), links))
    problems = [one for one in file_status(view, bad).problems if one[1].severity == "error"]
    left = {path for path, _ in not_accepted(problems, known)}
    left |= {path for path in {*bad} - {path for path, _ in problems} if not known.accepts(UNREADABLE, path, path)}
    open_links = links_not_accepted(links, known)
    return {
        "bad": [path for path in bad if path not in left],
        "unresolved": [link for link in links if link not in open_links],
    }


def _size(workspace: Workspace, branch: str, store: BranchStore | None) -> dict[str, Any] | None:
    import msgspec

    from kbcore.storage import verify

    if store is None:
        return None
    fs = workspace.machine.fs
    stats: dict[str, Any] = msgspec.to_builtins(verify.stats(fs, store.directory, store.head()))
    return {**stats, "cache_bytes": _cached_bytes(fs, workspace.folders.cache_of(branch))}


def _cached_bytes(fs: Fs, cache: Path) -> int:
    from kbcore.storage import files

    total = 0
    with files.explained(cache, "list", reading=True):
        for name in fs.listdir(cache) if files.is_directory(fs, cache) else ():
            # Another process may replace what it has cached at this moment.
            with contextlib.suppress(FileNotFoundError):
                found = fs.lstat(cache / name)
                total += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return total


def _show(session: Session, found: dict[str, Any]) -> None:
    """Show the status. All of it was asked for, so ``--quiet`` leaves out only what to do next."""
    from kbcore.sync.answer import not_read_line, unresolved_words
    from kbcore.text.escaping import escape_controls, escaped_sentence
    from kbcore.text.wording import pluralize

    output = session.output
    state, files = found["checked_out"], found["files"]
    note = "" if found["branch"] == state["branch"] and state["kind"] == "branch" else f" ({state['kind']})"
    if found["branch"] != state["branch"]:
        note = f" ({state['branch']} is checked out)"
    lines = [f"On branch {found['branch']}{note}"]
    lines.append(_store_line(found, session.sync_command()))
    operation = found["git_operation"]
    if operation:
        lines.append(f"A {operation} of git is not finished: the files are not those of a commit yet.")
    # Missing parts of the store of this branch are reported by its reader, at the end of every command.
    session.has_reported_losses = True
    named = {found["branch"]} if found["store"] else set()
    missing = [f"{one['message']} {one['remedy']}" for one in found["missing"] if one["branch"] not in named]
    for warning in [*missing, *found["warnings"]]:
        output.warn(escaped_sentence(warning))
    lines += _listed("Files changed:", files["changed"])
    lines += _listed("Files removed:", files["removed"])
    accepted = found["accepted"]
    lines += _listed("Files not read completely:", [path for path in files["bad"] if path not in accepted["bad"]])
    lines += _listed("Folders that cannot be read:", files["not_listed"])
    links = [unresolved_words(link) for link in found["unresolved"] if link not in accepted["unresolved"]]
    lines += _listed("Unresolved links:", links)
    is_pending = bool(files["changed"] or files["removed"])
    if files["scanned"] is not None and not is_pending:
        lines.append(f"In step with {pluralize(files['scanned'], 'file')}.")
    if left := not_read_line(files["not_read"]):
        lines.append(left)
    lines += found["sharing"]["sentences"] if found["sharing"] else []
    output.data("".join(f"{output.flowed(escape_controls(line))}\n" for line in lines))
    if next_step := _next(found, operation, is_pending=is_pending):
        output.say(f"Next: {next_step}")


def _next(found: dict[str, Any], operation: str, *, is_pending: bool) -> str:
    """Return what to do next, "" where nothing is; ``operation`` is the one of git that is not finished."""
    if found["unwritable"]:
        return "`kb doctor` says how to write here"
    if found["refused_for"] is not None:
        return ""  # a sync would be refused; the warning about that branch says what to do
    if is_pending:
        return f"end the {operation}, as `git status` says; then `kb sync`" if operation else "`kb sync`"
    if found["files"]["scanned"] == 0:
        return "write a document where the extractors look (`kb sync` says where), or try `kb demo`"
    return ""


def _store_line(found: dict[str, Any], sync: str) -> str:
    """Show the seq of the store of the branch, or why there is none; ``sync`` is the command that reads the files."""
    from kbcli.messages.lines import size
    from kbcore.text.wording import pluralize

    stored = found["store"]
    if stored:
        journal = f"{pluralize(stored['records'], 'record')}, {size(stored['journal_bytes'])}"
        return f"Head: seq {found['seq']} of {found['head']['at']} ({journal})"
    if any(one["branch"] == found["branch"] for one in found["missing"]):
        return "No store, although it had one."
    if found["refused_for"] is not None:
        return f"No store yet, and none is made while that of {found['refused_for']} is missing."
    if found["unwritable"]:
        return f"No store yet, and none can be made: {found['unwritable']} cannot be written to."
    if found["is_renamed"]:
        return f"git renamed it from {found['copy_of']}: the first write takes over the store of that name."
    if found["copy_of"]:
        return f"No store yet: the first write copies that of {found['copy_of']}, and the files are compared with it."
    return f"No store yet: {sync} makes an empty one and reads the files."


def _listed(title: str, items: list[str]) -> list[str]:
    if not items:
        return []
    rest = [f"  … and {len(items) - _SHOWN} more; --json lists all"] if len(items) > _SHOWN else []
    return [title, *(f"  {item}" for item in items[:_SHOWN]), *rest]
