"""The settings file as text: the one that ``kb init`` writes, and what one says by the names of its settings. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from kbcore.config.json_schema import FILE_NAME
from kbcore.config.settings import DEFAULT, SCHEMA_KEY
from kbcore.extract import gherkin, manifest, markdown
from kbcore.extract.code import extractor as code
from kbcore.extract.scip import extractor as scip

_LINE_CHARS: Final = 80
_DEPTHS: Final = {"extractors": 3, "ruleParams": 3}
"""The number of keys that name a setting; otherwise two where an object is, and one."""


class Setting(msgspec.Struct, frozen=True):
    """One setting: its keys joined by dots, its value, and whether the file states it."""

    name: str
    value: Any
    is_stated: bool


def settings_in(text: str | None) -> list[Setting]:
    """Return the settings that hold with a valid file: those of the file, and the defaults of the others, by name.

    None is for no file. What a file says to an extractor replaces its defaults key by key.
    """
    stated = dict(_flat(json.loads(text))) if text else {}
    found = {name: Setting(name, value, is_stated=True) for name, value in stated.items()}
    for name, value in _flat(json.loads(default_config_text())):
        if name not in found and not any(name.startswith(f"{other}.") for other in stated):
            found[name] = Setting(name, value, is_stated=False)
    return sorted(found.values(), key=lambda one: one.name)


def groups() -> list[str]:
    """Return the names under which settings with names of their own are kept, such as ``rules``."""
    return [name for name, value in json.loads(default_config_text()).items() if isinstance(value, dict)]


def _flat(root: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    def below(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
        if depth and isinstance(value, dict):
            for key, member in value.items():
                yield from below(f"{name}.{key}", member, depth - 1)
        else:
            yield name, value

    for key, value in root.items():
        if key == SCHEMA_KEY:
            continue
        yield from below(key, value, _DEPTHS.get(key, 2) - 1)


def default_config_text(default_branch: str | None = None) -> str:
    """Return the file that ``kb init`` writes: every setting with its default, one member to a line."""
    documents = {"paths": markdown.DEFAULT_PATHS, "idFromFilename": False, "titleFromHeading": True}
    extractors = {
        markdown.NAME: documents,
        manifest.NAME: {"paths": manifest.DEFAULT_PATHS},
        gherkin.NAME: {"paths": []},
        code.NAME: {"paths": [], "tests": [], "ignore": []},
        scip.NAME: {"paths": [], "ignore": []},
    }
    kip = {"rowLimit": DEFAULT.kip.rows, "timeLimitSeconds": _short(DEFAULT.kip.time_s)}
    settings = {
        SCHEMA_KEY: FILE_NAME,
        "defaultBranch": default_branch,
        "extractors": extractors,
        "rules": DEFAULT.rules,
        "ruleParams": DEFAULT.rule_params,
        "ruleTimeLimitSeconds": _short(DEFAULT.rule_time_s),
        "lockWaitSeconds": _short(DEFAULT.lock_wait_s),
        "kip": kip,
        "sleep": {name: _short(value) for name, value in msgspec.to_builtins(DEFAULT.sleep).items()},
        "logic": {
            "workspace": DEFAULT.logic.workspace,
            "maxClauses": DEFAULT.logic.clauses,
            "timeLimitSeconds": _short(DEFAULT.logic.time_s),
        },
        "share": {name: _short(value) for name, value in msgspec.to_builtins(DEFAULT.share).items()},
        "search": {"meaning": DEFAULT.search_meaning},
        "review": {name: list(value) for name, value in msgspec.to_builtins(DEFAULT.review).items()},
        "results": list(DEFAULT.results),
        "codeowners": DEFAULT.code_owners,
        "staged": {"symbols": list(DEFAULT.staged_symbols)},
        "fleet": msgspec.to_builtins(DEFAULT.fleet),
    }
    return _indented(settings, "") + "\n"


def is_default_config(text: str, default_branch: str | None) -> bool:
    """Return whether a file says what ``default_config_text`` writes, with an address of its schema or without one."""
    found, written = json.loads(text), json.loads(default_config_text(default_branch))
    return {**found, SCHEMA_KEY: ""} == {**written, SCHEMA_KEY: ""}


def _indented(value: Any, indent: str) -> str:
    inner = indent + "  "
    line = json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping) and value:
        opener, closer = "{}"
        members = [f"{json.dumps(key)}: {_indented(member, inner)}" for key, member in value.items()]
    elif isinstance(value, list | tuple) and len(line) > _LINE_CHARS:
        opener, closer = "[]"
        members = [_indented(member, inner) for member in value]
    else:
        return line
    listed = ",\n".join(inner + member for member in members)
    return f"{opener}\n{listed}\n{indent}{closer}"


def _short(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
