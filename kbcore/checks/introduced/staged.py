"""Violations that a commit of the index would introduce: ``kb check --staged``, for a pre-commit hook.

The index counts, not the worktree: what is staged by half is judged by that half. Nothing is written, to git or to a
store.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from kbcore import gc_pause, limits
from kbcore.checks import idle_in, judge
from kbcore.checks.introduced.compare import Introduced, introduced
from kbcore.checks.introduced.symbols import (
    RequirementMention,
    Staged,
    StagedFile,
    StagedSymbol,
    comments_in,
    named_in,
    rule_of,
    unchecked_in,
)
from kbcore.extract.code.marks import COMMENT_LINE, IMPLEMENTS
from kbcore.extract.facts import Facts
from kbcore.git import Tree, blobs, staging
from kbcore.git.tracked_paths import kept_of
from kbcore.model.state import Changes
from kbcore.query.data_names import nearest_id
from kbcore.rules import missing_file, staged_symbol
from kbcore.store.workspace import Workspace
from kbcore.sync.documents import RepositoryDocuments
from kbcore.text.globs import glob_set
from kbcore.view.scratch_copy import scratch_copy
from kbcore.view.view import View

_OVER_FILES: Final = frozenset({missing_file.RULE.id, staged_symbol.RULE.id})
"""Rules that look at more than what is stated."""
_PROSE: Final = (".md", ".markdown", ".rst", ".txt", ".adoc")
"""Endings of files whose comments are examples."""
_BINARY: Final = b"\0"
# Whoever has the symbols of code read does not ask that each of them names a requirement.
_SYMBOLS: Final = f"""
with symbol as (select id, path, json_extract_string(attributes, '$.file') as file from node where type = 'symbol')
select s.id, s.path, s.file, exists (
  select 1 from link l where l.is_resolved and l.type = '{IMPLEMENTS}' and l.from_id = s.id
) from symbol s
where (s.id in (select unnest($1::varchar[])) or s.file in (select unnest($2::varchar[])))
  and s.path is distinct from s.file
order by s.id
"""  # noqa: S608 - no text from outside


_IMPLEMENTED: Final = f"""
select distinct json_extract_string(s.attributes, '$.file'), l.to_id from node s join link l on l.from_id = s.id
where s.type = 'symbol' and l.is_resolved and l.type = '{IMPLEMENTS}'
  and json_extract_string(s.attributes, '$.file') in (select unnest($1::varchar[]))
"""  # noqa: S608 - no text from outside


class StagedOutcome(msgspec.Struct, frozen=True):
    """New violations, the number of staged files, and the facts of a staged document, by its path."""

    found: Introduced
    staged: int
    facts: Callable[[str], Facts | None]
    comments: tuple[RequirementMention, ...] = ()
    """Comments that the rule over staged symbols counted: no fact states them."""
    unchecked: tuple[RequirementMention, ...] = ()
    """Comments in other staged source files, which name no requirement: the rule does not look at these files."""


def check_staged(workspace: Workspace, view: View, *, only: Sequence[str] = ()) -> StagedOutcome:
    """Return the violations that a commit of the index would introduce; ``view`` is that of the branch checked out.

    ``only`` names the rules to run. Rules over what is stated are not run where the commit changes nothing of that.

    Raises: as ``run_checks``; ``GitUnusable``; ``InvalidQuery`` while a merge is not resolved; ``StorageError``.
    """
    repo, env = workspace.repo, workspace.machine.env
    commit = workspace.head().commit
    if commit and not staging.is_anything_staged(repo, env, commit):
        report = judge(workspace, view, kept_of(repo, env, {}), only=only, extra=[staged_symbol.RULE], idle=_idle)
        return StagedOutcome(Introduced(report), 0, lambda _: None)
    before: Tree = blobs.tree_of(repo, env, commit) if commit else {}
    after = staging.staged_tree(repo, env, before)
    staged = [path for path, blob in after.items() if before.get(path) != blob and blob.mode != blobs.SUBMODULE]
    removed = before.keys() - after.keys()
    documents = RepositoryDocuments(workspace, workspace.store(workspace.head().branch).claims)
    with gc_pause.paused():
        known = documents.differing(view, before)
        is_stated = documents.is_stated_by([*staged, *removed], after)
        idle = _busy if is_stated else _idle_but_for_files
        with scratch_copy(view, view.seq) if known or is_stated else contextlib.nullcontext(view) as copy:
            documents.sync_files(copy, known)
            was = judge(workspace, copy, kept_of(repo, env, before), only=only, idle=idle)
            changes = documents.sync_tree(copy, after) if is_stated else Changes()
            looked_at = _staged(workspace, copy, after, staged, (documents, changes))
            marked = staging.staged_with(repo, env, COMMENT_LINE).intersection(staged) - looked_at.files.keys()
            others = _files(documents, after, [path for path in sorted(marked) if not path.endswith(_PROSE)], ())
            unchecked = unchecked_in(_with_types(workspace, copy, others, ()))
            rule = rule_of(looked_at)
            files = kept_of(repo, env, after)
            now = judge(workspace, copy, files, only=only, extra=[rule], idle=idle_in(copy, idle))
            found = introduced(was, now, copy.renamed)
    has_run = any((run.id, run.status) == (staged_symbol.RULE.id, "ran") for run in found.report.rules)
    comments = comments_in(looked_at) if has_run else ()
    facts = partial(documents.facts_at, tree=after)
    return StagedOutcome(found, len(staged) + len(removed), facts, comments, unchecked if has_run else ())


def _busy(_: str) -> str:
    return ""


def _idle(_: str) -> str:
    return "Nothing is staged."


def _idle_but_for_files(rule: str) -> str:
    return "" if rule in _OVER_FILES else "No document is staged, so nothing is stated otherwise."


def _staged(
    workspace: Workspace, copy: View, after: Tree, staged: Sequence[str], taken_in: tuple[RepositoryDocuments, Changes]
) -> Staged:
    """Return what the rule over staged symbols looks at, in the state that the commit would make."""
    documents, changes = taken_in
    made = [
        one.key
        for one in changes.nodes
        if one.after and one.after.type == "symbol" and _says_more(one.before, one.after)
    ]
    rows = copy.rows(_SYMBOLS, [made, staged])
    symbols = tuple(StagedSymbol(key, path or "", file or "", implements) for key, path, file, implements in rows)
    globs = glob_set(workspace.config.staged_symbols)
    wanted = {path for path in staged if globs.first(path) is not None}
    lacking = {one.file for one in symbols if not one.implements}
    listed = {one.file for one in symbols}.intersection(staged)
    looked_at = wanted | lacking | listed
    paths = [path for path in after if path in looked_at]
    return _with_types(workspace, copy, _files(documents, after, paths, wanted), symbols)


def _with_types(
    workspace: Workspace, copy: View, files: dict[str, StagedFile], symbols: tuple[StagedSymbol, ...]
) -> Staged:
    """Return files and symbols with the types of what the comments of the files name."""
    named = sorted({key for file in files.values() for key in named_in(file.text)})
    types: dict[str, Any] = dict(
        copy.rows("select id, type from node where id in (select unnest($1::varchar[]))", [named])
    )
    renamed = copy.renamed(set(named) - types.keys())
    types |= {node.id: node.fields["type"] for node in copy.nodes(sorted({*renamed.values()}))}
    types |= {former: types[now] for former, now in renamed.items()}
    implemented = frozenset(copy.rows(_IMPLEMENTED, [list(files)]))
    return Staged(
        files, symbols, types, lambda word: nearest_id(copy.rows, word), workspace.schema, implemented, renamed
    )


def _says_more(before: Any, after: Any) -> bool:
    """Return whether a symbol is new, or says something else than before."""
    return before is None or before.fields != after.fields


def _files(
    documents: RepositoryDocuments, after: Tree, paths: Sequence[str], wanted: Collection[str]
) -> dict[str, StagedFile]:
    texts = documents.texts_of(after[path].id for path in paths)
    found = {}
    for path in paths:
        data = texts.get(after[path].id)
        text = "" if data is None or _BINARY in data[: limits.KIB] else data.decode("utf-8", "replace")
        found[path] = StagedFile(path, text, path in wanted)
    return found
