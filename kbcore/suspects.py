"""Which edges are suspect: what they lead to is not any more as it was when somebody last stood by them.

An edge is confirmed by its own version (it was stated, changed, or applied again), by a change of the entity it comes
from, and by one of a file that states it and defines a single entity: what else changed in a manifest of many says
nothing of this edge, nor does what a sleep cycle put in order. What counts of an entity is what it says: its fields
and, where a Markdown document defines nothing else, that document. Who states it, where the file lies and in which
line does not count, nor whether an episode was consolidated. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from kbcore.concepts import IN_DOMAIN
from kbcore.gaps import Rows, gaps_in
from kbcore.ids import link_id
from kbcore.model import Node
from kbcore.record import SYNC
from kbcore.schema import MENTIONS

_encode = msgspec.json.Encoder(order="sorted").encode
_CONTENT: Final = """{
  'type': type, 'name': name, 'title': title, 'status': status, 'tags': tags, 'owner': owner, 'priority': priority,
  'severity': severity, 'links': links, 'metadata': metadata,
  'attributes': json_merge_patch(attributes, '{"line":null,"consolidation_status":null,"consolidated_at":null}'),
  'text_ref': case when text_ref = path or starts_with(text_ref, path || '#')
    then substr(text_ref, length(path) + 2) else text_ref end
}"""
# With split_part, DuckDB 2.0.0 fails to plan this for a single entity that has a path and no text_ref.""
_PASSING: Final = frozenset({"attributes.line", "attributes.consolidation_status", "attributes.consolidated_at"})
"""Fields that ``_CONTENT`` leaves out, as nodes have them."""
_ANY: Final = "and true"
"""Where a condition on the edges may stand."""
ORDERING: Final = (IN_DOMAIN, "assigned_to", "created_by", MENTIONS)
"""Edges that put in order, or only name what they lead to: they hold whatever becomes of that."""
_ORDER: Final = ", ".join(f"'{edge}'" for edge in ORDERING)
_NOW: Final = 2**62
"""The seq that ended what stands."""

_HAS_TURNED: Final = """
select exists (from node_history) or exists (from source_history), exists (from record where holes <> ''),
  exists (from record where renamed > 0)
"""
"""Whether anything ever changed, without which nothing can be suspect; whether records are missing; and whether one
renamed an entity: to find the renames takes longer than all else where there is none."""

_COUNTED: Final = "select count(*) from asked"
"""Not ``from asked limit 1``, which DuckDB 2.0 never ends on a large branch: see ADR 0015."""

_ASKED: Final = f"""
with turned as (
  select id, version, path from node
  where id in (select id from node_history) or path in (select path from source_history)
), asked as (
  select l.id, l.type, l.kind, l.from_id, l.to_id, l.files, l.version, f.path as from_path, t.path as to_path
  from link l join turned t on t.id = l.to_id left join node f on f.id = l.from_id left join source s on s.path = t.path
  where l.stands and l.type not in ({_ORDER}) and greatest(t.version, coalesce(s.version, 0)) > l.version
    {_ANY}
)
"""  # noqa: S608 - no text from outside
"""The edges whose target changed after them: mostly there is none, and all that follows takes longer to plan."""

_RENAMING: Final = "(-1)"
"""The place of the seqs of renames whose files say what they did before."""

_CONFIRMED: Final = f"""stretch as (
  select id, path, version, ended, {_CONTENT} as content
  from (select * from node_history union all by name select *, {_NOW} as ended from node)
  where id in (select from_id from asked union select to_id from asked)
), changed as (
  select id, max(version) as seq, max(version) filter (
    version not in (select seq from record where source = 'sleep')) as said_seq from (
    select id, version, content, lag(content) over past as was, lag(ended) over past as was_until
    from stretch window past as (partition by id order by version)
  ) where was_until = version and content is distinct from was group by id
), text as (
  select path, version, ended, hash
  from (select * from source_history union all by name select *, {_NOW} as ended from source)
  where hash <> '' and path in (select path from source_history)
), rewritten as (
  select path, max(version) as seq from (
    select path, version, hash, lag(hash) over (partition by path order by version) as was from text
  ) where hash <> was and version not in {_RENAMING} group by path
), document as (
  select path from main.node
  where path in (select from_path from asked union select to_path from asked)
    and path in (select path from source where extractor like 'markdown/%')
  group by path having count(*) = 1
), single as (
  select path from main.node where path in (select path from rewritten) group by path having count(*) = 1
), confirmed as (
  select a.id, greatest(a.version, coalesce(any_value(c.said_seq), 0), coalesce(any_value(d.seq), 0),
    coalesce(max(r.seq), 0)) as seq
  from (select *, unnest(if(len(files) = 0, [''], files)) as file from asked) a
  left join changed c on c.id = a.from_id left join (from rewritten where path in (from single)) r on r.path = a.file
  left join (from rewritten where path in (from document)) d on d.path = a.from_path
  group by a.id, a.version
)
"""  # noqa: S608 - no text from outside
"""When each edge asked for was last confirmed. A rename of KB's own is no change of the files that it writes."""

_SQL: Final = f"""{_ASKED}, {_CONFIRMED}
select a.id, a.type, a.kind, a.from_id, a.to_id, a.files, k.seq,
  greatest(coalesce(c.seq, 0), coalesce(r.seq, 0)) as changed_seq,
  if(was.content is distinct from now.content, '', s.path) as text_path
from asked a join confirmed k on k.id = a.id
join stretch now on now.id = a.to_id and now.ended = {_NOW}
join stretch was on was.id = a.to_id and was.version <= k.seq and k.seq < was.ended
left join source s on s.path = a.to_path and s.hash <> '' and s.path in (from document)
left join (from source_history union all by name select *, {_NOW} as ended from main.source) old
  on old.path = was.path and old.version <= k.seq and k.seq < old.ended and old.hash <> ''
left join changed c on c.id = a.to_id
left join rewritten r on r.path = s.path
where was.content is distinct from now.content or (old.hash <> s.hash and (old.path <> s.path or r.seq > k.seq))
"""  # noqa: S608 - no text from outside

_RENAMES: Final = """
with holder as materialized (
  select id, version, null as ended, attributes from main.node where contains(attributes, '"former_ids"')
  union all select id, version, ended, attributes from main.node_history where contains(attributes, '"former_ids"')
), stood as (select id, version from main.node union all select id, version from main.node_history),
pair as (
  select new.version as seq, old.id as was, new.id as now from holder new
  join main.node_history old on old.ended = new.version and old.id <> new.id
  where json_contains(json_extract(new.attributes, '$.former_ids'), to_json(old.id))
  union select new.version, old.id, new.id from holder old
  join stood new on new.version = old.ended and old.id <> new.id
  where json_contains(json_extract(old.attributes, '$.former_ids'), to_json(new.id))
)
select seq, was, now, r.source from pair left join main.record r using (seq)
where not exists (from stood s where s.id = pair.was and s.version = pair.seq)
  and not exists (from main.node_history h where h.id = pair.now and h.ended = pair.seq)
"""
"""Each rename that the history shows: one entity goes, one comes, and one of the two names the other."""

_MOVED: Final = f"""
select l.id, l.type, l.kind, l.from_id, l.to_id, l.files, l.version from link l
where l.stands and l.type not in ({_ORDER}) and l.version in {_RENAMING}
  {_ANY}
"""  # noqa: S608 - no text from outside
"""Edges that have the version of a rename: most of them were renamed by it, with one of their ends."""

_LAST: Final = f"""
with asked as (
  select l.id, l.type, l.kind, l.from_id, l.to_id, l.files, l.version, f.path as from_path, t.path as to_path
  from link l join node t on t.id = l.to_id left join node f on f.id = l.from_id
  where l.stands and l.id in (select unnest($1::varchar[]))
), {_CONFIRMED}
select k.id, k.seq from confirmed k
"""  # noqa: S608 - no text from outside
"""When some edges were last confirmed, a rename of an end included."""

_LEFT: Final = f"{_LAST} join asked a on a.id = k.id where k.seq = a.version"
"""Those of some edges that were not confirmed since they have the version that they have."""

_STATES: Final = f"""
with entity as (
  select id, version, path, ended from main.node_history union all select id, version, path, {_NOW} from main.node
), text as (
  select path, version, ended from main.source_history union all select path, version, {_NOW} from main.source
)
"""  # noqa: S608 - no text from outside

_DOUBTFUL: Final = f"""{_STATES}
select distinct l.ended, l.type, l.kind, l.from_id, l.to_id from main.link_history l
join entity t on t.id = l.to_id and t.version < l.ended and l.ended <= t.ended
left join text s on s.path = t.path and s.version < l.ended and l.ended <= s.ended
where l.ended in {_RENAMING} and l.stands and l.type not in ({_ORDER})
  and greatest(t.version, coalesce(s.version, 0)) > l.version
"""  # noqa: S608 - no text from outside
"""Edges that went at renames and whose target had changed after them: what ``_ASKED`` finds just before each rename."""

_KEPT: Final = f"""{_STATES}, held as (
  select l.id, l.from_id, l.version, l.ended, unnest(list_append(l.files, f.path)) as file from main.link_history l
  join entity f on f.id = l.from_id and f.version <= l.version and l.ended <= f.ended
  where l.ended in {_RENAMING} and l.id in (select unnest($1::varchar[]))
)
select h.id, h.ended, h.version from held h
left join text s on s.path = h.file and h.version < s.version and s.version < h.ended
group by h.id, h.ended, h.version having count(s.path) = 0
"""  # noqa: S608 - no text from outside
"""Edges that went at renames, and where neither the entity they come from nor a file had changed after them."""

_PAST: Final = """with node as (
  select * exclude (ended) from (
    select *, {now} as ended from main.node union all by name select * from main.node_history
  ) where version <= {seq} and ended > {seq}
), link as (
  select * exclude (ended) from (
    select *, {now} as ended from main.link union all by name select * from main.link_history
  ) where version <= {seq} and ended > {seq}
), source as (
  select * exclude (ended) from (
    select *, {now} as ended from main.source union all by name select * from main.source_history
  ) where version <= {seq} and ended > {seq}
), node_history as (from main.node_history where ended <= {seq}),
link_history as (from main.link_history where ended <= {seq}),
source_history as (from main.source_history where ended <= {seq}),
record as (from main.record where seq <= {seq})"""
"""The tables as they were at an earlier seq."""

_UNPROVEN: Final = f"""
with history as (
  select max(seq) as begins from record where file = '' or stated is not null
), known as (
  select id, min(version) as began
  from (select id, version from node_history union all select id, version from node)
  where id in (select to_id from link) group by id
), said as (
  select id, max(ended) as seq from node_history group by id
)
select l.id, l.type, l.kind, l.from_id, l.to_id, l.files, l.version, t.version, k.began
from link l join node t on t.id = l.to_id join known k on k.id = l.to_id left join said c on c.id = l.from_id
where l.stands and l.type not in ({_ORDER})
  and greatest(l.version, coalesce(c.seq, 0)) < k.began and k.began <= (select begins from history)
  {_ANY}
"""  # noqa: S608 - no text from outside
"""Edges last confirmed before the first state of their target that is known, where that is not how it came to be."""


def content_of(node: Node) -> bytes:
    """Return what ``_CONTENT`` does of a node: the same for the same content, and else another."""
    fields = {key: value for key, value in node.fields.items() if key not in _PASSING and value is not None}
    fields["name"] = fields.get("name", node.id)
    ref = fields.get("text_ref")
    if isinstance(ref, str) and (ref == node.path or ref.startswith(f"{node.path}#")):
        fields["text_ref"] = ref[len(node.path) + 1 :]
    return _encode(fields)


class Suspect(msgspec.Struct, frozen=True, array_like=True):
    """A suspect edge, the seq at which it was last confirmed, and that at which its target last changed.

    ``text_path`` is the document of the target where only its text is not as it was, else "".
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
    unproven: str = ""
    """Why it cannot be told whether the target is as it was, where records are missing; else ""."""


class _Rename(NamedTuple):
    """An entity that got another id at a seq, and through what."""

    seq: int
    was: str
    now: str
    source: str | None


def suspects(
    rows: Rows,
    ids: Collection[str] | None = None,
    ends: Collection[str] | None = None,
) -> list[Suspect]:
    """Return the suspect edges, all of them or those with these ids, or with an end among these.

    ``rows`` answers SQL over the tables of a view. Of a state that was pruned nobody knows what it was, so no edge is
    suspect because of it. Where records are missing since a salvage, one of them may have changed the target or
    confirmed the edge: an edge that was last confirmed before a change that is not known any more is suspect.

    To rename an entity neither confirms its edges nor makes them suspect: they are as they were before it.
    """
    condition, params = _ANY, list[Any]()
    if ids is not None or ends is not None:
        among = "in (select unnest($1::varchar[]))"
        condition = f"and l.id {among}" if ends is None else f"and (l.from_id {among} or l.to_id {among})"
        params = [sorted(ends if ends is not None else ids or ())]
    [(has_turned, has_gaps, has_renames)] = rows(_HAS_TURNED, [])
    renames = [_Rename(*row) for row in rows(_RENAMES, [])] if has_renames else []
    changed = _changed(rows, condition, params, renames) if has_turned else []
    if renames:
        known = {one.id for one in changed}
        carried = _carried(rows, condition, params, renames, has_gaps=has_gaps)
        changed = _confirmed_before(rows, [*changed, *(one for one in carried if one.id not in known)], renames)
    return changed + (_unproven(rows, condition, params) if has_gaps else [])


def _changed(rows: Rows, condition: str, params: list[Any], renames: Sequence[_Rename]) -> list[Suspect]:
    if rows(f"{_ASKED} {_COUNTED}".replace(_ANY, condition), params) == [(0,)]:
        return []
    return [Suspect(*row) for row in rows(_beside(_SQL, renames).replace(_ANY, condition), params)]


def _beside(sql: str, renames: Sequence[_Rename]) -> str:
    """Return SQL for which a document that a rename of KB's own wrote says what it said before."""
    return _among(sql, (one.seq for one in renames if one.source != SYNC))


def _among(sql: str, seqs: Iterable[int]) -> str:
    """Return SQL that asks about these seqs; -1 is none."""
    return sql.replace(_RENAMING, f"({', '.join(str(int(seq)) for seq in sorted({-1, *seqs}))})")


def _carried(
    rows: Rows, condition: str, params: list[Any], renames: Sequence[_Rename], *, has_gaps: bool
) -> list[Suspect]:
    """Return the edges that were suspect when one of their ends was renamed, and to which nothing happened since.

    One query finds the edges that can have been suspect when they were renamed; mostly there is none. Of the others,
    each rename that they went through is looked at once, the earliest first.
    """
    moves = _Moves(renames)
    doubtful = {(seq, _Ends(*ends)) for seq, *ends in rows(_among(_DOUBTFUL, moves.seqs), [])}
    routes = [route for seq, ends in doubtful if (route := moves.route(ends, seq))]
    if not routes:
        return []
    moved = {row[0]: row for row in rows(_among(_MOVED, moves.seqs).replace(_ANY, condition), params)}
    steps: dict[int, dict[str, str]] = {}
    for route in routes:
        last = route[-1]
        if last.now.id in moved and moved[last.now.id][-1] == last.seq:
            for step in route:
                steps.setdefault(step.seq, {})[step.was.id] = step.now.id
    asked = {(seq, ends.id) for seq, ends in doubtful}
    kept = _kept(rows, steps)
    carried: dict[str, tuple[int, Suspect]] = {}
    for seq, ids in sorted(steps.items()):
        past, earlier = _At(rows, seq - 1), [one for one in renames if one.seq < seq]
        held = {key: carried[key] for key in ids if key in carried}
        unsure = {key: one for key, one in held.items() if (key, seq, one[0]) not in kept}
        found = {key: one for key, (_, one) in held.items() if key not in unsure}
        found |= _still(past, unsure, earlier) if unsure else {}
        fresh = [key for key in ids if (seq, key) in asked]
        if fresh:
            found |= {one.id: one for one in _suspect_at(past, fresh, earlier, has_gaps=has_gaps)}
        for key in ids:
            carried.pop(key, None)
        carried |= {ids[key]: (seq, one) for key, one in found.items()}
    left = _still(rows, {key: one for key, one in carried.items() if key in moved}, renames) if carried else {}
    return [
        msgspec.structs.replace(one, id=key, from_id=moved[key][3], to_id=moved[key][4], files=moved[key][5])
        for key, one in left.items()
    ]


def _suspect_at(past: _At, ids: list[str], renames: Sequence[_Rename], *, has_gaps: bool) -> list[Suspect]:
    condition, params = "and l.id in (select unnest($1::varchar[]))", [sorted(ids)]
    found = [Suspect(*row) for row in past(_beside(_SQL, renames).replace(_ANY, condition), params)]
    return (_unproven(past, condition, params) if has_gaps else []) + found


def _kept(rows: Rows, steps: dict[int, dict[str, str]]) -> set[tuple[Any, ...]]:
    """Return edges, each with the seq of a rename, and that since which it was certainly not confirmed then."""
    ids = sorted({key for one in steps.values() for key in one})
    return set(rows(_among(_KEPT, steps), [ids])) if len(steps) > 1 else set()


def _still(rows: Rows, held: dict[str, tuple[int, Suspect]], renames: Sequence[_Rename]) -> dict[str, Suspect]:
    """Return those of some edges that are as the rename at their seq left them, and not confirmed since."""
    left = rows(_beside(_LEFT, renames), [sorted(held)])
    return {key: held[key][1] for key, version in left if held[key][0] == version}


def _confirmed_before(rows: Rows, found: Sequence[Suspect], renames: Sequence[_Rename]) -> list[Suspect]:
    """Return suspect edges, each with the seq at which it was confirmed before its ends were renamed, if they were."""
    steps: dict[int, set[str]] = {}
    for one in found:
        for seq in {rename.seq for rename in renames if rename.seq <= one.confirmed_seq}:
            was = _ends_before(one, seq, renames)
            if was != _ends_before(one, seq + 1, renames):
                steps.setdefault(seq, set()).add(was.id)
    if not any(one.confirmed_seq in steps for one in found):
        return [*found]
    ids = sorted(set[str]().union(*steps.values()))
    kept = {(key, seq): version for key, seq, version in rows(_among(_KEPT, steps), [ids])}

    def confirmed(one: Suspect) -> Suspect:
        seq = one.confirmed_seq
        while (key := _ends_before(one, seq, renames).id) in steps.get(seq, ()):
            if (key, seq) not in kept:  # what it comes from changed before that rename
                kept.update(((id_, seq), at) for id_, at in _At(rows, seq - 1)(_beside(_LAST, renames), [[key]]))
            if (key, seq) not in kept:
                break
            seq = kept[key, seq]
        return msgspec.structs.replace(one, confirmed_seq=seq)

    return [confirmed(one) for one in found]


def _ends_before(one: Suspect, seq: int, renames: Sequence[_Rename]) -> _Ends:
    """Return what an edge was called before the record at a seq."""
    ends = _Ends(one.type, one.kind, one.from_id, one.to_id)
    for rename in sorted(renames, reverse=True):
        if rename.seq >= seq:
            from_id, to_id = (rename.was if end == rename.now else end for end in (ends.from_id, ends.to_id))
            ends = ends._replace(from_id=from_id, to_id=to_id)
    return ends


class _Ends(NamedTuple):
    """What the id of an edge is made of."""

    type: str
    kind: str
    from_id: str
    to_id: str

    @property
    def id(self) -> str:
        return link_id(*self)


class _Step(NamedTuple):
    """An edge before and after a rename of one of its ends."""

    seq: int
    was: _Ends
    now: _Ends


class _Moves:
    """Where renames lead."""

    def __init__(self, renames: Sequence[_Rename]) -> None:
        self.seqs: Final = {one.seq for one in renames}
        self._of: dict[str, dict[int, str]] = {}
        for one in sorted(renames):
            self._of.setdefault(one.was, {})[one.seq] = one.now

    def route(self, ends: _Ends, seq: int) -> list[_Step]:
        """Return the renames that an edge went through from a seq on if nothing else happened to it.

        It is empty where neither of its ends was renamed at that seq.
        """
        route: list[_Step] = []
        while at := self._next(ends, seq, first=not route):
            now = ends._replace(
                from_id=self._of.get(ends.from_id, {}).get(at, ends.from_id),
                to_id=self._of.get(ends.to_id, {}).get(at, ends.to_id),
            )
            route.append(_Step(at, ends, now))
            ends, seq = now, at
        return route

    def _next(self, ends: _Ends, seq: int, *, first: bool) -> int | None:
        seqs = {*self._of.get(ends.from_id, ()), *self._of.get(ends.to_id, ())}
        return (seq if seq in seqs else None) if first else min((one for one in seqs if one > seq), default=None)


class _At:
    """Answers SQL over the tables as they were at an earlier seq."""

    def __init__(self, rows: Rows, seq: int) -> None:
        self._now: Final = rows
        self._tables = _PAST.format(seq=int(seq), now=_NOW)

    def __call__(self, sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        rest = sql.strip().replace("main.", "")
        return self._now(
            f"{self._tables}, {rest[5:]}" if rest.startswith("with ") else f"{self._tables} {rest}", params
        )


def _unproven(rows: Rows, condition: str, params: list[Any]) -> list[Suspect]:
    """Return the edges of which nobody can tell what their target was when they were last confirmed."""
    gaps = gaps_in(rows)
    found: list[Suspect] = []
    if not gaps:
        return found
    for id_, type_, kind, from_id, to_id, files, confirmed, changed, began in rows(
        _UNPROVEN.replace(_ANY, condition), params
    ):
        before = [one for one in gaps if one.first <= began]
        gap = next((one for one in before if confirmed < one.last), (before or gaps)[-1 if before else 0])
        found.append(
            Suspect(id_, type_, kind, from_id, to_id, files, confirmed, changed, text_path="", unproven=gap.sentence())
        )
    return found
