"""Fleets of generated repositories: with several records, changes of clients, branches, conflicts, and damaged ones."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from kbcore.clock import SystemClock
from kbcore.fleet import exporting, head, reading
from kbcore.fleet.asking import CheckQuestion, CoverageQuestion, Question, RowsQuestion
from kbcore.fleet.exporting import ExportRequest, ExportResult
from kbcore.fleet.head import FleetHead
from kbcore.fleet.place import FolderPlace, Place
from kbcore.fleet.reading import FleetSelection, Member
from kbcore.query import Query, parse_pattern, parse_where
from kbcore.rules import ON_DEMAND
from kbcore.share.merging import merge
from kbcore.store import branches
from kbcore.view.relations import RELATIONS
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.project import AUTHOR, Project, document, req
from tests.support.repository.stores import view_of

PAGE: Final = Path(__file__).resolve().parents[3] / "docs" / "fleet.md"
needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed")
RULE: Final = """
rules:
  - id: titles-are-short
    description: Titles are short.
    severity: warning
    sql: "select id, 'The title is long.' as message from entity where length(title) > 12"
"""
FAULTY: Final = req("REQ-7", title="A title that is long", priority="must", depends_on="REQ-99")
"""The content of the first repository in every step: it breaks several rules whatever the seed is."""
FEATURE: Final = "feature/x"
SCOPE: Final = {"attributes": {"scope": {"to": "all", "from": [{"since": 2, "at": 1}]}}}
"""An attribute whose members are in another order than that of their names."""

QUERIES: Final = {
    "all": Query(),
    "type": Query(type="req"),
    "edges": Query(type="edge"),
    "ids": Query(ids=("REQ-1", "ADR-0", "T-1"), edges=True),
    "status": Query(status="open"),
    "tag": Query(tags=("fast",)),
    "where": Query(where=(parse_where("priority=must OR owner^=a"), parse_where("title~2"))),
    "has": Query(has=(parse_pattern("verified_by:T-1"),), lacks=(parse_pattern("depends_on"),)),
    "text": Query(text="title decision"),
    "walk": Query(from_id="T-1", follow=("^verified_by",), depth=3),
    "reverse": Query(from_id="T-1", reverse=True, depth=2),
    "sort": Query(type="req", sort="-title", limit=3),
    "fields": Query(type="req", fields=("id", "owner")),
    "count": Query(type="req", count=True),
    "path": Query(path=("docs/tests/",)),
}
"""Every filter, and what shapes an answer."""
NOT_ASKED: Final = {"at", "cursor", "owned", "paths"}
"""Members of a query that a fleet has another way for: ``before``; there are no pages, and no owners of files; ``path``
sets the last one."""


class Fleet(NamedTuple):
    """The place, the projects by name, all branches that were exported, and the repositories that were damaged then."""

    place: FolderPlace
    projects: dict[str, Project]
    branches: list[tuple[str, str]]
    damaged: set[str]

    def heads(self) -> list[FleetHead]:
        found = reading.find(self.place, FleetSelection(branch="*"))
        assert not found.failures
        return found.heads

    def sound(self) -> list[tuple[str, str]]:
        return [one for one in self.branches if one[0] not in self.damaged]

    def single(self, repo: str, branch: str) -> Member:
        """Return a branch of a store as a member: its own view, and the settings of its own workspace."""
        project = self.projects[repo]
        store, _, _ = branches.open_branch(project.workspace(), branch)
        return Member(None, view_of(store), project.workspace())


def questions() -> Iterator[tuple[str, Question]]:
    """Yield every question that a fleet is asked, with a name: all rules, those on demand, all filters, coverage."""
    yield "all rules", CheckQuestion()
    yield "rules on demand", CheckQuestion(tuple(rule.id for rule in ON_DEMAND))
    yield from ((f"query {name}", RowsQuestion(query)) for name, query in QUERIES.items())
    yield "coverage", CoverageQuestion(Query(type="req"))
    yield "coverage of some", CoverageQuestion(Query(type="req", status="open"))


def statements() -> dict[str, str]:
    """Return the SQL that a fleet is asked: each relation whole, and what the page shows, in a fixed order of rows."""
    cells = {name: ", ".join(f'"{one.name}"' for one in found.columns) for name, found in RELATIONS.items()}
    found = {name: f"select repo, branch, {listed} from {name} order by all" for name, listed in cells.items()}
    shown = re.findall(r'^\$ kb fleet sql "(.+?)" --place', PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown
    return found | {one: f"select * from ({one}) order by all" for one in shown}


def make_fleet(root: Path, count: int, seed: int) -> Fleet:
    """Make and export so many repositories: of ten one is damaged, of four one has two branches."""
    dice = random.Random(seed)
    fleet = Fleet(FolderPlace(NoSyncFs(), SystemClock(), root / "place"), {}, [], set())
    for number in range(count):
        name = f"org{number % 2}/r{number}"
        project = fleet.projects[name] = Project(root / f"r{number}")
        _fill(project, fleet.place, name, number, dice)
        if number % 4 == 1:
            _contest(project)
            exported(project, fleet.place, name, FEATURE, of=FEATURE, is_default=False)
            fleet.branches.append((name, FEATURE))
        exported(project, fleet.place, name)
        fleet.branches.append((name, "main"))
        if number % 10 == 2:
            flip_a_bit(root / "place", name)
            fleet.damaged.add(name)
    return fleet


def exported(
    project: Project,
    place: Place,
    name: str,
    branch: str = "main",
    *,
    of: str | None = None,
    is_default: bool = True,
) -> None:
    """Export a branch, ``of`` by its name here, under the name of one; without it the one that is checked out."""
    export(project, place, of=of, repo=name, branch=branch, is_default=is_default)


def export(project: Project, place: Place, *, of: str | None = None, **asked: Any) -> ExportResult:
    """Export a branch as ``exported``, by the members of its request, and return what was written."""
    request = ExportRequest(**{"repo": "acme/one", "branch": "main", **asked})
    workspace = project.workspace()
    store, choice, _ = branches.open_branch(workspace, of)
    return store.read(lambda view: exporting.export(workspace, choice.branch, view, place, request))


def flip_a_bit(place: Path, name: str) -> None:
    """Change a bit of the part of entities of a repository."""
    path = head.head_path(name, "main")
    part = next(one for one in head.decode((place / path).read_bytes(), path).parts if one.kind == "entity")
    data = bytearray((place / part.path).read_bytes())
    data[len(data) // 2] ^= 1
    (place / part.path).write_bytes(data)


def _fill(project: Project, place: FolderPlace, name: str, number: int, dice: random.Random) -> None:
    if not number or dice.random() < 0.2:
        project.write({".kb/rules/own.yaml": RULE})
    before: dict[str, Any] = {}
    for step in range(dice.randint(1, 3) if number else 3):
        files = _files_of(dice, step) | ({} if number else {"docs/requirements/REQ-7.md": FAULTY})
        project.sync({**dict.fromkeys(before.keys() - files.keys()), **files})
        before = files
        if not number or dice.random() < 0.7:
            project.apply(
                entities=[{"id": f"ADR-{step}", "type": "adr", "title": "A decision", "status": "accepted", **SCOPE}],
                edges=[{"type": "relates_to", "kind": "see", "from": f"ADR-{step}", "to": "T-1"}],
            )
        if dice.random() < 0.6:
            exported(project, place, name)


def _files_of(dice: random.Random, step: int) -> dict[str, Any]:
    """Return the files that a repository has after a step: some change, some go."""
    names = [f"REQ-{n}" for n in range(1, 7)]
    found: dict[str, Any] = {}
    for name in names:
        if dice.random() < 0.7:
            links = {"verified_by": dice.choice(["T-1", "T-2", "T-9"])} if dice.random() < 0.6 else {}
            links |= {"depends_on": dice.choice(names)} if dice.random() < 0.5 else {}
            title = f"Title {step} of {name}" if dice.random() < 0.3 else f"Title {name}"
            owner = dice.choice(["ann", "bob", ""])
            links |= {"owner": owner} if owner else {}
            status, priority = dice.choice(["open", "closed", "odd"]), dice.choice(["must", "should"])
            found[f"docs/requirements/{name}.md"] = req(name, title=title, status=status, priority=priority, **links)
    for name in ("T-1", "T-2"):
        found[f"docs/tests/{name}.md"] = document(name, title=f"Test {step}", status="ok", tags="[fast, slow]")
    if dice.random() < 0.4:
        found["docs/tests/broken.md"] = "---\nid: [\n---\n"
    return found


def _contest(project: Project) -> None:
    """Make a branch, and merge what it says otherwise than main does: main has a conflict then."""
    project.apply(entities=[{"id": "ADR-C", "type": "adr", "title": "Contested", "status": "accepted"}])
    project.switch(FEATURE, create=True)
    new = {"id": "ADR-F", "type": "adr", "title": "Of a branch", "status": "accepted"}
    project.apply(entities=[{"id": "ADR-C", "title": "Theirs"}, new])
    project.switch("main")
    project.apply(entities=[{"id": "ADR-C", "title": "Ours"}])
    merge(project.workspace(), "main", FEATURE, AUTHOR)
