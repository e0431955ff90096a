"""Completions: ids, tags, statuses, actors and records that begin like what is typed, the likeliest first.

One statement each, over the current state; nothing typed is a pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from kbcore.view.view import View

_MARKS: Final = '-_./\\:;,!?()[]{}<>"`|#@&*+='
"""Separators of the words of an id or a title."""
_WORDS: Final = 8
"""The most typed words that are looked at."""


class Likely(msgspec.Struct, frozen=True):
    """The likeliest values, and how many there are in all."""

    values: tuple[str, ...]
    total: int


def entity_ids(view: View, typed: str, *, type: str = "", most: int) -> Likely:  # noqa: A002 - the word of the contract
    """Return ids that begin like what was typed, then those with words in id or title that begin like its words."""
    words = _spaced(typed.lower()).split()[:_WORDS]
    # What holds the words at all is found quickly; only there is looked where they begin.
    said = "lower(id || ' ' || coalesce(title, ''))"
    spaced = f"translate({said}, '{_MARKS}', '{' ' * len(_MARKS)}')"
    holds = " and ".join([f"contains({said}, ?)" for _ in words] + [f"contains(' ' || {spaced}, ?)" for _ in words])
    sql = f"""
        select id, count(*) over () from node
        where ? in ('', type) and (starts_with(lower(id), lower(?)) {f"or ({holds})" if words else ""})
        order by not starts_with(lower(id), lower(?)), id limit ?
    """  # noqa: S608 - constants
    return _likely(view, sql, [type, typed, *words, *(f" {word}" for word in words), typed, most])


def tags(view: View, typed: str, *, most: int) -> Likely:
    """Return tags that begin like what was typed, those of the most entities first."""
    sql = """
        with each as (select unnest(tags) as tag from node)
        select tag, count(*) over () from each where starts_with(lower(tag), lower(?))
        group by tag order by count(*) desc, tag limit ?
    """
    return _likely(view, sql, [typed, most])


def statuses(view: View, typed: str, *, type: str = "", most: int) -> Likely:  # noqa: A002 - the word of the contract
    """Return statuses that begin like what was typed, those of the most entities first; only of a type, if given."""
    sql = """
        select status, count(*) over () from node
        where status is not null and starts_with(lower(status), lower(?)) and ? in ('', type)
        group by status order by count(*) desc, status limit ?
    """
    return _likely(view, sql, [typed, type, most])


def actors(view: View, typed: str, *, most: int) -> Likely:
    """Return actors whose names hold what was typed, whoever wrote last first; then those of shared changes alone."""
    sql = """
        select actor, count(*) over () from record where file <> '' and contains(lower(actor), lower(?))
        group by actor order by max(seq) desc limit ?
    """
    found = _likely(view, sql, [typed, most])
    if view.claims is None or view.rows("select exists (from record where changes > 0)") != [(True,)]:
        return found
    recorded = {actor for (actor,) in view.rows("select distinct actor from record")}
    others = {actor for actor, _ in view.claims().writers() if typed.lower() in actor.lower()} - recorded
    return Likely((*found.values, *sorted(others))[:most], found.total + len(others))


def seqs(view: View, typed: str, *, actor: str = "", most: int) -> Likely:
    """Return seqs of records that begin like what was typed, the newest first; only those of an actor, if given."""
    sql = """
        select seq::varchar, count(*) over () from record
        where file <> '' and starts_with(seq::varchar, ?) and ? in ('', actor) order by seq desc limit ?
    """
    return _likely(view, sql, [typed.strip(), actor, most])


def _likely(view: View, sql: str, params: Sequence[Any]) -> Likely:
    rows = view.rows(sql, params)
    return Likely(tuple(row[0] for row in rows), rows[0][1] if rows else 0)


def _spaced(text: str) -> str:
    return text.translate(str.maketrans(_MARKS, " " * len(_MARKS)))
