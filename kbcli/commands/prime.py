"""``kb prime``: what to know before a change, within a budget of tokens."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.invocation.context import session_of
from kbcore.limits import HOOK_TOKENS, MAX_CONTEXT_TOKENS, MIN_CONTEXT_TOKENS, MIN_PRIME_TOKENS, PRIME_TOKENS

if TYPE_CHECKING:
    from kbcli.invocation.context import Opened, Session
    from kbcore.prime.briefing import Briefing
    from kbcore.sync.context import Context, ContextRequest
    from kbcore.sync.overlay import FileState
    from kbcore.view.view import View


def run(
    ctx: typer.Context,
    *,
    paths: Annotated[
        list[str] | None,
        typer.Option("--for", metavar="PATH", help="A file, or PATH:LINE, that is to be changed; may be repeated."),
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="What is changed in the worktree and not committed.")] = False,
    budget: Annotated[
        int | None,
        typer.Option(
            "--budget", metavar="N", help=f"Answer in at most N tokens. [default: {PRIME_TOKENS}; hook: {HOOK_TOKENS}]"
        ),
    ] = None,
    hook: Annotated[
        bool, typer.Option("--hook", help="Only accepted and fresh facts, or nothing; the status is always 0.")
    ] = False,
) -> None:
    """Show what to know before a change, within a budget of tokens.

    The branch, what changed since your last session, what is contested or not shared, open tasks, and the facts that
    bind the named files or the uncommitted changes: decisions and requirements first, then scenarios, tests and flags.
    What does not fit is counted. Four characters count as one token.
    """
    from kbcore.errors import KBError, NotARepository, NotInitialised

    session = session_of(ctx)
    if not hook:
        _answer(session, paths or [], diff=diff, budget=budget, is_hook=False)
        return
    try:
        _answer(session, paths or [], diff=diff, budget=budget, is_hook=True)
    except (NotARepository, NotInitialised):  # a hook of a client runs in any folder
        return
    except KBError as error:
        session.show_error(error)


def _answer(session: Session, paths: list[str], *, diff: bool, budget: int | None, is_hook: bool) -> None:
    from kbcli.invocation import prime_note
    from kbcore.errors import InvalidQuery
    from kbcore.ids import path_text
    from kbcore.limits import MAX_CONTEXT_PATHS
    from kbcore.prime.rendering import hook_text_of, json_of, text_of
    from kbcore.sync.context import ContextRequest, find_context
    from kbcore.sync.paths import folder_in
    from kbcore.sync.symbol_at import place_in
    from kbcore.text.escaping import json_text

    paths = [path_text(path) for path in paths]
    if not all(path.strip() for path in paths):
        raise InvalidQuery("--for is empty.", hint="Leave it out, or name a path.")
    least, most = (MIN_CONTEXT_TOKENS, HOOK_TOKENS) if is_hook else (MIN_PRIME_TOKENS, MAX_CONTEXT_TOKENS)
    tokens = (HOOK_TOKENS if is_hook else PRIME_TOKENS) if budget is None else budget
    if not least <= tokens <= most:
        raise InvalidQuery(f"--budget is {tokens}.", hint=f"Give a number from {least} to {most}.")
    if len(paths) > MAX_CONTEXT_PATHS:
        raise InvalidQuery(f"{len(paths)} paths were given.", hint=f"Name at most {MAX_CONTEXT_PATHS}.")
    began_ns = session.machine.clock.epoch_ns()
    opened = session.open_to_read()
    worktree = opened.workspace.repo
    start = folder_in(session.start, worktree.worktree) if worktree.has_worktree else ""
    asked = ContextRequest(tuple(paths), diff=diff, start=start)
    if is_hook:
        context = opened.read(lambda view: find_context(opened.workspace, view, opened.branch, asked))[0]
        text = hook_text_of(context, tokens)
        has_lines = diff or any(place_in(path, "").line for path in paths)
        depends = _depends(opened) if has_lines else _hook_depends(opened, context)
        names = _names(opened, context) if not has_lines else None
    else:
        found, state = _read(opened, asked)
        is_json = session.output.is_json
        text = json_text(json_of(found, _around(session, state), tokens)) + "\n" if is_json else text_of(found, tokens)
        depends, names = _depends(opened), None
        session.show_settings(opened.workspace)
    session.output.data(text)
    if _may_be_kept(opened):
        prime_note.keep(session.words, session.env, depends, text, began_ns, names=names)


def _may_be_kept(opened: Opened) -> bool:
    """Return whether an answer may be given again: nothing but it is said, and it is of the folder that kb runs in."""
    from kbcore.sync.active_extractors import settings_faults

    session, store = opened.session, opened.store
    is_plain = [*session.words[:1]] == ["prime"] and not session.directories
    said = (session.notes, session.called, store.warnings, store.notices, settings_faults(opened.workspace))
    return is_plain and not any(said)


def _around(session: Session, state: FileState) -> dict[str, Any]:
    from kbcore.text.escaping import escape_and_cut

    shown = state.as_json()
    if "freshness_reason" in shown:
        shown["freshness_reason"] = escape_and_cut(shown["freshness_reason"], 120)
    return {**shown, **session.output.around}


def _read(opened: Opened, asked: ContextRequest) -> tuple[Briefing, FileState]:
    import msgspec

    from kbcore.prime.briefing import find_briefing

    author = opened.session.author

    def read(view: View) -> Briefing:
        return find_briefing(
            opened.workspace, view, opened.branch, actor=author.actor, session=author.session, asked=asked
        )

    found, state = opened.read(read)
    return msgspec.structs.replace(found, pending=state.pending_files), state


def _of_store(opened: Opened) -> list[str]:
    """Return what every answer depends on: the head of the store, the settings, and whether git is at work.

    Of a branch without a store also the folder of its store, which must not come.
    """
    from kbcore.git.operations import MARKS
    from kbcore.storage.layout import HEAD
    from kbcore.store.settings_files import CONFIG, RULES, SCHEMA

    workspace = opened.workspace
    own, directory = (
        workspace.folders.directory_of(one) for one in (opened.branch, workspace.answering(opened.branch))
    )
    settings = workspace.settings_dir
    found = [os.fspath(directory / HEAD), *(os.fspath(settings / name) for name in (CONFIG, SCHEMA, RULES))]
    found += [
        f"{settings / folder}/{name.rpartition('/')[2]}"
        for folder in (SCHEMA, RULES)
        for name in workspace.texts_in(folder)
    ]
    found += [os.fspath(workspace.repo.git_dir / name) for name in MARKS]
    return found if own == directory else [*found, os.fspath(own)]


def _hook_depends(opened: Opened, found: Context) -> list[str]:
    """Return what the answer of a hook depends on: also the documents of its facts, but no other file."""
    root = opened.workspace.repo.worktree
    return [*_of_store(opened), *{os.fspath(root / one.path) for one in found.facts if one.path}]


def _names(opened: Opened, found: Context) -> tuple[str, frozenset[str]] | None:
    """Return the head of the store, and the names by which a record changes an answer; None where any record may."""
    return None if found.goes_on else (_of_store(opened)[0], found.names)


def _depends(opened: Opened) -> list[str]:
    """Return what an answer depends on: also every file that KB knows or would read, and the folders that have them."""
    from kbcore.query.data_names import known_paths
    from kbcore.sync.noop_cache import files_and_folders

    workspace = opened.workspace
    root, git_dir, common = workspace.repo.worktree, workspace.repo.git_dir, workspace.repo.common_dir
    known = opened.store.read(lambda view: known_paths(view.rows))
    files = {*known, *files_and_folders(workspace)}
    found = [*_of_store(opened), *(os.fspath(root / one) for one in files)]
    home = opened.session.env.get("HOME", "")
    found += [os.fspath(one) for one in (git_dir / "index", common / "config", root / ".gitignore")]
    return [*found, f"{home}/.gitconfig", f"{common}/info/exclude"]
