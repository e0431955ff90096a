"""Cursors: opaque text that says where a page ended. Stateless: everything the next page needs is in it.

A cursor is bound to the request it came from and to the seq that was answered, so that all pages of one
answer are of the same state. It is checked against damage, not against forgery: it gives no rights.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any, Final

import msgspec

from kbcore.errors import InvalidQuery

START_OVER: Final = "Ask for the first page again, without a cursor."
_CHECK_BYTES: Final = 6
_DIGEST_HEX: Final = 16


class Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The end of a page: ``last`` is the key of its last row, ``total`` counts the rows of all pages.

    ``basis`` identifies what else the answer depends on, such as the documents that were available or the owners of
    files, and
    ``overlay`` what it has besides the records (``View.overlay``); "" for none.
    """

    digest: str
    seq: int
    total: int
    last: str
    basis: str = ""
    overlay: str = ""


_decoder = msgspec.json.Decoder(Cursor)


def request_mark(request: Any) -> str:
    """Return the digest of a request for its cursors: the same for equal requests, and for no other."""
    return hashlib.sha256(msgspec.json.encode(request, order="deterministic")).hexdigest()[:_DIGEST_HEX]


def encode(cursor: Cursor) -> str:
    """Return the cursor as text of letters, digits, ``-`` and ``_``."""
    body = msgspec.json.encode(cursor)
    return base64.urlsafe_b64encode(_check(body) + body).rstrip(b"=").decode("ascii")


def decode(text: str, digest: str) -> Cursor:
    """Return the cursor in a text; ``digest`` is that of the request which brings it.

    Raises: ``InvalidQuery`` for a text that is no cursor, is damaged, or comes from another request.
    """
    try:
        raw = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        check, body = raw[:_CHECK_BYTES], raw[_CHECK_BYTES:]
        if check != _check(body):
            raise InvalidQuery("The cursor is damaged: it is not as KB gave it.", hint=START_OVER)
        cursor = _decoder.decode(body)
    except (UnicodeEncodeError, binascii.Error, msgspec.DecodeError) as error:
        raise InvalidQuery("The cursor is none that KB gave.", hint=START_OVER) from error
    if cursor.digest != digest:
        hint = "Repeat the request exactly as it was for the first page; only the limit may differ."
        raise InvalidQuery("The cursor belongs to another request.", hint=hint)
    return cursor


def check_overlay(cursor: Cursor, overlay: str) -> None:
    """Refuse to go on where files say something else than for the first page. Raises: ``InvalidQuery``."""
    if cursor.overlay not in {"", overlay}:
        raise InvalidQuery(
            "Files or records have changed since the first page, which had the content of files.", hint=START_OVER
        )


def check_basis(cursor: Cursor | None, basis: str) -> None:
    """Refuse to go on where what an answer depends on differs from that of the first page, of which there is no cursor.

    Raises: ``InvalidQuery``.
    """
    if cursor and cursor.basis != basis:
        message = "The readable documents, or the owners of files, differ from those of the page before."
        raise InvalidQuery(message, hint=START_OVER)


def _check(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()[:_CHECK_BYTES]
