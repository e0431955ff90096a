"""The verdict of a test: the outcome of its last run that changed something, kept in two fields of the test. Pure.

The fields belong to ``kb results``: no other client sets them, they are no claim of a change, and what a test says does
not depend on them, so that no edge to it becomes suspect and none is confirmed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import msgspec

from kbcore.errors.remedies import kb
from kbcore.secrets import masked
from kbcore.text.wording import shortened

Outcome = Literal["passed", "failed", "error", "skipped"]
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
FAILING: Final[tuple[Outcome, ...]] = ("failed", "error")
"""The outcomes that show that what the test verifies does not hold, or cannot be shown."""

TEST: Final = "test"
"""The type of entities that have verdicts."""
REQUIREMENT: Final = "req"
VERIFIED_BY: Final = "verified_by"
"""The edge from a requirement to a test that shows that it is met."""

VERDICT: Final = "attributes.test_verdict"
"""The field with the outcome."""
RUN: Final = "attributes.test_run"
"""The field with the rest of the verdict: an object of the members of ``Verdict`` that are set."""
FIELDS: Final = frozenset({VERDICT, RUN})

SET_HINT: Final = f"Leave it out; {kb('results', 'FILE', lead='run')} with the report."
"""The remedy for a client that sets one of them."""

OUTCOME: Final = f"json_extract_string(n.attributes, '$.{VERDICT.removeprefix('attributes.')}')"
"""The outcome of a test ``n``, as SQL; null where it has no verdict."""
COLUMNS: Final = f"{OUTCOME}, json_extract(n.attributes, '$.{RUN.removeprefix('attributes.')}')"
"""The columns of the verdict of a test ``n``, for ``verdict_of_cells``."""
IS_FAILING: Final = f"coalesce({OUTCOME} in ({', '.join(map(repr, FAILING))}), false)"
"""The condition that a test ``n`` failed when it was last run."""

MAX_MESSAGE_CHARS: Final = 1000
"""The characters of a message that are recorded."""
_COMMIT_CHARS: Final = 12
_ADDRESS: Final = re.compile(r"\b0x[0-9A-Fa-f]{6,16}\b")
"""An address in memory, which is another one in each run."""


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of a test, and the run that it was first seen in.

    ``at`` and ``since`` are times as records have them, ``commit`` and ``since_commit`` full hashes, "" where they are
    not known. ``since`` is set while the test fails: of the first of the failing runs in a row.
    """

    outcome: Outcome
    at: str = ""
    commit: str = ""
    duration_s: float | None = None
    message: str = ""
    since: str = ""
    since_commit: str = ""

    @property
    def is_failing(self) -> bool:
        """Tell whether the outcome is a failure or an error."""
        return self.outcome in FAILING

    def fields(self) -> dict[str, Any]:
        """Return the fields of the test that say this."""
        members = msgspec.to_builtins(self)
        return {VERDICT: members.pop("outcome"), RUN: members}

    def as_json(self) -> dict[str, Any]:
        """Return the members that are set."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found

    def failing_since(self) -> str:
        """Return since when it fails, as part of a sentence: ``since 1234567890ab of 2026-01-31T12:00:00Z``."""
        return since_words(self.since, self.since_commit)


def set_by_results(field: str) -> str:
    """Return why no other client sets a field of a verdict."""
    return f"`{field.removeprefix('attributes.')}` is set by {kb('results')}, from a report of a test run."


def since_words(at: str, commit: str) -> str:
    """Return the words for the beginning of a failure; "" where neither its time nor its commit is known."""
    time = f"{at.partition('.')[0]}Z" if "." in at else at
    parts = [part for part in (commit[:_COMMIT_CHARS], time) if part]
    return f"since {' of '.join(parts)}" if parts else ""


def verdict_in(outcome: Any, run: Any) -> Verdict | None:
    """Return the verdict that two values of fields say; None where they say none."""
    if outcome not in OUTCOMES:
        return None
    members = run if isinstance(run, dict) else {}
    try:
        return msgspec.convert({**members, "outcome": outcome}, Verdict)
    except msgspec.ValidationError:  # a file states the field in a form of its own
        return Verdict(outcome)


def verdict_of_cells(outcome: str | None, run: str | None) -> Verdict | None:
    """Return the verdict in the cells of ``COLUMNS``, None where there is none."""
    return verdict_in(outcome, json.loads(run) if run else None)


def verdict_of(fields: Mapping[str, Any]) -> Verdict | None:
    """Return the verdict among the fields of a test, None where it has none."""
    return verdict_in(fields.get(VERDICT), fields.get(RUN))


def next_verdict(old: Verdict | None, new: Verdict) -> Verdict | None:
    """Return the verdict that a run leads to; None where it says the same as the one before.

    Another time, commit or duration alone says the same. A run that is known to be earlier than the one before it
    says nothing.
    """
    if old is not None and (is_earlier(new, old) or (old.outcome, old.message) == (new.outcome, new.message)):
        return None
    if not new.is_failing:
        return msgspec.structs.replace(new, since="", since_commit="")
    first = old if old is not None and old.is_failing else None
    since = (first.since, first.since_commit) if first else (new.at, new.commit)
    return msgspec.structs.replace(new, since=since[0], since_commit=since[1])


def is_earlier(new: Verdict, old: Verdict) -> bool:
    """Tell whether a run is known to be earlier than another one."""
    return bool(new.at and old.at) and new.at < old.at


def recorded_message(text: str) -> str:
    """Return a message as it is recorded: masked, cut, and without what differs from run to run by itself."""
    return shortened(_ADDRESS.sub("0x…", masked(text)).strip(), MAX_MESSAGE_CHARS - 1)
