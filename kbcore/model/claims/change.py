"""A change: the claims that one changeset of a client makes, and an id that is the same in every clone. Plain data.

A claim says something of one field of an entity, of one member of a set, or of one edge. It names the claims that its
writer saw there, so the order of changes follows from the changes alone, and not from clocks or from the order in which
they arrive.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final, TypeGuard, final

import msgspec

from kbcore.model.graph import CLIENT, CORE_FIELDS, OBJECT_FIELDS

FORMAT: Final = 1
"""The form of what the id of a change is taken of. Another form gets another number."""

SUFFIX: Final = ".jsonl"
"""The ending of the names of change files."""

ID_CHARS: Final = 32
"""Hexadecimal digits of the id of a change: 128 bits."""

MAX_SEEN: Final = 64
"""Claims that one claim names, the nearest first. One more than these that are missing leave a conflict."""

_SALT_CHARS: Final = 16
_SHOWN_CHARS: Final = 8

SELF: Final = "@"
"""The creation of an entity that the change itself creates: its own id cannot be part of what the id is taken of."""

CREATED_BY: Final = "@"
"""Between an id and the beginning of the change that created what is meant (``creation_words``)."""

DOCUMENT: Final = CLIENT
"""In place of a creation: the entity is the one that a document states."""

CONFIRMED: Final = "confirmed"
"""The set of an edge whose members say what its target was each time that somebody confirmed it
(``content.confirmed_content``)."""

REDACTED: Final = "[redacted]"
"""Shown in the place of a value that was taken out, and written in the place of a text that was."""

MESSAGE: Final = "message"
"""Names the message of a change or a record where fields are named; no claim is on a field of this name."""

NO_TEXT: Final = frozenset({"confidence", *(name for name, kind in CORE_FIELDS.items() if kind == "time")})
"""The fields that hold no text, and so no secret."""

_OF_DOCUMENT: Final = (DOCUMENT,)


class EntityRef(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="is", tag="entity", gc=False
):
    """An entity as a change names it: the id that it had for the writer, and what it came from.

    ``of`` has the creations of the entity (``creation_of``), ``SELF``, or ``DOCUMENT``. It has several where two clones
    created one id.
    """

    id: str
    of: tuple[str, ...] = _OF_DOCUMENT

    def __post_init__(self) -> None:
        """Spell an entity of a document in one way."""
        if self.of == _OF_DOCUMENT:
            msgspec.structs.force_setattr(self, "of", _OF_DOCUMENT)


class EdgeRef(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="is",
    tag="edge",
    gc=False,
    rename={"from_end": "from", "to_end": "to"},
):
    """An edge as a change names it: by its ends, of which each may be an edge."""

    type: str
    from_end: Ref
    to_end: Ref
    kind: str = ""


Ref = EntityRef | EdgeRef


class _Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="op", gc=False):
    """The base of all claims: the way they are written."""

    @property
    def is_redacted(self) -> bool:
        """Tell whether the value was taken away."""
        return False


class _Valued(_Claim, frozen=True):
    """A claim with a value, which a redaction can take away: then it has ``hash`` in place of ``now`` and ``salt``.

    ``was`` is the value before, for people who review a change. It decides nothing and is no part of the id.
    """

    on: Ref
    field: str
    was: Any = msgspec.UNSET
    now: Any = msgspec.UNSET
    salt: str = ""
    hash: str = ""

    @property
    def is_redacted(self) -> bool:
        """Tell whether the value was taken away."""
        return bool(self.hash)


@final
class Create(_Claim, frozen=True, tag="create"):
    """An entity comes into being."""

    id: str


@final
class SetField(_Valued, frozen=True, tag="set"):
    """A field of an entity or an edge has a value: ``title``, ``attributes.KEY``, ``metadata.KEY``, ``confidence``."""

    after: tuple[str, ...] = ()


@final
class UnsetField(_Claim, frozen=True, tag="unset"):
    """A field of an entity or an edge has no value."""

    on: Ref
    field: str
    was: Any = msgspec.UNSET
    after: tuple[str, ...] = ()


@final
class AddMember(_Valued, frozen=True, tag="add"):
    """A set has a member: ``tags`` of an entity, ``CONFIRMED`` of an edge."""


@final
class RemoveMember(_Valued, frozen=True, tag="remove"):
    """The additions that ``removes`` names (``claim_name``) are taken away, whatever their member is."""

    removes: tuple[str, ...] = ()


@final
class Delete(_Claim, frozen=True, tag="delete"):
    """An entity goes. ``after`` are all changes with a claim on it that the writer saw."""

    on: EntityRef
    after: tuple[str, ...] = ()


@final
class Keep(_Claim, frozen=True, tag="keep"):
    """An entity stays, in spite of the deletions that ``after`` names."""

    on: EntityRef
    after: tuple[str, ...] = ()


@final
class Rename(_Claim, frozen=True, tag="rename"):
    """An entity is called ``now``; its earlier ids go on to mean it."""

    on: EntityRef
    now: str
    after: tuple[str, ...] = ()


@final
class AddEdge(_Claim, frozen=True, tag="link"):
    """An edge is stated."""

    on: EdgeRef


@final
class RemoveEdge(_Claim, frozen=True, tag="unlink"):
    """The additions that ``removes`` names (``claim_name``) are taken away, however the edge is called now."""

    on: EdgeRef
    removes: tuple[str, ...] = ()


@final
class RedactedField(_Claim, frozen=True, tag="redacted"):
    """A claim on a field whose name was taken away, and so its value. ``hash`` is the digest of the claim as it was."""

    on: Ref
    hash: str

    @property
    def is_redacted(self) -> bool:
        """Tell whether the value was taken away."""
        return True


Claim = (
    Create
    | SetField
    | UnsetField
    | AddMember
    | RemoveMember
    | Delete
    | Keep
    | Rename
    | AddEdge
    | RemoveEdge
    | RedactedField
)
VALUED: Final = (SetField, AddMember, RemoveMember)
"""The claims with a value."""


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One change. ``id`` is that of ``identified``; the other members are those of the record that committed it.

    ``message_hash`` is that of a message that was redacted, with its salt.
    """

    id: str
    at: str
    actor: str
    tool: str
    claims: tuple[Claim, ...]
    message: str = ""
    salt: str = ""
    message_hash: str = ""
    session: str = ""

    @property
    def is_redacted(self) -> bool:
        """Tell whether the value of a claim was taken away."""
        return any(claim.is_redacted for claim in self.claims)


def order_of(change: Change) -> tuple[str, str]:
    """Return by what changes are sorted: their time, and of one time their id."""
    return change.at, change.id


_encode = msgspec.json.Encoder(order="sorted").encode


def identified(change: Change) -> Change:
    """Return the change with its id: 128 bits of SHA-256 of its header and of a digest of each claim.

    The digest of a value is taken with its salt, and that of a claim with the digest of its value. So a redacted copy
    has the id of the whole one, and nobody can find a redacted value by guessing. ``was`` is left out.
    """
    header = (
        "kb-change", FORMAT, change.at, change.actor, change.tool, change.session, _message_hash(change)
    )  # fmt: skip
    content = (header, [_claim_hash(claim) for claim in change.claims])
    return msgspec.structs.replace(change, id=hashlib.sha256(_encode(content)).hexdigest()[:ID_CHARS])


def redacted(change: Change, *, message: bool = False, claims: Iterable[int] = (), names: Iterable[int] = ()) -> Change:
    """Return the change without its message, and without the values of the claims at these positions. The id stays.

    The claims at the positions of ``names`` lose the name of their field too, where its writer chose it.
    """
    hidden, nameless = set(claims), set(names)
    kept = tuple([_without_value(one) if at in hidden else one for at, one in enumerate(change.claims)])
    kept = tuple([_without_name(one) if at in nameless else one for at, one in enumerate(kept)])
    if message:
        change = msgspec.structs.replace(change, message="", salt="", message_hash=_message_hash(change))
    return msgspec.structs.replace(change, claims=kept)


def key_of_field(name: str) -> str:
    """Return the part of the name of a field that its writer chose, ``KEY`` of ``attributes.KEY``; "" for none."""
    prefix, _, key = name.partition(".")
    return key if prefix in OBJECT_FIELDS else ""


def fields_redacted(mine: Change, other: Change) -> tuple[str, ...]:
    """Return the fields that another copy of a change has redacted and this one has not, ``MESSAGE`` among them.

    ``REDACTED`` is there for those whose name is redacted. Confirmations are left out: they go with the values of the
    entity that they are of.
    """
    pairs = [*zip(mine.claims, other.claims, strict=True)]
    fields = {
        theirs.field
        for one, theirs in pairs
        if isinstance(theirs, VALUED) and theirs.is_redacted and not one.is_redacted
    }
    if any(isinstance(theirs, RedactedField) and _has_key(one) for one, theirs in pairs):
        fields.add(REDACTED)
    is_message = bool(other.message_hash) and not mine.message_hash
    return tuple(sorted(fields - {CONFIRMED})) + (MESSAGE,) * is_message


def redacted_value(field: str) -> Any:
    """Return what a field shows in the place of a value that was taken out; ``UNSET`` where it can show no text."""
    if field in NO_TEXT:
        return msgspec.UNSET
    return [REDACTED] if CORE_FIELDS.get(field) == "list" else REDACTED


def union(copies: Iterable[Change]) -> dict[str, Change]:
    """Return each change once, by id. Of several copies of one, what any of them redacted is redacted."""
    found: dict[str, Change] = {}
    for one in copies:
        other = found.get(one.id)
        found[one.id] = one if other is None else _joined(other, one)
    return found


def salt_of(chain: str, name: object) -> str:
    """Return the salt of a value of a change: ``chain`` is a hash that nobody has without the journal.

    ``name`` is another one for each value of the change.
    """
    return hashlib.sha256(f"kb-salt:{chain}:{name}".encode()).hexdigest()[:_SALT_CHARS]


def creation_of(change_id: str, entity_id: str) -> str:
    """Return the name of the creation of an entity by a change."""
    return f"{change_id}:{entity_id}"


def creation_words(change_id: str, entity_id: str) -> str:
    """Return the creation of an entity by a change as commands and clients name it: ``REQ-7@3fa9c1d2``."""
    return f"{entity_id}{CREATED_BY}{change_id[:_SHOWN_CHARS]}"


def claim_name(change_id: str, at: int) -> str:
    """Return the name of the claim at a position of a change, counted from 0."""
    return f"{change_id}.{at}"


def named_by(change_id: str, ref: Ref) -> Any:
    """Return a reference of a change as other changes name the same, with the creation in place of ``SELF``."""
    if isinstance(ref, EdgeRef):
        ends = named_by(change_id, ref.from_end), named_by(change_id, ref.to_end)
        return EdgeRef(ref.type, *ends, ref.kind)
    if SELF not in ref.of:
        return ref
    return EntityRef(ref.id, tuple([creation_of(change_id, ref.id) if one == SELF else one for one in ref.of]))


def value_key(value: Any) -> bytes:
    """Return the canonical JSON of a value: two values are the same where these are."""
    return _encode(value)


def _claim_hash(claim: Claim) -> str:
    if isinstance(claim, SetField):  # most are
        digest = claim.hash or _digest(claim.salt, claim.now)
        claim = SetField(claim.on, claim.field, hash=digest, after=claim.after)
    elif isinstance(claim, RedactedField):
        return claim.hash
    elif isinstance(claim, VALUED):
        digest = claim.hash or _digest(claim.salt, claim.now)
        claim = msgspec.structs.replace(claim, now=msgspec.UNSET, salt="", hash=digest, was=msgspec.UNSET)
    elif isinstance(claim, UnsetField):
        claim = msgspec.structs.replace(claim, was=msgspec.UNSET)
    return hashlib.sha256(_encode(claim)).hexdigest()


def _message_hash(change: Change) -> str:
    return change.message_hash or _digest(change.salt, change.message)


def _digest(salt: str, value: Any) -> str:
    return hashlib.sha256(_encode((salt, value))).hexdigest()


def _without_value(claim: Claim) -> Claim:
    if isinstance(claim, UnsetField):
        return msgspec.structs.replace(claim, was=msgspec.UNSET)
    if not isinstance(claim, VALUED) or claim.is_redacted:
        return claim
    hidden = {"now": msgspec.UNSET, "salt": "", "hash": _digest(claim.salt, claim.now), "was": msgspec.UNSET}
    return msgspec.structs.replace(claim, **hidden)


def _without_name(claim: Claim) -> Claim:
    return RedactedField(claim.on, _claim_hash(claim)) if _has_key(claim) else claim


def _has_key(claim: Claim) -> TypeGuard[SetField | UnsetField]:
    """Tell whether a claim is on a field whose name its writer chose."""
    return isinstance(claim, SetField | UnsetField) and bool(key_of_field(claim.field))


def _joined(one: Change, other: Change) -> Change:
    """Return one change from two copies of it, in whatever order: it lacks what either lacks."""
    if _encode(one) == _encode(other):
        return one
    pairs = zip(one.claims, other.claims, strict=True)
    claims = tuple([_joined_claim(*pair) for pair in pairs])
    return msgspec.structs.replace(one if one.message_hash else other, claims=claims)


def _joined_claim(one: Claim, other: Claim) -> Claim:
    if isinstance(one, RedactedField) or isinstance(other, RedactedField):
        return _nameless(one, other)
    kept = other if other.is_redacted else one
    if isinstance(kept, (*VALUED, UnsetField)):
        values = [getattr(claim, "was", msgspec.UNSET) for claim in (one, other)]
        if msgspec.UNSET in values or value_key(values[0]) != value_key(values[1]):
            kept = msgspec.structs.replace(kept, was=msgspec.UNSET)
    return kept


def _nameless(one: Claim, other: Claim) -> Claim:
    """Return what is left of a claim of which a copy has no name any more; the whole one where it can have none.

    The digest of the claim is all that its id is taken of, so another file may say anything else: it takes away no
    claim but one on a field whose name was free.
    """
    if isinstance(one, RedactedField) and isinstance(other, RedactedField):
        return min(one, other, key=_encode)
    whole, redacted_one = (other, one) if isinstance(one, RedactedField) else (one, other)
    return redacted_one if _has_key(whole) else whole
