"""The request of a client's hook, read from its JSON, and the answer in the client's own form.

Read with what Python has loaded at its start, and its JSON: a client waits for it before each edit of its agent. The
status of a hook is always 0, and a folder without a KB gets no answer.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, NamedTuple

    class Asked(NamedTuple):
        """The words of `kb prime` that answer a hook, and the form of the answer: its client and its event's name."""

        words: list[str]
        client: str
        name: str


_EVENTS = {
    "claude-code": {"session-start": "SessionStart", "pre-compact": "", "pre-edit": "PreToolUse"},
    "codex": {"session-start": "SessionStart", "pre-edit": "PreToolUse"},
    "cursor": {"session-start": "sessionStart", "on-read": "postToolUse"},
    "vscode": {"session-start": "SessionStart", "pre-edit": "PreToolUse"},
    "gemini": {"session-start": "SessionStart", "on-read": "AfterTool"},
    "opencode": {"session-start": "", "pre-compact": "", "on-read": ""},
}
"""By client, the names of the events in the answer, "" where that is a plain text."""
_READERS = frozenset({"Read", "read", "read_file"})
_WRITERS = frozenset(
    {
        "Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch", "editFiles", "create_file", "edit", "create",
        "insert_edit_into_file", "replace_string_in_file", "multi_replace_string_in_file", "edit_notebook_file",
    }
)  # fmt: skip
"""The tools that write files: VS Code runs a hook for every tool."""
_PATHS = ("file_path", "filePath", "path", "notebook_path", "absolute_path", "target_file")
_LISTS = ("files", "replacements", "edits")
_PATCHES = ("command", "input", "patch")
_PATCHED = ("*** Update File: ", "*** Delete File: ", "*** Add File: ")
_MOST_PATHS = 4
_MAX_INPUT_BYTES = 2**22


def is_hook(words: Sequence[str]) -> bool:
    """Return whether words name a client and an event that it has."""
    return len(words) == 2 and words[1] in _EVENTS.get(words[0], {})  # noqa: PLR2004 - the client and the event


def read(words: Sequence[str], env: Mapping[str, str]) -> Asked | None:
    """Return what a hook asks, None where there is nothing to answer; the process is then in the client's folder."""
    from json import loads

    client, event = words
    try:
        said = loads(_input() or b"{}")
        said = said if isinstance(said, dict) else {}
        _go_where_the_agent_is(said)
        if not _may_have_a_kb(env):
            return None
        asked = _words(event, said)
    except (OSError, ValueError, RecursionError):  # what a client says is not to stop it
        return None
    # A namedtuple takes as long to import as all else here.
    return (asked, client, _EVENTS[client][event]) if asked else None  # type: ignore[return-value]


def _words(event: str, said: Mapping[str, Any]) -> list[str]:
    """Return the call that answers an event, none where the event is about no file."""
    if event not in {"pre-edit", "on-read"}:
        return ["prime"]
    tools = _READERS if event == "on-read" else _WRITERS
    tool = said.get("tool_name")
    paths = _paths(said) if isinstance(tool, str) and tool in tools else []
    return ["prime", *(word for path in paths for word in ("--for", path)), "--hook"] if paths else []


def write(asked: Asked, text: str) -> None:
    """Write an answer in the client's form; nothing where there is none."""
    _, client, name = asked
    text = text.strip()
    if not text or sys.stdout is None:
        return
    if name:
        from json import dumps

        specific = {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}
        text = dumps({"additional_context": text} if client == "cursor" else specific)
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except (OSError, ValueError):  # nobody reads it any more
        return


def _input() -> bytes:
    """Return what the client says; nothing where a person has typed the command."""
    stdin = sys.stdin
    if stdin is None or stdin.isatty():
        return b""
    data = stdin.buffer.read(_MAX_INPUT_BYTES + 1)
    return data if len(data) <= _MAX_INPUT_BYTES else b""


def _go_where_the_agent_is(said: Mapping[str, Any]) -> None:
    """Change to the folder of the agent's workspace: some clients run the hooks of a user in another one."""
    roots = said.get("workspace_roots")
    folder = roots[0] if isinstance(roots, list) and roots else said.get("cwd")
    if isinstance(folder, str) and os.path.isabs(folder) and os.path.isdir(folder):  # noqa: PTH112, PTH117 - as there
        os.chdir(folder)


def _may_have_a_kb(env: Mapping[str, str]) -> bool:
    """Return False where it is seen at once that there is no KB; True also where that takes more to find out."""
    from kbcli.invocation.prime_note import place_of

    if any(env.get(name) for name in ("GIT_DIR", "GIT_WORK_TREE")):
        return True
    top, git_dir = place_of(os.getcwd(), env)  # noqa: PTH109 - pathlib takes as long to import as all else here
    if not top:
        return False
    is_linked = git_dir != f"{top}/.git"
    return is_linked or any(os.path.isdir(one) for one in (f"{top}/.kb", f"{git_dir}/kb"))  # noqa: PTH112 - as above


def _paths(said: Mapping[str, Any]) -> list[str]:
    """Return the files that a call of a tool is about, from the current folder; those in it alone."""
    given = said.get("tool_input")
    if not isinstance(given, dict):
        return []
    found = [given.get(key) for key in _PATHS]
    for items in (given.get(key) for key in _LISTS):
        for one in items if isinstance(items, list) else ():
            found += [one.get(key) for key in _PATHS] if isinstance(one, dict) else [one]
    for patch in (given.get(key) for key in _PATCHES):
        found += _patched(patch) if isinstance(patch, str) else []
    texts = (one for one in found if isinstance(one, str) and one and not {"\n", "\0"} & {*one})
    return list(dict.fromkeys(_inside(texts)))[:_MOST_PATHS]


def _patched(patch: str) -> Iterable[str]:
    for line in patch.splitlines():
        for begin in _PATCHED:
            if line.startswith(begin):
                yield line[len(begin) :].strip()


def _inside(paths: Iterable[str]) -> Iterable[str]:
    here = os.path.realpath(os.getcwd())  # noqa: PTH109 - as above
    for path in paths:
        near = os.path.relpath(os.path.realpath(path), here)
        top = near.split("/", 1)[0]
        # What is above the folder may still be in the repository; a path that git has is none.
        if top != ".git":
            yield near
