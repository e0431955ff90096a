"""Check of the setting ``sources``: each fault is kept with its file and line. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kbcore import limits
from kbcore.extract.sources import patterns, profiles, trees
from kbcore.extract.sources.effects import check_effects, check_globs
from kbcore.extract.sources.source import FORMATS, merged, texts
from kbcore.extract.sources.statement import field_name
from kbcore.text.globs import placed_globs
from kbcore.text.suggest import did_you_mean
from kbcore.text.validator import ConfigNode, shown

Types = list[tuple[str, ConfigNode]]
Edges = list[tuple[str, ConfigNode]]
MAX_SOURCES: Final = 100
MAX_PARTS: Final = 20
MAX_MEMBERS: Final = 500
_FIELDS_OF_MAIN: Final = frozenset({"title", "status", "type", "id", "text_ref"})
"""Fields that the file beside an entity's own cannot state."""


def check_sources(spot: ConfigNode | None) -> tuple[list[dict[str, Any]], Types, Edges]:
    """Return the entries complete with their profiles, and the types of entities and of edges that they name.

    Each type is with its place.

    An entry with a fault is left out; what is wrong is kept as a problem.
    """
    found: list[dict[str, Any]] = []
    types: Types = []
    edges: Edges = []
    entries = spot.items() if spot else []
    if len(entries) > MAX_SOURCES and spot:
        spot.wrong("too_many_sources", f"There are {len(entries)} sources; the limit is {MAX_SOURCES}.", "Join some.")
        return found, types, edges
    for entry in entries:
        before = len(entry.problems)
        named = _check_source(entry)
        types += named[0]
        edges += named[1]
        if len(entry.problems) == before:
            whole = resolved(entry.value)
            check_globs(entry, whole, found)
            found.append(whole)
    return found, types, edges


def resolved(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry complete with the settings of its profile."""
    name = entry.get("profile")
    return merged(profiles.read(name)["source"] if name else {}, entry)


def _check_source(spot: ConfigNode) -> tuple[Types, Edges]:
    """Keep what is wrong with one entry; return the types and edges that its sound settings name."""
    before = len(spot.problems)
    members = spot.known_members({*_SOURCE, *_STATED}, "setting of a source")
    types: Types = []
    edges: Edges = []
    for key, member in members.items():
        known = len(spot.problems)
        types += {**_SOURCE, **_STATED}[key](member) or []
        if len(spot.problems) == known:
            edges += _edges_of({key: member})
    profile = members.get("profile")
    if not isinstance(spot.value, dict) or (profile is not None and profile.value not in profiles.NAMES):
        return types, edges
    plain = {**(profiles.read(profile.value)["source"] if profile else {}), **spot.value}
    if not plain.get("glob"):
        spot.wrong("missing_key", "A source needs `glob`: which files it reads.", 'For example "docs/rfcs/*.md".')
    for key, why in (("type", "the type of its entities"), ("id", "what their ids are made of")):
        if not plain.get(key) and not (key == "type" and plain.get("parts")):
            spot.wrong("missing_key", f"A source needs `{key}`: {why}.", "Add it, or name a `profile` that has it.")
    if len(spot.problems) > before:
        return types, edges
    whole = resolved(spot.value)
    if whole.get("with"):
        _check_companion(spot, whole)
    check_effects(members, whole)
    return types, edges


def _edges_of(members: Mapping[str, ConfigNode]) -> Edges:
    """Return the edges that an entry or a part names, but for templates."""
    named = list(members["edges"].members().values()) if "edges" in members else []
    for link in members["links"].members().values() if "links" in members else ():
        for rule in link.items() if isinstance(link.value, list) else [link]:
            named.append(rule.members()["edge"] if isinstance(rule.value, dict) else rule)
    found = [(one.value.removeprefix("^"), one) for one in named if "{" not in one.value]
    for part in members["parts"].items() if "parts" in members else ():
        found += _edges_of(part.members())
    return found


def _check_companion(spot: ConfigNode, whole: Mapping[str, Any]) -> None:
    """The id of an entity of two files is made of their paths, because each file is read without the other one."""
    known = {"file.folder"} | {
        part.partition(":")[0]
        for glob in texts(whole.get("glob", []))
        for part in patterns.placeholders(glob.rpartition("/")[0])
    }
    for template in texts(whole.get("id", [])):
        other = [name for name in _names(template) if name not in known]
        if other:
            message = f"With `with`, the id cannot use `{other[0]}`: it is made of the path of the folder alone."
            hint = "Name a part of a folder in `glob`, for example `keps/*/{number:d}-{slug}/kep.yaml`."
            spot.wrong("bad_template", message, hint)
    owned = {field_name(target) for target in whole.get("withFields", {}).values()} & _FIELDS_OF_MAIN
    if owned:
        message = f"`withFields` cannot give `{min(owned)}`: the file that `glob` means states it."
        spot.wrong("bad_field", message, "Take it out of `withFields`.")


def _names(template: Any) -> tuple[str, ...]:
    is_usable = isinstance(template, str) and not patterns.template_fault(template)
    return patterns.names_in(template) if is_usable else ()


def _text(spot: ConfigNode) -> None:
    if not isinstance(spot.value, str) or not spot.value.strip() or len(spot.value) > limits.MAX_NAME_CHARS:
        spot.must_be(f"text of 1 to {limits.MAX_NAME_CHARS} characters")


def _flag(spot: ConfigNode) -> None:
    if not isinstance(spot.value, bool):
        spot.must_be("true or false", "Write `true` or `false`, without quotes.")


def _each(spot: ConfigNode) -> list[ConfigNode]:
    """Return the places of one text or of a list of texts; anything else is a problem."""
    if not isinstance(spot.value, str | list):
        spot.must_be("text, or a list of texts")
        return []
    places = [spot] if isinstance(spot.value, str) else spot.items()
    if len(places) > MAX_MEMBERS:
        spot.wrong("too_many_members", f"The list has {len(places)} members; the limit is {MAX_MEMBERS}.")
        return []
    for place in places:
        if not isinstance(place.value, str):
            place.must_be("text")
    return [place for place in places if isinstance(place.value, str)]


def _names_of_keys(spot: ConfigNode) -> None:
    for place in _each(spot):
        if "{" in place.value:
            _fault(place, patterns.template_fault(place.value), "template")
        else:
            _text(place)


def _templates(spot: ConfigNode) -> None:
    for place in _each(spot):
        _fault(place, patterns.template_fault(place.value), "template")


def _patterns(spot: ConfigNode) -> None:
    for place in _each(spot):
        _fault(place, patterns.pattern_fault(place.value), "pattern")


def _fault(place: ConfigNode, fault: str, what: str) -> None:
    if fault:
        place.wrong(f"bad_{what}", f"{shown(place.value)} cannot be used as a {what}: {fault}.")


def _globs(spot: ConfigNode) -> None:
    for glob, place in placed_globs(spot):
        _fault(place, patterns.glob_fault(glob), "glob")


def _profile(spot: ConfigNode) -> None:
    if not isinstance(spot.value, str):
        spot.must_be("the name of a profile")
    elif spot.value == "gherkin":
        hint = "Set `extractors.gherkin.paths` to where they are."
        spot.wrong("unknown_profile", "Feature files are read by the extractor `gherkin`, not by a profile.", hint)
    elif spot.value not in profiles.NAMES:
        spot.unknown("unknown_profile", "profile", spot.value, profiles.NAMES)


def _format(spot: ConfigNode) -> None:
    if spot.value not in FORMATS:
        hint = did_you_mean(spot.value, FORMATS) if isinstance(spot.value, str) else ""
        spot.must_be(f"one of {', '.join(FORMATS)}", hint)


def _file_name(spot: ConfigNode) -> None:
    if not isinstance(spot.value, str) or not spot.value or "/" in spot.value or set(spot.value) & set("*?[{\\"):
        spot.must_be("the name of a file in the same folder, such as README.md")


def _items(spot: ConfigNode) -> None:
    if isinstance(spot.value, str):
        _fault(spot, trees.path_fault(spot.value), "path")
        return
    members = spot.known_members(("heading", "line", "directive", "under", "extent"), "setting of items")
    if not any(key in members for key in ("heading", "line", "directive")) and isinstance(spot.value, dict):
        spot.wrong("missing_key", "`items` needs `heading`, `line` or `directive`.", 'Or a path such as "$.needs[*]".')
    for key, member in members.items():
        if key == "directive":
            for place in _each(member):
                _text(place)
        elif key == "extent":
            if member.value not in {"indented", "section"}:
                member.must_be("`indented` or `section`")
        else:
            _patterns(member)


def _type(spot: ConfigNode) -> Types:
    if isinstance(spot.value, str):
        _text(spot)
        return [(spot.value, spot)]
    members = spot.known_members(("field", "map", "default"), "setting of a type")
    if not isinstance(spot.value, dict):
        return []
    for key in ("field", "map", "default"):
        if key not in members:
            spot.wrong("missing_key", f"A type out of a field needs `{key}`.", "It needs `field`, `map` and `default`.")
    found: Types = []
    if "field" in members:
        _names_of_keys(members["field"])
    defaults = _each(members["default"]) if "default" in members else []
    for place in defaults:
        _template_or_text(place)
    for place in [*_map(members.get("map")), *defaults]:
        if isinstance(place.value, str) and "{" not in place.value:
            found.append((place.value, place))
    return found


def _map(spot: ConfigNode | None) -> list[ConfigNode]:
    """Check an object of texts; return the places of its values."""
    members = spot.members() if spot else {}
    if len(members) > MAX_MEMBERS and spot:
        spot.wrong("too_many_members", f"The object has {len(members)} members; the limit is {MAX_MEMBERS}.")
        return []
    for member in members.values():
        _text(member)
    return list(members.values())


def _title(spot: ConfigNode) -> None:
    if not isinstance(spot.value, dict):
        _names_of_keys(spot)
        return
    for key, member in spot.known_members(("field", "match"), "setting of a title").items():
        (_patterns if key == "match" else _names_of_keys)(member)


def _status(spot: ConfigNode) -> None:
    if isinstance(spot.value, str):
        _text(spot)
        return
    for key, member in spot.known_members(("field", "map", "default"), "setting of a status").items():
        if key == "map":
            _map(member)
        elif key == "field":
            _names_of_keys(member)
        else:
            _text(member)


def _fields(spot: ConfigNode) -> None:
    for key, member in spot.members().items():
        if "{" in key:
            _fault(member, patterns.pattern_fault(key), "pattern")
            if member.value is not None:
                member.must_be("null, because its key is a pattern")
            continue
        if member.value is None:
            continue
        _text(member)
        if isinstance(member.value, str) and member.value in {"id", "type", "title", "status"}:
            hint = f"Use `{member.value}` of the source, beside `fields`."
            member.wrong("bad_field", f"`{member.value}` is no field that `fields` can give.", hint)


def _companion_fields(spot: ConfigNode) -> None:
    """Check the keys of the file beside, each with the field that it states."""
    for key, member in spot.members().items():
        if "{" in key:
            message = f"{shown(key)} is no key: here keys are no patterns."
            member.wrong("bad_pattern", message, "Name each key.")
        _text(member)


def _links(spot: ConfigNode) -> None:
    for name, link in spot.members().items():
        if "{" in name:
            _fault(link, patterns.pattern_fault(name), "pattern")
        listed = link.items() if isinstance(link.value, list) else [link]
        if len(listed) > MAX_PARTS:
            link.wrong("too_many_members", f"There are {len(listed)} rules; the limit is {MAX_PARTS}.")
            continue
        for rule in listed:
            _link(rule)


def _link(link: ConfigNode) -> None:
    known = {
        "edge": _edge,
        "kind": _templates,
        "id": _templates,
        "split": _text,
        "match": _patterns,
        "member": _text,
        "where": _map,
    }
    if isinstance(link.value, str):
        _edge(link)
        return
    members = link.known_members(known, "setting of a link")
    for key, member in members.items():
        if key == "split" and isinstance(member.value, str) and member.value:
            continue
        known[key](member)
    if isinstance(link.value, dict) and "edge" not in members:
        link.wrong("missing_key", "A link needs `edge`.", 'For example {"edge": "relates_to", "kind": "requires"}.')


def _template_or_text(spot: ConfigNode) -> None:
    _text(spot)
    if isinstance(spot.value, str) and "{" in spot.value:
        _fault(spot, patterns.template_fault(spot.value), "template")


def _edge(spot: ConfigNode) -> None:
    _template_or_text(spot)
    if not isinstance(spot.value, str) or "{" in spot.value:
        return
    if not spot.value.removeprefix("^").replace("_", "").isalnum():
        spot.wrong("bad_edge", f"{shown(spot.value)} is no name of an edge.", "`^` before a name turns the edge round.")


def _edges(spot: ConfigNode) -> None:
    for member in spot.members().values():
        _edge(member)


def _parts(spot: ConfigNode) -> Types:
    types: Types = []
    places = spot.items()
    if len(places) > MAX_PARTS:
        spot.wrong("too_many_members", f"There are {len(places)} parts; the limit is {MAX_PARTS}.")
        return types
    for part in places:
        known = {**_STATED, "items": _items}
        members = part.known_members(known, "setting of a part")
        for key, member in members.items():
            types += known[key](member) or []
        for key in ("items", "id", "type"):
            if key not in members and isinstance(part.value, dict):
                part.wrong("missing_key", f"A part needs `{key}`.", "It needs `items`, `id` and `type`.")
    return types


_STATED: Final[Mapping[str, Callable[[ConfigNode], Types | None]]] = {
    "id": _templates,
    "type": _type,
    "title": _title,
    "status": _status,
    "fields": _fields,
    "links": _links,
    "edges": _edges,
    "tags": _names_of_keys,
    "otherFields": _flag,
}
_SOURCE: Final[Mapping[str, Callable[[ConfigNode], Types | None]]] = {
    "glob": _globs,
    "profile": _profile,
    "name": _text,
    "ignore": _globs,
    "format": _format,
    "items": _items,
    "sheet": _text,
    "with": _file_name,
    "withFields": _companion_fields,
    "mentions": _flag,
    "mentionIds": _names_of_keys,
    "parts": _parts,
}
