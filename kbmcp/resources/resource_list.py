"""The resources: what each is called, says of itself and holds; and how a URI is read.

A resource holds what a tool would answer, for clients that show or pin documents: the tools are sufficient. Nothing
that is stored changes a name, a description or a URI.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, Literal

import mcp_types as types
import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from kbcore import limits
from kbcore.errors import InvalidQuery, NotFound, Problem, Rejected
from kbcore.prime.agent_text import SKILL_NAME
from kbcore.text.escaping import escape_lines, in_quotes
from kbcore.text.suggest import is_it, near_ones
from kbmcp.resources import skills
from kbmcp.resources.logic_prompts import LOGIC_PAGES
from kbmcp.resources.logic_prompts import TOOLSET as LOGIC
from kbmcp.resources.memory_prompts import MEMORY_GUIDES, REFERENCE, TOOLSET
from kbmcp.resources.prompt_guidance import for_server
from kbmcp.resources.static_pages import ResourcePage
from kbmcp.tools import argument_models, check, logic, query, sleep
from kbmcp.tools import context as contexts
from kbmcp.tools.answers import DATA_NOTE, PAGE_CHARS, Payload, cut_deep, length_of, text_of
from kbmcp.tools.call import Call, Client
from kbmcp.tools.run_call import ClientRequest, run_call
from kbmcp.tools.service import Service

if TYPE_CHECKING:
    from kbcore.view.view import View

_JSON: Final = "application/json"
_ENTITY: Final = "kb://entity/"
_CONTEXT: Final = "kb://context"
_CONTEXT_MEMBERS: Final = ("paths", "budget")
_LONGEST_QUERY: Final = 64 * limits.KIB
"""Characters of the paths of a context."""
_LONGEST_URI: Final = len(_ENTITY) + 12 * limits.MAX_ID_CHARS
"""Characters: an id of four-byte characters takes twelve for each."""
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_ENCODED: Final = re.compile(rb"[^A-Za-z0-9._~-]")
_NO_SUCH_RESOURCE: Final = -32002
"""The error code of the revisions with a handshake; later ones use that of wrong parameters."""

What = Literal["head", "schema", "check", "read", "work", "snapshot", "symbols", "entity", "context", "page", "tools"]

PAGES: Final = {SKILL_NAME: skills.PAGE, **MEMORY_GUIDES, "kip_syntax": REFERENCE, **LOGIC_PAGES}
"""By the name of the resource; each memory prompt includes the reference."""


class RequestedResource(msgspec.Struct, frozen=True):
    """The resource that a URI names; ``id`` is that of the entity, or the URI of a page, which never changes.

    Of a context it is what the URI has after the question mark.

    The list of tools has no URI, but can be followed too.
    """

    what: What
    id: str = ""


def _document_text(payload: Payload) -> str:
    return text_of(DATA_NOTE | payload)


class Resource(msgspec.Struct, frozen=True):
    """A resource, or with ``{…}`` in its URI one for each entity, or for what is asked."""

    uri: str
    title: str
    description: str
    read: Callable[[Call, str], Payload]
    toolset: str = "core"
    """Offered with this group of tools; ``core`` is offered always."""
    mime_type: str = _JSON
    text: Callable[[Payload], str] = _document_text
    """Makes the text of the content of what was read."""


def _head(call: Call, _: str) -> Payload:
    return call.answer(lambda view: _counted(call, view))


def _counted(call: Call, view: View) -> Payload:
    from kbcore.kip.sleep.due import due
    from kbcore.query import Query, page_of
    from kbcore.share.state import find_state

    entities, edges = (page_of(view, Query(type=type_, limit=1), call.branch).total for type_ in ("", "edge"))
    record = {"branch": call.branch, "seq": view.seq, "hash": view.recorded.sum, "at": view.recorded.at}
    found, sharing = due(call.workspace, view), find_state(call.workspace, call.branch, view)
    return {
        **record,
        "entities": entities,
        "edges": edges,
        **({"sleep": found.as_json()} if found else {}),
        **({"sharing": sharing.as_json()} if sharing else {}),
    }


def _schema(call: Call, _: str) -> Payload:
    from kbcore.model.schema_text import schema_json

    whole = call.answer(
        lambda view: {"branch": call.branch, "seq": view.seq, **schema_json(view.schema(call.workspace.schema))}
    )
    if length_of(whole) <= PAGE_CHARS:
        return whole
    note = "Long parts are left out; `kb schema TYPE` shows one type in full: ask the user to run it."
    shown: Payload = cut_deep(whole, PAGE_CHARS - len(note) - 20)
    return shown | {"note": note}


def _check(call: Call, _: str) -> Payload:
    return check.check(call, argument_models.CheckArguments(), [])


def _read(call: Call, _: str) -> Payload:
    reads = call.reads
    changed = reads.changed(call.branch, call.store, call.author.session) if reads else []
    return {
        "branch": call.branch,
        "seq": call.store.head().seq,
        "read": len(reads.ids(call.branch)) if reads else 0,
        "changed": [one.as_json() for one in changed],
    }


def _entity(call: Call, key: str) -> Payload:
    from kbcore.query.data_names import nearest_id

    shown = query.query(call, argument_models.QueryArguments(ids=[key], edges=True), [])
    if not shown["entities"]:
        near = call.read(lambda view: nearest_id(view.rows, key))
        hint = f"Did you mean {in_quotes(near)}?" if near else ""
        raise NotFound(f"There is no entity {in_quotes(key)}.", hint=hint)
    return shown


def _context(call: Call, asked: str) -> Payload:
    return contexts.context(call, _context_asked(asked))


def _context_asked(text: str) -> argument_models.ContextArguments:
    """Return what the URI of a context asks for: paths with commas between them, else the uncommitted changes.

    Raises: ``InvalidQuery``.
    """
    members: dict[str, str] = {}
    for part in filter(None, text.split("&")):
        name, _, value = part.partition("=")
        if name not in _CONTEXT_MEMBERS or name in members:
            hint = f"Write {_CONTEXT}{{?paths,budget}}, each member once."
            what = "is twice in" if name in members else "is no member of"
            raise InvalidQuery(f"{in_quotes(name[: limits.MAX_ID_CHARS])} {what} the URI.", hint=hint)
        members[name] = value
    paths = [*filter(None, map(_decoded, members.get("paths", "").split(",")))]
    budget = members.get("budget", "")
    if budget and not (budget.isascii() and budget.isdigit() and len(budget) <= len(str(limits.MAX_CONTEXT_TOKENS))):
        raise InvalidQuery("The budget in the URI is no number.", hint="Give it in tokens, as in budget=400.")
    given = {"paths": paths} if paths else {"diff": True}
    return contexts.read_context({**given, **({"budget": int(budget)} if budget else {})}, "$")


RESOURCES: Final[dict[What, Resource]] = {
    "head": Resource(
        "kb://head",
        "Head",
        "The branch, its last acknowledged record, how many entities and edges it has, whether its memory asks for a "
        "sleep cycle, and what is not shared or contested.",
        _head,
    ),
    "schema": Resource(
        "kb://schema", "Schema", "The types of entities and edges: KB's own and the project's.", _schema
    ),
    "check": Resource("kb://check", "Check", "What breaks the rules, worst first.", _check),
    "read": Resource(
        "kb://read",
        "What was read",
        "What others have changed of the entities that this connection was shown. Who follows it is notified of each.",
        _read,
    ),
    "work": Resource(
        "kb://kip/work",
        "Work on the memory",
        "What the memory needs judgement for, each with the KIP commands that answer it: the first page.",
        lambda call, _: sleep.work(call, argument_models.SleepArguments(), ()),
        toolset=TOOLSET,
    ),
    "snapshot": Resource(
        "prolog://workspace/snapshot",
        "Prolog workspace",
        "The source of all clauses, as they were typed, with control characters as escapes.",
        lambda call, _: logic.snapshot(call, sys.maxsize),
        toolset=LOGIC,
        mime_type="text/x-prolog",
        text=lambda payload: escape_lines(payload["dump"]),
    ),
    "symbols": Resource(
        "prolog://workspace/symbols",
        "Prolog predicates",
        "The predicates that have clauses or are declared: what workspace answers to list_symbols.",
        lambda call, _: logic.symbols(call),
        toolset=LOGIC,
    ),
    "entity": Resource(
        _ENTITY + "{id}", "Entity", "One entity, with its edges in both directions; percent-encode the id.", _entity
    ),
    "context": Resource(
        _CONTEXT + "{?paths,budget}",
        "Context",
        "The facts that bind files, or without paths the uncommitted changes, in at most `budget` tokens.",
        _context,
    ),
}


def page_at(uri: str) -> ResourcePage | None:
    """Return the text whose resource has this URI, None where there is none."""
    return next((one for one in PAGES.values() if one.uri == uri), None)


def listed(service: Service) -> list[types.Resource]:
    """Return the resources that have one URI, always in the same order."""
    own = [
        types.Resource(uri=one.uri, name=what, title=one.title, description=one.description, mime_type=one.mime_type)
        for what, one in RESOURCES.items()
        if "{" not in one.uri and _is_offered(one.toolset, service.options.toolsets)
    ]
    pages = [
        types.Resource(uri=one.uri, name=name, title=one.title, description=one.description, mime_type=one.mime_type)
        for name, one in PAGES.items()
        if _is_offered(one.toolset, service.options.toolsets)
    ]
    return [*own, *pages]


def templates() -> list[types.ResourceTemplate]:
    """Return the resources that have a URI for each entity, or for what is asked."""
    return [
        types.ResourceTemplate(
            uri_template=one.uri, name=what, title=one.title, description=one.description, mime_type=_JSON
        )
        for what, one in RESOURCES.items()
        if "{" in one.uri
    ]


def find(uri: str, toolsets: Collection[str]) -> RequestedResource:
    """Return the resource that a URI names on a server of these toolsets, whether or not there is such an entity.

    Raises: ``NotFound``, which names what the server offers, or what it must be started with to offer this one.
    """
    wanted = next((RequestedResource(what) for what, one in RESOURCES.items() if uri == one.uri), None)
    page = page_at(uri)
    wanted = wanted or (RequestedResource("page", uri) if page else None)
    if wanted:
        toolset = page.toolset if page else RESOURCES[wanted.what].toolset
        if not _is_offered(toolset, toolsets):
            hint = f"Start the server with --toolsets core,{toolset}."
            raise NotFound(f"{uri} is in the toolset {toolset}, which this server does not offer.", hint=hint)
        return wanted
    key = _decoded(uri.removeprefix(_ENTITY)) if uri.startswith(_ENTITY) and len(uri) <= _LONGEST_URI else ""
    if key:
        return RequestedResource("entity", key)
    if uri == _CONTEXT or (uri.startswith(f"{_CONTEXT}?") and len(uri) <= _LONGEST_QUERY):
        return RequestedResource("context", uri.removeprefix(_CONTEXT).removeprefix("?"))
    shown = uri if len(uri) <= limits.MAX_ID_CHARS else f"{uri[: limits.MAX_ID_CHARS]}…"
    known = [one.uri for one in RESOURCES.values() if _is_offered(one.toolset, toolsets)]
    known += [one.uri for one in PAGES.values() if _is_offered(one.toolset, toolsets)]
    hint = f"{is_it(near_ones(shown, known))} There are {', '.join(known)}.".strip()
    raise NotFound(f"There is no resource {in_quotes(shown)}.", hint=hint)


def _is_offered(toolset: str, toolsets: Collection[str]) -> bool:
    return toolset in {"core", *toolsets}


def _decoded(text: str) -> str:
    """Return the id in a URI, or the empty text where it cannot be one. Characters that are not encoded are literal."""
    try:
        return _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), text.encode()).decode()
    except UnicodeError:
        return ""


async def read(service: Service, client: Client, uri: str, protocol: str) -> types.ReadResourceResult:
    """Return the content of a resource when this request is admitted.

    Raises: ``MCPError``, which holds the JSON of the error as its data.
    """
    page = page_at(uri)
    if page and _is_offered(page.toolset, service.options.toolsets):
        text = page.read()
        if page is not skills.PAGE:  # its bytes have a published digest
            text = for_server(text, is_read_only=service.options.is_read_only)
        content = types.TextResourceContents(uri=uri, mime_type=page.mime_type, text=text)
        return types.ReadResourceResult(contents=[content])

    outcome = await run_call(
        service, client, "kb.query", lambda: ClientRequest(find(uri, service.options.toolsets)), _document
    )
    if outcome.error is not None:
        raise refusal(outcome.error, outcome.payload, protocol)
    wanted = RESOURCES[find(uri, service.options.toolsets).what]
    content = types.TextResourceContents(uri=uri, mime_type=wanted.mime_type, text=wanted.text(outcome.payload))
    return types.ReadResourceResult(contents=[content])


def _document(call: Call, wanted: RequestedResource, _: Sequence[Problem]) -> Payload:
    return RESOURCES[wanted.what].read(call, wanted.id)


def refusal(error: Exception, payload: Payload, protocol: str) -> MCPError:
    """Return the protocol's error, in a revision of the protocol, for an error that ``payload`` explains."""
    code = types.INVALID_PARAMS if isinstance(error, InvalidQuery | NotFound | Rejected) else types.INTERNAL_ERROR
    if isinstance(error, NotFound) and protocol not in MODERN_PROTOCOL_VERSIONS:
        code = _NO_SUCH_RESOURCE
    return MCPError(code=code, message=payload["error"]["message"], data=payload)


def uri_of(key: str) -> str:
    """Return the URI of an entity: what is no letter, digit or one of ``-._~`` is percent-encoded as UTF-8."""
    return _ENTITY + _ENCODED.sub(lambda found: b"%%%02X" % found[0][0], key.encode()).decode()
