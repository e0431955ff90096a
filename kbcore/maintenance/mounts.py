"""File systems of paths, as Linux lists them; whether locks on them can be trusted.

Only a warning is made of it: locks are tried in any case, and a file system that has none refuses them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

MOUNTS: Final = Path("/proc/mounts")
NETWORK: Final = frozenset(
    {"9p", "afs", "ceph", "cifs", "coda", "fuse.glusterfs", "fuse.sshfs", "glusterfs", "lustre", "ncpfs", "nfs"}
    | {"nfs4", "orangefs", "smb3", "smbfs", "virtiofs", "beegfs", "drvfs", "fakeowner", "fuse.gcsfuse", "fuse.juicefs"}
    | {"fuse.rclone", "fuse.s3fs", "fuse.vmhgfs-fuse", "gpfs", "prl_fs", "vboxsf", "vmhgfs"}
)
"""File systems of other machines, of clouds, and of what a virtual machine shares with its host."""
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


def network_mount(path: Path, mounts: Path = MOUNTS) -> tuple[str, str] | None:
    """Return mount point and type of the file system that others reach as well; None when the path is on a local one.

    Raises: ``OSError`` where there is no such list, as on macOS.
    """
    found = ("", "")
    inside = Path(os.path.realpath(path))
    for line in mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        words = line.split(" ")
        point = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), words[1]) if len(words) > 2 else ""  # noqa: PLR2004
        # Of two mounts on one place, the later one hides the earlier.
        if point and inside.is_relative_to(point) and len(point) >= len(found[0]):
            found = (point, words[2])
    return found if found[1] in NETWORK else None
