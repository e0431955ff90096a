"""``kb status``: the branch, its head, and what a sync would find. Writes nothing at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from kbcli.options import session_of

if TYPE_CHECKING:
    from kbcli.context import Session
    from kbcore.branches import Choice
    from kbcore.store import BranchStore
    from kbcore.view.view import View
    from kbcore.workspace import Workspace

_SHOWN = 10
"""Paths and links of each kind that the text shows; JSON has all of them."""


def run(ctx: typer.Context) -> None:
    """Show the branch, its head, and what a sync would find.

    Writes nothing: a branch without a store gets none.
    """
    from kbcore import branches

    session = session_of(ctx)
    session.is_read_only = True
    workspace = session.workspace
    choice = branches.choose(workspace, session.named_branch)
    store = workspace.store(choice.branch) if workspace.directory_of(choice.branch).is_dir() else None
    if store:
        session.watch(store)
    with session.output.waiting("Looking at files"):
        found = _found(workspace, choice, store)
    if session.output.is_json:
        session.output.document(found)
    else:
        _tell(session, found)


def _found(workspace: Workspace, choice: Choice, store: BranchStore | None) -> dict[str, Any]:
    head_state = workspace.head()
    head = store.head() if store else None
    return {
        "branch": choice.branch,
        "seq": head.seq if head else None,
        "head": {"seq": head.seq, "hash": head.hash, "at": head.head.at} if head else None,
        "checked_out": {"branch": head_state.branch, "kind": head_state.kind, "commit": head_state.commit},
        "default_branch": workspace.default_branch,
        "files": _files(workspace, store, is_current=choice.branch == head_state.branch),
        "unresolved": store.read(_unresolved) if store else [],
        "store": _size(workspace, choice.branch, store),
    }


def _files(workspace: Workspace, store: BranchStore | None, *, is_current: bool) -> dict[str, Any]:
    """Return how the files differ from what the store last took in; only for the branch that is checked out."""
    from kbcore.sync import scan as scanning
    from kbcore.sync.run import wanted
    from kbcore.sync.stamps import path_of, read_stamps
    from kbcore.workspace import CACHE

    taken_in = store.read(_taken_in) if store else {}
    bad = sorted(path for path, (_, _, is_ok) in taken_in.items() if not is_ok)
    if not is_current or not workspace.repo.has_worktree:
        return {"scanned": None, "changed": [], "removed": [], "bad": bad}
    root, machine = workspace.repo.worktree, workspace.machine
    stamps = read_stamps(machine.fs, path_of(workspace.kb_dir / CACHE, root))
    known = {path: (digest, mark) for path, (digest, mark, _) in taken_in.items()}
    scan = scanning.scan(root, wanted(workspace), scanning.Known(stamps, known, machine.clock.epoch_ns()))
    changed = [path for path, found in scan.files.items() if known.get(path) != (found.hash, found.wanted.mark)]
    return {
        "scanned": len(scan.files),
        "changed": sorted(changed),
        "removed": sorted(known.keys() - scan.files.keys()),
        "bad": bad,
    }


def _taken_in(view: View) -> dict[str, tuple[str, str, bool]]:
    return {
        path: (digest, mark, ok)
        for path, digest, mark, ok in view.rows("select path, hash, extractor, is_ok from source")
    }


def _unresolved(view: View) -> list[dict[str, str]]:
    from kbcore.sync.run import unresolved_links

    names = ("from", "target", "source")
    return [dict(zip(names, link, strict=True)) for link in unresolved_links(view)]


def _size(workspace: Workspace, branch: str, store: BranchStore | None) -> dict[str, Any] | None:
    import msgspec

    from kbcore.storage import verify

    if store is None:
        return None
    stats: dict[str, Any] = msgspec.to_builtins(verify.stats(workspace.machine.fs, store.directory, store.head()))
    cache = workspace.cache_of(branch)
    sizes = [path.stat().st_size for path in cache.iterdir() if path.is_file()] if cache.is_dir() else []
    return {**stats, "cache_bytes": sum(sizes)}


def _tell(session: Session, found: dict[str, Any]) -> None:
    from kbcli.render import visible
    from kbcli.wording import counted, size

    output = session.output
    state = found["checked_out"]
    note = "" if found["branch"] == state["branch"] and state["kind"] == "branch" else f" ({state['kind']})"
    if found["branch"] != state["branch"]:
        note = f" ({state['branch']} is checked out)"
    output.say(visible(f"On branch {found['branch']}{note}"))
    if found["store"] is None:
        output.say(visible(f"No store yet: the first use copies that of {found['default_branch']}."))
    else:
        stored = found["store"]
        journal = f"{counted(stored['records'], 'record')}, {size(stored['journal_bytes'])}"
        output.say(visible(f"Head: seq {found['seq']} of {found['head']['at']} ({journal})"))
    files = found["files"]
    listed = (("changed", files["changed"]), ("removed", files["removed"]), ("not read whole", files["bad"]))
    for what, paths in listed:
        _tell_list(session, f"Files {what}:", paths)
    links = [f"{link['from']} -> {link['target']} (stated in {link['source']})" for link in found["unresolved"]]
    _tell_list(session, "Unresolved links:", links)
    if files["changed"] or files["removed"]:
        output.say("Next: `kb sync`")
    elif files["scanned"] is not None:
        output.say(f"In step with {counted(files['scanned'], 'file')}.")


def _tell_list(session: Session, title: str, items: list[str]) -> None:
    from kbcli.render import visible

    if not items:
        return
    session.output.say(title)
    for item in items[:_SHOWN]:
        session.output.say(visible(f"  {item}"))
    if len(items) > _SHOWN:
        session.output.say(f"  … and {len(items) - _SHOWN} more; --json lists all")
