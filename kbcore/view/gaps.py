"""Reasons why a part of a branch's history is unreadable: it was pruned, or records are missing since a salvage.

The record of a salvage names what is missing. It is the only source: every message, note and rule uses it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kbcore.errors import HistoryPruned
from kbcore.errors.remedies import by_front_end, kb
from kbcore.storage.places import record_range
from kbcore.text.wording import some_of
from kbcore.view.tables import Rows

_SHOWN: Final = 3
_MARKED: Final = "select seq, holes from record where holes <> '' order by seq"
_FIRST: Final = "select min(seq) from record where file <> ''"


class Gap(msgspec.Struct, frozen=True):
    """Missing records: the first, the last, and the record of the salvage that says so."""

    first: int
    last: int
    marked_by: int

    def sentence(self) -> str:
        """Return what is missing, without a full stop."""
        verb = "is" if self.first == self.last else "are"
        rows = record_range(self.first, self.last)
        return f"{rows} {verb} missing since the salvage that record {self.marked_by} documents"


class Earlier(msgspec.Struct, frozen=True):
    """Records that the log does not list: before ``pruned_before`` (0: none was pruned), and in the gaps."""

    pruned_before: int
    gaps: tuple[Gap, ...]

    def sentences(self) -> list[str]:
        """Return what is not listed, a sentence each."""
        said = [f"Records before seq {self.pruned_before} were pruned."] if self.pruned_before else []
        if self.gaps:
            rows = some_of([record_range(gap.first, gap.last) for gap in self.gaps], _SHOWN)
            alone = self.gaps[0].sentence() if len(self.gaps) == 1 else f"{rows} are missing since salvages"
            said.append(f"{alone[0].upper()}{alone[1:]}.")
        return said

    def as_json(self) -> dict[str, Any]:
        """Return it as members of an answer; none where everything is listed."""
        missing = {"missing": [msgspec.to_builtins(gap) for gap in self.gaps]} if self.gaps else {}
        return ({"pruned_before": self.pruned_before} if self.pruned_before else {}) | missing


def gaps_in(rows: Rows) -> tuple[Gap, ...]:
    """Return the gaps in what the log lists, oldest first; what was pruned is none."""
    marked = rows(_MARKED, [])
    if not marked:
        return ()
    found = dict[int, Gap]()
    for seq, text in marked:
        for hole in msgspec.json.decode(text):
            gap = Gap(hole["first"], hole["last"], seq)
            # A later salvage may find more records missing around an earlier gap.
            found = {key: one for key, one in found.items() if not gap.first <= one.first <= one.last <= gap.last}
            found[gap.first] = gap
    # Of records before the first one that is listed, those just before it are missing, the others were pruned.
    first = _first_listed(rows)
    return tuple(found[seq] for seq in sorted(found) if found[seq].last >= first - 1)


def earlier(rows: Rows, history_from: int) -> Earlier:
    """Return what the log of a branch does not list. From ``history_from`` on its history is whole."""
    if not history_from:
        return Earlier(0, ())
    gaps = gaps_in(rows)
    first = min(_first_listed(rows), gaps[0].first) if gaps else history_from + 1
    return Earlier(first if first > 1 else 0, gaps)


def absent(rows: Rows, seq: int) -> str:
    """Return why the line of a record is not there although it is known of, without a full stop."""
    gap = next((gap for gap in gaps_in(rows) if gap.first <= seq <= gap.last), None)
    return gap.sentence() if gap else f"record {seq} was pruned"


def out_of_reach(
    rows: Rows, history_from: int, seq: int, *, what: str = "", is_record: bool = False, is_unproven: bool = False
) -> HistoryPruned:
    """Return the error for a question about a seq before the history that is whole.

    Args:
        rows: answers SQL over the tables of a view.
        history_from: the seq from which on its history is whole.
        seq: what was asked for.
        what: the words for it, where they are not those of a seq or a record.
        is_record: the record at that seq was meant, not the state there.
        is_unproven: no part of the journal leads to that seq, so the missing records before it are the cause.
    """
    there = earlier(rows, history_from)
    name = what or f"{'record' if is_record else 'seq'} {seq}"
    if not there.gaps or (seq if is_record else seq + 1) < there.pruned_before:
        return HistoryPruned.before(there.pruned_before, name)
    data = {"history_from": history_from, **there.as_json(), **({} if is_record or what else {"asked_seq": seq})}
    before = [gap for gap in there.gaps if gap.first <= seq]
    after = [gap for gap in there.gaps if gap.last >= seq]
    gap = before[-1] if before and (is_unproven or not after) else after[0]
    if seq < gap.first and not what:
        changed = "What became of the changes of record" if is_record else "What changed after seq"
        hint = _what_is_left(there, seq)
        return HistoryPruned(f"{changed} {seq} is not proven: {gap.sentence()}.", hint=hint, data=data)
    if is_record and seq <= gap.last:
        message = f"{gap.sentence()[0].upper()}{gap.sentence()[1:]}."
        return HistoryPruned(message, hint=f"{kb('log')} lists the records that are left.", data=data)
    if is_record:
        message = f"What record {seq} changed is not proven: {gap.sentence()}."
        return HistoryPruned(message, hint=f"{kb('show', seq)} shows what the record states.", data=data)
    message = f"{what or f'The state at {name}'} is not proven: {gap.sentence()}."
    first = there.gaps[0].first
    earliest = max(there.pruned_before - 1, 0)
    before_it = f"from {earliest} to {first - 1}" if earliest < first - 1 else str(earliest)
    hint = f"Ask for seq {before_it}, or from {history_from} on; {kb('log')} lists what records are left."
    return HistoryPruned(f"{message[0].upper()}{message[1:]}", hint=hint, data=data)


def _what_is_left(there: Earlier, seq: int) -> str:
    """Return the hint for a seq of which the later changes are not known: what can be read of it."""
    at = f"the state at that time is readable with {by_front_end('--at', '`at`')} {seq}"
    if seq < max(there.pruned_before, 1):
        return f"{at[0].upper()}{at[1:]}."
    if any(gap.first <= seq for gap in there.gaps):
        return (
            f"{kb('show', seq)} shows what the record states. To have it back, apply it with a changeset of your own."
        )
    return f"{kb('show', seq)} shows the record, and {at}. To have it back, apply it with a changeset of your own."


def _first_listed(rows: Rows) -> int:
    return int(rows(_FIRST, [])[0][0] or 0)
