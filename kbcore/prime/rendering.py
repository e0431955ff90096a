"""The forms of a briefing: a text, a JSON document, and the few lines of a hook, each within a budget of tokens. Pure.

What does not fit is counted. Sharing and conflicts come first, then facts, tasks and changes alternate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, Final

import msgspec

from kbcore.errors.remedies import for_shell, kb
from kbcore.prime.briefing import Briefing
from kbcore.query.context.facts import Fact, counted_line
from kbcore.query.context.fitting import Fitted, fit
from kbcore.sync.context import UNKNOWN_KIND, Context, UnknownName
from kbcore.text.escaping import escape_controls, json_text
from kbcore.text.suggest import is_it
from kbcore.text.tokens import chars_of
from kbcore.text.wording import pluralize, some_of

SHARING: Final = "sharing"
UNKNOWN: Final = "unknown"
FACTS: Final = "facts"
TASKS: Final = "tasks"
CHANGED: Final = "changed"
_TITLES: Final = {SHARING: "", UNKNOWN: "", FACTS: "Facts that bind:", TASKS: "Open tasks:", CHANGED: "Changed since:"}
_KINDS: Final = {SHARING: "sentence", UNKNOWN: UNKNOWN_KIND, TASKS: "open task", CHANGED: "changed entity"}
"""The names of counts; a fact is counted under its type."""
_TURN: Final = 3
"""Facts in one turn; of tasks and changes there is one."""
_ACTORS: Final = 3
_NAME_CHARS: Final = 80
HOW_TO_WRITE: Final = (
    f"To record a fact: edit its document, then {kb('sync')}; without a document "
    f"{kb('new', 'TYPE', '--title', 'TEXT')} or {kb('set', 'ID', 'FIELD=VALUE')}."
)


class BriefingItem(msgspec.Struct, frozen=True):
    """One member of a briefing: what its section is, how it is counted, and its two forms."""

    section: str
    kind: str
    line: str
    value: Any


def text_of(found: Briefing, tokens: int) -> str:
    """Return a briefing as text of at most so many tokens, each line with its end."""
    items, head = _items(found), _head(found)
    last = escape_controls(for_shell(HOW_TO_WRITE))
    frame = [*head, *filter(None, _TITLES.values()), last]
    fitted = _fitted(found.context.left_out, items, chars_of(tokens) - _length(frame), _line_size, _counts_size)
    lines = [*head, *_sections([items[at] for at in fitted.taken])]
    return _text([*lines, *filter(None, [counted_line(fitted.omitted)]), last])


def hook_text_of(found: Context, tokens: int) -> str:
    """Return the accepted and fresh facts of a context as text of at most so many tokens, "" where there are none.

    Symbols of code are left out: whoever edits the file reads them there. So is what is unknown.
    """
    facts = [one for one in found.facts if one.is_accepted_and_fresh and one.type != "symbol"]
    items = [_of_fact(FACTS, one) for one in facts]
    head = ["Recorded facts that bind this:"]
    fitted = _fitted({}, items, chars_of(tokens) - _length(head), _line_size, _counts_size)
    lines = [items[at].line for at in fitted.taken]
    return _text([*head, *lines, *filter(None, [counted_line(fitted.omitted)])]) if lines else ""


def json_of(found: Briefing, around: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    """Return a briefing as JSON that takes at most so many tokens as compact text with ``around`` in it."""
    last = found.last
    since = last and {
        "seq": last.seq,
        "at": last.at,
        "records": {_cut(name): number for name, number in [*last.records.items()][:_ACTORS]},
        "deleted": last.deleted,
    }
    head = {"branch": found.branch, "seq": found.seq, **around, **({"since": since} if since else {})}
    rest = {"goes_on": found.context.goes_on, "write": for_shell(HOW_TO_WRITE)}
    items = _items(found)
    frame = len(json_text(head | {name: [] for name in _TITLES} | {"omitted": {}} | rest)) + 1
    fitted = _fitted(
        found.context.left_out, items, chars_of(tokens) - frame, _value_size, lambda counts: len(json_text(counts))
    )
    taken = [items[at] for at in fitted.taken]
    sections = {name: [one.value for one in taken if one.section == name] for name in _TITLES}
    return head | sections | {"omitted": fitted.omitted} | rest


def _items(found: Briefing) -> list[BriefingItem]:
    said = [
        BriefingItem(SHARING, _KINDS[SHARING], escape_controls(for_shell(one)), for_shell(one)) for one in found.sharing
    ]
    facts = [_of_fact(FACTS, one) for one in found.context.facts]
    tasks = [_of_fact(TASKS, one) for one in found.tasks]
    shown = {one.id for one in (*found.context.facts, *found.tasks)}
    changed = [_of_fact(CHANGED, one) for one in found.changed if one.id not in shown]
    turns = [facts[at : at + _TURN] for at in range(0, len(facts), _TURN)]
    mixed = zip_longest(turns, tasks, changed)
    others = chain.from_iterable((*(some or ()), *filter(None, (task, change))) for some, task, change in mixed)
    return [*said, *map(_of_unknown, found.context.unknown), *others]


def _of_fact(section: str, fact: Fact) -> BriefingItem:
    kind = _KINDS.get(section) or fact.type
    return BriefingItem(section, kind[:_NAME_CHARS], fact.as_line(), fact.as_json())


def _of_unknown(one: UnknownName) -> BriefingItem:
    value = one.as_json()
    said = f"Nothing is known of {value['unknown']}. {is_it(one.nearest)}".rstrip()
    return BriefingItem(UNKNOWN, _KINDS[UNKNOWN], escape_controls(said), value)


def _head(found: Briefing) -> list[str]:
    pending = f", with {pluralize(found.pending, 'file')} that a sync would record" if found.pending else ""
    said = [f"Branch {_cut(found.branch)} at seq {found.seq}{pending}."]
    last = found.last
    if last and last.records:
        by = some_of([*map(_cut, last.records)], _ACTORS)
        deleted = f", {pluralize(last.deleted, 'entity')} deleted" if last.deleted else ""
        number = pluralize(sum(last.records.values()), "record")
        said.append(f"Since your last session (seq {last.seq}, {last.at[:10]}): {number} by {by}{deleted}.")
    if found.context.goes_on:
        said.append("More is tied to this than is looked at.")
    return [*map(escape_controls, said)]


def _sections(items: Sequence[BriefingItem]) -> list[str]:
    lines = list[str]()
    for name, title in _TITLES.items():
        of_section = [one.line for one in items if one.section == name]
        lines += [title, *of_section] if title and of_section else of_section
    return lines


def _fitted(
    left_out: Mapping[str, int],
    items: Sequence[BriefingItem],
    room: int,
    size: Callable[[BriefingItem], int],
    counts_size: Callable[[Mapping[str, int]], int],
) -> Fitted:
    return fit(items, room, size=size, kind=lambda one: one.kind, omitted_size=counts_size, already_omitted=left_out)


def _line_size(item: BriefingItem) -> int:
    return len(item.line) + 1


def _value_size(item: BriefingItem) -> int:
    return len(json_text(item.value)) + 1


def _counts_size(counts: Mapping[str, int]) -> int:
    return len(counted_line(counts)) + 1


def _length(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _cut(text: str) -> str:
    return text if len(text) <= _NAME_CHARS else f"{text[: _NAME_CHARS - 1]}…"
