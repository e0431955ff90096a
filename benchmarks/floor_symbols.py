"""The floor of a first sync of manifests: read every manifest below a folder and decode it as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main(folder: str) -> None:
    """Read and decode, and insist that there was something to decode."""
    symbols = sum(len(json.loads(path.read_bytes())["symbols"]) for path in sorted(Path(folder).rglob("symbols.json")))
    if not symbols:
        raise SystemExit(f"no symbols in {folder}")


if __name__ == "__main__":
    main(sys.argv[1])
