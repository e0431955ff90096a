"""Rule ``duplicate-title``: no two entities of one type have the same title."""

from __future__ import annotations

from typing import Final

from kbcore.rules.likeness import folded_words
from kbcore.rules.rule import MAX_SHOWN, Finding, Rule, RuleContext, listed
from kbcore.rules.statuses import RETIRED, has_status
from kbcore.visible import in_quotes

_FOLDED: Final = folded_words("title")
_IS_PLAIN: Final = r"strlen(title) = length(title) and not regexp_matches(title, '\s\s|[\t\n\f\r]')"
"""Nearly all titles are, and what is said twice is rare: so only few are looked at closely."""
_SAME: Final = f"""
with keyed as (
  select id, hash(type, case when {_IS_PLAIN} then lower(trim(title)) else {_FOLDED} end) as key
  from node where title <> '' _OF_TYPES_
)
select type, list(id order by id), list(path order by id), min(title) from node
where id in (select id from keyed where key in (select key from keyed _SEVERAL_))
  and trim(title) <> '' and not {has_status("status", RETIRED)}
group by type, {_FOLDED} having count(*) > 1
"""  # noqa: S608 - no text from outside
_ALL: Final = _SAME.replace("_OF_TYPES_", "").replace("_SEVERAL_", "group by key having count(*) > 1")
_ASKED: Final = "id in (select unnest($1::varchar[]))"
_NEAR: Final = _SAME.replace("_OF_TYPES_", f"and type in (select type from node where {_ASKED})").replace(  # noqa: S608
    "_SEVERAL_", f"where {_ASKED}"
)


def _run(context: RuleContext) -> list[Finding]:
    found = []
    groups = context.rows(_ALL, []) if context.ids is None else context.rows(_NEAR, [sorted(context.ids)])
    for type_, ids, paths, title in groups:
        message = f"{listed(ids)} are of type {type_} and have one title, {in_quotes(title)}."
        files = sorted({path for path in paths if path})
        where = f" in {' or '.join(files[:MAX_SHOWN])}" if files else ""
        hint = f"Merge them if they mean the same, or say in the title{where} what tells them apart."
        found.append(Finding(ids[0], message, hint, paths[0], frozenset(ids)))
    return found


RULE: Final = Rule(
    "duplicate-title",
    "warning",
    "No two entities of one type have the same title, whatever its case, spaces and Unicode normal form. What is "
    "retired does not count.",
    _run,
    example="REQ-12 and REQ-7 are of type req and have one title, 'Log in with a passkey'.",
    remedy="Merge the two, or say in the title what tells them apart.",
)
