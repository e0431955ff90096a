"""The extractor for manifests of symbols: the files that it reads. What one states is read in ``manifest_document``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kbcore.extract import settings
from kbcore.extract.facts import Facts, PathRule, SourceFile

NAME: Final = "manifest"
DEFAULT_PATHS: Final = tuple(
    f"{folder}symbols.{ending}" for folder in ("", "docs/") for ending in ("yaml", "yml", "json")
)


class ManifestExtractor:
    """Reads manifests of symbols at the configured paths."""

    name = NAME
    version = 3

    def path_rules(self, settings_: Mapping[str, Any]) -> Sequence[PathRule]:
        """Return the globs of the manifests."""
        return [PathRule(glob) for glob in settings.globs_of(settings_.get(settings.PATHS, DEFAULT_PATHS))]

    def extract(self, source: SourceFile, settings_: Mapping[str, Any]) -> Facts:
        """Return the symbols that a manifest states, with their links."""
        from kbcore.extract.manifest_document import read  # noqa: PLC0415 - most commands read no file

        return read(source, settings_)


EXTRACTOR: Final = ManifestExtractor()
