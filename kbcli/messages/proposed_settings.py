"""Proposed settings for documents, in words. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kbcore.text.escaping import escape_controls, json_text
from kbcore.text.wording import is_or_are, it_or_them, pluralize, shortened

if TYPE_CHECKING:
    from kbcore.extract.sources.detection import Possible, Uninstalled
    from kbcore.extract.sources.proposal import NotRead, Sample, SettingsProposal

_REASONS: Final = 3
_FOLDERS: Final = 3
_TITLE_CHARS: Final = 60
_MESSAGE_CHARS: Final = 120


def proposal_lines(proposal: SettingsProposal) -> Iterator[str]:
    """Yield what a proposal reads, its setting, samples, and what would not be read."""
    about = "about " if proposal.is_estimate else ""
    entities = f"{about}{pluralize(proposal.entities, 'entity')}"
    edges = f", {pluralize(proposal.edges, 'edge')}" if proposal.edges else ""
    yield escape_controls(f"{proposal.name}: {pluralize(proposal.files, 'file')}, {entities}{edges}")
    yield escape_controls(f"  {proposal.setting}: {json_text(proposal.value)}")
    for sample in proposal.samples:
        yield escape_controls(f"  {_sample(sample)}")
    for one in proposal.not_read[:_REASONS]:
        yield escape_controls(f"  {_not_read(one)}")


def _sample(sample: Sample) -> str:
    edges = "; ".join(sample.edges)
    title = f" {shortened(sample.title, _TITLE_CHARS)}" if sample.title else ""
    return f"{sample.path} -> {sample.id} ({sample.type}){title}{f'; {edges}' if edges else ''}"


def _not_read(one: NotRead) -> str:
    such = "such as " if one.count > 1 else ""
    message = shortened(one.message, _MESSAGE_CHARS)
    return f"not read: {pluralize(one.count, 'file')} ({one.code}), {such}{one.path}: {message}"


def more_line(count: int) -> str:
    """Return that so many proposals are not shown."""
    return f"{pluralize(count, 'more proposal')}; `kb sources detect --format json` has all."


def possible_line(possible: Sequence[Possible]) -> str:
    """Return which files may be documents that nothing reads; "" where there are none."""
    if not possible:
        return ""
    shown = [
        f"{pluralize(one.count, f'{one.ending} file')} in {one.folder or 'the root folder'}"
        for one in possible[:_FOLDERS]
    ]
    rest = sum(one.count for one in possible[_FOLDERS:])
    more = f", and {pluralize(rest, 'file')} elsewhere" if rest else ""
    return escape_controls(f"Not read, and may be documents: {', '.join(shown)}{more}.")


def reports_line(reports: Sequence[str]) -> str:
    """Return how reports of test runs are taken in; "" where there are none."""
    if not reports:
        return ""
    others = len(reports) - 1
    count = f"{pluralize(others, 'more report')} {is_or_are(others)} there"
    more = f" {count}; the setting `results` can mean all." if others else ""
    path = shlex.quote(reports[0])
    return escape_controls(f"A report of a test run: `kb results {path}` records the verdicts of its tests.{more}")


def uninstalled_line(one: Uninstalled) -> str:
    """Return which files are not read because a package is not installed, and how to install it."""
    kinds = ", ".join(one.kinds)
    install = f'`pip install "kb-memory[{one.extra}]"`'
    them = it_or_them(one.files)
    files = pluralize(one.files, "file")
    return f"{files} ({kinds}): no package that reads {them} is installed. {install}, then `kb sources detect`."


def taken_line(count: int, path: str) -> str:
    """Return that proposals were added to the settings."""
    return escape_controls(f"Added {pluralize(count, 'setting')} to {path}.")


def left_line(count: int, command: str) -> str:
    """Return how proposals that were shown are taken."""
    return f"{pluralize(count, 'proposal')}, not taken: `{command} --yes` adds {it_or_them(count)} to the settings."


def nothing_line(covered: int) -> str:
    """Return that nothing is proposed."""
    known = f" {pluralize(covered, 'file')} of that kind {is_or_are(covered)} read already." if covered else ""
    return f"No documents were found that other settings would read.{known}"
