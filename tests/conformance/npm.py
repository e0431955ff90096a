"""The programs of others that test servers: which versions, and how they get below ``.venv``; nothing is on the system.

They need a node that is newer than many systems have; where the system's is older, a package brings one.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(sys.prefix) / "conformance"
CLIENTS = Path(sys.prefix) / "conformance-clients"
SUITES = {"stable": "0.1.16", "next": "0.2.0-alpha.12"}
"""The versions of the conformance suite; only the later one knows the revision of 2026."""
INSPECTOR = "2.12.0"
NODE = "22.23.3"
OLDEST_NODE = (22, 19)
_MACHINES = {"x86_64": "x64", "amd64": "x64", "arm64": "arm64", "aarch64": "arm64"}


class Missing(Exception):
    """The programs are not on this machine, and cannot be brought."""


def set_up() -> Path:
    """Bring what is not there yet, and return the node to run it with. Raises: ``Missing``."""
    npm = shutil.which("npm")
    if npm is None:
        raise Missing("npm is not on the PATH")
    wanted = {name: f"npm:@modelcontextprotocol/conformance@{version}" for name, version in SUITES.items()}
    wanted["inspector"] = f"npm:@modelcontextprotocol/inspector@{INSPECTOR}"
    system = _system_node()
    if system is None:
        machine = _MACHINES.get(platform.machine().lower(), platform.machine().lower())
        wanted["node-bin"] = f"npm:node-{sys.platform}-{machine}@{NODE}"
    _bring(npm, FOLDER, wanted)
    return system or FOLDER / "node_modules" / "node-bin" / "bin" / "node"


def _bring(npm: str, folder: Path, wanted: Mapping[str, str]) -> None:
    """Bring packages into a folder, unless they are there. Raises: ``Missing``."""
    manifest = json.dumps({"name": "conformance", "private": True, "dependencies": wanted}, indent=1)
    stamp = folder / "installed.json"
    if not stamp.exists() or stamp.read_text() != manifest:
        folder.mkdir(exist_ok=True, parents=True)
        (folder / "package.json").write_text(manifest)
        options = ["--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts"]
        words = [npm, "install", *options, "--prefix", str(folder)]
        if status := subprocess.run(words, check=False, stdout=subprocess.DEVNULL).returncode:
            raise Missing(f"npm cannot bring the programs: it ended with status {status}")
        stamp.write_text(manifest)


def client(package: str) -> Path:
    """Bring one client of agents, `NAME@VERSION`, into a folder of its own, and return that. Raises: ``Missing``."""
    npm = shutil.which("npm")
    if npm is None:
        raise Missing("npm is not on the PATH")
    name, _, version = package.rpartition("@")
    folder = CLIENTS / name.replace("/", "-").removeprefix("@")
    _bring(npm, folder, {name: version})
    return folder


def suite(name: str) -> Path:
    """Return the program of one version of the suite."""
    return FOLDER / "node_modules" / name / "dist" / "index.js"


def inspector() -> Path:
    """Return the program of the inspector."""
    return FOLDER / "node_modules" / "inspector" / "clients" / "launcher" / "build" / "index.js"


def _system_node() -> Path | None:
    found = shutil.which("node")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout if found else ""
    version = re.match(r"v([0-9]+)\.([0-9]+)", said)
    return Path(found) if found and version and tuple(map(int, version.groups())) >= OLDEST_NODE else None
