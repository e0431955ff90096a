"""Suspect edges: their target has changed since the edge was last confirmed, or the code that they begin at.

An edge is confirmed by its own version (it was stated, changed, or applied again), by a change of the entity it comes
from, and by one of a file that states it and defines a single entity: what else changed in a manifest of many says
nothing of this edge, nor does what a sleep cycle put in order. What counts of an entity is what it says: its fields
and, where a Markdown document defines nothing else, that document. Who states it, where the file is and in which
line does not count, nor whether an episode was consolidated. A rename is no change: what an entity was under an
earlier id, it was itself, and an edge that got another id with one of its ends was confirmed when it was before. Nor is
a move of the file that states an edge.

A change of source code confirms nothing. The edges of ``OF_CODE`` are suspect when the digests of the symbol that they
begin at are not as they were; these count for no other edge. Those of a test count for the edges that lead to it. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import msgspec

from kbcore.model.concepts import IN_DOMAIN
from kbcore.model.content import CODE, PASSING, STATED_OF_CODE
from kbcore.model.proposals import WITHOUT_MARKS
from kbcore.model.record import SLEEP, SYNC
from kbcore.model.schema import MENTIONS
from kbcore.view.gaps import gaps_in
from kbcore.view.tables import IS_OF_CODE, Rows


def _nulls(fields: Iterable[str]) -> str:
    """Return a JSON object that takes these attributes out of another one."""
    return msgspec.json.encode(dict.fromkeys(sorted(one.removeprefix("attributes.") for one in fields))).decode()


_CONTENT: Final = f"""{{
  'type': type, 'name': nullif(name, id), 'title': if({IS_OF_CODE}, null, title), 'status': status, 'tags': tags,
  'owner': owner, 'priority': priority, 'severity': severity, 'links': links, 'metadata': {WITHOUT_MARKS},
  'attributes': json_merge_patch(
    attributes, case when not {IS_OF_CODE} then '{_nulls(PASSING)}' when type = 'symbol' then
      '{_nulls(PASSING | STATED_OF_CODE | CODE)}' else '{_nulls(PASSING | STATED_OF_CODE)}' end),
  'text_ref': case when text_ref = path or starts_with(text_ref, path || '#')
    then substr(text_ref, length(path) + 2) else text_ref end
}}"""
_CODE: Final = f"""if(type = 'symbol' and {IS_OF_CODE},
  json_extract_string(attributes, '$.signature_hash') || ' ' || json_extract_string(attributes, '$.body_hash'), null)"""
"""The digests of the code of a symbol that its source file states; null for anything else."""
# With split_part, DuckDB 2.0.0 fails to plan this for a single entity that has a path and no text_ref.
ORDERING: Final = (IN_DOMAIN, "assigned_to", "created_by", MENTIONS)
"""Edges that put in order, or only name what they lead to: they hold whatever becomes of that."""
OF_CODE: Final = ("implements", "covered_by")
"""Edges that begin at a symbol and hold for its code as it was."""
_OF_CODE: Final = ", ".join(f"'{edge}'" for edge in OF_CODE)
_ORDER: Final = ", ".join(f"'{edge}'" for edge in ORDERING)
_NOW: Final = 2**62
"""The seq that ended the present state."""


_HAS_CHANGED: Final = """
select exists (from node_history) or exists (from source_history), exists (from record where holes <> ''),
  exists (from record where renamed > 0)
"""
"""True if anything ever changed, without which no edge is suspect; if records are missing; if there are renames."""

_ROUTES: Final = """
with recursive step as materialized (
  select seq, part.was, part.now, part.since
  from (select seq, unnest(from_json(moved, '[{"was":"VARCHAR","now":"VARCHAR","since":"BIGINT"}]')) as part
    from record where renamed > 0)
), route as (
  select now as id, seq as since, was, since as was_since, seq as until from step
  union all
  select r.id, r.since, s.was, s.since, s.seq from route r join step s on s.now = r.was and s.seq = r.was_since
)
"""
"""Each earlier id of an element that renames gave another one, and when it had it (``renames.Moved``)."""

_SAYS: Final = """{'resolved': is_resolved, 'confidence': confidence, 'attributes': attributes, 'metadata': metadata,
  'statements': list_sort(list_transform(
    from_json(statements, '[{"src":"VARCHAR","said":"VARCHAR","via":"VARCHAR"}]'),
    lambda one: {'of_client': one.src = '', 'said': one.said, 'via': one.via}))
}"""
"""An edge's content and number of statements, without files."""


_NO_MOVES: Final = """passing as (
  select now as id, seq, was, since from step
)"""


def _carried(*, has_moved: bool) -> str:
    """Return SQL for the candidates whose newest versions confirmed nothing, and when they were confirmed.

    Such a version wrote a rename of an end, or that a file that states the edge moved. A file that defines one entity
    and has another text where it is now confirms what it states, as it does where it stays.
    """
    return f"""{_MOVES if has_moved else _NO_MOVES}, origin as (
  select c.id, c.version as since, p.was, p.since as confirmed, p.seq
  from candidate c join passing p on p.id = c.id and p.seq = c.version
  union all
  select o.id, o.since, p.was, p.since, p.seq from origin o join passing p on p.id = o.was and p.seq = o.confirmed
), carried as (
  select id, since, min(confirmed) as confirmed, list(seq) as passed from origin group by id, since
)"""  # noqa: S608 - no text from outside


_MOVES: Final = f"""trail as (
  select id from candidate union select was from route where id in (select id from candidate)
), states as (
  select id, version, files, ended, {_SAYS} as says
  from (select * from link_history union all by name select *, {_NOW} as ended from main.link)
  where id in (from trail) and id in (select id from link_history)
), move as (
  select b.id, b.version as since, b.ended as seq, list_filter(b.files, lambda one: not list_contains(a.files, one))
    as left_files, list_filter(a.files, lambda one: not list_contains(b.files, one)) as new_files
  from states b join states a on a.id = b.id and a.version = b.ended where a.files <> b.files and a.says = b.says
), arrived as (
  select id, seq, left_files, path from (select *, unnest(new_files) as path from move)
  where path in (select path from main.node where not {IS_OF_CODE} group by path having count(*) = 1)
), file_text as (
  select path, version, ended, hash
  from (select * from source_history union all by name select *, {_NOW} as ended from main.source)
  where path in (select path from arrived) or path in (select unnest(left_files) from arrived)
), edited as (
  select a.id, a.seq from arrived a
  join file_text n on n.path = a.path and n.version <= a.seq and a.seq < n.ended
  left join file_text o on list_contains(a.left_files, o.path) and o.version < a.seq and a.seq <= o.ended
  group by a.id, a.seq, a.path, n.hash having not coalesce(bool_or(o.hash = n.hash), false)
), passing as (
  select now as id, seq, was, since from step where now in (from trail)
  union all select id, seq, id, since from move where (id, seq) not in (from edited)
)"""  # noqa: S608 - no text from outside


def _asked(condition: str, *, has_moved: bool) -> str:
    """Return SQL for the edges whose target changed after them: mostly there is none, and the rest is slow to plan."""
    return f"""{_ROUTES}, turned as (
  select id, version, path from node
  where id in (select id from node_history) or path in (select path from source_history)
    or id in (select id from route)
), coded as (
  select id, version from node where type = 'symbol' and id in (select id from turned) and {IS_OF_CODE}
), end_changed as (
  select l.id, greatest(t.version, coalesce(s.version, 0)) as changed
  from link l join turned t on t.id = l.to_id left join source s on s.path = t.path
  where l.is_resolved and l.type not in ({_ORDER}) {condition}
  union all
  select l.id, f.version from link l join coded f on f.id = l.from_id
  where l.is_resolved and l.type in ({_OF_CODE}) {condition}
), candidate as materialized (
  select l.id, l.type, l.kind, l.from_id, l.to_id, l.files, l.version, t.path as to_path, e.changed
  from (select id, max(changed) as changed from end_changed group by id) e
  join link l on l.id = e.id join node t on t.id = l.to_id
), {_carried(has_moved=has_moved)}, asked as (
  select l.id, l.type, l.kind, l.from_id, l.to_id, l.files, coalesce(c.confirmed, l.version) as version,
    coalesce(c.passed, []) as passed, f.path as from_path, l.to_path
  from candidate l left join node f on f.id = l.from_id
  left join carried c on c.id = l.id and c.since = l.version
  where l.changed > coalesce(c.confirmed, l.version)
)
"""  # noqa: S608 - no text from outside


_COUNTED: Final = "select count(*) from asked"
"""Not ``from asked limit 1``, which DuckDB 2.0 never ends on a large branch: see ADR 0015."""
_MAY_HAVE_MOVED: Final = """
select count(*) from link_history where len(files) > 0
  and (id, ended) in (select (id, version) from candidate union all select (was, was_since) from route)
"""
"""The number of states of edges, stated by files, that ended when the given edges, or others, were written again."""


def _named(ids: str) -> str:
    """Return SQL for the ids that entities have and had, and from which seq on until which one."""
    return f"""named as (
  select n.id as entity, n.id as was, coalesce(max(r.since), 0) as since, {_NOW} as until
  from node n left join route r on r.id = n.id and r.since = n.created_seq
  where n.id in ({ids}) group by n.id
  union all
  select n.id, r.was, r.was_since, r.until from node n join route r on r.id = n.id and r.since = n.created_seq
  where n.id in ({ids})
)"""  # noqa: S608 - no text from outside


_STRETCHES: Final = f"""{_named("select from_id from asked union select to_id from asked")}, stretch as (
  select entity, path, version, ended, {_CONTENT} as content, {_CODE} as code
  from (select * from node_history union all by name select *, {_NOW} as ended from node) s
  join named on s.id = named.was and named.since <= s.version and s.version < named.until
), text as (
  select path, version, ended, hash, is_ok
  from (select * from source_history union all by name select *, {_NOW} as ended from main.source)
  where hash <> ''
), renaming as (
  select seq from record where renamed > 0 and source <> '{SYNC}'
)"""  # noqa: S608 - no text from outside
"""The states of each end of the edges asked for, under each id that it had, the states of files, and KB's own renames.

Such a rename is no change of the files that it writes; of one that a sync finds it is not known what else they say.
"""

_CONFIRMED: Final = f"""changed as (
  select entity, max(version) as seq, max(version) filter (
    version not in (select seq from record where starts_with(source, '{SLEEP}'))) as said_seq from (
    select entity, version, content, lag(content) over past as was, lag(ended) over past as was_until
    from stretch window past as (partition by entity order by version)
  ) where was_until = version and content is distinct from was group by entity
), recoded as (
  select entity, max(version) as seq from (
    select entity, version, code, lag(code) over past as was, lag(ended) over past as was_until
    from stretch window past as (partition by entity order by version)
  ) where was_until = version and code <> was group by entity
), rewritten as (
  select path, version from (
    select path, version, hash, lag(hash) over (partition by path order by version) as was
    from text where path in (select path from source_history)
  ) where hash <> was and version not in (from renaming)
), document as (
  select path from main.node
  where path in (select from_path from asked union select to_path from asked)
    and path in (select path from source where extractor like 'markdown/%')
  group by path having count(*) = 1
), single as (
  select path from main.node where path in (select path from rewritten) and not {IS_OF_CODE}
  group by path having count(*) = 1
), stated as (
  select id, passed, unnest(files) as path from asked
  union all select id, passed, from_path from asked where from_path in (from document)
), said as (
  select s.id, max(r.version) as seq from stated s join rewritten r on r.path = s.path
  where s.path in (from single) and not list_contains(s.passed, r.version) group by s.id
), confirmed as (
  select a.id, greatest(a.version, coalesce(c.said_seq, 0), coalesce(s.seq, 0)) as seq
  from asked a left join changed c on c.entity = a.from_id left join said s on s.id = a.id
)"""  # noqa: S608 - a constant
"""The last confirmation of each given edge. ``main`` has all of a branch, also where ``view.near`` hides it."""


def _suspect(seq: int | None) -> str:
    """Return SQL for the edges asked for whose target, or the document that defines nothing else, is not as it was.

    It is compared as it is now or, with a seq, as it was then.
    A text that could not be read, and that another one has replaced, changed nothing.
    """
    if seq is None:
        until, in_force = "true", f"{{}}.ended = {_NOW}"
    else:
        until, in_force = f"w.version <= {seq:d}", f"{{0}}.version <= {seq:d} and {seq:d} < {{0}}.ended"
    return f"""wording as (
  select entity, greatest(s.version, t.version) as version, least(s.ended, t.ended) as ended, hash, is_ok
  from stretch s join text t on t.path = s.path and t.version < s.ended and s.version < t.ended
  where entity in (select n.id from node n where n.path in (from document))
), reworded as (
  select a.id, max(w.version) as seq from asked a join (
    select *, coalesce(
        last_value(if(is_ok, hash, null) ignore nulls) over (before rows between unbounded preceding and 1 preceding),
        lag(hash) over before
      ) as was
    from wording window before as (partition by entity order by version)
  ) w on w.entity = a.to_id
  where w.hash <> w.was and (w.is_ok or {in_force.format("w")}) and w.version not in (from renaming)
    and not list_contains(a.passed, w.version) and {until}
  group by a.id
)
select a.id, a.type, a.kind, a.from_id, a.to_id, a.files, k.seq,
  greatest(coalesce(c.seq, 0), coalesce(r.seq, 0)) as changed_seq,
  case when was.content is distinct from now.content and coalesce(r.seq, 0) <= coalesce(c.seq, 0) then ''
    when was.content is distinct from now.content or (old.hash <> said.hash and r.seq > k.seq) then a.to_path
    else '' end as text_path,
  was.content is distinct from now.content as has_other_fields, '',
  if(was_code.code <> code.code, m.seq, null), coalesce(a.from_path, '')
from asked a join confirmed k on k.id = a.id
join stretch now on now.entity = a.to_id and {in_force.format("now")}
join stretch was on was.entity = a.to_id and was.version <= k.seq and k.seq < was.ended
left join wording said on said.entity = a.to_id and {in_force.format("said")}
left join wording old on old.entity = a.to_id and old.version <= k.seq and k.seq < old.ended
left join changed c on c.entity = a.to_id
left join reworded r on r.id = a.id
left join recoded m on m.entity = a.from_id and a.type in ({_OF_CODE})
left join stretch code on code.entity = m.entity and {in_force.format("code")}
left join stretch was_code on was_code.entity = m.entity and was_code.version <= k.seq and k.seq < was_code.ended
where was.content is distinct from now.content or (old.hash <> said.hash and r.seq > k.seq)
  or was_code.code <> code.code
"""  # noqa: S608 - no text from outside


_WORDINGS: Final = f"""{_ROUTES}, {_named("select unnest($1::varchar[])")}, stretch as (
  select entity, path, version, ended, since
  from (select * from node_history union all by name select *, {_NOW} as ended from node) s
  join named on s.id = named.was and named.since <= s.version and s.version < named.until
), text as (
  select path, version, ended, hash
  from (select * from source_history union all by name select *, {_NOW} as ended from main.source)
  where hash <> ''
), wording as (
  select entity, greatest(s.version, t.version) as version, hash, s.since
  from stretch s join text t on t.path = s.path and t.version < s.ended and s.version < t.ended
)
select entity, version, hash,
  version = since or version in (select seq from record where renamed > 0 and source <> '{SYNC}')
from wording order by entity, version"""  # noqa: S608 - no text from outside
"""The texts of the documents of entities, since when each, and whether a rename wrote it."""


def _not_provable(condition: str) -> str:
    """Return SQL for edges last confirmed before the first state of their target that is known.

    Not for those where that is how it came to be.
    """
    return f"""{_ROUTES}, candidate as (
  select l.* from link l where l.is_resolved and l.type not in ({_ORDER}) {condition}
), {_carried(has_moved=True)}, history as (
  select max(seq) as begins from record where file = '' or stated is not null
), stretch as (
  select id as entity, version, null as ended from node union all select id, version, ended from node_history
  union all
  select n.id, h.version, nullif(h.ended, r.until) from node n join route r on r.id = n.id and r.since = n.created_seq
  join node_history h on h.id = r.was and r.was_since <= h.version and h.version < r.until
), known as (
  select entity, min(version) as began, max(ended) as said from stretch group by entity
)
select l.id, l.type, l.kind, l.from_id, l.to_id, l.files, coalesce(c.confirmed, l.version), t.version, k.began
from candidate l join node t on t.id = l.to_id join known k on k.entity = l.to_id
left join known f on f.entity = l.from_id
left join carried c on c.id = l.id and c.since = l.version
where k.began <= (select begins from history)
  and greatest(coalesce(c.confirmed, l.version), coalesce(f.said, 0)) < k.began
"""  # noqa: S608 - no text from outside


class SuspectEdge(msgspec.Struct, frozen=True, array_like=True):
    """A suspect edge, the seq at which it was last confirmed, and that at which its target last changed.

    ``text_path`` is the document of the target where its text changed last, else "": the history of an entity does not
    have that. ``has_other_fields`` tells whether the fields of the target are not as they were either.
    """

    id: str
    type: str
    kind: str
    from_id: str
    to_id: str
    files: list[str]
    confirmed_seq: int
    changed_seq: int
    text_path: str
    has_other_fields: bool = True
    unproven: str = ""
    """The reason, if missing records hide whether the target is as it was; else ""."""
    code_seq: int | None = None
    """The seq at which the code of the symbol changed from which the edge leads; None where it is as it was."""
    code_path: str = ""


def suspect_edges(
    rows: Rows,
    ids: Collection[str] | None = None,
    ends: Collection[str] | None = None,
    *,
    seq: int | None = None,
) -> list[SuspectEdge]:
    """Return the suspect edges, all of them or those with these ids, or with an end among these.

    With a ``seq``: those whose targets were, at that seq, not as they were when the edges were last confirmed, as that
    is known now. An edge that was confirmed later, or is not there any more, is not judged then.

    ``rows`` answers SQL over the tables of a view. A state that was pruned is not known, so no edge is
    suspect because of it. Where records are missing since a salvage, one of them may have changed the target or
    confirmed the edge: an edge that was last confirmed before a change that is not known any more is suspect.
    """
    condition, params = "", list[Any]()
    if ids is not None or ends is not None:
        among = "in (select unnest($1::varchar[]))"
        condition = f"and l.id {among}" if ends is None else f"and (l.from_id {among} or l.to_id {among})"
        params = [sorted(ends if ends is not None else ids or ())]
    [(has_changed, has_gaps, has_renames)] = rows(_HAS_CHANGED, [])
    found: list[SuspectEdge] = []
    if has_changed:
        asked = _asked(condition, has_moved=False)
        [(count, moves)] = rows(f"{asked} select ({_COUNTED}), ({_MAY_HAVE_MOVED})", params)
        if moves:
            asked = _asked(condition, has_moved=True)
            [(count,)] = rows(f"{asked} {_COUNTED}", params)
        if count:
            found = [SuspectEdge(*row) for row in rows(f"{asked}, {_STRETCHES}, {_CONFIRMED}, {_suspect(seq)}", params)]
    if seq is not None:
        found = [one for one in found if one.confirmed_seq <= seq]
    if has_renames:
        found = _without_restored(rows, found, _NOW if seq is None else seq)
    return found + (_unproven(rows, condition, params) if has_gaps else [])


def _without_restored(rows: Rows, found: list[SuspectEdge], seq: int) -> list[SuspectEdge]:
    """Return the edges without those whose target has, but for what renames wrote into it, the text that it had."""
    targets = sorted({one.to_id for one in found if not one.has_other_fields and one.code_seq is None})
    if not targets:
        return found
    texts: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    alike: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for entity, version, text, is_rename in rows(_WORDINGS, [targets]):
        past = texts[entity]
        first = _first_alike(alike[entity], text)
        before = _first_alike(alike[entity], past[-1][1]) if past else first
        if is_rename and before != first:
            alike[entity][first] = before
        past.append((version, text))

    def at(entity: str, seq: int) -> str:
        text = next((text for version, text in reversed(texts[entity]) if version <= seq), "")
        return _first_alike(alike[entity], text)

    def is_other(one: SuspectEdge) -> bool:
        return one.has_other_fields or one.code_seq is not None

    return [one for one in found if is_other(one) or at(one.to_id, one.confirmed_seq) != at(one.to_id, seq)]


def _first_alike(alike: Mapping[str, str], text: str) -> str:
    """Return the text of which renames made this one; ``alike`` has that before each by that after it."""
    while text in alike:
        text = alike[text]
    return text


def possibly_carried(rows: Rows, versions: Mapping[str, int]) -> set[str]:
    """Return those of these edges, with their versions, that a rename or a move of a file may have written.

    Such an edge may have been confirmed before its version.
    """
    sql = """select v.id from (select unnest($1::varchar[]) as id, unnest($2::bigint[]) as version) v
where version in (select seq from record where renamed > 0 and seq in (select unnest($2::bigint[])))
  or (id, version) in (select (id, ended) from link_history where id in (select unnest($1::varchar[])))"""
    return {id_ for (id_,) in rows(sql, [list(versions), list(versions.values())])}


def earlier_rows(rows: Rows, ids: Collection[str], columns: str) -> list[tuple[Any, ...]]:
    """Return these columns of the earlier states of entities, the newest first, under each id that they had.

    The present id of the entity comes before them.
    """
    joined = "node_history s join named on s.id = named.was and named.since <= s.version and s.version < named.until"
    named = _named("select unnest($1::varchar[])")
    sql = f"{_ROUTES}, {named} select entity, {columns} from {joined} order by s.version desc"  # noqa: S608 - no text from outside
    return rows(sql, [sorted(ids)])


def _unproven(rows: Rows, condition: str, params: list[Any]) -> list[SuspectEdge]:
    """Return the edges whose target at the last confirmation is not known."""
    gaps = gaps_in(rows)
    found: list[SuspectEdge] = []
    if not gaps:
        return found
    for id_, type_, kind, from_id, to_id, files, confirmed, changed, began in rows(_not_provable(condition), params):
        before = [one for one in gaps if one.first <= began]
        gap = next((one for one in before if confirmed < one.last), (before or gaps)[-1 if before else 0])
        found.append(
            SuspectEdge(
                id_, type_, kind, from_id, to_id, files, confirmed, changed, text_path="", unproven=gap.sentence()
            )
        )
    return found
