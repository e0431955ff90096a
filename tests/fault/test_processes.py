"""F3, F12, F17, F19: many processes on one branch, some of which are killed at random times."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcore.errors import ChangesetIdReused, IntegrityViolation
from tests.fault.crowded import of_readers, project, readers
from tests.support.crowd import aftermath
from tests.support.crowd.crowd import WAIT_S, Crowd, Member, until
from tests.support.crowd.crowd_jobs import pair
from tests.support.effort.scale import SEED, tries
from tests.support.processes.cli import environment
from tests.support.processes.lines import Message
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project, req

BATCH = 10


SHARED = "docs/requirements/shared.md"


EDITS_S = 120.0
"""Longer than one of several processes waits for its turn to edit a document, and for what it does then."""


__all__ = ["project"]


class Writers:
    """Members that write pairs; each is given its keys in batches, and after its death the rest of them."""

    def __init__(self, crowd: Crowd, project: Project, count: int) -> None:
        self.crowd = crowd
        self.root = str(project.root)
        self.acked: dict[str, int] = {}
        self.refused: list[Message] = []
        self.wrong: list[str] = []
        self.members = [self._new(number) for number in range(count)]
        self._open: list[list[str]] = [[] for _ in range(count)]

    def _new(self, number: int) -> Member:
        return self.crowd.member("crowd_jobs:writing", root=self.root, name=f"w{number}")

    def give(self, number: int, keys: list[str]) -> None:
        """Ask a writer for more pairs."""
        self._open[number] += keys
        self.members[number].send(pairs=keys)

    def listen(self) -> None:
        """Take in what they have said."""
        for number, member in enumerate(self.members):
            self._take(number, member.news())

    def _take(self, number: int, said: list[Message]) -> None:
        for message in said:
            if "done" in message:
                continue
            key = message["key"]
            if self._open[number][:1] != [key]:
                self.wrong.append(f"w{number} answered {key} and was asked for {self._open[number][:1]}")
            self._open[number].remove(key)
            if "refused" in message:
                self.refused.append(message)
            elif self.acked.setdefault(key, message["seq"]) != message["seq"]:
                self.wrong.append(f"{key} was acknowledged at {self.acked[key]} and at {message['seq']}")

    def left(self, number: int) -> int:
        """Return how many keys a writer still has to write."""
        return len(self._open[number])

    def _all_left(self) -> int:
        return sum(map(len, self._open))

    def kill(self, number: int) -> None:
        """Kill a writer; another takes its place, and sends again what was not acknowledged to it."""
        self._take(number, self.members[number].kill())
        self.members[number] = self._new(number)
        self.members[number].send(pairs=self._open[number])

    def finish(self) -> None:
        """Wait until all is written, however long that takes while some are answered."""
        while left := self._all_left():
            until(lambda left=left: self.listen() or self._all_left() < left, self.members)
        for number, member in enumerate(self.members):
            self._take(number, member.dismissed())


def judge(tally, point: object, project: Project, acked: dict[str, int], violated: list[str]) -> None:
    """Hold the store against the promises, and count what was found on the way."""
    directory = stores_at(project.root) / "main"
    for what in (*violated, *aftermath.unsound(directory, acked), *aftermath.differing(project)):
        tally.violated(point, what)


@pytest.mark.sliced(1)
@pytest.mark.fault("F3")
def test_processes_that_are_killed_at_random_times_lose_nothing_that_was_acknowledged(
    crowd: Crowd, project: Project, tally
) -> None:
    chosen, kills, count = random.Random(SEED + 3), tries(4, 60, 2500), tries(2, 4)
    writers, watching = Writers(crowd, project, count), readers(crowd, project, count, pause_s=0.03)
    given, said = 0, list[Message]()
    for _ in range(kills):
        time.sleep(chosen.uniform(0, 0.03))
        writers.listen()
        for number in range(count):
            if writers.left(number) < BATCH:
                writers.give(number, [f"pair-{number}-{serial}" for serial in range(given, given + BATCH)])
        given += BATCH
        number = chosen.randrange(count * 3 // 2)
        if number < count:
            writers.kill(number)
        else:
            victim = watching.pop(0)
            said += victim.kill()
            watching += readers(crowd, project, 1)
        tally.tried()
    writers.finish()
    for member in watching:
        said += member.dismissed()
    wrong = writers.wrong + [f"refused: {message}" for message in writers.refused]
    judge(tally, "the end", project, writers.acked, wrong + of_readers(tally, said))
    tally.done(at_least=kills)


@pytest.mark.sliced(1)
@pytest.mark.fault("F3")
def test_processes_that_edit_one_document_lose_nothing_that_was_acknowledged(
    crowd: Crowd, project: Project, tally
) -> None:
    """Three set fields of a document, one gives the end of its link new ids, and one makes documents beside it."""
    project.sync({SHARED: req("SHARED", depends_on="[END-0]"), "docs/requirements/end.md": req("END-0")})
    rounds = tries(6, 40, 400)
    asked = [[["set", "SHARED", f"w{number}x{at}={at}"] for at in range(rounds)] for number in range(3)]
    asked.append([["rename", f"END-{at}", f"END-{at + 1}"] for at in range(rounds)])
    asked.append([["new", f"MADE-{at}", f"made {at}"] for at in range(rounds)])
    members = [crowd.member("crowd_jobs:editing", root=str(project.root), name=f"e{at}") for at in range(len(asked))]
    for member, edits in zip(members, asked, strict=True):
        member.send(edits=edits)
    said = [message for member in members for message in _until_done(member)]
    for member in members:
        member.dismissed()
    tally.tried(len(said))
    refusals = [f"refused: {one}" for one in said if "refused" in one]
    for what in (*refusals, *_lost(project, {one["key"] for one in said if "seq" in one})):
        tally.violated("the end", what)
    tally.done(at_least=len(asked) * rounds)


def _lost(project: Project, acked: set[str]) -> Iterator[str]:
    """Yield what was acknowledged of the edits of documents and is not in the file or not in the records."""
    text, node = (project.root / SHARED).read_text(), project.node("SHARED")
    assert node is not None
    for name, value in (word.split("=") for word in acked if "=" in word):
        if f'\n{name}: "{value}"\n' not in text:  # a number that is meant as text is quoted
            yield f"{name} is not in the file"
        if node.fields.get(f"attributes.{name}") != value:
            yield f"{name} is not in the records"
    last = f"END-{max((int(key.removeprefix('END-')) for key in acked if key.startswith('END-')), default=0)}"
    if f"depends_on: [{last}]" not in text or project.edges("SHARED") != {("SHARED", "depends_on", last, True)}:
        yield f"the link does not lead to {last}: {text} {project.edges('SHARED')}"
    for title in (one for one in acked if one.startswith("made ")):
        if project.node(title.upper().replace(" ", "-")) is None:
            yield f"{title} is not in the records"
    if project.sync().outcome.applied:
        yield "the files say something else than the records"


def _until_done(member: Member) -> list[Message]:
    said = list[Message]()
    while "done" not in (message := member.heard(EDITS_S)):
        said.append(message)
    return said


@pytest.mark.sliced(1)
@pytest.mark.fault("F12")
def test_of_all_who_saw_the_same_state_exactly_one_can_change_it(crowd: Crowd, project: Project, tally) -> None:
    count, rounds, each = tries(2, 8, 16), tries(1, 3, 40), 5
    root = str(project.root)
    writers = [crowd.member("crowd_jobs:writing", root=root, name=f"w{number}") for number in range(count)]
    watching = readers(crowd, project, count, pause_s=0.1)
    for turn in range(rounds):
        for number, member in enumerate(writers):
            member.send(race=each, pairs=[f"pair-{number}-{turn}-{serial}" for serial in range(each)])
    answers = [message for member in writers for _ in range(rounds) for message in _answers(member)]
    for member in writers:
        member.dismissed()
    said = [message for member in watching for message in member.dismissed()]
    raced = [one for one in answers if "base" in one]
    winners = Counter(one["base"] for one in raced if "seq" in one)
    losers = [one for one in raced if "refused" in one]
    wrong = [f"{times} won on {base}" for base, times in winners.items() if times != 1]
    wrong += [f"refused: {one}" for one in losers if one["refused"] != "stale_base" or one["applied"] != "no"]
    wrong += [f"nobody won on {one['base']}" for one in losers if one["base"] not in winners]
    wrong += [f"refused: {one}" for one in answers if "base" not in one and "refused" in one]
    acked = {one["key"]: one["seq"] for one in answers if "seq" in one and "base" not in one}
    there = {one.seq: one.rec for one in aftermath.records(stores_at(project.root) / "main")}
    wrong += [
        f"{one['key']} did not win" for one in raced if "seq" in one and one["key"] not in str(there[one["seq"]].ops)
    ]
    if len(there) != 1 + len(acked) + len(winners):
        wrong.append(f"{len(there)} records, {len(acked)} pairs, {len(winners)} winners")
    tally.tried(len(answers))
    judge(tally, "the end", project, acked, wrong + of_readers(tally, said))
    tally.done(at_least=count * rounds * each)


def _answers(member: Member) -> Iterator[Message]:
    while "done" not in (message := member.heard()):
        yield message


class Compactors:
    """Two members that compact at once; one that was killed is replaced."""

    def __init__(self, crowd: Crowd, project: Project) -> None:
        self.crowd = crowd
        self.root = str(project.root)
        self.members = [self._new() for _ in range(2)]
        self.calls = 40
        self.wrong: list[str] = []

    def _new(self) -> Member:
        return self.crowd.member("crowd_jobs:compacting", root=self.root)

    def compact(self, orders: list[Message]) -> None:
        """Let each do its job."""
        for member, order in zip(self.members, orders, strict=True):
            member.send(**order)
        for at, member in enumerate(self.members):
            answer = member.receive(WAIT_S)
            if answer is None:
                member.ended()
                self.members[at] = self._new()
            elif "compacted" not in answer:
                self.wrong.append(f"{orders[at]}: {answer}")
            else:
                self.calls = max(self.calls, answer["calls"])


@pytest.mark.sliced(1)
@pytest.mark.fault("F17")
@pytest.mark.parametrize("prunes", [True, False][: tries(1, 2)], ids=["prunes", "keeps"][: tries(1, 2)])
def test_compaction_under_writers_and_readers_changes_no_answer(
    crowd: Crowd, project: Project, tally, prunes: bool
) -> None:
    chosen, rounds, count = random.Random(SEED + 17), tries(2, 25, 200), tries(2, 4)
    writers, watching = Writers(crowd, project, count), readers(crowd, project, count, pause_s=0.1)
    compactors, sums, wrong = Compactors(crowd, project), dict[int, str](), list[str]()
    for turn in range(rounds):
        for number in range(count):
            writers.give(number, [f"pair-{number}-{turn}-{serial}" for serial in range(3)])
        orders: list[Message] = [{"pause_s": chosen.uniform(0, 0.01)} for _ in range(2)]
        if prunes and sums:
            orders[0]["prune_before"] = max(sums) // 2 + 1
        if turn % 3 == 1:
            orders[turn % 2]["die_at"] = chosen.randrange(compactors.calls)
        compactors.compact(orders)
        tally.tried(2)
        writers.listen()
        now = {one.seq: one.sum for one in aftermath.records(stores_at(project.root) / "main")}
        first = min(now) if prunes and now else 1
        if not {(seq, one) for seq, one in sums.items() if seq >= first} <= now.items():
            wrong.append(f"round {turn}: a record is gone, or another one")
        sums = now
    writers.finish()
    said = [message for member in (*watching, *compactors.members) for message in member.dismissed()]
    for key in chosen.sample(sorted(writers.acked), min(40, len(writers.acked))):
        again = project.apply(**pair(key))
        if (again.seq, again.duplicate) != (writers.acked[key], True):
            wrong.append(f"{key} of {writers.acked[key]} is now {again}")
    wrong += [f"refused: {message}" for message in writers.refused] + writers.wrong + compactors.wrong
    left = {key: seq for key, seq in writers.acked.items() if not prunes or seq >= min(sums)}
    judge(tally, "the end", project, left, wrong + of_readers(tally, said))
    tally.done(at_least=rounds)


@pytest.mark.sliced(1)
@pytest.mark.fault("F19")
def test_a_changeset_takes_effect_once_however_often_and_by_whomever_it_is_sent(
    crowd: Crowd, project: Project, tally
) -> None:
    chosen, count = random.Random(SEED + 19), tries(8, 100, 1000)
    keys = [f"pair-{number}" for number in range(count)]
    first: dict[str, int] = {}
    wrong: list[str] = []
    for is_again in (False, True):
        sent: list[list[str]] = [[] for _ in range(4)]
        for key in keys:
            for _ in range(1 if is_again else chosen.randint(1, 5)):
                sent[chosen.randrange(4)].append(key)
        writers = Writers(crowd, project, 4)
        for number, orders in enumerate(sent):
            chosen.shuffle(orders)
            writers.give(number, orders)
        for _ in range(tries(1, 10, 60)):
            time.sleep(chosen.uniform(0, 0.05))
            writers.listen()
            writers.kill(chosen.randrange(4))
            tally.tried()
        writers.finish()
        tally.tried(sum(map(len, sent)))
        wrong += writers.wrong + [f"refused: {message}" for message in writers.refused]
        if is_again and writers.acked != first:
            wrong.append("sent again, they were answered otherwise")
        first = first or writers.acked
        if not is_again:
            compactor = crowd.member("crowd_jobs:compacting", root=str(project.root))
            compactor.send(pause_s=0)
            assert "compacted" in compactor.heard()
            compactor.dismissed()
    if len(aftermath.records(stores_at(project.root) / "main")) != count + 1:
        wrong.append("there are more records than changesets")
    for key in keys[:: max(1, count // 20)]:
        with pytest.raises(ChangesetIdReused):
            project.apply(**pair(key, "other"))
        tally.tried()
    judge(tally, "the end", project, first, wrong)
    tally.done(at_least=2 * count)


@pytest.mark.sliced
@pytest.mark.fault("F3")
def test_of_two_imports_at_once_that_claim_one_former_id_one_is_refused(tmp_path: Path, tally) -> None:
    project = Project(tmp_path / "repo")
    project.close()
    command = [sys.executable, "-m", "kbcli.app", "-C", str(project.root), "apply", "--import"]
    for number in range(tries(2, 25)):
        imports = []
        for name in ("A", "B"):
            entity = {"id": f"{name}-{number}", "type": "req", "title": f"{name} {number}", "status": "open"}
            path = tmp_path / f"{name}.json"
            path.write_text(json.dumps({"entities": [entity | {"attributes": {"former_ids": [f"OLD-{number}"]}}]}))
            imports.append(
                subprocess.Popen([*command, str(path)], env=environment(), stderr=subprocess.PIPE, text=True)
            )
        said = [one.communicate()[1] for one in imports]
        if sorted(one.returncode for one in imports) != [0, IntegrityViolation.exit_status]:
            tally.violated(number, said)
        with contextlib.closing(Project(project.root, is_new=False)) as after:
            holders = after.view().nodes([f"A-{number}", f"B-{number}"])
            if [one.id for one in holders] != [*after.view().renamed([f"OLD-{number}"]).values()]:
                tally.violated(number, [one.id for one in holders])
        tally.tried()
    tally.done(at_least=2)
