"""The faults for which no file may hold a change, and the change without the values that a file need not have. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, get_args

import msgspec

from kbcore import limits
from kbcore.extract.changes import change_secrets, may_hold_secret, parts_of
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change, Claim
from kbcore.secrets import secret_in
from kbcore.share.private_origins import place_of
from kbcore.text.escaping import has_unsafe

Fault = Literal["secret", "unsafe_text", "too_large"]
"""The reason why no file may hold a change. Its writer can do something about it."""

FAULTS: Final[frozenset[str]] = frozenset(get_args(Fault))


def fault_of(change: Change) -> tuple[Fault | Literal[""], str]:
    """Return why no file may hold a change, and where that is in it; "" where one may.

    The values before those that it states do not count: a file need not have them.
    """
    change = without_earlier_values(change)
    data = change_file.encode([change])
    is_plain = not change_file.may_be_unsafe(data.decode())
    for part in parts_of(change) if not is_plain or may_hold_secret(change) else ():
        if fault := fault_in(part, is_plain=is_plain):
            return fault, _origin_at_fault(part) if isinstance(part, Change) else place_of(part)
    return ("too_large", "") if len(data) > limits.MAX_CHANGE_FILE_BYTES else ("", "")


def _origin_at_fault(change: Change) -> str:
    """Return which member of a change without claims is at fault."""
    texts = {name: getattr(change, name) for name in ("message", "actor", "session", "tool")}
    return next((f"the {name}" for name, text in texts.items() if secret_in(text) or has_unsafe(text)), "it")


def fault_in(part: Change | Claim, *, is_plain: bool = False) -> Fault | Literal[""]:
    """Return why no file may hold a part of a change (``parts_of``); "" where one may.

    With ``is_plain`` it is known that all its characters are seen.
    """
    if next(change_secrets(part), None) is not None:
        return "secret"
    return "unsafe_text" if not is_plain and has_unsafe(msgspec.to_builtins(part)) else ""


def is_too_large(change: Change) -> bool:
    """Tell whether no file may be as large as one with a change."""
    return len(change_file.encode([change])) > limits.MAX_CHANGE_FILE_BYTES


def without_earlier_values(change: Change, is_left_out: Callable[[Claim], bool] = lambda _: True) -> Change:
    """Return a change without the values before those that it states, which are for review only."""
    claims = tuple(
        msgspec.structs.replace(one, was=msgspec.UNSET)
        if getattr(one, "was", msgspec.UNSET) is not msgspec.UNSET and is_left_out(one)
        else one
        for one in change.claims
    )
    return msgspec.structs.replace(change, claims=claims)
