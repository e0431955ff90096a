"""A view apart: a copy of a view as of a seq, for looking at what was or what would be. It is never published.

Nothing that is done to the copy touches what it was copied from, and no file of it is left behind.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from kbcore import interrupting
from kbcore.errors import StorageError, ViewDamaged
from kbcore.model.state import Changes
from kbcore.view import base
from kbcore.view.base_state import set_base_state
from kbcore.view.database import Room, scratch_folder
from kbcore.view.history import check_reach
from kbcore.view.view import View


@contextlib.contextmanager
def scratch_copy(view: View, seq: int, *, beneath: tuple[int, Changes] | None = None) -> Iterator[View]:
    """Return a view of its own that stands where this one stood at a seq, for the length of the block.

    ``beneath`` leads back from the state at an earlier seq to one that is laid beneath its history.

    Raises: ``HistoryPruned``; ``StorageError`` when the copy cannot be written.
    """
    check_reach(view, seq)
    with scratch_folder() as folder:
        path = Path(folder, "apart.duckdb")
        try:
            with interrupting.maintenance():
                view.write_past(str(path), seq)
            if beneath is not None:
                set_base_state(str(path), Room(folder), *beneath)
        except ViewDamaged as error:
            raise StorageError(
                f"A copy of the view cannot be written to the temporary folder: {error}",
                hint="Free some space there, or name another folder with TMPDIR.",
            ) from error
        with base.open_own(str(path), Room(folder)) as copy:
            yield copy
