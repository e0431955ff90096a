"""Records and facts without what is taken out, and without what would let it be guessed. Pure.

Records are handled as JSON, in the order of their seqs, so that what one says of another stays right: the same id or
path gets the same new one everywhere, and equal records become equal bytes in every store. A place that cannot be
changed without changing what the record means is refused, never left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.errors import InvalidQuery
from kbcore.errors.remedies import kb
from kbcore.ids import link_id
from kbcore.model import canonical, record
from kbcore.model.claims.change import (
    MESSAGE,
    NO_TEXT,
    REDACTED,
    AddMember,
    Change,
    EntityRef,
    Ref,
    SetField,
    UnsetField,
    key_of_field,
    redacted_value,
)
from kbcore.model.claims.derived import SETS
from kbcore.model.claims.fold import ID
from kbcore.model.graph import FORMER_IDS, contested_note, is_contested_note
from kbcore.model.record import EPOCH, IMPORT, REDACTION, REPAIR, SALVAGE, SYNC, UNPROVEN
from kbcore.model.redaction.changes import is_taken, without_claims
from kbcore.model.redaction.target import CLAUSE, NAME, RedactionTarget, may_go, names_of
from kbcore.model.redaction.texts import RedactedTexts, is_hashed_name, texts_of

_RESERVED: Final = frozenset({SYNC, IMPORT, REPAIR, EPOCH, SALVAGE, UNPROVEN, REDACTION})
_KEY_OF_CLAUSE: Final = "attributes.key"
_HASH: Final = re.compile(r"\b[0-9a-f]{12,64}\b")

Json = dict[str, Any]
Sums = Mapping[int, tuple[str, str]]
_decode = msgspec.json.decode
_encode = msgspec.json.Encoder().encode


class RedactedPlace(msgspec.Struct, frozen=True):
    """A changed place of a record, and what it is in words without the value."""

    path: str
    words: str


class Redactor:
    """Takes a target out of the records of one store, from the first one on, and out of the facts before them."""

    def __init__(
        self, target: RedactionTarget, survey: Redactor | None = None, own: Mapping[int, Change] | None = None
    ) -> None:
        """``survey`` is one that has seen all records: what is taken out of one may show in an earlier one.

        ``own`` are the changes that records are, by their seqs, which are stated in them from now on; None where no
        other clone knows them. A change loses a value as a whole, so what clients stated does so as well.
        """
        self.holders: set[str] = set(survey.holders) if survey else set()
        """The entities of which a value was taken out."""
        known = names_of({*self.holders, *target.holders}, survey.former if survey else {})
        self._target = msgspec.structs.replace(target, holders=known)
        self._own = own or {}
        self._is_claimed = own is not None
        self._clean = RedactedTexts(target.matches, survey.ids if survey else (), survey.derived if survey else ())
        self.paths: dict[str, int] = dict(survey.paths) if survey else {}
        """The files that stated what was taken out, and the first record that has it: their digests go."""
        self.derived: set[str] = set()
        """Ids that are made of a name which was taken out."""
        self.ids: set[str] = set()
        """All ids that anything names."""
        self.is_shared = False
        """True where the journal holds changes of others, or says which files hold its own."""
        self.entities: set[str] = set()
        """The ids of all entities."""
        self.sources: set[str] = set()
        """The files that were read."""
        self.former: dict[str, set[str]] = {}
        """The former ids of each entity."""
        self.named: set[str] = set()
        """The fields of the entities, records or changes that are to lose values, also of those which lost theirs."""
        self.removed: set[str] = set()
        """The texts of values that were taken out as a whole."""
        self.changed: set[int] = set()
        """The records that are others now."""
        self.places: list[RedactedPlace] = []
        """The changed places of the last record."""
        self._values: dict[tuple[str, str], list[Any]] = {}
        self._came: dict[tuple[str, str], list[Any]] = {}
        """The values of changes that are taken out, which the last record took in."""
        self._seq = 0

    def payload(self, seq: int, raw: bytes, sums: Sums) -> bytes:
        """Return the payload of a record without what is taken out; the same bytes where there is nothing of it.

        Raises: ``InvalidQuery`` where the pattern is part of a name; ``FormatTooNew``, ``JournalCorrupt``.
        """
        record.decode(raw, seq=seq)  # what is not known is refused, not passed over
        said: Json = _decode(raw)
        self.places, self._seq = [], seq
        self._came = self._values_of_taken(said["ops"])
        self._frame(said)
        for number, op in enumerate(said["ops"]):
            _OPERATIONS[op["op"]](self, op, f"ops.{number}")
        self._about_others(said, sums)
        self._own_change(said)
        if not self.places:
            return raw
        if (seq in self._target.seqs or self._target.ids) and not self._target.fields:
            self._texts(said, "warnings", is_whole=True)
        if said["digest"]:
            said["digest"] = ""
            self._place("digest", "digest of the request")
        self.changed.add(seq)
        said["redacted"] = [*dict.fromkeys([*said.get("redacted", ()), *(one.path for one in self.places)])]
        # Its members stay in the order in which a record has them.
        return _encode({name: said[name] for name in record.Record.__struct_fields__ if name in said})

    def facts(self, lines: Iterable[bytes]) -> tuple[list[bytes], bool]:
        """Return the facts of a snapshot without what is taken out, and whether any is another one now."""
        self.places, self._seq, self._came = [], 0, {}
        found, times = [_decode(line) for line in lines], list[tuple[int, int]]()
        for fact in found:
            before = len(self.places)
            stamped: Json = fact.get("node") or fact.get("link") or {}
            if "node" in fact:
                self._node(stamped)
            elif "link" in fact:
                self._whole_link(stamped)
            if len(self.places) > before:
                times.append((stamped["created_seq"], stamped["version"]))
        for fact in found:
            if "source" in fact:
                self._source(fact["source"], "source")
            elif "changeset" in fact:
                self._known(fact["changeset"], times)
        folded = canonical.read(_encode(fact) for fact in found)
        return [*canonical.lines(folded.state, folded.known)], bool(self.places)

    def _node(self, node: Json) -> None:
        self._learn(node["id"], node["fields"])
        self._fields(node, node["fields"], "node", owners=node["owners"])
        node["id"] = self._id(node["id"], "node.id")
        self._text(node, "source", "node")

    def _whole_link(self, link: Json) -> None:
        self._fields(link, link["fields"], "link", owners=link["owners"])
        self._ends(link, "link", ("from_id", "to_id"))
        link["id"] = self._clean.new_ids.get(link["id"], link["id"])
        self._text(link, "created_by", "link")
        for one in link["statements"]:
            one["src"] = self._path(one["src"], "link.src")
            one["said"] = self._id(one["said"], "link.said")
            self._text(one, "via", "link")

    def _known(self, known: list[Any], times: Iterable[tuple[int, int]]) -> None:
        """Handle what stays known of a changeset: its id, and the digest of what it asked for."""
        changeset_id, seq, digest = known
        if self._clean.holds(changeset_id):
            known[0] = f"{NAME}-{seq}"
            self._place("changeset", "changeset id")
        if digest and (seq in self.changed or any(first <= seq <= last for first, last in times)):
            known[2] = ""
            self._place("changeset", "digest of a request")

    def _values_of_taken(self, ops: Iterable[Json]) -> dict[tuple[str, str], list[Any]]:
        """Return the values that a record states for changes which it takes in, where these are taken out."""
        found: dict[tuple[str, str], list[Any]] = {}
        for op in ops:
            if op["op"] == "take" and op["id"] in self._target.changes and op.get("change"):
                change = msgspec.convert(op["change"], Change)
                for claim in change.claims:
                    if isinstance(claim, SetField | AddMember) and is_taken(change, claim, "now", self._target):
                        found.setdefault((_key_of_ref(claim.on), claim.field), []).append(claim.now)
        return found

    # The members of a record

    def _frame(self, said: Json) -> None:
        is_whole = self._seq in self._target.seqs and self._target.takes_message
        if self._seq in self._target.seqs and said.get("message"):
            self.named.add(MESSAGE)
        if said["source"] not in _RESERVED:
            self._text(said, "source", "")
        for name in ("actor", "tool", "session", "repair"):
            self._text(said, name, "")
        self._text(said, "message", "", is_whole=is_whole and bool(said.get("message")))
        self._texts(said, "warnings")
        if self._clean.holds(said["changeset_id"]):
            said["changeset_id"] = f"{NAME}-{self._seq}"
            self._place("changeset_id", "changeset id")
        if said.get("unchanged"):
            said["unchanged"] = [self._id(one, "unchanged") for one in said["unchanged"]]

    def _about_others(self, said: Json, sums: Sums) -> None:
        """Put the new hashes of records in the place of the old ones, and drop digests of what is another now."""
        for hole in said.get("holes", ()):
            self._hash(hole, "before", hole["first"] - 1, sums, "holes")
            self._hash(hole, "after", hole["last"], sums, "holes")
        if said.get("unproven"):
            self._hash(said["unproven"], "hash", said["unproven"]["seq"], sums, "unproven")
        if said["source"] in _RESERVED and said.get("repair"):
            olds = {old[:12]: (old, new) for old, new in sums.values()}

            def renewed(found: re.Match[str]) -> str:
                old, new = olds.get(found[0][:12], ("", ""))
                return new[: len(found[0])] if old.startswith(found[0]) and old else found[0]

            repair = _HASH.sub(renewed, said["repair"])
            if repair != said["repair"]:
                said["repair"] = repair
                self._place("repair", "hash of a record")
        made = said.get("redaction")
        if made:
            for one in made["records"]:
                if one["digest"] and one["seq"] in self.changed:
                    one["digest"] = ""
                    self._place("redaction.records", "digest of a record")
            if made["kept"] and self.changed:
                made["kept"] = ""
                self._place("redaction.kept", "digest of records")

    def _hash(self, holder: Json, name: str, seq: int, sums: Sums, path: str) -> None:
        old, new = sums.get(seq, ("", ""))
        if old and holder[name] == old and old != new:
            holder[name] = new
            self._place(f"{path}.{name}", "hash of a record")

    # Operations

    def _put(self, op: Json, path: str) -> None:
        self._learn(op["id"], op.get("set", {}))
        before = len(self.places)
        self._fields(op, op.get("set", {}), f"{path}.set")
        self._unset(op, path)
        self._touch(op, before)
        if len(self.places) > before and is_hashed_name(op["id"]):
            self.derived.add(op["id"])
        op["id"] = self._id(op["id"], f"{path}.id")
        self._with_path(op, "src", path)

    def _drop(self, op: Json, path: str) -> None:
        op["id"] = self._id(op["id"], f"{path}.id")

    def _link(self, op: Json, path: str) -> None:
        before = len(self.places)
        self._fields(op, op.get("set", {}), f"{path}.set")
        self._unset(op, path)
        self._touch(op, before)
        self._ends(op, path, ("from", "to"))
        self._with_path(op, "src", path)
        if op.get("said"):
            op["said"] = self._id(op["said"], f"{path}.said")

    def _confirm(self, op: Json, path: str) -> None:
        if op.get("seen") and op["to"] in self._target.holders:
            del op["seen"]
            self._place(f"{path}.seen", "a digest of what the target of an edge said")
        self._edge(op, path)

    def _edge(self, op: Json, path: str) -> None:
        self._ends(op, path, ("from", "to"))
        self._with_path(op, "src", path)

    def _source(self, op: Json, path: str) -> None:
        before = len(self.places)
        self.sources.add(op["path"])
        for problem in op.get("problems", ()):
            is_meant = self._seq in self._target.seqs or problem.get("id", "") in self._target.ids - {""}
            for name in ("message", "hint"):
                self._text(problem, name, f"{path}.problems", is_whole=is_meant and not self._target.fields)
            for at, value in enumerate(problem.get("values", ())):
                held = {"values": value}
                self._text(held, "values", f"{path}.problems", is_whole=is_meant and not self._target.fields)
                problem["values"][at] = held.get("values", "")
            if problem.get("id"):
                problem["id"] = self._id(problem["id"], f"{path}.problems.id")
        if len(self.places) > before:
            self.paths.setdefault(op["path"], self._seq)
        if self.paths.get(op["path"], self._seq + 1) <= self._seq and op["hash"]:
            op["hash"] = ""
            self._place(f"{path}.hash", "digest of a file")
        self._with_path(op, "path", path)

    def _forget(self, op: Json, path: str) -> None:
        self._with_path(op, "path", path)

    def _take(self, op: Json, path: str) -> None:
        """Take values out of the change of another writer that a record holds; the id of the change stays."""
        self._leave(op, path)
        if op.get("change"):
            change = without_claims(msgspec.convert(op["change"], Change), self._target)
            if change.id in self._target.changes:
                self.named.update(one.field for one in change.claims if hasattr(one, "field") and may_go("", one.field))
            self._refuse_kept(change)
            self._note_change(op, change, path)

    def _leave(self, op: Json, path: str) -> None:
        self.is_shared = True
        op["file"] = self._path(op["file"], f"{path}.file")

    def _own_change(self, said: Json) -> None:
        """State the change that a record is, where others may know its id: it cannot be derived any more."""
        change, target = self._own.get(self._seq), self._target
        if change is None and said.get("change"):
            change = msgspec.convert(said["change"], Change)
        if change is not None:
            if self._seq in target.seqs:
                target = msgspec.structs.replace(target, changes=target.changes | {change.id})
            self._note_change(said, without_claims(change, target), "")
            self._refuse_kept(msgspec.convert(said["change"], Change))

    def _note_change(self, holder: Json, change: Change, path: str) -> None:
        new = _decode(_encode(change))
        if new != holder.get("change"):
            holder["change"] = new
            self._place(".".join(filter(None, [path, "change"])), "a change")

    def refuse_kept(self, change: Change) -> None:
        """Refuse a pattern that is in what the id of a change is taken of. Raises: ``InvalidQuery``."""
        self._refuse_kept(without_claims(change, self._target))

    def _refuse_kept(self, change: Change) -> None:
        self._names((one.field for one in change.claims if isinstance(one, SetField | UnsetField)), "a change")
        texts = texts_of(_decode(_encode(change)))
        if any(map(self._clean.holds, texts)):
            raise InvalidQuery(
                f"The pattern is part of an id or a name in the change {change.id}, whose own id is taken of it.",
                hint="Give the id of the entity or the seq of a record instead of the pattern: that takes the values"
                f" out. The id or the author itself stays in the history: {kb('rename')} gives an entity another id for"
                " all that comes, and only a revoked secret ends the leak.",
            )

    def _touch(self, op: Json, before: int) -> None:
        """Note the file of an operation that was changed: its digest is one of the value too."""
        if len(self.places) > before and op.get("src"):
            self.paths.setdefault(op["src"], self._seq)

    # Values

    def _fields(self, element: Json, fields: Json, path: str, owners: Json | None = None) -> None:
        """Take values out of the fields of an entity or an edge."""
        own = element.get("id", "")
        before = len(self.places)
        self._without_names(element, fields, path, owners)
        self._names(fields, path)
        for name, value in [*fields.items()]:
            is_of_client = not (element.get("src") if owners is None else owners.get(name))
            new = self._without(element, name, value, path, is_claimed=self._is_claimed and is_of_client)
            if new == value:
                continue
            fields[name] = new
            self.holders.add(own)
            self._place(f"{path}.{name}", f"{self._shown(own or _edge_words(element))} {name}")
            if owners and owners.get(name):
                self.paths.setdefault(owners[name], self._seq)
        if "set" in element and not fields:
            del element["set"]
        if len(self.places) > before and own.startswith(CLAUSE) and fields.get(_KEY_OF_CLAUSE, REDACTED) != REDACTED:
            fields[_KEY_OF_CLAUSE] = REDACTED  # a digest of the text
            self._place(f"{path}.{_KEY_OF_CLAUSE}", f"{own} {_KEY_OF_CLAUSE}")
        if owners:
            for name in owners:
                owners[name] = self._path(owners[name], f"{path}.owners")

    def _without_names(self, element: Json, fields: Json, path: str, owners: Json | None) -> None:
        """Remove the fields of an entity or an edge whose names go: each is a field no more, whatever its value."""
        own = element.get("id", "")
        for name in [one for one in fields if self._takes_name(one)]:
            self.removed.update(texts_of(fields.pop(name)))
            self.holders.add(own)
            self._place(path, f"{self._shown(own or _edge_words(element))} the name of a field")
            if owners and owners.get(name):
                self.paths.setdefault(owners[name], self._seq)
            (owners or {}).pop(name, None)

    def _unset(self, op: Json, path: str) -> None:
        """Leave out of an operation that it removes a field whose name goes."""
        kept = [one for one in op.get("unset", ()) if not self._takes_name(one)]
        if len(kept) < len(op.get("unset", ())):
            self._place(f"{path}.unset", "the name of a field")
            op["unset"] = kept
            if not kept:
                del op["unset"]
        self._names(kept, path)

    def _takes_name(self, name: str) -> bool:
        return self._target.takes_name(name.removeprefix(contested_note("")))

    def _without(self, element: Json, name: str, value: Any, path: str, *, is_claimed: bool) -> Any:
        """Return a field without what is taken out: its value, or each of those in the note that it is contested."""
        own, target = element.get("id", ""), self._target
        if is_contested_note(name):
            field = name.removeprefix(contested_note(""))
            found = []
            for one in value:
                new = self._clean.cleared(one)
                if "value" in one:
                    new = {**new, "value": self._without(element, field, one["value"], path, is_claimed=is_claimed)}
                found.append(new)
            return found
        if name == ID:
            return self._id(value, path)
        is_named = own in target.ids or (self._seq in target.seqs and self._seq > 0)
        came: Sequence[Any] = self._came.get((_key_of(element), name), ()) if self._came else ()
        if "created_seq" in element and (target.seqs or target.changes):
            came = self._values.get((own, name), ())
        if (is_named or came) and may_go(own, name):
            self.named.add(name)
        if target.is_meant(own, name) and (is_named or value in came):
            self._note_removed(own, name, value, texts_of(value))
            return redacted_value(name)
        if target.is_meant(own, name) and any(one in came for one in _members(value)):
            self._note_removed(own, name, value, [one for one in value if one in came])
            return [*dict.fromkeys(REDACTED if one in came else one for one in value)]
        return self._value(name, value, path, is_claimed=is_claimed)

    def _note_removed(self, key: str, name: str, value: Any, texts: Iterable[str]) -> None:
        self.removed.update(texts)
        self._values.setdefault((key, name), []).append(value)

    def _value(self, name: str, value: Any, path: str, *, is_claimed: bool) -> Any:
        if name in NO_TEXT:
            return value
        if name == "type":
            self._clean.refuse_in(str(value), "a type")
            return value
        if name == FORMER_IDS:
            return [self._id(one, path) for one in value] if isinstance(value, list) else self._id(value, path)
        new = self._clean.cleared(value)
        if new == value or not is_claimed:
            return new
        if name in SETS:
            return [*dict.fromkeys(one if self._clean.cleared(one) == one else REDACTED for one in value)]
        return redacted_value(name)

    def _text(self, holder: Json, name: str, path: str, *, is_whole: bool = False) -> None:
        value = holder.get(name)
        if not value:
            return
        new = REDACTED if is_whole else self._clean.without(value)
        if new != value:
            holder[name] = new
            self._place(".".join(filter(None, [path, name])), name)

    def _texts(self, holder: Json, name: str, *, is_whole: bool = False) -> None:
        values = holder.get(name)
        if not values:
            return
        new = [REDACTED] * len(values) if is_whole else [self._clean.without(one) for one in values]
        if new != values:
            holder[name] = new
            self._place(name, name)

    def _id(self, id_: str, path: str) -> str:
        """Return the id that an entity or an edge has now."""
        new = self._clean.new_id(id_)
        if new != id_:
            self._place(path, "an id")
        return new

    def _ends(self, edge: Json, path: str, names: tuple[str, str]) -> None:
        """Give an edge the new ids of its ends, and note the id that follows from them."""
        self._clean.refuse_in(edge["type"], "a type")
        kind = edge.get("kind", "")
        ends = [edge[name] for name in names]
        if self._clean.holds(kind):
            edge["kind"] = self._clean.without(kind, NAME)
            self._place(f"{path}.kind", "kind of an edge")
        for name in names:
            self.ids.add(edge[name])
            edge[name] = self._id(edge[name], f"{path}.{name}")
        old = link_id(edge["type"], kind, *ends)
        new = link_id(edge["type"], edge.get("kind", ""), *(edge[name] for name in names))
        if old != new:
            self._clean.new_ids[old] = new

    def _with_path(self, holder: Json, name: str, path: str) -> None:
        if holder.get(name):
            holder[name] = self._path(holder[name], f"{path}.{name}")

    def _path(self, file: str, path: str) -> str:
        new = self._clean.without(file, NAME) if file else file
        if new != file:
            self._place(path, "the path of a file")
        return new

    def _names(self, names: Iterable[str], path: str) -> None:
        """Refuse a pattern that is part of the name of a field, unless the field goes with its name."""
        for name in names:
            if key_of_field(name) and self._clean.holds(key_of_field(name)):
                raise InvalidQuery(
                    f"The pattern is part of the name of a field ({path.rpartition('.')[0] or path} of record"
                    f" {self._seq}).",
                    hint="With --names, each field whose name has it is removed, with its values. Give the whole"
                    " secret: a part of it may be in names that are none.",
                )
            self._clean.refuse_in(name, f"the field `{name}` ({path.rpartition('.')[0] or path} of record {self._seq})")

    def _learn(self, id_: str, fields: Json) -> None:
        self.ids.add(id_)
        self.entities.add(id_)
        value = fields.get(FORMER_IDS)
        items = value if isinstance(value, list) else [value]
        former = [one for one in items if isinstance(one, str) and one]
        if former:
            self.former.setdefault(id_, set()).update(former)

    def _shown(self, words: str) -> str:
        return self._clean.without(words, NAME)

    def _place(self, path: str, words: str) -> None:
        self.places.append(RedactedPlace(path, words))


_OPERATIONS: Final[Mapping[str, Callable[[Redactor, Json, str], None]]] = {
    "put": Redactor._put,  # noqa: SLF001 - of this module
    "drop": Redactor._drop,  # noqa: SLF001
    "link": Redactor._link,  # noqa: SLF001
    "unlink": Redactor._edge,  # noqa: SLF001
    "confirm": Redactor._confirm,  # noqa: SLF001
    "source": Redactor._source,  # noqa: SLF001
    "forget": Redactor._forget,  # noqa: SLF001
    "take": Redactor._take,  # noqa: SLF001
    "leave": Redactor._leave,  # noqa: SLF001
}
"""By the name of an operation; ``tests/core/model/redaction/test_redactor.py`` knows that none is missing."""


def _members(value: Any) -> list[str]:
    """Return the members of a set, such as tags; none of any other value."""
    return value if isinstance(value, list) and all(isinstance(one, str) for one in value) else []


def _key_of(element: Json) -> str:
    """Return the id of an entity or an edge, in an operation or among the facts."""
    if "id" in element:
        return str(element["id"])
    return link_id(element["type"], element.get("kind", ""), element["from"], element["to"])


def _key_of_ref(ref: Ref) -> str:
    if isinstance(ref, EntityRef):
        return ref.id
    return link_id(ref.type, ref.kind, _key_of_ref(ref.from_end), _key_of_ref(ref.to_end))


def _edge_words(edge: Json) -> str:
    ends = edge.get("from", edge.get("from_id", "")), edge.get("to", edge.get("to_id", ""))
    return f"{ends[0]} {edge.get('type', '')} {ends[1]}".strip()
