"""Changes and records in words: what ``kb log``, ``kb show`` and ``kb diff`` write for people."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kbcli.render import Output, Style
from kbcli.wording import counted
from kbcore.model import OBJECT_FIELDS
from kbcore.visible import json_text, visible

Json = Mapping[str, Any]

_SIGNS: Final[Mapping[str, tuple[str, Style]]] = {
    "created": ("+", "green"),
    "updated": ("~", "yellow"),
    "deleted": ("-", "red"),
}
_HIDDEN: Final = frozenset(
    {"id", "type", "title", "from", "to", "kind", "version", "created_at", "updated_at", "created_by", "sources"}
)
"""Members of an element that a change of it does not spell out."""
_HEAD: Final = ("SEQ", "AT", "ACTOR", "SOURCE", "CHANGES", "MESSAGE")
_VALUE_CHARS: Final = 200


def record_rows(records: Iterable[Json]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the head and the rows of a table of records."""
    return _HEAD, [
        (
            *(str(record["seq"]), short_time(record["at"]), record["actor"], record["source"]),
            *(summary(record["summary"]), _why(record)),
        )
        for record in records
    ]


def _why(record: Json) -> str:
    """Return the message of a record, and what was found and mended when it was written."""
    repair = f"[{record['repair']}]" if record.get("repair") else ""
    return f"{record['message']} {repair}".strip()


def short_time(at: str) -> str:
    """Return a time without fractions of a second."""
    return f"{at.partition('.')[0]}Z" if "." in at else at


def summary(counts: Json) -> str:
    """Return what a record changed, as counts."""
    parts = [f"{counts[verb]} {verb}" for verb in ("created", "updated", "deleted") if counts[verb]]
    parts += [counted(counts["edges"], "edge")] if counts["edges"] else []
    return ", ".join(parts) or "nothing"


def tell_change(output: Output, change: Json) -> Iterator[str]:
    """Yield the lines of one change: of an entity, an edge, or a file that was read."""
    sign, colour = _SIGNS[change["change"]]
    yield output.styled(visible(f"{sign} {_name(change)}"), colour)
    yield from (visible(f"    {line}") for line in _field_lines(change))


def _name(change: Json) -> str:
    element: Json = change.get("after") or change.get("before") or {}
    if "path" in change:
        return f"file {change['path']}"
    if "from" in change:
        kind = f":{change['kind']}" if change.get("kind") else ""
        return f"{change['from']} {change['type'] or '(a bare link)'}{kind} {change['to']}"
    return f"{change['id']} ({element.get('type', '')}) {element.get('title', '')}".rstrip()


def _field_lines(change: Json) -> Iterator[str]:
    before, after, fields = change.get("before"), change.get("after"), change.get("fields")
    if fields is not None and before and after:
        for name, sides in fields.items():
            old, new = (sides[key] for key in (("from", "to") if "from" in sides else ("before", "after")))
            stated = sides.get("stated_by")
            note = f" (now stated by {stated['after'] or 'nobody'})" if stated else ""
            yield f"{name}: {value(old)} -> {value(new)}{note}"
    elif "path" not in change:
        yield from element_lines(after or before or {})
    elif after and after.get("problems"):
        yield counted(after["problems"], "problem")


def element_lines(element: Json, also: Collection[str] = ()) -> Iterator[str]:
    """Yield a line for each member that is worth one, and for those that are named."""
    for name, content in element.items():
        if name in OBJECT_FIELDS:
            yield from (f"{name}.{key}: {value(member)}" for key, member in content.items())
        elif name not in _HIDDEN or name in also:
            yield f"{name}: {value(short_time(content) if name.endswith('_at') else content)}"


def value(found: Any) -> str:
    """Return a value for a line of text."""
    if found is None:
        return "(none)"
    is_list_of_texts = isinstance(found, list) and all(isinstance(one, str) for one in found)
    text = found if isinstance(found, str) else ", ".join(found) if is_list_of_texts else json_text(found)
    return text if len(text) <= _VALUE_CHARS else f"{text[:_VALUE_CHARS]}…"


def tell_difference(output: Output, entities: Sequence[Json], edges: Sequence[Json]) -> None:
    """Write what differs, entities before edges."""
    output.is_paged = True
    for change in (*entities, *edges):
        output.data("".join(f"{line}\n" for line in tell_change(output, change)))
