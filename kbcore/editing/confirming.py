"""Confirms edges whose target has changed since: they were looked at, and still hold."""

from __future__ import annotations

from collections.abc import Collection

from kbcore.editing.documents import WriteTarget
from kbcore.editing.setting import find, read_with, with_called
from kbcore.errors import NotFound, NotSynced
from kbcore.errors.remedies import kb
from kbcore.ids import link_id
from kbcore.model.changeset import parse
from kbcore.rules.edge_confirmation import SuspectEdge, suspect_edges
from kbcore.store.answers import Outcome
from kbcore.sync.locate import SYNC_FIRST, unrecorded, unrecorded_words
from kbcore.text.escaping import in_quotes
from kbcore.view.view import View


def confirm(
    target: WriteTarget, key: str, edge: tuple[str, str, str] | None = None, *, message: str = "", dry_run: bool = False
) -> Outcome:
    """Confirm the suspect edges of an entity, or the one of this type, kind and target, as one record.

    An edge that is not suspect stays as it is. A change that comes after the edges were read is not confirmed.

    Raises: ``NotFound``; ``StaleBase`` for such a change; ``NotSynced`` where only files that were not synced
    yet make an edge suspect; as ``WriteTarget.apply``.
    """
    present: dict[str, str] = {}

    def suspect(view: View) -> dict[str, SuspectEdge]:
        present.update(view.renamed([key, *(edge[2:] if edge else ())]))
        if edge is None:
            return {one.id: one for one in suspect_edges(view.rows, ends=[find(view, key).id])}
        name = link_id(edge[0], edge[1], present.get(key, key), present.get(edge[2], edge[2]))
        if not view.links([name]):
            words = f"{in_quotes(key)} {edge[0]} {in_quotes(edge[2])}"
            raise NotFound(f"There is no edge {words}.", hint=f"{kb('show', key)} lists its edges.")
        return {one.id: one for one in suspect_edges(view.rows, ids=[name])}

    def on(view: View) -> tuple[dict[str, SuspectEdge], int]:
        return suspect(view), view.recorded_seq

    shown, seq = read_with(target, on, key)
    store = target.workspace.store(target.branch)
    try:
        found = store.read(suspect) if shown else {}
    except NotFound as error:
        _check_recorded(target, [key, *(edge[2:] if edge else ())], error)
        raise
    recorded = {key: one for key, one in found.items() if key in shown}
    for one in shown.values():
        if one.id not in recorded:
            _check_recorded(target, [one.from_id, one.to_id])
            raise NotSynced(f"{in_quotes(one.to_id)} changed in a file that is not synced yet.")
    if not recorded:
        return with_called(Outcome.unchanged_at(target.branch, store.head().seq, dry_run=dry_run), present)
    edges = [
        {"type": one.type, "from": one.from_id, "to": one.to_id} | ({"kind": one.kind} if one.kind else {})
        for one in recorded.values()
    ]
    said = message or " ".join(["confirm", key, *(edge[:1] if edge else []), *(edge[2:] if edge else [])])
    request = parse({"edges": edges, "message": said, "dry_run": dry_run, "expected_seq": seq})
    return with_called(target.apply(request), present)


def _check_recorded(target: WriteTarget, ids: Collection[str], cause: NotFound | None = None) -> None:
    """Refuse ids that only files give an entity. Raises: ``NotSynced``."""
    for key, path in unrecorded(target.read, ids).items():
        raise NotSynced(unrecorded_words(in_quotes(key), path), hint=SYNC_FIRST) from cause
