"""KB's server against the reference memory server of MCP: write one entity with its edge, search, read one.

That server reads its whole file for every call and writes it whole for every change, and does not sync it; KB's upsert
is one call and on the disk when it answers, the other one's two calls are not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from benchmarks import generate, peers
from benchmarks.mcp_upsert import Upserts
from benchmarks.measure import ProcessFailed, Sample, Series, in_turns, together
from benchmarks.peers import Found
from benchmarks.pipe import Pipe, answer
from benchmarks.place import Place
from benchmarks.table import Versus
from kbcore.model.record import PutNode, StateLink

TOOL = peers.SERVER_MEMORY


def run(place: Place, tool: Found) -> list[Versus]:
    """Measure both servers with the same entities, call by call alternately."""
    measured = [_Pair(place, tool, count).measured() for count in place.sizes.entities]
    return [row for same_work in zip(*measured, strict=True) for row in same_work]


class _Pair:
    """Both servers, with the same entities and edges."""

    def __init__(self, place: Place, tool: Found, count: int) -> None:
        self._count = count
        self._label = tool.label
        self._rounds = max(2, place.sizes.calls // 10)
        self._kb = Upserts(place, count, "beside-memory")
        env = {**place.env, "MEMORY_FILE_PATH": str(place.directory / f"memory-{count}.jsonl")}
        self._peer = Pipe([str(tool.program)], cwd=place.directory, env=env)
        entities, relations = _graph(count)
        self._titles = {one["name"]: one["observations"][0] for one in entities}
        self._peer.call("create_entities", {"entities": entities})
        self._peer.call("create_relations", {"relations": relations})
        self._numbers = itertools.count(1)

    def measured(self) -> list[Versus]:
        """Measure the three kinds of work, end both servers and return the figures."""
        kinds: dict[str, tuple[Callable[[], Sample], Callable[[], Sample]]] = {
            "write one entity and edge": (self._kb.next, self._create),
            "search by words": (self._query_text, self._search),
            "read one entity": (self._query_id, self._open),
        }
        taken = {work: in_turns(*both, rounds=self._rounds) for work, both in kinds.items()}
        peaks = self._kb.close(), self._peer.close().peak_bytes
        return [self._row(work, kb, theirs, peaks) for work, (kb, theirs) in taken.items()]

    def _row(self, work: str, kb: Series, theirs: Series, peaks: tuple[int | None, int | None]) -> Versus:
        return Versus(work, self._count, "entities", kb, self._label, theirs, *peaks)

    @property
    def _id(self) -> str:
        return generate.entity_id(self._count // 2)

    def _create(self) -> Sample:
        number = next(self._numbers)
        entity, relation = _upsert(f"NEW-{number:06d}", self._id)
        return together(
            self._peer.call("create_entities", {"entities": [entity]})[0],
            self._peer.call("create_relations", {"relations": [relation]})[0],
        )

    def _search(self) -> Sample:
        sample, result = self._peer.call("search_nodes", {"query": self._titles[self._id]})
        return self._with(self._id, sample, [one["name"] for one in answer(result)["entities"]])

    def _open(self) -> Sample:
        sample, result = self._peer.call("open_nodes", {"names": [self._id]})
        return self._with(self._id, sample, [one["name"] for one in answer(result)["entities"]])

    def _query_text(self) -> Sample:
        sample, result = self._kb.pipe.call("kb_query", {"text": self._titles[self._id]})
        return self._with(self._id, sample, [one["id"] for one in answer(result)["entities"]])

    def _query_id(self) -> Sample:
        sample, result = self._kb.pipe.call("kb_query", {"ids": [self._id]})
        return self._with(self._id, sample, [one["id"] for one in answer(result)["entities"]])

    @staticmethod
    def _with(key: str, sample: Sample, found: list[str]) -> Sample:
        if key not in found:
            raise ProcessFailed(f"{key} was not found")
        return sample


def _graph(count: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what the records of a store say, as the peer wants it."""
    entities, relations = [], []
    for one in generate.records(count):
        for op in one.ops:
            if isinstance(op, PutNode):
                entities.append(_entity(op.id, op.set))
            elif isinstance(op, StateLink):
                relations.append({"from": op.from_id, "to": op.to_id, "relationType": op.type})
    return entities, relations


def _upsert(key: str, target: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what KB's changeset says, as the peer wants it."""
    asked: Any = generate.changeset(key, target)
    [entity], [edge] = asked["entities"], asked["edges"]
    return _entity(key, entity), {"from": edge["from"], "to": edge["to"], "relationType": edge["type"]}


def _entity(key: str, fields: dict[str, Any]) -> dict[str, Any]:
    title, kind, tags = fields["title"], fields["type"], fields["tags"]
    return {"name": key, "entityType": kind, "observations": [title, fields["status"], " ".join(tags)]}
