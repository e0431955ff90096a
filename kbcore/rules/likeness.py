"""When two ids look like one: they differ only in case, in Unicode normal form or in leading zeros. And two titles."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from kbcore.query.known import without_zeros
from kbcore.rules.rule import Rows


def folded(expression: str) -> str:
    """Return the SQL expression of what ids that look alike have in common."""
    return without_zeros(f"lower(nfc_normalize({expression}))")


def folded_words(expression: str) -> str:
    """Return the SQL expression of what titles have in common that differ only in case, spaces and normal form."""
    # By way of capitals, so that all small forms of a letter are one; what has no capital is spelt out.
    return rf"trim(regexp_replace(replace(lower(upper(nfc_normalize({expression}))), 'ß', 'ss'), '\s+', ' ', 'g'))"


def lookalikes(rows: Rows, unknown: Iterable[str]) -> dict[str, str]:
    """Return, for ids that do not exist, the entity that looks like it, as far as there is one."""
    ids = sorted(set(unknown))
    if not ids:
        return {}
    found = rows(
        "with unknown as (select unnest($1::varchar[]) as id) "  # noqa: S608 - no text from outside
        f"select u.id, min(n.id) from unknown u join node n on {folded('n.id')} = {folded('u.id')} group by u.id",
        [ids],
    )
    return dict(found)


def differences(ids: Sequence[str]) -> str:
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


def _without_zeros(text: str) -> str:
    return re.sub("(^|[^0-9])0+([0-9])", r"\1\2", text)
