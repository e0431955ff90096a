"""An organisation of 30 repositories, each of which exports to one place as its CI would.

``python -m tests.support.fleet.organisation FOLDER`` makes them below a folder, with the place in ``FOLDER/fleet``. The
last repository, ``checkout``, is not set up and exports nothing yet. What the repositories say is always the same.
"""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from kbcli import app

OWNER = "acme"
PLACE = "fleet"
NOT_SET_UP = "checkout"
NAMES = (
    *("rates", "ledger", "payments", "refunds", "invoices", "wallet"),
    *("catalogue", "search", "stock", "prices", "reviews", "images"),
    *("parcels", "returns", "routes", "depots", "labels", "customs"),
    *("login", "profile", "consent", "mail", "messages", "push"),
    *("reports", "forecast", "audit", "end-to-end", "legacy", NOT_SET_UP),
)
TEAMS = ("finance", "shop", "shipping", "people", "data")
_TEAM_SIZE = 6
_RATES = f"{OWNER}/rates"


def documents(number: int) -> dict[str, str]:
    """Return the documents of a repository, by path."""
    name, owner = NAMES[number], TEAMS[number // _TEAM_SIZE]
    has_test = number % 4 != 3
    first = {"title": f"{name} answers within a second", "priority": "must", "owner": owner, "specified_by": "SCN-001"}
    second = {"title": f"{name} is in four languages", "priority": "should", "owner": owner, "depends_on": "REQ-001"}
    if has_test:
        first["verified_by"] = "TEST-001"
    if number % 3 == 2:
        second["depends_on"] = f"[REQ-001, {_RATES}:REQ-001]"
    found = {
        "docs/requirements/REQ-001.md": _document("REQ-001", "open", first),
        "docs/requirements/REQ-002.md": _document("REQ-002", "open", second),
        "docs/scenarios/SCN-001.md": _document("SCN-001", "active", {"title": f"A page of {name} is opened"}),
    }
    if has_test:
        found["docs/tests/TEST-001.md"] = _document("TEST-001", "active", {"title": f"Response times of {name}"})
    return found | {f"docs/{path}": text for path, text in _special(name)}


def _special(name: str) -> Iterator[tuple[str, str]]:
    """Yield what is only in some repositories."""
    if name == "rates":
        yield "adr/0001.md", _document("ADR-001", "accepted", {"title": "Amounts are whole cents"})
        yield "adr/0002.md", _document("ADR-002", "accepted", {"title": "Rates come from one bank"})
    if name == "forecast":
        title = {"title": "Amounts are decimal numbers"}
        link = f"  - {{type: relates_to, kind: contradicts, target: '{_RATES}:ADR-001'}}"
        yield "adr/0001.md", _document("ADR-001", "accepted", title, f"links:\n{link}\n")
    if name == "wallet":
        title = {"title": "Rates come from three banks", "supersedes": f"{_RATES}:ADR-002"}
        yield "adr/0001.md", _document("ADR-001", "accepted", title)
    if name == "end-to-end":
        links = {"title": "Buy, pay and return", "links": f"[{OWNER}/refunds:REQ-001, {OWNER}/search:REQ-001]"}
        yield "tests/TEST-900.md", _document("TEST-900", "active", links)
    if name == "legacy":
        links = {"title": "Sums are converted", "depends_on": f"[{_RATES}:REQ-999, {OWNER}/fax:REQ-001]"}
        yield "requirements/REQ-003.md", _document("REQ-003", "open", links)


def _document(id_: str, status: str, fields: Mapping[str, str], more: str = "") -> str:
    lines = "".join(f"{name}: {value}\n" for name, value in {"id": id_, "status": status, **fields}.items())
    return f"---\n{lines}{more}---\n"


def build(folder: Path) -> None:
    """Make the repositories, and have all but the last one export."""
    for number, name in enumerate(NAMES):
        home = folder / name
        home.mkdir(parents=True)
        for path, text in documents(number).items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text, encoding="utf-8")
        _git(home, "init", "--quiet", "--initial-branch=main")
        if name != NOT_SET_UP:
            _kb(home, "init", "--no-hooks")
            _kb(home, "fleet", "init", f"../{PLACE}", "--repo", f"{OWNER}/{name}")
            _kb(home, "sync")
            _kb(home, "export", "--fleet", "--as", "main", "--no-history")


def _git(home: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=home, check=True)


def _kb(home: Path, *words: str) -> None:
    said = io.StringIO()
    with contextlib.chdir(home), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = app.main([*words])
    if status:
        raise RuntimeError(f"kb {' '.join(words)} in {home} ended with status {status}: {said.getvalue()}")


if __name__ == "__main__":
    if len(sys.argv) != 2 or Path(sys.argv[1]).exists():
        sys.exit("Name a folder that does not exist yet.")
    build(Path(sys.argv[1]).absolute())
