"""The parts of a client in a repository and for its user: each part with its file; installing and removing.

One file may have several parts. It is changed under its lock, and what was changed is noted in the receipts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, Literal

import msgspec

from kbcli.clients import installing, kinds, receipts
from kbcli.clients.installing import ClientFile, ClientFileChange
from kbcli.clients.kinds import Scope
from kbcli.clients.marked_block import Mangled, State
from kbcli.clients.parts import HookLists, InstalledPart, Instructions, PartName, Plugin, ServerEntry, Skill, is_blank
from kbcli.clients.receipts import FileChanged, Receipt, Receipts
from kbcore.errors import InvalidQuery, KBError, StorageError
from kbcore.store.pool import Machine

PARTS: Final[tuple[PartName, ...]] = ("server", "hooks", "instructions")

Action = Literal["none", "written", "removed", "kept", "deleted"]


class Surroundings(msgspec.Struct, frozen=True):
    """The folders in which clients are set up, and the programs of KB that they are to run."""

    machine: Machine
    worktree: Path | None
    """None where a bare repository has none."""
    common_dir: Path
    data_dir: Path
    cache_dir: Path
    home: Path | None
    platform: str
    server_command: Mapping[Scope, Sequence[str]]
    hook_command: Mapping[Scope, Sequence[str]]
    server_name: str = "kb"

    def base_of(self, scope: Scope, client: str) -> Path:
        """Return the folder that a client's files of a scope are below. Raises: ``InvalidQuery``."""
        if scope == "project":
            if self.worktree is None:
                raise InvalidQuery("A bare repository has no files for a client to read.", hint="Use --scope user.")
            return self.worktree
        if self.home is None:
            has_project = client not in kinds.KINDS or "project" in kinds.KINDS[client].places
            other = ", or use --scope project." if has_project else f": {client} has no file of a project."
            hint = f"Set HOME{other}"
            raise InvalidQuery("HOME names no absolute path, so your home folder is not known.", hint=hint)
        return self.home

    def receipts_place(self, scope: Scope) -> ClientFile | None:
        """Return the file of the receipts of a scope."""
        return receipts.place_of(self.machine.env, self.common_dir, is_user=scope == "user")


class PartTarget(msgspec.Struct, frozen=True):
    """One part for one client, and the file that it belongs in."""

    client: str
    scope: Scope
    place: ClientFile
    part: InstalledPart

    @property
    def key(self) -> str:
        """Return the name of the part in a receipt."""
        name = self.part.server if isinstance(self.part, ServerEntry) else ""
        return f"{self.client} {self.part.name} {name}".rstrip()


class SetupResult(msgspec.Struct, frozen=True):
    """The result for one part, done or to be done: its state before, and the change of its file."""

    target: PartTarget
    state: State
    action: Action
    change: ClientFileChange


def targets(around: Surroundings, client: str, scope: str = "", only: Sequence[PartName] = PARTS) -> list[PartTarget]:
    """Return the parts of a client, each in its scope: the one that is asked for, else its usual one.

    Raises: ``InvalidQuery`` for a client or a scope that there is not.
    """
    kind = kinds.find(client)
    found = list[PartTarget]()
    if "server" in only:
        where = kinds.scope_of(client, scope)
        entry = kinds.entry_of(kind, where, list(around.server_command[where]), around.worktree or around.common_dir)
        roots = kinds.roots_of(kind, where, around.data_dir)
        server = ServerEntry(kind, around.server_name, entry, roots)
        found.append(_target(around, client, where, kinds.file_of(kind, where, around.platform), server))
    of_hooks = _scope_in(kind.hooks.places, scope) if kind.hooks and "hooks" in only else None
    if kind.hooks and of_hooks:
        command = (*around.hook_command[of_hooks], "agents", "hook", client)
        is_plugin = kind.hooks.form == "plugin"
        hooks: InstalledPart = Plugin(client, command) if is_plugin else HookLists(client, kind.hooks, command)
        below = kinds.below(kind.hooks.places[of_hooks], around.platform)
        found.append(_target(around, client, of_hooks, below, hooks))
    of_text = _scope_in(kind.instructions, scope) if "instructions" in only else None
    if of_text:
        names = [kinds.below(name, around.platform) for name in kind.instructions[of_text]]
        part = Instructions(client, _needing_full())
        found.append(_chosen([_target(around, client, of_text, name, part) for name in names]))
    return found


def skills(around: Surroundings, clients: Sequence[str], scope: str = "") -> list[PartTarget]:
    """Return the files of the skill that these clients read; without any, the one that clients share.

    Raises: ``InvalidQuery`` for a scope that there is not.
    """
    where = kinds.scope_in(scope)
    names = dict.fromkeys(one if one in kinds.SKILLS else kinds.SHARED_SKILL for one in clients or ("",))
    return [_target(around, name, where, PurePosixPath(kinds.SKILLS[name]), Skill()) for name in names]


def _target(around: Surroundings, client: str, scope: Scope, below: PurePosixPath, part: InstalledPart) -> PartTarget:
    base = around.base_of(scope, client)
    if scope == "user":
        base, below = kinds.in_home(base, below, around.machine.env)
    place = ClientFile(base, below, is_private=scope == "user")
    if part.name == "instructions":
        place = installing.followed(place)
    return PartTarget(client, scope, place, part)


def _chosen(candidates: Sequence[PartTarget]) -> PartTarget:
    """Return the file of instructions that has the block, else the first one that there is, else the last one."""
    there = [one for one in candidates if one.place.path.is_file()]
    for one in there:
        with contextlib.suppress(KBError):
            try:
                is_there = one.part.look(installing.text_of(one.place), "") != "missing"
            except Mangled:
                is_there = True
            if is_there:
                return one
    return there[0] if there else candidates[-1]


def _scope_in(places: Mapping[Scope, object], asked: str) -> Scope | None:
    return next((one for one in kinds.SCOPES if one in places and asked in {"", one}), None)


def _needing_full() -> frozenset[str]:
    return frozenset(name for name, kind in kinds.KINDS.items() if kind.hooks is None)


def look(around: Surroundings, target: PartTarget) -> State:
    """Return how a part is in its file. Raises: as ``installing.plan``."""
    return _state(target, Receipts(around.receipts_place(target.scope)))


def install(around: Surroundings, target: PartTarget, *, write: bool, replace: bool = False) -> SetupResult:
    """Put a part into its file. One that a person changed stays, unless it is to be replaced.

    Raises: as ``installing.plan``; ``LockTimeout``.
    """

    def change(text: str, state: State) -> str:
        return text if state in {"installed", "changed"} and not replace else target.part.put(text)

    return _changed(around, target, change, write=write, is_left=True)


def take_out(around: Surroundings, target: PartTarget, *, write: bool) -> SetupResult:
    """Take a part out of its file: to the byte, where the file is as KB left it; what is then empty is removed.

    Lines that a person changed between KB's marks stay. Raises: as ``installing.plan``; ``LockTimeout``.
    """

    def change(text: str, state: State) -> str:
        return text if state == "changed" and target.part.is_text else target.part.take(text)

    return _changed(around, target, change, write=write, is_left=False)


def _changed(
    around: Surroundings,
    target: PartTarget,
    change: Callable[[str, State], str],
    *,
    write: bool,
    is_left: bool,
) -> SetupResult:
    place, notes = target.place, around.receipts_place(target.scope)
    with contextlib.ExitStack() as locked:
        if write:
            for one in filter(None, (place, notes)):
                locked.enter_context(installing.alone(around.machine, one, around.cache_dir))
        kept = Receipts(notes)
        earlier = kept.of(place.path)
        state = _state(target, kept)
        planned = installing.plan(place, lambda text: change(text, state))
        if planned.before != planned.after:
            written = target.part.note(planned.text) if is_left else None
            receipt = receipts.receipt_of(planned, kept, {target.key: written}, str(around.common_dir))
            if not is_left and receipt is None:
                planned = _restored(planned, earlier, target)
            if write:
                with _explained(place):
                    installing.write(planned)
                    kept.keep(place.path, receipt)
                    if planned.after is None:
                        receipts.remove_folders(earlier.folders if earlier else _empty_above(place))
        elif write and earlier and target.key in earlier.written and state != "changed":
            kept.keep(place.path, _joined(earlier, str(around.common_dir)) if is_left else _without(earlier, target))
    return SetupResult(target, state, _action(planned, state, is_left=is_left), planned)


def _restored(planned: ClientFileChange, earlier: Receipt | None, target: PartTarget) -> ClientFileChange:
    """Return the change by which the last part leaves a file: to what was there before KB, where that is known.

    An older form of the part that was there before does not come back; a skill that somebody else wrote does.
    """
    with contextlib.suppress(FileChanged):
        before = earlier.before(planned.before) if earlier else planned.after
        exact = msgspec.structs.replace(planned, after=before)
        was = target.part.look(exact.text, "") if before is not None else "missing"
        if earlier and (was == "missing" or (was == "changed" and isinstance(target.part, Skill))):
            return exact
    may_go = earlier is None or earlier.was_absent
    return msgspec.structs.replace(planned, after=None) if may_go and is_blank(planned.text) else planned


def _joined(earlier: Receipt, repository: str) -> Receipt:
    """Return the receipt with one more repository that wants what is there."""
    return msgspec.structs.replace(earlier, repositories=tuple(sorted({*earlier.repositories, repository})))


def _without(earlier: Receipt, target: PartTarget) -> Receipt | None:
    left = {key: text for key, text in earlier.written.items() if key != target.key}
    return msgspec.structs.replace(earlier, written=left) if left else None


def _action(planned: ClientFileChange, state: State, *, is_left: bool) -> Action:
    if planned.before == planned.after:
        return "kept" if state == "changed" else "none"
    if is_left:
        return "written"
    return "deleted" if planned.after is None else "removed"


def _state(target: PartTarget, kept: Receipts) -> State:
    """Return the state of a part. Raises: as ``installing.plan``."""
    earlier = kept.of(target.place.path)
    written = earlier.written.get(target.key, "") if earlier else ""
    found = list[State]()

    def looked(read: str) -> str:
        found.append(target.part.look(read, written))
        return read

    installing.plan(target.place, looked)
    return found[0]


def _empty_above(place: ClientFile) -> list[str]:
    return [str(one) for one in place.path.parents if one.is_relative_to(place.base) and one != place.base]


@contextlib.contextmanager
def _explained(place: ClientFile) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"What was written into {place.path} cannot be noted: {error.strerror}.") from error
