"""Changes of entities and edges in words: what they were before and what they are after."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from kbcli.messages import conflicts
from kbcli.terminal.colours import Style
from kbcli.terminal.output import Output
from kbcore.model.graph import CONTESTED, OBJECT_FIELDS, contested_note, is_contested_note
from kbcore.text.escaping import escape_controls, json_text
from kbcore.text.wording import pluralize

Json = Mapping[str, Any]

SIGNS: Final[Mapping[str, tuple[str, Style]]] = {
    "created": ("+", "green"),
    "updated": ("~", "yellow"),
    "deleted": ("-", "red"),
    "renamed": (">", "yellow"),
}
BARE: Final = "(a bare link)"
"""The text for the type of an unresolved edge whose type is not known yet."""
_HIDDEN: Final = frozenset(
    {
        *("id", "type", "title", "from", "to", "kind", "version", "created_at", "updated_at", "created_by", "sources"),
        CONTESTED,
    }
)
"""Members of an element that a change of it does not spell out, or on lines of their own."""
_VALUE_CHARS: Final = 200
_COMMIT_CHARS: Final = 12
_LINE_CHARS: Final = 40
"""A text that is longer, before or after, gets a line for each side."""


def short_time(at: str) -> str:
    """Return a time without fractions of a second."""
    return f"{at.partition('.')[0]}Z" if "." in at else at


def show_change(output: Output, change: Json) -> Iterator[str]:
    """Yield the lines of one change: of an entity, an edge, or a file that was read."""
    sign, colour = SIGNS[change["change"]]
    yield output.styled(escape_controls(f"{sign} {_name(change)}"), colour)
    yield from (f"    {line}" for line in field_lines(output, change))
    for one in change.get("changes", ()):
        where = f", in {one['file']}" if one["file"] else ""
        commit = f", commit {one['commit'][:_COMMIT_CHARS]}" if one["commit"] else ""
        said = f"from the change {one['change'][:_COMMIT_CHARS]} of {one['actor']}, {short_time(one['at'])}"
        yield output.styled(escape_controls(f"    {said}{where}; it came with seq {one['seq']}{commit}"), "dim")


def _name(change: Json) -> str:
    element: Json = change.get("after") or change.get("before") or {}
    if "path" in change:
        return f"file {change['path']}"
    if "from" in change:
        kind = f":{change['kind']}" if change.get("kind") else ""
        confirmed = " (confirmed)" if change.get("confirmed") else ""
        return f"{change['from']} {change['type'] or BARE}{kind} {change['to']}{confirmed}"
    was = f"{change['was']} -> " if "was" in change else ""
    return f"{was}{change['id']} ({element.get('type', '')}) {element.get('title', '')}".rstrip()


def field_lines(output: Output, change: Json) -> Iterator[str]:
    """Yield the lines of what a change did to the fields, made visible."""
    before, after, fields = change.get("before"), change.get("after"), change.get("fields")
    if fields is not None and before and after:
        kept: dict[str, list[str]] = {}
        """Fields with the value that they had, by who states them now."""
        for name, sides in fields.items():
            old, new = (sides[key] for key in (("from", "to") if "from" in sides else ("before", "after")))
            stated = sides.get("stated_by")
            by = (stated["after"] or "no one") if stated else ""
            if is_contested_note(name):
                yield from map(escape_controls, _contested(name, new))
            elif by and old == new and type(old) is type(new):
                kept.setdefault(by, []).append(name)
            else:
                yield from _sides(output, name, (old, new), f" (now stated by {by})" if by else "")
        for by, names in kept.items():
            yield escape_controls(f"now stated by {by}: {', '.join(names)}")
    elif "path" not in change:
        yield from map(escape_controls, element_lines(after or before or {}))
    elif after and after.get("problems"):
        yield pluralize(after["problems"], "problem")


def _contested(note: str, values: Any) -> Iterator[str]:
    """Yield what a record made of the note that a field is contested: the values of now, None for none."""
    field = note.removeprefix(contested_note(""))
    yield f"{field}: contested" if values else f"{field}: not contested any more"
    yield from (f"  {line}" for line in conflicts.value_lines(field, values or (), names_change=True))


def _sides(output: Output, name: str, sides: tuple[Any, Any], note: str) -> Iterator[str]:
    """Yield a field before and after: on one line, or for long texts a line each with what differs marked."""
    name, note = escape_controls(name), escape_controls(note)
    texts = [side for side in sides if isinstance(side, str)]
    if len(texts) < len(sides) or max(map(len, texts)) <= _LINE_CHARS:
        old, new = (escape_controls(value(side)) for side in sides)
        yield f"{name}: {output.styled(old, 'red')} -> {output.styled(new, 'green')}{note}"
        return
    from kbcli.terminal.word_diff import marked

    is_coloured = output.is_coloured
    removed, added = marked(
        escape_controls(texts[0]),
        escape_controls(texts[1]),
        lambda text: output.styled(text, "red") if is_coloured else f"[-{text}-]",
        lambda text: output.styled(text, "green") if is_coloured else f"{{+{text}+}}",
    )
    yield f"{name}:{note}"
    yield f"  {output.styled('-', 'red')} {removed}"
    yield f"  {output.styled('+', 'green')} {added}"


def element_lines(element: Json) -> Iterator[str]:
    """Yield a line for each member that is worth one."""
    for name, text in element_pairs(element):
        yield f"{name}: {text}"
    for name, values in element.get(CONTESTED, {}).items():
        yield from _contested(contested_note(name), values)


def element_pairs(element: Json, also: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield name and value of each member that is worth a line, and of those that are named."""
    for name, content in element.items():
        if name in OBJECT_FIELDS:
            yield from ((f"{name}.{key}", value(member)) for key, member in content.items())
        elif name not in _HIDDEN or name in also:
            yield name, value(short_time(content) if name.endswith("_at") else content)


def value(found: Any) -> str:
    """Return a value for a line of text."""
    if found is None:
        return "(none)"
    is_list_of_texts = isinstance(found, list) and all(isinstance(one, str) for one in found)
    text = found if isinstance(found, str) else ", ".join(found) if is_list_of_texts else json_text(found)
    return text if len(text) <= _VALUE_CHARS else f"{text[:_VALUE_CHARS]}…"


def show_difference(output: Output, entities: Sequence[Json], edges: Sequence[Json]) -> None:
    """Write what differs, entities before edges, and at the end how much that is."""
    output.is_paged = True
    for change in (*entities, *edges):
        output.data("".join(f"{output.flowed(line)}\n" for line in show_change(output, change)))
    counts = [_counted(changes, noun) for changes, noun in ((entities, "entity"), (edges, "edge")) if changes]
    if counts:
        output.say("\n" + "; ".join(counts))


def _counted(changes: Sequence[Json], noun: str) -> str:
    words = [change["change"] for change in changes]
    parts = [f"{words.count(word)} {word}" for word in SIGNS if word in words]
    return f"{pluralize(len(changes), noun)}: {', '.join(parts)}"
