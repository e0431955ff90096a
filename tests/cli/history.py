"""A history of three records, for the commands that show it."""

from __future__ import annotations

import json

from tests.support.processes.cli import LOGIN, refresh_view, write


def three_records(root, kb):
    """Write the second and the third record: a changeset, and a sync that changes one field."""
    request = {
        "message": "a \x1b[31mscenario",
        "entities": [{"id": "SCN-1", "type": "scenario", "title": "Known device", "status": "open"}],
        "edges": [{"type": "specified_by", "from": "REQ-1", "to": "SCN-1"}],
    }
    kb("apply", "-", stdin=json.dumps(request))
    write(root, {"docs/requirements/login.md": LOGIN.replace("open", "done")})
    kb("sync")
    refresh_view(root, kb)
