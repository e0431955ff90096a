"""The points of a branch's history that people name: a seq, a time, or a revision of git, read from their words.

A word is a seq if it has digits only, then a time, then the name of another branch with a store, then what git resolves
to a commit. Which record that is depends on the view, and is found in ``moment``.
"""

from __future__ import annotations

import calendar
import contextlib
import datetime as dt
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final

import msgspec

from kbcore.clock import from_local, text_of, to_local
from kbcore.errors import InvalidQuery
from kbcore.git import blobs, local_branches, revisions
from kbcore.ids import check_branch_name
from kbcore.model.values import YEARS, normal_time
from kbcore.query.where_values import span_of
from kbcore.store.history.reach import merge_base
from kbcore.store.workspace import Workspace
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import nearest

MAX_CHARS: Final = 500
"""No name of a point is longer."""
SHOWN_COMMIT: Final = 12
"""Digits of a commit that are shown."""

_MAX_DIGITS: Final = 18
"""No seq is longer."""
_EXAMPLES: Final = "2026-01-31, 2026-01-31T12:00:00Z, yesterday, 1h or `2 days ago`"
_UNITS: Final[Mapping[str, dt.timedelta]] = {
    "second": dt.timedelta(seconds=1),
    "minute": dt.timedelta(minutes=1),
    "hour": dt.timedelta(hours=1),
    "day": dt.timedelta(days=1),
    "week": dt.timedelta(weeks=1),
}
_MONTHS: Final = {"month": 1, "year": 12}
_SHORT: Final = {"h": "hour", "min": "minute", "m": "minute", "s": "second", "d": "day", "w": "week"}
"""Short forms of units, as in `2h`."""
_NAMES: Final = "|".join([*_UNITS, *_MONTHS])
_AGO: Final = re.compile(
    rf"(?:last |past |-)?(?:(a|an|one|[0-9]{{1,6}}) ({_NAMES})s?"
    rf"|([0-9]{{1,3}}|[0-9]{{4,6}}(?=.* ago)) ?({'|'.join(_SHORT)}))(?: ago)?"
)
"""A duration before now, with or without `ago`. Four digits and `d` alone may begin a commit."""
_LAST: Final = re.compile(r"(?:last|past) (minute|hour|day|week|month|year)")
_DAYS: Final = tuple(name.lower() for name in calendar.day_name)
_GAPS: Final = re.compile(r"[\s._]+")
_ZONE: Final = re.compile(r"\s+([+-]\d\d:?\d\d)$")
_CLOCK: Final = re.compile(r"(\d\d?):(\d\d)(?::(\d\d))?")
_HOURS: Final[Mapping[str, int]] = {"midnight": 0, "noon": 12, "tea": 17}
"""Words for an hour, as git has them."""
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_INSTANT: Final = dt.timedelta(microseconds=1)


class When(msgspec.Struct, frozen=True):
    """One point of a branch's history in one of four forms; ``text`` is what was asked for.

    A seq; a time from ``begin`` until before ``end``, both as records have them; a commit, with what lists it and its
    ancestors from the newest on, and what returns the SHA-256 of those of some files that it has (``hashes``); or
    another branch, for the last record that both share (``shared``). ``is_checked_out`` tells that the branch is
    checked out, at this commit. ``is_future`` tells that the time is yet to come.
    """

    text: str
    seq: int | None = None
    begin: str = ""
    end: str = ""
    is_future: bool = False
    commit: str = ""
    ancestors: Callable[[], Iterable[str]] = tuple
    hashes: Callable[[Collection[str]], Mapping[str, str]] = lambda _: {}
    is_checked_out: bool = False
    other: str = ""
    shared: Callable[[object], int | None] | None = None


def is_seq(word: str) -> bool:
    """Tell whether a word can be a seq."""
    return word.isascii() and word.isdecimal() and len(word) <= _MAX_DIGITS


def when_of(text: str, *, now: str = "", is_local: bool = False) -> When | None:
    """Return the seq or the time that a text means, None where it is neither.

    Args:
        text: what was asked for.
        now: the time by the clock, which words such as "yesterday" count from; without it they mean nothing, and no
            time is yet to come.
        is_local: a time without a zone is one of the machine's own zone, else of UTC.
    """
    word = text.strip()
    if is_seq(word):
        return When(text, seq=int(word))
    span = span_meant(text, now=now, is_local=is_local)
    if span is None:
        return None
    begin, end = span
    return When(text, begin=begin, end=end, is_future=bool(now) and begin > now)


def span_meant(text: str, *, now: str = "", is_local: bool = False) -> tuple[str, str] | None:
    """Return the first instant of the time that a text means and the first one after it; None where it is no time.

    ``now`` and ``is_local`` are as in ``when_of``.
    """
    word = text.strip()
    if len(word) <= MAX_CHARS:
        # What lies outside of the years that a record can have is no time.
        with contextlib.suppress(OverflowError, ValueError, OSError):
            return _written(_ZONE.sub(r"\1", word), is_local=is_local) or _in_words(word, now, is_local=is_local)
    return None


def point_in(workspace: Workspace, branch: str, text: str, *, is_local: bool = False) -> When:
    """Return the point of a branch's history that a text means.

    Raises: ``InvalidQuery`` for what is neither a seq, a time, a branch nor a commit; ``GitUnusable``.
    """
    found = when_of(text, now=workspace.machine.clock.now(), is_local=is_local)
    if found:
        return found
    word = text.strip()
    if not word or len(word) > MAX_CHARS or not word.isprintable():
        raise no_such_point(text)
    if word != branch and check_branch_name(word) is None and workspace.folders.has_store(word):
        return When(text, other=word, shared=_shared_with(workspace, word))
    repo, env = workspace.repo, workspace.machine.env
    commit = revisions.commit_of(repo, env, word)
    if commit is None:
        raise no_such_point(text, nearest(word, local_branches(repo, env)))
    head = workspace.head()
    return When(
        text,
        commit=commit,
        ancestors=lambda: revisions.ancestors(repo, env, commit),
        hashes=partial(blobs.hashes, repo, env, commit),
        is_checked_out=head.branch == branch and head.commit == commit,
    )


def range_of(text: str) -> tuple[str, str] | None:
    """Return both ends of ``A..B``, "" for one that is left out; None for a text that is no range.

    Raises: ``InvalidQuery`` for ``A...B``.
    """
    if "..." in text:
        hint = "Write two dots: A..B is what came after A, up to B; of a branch A, after it diverged from B."
        raise InvalidQuery(f"{in_quotes(text)} has three dots.", hint=hint)
    first, dots, last = text.partition("..")
    return (first.strip(), last.strip()) if dots and (first or last) else None


def no_such_point(text: str, near: str = "") -> InvalidQuery:
    """Return the error for what names no point of the history."""
    did = f"Did you mean {in_quotes(near)}? " if near else ""
    return InvalidQuery(
        f"{in_quotes(text[:MAX_CHARS])} is neither a seq nor a time, and git knows no such commit.",
        hint=f"{did}Give a seq, a time such as {_EXAMPLES}, {YEARS}, or what git knows in this clone: "
        "HEAD~2, a branch, a tag or a commit.",
    )


def _shared_with(workspace: Workspace, other: str) -> Callable[[object], int | None]:
    """Return what finds the last record that a view shares with another branch."""

    def shared(view: object) -> int | None:
        return workspace.store(other).read(lambda theirs: merge_base(view, theirs))  # type: ignore[arg-type]

    return shared


def _written(word: str, *, is_local: bool) -> tuple[str, str] | None:
    """Return the span of a time that is written out, as ``span_of`` does; None where it is none."""
    span = span_of(word)
    has_zone = not _DATE.fullmatch(word) and normal_time(f"{word}Z") is None
    if span is None or has_zone or not is_local:
        return span
    begin, end = (dt.datetime.fromisoformat(one).replace(tzinfo=None) for one in span)
    return text_of(from_local(begin)), text_of(from_local(end))


def _in_words(word: str, now: str, *, is_local: bool) -> tuple[str, str] | None:
    """Return the span of a time in words, such as ``yesterday`` and ``2 hours ago``; None where it is none."""
    if not now:
        return None
    said = _GAPS.sub(" ", word.lower()).strip()
    instant = dt.datetime.fromisoformat(now)
    here = to_local(instant) if is_local else instant.replace(tzinfo=None)

    def in_utc(time: dt.datetime) -> str:
        return text_of(from_local(time) if is_local else time)

    day = _day(said, here.date())
    if day:
        begin = dt.datetime.combine(day, dt.time())
        return in_utc(begin), in_utc(begin + dt.timedelta(days=1))
    if time_of_day := _time_of_day(said, here):
        begin, length = time_of_day
        return in_utc(begin), in_utc(begin + length)
    if said == "now":
        return now, text_of(instant + _INSTANT)
    last, ago = _LAST.fullmatch(said), _AGO.fullmatch(said)
    if not (last or ago):
        return None
    count, unit = (1, last[1]) if last else _counted(ago)
    if unit in _MONTHS:
        time = in_utc(_months_before(here, count * _MONTHS[unit]))
    elif unit in {"day", "week"}:  # the same time of another day, also where the clocks were changed in between
        time = in_utc(here - count * _UNITS[unit])
    else:
        time = text_of(instant - count * _UNITS[unit])
    return time, text_of(dt.datetime.fromisoformat(time) + _INSTANT)


def _counted(ago: re.Match[str] | None) -> tuple[int, str]:
    """Return how many of which unit ``2 hours ago`` has."""
    if ago and ago[4]:
        return int(ago[3]), _SHORT[ago[4]]
    count, unit = ago.groups()[:2] if ago else ("0", "second")
    return (int(count) if count.isdecimal() else 1), unit


def _day(said: str, today: dt.date) -> dt.date | None:
    """Return the day that a word means; None where it is no day.

    A day of the week is the last one up to today, as in git; with "last" it is the last one before today.
    """
    if said in {"today", "yesterday"}:
        return today - dt.timedelta(days=said == "yesterday")
    name = said.removeprefix("last ")
    if name not in _DAYS:
        return None
    days = (today.weekday() - _DAYS.index(name)) % 7
    return today - dt.timedelta(days=7 if days == 0 and name != said else days)


def _time_of_day(said: str, here: dt.datetime) -> tuple[dt.datetime, dt.timedelta] | None:
    """Return the last such time of a day, up to now, and how long it is; None where it is none."""
    clock = _CLOCK.fullmatch(said)
    if not clock and said not in _HOURS:
        return None
    hour, minute, second = (int(part or 0) for part in clock.groups()) if clock else (_HOURS[said], 0, 0)
    begin = here.replace(hour=hour, minute=minute, second=second, microsecond=0)
    length = dt.timedelta(seconds=1) if clock and clock[3] else dt.timedelta(minutes=1)
    return (begin if begin <= here else begin - dt.timedelta(days=1)), length


def _months_before(time: dt.datetime, months: int) -> dt.datetime:
    """Return the same time of a month before, of its last day where the month is shorter."""
    year, month = divmod(time.year * 12 + time.month - 1 - months, 12)
    return time.replace(year=year, month=month + 1, day=min(time.day, calendar.monthrange(year, month + 1)[1]))
