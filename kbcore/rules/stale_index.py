"""Rule ``stale-index``: no file has changed since the index of source code that covers it."""

from __future__ import annotations

from typing import Final

from kbcore.rules.rule import Finding, Rule, RuleContext
from kbcore.text.wording import pluralize, some_of

_CHANGED: Final = """
with content as (
  select path, hash, min(version) as since from (
    select path, hash, version from source union all select path, hash, version from source_history
  ) group by path, hash
),
known as (select path, extractor like 'scip/%' as is_index, since from source join content using (path, hash))
select i.path, list(f.path order by f.path) from known i join known f on f.since > i.since
where i.is_index and not f.is_index group by i.path order by i.path
"""
"""The files whose present content the records have later than that of an index, by the index."""
_NAMED: Final = """
with ends as (select id, path from node where path in (select unnest($2::varchar[]))),
stated as (select from_id, to_id from link where list_contains(files, $1))
select distinct path from ends where id in (select from_id from stated union all select to_id from stated) order by path
"""
"""Those of some files that have a symbol at an end of an edge of an index."""
_SHOWN: Final = 3


def _run(context: RuleContext) -> list[Finding]:
    found = []
    for path, changed in context.rows(_CHANGED, []):
        files = [one for (one,) in context.rows(_NAMED, [path, changed])]
        if files:
            found.append(_finding(path, files))
    return found


def _finding(path: str, files: list[str]) -> Finding:
    changed = pluralize(len(files), "file")
    message = f"{changed} changed since this index was read: {some_of(files, _SHOWN)}."
    hint = "Run the indexer of the language again; until then, edges between symbols are those that it says."
    return Finding(path, message, hint, path, frozenset(files), values=tuple(files[:_SHOWN]), names_id=False)


RULE: Final = Rule(
    "stale-index",
    "warning",
    "No file has changed since the SCIP index that has edges of its symbols, as far as the records show: a file that"
    " changed before the index was first read is not found. Here `id` is the path of the index.",
    _run,
    example="1 file changed since this index was read: src/cart.ts.",
    remedy="Run the indexer of the language again.",
)
