"""Subscriptions to resources, and notifications when they have changed.

Nothing runs without subscriptions. A subscribed resource has a mark from before its subscription was confirmed, so
that no change after that is missed; several changes between two looks are reported as one.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any, Final, Protocol

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    InMemorySubscriptionBus,
    ListenHandler,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

from kbcore.errors import KBError, LimitExceeded, NotFound
from kbcore.process.system_limits import exhausted
from kbmcp.resources import resource_digests, resource_list
from kbmcp.resources.resource_digests import BranchSnapshot, Mark
from kbmcp.resources.resource_list import RequestedResource
from kbmcp.tools import hints
from kbmcp.tools.refusals import error_json
from kbmcp.tools.service import Service

LOOK_S: Final = 0.5
"""The interval of checks for changes, while there is a subscription."""

_SHARE: Final = 10
"""Looking takes at most one part in so many of the time, as long as that is no longer than ``_LONGEST_S``."""

_LONGEST_S: Final = 5.0

MAX_FOLLOWED: Final = 1000
"""Resources that one client may follow."""

MOST_READ: Final = 100
"""Entities that are followed for `kb://read`: those that were shown last."""

_TOOLS: Final = RequestedResource("tools")
_READ: Final = RequestedResource("read")


class Updates(Protocol):
    """The receiver of updates, in the revisions of the protocol with a handshake."""

    async def send_resource_updated(self, uri: str) -> None:
        """Notify the client that a resource has changed."""


class Subscriptions:
    """The subscriptions of the one client of this process, in either version of the protocol."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._subscribed: dict[str, tuple[RequestedResource, Updates]] = {}
        """By the URIs that ``resources/subscribe`` named."""
        self._listening: dict[object, dict[str, RequestedResource]] = {}
        """The resources of each open ``subscriptions/listen``, by URI; the tools have the empty one."""
        self._bus = InMemorySubscriptionBus()
        self._streams = ListenHandler(self._bus)
        self._turn = anyio.Lock()
        """Held while is looked, compared and reported."""
        self._is_wanted = anyio.Event()
        self._snapshot: BranchSnapshot | None = None
        """The last snapshot; None where it was not the same for all marks."""
        self._marks: dict[RequestedResource, Mark] = {}
        self._took_s = 0.0
        self._is_ended = False

    async def watch(self) -> None:
        """Look again and again while something is followed; runs until it is cancelled."""
        while True:
            await self._is_wanted.wait()
            try:
                await self._check()
            except Exception as error:  # noqa: BLE001 - a bug: reported in full on standard error, and every waiting request ends
                if exhausted(error, may_be_written=False):  # the next look may get what this one did not
                    await anyio.sleep(_LONGEST_S)
                    continue
                traceback.print_exc(file=sys.stderr)
                self._subscribed.clear()
                self._streams.close()
            if not self._followed():
                self._is_wanted = anyio.Event()
            await anyio.sleep(min(max(LOOK_S, _SHARE * self._took_s), _LONGEST_S))

    async def subscribe(self, uri: str, session: Updates, protocol: str) -> None:
        """Follow a resource for a client of the era with a handshake. Raises: ``MCPError``."""
        try:
            wanted = resource_list.find(uri, self._service.options.toolsets)
            await self._begin({uri: wanted})
        except KBError as error:
            raise self._refusal(error, protocol) from error
        self._subscribed[uri] = wanted, session

    def unsubscribe(self, uri: str) -> None:
        """Follow a resource no more."""
        self._subscribed.pop(uri, None)

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Serve one stream of the era without a handshake, until the client or the server ends it.

        What can never happen is left out of what is confirmed. Raises: ``MCPError``.
        """
        asked = params.notifications
        followed = _resources_among(asked.resource_subscriptions or (), self._service.options.toolsets)
        kept = types.SubscriptionFilter(
            tools_list_changed=asked.tools_list_changed,
            resources_list_changed=asked.resources_list_changed,
            resource_subscriptions=list(followed),
        )
        if asked.tools_list_changed:
            followed[""] = _TOOLS
        try:
            await self._begin(followed)
        except KBError as error:
            raise self._refusal(error, ctx.protocol_version) from error
        if self._is_ended:
            return types.SubscriptionsListenResult(_meta={SUBSCRIPTION_ID_META_KEY: ctx.request_id})
        stream = object()
        self._listening[stream] = followed
        try:
            return await self._streams(ctx, params.model_copy(update={"notifications": kept}))
        finally:
            del self._listening[stream]

    def end(self) -> None:
        """End every stream: the server reads no more, and answers what is open."""
        self._is_ended = True
        self._streams.close()

    def _followed(self) -> dict[str, RequestedResource]:
        """Return all that is followed, by URI."""
        followed = {uri: wanted for uri, (wanted, _) in self._subscribed.items()}
        for more in self._listening.values():
            followed |= more
        if _READ in followed.values():
            branch = self._snapshot.branch if self._snapshot else ""
            ids = self._service.reads.ids(branch)[-MOST_READ:]
            followed = {resource_list.uri_of(key): RequestedResource("entity", key) for key in ids} | followed
        return followed

    async def _begin(self, new: dict[str, RequestedResource]) -> None:
        """Take marks of what is to be followed from now on. Raises: ``LimitExceeded``."""
        if len(self._followed() | new) > MAX_FOLLOWED:
            hint = "Follow less, or kb://head, which changes with every record."
            raise LimitExceeded(f"One client may follow {MAX_FOLLOWED} resources. None was added.", hint=hint)
        if not new:
            return
        async with self._turn:
            followed = set(self._followed().values())
            try:
                snapshot, marks = await anyio.to_thread.run_sync(self._seen, set(new.values()) - followed)
            except (MemoryError, RuntimeError) as error:
                raise exhausted(error, may_be_written=False) or error from error
            if not followed:
                self._snapshot, self._marks = snapshot, {}
            elif snapshot != self._snapshot:
                self._snapshot = None
            self._marks |= marks
        self._is_wanted.set()

    async def _check(self) -> None:
        """Find what has changed since the last check, and notify the client."""
        async with self._turn:
            followed, began_s = self._followed(), anyio.current_time()
            wanted_now, before = set(followed.values()), self._marks
            known = self._snapshot if wanted_now <= before.keys() else None
            snapshot, marks = await anyio.to_thread.run_sync(self._seen, wanted_now, known)
            self._took_s = anyio.current_time() - began_s
            kept = {one: before[one] for one in wanted_now if one in before}
            self._snapshot, self._marks = snapshot, kept | marks
            for uri, wanted in followed.items():
                if wanted in before and before[wanted] != self._marks[wanted]:
                    await self._notify(uri, wanted)

    def _seen(
        self, wanted: set[RequestedResource], known: BranchSnapshot | None = None
    ) -> tuple[BranchSnapshot, dict[RequestedResource, Mark]]:
        """Return what is to be seen now, and a mark of each, or none if all is as known. Runs in a worker thread."""
        snapshot = resource_digests.read_snapshot(self._service)
        return snapshot, {} if snapshot == known else resource_digests.marks_of(self._service, snapshot, wanted)

    async def _notify(self, uri: str, wanted: RequestedResource) -> None:
        """Notify the client; of an entity that it has read and does not follow, as a part of what it has read."""
        reads = {one: receiver for one, (resource, receiver) in self._subscribed.items() if resource == _READ}
        if uri in self._subscribed:
            await self._subscribed[uri][1].send_resource_updated(uri)
        elif reads:
            await next(iter(reads.values())).send_resource_updated(uri)
        await self._bus.publish(ToolsListChanged() if wanted == _TOOLS else ResourceUpdated(uri))
        if wanted.what == "entity" and any(_READ in one.values() for one in self._listening.values()):
            await self._bus.publish(ResourceUpdated(resource_list.RESOURCES["read"].uri))

    def _refusal(self, error: KBError, protocol: str) -> MCPError:
        is_dotted = self._service.options.is_dotted
        payload = error_json(
            error, hints.hint_for(error, "kb.query", is_dotted=is_dotted), {}, writes=False, is_dotted=is_dotted
        )
        return resource_list.refusal(error, payload, protocol)


def _resources_among(uris: Iterable[str], toolsets: Collection[str]) -> dict[str, RequestedResource]:
    found: dict[str, RequestedResource] = {}
    for uri in uris:
        with suppress(NotFound):
            found[uri] = resource_list.find(uri, toolsets)
    return found
