"""Ids that look alike: they differ only in case, in Unicode normal form or in leading zeros. And titles that do."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from kbcore.model.graph import Node
from kbcore.view.tables import Likeness, Rows

IS_PLAIN: Final = r"strlen(title) = length(title) and not regexp_matches(title, '\s\s|[\t\n\f\r]')"
"""Nearly all titles are, and those are quicker to compare."""


def without_zeros(expression: str) -> str:
    """Return the SQL for a text whose numbers have no zeros in front."""
    return rf"regexp_replace({expression}, '(^|[^0-9])0+([0-9])', '\1\2', 'g')"


def likeness_sql(expression: str) -> str:
    """Return the SQL expression of what ids that look alike have in common."""
    return without_zeros(f"lower(nfc_normalize({expression}))")


def words_sql(expression: str) -> str:
    """Return the SQL expression of what titles have in common that differ only in case, spaces and normal form."""
    # By way of capitals, so that all small forms of a letter are one; what has no capital is spelt out.
    return rf"trim(regexp_replace(replace(lower(upper(nfc_normalize({expression}))), 'ß', 'ss'), '\s+', ' ', 'g'))"


def alike_key(id_: str) -> str:
    """Return what ``likeness_sql`` does of an id."""
    return _without_zeros(id_.lower() if id_.isascii() else _small(unicodedata.normalize("NFC", id_)))


def words_key(text: str) -> str:
    """Return what ``words_sql`` does of a text."""
    if text.isascii():
        small = text.lower()
    else:
        composed = unicodedata.normalize("NFC", text)
        small = _small(upper if len(upper := char.upper()) == 1 else char for char in composed).replace("ß", "ss")
    return re.sub("[ \t\n\f\r]+", " ", small).strip(" ")


TITLE_KEY: Final = f"case when {IS_PLAIN} then lower(trim(title)) else {words_sql('title')} end"


def title_key(node: Node) -> str:
    """Return what nodes of one type with the same title have in common, "" without a title."""
    title = str(node.fields.get("title") or "")
    return f"{node.type} {words_key(title)}" if title.strip(" ") else ""


SIMILAR_IDS: Final = Likeness(likeness_sql("id"), lambda node: [alike_key(node.id)])
SAME_TITLES: Final = Likeness(
    f"case when trim(title) <> '' then type || ' ' || {TITLE_KEY} else '' end", lambda node: [title_key(node)]
)


def lookalikes(rows: Rows, unknown: Iterable[str]) -> dict[str, str]:
    """Return, for ids that do not exist, the entity that looks like it, as far as there is one."""
    ids = sorted(set(unknown))
    if not ids:
        return {}
    is_like = f"{likeness_sql('n.id')} = {likeness_sql('u.id')}"
    found = rows(
        "with unknown as (select unnest($1::varchar[]) as id) "
        f"select u.id, min(n.id) from unknown u join node n on {is_like} group by u.id",
        [ids],
    )
    return dict(found)


def differences_in_words(ids: Sequence[str]) -> str:
    """Return in words what ids that look alike differ in."""
    composed = {unicodedata.normalize("NFC", id_) for id_ in ids}
    lowered = {text.lower() for text in composed}
    trimmed = {_without_zeros(text) for text in composed}
    words = []
    if len(trimmed) > 1:
        words.append("case")
    if len(lowered) > 1:
        words.append("leading zeros")
    if len(composed) < len(ids):
        words.append("Unicode normal form")
    return " and ".join(words)


def _small(characters: Iterable[str]) -> str:
    """Return characters in lower case, each as one character."""
    return "".join(char.lower()[0] for char in characters)


def _without_zeros(text: str) -> str:
    return re.sub("(^|[^0-9])0+([0-9])", r"\1\2", text)
