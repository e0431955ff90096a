"""``kb init``: set up KB in a repository."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from kbcli.forge.github_workflow import WrittenWorkflow
    from kbcli.hooks import HookResult
    from kbcli.invocation.context import Session
    from kbcore.git import Repository
    from kbcore.store.init import Laid

_WORKFLOW_LINES: Final = {
    "created": "Workflow: {} was written. Commit it.",
    "updated": "Workflow: {} was brought up to date. Commit it.",
    "kept": "Workflow: {} is as it would be written.",
    "changed": "Workflow: {} was changed by somebody, and stays as it is. Remove it to have it written.",
}


def run(
    ctx: typer.Context,
    *,
    no_hooks: Annotated[bool, typer.Option("--no-hooks", help="Do not change the git hooks.")] = False,
    hooks_path: Annotated[
        str | None, typer.Option("--hooks-path", metavar="DIR", help="Write the hooks there, and have git run them.")
    ] = None,
    default_branch: Annotated[
        str | None,
        typer.Option("--default-branch", metavar="NAME", help="The branch that new stores are copied from."),
    ] = None,
    share: Annotated[
        Literal["off", "ask", "auto"] | None,
        typer.Option("--share", help="How changes of people and agents get into files that git carries."),
    ] = None,
    github: Annotated[
        bool, typer.Option("--github", help="Write a workflow of GitHub Actions: check, and a report as an artifact.")
    ] = False,
    pages: Annotated[
        bool, typer.Option("--pages", help="With --github: publish the report, for all who may see the site.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Take all that is proposed for the documents found.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what is proposed; write nothing.")] = False,
) -> int:
    """Set up KB in a repository.

    Writes .kb with settings and the schema, makes the store of the default branch, and installs the git hooks. Running
    it again repairs what is missing and changes nothing else.

    It looks for documents and source code, and proposes settings that read them: at a terminal it asks for each set,
    else --yes takes them. No document is changed. At a terminal it offers to accept what the rules find in them as the
    baseline.
    """
    from kbcli import hooks
    from kbcli.input import proposals
    from kbcli.invocation import exits
    from kbcore import git
    from kbcore.store.init import lay_out
    from kbcore.store.kb_folder import KB
    from kbcore.store.pool import StorePool

    session = session_of(ctx)
    if pages and not github:
        from kbcore.errors import InvalidQuery

        raise InvalidQuery("--pages is a part of --github.", hint="Give both: kb init --github --pages.")
    if dry_run:
        return _show_proposals(session)
    repo = git.find_own_repository(session.start, session.env, **session.git_places)
    _check_places(session, repo, None if no_hooks else hooks_path, github=github)
    laid = lay_out(repo, session.machine, StorePool(), default_branch)
    if share is not None:
        from kbcore.store.settings_edit import set_setting

        set_setting(laid.workspace, "share.mode", share)
    results: list[HookResult] = []
    if not no_hooks and (repo.has_worktree or hooks_path):
        folder = session.start / Path(hooks_path) if hooks_path else None
        results = hooks.install(repo, session.env, hooks_path=folder, fallback=hooks.own_program())
    workflow = _write_workflow(laid, pages=pages) if github else None
    # A store that was there may be damaged; what could be set up is set up by now.
    seq = laid.workspace.store(laid.ensured.branch).head().seq
    found = proposals.find(laid.workspace)
    if session.output.is_json:
        is_taken = proposals.offer(session, laid.workspace, found, yes=yes, command="kb init")
        _answer(session, laid, seq, results, proposals.as_json(found, is_taken=is_taken), workflow)
    else:
        _show(session, laid, results)
        is_taken = proposals.offer(session, laid.workspace, found, yes=yes, command="kb init")
        if is_taken or (found.documents.covered and f"{KB}/" in laid.created):
            _offer_baseline(session, laid)
        _show_next(session, laid, is_taken=is_taken)
        _show_sharing(session, laid, share)
        if workflow:
            session.output.say(_WORKFLOW_LINES[workflow.action].format(workflow.path))
    return exits.status_of_hooks(results)


def _check_places(session: Session, repo: Repository, hooks_path: str | None, *, github: bool) -> None:
    """Refuse the folder of the hooks, or the file of the workflow, before anything is made.

    Raises: as ``hooks.check_folder`` and ``workflow_place``.
    """
    from kbcli import hooks
    from kbcore.store.pool import StorePool
    from kbcore.store.workspace import Workspace

    if hooks_path:
        hooks.check_folder(repo, session.env, session.start / Path(hooks_path))
    if github:
        from kbcli.forge.github_workflow import workflow_place

        workflow_place(Workspace(repo, session.machine, StorePool(), settles=False))


def _show_proposals(session: Session) -> int:
    """Show what is proposed, for a repository that need not have a KB."""
    from kbcli.input import proposals
    from kbcli.messages.proposed_settings import nothing_line

    session.is_read_only = True
    workspace = session.workspace_as_it_is()
    found = proposals.find(workspace)
    proposals.offer(session, workspace, found, yes=False)
    if session.output.is_json:
        session.output.document(proposals.as_json(found, is_taken=False))
    elif not found.documents.proposals:
        session.output.say(nothing_line(found.documents.covered))
    return 0


def _write_workflow(laid: Laid, *, pages: bool) -> WrittenWorkflow:
    """Write the workflow. Raises: as ``write_workflow``, an ``OSError`` as ``StorageError``."""
    from kbcli.forge.github_workflow import PLACE, write_workflow
    from kbcore.storage.files import explained

    with explained(laid.workspace.repo.worktree / PLACE, "write"):
        return write_workflow(laid.workspace, pages=pages)


def _answer(
    session: Session,
    laid: Laid,
    seq: int,
    results: list[HookResult],
    documents: dict[str, object],
    workflow: WrittenWorkflow | None,
) -> None:
    session.show_ensured(laid.ensured)
    workspace = laid.workspace
    session.output.document(
        {
            "kb": str(workspace.folders.kb_dir),
            "created": laid.created,
            "updated": laid.updated,
            "kept": laid.kept,
            "default_branch": workspace.default_branch,
            "branch": {"name": laid.ensured.branch, "is_new": laid.ensured.is_new, "seq": seq},
            "hooks": [result.as_json() for result in results],
            "documents": documents,
            **({"workflow": {"path": workflow.path, "action": workflow.action}} if workflow else {}),
        }
    )


def _show(session: Session, laid: Laid, results: list[HookResult]) -> None:
    from kbcli.commands.hooks import show_hooks
    from kbcore.store.kb_folder import KB
    from kbcore.text.escaping import escape_controls

    output, workspace = session.output, laid.workspace
    is_new = f"{KB}/" in laid.created
    changed = "Repaired" if laid.created else "Updated" if laid.updated or laid.ensured.is_new else "Already set up:"
    output.say(escape_controls(f"{'Set up' if is_new else changed} KB in {workspace.folders.kb_dir}"))
    for verb, paths in (("created", laid.created), ("updated", laid.updated)):
        for path in paths:
            output.say(escape_controls(f"  {verb} {path}"))
    output.say(escape_controls(f"Default branch: {workspace.default_branch}"))
    session.show_ensured(laid.ensured)
    show_hooks(output, results)


def _offer_baseline(session: Session, laid: Laid) -> None:
    """Offer the baseline where there is none, for documents that were there before KB."""
    from kbcli.check import baseline
    from kbcore.store.settings_files import BASELINE

    if not (laid.workspace.settings_dir / BASELINE).exists():
        baseline.offer(session)


def _show_next(session: Session, laid: Laid, *, is_taken: bool) -> None:
    """Name the next commands, where KB is new or reads more documents than before."""
    from kbcore.store.kb_folder import KB
    from kbcore.text.escaping import escape_controls

    output, workspace = session.output, laid.workspace
    is_new = f"{KB}/" in laid.created
    if (is_new or is_taken) and workspace.repo.has_worktree:
        add = f"`git {_there(workspace.settings_dir.parent)}add {KB}`"
        output.say(escape_controls(f"Next: `kb sync` reads the documents; {add} keeps the settings with the project."))
    elif is_new:
        output.say("Next: `kb sync` reads the documents of a worktree, run there; this repository is bare.")


def _show_sharing(session: Session, laid: Laid, asked: str | None) -> None:
    """Say what the mode of sharing does, where it was asked for or the settings turn it on."""
    from kbcli.messages.shared import mode_line

    mode = asked or laid.workspace.config.share.mode
    if asked or mode != "off":
        session.output.say(mode_line(mode))


def _there(folder: Path) -> str:
    """Return the option by which git runs in a folder, for a command to copy; nothing where the user is there."""
    return "" if folder == Path.cwd() else f"-C {shlex.quote(str(folder))} "
