"""The workflow of GitHub Actions that checks a branch and keeps its report, and the file that holds it.

The first line of the file has a digest of the others: a file of which they fit is KB's own, any other is somebody's.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path, PurePath
from typing import Final, Literal

import msgspec

from kbcore import __version__
from kbcore.editing.file_edits import place_to_write
from kbcore.errors import InvalidQuery, StorageError
from kbcore.storage.replacing import replace_file
from kbcore.store.workspace import Workspace

PLACE: Final = ".github/workflows/kb.yml"
"""The path of the file, from the top of the worktree."""

Action = Literal["created", "updated", "kept", "changed"]
"""``kept`` where it is as it would be written; ``changed`` where somebody changed it, so that it stays as it is."""

_HEAD: Final = "# Written by `kb init --github`, which leaves it alone once it was changed. sha256 of the rest: "
_FIRST_LINE: Final = re.compile(re.escape(_HEAD) + r"([0-9a-f]{64})\n")
_SPECIAL: Final = re.compile(r"[*?+!\[\]]")
"""The characters that are no text in a filter of branches."""
_CHECK: Final = """\
name: KB
on:
  push:
    branches: [{branch}]
  pull_request:
permissions:
  contents: read
jobs:
  check:
    runs-on: ubuntu-latest
    permissions:
      contents: read
      security-events: write  # for the upload of what the rules find
    steps:
      - uses: actions/checkout@v5
        with:
          fetch-depth: 0
          persist-credentials: false
      - uses: actions/setup-python@v6
        with:
          python-version: "3.13"
      - run: pip install "kb-memory[code,gherkin,graph{extra}]=={version}"
      - run: kb sync --strict
      - run: kb report --out kb-report
      - run: kb report --format md --out - >> "$GITHUB_STEP_SUMMARY"
      - uses: actions/upload-artifact@v5
        with:
          name: kb-report
          path: kb-report
      - run: kb check --fail-on never --format sarif > kb.sarif
      # A pull request of a fork may not upload; code scanning of a private repository needs a license.
      - uses: github/codeql-action/upload-sarif@v4
        if: github.event_name == 'push' || github.event.pull_request.head.repo.full_name == github.repository
        continue-on-error: true
        with:
          sarif_file: kb.sarif
          category: kb
{fleet}      - run: kb check --format github
"""
_FLEET: Final = """\
      # Into the place of .kb/config.json, with the keys of an account that may read and write there.
      - run: kb export --fleet --as "$GITHUB_REF_NAME" --no-history
        if: github.event_name == 'push'
        env:
          AWS_ACCESS_KEY_ID: ${{ secrets.AWS_ACCESS_KEY_ID }}
          AWS_SECRET_ACCESS_KEY: ${{ secrets.AWS_SECRET_ACCESS_KEY }}
          AWS_REGION: ${{ vars.AWS_REGION }}
"""
_PAGES: Final = """\
  pages:
    # Whoever may see the site may read the report: everybody, unless GitHub limits who may see it.
    needs: check
    if: github.event_name == 'push'
    runs-on: ubuntu-latest
    permissions:
      pages: write
      id-token: write
    environment:
      name: github-pages
      url: ${{ steps.deployment.outputs.page_url }}
    steps:
      - uses: actions/download-artifact@v6
        with:
          name: kb-report
          path: kb-report
      - uses: actions/upload-pages-artifact@v4
        with:
          path: kb-report
      - uses: actions/deploy-pages@v4
        id: deployment
"""


class WrittenWorkflow(msgspec.Struct, frozen=True):
    """The file of the workflow, from the top of the worktree, and what was done with it."""

    path: str
    action: Action


def workflow_text(branch: str, *, pages: bool, fleet: bool = False) -> str:
    """Return the file: it checks pushes to ``branch`` and pull requests, and with ``pages`` publishes the report.

    With ``fleet`` it exports what was pushed to a place on S3.
    """
    quoted = msgspec.json.encode(_SPECIAL.sub(r"\\\g<0>", branch)).decode()  # a JSON text is one of YAML
    extra, step = (",s3", _FLEET) if fleet else ("", "")
    rest = _CHECK.format(branch=quoted, version=__version__, extra=extra, fleet=step) + (_PAGES if pages else "")
    return f"{_HEAD}{_digest(rest)}\n{rest}"


def workflow_place(workspace: Workspace) -> Path:
    """Return where the file is to be written, its links resolved.

    Raises: ``InvalidQuery`` without a worktree; as ``place_to_write``; ``StorageError`` where something that is no
    folder has the name of a folder of the path.
    """
    repo = workspace.repo
    if not repo.has_worktree:
        raise InvalidQuery("A bare repository has no files, and so no workflow.", hint="Use a clone of it.")
    place = place_to_write(workspace, PLACE)
    for folder in reversed(PurePath(PLACE).parents):
        if os.path.lexists(repo.worktree / folder) and not (repo.worktree / folder).is_dir():
            message = f"{folder} is no folder, so that {PLACE} cannot be written."
            raise StorageError(message, hint=f"Remove or rename {folder}, or leave --github out.")
    if place.is_dir():
        message = f"{PLACE} is a folder, not a file."
        raise StorageError(message, hint="Remove or rename it, or leave --github out.")
    return place


def write_workflow(workspace: Workspace, *, pages: bool) -> WrittenWorkflow:
    """Write the file of a worktree, unless somebody changed it. Raises: as ``workflow_place``; ``OSError``."""
    path, place = workspace.repo.worktree / PLACE, workflow_place(workspace)
    is_on_s3 = (workspace.config.fleet.place or "").lower().startswith("s3://")
    text = workflow_text(workspace.default_branch, pages=pages, fleet=is_on_s3)
    before = path.read_text("utf-8", "replace") if path.exists() else "" if path.is_symlink() else None
    if before == text:
        return WrittenWorkflow(PLACE, "kept")
    if before is not None and not _is_own(before):
        return WrittenWorkflow(PLACE, "changed")
    replace_file(place, text.encode(), 0o644)
    return WrittenWorkflow(PLACE, "created" if before is None else "updated")


def _is_own(text: str) -> bool:
    first = _FIRST_LINE.match(text)
    return first is not None and first[1] == _digest(text[first.end() :])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
