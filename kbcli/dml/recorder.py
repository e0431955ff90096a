"""Records a run as one event of the branch: written when it begins, and completed when it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kbcore.dml import recording
from kbcore.kip.run import KipContext

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.dml.events import Outcome
    from kbcore.dml.recording import RunName
    from kbcore.dml.run import Run


class Recorder:
    """The event of one run. A run that is killed leaves its beginning."""

    def __init__(self, session: Session, run: RunName) -> None:
        """Open the branch. Raises: as opening a branch to write."""
        opened = session.open()
        self._session = session
        self._run = run
        self._clock = session.machine.clock
        self._around = KipContext(opened.workspace, opened.branch, recording.author_of(run), opened.choice.follows_head)
        self._began_s = self._clock.monotonic_s()

    def begin(self, code: str, params: Mapping[str, Any], model: str) -> None:
        """Record that a program is run. Raises: ``KBError``."""
        at = self._clock.now()
        recording.record(self._around, self._run, recording.begun(self._run, code, params, model, at))
        self._session.signals.renew()  # a signal ends the run, although something was written

    def end(self, run: Run, outcome: Outcome) -> None:
        """Record how it ended. Raises: ``KBError``."""
        duration_s = self._clock.monotonic_s() - self._began_s
        recording.record(self._around, self._run, recording.ended(run, outcome, self._clock.now(), duration_s))

    def say_how_to_revert(self) -> None:
        """Say under which session the run is recorded."""
        from kbcore.errors.remedies import for_shell, kb

        undo = for_shell(self._session.located(kb("revert", "--session", self._run.id)))
        self._session.output.note(f"note: The run is recorded as {self._run.id}; {undo} takes back all that it wrote.")
