"""Shows a long answer in the reader's pager, as git does: GIT_PAGER, else PAGER, else less."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from typing import Final

_DEFAULTS: Final = {"LESS": "FRX", "LV": "-c"}
"""The variables that git sets for a pager, where the reader does not: colours pass, and a short text is
shown without waiting for a key."""


def show(text: str, env: Mapping[str, str]) -> bool:
    """Show text in the pager and return True; return False when the reader wants none, or there is none."""
    program = next((env[name] for name in ("GIT_PAGER", "PAGER") if name in env), "less").strip()
    if program in {"", "cat"} or not _exists(program, env):
        return False
    # Through the shell, as git runs it: PAGER may have options and pipes.
    with subprocess.Popen(["sh", "-c", program], stdin=subprocess.PIPE, env={**_DEFAULTS, **env}) as pager:  # noqa: S607 - found on PATH, as git finds it
        pager.communicate(text.encode("utf-8", "backslashreplace"))  # a reader who has seen enough may break the pipe
    return True


def _exists(program: str, env: Mapping[str, str]) -> bool:
    try:
        words = shlex.split(program)
    except ValueError:
        return True
    return bool(words) and ("=" in words[0] or shutil.which(words[0], path=env.get("PATH")) is not None)
