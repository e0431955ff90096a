"""What of the options of a command contradicts another, or is out of bounds."""

from __future__ import annotations

from collections.abc import Collection

from kbcore.errors import InvalidQuery


def check_bounds(option: str, value: int, most: int, default: int) -> None:
    """Refuse a number that is not from 1 to ``most``. Raises: ``InvalidQuery``."""
    if not 1 <= value <= most:
        raise InvalidQuery(f"{option} must be from 1 to {most}, not {value}.", hint=f"Leave it out for {default}.")


def check_format(format_: str | None, own: Collection[str | None], *, is_json: bool) -> None:
    """Refuse a format beside ``--json``, unless it is one of these ``own``. Raises: ``InvalidQuery``."""
    if is_json and format_ not in own:
        raise InvalidQuery(f"--json and --format {format_} contradict each other.", hint="Give one of the two.")
