"""Carries out what a client asks for in its branch's surroundings, and turns whatever happens into one JSON document.

A failure never ends the server: what KB explains is reported with its remedy; a bug is reported as one, and in full on
standard error.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import msgspec
from anyio.to_thread import run_sync

from kbcore import interrupting
from kbcore.errors import Interrupted, KBError
from kbcore.interrupting import CurrentWork, Stopped
from kbcore.process_limits import check_room, exhausted
from kbmcp.protocol.call_queue import Ticket
from kbmcp.tools import hints
from kbmcp.tools.answers import Payload
from kbmcp.tools.call import Arrival, Call, Client, ServerOptions, Service
from kbmcp.tools.progress_notifications import told_to
from kbmcp.tools.refusals import explain

T = TypeVar("T")


class Job(msgspec.Struct, frozen=True):
    """What is to be done once the branch is open. ``expect_branch`` is the one that it must be, if the client said."""

    run: Callable[[Call], Payload]
    expect_branch: str = ""
    writes: bool = False
    dry_run: bool = False
    """What it would write is only planned: no store is made for it."""


class CallResult(msgspec.Struct, frozen=True):
    """What came of it: the document to send, and the error that it explains, if it explains one."""

    options: ServerOptions
    payload: Payload
    error: Exception | None = None
    writes: bool = False
    """Whether the call that failed would write, as far as that is known."""


async def run_call(
    service: Service, client: Client, key: str, prepare: Callable[[], Job], *, writes: bool = False
) -> CallResult:
    """Prepare a job, carry it out when its turn has come, and return what came of it, whatever happens.

    Jobs of one branch that write are carried out in the order in which this was called, those that read beside them
    (``turns``). One that waits holds no thread, and one that is cancelled meanwhile gives its place back.

    ``prepare`` looks at what was asked before anything is opened, and refuses it by raising; ``writes`` says what is
    known before that. ``key`` names the tool that remedies speak of.
    """
    with service.turns.ticket() as ticket:
        under_way = _Attempt(service, client, key, writes=writes)
        await ticket.reached()
        work: CurrentWork | None = None
        try:
            async with told_to(client.report), service.works.begun() as work:
                check_room()
                found = await run_sync(under_way.begin, prepare, ticket, limiter=service.threads)
                if isinstance(found, CallResult):
                    return found
                await ticket.reached()
                return await run_sync(under_way.go_on, found, limiter=service.threads)
        except Exception as error:
            # The system made no thread, or gave no memory here.
            known = exhausted(error, may_be_written=work is not None and work.may_have_written)
            if known is None:
                raise
            return under_way.refused(known, is_in_loop=True)


class _Ready(msgspec.Struct, frozen=True):
    """A job that waits for its turn."""

    job: Job
    arrival: Arrival


class _Attempt:
    """One job on its way, and what is known of it should it fail. Runs in worker threads."""

    def __init__(self, service: Service, client: Client, key: str, *, writes: bool) -> None:
        self._service = service
        self._client = client
        self._key = key
        self._writes = writes
        self._around: Payload = {}

    def begin(self, prepare: Callable[[], Job], ticket: Ticket) -> CallResult | _Ready:
        """Prepare the job and find out its branch; carry it out at once where nobody else is."""

        def begin() -> CallResult | _Ready:
            job = prepare()
            self._writes = job.writes
            ready = _Ready(job, self._service.arrive(job.expect_branch))
            has_turn = ticket.move(ready.arrival.directory, reads=not job.writes)
            return self._carried_out(ready) if has_turn else ready

        return self._explained(begin)

    def go_on(self, ready: _Ready) -> CallResult:
        """Carry out the job, whose turn has come."""
        return self._explained(lambda: self._carried_out(ready))

    def _carried_out(self, ready: _Ready) -> CallResult:
        service, around = self._service, self._around
        job = ready.job
        with service.open(self._client, ready.arrival, writes=job.writes, dry_run=job.dry_run) as call:
            around |= {"repository": call.repository, "branch": call.branch, **call.answered_from}
            try:
                payload = {"repository": call.repository} | ready.job.run(call) | call.answered_from
                if service.after_read and not ready.job.writes:  # after a write, reading would first publish the view
                    service.after_read(call, payload)
                news = service.news(call)
            except KBError:
                around |= _noted({}, service.news(call), service.options)
                with suppress(KBError):  # the store may be what is damaged
                    around["seq"] = call.store.head().seq
                raise
        return CallResult(service.options, _noted(payload, news, service.options))

    def _explained(self, do: Callable[[], T]) -> T | CallResult:
        try:
            return do()
        except Stopped:
            stopped = _interrupted(may_be_written=interrupting.may_have_written())
            told = {"error": stopped.as_json(writes=self._writes)} | self._around
            return CallResult(self._service.options, told, stopped, self._writes)
        except KBError as error:
            return self.refused(error)
        except Exception as error:  # noqa: BLE001 - a bug: reported to the client as such, and in full on standard error
            known = exhausted(error, may_be_written=interrupting.may_have_written())
            if known:
                return self.refused(known)
            traceback.print_exc(file=sys.stderr)
            return CallResult(self._service.options, bug(error) | self._around, error, self._writes)

    def refused(self, error: KBError, *, is_in_loop: bool = False) -> CallResult:
        """Return the answer to a job that failed with an error that KB explains.

        The branch is found out by asking git, but not ``is_in_loop``, where that would keep all others waiting.
        """
        options = self._service.options
        around = self._around or ({} if is_in_loop else self._service.place())
        hint = hints.hint_for(error, self._key, is_dotted=options.is_dotted, has_core=options.has_core)
        told = explain(error, hint, around, writes=self._writes, is_dotted=options.is_dotted, has_core=options.has_core)
        return CallResult(options, told, error, self._writes)


def _interrupted(*, may_be_written: bool) -> Interrupted:
    stopped = Interrupted("The call was interrupted.")
    if may_be_written:
        stopped.applied = "unknown"
    return stopped


def _noted(payload: Payload, news: str, options: ServerOptions) -> Payload:
    """Return the payload with the news before what it notes itself."""
    note = f"{news} {payload.get('note', '')}".strip()
    if not note:
        return payload
    return payload | {"note": hints.in_tool_words(note, is_dotted=options.is_dotted, has_core=options.has_core)}


def bug(error: Exception) -> Payload:
    """Return what a client gets of an error that KB does not explain."""
    return {
        "error": {
            "code": "internal_error",
            "message": f"KB failed in a way it should not ({type(error).__name__}).",
            "hint": "What KB has acknowledged is safe. The server wrote the details to its log; please report them.",
            "retryable": False,
            "applied": "unknown",
            "details": [],
        }
    }
