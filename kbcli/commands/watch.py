"""``kb watch``: keep the store in step with the files, until interrupted."""

from __future__ import annotations

import contextlib
import shutil
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from kbcli.messages.watch_output import MarkedLine, WatchMessages
    from kbcli.terminal.output import Output
    from kbcore.store.workspace import Workspace
    from kbcore.sync.answer import Located, SyncAnswer
    from kbcore.watch.events import Checked, Event

_KEPT_LINES: Final = 200
_CLEAR: Final = "\x1b[H\x1b[J"


def run(
    ctx: typer.Context,
    *,
    check: Annotated[bool, typer.Option("--check", help="Keep all violations on screen.")] = False,
) -> int:
    """Keep the store in step with the files, until interrupted.

    Records changes as they are saved, follows checkouts of git, and says which violations are new or fixed. With
    --json, every line is one JSON object. One watcher is enough for a worktree; a second one says so and ends.
    """
    from kbcli.invocation import exits
    from kbcli.invocation.signals import Deadline
    from kbcli.messages import watch_output
    from kbcore.process.interrupting import Stopped
    from kbcore.watch.watcher import Watcher

    session, ending = session_of(ctx), Deadline()
    messages = watch_output.WatchMessages(lambda answer: _not_accepted(session.workspace, answer))
    screen = _Screen(session.output, messages) if check and session.output.is_terminal else None
    notify = ending.watching(screen or _EventLines(session.output, messages, lists=check))
    draw = ending.watching(screen.draw_when_due) if screen else None

    def rest() -> None:
        if draw:
            draw()
        session.publish_views()

    watcher = Watcher(session.workspace, session.author, notify, rest=rest)
    with (
        ending.by_signals(watcher.stop),
        screen.following_its_size() if screen else contextlib.nullcontext(),
        contextlib.suppress(Stopped),
    ):
        watcher.run()
    return exits.DONE


def _not_accepted(workspace: Workspace, answer: SyncAnswer) -> Sequence[Located]:
    """Return the problems of files that a project does not accept, with the settings as they are now.

    All of them where the settings or the store cannot be read, as while a settings file is being saved.
    """
    from kbcore.checks import known_to
    from kbcore.errors import KBError
    from kbcore.sync.faults import about, not_accepted

    if not answer.problems:
        return ()
    try:
        known, _ = known_to(workspace.renewed(), answer.outcome.branch, about(answer.problems, ()))
    except KBError:  # the next sync says what is wrong, and waits for it
        return answer.problems
    return not_accepted(answer.problems, known)


class _EventLines:
    """Says what happens line by line; with ``lists`` all violations at the beginning, too."""

    def __init__(self, output: Output, messages: WatchMessages, *, lists: bool) -> None:
        self._output = output
        self._lists = lists
        self._messages = messages

    def __call__(self, event: Event) -> None:
        from kbcli.messages import watch_output
        from kbcli.messages.violations import violation_line
        from kbcore.text.escaping import json_text
        from kbcore.watch.events import Checked

        if self._output.is_json:
            shown = watch_output.as_json(event)
            if self._lists and isinstance(event, Checked):
                shown["standing"] = [one.as_json() for one in event.present]
            self._output.data(json_text(shown, None) + "\n")
        else:
            for line in self._messages.lines_of(event):
                self._output.say(_styled(self._output, line))
            if self._lists and isinstance(event, Checked) and event.is_first:
                for one in event.present:
                    self._output.say(f"  {one.severity} {violation_line(one)}")
        self._output.flush()


class _Screen:
    """Shows the current violations on the whole terminal, and the last events below them."""

    def __init__(self, output: Output, messages: WatchMessages) -> None:
        self._output = output
        self._messages = messages
        self._last = deque[str](maxlen=_KEPT_LINES)
        self._present: Checked | None = None
        self._is_due = False

    def __call__(self, event: Event) -> None:
        from kbcore.watch.events import Checked

        if isinstance(event, Checked):
            self._present = event
        self._last += [f"{line.mark}{line.text}" for line in self._messages.lines_of(event)]
        self._draw()

    @contextlib.contextmanager
    def following_its_size(self) -> Iterator[None]:
        """Have it redrawn when its size changes: not by the signal, which may arrive at any moment."""

        def note(_: int, __: Any) -> None:
            self._is_due = True

        before = signal.signal(signal.SIGWINCH, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGWINCH, before)

    def draw_when_due(self) -> None:
        """Redraw it if its size has changed since."""
        if self._is_due:
            self._is_due = False
            self._draw()

    def _draw(self) -> None:
        from kbcli.messages import watch_output

        size = shutil.get_terminal_size()
        present = self._present.present if self._present else ()
        lines = watch_output.screen(list(self._last), present, size.columns, size.lines)
        self._output.data(_CLEAR + "\n".join(lines) + "\n")
        self._output.flush()


def _styled(output: Output, line: MarkedLine) -> str:
    return f"{output.styled(line.mark, line.style)}{' ' * bool(line.mark.strip('+- '))}{line.text}"
