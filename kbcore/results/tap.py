"""Reports in TAP, the Test Anything Protocol, versions 13 and 14.

A failing test that is marked as to be done (``# TODO``) counts as skipped, as the protocol says. A test with subtests
is in the result by these; where it failed and none of them did, by itself as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from kbcore.model.verdict import FAILING
from kbcore.results.reported import ReportedOutcome, first_paragraph

BEGINS: Final = re.compile(r"TAP version \d+|1\.\.\d+|(?:not )?ok\b")
_POINT: Final = re.compile(r"(?P<no>not )?ok\b *(?:\d+)? *(?:- *)?(?P<rest>.*)")
_PLAN: Final = re.compile(r"1\.\.(?P<count>\d{1,9})\b(?P<rest>.*)")
_DIRECTIVE: Final = re.compile(r"(?<!\\)#\s*(?P<word>skip|todo)\S*\s*(?P<why>.*)", re.IGNORECASE)
_BAIL_OUT: Final = re.compile(r"Bail out!\s*(?P<why>.*)")
_MESSAGE: Final = re.compile(r"\s*(?:message|error):\s*(?P<text>.*)")
_DURATION: Final = re.compile(r"\s*duration_ms:\s*(?P<ms>[0-9.]{1,20})\s*")
_BLOCK: Final = re.compile(r"[|>][+-]?\d*")
_INDENT_CHARS: Final = 4
_MAX_DEPTH: Final = 50


def outcomes(lines: Iterable[str], notes: list[str]) -> Iterator[ReportedOutcome]:
    """Yield the outcome of each test; ``notes`` gets a sentence for a run that was stopped, or is not as planned."""
    reader = _Reader(notes)
    for number, line in enumerate(lines, 1):
        yield from reader.take(line.rstrip("\n"), number)
    yield from reader.end()


class _Reader:
    """The state between lines. ``levels`` has the finished tests of each depth whose outer test is still to come."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes
        self._levels: list[list[ReportedOutcome]] = [[]]
        self._last: ReportedOutcome | None = None
        self._last_depth = 0
        self._diagnosis: list[str] | None = None
        self._plan: int | None = None
        self._points = 0

    def take(self, line: str, number: int) -> Iterator[ReportedOutcome]:
        """Take in a line, and yield the tests that are complete by now."""
        text = line.strip()
        if self._diagnosis is not None:
            if text == "...":
                self._explain(self._diagnosis)
                self._diagnosis = None
            else:
                self._diagnosis.append(line)
            return
        depth = min((len(line) - len(line.lstrip(" "))) // _INDENT_CHARS, _MAX_DEPTH)
        if text == "---" and self._last is not None:
            self._diagnosis = []
        elif found := _POINT.fullmatch(text):
            yield from self._point(found, depth, number)
        elif (planned := _PLAN.match(text)) and not depth:
            self._plan = int(planned["count"])
        elif stopped := _BAIL_OUT.match(text):
            self._notes.append(f"The run was stopped: {stopped['why'] or 'no reason is given'}.")

    def end(self) -> Iterator[ReportedOutcome]:
        """Yield the last tests."""
        if self._diagnosis is not None:
            self._explain(self._diagnosis)
        self._keep()
        for level in reversed(self._levels):
            yield from level
        if self._plan is not None and self._plan != self._points:
            self._notes.append(f"The plan of the report is {self._plan} tests, and it has {self._points}.")

    def _point(self, found: re.Match[str], depth: int, number: int) -> Iterator[ReportedOutcome]:
        self._keep()
        self._points += not depth
        while len(self._levels) <= depth + 1:
            self._levels.append([])
        inner = [one for level in self._levels[depth + 1 :] for one in level]
        del self._levels[depth + 1 :]
        directive = _DIRECTIVE.search(found["rest"])
        name = found["rest"][: directive.start()] if directive else found["rest"]
        name = name.strip().replace("\\#", "#").replace("\\\\", "\\")
        word = directive["word"].lower() if directive else ""
        is_skipped = word == "skip" or (word == "todo" and bool(found["no"]))
        point = ReportedOutcome(
            name=name,
            outcome="skipped" if is_skipped else "failed" if found["no"] else "passed",
            message=directive["why"].strip() if directive and is_skipped else "",
            line=number,
        )
        self._levels[depth] += [msgspec.structs.replace(one, scope=f"{name} {one.scope}".strip()) for one in inner]
        is_told_by_inner = bool(inner) and (
            point.outcome not in FAILING or any(one.outcome in FAILING for one in inner)
        )
        self._last, self._last_depth = (None if is_told_by_inner else point), depth
        if not depth:
            yield from self._levels[0]
            self._levels[0].clear()

    def _keep(self) -> None:
        """Put the last test among those of its depth: nothing more is said of it."""
        if self._last is not None:
            self._levels[self._last_depth].append(self._last)
        self._last = None

    def _explain(self, lines: list[str]) -> None:
        """Add what the block after a test says to it."""
        if self._last is None:
            return
        message, duration_s = "", None
        for at, line in enumerate(lines):
            if (found := _MESSAGE.fullmatch(line)) and not message:
                said = found["text"].strip()
                is_block = _BLOCK.fullmatch(said) is not None
                message = _block(lines, at) if is_block or not said else said.strip("'\"")
            elif timed := _DURATION.fullmatch(line):
                duration_s = _seconds(timed["ms"])
        last = self._last
        is_failing = last.outcome in FAILING
        self._last = msgspec.structs.replace(
            last, message=message if is_failing else last.message, duration_s=duration_s
        )


def _block(lines: list[str], at: int) -> str:
    """Return the text below a key: the lines that are indented more than it."""
    indent = len(lines[at]) - len(lines[at].lstrip())
    below: list[str] = []
    for line in lines[at + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        below.append(line.strip())
    return first_paragraph("\n".join(below))


def _seconds(text: str) -> float | None:
    try:
        return float(text) / 1000
    except ValueError:
        return None
