"""Completes ids, types, rules, statuses, branches and the like for the shell, from what is stored and in force now.

What a parameter takes is known by its option, else by its metavar. Nothing is written, and nothing is said: a shell
shows what a completion prints among the words that a person types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kbcore.errors import KBError

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.model.schema import Schema
    from kbcore.view.view import View

T = TypeVar("T")

MOST: Final = 200
"""The most values that are offered."""
_TYPED_CHARS: Final = 200
"""Longer than any id."""
_FILES_S: Final = 0.3
"""The time for reading the files; after that only the records are offered."""
_PLAIN: Final = re.compile(r"[\w^][\w.,@/:+=%^-]*")
"""A value that means the same to every shell: some evaluate what they are offered, and the store holds any text."""


class _Asked:
    """The request to complete: the words so far, and the session for look-ups."""

    def __init__(self, session: Session, before: Sequence[str], typed: str) -> None:
        self.session = session
        self.before = before
        """The arguments that the command line has already, in no order."""
        self.typed = typed

    def view(self, look: Callable[[View], Iterable[str]]) -> list[str]:
        """Return what is found in the records of the branch with what its files say; nothing where it has no store."""
        from kbcore.store import branches

        workspace = self.session.workspace
        branch = branches.choose(workspace, self.session.named_branch).branch
        if not workspace.folders.has_store(branch):
            origin = branches.find_origin(workspace, branch)
            return list(workspace.store(origin.branch).read(look)) if origin else []
        return self.session.files.read(workspace, branch, lambda view, _: list(look(view)), time_s=_FILES_S)

    def schema(self, look: Callable[[Schema], Iterable[str]]) -> list[str]:
        """Return what is found in the schema of the branch, or in that of the project where it has no store."""
        from kbcore.model.concepts import extended

        project = self.session.workspace.schema
        return self.view(lambda view: look(view.schema(project))) or list(look(extended(project)))

    def after(self, mark: str, complete: Callable[[_Asked], Iterable[str]]) -> list[str]:
        """Return completions of what comes after the last mark in what was typed, with what comes before it."""
        head, _, tail = self.typed.rpartition(mark)
        inner = _Asked(self.session, self.before, tail)
        return [f"{head}{mark}{value}" for value in complete(inner)]


Source = Callable[[_Asked], Iterable[str]]


def _ids(asked: _Asked) -> list[str]:
    from kbcore.query import completion

    return asked.view(lambda view: completion.entity_ids(view, asked.typed, most=MOST).values)


def _tags(asked: _Asked) -> list[str]:
    from kbcore.query import completion

    return asked.view(lambda view: completion.tags(view, asked.typed, most=MOST).values)


def _actors(asked: _Asked) -> list[str]:
    from kbcore.query import completion

    return asked.view(lambda view: completion.actors(view, asked.typed, most=MOST).values)


def _seqs(asked: _Asked) -> list[str]:
    from kbcore.query import completion

    return asked.view(lambda view: completion.seqs(view, asked.typed, most=MOST).values)


def _statuses(asked: _Asked) -> list[str]:
    from kbcore.query import completion

    def declared(schema: Schema) -> Iterable[str]:
        types = [schema.entities[one] for one in asked.before if one in schema.entities] or schema.entities.values()
        return [status for one in types for status in (*one.statuses, one.status_default)]

    known = _entity_types(asked)
    of_type = next((one for one in asked.before if one in known), "")
    used = asked.view(lambda view: completion.statuses(view, asked.typed, type=of_type, most=MOST).values)
    return [*used, *asked.schema(declared)]


def _entity_types(asked: _Asked) -> list[str]:
    return asked.schema(lambda schema: schema.entities)


def _types(asked: _Asked) -> list[str]:
    return ["edge", *_entity_types(asked)]


def _all_types(asked: _Asked) -> list[str]:
    return asked.schema(lambda schema: [*schema.entities, *schema.edges])


def _edge_types(asked: _Asked) -> list[str]:
    way = "^" if asked.typed.startswith("^") else ""
    return asked.schema(lambda schema: [f"{way}{name}" for name in schema.edges])


def _edge_types_listed(asked: _Asked) -> list[str]:
    return asked.after(",", _edge_types) if "," in asked.typed else _edge_types(asked)


def _edge_and_end(asked: _Asked) -> list[str]:
    return asked.after(":", _ids) if ":" in asked.typed else _edge_types(asked)


def _fields(asked: _Asked) -> list[str]:
    from kbcore.model.graph import CORE_FIELDS

    return asked.schema(
        lambda schema: [*CORE_FIELDS, *(key for one in schema.entities.values() for key in one.attributes)]
    )


def _fields_listed(asked: _Asked) -> list[str]:
    return asked.after(",", _fields) if "," in asked.typed else _fields(asked)


def _field_and_value(asked: _Asked) -> list[str]:
    if asked.typed.startswith("status="):
        return asked.after("=", _statuses)
    return [f"{name}=" for name in _fields(asked)]


def _settings(asked: _Asked) -> list[str]:
    from kbcore.config.template import settings_in

    return [one.name for one in settings_in(asked.session.workspace.config_text())]


def _rules(asked: _Asked) -> list[str]:
    from kbcore.checks import descriptions

    return sorted(descriptions(asked.session.workspace))


def _branches(asked: _Asked) -> list[str]:
    from kbcore import git
    from kbcore.store import branches

    workspace = asked.session.workspace
    return [
        *sorted(git.local_branches(workspace.repo, workspace.machine.env)),
        *(name for name, _ in branches.stores(workspace)),
    ]


def _in_trash(asked: _Asked) -> list[str]:
    from kbcore import ids
    from kbcore.store.branches.store_moves import in_trash

    return sorted(ids.decode_branch(entry.name) or entry.name for entry in in_trash(asked.session.workspace))


def _points(asked: _Asked) -> list[str]:
    return [*_branches(asked), *_seqs(asked)]


_BY_OPTION: Final[Mapping[str, Source]] = {
    "--status": _statuses,
    "--tag": _tags,
    "--actor": _actors,
    "--rule": _rules,
    "--explain": _rules,
    "--branch": _branches,
    "--default-branch": _branches,
}
_BY_METAVAR: Final[Mapping[str, Source]] = {
    "ID": _ids,
    "ID|PATH[:LINE]": _ids,
    "ID|SEQ|POINT|PATH[:LINE]": lambda asked: [*_ids(asked), *_points(asked)],
    "ID|SEQ|PATTERN": lambda asked: [*_ids(asked), *_seqs(asked)],
    "ID|A..B": _ids,
    "[PATH|ID]...": _ids,
    "[ID]...": _ids,
    "FROM": _ids,
    "TO": _ids,
    "OLD": _ids,
    "FROM TYPE TO": lambda asked: [*_ids(asked), *_edge_types(asked)],
    "TYPE": _types,
    "EDGE": _edge_types,
    "EDGE[:ID]": _edge_and_end,
    "EDGE[,EDGE]": _edge_types_listed,
    "KEY": _fields,
    "KEY=VALUE": _field_and_value,
    "FIELD=VALUE": _field_and_value,
    "FIELD[,FIELD]": _fields_listed,
    "SETTING": _settings,
    "BRANCH": _branches,
    "SEQ": _seqs,
    "[SEQ|POINT]...": _seqs,
    "POINT": _points,
}
_BY_COMMAND: Final[Mapping[tuple[str, str], Source]] = {
    ("kb schema", "TYPE"): _all_types,
    ("kb graph", "TYPE"): _entity_types,
    ("kb new", "TYPE"): _entity_types,
    ("kb id next", "TYPE"): _entity_types,
    ("kb branch ensure", "NAME"): _branches,
    ("kb branch restore", "NAME"): _in_trash,
    ("kb branch diff", "A"): _branches,
    ("kb branch diff", "B"): _branches,
    ("kb diff", "A|A..B"): _points,
    ("kb diff", "B"): _points,
}
"""The meaning of a metavar for one command only."""


METAVARS: Final = frozenset({*_BY_METAVAR, *(metavar for _, metavar in _BY_COMMAND)})
OPTIONS: Final = frozenset(_BY_OPTION)
"""The parameters whose values can be looked up, by their metavars and by their names."""


def complete(ctx: Any, parameter: Any, typed: str) -> list[str]:
    """Return the values that begin with what was typed; none where they cannot be looked up."""
    from kbcli.invocation.context import session_of

    session = session_of(ctx)
    session.be_silent()
    source = _source_of(ctx.command_path, parameter)
    if source is None or len(typed) > _TYPED_CHARS:
        return []
    try:
        # What comes before an option that still lacks its value is left in `args`.
        before = [one for one in (*ctx.params.values(), *ctx.args) if isinstance(one, str)]
        found = source(_Asked(session, before, typed))
    except (KBError, OSError):  # a shell shows no errors while a person types: the command itself will say it
        return []
    begun = typed.casefold()
    offered = (value for value in found if value.casefold().startswith(begun) and _PLAIN.fullmatch(value))
    return list(dict.fromkeys(offered))[:MOST]


def _source_of(command_path: str, parameter: Any) -> Source | None:
    metavar = parameter.metavar or ""
    by_option = next((_BY_OPTION[name] for name in parameter.opts if name in _BY_OPTION), None)
    return _BY_COMMAND.get((command_path, metavar)) or by_option or _BY_METAVAR.get(metavar)
