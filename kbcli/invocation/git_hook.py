"""The command of the git hooks: syncs the branch's store with the tree, and has commits take what clients wrote.

It never makes git fail, and never asks. Nothing heavy is imported before it is known that there is work.
"""

from __future__ import annotations

import os
import sys

from kbcli.invocation import hook_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kbcli.invocation.context import Session
    from kbcore.share.sharing import Shared
    from kbcore.sync.answer import SyncAnswer

POST_CHECKOUT = "post-checkout"
POST_COMMIT = "post-commit"
POST_MERGE = "post-merge"
PRE_COMMIT = "pre-commit"
_EVENTS = frozenset({POST_CHECKOUT, POST_COMMIT, POST_MERGE, PRE_COMMIT, "post-rewrite"})
_FILES_ONLY = "0"
"""The last argument of post-checkout when files were restored and HEAD stayed."""
_SQUASH = "1"
"""The argument of post-merge when the files of another branch were taken over without its commits."""

_MOST_WARNINGS = 5
_SHOWN = 3


def is_event(words: Sequence[str]) -> bool:
    """Return whether these are an event of git and its arguments, and no request for help."""
    return bool(words) and words[0] in _EVENTS and not {"-h", "--help"} & set(words)


def run(words: Sequence[str], env: Mapping[str, str]) -> int:
    """Do what one event of git calls for; the status is 0 whatever happens."""
    if words[0] == POST_CHECKOUT and words[-1:] == [_FILES_ONLY]:
        return 0
    if words[0] == PRE_COMMIT and not _may_share():
        return 0
    when = hook_note.due(words[0], env)
    if when == hook_note.RECORD:
        _do(env, words, _note_committed)
    elif when == hook_note.WORK:
        _do(env, words, _obey)
    return 0


def _do(env: Mapping[str, str], words: Sequence[str], work: Callable[..., None]) -> None:
    """Do the work of an event, and say in a line what keeps it from being done."""
    from kbcore import gc_pause

    gc_pause.raise_threshold()
    _import_msgspec()
    from kbcli.invocation.signals import Signals
    from kbcore.process import system_limits
    from kbcore.process.interrupting import Stopped

    try:
        system_limits.prepare()
        with Signals().obeyed():
            _follow(env, words, work)
    except (KeyboardInterrupt, Stopped):
        _say("interrupted; `kb sync` completes it.")
    except Exception as error:  # noqa: BLE001 - whatever is wrong here, git's own work is done and must not fail
        known = system_limits.exhausted(error, may_be_written=False)  # git's own work is not KB's
        _say(
            f"{known.code}. {known.message} {known.hint}"
            if known
            else f"{type(error).__name__} in the {words[0]} hook."
        )
    gc_pause.skip_last()


def _import_msgspec() -> None:
    """Import it without ``typing_extensions``, which it can do without, and which takes a third of the time.

    Whatever needs that module later imports it then.
    """
    name = "typing_extensions"
    if name in sys.modules:
        return
    sys.modules[name] = None  # type: ignore[assignment]  # its import fails then
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[name]


def _may_share() -> bool:
    """Return whether the settings here may say `share.mode: auto`; True where that takes more than a look at a text.

    git starts its hooks at the top of the worktree. Most repositories share nothing, and each commit would wait.
    """
    try:
        with open(".kb/config.json", "rb") as file:  # noqa: PTH123 - pathlib takes as long to import as all else here
            text = file.read()
    except OSError:
        return True
    return b'"mode":"auto"' in b"".join(text.split()) or b"\\u" in text  # a letter may be written as its number


def _follow(env: Mapping[str, str], words: Sequence[str], work: Callable[..., None]) -> None:
    from kbcli.invocation.context import Session
    from kbcli.terminal.output import Output
    from kbcore import clock
    from kbcore.errors import KBError, NotInitialised

    # Which branch is meant is HEAD's to say here: the user has just checked it out.
    session = Session({name: value for name, value in env.items() if name != "KB_BRANCH"}, Output(env))
    try:
        clock.check()
        work(session, words, env)
    except NotInitialised:
        return
    except KBError as error:
        _say(f"{error.code}. {error.message}", error.hint)
    except Exception as error:
        from kbcore.process.system_limits import exhausted

        if exhausted(error, may_be_written=False):
            raise
        from kbcli.invocation.bug_report import write_report

        saved = write_report(error, ["hook", *words], session.cache())
        _say(f"{type(error).__name__} in the {words[0]} hook; a report is in {saved or 'no file'}.")
    finally:
        session.close()


def _obey(session: Session, words: Sequence[str], env: Mapping[str, str]) -> None:
    """Do what an event of git calls for where HEAD is."""
    event = words[0]
    if event == PRE_COMMIT:
        if _is_wanted(session, is_commit=True):
            state = _State(session, env)
            if found := _share(session):
                state.note_shared(found)
    elif _is_wanted(session):
        if event == POST_COMMIT and _is_in_sequence(session):
            return
        before = _State(session, env)
        if event == POST_COMMIT:
            _stage_committed(session)
        answer = _answer_at_rest(session) or _take_in(session)
        _show(session, answer)
        _merge_changes(session, words, env)
        state = _State(session, env)
        number = _show_unshared(session) if event == POST_COMMIT else None
        if number == 0 and not answer.bad and state.is_after(before):
            state.note_done()
        session.publish_views()
    elif event == POST_COMMIT and _is_wanted(session, is_commit=True):
        _show_left(session)


def _is_wanted(session: Session, *, is_commit: bool = False) -> bool:
    """Return whether there is a KB, and a branch checked out; before a commit, a detached HEAD will do.

    While git walks through history, as in a bisection, a store for each commit would be useless. What clients wrote on
    a detached HEAD is in the store of its commit, which a commit leaves.
    """
    from kbcore.errors import NotARepository

    try:
        workspace = session.workspace_as_it_is()
    except NotARepository:
        return False
    repo = workspace.repo
    has_kb = any((root / ".kb").is_dir() for root in (repo.worktree, repo.kb_root))
    if not (repo.has_worktree and (has_kb or _is_left_out(session))):
        return False
    head = workspace.head()
    return head.kind in {"branch", "unborn"} or (is_commit and head.kind == "detached" and not head.bisect_from)


def _is_left_out(session: Session) -> bool:
    """Return whether git has a KB here and leaves it out of the worktree, as a sparse checkout does."""
    from kbcore.git import staging
    from kbcore.store.kb_folder import KB

    repo = session.workspace_as_it_is().repo
    return staging.is_sparse(repo) and bool(staging.not_checked_out(repo, session.machine.env, KB))


class _State:
    """The subject of a note (``hook_note``): what is checked out, and how settings and store look."""

    def __init__(self, session: Session, env: Mapping[str, str]) -> None:
        from kbcore.ids import encode_branch
        from kbcore.storage.layout import HEAD

        self._workspace = session.workspace
        self._env = env
        branch = self._workspace.head().branch
        self._has_store = self._workspace.folders.has_store(branch)
        self._head = os.fspath(self._workspace.folders.branches_dir / encode_branch(branch) / HEAD)
        self._git_dir = hook_note.git_dir_of(env)
        self.checked_out = hook_note.checked_out(self._git_dir)
        self.settings = hook_note.look_of(hook_note.SETTINGS)
        self._seen = hook_note.look_of(self._head)

    def is_after(self, other: _State) -> bool:
        """Return whether what is checked out and its settings are those of an earlier moment."""
        return (self.checked_out, self.settings) == (other.checked_out, other.settings)

    def note_shared(self, found: Shared) -> None:
        """Note that what is not shared is in the index, and in which files."""
        before = hook_note.read(self._git_dir)
        fits = before and before.settings == self.settings and (before.branch, before.commit) == self.checked_out
        # A sync may have recorded meanwhile what was pending.
        fits = fits and before is not None and (not before.pending or before.seen == self._seen)
        is_own = hook_note.is_of_own_index(self._git_dir, self._env)
        if not (before and fits) or not is_own or found.faults or found.before:
            hook_note.remove(self._git_dir)
            return
        self._write(before.endings, staged=sorted(found.files), pending=before.pending)

    def note_done(self) -> None:
        """Note that nothing is left to do, unless a commit may change a document whose path does not show it."""
        from kbcore.git import blobs
        from kbcore.sync.active_extractors import document_extractors

        workspace, commit = self._workspace, self.checked_out[1]
        globs = {glob for want in document_extractors(workspace) for glob, _ in want.globs}
        endings = sorted({ending for glob in globs for ending in _endings(glob)})
        tree = blobs.tree_of(workspace.repo, workspace.machine.env, commit) if commit else {}
        links = (path for path, blob in tree.items() if blob.mode == blobs.LINK)
        if "" in endings or any(path.lower().endswith(tuple(endings)) for path in links):
            hook_note.remove(self._git_dir)
            return
        self._write(endings)

    def _write(self, endings: Sequence[str], *, staged: Sequence[str] = (), pending: Sequence[str] = ()) -> None:
        branch, commit = self.checked_out
        is_whole = all((branch, commit, self.settings, self._seen, self._has_store))
        if not is_whole or hook_note.look_of(self._head) != self._seen:
            hook_note.remove(self._git_dir)
            return
        note = hook_note.HookNote(
            branch=branch,
            commit=commit,
            mode=self._workspace.config.share.mode,
            head=self._head,
            seen=self._seen,
            settings=self.settings,
            changes=hook_note.changes_look(),
            endings=endings,
            packages=hook_note.packages_look(),
            staged=staged,
            pending=pending,
        )
        hook_note.write(self._git_dir, note)


def _note_committed(session: Session, words: Sequence[str], env: Mapping[str, str]) -> None:
    """Record that the commit has the change files that were written for it. Where more may follow, sync."""
    from kbcore.share.committed_files import note_committed

    git_dir = hook_note.git_dir_of(env)
    note = hook_note.read(git_dir)
    if note is None:
        return

    def is_same() -> bool:
        return hook_note.look_of(note.head) == note.seen

    def done() -> None:
        note.seen, note.pending = hook_note.look_of(note.head), ()

    branch = note.branch.removeprefix(hook_note.BRANCH)
    paths, author = note.pending, session.author
    if not note_committed(session.workspace, branch, note.commit, paths, author, is_same=is_same, done=done):
        hook_note.remove(git_dir)
        _obey(session, words, env)
        return
    latest = hook_note.read(git_dir)
    if latest and (latest.commit, latest.pending) == (note.commit, paths):
        hook_note.write(git_dir, note)


def _endings(glob: str) -> list[str]:
    """Return how each path ends that a glob means, in small letters."""
    import re

    ending = re.split(r"[*?\[\]{}\\]", glob)[-1].lower()
    return [ending, ".markdown"] if ending == ".md" else [ending]


def _share(session: Session) -> Shared | None:
    """Write what clients wrote into change files, and stage them for the commit, if the project wants that.

    A commit of a merge takes them too. One that goes on with a rebase, or repeats or reverts another one, does not: it
    is to hold what that one did. None says that nothing was looked at.
    """
    from kbcore.git.operations import operation_of

    workspace = session.workspace
    branch = workspace.head().branch
    if workspace.config.share.mode != "auto" or not workspace.folders.has_store(branch):
        return None
    operation = operation_of(workspace.repo)
    if operation in {"rebase", "cherry-pick", "revert"}:
        return None
    from kbcli.messages import shared
    from kbcore.share.sharing import share

    found = share(workspace, branch)
    for line in (*shared.added_lines(found, is_merge=operation == "merge"), *shared.fault_lines(found.withheld)):
        _say(line)
    return found


def _stage_committed(session: Session) -> None:
    """Stage change files that the commit took from an index of its own: the next commit would delete them."""
    workspace = session.workspace
    branch = workspace.head().branch
    if workspace.config.share.mode == "auto" and workspace.folders.has_store(branch):
        from kbcore.share.sharing import stage_committed

        stage_committed(workspace)


def _show_unshared(session: Session) -> int:
    """Report how many changes are not shared, where the project shares them; return how many may be named again."""
    workspace = session.workspace
    branch = workspace.head().branch
    if workspace.config.share.mode == "off" or not workspace.folders.has_store(branch):
        return 0
    from kbcli.messages import shared
    from kbcore.share.faults import FAULTS
    from kbcore.share.unshared import find_unshared

    found = find_unshared(workspace, branch)
    if number := sum(not one.withheld for one in found):
        _say(shared.unshared_line(number))
    return number + sum(one.withheld in FAULTS for one in found)


def _show_left(session: Session) -> None:
    """Report how many changes a commit on a detached HEAD left in the store of the commit before, not shared.

    The store does not know the files that the commit took: changes in these are shared.
    """
    from kbcore import git
    from kbcore.ids import detached_name

    workspace = session.workspace
    before = git.previous_head(workspace.repo, session.machine.env)
    left = detached_name(before) if before else ""
    if workspace.config.share.mode == "off" or not left or not workspace.folders.has_store(left):
        return
    from kbcli.messages import shared
    from kbcore.share.unshared import find_unshared
    from kbcore.share.worktree_changes import changes_of_head

    taken = {one.id for one in changes_of_head(workspace)}
    found = [one for one in find_unshared(workspace, left) if not (one.withheld or one.change.id in taken)]
    if found:
        _say(shared.left_line(left, len(found)))


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
    from kbcore.store import branches
    from kbcore.sync.run import SyncOptions, sync

    workspace = session.workspace
    store, choice, ensured = branches.open_branch(workspace, session.named_branch)
    if made := ensured_line(ensured):
        _say(made)
    answer = sync(workspace, choice.branch, session.author, SyncOptions())
    for notice in (*store.warnings, *store.notices):
        _say(notice)
    return answer


def _show(session: Session, answer: SyncAnswer) -> None:
    from kbcli.messages import lines, sync_result
    from kbcore.extract.changes import is_change_file
    from kbcore.sync.faults import about, faults
    from kbcore.text.wording import pluralize, some_of

    if lines.has_changes(answer.outcome):
        _say(sync_result.sync_line(answer))
    for warning in answer.outcome.warnings[:_MOST_WARNINGS]:
        _say(warning)
    if left := len(answer.outcome.warnings[_MOST_WARNINGS:]):
        _say(f"{pluralize(left, 'more warning')}; `kb doctor` lists what is wrong with sharing.")
    if answer.bad:
        from kbcore.checks import known_to

        workspace = session.workspace
        known, _ = known_to(workspace, answer.outcome.branch, about(answer.problems, answer.unresolved))
        if unread := faults(answer, workspace.config.rules, known).unread:
            _say(lines.unread(unread))
        if refused := sorted(
            {path for path, one in answer.problems if one.severity == "error" and is_change_file(path)}
        ):
            _say(f"{pluralize(len(refused), 'change file')} refused: {some_of(refused, _SHOWN)}; `kb doctor` says why.")


def _merge_changes(session: Session, words: Sequence[str], env: Mapping[str, str]) -> None:
    """Merge what clients wrote on each branch that was merged just now, or say how much that is.

    Where changes are shared in files, git has merged these.
    """
    if words[0] not in {POST_MERGE, POST_COMMIT}:
        return
    workspace = session.workspace
    current, settings = workspace.head().branch, workspace.config.share
    if settings.merge == "off":
        return
    merged = [name for name in _merged(session, words, env) if name != current and workspace.folders.has_store(name)]
    if not merged:
        return
    from kbcli.messages import shared as sentences
    from kbcore.share.merging import merge, missing

    for name in merged:
        found = missing(workspace.store(current), workspace.store(name))
        if not found:
            continue
        if settings.merge == "ask" or settings.mode != "off":
            _say(sentences.missing_line(name, current, len(found)))
        else:
            _say(sentences.merged_line(merge(workspace, current, name, session.author), name))


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
    """Write one line to standard error; git shows it to the user. What is stored is in it as in errors of commands."""
    from kbcore.text.escaping import escaped_sentence

    line = escaped_sentence(f"kb: {message}" + (f" {hint}" if hint else ""))
    if sys.stderr is not None:
        sys.stderr.write(line + "\n")
