"""Clones that write records, share them in files, and take in each other's files: for the laws of sharing.

Each clone has what a branch store has, without a disk: the records, their state, and the index of their changes. A step
is a tuple of small numbers, so that Hypothesis makes it as well as ``random``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

from kbcore.extract.changes import FOLDER
from kbcore.ids import is_link_id, link_id
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change, redacted
from kbcore.model.claims.fold import ABSENT, NO_DOCUMENTS, DocumentFacts, FoldedClaims, fold
from kbcore.model.content import confirmed_content
from kbcore.model.folding import apply
from kbcore.model.graph import CLIENT, CONTESTED, FORMER_IDS, STAMPS, Link, Node, former_ids
from kbcore.model.record import (
    MERGE,
    SYNC,
    ConfirmLink,
    DropNode,
    EdgeOperation,
    Operation,
    PutNode,
    Record,
    StateLink,
    WithdrawLink,
    vocabulary_of,
)
from kbcore.model.renames import rename_ops
from kbcore.model.state import Stamp, State
from kbcore.sync.shared_changes import ChangesInFiles, SharedChanges
from kbcore.view.claim_filling import Filling
from kbcore.view.claim_index import ClaimIndex
from kbcore.view.record_rows import FoldedRecord

IDS: Final = ("A", "B", "C")
VALUES: Final = ("x", "y", 1, True, {"a": [1]})
TAGS: Final = ([], ["red"], ["blue"], ["red", "blue"])
WRITES: Final = (
    "create",
    "set",
    "set",
    "unset",
    "tag",
    "delete",
    "rename",
    "link",
    "link_edge",
    "unlink",
    "set_edge",
    "confirm",
)
PUBLISH: Final = ("share", "commit", "merge")
KINDS: Final = (
    *WRITES,
    *["batch"] * 4,
    "create",
    "create",
    *PUBLISH,
    "race",
    "race",
    *["publish"] * 4,
    *["merge"] * 5,
    "adopt",
    "adopt",
    "drop",
    "stash",
    "pack",
    "pack",
    "redact",
    "redact",
)
DOCUMENTED: Final = ("G", "H", "I")
"""The ids that documents may state, and that no client gives to an entity."""
MOST: Final = 1 << 16
_DIGIT: Final = 11
"""More than there are entities, edges or values to choose from, as a rule."""
Step = tuple[int, int, int, int, int]


class Clone:
    """One clone: ``tree`` has the change files of its worktree, ``committed`` those of its HEAD."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.index = ClaimIndex(":memory:")
        self.index.database.empty()
        self._filling = Filling(self.index)
        self.state = State()
        self.seq = 0
        self.own: dict[str, Change] = {}
        self.once_committed = set[str]()
        self.tree: dict[str, tuple[Change, ...]] = {}
        self.committed = set[str]()
        self.documents: dict[str, tuple[str, ...]] = {}
        """The former ids that the document of each entity states, by the id of the entity."""
        self._read: dict[str, tuple[Change, ...]] = {}
        self.records: list[Sequence[Operation]] = []
        """The operations of each record."""
        self.entries: list[FoldedRecord] = []

    def write(self, ops: Sequence[Operation], source: str = "cli") -> None:
        """Add a record."""
        self.seq += 1
        self.records.append(ops)
        at = f"2026-01-01T00:00:{self.seq % 60:02}.{self.seq:06}Z"
        record = Record(vocabulary_of(ops), f"{self.name}-{self.seq}", "", at, self.name, source, "test", tuple(ops))
        chain = hashlib.sha256(f"{self.name}:{self.seq}".encode()).hexdigest()
        apply(self.state, Stamp(self.seq, at, self.name, source), record.ops)
        before = {one.change.id for one in self.index.unshared(self.seq)}
        self.entries.append(FoldedRecord(self.seq, chain, record, "", 0, 0))
        self._filling.take_in(self.entries[-1])
        for one in self.index.unshared(self.seq):
            if one.change.id not in before:
                self.own[one.change.id] = one.change

    def sync(self) -> None:
        """Take in what the change files say now."""
        files = {path: changes for path, changes in self.tree.items() if self._read.get(path) != changes}
        held = self.index.held_by(self.tree, self.seq)
        unsure = {path for path in self.committed & self.tree.keys() if not all(held.get(path, {"": False}).values())}
        files |= {path: self.tree[path] for path in unsure}
        gone = self._read.keys() - self.tree.keys()
        if files or gone:
            files |= {path: self.tree[path] for path in self.tree.keys() - self.committed}
        found = ChangesInFiles(files, gone, self.committed & self.tree.keys())
        shared = SharedChanges(self.index, self.seq, found)
        after, stated = _copied(self.state), self._of_documents()
        apply(after, Stamp(self.seq + 1, "", "", ""), stated)
        ops = [*stated, *shared.operations(_copied(self.state), after)]
        self._read = dict(self.tree)
        self.once_committed |= {
            change.id
            for path in self.committed & self.tree.keys()
            for change in self.tree[path]
            if change.id in self.own
        }
        if ops:
            self.write(ops, SYNC)

    def _of_documents(self) -> list[Operation]:
        """Return the operations by which the state has what the documents say now, and nothing of others."""
        ops: list[Operation] = []
        for key, node in self.state.nodes.items():
            if node.owners and key not in self.documents:
                ops.append(DropNode(key, node.version))
        for key, former in self.documents.items():
            node = self.state.nodes.get(key)
            if node is None or not node.owners or former_ids(node) != former:
                fields = {"type": "req", "title": "of a document"} | ({FORMER_IDS: [*former]} if former else {})
                unset = (FORMER_IDS,) if node and not former and former_ids(node) else ()
                ops.append(PutNode(key, node.version if node else 0, fields, unset, src=f"{key}.md"))
        return ops

    def document(self, choices: Sequence[int]) -> None:
        """Write, rename or delete a document, or have one say other former ids."""
        first, second, third = choices
        key, new = DOCUMENTED[first % len(DOCUMENTED)], DOCUMENTED[second % len(DOCUMENTED)]
        former = self.documents.pop(key, ())
        if third % 4 == 0:
            self.documents[key] = ()
        elif third % 4 == 1 and new not in self.documents:
            self.documents[new] = (*former, key)
        elif third % 4 == 2:
            self.documents[key] = (new,)
        used = set(self.documents)
        for one, ids in sorted(self.documents.items()):
            self.documents[one] = tuple([name for name in dict.fromkeys(ids) if name not in used])
            used |= {*ids}

    def stated(self) -> DocumentFacts:
        """Return what the documents of the state say."""
        nodes = [node for node in self.state.nodes.values() if node.owners]
        fields = {node.id: {name: node.fields[name] for name in node.owners} for node in nodes}
        return DocumentFacts(fields, {one: node.id for node in nodes for one in former_ids(node)})

    def share(self) -> None:
        """Write the changes that no file holds into one, as ``kb share`` does."""
        there = {change.id for changes in self.tree.values() for change in changes}
        found = [one.change for one in self.index.unshared(self.seq) if one.change.id not in there]
        if found:
            data = change_file.encode(found)
            name = change_file.file_path(found, data)
            read = change_file.decode(data, name)
            assert read.problem is None
            self.tree[f"{FOLDER}/{name}"] = read.changes

    def pack(self, number: int, *, commits: bool) -> None:
        """Replace the committed files but for the last few by packs, as ``kb share pack`` does, and commit that."""
        loose = sorted(path for path in self.committed & self.tree.keys() if "/pack-" not in path)
        old = loose[: max(len(loose) - number, 0)]
        for name, data in change_file.encode_packs(one for path in old for one in self.tree[path]).items():
            read = change_file.decode(data, name)
            assert read.problem is None
            self.tree[f"{FOLDER}/{name}"] = read.changes
        for path in old:
            del self.tree[path]
        if commits:
            self.committed = (self.committed & self.tree.keys()) | {path for path in self.tree if "/pack-" in path}

    def adopt(self, other: Clone) -> None:
        """Take over the changes that another store has in no committed file, as ``kb merge`` does."""
        there = [one.change for one in other.index.unshared(other.seq)]
        known = self.index.bodies([one.id for one in there])
        found = [one for one in there if one.id not in known]
        shared = SharedChanges(self.index, self.seq, ChangesInFiles({}, (), (), found))
        if ops := shared.operations(_copied(self.state), _copied(self.state)):
            self.write(ops, MERGE)

    def redact(self, number: int) -> None:
        """Take the values of every other change out of a file, as ``kb redact`` does, and commit that."""
        if self.tree:
            path = sorted(self.tree)[number % len(self.tree)]
            changes = [
                redacted(one, claims=range(99)) if at % 2 == number % 2 else one
                for at, one in enumerate(self.tree.pop(path))
            ]
            name, _ = change_file.rewritten(path.removeprefix(f"{FOLDER}/"), changes)
            self.tree[f"{FOLDER}/{name}"] = tuple(changes)
            self.committed = (self.committed & self.tree.keys()) | {f"{FOLDER}/{name}"}

    def whole_files(self) -> list[str]:
        """Return the files without a redacted change.

        A clone keeps what it knows as redacted, also where the file that says so goes and a whole one comes.
        """
        return sorted(path for path, changes in self.tree.items() if not any(one.is_redacted for one in changes))

    def publish(self) -> None:
        """Share all changes, and commit all files."""
        self.share()
        self.committed = set(self.tree)

    def merge(self, other: Clone) -> None:
        """Take over the committed files of another clone, as git does."""
        there = other.committed & other.tree.keys()
        self.tree |= {path: other.tree[path] for path in there}
        self.committed |= there
        self.documents = dict(other.documents)

    def present(self) -> list[Change]:
        """Return the changes that are to hold: those of the files, and its own that no committed file ever held."""
        own = [one for key, one in self.own.items() if key not in self.once_committed]
        return [*own, *(change for changes in self.tree.values() for change in changes)]


def play(steps: Sequence[Step], clones: int = 3, *, with_documents: bool = False) -> Iterable[Clone]:
    """Yield a clone after each step that it syncs at."""
    all_clones = [Clone(f"w{number}") for number in range(clones)]
    kinds = (*KINDS, *["document"] * 12) if with_documents else KINDS
    for kind, who, *choices in steps:
        what, clone = kinds[kind % len(kinds)], all_clones[who % clones]
        other = all_clones[who // clones % clones]
        if what in WRITES or what == "batch":
            _write(clone, what, choices)
        elif what == "race":  # both have the same files, and write of the same entity
            yield from _race(clone, other, choices)
        elif what == "document":
            clone.document(choices)
        else:
            _move(what, clone, other, choices[0])
        if what not in WRITES and what != "batch":
            clone.sync()
            yield clone
    for clone in all_clones:
        clone.sync()
        yield clone


def _move(what: str, clone: Clone, other: Clone, choice: int) -> None:
    """Change the files of a clone, as git and ``kb share`` do."""
    if what == "publish":
        clone.publish()
    elif what == "share":
        clone.share()
    elif what == "commit":
        clone.committed = set(clone.tree)
    elif what == "merge":
        clone.merge(other)
    elif what == "adopt":
        clone.adopt(other)
    elif what == "pack":
        clone.pack(choice % 3, commits=choice % 2 == 0)
    elif what == "redact":
        clone.redact(choice)
    elif paths := clone.whole_files():
        path = paths[choice % len(paths)]
        if what == "drop" or path not in clone.committed:
            del clone.tree[path]
            clone.committed.discard(path)


def _race(one: Clone, other: Clone, choices: Sequence[int]) -> Iterable[Clone]:
    first, second, third = choices
    for clone in (one, other):
        clone.publish()
    one.merge(other)
    other.merge(one)
    for clone, kinds, number in (
        (one, ("delete", "rename", "set"), first),
        (other, ("set", "rename", "tag"), first // 3),
    ):
        clone.sync()
        yield clone
        _write(clone, kinds[number % 3], (second, third, first + (clone is other)))
        clone.publish()
    for clone in (one, other):
        clone.merge(other if clone is one else one)
        clone.sync()
        yield clone


def _write(clone: Clone, what: str, choices: Sequence[int]) -> None:
    ops = _several(clone.state, choices) if what == "batch" else _operations(what, clone.state, choices)
    if ops:
        clone.write(ops)


def _several(before: State, choices: Sequence[int]) -> list[Operation]:
    """Return the operations of a changeset with several items: entities come first, and what is deleted last.

    An entity that gets another id is the only one that goes: of several it would not be known which it was. The choices
    are numbers whose digits choose the items, so that smaller numbers are simpler changesets.
    """
    (first, *others), state, ops = choices, _copied(before), list[Operation]()
    touched, ends, gone, is_renamed = set[str](), set[str](), set[str](), False
    for at in range(2 + first % 3):
        of_item = [number // _DIGIT**at for number in (*others, sum(others))]
        more = _operations(WRITES[first // 3 // len(WRITES) ** at % len(WRITES)], state, of_item)
        keys = {_key_of(op) for op in more}
        of_edges = {end for op in more if isinstance(op, EdgeOperation) for end in (op.from_id, op.to_id)}
        dropped = {op.id for op in more if isinstance(op, DropNode)}
        is_unclear = bool(dropped and gone) and (is_renamed or any(isinstance(op, PutNode) for op in more))
        if keys & touched or of_edges & gone or dropped & ends or is_unclear:
            continue
        is_renamed = is_renamed or bool(dropped and any(isinstance(op, PutNode) for op in more))
        touched, ends, gone = touched | keys, ends | of_edges, gone | dropped
        apply(state, Stamp(0, "", "", ""), more)
        ops += more
    return sorted(ops, key=lambda op: 0 if isinstance(op, PutNode) else 2 if isinstance(op, DropNode) else 1)


def _key_of(op: Operation) -> str:
    if isinstance(op, PutNode | DropNode):
        return op.id
    assert isinstance(op, EdgeOperation)
    return link_id(op.type, op.kind, op.from_id, op.to_id)


def facts_of(state: State) -> dict[str, Any]:
    """Return the facts of clients in a state, by id, without what documents state and what a commit stamps."""
    nodes = {
        key: _fields(node) | {"former": [] if FORMER_IDS in node.owners else sorted(former_ids(node))}
        for key, node in state.nodes.items()
    }
    links = {
        key: _fields(link) for key, link in state.links.items() if any(one.src == CLIENT for one in link.statements)
    }
    return {**nodes, **links}


def facts_expected(changes: Iterable[Change], documents: DocumentFacts = NO_DOCUMENTS) -> dict[str, Any]:
    """Return what the fold of a whole set of changes says beside what documents state, as ``facts_of``."""
    state = fold(changes, documents)
    return {**_entities(state), **_edges(state)}


def _entities(state: FoldedClaims) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, one in state.entities.items():
        fields = {name: field.shown for name, field in one.fields.items() if field.shown is not ABSENT}
        if "type" not in fields:
            continue
        stated = {name for name, field in one.fields.items() if field.stated is not ABSENT}
        fields = {name: value for name, value in fields.items() if name not in {*STAMPS, *stated}}
        fields |= {name: sorted(members) for name, members in one.sets.items() if members and name not in stated}
        fields |= {
            f"{CONTESTED}.{name}": _alternatives(field) for name, field in one.fields.items() if field.is_contested
        }
        if one.names.is_contested:
            fields[f"{CONTESTED}.id"] = _alternatives(one.names)
        if one.deletions:
            fields[f"{CONTESTED}.deleted"] = sorted(one.deletions)
        found[key] = fields | {"former": sorted(one.former_ids)}
    return found


def _edges(state: FoldedClaims) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, one in state.edges.items():
        if one.additions:
            fields = {name: field.shown for name, field in one.fields.items() if field.shown is not ABSENT}
            fields = {name: value for name, value in fields.items() if name not in {"created_at", "created_by"}}
            found[key] = fields | {
                f"{CONTESTED}.{name}": _alternatives(field) for name, field in one.fields.items() if field.is_contested
            }
    return found


def _alternatives(field: Any) -> list[Any]:
    return [[repr(one.value), *one.changes] for one in field.values]


def _fields(element: Node | Link) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in element.fields.items():
        if name in element.owners or name in STAMPS:
            continue
        if name == f"{CONTESTED}.deleted":
            found[name] = sorted(one["change"] for one in value)
        elif name.startswith(f"{CONTESTED}."):
            found[name] = [
                [repr(one.get("value", ABSENT)), *(change["change"] for change in one["changes"])] for one in value
            ]
        elif name == "tags":
            if value:
                found[name] = sorted(value)
        elif name != FORMER_IDS:
            found[name] = value
    return found


def _operations(what: str, state: State, choices: Sequence[int]) -> list[Operation]:
    first, second, third = choices
    ids = sorted(state.nodes)
    if what == "create":
        free = [one for one in _ids(state) if one not in state.nodes]
        fields = {"type": "req", "title": VALUES[second % 2], "tags": TAGS[third % len(TAGS)]}
        return [PutNode(free[first % len(free)], 0, fields)] if free else []
    if what in {"unlink", "set_edge", "link_edge", "confirm"}:
        return _edge_operations(what, state, choices)
    if not ids:
        return []
    node = state.nodes[ids[first % len(ids)]]
    if what in {"delete", "rename"} and (node.owners or _has_edge_about_none(state)):
        return []  # its document decides that; and no state has the ends of an edge that is not there
    if what == "link":
        other = ids[second % len(ids)]
        key = link_id("relates_to", "", node.id, other)
        return [] if key in state.links else [StateLink("relates_to", node.id, other, 0)]
    return _node_operations(what, state, node, second, third)


def _node_operations(what: str, state: State, node: Node, second: int, third: int) -> list[Operation]:
    if what == "set":
        field = ("title", "attributes.k")[second % 2]
        values = VALUES if field != "title" else tuple(map(str, VALUES))
        value = values[third % len(values)]
        is_so = node.fields.get(field) == value and f"{CONTESTED}.{field}" not in node.fields
        if is_so or field in node.owners:
            return []
        return [PutNode(node.id, node.version, {field: value}, _settled(node, field))]
    if what == "unset":
        if "attributes.k" not in node.fields:
            return []
        return [PutNode(node.id, node.version, {}, ("attributes.k", *_settled(node, "attributes.k")))]
    if what == "tag":
        return [PutNode(node.id, node.version, {"tags": TAGS[third % len(TAGS)]})]
    if what == "delete":
        return [*_withdrawals(state, node.id), DropNode(node.id, node.version)]
    free = sorted({*_ids(state), "E", "F"} - state.nodes.keys() - _former(state))
    if not free:
        return []
    new = free[second % len(free)]
    fields = {**node.fields, FORMER_IDS: [*former_ids(node), node.id]}
    wanted = Node(new, fields, {}, node.created_at, node.updated_at, node.source, 0, 0)
    return rename_ops(state, node, wanted)


def _has_edge_about_none(state: State) -> bool:
    ends = {end for link in state.links.values() for end in (link.from_id, link.to_id)}
    return any(is_link_id(end) and end not in state.links for end in ends)


def _withdrawals(state: State, end: str) -> list[Operation]:
    """Return the withdrawals of all edges at an end: clients leave none that leads nowhere."""
    found: list[Operation] = []
    for link in state.links_of(end):
        found += [*_withdrawals(state, link.id), _withdrawal(link)]
    return found


def _withdrawal(link: Link) -> Operation:
    return WithdrawLink(link.type, link.from_id, link.to_id, link.version, link.kind)


def _settled(element: Node | Link, field: str) -> tuple[str, ...]:
    """Return the note on a contested field that a write to the field removes."""
    name = f"{CONTESTED}.{field}"
    return (name,) if name in element.fields else ()


def _edge_operations(what: str, state: State, choices: Sequence[int]) -> list[Operation]:
    first, second, _ = choices
    links = sorted(key for key, one in state.links.items() if one.statements)
    if not links:
        return []
    link = state.links[links[first % len(links)]]
    if what == "unlink":
        return [*_withdrawals(state, link.id), _withdrawal(link)]
    if what == "confirm":
        target = state.nodes.get(link.to_id)
        seen = confirmed_content(target, (), None) if target else ""
        return [ConfirmLink(link.type, link.from_id, link.to_id, link.version, link.kind, seen)]
    if what == "set_edge":
        value = (0.1, 0.9)[second % 2]
        return [
            StateLink(
                link.type,
                link.from_id,
                link.to_id,
                link.version,
                link.kind,
                {"confidence": value},
                _settled(link, "confidence"),
            )
        ]
    targets = sorted(state.nodes)
    if not targets or not link.is_resolved:
        return []
    end = targets[second % len(targets)]
    return [] if link_id("about", "", link.id, end) in state.links else [StateLink("about", link.id, end, 0)]


def _ids(state: State) -> list[str]:
    """Return the ids that a client may write: one that an entity had before names no other one."""
    return [one for one in IDS if one not in _former(state)]


def _former(state: State) -> set[str]:
    return {one for node in state.nodes.values() for one in former_ids(node)}


def _copied(state: State) -> State:
    return State(state.nodes.values(), state.links.values())
