"""Shows a long answer in the reader's pager, as git does: GIT_PAGER, else PAGER, else less."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from collections.abc import Mapping
from typing import Final

_DEFAULTS: Final = 'LESS="${LESS-FRX}" LV="${LV--c}"; export LESS LV; '
"""What git sets for a pager: colours pass, and a short text is shown without waiting for a key."""


def show(text: str, env: Mapping[str, str]) -> bool:
    """Show text in the pager and return True; return False when the reader wants none, or there is none."""
    program = next((env[name] for name in ("GIT_PAGER", "PAGER") if name in env), "less").strip()
    if program in {"", "cat"} or not _exists(program):
        return False
    # A reader who has seen enough breaks the pipe.
    # By way of the shell, as git runs it: PAGER may hold options and pipes.
    with contextlib.suppress(BrokenPipeError), os.popen(_DEFAULTS + program, "w") as pipe:  # noqa: S605 - the user's own
        pipe.write(text)
    return True


def _exists(program: str) -> bool:
    try:
        words = shlex.split(program)
    except ValueError:
        return True
    return bool(words) and ("=" in words[0] or shutil.which(words[0]) is not None)
