"""A secret in a store, for the tests of `kb redact`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.disk.secrets import files_with
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import git

SECRET = "hunter2 \"pa$$\" 'w0rd'"


def leak(root, kb):
    entity = {"id": "REQ-7", "type": "req", "title": f"Use {SECRET}", "status": "open"}
    asked = {"entities": [entity], "message": f"as {SECRET}", "changeset_id": "leak"}
    kb("apply", "-", stdin=json.dumps(asked))
    git(root, "branch", "topic")
    kb("branch", "ensure", "topic")
    kb("query", "req")


def left(root: Path, secret: str = SECRET) -> list[str]:
    return files_with(secret, stores_at(root), caches_at(root))
