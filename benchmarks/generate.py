"""Makes the documents and the records that are measured: the same ones for the same number, everywhere.

Words, tags and what links lead to are skewed as in real projects: a few are everywhere, most are rare.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kbcore.model.record import VOCABULARY, Operation, PutNode, Record, StateLink

SEED = 20261120
WORDS = re.findall(
    r"\w+",
    "account address alert amount archive audit balance batch booking branch cache card cart catalogue change channel "
    "checkout claim client code contract copy country courier credit currency customer date deadline default delivery "
    "deposit device discount document draft duty error event export factor failure fee field file filter form gateway "
    "group guest handover history holiday import index invoice item journal key label language ledger limit line link "
    "list location lock log mail manager map market member merge message method migration minute mode month name "
    "notice number offer operator option order origin owner page parcel part partner password payment period person "
    "phone place plan policy port price print process product profile proof provider queue quota rate reason receipt "
    "record refund region release reminder report request reserve result retry return review role route rule schedule "
    "search session setting share shelf shop signal site slot source stage stamp status step stock store stream table "
    "tariff task tax team template term ticket time token total track trade transfer trial unit update upload user "
    "value vendor version view visit voucher wallet warehouse warning week weight window worker year zone",
)
_VERBS = ("accept", "allow", "ask", "block", "cancel", "check", "close", "confirm", "copy", "count", "hide", "keep")
_TAGS = ("api", "billing", "ui", "security", "mobile", "reports", "search", "legal", "data", "ops", "partners", "beta")
_OWNERS = ("ana", "ben", "chidi", "dora", "emre", "fatou")
_PRIORITIES = ("should", "could", "should", "must", "should", "wont", "could", "should", "could", "should")
_FORGOTTEN = 20
"""Of what must be covered, one in so many is not: `kb check` has something to find."""
_FOLDERS = {"req": "requirements", "test": "tests", "scenario": "scenarios", "adr": "adr"}
_SHARES = (("req", 45), ("test", 35), ("scenario", 15), ("adr", 5))
_PREFIXES = {"req": "REQ", "test": "TEST", "scenario": "SCN", "adr": "ADR"}


class Requirement(msgspec.Struct, frozen=True):
    """One requirement, independent of any format. ``target`` is the id of the one it refers to."""

    id: str
    title: str
    text: str
    tags: tuple[str, ...]
    target: str | None


def write_documents(root: Path, count: int) -> int:
    """Write ``count`` Markdown documents below ``docs/``, each with one link; return the bytes written."""
    rng = random.Random(SEED)
    written = 0
    for type_, shares in _SHARES:
        (root / "docs" / _FOLDERS[type_]).mkdir(parents=True, exist_ok=True)
        for number in range(1, _amount(count, shares, type_) + 1):
            text = _document(rng, type_, number, count)
            path = root / "docs" / _FOLDERS[type_] / f"{_PREFIXES[type_].lower()}-{number:05d}.md"
            written += path.write_bytes(text.encode())
    return written


def document_id(count: int) -> str:
    """Return the id of a requirement in the middle of ``count`` documents."""
    return _id("req", _amount(count, 45, "req") // 2)


def document_path(count: int) -> str:
    """Return the path of that requirement's document."""
    return f"docs/{_FOLDERS['req']}/{document_id(count).lower()}.md"


def records(count: int, start: int = 1, first: int = 1) -> Iterator[Record]:
    """Yield the records ``start`` to ``start + count - 1``; each brings one entity and one edge to an earlier one.

    No edge leads to an entity of a record before ``first``, which is no multiple of three.
    """
    for seq in range(start, start + count):
        rng = random.Random(SEED + seq)
        yield _record(rng, seq, _operations(rng, seq, first), f"add {entity_id(seq)}")


def changes(count: int) -> Iterator[Record]:
    """Yield ``count`` records: the first brings one entity, and each other one gives it another title."""
    for seq in range(1, count + 1):
        rng = random.Random(SEED + seq)
        put = PutNode(id=entity_id(1), base=seq - 1, set={"title": f"{_title(rng)} {seq}"})
        yield _record(rng, seq, (put,) if seq > 1 else _operations(rng, 1), f"change {entity_id(1)}")


def wordy_records(count: int, at_once: int = 1000) -> Iterator[Record]:
    """Yield records that bring ``count`` entities of fifty words each, half of them of a vocabulary of 30,000."""
    rare = random.Random(SEED)
    vocabulary = ["".join(rare.choices("abcdefghiklmnoprstuvy", k=rare.randint(4, 10))) for _ in range(30_000)]
    for seq, start in enumerate(range(1, count + 1, at_once), start=1):
        rng = random.Random(SEED + seq)
        puts = []
        for number in range(start, min(start + at_once, count + 1)):
            said = [_skewed(rng, WORDS if rng.random() < 0.5 else vocabulary) for _ in range(42)]
            fields = {"type": "req", "title": f"{_title(rng)} {vocabulary[number % len(vocabulary)]}", "status": "open"}
            description = {"attributes.description": " ".join(said), "tags": _tags(rng)}
            puts.append(PutNode(id=f"REQ-{number:06d}", base=0, set=fields | description))
        yield _record(rng, seq, tuple(puts), f"add {len(puts)}")


def concept_records(count: int, at_once: int = 500) -> Iterator[Record]:
    """Yield records that bring ``count`` concepts of KIP with three links each, and the domains that they belong to.

    One in ten is a person, the others are events; one in five of those belongs to no domain.
    """
    domains = [f"domain {number}" for number in range(5 + count // 200)]
    people = [f"person {number}" for number in range(1 + count // 10)]
    events = [f"event {number}" for number in range(count - len(people))]
    puts = [_concept("Domain", name, {"description": name}) for name in domains]
    rng = random.Random(SEED)
    yield _record(rng, 1, tuple(puts), "add domains")
    named = [("Person", name) for name in people] + [("Event", name) for name in events]
    for seq, start in enumerate(range(0, count, at_once), start=2):
        rng = random.Random(SEED + seq)
        operations: list[Operation] = []
        for number, (type_, name) in enumerate(named[start : start + at_once], start=start):
            said = {"rank": rng.randint(1, 100), "status": rng.choice(("open", "done"))}
            operations.append(_concept(type_, name, {"content_summary": _title(rng), **said}))
            earlier = [f"{one}:{other}" for one, other in (named[int(number * rng.random())] for _ in range(2))]
            domain = "" if number % 5 == 1 and type_ == "Event" else f"Domain:{_skewed(rng, domains)}"
            ends = {("mentions", earlier[0]), ("belongs_to_domain", domain) if domain else ("mentions", earlier[1])}
            ends.add(("created_by", f"Person:{people[int(min(number, len(people)) * rng.random())]}"))
            if number:
                operations += [StateLink(predicate, f"{type_}:{name}", end, 0) for predicate, end in sorted(ends)]
        yield _record(rng, seq, tuple(operations), "remember")


def _concept(type_: str, name: str, attributes: dict[str, object]) -> PutNode:
    fields = {"type": type_, "name": name, "title": name, "status": "active"}
    return PutNode(
        id=f"{type_}:{name}", base=0, set=fields | {f"attributes.{key}": one for key, one in attributes.items()}
    )


def retitled(document: str, number: int) -> str:
    """Return a document with another title, as if a person had edited it for the ``number``-th time."""
    return re.sub(r"^title: .*$", f"title: Edited for the {number}th time", document, count=1, flags=re.MULTILINE)


def requirements(count: int) -> Iterator[Requirement]:
    """Yield what the documents of ``write_documents`` say, for tools that have formats of their own.

    They are all of one kind there, and each refers to an earlier one, if any: not every tool takes cycles.
    """
    rng = random.Random(SEED)
    for number in range(1, count + 1):
        target = f"REQ-{1 + int((number - 1) * rng.random() ** 2):05d}" if number > 1 else None
        text = "\n\n".join(_paragraph(rng) for _ in range(rng.randint(2, 7)))
        yield Requirement(f"REQ-{number:05d}", _title(rng), text, tuple(_tags(rng)), target)


def record_time(seq: int) -> str:
    """Return the time of a record: one a second from the beginning of 2026; 0 is when the store was made."""
    minutes, second = divmod(seq, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"2026-01-{days + 1:02d}T{hour:02d}:{minute:02d}:{second:02d}.000000Z"


def entity_id(seq: int) -> str:
    """Return the id of the entity that a record brings: every third one is a test, the others are requirements."""
    return f"{'TEST' if seq % 3 == 0 else 'REQ'}-{seq:06d}"


def changeset(key: str, target: str) -> dict[str, object]:
    """Return the changeset of one upsert, as an agent sends it: one entity and one edge to another one."""
    rng = random.Random(key)
    return {
        "changeset_id": f"bench-{key}",
        "message": f"add {key}",
        "entities": [
            {"id": key, "type": "req", "title": _title(rng), "status": "open", "priority": "should", "tags": _tags(rng)}
        ],
        "edges": [{"type": "depends_on", "from": key, "to": target}],
    }


def _record(rng: random.Random, seq: int, operations: tuple[Operation, ...], message: str) -> Record:
    return Record(
        schema=VOCABULARY,
        changeset_id=f"{rng.getrandbits(128):032x}",
        digest=f"{rng.getrandbits(256):064x}",
        at=record_time(seq),
        actor="agent/1.0",
        source="mcp:agent",
        tool="kb/bench",
        ops=operations,
        message=message,
    )


def _operations(rng: random.Random, seq: int, first: int = 1) -> tuple[Operation, ...]:
    key = entity_id(seq)
    is_test = key.startswith("TEST")
    fields = {
        "type": "test" if is_test else "req",
        "title": _title(rng),
        "status": "active" if is_test else "open",
        "tags": _tags(rng),
        "owner": _skewed(rng, _OWNERS),
    }
    fields |= {"attributes.kind": "unit"} if is_test else {"priority": rng.choice(_PRIORITIES)}
    put = PutNode(id=key, base=0, set=fields)
    if seq == first:
        return (put,)
    earlier = first + int((seq - first) * rng.random() ** 2)
    earlier -= earlier % 3 == 0
    ends = (entity_id(earlier), key) if is_test else (key, entity_id(earlier))
    edge = StateLink(type="verified_by" if is_test else "depends_on", from_id=ends[0], to_id=ends[1], base=0)
    return (put, edge)


def _document(rng: random.Random, type_: str, number: int, count: int) -> str:
    title = _title(rng)
    lines = [f"id: {_id(type_, number)}", f"title: {title}", f"status: {'accepted' if type_ == 'adr' else 'active'}"]
    if type_ == "req":
        lines.append(f"priority: {_PRIORITIES[number % len(_PRIORITIES)]}")
    lines += [
        f"owner: {_skewed(rng, _OWNERS)}",
        f"tags: [{', '.join(_tags(rng))}]",
        f"component: {_skewed(rng, WORDS)}",
        f"links: [{_link(rng, type_, number, count)}]",
    ]
    body = "\n\n".join(_paragraph(rng) for _ in range(rng.randint(2, 7)))
    return "---\n" + "\n".join(lines) + f"\n---\n# {title}\n\n{body}\n"


def _link(rng: random.Random, type_: str, number: int, count: int) -> str:
    """Return what one document links to: tests and scenarios first cover what must be covered."""
    requirements = _amount(count, 45, "req")
    if type_ == "req":
        if number == 1:
            return _id("test", 1)
        return f"{{depends_on: [{_id('req', 1 + int((number - 1) * rng.random() ** 2))}]}}"
    must = len(_PRIORITIES) * (number - 1) + _PRIORITIES.index("must")
    if type_ in {"test", "scenario"} and must <= requirements and number % _FORGOTTEN:
        return _id("req", must)
    return _id("req", 1 + int(requirements * rng.random() ** 2))


def _amount(count: int, shares: int, type_: str) -> int:
    others = sum(count * part // 100 for name, part in _SHARES if name != "req")
    return count - others if type_ == "req" else count * shares // 100


def _id(type_: str, number: int) -> str:
    return f"{_PREFIXES[type_]}-{number:05d}"


def _title(rng: random.Random) -> str:
    words = [_skewed(rng, _VERBS), *(_skewed(rng, WORDS) for _ in range(rng.randint(2, 6)))]
    return " ".join(words).capitalize()


def _paragraph(rng: random.Random) -> str:
    sentences = [f"The {' '.join(_skewed(rng, WORDS) for _ in range(rng.randint(5, 12)))}." for _ in range(4)]
    return " ".join(sentences)


def _tags(rng: random.Random) -> list[str]:
    return sorted({_skewed(rng, _TAGS) for _ in range(rng.randint(1, 4))})


def _skewed(rng: random.Random, choices: Sequence[str]) -> str:
    return choices[int(len(choices) * rng.random() ** 2)]
