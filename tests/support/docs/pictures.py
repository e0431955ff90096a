"""``make pictures``: the pictures of ``docs/see.md``, taken of the example project of ``kb demo`` in Chromium.

Run it when pages look different; look at what it made before you commit that.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.support.browser.chromium import chromium
from tests.support.processes.cli import environment, program
from tests.support.processes.explorer import Explorer

DOCS: Final = Path(__file__).parents[3] / "docs"
MAX_BYTES: Final = 150_000
"""The size of a picture."""
_VIEW: Final = {"width": 1000, "height": 580}
_ENTITY: Final = "REQ-001"


def main() -> None:
    """Take the pictures. Raises: ``ValueError`` for one that is too large."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        root, report = Path(folder) / "kb-demo", Path(folder) / "report.html"
        _run("demo", "--into", str(root))
        _run("-C", str(root), "report", "--out", str(report))
        page = browser.new_page(viewport=_VIEW)
        page.goto(f"file://{report}")
        _take(page, "see-overview.png")
        page.goto(f"file://{report}#e/{_ENTITY}")
        _take(page, "see-entity.png")
        with Explorer(root, opens=False) as explorer:
            page.goto(explorer.url)
            page.wait_for_url(f"{explorer.origin}{explorer.base}/")
            page.goto(f"{explorer.origin}{explorer.base}/requirements")
            page.fill("input[type=search]", "parcel")
            page.wait_for_selector("#suggested a")
            _take(page, "see-explorer.png")


def _run(*words: str) -> None:
    subprocess.run([*program(), *words], env=environment(), check=True, stdout=subprocess.DEVNULL)


def _take(page: Any, name: str) -> None:
    path = DOCS / name
    page.screenshot(path=path)
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise ValueError(f"{path} has {size:,} bytes; a picture has at most {MAX_BYTES:,}.")
    sys.stdout.write(f"{path}: {size:,} bytes\n")


if __name__ == "__main__":
    main()
