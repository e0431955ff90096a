"""Hold exports against the programs that they are for: ``make conformance`` runs it.

Doorstop, Sphinx-Needs, StrictDoc and the reader of ReqIF load what KB exports, and write it again; what KB reads of
that is the same as before. The programs are in an environment of their own. Nothing passes because of a program that
is not there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from kbcore.extract.facts import SourceFile
from kbcore.extract.sources import profiles
from kbcore.extract.sources.extractor import EXTRACTOR
from kbcore.model.schema import CORE
from kbcore.query.exchange.formats import PROFILES, Format, exchanged
from tests.support.repository.repos import use_empty_home

FOLDER: Final = Path(sys.prefix) / "conformance" / "tools"
WANTED: Final = ("doorstop==3.2", "sphinx-needs==9.1.0", "reqif==0.1.0", "strictdoc==0.30.4")
WAIT_S: Final = 300.0
TEXT: Final = 'The system shall open.\n\nAt once, with a "key" & <sign>.'
ENTITIES: Final[list[dict[str, Any]]] = [
    *(
        {"id": f"REQ-00{at}", "type": "req", "title": f'Open {at}: "now" & then', "status": "draft", "tags": ["a", "b"]}
        | {"attributes": {"text": TEXT, "risk": "high"}}
        for at in (1, 2, 3)
    ),
    {"id": "TC-001", "type": "test", "title": "Try it", "status": "active", "attributes": {"text": "Push."}},
]
EDGES: Final[list[dict[str, Any]]] = [
    {"type": "relates_to", "kind": "parent", "from": "TC-001", "to": "REQ-001"},
    {"type": "depends_on", "from": "REQ-002", "to": "REQ-001"},
    {"type": "verified_by", "from": "REQ-001", "to": "TC-001"},
    {"type": "relates_to", "kind": "links", "from": "REQ-003", "to": "REQ-001"},
]
SPHINX: Final = """\
project = "export"
version = "1.0"
extensions = ["sphinx_needs"]
needs_id_regex = "^.*$"
needs_types = [dict(directive=one, title=one, prefix="", color="#fff", style="node") for one in ("req", "test")]
needs_fields = {"risk": {"nullable": True}}
needs_links = {one: {"incoming": one, "outgoing": one} for one in ("depends_on", "verified_by", "relates_to_parent")}
"""
SDOC: Final = """\
[DOCUMENT]
TITLE: System

[REQUIREMENT]
UID: SYS-1
STATUS: Active
TITLE: Stop
STATEMENT: >>>
The machine stops.
<<<

[REQUIREMENT]
UID: SYS-2
TITLE: Stop at once
STATEMENT: Within a second.
RELATIONS:
- TYPE: Parent
  VALUE: SYS-1
"""


class Broken(Exception):
    """A program refused what KB wrote, or what is read of it again differs."""


def main() -> int:
    """Run everything, and return the status."""
    try:
        programs = set_up(FOLDER, WANTED)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"conformance of exports: NOT RUN, the programs cannot be installed: {error}", file=sys.stderr)
        return 3
    use_empty_home()
    status = 0
    for check in CHECKS:
        with tempfile.TemporaryDirectory(prefix="kb-tools-") as name:
            try:
                check(Path(name), programs)
            except (Broken, subprocess.CalledProcessError) as error:
                said = getattr(error, "stdout", None) or ""
                print(f"conformance of exports: {check.__name__}: {error}\n{said}", file=sys.stderr)
                status = 1
            else:
                print(f"conformance of exports: {check.__name__}: ok")
    return status


def set_up(folder: Path, wanted: Sequence[str]) -> Path:
    """Bring packages of Python into a folder, and return where their programs are.

    Raises: ``OSError``, ``CalledProcessError``.
    """
    programs = folder / "bin"
    said = folder / "wanted.json"
    if not (said.is_file() and json.loads(said.read_text()) == list(wanted)):
        venv.create(folder, with_pip=True)
        _run(programs / "python", "-m", "pip", "install", "--quiet", *wanted)
        said.write_text(json.dumps(wanted))
    return programs


def _run(*words: str | Path, cwd: Path | None = None) -> None:
    subprocess.run(
        [str(word) for word in words], cwd=cwd, check=True, timeout=WAIT_S, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def _export(folder: Path, format_: Format, name: str = "") -> None:
    found = exchanged(format_, ENTITIES, EDGES, frozenset(CORE.edges))
    if found.left_out or found.added:
        message = f"{format_} does not hold {found.left_out}"
        raise Broken(message)
    for path, data in found.files.items():
        file = folder / (path or name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def _read(profile: str, folder: Path, pattern: str) -> tuple[dict[str, Any], set[tuple[str, str, str, str]]]:
    """Return the fields of the entities that files state, and their edges."""
    rules = profiles.read(profile)["source"]
    facts = [
        EXTRACTOR.extract(SourceFile(f"reqs/{path.relative_to(folder).as_posix()}", path.read_bytes()), rules)
        for path in sorted(folder.glob(pattern))
    ]
    entities = {one.id: {"type": one.type, **one.fields} for found in facts for one in found.entities}
    links = {
        (one.target, one.type or "", one.kind, one.subject)
        if one.reverse
        else (one.subject, one.type or "", one.kind, one.target)
        for found in facts
        for one in found.links
    }
    return entities, links


def _expect_all(profile: str, folder: Path, pattern: str, fields: tuple[str, ...]) -> None:
    """Compare what files state with what was exported, whatever the blanks of texts. Raises: ``Broken``."""
    entities, links = _read(profile, folder, pattern)
    wanted = {
        one["id"]: {name: _plain(value) for name in fields if (value := _field(one, name)) is not None}
        for one in ENTITIES
    }
    found = {key: {name: _plain(one[name]) for name in fields if name in one} for key, one in entities.items()}
    if found != wanted:
        message = f"entities differ:\n{found}\n{wanted}"
        raise Broken(message)
    edges = {(one["from"], one["type"], one.get("kind", ""), one["to"]) for one in EDGES}
    if links != edges:
        message = f"edges differ: {sorted(links ^ edges)}"
        raise Broken(message)


def _plain(value: Any) -> Any:
    """Return a text with one blank for all blanks: the reader of ReqIF writes line breaks of attributes as they are."""
    return " ".join(value.split()) if isinstance(value, str) else value


def _field(entity: dict[str, Any], name: str) -> Any:
    key = name.removeprefix("attributes.")
    return entity.get(name) if key == name else entity.get("attributes", {}).get(key)


ALL: Final = ("type", "title", "status", "tags", "attributes.text", "attributes.risk")


def check_doorstop(folder: Path, programs: Path) -> None:
    """Doorstop validates the files, reviews them all, and writes them again."""
    _export(folder, "doorstop")
    _run("git", "init", "--quiet", cwd=folder)
    _run(programs / "doorstop", "--no-suspect-check", "--no-child-check", cwd=folder)
    _run(programs / "doorstop", "review", "all", cwd=folder)
    _run(programs / "doorstop", "clear", "all", cwd=folder)
    _expect_all(PROFILES["doorstop"], folder, "*/[!.]*.yml", ALL)


def check_sphinx_needs(folder: Path, programs: Path) -> None:
    """Sphinx-Needs imports the file, and writes a file of its own."""
    _export(folder, "needs", "exported.json")
    (folder / "conf.py").write_text(SPHINX)
    (folder / "index.rst").write_text("Title\n=====\n\n.. needimport:: exported.json\n")
    _run(programs / "sphinx-build", "-W", "-q", "-b", "needs", ".", "out", cwd=folder)
    _expect_all(PROFILES["needs"], folder / "out", "needs.json", ALL)


def check_reqif(folder: Path, programs: Path) -> None:
    """The reader of ReqIF finds no fault with the file by the schema, and writes it again."""
    _export(folder, "reqif", "a.reqif")
    _run(programs / "reqif", "validate", "--use-reqif-schema", "a.reqif", cwd=folder)
    _run(programs / "reqif", "passthrough", "a.reqif", "again.reqif", cwd=folder)
    _expect_all(PROFILES["reqif"], folder, "again.reqif", ALL)


def check_strictdoc(folder: Path, programs: Path) -> None:
    """StrictDoc makes a document of the ReqIF, in which every entity is by its id."""
    _export(folder, "reqif", "a.reqif")
    _run(programs / "strictdoc", "convert", "a.reqif", "out", cwd=folder)
    entities, _ = _read("strictdoc", folder, "out/*.sdoc")
    titles = {key: one["title"] for key, one in entities.items() if one["type"] != "doc"}
    if titles != {one["id"]: one["title"] for one in ENTITIES}:
        message = f"entities differ: {titles}"
        raise Broken(message)


def check_strictdoc_export(folder: Path, programs: Path) -> None:
    """A document that StrictDoc accepts is read as its own ReqIF of that document is."""
    (folder / "docs").mkdir()
    (folder / "docs" / "system.sdoc").write_text(SDOC)
    _run(programs / "strictdoc", "export", ".", "--formats=reqif-sdoc", "--output-dir", "out", cwd=folder)
    entities, links = _read("strictdoc", folder, "docs/*.sdoc")
    if links != {("SYS-2", "relates_to", "parent", "SYS-1")}:
        message = f"edges differ: {links}"
        raise Broken(message)
    others, _ = _read("reqif", folder, "out/**/*.reqif")
    wanted = {one["title"] for one in entities.values() if one["type"] == "req"}
    if not wanted <= {one["title"] for one in others.values()}:
        message = f"entities differ: {others}"
        raise Broken(message)


CHECKS: Final[tuple[Callable[[Path, Path], None], ...]] = (
    check_doorstop,
    check_sphinx_needs,
    check_reqif,
    check_strictdoc,
    check_strictdoc_export,
)

if __name__ == "__main__":
    sys.exit(main())
