"""Concepts that may be the same: by their names, their aliases, and the words of what is said of them. Set-based SQL.

Two are compared only where they share a key: a folded name, a name with one letter left out, the words of a name, an
alias, or one of the rarest words of a text. A key that more than a few share says nothing, and is left out, so that the
work stays linear; of one name, each is then compared with the next. Names whose digits differ mean different things.

The last is the prefix filter of set similarity joins: two texts of which a share ``T`` of the words is common have one
of their ``|x| - ceil(T * |x|) + 1`` rarest words in common (S. Chaudhuri, V. Ganti, R. Kaushik, ICDE 2006).
"""

from __future__ import annotations

from typing import Final

import msgspec

from kbcore import limits
from kbcore.kip.sleep.memory import Memory
from kbcore.model.record import SLEEP
from kbcore.view.likeness import words_sql

MERGING: Final = 6
"""The number of the phase that merges concepts of one name."""
_LEAST_LETTERS: Final = 6
"""Shorter names have too many neighbours."""
_MOST_LETTERS: Final = 60
_SHARED: Final = 20
"""The most concepts with one key."""
_TEXT: Final = 0.8
"""The least share of common words of two texts."""
_LEAST_WORDS: Final = 5
_WORDS: Final = (
    r"list_sort(list_distinct(list_filter(regexp_split_to_array({0}, '[^\p{{L}}\p{{N}}]+'), "
    r"lambda w: w <> '')))"
)
_ALIASES: Final = "json_extract_string(attributes, '$.aliases[*]')"
_DISTINCT: Final = "json_extract_string(attributes, '$.distinct_from[*]')"

IS_FREE: Final = "len(files) = 0 and id not in (select unnest([from_id, to_id]) from link where len(files) > 0)"
"""True if no file states a concept or links it, so that it may be merged."""

_ALIKE: Final = f""", c as (
  select id, type, name, {IS_FREE} as is_free,
    {words_sql("name")} as folded,
    regexp_replace(name, '[^0-9]', '', 'g') as digits, {_WORDS.format("lower(name)")} as words,
    list_transform({_ALIASES}, lambda a: {words_sql("a")}) as aliases, {_DISTINCT} as other,
    {_WORDS.format("lower(concat_ws(' ', attributes ->> '$.description', attributes ->> '$.summary'))")} as said
  from mine where type not in ('Event', 'SleepTask') and coalesce(status, '') <> 'archived'
), keyed as (
  select id, type, 'n' || folded as key from c
  union all select id, type, 'w' || array_to_string(words, ' ') from c where len(words) > 1
  union all select id, type, 'n' || unnest(aliases) from c
  union all select id, type, 'v' || unnest(list_prepend(folded, list_transform(range(1, length(folded) + 1),
    lambda p: folded[1:p - 1] || folded[p + 1:]))) from c
  where length(folded) between {_LEAST_LETTERS} and {_MOST_LETTERS}
), word as (
  select id, type, unnest(said) as one, len(said) as size from c where len(said) >= {_LEAST_WORDS}
), ranked as (
  select id, type, one, size, row_number() over (partition by id order by often, one) as place
  from word join (select one, count(*) as often from word group by one) using (one)
), keys as (
  select distinct id, type, key from keyed
  union all select id, type, 't' || one from ranked where place <= size - ceil({_TEXT} * size) + 1
), shared as (
  select type, key from keys group by type, key having count(*) between 2 and {_SHARED}
), met as (
  select distinct a.id as one, b.id as two from shared s
  join keys a on a.type = s.type and a.key = s.key join keys b on b.type = s.type and b.key = s.key and a.id < b.id
  union select id, next from (select id, lead(id) over (partition by type, folded order by id) as next from c)
  where next is not null
), judged as (
  select m.one, m.two, unnest(case
    when a.folded = b.folded then {{'score': 1.0, 'sign': 'name'}}
    when a.digits <> b.digits then {{'score': 0.0, 'sign': ''}}
    when list_contains(b.aliases, a.folded) or list_contains(a.aliases, b.folded)
      then {{'score': 0.97, 'sign': 'alias'}}
    when len(a.words) > 1 and a.words = b.words then {{'score': 0.95, 'sign': 'words'}}
    when length(a.folded) >= {_LEAST_LETTERS} and damerau_levenshtein(a.folded, b.folded) = 1
      then {{'score': 0.9, 'sign': 'letter'}}
    when least(len(a.said), len(b.said)) >= {_LEAST_WORDS} then {{'score':
      len(list_intersect(a.said, b.said)) / len(list_distinct(list_concat(a.said, b.said)))::double, 'sign': 'text'}}
    else {{'score': 0.0, 'sign': ''}} end)
  from met m join c a on a.id = m.one join c b on b.id = m.two
  where (a.is_free or b.is_free)
    and not (list_contains(a.other, b.id) or list_contains(a.other, b.name)
      or list_contains(b.other, a.id) or list_contains(b.other, a.name))
)
select one, two, round(score, 4), sign from judged where score >= {_TEXT}
order by score desc, one, two limit {limits.MAX_SLEEP_PAIRS}
"""  # noqa: S608 - constants

_NAMESAKES: Final = rf""", c as (
  select id, type, name, {words_sql("name")} as folded, {_DISTINCT} as other,
    {IS_FREE} as is_free,
    id in (
      select h.id from node_history h join record r on r.seq = h.ended
      where r.source = '{SLEEP}{MERGING}'
    ) as is_back
  from mine where type not in ('Event', 'SleepTask') and coalesce(status, '') <> 'archived'
), linked as (
  select a.id from link l join c a on a.id = l.from_id join c b on b.id = l.to_id
  where l.is_resolved and a.id <> b.id and a.type = b.type and a.folded = b.folded
)
select list(id order by id),
  bool_and(is_free and not is_back and id not in (select id from linked))
    and (contains(folded, ' ') or count(distinct trim(regexp_replace(nfc_normalize(name), '\s+', ' ', 'g'))) = 1)
from c group by type, folded
having count(*) > 1 and bool_or(is_free)
  and not list_has_any(flatten(list(coalesce(other, []))), list_concat(list(id), list(name)))
order by 1
"""  # noqa: S608 - constants


class Namesakes(msgspec.Struct, frozen=True, array_like=True):
    """All concepts of one type whose names differ only in case, spaces and normal form, by their ids in order.

    ``is_clear`` tells whether nothing but what they say of themselves can contradict that they are one: no file states
    anything of them or links to them, none of them leads to another one, and none was merged before and brought back. A
    single word in another case may be another word, as ``us`` and ``US`` are.
    """

    ids: list[str]
    is_clear: bool


_WHY: Final = {
    "name": "the same name but for case and spaces",
    "alias": "the name of one is an alias of the other",
    "words": "the same words in their names",
    "letter": "names that differ in one letter",
}


class Pair(msgspec.Struct, frozen=True, array_like=True):
    """Two concepts of one type, by their ids in order, and from 0 to 1 how alike they are, and by which sign."""

    one: str
    two: str
    score: float
    sign: str

    @property
    def why(self) -> str:
        """Return what makes them look the same, in words."""
        return _WHY.get(self.sign) or f"{self.score:.0%} of the words in their descriptions are the same"


def namesakes(memory: Memory) -> list[Namesakes]:
    """Return the concepts of one type and one name together; none where two of them were marked as distinct."""
    return [Namesakes(*row) for row in memory.ask(_NAMESAKES)]


def pairs(memory: Memory) -> list[Pair]:
    """Return the pairs that are most alike, the surest first; those that were marked as distinct are not among them.

    A view looks for them once.
    """
    key = memory.view.seq, tuple(memory.types)
    return memory.view.once("sleep pairs", key, lambda _: [Pair(*row) for row in memory.ask(_ALIKE)])
