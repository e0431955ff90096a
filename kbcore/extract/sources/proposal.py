"""A proposal: settings for a set of documents, and what they give of its files. Pure.

The settings are tried on the files, so that what a proposal says of entities and edges is what a sync would make of
them.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.extract import gherkin, markdown, registry
from kbcore.extract.changes import file_kind
from kbcore.extract.code import extractor as code
from kbcore.extract.facts import Extractor, Facts, SourceFile, StatedLink
from kbcore.extract.scip import extractor as scip
from kbcore.extract.settings import PATHS
from kbcore.extract.sources import extractor as sources
from kbcore.extract.sources.check import resolved
from kbcore.extract.sources.document import INDEX
from kbcore.text.globs import matches

TRIED: Final = 1000
"""Files on which proposed settings are tried in all; of more, the numbers are estimates."""
_MOST_STATUSES: Final = 50
"""Of more, they are no words of a list."""
_SHOWN: Final = 2

Read = Callable[[str, int], bytes | None]
"""Returns so many bytes of a file from its beginning; None where it cannot be read."""


class Sample(msgspec.Struct, frozen=True):
    """An entity that a proposal would give, and its edges as ``type target``."""

    path: str
    id: str
    type: str
    title: str
    edges: tuple[str, ...]


class NotRead(msgspec.Struct, frozen=True):
    """Files that would give no entity for one reason: how many there are, the first one, and what is said of it."""

    code: str
    count: int
    path: str
    message: str


class SettingsProposal(msgspec.Struct, frozen=True):
    """Settings for a set of documents, and what they would give.

    ``setting`` is ``sources``, to whose list ``value`` is added, or a list of globs of an extractor, to which the globs
    in ``value`` are added.
    """

    name: str
    setting: str
    value: dict[str, Any] | list[str]
    files: int = 0
    entities: int = 0
    edges: int = 0
    is_estimate: bool = False
    samples: tuple[Sample, ...] = ()
    not_read: tuple[NotRead, ...] = ()


class TriedExtractor(msgspec.Struct, frozen=True):
    """An extractor with settings that are tried, on so many files at most."""

    extractor: Extractor
    settings: Mapping[str, Any]
    read: Read
    most: int

    def facts(self, path: str) -> Facts:
        """Return the facts of a file with the settings; none of a file that cannot be read."""
        data = self.read(path, file_kind(path).most_bytes)
        rules = ((one.glob, one.type) for one in self.extractor.path_rules(self.settings))
        kind = next((type_ for glob, type_ in rules if type_ and matches(path, [glob])), None)
        return Facts() if data is None else registry.run(self.extractor, SourceFile(path, data, kind), self.settings)


def with_one_spelling(
    proposal: SettingsProposal, settings: Mapping[str, Any], statuses: Mapping[str, int]
) -> SettingsProposal:
    """Return a proposal whose settings give each status one spelling, where the documents differ in capitals alone."""
    spellings: dict[str, list[str]] = {}
    for status in sorted(statuses, key=lambda one: (-statuses[one], one != one.lower(), one)):
        spellings.setdefault(status.casefold(), []).append(status)
    rule = settings.get("status", "status")
    has_several = any(len(found) > 1 for found in spellings.values())
    is_known = isinstance(rule, dict) and bool(rule.get("map"))
    if not isinstance(proposal.value, dict) or not has_several or is_known or len(spellings) > _MOST_STATUSES:
        return proposal
    one_of_each = {found[0]: found[0] for found in spellings.values()}
    stated = {**rule, "map": one_of_each} if isinstance(rule, dict) else {"field": rule, "map": one_of_each}
    return msgspec.structs.replace(proposal, value={**proposal.value, "status": stated})


def with_results(
    proposal: SettingsProposal, trial: TriedExtractor, files: Sequence[str]
) -> tuple[SettingsProposal, Mapping[str, int]]:
    """Return a proposal with what its settings give of its files, or of some of them, and how often each status is."""
    ids: set[str] = set()
    of_path: dict[str, str] = {}
    links: list[StatedLink] = []
    samples: list[Sample] = []
    not_read: dict[str, NotRead] = {}
    statuses: Counter[str] = Counter()
    chosen = spread(files, trial.most)
    for path in chosen:
        facts = trial.facts(path)
        own = [one for one in facts.entities if not one.is_part]
        links += facts.links
        repeated = [one.id for one in own if one.id in ids]
        ids |= {one.id for one in own}
        statuses.update(str(one.fields["status"]) for one in own if one.fields.get("status"))
        of_path.update({path: own[0].id} if own else {})
        if len(samples) < _SHOWN and own and not repeated:
            samples.append(_sample(path, facts))
        reason = _reason(facts, bool(own), repeated)
        if reason:
            code, message = reason
            before = not_read.get(code) or NotRead(code, 0, path, message)
            not_read[code] = msgspec.structs.replace(before, count=before.count + 1)
    edges = len(_edges(links, of_path))
    scale = len(files) / len(chosen) if chosen else 1
    tried = msgspec.structs.replace(
        proposal,
        files=len(files),
        entities=round(len(ids) * scale),
        edges=round(edges * scale),
        is_estimate=len(chosen) < len(files),
        samples=tuple(samples),
        not_read=tuple(msgspec.structs.replace(one, count=round(one.count * scale)) for one in not_read.values()),
    )
    return tried, statuses


def _edges(links: Iterable[StatedLink], of_path: Mapping[str, str]) -> set[tuple[str, str, str, str]]:
    """Return the edges that links become.

    One of running text counts where it leads to an entity of these files and nothing else links the two.
    """
    found: set[tuple[str, str, str, str]] = set()
    stated: set[frozenset[str]] = set()
    for link in sorted(links, key=lambda one: one.in_text):
        end = of_path.get(link.target, link.target) if link.is_path else link.target
        both = frozenset({end, link.subject})
        if link.in_text and (link.target not in of_path or both in stated):
            continue
        if not link.in_text:
            stated.add(both)
        ends = (end, link.subject) if link.reverse else (link.subject, end)
        found.add((link.type or "", link.kind, *ends))
    return found


def _reason(facts: Facts, has_entity: bool, repeated: Sequence[str]) -> tuple[str, str] | None:
    """Return why a file gives no entity, or no new one; None where it does."""
    if repeated:
        return "id_in_use", f"another file has the id `{repeated[0]}`"
    if has_entity or any(one.is_part for one in facts.entities) or any(one.is_of_others for one in facts.links):
        return None
    worst = next(
        (one for level in ("error", "warning", "note") for one in facts.problems if one.severity == level), None
    )
    return (worst.code, worst.message) if worst else ("no_entity", "it states no entity")


def _sample(path: str, facts: Facts) -> Sample:
    entity = next(one for one in facts.entities if not one.is_part)
    edges = [
        f"{'^' if link.reverse else ''}{link.type or 'links to'} {link.target}"
        for link in facts.links
        if link.subject == entity.id and not link.in_text
    ]
    return Sample(path, entity.id, entity.type, str(entity.fields.get("title", "")), tuple(edges[: 2 * _SHOWN]))


def of_setting(
    proposal: SettingsProposal, value: dict[str, Any] | list[str], paths: Iterable[str], read: Read
) -> SettingsProposal:
    """Return what the setting of a proposal gives with another value, of the files among these paths that it means."""
    extractor: Extractor = sources.EXTRACTOR
    if isinstance(value, dict):
        settings: Mapping[str, Any] = resolved(value)
    elif proposal.setting.startswith("extractors.markdown."):
        extractor, settings = markdown.EXTRACTOR, {"paths": {proposal.setting.rpartition(".")[2]: value}}
    elif proposal.setting.startswith("extractors.code."):
        extractor, settings = code.EXTRACTOR, {proposal.setting.rpartition(".")[2]: value}
    elif proposal.setting == "extractors.scip.paths":
        extractor, settings = scip.EXTRACTOR, {PATHS: value}
    else:
        extractor, settings = gherkin.EXTRACTOR, {"paths": value}
    globs = [rule.glob for rule in extractor.path_rules(settings)]
    own = [path for path in paths if matches(path, globs)]
    files = [path for path in own if not INDEX.fullmatch(posixpath.basename(path))] or own
    blank = SettingsProposal(proposal.name, proposal.setting, value)
    return with_results(blank, TriedExtractor(extractor, settings, read, TRIED), files)[0]


def spread(names: Sequence[str], most: int) -> list[str]:
    """Return so many names at most, from the beginning to the end."""
    if len(names) <= most:
        return list(names)
    return [names[at * (len(names) - 1) // (most - 1)] for at in range(most)]
