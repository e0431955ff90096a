"""Rule ``missing-file``: the files that entities name are there."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Final

from kbcore.errors.remedies import kb
from kbcore.model.graph import Node
from kbcore.rules.look_ups import Look
from kbcore.rules.rule import Finding, NotApplicable, Rule, RuleContext

_SQL: Final = """
with named as (
  select id, path, type, 'text_ref' as field, split_part(text_ref, '#', 1) as file, owners from node
  where text_ref is not null and text_ref <> path
  union all
  select id, path, type, 'attributes.file', json_extract_string(attributes, '$.file'), owners from node
  where type = 'symbol' and json_type(attributes, '$.file') = 'VARCHAR'
)
select id, field, file, coalesce(json_extract_string(owners, '$."' || field || '"'), '')
from named where file <> ''
"""
_KNOWN: Final = "select path from source where path in (select unnest($1::varchar[]))"
"""Recorded files: they exist, also if in no commit yet."""


def _run(context: RuleContext) -> list[Finding]:
    if context.tree is None:
        raise NotApplicable("There are no files to look at.")
    rows = context.near(_SQL, [])
    plain = {file: posixpath.normpath(file) for _, _, file, _ in rows}
    known = {path for (path,) in context.rows(_KNOWN, [sorted(set(plain.values()))])}
    missing = context.tree.missing({file for file, path in plain.items() if path not in known})
    return [_finding(id_, field, file, source) for id_, field, file, source in rows if file in missing]


def _look(look: Look) -> list[Finding]:
    ids = look.nodes_with("type", "text_ref", "attributes.file")
    rows = [row for node in look.side.nodes(ids).values() for row in _named(node)]
    if not rows:
        return []
    plain = {file: posixpath.normpath(file) for _, _, file, _ in rows}
    known = {one.path for one in look.side.sources(set(plain.values()))}
    missing = look.side.missing({file for file, path in plain.items() if path not in known})
    return [_finding(id_, field, file, source) for id_, field, file, source in rows if file in missing]


def _named(node: Node) -> Iterator[tuple[str, str, str, str]]:
    """Yield what ``_SQL`` selects of a node."""
    ref, file = node.fields.get("text_ref"), node.fields.get("attributes.file")
    if isinstance(ref, str) and ref != node.path and ref.partition("#")[0]:
        yield node.id, "text_ref", ref.partition("#")[0], node.owners.get("text_ref", "")
    if node.type == "symbol" and isinstance(file, str) and file:
        yield node.id, "attributes.file", file, node.owners.get("attributes.file", "")


def _finding(id_: str, field: str, file: str, source: str) -> Finding:
    name = field.removeprefix("attributes.")
    message = f"{id_} has {file} as its `{name}`, which is not in the repository."
    if source:
        hint = f"Correct `{name}` in the file that states it and {kb('sync', lead='run')}, or bring the file back."
    else:
        hint = f"Write `{field}` of {id_} again with {kb('apply')}, or restore the file."
    return Finding(id_, message, hint, source, field=field, values=(file,))


RULE: Final = Rule(
    "missing-file",
    "warning",
    "The file that a `text_ref` names, before any `#`, and the `file` of every symbol are there: in the worktree, or "
    "in the last commit of a branch that is not checked out here. Files outside of the repository are ignored.",
    _run,
    example="SYM-2 has src/login.py as its `file`, which is not in the repository.",
    remedy="Correct the path, or bring the file back.",
    look=_look,
)
