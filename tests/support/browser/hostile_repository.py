"""A repository in which each of ``hostile.texts`` is in every place that a page shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from kbcore.ids import check_branch_name
from kbcore.limits import MAX_ID_CHARS, MAX_NAME_CHARS
from tests.support.browser.hostile import texts
from tests.support.processes.cli import environment, run_kb, write
from tests.support.repository.repos import git

TEXTS: Final = texts()
TYPES: Final = ("req", "scenario", "test", "adr", "flag", "event", "symbol", "component", "doc", "task", "note", "odd")
IDS: Final = [text if len(text) <= MAX_ID_CHARS else text[:MAX_ID_CHARS].strip() for text in TEXTS]
NAMES: Final = [text for text in TEXTS if len(text) <= MAX_NAME_CHARS and text.isprintable()]
"""Those that the values of an attribute and statuses may be."""
ALL: Final = "ALL"
"""The entity that has all texts."""
MATRIX: Final = "/matrix?type=req&edges=relates_to"


def make(root: Path) -> None:
    """Fill a synchronized repository, on a branch whose name is hostile too."""
    settings = json.loads((root / ".kb/config.json").read_text())
    settings |= {"review": {"actors": ["agent*"]}, "defaultBranch": "main"}
    named = [text.replace("/", "") for text in TEXTS]
    names = [text for text in named if len(text.encode()) <= 180 and text.isprintable() and text[0] not in ".-#@"]
    owners = [f"@{text.replace(' ', '_')}" for text in TEXTS if len(text) < MAX_NAME_CHARS and "#" not in text]
    odd = {
        "description": TEXTS[0],
        "statuses": NAMES[:100],
        "attributes": {"choice": {"values": NAMES, "description": TEXTS[1]}},
    }
    rule = {
        "id": "hostile",
        "severity": "warning",
        "description": " ".join(TEXTS[:60])[:1900],
        "remedy": TEXTS[3],
        "sql": "select id, coalesce(owner, '') || ' ' || left(title, 300) as message from entity where type = 'req'",
    }
    files = {
        ".kb/config.json": json.dumps(settings),
        ".kb/schema/odd.yaml": yaml.safe_dump({"entities": {"odd": odd}}),
        ".kb/rules/hostile.yaml": yaml.safe_dump({"rules": [rule]}),
        "CODEOWNERS": f"* {' '.join(owners[:50])}\n",
        "docs/requirements/all.md": _document("REQ-ALL", TEXTS[2], "\n\n".join(TEXTS), TEXTS),
    }
    files |= {
        f"docs/requirements/{name}.md": _document(f"REQ-F{number}", text, text, [text])
        for number, (name, text) in enumerate(zip(names, TEXTS, strict=False))
    }
    write(root, files)
    _kb(root, "sync")
    _apply(root, "tester", *(_entity(number, text) for number, text in enumerate(TEXTS)))
    edges = [
        {"type": "relates_to", "kind": text[:MAX_NAME_CHARS].strip(), "from": one, "to": other}
        for text, one, other in zip(TEXTS, IDS, [*IDS[1:], IDS[0]], strict=True)
    ]
    attributes = {f"{number}{text}"[:MAX_NAME_CHARS]: text for number, text in enumerate(TEXTS)}
    everything = {"id": ALL, "type": "req", "title": " ".join(TEXTS), "status": "open", "tags": TEXTS}
    _apply(root, "tester", {**everything, "attributes": attributes}, edges=edges)
    for at in range(0, len(TEXTS), 50):
        part = " ".join(TEXTS[at : at + 50])
        _apply(root, part, {"id": ALL, "owner": part[:60]}, message=part, session=part)
    _apply(root, f"agent {TEXTS[4]}", *({"id": one, "owner": text} for one, text in zip(IDS, TEXTS, strict=True)))
    _contest(root)


def _contest(root: Path) -> None:
    """Have two branches state other values of the same fields, and merge one into the other, whose name is hostile."""
    git(root, "add", "-A")
    git(root, "commit", "-qm", " ".join(TEXTS[:20]))
    git(root, "switch", "-q", "-c", "topic")
    _kb(root, "branch", "ensure")
    _apply(root, TEXTS[5], *({"id": one, "severity": text[:5000]} for one, text in zip(IDS, TEXTS, strict=True)))
    git(root, "switch", "-q", "main")
    _apply(root, TEXTS[6], *({"id": one, "severity": f"{text[:5000]} "} for one, text in zip(IDS, TEXTS, strict=True)))
    _kb(root, "merge", "topic")
    branch = "x"
    for text in TEXTS:
        longer = f"{branch}{text.replace(' ', '').replace('/', '')}"
        if len(longer.encode()) < 150 and check_branch_name(longer) is None:
            branch = longer
    git(root, "switch", "-q", "-c", branch)
    _kb(root, "branch", "ensure")


def _entity(number: int, text: str) -> dict[str, Any]:
    type_ = TYPES[number % len(TYPES)]
    found: dict[str, Any] = {
        "id": IDS[number],
        "type": type_,
        "title": text,
        "status": NAMES[number % 100] if type_ == "odd" else text,
        "owner": text,
        "priority": text,
        "tags": [text],
        "text_ref": "docs/" + text.replace("..", ""),
        "attributes": {text[:MAX_NAME_CHARS].strip(): text, "nested": {"a": [text]}},
    }
    if type_ == "odd":
        found["attributes"]["choice"] = NAMES[number % len(NAMES)]
    if type_ in {"note", "task", "symbol"}:
        found["attributes"]["file"] = text
    if type_ == "req":
        found["attributes"]["not_applicable"] = {"verified": text}
    return found


def _document(id_: str, title: str, body: str, tags: Sequence[str]) -> str:
    head = {"id": id_, "title": title, "status": "open", "owner": title, "tags": [*tags], "links": [IDS[7], title]}
    return f"---\n{yaml.safe_dump(head, allow_unicode=True)}---\n{body}\n"


def _apply(
    root: Path,
    actor: str,
    *entities: Mapping[str, Any],
    edges: Sequence[Mapping[str, Any]] = (),
    message: str = "",
    session: str = "",
) -> None:
    given = json.dumps({"entities": entities, "edges": edges, **({"message": message} if message else {})})
    _kb(root, "apply", "-", given=given, KB_ACTOR=actor, **({"KB_SESSION": session} if session else {}))


def _kb(root: Path, *words: str, given: str = "", **env: str) -> None:
    done = run_kb(root, *words, env=environment(env), stdin=given)
    assert done.status in {0, 1}, done.err
