"""Extractors for tests of what files are wanted and found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kbcore.extract.facts import Facts, PathRule, SourceFile


class Reader:
    """An extractor that reads what some globs mean, and states nothing."""

    name = "reader"
    version = 1

    def __init__(self, *globs: str, type_: str | None = None) -> None:
        self._rules = [PathRule(glob, type_) for glob in globs]

    def path_rules(self, _: Mapping[str, Any]) -> list[PathRule]:
        return self._rules

    def extract(self, _: SourceFile, __: Mapping[str, Any]) -> Facts:
        return Facts()
