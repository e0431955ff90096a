"""The state of sharing as a diagnosis sees it: what git does with change files, which are refused, and what is left.

Nothing is changed. Where nothing is shared there is nothing to find.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from kbcore.errors import ViewDamaged
from kbcore.errors.remedies import brought_back, shell
from kbcore.extract.changes import FOLDER, is_change_file
from kbcore.git import staging
from kbcore.git.commands import run_git
from kbcore.git.worktree_content import Unfit, read
from kbcore.maintenance.findings import DoctorFinding, Severity
from kbcore.model.claims import change_file
from kbcore.model.redaction.target import commands
from kbcore.secrets import masked
from kbcore.share.packing import find_doubled
from kbcore.share.state import find_state, find_whole_copies, has_changes_folder, how_shared
from kbcore.share.worktree_changes import changes_in, content_of
from kbcore.storage.places import record_range
from kbcore.store.branches import lost
from kbcore.store.change_files import ATTRIBUTES, ATTRIBUTES_LINE
from kbcore.store.workspace import Workspace
from kbcore.sync import scan
from kbcore.sync.active_extractors import change_file_extractor
from kbcore.sync.change_sources import change_paths
from kbcore.text import conflict_markers
from kbcore.text.wording import is_or_are, it_or_them, pluralize, some_of
from kbcore.view.cache_files import CLAIMS
from kbcore.view.claim_index import ClaimIndex

_CHECK: Final = "sharing"
_EXAMPLE: Final = f"{FOLDER}/2026-01/example.jsonl"
"""A path like those of change files: what git would do with the next one."""
_UNSET: Final = "unset"
_UNSPECIFIED: Final = "unspecified"
_ALLOWED: Final = {
    "text": {_UNSET},
    "filter": {_UNSET, _UNSPECIFIED},
    "working-tree-encoding": {_UNSET, _UNSPECIFIED},
    "merge": {_UNSET, "binary"},
}
"""The values of attributes with which git stores and checks out a change file as it is, and merges no contents."""
_SHOWN: Final = 3
_MOST_COMMITS: Final = 20
_RENORMALIZE: Final = f"`git add --renormalize {FOLDER}` then has git store the files as they are."


def sharing_findings(workspace: Workspace, branch: str) -> Iterator[DoctorFinding]:
    """Yield what is wrong with sharing, and what is not shared on a branch.

    Raises: ``GitUnusable``; ``InvalidConfig``; as ``find_state``.
    """
    yield from _lost(workspace, branch)
    if workspace.config.share.mode == "off" and not has_changes_folder(workspace):
        return
    if workspace.repo.has_worktree:
        yield from _attributes(workspace)
        yield from _ignored(workspace)
        yield from _not_checked_out(workspace)
        yield from _refused(workspace)
        yield from _doubled(workspace)
    if workspace.folders.has_store(branch):
        if workspace.repo.has_worktree:
            yield from _whole_in_files(workspace, branch)
        yield from _left(workspace, branch)
        yield from _whole_here(workspace, branch)


def lost_changes(workspace: Workspace, branch: str) -> str:
    """Return how many changes were in missing records of a branch and are in no file, or why that is not known.

    "" where no record is missing. The index of changes is in the cache, which may be left where a store is not.
    """
    loss = lost.loss_of(workspace, branch)
    if loss is None:
        return ""
    unknown = (
        "How many changes of clients the missing records were that no change file holds is not known:"
        " {why}, and change files do not say which record each change was."
    )
    path = workspace.folders.cache_of(branch) / CLAIMS
    if not path.is_file():
        return unknown.format(why="the cache has no index of them")
    try:
        index = ClaimIndex(f"{path.as_uri()}?mode=ro")
        reach = min(index.database.reach_in(loss.store_id), loss.seen)
        found = [one for one in index.unshared(reach) if one.seq >= loss.first]
    except ViewDamaged:
        return unknown.format(why="the index of them in the cache is damaged")
    if reach < loss.first:
        return unknown.format(why="the index of them in the cache has none of these records")
    files = change_paths(workspace.repo.worktree) if workspace.repo.has_worktree else ()
    held = {change.id for file in files for change in changes_in(file, content_of(workspace, file))}
    gone = [one.change for one in found if one.change.id not in held]
    by = some_of(
        [f"{number} of {actor}" for actor, number in sorted(Counter(one.actor for one in gone).items())], _SHOWN
    )
    number = pluralize(len(gone), "change")
    are = "was" if len(gone) == 1 else "were"
    said = f"In the missing records {are} {number} of clients that no change file here holds"
    said += f" ({masked(by)})" if by else ""
    if reach < loss.seen:
        said += (
            f"; of {record_range(reach + 1, loss.seen)} that is not known, as the index in the cache ends before them"
        )
    return f"{said}."


def _lost(workspace: Workspace, branch: str) -> Iterator[DoctorFinding]:
    if said := lost_changes(workspace, branch):
        remedy = f"Once the branch has a store again, {brought_back()}"
        yield DoctorFinding(_CHECK, "warning", "changes_lost", said, remedy, branch)


def _attributes(workspace: Workspace) -> Iterator[DoctorFinding]:
    repo, env = workspace.repo, workspace.machine.env
    if staging.not_checked_out(repo, env, ATTRIBUTES):  # they are as the index has them, and git does not look there
        return
    answer = run_git(repo, env, ["check-attr", "-z", *_ALLOWED, "--", _EXAMPLE])
    parts = answer.output.decode("utf-8", "replace").split("\0")
    found = dict(zip(parts[1::3], parts[2::3], strict=False))
    line = ATTRIBUTES_LINE.strip()
    try:
        lines = read(str(workspace.repo.worktree / ATTRIBUTES))[0].decode("utf-8", "replace").splitlines()
    except (OSError, Unfit):
        lines = []
    wrong = [f"{name} is {value}" for name, value in found.items() if value not in _ALLOWED[name]]
    if not wrong:
        return
    what = f"git's attributes of change files are not as they are to be: {', '.join(wrong)}."
    if "filter" in found and found["filter"] not in _ALLOWED["filter"]:
        what += f" The filter {found['filter']} keeps their content elsewhere, or in another form."
    if line not in lines:
        if not change_paths(workspace.repo.worktree):  # `kb share` writes the line with the first change file
            return
        earlier = next((one for one in lines if one.rstrip() == change_file.EARLIER_ATTRIBUTES), "")
        remedy = (
            f"Replace the line `{earlier}` of {ATTRIBUTES} with `{line}`, and commit that. {shell('share')} does the"
            " same when it next writes change files."
            if earlier
            else f"Add the line `{line}` to {ATTRIBUTES}; {_RENORMALIZE}"
        )
        yield DoctorFinding(_CHECK, "warning", "attributes_missing", what, remedy, file=ATTRIBUTES)
        return
    remedy = (
        f"{ATTRIBUTES} has the line, so attributes nearer to the files or in the git directory say otherwise: take that"
        f" out of {FOLDER}/.gitattributes or .git/info/attributes. {_RENORMALIZE}"
    )
    yield DoctorFinding(_CHECK, "warning", "attributes_overridden", what, remedy, file=ATTRIBUTES)


def _ignored(workspace: Workspace) -> Iterator[DoctorFinding]:
    words = ["check-ignore", "-v", "-z", "--no-index", "--stdin"]
    asked = f"{_EXAMPLE}\0".encode()
    answer = run_git(workspace.repo, workspace.machine.env, words, allowed=(0, 1), asked=asked)
    parts = answer.output.decode("utf-8", "replace").split("\0")
    if len(parts) < 4 or parts[2].startswith("!"):  # noqa: PLR2004 - file, line, pattern and path
        return
    file, line, pattern = parts[:3]
    message = (
        f"git ignores change files: line {line} of {file} is `{pattern}`. Only {shell('share')} and the hook add them."
    )
    remedy = f"Take the line out, or add `!{FOLDER}/` below it where the folder above is not ignored itself."
    yield DoctorFinding(_CHECK, "warning", "changes_ignored", message, remedy, file=file, line=int(line or -1))


def _not_checked_out(workspace: Workspace) -> Iterator[DoctorFinding]:
    left_out = staging.not_checked_out(workspace.repo, workspace.machine.env, FOLDER)
    skipped = sorted(path for path in left_out if is_change_file(path))
    if not skipped:
        return
    shown = some_of(skipped, _SHOWN)
    number = pluralize(len(skipped), "change file")
    message = f"{number} of the branch {is_or_are(len(skipped))} not checked out (skip-worktree): {shown}."
    remedy = (
        "`git sparse-checkout add .kb` checks them out; without a sparse checkout,"
        f" `git update-index --no-skip-worktree` and `git checkout -- {FOLDER}` do."
    )
    yield DoctorFinding(_CHECK, "warning", "changes_not_checked_out", message, remedy)


def _refused(workspace: Workspace) -> Iterator[DoctorFinding]:
    """Read every change file, and name those that no sync takes."""
    paths = sorted(change_paths(workspace.repo.worktree))
    wants = [change_file_extractor()]
    for path in paths:
        found = scan.found_at(workspace.repo.worktree, wants, path)
        for problem in found.facts.problems if found and found.facts else ():
            message = f"{path} is refused: {problem.message}"
            line, remedy = problem.line or -1, problem.hint
            if problem.code == conflict_markers.CODE:
                remedy = _restoring(workspace, path)
            yield DoctorFinding(_CHECK, "error", problem.code, message, remedy, file=path, line=line)
    if paths:
        yield DoctorFinding(
            _CHECK, "ok", "change_files", f"{pluralize(len(paths), 'change file')} of the worktree read."
        )


def _restoring(workspace: Workspace, path: str) -> str:
    """Return what brings back a change file of which a merge made another content."""
    repo, env, name = workspace.repo, workspace.machine.env, path.removeprefix(f"{FOLDER}/")
    words = ["log", "--all", "--full-history", "--diff-filter=A", "--format=%h", f"--max-count={_MOST_COMMITS}"]
    listed = run_git(repo, env, [*words, "--ignore-missing", "HEAD", "MERGE_HEAD", "--", f":(top,literal){path}"])
    for commit in listed.output.decode().split():
        content = run_git(repo, env, ["cat-file", "blob", f"{commit}:{path}"]).output
        if change_file.decode(content, name).problem is None:
            return f"`git checkout {commit} -- {path}` takes it as the commit has it that wrote it."
    return "No commit of this clone has it as it was written: fetch the branch that has, or remove the file."


def _doubled(workspace: Workspace) -> Iterator[DoctorFinding]:
    found = find_doubled(workspace)
    if found:
        hold = "holds" if len(found) == 1 else "hold"
        message = (
            f"{pluralize(len(found), 'change file')} {hold} nothing that no pack of HEAD holds: "
            f"{some_of(found, _SHOWN)}. That changes nothing."
        )
        remedy = f"{shell('share', 'pack')} removes them, and stages that."
        yield DoctorFinding(_CHECK, "note", "changes_doubled", message, remedy)


def _whole_in_files(workspace: Workspace, branch: str) -> Iterator[DoctorFinding]:
    for one in find_whole_copies(workspace, branch):
        message = f"{one.path} has a change of {one.actor} whole that is redacted in this clone."
        given = [shell("redact", *words) for words in commands(one.change, one.fields)]
        show = "shows" if len(given) == 1 else "show"
        remedy = f"{' and '.join(given)} {show} what takes its values out of the file; then commit it."
        yield DoctorFinding(_CHECK, "warning", "redacted_in_store_alone", message, remedy, branch, file=one.path)


def _left(workspace: Workspace, branch: str) -> Iterator[DoctorFinding]:
    state = workspace.store(branch).read(lambda view: find_state(workspace, branch, view))
    if state is None:
        return
    number = sum(state.unshared.values())
    listed = f"{shell('share', '--list')} lists them."
    is_on = state.mode != "off"
    kinds: tuple[tuple[int, Severity, str, str, str], ...] = (
        (
            number * is_on,
            "note",
            "changes_unshared",
            "not shared",
            f"{how_shared(number, state.written, shell('share'))}.",
        ),
        (
            state.refused * is_on,
            "warning",
            "changes_refused",
            f"not shared, because no file may hold {it_or_them(state.refused)}",
            listed,
        ),
        (state.private, "ok", "changes_private", "private by `share.actors`, `share.types` or their origin", listed),
        (state.withdrawn, "note", "changes_withdrawn", "in no file any more that held them once", listed),
    )
    for count, severity, code, what, remedy in kinds:
        if count:
            message = f"{pluralize(count, 'change')} {is_or_are(count)} {what}."
            yield DoctorFinding(_CHECK, severity, code, message, remedy, branch)
    if state.contested:
        message = f"{pluralize(state.contested, 'field')} {is_or_are(state.contested)} contested."
        remedy = f"{shell('resolve')} lists and settles {it_or_them(state.contested)}."
        yield DoctorFinding(_CHECK, "warning", "fields_contested", message, remedy, branch)
    if not number and not state.refused:
        message = f"Every change that is to be shared is in a file; `share.mode` is {state.mode}."
        yield DoctorFinding(_CHECK, "ok", "changes_shared", message, "", branch)


def _whole_here(workspace: Workspace, branch: str) -> Iterator[DoctorFinding]:
    for one, fields in workspace.changes(branch).read(lambda index, _: index.redacted_since()):
        message = f"A change of {one.actor} was redacted by others, and earlier records have what was taken out."
        given = [shell("redact", *words) for words in commands(one.id, fields)]
        does = ("shows", "takes") if len(given) == 1 else ("show", "take")
        remedy = f"{' and '.join(given)} {does[0]} where, and with --yes {does[1]} it out."
        yield DoctorFinding(_CHECK, "warning", "redacted_by_others", message, remedy, branch)
