"""The usual cause that the bytes of a bad line or file point to. Pure.

Invariant: a guess never decides anything; it only goes into a hint.
"""

from __future__ import annotations

import re
from typing import Final

_MERGE_MARKER: Final = re.compile(rb"(<{7}|={7}|>{7}|\|{7})([ \r\n]|$)")
_UTF8_BOM: Final = b"\xef\xbb\xbf"
_UTF16_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")


def diagnose_bytes(line: bytes) -> str:
    """Return one sentence on what usually leaves a line like this; newline included, if it has one."""
    body = line.removesuffix(b"\n")
    for is_it, sentence in (
        (not body, "There is an empty line: an editor or a script added a newline."),
        (
            body.startswith(_UTF8_BOM),
            "There is a byte-order mark: an editor saved the file as UTF-8 with BOM.",
        ),
        (
            body.startswith(_UTF16_BOMS),
            "The file looks like UTF-16: an editor or a shell redirect saved it again.",
        ),
        (
            _MERGE_MARKER.match(body),
            "There is a merge marker: git merged the file; keep the stores out of git.",
        ),
        (b"\0" in body, "There are zero bytes: the file system lost this part, as after a power failure."),
        (
            body.endswith(b"\r"),
            "The line ends in CRLF: git's autocrlf, an editor or a sync tool converted the line ends.",
        ),
        (
            _is_not_utf8(body),
            "The bytes are not UTF-8: a faulty disk, or a tool that wrote in another encoding.",
        ),
        (
            not line.endswith(b"\n"),
            "The line has no newline at its end: a write was cut off, or an editor removed it.",
        ),
        (
            body[:1] != b"{",
            "The line does not begin like a record: something else was written into the file.",
        ),
    ):
        if is_it:
            return sentence
    return "The file was edited by hand or by a tool, or the disk returned other bytes than were written."


def _is_not_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False
