"""The refusal of a changeset in terms of KIP: the problems that KB finds, at the places of the command. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from kbcore.errors import DerivedFact, KBError, KipRefused, LimitExceeded, Problem, Rejected
from kbcore.kip.elements import CONTESTED_KEY
from kbcore.kip.errors import (
    CONSTRAINT,
    IMMUTABLE,
    NOT_FOUND,
    RESOURCE,
    TYPE_MISMATCH,
    VALUE_TYPE,
    Code,
    refused,
)
from kbcore.kip.kml.drafts import RESOLVE, LinkDraft, NodeDraft
from kbcore.store.planning.conflicts import CODE as CONTESTED
from kbcore.text.escaping import json_text
from kbcore.text.wording import more_problems

Draft = NodeDraft | LinkDraft

_CODES: Final[Mapping[str, Code]] = {
    **dict.fromkeys(("unknown_type", "unknown_edge", "bad_type_name"), TYPE_MISMATCH),
    **dict.fromkeys(("wrong_type", "bad_text", "bad_number", "bad_time", "bad_url", "bad_path"), VALUE_TYPE),
    **dict.fromkeys(("too_long", "too_deep", "too_many"), RESOURCE),
    **dict.fromkeys(("not_found", "unknown_entity"), NOT_FOUND),
    **dict.fromkeys((DerivedFact.code, "defined_already"), IMMUTABLE),
}
"""KIP codes of problems; any other is reported as not allowed by the schema."""

_ORDER: Final = (IMMUTABLE, TYPE_MISMATCH, NOT_FOUND, RESOURCE, CONSTRAINT, VALUE_TYPE)
"""Of several problems, the code of the first of these is the command's."""

_CHOICE: Final = (
    f'Metadata `{CONTESTED_KEY}` lists the contested fields, their values numbered from 1; `deleted` takes "keep".'
)

_PLACE: Final = re.compile(r"(\$\.\w+\[\d+\])(?:\.(.+))?")
_SHOWN: Final = 20


class DraftSources:
    """The drafts that the items of a changeset come from, by the JSON paths of these."""

    def __init__(self) -> None:
        self._drafts: dict[str, tuple[Draft, str]] = {}

    def note(self, path: str, draft: Draft, words: str) -> None:
        """Note what one item writes, and how a person reads that."""
        self._drafts[path] = draft, words

    def place(self, path: str) -> int | None:
        """Return the offset in the command of what a JSON path names: of the member, or of its block."""
        draft, _, field = self._find(path)
        if draft is None:
            return None
        names = (field, f"attributes.{field}", f"metadata.{field}")
        return next((draft.edits.places[name] for name in names if name in draft.edits.places), draft.at)

    def element(self, path: str) -> tuple[str, str]:
        """Return the element that a JSON path names as a person reads it, and the field."""
        _, words, field = self._find(path)
        return words, field

    def is_named_by(self, problem: Problem) -> bool:
        """Return whether the message of a problem names the element of its JSON path, or there is no such element."""
        draft, _, _ = self._find(problem.path)
        return draft is None or draft.id == problem.subject

    def _find(self, path: str) -> tuple[Draft | None, str, str]:
        found = _PLACE.match(path)
        draft, words = self._drafts.get(found[1], (None, "")) if found else (None, "")
        return draft, words, (found[2] or "") if found else ""


def in_kip(error: Rejected, origin: DraftSources) -> KBError:
    """Return the refusal of a changeset in terms of KIP; one that says nothing of the command stays as it is."""
    if isinstance(error, LimitExceeded):
        return refused(RESOURCE, error.message, hint=error.remedy)
    if isinstance(error, KipRefused) or not error.details:
        return error
    codes = [_CODES.get(problem.code, CONSTRAINT) for problem in error.details]
    code = next(one for one in _ORDER if one in codes)
    first = error.details[codes.index(code)]
    more = more_problems(len(error.details) - 1)
    return refused(
        code,
        f"{_said(first, origin)}{more}",
        at=origin.place(first.path),
        hint=_remedy(first) or code.hint,
        data={"problems": _listed(error.details, first, origin)} if more or code is IMMUTABLE else None,
    )


def _said(problem: Problem, origin: DraftSources) -> str:
    """Return what is wrong, with the element where the problem does not name it."""
    if origin.is_named_by(problem):
        return problem.message
    return f"{origin.element(problem.path)[0]}: {problem.message}"


def _remedy(problem: Problem) -> str:
    """Return the remedy of a problem; that of a contested field in terms of KIP."""
    found = _PLACE.match(problem.path)
    field = (found[2] or "") if found else ""
    if field.startswith("resolve.") and problem.code != "contradiction":
        return _CHOICE
    if problem.code != CONTESTED:
        return problem.remedy
    choice = f"WITH METADATA {{ {RESOLVE}: {{ {json_text(field)}: 1 }} }}"
    return (
        f"Read its metadata: `{CONTESTED_KEY}` has the values. Then UPSERT it in a block of its own, either the field "
        f"with EXPECT VERSION and its `_version`, or a value by its number, {choice}."
    )


def _listed(problems: Sequence[Problem], said: Problem, origin: DraftSources) -> list[dict[str, str]]:
    """Return problems as the data of an error; the one that its message says has no message of its own."""
    shown = []
    for problem in problems[:_SHOWN]:
        element, field = origin.element(problem.path)
        message = "" if problem is said else problem.message
        one = {"code": problem.code, "message": message, "hint": _remedy(problem), "source": problem.place}
        shown.append({key: text for key, text in {**one, "element": element, "field": field}.items() if text})
    return shown
