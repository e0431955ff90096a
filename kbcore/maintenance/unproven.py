"""The state that a cached view has seen past missing records, as operations that are marked unproven."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from kbcore.errors import KBError, ResourceLimit, StatementTimeout, ViewDamaged
from kbcore.model import record
from kbcore.model.folding import apply
from kbcore.model.graph import CLIENT, Link, Node
from kbcore.model.record import (
    UNPROVEN,
    DropNode,
    ForgetSource,
    Operation,
    PutNode,
    ReadSource,
    StateLink,
    Unproven,
    WithdrawLink,
)
from kbcore.model.state import Stamp, State
from kbcore.storage import files, journal
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.store import branches
from kbcore.store.workspace import Workspace
from kbcore.view import replay
from kbcore.view.base import open_view
from kbcore.view.cache_files import VIEW
from kbcore.view.history import state_at
from kbcore.view.view import View


def seen_by_view(workspace: Workspace, branch: str, directory: Path, new: Head) -> tuple[Unproven, State] | None:
    """Return the state at the head by way of a cached view, if one was folded past the missing records.

    Its stamp has to name a record that is proven, or the last missing one by the hash that the chain names for it. It
    must not have another record than the store before the missing ones: it is of another history then.
    """
    fs, last = workspace.machine.fs, new.holes[-1].last if new.holes else new.first_seq - 1
    hashes = {part.first_seq - 1: part.base_hash for part in new.segments} | {new.seq: new.hash}
    hashes |= {entry.frame.seq: entry.frame.sum for entry in journal.scan(fs, directory, new) if entry.frame.seq > last}
    changesets = _changesets_before_holes(fs, directory, new)
    names = [branch, *(name for name, _ in branches.stores(workspace) if name != branch)]
    for path in (workspace.folders.cache_of(name) / VIEW for name in names):
        try:
            if files.read_size(fs, path) is None:
                continue
            with open_view(fs, path) as cached:
                basis = cached.basis
                if basis.lineage != new.lineage or basis.seq < last or hashes.get(basis.seq) != basis.sum:
                    continue
                if not changesets.items() >= _changesets(cached, changesets).items():
                    continue
                state = state_at(cached, basis.seq)
        except (StatementTimeout, ResourceLimit):  # it may hold what is missing, and was not looked at
            raise
        except (KBError, ViewDamaged):  # a cache may be in any state; there may be another
            continue
        for entry in replay.entries(fs, directory, new, skip=basis.seq) if basis.seq < new.seq else ():
            apply(state, Stamp(entry.seq, entry.record.at, entry.record.actor, entry.record.source), entry.record.ops)
        return Unproven(basis.seq, basis.sum), state
    return None


def _changesets_before_holes(fs: Fs, directory: Path, new: Head) -> dict[int, str]:
    """Return the changeset id of the last record before each gap, by its seq."""
    wanted = {hole.first - 1 for hole in new.holes}
    found = (entry.frame for entry in journal.scan(fs, directory, new) if entry.frame.seq in wanted)
    return {one.seq: record.decode(one.rec, seq=one.seq).changeset_id for one in found}


def _changesets(cached: View, seqs: Iterable[int]) -> dict[int, str]:
    """Return the changeset ids that a view has for some records, by seq; a record that it does not know is left out."""
    return dict(cached.rows("select seq, changeset_id from record where seq in (select unnest($1))", [[*seqs]]))


def differences(now: State, seen: State) -> Iterator[Operation]:
    """Yield the operations that lead from one state to what a view has seen, each element marked unproven."""
    yield from _node_differences(now, seen)
    for key, link in seen.links.items():
        old = now.links.get(key)
        if old is None or _stated(old) != _stated(link):
            yield from _link_operations(old, link)
    for path, source in seen.sources.items():
        known = now.sources.get(path)
        if known is None or msgspec.structs.replace(known, version=source.version) != source:
            base = known.version if known else 0
            yield ReadSource(path, source.hash, source.extractor, base, source.is_ok, source.problems)
    for key in now.links.keys() - seen.links.keys():
        yield from (_withdrawn(now.links[key], one.src) for one in now.links[key].statements)
    yield from (DropNode(key, now.nodes[key].version) for key in now.nodes.keys() - seen.nodes.keys())
    yield from (ForgetSource(path, now.sources[path].version) for path in now.sources.keys() - seen.sources.keys())


def _node_differences(now: State, seen: State) -> Iterator[Operation]:
    for key, node in seen.nodes.items():
        old = now.nodes.get(key)
        if old is None or (old.fields, old.owners) != (node.fields, node.owners):
            yield from _node_operations(old, node)


def _stated(link: Link) -> tuple[Any, ...]:
    return link.fields, link.owners, link.statements


def _node_operations(old: Node | None, node: Node) -> Iterator[PutNode]:
    base = old.version if old else 0
    fields, owners = (old.fields, old.owners) if old else ({}, {})
    unset = tuple(sorted(name for name in fields if name not in node.fields))
    stamps = {"created_at": node.created_at, "updated_at": node.updated_at, "source": _marked(node.source)}
    changed = {
        name: value
        for name, value in node.fields.items()
        if name not in fields or fields[name] != value or owners.get(name, CLIENT) != node.owners.get(name, CLIENT)
    }
    by_owner: dict[str, dict[str, Any]] = {CLIENT: {}}
    for name, value in changed.items():
        by_owner.setdefault(node.owners.get(name, CLIENT), {})[name] = value
    owned = {name: owner for name, owner in node.owners.items() if name not in node.fields and name not in stamps}
    for owner in set(owned.values()):
        by_owner.setdefault(owner, {})
    for owner, values in sorted(by_owner.items()):
        own_stamps = {name: stamps[name] for name in stamps if node.owners.get(name, CLIENT) == owner}
        if values or own_stamps or (unset and owner == CLIENT):
            removed = unset if owner == CLIENT else ()
            yield PutNode(node.id, base, values | own_stamps, removed, owner)


def _link_operations(old: Link | None, link: Link) -> Iterator[Operation]:
    base = old.version if old else 0
    if old:
        kept = {one.src for one in link.statements}
        yield from (_withdrawn(old, one.src) for one in old.statements if one.src not in kept)
    unset = tuple(sorted(name for name in (old.fields if old else {}) if name not in link.fields))
    for one in link.statements:
        values = {name: value for name, value in link.fields.items() if link.owners.get(name, CLIENT) == one.src}
        stamps: dict[str, Any] = {"created_at": link.created_at, "created_by": link.created_by}
        if one.src == CLIENT:
            stamps["source"] = _marked(one.via)
        ends = (link.type, link.from_id, link.to_id)
        yield StateLink(*ends, base, link.kind, values | stamps, unset, one.src, one.said)
        unset = ()


def _withdrawn(link: Link, src: str) -> WithdrawLink:
    return WithdrawLink(link.type, link.from_id, link.to_id, link.version, link.kind, src)


def _marked(source: str) -> str:
    return source if source.startswith(UNPROVEN) else f"{UNPROVEN}:{source}"
