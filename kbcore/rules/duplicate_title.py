"""Rule ``duplicate-title``: no two entities of one type have the same title."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from kbcore.model.graph import Node
from kbcore.model.statuses import RETIRED, has_status
from kbcore.rules.look_ups import Look, is_retired, text_in
from kbcore.rules.rule import Finding, Rule, RuleContext, in_brackets, listed
from kbcore.text.escaping import in_quotes
from kbcore.view.likeness import SAME_TITLES, TITLE_KEY, title_key, words_sql
from kbcore.view.tables import IS_OF_CODE_OR_INDEX

_FOLDED: Final = words_sql("title")
_KEY: Final = TITLE_KEY
"""The title to compare: equal ones are rare, so only few are looked at closely."""
_COUNTS: Final = f"trim(title) <> '' and not {has_status('status', RETIRED)} and not {IS_OF_CODE_OR_INDEX}"
_ALL: Final = f"""
with keyed as (select id, hash(type, {_KEY}) as key from node where title <> '')
select type, list(id order by id), list(path order by id), min(title) from node
where id in (select id from keyed where key in (select key from keyed group by key having count(*) > 1)) and {_COUNTS}
group by type, {_FOLDED} having count(*) > 1
"""  # noqa: S608 - no text from outside
_ASKED: Final = f"""
select distinct type, {_KEY} from node where id in (select unnest($1::varchar[])) and {_COUNTS}
"""  # noqa: S608 - no text from outside
_NEAR: Final = f"""
select type, list(id order by id), list(path order by id), min(title) from node
where list_contains($1::varchar[], type) and _LIKE_ and {_COUNTS} and {_KEY} in (select unnest($2::varchar[]))
group by type, {_KEY} having count(*) > 1
"""  # noqa: S608 - no text from outside
_FEW: Final = 8
"""To compare so many words with all titles is quicker than to fold these."""


def _run(context: RuleContext) -> list[Finding]:
    return _findings(context.rows(_ALL, []) if context.ids is None else _near(context, sorted(context.ids)))


def _look(look: Look) -> list[Finding]:
    ids = look.nodes_with("type", "title", "status")
    changed = [one for one in look.changes.nodes if one.key in ids]
    nodes = [node for one in changed for node in (one.before, one.after) if node and not node.is_of_code_or_index]
    keys = {key for node in nodes if (key := title_key(node))}
    if not keys:
        return []
    groups: defaultdict[str, list[Node]] = defaultdict(list)
    for node in sorted(look.side.alike(SAME_TITLES, keys), key=lambda one: one.id):
        if not (is_retired(node) or node.is_of_code_or_index):
            groups[title_key(node)].append(node)
    alike = [each for each in groups.values() if len(each) > 1]
    return _findings(
        (
            each[0].type,
            [one.id for one in each],
            [one.path for one in each],
            min(text_in(one, "title") for one in each),
        )
        for each in alike
    )


def _findings(groups: Iterable[tuple[Any, ...]]) -> list[Finding]:
    found = []
    for type_, ids, paths, title in (part for group in groups for part in _parts(*group)):
        message = f"{listed(ids)} are of type {type_} and have one title, {in_quotes(title)}."
        files = sorted({path for path in paths if path})
        hint = f"Merge them if they mean the same, or say in the title how they differ{in_brackets(files)}."
        found.append(Finding(ids[0], message, hint, paths[0], frozenset(ids), field="title", values=tuple(ids[1:])))
    return found


def _parts(type_: str, ids: list[str], paths: list[str], title: str) -> Iterator[tuple[str, list[str], list[str], str]]:
    """Yield a group of one title; of scenarios, which are known by their places in their files, those of each file."""
    if not all(id_.startswith(f"{path}#") for id_, path in zip(ids, paths, strict=True)):
        yield type_, ids, paths, title
        return
    of_files: defaultdict[str, list[str]] = defaultdict(list)
    for id_, path in zip(ids, paths, strict=True):
        of_files[path].append(id_)
    yield from ((type_, some, [path] * len(some), title) for path, some in of_files.items() if len(some) > 1)


def _near(context: RuleContext, ids: list[str]) -> list[tuple[Any, ...]]:
    """Return the groups of one title in which some of these ids may be."""
    asked = context.near(_ASKED, [ids])
    types, keys = (sorted({row[at] for row in asked}) for at in (0, 1))
    if not keys:
        return []
    patterns = [f"%{'%'.join(key.split())}%" for key in keys] if len(keys) <= _FEW else []
    alike = " or ".join(f"title ilike ${at}" for at, _ in enumerate(patterns, start=3)) or "true"
    condition = f"(strlen(title) <> length(title) or {alike})"
    return context.rows(_NEAR.replace("_LIKE_", condition), [types, keys, *patterns])


RULE: Final = Rule(
    "duplicate-title",
    "warning",
    "No two entities of one type have the same title, whatever its case, spaces and Unicode normal form. What is "
    "retired does not count, nor what is read out of source code; scenarios that are known by their places in feature "
    "files are compared within each file.",
    _run,
    example="REQ-12 and REQ-7 are of type req and have one title, 'Log in with a passkey'.",
    remedy="Merge the two, or say in the title how they differ.",
    look=_look,
    sort_ids=lambda ids: tuple(sorted(ids)),
)
