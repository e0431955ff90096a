"""Facts of earlier syncs about entities, from the view's history: missing files, and statuses set for them.

What was pruned is not known any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import itemgetter
from typing import Any, Final

from kbcore.model.graph import FORMER_KEY, Node
from kbcore.model.record import SYNC
from kbcore.view.database import among
from kbcore.view.tables import ELEMENTS, node_of
from kbcore.view.view import View

_FORMER: Final = f'"{FORMER_KEY}"'


def removed_with_files(view: View, keys: Iterable[str] | None = None) -> dict[str, Node]:
    """Return the entities with these ids that do not exist now because a sync found their file missing, as they were.

    None asks for all such entities. Those that went before the history begins are not known any more. One of which no
    file stated anything is none of them: it went with the change that created it.
    """
    wanted = sorted(set(keys or ()))
    if (keys is not None and not wanted) or not view.seq or view.past.is_known_empty("node"):
        return {}
    condition, keyed = among(wanted) if keys is not None else ("is not null", [])
    columns = ", ".join(ELEMENTS["node"][1])
    rows = view.rows(
        f"select {columns} from (select * from node_history where id {condition} "
        "qualify row_number() over (partition by id order by ended desc) = 1) "
        "where id not in (select id from node) and ended in (select seq from record where source = ?)",
        [*keyed, SYNC],
    )
    found = map(node_of, rows)
    return {node.id: node for node in found if node.owners}


def gone_with_former_ids(view: View) -> list[str]:
    """Return the ids, in order, that no entity has now and that one had which had former ids. No table is loaded."""
    had_former = "contains(attributes, ?)", [_FORMER]
    had = {
        id_
        for (id_,) in view.past.superseded_where("node", ["id"], had_former, lambda row: _FORMER in row["attributes"])
    }
    return sorted(had - {node.id for node in view.nodes(sorted(had))}) if had else []


def statuses_by_sync(view: View, keys: Collection[str]) -> frozenset[str]:
    """Return those of these ids whose status, now or when they went, a sync had set; what was pruned is not known."""
    if not keys or not view.seq:
        return frozenset()
    versions: dict[str, list[tuple[int, int, Any]]] = {
        node.id: [(view.seq + 1, node.version, node.fields.get("status"))] for node in view.nodes(sorted(keys))
    }
    for key, ended, version, status in view.past.superseded("node", keys, ("id", "ended", "version", "status")):
        versions.setdefault(key, []).append((ended, version, status))
    set_at = {}
    for key, found in versions.items():
        _, _, last = max(found, key=itemgetter(0))
        others = [ended for ended, _, status in found if status != last]
        set_at[key] = max(others) if others else min(version for _, version, _ in found)
    sources: dict[int, str] = dict(view.past.records(set_at.values(), ("seq", "source")))
    return frozenset(key for key, seq in set_at.items() if sources.get(seq) == SYNC)
