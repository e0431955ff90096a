"""The branches that worktrees had checked out over time, and whether what was written meanwhile is on them.

The answers of writers are messages: ``key`` is the changeset's id, ``begun_s`` and ``took_s`` say when, and ``branch``
and ``seq`` where; or ``refused`` is the code of an error and ``applied`` what it said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from kbcore.model.record import PutNode
from kbcore.storage import head
from kbcore.storage.fs import RealFs
from tests.support.crowd import aftermath
from tests.support.crowd.crowd_git import SCRATCH, line_of
from tests.support.crowd.crowd_jobs import pair
from tests.support.processes.lines import Message
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project

LONGEST_S = 10.0 + 3 * 2.0 + 5.0
"""The lock wait of the configuration, what a sync waits for git before it gives up, and what a busy machine adds."""
MAY_REFUSE = frozenset({"branch_moved", "unexpected_branch", "unknown_branch"})


class Stay(msgspec.Struct, frozen=True):
    """A branch was checked out in a worktree: surely from ``sure_s`` to ``sure_until_s``, perhaps a bit longer."""

    branch: str
    begun_s: float
    sure_s: float
    sure_until_s: float
    ended_s: float


def stays(moves: list[Message], first: str) -> list[Stay]:
    """Return what a worktree had checked out, one after the other."""
    heads = [(first, 0.0, 0.0), *((one["head"], one["begun_s"], one["ended_s"]) for one in moves if one.get("head"))]
    after = [*((begun, ended) for _, begun, ended in heads[1:]), (float("inf"), float("inf"))]
    return [Stay(name, begun, ended, *until) for (name, begun, ended), until in zip(heads, after, strict=True)]


class Stores:
    """All stores of a repository after the fact, those in the trash too."""

    def __init__(self, project: Project) -> None:
        folder = stores_at(project.root)
        places = [place for place in folder.iterdir() if place.is_dir() and not place.name.startswith(".")]
        places += list((folder / ".trash").iterdir()) if (folder / ".trash").is_dir() else []
        self.records = {place: aftermath.records(place) for place in places}
        self.lines = {place: line_of(head.read(RealFs(), place).branch) for place in places}
        self.common = {one.seq: one.sum for one in self.records[folder / "main"]}

    def places(self) -> Mapping[str, set[tuple[str, int]]]:
        """Return where each changeset is: the line whose store has it, and its seq. What is of main counts as that."""
        found: dict[str, set[tuple[str, int]]] = {}
        for place, records in self.records.items():
            for one in records:
                line = "main" if self.common.get(one.seq) == one.sum else self.lines[place]
                found.setdefault(one.rec.changeset_id, set()).add((line, one.seq))
        return found

    def wrong(self, answers: list[Message]) -> Iterator[str]:
        """Yield what is wrong with them after these answers."""
        for place, records in self.records.items():
            yield from (f"{place.name}: {what}" for what in aftermath.unsound(place, {}))
            for one in records:
                stated = {str(op.id) for op in one.rec.ops if isinstance(op, PutNode) and op.id[:4] == "DOC-"}
                if self.common.get(one.seq) != one.sum and not stated <= {f"DOC-{self.lines[place]}"}:
                    yield f"record {one.seq} of {place.name} states {stated}"
        found, acked = self.places(), {one["key"] for one in answers if "seq" in one}
        for one in answers:
            there = found.get(one["key"], set())
            if "seq" in one and not one.get("sync"):
                wanted = (line_of(one["branch"]), one["seq"])
                # A branch that came to be in between has it from main.
                is_right = bool({wanted, ("main", one["seq"])} & there) if one.get("again") else there == {wanted}
                if not is_right:
                    yield f"{one} is in {there}"
            if one.get("applied") == "no" and there and one["key"] not in acked:
                yield f"{one} is in {there}"


def shown_otherwise(answer: Message, of: list[Stay]) -> bool:
    """Tell whether a write went to a branch that was checked out at no moment of it."""
    begun_s, ended_s = answer["begun_s"], answer["begun_s"] + answer["took_s"]
    return not any(one.branch == answer["branch"] and one.begun_s <= ended_s and begun_s <= one.ended_s for one in of)


def judge_answers(answers: list[Message], of: list[Stay]) -> Iterator[str]:
    """Yield what is wrong with the answers that a writer got in a worktree."""
    for one in answers:
        if one.get("waited_s", one["took_s"]) > LONGEST_S:
            yield f"blocked: {one}"
        if "refused" in one and (one["refused"] not in MAY_REFUSE or one["applied"] != "no"):
            yield f"refused: {one}"
        if "branch" in one and shown_otherwise(one, of):
            yield f"on a wrong branch: {one}; HEAD was on {of}"


def removed_too_early(
    removals: list[Message], moves: list[Message], of: list[list[Stay]], lasting: Collection[str]
) -> Iterator[str]:
    """Yield the stores that were collected although their branch was there all the while."""
    for one in removals:
        for name in one["removed"]:
            made = [move["ended_s"] for move in moves if move.get("made") == name]
            gone = [move["begun_s"] for move in moves if move.get("gone") == name]
            is_there = any(at < one["begun_s"] for at in made) and not any(at < one["ended_s"] for at in gone)
            is_out = any(
                stay.branch == name and stay.sure_s < one["begun_s"] and one["ended_s"] < stay.sure_until_s
                for worktree in of
                for stay in worktree
            )
            if is_out or is_there or name in lasting:
                yield f"the store of {name} was removed: {one}"


def lasting(project: Project, living: Sequence[str], answers: list[Message]) -> Iterator[str]:
    """Yield the writes to branches that still exist that are not in the store under their present name."""
    for branch in living:
        project.apply(branch=branch, **pair(f"pair-last-{branch}"))
        there = {
            one.rec.changeset_id: one.seq for one in aftermath.records(project.workspace().folders.directory_of(branch))
        }
        for one in answers:
            is_mine = "seq" in one and line_of(one["branch"]) == line_of(branch)
            is_lasting = not one.get("branch", "").partition("+")[2].startswith(SCRATCH)
            if is_mine and is_lasting and not one.get("sync") and there.get(one["key"]) != one["seq"]:
                yield f"{branch} does not have {one}"
        yield from (f"{branch}: {what}" for what in aftermath.differing(project, branch))
