"""Reports among the files of a worktree, known by their content: for who sets up KB."""

from __future__ import annotations

import io
import posixpath
from typing import Final

from kbcore import limits
from kbcore.results.reading import report_of
from kbcore.results.reported import ReportFault
from kbcore.store.workspace import Workspace
from kbcore.sync.detecting import paths_of, reader
from kbcore.text.globs import matches

_ENDINGS: Final = frozenset({".xml", ".tap", ".info", ".lcov"})
_FOR_TESTS: Final = frozenset({"testdata", "test-data", "test_data", "fixtures", "node_modules", "vendor"})
"""Folders whose files are data of tests, or of others."""
_MOST_LOOKED_AT: Final = 200
_BEGINNING_BYTES: Final = 4 * limits.KIB


def find_reports(workspace: Workspace) -> list[str]:
    """Return the files that are reports of test runs and that no setting means, of the first that may be some.

    What git ignores is not looked at. Raises: ``GitUnusable``, ``InvalidConfig``.
    """
    read, globs = reader(workspace), workspace.config.results
    candidates = [path for path in paths_of(workspace) if _may_be(path) and not matches(path, globs)]
    return [path for path in candidates[:_MOST_LOOKED_AT] if _is_report(read(path, _BEGINNING_BYTES))]


def _may_be(path: str) -> bool:
    return posixpath.splitext(path)[1].lower() in _ENDINGS and _FOR_TESTS.isdisjoint(path.split("/"))


def _is_report(beginning: bytes | None) -> bool:
    try:
        return beginning is not None and bool(report_of(io.BytesIO(beginning)).format)
    except ReportFault:
        return False
