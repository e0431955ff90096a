"""The entry point of ``kb``: a fast path for git hooks, Typer for the rest, and one boundary for every failure."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # `typing` and `pathlib` take as long to import as a hook that has nothing to do
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

    from kbcli.invocation.context import Session
    from kbcli.invocation.signals import Signals
    from kbcore.errors import ResourceLimit

_FEW_OPTIONS: Final = 3
"""The number of options of a command that are named where none is similar to the typed one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the status to exit with; ``arguments`` are those after the program's name."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["hook"]:
        from kbcli.invocation import git_hook

        if git_hook.is_event(words[1:]):
            return git_hook.run(words[1:], os.environ)
    if words[:2] == ["agents", "hook"]:
        from kbcli.invocation import agent_hook

        if agent_hook.is_hook(words[2:]):
            _answer_agent_hook(words[2:])
        if not {"--help", "-h"} & {*words}:
            return 0  # also for an event that another version knows: some clients take 2 for a refusal
    is_agent_hook = words[:1] == ["prime"] and "--hook" in words
    if words[:1] == ["prime"] and _said_again(words):
        return 0
    if arguments is None:
        _end_silently_at_sigint()
    from kbcore import gc_pause

    gc_pause.raise_threshold()
    status = _guarded(words)
    return (
        0 if is_agent_hook else status
    )  # a client takes another status for a refusal of what its agent is about to do


def _said_again(words: list[str]) -> bool:
    """Write the answer of `kb prime` that is kept for these words; returns False where there is none that holds."""
    from kbcli.invocation import prime_note

    text = prime_note.kept(words, os.environ)
    if text is None or sys.stdout is None:
        return False
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, ValueError):  # the whole run reports why it cannot be written
        return False
    return True


def _answer_agent_hook(words: list[str]) -> None:
    """Answer the hook of a client by `kb prime`: with what is kept, else by a whole run."""
    from kbcli.invocation import agent_hook, prime_note

    asked = agent_hook.read(words, os.environ)
    if asked is None:
        return
    text = prime_note.kept(asked[0], os.environ)
    if text is None:
        import contextlib
        import io

        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            status = main(asked[0])
        text = "" if status else said.getvalue()
    agent_hook.write(asked, text)


def _end_silently_at_sigint() -> None:
    """Let SIGINT end this process as the system does it, before a command begins and after it has ended.

    Python would raise ``KeyboardInterrupt`` in the middle of an import, and print where. ``Signals`` does better while
    a command runs. A process that was started to ignore the signal still ignores it.
    """
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _guarded(words: list[str]) -> int:
    from kbcli.invocation import exits
    from kbcli.invocation.signals import Signals
    from kbcore.process import system_limits

    signals = Signals()
    has_begun = False
    try:
        system_limits.prepare()
        with signals.obeyed():
            has_begun = True
            status = _finished(words, signals)
    except KeyboardInterrupt:
        return signals.status
    except Exception as error:
        known = system_limits.exhausted(error, may_be_written=has_begun and not signals.work.is_known_unwritten)
        if known is None:
            raise
        return _refused(words, known)
    # Typer has one status for every interruption.
    return signals.status if status == exits.INTERRUPTED else status


def _refused(words: list[str], error: ResourceLimit) -> int:
    """Report what the system refused this process before or after the command itself."""
    from kbcli.invocation import exits
    from kbcli.terminal.output import Output, OutputClosed, OutputFailed

    output = Output(os.environ)
    output.is_json = _wants_json(words)
    try:
        status = exits.show(output, error)
        output.flush()
    except OutputClosed:
        _silence_stdout()
        return exits.READER_GONE
    except OutputFailed:
        _silence_stdout()
        return exits.OUTPUT_FAILED
    return status


def _finished(words: list[str], signals: Signals) -> int:
    from kbcli.invocation import exits
    from kbcli.invocation.context import Session
    from kbcli.terminal.output import Output, OutputClosed, OutputFailed

    session = Session(os.environ, Output(os.environ), signals)
    session.words = words
    output = session.output
    try:
        with output.progress():
            status = _ended(session, words)
        session.show_notices()
        output.flush()
        session.publish_views()
        session.show_notices()
    except OutputClosed:
        _silence_stdout()
        return exits.READER_GONE
    except OutputFailed as error:
        _silence_stdout()
        output.error(f"cannot write to standard output: {error}")
        return exits.OUTPUT_FAILED
    finally:
        session.close()
    return status


def _ended(session: Session, words: list[str]) -> int:
    """Run the command; every failure but that of the output becomes a status."""
    import typer

    from kbcli.invocation import exits
    from kbcli.terminal.output import OutputClosed, OutputFailed
    from kbcore import clock
    from kbcore.errors import KBError
    from kbcore.process.interrupting import Stopped
    from kbcore.process.system_limits import exhausted

    output = session.output
    try:
        clock.check()
        return _run(session, words)
    except KBError as error:
        output.forget()
        output.is_json = output.is_json or _wants_json(words)  # it may have failed before the options were read
        return session.show_error(error)
    except typer.TyperException as error:
        output.forget()
        output.is_json = output.is_json or _wants_json(words)
        path = _path(error, words)
        shown = "lists the commands and options" if path == "kb" else "shows what it takes"
        return exits.show_usage(output, _said(error), f"`{path} --help` {shown}.")
    except (KeyboardInterrupt, Stopped, typer.Abort):
        output.forget()
        if session.signals.work.has_written:
            output.warn("Interrupted. What it had written before is stored: `kb log` shows it.")
        elif session.writes and session.signals.work.has_begun:
            output.warn("Interrupted. Nothing was written.")
        return session.signals.status
    except (OutputClosed, OutputFailed):
        raise
    except Exception as error:  # noqa: BLE001 - the one boundary: a bug is reported, and users see no traceback
        output.forget()
        known = exhausted(error, may_be_written=not session.signals.work.is_known_unwritten)
        if known:
            return session.show_error(known)
        from kbcli.invocation.bug_report import show_bug

        return show_bug(output, error, words, session.cache())


def _run(session: Session, words: list[str]) -> int:
    from kbcli.invocation import exits
    from kbcli.invocation.command_tree import root

    group = root()
    if not words and "_KB_COMPLETE" not in session.env:  # a shell that completes gives no words
        with group.make_context("kb", ["--no-color"], obj=session) as ctx:
            session.output.error_detail(group.get_help(ctx))
        return exits.USAGE
    try:
        answer = group.main(words, prog_name="kb", standalone_mode=False, obj=session)
    except SystemExit as end:  # completion ends so
        return end.code if isinstance(end.code, int) else exits.DONE
    return answer if isinstance(answer, int) else exits.DONE


def _said(error: Any) -> str:
    """Return what is wrong with the command line, and what to write instead where that is known."""
    import typer

    ctx, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    if isinstance(error, typer.BadParameter):
        if parameter is None:
            return str(error.message)
        is_missing = hasattr(error, "param_type")
        return _missing(parameter, ctx) if is_missing else f"{_name_of(parameter)}: {error.message}"
    if not hasattr(error, "option_name") or ctx is None:
        return str(error.format_message())
    return _no_option(error, ctx) if hasattr(error, "possibilities") else _wrong_use(error.option_name, ctx)


def _name_of(parameter: Any) -> str:
    """Return an option as it is typed, or what the help calls an argument."""
    is_option = parameter.param_type_name == "option"
    return str(parameter.opts[0] if is_option else parameter.metavar or parameter.name.upper())


def _missing(parameter: Any, ctx: Any) -> str:
    """Say that a parameter is missing, with the command as it is to be typed."""
    from kbcli.invocation.command_tree import arguments_of

    words = [ctx.command_path, *arguments_of(ctx.command, ctx)]
    if parameter.param_type_name == "option":
        words += [_name_of(parameter), str(parameter.metavar or "VALUE")]
    return f"`{ctx.command_path}` lacks {_name_of(parameter)}. Write `{' '.join(words)}`."


def _wrong_use(option: str, ctx: Any) -> str:
    """Say that an option lacks its value, or takes none."""
    parameter = next((one for one in ctx.command.get_params(ctx) if option in one.opts), None)
    if parameter is not None and parameter.is_flag:
        return f"{option} takes no value. Write `{option}` alone."
    return f"{option} lacks its value. Write `{option} {getattr(parameter, 'metavar', None) or 'VALUE'}`."


def _no_option(error: Any, ctx: Any) -> str:
    """Say that a command has no such option, and which one may be meant."""
    name = error.option_name
    from kbcore.text.escaping import in_quotes

    parameters = ctx.command.get_params(ctx)
    arguments = [
        word for one in parameters if one.param_type_name == "argument" for word in str(one.metavar).split("|")
    ]
    places = {f"--{word.lower()}": word for word in arguments}
    if name in places:
        hint = f"Give {places[name]} without it: `{ctx.command_path} {places[name]}`."
    else:
        hint = _nearest_options(name, parameters)
    return f"`{ctx.command_path}` has no option {in_quotes(name)}. {hint}".rstrip()


def _nearest_options(name: str, parameters: Sequence[Any]) -> str:
    """Return the options that are most similar to a name; if none is, those of the command itself, if they are few."""
    from kbcli.invocation.options import is_global
    from kbcore.text.suggest import is_it, near_ones
    from kbcore.text.wording import some_of

    def named(wanted: Sequence[Any]) -> list[str]:
        return [one.removeprefix("--") for parameter in wanted for one in parameter.opts if one[:2] == "--"]

    # The dashes, which all of them have, do not count for similarity.
    near = near_ones(name.removeprefix("--"), named(parameters))
    if near:
        return is_it([f"--{one}" for one in near])
    own = named([one for one in parameters if not is_global(one) and one.name != "help"])
    return f"It has {some_of([f'--{one}' for one in own], _FEW_OPTIONS)}." if 0 < len(own) <= _FEW_OPTIONS else ""


def _path(error: Exception, words: list[str]) -> str:
    """Return the command that a usage error is about, as it was typed."""
    from kbcli.invocation.command_tree import COMMANDS

    ctx: Any = getattr(error, "ctx", None)
    if ctx is not None:
        return str(ctx.command_path)
    return next((f"kb {word}" for word in words if word in COMMANDS), "kb")


def _wants_json(words: list[str]) -> bool:
    """Return whether ``--json`` is among the options, also where the command line cannot be parsed."""
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options


def _silence_stdout() -> None:
    """Let nothing more be written: the interpreter flushes standard output at its end."""
    if sys.stdout is not None:
        from pathlib import Path

        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open until the end


if __name__ == "__main__":
    sys.exit(main())
