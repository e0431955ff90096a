"""The extractors in force in a worktree, with their settings and with what the schema and the branch define."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from kbcore.errors import Problem
from kbcore.errors.remedies import kb
from kbcore.extract import changes, registry
from kbcore.extract.code import extractor as code
from kbcore.extract.defaults import DEFAULTS
from kbcore.extract.facts import Extractor
from kbcore.extract.scip import extractor as scip
from kbcore.extract.settings import EDGE_NAMES
from kbcore.extract.sources import extractor as sources
from kbcore.model.concepts import PREDICATE, VOCABULARY
from kbcore.model.schema import Schema
from kbcore.store.kb_folder import KB
from kbcore.store.settings_files import CONFIG
from kbcore.store.workspace import Workspace
from kbcore.sync import wanted_files
from kbcore.sync.change_sources import CHANGE_SETTINGS
from kbcore.sync.wanted_files import ActiveExtractor

if TYPE_CHECKING:
    from kbcore.view.view import View  # it imports duckdb, and who only asks for what is wanted needs none

SETTINGS: Final = f"{KB}/{CONFIG}"
MISSING_CONFIG: Final = "missing_config"
_NO_CONFIG: Final = Problem(
    "$",
    MISSING_CONFIG,
    f"{SETTINGS} is missing, so KB's defaults apply.",
    f"Commit the project's own, or {kb('init', lead='run')} to write one.",
)

AT_ITS_FILE: Final = {MISSING_CONFIG: "the file is missing, so KB's defaults apply."}
"""The message of a fault, by its code, where the name of the file is in front of it."""


def extractors_of(workspace: Workspace) -> tuple[ActiveExtractor, ...]:
    """Return the extractors in force with their settings. Raises ``InvalidConfig``."""
    return extractors_and_faults(workspace)[0]


def document_extractors(workspace: Workspace) -> tuple[ActiveExtractor, ...]:
    """Return the extractors in force of what people write: all but that of change files. Raises ``InvalidConfig``."""
    return tuple(want for want in extractors_of(workspace) if want.extractor is not changes.EXTRACTOR)


def settings_faults(workspace: Workspace) -> list[Problem]:
    """Return why settings are not all of those of the project, or extractors of theirs or of packages cannot be used.

    Raises: ``InvalidConfig``.
    """
    return extractors_and_faults(workspace)[1]


def extractors_and_faults(workspace: Workspace) -> tuple[tuple[ActiveExtractor, ...], list[Problem]]:
    """Return the extractors in force, and what ``settings_faults`` returns. Raises ``InvalidConfig``."""
    config = workspace.config
    loaded = registry.load(config.switched_off)
    wants = _active(loaded.usable, config.extractors, config.sources, config.defaults, workspace.schema)
    faults = [*loaded.problems, *(want.fault for want in wants if want.fault is not None)]
    broken = {one.path for one in faults}
    faults += [
        one for one in map(registry.not_installed, config.extractors.keys() - loaded.usable) if one.path not in broken
    ]
    return tuple(wants), [*settings_missing(workspace), *faults]


class _Latest(NamedTuple):
    """The extractors that were made of settings, and these settings: none of it changes afterwards."""

    usable: Mapping[str, Extractor]
    settings: Mapping[str, Mapping[str, Any]]
    sources: Sequence[Mapping[str, Any]]
    defaults: Sequence[Mapping[str, Any]]
    schema: Schema
    wants: Sequence[ActiveExtractor]


_LATEST: Final[list[_Latest]] = []
"""The one of the last call, for the next one: a server asks for it with each."""


def _active(
    usable: Mapping[str, Extractor],
    settings: Mapping[str, Mapping[str, Any]],
    entries: Sequence[Mapping[str, Any]],
    defaults: Sequence[Mapping[str, Any]],
    schema: Schema,
) -> Sequence[ActiveExtractor]:
    """Return the extractors with these settings, one for each entry of ``sources`` first. Raises ``InvalidConfig``."""
    for known in _LATEST:
        is_so = known.schema is schema and known.usable == usable
        is_so = is_so and known.settings == settings and known.sources == entries and known.defaults == defaults
        # A package may come or go at any time.
        if is_so and not any(want.globs and registry.missing_package(want.extractor) for want in known.wants):
            return known.wants
    meaning = msgspec.json.encode(schema, order="deterministic")
    names: dict[str, Any] = {EDGE_NAMES: sorted(schema.edges), **({DEFAULTS: list(defaults)} if defaults else {})}
    listed: list[tuple[Extractor, Mapping[str, Any]]] = [(sources.EXTRACTOR, entry) for entry in entries]
    listed += [(extractor, _settings_of(extractor, usable, settings)) for extractor in usable.values()]
    wants = wanted_files.activate(listed, names, meaning)
    wants += [change_file_extractor()]
    _LATEST[:] = (
        [] if any(want.fault for want in wants) else [_Latest(usable, settings, entries, defaults, schema, wants)]
    )
    return wants


def _settings_of(
    extractor: Extractor, usable: Mapping[str, Extractor], settings: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return the settings of an extractor; an index states no symbols of files that are read as source code."""
    own = settings.get(extractor.name, {})
    of_code = settings.get(code.NAME, {}) if code.NAME in usable else {}
    return {**own, scip.OF_CODE: of_code} if extractor is scip.EXTRACTOR and of_code else own


def change_file_extractor() -> ActiveExtractor:
    """Return the extractor of change files, which has no settings, and reads them the same whatever the schema is."""
    return wanted_files.activate([(changes.EXTRACTOR, {})], CHANGE_SETTINGS, b"")[0]


def settings_missing(workspace: Workspace) -> list[Problem]:
    """Return that a project with settings has no configuration, if that is so. Raises: ``InvalidConfig``."""
    return [_NO_CONFIG] if workspace.lacks_config() else []


def as_defined(wants: Sequence[ActiveExtractor], view: View) -> tuple[ActiveExtractor, ...]:
    """Return extractors as a branch uses them: where it defines types and predicates, these are known in files too.

    Files are then read as if by other extractors: each is looked at again when a definition comes or goes.
    """
    from kbcore.view.branch_definitions import definitions  # noqa: PLC0415 - its package imports duckdb, as above

    own = [one for one in definitions(view.definitions().values()) if (one.type, one.name) not in VOCABULARY]
    if not own:
        return tuple(wants)
    names = {one.name for one in own if one.type == PREDICATE}
    meaning = msgspec.json.encode([(one.type, one.name, one.attributes.get("acyclic") is True) for one in own])
    return tuple(wanted_files.knowing(want, {EDGE_NAMES: names}, meaning) for want in wants)
