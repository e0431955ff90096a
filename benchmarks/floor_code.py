"""The floor of a first sync of source code: read every Python file below a folder and parse it with tree-sitter."""

from __future__ import annotations

import sys
from pathlib import Path

from kbcore.extract.code.languages import language_of, tools_of


def main(folder: str) -> None:
    """Read and parse, and insist that there was something to parse."""
    language = language_of("a.py")
    if language is None:
        raise SystemExit("no grammar of Python")
    parser = tools_of(language).parser
    nodes = sum(parser.parse(path.read_bytes()).root_node.child_count for path in sorted(Path(folder).rglob("*.py")))
    if not nodes:
        raise SystemExit(f"no code in {folder}")


if __name__ == "__main__":
    main(sys.argv[1])
