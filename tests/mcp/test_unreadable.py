"""A line that cannot be read is answered or left out, and never a reason to end."""

from __future__ import annotations

import pytest

from kbmcp.unreadable import refusal_of


@pytest.mark.parametrize(
    "line",
    [
        rb'{"jsonrpc":"2.0","id":3,"method":"tools/c\all"}',
        rb'{"jsonrpc":"2.0","id":"\q","method":"ping"',
        rb'{"id":"\u12","method":"x"}',
        b'{"id":"\xff\\',
    ],
)
def test_escapes_that_mean_nothing_are_no_reason_to_fail(line: bytes) -> None:
    assert refusal_of(line) is None
