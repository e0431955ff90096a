"""Starts the MCP server: reads its options, takes over the standard streams, and only then imports the rest.

Nothing but the standard library is imported before the streams are taken, so that nothing a dependency prints can
reach the client.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

SPELLINGS = ("underscore", "dotted")
TOOLSETS = ("core", "kip", "logic")
"""The groups of tools there are; ``all`` means every one of them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Serve MCP on standard input and output until the client closes it, and end the process.

    Returns the exit status only where the server cannot begin, or fails.
    """
    arguments = _parse(sys.argv[1:] if argv is None else argv, os.environ)
    for number in (signal.SIGINT, signal.SIGTERM):  # until the loop runs, ending at once is clean
        signal.signal(number, signal.SIG_DFL)
    try:
        reads_fd, writes_fd = claim_standard_streams()
    except OSError as error:
        sys.stderr.write(f"kb-mcp: standard input or output cannot be used: {error.strerror}\n")
        return 2

    from kbcore import clock
    from kbcore.errors import ClockUnusable
    from kbcore.process import system_limits

    try:
        system_limits.prepare()
        clock.check()
        from kbmcp import serving

        options = serving.ServerOptions(
            start=arguments.start,
            branch=arguments.branch,
            is_dotted=arguments.tool_names == "dotted",
            is_read_only=arguments.read_only,
            env=dict(os.environ),
            toolsets=arguments.toolsets,
            libraries=tuple(arguments.kb_libraries),
            roots=tuple(arguments.kb_roots),
        )
        serving.serve(options, reads_fd, writes_fd)
    except Exception as error:
        known = error if isinstance(error, ClockUnusable) else system_limits.exhausted(error, may_be_written=True)
        if known is None:
            raise
        sys.stderr.write(f"kb-mcp: error: {known.message}\nkb-mcp: hint: {known.hint}\n")
        return known.exit_status


def claim_standard_streams() -> tuple[int, int]:
    """Return descriptors for the client's messages and for the replies, which no other code uses.

    Descriptor 0 then reads nothing and descriptor 1 is standard error, for this process and all that it starts. What
    waits in the buffer of ``sys.stdout`` is not flushed before: it was printed by other code.
    """
    reads_fd, writes_fd = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return reads_fd, writes_fd


def _parse(argv: Sequence[str], env: Mapping[str, str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="kb-mcp",
        description="Serve the knowledge base of a git repository over MCP, on standard input and output.",
        allow_abbrev=False,
    )
    parser.add_argument("-C", dest="start", metavar="PATH", type=Path, default=Path(), help="run as if started there")
    parser.add_argument("--branch", metavar="NAME", help="serve this branch, whatever is checked out")
    parser.add_argument(
        "--tool-names", metavar="STYLE", help="list tools as kb_query (underscore) or kb.query (dotted)"
    )
    parser.add_argument("--toolsets", metavar="SETS", default="core", help=f"{','.join(TOOLSETS)} or all")
    parser.add_argument("--read-only", action="store_true", help="offer only what reads")
    parser.add_argument(
        "-l",
        "--kb-libraries",
        metavar="NAMES",
        action="append",
        default=[],
        help="libraries of Prolog to load, with commas",
    )
    parser.add_argument(
        "--kb-roots", metavar="PATHS", action="append", default=[], help="folders whose Prolog files may be imported"
    )
    arguments = parser.parse_args(argv)
    arguments.branch = arguments.branch or env.get("KB_BRANCH") or None
    try:
        arguments.start = Path(os.path.realpath(arguments.start))
    except FileNotFoundError:
        parser.error("the folder that the server is started in no longer exists; name one by its full path with -C")
    arguments.kb_roots = [
        os.pathsep.join(str(Path.cwd() / Path(part).expanduser()) for part in text.split(os.pathsep) if part)
        for text in arguments.kb_roots
    ]
    arguments.tool_names = arguments.tool_names or env.get("KB_TOOL_NAMES") or SPELLINGS[0]
    if arguments.tool_names not in SPELLINGS:
        parser.error(f"there are no tool names {arguments.tool_names!r}; choose from {', '.join(SPELLINGS)}")
    try:
        arguments.toolsets = toolsets_of(arguments.toolsets)
    except ValueError as error:
        parser.error(str(error))
    return arguments


def toolsets_of(words: str) -> tuple[str, ...]:
    """Return the toolsets that are named, with commas between them. Raises: ``ValueError`` for another name."""
    wanted = [name.strip() for name in words.split(",")]
    for name in wanted:
        if name not in {*TOOLSETS, "all"}:
            raise ValueError(f"there is no toolset {name!r}; choose from {', '.join((*TOOLSETS, 'all'))}")
    return tuple(name for name in TOOLSETS if {name, "all"} & {*wanted})


if __name__ == "__main__":
    sys.exit(main())
