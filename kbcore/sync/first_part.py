"""The difference that some of the files of a first sync make, as a worker process works it out. Pure.

Invariant: the operations and rows of all parts together are those of the difference of all files. A part knows of the
other files which entities they state (``StatedEntities``). Whatever depends on more than that is in its answer, for
``first_sync`` to settle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.ids import is_link_id
from kbcore.model.graph import FORMER_IDS, Link, Node, SourceFile
from kbcore.model.record import Operation, PutNode, ReadSource, StateLink, vocabulary_of
from kbcore.model.schema import Schema
from kbcore.model.state import Stamp, State
from kbcore.sync.difference import difference
from kbcore.sync.entities import Past
from kbcore.sync.id_ownership import FileReading
from kbcore.sync.jobs import Part
from kbcore.view.tables import is_link_to_page, link_row, node_row, source_row

ROW_OF: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    "node": node_row,
    "link": link_row,
    "source": source_row,
}
_encoder: Final = msgspec.json.Encoder()


class StatedEntities:
    """The entities that the files of a first sync state, as far as a part has to know those of other files.

    ``stated`` has the type of each, by its id, by the path of the file that keeps it; all in order. ``unkept`` are
    those that cannot be recorded.
    """

    def __init__(self, stated: Mapping[str, Mapping[str, str]], unkept: Sequence[str] = ()) -> None:
        self._ids = {path: [key for key in types if key not in unkept] for path, types in stated.items()}
        self._path_of = {key: path for path, ids in self._ids.items() for key in ids}
        self._stated = stated

    def ids(self, path: str) -> Sequence[str]:
        """Return the entities that a file defines."""
        return self._ids.get(path, ())

    def nodes(self, keys: Sequence[str]) -> list[Node]:
        """Return those of these entities that are recorded, as far as others need to know of them."""
        found = [(key, self._path_of[key]) for key in keys if key in self._path_of]
        return [Node(key, {"type": self._stated[path][key]}, {"type": path}, "", "", path, 0, 0) for key, path in found]


def plan_part(
    readings: Sequence[FileReading], entities: StatedEntities, schema: Schema, stamp: Stamp
) -> tuple[Part, dict[str, bytes]]:
    """Return the result for files in order of their paths, and by table the rows of the view, as lines of JSON."""
    paths = {link.target for reading in readings for link in reading.facts.links if link.is_path}
    ids_of_path = {path: entities.ids(path) for path in paths}
    state = State(_others(readings, entities, ids_of_path))
    found = difference(readings, (), state, schema, stamp, ids_of_path=ids_of_path, past=Past())
    puts = [op for op in found.ops if isinstance(op, PutNode)]
    stated = [op for op in found.ops if isinstance(op, StateLink)]
    sources = [op for op in found.ops if isinstance(op, ReadSource)]
    is_plain = (
        len(puts) + len(stated) + len(sources) == len(found.ops)
        and not any(is_link_id(end) for op in stated for end in (op.from_id, op.to_id))
        and all(_is_plain(reading) for reading in readings)
    )
    nodes = [change.after for change in found.changes.nodes if change.after]
    links = [change.after for change in found.changes.links if change.after]
    read = [change.after for change in found.changes.sources if change.after]
    elements: dict[str, Sequence[Node | Link | SourceFile]] = {"node": nodes, "link": links, "source": read}
    rows = {
        table: _encoder.encode_lines([ROW_OF[table](element) for element in listed])
        for table, listed in elements.items()
    }
    part = Part(
        puts=_joined(puts),
        links=_joined(stated),
        sources=_joined(sources),
        vocabulary=vocabulary_of(found.ops),
        created=[node.id for node in nodes],
        link_keys=[link.id for link in links],
        with_fields=[link.id for link in links if link.fields],
        unresolved=[(link.id, is_link_to_page(link)) for link in links if not link.is_resolved],
        problems=[*found.problems],
        warnings=[*found.warnings],
        is_plain=is_plain,
        row_bytes=max(len(line) for lines in rows.values() for line in lines.split(b"\n")),
    )
    return part, rows


def _joined(ops: Sequence[Operation]) -> bytes:
    return _encoder.encode(ops)[1:-1]


def _is_plain(reading: FileReading) -> bool:
    """Tell whether a file states each entity once, and none that had another id before."""
    entities = reading.facts.entities
    is_once = len(entities) < 2 or len({entity.id for entity in entities}) == len(entities)  # noqa: PLR2004 - two
    return is_once and not any(FORMER_IDS in entity.fields for entity in entities)


def _others(
    readings: Sequence[FileReading], entities: StatedEntities, ids_of_path: Mapping[str, Sequence[str]]
) -> list[Node]:
    """Return the entities of other files that these files name, or state as well."""
    named = {link.target for reading in readings for link in reading.facts.links if not link.is_path}
    named.update(entity.id for reading in readings for entity in reading.facts.entities)
    named.update(key for ids in ids_of_path.values() for key in ids)
    paths = {reading.path for reading in readings}
    return [node for node in entities.nodes(sorted(named)) if node.path not in paths]
