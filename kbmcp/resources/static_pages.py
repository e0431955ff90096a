"""Resources whose text does not depend on what is stored."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata

import msgspec


class ResourcePage(msgspec.Struct, frozen=True):
    """A text, or what makes it: the URI of the resource, what it is called in lists, and its toolset."""

    uri: str
    title: str
    description: str
    text: str | Callable[[], str]
    toolset: str = "kip"
    mime_type: str = "text/markdown"

    def read(self) -> str:
        """Return the text."""
        return self.text if isinstance(self.text, str) else self.text()


def license_text() -> str:
    """Return the license of KB, as its installed package has it, and what it says nothing of."""
    text = metadata.distribution("kb-memory").read_text("licenses/LICENSE") or "See LICENSE in KB's repository.\n"
    return (
        "KB is licensed under the Apache License 2.0, below. The engines are no part of it: SWI-Prolog is licensed "
        f"under the Simplified BSD License, swipl-wasm under the BSD-2-Clause License.\n\n{text}"
    )
