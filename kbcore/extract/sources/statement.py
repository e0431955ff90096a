"""The facts of one entry by the settings of its source: an entity with its fields, and edges. Pure.

Nothing of a document is a reason to lose it: a value that the settings do not know is kept as it is, with a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import msgspec

from kbcore.extract import mentions, prose
from kbcore.extract.facts import StatedEntity, StatedLink
from kbcore.extract.fields import Sheet
from kbcore.extract.links import BARE, DEFAULT_KIND, RELATES_TO, Manner
from kbcore.extract.sources import patterns
from kbcore.extract.sources.entry import SECTION, Entry, folded
from kbcore.extract.sources.source import LinkRule, Part, Source, StatusRule, TitleRule, TypeRule, texts
from kbcore.ids import check_id
from kbcore.model.values import is_url
from kbcore.text.escaping import in_quotes
from kbcore.text.problems import FileProblem, Severity
from kbcore.text.wording import shortened, some_of

DEFAULT_TITLE: Final = ("title", "name", "heading", "summary")
NO_ID: Final = "missing_id"
_SHOWN_CHARS: Final = 60
_MOST_NAMED: Final = 5
_MAX_STATUS_CHARS: Final = 200
_MAX_TITLE_CHARS: Final = 1000
_GENERIC_LINKS: Final = frozenset({"links", "relationships"})
_TEXT_FIELDS: Final = frozenset({"owner", "priority", "severity", "text_ref"})
_LOWER: Final = frozenset({"owner", "priority", "severity", "tags", "links", "status", "title"})


class StatedFacts(msgspec.Struct):
    """The facts of one entry; ``entity`` is None where it has no id that can be used."""

    entity: StatedEntity | None
    links: list[StatedLink]
    problems: list[FileProblem]


class StatementContext(msgspec.Struct, frozen=True):
    """The context of an entry's statements: its file, the names of edges, and its companion."""

    path: str
    edge_names: frozenset[str]
    values: Mapping[str, str]
    """The parts of the path, and ``whole``, the id of the entity of the file."""
    left_to_companion: frozenset[str] = frozenset()
    """Fields that the file beside it states."""
    has_text: bool = True
    """The file is the text of the entity."""


class _Reading:
    """One entry on its way to facts."""

    def __init__(self, entry: Entry, rules: Source | Part, place: StatementContext) -> None:
        self.entry = entry
        self.rules = rules
        self.place = place
        self.problems: list[FileProblem] = []
        self.used: set[str] = set()

    def value_of(self, name: str) -> str | None:
        """Return what a name of a template means."""
        return self.place.values.get(name) or self.entry.text_of(name)

    def note(self, line: int, code: str, message: str, hint: str, severity: Severity = "note") -> None:
        self.problems.append(FileProblem(line, code, message, hint, severity))

    def filled(self, templates: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """Return the text of the first template that can be filled, and else the names that have no value."""
        missing: tuple[str, ...] = ()
        for template in templates:
            found = patterns.fill(template, self.value_of)
            if found.text:
                for name in patterns.names_in(template):
                    self.use(name)
                return found.text, ()
            missing = missing or found.missing
        return "", missing

    def found(self, key: str) -> tuple[Any, int]:
        """Return the value of a key, which then states nothing else, and its line."""
        value, line = self.entry.find(key)
        if value is not None:
            self.use(key)
        elif key in self.place.values:
            value, line = self.place.values[key], self.entry.line
        return value, line

    def use(self, key: str) -> None:
        """Note that a key of the top is used, and states no attribute of its own."""
        path = self.entry.path_to(key)
        top = key.partition(".")[0]
        if path:
            self.used.add(folded(path[0][1]))
        elif isinstance(self.entry.values.get(top), list):
            self.used.add(folded(top))


def statement(entry: Entry, rules: Source | Part, place: StatementContext) -> StatedFacts:
    """Return what an entry states by these rules."""
    reading = _Reading(entry, rules, place)
    key, missing = reading.filled(texts(rules.id))
    fault = check_id(key) if key else None
    if not key or fault:
        return StatedFacts(None, [], [_without_id(entry, key, missing, fault)])
    type_ = _type(reading)
    if not type_ and isinstance(rules.type, TypeRule):
        hint = "State one in the document, or set `type` of the source."
        return StatedFacts(None, [], [FileProblem(entry.line, "missing_type", f"`{key}` has no type", hint)])
    sheet = Sheet(place.path, key, entry.tree, place.edge_names)
    _state_status(reading, sheet)
    _state_title(reading, sheet, key)
    _state_fields(reading, sheet)
    _state_links(reading, sheet)
    if rules.other_fields:
        _state_others(reading, sheet)
    sheet.put_urls(entry.line)
    for name in place.left_to_companion:
        sheet.fields.pop(name, None)
    if place.has_text and "text_ref" not in place.left_to_companion:
        sheet.fields.setdefault("text_ref", place.path)
        sheet.lines.setdefault("text_ref", entry.line)
    links = list(sheet.links.links.values())
    if isinstance(rules, Source) and rules.mentions and entry.body:
        found, problems = mentions.mentions(entry.body, entry.body_line, place.path, key, texts(rules.mention_ids))
        links += found
        reading.problems += problems
    problems = [*reading.problems, *(_softened(one, key) for one in sheet.all_problems())]
    return StatedFacts(sheet.entity(key, type_, entry.line), links, problems)


def companion_statement(entry: Entry, key: str, source: Source, place: StatementContext) -> StatedFacts:
    """Return what the file beside an entity's own states of it: its text, and the fields that the settings name."""
    sheet = Sheet(place.path, key, entry.tree, place.edge_names)
    reading = _Reading(entry, source, place)
    for name, target in source.with_fields.items():
        value, line = reading.found(name)
        if value is not None:
            sheet.take_as(field_name(target), value, line)
    sheet.fields["text_ref"] = place.path
    links, problems = list[StatedLink](), list[FileProblem]()
    if source.mentions:
        links, problems = mentions.mentions(entry.body, entry.body_line, place.path, key, texts(source.mention_ids))
    entity = StatedEntity(key, "", sheet.fields, 1, sheet.lines, is_part=True)
    return StatedFacts(entity, links, [*problems, *(_softened(one, key) for one in sheet.all_problems())])


def fields_of_companion(source: Source) -> frozenset[str]:
    """Return the fields that the file beside an entity's own states."""
    return frozenset({"text_ref", *map(field_name, source.with_fields.values())}) if source.with_ else frozenset()


def field_name(target: str) -> str:
    """Return the name of a field as facts have it: what is no field of every entity is an attribute."""
    is_plain = "." in target or target in {"title", "status", "owner", "priority", "severity", "tags", "text_ref"}
    return target if is_plain or target in {"created_at", "updated_at", "links"} else f"attributes.{target}"


def _softened(problem: FileProblem, key: str) -> FileProblem:
    """Return a problem of one value with its entity: the rest of the entity is taken in all the same."""
    return msgspec.structs.replace(problem, severity="warning", id=problem.id or key)


def _without_id(entry: Entry, key: str, missing: Sequence[str], fault: str | None) -> FileProblem:
    if fault:
        message = f"the id {in_quotes(shortened(key, _SHOWN_CHARS))} cannot be used: {fault}"
        return FileProblem(entry.line, "bad_id", message, "Correct the document, or `id` of the source.")
    names = ", ".join(f"`{name}`" for name in missing[:_MOST_NAMED])
    message = f"the id needs {names or 'a value'}, which is not there"
    has = some_of([in_quotes(shortened(one, _SHOWN_CHARS)) for one in entry.values], _MOST_NAMED)
    hint = f"State it in the document, or set `id` of the source to what the documents have{has and f': {has}'}."
    return FileProblem(entry.line, NO_ID, message, hint)


def _type(reading: _Reading) -> str:
    """Return the type of an entry; "" where it states none and the source has no other one."""
    rule = reading.rules.type
    if not isinstance(rule, TypeRule):
        return rule
    text, line, key = "", reading.entry.line, ""
    for key in texts(rule.field):
        value, line = reading.found(key)
        text = value.strip() if isinstance(value, str) else ""
        if text:
            break
    found = _mapped(rule.map, text, whole=True)
    if found is not None:
        return found
    default, _ = reading.filled(texts(rule.default))
    if text and default != text:
        message = f"`{key}` is {in_quotes(shortened(text, _SHOWN_CHARS))}, which `map` of the source does not have"
        reading.note(line, "unmapped_value", message, f"The type is {default}; add the value to `map`.")
    return default


def _mapped(values: Mapping[str, str], text: str, *, whole: bool = False) -> str | None:
    """Return what a text is mapped to: by all of it, else by the longest key that it begins with, at a word's end."""
    wanted = text.strip().strip("*_").lower()
    folded_map = {key.strip().lower(): value for key, value in values.items()}
    if wanted in folded_map:
        return folded_map[wanted]
    if whole:
        return None
    fits = [key for key in folded_map if wanted.startswith(key) and not wanted[len(key) : len(key) + 1].isalnum()]
    return folded_map[max(fits, key=len)] if fits else None


def _state_status(reading: _Reading, sheet: Sheet) -> None:
    rule = reading.rules.status
    if isinstance(rule, str):
        rule = StatusRule(rule or "status")
    for key in texts(rule.field):
        value, line = reading.found(key)
        if key.startswith(SECTION):
            said, superseding = prose.statements_of_status(reading.entry.section(key.removeprefix(SECTION)))
            value, line = (said.text, said.number) if said else (None, 0)
            for one in superseding:
                sheet.superseding(one.text, one.number)
        if not isinstance(value, str) or not value.strip():
            continue
        text = value.strip().strip("*_").strip()
        is_superseding = sheet.superseding(text, line)
        found = _mapped(rule.map, text)
        if found is None and rule.map:
            shown = in_quotes(shortened(text, _SHOWN_CHARS))
            message = f"the status {shown} is kept as it is: `status.map` of the source does not have it"
            reading.note(line, "unmapped_value", message, "Add it to `map` if it means one of the others.")
        if found is None:
            found = text.split(maxsplit=1)[0] if is_superseding else shortened(text, _MAX_STATUS_CHARS)
        sheet.text("status", found, line)
        return
    if rule.default:
        sheet.put("status", rule.default, reading.entry.line)


def _state_title(reading: _Reading, sheet: Sheet, key: str) -> None:
    rule = reading.rules.title
    rule = rule if isinstance(rule, TitleRule) else TitleRule(rule)
    wanted = texts(rule.field) or DEFAULT_TITLE
    for one in wanted:
        if "{" in one:
            text, _ = reading.filled([one])
            value, line = (text or None), reading.entry.line
        else:
            value, line = reading.found(one)
        if isinstance(value, str) and value.strip():
            title = " ".join(value.split())
            parts = patterns.match(texts(rule.match), title) or {}
            sheet.text("title", shortened(parts.get("title") or title, _MAX_TITLE_CHARS), line)
            if "title" in sheet.fields:
                return
    if "title" not in reading.place.left_to_companion:
        names = ", ".join(f"`{one}`" for one in wanted)
        hint = "State one in the document, or name another key in `title` of the source."
        reading.note(reading.entry.line, "title_is_id", f"no title is stated ({names}); the id is the title", hint)
        sheet.put("title", key, reading.entry.line)


def _state_fields(reading: _Reading, sheet: Sheet) -> None:
    rules = reading.rules
    for key, target in rules.fields.items():
        if "{" in key:
            for one, _ in _keys(key, reading.entry):
                reading.use(one)
            continue
        value, line = reading.found(key)
        name = field_name(target or "")
        # The first key of a field counts; the id is none.
        if not _is_empty(value) and target and name not in sheet.fields and value != sheet.links.subject:
            value = _joined(value) if name in _TEXT_FIELDS else value
            sheet.take_as(name, value.strip() if isinstance(value, str) else value, line)
    for key in texts(rules.tags):
        value, line = reading.found(key)
        if value is not None and "tags" not in sheet.fields:
            sheet.take("tags", value, line)


def _is_empty(value: Any) -> bool:
    return value is None or value in ("", [], {})


def _joined(value: Any) -> Any:
    """Return a list of texts as one text, with commas; anything else as it is."""
    is_list = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return ", ".join(one.strip() for one in value if one.strip()) if is_list else value


def _state_links(reading: _Reading, sheet: Sheet) -> None:
    for name, given in reading.rules.links.items():
        listed = given if isinstance(given, list) else [given]
        rules = [LinkRule(one) if isinstance(one, str) else one for one in listed]
        for key, parts in _keys(name, reading.entry):
            if parts and folded(key) in reading.used:
                continue
            _state_links_of(reading, sheet, key, rules, parts)


def _keys(name: str, entry: Entry) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the keys that a name of ``links`` means: itself, or those that it fits as a pattern, with their parts."""
    if "{" not in name:
        yield name, {}
        return
    for key in entry.values:
        parts = patterns.match([name], key)
        if parts is not None:
            yield key, parts


def _state_links_of(
    reading: _Reading, sheet: Sheet, key: str, rules: Sequence[LinkRule], parts: Mapping[str, str]
) -> None:
    """State the links of one key: of each piece by the first rule that fits it."""
    if key.startswith(SECTION):
        lines = reading.entry.section(key.removeprefix(SECTION))
        found = [(prose.without_marker(line.text), line.number) for line in lines if line.text.strip()]
    else:
        value, line = reading.found(key)
        found = [] if value is None else [(value, line)]
    taken, missed = set[tuple[str, int]](), dict[tuple[str, int], str]()
    for rule in rules:
        for piece in (one for value, line in found for one in _pieces(value, line, rule, reading.entry)):
            if (piece.key, piece.line) not in taken and _add_link(reading, sheet, rule, piece, parts):
                taken.add((piece.key, piece.line))
            elif not rule.where:
                missed.setdefault((piece.key, piece.line), piece.text)
    for (_, line), text in ((at, text) for at, text in missed.items() if at not in taken):
        if not key.startswith(SECTION) and key not in reading.rules.fields:
            message = f"{in_quotes(shortened(text, _SHOWN_CHARS))} fits no pattern of the link `{rules[-1].edge}`"
            reading.note(line, "unmatched_link", message, "Correct it, or add a pattern to `match` of the link.")


class _Piece(msgspec.Struct, frozen=True):
    """One target as written: its text, its line, and the members of an object that says more of it."""

    text: str
    line: int
    members: Mapping[str, str] = {}

    @property
    def key(self) -> str:
        """Return what distinguishes this piece from others of its line."""
        return self.text or repr(sorted(self.members.items()))


def _manner(rule: LinkRule, value_of: Callable[[str], str | None], edge_names: AbstractSet[str]) -> Manner:
    """Return the edge that a rule means: a name that is none makes a ``relates_to`` of that kind."""
    edge, is_reversed = rule.edge.removeprefix("^"), rule.edge.startswith("^")
    kind = next((found for one in texts(rule.kind) if (found := patterns.fill(one, value_of).text)), "")
    if "{" in edge:
        name = patterns.fill(edge, value_of).text
        if name not in edge_names:
            kind, name = kind or name, RELATES_TO
        edge = name
    kind = kind or (DEFAULT_KIND if edge == RELATES_TO else "")
    return Manner(edge or None, kind, reverse=is_reversed) if edge else BARE


def _pieces(value: Any, line: int, rule: LinkRule, entry: Entry) -> Iterator[_Piece]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _pieces(item, entry.tree.line(value, number) or line, rule, entry)
    elif isinstance(value, dict):
        if any(str(value.get(name, "")).lower() != wanted.lower() for name, wanted in rule.where.items()):
            return
        members = {name: one for name, one in value.items() if isinstance(one, str)}
        if rule.member == "*":
            yield from (_Piece(name.strip(), line) for name in value if name.strip())
        elif rule.member:
            target = value.get(rule.member)
            if isinstance(target, str) and target.strip():
                yield _Piece(target.strip(), line, members)
        elif rule.id and members:
            yield _Piece("", line, members)
    elif isinstance(value, str) and not rule.where:
        parts = value.split(rule.split) if rule.split else [value]
        yield from (_Piece(part.strip(), line) for part in parts if part.strip())


def _add_link(reading: _Reading, sheet: Sheet, rule: LinkRule, piece: _Piece, named: Mapping[str, str]) -> bool:
    """State the link to a piece; tell whether the rule fits it."""
    parts = patterns.match(texts(rule.match), piece.text) if rule.match else {}
    if parts is None:
        if is_url(piece.text):
            sheet.links.add(piece.text, piece.line)
        return is_url(piece.text)

    def value_of(name: str) -> str | None:
        found = parts.get(name) or named.get(name) or piece.members.get(name)
        if found or (piece.members and not piece.text):
            return found or reading.place.values.get(name)
        return piece.text if name == "value" else reading.value_of(name)

    manner = _manner(rule, value_of, sheet.links.edge_names)
    if not rule.id:
        sheet.links.add(piece.text, piece.line, BARE if is_url(piece.text) else manner)
        return True
    target = next((one for template in texts(rule.id) if (one := patterns.fill(template, value_of).text)), "")
    if target:
        sheet.links.add(target, piece.line, manner)
    return True


def _state_others(reading: _Reading, sheet: Sheet) -> None:
    """State what no rule names: the fields of every entity, edges by their names, and attributes."""
    entry, aliases = reading.entry, {folded(key): edge for key, edge in reading.rules.edges.items()}
    for key, value in entry.values.items():
        name = folded(key)
        if _is_empty(value) or name in reading.used or (key == "id" and sheet.links.subject == value):
            continue
        line = entry.tree.line(entry.values, key) or entry.line
        if name in aliases:
            _add_by_alias(sheet, value, line, aliases[name], entry)
        elif name in _GENERIC_LINKS and aliases:
            _take_links(sheet, value, line, aliases, entry)
        elif key in {"id", "type"} or key in sheet.fields:
            sheet.member("attributes", key, value, line)
        else:
            sheet.take(key.lower() if name in _LOWER else key, value, line)


def _take_links(sheet: Sheet, value: Any, line: int, aliases: Mapping[str, str], entry: Entry) -> None:
    """Take in links of which some have edges by the names of another tool: ``{type, target}`` or ``{edge: ids}``."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            _take_links(sheet, item, entry.tree.line(value, number) or line, aliases, entry)
        return
    stated = value.get("type") if isinstance(value, dict) else None
    if isinstance(stated, str) and folded(stated) in aliases:
        target = next((value[key] for key in ("target", "to", "id") if key in value), None)
        _add_by_alias(sheet, target, line, aliases[folded(stated)], entry)
    elif isinstance(value, dict) and stated is None:
        for key, ends in value.items():
            at = entry.tree.line(value, key) or line
            if folded(key) in aliases:
                _add_by_alias(sheet, ends, at, aliases[folded(key)], entry)
            else:
                alone = {key: ends}
                entry.tree.places[id(alone)] = {key: at}
                sheet.links.read(alone, at)
    else:
        sheet.links.read(value, line)


def _add_by_alias(sheet: Sheet, value: Any, line: int, edge: str, entry: Entry) -> None:
    rule = LinkRule(edge, split=",")
    manner = _manner(rule, lambda _: None, sheet.links.edge_names)
    for piece in _pieces(value, line, rule, entry):
        sheet.links.add(piece.text, piece.line, manner)
