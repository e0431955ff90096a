"""The next number in a series of ids such as REQ-1, REQ-2: the prefix of a type, and the highest id in use.

A number is in use while an entity or an edge has it, and after that for as long as the history knows the id: an id that
was deleted is not given to something else. Former ids of entities stay in use, and an id with which the name of a file
begins that could not be read whole: it may be that of an entity that the file states. Deleted ids whose history is
dropped are free again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kbcore import limits
from kbcore.errors import InvalidQuery, LimitExceeded
from kbcore.ids import NUMBER_MARK, check_id
from kbcore.text.escaping import in_quotes
from kbcore.view.tables import Rows

_MAX_DIGITS: Final = 15
"""A longer run of digits is a time or a hash, and counts for no series."""
_NUMBER: Final = re.compile(rf"[0-9]{{1,{_MAX_DIGITS}}}")
_MARKED: Final = re.compile(r"(.*)\{n[0-9]{0,4}\}", re.DOTALL)
_LIKE_MARK: Final = re.compile(r"\{[A-Za-z]\}")
_USED: Final = """
select id from node where starts_with(id, $1) union select id from node_history where starts_with(id, $1)
union select from_id from link where starts_with(from_id, $1) union select to_id from link where starts_with(to_id, $1)
union select former.id
  from (select unnest(list_append(json_extract_string(attributes, '$.former_ids[*]'),
      json_extract_string(attributes, '$.former_ids'))) as id
    from node where contains(attributes, '"former_ids"')) as former
  where starts_with(former.id, $1)
union select concat($1, regexp_extract(substr(parse_filename(path), length($1) + 1), '^[0-9]+')) from source
  where not is_ok and starts_with(parse_filename(path), $1)
"""
_HIGHEST: Final = f"""
with used as ({_USED}), numbered as (
  select id, substr(id, length($1) + 1) as digits from used
  where regexp_full_match(substr(id, length($1) + 1), '[0-9]{{1,{_MAX_DIGITS}}}')
)
select id from numbered order by cast(digits as bigint) desc, length(digits) desc limit 1
"""
_PREFIX: Final = rf"""
select regexp_extract(id, '^(.*?)[0-9]+$', 1) as prefix from node
where type = ? and regexp_full_match(id, '(.*[^0-9])?[0-9]{{1,{_MAX_DIGITS}}}') and not starts_with(id, path || '#')
group by prefix order by count(*) desc, length(prefix), prefix limit 1
"""


def prefix_of(rows: Rows, kind: str) -> str:
    """Return the prefix that most ids of a type have; ``REQ-`` for a type ``req`` that has none yet.

    Ids that an extractor derives from a path and an ordinal (``PATH#2``) are no series: the file goes on with them.
    """
    found = rows(_PREFIX, [kind])
    return str(found[0][0]) if found else f"{kind.upper()}-"


def highest(rows: Rows, prefix: str) -> str:
    """Return the id of a series with the highest number that is or was in use; "" when there is none."""
    found = rows(_HIGHEST, [prefix])
    return str(found[0][0]) if found else ""


def marked_prefix(key: str) -> str | None:
    """Return the prefix of an id whose number is to be allocated, None for any other id."""
    found = _MARKED.fullmatch(key)
    return found[1] if found else None


def check_new_id(key: str) -> str | None:
    """Return why a client cannot give a new entity this id, or None when it can.

    What ids of files, of imports and of old records may be (``ids.check_id``), and nothing like the mark: one
    letter in braces, anywhere. In ``Type:name``, the id of a concept of KIP's, the name may have it.
    """
    fault = check_id(key)
    if fault or not _LIKE_MARK.search(key.partition(":")[0]):
        return fault
    return f"only `{NUMBER_MARK}` at the end of a new id, as in `PREFIX-{NUMBER_MARK}`, means the next free number"


def series_of(key: str) -> str:
    """Return what the ids of a series begin with, one of which has a number at its end; else the id and a hyphen."""
    begin = key.rstrip("0123456789")
    return begin if begin and begin != key else f"{key}-"


def leading_digits(text: str) -> str:
    """Return the digits with which a text begins, as far as they make a number of a series."""
    found = re.match("[0-9]+", text)
    return found[0] if found and _NUMBER.fullmatch(found[0]) else ""


def number_in(key: str, prefix: str) -> int | None:
    """Return the number that an id has in a series, None when it is not of the series."""
    digits = key[len(prefix) :] if key.startswith(prefix) else ""
    return int(digits) if _NUMBER.fullmatch(digits) else None


def next_id(prefix: str, used: Iterable[str]) -> str:
    """Return the id that follows the highest of those in use; it has at least as many digits.

    Raises: ``InvalidQuery`` when the prefix makes no id; ``LimitExceeded`` at the end of the series.
    """
    series = [(number, len(key)) for key in used if (number := number_in(key, prefix)) is not None]
    number, length = max(series, default=(0, len(prefix)))
    key = prefix + str(number + 1).zfill(length - len(prefix))
    if number_in(key, prefix) is None:
        raise LimitExceeded(f"There is no number after {max(series)[0]} for ids that begin with {in_quotes(prefix)}.")
    fault = check_id(key)
    if fault:
        message = f"{in_quotes(prefix[: limits.MAX_NAME_CHARS])} cannot begin an id: {fault}."
        raise InvalidQuery(message, hint="For example REQ-AUTH-.")
    return key
