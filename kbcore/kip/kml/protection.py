"""Elements that KIP never deletes or overwrites: those that every store is built on. Pure."""

from __future__ import annotations

from typing import Final

from kbcore.errors import KipRefused
from kbcore.kip.errors import IMMUTABLE, refused
from kbcore.kip.kml.drafts import NodeDraft, changes_node, is_restatement
from kbcore.kip.names import TypeNames
from kbcore.model.concepts import (
    DEFINING,
    DOMAIN,
    IN_DOMAIN,
    PERSON,
    PREDICATE,
    SCHEMA_DOMAIN,
    SELF,
    SYSTEM,
    TYPE,
    VOCABULARY,
)
from kbcore.text.escaping import in_quotes

FOUNDATION: Final = frozenset(
    {(TYPE, TYPE), (TYPE, PREDICATE), (TYPE, DOMAIN), (DOMAIN, SCHEMA_DOMAIN), (PREDICATE, IN_DOMAIN)}
)
"""The base of all definitions: no command changes it."""

ACTORS: Final = frozenset({(PERSON, SELF), (PERSON, SYSTEM)})
DIRECTIVES: Final = "core_directives"


def check_written(draft: NodeDraft, names: TypeNames) -> None:
    """Refuse what a command writes to a protected concept. Raises: ``KipRefused`` (KIP_3004).

    A definition that is stated as it is passes: ``is_kept`` tells that nothing of it is to be written.
    """
    key = (draft.type, draft.name)
    if _is_of_files(draft) and (draft.is_end or not is_restatement(draft, names)):
        what = "predicate" if draft.type == PREDICATE else "type"
        message = (
            f"The {what} {in_quotes(draft.name)} is defined by KB or by a file of the project, not by this branch."
        )
        raise refused(
            IMMUTABLE,
            message,
            at=draft.at,
            hint="Use it as it is; between concepts of types that a branch defines, KB's own predicates are free. "
            "A file in .kb/schema/ is where it changes.",
        )
    if key in FOUNDATION and not is_restatement(draft, names):
        message = f"{draft.type} {in_quotes(draft.name)} is protected: everything else is defined by it."
        raise refused(IMMUTABLE, message, at=draft.at, hint="Leave it as it is; nothing of the command was done.")
    touched = f"attributes.{DIRECTIVES}" in {*draft.edits.members(), *draft.edits.resolve}
    if key in ACTORS and touched and changes_node(draft, names, only=DIRECTIVES):
        message = f"`{DIRECTIVES}` of {draft.name} are protected."
        raise refused(IMMUTABLE, message, at=draft.at, hint="Other attributes of it may be written; leave these out.")


def is_kept(draft: NodeDraft) -> bool:
    """Return whether a concept that ``check_written`` let pass stays as it is, whatever times a command gives it."""
    is_protected = _is_of_files(draft) or (draft.type, draft.name) in FOUNDATION
    return is_protected and (draft.is_stored or not draft.is_end)


def _is_of_files(draft: NodeDraft) -> bool:
    """Return whether a concept is a definition of KB's schema or of a file of the project."""
    is_defined = draft.type in DEFINING and draft.old is not None and not draft.is_stored
    return is_defined and (draft.type, draft.name) not in VOCABULARY


def is_undeletable(draft: NodeDraft) -> bool:
    """Return whether a concept belongs to every store."""
    return not draft.is_stored or (draft.type, draft.name) in VOCABULARY


def deletion_refused(name: str, at: int) -> KipRefused:
    """Return the error for deleting what belongs to every store."""
    message = f"{name} is protected: it belongs to every store."
    return refused(IMMUTABLE, message, at=at, hint="Choose other elements; nothing of the command was done.")
