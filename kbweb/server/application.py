"""The application of the explorer: addresses, one thread for each page that is read, errors as pages, and events.

A page never shows more of a failure than KB's own words: what is no error of KB is reported by the caller.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router

from kbcore.errors import Damaged, KBError, LimitExceeded, NotFound, StaleBase, Unavailable
from kbcore.process import interrupting
from kbcore.process.interrupting import CurrentWork, Stopped
from kbweb.links import ServerLinks, address
from kbweb.rendering import asset, render
from kbweb.server.access import Message, Receive, Send
from kbweb.server.exports import KINDS, exported, formats_of
from kbweb.server.pages.entities import suggest
from kbweb.server.pages.page import MAX_EXPORT_ROWS, PAGE_ROWS, HtmlPage, PageOf, PageRequest
from kbweb.server.pages.registry import NAVIGATION, PAGES
from kbweb.server.reading import BranchState, Reader, not_there
from kbweb.server.request_values import RequestValues
from kbweb.server.writing import decide_proposals, edit_entity, revert_record

T = TypeVar("T")

LOOK_S: Final = 0.2
"""The time between two looks at the branch, while somebody listens."""
MAX_LISTENERS: Final = 16
READ_S: Final = 60.0
"""The time of one page."""
_ALIVE_S: Final = 15.0
"""A listener gets something at least so often, which shows whether it is still there."""
_STATIC: Final = {
    "style.css": "text/css; charset=utf-8",
    "explorer.css": "text/css; charset=utf-8",
    "explorer.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_TEMPLATES: Final = {name: f"{name}_page" for name in ("requirements", "violations", "conflicts", "changes", "entity")}
"""The templates of pages that the report has too: they add filters and parts to its own."""
_BUG: Final = "KB failed unexpectedly, and has written a report of it where it was started."


class Explorer:
    """The pages of one branch under the folder ``base``, its forms, and the events of that branch."""

    def __init__(
        self, reader: Reader, base: str, report: Callable[[BaseException], None], *, writes: bool = False
    ) -> None:
        """``report`` is called for a failure that is no error of KB. With ``writes`` pages have forms that write."""
        self._writes = writes
        self._reader = reader
        self._base = base
        self._report = report
        self._threads = reader.threads
        self._watcher = ThreadPoolExecutor(1, "kb-ui-watch")
        self._work = reader.work
        self._writing: set[CurrentWork] = set()
        self._listeners = 0
        self._mark = ""
        self._watching: asyncio.Task[None] | None = None
        self.is_ending = False
        self._app = Router(
            routes=[
                *(Route(path, self._endpoint(page)) for path, page in PAGES.items()),
                *self._writing_routes(),
                Route("/suggest", self._suggest),
                Route("/events", self._events),
                Route("/static/{name}", self._static),
                Route("/{rest:path}", self._unknown),
            ],
            redirect_slashes=False,
        )

    def _writing_routes(self) -> list[Route]:
        if not self._writes:
            return []

        def route(path: str, write: Callable[[Reader, str, RequestValues], str]) -> Route:
            async def endpoint(request: Request) -> Response:
                body = await request.body()
                work = CurrentWork()  # of its own: once something is written, the rest of it is not interrupted
                self._writing.add(work)
                try:
                    return await self._run(
                        self._threads, self._written, write, request.path_params.get("key", ""), body, work=work
                    )
                finally:
                    self._writing.discard(work)

            return Route(path, endpoint, methods=["POST"])

        return [
            route("/entity/{key:path}", edit_entity),
            route("/record/{key}/revert", revert_record),
            route("/review", decide_proposals),
        ]

    def _written(self, write: Callable[[Reader, str, RequestValues], str], key: str, body: bytes) -> Response:
        """Write what a form asks for, and return the way to the page that shows it, or the page of the error."""
        try:
            place = write(self._reader, key, RequestValues(body.decode("latin-1")))
        except KBError as error:
            return self._error(error, {}, writes=True)
        except (Stopped, interrupting.TimeOver):
            why = "The explorer ends." if self.is_ending else "This took too long."
            text = f"{why} The records say whether it was written."
            return Response(text, 503, media_type="text/plain")
        return Response(status_code=303, headers={"location": f"{self._base}{place}"})

    def end(self) -> None:
        """Interrupt what is read, and let nothing more begin. From any thread."""
        self.is_ending = True
        for work in (self._work, *self._writing):
            work.stop()

    def close(self) -> None:
        """Wait for the threads, and close what they read."""
        self._watcher.shutdown(cancel_futures=True)
        self._reader.close()

    def _endpoint(self, page_of: PageOf) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            return await self._run(self._threads, self._page, page_of, request)

        return endpoint

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Carry out one request of ASGI. A failure that is no error of KB is reported, and never shown."""
        try:
            await self._app(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - the one boundary of a request
            self._report(error)
            with suppress(RuntimeError):  # the answer has begun
                await Response(_BUG, 500, media_type="text/plain")(scope, receive, send)

    async def _run(
        self, threads: ThreadPoolExecutor, use: Callable[..., T], *given: Any, work: CurrentWork | None = None
    ) -> T:
        """Return ``use(*given)`` of a thread. Its statements end when the explorer does."""

        def done() -> T:
            with interrupting.done_for(work or self._work), interrupting.limited(READ_S):
                return use(*given)

        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(threads, context.run, done)

    def _page(self, page_of: PageOf, request: Request) -> Response:
        """Return the answer for a page: HTML, an export, or an error."""
        kept: dict[str, str] = {}
        try:
            asked = RequestValues(request.url.query)
            kept = {"at": asked.one("at")} if asked.one("at") else {}
            format_ = asked.one("format")
            limit = MAX_EXPORT_ROWS + 1 if format_ else PAGE_ROWS
            page_request = PageRequest(
                asked, ServerLinks(kept, self._base), self._reader, request.path_params.get("key", ""), limit
            )

            def answer(state: BranchState) -> Response:
                page = page_of(page_request, state)
                if format_:
                    name = f'attachment; filename="kb-{page.template}.{format_}"'
                    body = exported(page, format_)
                    return Response(body, headers={"content-disposition": name, "content-type": KINDS[format_]})
                return self._html(self._document(request, page_request, page, state))

            return self._reader.read(asked.one("at"), answer)
        except KBError as error:
            return self._error(error, kept)
        except (Stopped, interrupting.TimeOver):
            text = "The explorer ends." if self.is_ending else "The page took too long. Choose a smaller part."
            return Response(text, 503, media_type="text/plain")

    def _document(self, request: Request, page_request: PageRequest, page: HtmlPage, state: BranchState) -> str:
        asked, here = page_request.parameters, request.url.path
        path = f"{self._base}{request.scope['raw_path'].decode('latin-1')}"
        values = {
            "links": page_request.links,
            "asked": asked,
            "at": asked.one("at"),
            "path": path,
            "writes": self._writes and not state.files.is_past,
            "head": state.head,
            "pages": _pages(path, page_request, page),
            "next_place": _next_place(path, page_request, page),
            "revert_place": f"{path}/revert",
            **page.values,
        }
        content = Markup(render(f"{_TEMPLATES.get(page.template, page.template)}.html", **values))  # noqa: S704 - rendered
        others, files = asked.values(but={"at", "offset", "cursor", "before"}), state.files
        return render(
            "layout.html",
            base=self._base,
            links=page_request.links,
            title=page.title,
            navigation=NAVIGATION,
            here=next((name for name in NAVIGATION if here == (f"/{name}" if name != "overview" else "/")), ""),
            at=asked.one("at"),
            mark=""
            if files.is_past
            else _mark_of(state.branch.name, state.head, state.recorded.recorded.sum, files.mark),
            state={
                "branch": state.branch.name,
                "seq": state.seq,
                "head": state.head,
                "is_past": files.is_past,
                "said": files.point,
                "pending": 0 if files.is_past else files.pending_files,
                "reason": files.reason,
                "path": path,
                "others": [(name, value) for name, values in others.items() for value in values],
                "now": address(path, others),
            },
            content=content,
            exports=[(name.upper(), _export_place(path, page_request, name)) for name in formats_of(page)],
        )

    def _error(self, error: KBError, kept: dict[str, str], *, writes: bool = False) -> Response:
        """Return the page of an error of KB: its words, places and remedy, each once; ``writes`` for that of a form."""
        status = 400
        if isinstance(error, NotFound):
            status = 404
        elif isinstance(error, Unavailable):
            status = 503
        elif isinstance(error, Damaged):
            status = 500
        elif isinstance(error, LimitExceeded):
            status = 413
        elif isinstance(error, StaleBase):
            status = 409
        heading = "There is no such page" if status == 404 else "This cannot be shown"  # noqa: PLR2004 - as above
        is_of_problem = len(error.details) == 1 and not error.has_own_remedy
        hint = (error.details[0].hint if is_of_problem else "") or error.hint
        values = {
            "heading": "This cannot be written" if writes else heading,
            "message": error.message_for(writes=writes),
            "details": [
                {
                    "path": one.path.removeprefix("$").removeprefix("."),
                    "message": "" if error.says_first and at == 0 else one.message,
                    "hint": "" if one.hint == hint else one.hint,
                }
                for at, one in enumerate(error.details)
            ],
            "hint": hint,
        }
        return self._shown_error(values, status, ServerLinks(kept, self._base))

    def _shown_error(self, values: dict[str, Any], status: int, links: ServerLinks) -> Response:
        content = Markup(render("error.html", links=links, **values))  # noqa: S704 - rendered
        page = render(
            "layout.html",
            base=self._base,
            links=links,
            title=values["heading"],
            navigation=NAVIGATION,
            here="",
            at="",
            mark="",
            state=None,
            content=content,
            exports=(),
        )
        return self._html(page, status)

    def _html(self, text: str, status: int = 200) -> Response:
        return Response(text, status, media_type="text/html")

    async def _suggest(self, request: Request) -> Response:
        def answer() -> Response:
            try:
                asked = RequestValues(request.url.query)
                kept = {"at": asked.one("at")} if asked.one("at") else {}
                page_request = PageRequest(asked, ServerLinks(kept, self._base), self._reader)
                page = self._reader.read(asked.one("at"), lambda state: suggest(page_request, state))
                return self._html(render("suggest.html", links=page_request.links, **page.values))
            except KBError as error:
                return Response(f"{error.message} {error.hint}", 400, media_type="text/plain")
            except (Stopped, interrupting.TimeOver):
                return Response("", 503)

        return await self._run(self._threads, answer)

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            return self._error(not_there(name), {})
        headers = {"content-type": _STATIC[name], "cache-control": "private, max-age=86400"}
        return Response(str(asset(name)), headers=headers)

    async def _unknown(self, request: Request) -> Response:
        return self._error(not_there(request.url.path), {})

    async def _events(self, _: Request) -> Response:
        if self._listeners >= MAX_LISTENERS:
            text = f"At most {MAX_LISTENERS} pages get notices of changes at a time. Reload this one to see them."
            return Response(text, 503, media_type="text/plain")
        return StreamingResponse(self._marks(), media_type="text/event-stream")

    async def _marks(self) -> AsyncIterator[str]:
        """Yield an event for each state of the branch that follows, beginning with the present one."""
        self._listeners += 1
        try:
            if self._watching is None or self._watching.done():
                self._watching = asyncio.create_task(self._watch())
            yield "retry: 1000\n\n"
            sent, waited_s = "", 0.0
            while not self.is_ending:
                if self._mark and self._mark != sent:
                    sent, waited_s = self._mark, 0.0
                    yield f"data: {sent}\n\n"
                elif waited_s >= _ALIVE_S:
                    waited_s = 0.0
                    yield ": \n\n"
                await asyncio.sleep(LOOK_S / 2)
                waited_s += LOOK_S / 2
        finally:
            self._listeners -= 1

    async def _watch(self) -> None:
        """Look at the branch again and again while somebody listens."""
        while self._listeners and not self.is_ending:
            self._mark = await self._run(self._watcher, self._look)
            await asyncio.sleep(LOOK_S)

    def _look(self) -> str:
        """Return the mark of the branch as it is now; of one that cannot be read, the code of the error."""
        try:
            mark = self._reader.mark()
        except KBError as error:
            return f"error {error.code}"
        except (Stopped, interrupting.TimeOver):
            return self._mark
        return _mark_of(mark["branch"], mark["seq"], mark["hash"], mark["files"])


class _Parts(msgspec.Struct, frozen=True):
    """The position of a part of a list, and the addresses of the parts beside it."""

    offset: int
    limit: int
    total: int
    before: str | None
    after: str | None


def _pages(path: str, page_request: PageRequest, page: HtmlPage) -> _Parts:
    total, offset, limit = page.values.get("total", 0), page_request.offset, page_request.limit
    last = (total - 1) // limit * limit if total else 0  # where the last part begins, for an offset beyond it
    before = _with(path, page_request, offset=max(0, min(offset - limit, last))) if offset else None
    return _Parts(
        offset,
        limit,
        total,
        before,
        _with(path, page_request, offset=offset + limit) if offset + limit < total else None,
    )


def _next_place(path: str, page_request: PageRequest, page: HtmlPage) -> str:
    """Return where the next part of a page is that goes on from a place, "" where there is none."""
    if page.values.get("next_cursor"):
        return _with(path, page_request, cursor=page.values["next_cursor"])
    if page.values.get("before"):
        return _with(path, page_request, before=page.values["before"])
    return _with(path, page_request, offset=page.values["after"]) if page.values.get("after") else ""


def _with(path: str, page_request: PageRequest, **other: str | int) -> str:
    """Return the address of the same page with other values."""
    return address(path, {**page_request.parameters.values(but=other), **other})


def _export_place(path: str, page_request: PageRequest, format_: str) -> str:
    """Return where an export of a page is: of all its rows from the first on, whichever part is shown."""
    return address(
        path, page_request.parameters.values(but={"offset", "cursor", "before", "format"}) | {"format": [format_]}
    )


def _mark_of(branch: str, seq: int, digest: str, files: str) -> str:
    return f"{branch} {seq} {digest} {files}".strip()
