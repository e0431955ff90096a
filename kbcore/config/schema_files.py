"""The project's types, ``.kb/schema/*.yaml``: read from texts into one schema on top of KB's own. Pure.

KB's own types are strict: a project adds attributes, statuses, a default status and a description to them,
and values to an attribute that has a list of them. It sets for KB's edges whether they may form cycles and what
a change affects; ends and required fields stay. All problems are found at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from kbcore import limits
from kbcore.config import schema_members
from kbcore.errors import Problem
from kbcore.errors.remedies import kb
from kbcore.model.schema import ANY, CORE, LATER, LINK, NOTE, Attribute, EdgeType, EntityType, Impact, Schema
from kbcore.model.schema_text import is_core_schema
from kbcore.text.validator import ConfigNode, read_yaml, refuse, shown

CORE_FILE: Final = "core.yaml"
"""The name of the file that shows KB's own types; it is never read, only compared."""

RESERVED_NAMES: Final = frozenset({ANY, LINK, "edge"})

_What = Literal["entity", "edge"]
_NAMES: Final[Mapping[_What, tuple[re.Pattern[str], str]]] = {
    "entity": (
        re.compile(r"[a-z][a-z0-9_]*|[A-Z][A-Za-z0-9]*"),
        "small letters, digits and _, or UpperCamelCase",
    ),
    "edge": (re.compile(r"[a-z][a-z0-9_]*"), "small letters, digits and _"),
}
_KEYS: Final[Mapping[_What, tuple[str, ...]]] = {
    "entity": ("description", "required", "statusDefault", "statuses", "attributes"),
    "edge": ("from", "to", "acyclic", "kind", "impact", "description"),
}
_OPEN_IN_CORE: Final[Mapping[_What, frozenset[str]]] = {
    "entity": frozenset({"description", "statusDefault", "statuses", "attributes"}),
    "edge": frozenset({"acyclic", "impact"}),
}
_SECTIONS: Final[Mapping[str, _What]] = {"entities": "entity", "edges": "edge"}


def load_schema(files: Mapping[str, str]) -> Schema:
    """Return KB's own schema with what the files add.

    ``files`` maps paths, as messages shall name them, to texts.

    Raises:
        InvalidConfig: with every problem of every file, each with file and line.
    """
    loader = _Loader()
    for path in sorted(files):
        if path.rpartition("/")[2] == CORE_FILE:
            _compare_core(path, files[path], loader.problems)
        else:
            loader.read(path, files[path])
    loader.check_ends()
    loader.check_statuses()
    refuse(loader.problems)
    return loader.schema()


def _compare_core(path: str, text: str, problems: list[Problem]) -> None:
    if is_core_schema(text.removeprefix("\ufeff").replace("\r\n", "\n")):
        return
    message = f"{CORE_FILE} is only there to be read, and is not as KB wrote it: it was changed."
    hint = (
        f"Move your additions to another file there, such as project.yaml, and {kb('init', lead='run')}: it writes "
        f"{CORE_FILE} again."
    )
    problems.append(Problem("$", "core_schema_changed", message, hint, path, 1))


def _listed(spot: ConfigNode | None) -> dict[str, ConfigNode]:
    """Return the members of an object that may be left empty."""
    return spot.members() if spot and spot.value is not None else {}


class _Loader:
    """The definitions of all files read so far, on top of KB's own, and what is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.entities: dict[str, EntityType] = dict(CORE.entities)
        self.edges: dict[str, EdgeType] = dict(CORE.edges)
        self.first: dict[tuple[str, ...], ConfigNode] = {}
        self.ends: list[ConfigNode] = []
        self.statuses: dict[str, ConfigNode] = {}

    def schema(self) -> Schema:
        """Return KB's own types as KB lists them, then the project's by name."""
        entities = [*CORE.entities, *sorted(self.entities.keys() - CORE.entities.keys())]
        edges = [*CORE.edges, *sorted(self.edges.keys() - CORE.edges.keys())]
        return Schema({name: self.entities[name] for name in entities}, {name: self.edges[name] for name in edges})

    def read(self, path: str, text: str) -> None:
        root = read_yaml(text, path, self.problems)
        if root is None or root.value is None:
            return
        for section, spot in root.known_members(_SECTIONS, "part of a schema file").items():
            what = _SECTIONS[section]
            for name, definition in _listed(spot).items():
                if self.may_define(what, name, definition):
                    members = self.members(what, name, definition)
                    if what == "entity":
                        self.entity(name, members, definition)
                    else:
                        self.edge(name, members, definition)

    def may_define(self, what: _What, name: str, spot: ConfigNode) -> bool:
        """Tell whether a definition of this name is to be read."""
        grammar, words = _NAMES[what]
        if name in RESERVED_NAMES:
            spot.wrong("reserved_name", f"{name!r} has a meaning of its own in KB.", "Choose another name.")
        elif len(name) > limits.MAX_NAME_CHARS or not grammar.fullmatch(name):
            hint = f"Use {words}; a letter first, and {limits.MAX_NAME_CHARS} characters at most."
            spot.wrong("bad_name", f"{shown(name)} cannot be the name of an {what} type.", hint)
        else:
            return _is_core(what, name) or self.is_first(f"{what} type {name!r}", spot, what, name)
        return False

    def is_first(self, words: str, spot: ConfigNode, *key: str) -> bool:
        """Keep where something is said; what is said twice is a problem that names both places."""
        first = self.first.setdefault(key, spot)
        if first is not spot:
            message = f"The {words} is defined twice: at {first.source} and at {spot.source}."
            spot.wrong("defined_twice", message, "Keep one of the two.")
        return first is spot

    def members(self, what: _What, name: str, spot: ConfigNode) -> dict[str, ConfigNode]:
        """Return what a definition says; of KB's own types only what adds to them."""
        if spot.value is None:
            return {}
        found = spot.known_members(_KEYS[what], f"key of an {what} type")
        if not _is_core(what, name):
            return found
        added = {}
        for key, member in found.items():
            if key not in _OPEN_IN_CORE[what]:
                hint = f"Leave `{key}` out, or define a type of your own."
                member.wrong("core_type", f"`{key}` of {name!r}, which is KB's own, cannot be changed.", hint)
            elif key == "attributes" or self.is_first(f"`{key}` of {name!r}", member, what, name, key):
                added[key] = member
        return added

    def entity(self, name: str, found: Mapping[str, ConfigNode], spot: ConfigNode) -> None:
        known = self.entities.get(name) if _is_core("entity", name) else None
        base = known or EntityType(name, origin=spot.file)
        attributes = _listed(found.get("attributes"))
        changes: dict[str, Any] = {"attributes": {**base.attributes, **self.attributes(name, attributes)}}
        if "description" in found:
            changes["description"] = schema_members.text(found["description"])
        if "required" in found:
            changes["required"] = schema_members.required(found["required"], attributes)
        if "statuses" in found:
            changes["statuses"] = schema_members.labels(found["statuses"])
            if not known:
                changes["status_default"] = next(iter(changes["statuses"]), base.status_default)
        if "statusDefault" in found:
            changes["status_default"] = schema_members.label(found["statusDefault"])
        self.statuses[name] = found.get("statusDefault") or found.get("statuses") or self.statuses.get(name, spot)
        self.entities[name] = msgspec.structs.replace(base, **changes)

    def attributes(self, name: str, found: Mapping[str, ConfigNode]) -> dict[str, Any]:
        """Return the attributes that one definition adds to a type."""
        added = {}
        core = CORE.entities[name] if _is_core("entity", name) else None
        for key, spot in found.items():
            if core and key in core.attributes and key not in LATER.get(name, ()):
                added[key] = self.more_values(name, key, core.attributes[key], spot)
            elif schema_members.may_name_attribute(key, spot) and self.is_first(
                f"attribute {key!r} of {name!r}", spot, "attribute", name, key
            ):
                added[key] = schema_members.attribute(spot)
        return added

    def more_values(self, name: str, key: str, core: Attribute, spot: ConfigNode) -> Attribute:
        """Return an attribute of KB's own with the values that a project adds to its list; all else stays."""
        known = self.entities[name].attributes[key]
        if not core.values:
            message = f"The attribute {key!r} of {name!r} is KB's own and cannot be changed."
            spot.wrong("core_type", message, "Leave it out, or add an attribute of another name.")
            return known
        found = spot.known_members(schema_members.ATTRIBUTE_KEYS, "key of an attribute")
        for member in found.keys() - {"values"}:
            message = f"`{member}` of the attribute {key!r} of {name!r}, which is KB's own, cannot be changed."
            found[member].wrong(
                "core_type", message, f"Leave `{member}` out; `values` adds to {', '.join(core.values)}."
            )
        if "values" not in found or not self.is_first(f"list of `values` of {key!r} of {name!r}", spot, name, key):
            return known
        values = dict.fromkeys((*core.values, *schema_members.labels(found["values"])))
        return msgspec.structs.replace(core, values=tuple(values))

    def edge(self, name: str, found: Mapping[str, ConfigNode], spot: ConfigNode) -> None:
        flags = {key: schema_members.flag(found[key]) for key in ("acyclic", "kind") if key in found}
        if _is_core("edge", name):
            known = self.edges[name]
            impact = schema_members.impact(found["impact"]) if "impact" in found else known.impact
            is_acyclic = flags.get("acyclic", known.acyclic)
            self.edges[name] = msgspec.structs.replace(known, acyclic=is_acyclic, impact=impact)
            return
        ends: dict[str, tuple[str, ...]] = {}
        for key in ("from", "to"):
            if key in found:
                ends[key] = schema_members.labels(found[key])
                self.ends.append(found[key])
            else:
                hint = f"Name entity types, e.g. `{key}: [req]`; `any` is every entity, `link` an edge."
                spot.wrong("missing_key", f"The edge type {name!r} has no `{key}`.", hint)
        self.edges[name] = EdgeType(
            name,
            ends.get("from", ()),
            ends.get("to", ()),
            schema_members.text(found["description"]) if "description" in found else "",
            acyclic=flags.get("acyclic", False),
            needs_kind=flags.get("kind", False),
            impact=_impact(found, needs_kind=flags.get("kind", False)),
            origin=spot.file,
        )

    def check_ends(self) -> None:
        """Refuse ends that no file defines; the order of definitions does not matter."""
        known = {*self.entities, ANY, LINK}
        for spot in self.ends:
            for end in spot.items() if isinstance(spot.value, list) else [spot]:
                if isinstance(end.value, str) and end.value not in known:
                    end.unknown("unknown_type", "entity type", end.value, known)

    def check_statuses(self) -> None:
        """Refuse a default status that is none of the statuses, whichever files say the two."""
        for name, spot in self.statuses.items():
            entity = self.entities[name]
            if entity.statuses and entity.status_default and entity.status_default not in entity.statuses:
                default = shown(entity.status_default)
                message = f"The default status {default} of {name!r} is none of its `statuses`."
                spot.wrong("bad_status", message, "Add it to `statuses`, or set another `statusDefault`.")


def _impact(found: Mapping[str, ConfigNode], *, needs_kind: bool) -> Impact:
    """Return which end a change affects; what an edge with a kind means is open, so both."""
    if "impact" in found:
        return schema_members.impact(found["impact"])
    return "both" if needs_kind else "from"


def _is_core(what: _What, name: str) -> bool:
    """Tell whether a project only adds to a type of this name. One that defines ``note`` has a type of its own."""
    return name in (CORE.entities.keys() - {NOTE} if what == "entity" else CORE.edges)
