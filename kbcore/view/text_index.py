"""The text index of a branch: a database of SQLite with FTS5, filled from the view and searched without it.

A published file is opened as immutable and never changed; later changes go to a copy in memory. Two indexes of the same
entities and documents give the same answers, however many steps either was filled in. No file is trusted: its schema
must be the one that this SQLite makes of the same statements, and nothing else is read before.
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import weakref
import zlib
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import ResourceLimit, ViewDamaged, ViewForeign
from kbcore.process import interrupting
from kbcore.text import terms
from kbcore.text.escaping import in_quotes
from kbcore.text.terms import has_digit
from kbcore.view import as_of
from kbcore.view.base_stamp import BaseStamp
from kbcore.view.text_documents import HAS_OWN_TEXT, Reader, available_documents, gather
from kbcore.view.text_query import FILLER_TERMS, FILLERS, LEAST_PART, MatchExpression, Ranking
from kbcore.view.view import View

TEXT_FORMAT: Final = 10
WEIGHTS: Final = {"id": 8, "title": 5, "tags": 4, "attributes": 2, "body": 1}
"""The weight of a word by the column that it is in."""

_SCHEMA: Final = (
    f"create virtual table text using fts5({', '.join(WEIGHTS)}, tokenize = 'ascii')",
    "create table entity (doc integer primary key, id text, folded text, lacks_body integer, is_symbol integer)",
    "create index entity_by_id on entity (id)",
    "create index entity_by_folded on entity (folded)",
    "create index entity_lacking on entity (id) where lacks_body",
    "create table stamp (format integer, lineage text, seq integer, sum text)",
)
_VOCABULARY: Final = "create virtual table temp.vocabulary using fts5vocab(main, text, row)"
_LISTED: Final = "select type, name, tbl_name, sql from sqlite_master order by type, name"
_PLAIN: Final = re.compile(r"(?is)create (?:table|index) '?\w+'?(?: on \w+)? ?\([\w\s,]*\)(?: without rowid)?")
"""A table or an index as a version of KB may make one: names and types, and no expression."""
_MADE_WRONGLY: Final = re.compile('(?:fts5: syntax error |near ".*": syntax error$)', re.DOTALL)
"""Begins the message for a statement, or an expression of FTS5, that is itself wrong. A damaged schema is quoted before
such a message."""
_MAX_SHOWN: Final = 60
_TOKENS: Final = re.compile(r"[a-z0-9\x80-\U0010ffff]+")
"""A term of FTS5 in small letters."""

_SETTINGS: Final = "pragma trusted_schema = off; pragma temp_store = memory; pragma cache_size = -16384"
_FILLING: Final = "pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -65536"
_UNMERGED: Final = "insert into text(text, rank) values ('automerge', 0)"
_MERGED: Final = "insert into text(text, rank) values ('automerge', 4)"
"""While an index is filled its segments are not merged. Afterwards FTS5 does that for what is changed, as usual."""
_FILLER: Final = " ".join(["\ue000"] * FILLER_TERMS)
_LAST: Final = chr(0x10FFFF)
_SCORE: Final = f"-bm25(text, {', '.join(f'{weight:.1f}' for weight in WEIGHTS.values())})"
_MOST_TERMS: Final = 2000
"""Terms with a common beginning that are searched for forms of a word."""

_CHUNK_BYTES: Final = 16 * limits.MIB
_FIELDS_BYTES: Final = 640
"""Text that is indexed at once, counting so much for the fields of an entity."""
_PAGES_AT_ONCE: Final = 1024
"""After so many pages of a copy it can be interrupted."""
_MEMORY_BYTES: Final = 512 * limits.MIB
"""A larger index is not copied into memory."""


class TextStamp(msgspec.Struct, frozen=True):
    """The origin of an index: the record at ``seq`` of a history."""

    format: int
    lineage: str
    seq: int
    sum: str


class TextIndex:
    """An index that is open, for one thread at a time."""

    def __init__(self, path: str = ":memory:", *, is_published: bool = False, origin: TextIndex | None = None) -> None:
        """Create an index in a new file or in memory, empty or the copy of another, or open a published one.

        Raises: ``ViewDamaged`` when the file cannot be used.
        """
        self.is_published = is_published
        name = f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1" if is_published else path
        with _explained():
            opened = sqlite3.connect(name, uri=is_published, isolation_level=None, check_same_thread=False)
        self._opened = opened
        self.close = weakref.finalize(self, opened.close)
        self._spelled: tuple[list[str], list[str]] | None = None
        self._counts: tuple[int, int, str] | None = None
        try:
            opened.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            for statement in _SETTINGS.split("; "):
                self.rows(statement)
            for statement in () if is_published else _FILLING.split("; "):
                self.rows(statement)
            if is_published:
                self._check()
            elif origin:
                origin.copy_to(opened)
            else:
                for statement in (*_FILLING.split("; "), *_SCHEMA):
                    self.rows(statement)
                self.insert(
                    "insert into text (rowid, body) values (?, ?)", ((-at, _FILLER) for at in range(1, FILLERS + 1))
                )
            self.rows(_VOCABULARY)
        except BaseException:
            self.close()
            raise

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement.

        Raises: ``StatementTimeout``, ``interrupting.Stopped``, ``ResourceLimit``; ``ViewDamaged`` for an error of the
        file.
        """
        with interrupting.step(self._opened.interrupt) as step:
            try:
                return self._opened.execute(sql, params).fetchall()
            except (sqlite3.Error, MemoryError) as error:
                if step.is_interrupted:
                    raise step.reason() from error
                raise _meaning(error) from error

    def insert(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows. Raises: as ``rows``."""
        with interrupting.step(self._opened.interrupt) as step:
            try:
                self._opened.executemany(sql, rows)
            except (sqlite3.Error, MemoryError) as error:
                if step.is_interrupted:
                    raise step.reason() from error
                raise _meaning(error) from error

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what the block does. Where it fails the index must not be used again."""
        self.rows("begin")
        yield
        self.rows("commit")

    def copied(self, path: str = ":memory:") -> TextIndex:
        """Return a copy in memory, or in a new file, that can be changed. Raises: as ``rows``."""
        return TextIndex(path, origin=self)

    def copy_to(self, target: sqlite3.Connection) -> None:
        """Copy everything to an empty database. Raises: as ``rows``."""

        def go_on(*_: object) -> None:
            if step.is_interrupted:
                raise step.reason()

        with _explained(), interrupting.step(lambda: None) as step:
            self._opened.backup(target, pages=_PAGES_AT_ONCE, progress=go_on)

    @property
    def is_large(self) -> bool:
        """Tell whether it takes too much memory to be copied there."""
        return int(self.rows("pragma page_count")[0][0]) * int(self.rows("pragma page_size")[0][0]) > _MEMORY_BYTES

    def stamp(self) -> TextStamp:
        """Return what it was filled from. Raises: ``ViewDamaged`` when that is not known."""
        found = self.rows("select format, lineage, seq, sum from stamp limit 2")
        if len(found) != 1 or found[0][0] != TEXT_FORMAT or [*map(type, found[0])] != [int, str, int, str]:
            raise ViewDamaged("the text index has no usable stamp")
        return TextStamp(*found[0])

    def set_stamp(self, basis: BaseStamp) -> None:
        """Note that it holds what a view of this basis shows."""
        self.rows("delete from stamp")
        stamp = TextStamp(TEXT_FORMAT, basis.lineage, basis.seq, basis.sum)
        self.rows("insert into stamp values (?, ?, ?, ?)", msgspec.structs.astuple(stamp))

    def _check(self) -> None:
        """Refuse a file that does not hold exactly the tables of an index."""
        found, expected = self.rows(_LISTED), _expected()
        for kind, name, _, sql in set(found) - expected:
            is_plain = kind in {"table", "index"} and (sql is None or _PLAIN.fullmatch(str(sql)))
            if not is_plain:
                shown = in_quotes(str(name)[:_MAX_SHOWN])
                raise ViewForeign(f"it holds the {kind} {shown}, which KB does not make so")
        if set(found) != expected or len(found) != len(expected):
            raise ViewDamaged("its tables are not those of this version")

    # What a text is read with, and what it finds.

    def counts(self) -> tuple[int, int, str]:
        """Return how many entities there are, how many lack their document, and a mark of which those are."""
        if self._counts is None:
            [(entities,)] = self.rows("select count(*) from entity")
            lacking = self.lacking()
            mark = zlib.crc32("\n".join(lacking).encode())
            self._counts = entities, len(lacking), f"{entities}.{len(lacking)}.{mark:x}"
        return self._counts

    def lacking(self) -> list[str]:
        """Return the ids of the entities whose documents were not available."""
        found = [id_ for (id_,) in self.rows("select id from entity where lacks_body order by id")]
        if not all(isinstance(id_, str) for id_ in found):
            raise ViewDamaged("the text index holds an entity without a usable id")
        return found

    def held_by(self, match: MatchExpression) -> int:
        """Return how many entities a match finds."""
        return int(self.rows("select count(*) from text where text match ?", [match.expression])[0][0])

    def beginning_with(self, beginning: str) -> list[str]:
        """Return the terms that begin so, in order."""
        low = terms.token(beginning)
        sql = "select term from vocabulary where term >= ? and term < ? order by term limit ?"
        return [terms.term_of(term) for (term,) in self.rows(sql, [low, low + _LAST, _MOST_TERMS])]

    def spelled_like(self, text: str) -> list[str]:
        """Return the terms of about the same length that have the first half of a word, or its last one."""
        if self._spelled is None:
            found = [terms.term_of(term) for (term,) in self.rows("select term from vocabulary")]
            spelled = [term for term in found if not has_digit(term)]
            self._spelled = sorted(spelled), sorted(term[::-1] for term in spelled)
        half = max((len(text) - 1) // 2, 1)
        begin, end = (
            _between(*one) for one in ((self._spelled[0], text[:half]), (self._spelled[1], text[: -half - 1 : -1]))
        )
        near = {*begin, *(term[::-1] for term in end)}
        return sorted(term for term in near if abs(len(term) - len(text)) <= 1)

    def has_numbered(self, kind: str) -> bool:
        """Tell whether there are ids that are numbered names with ``kind`` before their number."""
        sql = (
            "select 1 from entity where folded >= ?1 and folded < ?1 || ?2 and length(folded) > length(?1) "
            "and substr(folded, length(?1) + 1) not glob '*[^0-9]*' limit 1"
        )
        return bool(self.rows(sql, [kind, _LAST]))

    def numbers_of(self, names: Sequence[str], length: int = 0) -> list[int]:
        """Return the numbers, within the index, of the entities with these ids as terms have them, of this length."""
        among = ", ".join("?" * len(names))
        sql = f"select doc from entity where folded in ({among}) and ? in (0, length(id))"
        return [doc for (doc,) in self.rows(sql, [*names, length])]

    def ranked(self, wanted: Ranking, limit: int | None, after: str = "") -> tuple[list[tuple[str, float]], int]:
        """Return the entities that are wanted, best first, with their scores from 0 to 1, and how many they are.

        Up to ``limit`` come after the one with the id ``after``; without a limit all of them.
        """
        least_share = wanted.least_share
        source, params = _summed(wanted) if wanted.is_summed else _best(wanted.matches)
        tier = f"2 * (doc in ({', '.join('?' * len(wanted.exact))}))"
        params += wanted.exact
        if wanted.first:
            tier += " + (doc in (select rowid from text where text match ?))"
            params.append(wanted.first)
        scored = f"with found as ({source}), scored as (select doc, score, {tier} as tier from found"
        if least_share:
            scored += " where score >= ? * (select max(score) from found)"
            params.append(least_share)
        head = (
            f"{scored}) select e.id, s.score, (select count(*) from scored), (select max(score) from scored) "
            "from scored s join entity e on e.doc = s.doc"
        )
        order = "order by s.tier desc, s.score desc, e.id"
        if limit is None:
            found = self.rows(f"{head} {order}", params)
        elif after:
            last = "(select l.tier, l.score, x.id from scored l join entity x on x.doc = l.doc where x.id = ?)"
            found = self.rows(
                f"{head}, {last} last where s.tier < last.tier or s.tier = last.tier "
                f"and (s.score < last.score or s.score = last.score and e.id > last.id) {order} limit ?",
                [*params, after, limit],
            )
        else:
            least = "(select score from scored order by score desc limit 1 offset ?)"
            found = self.rows(
                f"{head} where s.tier or s.score >= coalesce({least}, 0) {order} limit ?",
                [*params, limit - 1, limit],
            )
        if not found:
            return [], 0
        if not all(isinstance(id_, str) and isinstance(score, float) and score > 0 for id_, score, *_ in found):
            raise ViewDamaged("the text index holds an entity without a usable id or score")
        _, _, total, highest = found[0]
        best = max(wanted.best, highest)
        return [(id_, score / best) for id_, score, *_ in found], total

    def symbols_among(self, ids: Sequence[str]) -> set[str]:
        """Return those of these ids that are ids of symbols of code."""
        sql = "select id from entity where is_symbol and id in (select value from json_each(?))"
        return {id_ for (id_,) in self.rows(sql, [json.dumps([*ids])])}

    def holds(self, id_: str, match: MatchExpression) -> bool:
        """Tell whether a match finds this entity."""
        sql = "select 1 from text where text match ? and rowid in (select doc from entity where id = ?)"
        return bool(self.rows(sql, [match.expression, id_]))

    # How entities get in and out.

    def forget(self, ids: Sequence[str]) -> None:
        """Take entities out."""
        self._counts = None
        for id_ in ids:
            for (doc,) in self.rows("select doc from entity where id = ?", [id_]):
                self.rows("delete from text where rowid = ?", [doc])
                self.rows("delete from entity where doc = ?", [doc])

    def add(self, view: View, nodes: str, bodies: str) -> None:
        """Add entities that it does not hold.

        ``nodes`` is a relation of the view with the columns of ``NODE``; ``bodies`` is one of ``id`` and ``text``, a
        row for each entity that a document of its own states, its text null where that is not available.
        """
        view.rows(
            "create or replace temp table text_new as select n.id, (sum("
            f"{_FIELDS_BYTES} + coalesce(strlen(b.text), 0)) over (order by n.id rows unbounded preceding) "
            f"// {_CHUNK_BYTES})::integer as part from {nodes} n left join {bodies} b on b.id = n.id"
        )
        self._counts = None
        [(doc,)] = self.rows("select coalesce(max(doc), 0) from entity")
        known = terms.indexer()
        for (part,) in view.rows("select distinct part from text_new order by part"):
            rows = view.rows(
                f"select n.id, {', '.join(map(_text, WEIGHTS))}, b.id is not null and b.text is null, "
                "n.type is not distinct from 'symbol' "
                f"from text_new w join {nodes} n on n.id = w.id left join {bodies} b on b.id = n.id "
                f"where w.part = {part:d} order by n.id"
            )
            taken = []
            for at, row in enumerate(rows, 1):
                interrupting.check()
                taken.append((doc + at, *(terms.indexed(text, known) for text in row[1:-2])))
            marks = ", ".join("?" * (len(WEIGHTS) + 1))
            self.insert(f"insert into text (rowid, {', '.join(WEIGHTS)}) values ({marks})", taken)
            entities = (
                (doc + at, row[0], terms.normal(terms.read(row[0])), *row[-2:]) for at, row in enumerate(rows, 1)
            )
            self.insert("insert into entity values (?, ?, ?, ?, ?)", entities)
            self._note_terms(taken)
            doc += len(rows)
        view.rows("drop table text_new")

    def _note_terms(self, taken: Iterable[Sequence[Any]]) -> None:
        """Add the terms of new entities to those that are known already, if any are."""
        if self._spelled is None:
            return
        for term in {one for row in taken for text in row[1:] for one in _TOKENS.findall(text.lower())}:
            spelled = terms.term_of(term)
            is_new = not has_digit(spelled) and spelled not in _between(self._spelled[0], spelled)
            if is_new:
                insort(self._spelled[0], spelled)
                insort(self._spelled[1], spelled[::-1])


def build(view: View, path: str, read: Reader, at: int | None = None) -> TextIndex:
    """Return an index of all that a view shows, or showed at a seq, in a file that does not exist yet or ``:memory:``.

    Raises: ``ViewDamaged`` when the file cannot be written.
    """
    gather(view, read, None, at)
    index = TextIndex(path)
    try:
        with index.transaction():
            index.rows(_UNMERGED)
            index.add(view, as_of.nodes(at), available_documents(at))
            index.rows(_MERGED)
            index.set_stamp(view.basis if at is None else view.recorded)
    except BaseException:
        index.close()
        raise
    return index


def opened(view: View, path: str) -> TextIndex | None:
    """Return a published index, None when it is not one of this history.

    Raises: ``ViewDamaged`` when it is no index.
    """
    index = TextIndex(path, is_published=True)
    try:
        stamp = index.stamp()
        is_known = stamp.lineage == view.basis.lineage and view.basis.history_from <= stamp.seq <= view.seq
        if is_known and view.rows("select sum from record where seq = ?", [stamp.seq]) == [(stamp.sum,)]:
            return index
    except BaseException:
        index.close()
        raise
    index.close()
    return None


def inspect(path: str) -> tuple[int, int]:
    """Return the seq of a published index and how many entities it has.

    Raises: ``ViewDamaged`` when it cannot be used.
    """
    index = TextIndex(path, is_published=True)
    try:
        return index.stamp().seq, index.counts()[0]
    finally:
        index.close()


def changed_since(view: View, index: TextIndex, since: int, read: Reader) -> list[str]:
    """Return the ids of what changed after a seq, and of what had no document available and has one now."""
    lacking = index.lacking()
    changed = sql_of_changed(since)
    if lacking:
        view.rows("create or replace temp table text_lacking as select unnest($1::varchar[]) as id", [lacking])
        gather(view, read, "select id from text_lacking")
        found = available_documents(None, "select id from text_lacking")
        changed += f" union select id from {found} where text is not null"
    return [id_ for (id_,) in view.rows(changed)]


def sql_of_changed(since: int) -> str:
    """Return the statement for the ids of what changed in a view after a seq, what is gone among them."""
    return (
        f"select id from node where version > {since:d} "
        f"union select id from node_history where ended > {since:d} "
        f"union select n.id from node n join source s on s.path = n.path where s.version > {since:d} "
        f"union select n.id from node n join source s on {HAS_OWN_TEXT} where s.version > {since:d}"
    )


def take_in(view: View, index: TextIndex, changed: Sequence[str], read: Reader) -> None:
    """Bring an index that can be changed to what a view shows of the entities that changed.

    Raises: ``ViewDamaged``; the index must not be used again then.
    """
    view.rows("create or replace temp table text_changed as select unnest($1::varchar[]) as id", [list(changed)])
    changing = "select id from text_changed"
    gather(view, read, changing)
    with index.transaction():
        index.forget(changed)
        index.add(view, f"(select * from node where id in ({changing}))", available_documents(None, changing))
        index.set_stamp(view.basis)


def _best(matches: Sequence[MatchExpression]) -> tuple[str, list[Any]]:
    """Return the statement for what any match finds, ``doc`` with the best of its scores, and its parameters."""
    one = f"select rowid as doc, ? * {_SCORE} as score from text where text match ?"
    parts = " union all ".join([one] * len(matches))
    params: list[Any] = [value for match in matches for value in (match.factor, match.expression)]
    return (parts if len(matches) == 1 else f"select doc, max(score) as score from ({parts}) group by doc"), params


def _summed(wanted: Ranking) -> tuple[str, list[Any]]:
    """Return the same with the sum of the scores, less the more of what the words are worth it lacks, less of a symbol.

    Scores are added in the order of the words, so that they do not depend on that of the rows of an index.
    """
    matches = wanted.matches
    one = f"select {{at}} as at, rowid as doc, ? * {_SCORE} as score, ? as worth from text where text match ?"
    parts = " union all ".join(one.format(at=at) for at in range(len(matches)))
    params = [value for match in matches for value in (match.factor, match.worth, match.expression)]
    whole = sum(match.worth for match in matches)
    source = (
        f"select doc, sum(score) * (? + ? * sum(worth)) as score from (select * from ({parts}) order by doc, at) "
        "group by doc"
    )
    params = [LEAST_PART, (1 - LEAST_PART) / whole, *params]
    if wanted.symbol_share == 1:
        return source, params
    return (
        f"select f.doc, iif(e.is_symbol, ?, 1.0) * f.score as score from ({source}) f join entity e on e.doc = f.doc"
    ), [wanted.symbol_share, *params]


def _between(listed: list[str], beginning: str) -> list[str]:
    return listed[bisect_left(listed, beginning) : bisect_left(listed, beginning + _LAST)]


def members() -> str:
    """Return the list of all plain values in the attributes of an entity, as text."""
    return (
        "[member[1] for member in list_zip(json_extract_string(n.attributes, '$..*'), "
        "json_type(n.attributes, '$..*')) if member[2] not in ('OBJECT', 'ARRAY')]"
    )


def _text(field: str) -> str:
    """Return the text of a field; a line break between two values, which no word holds."""
    return {
        "id": "concat_ws(chr(10), n.id, nullif(n.name, n.id))",
        "title": "coalesce(n.title, '')",
        "tags": "coalesce(array_to_string(n.tags, chr(10)), '')",
        "attributes": (
            "concat_ws(chr(10), n.status, n.owner, n.priority, n.severity, nullif(n.text_ref, n.path), "
            f"array_to_string(n.links, chr(10)), array_to_string({members()}, chr(10)))"
        ),
        "body": "coalesce(b.text, '')",
    }[field]


@cache
def _expected() -> frozenset[tuple[Any, ...]]:
    """Return the schema that this SQLite makes of the statements of an index."""
    with contextlib.closing(sqlite3.connect(":memory:")) as made:
        for statement in _SCHEMA:
            made.execute(statement)
        return frozenset(made.execute(_LISTED).fetchall())


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, MemoryError) as error:
        raise _meaning(error) from error


def _meaning(error: Exception) -> Exception:
    """Return what to raise for an error of SQLite: of a statement that KB made wrongly, the error itself."""
    if isinstance(error, MemoryError):
        return ResourceLimit("The text index needs more memory than the system gives.")
    is_wrong = isinstance(error, sqlite3.OperationalError) and _MADE_WRONGLY.match(str(error))
    if is_wrong or isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return error
    return ViewDamaged(str(error))
