"""Whether the records after a seq changed anything that a plan had read before them."""

from __future__ import annotations

from typing import Final

from kbcore.model.concepts import DEFINING
from kbcore.model.state import StateReads
from kbcore.view.view import View

_SOURCES: Final = """select (select count(*) from source where version > $1)
+ (select count(*) from source_history where ended > $1)"""
_NODES: Final = """select id, type, files from node where version > $1
union all select id, type, files from node_history where ended > $1"""
_LINKS: Final = """select id, from_id, to_id, files from link where version > $1
union all select id, from_id, to_id, files from link_history where ended > $1"""
"""Each version that a record made or ended."""


def is_moved(view: View, seq: int, reads: StateReads | None) -> bool:
    """Tell whether a plan made at a seq might come out otherwise on this view.

    False is certain; True may be said of a plan that would come out the same. Files are asked as one: what is known of
    any of them counts, because every sync has looked at all.
    """
    if view.seq == seq:
        return False
    if reads is None or not view.basis.history_from <= seq <= view.seq:
        return True
    if view.rows(_SOURCES, [seq])[0][0]:
        return True
    needs, paths = reads.needs, reads.paths
    nodes = needs.nodes | needs.typed.keys()
    for key, kind, files in view.rows(_NODES, [seq]):
        if key in nodes or kind in DEFINING or _is_of(files, paths):
            return True
    for key, from_id, to_id, files in view.rows(_LINKS, [seq]):
        if key in needs.links or from_id in needs.touching or to_id in needs.touching or _is_of(files, paths):
            return True
    return False


def _is_of(files: list[str], paths: frozenset[str] | None) -> bool:
    """Tell whether one of some files is among those that were asked for."""
    return bool(files) if paths is None else not paths.isdisjoint(files)
