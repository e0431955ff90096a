"""The extractor for Markdown: the files that it reads. What one states is read in ``markdown_document``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kbcore.extract import settings
from kbcore.extract.facts import Facts, PathRule, SourceFile

NAME: Final = "markdown"
DEFAULT_PATHS: Final[Mapping[str, tuple[str, ...]]] = {
    "req": ("docs/requirements/**/*.md",),
    "scenario": ("docs/scenarios/**/*.md",),
    "test": ("docs/tests/**/*.md",),
    "adr": ("docs/adr/**/*.md", "docs/decisions/**/*.md"),
    "flag": ("docs/flags/**/*.md",),
    "event": ("docs/events/**/*.md",),
}


class MarkdownExtractor:
    """Reads Markdown documents in the configured folders."""

    name = NAME
    version = 4

    def path_rules(self, settings_: Mapping[str, Any]) -> Sequence[PathRule]:
        """Return the globs of each type."""
        paths = settings_.get(settings.PATHS, DEFAULT_PATHS)
        return [
            PathRule(glob, entity_type) for entity_type, listed in paths.items() for glob in settings.globs_of(listed)
        ]

    def extract(self, source: SourceFile, settings_: Mapping[str, Any]) -> Facts:
        """Return the entity that a document states, with its links; a file that states none says why."""
        from kbcore.extract.markdown_document import read  # noqa: PLC0415 - most commands read no file

        return read(source, settings_)


EXTRACTOR: Final = MarkdownExtractor()
