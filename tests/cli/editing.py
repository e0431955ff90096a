"""Reading of one entity by commands, and records of clients."""

from __future__ import annotations

import json

from tests.support.processes.cli import DOCUMENTS

DOCUMENT = "docs/requirements/login.md"


def shown(kb, key):
    return kb("query", "--id", key, "--json").json["entities"][0]


def records(kb):
    return kb("log", "--json").json["records"]


def client(kb, key="REQ-9", **fields):
    entity = {"id": key, "type": "req", "title": "T", "status": "open", **fields}
    kb("apply", "-", stdin=json.dumps({"entities": [entity]}))


def suspect(kb):
    found = kb("check", "--rule", "suspect-edge", "--fail-on", "never", "--json").json
    return len(found["violations"])


def read_all(root):
    return {path: (root / path).read_text() for path in DOCUMENTS}
