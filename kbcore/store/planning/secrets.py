"""Look for secrets in what a changeset writes: reported as warnings, or refused where the project's rule is an error.

Never more of a value is reported than its first characters.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from kbcore.model.changeset import Changeset, EdgeWrite, EntityWrite
from kbcore.secrets import Secret, secrets_in
from kbcore.store.planning.plan_builder import PlanBuilder

CODE: Final = "secret"
"""The code of the problem, and the name of the rule that the configuration sets."""

_MAX_WARNINGS: Final = 20


def check_secrets(found: PlanBuilder, changeset: Changeset) -> None:
    """Note everything in the request that looks like a secret, as the project wants it noted."""
    if found.around.secrets == "off":
        return
    secrets = _in_changeset(changeset)
    if found.around.secrets == "error":
        hint = (
            "Leave it out, or write where it is kept; the project's rule `secret` refuses it. "
            "If it is none, the project can set the rule to warning in .kb/config.json."
        )
        for one in secrets:
            found.wrong(one.place, CODE, f"This {one.looks}", hint)
        return
    found_at = [f"{one.place} {one.looks}" for one in islice(secrets, _MAX_WARNINGS)]
    more = sum(1 for _ in secrets)
    if found_at:
        count = f"So do {more} more places. " if more else ""
        remedy = "History keeps what is written: if it is real, revoke it, and write the field again without it."
        found.warnings += [*found_at, count + remedy]


def _in_changeset(changeset: Changeset) -> Iterator[Secret]:
    """Yield what looks like a secret, each with its JSON path in the request."""
    yield from secrets_in(changeset.changeset_id, place="$.changeset_id")
    yield from secrets_in(changeset.message, place="$.message")
    items: list[EntityWrite | EdgeWrite] = [*changeset.entities, *changeset.edges]
    for item in items:
        names = {"id": item.id}
        if isinstance(item, EdgeWrite):
            names = {"type": item.type, "kind": item.kind, "from": item.from_id, "to": item.to_id}
        yield from secrets_in({**names, **item.values, **item.objects}, place=item.path)
