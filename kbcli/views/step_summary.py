"""The page of a job that GitHub puts together from the file it names; nothing is written where it names none."""

from __future__ import annotations

import os
from typing import Final

from kbcli.invocation.context import Session
from kbcore.text.escaping import escape_controls

VARIABLE: Final = "GITHUB_STEP_SUMMARY"


def append(session: Session, text: str) -> None:
    """Add Markdown to the job's page. Where that fails there is a warning: the report itself is not less for it."""
    path = session.env.get(VARIABLE)
    if not path:
        return
    try:
        with open(os.path.join(session.start, path), "a", encoding="utf-8", errors="backslashreplace") as file:  # noqa: PTH118, PTH123 - the file is what its name says, whatever bytes that has
            file.write(text)
    except OSError as error:
        session.output.warn(
            escape_controls(f"the summary for {VARIABLE} cannot be written to {path}: {error.strerror}")
        )
