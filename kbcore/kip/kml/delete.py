"""The four DELETEs: concepts with all that hangs on them, propositions, and keys of attributes or of metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kbcore.errors.remedies import kb
from kbcore.kip import syntax as s
from kbcore.kip.elements import element_json
from kbcore.kip.errors import CONSTRAINT, IMMUTABLE, refused
from kbcore.kip.kml.command_drafts import CommandDrafts, Draft, besides_kind
from kbcore.kip.kml.drafts import CREATED, UPDATED, LinkDraft, NodeDraft
from kbcore.kip.kml.intent import Intent, fallen, link_words, node_words
from kbcore.kip.kml.protection import deletion_refused, is_undeletable
from kbcore.kip.kml.selection import concepts, propositions, selected
from kbcore.kip.names import GIVEN
from kbcore.model.graph import CLIENT, FORMER_KEY, Link
from kbcore.model.state import Changes
from kbcore.text.escaping import in_quotes

_STAMPS: Final = frozenset({CREATED, UPDATED})


def delete_concepts(work: CommandDrafts, command: s.DeleteConcepts) -> Intent:
    """Delete concepts, their propositions, and propositions about these. Raises: ``KipRefused``."""
    found = concepts(work, command.variable, command.where, "DELETE CONCEPT")
    check_deletable(work, found)

    def answer(changes: Changes) -> dict[str, Any]:
        nodes, links = fallen(changes)
        return {"deleted_concepts": nodes, "deleted_propositions": links}

    return Intent(answer, concepts=tuple(found))


def check_deletable(work: CommandDrafts, drafts: Sequence[NodeDraft]) -> None:
    """Refuse to delete what belongs to every store. Raises: ``KipRefused``."""
    for draft in drafts:
        if is_undeletable(draft):
            raise deletion_refused(node_words(work, draft), draft.at)


def delete_propositions(work: CommandDrafts, command: s.DeletePropositions) -> Intent:
    """Delete propositions, and propositions about them. Raises: ``KipRefused``."""
    found = propositions(work, command.variable, command.where)
    for draft in found:
        if not draft.is_stored:
            raise deletion_refused(link_words(draft), draft.at)

    def answer(changes: Changes) -> dict[str, Any]:
        after = {change.key: change.after for change in changes.links}
        left = [draft for draft in found if (link := after.get(draft.id, draft.old)) and link.is_resolved]
        if left:
            raise _stated(left[0])
        return {"deleted_propositions": fallen(changes)[1]}

    return Intent(answer, propositions=tuple(found))


def _is_member(draft: Draft, key: str) -> bool:
    return draft.old is not None and f"metadata.{key}" in draft.old.fields


def _files(draft: Draft) -> list[str]:
    """Return the files that state an element."""
    if isinstance(draft.old, Link):
        return [one.src for one in draft.old.statements if one.src != CLIENT]
    return sorted({*draft.old.owners.values()}) if draft.old else []


def _stated(draft: LinkDraft) -> Exception:
    files = _files(draft)
    named = ", ".join(map(in_quotes, files))
    message = f"{link_words(draft)} is stated by {named} as well, and would stay."
    return refused(IMMUTABLE, message, at=draft.at, hint=f"Take the link out of {named} and {kb('sync', lead='run')}.")


def delete_keys(work: CommandDrafts, command: s.DeleteKeys) -> Intent:
    """Drop keys from the attributes or the metadata of elements that have them. Raises: ``KipRefused``."""
    keys = list(dict.fromkeys(text.value for text in command.keys))
    part = command.part.lower()
    counts = {"updated_concepts": 0, "updated_propositions": 0}
    for draft in selected(work, command.variable, command.where):
        if draft.old is None:
            continue
        there = element_json(draft.old, work.names)[part]
        had = [key for key in keys if key in there]
        for key in had:
            _check_key(draft, part, key, command.at)
        in_fields = {key for key in had if part == "metadata" and key in GIVEN and not _is_member(draft, key)}
        # A field cannot be emptied; a member that says nothing hides it.
        draft.edits.set_members({}, dict.fromkeys(in_fields))
        dropped = draft.edits.dropped_attributes if part == "attributes" else draft.edits.dropped_metadata
        dropped.update({*had} - in_fields)
        counts["updated_concepts" if isinstance(draft, NodeDraft) else "updated_propositions"] += bool(had)
    return Intent(lambda _: counts)


def _check_key(draft: Draft, part: str, key: str, at: int) -> None:
    """Refuse to drop what an element cannot be without. Raises: ``KipRefused``."""
    if part == "attributes":
        if key == FORMER_KEY and isinstance(draft, NodeDraft):
            message = f"`{key}` is set by KB and by documents, and cannot be deleted."
            raise refused(CONSTRAINT, message, at=at, hint="Leave it out.")
        besides_kind(draft, {key: None}, at)
        return
    is_member = _is_member(draft, key)
    files = _files(draft)
    if key in GIVEN and not is_member and files:
        message = f"`{key}` is {in_quotes(files[0])}, the file that states it."
        raise refused(IMMUTABLE, message, at=at, hint="Write another value with SET METADATA or WITH METADATA.")
    if key.startswith("_") or (key in _STAMPS and not is_member):
        message = f"`{key}` is kept by KB for every element and cannot be deleted."
        hint = "Write another value with SET METADATA or WITH METADATA." if key == CREATED else "Leave it out."
        raise refused(CONSTRAINT, message, at=at, hint=hint)
