"""The command of the git hooks: syncs the branch's store with the tree. It never makes git fail, and never asks.

Nothing heavy is imported before it is known that there is work.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.sync.answer import SyncAnswer

POST_CHECKOUT = "post-checkout"
POST_COMMIT = "post-commit"
POST_MERGE = "post-merge"
_EVENTS = frozenset({POST_CHECKOUT, POST_COMMIT, POST_MERGE, "post-rewrite"})
_FILES_ONLY = "0"
"""The last argument of post-checkout when files were restored and HEAD stayed."""
_SQUASH = "1"
"""The argument of post-merge when the files of another branch were taken over without its commits."""


def is_event(words: Sequence[str]) -> bool:
    """Return whether these are an event of git and its arguments, and no request for help."""
    return bool(words) and words[0] in _EVENTS and not {"-h", "--help"} & set(words)


def run(words: Sequence[str], env: Mapping[str, str]) -> int:
    """Do what one event of git calls for; the status is 0 whatever happens."""
    if words[0] == POST_CHECKOUT and words[-1:] == [_FILES_ONLY]:
        return 0
    from kbcore import gc_pause

    gc_pause.raise_threshold()
    from kbcli.invocation.signals import Signals
    from kbcore import process_limits
    from kbcore.interrupting import Stopped

    try:
        process_limits.prepare()
        with Signals().obeyed():
            _follow(env, words)
    except (KeyboardInterrupt, Stopped):
        _say("interrupted; `kb sync` completes it.")
    except Exception as error:  # noqa: BLE001 - whatever is wrong here, git's own work is done and must not fail
        known = process_limits.exhausted(error, may_be_written=False)  # git's own work is not KB's
        _say(
            f"{known.code}. {known.message} {known.hint}"
            if known
            else f"{type(error).__name__} in the {words[0]} hook."
        )
    return 0


def _follow(env: Mapping[str, str], words: Sequence[str]) -> None:
    from kbcli.invocation.context import Session
    from kbcli.terminal.output import Output
    from kbcore import clock
    from kbcore.errors import KBError, NotInitialised

    # Which branch is meant is HEAD's to say here: the user has just checked it out.
    session = Session({name: value for name, value in env.items() if name != "KB_BRANCH"}, Output(env))
    try:
        clock.check()
        if _is_wanted(session) and not (words[0] == POST_COMMIT and _is_in_sequence(session)):
            _show(session, _answer_at_rest(session) or _take_in(session))
            _show_missing(session, words, env)
            session.publish_views()
    except NotInitialised:
        return
    except KBError as error:
        from kbcore.text.escaping import fenced_line

        # An agent that has git switch a branch reads this too, and the message may name what is stored.
        _say(f"{error.code}. {fenced_line(f'{error.message} {error.hint}'.strip())}")
    except Exception as error:
        from kbcore.process_limits import exhausted

        if exhausted(error, may_be_written=False):
            raise
        from kbcli.invocation.bug_report import write_report

        saved = write_report(error, ["hook", *words], session.cache())
        _say(f"{type(error).__name__} in the {words[0]} hook; a report is in {saved or 'no file'}.")
    finally:
        session.close()


def _is_wanted(session: Session) -> bool:
    """Return whether there is a KB, and a branch checked out.

    While git walks through history, as in a bisection, a store for each commit would be useless.
    """
    from kbcore.errors import NotARepository

    try:
        workspace = session.workspace_as_it_is()
    except NotARepository:
        return False
    repo = workspace.repo
    has_kb = any((root / ".kb").is_dir() for root in (repo.worktree, repo.kb_root))
    return has_kb and repo.has_worktree and workspace.head().kind in {"branch", "unborn"}


def _is_in_sequence(session: Session) -> bool:
    """Return whether git makes further commits, after the last of which a hook is run again."""
    from kbcore.git.operations import is_in_sequence

    return is_in_sequence(session.workspace.repo)


def _answer_at_rest(session: Session) -> SyncAnswer | None:
    """Return what a sync would answer, as far as that can be determined without a database."""
    from kbcore.sync import noop_cache

    return noop_cache.lookup(session.workspace, session.workspace.head().branch, is_hook=True)


def _take_in(session: Session) -> SyncAnswer:
    from kbcli.messages.lines import ensured_line
    from kbcore.remedies import for_shell
    from kbcore.store import branches
    from kbcore.sync.run import SyncOptions, sync
    from kbcore.text.escaping import fenced_line

    workspace = session.workspace
    store, choice, ensured = branches.open_branch(workspace, session.named_branch)
    if made := ensured_line(ensured):
        _say(made)
    answer = sync(workspace, choice.branch, session.author, SyncOptions())
    for notice in (*store.warnings, *store.notices):
        _say(fenced_line(for_shell(notice)))
    return answer


def _show(session: Session, answer: SyncAnswer) -> None:
    from kbcli.messages import lines, synced
    from kbcore.sync.faults import about, faults

    if lines.has_changes(answer.outcome):
        _say(synced.sync_line(answer))
    if answer.bad:
        from kbcore.checks import known_to

        workspace = session.workspace
        known, _ = known_to(workspace, answer.outcome.branch, about(answer.problems, answer.unresolved))
        if unread := faults(answer, workspace.config.rules, known).unread:
            _say(lines.unread(unread))


def _show_missing(session: Session, words: Sequence[str], env: Mapping[str, str]) -> None:
    """Report for each branch that was merged just now how much of what clients wrote is only in its store."""
    if words[0] not in {POST_MERGE, POST_COMMIT}:
        return
    workspace = session.workspace
    current = workspace.head().branch
    merged = [name for name in _merged(session, words, env) if name != current and workspace.folders.has_store(name)]
    if not merged:
        return
    from kbcli.messages.lines import missing_line
    from kbcore.store.branches import missing_between

    for name in merged:
        missing = missing_between(workspace, current, name)
        if line := missing_line(name, current, missing):
            _say(line)


def _merged(session: Session, words: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Return the branches that git has merged just now; of a squash, those that its command named."""
    from kbcore import git

    repo, own_env = session.workspace.repo, session.machine.env
    if words[0] == POST_COMMIT:
        # A merge with conflicts ends with a commit.
        return git.merged_since(repo, own_env, "HEAD^1")
    if words[1:2] == [_SQUASH]:
        return env.get("GIT_REFLOG_ACTION", "").split()[1:]
    return git.merged_since(repo, own_env, "ORIG_HEAD")


def _say(message: str, hint: str = "") -> None:
    """Write one line to standard error; git shows it to the user."""
    from kbcore.text.escaping import escape_controls

    line = escape_controls(f"kb: {message}" + (f" {hint}" if hint else ""))
    if sys.stderr is not None:
        sys.stderr.write(line + "\n")
