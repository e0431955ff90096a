"""Access to the explorer: requests for its own address, from its own pages, of the user who opened its address.

Every answer, a refusal too, says that no other page may use it. What is refused learns nothing about the repository.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

COOKIE: Final = "kb"
TOKEN: Final = "token"  # noqa: S105 - the name of a parameter
MAX_TARGET_BYTES: Final = 8 * 1024
"""The path and the query of one request."""
MAX_FORM_BYTES: Final = 128 * 1024
"""The largest body of a form: a text of the largest size, escaped."""
MAX_HEADER_BYTES: Final = 16 * 1024
MAX_REQUESTS: Final = 64
"""Requests that are carried out or wait at a time, those that listen to events left out."""

_FORM: Final = "application/x-www-form-urlencoded"
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
_SHARED: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (b"cache-control", b"no-store"),
)
_CONTINUE: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={place}">'
    '<link rel="icon" href="{place}static/icon.svg"><title>KB</title>'
    '<p><a href="{place}">Continue to the explorer</a></p></html>'
)
_NOT_OPENED: Final = (
    "This browser has not opened the explorer, or the address was used already. "
    "End `kb ui` and start it again: it prints a new address, which works once."
)


class Keys:
    """The secrets of one process: where its pages are, the cookie of a browser, and addresses that work once.

    Cookies do not know ports: a server on another port gets those of this host. It cannot name the folder that the
    cookie is limited to, so a browser does not send the cookie to it.
    """

    def __init__(self) -> None:
        self.base = f"/{secrets.token_urlsafe(12)}"
        """The folder of all pages."""
        self._session = secrets.token_urlsafe(32)
        self._tokens: set[str] = set()

    def first_place(self) -> str:
        """Return the path of an address that opens the explorer, unless another one has opened it."""
        token = secrets.token_urlsafe(32)
        self._tokens.add(token)
        return f"{self.base}/?{TOKEN}={token}"

    def takes(self, given: str) -> bool:
        """Tell whether this is a token, of an explorer that no browser has opened; from now on one has."""
        is_token = any(_is_same(one, given) for one in self._tokens)
        if is_token:
            self._tokens.clear()
        return is_token

    def is_below(self, path: str) -> bool:
        """Tell whether a path is in the folder of the pages."""
        return _is_same(path[: len(self.base)], self.base) and path[len(self.base) :].startswith("/")

    def is_known(self, cookies: str) -> bool:
        """Tell whether a header of cookies has that of the browser that opened the explorer."""
        pairs = [one.strip().partition("=") for one in cookies.split(";")]
        given = [value for name, _, value in pairs if name == COOKIE]
        return any(_is_same(value, self._session) for value in given)

    def cookie(self) -> str:
        """Return the header that gives a browser its cookie."""
        return f"{COOKIE}={self._session}; Path={self.base}/; HttpOnly; SameSite=Strict"


class Guard:
    """Answers what may be asked by ``app``, under the folder of ``keys``, and refuses everything else."""

    def __init__(self, app: App, authority: str, keys: Keys, *, writes: bool = False) -> None:
        """``authority`` is the one host and port that requests may name; with ``writes`` forms are taken."""
        self._methods = {"GET", "HEAD", "POST"} if writes else {"GET", "HEAD"}
        self._app = app
        self._authority = authority
        self._keys = keys
        self._running = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Carry out one request of ASGI."""
        if scope["type"] != "http":
            return
        headers = _headers(scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(send, *refusal)
            return
        path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
        start = len(self._keys.base)
        below = scope["path"][start:] if self._keys.is_below(path) else ""
        if below == "/" and query.startswith(f"{TOKEN}=") and scope["method"] == "GET":
            await self._open(query.removeprefix(f"{TOKEN}="), headers, send)
            return
        if not below or not self._keys.is_known(headers.get("cookie", "")):
            await _answer(send, 403, _NOT_OPENED)
            return
        if self._running >= MAX_REQUESTS:
            await _answer(send, 503, "Too many requests run at the moment. Try again.", (b"retry-after", b"1"))
            return
        # Listeners to events are not counted: the application limits them by itself.
        is_counted = below != "/events"
        self._running += is_counted
        try:
            await self._app({**scope, "path": below, "raw_path": scope["raw_path"][start:]}, receive, _sending(send))
        finally:
            self._running -= is_counted

    def _refusal(self, scope: Message, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return why a request is refused, whoever makes it."""
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or hosts[0].decode("latin-1") != self._authority:
            return 421, f"The explorer answers for http://{self._authority} alone."
        if scope["method"] not in self._methods:
            return 405, "The explorer only reads, unless it was started with --write, and then takes forms."
        if len(scope["raw_path"]) + len(scope["query_string"]) > MAX_TARGET_BYTES:
            return 414, f"An address has at most {MAX_TARGET_BYTES} bytes."
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADER_BYTES:
            return 431, f"The headers of a request have at most {MAX_HEADER_BYTES} bytes."
        is_form = scope["method"] == "POST"
        length, kind = headers.get("content-length", "0"), headers.get("content-type", "")
        most = MAX_FORM_BYTES if is_form else 0
        if "transfer-encoding" in headers or not re.fullmatch("[0-9]{1,9}", length) or int(length) > most:
            return 413, f"The content of this request has at most {most} bytes, and says how many."
        if is_form and kind != _FORM:
            return 415, "The explorer takes its own forms alone."
        is_opening = scope["method"] == "GET" and scope["query_string"].startswith(f"{TOKEN}=".encode())
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        # The address that opens the explorer may be followed from anywhere, by a link: its token is what counts.
        is_foreign = site not in {None, "none", "same-origin"} and not is_opening
        own = {f"http://{self._authority}"} | (set() if is_form else {None})
        # Without referrers a browser calls the origin of our own forms "null"; the other header says whose they are.
        own |= {"null"} if site == "same-origin" else set()
        if is_foreign or origin not in own:
            return 403, "Another page made this request. The explorer answers its own pages alone."
        return None

    async def _open(self, token: str, headers: dict[str, str], send: Send) -> None:
        """Give the browser its cookie for a token.

        The pages are reached from the answer, not by a redirect: a browser that came from a file or another program
        sends the cookie only with what this page asks for.
        """
        is_known = self._keys.is_known(headers.get("cookie", ""))
        if not (self._keys.takes(token) or is_known):
            await _answer(send, 403, _NOT_OPENED)
            return
        cookie = () if is_known else ((b"set-cookie", self._keys.cookie().encode()),)
        page = _CONTINUE.format(place=f"{self._keys.base}/")
        await _answer(send, 200, page, (b"content-type", b"text/html; charset=utf-8"), *cookie)


def _sending(send: Send) -> Send:
    """Return what sends an answer with the headers that every answer has."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in message["headers"]}
            shared = [one for one in _SHARED if one[0] not in own]
            message = {**message, "headers": [*message["headers"], *shared]}
        await send(message)

    return sent


async def _answer(send: Send, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
    """Send a short answer, as plain text where no header says otherwise."""
    body = text.encode()
    names = {name for name, _ in headers}
    kind = () if b"content-type" in names else ((b"content-type", b"text/plain; charset=utf-8"),)
    length = (b"content-length", str(len(body)).encode())
    start = {"type": "http.response.start", "status": status, "headers": [*kind, length, *headers]}
    await _sending(send)(start)
    await send({"type": "http.response.body", "body": body})


def _headers(scope: Message) -> dict[str, str]:
    """Return the headers by their names; several of one name are joined, and so equal to none of them."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1"), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def _is_same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode(), other.encode())
