"""Search for a secret in the bytes of every file of a clone, in each form in which KB writes a text."""

from __future__ import annotations

import json
from pathlib import Path


def forms_of(secret: str) -> set[bytes]:
    """Return the bytes that a file has where it holds a text: as it is, and within a JSON text."""
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    return {one.encode() for one in {secret, *escaped}}


def files_with(secret: str, *folders: Path) -> list[str]:
    """Return the files below some folders whose bytes, or whose path, hold a secret."""
    forms = forms_of(secret)
    paths = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    return [str(path) for path in paths if any(one in path.read_bytes() + str(path).encode() for one in forms)]
