"""Carries out the jobs of a worker process: in that process, or in the one that lost it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kbcore.extract.facts import Extractor
from kbcore.extract.registry import OWN
from kbcore.sync import jobs
from kbcore.sync.first_part import StatedEntities, plan_part
from kbcore.sync.id_ownership import FileReading
from kbcore.sync.reading import FileContent, FileToRead, read_content


class JobRunner:
    """The side that carries jobs out, with what it was prepared with."""

    def __init__(self) -> None:
        self._extractors: Sequence[tuple[Extractor, Mapping[str, Any]]] = ()
        self._first: jobs.PrepareFirst | None = None
        self._entities: StatedEntities | None = None

    def answer(self, message: bytes) -> bytes:
        """Carry out one message and return the answer."""
        job = jobs.decode(message)
        if isinstance(job, jobs.UseExtractors):
            self._extractors = [(OWN[name], settings) for name, settings in job.extractors]
            return b""
        if isinstance(job, jobs.PrepareFirst):
            self._first, self._entities = job, StatedEntities(job.entities)
            return b""
        if isinstance(job, jobs.PlanPart):
            return jobs.encode_answer(self._plan(job))
        return jobs.encode_answer([jobs.encode_content(self._read(file, job.now_ns)) for file in job.files])

    def _read(self, file: FileToRead, now_ns: int) -> FileContent:
        return read_content(file, *self._extractors[file.extractor], now_ns)

    def _plan(self, job: jobs.PlanPart) -> jobs.JobResult | None:
        first, entities = self._first, self._entities
        if first is None or entities is None:
            raise ValueError("no part is planned before it was prepared")
        readings = [
            FileReading(path, digest, mark, jobs.decode_facts(facts)) for path, digest, mark, facts in job.files
        ]
        part, contents = plan_part(readings, entities, first.schema, first.stamp, job.dates)
        try:
            for kind, content in contents.items():
                Path(jobs.part_file(job.folder, kind, job.number)).write_bytes(content)
        except OSError:
            return None
        return part
