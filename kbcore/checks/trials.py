"""Runs the tests of a project's rules: each on a small graph of its own, which nothing else uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final

import msgspec

from kbcore.errors import InvalidQuery
from kbcore.ids import link_id
from kbcore.model.graph import CLIENT, OBJECT_FIELDS, Link, Node, Statement
from kbcore.model.schema import Schema
from kbcore.model.state import State
from kbcore.rules import RuleContext
from kbcore.rules.project import ProjectRule, RuleTest
from kbcore.rules.rule import PrologRules
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbcore.text.wording import some_of
from kbcore.view import database
from kbcore.view.base import build
from kbcore.view.base_stamp import BaseStamp
from kbcore.view.record_rows import FoldStart
from kbcore.view.sandbox import Sandbox, TimeLeft, Times
from kbcore.view.view import View

_AT: Final = "2000-01-01T00:00:00.000000Z"
_SEQ: Final = 1
_MAX_SHOWN: Final = 10


class TrialRun(msgspec.Struct, frozen=True):
    """A test result; ``source`` is its file and line, ``message`` what was expected and found where it failed."""

    rule: str
    test: str
    source: str
    ok: bool
    message: str = ""


PlaceForProlog = Callable[[View, Sequence[ProjectRule], TimeLeft], AbstractContextManager[PrologRules | None]]
"""Returns what runs rules in Prolog over a view, None where none of these rules is in Prolog."""


def run_trials(
    rules: Iterable[ProjectRule], schema: Schema, times: Times, place_for_prolog: PlaceForProlog
) -> list[TrialRun]:
    """Return how the tests of these rules end, in order."""
    found = []
    left = TimeLeft(times.total_s)
    with Sandbox(_lends_nothing, times, left) as sandbox, database.scratch_folder() as folder:

        def context(rule: ProjectRule, view: View, held: ExitStack) -> RuleContext:
            sandbox.switch_to(view.copy_relation)
            prolog = held.enter_context(place_for_prolog(view, [rule], left))
            return RuleContext(view.rows, schema, None, sandbox, prolog=prolog)

        for rule in rules:
            for trial in rule.trials:
                message = _unknown(trial, schema) or _fault(rule, trial, schema, folder, context)
                found.append(TrialRun(rule.id, trial.name, trial.source, not message, message))
    return found


def _lends_nothing(_relation: str, _path: str) -> None:
    raise AssertionError("a test lends its own graph")


def _unknown(trial: RuleTest, schema: Schema) -> str:
    """Return what of a test the schema does not know: with a mistyped type it would test nothing."""
    for what, known, elements in (
        ("entity type", schema.entities, trial.entities),
        ("edge type", schema.edges, trial.edges),
    ):
        for element in elements:
            if element.get("type") not in known:
                name = str(element.get("type", ""))
                return f"There is no {what} {in_quotes(name)}. {did_you_mean(name, known)}"
    return ""


def _fault(
    rule: ProjectRule,
    trial: RuleTest,
    schema: Schema,
    folder: str,
    context: Callable[[ProjectRule, View, ExitStack], RuleContext],
) -> str:
    """Return what a rule reports otherwise than its test says, "" when it does as it should."""
    with _view_of(trial, schema, folder) as view, ExitStack() as held:
        try:
            found = {one.id for one in rule.run(context(rule, view, held))}
        except InvalidQuery as error:
            return f"The rule could not run: {error.message}"
    silent = [id_ for id_ in trial.reports if id_ not in found]
    wrong = [id_ for id_ in trial.passes if id_ in found]
    parts = [f"it does not report {_listed(silent)}"] * bool(silent) + [f"it reports {_listed(wrong)}"] * bool(wrong)
    if not parts:
        return ""
    expected = [f"to report {_listed(trial.reports)}"] * bool(trial.reports)
    expected += [f"not to report {_listed(trial.passes)}"] * bool(trial.passes)
    return f"Expected {' and '.join(expected)}; {' and '.join(parts)}. Reported: {_listed(sorted(found)) or 'nothing'}."


def _listed(ids: Iterable[str]) -> str:
    return some_of(list(ids), _MAX_SHOWN)


def _view_of(trial: RuleTest, schema: Schema, folder: str) -> View:
    nodes = [_node(values, schema) for values in trial.entities]
    ids = {node.id for node in nodes}
    links = [_link(values, ids) for values in trial.edges]
    basis = BaseStamp("", "", _SEQ, "", _AT, "", 0)
    return build(":memory:", database.Room(folder), FoldStart(_SEQ, "", State(nodes, links), []), (), basis)


def _node(values: Mapping[str, Any], schema: Schema) -> Node:
    path = values.get("file", CLIENT)
    plain = {key: value for key, value in values.items() if key not in {"id", "file", *OBJECT_FIELDS}}
    default = {"title": values["id"], "status": schema.entities[values["type"]].status_default}
    fields = {**default, **plain, **_members(values)}
    owners = dict.fromkeys(fields, path) if path else {}
    return Node(values["id"], fields, owners, _AT, _AT, path or "test", _SEQ, _SEQ)


def _link(values: Mapping[str, Any], ids: set[str]) -> Link:
    type_, kind, from_id, to_id = (values.get(key, "") for key in ("type", "kind", "from", "to"))
    fields = _members(values) | ({"confidence": float(values["confidence"])} if "confidence" in values else {})
    return Link(
        id=link_id(type_, kind, from_id, to_id),
        type=type_,
        kind=kind,
        from_id=from_id,
        to_id=to_id,
        fields=fields,
        owners={},
        statements=(Statement(CLIENT, via="test"),),
        is_resolved={from_id, to_id} <= ids,
        created_at=_AT,
        created_by="test",
        created_seq=_SEQ,
        version=_SEQ,
    )


def _members(values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{key}": one for prefix in OBJECT_FIELDS for key, one in values.get(prefix, {}).items()}
