"""The writes of the explorer's forms: by the same changesets as every other client, and only with `kb ui --write`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kbcore.editing.assignments import assignment, values_of
from kbcore.editing.documents import WriteTarget
from kbcore.editing.setting import client_request, find
from kbcore.errors import InvalidQuery, NotFound, StaleBase
from kbcore.model import changeset
from kbcore.store import branches
from kbcore.store.history.undo import UndoOptions
from kbcore.store.history.when import is_seq
from kbcore.store.review import check_reviewer, deciding_changeset, find_proposals, present_names
from kbcore.text.escaping import in_quotes
from kbweb.links import address, entity_path, id_in_path
from kbweb.server.pages.review import FILTERS, name_of
from kbweb.server.reading import Reader
from kbweb.server.request_values import RequestValues

_MAX_SEQ: Final = 100_000_000
_DECISIONS: Final = ("accept", "reject")


def edit_entity(reader: Reader, key: str, asked: RequestValues) -> str:
    """Set a field of an entity, or state or remove an edge from it, as the form asks; return the path of its page.

    Raises: ``InvalidQuery``; ``StaleBase`` where the branch has changed since the page was shown; as
    ``WriteTarget.apply``.
    """
    action = asked.one("action")
    if action not in _ACTIONS:
        hint = f"Choose of {', '.join(_ACTIONS)}."
        raise InvalidQuery(f"{in_quotes(action)} is nothing that a form does.", hint=hint)
    target = _target(reader)
    _check_seq(reader, asked)
    id_ = id_in_path(key)
    target.apply(_ACTIONS[action](target, id_, asked))
    return entity_path(id_)


def revert_record(reader: Reader, key: str, asked: RequestValues) -> str:
    """Undo a record as its preview showed it; return the path of the new one. Raises: as ``edit_entity``."""
    if not is_seq(key):
        raise InvalidQuery(f"{in_quotes(key)} is no record.", hint="A record is named by its seq, such as 12.")
    target = _target(reader)
    _check_seq(reader, asked)
    return f"/record/{target.revert([int(key)], UndoOptions()).seq}"


def decide_proposals(reader: Reader, _: str, asked: RequestValues) -> str:
    """Accept or reject the proposals that a form names, as ``kb review`` does; return the path of what is left.

    Raises: ``ReviewRequired``; ``NotFound`` for a proposal that is none any more; as ``edit_entity``.
    """
    action = asked.one("action")
    if action not in _DECISIONS:
        hint = f"Choose of {', '.join(_DECISIONS)}."
        raise InvalidQuery(f"{in_quotes(action)} is no decision.", hint=hint)
    names = {*asked.many("chosen")}
    if not names:
        raise InvalidQuery("Nothing is ticked.", hint="Tick what to decide.")
    target = _target(reader)
    check_reviewer(target.workspace, target.author)
    _check_seq(reader, asked)
    branch = reader.branch()
    found, seq = branch.store.read(lambda view: (find_proposals(view), view.recorded_seq))
    chosen = [one for one in found if name_of(one) in names]
    if len(chosen) < len(names):
        hint = "Go back, reload the page, and decide again."
        raise NotFound("Not all that is ticked is proposed.", hint=hint)
    accepted, rejected = (chosen, []) if action == "accept" else ([], chosen)
    target.apply(deciding_changeset(accepted, rejected, seq=seq, message=asked.one("message")))
    filters = {name: asked.many(name) for name in FILTERS}
    if filters["id"]:  # a page about what was deleted by the decision would be an error
        filters["id"] = reader.branch().store.read(lambda view: present_names(view, filters["id"]))
    return address("/review", filters)


def _target(reader: Reader) -> WriteTarget:
    branch = reader.branch()
    branches.for_writing(branch.workspace, branch.choice, lambda _: None)
    reading = reader.files.reading(branch.workspace, branch.name)
    return WriteTarget(branch.workspace, branch.name, reader.target.author, reading, branch.choice.follows_head)


def _check_seq(reader: Reader, asked: RequestValues) -> None:
    """Refuse a form of a page that shows an earlier state. Raises: ``StaleBase``."""
    shown, now = asked.number("seq", 0, _MAX_SEQ), reader.branch().store.head().seq
    if shown != now:
        message = f"The branch has changed since the page was shown: it was at seq {shown}, and is at seq {now}."
        raise StaleBase(message, hint="Go back, reload the page, and decide again.")


def _set(target: WriteTarget, key: str, asked: RequestValues) -> changeset.Changeset:
    """Return what sets a field, whose name and value are read as those of ``kb set`` are."""
    field, text = asked.one("field"), asked.one("value")
    if not field:
        raise InvalidQuery("field is empty.", hint="Name the field or attribute to set.")
    node, schema = target.read(lambda view: (find(view, key), view.schema(target.workspace.schema)))
    change = assignment(f"{field}={text}", schema)
    if (change.how, change.value) != ("=", text):
        raise InvalidQuery(
            f"{in_quotes(field)} is no name of a field.", hint="Type the name and the value into their own fields."
        )
    request = client_request(node, values_of(node, [change], schema))
    seq = asked.number("seq", 0, _MAX_SEQ)
    return changeset.parse({**request, "expected_seq": seq, "message": f"set {field} of {key}"})


def _edge(key: str, asked: RequestValues) -> dict[str, Any]:
    name, _, kind = asked.one("edge").partition(":")
    return {"type": name, "from": key, "to": asked.one("to"), **({"kind": kind} if kind else {})}


def _link(_: WriteTarget, key: str, asked: RequestValues) -> changeset.Changeset:
    edge = _edge(key, asked)
    message = f"link {key} {edge['type']} {edge['to']}"
    seq = asked.number("seq", 0, _MAX_SEQ)
    return changeset.parse({"edges": [edge], "message": message, "expected_seq": seq})


def _unlink(_: WriteTarget, key: str, asked: RequestValues) -> changeset.Changeset:
    edge = _edge(key, asked)
    return changeset.parse_deletion({"edges": [edge], "message": f"unlink {key} {edge['type']} {edge['to']}"})


_ACTIONS: Final[Mapping[str, Callable[[WriteTarget, str, RequestValues], changeset.Changeset]]] = {
    "set": _set,
    "link": _link,
    "unlink": _unlink,
}
