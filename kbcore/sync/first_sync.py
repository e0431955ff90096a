"""The first sync of a branch with many files, planned in parts by worker processes.

Invariant: the record is byte for byte that of ``comparison.compare``, and the rows are those that folding it gives.
Where that is not certain, nothing is planned here, and ``compare`` is asked. What a part makes is held as JSON only,
and its rows are in files: the values of all files are never held together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from kbcore import limits
from kbcore.errors import StorageError
from kbcore.extract.changes import is_change_file
from kbcore.extract.facts import Facts
from kbcore.git.file_dates import DocumentDates
from kbcore.ids import link_id
from kbcore.model.folding import apply
from kbcore.model.read_set import NOTHING
from kbcore.model.record import StateLink
from kbcore.model.schema import Schema
from kbcore.model.state import Changes, EncodedChanges, Stamp, State
from kbcore.sync import jobs
from kbcore.sync.comparison import Compared, UnresolvedCounts
from kbcore.sync.difference import Difference
from kbcore.sync.first_part import ROW_OF, StatedEntities
from kbcore.sync.id_ownership import FileReading
from kbcore.sync.job_runner import JobRunner
from kbcore.sync.jobs import OPERATIONS, EntityList, JobResult
from kbcore.sync.scan import FoundFile
from kbcore.sync.workers import Workers

if TYPE_CHECKING:
    from kbcore.view.view import View

_AT_ONCE: Final = 1000
"""Files of a part: enough that what is done once for a part costs little, and few enough that its values do.

DuckDB takes a millisecond for each file of rows, whatever it holds."""
_AT_ONCE_BYTES: Final = 2 * limits.MIB
"""Encoded facts of a part."""


class _StatedId(msgspec.Struct, frozen=True):
    id: str
    type: str


class _Stated(msgspec.Struct, frozen=True):
    """The part of ``Facts`` that is needed here."""

    entities: tuple[_StatedId, ...] = ()
    is_complete: bool = True


_stated: Final = msgspec.msgpack.Decoder(_Stated)
_links: Final = msgspec.json.Decoder(list[StateLink])
_lines: Final = msgspec.json.Encoder()
_WHOLE: Final = Facts()
_IN_PART: Final = Facts(is_complete=False)


def is_first(view: View, files: Sequence[FoundFile]) -> bool:
    """Tell whether files can be planned here: the branch has no record, and none of them has changes of clients."""
    return not (view.seq or view.is_overlaid) and not any(is_change_file(one.path) for one in files)


def plan_first(
    files: Sequence[FoundFile],
    schema: Schema,
    stamp: Stamp,
    workers: Workers,
    folder: str,
    *,
    dates: Mapping[str, DocumentDates] | None = None,
) -> Compared | None:
    """Return the difference that files make of an empty state; None where it has to be worked out as a whole.

    ``folder`` is a folder of this user alone, for the files with the rows; ``dates`` are what git knows of the files.
    The files lose their encoded facts, once there is a plan.
    """
    facts = {one.path: one.encoded or jobs.encode_facts(one.facts) for one in files}
    if not all(facts.values()):
        return None
    try:
        known = _Known(facts, dates or {})
        found = _planned(files, known, jobs.PrepareFirst(schema, stamp, EntityList()), workers, folder)
    finally:
        workers.stop()  # from here on they would only take memory
    if found is not None:
        for one in files:
            # A plan on another state reads the files again.
            msgspec.structs.force_setattr(one, "encoded", b"")
    return found


class _Known(NamedTuple):
    """The known facts of files by their paths: their encoded facts, and their dates where git knows them."""

    facts: Mapping[str, bytes]
    dates: Mapping[str, DocumentDates]


def _planned(
    files: Sequence[FoundFile], known: _Known, prepared: jobs.PrepareFirst, workers: Workers, folder: str
) -> Compared | None:
    readings, entities, repeated = _read(sorted(files, key=lambda one: one.path), known.facts)
    while True:
        parts = _parts(readings, known, msgspec.structs.replace(prepared, entities=entities), workers, folder)
        if parts is None:
            return None
        created = {key for part in parts for key in part.created}
        lost = [key for key in entities.ids if key not in created]
        if not repeated.isdisjoint(lost):
            return None
        if lost == entities.unkept:
            return _whole(readings, parts, entities, prepared.stamp, folder)
        # Links were resolved as if these had been recorded.
        entities = msgspec.structs.replace(entities, unkept=lost)


def _read(ordered: Sequence[FoundFile], facts: Mapping[str, bytes]) -> tuple[list[FileReading], EntityList, set[str]]:
    """Return the files without what they state, the entities that they keep, and the ids that several state."""
    readings: list[FileReading] = []
    entities = EntityList()
    known, repeated, numbers = set[str](), set[str](), dict[str, int]()
    for one in ordered:
        found = _stated.decode(facts[one.path])
        readings.append(FileReading(one.path, one.hash, one.wanted.mark, _WHOLE if found.is_complete else _IN_PART))
        for entity in found.entities:
            if entity.id in known:
                repeated.add(entity.id)
                continue
            known.add(entity.id)
            entities.ids.append(entity.id)
            entities.paths.append(one.path)
            entities.type_numbers.append(numbers.setdefault(entity.type, len(numbers)))
    entities.types.extend(numbers)
    return readings, entities, repeated


def _parts(
    readings: Sequence[FileReading],
    known: _Known,
    preparation: jobs.PrepareFirst,
    workers: Workers,
    folder: str,
) -> list[JobResult] | None:
    """Return the parts in order; None where one cannot say what comes of its files, or has no room for its rows."""

    def messages() -> Iterator[tuple[tuple[int, bytes], bytes]]:
        for number, some in enumerate(_divided(readings, known.facts, min(_AT_ONCE, workers.least_files))):
            dates = {path: known.dates[path] for path, *_ in some if path in known.dates}
            message = jobs.encode(jobs.PlanPart(number, folder, some, dates))
            yield (number, message), message

    prepared = jobs.encode(preparation)
    workers.prepare(prepared)
    here: JobRunner | None = None
    parts: dict[int, JobResult] = {}
    for (number, message), answer in workers.results(messages()):
        if answer is None:
            if here is None:
                here = JobRunner()
                here.answer(prepared)
            answer = here.answer(message)  # noqa: PLW2901 - the process that was to answer has ended
        part = jobs.decode_part(answer)
        if part is None or not part.is_plain:
            return None
        parts[number] = part
    return [parts[number] for number in sorted(parts)]


def _divided(
    readings: Sequence[FileReading], facts: Mapping[str, bytes], at_once: int
) -> Iterator[list[tuple[str, str, str, bytes]]]:
    """Yield the files of each part, at most so many, as a job has them."""
    some: list[tuple[str, str, str, bytes]] = []
    left_bytes = _AT_ONCE_BYTES
    for one in readings:
        some.append((one.path, one.hash, one.extractor, facts[one.path]))
        left_bytes -= len(facts[one.path])
        if len(some) == at_once or left_bytes <= 0:
            yield some
            some, left_bytes = [], _AT_ONCE_BYTES
    if some:
        yield some


def _whole(
    readings: Sequence[FileReading], parts: Sequence[JobResult], entities: EntityList, stamp: Stamp, folder: str
) -> Compared | None:
    """Return what the parts come to together. None where files state fields of the same edge."""
    counts = Counter(key for part in parts for key in part.link_keys)
    shared = frozenset(key for key, count in counts.items() if count > 1)
    if any(not shared.isdisjoint(part.with_fields) for part in parts):
        return None
    numbers = range(len(parts))
    links = [jobs.part_file(folder, "state", number) for number in numbers]
    replacing = _write_shared(links, shared, StatedEntities(entities), stamp, Path(folder)) if shared else ()
    unresolved = dict(one for part in parts for one in part.unresolved)
    encoded = EncodedChanges(
        operations=partial(_read_pieces, [jobs.part_file(folder, kind, at) for kind in OPERATIONS for at in numbers]),
        vocabulary=max(part.vocabulary for part in parts),
        created=tuple(sorted(key for part in parts for key in part.created)),
        edges=len(counts),
        row_files={table: tuple(jobs.part_file(folder, table, at) for at in numbers) for table in ROW_OF},
        row_bytes=max(part.row_bytes for part in parts),
        replaced=tuple(sorted(shared)),
        replacing_files=replacing,
    )
    problems = tuple(one for part in parts for one in part.problems)
    warnings = tuple(one for part in parts for one in part.warnings)
    pages = sum(unresolved.values())
    found = Difference((), Changes(), problems, warnings, encoded)
    counted = UnresolvedCounts(pages, len(unresolved) - pages)
    return Compared(tuple(readings), found, NOTHING, None, counted)


def _read_pieces(paths: Sequence[str]) -> Iterator[bytes]:
    """Yield the content of files. Raises: ``StorageError``."""
    for path in paths:
        try:
            yield Path(path).read_bytes()
        except OSError as error:
            raise StorageError(f"a temporary file of the sync cannot be read: {error.strerror}") from error


def _write_shared(
    paths: Sequence[str], shared: frozenset[str], entities: StatedEntities, stamp: Stamp, folder: Path
) -> tuple[str, ...]:
    """Write the rows of the edges that several parts state into a file; ``paths`` have the operations of all edges."""
    ops: list[StateLink] = []
    for piece in _read_pieces(paths):
        stated = _links.decode(b"[" + piece + b"]")
        ops += [op for op in stated if link_id(op.type, op.kind, op.from_id, op.to_id) in shared]
    state = State(entities.nodes(sorted({end for op in ops for end in (op.from_id, op.to_id)})))
    rows = [ROW_OF["link"](change.after) for change in apply(state, stamp, ops).links if change.after]
    path = folder / "shared.json"
    path.write_bytes(_lines.encode_lines(rows))
    return (str(path),)
