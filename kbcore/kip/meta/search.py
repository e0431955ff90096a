"""SEARCH: concepts by their words, ranked as ``kb query --text`` ranks them, and propositions by their predicates.

What no record holds, such as the definitions of types, is searched besides the index. A score of 1 is the best.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from functools import partial
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import InvalidQuery
from kbcore.kip import syntax as s
from kbcore.kip.elements import element_json, name_of
from kbcore.kip.errors import RESOURCE, SYNTAX, refused
from kbcore.kip.paging import START_OVER, check_same, cursor_in, head_words, mark_of
from kbcore.kip.undefined_names import no_predicate, no_type
from kbcore.kip.vocabulary import Vocabulary, vocabulary
from kbcore.model.graph import Link, Node
from kbcore.model.schema import Schema
from kbcore.query import Query
from kbcore.store.branch_store import BranchStore
from kbcore.store.workspace import Workspace
from kbcore.sync.searching import search as search_text
from kbcore.text import cursor as cursors
from kbcore.text.escaping import in_quotes
from kbcore.text.typos import is_a_typo, is_long_enough
from kbcore.text.word_forms import STOP_WORDS, are_forms, common_beginning
from kbcore.view.view import View

DEFAULT_LIMIT: Final = 10
"""Hits where LIMIT is not given."""
_MODES: Final = ("keyword", "hybrid")
"""KB has no vectors: words, their beginnings and a typo are what finds, in either mode."""
_IN_VALUES: Final = 0.3
"""The score of a proposition whose own attributes or metadata hold the words."""

_LEAST_SURE: Final = 0.5
"""The weight of an uncertain element (confidence 0) against a certain one."""
_OVER: Final = frozenset({"archived", "superseded", "expired", "retired", "deprecated", "rejected", "withdrawn"})
_PAST: Final = 0.5
"""The weight of one no longer in force."""
_OLD_LOSES: Final = 0.2
_HALF_OLD_DAYS: Final = 180
"""With age a hit loses up to a fifth, half of that in so many days."""
_NAMES: Final = frozenset({"id", "name"})
"""A snippet of these says no more than the hit itself."""

_MOST: Final = limits.MAX_KIP_HITS
_OF_PREDICATES: Final = """
select id, type, place from
(select id, type, row_number() over (partition by type order by id) as place from link
 where is_resolved and list_contains(?::varchar[], type)) where place <= ?
"""
SAME: Final = 1.0
"""The very name was asked for."""
_IN_NAME, _BEGINS, _TYPO, _IN_TEXT, _PARTIAL = 0.95, 0.8, 0.7, 0.4, 0.5
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W_]")
_PLAIN: Final = re.compile(r"[^\W_]+")


class Hit(msgspec.Struct, frozen=True):
    """An element that was found. Of those with the same score the one with the smaller ``place`` comes first."""

    score: float
    place: int
    element: Node | Link
    snippet: str = ""
    is_partial: bool = False


class IndexLocation(msgspec.Struct, frozen=True):
    """The index of a branch and its documents."""

    workspace: Workspace
    store: BranchStore
    branch: str


class Searched(msgspec.Struct, frozen=True):
    """A page of what a SEARCH finds, best first; ``notes`` say where other words were searched for than those asked."""

    result: list[dict[str, Any]]
    next_cursor: str = ""
    notes: tuple[str, ...] = ()


def search(place: IndexLocation, view: View, schema: Schema, tree: s.SearchCommand) -> Searched:
    """Return a page of the elements that a SEARCH finds.

    Raises: ``KipRefused`` with the offset of the place: KIP_2001 for an undefined type or predicate, KIP_1001 for a
    term without words, a threshold, a mode or a cursor that there is not, KIP_4002 for more hits than the limit;
    ``ViewDamaged``.
    """
    limit = _limit(tree)
    if tree.mode and tree.mode.value.lower() not in _MODES:
        message = f"There is no search mode {in_quotes(tree.mode.value)}."
        hint = 'KB searches words, aliases and a typo: leave MODE out, or write "keyword" or "hybrid".'
        raise refused(SYNTAX, message, at=tree.mode.at, hint=hint)
    if not asked_words(tree.term.value):
        raise refused(SYNTAX, "The search term contains no word.", at=tree.term.at, hint="Search for a word of a name.")
    known = vocabulary(schema)
    least, cursor = _threshold(tree), _cursor_of(view, tree)
    basis = ""
    notes: tuple[str, ...] = ()
    if tree.of == "CONCEPT":
        hits, basis, notes = _concepts(place, view, known, tree)
    else:
        hits = _propositions(view, schema, known, tree)
    if tree.cursor:
        check_same(tree.cursor, partial(cursors.check_basis, cursor, basis))
    today = date.fromisoformat(place.workspace.machine.clock.now()[:10])
    weighed = [msgspec.structs.replace(hit, score=hit.score * _weight(hit.element, today)) for hit in hits]
    best = sorted(weighed, key=lambda hit: (-hit.score, hit.place, hit.element.type, hit.element.id))
    passing = [hit for hit in best if hit.score >= least][:_MOST]
    begin = int(cursor.last) if cursor else 0
    end = begin + limit
    shown = [_shown(hit, known, is_whole=tree.is_whole) for hit in passing[begin:end]]
    if end >= len(passing):
        return Searched(shown, notes=notes)
    mark = mark_of(view.basis.store_id, tree)
    cursor = cursors.Cursor(mark, view.seq, 0, str(end), basis, view.overlay_mark)
    return Searched(shown, cursors.encode(cursor), notes)


def _cursor_of(view: View, tree: s.SearchCommand) -> cursors.Cursor | None:
    """Return where the page before ended, None for the first page. Raises: ``KipRefused``."""
    if tree.cursor is None:
        return None
    cursor = cursor_in(tree.cursor, mark_of(view.basis.store_id, tree), view.overlay_mark)
    if cursor.seq != view.seq:
        now = head_words(view)
        message = f"The cursor belongs to seq {cursor.seq}; the branch is at {now}, where the order may be another."
        raise refused(SYNTAX, message, at=tree.cursor.at, hint=START_OVER)
    return cursor


def _shown(hit: Hit, known: Vocabulary, *, is_whole: bool) -> dict[str, Any]:
    """Return what an answer says of a hit: who it is and why it was found, or the whole element."""
    whole, score = element_json(hit.element, known.names), round(hit.score, 4)
    if is_whole:
        return whole | {"metadata": {**whole["metadata"], "_score": score}}
    shown = {key: value for key, value in whole.items() if key not in {"attributes", "metadata"}} | {"score": score}
    shown |= {"snippet": hit.snippet} if hit.snippet else {}
    return shown | ({"partial": True} if hit.is_partial else {})


def _weight(element: Node | Link, today: date) -> float:
    """Return by how much a hit counts less: for what is not sure, no longer in force, or not changed for long."""
    fields = element.fields
    given = fields.get("confidence", fields.get("metadata.confidence", 1.0))
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    confidence = min(1.0, max(0.0, float(given))) if is_number else 1.0
    statuses = {str(fields.get(name, "")).casefold() for name in ("status", "metadata.status", "attributes.status")}
    touched = element.updated_at if isinstance(element, Node) else element.created_at
    age_days = max(0, (today - date.fromisoformat(touched[:10])).days) if touched else 0
    recency = 1 - _OLD_LOSES * age_days / (age_days + _HALF_OLD_DAYS)
    return (_LEAST_SURE + (1 - _LEAST_SURE) * confidence) * (_PAST if statuses & _OVER else 1.0) * recency


def _threshold(tree: s.SearchCommand) -> float:
    least = float(tree.threshold.json) if tree.threshold else 0.0
    if tree.threshold and not 0 <= least <= 1:
        message = f"Scores go from 0 to 1; THRESHOLD is {tree.threshold.json}."
        raise refused(SYNTAX, message, at=tree.threshold.at, hint="Write a number from 0 to 1, such as 0.5.")
    return least


def _limit(tree: s.SearchCommand) -> int:
    if tree.limit is None:
        return DEFAULT_LIMIT
    if tree.limit.value > limits.MAX_KIP_HITS:
        message = f"SEARCH finds at most {limits.MAX_KIP_HITS} elements; LIMIT is {tree.limit.value}."
        raise refused(RESOURCE, message, at=tree.limit.at, hint="Take a smaller LIMIT and more exact words, or FIND.")
    return tree.limit.value


def _concepts(
    place: IndexLocation, view: View, known: Vocabulary, tree: s.SearchCommand
) -> tuple[list[Hit], str, tuple[str, ...]]:
    """Return the concepts that are found, a mark of the documents that they were found in, and notes on the words."""
    kb_type = _kb_type(known, tree.type) if tree.type else ""
    term = tree.term.value
    query = Query(type=kb_type, text=term, limit=limits.MAX_KIP_HITS)
    try:
        page = search_text(place.workspace, place.store, place.branch, view, query, is_of_words=True)
    except InvalidQuery as error:
        raise refused(SYNTAX, error.message, at=tree.term.at, hint=error.remedy) from error
    hits = []
    if page.found:
        for node in page.entities:
            is_it = term.strip().casefold() in {node.id.casefold(), name_of(node, known.names).casefold()}
            score = SAME if is_it else min(SAME, page.found.scores[node.id])
            snippet = page.found.snippets.get(node.id)
            is_name = snippet is None or snippet.field in _NAMES
            said = "" if is_name or snippet is None else snippet.marked()
            hits.append(Hit(score, 0, node, said, is_partial=page.found.is_partial))
    unwritten = [node for node in known.nodes if kb_type in {"", node.type}]
    stored = {node.id for node in view.nodes([node.id for node in unwritten])}
    for node in unwritten:
        score = likeness(term, name_of(node, known.names), str(node.fields.get("attributes.description", "")))
        if score and node.id not in stored:
            hits.append(Hit(score, 1, node))
    if page.found is None:
        return hits, "", ()
    is_said = page.entities or not hits  # the notes count entities, and definitions of types are found besides them
    return hits, page.found.search.basis, tuple(page.found.sentences(len(hits))) if is_said else ()


def _kb_type(known: Vocabulary, named: s.Text) -> str:
    kb_type = known.names.of_kip.get(named.value)
    if kb_type is None:
        raise no_type(known.names, named)
    return kb_type


def _propositions(view: View, schema: Schema, known: Vocabulary, tree: s.SearchCommand) -> list[Hit]:
    """Return propositions whose predicate fits the term, then those whose own values hold its words.

    Of predicates that fit alike the first proposition of each comes first, so that all of them are seen.
    """
    if tree.type and tree.type.value not in schema.edges:
        raise no_predicate(schema.edges, tree.type)
    names = [tree.type.value] if tree.type else [*schema.edges]
    fits = {name: likeness(tree.term.value, name, schema.edges[name].description, is_partial=True) for name in names}
    scores = {name: score for name, score in fits.items() if score}
    ranks = {key: (-scores[name], place) for key, name, place in view.rows(_OF_PREDICATES, [[*scores], _MOST])}
    held = [common_beginning(word) for word in asked_words(tree.term.value)]
    among = " and ".join(["contains(lower(concat(kind, ' ', attributes, ' ', metadata)), ?)"] * len(held))
    by_values = (
        "select id from link where is_resolved and list_contains(?::varchar[], type) "  # noqa: S608 - all of it is bound
        f"and {among} order by id limit ?"
    )
    for (key,) in view.rows(by_values, [names, *held, _MOST]):
        ranks.setdefault(key, (-_IN_VALUES, 0))
    hits = [Hit(-ranks[link.id][0], ranks[link.id][1], link) for link in view.links(sorted(ranks))]
    stored = {link.id for link in view.links([link.id for link in known.links])}
    unwritten = [link for link in known.links if link.id not in stored and link.type in scores]
    return [*hits, *(Hit(scores[link.type], _MOST + at, link) for at, link in enumerate(unwritten))]


def words_of(text: str) -> list[str]:
    """Return the words of a text, also those that a name is made of: ``UserStory`` and ``user_story`` hold two."""
    found = [word.casefold() for word in _WORD.findall(text)]
    return [*dict.fromkeys([*found, *(word.casefold() for word in _PLAIN.findall(text))])]


def asked_words(term: str) -> list[str]:
    """Return the words of a search term, each once; words that say nothing are left out where there are others."""
    found = [*dict.fromkeys(word.casefold() for word in _PLAIN.findall(term))]
    return [word for word in found if word not in STOP_WORDS] or found


def likeness(term: str, name: str, text: str, *, is_partial: bool = False) -> float:
    """Return from 0 (not at all) to 1 how well a term fits a name with a description.

    Every word of it must; with ``is_partial`` it is enough that one fits the name, for half of what that counts.
    """
    if term.strip().casefold() == name.casefold():
        return SAME
    asked, named, said = asked_words(term), words_of(name), words_of(text)
    fits = [_fit(word, named, said) for word in asked]
    if fits and all(fits):
        return sum(fits) / len(fits)
    return _PARTIAL * sum(fits) / len(fits) if is_partial and max(fits, default=0) > _IN_TEXT else 0.0


def _fit(word: str, named: Sequence[str], said: Sequence[str]) -> float:
    if word in named:
        return _IN_NAME
    if any(one.startswith(word) or are_forms(one, word) for one in named):
        return _BEGINS
    if any(is_near(word, one) for one in named):
        return _TYPO
    return _IN_TEXT if any(one == word or are_forms(one, word) for one in said) else 0.0


def is_near(word: str, other: str) -> bool:
    """Return whether two words differ by at most one typo; short words never do."""
    return word == other or (is_long_enough(word) and is_a_typo(word, other))
