"""The steps of `kb demo`, as plain data: the commands as a user types them, and what each must answer.

Nothing is run here. A step that ends otherwise than it says fails the whole tour.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from kbcli.hooks import EVENTS

AGENT: Final = "demo-agent"
"""The client name of the agent of the tour; KB records it as the actor of its changesets."""

_WIDTH: Final = 100


class TourCommand(msgspec.Struct, frozen=True):
    """A command line, run unchanged. ``shows`` are texts that the answer must contain."""

    why: str
    line: str
    shows: tuple[str, ...] = ()
    status: int = 0


class Edit(msgspec.Struct, frozen=True):
    """A file that a person writes in an editor."""

    why: str
    path: str
    text: str


class TourCall(msgspec.Struct, frozen=True):
    """One call of an agent over MCP."""

    why: str
    tool: str
    arguments: dict[str, Any]
    shows: tuple[str, ...] = ()
    is_error: bool = False


class Talk(msgspec.Struct, frozen=True):
    """A conversation of an agent with the MCP server: one process, started for it as agents' programs do."""

    why: str
    line: str
    calls: tuple[TourCall, ...]


class TourPart(msgspec.Struct, frozen=True):
    """Steps that belong together."""

    title: str
    steps: tuple[TourCommand | Edit | Talk, ...]


def shown_json(value: Any, indent: str = "", used: int = 0) -> str:
    """Return JSON for people: on one line what fits on one line, and the rest one member to a line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + len(indent) + used <= _WIDTH or not isinstance(value, dict | list) or not value:
        return line
    inner = indent + "  "
    if isinstance(value, dict):
        heads = [json.dumps(key, ensure_ascii=False) + ": " for key in value]
        members = [head + shown_json(one, inner, len(head)) for head, one in zip(heads, value.values(), strict=True)]
        opening, closing = "{}"
    else:
        members = [shown_json(one, inner) for one in value]
        opening, closing = "[]"
    listed = ",\n".join(inner + member for member in members)
    return f"{opening}\n{listed}\n{indent}{closing}"


_SCENARIO: Final = """\
---
id: SCN-007
title: A window on the morning of delivery
status: agreed
---

    Given a parcel that a van took over at 07:10
    When somebody opens its tracking link at 07:30
    Then the page shows a window of at most two hours
"""

_REQUIREMENT: Final = """\
---
id: REQ-008
title: The page shows when the parcel will come
status: agreed
priority: should
owner: ines
tags: [tracking-page, estimate]
links:
  - depends_on: [REQ-002]
  - specified_by: [SCN-007]
---

A window of at most two hours, on the day of delivery, right in nine of ten cases.
"""

_MISTYPED: Final[dict[str, Any]] = {
    "entities": [{"id": "TEST-006", "type": "tset", "title": "a failed delivery is notified", "status": "active"}],
    "edges": [{"type": "verified_by", "from": "REQ-04", "to": "TEST-006"}],
}

_CHANGESET: Final[dict[str, Any]] = {
    "changeset_id": "failed-delivery-test",
    "message": "REQ-004 has a test now",
    "entities": [
        {
            "id": "TEST-006",
            "type": "test",
            "title": "a failed delivery is notified within five minutes",
            "status": "active",
            "attributes": {"kind": "integration"},
        }
    ],
    "edges": [{"type": "verified_by", "from": "REQ-004", "to": "TEST-006", "confidence": 0.9}],
}

PARTS: Final = (
    TourPart(
        "A project, and its memory",
        (
            TourCommand(
                "Waymark tracks parcels. Its team keeps requirements, scenarios, tests and decisions as documents.",
                "ls docs docs/requirements",
                ("REQ-004-failed-delivery.md", "symbols.yaml"),
            ),
            TourCommand(
                "A document is front matter and prose. This one says what specifies it, but not what verifies it.",
                "cat docs/requirements/REQ-004-failed-delivery.md",
                ("specified_by: [SCN-004]",),
            ),
            TourCommand(
                f"`kb init` writes what is missing in .kb and installs {len(EVENTS)} git hooks. Nothing else changes.",
                "kb init",
                tuple(f"Hook {event}: active" for event in EVENTS),
            ),
            TourCommand(
                "The memory is for everybody: its settings are tracked by git, its stores are not.", "git add .kb"
            ),
            TourCommand("", 'git commit --quiet -m "Set up KB"'),
            TourCommand(
                "`kb sync` reads the documents. All that differs from the memory becomes one changeset, one record.",
                "kb sync",
                ("`kb check` lists",),
            ),
            TourCommand("Nothing has changed since, so nothing is written.", "kb sync"),
            TourCommand("The state of the branch.", "kb status", ("main",)),
        ),
    ),
    TourPart(
        "Asking",
        (
            TourCommand("What must Waymark do?", "kb query req --where priority=must", ("REQ-001", "REQ-007")),
            TourCommand(
                "What is built, and not verified by any test? `^` looks against the direction of an edge.",
                "kb query req --has ^implements --lacks verified_by",
                ("REQ-004", "REQ-008"),
            ),
            TourCommand(
                "What depends on the scans, directly or not?",
                "kb query --from REQ-002 --follow depends_on --reverse --depth 5",
                ("REQ-001", "REQ-005"),
            ),
            TourCommand(
                "One entity with its edges, in both directions, and its history.",
                "kb show REQ-003",
                ("RISK-001", "TEST-003"),
            ),
            TourCommand("A type that the project added, in .kb/schema/risks.yaml.", "kb schema risk", ("likelihood",)),
            TourCommand("The same answers are there for programs.", "kb query req --id REQ-004 --json", ('"total"',)),
            TourCommand(
                "Are the rules kept? A must without a test, a link that leads nowhere, and a rule of Waymark's own.",
                "kb check",
                ("REQ-004", "SCN-007", "likely-risk", "2 errors, 2 warnings"),
                status=1,
            ),
        ),
    ),
    TourPart(
        "An agent writes, over MCP",
        (
            Talk(
                "An agent's program starts the server and calls its tools. This is that conversation, as it happened.",
                "kb-mcp",
                (
                    TourCall(
                        "The agent looks for what is wrong.",
                        "kb_check",
                        {"rules": ["must-coverage"]},
                        ("REQ-004", '"ok": false'),
                    ),
                    TourCall(
                        "It writes the missing test, with two slips of the pen. Both are named; nothing is written.",
                        "kb_upsert",
                        _MISTYPED,
                        ("'test'", "REQ-004", "Nothing was written"),
                        is_error=True,
                    ),
                    TourCall(
                        "Fixed: a new test and the edge to it, in one changeset, all or nothing.",
                        "kb_upsert",
                        _CHANGESET,
                        ("TEST-006", '"applied": true'),
                    ),
                    TourCall(
                        "The answer got lost? The same changeset again: it takes effect once.",
                        "kb_upsert",
                        _CHANGESET,
                        ('"duplicate": true',),
                    ),
                    TourCall(
                        "What a document states can only be changed there. The refusal names the file.",
                        "kb_upsert",
                        {"entities": [{"id": "REQ-004", "status": "met"}]},
                        ("derived_fact", "docs/requirements/REQ-004-failed-delivery.md"),
                        is_error=True,
                    ),
                ),
            ),
            TourCommand(
                "REQ-004 is in order now. What is left is the scenario that does not exist.",
                "kb check --rule unresolved-reference",
                ("1 error",),
                status=1,
            ),
        ),
    ),
    TourPart(
        "A branch has a memory of its own",
        (
            TourCommand(
                "The git hook gives the new branch a copy of the memory, history included.",
                "git switch --quiet -c feature/delivery-window",
            ),
            TourCommand("", "kb branch list", ("feature/delivery-window", "from main at 2")),
            Edit(
                "Ines writes the scenario that REQ-008 names.",
                "docs/scenarios/SCN-007-delivery-window.md",
                _SCENARIO,
            ),
            Edit("And agrees to the requirement.", "docs/requirements/REQ-008-delivery-window.md", _REQUIREMENT),
            TourCommand("", "git add docs"),
            TourCommand(
                "The edge to SCN-007 waited for its end. The hook records what is committed, and the edge resolves.",
                'git commit --quiet -m "Agree on the delivery window"',
                ("feature/delivery-window at seq 3", "edges: 1 updated"),
            ),
            TourCommand(
                "What differs between the two branches?",
                "kb branch diff main feature/delivery-window",
                ("SCN-007", "REQ-008"),
            ),
            TourCommand("Main does not have it yet.", "git switch --quiet main"),
            TourCommand("", "kb query scenario --id SCN-007", ("No entity matches",)),
            TourCommand(
                "Merging brings the documents; the hook syncs them.", "git merge --quiet feature/delivery-window"
            ),
            TourCommand("", "kb query scenario --id SCN-007", ("SCN-007",)),
        ),
    ),
    TourPart(
        "Who changed what, and taking it back",
        (
            TourCommand("Every record, the newest first.", "kb log", (AGENT,)),
            TourCommand("One record: what it did, before and after.", "kb show 2", ("TEST-006",)),
            TourCommand("And everything that changed since record 1.", "kb diff 1", ("TEST-006", "SCN-007")),
            TourCommand(
                "Leila finds that the test does not exist yet. She reverts the agent's record by a new record.",
                "kb revert 2",
            ),
            TourCommand(
                "So the rule is broken again.", "kb check", ("REQ-004", "suspect-edge", "1 error, 4 warnings"), status=1
            ),
            TourCommand("As it was before, at any time.", "kb query test --id TEST-006 --at 2", ("TEST-006",)),
            TourCommand("Next week the test is there. Reverting the revert brings it back.", "kb revert 4"),
            TourCommand("", "kb check", ("main at seq 5: 4 warnings",)),
            TourCommand("Nothing was erased.", "kb log", ("5 ", "1 ")),
            TourCommand("Every record is chained to the one before; this proves it.", "kb verify"),
        ),
    ),
)
"""The whole tour."""
