"""Files that worker processes read and plan: the record is that of one process, whatever happens to a worker."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbcore import progress
from kbcore.clock import SystemClock
from kbcore.extract import markdown
from kbcore.extract.facts import Facts, PathRule, SourceFile
from kbcore.model import record
from kbcore.model.state import Stamp
from kbcore.sync import jobs
from kbcore.sync.comparison import FileSources, compare
from kbcore.sync.first_sync import plan_first
from kbcore.sync.pending import find_pending, place_of
from kbcore.sync.scan import FoundFile, ScanState, read_facts, scan
from kbcore.sync.wanted_files import activate
from kbcore.sync.workers import Workers
from tests.support.effort.scale import SEED, tries
from tests.support.generators.trees import Edits
from tests.support.processes.children import workers_of
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import Project, document, req
from tests.support.sources.scip_indexes import index_of, sources

REQS = "docs/requirements"
TESTS = "docs/tests"
LEAST = 4
"""The number of files from which on these tests have them read by workers; a part has as many."""
STAMP = Stamp(1, "2026-01-01T00:00:00.000000Z", "tester", "sync")


def tree(seed: int) -> dict[bytes, bytes]:
    """Return documents, good and bad, that name each other; some have the same id, some state the same edge."""
    dice, edits = random.Random(seed), Edits(seed)
    files: dict[bytes, bytes] = {}
    for number in range(dice.randint(LEAST, 40)):
        folder = dice.choice([REQS, TESTS, "docs/adr"])
        name = f"{folder}/{dice.choice(['n', 'é', 'z'])}{number}.md".encode()
        if dice.random() < 0.05:
            name = name.replace(b"/n", b"/\xff")
        if dice.random() < 0.4:
            files[name] = edits.text().encode("latin-1")
            continue
        key = f"{'TEST' if folder == TESTS else 'REQ'}-{number if dice.random() < 0.9 else 1}"
        fields = {"title": f"T {number}", "status": "open", "links": links(dice)}
        fields |= {"type": "nonsense"} if dice.random() < 0.1 else {}
        fields |= {"former_ids": "[OLD-1]"} if dice.random() < 0.02 else {}
        fields |= {"size": "1" * 30} if dice.random() < 0.1 else {}
        files[name] = document(key, body=f"See [one](../tests/n{dice.randrange(40)}.md) and REQ-1.", **fields).encode()
    return files


def links(dice: random.Random) -> str:
    """Return the links of a document: by id, by path, with an edge, with fields."""
    number = dice.randrange(40)
    kinds = [
        f"REQ-{number}",
        f"TEST-{number}",
        f"n{number}.md",
        f"{{verified_by: [TEST-{number}, TEST-{number + 1}]}}",
        f"{{type: depends_on, target: REQ-{number}}}",
        "{type: relates_to, target: REQ-1, confidence: 0.5}" if dice.random() < 0.2 else "REQ-1",
        "NOWHERE-1",
    ]
    return f"[{', '.join(dice.sample(kinds, dice.randrange(4)))}]"


def made(root: Path, files: Mapping[bytes, bytes]) -> None:
    for name, content in files.items():
        path = root / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.fixture(params=[2, 0], ids=["two workers", "no worker"])
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    with Workers(request.param, LEAST) as some:
        yield some


def found_by(project: Project, workers: Workers | None) -> tuple[list[FoundFile], Any]:
    """Return the files of a project with what they state, and the scan."""
    workspace = project.workspace()
    pending = find_pending(None, place_of(workspace), {}, SystemClock().epoch_ns(), workers=workers)
    return [read_facts(project.root, one) for one in pending.changed], pending


@pytest.mark.parametrize("seed", range(SEED, SEED + tries(6, 60)))
def test_workers_find_what_one_process_finds(project: Project, workers: Workers, seed: int) -> None:
    made(project.root, tree(seed))
    alone, of_one = found_by(project, None)
    together, of_many = found_by(project, workers)
    assert together == alone
    assert list(of_many.scan.files) == list(of_one.scan.files)
    assert of_many.scan.stamps == of_one.scan.stamps
    assert of_many.scan.read == of_one.scan.read


@pytest.mark.parametrize("seed", range(SEED, SEED + tries(12, 200)))
def test_parts_come_to_the_operations_of_the_whole(
    project: Project, workers: Workers, tmp_path: Path, seed: int
) -> None:
    made(project.root, tree(seed))
    alone, _ = found_by(project, None)
    workspace = project.workspace()
    ways = FileSources(workspace.schema, (), lambda one: one, lambda _, __: [])
    whole = compare(project.view(), STAMP, alone, ways)
    if len(alone) < LEAST:
        return
    first = plan_first(alone, workspace.schema, STAMP, workers, str(tmp_path))
    if first is None:
        return  # the whole is planned in one then: what may lead to that is in the tests below
    assert first.last.encoded
    pieces = [one for one in first.last.encoded.operations() if one]
    assert b"[" + b",".join(pieces) + b"]" == msgspec.json.encode(whole.last.ops)
    assert first.last.problems == whole.last.problems
    assert first.last.warnings == whole.last.warnings
    assert first.noted() == whole.noted()
    assert first.unresolved_created() == whole.unresolved_created()
    assert [one.path for one in first.readings] == sorted(one.path for one in whole.readings)
    created = tuple(sorted(change.key for change in whole.last.changes.nodes))
    assert (first.last.encoded.created, first.last.encoded.edges) == (created, len(whole.last.changes.links))


def test_most_trees_are_planned_in_parts(project: Project, workers: Workers, tmp_path: Path) -> None:
    files = {
        f"{REQS}/a.md": req("REQ-1", links="[TEST-1, b.md, NOWHERE]"),
        f"{REQS}/b.md": req("REQ-2", type="nonsense"),
        f"{REQS}/c.md": req("REQ-1", links="[REQ-2]"),
        f"{REQS}/d.md": "no document\n",
        f"{REQS}/e.md": "---\nid: REQ-5\ntitle: [\n---\n",
        f"{TESTS}/a.md": document("TEST-1", title="T", status="active", links="[REQ-1, REQ-2, ../requirements/a.md]"),
    }
    project.write(files)
    alone, _ = found_by(project, None)
    first = plan_first(alone, project.workspace().schema, STAMP, workers, str(tmp_path))
    assert first
    assert first.last.encoded
    assert first.last.encoded.replaced, "REQ-1 and TEST-1 state one edge"
    assert not any(one.encoded for one in alone)  # while the record is written they would only take memory


@pytest.mark.parametrize(
    "texts",
    [
        [req("REQ-1", former_ids="[OLD-1]"), req("REQ-2", links="[OLD-1]")],
        [req("REQ-1", links="[{type: relates_to, target: REQ-2, confidence: 0.5}]"),
         req("REQ-2", links="[{type: relates_to, target: REQ-1, reverse: true}]")],
        [req("REQ-1", type="nonsense"), req("REQ-1")],
    ],
    ids=["a former id", "fields of an edge", "the first of two entities with an id cannot be recorded"],
)  # fmt: skip
def test_what_no_part_knows_is_planned_as_a_whole(project: Project, texts: list[str]) -> None:
    for number, text in enumerate([*texts, *(req(f"X-{one}") for one in range(LEAST))]):
        project.write({f"{REQS}/{number}.md": text})
    assert_same_record(project)


def test_an_index_of_source_code_is_planned_in_parts_as_in_one_process(project: Project) -> None:
    code = {path: text for path, text in sources("typescript") if path.endswith(".ts")}
    settings = {"extractors": {"code": {"paths": ["src/*.ts"]}, "scip": {"paths": ["*.scip"]}}}
    project.write({".kb/config.json": json.dumps(settings), "index.scip": index_of("typescript")} | code)
    project.write({f"{REQS}/{number}.md": req(f"REQ-{number}") for number in range(LEAST)})
    assert_same_record(project)


@pytest.mark.parametrize("seed", range(SEED, SEED + tries(3, 40)))
def test_the_record_and_the_view_are_those_of_one_process(project: Project, seed: int) -> None:
    made(project.root, tree(seed))
    assert_same_record(project)


def assert_same_record(project: Project) -> None:
    """Sync the files with workers, and again in a store of its own without; compare line, answer and views."""
    many = project.sync(workers=2, least_files=LEAST)
    seen, folded = rows(project), folded_rows(project)
    assert seen == folded
    line = recorded(project.root)
    other = Project(project.root.with_name("alone"))
    files = [path for ending in ("md", "ts", "scip") for path in sorted(project.root.rglob(f"*.{ending}"))]
    for path in [*files, *project.root.glob(".kb/config.json")]:
        made(other.root, {os.fsencode(path.relative_to(project.root)): path.read_bytes()})
    alone = other.sync(workers=0)
    assert line == recorded(other.root)
    assert answered(many) == answered(alone)
    assert masked(seen) == masked(rows(other))
    other.close()


def answered(answer: Any) -> dict[str, Any]:
    plain = answer.as_json()
    return plain | {"noted": answer.noted, "created": answer.outcome.created, "edges": answer.outcome.edges}


def recorded(root: Path) -> bytes:
    """Return the record of a store with one, without what is another in each store."""
    [journal] = stores_at(root).rglob("journal-*.jsonl")
    raw: msgspec.Raw = msgspec.json.decode(journal.read_bytes(), type=dict[str, msgspec.Raw])["rec"]
    found = record.decode(bytes(raw), seq=1)
    return record.encode(msgspec.structs.replace(found, changeset_id="", at="", epoch="", commit=""))


def rows(project: Project) -> dict[str, list[Any]]:
    return table_rows(project.view())


def folded_rows(project: Project) -> dict[str, list[Any]]:
    """Return the rows that folding the journal gives."""
    workspace = project.workspace()
    store = workspace.store(workspace.head().branch)
    with store.view_until(store.head().seq) as view:
        return table_rows(view)


def table_rows(view: Any) -> dict[str, list[Any]]:
    tables = {"any_node": "id", "link": "id", "source": "path", "record": "seq"}
    found = {table: view.rows(f"select * from {table} order by {key}") for table, key in tables.items()}
    return found | {"stated": [*view.stated_by([row[0] for row in found["source"]])]}


def masked(found: dict[str, list[Any]]) -> Any:
    """Return rows without the times and the place of the record."""
    times = {row[3] for row in found["record"]}
    shown = {table: listed for table, listed in found.items() if table != "record"}
    return json.loads(json.dumps(shown).replace(times.pop(), "then"))


def test_a_worker_that_is_killed_is_reported_and_its_files_are_read(project: Project) -> None:
    project.write({f"{REQS}/{number}.md": req(f"REQ-{number}", links="[REQ-0]") for number in range(600)})
    killed = list[int]()
    is_over = threading.Event()

    def kill() -> None:
        while not (killed or is_over.is_set()):
            for pid in workers_of(os.getpid())[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        answer = project.sync(workers=2, least_files=LEAST)
    finally:
        is_over.set()
        killer.join()
    assert killed
    assert len(answer.outcome.created) == 600
    assert [one for one in answer.outcome.warnings if "status -9" in one]
    assert not workers_of(os.getpid())
    other = Project(project.root.with_name("other"))
    other.write({f"{REQS}/{number}.md": req(f"REQ-{number}", links="[REQ-0]") for number in range(600)})
    other.sync(workers=0)
    assert recorded(project.root) == recorded(other.root)
    other.close()


def test_jobs_are_given_back_when_every_worker_is_killed() -> None:
    with Workers(2, 1) as workers:
        message = jobs.encode(jobs.ReadFiles(0, []))
        answers = []
        for key, answer in workers.results((number, message) for number in range(20)):
            if not answers:
                for pid in workers.pids:
                    os.kill(pid, signal.SIGKILL)
            answers.append((key, answer))
    assert sorted(key for key, _ in answers) == list(range(20))
    assert answers[-1][1] is None
    assert set(workers.ended) == {-signal.SIGKILL}


def test_a_worker_that_answers_with_an_error_is_not_asked_again() -> None:
    with Workers(1, 1) as workers:
        assert list(workers.results([(1, b"no message"), (2, jobs.encode(jobs.ReadFiles(0, [])))])) == [
            (1, None),
            (2, None),
        ]
        assert workers.warnings


def test_no_worker_is_left_after_a_sync_or_when_it_is_given_up(project: Project) -> None:
    project.write({f"{REQS}/{number}.md": req(f"REQ-{number}") for number in range(40)})
    project.sync(workers=2, least_files=LEAST)
    assert not workers_of(os.getpid())
    with pytest.raises(ZeroDivisionError):
        give_up()
    assert not workers_of(os.getpid())


def give_up() -> None:
    """Fail while workers have jobs."""
    message = jobs.encode(jobs.ReadFiles(0, []))
    with Workers(2, 1) as workers:
        for _ in workers.results((number, message) for number in range(20)):
            assert workers_of(os.getpid())
            raise ZeroDivisionError


def test_a_later_sync_of_many_files_reads_them_with_workers(project: Project) -> None:
    project.sync({f"{REQS}/0.md": req("REQ-0")})
    project.write({f"{REQS}/{number}.md": req(f"REQ-{number}", links="[REQ-0]") for number in range(40)})
    answer = project.sync(workers=2, least_files=LEAST)
    assert (answer.outcome.seq, len(answer.outcome.created)) == (2, 39)
    assert rows(project)["link"] == folded_rows(project)["link"]
    assert not project.sync(workers=2, least_files=LEAST, rebuild=True).outcome.applied


def test_one_core_starts_no_worker() -> None:
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    code += "from kbcore.sync.workers import usual_count; print(usual_count())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


class Foreign:
    """An extractor of another package; it notes the process that it runs in."""

    name = "foreign"
    version = 1

    def __init__(self) -> None:
        self.pids = set[int]()

    def path_rules(self, _: Mapping[str, Any]) -> list[PathRule]:
        return [PathRule("docs/*.txt")]

    def extract(self, _: SourceFile, __: Mapping[str, Any]) -> Facts:
        self.pids.add(os.getpid())
        return Facts()


def test_an_extractor_of_another_package_runs_in_the_process_of_the_sync(tmp_path: Path, workers: Workers) -> None:
    folder = tmp_path / REQS
    folder.mkdir(parents=True)
    for number in range(9):
        (folder / f"{number}.md").write_text(req(f"REQ-{number}"))
        (tmp_path / "docs" / f"{number}.txt").write_text("x")
    foreign = Foreign()
    wants = activate([(markdown.EXTRACTOR, {}), (foreign, {})], {"edgeNames": []}, b"")
    found = scan(tmp_path, wants, ScanState({}, {}, 0), workers=workers)
    assert foreign.pids == {os.getpid()}
    by_worker = {path for path, one in found.files.items() if one.encoded}
    assert by_worker == {f"{REQS}/{number}.md" for number in range(9)}


def test_a_file_of_which_only_the_hash_is_known_is_read_before_it_is_planned(project: Project, tmp_path: Path) -> None:
    project.write({f"{REQS}/{number}.md": req(f"REQ-{number}") for number in range(LEAST)})
    alone, _ = found_by(project, None)
    known = [msgspec.structs.replace(alone[0], facts=None), *alone[1:]]
    with Workers(0, LEAST) as workers:
        assert plan_first(alone, project.workspace().schema, STAMP, workers, str(tmp_path))
        assert plan_first(known, project.workspace().schema, STAMP, workers, str(tmp_path)) is None


def test_without_room_for_temporary_files_all_is_planned_as_a_whole(project: Project, tmp_path: Path) -> None:
    project.write({f"{REQS}/{number}.md": req(f"REQ-{number}") for number in range(LEAST)})
    alone, _ = found_by(project, None)
    with Workers(0, LEAST) as workers:
        assert plan_first(alone, project.workspace().schema, STAMP, workers, str(tmp_path / "missing")) is None


def test_a_first_sync_whose_view_cannot_be_published_is_read_from_the_journal(project: Project) -> None:
    caches_at(project.root).rmdir()
    caches_at(project.root).write_text("in the way")
    answer = project.sync({f"{REQS}/{number}.md": req(f"REQ-{number}") for number in range(9)}, least_files=LEAST)
    assert len(answer.outcome.created) == 9
    assert rows(project) == folded_rows(project)


def test_a_record_that_comes_while_files_are_read_is_kept(project: Project) -> None:
    project.write({f"{REQS}/{number}.md": req(f"REQ-{number}", links="[CLIENT-1]") for number in range(9)})
    other, written = Project(project.root, is_new=False), list[int]()

    def report(done: int, _: int, __: str) -> None:
        if done and not written:
            client = {"id": "CLIENT-1", "type": "req", "title": "T", "status": "open"}
            written.append(other.apply(entities=[client]).seq)

    with progress.listener(report):
        answer = project.sync(workers=2, least_files=LEAST)
    assert (written, answer.outcome.seq, len(answer.outcome.created)) == ([1], 2, 9)
    assert all(resolved for *_, resolved in project.edges("CLIENT-1"))
    assert rows(project) == folded_rows(project)
    other.close()
