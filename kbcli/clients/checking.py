"""States of the parts of clients: installed, missing, outdated, changed by hand, or unusable. Nothing is started."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from kbcli.clients import finding, installing, kinds, setup
from kbcli.clients.kinds import ClientKind
from kbcli.clients.parts import PartName, ServerEntry
from kbcli.clients.setup import PartTarget, Surroundings
from kbcore.errors import KBError

PartState = Literal["installed", "missing", "outdated", "changed", "unusable"]


class CheckedPart(msgspec.Struct, frozen=True):
    """The state of one part; ``problem`` says more where there is more to say."""

    part: PartName
    scope: str
    path: Path
    state: PartState
    problem: str = ""


class CheckedClient(msgspec.Struct, frozen=True):
    """The state of one client. ``program`` is the path of its own program, "" where it is not found."""

    client: str
    title: str
    program: str
    has_program_name: bool
    parts: tuple[CheckedPart, ...]
    is_there: bool
    """Something is installed. A file to which a link leads says nothing about that: KB writes none."""

    @property
    def is_defect(self) -> bool:
        """Return whether a part is not as it should be."""
        return any(one.state != "installed" for one in self.parts)

    def as_json(self) -> dict[str, Any]:
        """Return it for ``--json``."""
        parts = [{**msgspec.structs.asdict(one), "path": str(one.path)} for one in self.parts]
        return {"client": self.client, "program": self.program or None, "parts": parts}


def check(around: Surroundings, names: Sequence[str], scope: str, env: Mapping[str, str]) -> list[CheckedClient]:
    """Return the state of these clients; without any, of those of which something is installed.

    Raises: ``InvalidQuery``.
    """
    wanted = [(name, one) for name in names or kinds.KINDS for one in _scopes(around, name, scope, names)]
    found = [_client(around, name, one, env) for name, one in wanted]
    skills = [_skill(around, target, env) for target in _skills(around, names, scope)]
    kept = found if names else _installed([one for one in found if one.is_there])
    return [*kept, *(one for one in skills if one.is_there)]


def _installed(found: Sequence[CheckedClient]) -> list[CheckedClient]:
    """Return the states without one of which all that is there is in another: scopes of Windsurf share a file."""
    there = [{(one.client, part.part, part.path) for part in one.parts if part.state != "missing"} for one in found]
    return [
        one
        for at, one in enumerate(found)
        if there[at] not in there[:at] and not any(there[at] < other for other in there)
    ]


def _skills(around: Surroundings, names: Sequence[str], scope: str) -> list[PartTarget]:
    """Return the files of the skill to look at. It is there on request, so a missing one is no defect."""
    bases = {"project": around.worktree, "user": around.home}
    where = [scope] if scope else [one for one in kinds.SCOPES if bases[one]]
    return [one for each in where for one in setup.skills(around, names or [*kinds.SKILLS], each)]


def _skill(around: Surroundings, target: PartTarget, env: Mapping[str, str]) -> CheckedClient:
    part = _part(around, None, target, env)
    return CheckedClient(
        target.client,
        title_of(target.client),
        "",
        has_program_name=False,
        parts=(part,),
        is_there=_is_there(target, part),
    )


def _is_there(target: PartTarget, part: CheckedPart) -> bool:
    is_linked = part.state == "unusable" and installing.link_on_the_way(target.place) is not None
    return part.state != "missing" and not is_linked


def title_of(client: str) -> str:
    """Return the name of a client; of what clients share, a word for it."""
    return "Skill" if client == kinds.SHARED_SKILL else kinds.KINDS[client].title


def _scopes(around: Surroundings, name: str, scope: str, names: Sequence[str]) -> list[str]:
    """Return the scopes to look in: all that a client has here, where neither it nor a scope is named."""
    kind = kinds.KINDS[name]
    if names or scope:
        return [scope if len(names) == 1 or scope in kind.places else ""]
    bases = {"": around.worktree if "project" in kind.places else around.home, "user": around.home}
    return [one for one, base in bases.items() if base]


def _client(around: Surroundings, name: str, scope: str, env: Mapping[str, str]) -> CheckedClient:
    kind = kinds.find(name)
    program = next(filter(None, (shutil.which(one, path=env.get("PATH", "")) for one in kind.programs)), "")
    targets = setup.targets(around, name, scope)
    parts = tuple(_part(around, kind, target, env) for target in targets)
    is_there = any(map(_is_there, targets, parts))
    return CheckedClient(name, kind.title, program, bool(kind.programs), parts, is_there)


def _part(around: Surroundings, kind: ClientKind | None, target: PartTarget, env: Mapping[str, str]) -> CheckedPart:
    state: PartState
    problem, path = "", target.place.path
    try:
        state = setup.look(around, target)
    except KBError as error:
        return CheckedPart(target.part.name, target.scope, path, "unusable", error.message)
    if kind and isinstance(target.part, ServerEntry) and state != "missing":
        problem = finding.entry_fault(kind, target.place, target.part.server, around.worktree or target.place.base, env)
        is_other = state == "changed" and not problem
        state = "outdated" if problem and state == "installed" else "installed" if is_other else state
    if state == "changed" and not problem:
        problem = "it was changed by hand"
    return CheckedPart(target.part.name, target.scope, path, state, problem)
