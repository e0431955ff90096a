"""Folders that cannot be listed."""

from __future__ import annotations

import errno
import os

import pytest


def refuse_listing(patch: pytest.MonkeyPatch, ending: str) -> None:
    """Refuse to list folders whose path ends like this. Permissions would do, if root did not pass them by."""
    scandir = os.scandir

    def refusing(path: os.PathLike[str] | int) -> object:
        if not isinstance(path, int) and os.fspath(path).endswith(ending):
            raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
        return scandir(path)

    patch.setattr(os, "scandir", refusing)
