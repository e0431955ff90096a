"""Rule ``similar-ids``: no two ids differ only in case, in Unicode normal form or in leading zeros.

Nor does a document state a former id that another entity has, or an entity one that another one states too. No write
and no sync of a document brings that about: it is in journals of older versions. So what a change may have broken is
not looked at for it. That an entity of clients has the id of another one as a former id is no fault: it is
so where changes separate two entities of one id, and the id means the other one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from kbcore.errors.remedies import kb
from kbcore.model.graph import Node
from kbcore.rules.look_ups import Look
from kbcore.rules.rule import Finding, Rule, RuleContext, in_brackets, listed
from kbcore.text.escaping import in_quotes
from kbcore.view.likeness import SIMILAR_IDS, alike_key, differences_in_words, likeness_sql
from kbcore.view.tables import IS_OF_CODE_OR_INDEX

_FOLDED: Final = likeness_sql("id")
_ALIKE: Final = f"""
select list(id order by id), list(path order by id) from node where not {IS_OF_CODE_OR_INDEX} and _AMONG_
group by {_FOLDED} having count(*) > 1
"""  # noqa: S608 - no text from outside
_TWICE: Final = "id in (select id from keyed where key in (select key from keyed group by key having count(*) > 1))"
"""Nearly no id is like another, and to list each by itself takes four times as long as to count."""
_NEAR_TO: Final = f"""strlen(id) <> length(id) or replace(lower(id), '0', '') in
  (select replace({likeness_sql("asked")}, '0', '') from unnest($1::varchar[]) as a(asked))"""  # noqa: S608 - as above
"""To fold an id takes long; without any zero, and in small letters, alike ones of ASCII are the same at once."""
_KEYED: Final = f"with keyed as (select id, hash({_FOLDED}) as key from node where not {IS_OF_CODE_OR_INDEX})"  # noqa: S608 - as above
_ALL: Final = _KEYED + _ALIKE.replace("_AMONG_", _TWICE)
_NEAR: Final = _ALIKE.replace("_AMONG_", _NEAR_TO)
_CLAIMED: Final = """
with claim as (
  select distinct id, path, former from (select id, path, unnest(list_append(
      json_extract_string(attributes, '$.former_ids[*]'), json_extract_string(attributes, '$.former_ids'))) as former
    from node where contains(attributes, '"former_ids"'))
  where former <> id
)
select former, list(claim.id order by claim.id), list(claim.path order by claim.id), max(living.path), count(living.id)
from claim left join (select id, path from node) as living on living.id = former
group by former having count(*) > 1 or count(living.id) > 0 order by former
"""


def _run(context: RuleContext) -> list[Finding]:
    found = _findings(context.rows(_ALL, []) if context.ids is None else context.rows(_NEAR, [sorted(context.ids)]))
    return [*found, *_claimed(context)]


def _claimed(context: RuleContext) -> Iterable[Finding]:
    for former, ids, paths, path, is_living in context.rows(_CLAIMED, []):
        holder = former if is_living else ids[0]
        for key, its in zip(ids, paths, strict=True):
            if key == holder or (is_living and not its):
                continue
            where = f", in {in_quotes(path if is_living else paths[0])}" if (path if is_living else paths[0]) else ""
            other = "the id of another entity" if is_living else f"a former id of {in_quotes(holder)}"
            message = f"{in_quotes(former)} in `former_ids` of {in_quotes(key)} is {other}{where}, which it means."
            hint = f"{kb('set', key, f'former_ids-={former}')} takes it out."
            concerns = frozenset({key, holder})
            yield Finding(key, message, hint, its, concerns, "claimed_id", "attributes.former_ids", (former, holder))


def _look(look: Look) -> list[Finding]:
    ids = look.came_or_went()
    if not ids:
        return []
    groups: defaultdict[str, list[Node]] = defaultdict(list)
    for node in sorted(look.side.alike(SIMILAR_IDS, {alike_key(id_) for id_ in ids}), key=lambda one: one.id):
        if not node.is_of_code_or_index:
            groups[alike_key(node.id)].append(node)
    alike = [nodes for nodes in groups.values() if len(nodes) > 1]
    return _findings(([node.id for node in nodes], [node.path for node in nodes]) for nodes in alike)


def _findings(groups: Iterable[tuple[Any, ...]]) -> list[Finding]:
    found = []
    for ids, paths in groups:
        what = differences_in_words(ids)
        # in another normal form two ids look the same, so what they are made of is shown
        is_shown = "Unicode" not in what
        names = ids if is_shown else [f"{id_!a}" for id_ in ids]
        files = sorted({path for path in paths if path})
        where = in_brackets(files)
        message = f"{listed(names)} are different entities whose ids differ only in {what}."
        hint = f"If one is a slip, keep one id and correct the other{where}; links follow the exact id."
        found.append(Finding(ids[0], message, hint, paths[0], frozenset(ids), values=tuple(ids[1:]), names_id=is_shown))
    return found


RULE: Final = Rule(
    "similar-ids",
    "warning",
    "No two ids differ only in case, in Unicode normal form or in leading zeros (REQ-7, req-7, REQ-07), and no"
    " former id is that of another entity. Names in source code may well differ only in case.",
    _run,
    example="REQ-7 and req-7 are different entities whose ids differ only in case.",
    remedy="If one is a slip, keep one id and correct the other.",
    look=_look,
)
