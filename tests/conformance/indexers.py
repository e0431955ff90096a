"""Hold what is read of SCIP indexes against the indexers that write them: ``make conformance`` runs it.

Each indexes the source files of its fixture again. What KB reads of the new index is what it reads of the stored one.
The programs come from npm, below ``.venv``. Nothing passes because of a program that is not there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from kbcore.extract.facts import Facts, SourceFile
from kbcore.extract.scip.extractor import EXTRACTOR
from tests.support.sources.scip_indexes import index_of, sources

FOLDER: Final = Path(sys.prefix) / "conformance" / "indexers"
WANTED: Final = {"@sourcegraph/scip-python": "0.6.6", "@sourcegraph/scip-typescript": "0.4.0"}
INDEXERS: Final = {
    "javascript": ("scip-typescript", "index", "--infer-tsconfig"),
    "python": ("scip-python", "index", ".", "--project-name=shop", "--project-version=1"),
    "typescript": ("scip-typescript", "index"),
}
WAIT_S: Final = 300.0


def main() -> int:
    """Run each indexer, and return the status."""
    try:
        _set_up()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"conformance of indexes: NOT RUN, the programs cannot be installed: {error}", file=sys.stderr)
        return 3
    status = 0
    for name, words in INDEXERS.items():
        with tempfile.TemporaryDirectory(prefix="kb-indexers-") as folder:
            found = _stated(_indexed(Path(folder) / "shop", name, words))
        wanted = _stated(index_of(name))
        print(f"conformance of indexes: {words[0]} on {name}: {'ok' if found == wanted else 'other facts'}")
        if found != wanted:
            print(f"{found}\n{wanted}", file=sys.stderr)
            status = 1
    return status


def _set_up() -> None:
    """Bring the programs. Raises: ``OSError``, ``CalledProcessError``."""
    manifest = json.dumps({"name": "indexers", "private": True, "dependencies": WANTED}, indent=1)
    stamp = FOLDER / "installed.json"
    if stamp.is_file() and stamp.read_text() == manifest:
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "package.json").write_text(manifest)
    options = ["--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(FOLDER)]
    subprocess.run(["npm", "install", *options], check=True, stdout=subprocess.DEVNULL)
    stamp.write_text(manifest)


def _indexed(folder: Path, name: str, words: tuple[str, ...]) -> bytes:
    for path, text in sources(name):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    program = FOLDER / "node_modules" / ".bin" / words[0]
    node = shutil.which("node") or "node"
    subprocess.run(
        [node, str(program), *words[1:]], cwd=folder, check=True, timeout=WAIT_S, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return (folder / "index.scip").read_bytes()


def _stated(data: bytes) -> tuple[Any, ...]:
    facts: Facts = EXTRACTOR.extract(SourceFile("index.scip", data), {})
    entities = sorted((one.id, one.fields["attributes.kind"]) for one in facts.entities)
    return entities, [(one.subject, one.kind, one.target) for one in facts.links], facts.problems


if __name__ == "__main__":
    sys.exit(main())
