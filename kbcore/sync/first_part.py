"""The difference that some of the files of a first sync make, as a worker process works it out. Pure.

Invariant: the operations and rows of all parts together are those of the difference of all files. A part knows of the
other files which entities they state (``StatedEntities``). Whatever depends on more than that is in its answer, for
``first_sync`` to settle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from kbcore.extract.facts import ends_of
from kbcore.git.file_dates import DocumentDates
from kbcore.ids import is_link_id
from kbcore.model.graph import FORMER_IDS, Link, Node, SyncedFile
from kbcore.model.record import Operation, PutNode, ReadSource, StateLink, vocabulary_of
from kbcore.model.schema import Schema
from kbcore.model.state import Stamp, State
from kbcore.sync.difference import difference
from kbcore.sync.entity_renames import Past
from kbcore.sync.id_ownership import FileReading
from kbcore.sync.jobs import OPERATIONS, EntityList, JobResult
from kbcore.view.tables import link_row, may_lack_an_end, node_row, source_row

ROW_OF: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    "node": node_row,
    "link": link_row,
    "source": source_row,
}
_encoder: Final = msgspec.json.Encoder()


class StatedEntities:
    """The entities that the files of a first sync state, as far as a part has to know those of other files."""

    def __init__(self, listed: EntityList) -> None:
        self._listed = listed
        unkept = frozenset(listed.unkept)
        self._at = {key: at for at, key in enumerate(listed.ids) if key not in unkept}

    @cached_property
    def _ids(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for key, at in self._at.items():
            found.setdefault(self._listed.paths[at], []).append(key)
        return found

    def ids(self, path: str) -> Sequence[str]:
        """Return the entities that a file defines."""
        return self._ids.get(path, ())

    def are_kept(self, nodes: Iterable[Node]) -> bool:
        """Tell whether each of these entities is that of the file that keeps its id."""
        return all(node.id in self._at and self._listed.paths[self._at[node.id]] == node.path for node in nodes)

    def nodes(self, keys: Sequence[str]) -> list[Node]:
        """Return those of these entities that are recorded, as far as others need to know of them."""
        return [self._node(key, self._at[key]) for key in keys if key in self._at]

    def _node(self, key: str, at: int) -> Node:
        path, type_ = self._listed.paths[at], self._listed.types[self._listed.type_numbers[at]]
        return Node(key, {"type": type_}, {"type": path}, "", "", path, 0, 0)


def plan_part(
    readings: Sequence[FileReading],
    entities: StatedEntities,
    schema: Schema,
    stamp: Stamp,
    dates: Mapping[str, DocumentDates],
) -> tuple[JobResult, dict[str, bytes]]:
    """Return the result for files in order of their paths, and what its files hold, by kind (``jobs.part_file``)."""
    paths = {link.target for reading in readings for link in reading.facts.links if link.is_path}
    ids_of_path = {path: entities.ids(path) for path in paths}
    state = State(_others(readings, entities, ids_of_path))
    found = difference(readings, (), state, schema, stamp, ids_of_path=ids_of_path, past=Past(dates=dates))
    ops: dict[type, list[Any]] = {PutNode: [], StateLink: [], ReadSource: []}
    for op in found.ops:
        ops.setdefault(type(op), []).append(op)
    puts, stated, sources, *others = ops.values()
    nodes = [change.after for change in found.changes.nodes if change.after]
    links = [change.after for change in found.changes.links if change.after]
    read = [change.after for change in found.changes.sources if change.after]
    is_plain = (
        not others
        and not any(is_link_id(end) for op in stated for end in (op.from_id, op.to_id))
        and all(_is_plain(reading) for reading in readings)
        and entities.are_kept(nodes)
    )
    elements: dict[str, Sequence[Node | Link | SyncedFile]] = {"node": nodes, "link": links, "source": read}
    rows: dict[str, bytes] = {
        table: _encoder.encode_lines([ROW_OF[table](element) for element in listed])
        for table, listed in elements.items()
    }
    part = JobResult(
        vocabulary=vocabulary_of(found.ops),
        created=[node.id for node in nodes],
        link_keys=[link.id for link in links],
        with_fields=[link.id for link in links if link.fields],
        unresolved=[(link.id, may_lack_an_end(link)) for link in links if not link.is_resolved],
        problems=[*found.problems],
        warnings=[*found.warnings],
        is_plain=is_plain,
        row_bytes=max(len(line) for lines in rows.values() for line in lines.split(b"\n")),
    )
    operations = (_joined(puts), _joined(stated), _joined(sources))
    return part, rows | dict(zip(OPERATIONS, operations, strict=True))


def _joined(ops: Sequence[Operation]) -> bytes:
    return _encoder.encode(ops)[1:-1]


def _is_plain(reading: FileReading) -> bool:
    """Tell whether a file states each entity once, none in part, and none that had another id before."""
    entities = reading.facts.entities
    is_once = len(entities) < 2 or len({entity.id for entity in entities}) == len(entities)  # noqa: PLR2004 - two
    return is_once and not any(entity.is_part or FORMER_IDS in entity.fields for entity in entities)


def _others(
    readings: Sequence[FileReading], entities: StatedEntities, ids_of_path: Mapping[str, Sequence[str]]
) -> list[Node]:
    """Return the entities of other files that these files name, or state as well."""
    named = {end for reading in readings for link in reading.facts.links if not link.is_path for end in ends_of(link)}
    named.update(entity.id for reading in readings for entity in reading.facts.entities)
    named.update(key for ids in ids_of_path.values() for key in ids)
    paths = {reading.path for reading in readings}
    return [node for node in entities.nodes(sorted(named)) if node.path not in paths]
