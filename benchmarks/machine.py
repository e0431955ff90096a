"""The machine of the figures: processor, system, file system, versions, and how busy it was."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path

_WIDTH = 120
_PACKAGES = ("duckdb", "msgspec", "PyYAML", "mcp", "typer", "watchfiles")


def described(directory: Path) -> str:
    """Return one paragraph on this machine, as far as figures depend on it."""
    git = subprocess.run(["git", "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()[2]
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return (
        f"{_processor()}, {os.cpu_count()} processors; {platform.system()} {platform.release().partition('-')[0]}, "
        f"{_file_system(directory)}; {python}, {packages}, git {git}. "
        f"{load('before')}"
    )


def paragraph(text: str) -> str:
    """Return text in lines that are short enough for a page of the documentation."""
    return textwrap.fill(text, _WIDTH)


def load(when: str) -> str:
    """Return one sentence on how busy the machine is now; ``when`` is before or after the run."""
    shown = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    return f"Load {when} the run (1, 5, 15 minutes): {shown}."


def _processor() -> str:
    """Return the processor's name; its architecture where the system does not say."""
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _file_system(directory: Path) -> str:
    """Return the type of the file system that holds a directory."""
    table = Path("/proc/mounts")
    if not table.exists():
        return sys.platform
    mounts = [line.split()[1:3] for line in table.read_text(encoding="utf-8").splitlines()]
    holding = [(len(place), kind) for place, kind in mounts if directory.is_relative_to(place)]
    return max(holding)[1] if holding else "unknown file system"
