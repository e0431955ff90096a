"""Lines of `kb agents` and `kb uninstall` about a part of a client. Pure."""

from __future__ import annotations

from typing import Final

from kbcore.text.escaping import escape_controls

_BY_HAND: Final = "it was changed by hand"
_REPLACE: Final = "--replace replaces it"
_WOULD: Final = {"written": "would be written", "removed": "would be taken out", "deleted": "would be deleted"}
_DONE: Final = {"written": "written", "removed": "taken out", "deleted": "deleted"}
_WIDTHS: Final = (12, 16)


def part_line(part: str, word: str, path: str, why: str = "") -> str:
    """Return the line of one part: its name, its state or what was done, its file, and why."""
    return fault_line(part, word, f"{path}: {why}" if why else path)


def fault_line(part: str, word: str, message: str) -> str:
    """Return the line of one part about which there is a message, which names the file."""
    name, state = part.ljust(_WIDTHS[0]), word.ljust(_WIDTHS[1])
    return escape_controls(f"  {name} {state} {message}")


def action_word(action: str, state: str, *, write: bool, is_left: bool) -> tuple[str, str]:
    """Return what was done about a part, or would be, in a word, and why not; ``is_left`` as for an installation."""
    if action == "kept":
        return "kept", f"{_BY_HAND}; {_REPLACE if is_left else 'take it out by hand'}"
    if action == "none":
        return ("installed" if state == "installed" else "not there"), ""
    return (_DONE if write else _WOULD)[action], ""
