"""Changes without what is taken out. They keep their ids, so every copy of one is found, whoever has it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from kbcore.model.claims.change import (
    CONFIRMED,
    NO_TEXT,
    Change,
    Create,
    EdgeRef,
    EntityRef,
    RedactedField,
    RemoveMember,
    redacted,
    value_key,
)
from kbcore.model.redaction.target import RedactionTarget
from kbcore.model.redaction.texts import RedactedTexts


class TakenOut(msgspec.Struct, frozen=True, omit_defaults=True):
    """The places of a change that have no value any more: claims by position, those of which only ``was`` is gone.

    ``names`` are the claims of which the name of the field is gone too.
    """

    claims: tuple[int, ...] = ()
    was: tuple[int, ...] = ()
    message: bool = False
    names: tuple[int, ...] = ()

    def __or__(self, other: TakenOut) -> TakenOut:
        """Return all places of both."""
        claims, was, names = (
            tuple(sorted({*mine, *theirs}))
            for mine, theirs in ((self.claims, other.claims), (self.was, other.was), (self.names, other.names))
        )
        return TakenOut(claims, was, self.message or other.message, names)


def taken_out(change: Change, left: Change) -> TakenOut | None:
    """Return what a copy of a change lacks by redactions, None for nothing; ``change`` has all that is known of it."""
    pairs = [*enumerate(zip(change.claims, left.claims, strict=True))]
    names = tuple(at for at, (_, claim) in pairs if isinstance(claim, RedactedField))
    claims = tuple(at for at, (_, claim) in pairs if claim.is_redacted and at not in names)
    was = tuple(at for at, (whole, claim) in pairs if at not in (*claims, *names) and _was(claim) != _was(whole))
    found = TakenOut(claims, was, bool(left.message_hash), names)
    return None if found == TakenOut() else found


def taken_out_by_others(copies: Iterable[tuple[Change, Change]]) -> dict[str, TakenOut]:
    """Return what changes lack by redactions of other clones, by their ids, of pairs of what was known and what came.

    A change need not say what was before it. So that counts only where a redacted change had stated it.
    """
    pairs = [*copies]
    hidden = {left.id for _, left in pairs if left.is_redacted}
    found = dict[str, TakenOut]()
    for known, left in pairs:
        taken = taken_out(known, left)
        if taken is not None:
            was = tuple(at for at in taken.was if not hidden.isdisjoint(getattr(left.claims[at], "after", ())))
            taken = msgspec.structs.replace(taken, was=was)
            if taken != TakenOut():
                found[left.id] = taken
    return found


def without(change: Change, taken: TakenOut | None) -> Change:
    """Return a change without the values at these places, the same one where it has none of them; its id stays."""
    if taken is None:
        return change
    claims = tuple(
        msgspec.structs.replace(claim, was=msgspec.UNSET)
        if at in taken.was and _was(claim) is not msgspec.UNSET
        else claim
        for at, claim in enumerate(change.claims)
    )
    is_message = taken.message and bool(change.message)
    change_left = msgspec.structs.replace(change, claims=claims)
    left = redacted(change_left, message=is_message, claims=taken.claims, names=taken.names)
    return change if left == change else left


def _was(claim: Any) -> Any:
    return getattr(claim, "was", msgspec.UNSET)


def without_claims(change: Change, target: RedactionTarget) -> Change:
    """Return a change without the values that are taken out, the same one where it has none of them; its id stays.

    Where only the value before a claim has it, that alone goes: it is there for people who review.
    """
    names = [at for at, claim in enumerate(change.claims) if target.takes_name(getattr(claim, "field", ""))]
    hidden = {at for at, claim in enumerate(change.claims) if is_taken(change, claim, "now", target)}
    claims = tuple(
        msgspec.structs.replace(claim, was=msgspec.UNSET) if is_taken(change, claim, "was", target) else claim
        for claim in change.claims
    )
    is_in = change.id in target.changes or (target.matches is not None and bool(target.matches.search(change.message)))
    is_message = bool(change.message) and is_in and target.takes_message
    if not hidden and not names and not is_message and claims == change.claims:
        return change
    left = msgspec.structs.replace(change, claims=claims)
    return redacted(left, message=is_message, claims=hidden, names=names)


def holders_in(change: Change, target: RedactionTarget) -> set[str]:
    """Return the entities of which a change states a value that is taken out."""
    return {
        claim.on.id
        for claim in change.claims
        if not isinstance(claim, Create) and isinstance(claim.on, EntityRef)
        if target.takes_name(getattr(claim, "field", ""))
        or any(is_taken(change, claim, name, target) for name in ("now", "was"))
    }


def is_taken(change: Change, claim: Any, name: str, target: RedactionTarget) -> bool:
    """Tell whether a claim of a change has a value, under a name of its own (``now``, ``was``), that is taken out."""
    value = getattr(claim, name, msgspec.UNSET)
    if value is msgspec.UNSET or not hasattr(claim, "field"):
        return False
    if claim.field == CONFIRMED and isinstance(claim.on, EdgeRef):
        return isinstance(claim.on.to_end, EntityRef) and claim.on.to_end.id in target.holders
    if target.matches is not None:
        may_hold = claim.field != "type" and claim.field not in NO_TEXT
        return may_hold and RedactedTexts(target.matches, (), ()).cleared(value) != value
    if not target.is_meant(getattr(claim.on, "id", ""), claim.field):
        return False
    if target.changes and (change.id in target.changes or _shows_earlier(claim, name, target.changes)):
        return True
    return not isinstance(claim.on, EdgeRef) and claim.on.id in target.ids


def _shows_earlier(claim: Any, name: str, changes: frozenset[str]) -> bool:
    """Tell whether a claim shows a value of one of some changes, which its own writer need not have stated."""
    if isinstance(claim, RemoveMember):
        return any(one.rpartition(".")[0] in changes for one in claim.removes)
    if changes.isdisjoint(getattr(claim, "after", ())):
        return False
    if name == "was":
        return True
    # The fields of an edge are claimed again where it is bound to another entity.
    is_again = isinstance(claim.on, EdgeRef) and claim.was is not msgspec.UNSET
    return is_again and value_key(claim.was) == value_key(claim.now)
