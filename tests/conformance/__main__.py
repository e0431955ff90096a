"""Hold KB's server against the official conformance suite and the inspector: ``make conformance``.

Every scenario that a revision of the protocol requires is run. What fails must be what ``expected.yml`` says, no more
and no less; and nothing passes because of a tool that is not there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.conformance import npm
from tests.conformance.fixtures import SUBJECT
from tests.mcp.agents import ROOT, SERVER, server_env
from tests.support.repository.project import Project
from tests.support.repository.repos import use_empty_home

RUNS = {
    "0.1.16": ("stable", []),
    "2025-11-25": ("next", ["--requirements", "2025-11-25"]),
    "2026-07-28": ("next", ["--requirements", "2026-07-28"]),
}
WAIT_S = 300.0
_STAMP = re.compile(r"-20[0-9]{2}-[0-9]{2}-[0-9]{2}T.*$")
"""The text that the suite adds to the names of its folders."""
ERAS = ("legacy", "modern")
ASKED = (
    ("--method", "tools/list", "--strict"),
    ("--method", "prompts/list"),
    ("--method", "resources/list"),
    ("--method", "resources/templates/list"),
    ("--method", "resources/read", "--uri", f"kb://entity/{SUBJECT}"),
    ("--method", "prompts/get", "--prompt-name", "start_feature", "--prompt-args", f"requirement={SUBJECT}"),
    ("--method", "tools/call", "--tool-name", "kb_query", "--tool-arg", "limit=1"),
)
"""The requests of the inspector, over standard streams."""


def main() -> int:
    """Run everything, and return the status."""
    try:
        node = npm.set_up()
    except npm.Missing as error:
        print(f"conformance: NOT RUN, {error}.", file=sys.stderr)
        return 3
    use_empty_home()
    expected = yaml.safe_load((Path(__file__).parent / "expected.yml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="kb-conformance-") as name:
        folder = Path(name)
        project = Project(folder / "project")
        project.apply(entities=[{"id": SUBJECT, "type": "req", "title": "Sign in", "status": "open"}])
        project.close()
        with _serving(project.root) as url:
            faults = [fault for run in RUNS for fault in _suite(node, run, url, expected[run], folder / run)]
        faults += [fault for era in ERAS for asked in ASKED for fault in _inspected(node, project.root, era, asked)]
    for fault in faults:
        print(f"conformance: {fault}", file=sys.stderr)
    return 1 if faults else 0


@contextmanager
def _serving(root: Path) -> Iterator[str]:
    """Give the address of a server in a process of its own, which ends with the block."""
    words = [sys.executable, "-m", "tests.conformance.server", str(root)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=server_env()
    ) as server:
        assert server.stdin
        assert server.stdout
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()
            server.wait(WAIT_S)


def _suite(node: Path, run: str, url: str, expected: dict[str, Any], results: Path) -> Iterator[str]:
    """Yield what differs from what is expected of one run of the suite."""
    version, options = RUNS[run]
    words = [node, npm.suite(version), "server", "--url", url, "-o", results, *options]
    done = subprocess.run(words, capture_output=True, text=True, timeout=WAIT_S, check=False)
    unscored = set(_unscored(done.stdout))
    found = {name: checks for name, checks in _checks(results) if name not in unscored}
    failed = {(name, one["id"]) for name, checks in found.items() for one in checks if one["status"] == "FAILURE"}
    passed = sum(one["status"] == "SUCCESS" for checks in found.values() for one in checks)
    if len(found) < len(expected) + 20:
        yield f"{run}: only {len(found)} scenarios ran: {done.stdout[-500:]} {done.stderr[-500:]}"
    for name, key in sorted(failed):
        if key not in expected.get(name, {}) and "all" not in expected.get(name, {}):
            yield f"{run}: {name}: {key} fails"
    for name, keys in expected.items():
        for key in keys:
            if not any(name == one[0] and key in {"all", one[1]} for one in failed):
                yield f"{run}: {name}: {key} is expected to fail, and does not"
    yield from (f"{run}: {fault}" for fault in _hollow(found))
    print(f"conformance: {run}: {passed} checks of {len(found)} scenarios passed, {len(failed)} fail as expected")


def _checks(results: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the scenarios that ran, each with its checks."""
    for path in sorted(results.glob("server-*/checks.json")):
        yield _STAMP.sub("", path.parent.name.removeprefix("server-")), json.loads(path.read_text(encoding="utf-8"))


def _unscored(said: str) -> Iterator[str]:
    """Yield the scenarios that the suite runs beside those that a revision requires."""
    for line in said.partition("Not scored")[2].splitlines()[1:]:
        yield line.split()[1] if len(line.split()) > 1 else ""


def _hollow(found: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Yield scenarios that passed although the call failed: the text of an error is a text as well."""
    for name, checks in found.items():
        for one in checks:
            result = (one.get("details") or {}).get("result") or {}
            if name.startswith("tools-call") and name != "tools-call-error" and result.get("isError"):
                yield f"{name}: {one['id']} passed on the text of an error"


def _inspected(node: Path, root: Path, era: str, asked: tuple[str, ...]) -> Iterator[str]:
    """Yield what the inspector has against the server's answer."""
    words = [node, npm.inspector(), "--cli", *SERVER, "-C", root, "--protocol-era", era, *asked]
    env = server_env({"MCP_CATALOG_PATH": str(root.parent / "catalog.json"), "PATH": os.environ["PATH"]})
    done = subprocess.run(words, capture_output=True, text=True, timeout=WAIT_S, check=False, env=env, cwd=root)
    if done.returncode:
        yield f"inspector: {era}: {' '.join(asked)}: status {done.returncode}: {done.stderr[-800:]}"
    else:
        print(f"conformance: inspector: {era}: {' '.join(asked[1:])}")


if __name__ == "__main__":
    sys.exit(main())
