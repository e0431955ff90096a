"""The impact of a change in every format: JSON, tables and Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kbcli.messages.run_results import verdict_words
from kbcli.terminal import tables
from kbcli.terminal.path_tables import with_paths
from kbcore.limits import MAX_PAGE_ROWS
from kbcore.model.verdict import Verdict
from kbcore.query.impact import Affected, Impact
from kbcore.query.walk import path_text
from kbcore.text.escaping import escape_controls, markdown_text
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcli.terminal.output import Output
    from kbcore.query.subject import Subject

_PARTS: Final = (
    ("direct", "Affected directly"),
    ("transitive", "Affected through others"),
    ("tests", "Tests to run"),
    ("related", "Related, to be looked at"),
    ("decisions", "Decisions that bind"),
)
_SHOWN_IDS: Final = 3
_PATH: Final = "PATH"
_VERDICT: Final = "VERDICT"
_TSV_HEAD: Final = ("PART", "ID", "TYPE", "STATUS", "TITLE", "OWNER", _PATH, _VERDICT)


class _Section(NamedTuple):
    """One part of the answer as a table."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    total: int


def show(session: Session, found: Impact, *, depth: int, limit: int, format_: str) -> None:
    """Write the impact for people, on a terminal or as Markdown."""
    output = session.output
    output.is_paged = format_ == "table"
    if format_ == "tsv":
        output.stream(f"{line}\n" for line in tables.tab_separated(_TSV_HEAD, _tsv_rows(found, limit)))
        if _is_nothing(found):
            output.note(escape_controls(_sentence(found, found.start.id)))
        _show_limits(session, found, depth=depth, limit=limit)
        return
    start = found.start
    title = escape_controls(f"{start.id} ({start.type}) {start.title}").rstrip()
    if found.path:
        title = escape_controls(f"{found.path} ({pluralize(len(found.starts), 'entity')})")
    is_markdown = format_ == "markdown"
    heading = f"# {markdown_text(title)}" if is_markdown else output.flowed(output.styled(title, "bold"))
    sentence = f"\n{_sentence(found)}" if is_markdown else output.flowed(f"  {_sentence(found)}")
    output.data(f"{heading}\n{sentence}\n")
    for line in _failing_lines(found, limit):
        output.data(f"\n{markdown_text(line)}\n" if is_markdown else f"{output.flowed(f'  {line}')}\n")
    for section in _sections(found, limit):
        more = f", {len(section.rows)} of them here" if len(section.rows) < section.total else ""
        heading = f"{section.title} ({section.total}{more})"
        output.data(f"\n## {heading}\n\n" if is_markdown else f"\n{output.styled(heading, 'bold')}\n")
        output.stream(tables.markdown(section.head, section.rows) if is_markdown else _table(output, section))
    _show_limits(session, found, depth=depth, limit=limit)


def _is_nothing(found: Impact) -> bool:
    """Return whether nothing is listed that a change may affect, or that binds it."""
    return not any(getattr(found, name) for name, _ in _PARTS)


def _sentence(found: Impact, subject: str = "it") -> str:
    if _is_nothing(found):
        return f"A change of {subject} affects nothing that KB knows."
    affected = len(found.direct) + len(found.transitive)
    entities = pluralize(affected, "entity") if affected else "nothing else"
    tests = pluralize(len(found.tests), "test") if found.tests else "no test"
    related = f"; {pluralize(len(found.related), 'related entity')} to be looked at" if found.related else ""
    return f"A change of {subject} affects {entities}; {tests} to run{related}."


def _failing_lines(found: Impact, limit: int) -> Iterator[str]:
    """Yield a line for each requirement, changed or affected, that a failing test verifies."""
    for id_, tests in [*found.failing.items()][:limit]:
        named = ", ".join(f"{one.id} {one.since}".rstrip() for one in tests[:_SHOWN_IDS])
        more = f" and {len(tests) - _SHOWN_IDS} more" if len(tests) > _SHOWN_IDS else ""
        yield escape_controls(f"{id_} is verified, but failing: {named}{more}.")


def _sections(found: Impact, limit: int) -> list[_Section]:
    parts = [(title, getattr(found, name)) for name, title in _PARTS]
    sections = [_section(title, part, limit, found.verdicts) for title, part in parts if part]
    if found.people:
        head = ("OWNER", "OF", "GIVEN BY") if any(one.given_by for one in found.people) else ("OWNER", "OF")
        people = [(one.owner, _ids(one.ids), _ids(one.given_by))[: len(head)] for one in found.people[:limit]]
        sections.append(_Section("People to ask", head, people, len(found.people)))
    return sections


def _section(title: str, part: Sequence[Affected], limit: int, verdicts: Mapping[str, Verdict]) -> _Section:
    shown = part[:limit]
    has_verdicts = any(one.subject.id in verdicts for one in shown)
    has_owners = any(one.subject.owner for one in shown)
    rows = [
        (
            *(one.subject.id, one.subject.type, _status(one.subject), one.subject.title),
            *((_verdict(one, verdicts),) if has_verdicts else ()),
            *((one.subject.owner,) if has_owners else ()),
            path_text(one.path),
        )
        for one in shown
    ]
    head = (
        "ID",
        "TYPE",
        "STATUS",
        "TITLE",
        *((_VERDICT,) if has_verdicts else ()),
        *(("OWNER",) if has_owners else ()),
        _PATH,
    )
    return _Section(title, head, list(rows), len(part))


def _status(subject: Subject) -> str:
    """Return the status of an entity, marked where nobody has accepted it."""
    return f"{subject.status} (proposed)".lstrip() if subject.proposed else subject.status


def _verdict(one: Affected, verdicts: Mapping[str, Verdict]) -> str:
    verdict = verdicts.get(one.subject.id)
    return verdict_words(verdict.outcome, verdict.failing_since()) if verdict else ""


def _table(output: Output, section: _Section) -> Iterator[str]:
    lines = with_paths if section.head[-1] == _PATH else tables.aligned
    return (f"{line}\n" for line in lines(section.head, section.rows, output.width))


def _tsv_rows(found: Impact, limit: int) -> Iterator[tuple[str, ...]]:
    """Yield all parts as rows of one table; of people there is the name, and what they own."""
    for part, _ in _PARTS:
        for one in getattr(found, part)[:limit]:
            known = one.subject
            yield (
                part,
                known.id,
                known.type,
                _status(known),
                known.title,
                known.owner,
                path_text(one.path),
                _verdict(one, found.verdicts),
            )
    for person in found.people[:limit]:
        for id_ in person.ids[:limit]:
            yield "people", id_, "", "", "", person.owner, "", ""


def _ids(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _SHOWN_IDS} more" if len(ids) > _SHOWN_IDS else ""
    return ", ".join(ids[:_SHOWN_IDS]) + more


def _show_limits(session: Session, found: Impact, *, depth: int, limit: int) -> None:
    output = session.output
    most = max(len(found.people), *(len(getattr(found, name)) for name, _ in _PARTS))
    if most > limit:
        output.note_always(cut_at(limit, most))
    if found.goes_on:
        output.note(f"More is affected than is shown (--depth {depth}).")
    if _is_nothing(found):
        shows = "lists what is in it" if found.path else "shows its edges"
        said = f"`kb show {shlex.quote(found.start.id)}` {shows}; `kb schema` says which end a change affects."
        output.note(escape_controls(said))


def cut_at(limit: int, most: int) -> str:
    """Return what is said where the longest part, of ``most`` rows, is cut: also the option that shows more of it."""
    return f"Parts are cut at {limit}" + (
        f"; for more: --limit {min(most, MAX_PAGE_ROWS)}" if limit < MAX_PAGE_ROWS else "."
    )
