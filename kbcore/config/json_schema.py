"""The JSON Schema of ``.kb/config.json``, for editors: every setting with its description. Pure.

It says what has which shape. What else is wrong, such as a rule that there is not, ``settings`` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.config import sleep
from kbcore.config.settings import MEANING_MODES, MERGE_MODES, RULE_LEVELS, SHARE_MODES, WORKSPACE_KINDS
from kbcore.extract.defaults import TEXT_FIELDS
from kbcore.extract.sources import profiles
from kbcore.extract.sources.source import Source

FILE_NAME: Final = "config.schema.json"
"""The name of the file that ``kb init`` writes beside the settings."""

_Schema = dict[str, Any]
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Final[_Schema] = {"type": "string", "minLength": 1}
_NO_EXCLUSION: Final[_Schema] = {"type": "string", "pattern": "^[^!]"}
_SHARED: Final[_Schema] = {"anyOf": [_NO_EXCLUSION, {"type": "array", "items": _NO_EXCLUSION}]}
_TEXTS: Final[_Schema] = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_FLAG: Final[_Schema] = {"type": "boolean"}
_VALUE: Final[_Schema] = {"type": ["string", "number", "boolean"]}

_OF_A_SOURCE: Final[Mapping[str, str]] = {
    "glob": "Which files; `{name}`, `{name:d}` and `{name:w}` match as `*` does and name what they match.",
    "profile": "The profile whose settings hold where the entry says nothing.",
    "name": "What lists of sources call the entry.",
    "ignore": "Globs of files that are left out.",
    "format": "The format, where the ending of the files does not tell it.",
    "id": "Templates of the id; the first one that can be filled.",
    "type": "The type of the entities, or the field that it comes from.",
    "title": "Keys that have the title; the first one with a value.",
    "status": "The key that has the status, and what its values mean.",
    "fields": "A key of the document, and the field or attribute that it states; null drops it.",
    "links": "A key of the document, and the edges that its values become.",
    "edges": "Names of edges of another tool, and the edges that they mean.",
    "tags": "Keys whose values are tags.",
    "otherFields": "Whether keys that nothing else names become attributes.",
    "items": "Several entities in one file: the path of a list, or patterns of headings, lines or directives.",
    "parts": "Entities within the file of an entity.",
    "with": "The name of a file beside each that has the text of the entity.",
    "withFields": "Fields that the file beside states.",
    "sheet": "The sheet of a workbook.",
    "mentions": "Whether links in the text are edges.",
    "mentionIds": "What ids begin with that count in brackets in the text.",
}
_OF_SLEEP: Final[Mapping[str, str]] = {
    "intervalHours": "No cycle begins earlier than this after the one before.",
    "staleEventDays": "The age of an event that is stale.",
    "decayAfterDays": "The age of a link before its confidence sinks.",
    "decayFactor": "What the confidence is multiplied by.",
    "decayFloor": "What the confidence does not sink below.",
    "mostOrphans": "The most orphans that are reported.",
    "mostUnsorted": "The most unsorted elements that are reported.",
    "mostStaleEvents": "The most stale events that are reported.",
    "leastConfidence": "Links of less confidence are reported.",
    "leastMembers": "Domains of fewer members are reported.",
    "mostMembers": "Domains of more members are reported.",
    "domainOfType": "The domain of elements without one, by KIP's name of their type.",
    "domainOfTag": "The domain of elements without one, by a tag.",
}


def schema_text() -> str:
    """Return the schema as the text of a file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


@cache
def schema() -> _Schema:
    """Return the schema of a settings file."""
    of_source, definitions = _source()
    found = _object("Settings of KB for this repository.", _settings(of_source))
    return {"$schema": _DIALECT, "title": "Settings of KB", **found, "$defs": definitions}


def _settings(of_source: _Schema) -> dict[str, _Schema]:
    rule_time = (limits.MIN_RULE_TIME_S, limits.MAX_RULE_TIME_S)
    nullable = {"type": ["string", "null"], "minLength": 1}
    sources = {"type": "array", "items": of_source}
    rules = {"type": "object", "additionalProperties": {"enum": [*RULE_LEVELS]}}
    suppress = {"type": "array", "items": _suppression()}
    return {
        "$schema": _says({"type": "string"}, "Where an editor finds the schema of this file; KB does not read it."),
        "defaultBranch": _says(nullable, "The branch whose store a new branch's store is copied from."),
        "extractors": _extractors(),
        "sources": _says(sources, "Documents that other settings read; the first entry that means a file reads it."),
        "defaults": _says(
            {"type": "array", "items": _default()}, "Values of entities of some files, where the file states none."
        ),
        "rules": _says(rules, "The level of rules, by their name."),
        "ruleParams": _says(_map_of(_map_of({"anyOf": [_VALUE, {"type": "array", "items": _VALUE}]})),
                            "Values for the parameters of the project's own rules, by rule and parameter."),
        "suppress": _says(suppress, "Violations that are not reported, each with a reason."),
        "ruleTimeLimitSeconds": _number("Seconds that the SQL of one rule of the project's own may run.", *rule_time),
        "lockWaitSeconds": _number(
            "Seconds that a command waits for another one that writes to the branch.", 0, limits.MAX_LOCK_WAIT_S
        ),
        "kip": _object("Limits of commands of KIP.", {
            "rowLimit": _number("Solutions that a query may hold at once.", 1, limits.MAX_KIP_ROWS, whole=True),
            "timeLimitSeconds": _number("Seconds that a command may take.", 0, limits.MAX_KIP_TIME_S),
        }),
        "sleep": _object("When the sleep cycle is due, and what it does.", _sleep()),
        "logic": _object("The Prolog workspace.", {
            "workspace": _says({"enum": [*WORKSPACE_KINDS]}, "Where its clauses are kept."),
            "maxClauses": _number("The most clauses.", 1, limits.MAX_LOGIC_CLAUSES, whole=True),
            "timeLimitSeconds": _number("Seconds that a step of a query may take.", 0, limits.MAX_LOGIC_TIME_S),
        }),
        "share": _object("How what people and agents add gets into files that git carries.", {
            "mode": _says({"enum": [*SHARE_MODES]}, "Not at all, when somebody asks, or by each commit."),
            "merge": _says({"enum": [*MERGE_MODES]}, "Whether what clients wrote on a merged branch is taken over."),
            "actors": _says(_SHARED, "Globs of the actors whose changes are shared; none may begin with `!`."),
            "types": _says(_SHARED, "Globs of the types whose changes are shared; none may begin with `!`."),
        }),
        "search": _object("How a text is searched for.", {
            "meaning": _says({"enum": [*MEANING_MODES]}, "Whether meaning counts: if there is a model, always, never."),
        }),
        "review": _object("Whose writes are only proposed until they are accepted.", {
            "actors": _says(_SHARED, "Globs of the actors whose writes are proposed; none may begin with `!`."),
            "types": _says(_SHARED, "Globs of the types of entities and edges that this concerns."),
            "accept": _says(_SHARED, "Globs of actors who may accept, besides people at a terminal."),
        }),
        "results": _says(_TEXTS, "Globs of reports of test runs that `kb results` takes in where none is named."),
        "codeowners": _says(_FLAG, "Whether the file `CODEOWNERS` gives the owners of what states none."),
        "staged": _object("What is asked of a commit.", {
            "symbols": _says(_TEXTS, "Globs of source files that must name a requirement."),
        }),
        "fleet": _object("The fleet to which the repository belongs.", {
            "place": _says(nullable, "Where it exports to: a folder from the root, or a URL without a password."),
            "repo": _says(nullable, "Its name there, such as acme/pay; without it that of the remote."),
        }),
    }  # fmt: skip


def _extractors() -> _Schema:
    globs_of_types = _says(_map_of(_TEXTS), "Globs of the documents of each type.")
    markdown = {
        "paths": globs_of_types,
        "idFromFilename": _says(_FLAG, "A document that states no id takes its file name."),
        "titleFromHeading": _says(_FLAG, "A document that states no title takes its first heading."),
        "ignore": _says(_TEXTS, "Globs of files that state nothing."),
        "keys": _says(_map_of(_TEXT), "A key of front matter, and the key of KB that it means."),
        "mentions": _says(
            {"anyOf": [_FLAG, _TEXTS]}, "Whether links in the text are edges, or the globs of such documents."
        ),
        "mentionIds": _says(_TEXTS, "What ids begin with that count in brackets in the text."),
    }
    paths = {"paths": _says(_TEXTS, "Globs of its files.")}
    code = paths | {
        "tests": _says(_TEXTS, "Globs of files whose test functions are entities of the type `test`."),
        "ignore": _says(_TEXTS, "Globs of files that are passed over."),
    }
    scip = paths | {
        "root": _says({"type": "string"}, "The folder that paths in an index begin at; without it, that of the index."),
        "ignore": _says(_TEXTS, "Globs of files of which an index states nothing."),
    }
    own = {
        "markdown": _or_off("Markdown documents.", markdown),
        "manifest": _or_off("Lists of symbols.", paths),
        "gherkin": _or_off("Feature files.", paths),
        "code": _or_off("Source code.", code),
        "scip": _or_off("SCIP indexes of source code.", scip),
    }
    others = {"anyOf": [{"type": "object"}, {"const": False}]}
    found = {"type": "object", "properties": own, "additionalProperties": others}
    return _says(found, "The settings of each extractor, by its name; false switches it off.")


def _default() -> _Schema:
    texts = {name: _says(_TEXT, f"The {name} of an entity that states none.") for name in TEXT_FIELDS}
    members = {
        "paths": _says(_TEXTS, "Globs of the files."),
        "types": _says(_TEXTS, "Only entities of these types; all without it."),
        **texts,
        "tags": _says({"type": "array", "items": _TEXT, "minItems": 1}, "The tags of an entity that states none."),
        "attributes": _says({"type": "object"}, "Attributes, each of an entity that does not state it."),
    }
    return {**_object("Values for the entities of some files.", members), "required": ["paths"], "minProperties": 2}


def _suppression() -> _Schema:
    members = {
        "rule": _says(_TEXT, "The rule."),
        "id": _says(_TEXT, "The entity or edge."),
        "paths": _says(_TEXTS, "Globs of files."),
        "reason": _says(_TEXT, "Why it is accepted."),
    }
    either = [{"required": ["id"]}, {"required": ["paths"]}]
    return {**_object("A violation that is accepted.", members), "required": ["rule", "reason"], "oneOf": either}


def _sleep() -> dict[str, _Schema]:
    found: dict[str, _Schema] = {}
    for field, key in zip(sleep.SleepSettings.__struct_fields__, _OF_SLEEP, strict=True):
        if field in sleep.BOUNDS:
            whole = isinstance(getattr(sleep.DEFAULT, field), int)
            found[key] = _number(_OF_SLEEP[key], *sleep.BOUNDS[field], whole=whole)
        else:
            found[key] = _says(_map_of(_TEXT), _OF_SLEEP[key])
    return found


def _source() -> tuple[_Schema, dict[str, _Schema]]:
    """Return the schema of an entry of ``sources``, and the definitions that it refers to."""
    [of_source], definitions = msgspec.json.schema_components([Source], ref_template="#/$defs/{name}")
    for name in ("Source", "Part"):
        members = definitions[name]["properties"]
        for key, member in members.items():
            members[key] = _says(member, _OF_A_SOURCE[key])
    whole = definitions["Source"]
    whole["properties"]["profile"]["enum"] = [*profiles.NAMES]
    whole["anyOf"] = [{"required": ["profile"]}, {"required": ["glob", "id"]}]
    definitions["Part"]["required"] = ["items", "id", "type"]
    return of_source, {name: _without_defaults(one) for name, one in definitions.items()}


def _without_defaults(value: Any) -> Any:
    """Return a schema without defaults that are empty: an editor would offer to write them."""
    if isinstance(value, dict):
        empty: tuple[Any, ...] = ("", [], {})
        return {key: _without_defaults(one) for key, one in value.items() if key != "default" or one not in empty}
    return [_without_defaults(one) for one in value] if isinstance(value, list) else value


def _says(of: _Schema, description: str) -> _Schema:
    return {"description": description, **{key: value for key, value in of.items() if key != "description"}}


def _object(description: str, members: dict[str, _Schema]) -> _Schema:
    return {"description": description, "type": "object", "properties": members, "additionalProperties": False}


def _or_off(description: str, members: dict[str, _Schema]) -> _Schema:
    return {"description": description, "anyOf": [_object(description, members), {"const": False}]}


def _map_of(value: _Schema) -> _Schema:
    return {"type": "object", "additionalProperties": value}


def _number(description: str, least: float, most: float, *, whole: bool = False) -> _Schema:
    kind = "integer" if whole else "number"
    return {"description": description, "type": kind, "minimum": least, "maximum": most}
