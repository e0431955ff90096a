"""The extractor of one entry of ``sources``: its files, and the facts that one of them states. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from kbcore.extract import settings
from kbcore.extract.facts import Facts, PathRule, SourceFile
from kbcore.extract.sources import patterns
from kbcore.extract.sources.source import Source, source_of, texts

NAME: Final = "sources"


class SourceExtractor:
    """Reads the files of one entry of ``sources``; its settings are the entry, with those of its profile."""

    name = NAME
    version = 1

    def path_rules(self, settings_: Mapping[str, Any]) -> Sequence[PathRule]:
        """Return the globs of the entry, and those of the files that lie beside."""
        source = _source(settings_)
        rules = [PathRule(patterns.plain_glob(glob)) for glob in texts(source.glob)]
        beside = [f"{folder}/{source.with_}" if folder else source.with_ for folder in _folders(source)]
        return [*rules, *(PathRule(glob) for glob in dict.fromkeys(beside) if source.with_)]

    def extract(self, source: SourceFile, settings_: Mapping[str, Any]) -> Facts:
        """Return the entities and edges that a file states by the rules of the entry."""
        from kbcore.extract.fields import CORE_EDGES  # noqa: PLC0415 - most commands read no file
        from kbcore.extract.sources.document import read  # noqa: PLC0415 - as above

        return read(source, _source(settings_), frozenset(settings_.get(settings.EDGE_NAMES, CORE_EDGES)))


EXTRACTOR: Final = SourceExtractor()


def _source(settings_: Mapping[str, Any]) -> Source:
    own = {key: value for key, value in settings_.items() if key != settings.EDGE_NAMES}
    return _known_source(msgspec.json.encode(own))  # their order matters: the first key of a field counts


@lru_cache(maxsize=256)
def _known_source(text: bytes) -> Source:
    return source_of(msgspec.json.decode(text))


def _folders(source: Source) -> Iterator[str]:
    """Yield the folders of the globs of a source."""
    for glob in texts(source.glob):
        yield patterns.plain_glob(glob).rpartition("/")[0]
