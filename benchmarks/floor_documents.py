"""The floor of a cold sync: read every document of a folder and parse its front matter with YAML's fast loader."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml


def main(folder: str) -> None:
    """Read and parse, and insist that there was something to parse."""
    parsed = 0
    for path in sorted(Path(folder).rglob("*.md")):
        data = path.read_bytes()
        end = data.index(b"\n---\n", 4)
        facts = yaml.load(data[4:end], Loader=yaml.CSafeLoader)
        parsed += "id" in facts
    if not parsed:
        raise SystemExit(f"no documents in {folder}")


if __name__ == "__main__":
    main(sys.argv[1])
