"""The settings file that ``kb init`` writes: every setting with its default. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kbcore.config import DEFAULT
from kbcore.extract import gherkin, manifest, markdown

_LINE_CHARS: Final = 80


def default_config_text(default_branch: str | None = None) -> str:
    """Return the file that ``kb init`` writes: every setting with its default, one member to a line."""
    documents = {"paths": markdown.DEFAULT_PATHS, "idFromFilename": False, "titleFromHeading": True}
    extractors = {
        markdown.NAME: documents,
        manifest.NAME: {"paths": manifest.DEFAULT_PATHS},
        gherkin.NAME: {"paths": []},
    }
    kip = {"rowLimit": DEFAULT.kip.rows, "timeLimitSeconds": _short(DEFAULT.kip.time_s)}
    settings = {
        "defaultBranch": default_branch,
        "extractors": extractors,
        "rules": DEFAULT.rules,
        "ruleParams": DEFAULT.rule_params,
        "ruleTimeLimitSeconds": _short(DEFAULT.rule_time_s),
        "lockWaitSeconds": _short(DEFAULT.lock_wait_s),
        "kip": kip,
        "sleep": {name: _short(value) for name, value in msgspec.to_builtins(DEFAULT.sleep).items()},
        "staged": {"symbols": list(DEFAULT.staged_symbols)},
    }
    return _indented(settings, "") + "\n"


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
