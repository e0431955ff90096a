"""Targets of the fuzzer: each parser of something that others write, and the inputs that it begins with."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import io
import json
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.support.fuzz.fuzzing import Target, corpus

LINEAGE = "a" * 64
STORE = Path("/store/main")
_AT = "2026-11-20T09:30:00.000000Z"


def _line() -> Target:
    """One line of a journal."""
    from kbcore.storage import frame
    from kbcore.storage.frame import Flaw

    record = b'{"at":"2026-11-20T09:30:00.000000Z","n":1}'
    _, line = frame.encode(1, LINEAGE, record)

    def use(data: bytes) -> None:
        found = frame.decode(data, 1, LINEAGE)
        if isinstance(found, Flaw):
            assert found.sentence().strip(), "a flaw without a word"
            frame.peek(data)
        else:
            assert found.seq == 1, "another record"
            frame.time_of(found.rec)

    def seal(data: bytes) -> bytes:
        """Return a payload in a frame that fits, as far as it can be framed."""
        payload = data.partition(b'"rec":')[2].removesuffix(b"\n").removesuffix(b"}")
        body = b'{"v":1,"seq":1,"prev":"%b","sum":"%b","rec":%b}\n'
        return body % (LINEAGE.encode(), frame.checksum(1, 1, LINEAGE, payload).encode(), payload)

    return Target([line], use, seal)


def _record() -> Target:
    """The payload of a line."""
    from kbcore.model import record
    from tests.support.generators import histories

    history = histories._preludes[3]
    seeds = [record.encode(entry.record) for entry in histories.entries_of(history)]
    read = record.ReadSource(path="docs/a.md", hash="1" * 64, extractor="markdown", base=0)
    whole = histories.entries_of([[read], [record.ForgetSource(path="docs/a.md", base=0)]])
    return Target(
        [*seeds, *(record.encode(one.record) for one in whole)], lambda data: record.decode(data, seq=7) and None
    )


def _head() -> Target:
    """The head file."""
    import hashlib

    from kbcore.storage import head

    snapshots = (head.SnapshotRef("snapshot-0000000004.jsonl", 4, "b" * 64, 900, "c" * 64),)
    sealed = head.Segment("journal-0000000001.jsonl", 1, LINEAGE, head.Sealed(500, 4, "b" * 64))
    active = head.Segment("journal-0000000005.jsonl", 5, "b" * 64)
    tip = head.Tip(6, "d" * 64, active.file, 300, _AT)
    whole = head.Head(1, (), "e" * 32, LINEAGE, "main", None, None, snapshots, (sealed, active), tip)
    first = head.Segment("journal-0000000001.jsonl", 1, LINEAGE)
    empty = head.Tip(0, LINEAGE, first.file, 0, _AT)
    origin = head.CopiedFrom("main", 4, "b" * 64)
    small = head.Head(1, (), "e" * 32, LINEAGE, "b", origin, None, (), (first,), empty)

    def use(data: bytes) -> None:
        head.decode_unproven(data)
        assert head.encode(head.decode(data, STORE / "head.json")), "a head that cannot be written"

    def seal(data: bytes) -> bytes:
        body = data[: -head.CHECK_BYTES]
        return body + b',"sum":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'

    return Target([head.encode(whole), head.encode(small)], use, seal)


def _snapshot() -> Target:
    """A snapshot, and the facts in it."""
    import hashlib

    from kbcore.model import canonical
    from kbcore.storage import head, snapshot
    from tests.support.disk.disk import MemoryDisk
    from tests.support.generators import histories

    fs = MemoryDisk()
    for folder in (STORE.parent, STORE):
        fs.mkdir(folder)
    first = head.Segment("journal-0000000001.jsonl", 1, LINEAGE)
    of = head.Head(
        1, (), "e" * 32, LINEAGE, "main", None, None, (), (first,), head.Tip(3, "b" * 64, first.file, 9, _AT)
    )
    state = histories.states_of(histories.entries_of(histories._preludes[3]))[-1]
    name = snapshot.write(fs, STORE, of, canonical.lines(state, ())).file
    file = fs._find(STORE / name)
    seeds = [bytes(file.data)]

    def use(data: bytes) -> None:
        file.data[:] = data
        lineage, ref = snapshot.inspect(fs, STORE, name)
        assert lineage is not None
        canonical.read(snapshot.read(fs, STORE, of, ref))

    def seal(data: bytes) -> bytes:
        """Return the lines with the checksums that belong to them."""
        header, *facts = data.split(b"\n")[:-2] or [b""]
        facts = [fact.partition(b'"fact":')[2].removesuffix(b"}") or b"{}" for fact in facts]
        body = header + b"\n" + b"".join(b'{"crc":"%08x","fact":%b}\n' % (zlib.crc32(one), one) for one in facts)
        return body + b'{"count":%d,"sha256":"%b"}\n' % (len(facts), hashlib.sha256(body).hexdigest().encode())

    return Target(seeds, use, seal)


def _changeset(folder: str, *, is_deletion: bool = False, is_yaml: bool = False) -> Target:
    from kbcli.input import changeset_yaml
    from kbcore.model import changeset
    from kbcore.text import json_reader

    def use(data: bytes) -> Iterable[Any]:
        text = data.decode("utf-8-sig", "surrogatepass" if not is_yaml else "replace").replace("\r\n", "\n")
        if is_yaml:
            root, faults = changeset_yaml.read(text)
        else:
            tree = json_reader.read(text)
            root, faults = tree.root, tree.problems
        if any(fault.severity == "error" for fault in faults):
            return faults
        return (changeset.parse_deletion if is_deletion else changeset.parse)(root).problems

    return Target(corpus(folder), _decoded(use))


def _decoded(use: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Leave out what is no text at all, which is refused before it gets here."""

    def only_text(data: bytes) -> Any:
        try:
            data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            data = data.decode("latin-1").encode()
        return use(data)

    return only_text


def _extracted(name: str, path: str, *folders: str, **settings: Any) -> Target:
    from kbcore.extract import gherkin, manifest, markdown
    from kbcore.extract.facts import SourceFile

    extractor = {"markdown": markdown, "manifest": manifest, "gherkin": gherkin}[name].EXTRACTOR

    def use(data: bytes) -> Iterable[Any]:
        facts = extractor.extract(SourceFile(path, data, "req"), settings)
        assert facts.entities or facts.problems or name == "manifest", "a file was passed over in silence"
        json.dumps([[one.id, one.type, one.fields] for one in facts.entities], allow_nan=False).encode()
        return facts.problems

    return Target(corpus(*folders), use)


def _scip() -> Target:
    """A SCIP index: it is read whole, or refused with a reason."""
    from kbcore.extract.facts import SourceFile
    from kbcore.extract.scip.extractor import EXTRACTOR
    from kbcore.ids import check_id
    from tests.support.sources.scip_indexes import FIXTURES, index_of

    def use(data: bytes) -> Iterable[Any]:
        facts = EXTRACTOR.extract(SourceFile("index.scip", data), {})
        assert facts.entities or facts.links or facts.problems, "an index was passed over in silence"
        ends = {end for one in facts.links for end in (one.subject, one.target)}
        assert not any(check_id(key) for key in ends | {one.id for one in facts.entities}), "an id that cannot be used"
        return facts.problems

    return Target([index_of(path.name) for path in sorted(FIXTURES.iterdir())], use)


def _report() -> Target:
    """A report of a test run: each outcome is matched with tests, and can be recorded."""
    from kbcore.errors import Problem
    from kbcore.model.verdict import Verdict
    from kbcore.results.collecting import CollectedOutcomes
    from kbcore.results.matching import KnownTest, KnownTests
    from kbcore.results.reading import report_of
    from kbcore.results.reported import ReportFault

    known = KnownTests([
        KnownTest("tests/test_cart.py#test_total", "test_total", "tests/test_cart.py"),
        KnownTest("TEST-1", "it has a total", automated_by=("com.acme.CartTest",)),
    ])  # fmt: skip

    def use(data: bytes) -> list[Problem]:
        collected = CollectedOutcomes(known)
        try:
            report = report_of(io.BytesIO(data))
            collected.add(report.outcomes, "report.xml")
            for one in report.covered:
                assert all(line >= 0 for line in one.lines), "a line before the first"
        except ReportFault as fault:
            return [Problem("report.xml", fault.code, f"'report.xml' cannot be used: {fault.message}.", fault.remedy)]
        verdicts: dict[str, Verdict] = collected.verdicts(_AT, "")
        json.dumps([one.fields() for one in verdicts.values()], allow_nan=False).encode()
        return []

    return Target(corpus("report"), use)


def _settings(folder: str, read: Callable[[str], Any]) -> Target:
    return Target(corpus(folder), _decoded(lambda data: read(data.decode("utf-8", "surrogatepass")) and None))


def _config() -> Target:
    from kbcore.config import settings

    known = settings.NameSources(lambda: ["orphans"], lambda: {"mine": {}}, lambda: ["own"], lambda: ["fact"])
    path = ".kb/config.json"
    return _settings("config", lambda text: settings.checked_config(settings.read_config(text, path), known))


def _schema() -> Target:
    from kbcore.config.schema_files import load_schema

    return _settings("schema", lambda text: load_schema({".kb/schema/a.yaml": text}))


def _rules(folder: str, path: str) -> Target:
    from kbcore.rules import load_rules

    return _settings(folder, lambda text: load_rules({path: text}))


def _query() -> Target:
    """The arguments of a query: what is bound is data, and only KB's own words become SQL."""
    from kbcore import query, view
    from kbcore.errors import InvalidQuery, Problem
    from kbcore.model.schema import CORE
    from kbcore.query import condition_sql, sql
    from kbcore.store.history.when import when_of
    from kbcore.text import cursor
    from kbmcp.tools import argument_models, run_call
    from kbmcp.tools import query as query_tool

    parts = [*Path(query.__file__).parent.glob("*.py"), *Path(view.__file__).parent.glob("*.py")]
    words = set(re.findall(r"\w+", "".join(path.read_text() for path in parts)))
    words.add("0" * condition_sql._DIGITS)  # in front of numbers, for their order among texts
    digest = cursor.request_mark("x")
    fields = [
        name
        for name in argument_models.QueryArguments.model_fields
        if name not in {"from_", "depth", "edges", "reverse"}
    ]
    seeds = [*corpus("query"), json.dumps({"cursor": cursor.encode(cursor.Cursor(digest, 3, 9, "A"))}).encode()]

    def use(data: bytes) -> Iterable[Any]:
        try:
            given = json.loads(data)
        except (ValueError, RecursionError):
            text = data.decode("utf-8", "replace")
            name = fields[len(data) % len(fields)]
            given = {
                name: text if isinstance(argument_models.QueryArguments.model_fields[name].default, str) else [text]
            }
        given = given if isinstance(given, dict) else {"where": given}
        run_call.check_size(given)
        asked, problems = argument_models.read(argument_models.QueryArguments, given)
        if asked is None:
            return problems
        if asked.cursor:
            try:
                cursor.decode(asked.cursor, digest)
            except InvalidQuery as error:
                problems += [*error.details]
        if isinstance(asked.at, str) and when_of(asked.at, now="2026-11-21T12:00:00.000000Z") is None:
            problems.append(Problem("$.at", "bad_value", "It is none.", ""))
        checked = query.check(query_tool._query_of(asked, problems, is_part=False), CORE, None, problems)
        for text in _statements(sql.compile(checked)):
            foreign = set(re.findall(r"\w+", re.sub(r"\$\d+", "", text))) - words
            assert not foreign, f"{foreign} of the request became SQL"
        return problems

    return Target(seeds, use)


def _statements(compiled: Any) -> list[str]:
    return [
        value for value in (getattr(compiled, name) for name in compiled.__struct_fields__) if isinstance(value, str)
    ]


def _message() -> Target:
    """A line that comes to the MCP server."""
    import anyio

    from kbmcp.protocol.stdio import Pipes

    loop = asyncio.new_event_loop()
    reads, writes = os.pipe()
    answers, sink = os.pipe()
    os.set_blocking(answers, False)
    fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, 2**20)  # more than the answer to any one line
    said = bytearray()

    async def start() -> tuple[Pipes, Any, Any]:
        return Pipes(reads, sink), *anyio.create_memory_object_stream[Any](100)

    pipes, found, taken = loop.run_until_complete(start())
    os.close(writes)
    note = Path(os.devnull).open("w")  # noqa: SIM115 - as long as the process lives

    async def take(lines: list[bytes]) -> None:
        for line in lines:
            async with anyio.create_task_group() as tasks:
                await pipes._take(line, found, tasks)
            with contextlib.suppress(BlockingIOError):
                said.extend(os.read(answers, 2**20))
            while taken.statistics().current_buffer_used:
                taken.receive_nowait()

    def use(data: bytes) -> None:
        import sys

        kept, sys.stderr = sys.stderr, note
        try:
            loop.run_until_complete(take(data.split(b"\n", 1000)))
        finally:
            sys.stderr = kept
        lines = said.splitlines()
        said.clear()
        for line in lines:
            answer = json.loads(line)
            for one in answer if isinstance(answer, list) else [answer]:
                assert one["error"]["message"].endswith("."), one

    return Target(corpus("mcp"), use)


def _arguments() -> Target:
    """The arguments of every other tool, up to where a branch would be opened."""
    from kbcore.model.schema import CORE
    from kbmcp.tools import argument_models, run_call, tool_list

    assert argument_models.published(
        argument_models.QueryArguments, argument_models.SchemaNames(tuple(CORE.entities), tuple(CORE.edges))
    )
    seeds = [*corpus("changeset", "deletion"), b'{"rules": ["acyclic"], "ids": ["A"], "limit": 3, "cursor": "x"}']
    seeds.append(b'{"action": "revert", "id": "A", "seq": 3, "to": 4, "limit": 5, "message": "m", "cursor": ""}')

    def use(data: bytes) -> Iterable[Any]:
        try:
            given = json.loads(data)
        except (ValueError, RecursionError):
            given = {"id": data.decode("utf-8", "replace"), "action": "log", "limit": len(data)}
        problems: list[Any] = []
        for tool in tool_list.TOOLS:
            run_call.check_size(given if isinstance(given, dict) else {})
            problems += tool.read(given if isinstance(given, dict) else {"ids": given})[1]
        return problems

    return Target(seeds, use)


def _repository(*parts: str, seeds: list[bytes]) -> Target:
    """A file of a git directory, read to find out what is checked out."""
    from kbcore import ids
    from kbcore.git.head import read_head
    from kbcore.git.repository import find_repository

    root = Path(tempfile.mkdtemp(prefix="kb-fuzz-"))
    for folder in ("objects", "refs/heads"):
        (root / ".git" / folder).mkdir(parents=True)
    (root / ".git/HEAD").write_bytes(b"ref: refs/heads/main\n")
    place = root.joinpath(".git", *parts)

    def use(data: bytes) -> None:
        place.write_bytes(data)
        name = read_head(find_repository(root), {"PATH": ""}).branch
        directory = ids.encode_branch(name)
        assert "/" not in directory, "a directory that is no single name"
        assert directory not in {".", ".."}, "a directory that leads elsewhere"

    return Target(seeds, use)


def _names() -> Target:
    """Names of branches, ids, times, globs and filters."""
    from kbcore import ids
    from kbcore.model import values
    from kbcore.query import parse_pattern, parse_where
    from kbcore.text import globs

    seeds = [b"feature/one", b"CON", b"-x", b"a%2fb", b"2026-01-31T12:00:00.5+02:00", b"^implements:SYM-9", b"a=b=c"]
    seeds += [b"docs/**/[a-z]?*.md", b"@", b"detached:" + b"0" * 40, b"x" * 240]

    def use(data: bytes) -> None:
        text = data.decode("utf-8", "surrogatepass" if len(data) % 2 else "replace")[:100_000]
        ids.check_id(text)
        directory = ids.encode_branch(text)
        assert re.fullmatch(r"[a-z0-9_.%~-]{1,200}", directory), directory
        assert ids.decode_branch(directory) in {text, None}
        ids.check_branch_name(text)
        values.normal_time(text)
        if not globs.glob_fault(text):
            globs.matches("docs/requirements/a.md", [text[:200]])
        parse_where(text)
        parse_pattern(text)

    return Target(seeds, _decoded(use))


def _kip() -> Target:
    """A KIP command with its parameters; what can be parsed is written, and parsed again to the same tree."""
    from kbcore import limits
    from kbcore.kip.binding import bind
    from kbcore.kip.parsing import parse
    from kbcore.kip.printer import write
    from tests.support.generators.kip_trees import without_places

    parameters: dict[str, Any] = dict.fromkeys(
        ("name", "t", "id", "event_name", "source", "predicate", "type", "q"), "Ada"
    )
    parameters |= {"limit": 5, "most": 1, "key": "k", "v": [{"a": ":v"}], "metadata": {"b": None}, "attributes": {}}

    def use(data: bytes) -> None:
        tree = parse(data.decode("utf-8", "surrogatepass"))
        text = write(tree)
        if len(text.encode()) <= limits.MAX_KIP_BYTES:
            assert without_places(parse(text)) == without_places(tree), "another tree"
        bind(tree, parameters)

    return Target(corpus("kip"), _decoded(use))


TARGETS: dict[str, Callable[[], Target]] = {
    "line": _line,
    "record": _record,
    "head": _head,
    "snapshot": _snapshot,
    "changeset": lambda: _changeset("changeset"),
    "deletion": lambda: _changeset("deletion", is_deletion=True),
    "yamlchangeset": lambda: _changeset("yamlchangeset", is_yaml=True),
    "document": lambda: _extracted("markdown", "docs/a.md", "document", idFromFilename=True),
    "manifest": lambda: _extracted("manifest", "symbols.yaml", "manifest"),
    "manifestjson": lambda: _extracted("manifest", "symbols.json", "manifestjson"),
    "feature": lambda: _extracted("gherkin", "a.feature", "feature"),
    "scip": _scip,
    "report": _report,
    "config": _config,
    "schema": _schema,
    "rules": lambda: _rules("rules", ".kb/rules/a.yaml"),
    "prologrules": lambda: _rules("prologrules", ".kb/rules/a.pl"),
    "query": _query,
    "message": _message,
    "arguments": _arguments,
    "HEAD": lambda: _repository("HEAD", seeds=corpus("head_of_git")),
    "gitconfig": lambda: _repository("config", seeds=corpus("gitconfig")),
    "names": _names,
    "kip": _kip,
}
"""Each target by its name; making one imports what it needs."""
