"""The example in the documentation of each rule is a violation, with the message that is shown there."""

from __future__ import annotations

import pytest

from kbcore.config.schema_files import load_schema
from kbcore.model.graph import NoteOnFile, SyncedFile
from kbcore.rules import RULES
from tests.support.views.graph import graph_of, link, node
from tests.support.views.rules import violations

STATUSES = load_schema({".kb/schema/a.yaml": "entities: {req: {statuses: [draft, done], statusDefault: draft}}\n"})
NOTE = NoteOnFile(4, "syntax", "the list that begins here is not closed.")
UNREAD = SyncedFile("docs/requirements/login.md", "", "markdown/1", is_ok=False, problems=(NOTE,), version=1)
SYMBOL, REQ = node("SYM-2", "symbol"), node("REQ-7")
SIDES = [
    {"value": value, "changes": [{"change": actor, "actor": actor, "at": ""}]}
    for value, actor in (("Refund", "ann"), ("Pay back", "bob"))
]
RUN = {"message": "expected 4, got 3", "since": "2026-11-20T09:30:00.000000Z"}
GRAPHS = {
    "conflict": graph_of([node("REQ-7", contested__title=SIDES)]),
    "required-fields": graph_of([node("REQ-7", title=None)]),
    "unresolved-reference": graph_of([SYMBOL], [link("SYM-2", "implements", "REQ-70", is_resolved=False)]),
    "endpoint-types": graph_of([REQ, node("TEST-3", "test")], [link("TEST-3", "verified_by", "REQ-7")]),
    "unknown-type": graph_of([node("RISK-1", "risk")]),
    "unknown-status": graph_of([node("REQ-7", status="finished")]),
    "must-coverage": graph_of([node("REQ-7", priority="must")]),
    "failing-test": graph_of(
        [REQ, node("TEST-3", "test", attributes__test_verdict="failed", attributes__test_run=RUN)],
        [link("REQ-7", "verified_by", "TEST-3")],
    ),
    "acyclic": graph_of(
        [node("REQ-1"), node("REQ-2")], [link("REQ-1", "depends_on", "REQ-2"), link("REQ-2", "depends_on", "REQ-1")]
    ),
    "orphans": graph_of([node("SYM-9", "symbol")]),
    "idle-flag": graph_of([node("FLAG-3", "flag")]),
    "event-flow": graph_of([node("order-placed", "event"), SYMBOL], [link("SYM-2", "publishes", "order-placed")]),
    "stale-decision": graph_of(
        [SYMBOL, node("ADR-1", "adr"), node("ADR-4", "adr")],
        [link("SYM-2", "constrained_by", "ADR-1"), link("ADR-4", "supersedes", "ADR-1")],
    ),
    "suspect-edge": graph_of(
        [SYMBOL, node("REQ-7", version=9)],
        [link("SYM-2", "implements", "REQ-7", version=4)],
        old_nodes=[(node("REQ-7", title="Another", version=1), 9)],
    ),
    "missing-file": graph_of([node("SYM-2", "symbol", attributes__file="src/login.py")]),
    "similar-ids": graph_of([node("REQ-7"), node("req-7")]),
    "duplicate-title": graph_of([node(key, title="Log in with a passkey") for key in ("REQ-7", "REQ-12")]),
    "stale-index": graph_of(
        [node("src/cart.ts#Cart", "symbol", path="src/cart.ts")],
        [link("src/cart.ts#Cart", "relates_to", "B", kind="uses", is_resolved=False, files=["index.scip"])],
        files=[
            SyncedFile("index.scip", "1", "scip/1", is_ok=True, problems=(), version=1),
            SyncedFile("src/cart.ts", "2", "code/1", is_ok=True, problems=(), version=2),
        ],
    ),
    "unreadable-source": graph_of(files=[UNREAD]),
    "secret": graph_of([node("SYM-2", "symbol", attributes__token="ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2)]),
}


class NoFiles:
    """A branch whose tree is empty."""

    def missing(self, paths):
        return set(paths)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_example_of_a_rule_is_what_it_finds(rule):
    schema = STATUSES if rule.id == "unknown-status" else load_schema({})
    found = violations(GRAPHS[rule.id], rule.id, schema=schema, tree=NoFiles())
    assert rule.example in [one.message for one in found]
    assert all(one.hint for one in found)
    assert rule.remedy.endswith(".")
