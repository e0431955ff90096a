"""The policy of a run: which tools its program may use. Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal

import msgspec


class Policy(msgspec.Struct, frozen=True):
    """A list of names with wildcards (`read_*`): those that may be used, or those that may not.

    What ``denied`` names may not be used either way. Names are compared with upper and lower case.
    """

    mode: Literal["whitelist", "blacklist"]
    tools: tuple[str, ...] | list[str]
    denied: tuple[str, ...] | list[str] = ()

    def refusal(self, name: str) -> str:
        """Return why a tool may not be used, "" where it may."""
        for pattern in self.denied:
            if fnmatchcase(name, pattern):
                return f"the policy denies `{pattern}`"
        named = next((pattern for pattern in self.tools if fnmatchcase(name, pattern)), None)
        if self.mode == "whitelist":
            return "" if named else "it is not on the list of allowed tools"
        return f"the policy denies `{named}`" if named else ""
