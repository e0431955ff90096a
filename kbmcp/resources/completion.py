"""Completes the arguments of prompts and the ids in the URIs of resources, from what is stored now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import mcp_types as types

from kbcore.errors import InvalidQuery, NotFound, Problem
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbmcp.resources import prompts, resource_list
from kbmcp.resources.prompts import Values
from kbmcp.tools.answers import Payload
from kbmcp.tools.call import Call, Client
from kbmcp.tools.run_call import ClientRequest, run_call
from kbmcp.tools.service import Service

if TYPE_CHECKING:
    from kbcore.query.completion import Likely
    from kbcore.view.view import View

MAX_VALUES: Final = 100
"""The number of values that the protocol allows in one answer."""
_TYPED_CHARS: Final = 200
"""Longer than any id."""

Given = Mapping[str, str]
"""The arguments that the user has filled in already."""


def _sources() -> Mapping[Values, Callable[[View, str, Given], Likely]]:
    from kbcore.query import completion

    return {
        "entities": lambda view, typed, _: completion.entity_ids(view, typed, most=MAX_VALUES),
        "requirements": lambda view, typed, _: completion.entity_ids(view, typed, type="req", most=MAX_VALUES),
        "tags": lambda view, typed, _: completion.tags(view, typed, most=MAX_VALUES),
        "actors": lambda view, typed, _: completion.actors(view, typed, most=MAX_VALUES),
        "seqs": lambda view, typed, given: completion.seqs(view, typed, actor=given.get("actor", ""), most=MAX_VALUES),
    }


async def complete(service: Service, client: Client, params: types.CompleteRequestParams) -> types.CompleteResult:
    """Return what may be meant by what was typed.

    Raises: ``MCPError`` where there is nothing of that name to complete, or nothing can be read.
    """
    typed = params.argument.value[:_TYPED_CHARS]
    given = (params.context.arguments if params.context else None) or {}

    def found(call: Call, values: Values | tuple[str, ...], _: Sequence[Problem]) -> Payload:
        if isinstance(values, tuple):
            fitting = [one for one in values if one.startswith(typed)]
            return {"values": fitting, "total": len(fitting)}
        if not values:
            return {"values": [], "total": 0}
        likely = call.read(lambda view: _sources()[values](view, typed, given))
        return {"values": list(likely.values), "total": likely.total}

    outcome = await run_call(service, client, "kb.query", lambda: ClientRequest(_values(service, params)), found)
    if outcome.error is not None:
        raise prompts.refusal(outcome.error, outcome.payload)
    shown, total = outcome.payload["values"], outcome.payload["total"]
    return types.CompleteResult(completion=types.Completion(values=shown, total=total, has_more=total > len(shown)))


def _values(service: Service, params: types.CompleteRequestParams) -> Values | tuple[str, ...]:
    """Return what completes the argument that is asked for. Raises: ``InvalidQuery``, ``NotFound``."""
    name = params.argument.name
    if isinstance(params.ref, types.ResourceTemplateReference):
        templates = [one.uri_template for one in resource_list.templates()]
        if params.ref.uri not in templates:
            hint = did_you_mean(params.ref.uri, templates)
            raise NotFound(f"There is no resource template {in_quotes(params.ref.uri[:200])}.", hint=hint)
        is_context = params.ref.uri == resource_list.RESOURCES["context"].uri
        known: dict[str, Values | tuple[str, ...]] = {"paths": (), "budget": ()} if is_context else {"id": "entities"}
    else:
        known = {one.name: one.choices or one.values for one in prompts.find(service, params.ref.name).arguments}
    if name not in known:
        raise InvalidQuery(f"There is no argument {in_quotes(name[:100])}.", hint=did_you_mean(name, known))
    return known[name]
