"""The time from the save of a document to its record's sync under `kb watch`, against a plain durable write.

Taken from the times that the file system keeps: that of the document, and that of the head which names the record. The
head is written after the record was synced, and before the head's own name is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from benchmarks import generate
from benchmarks.bare_commit import BareCommit
from benchmarks.edited import Edited
from benchmarks.measure import ProcessFailed, Sample, call, ended, in_turns
from benchmarks.place import Place
from benchmarks.table import FLAT, Row

_START_S = 60.0
_PATIENCE_S = 10.0
_POLL_S = 0.005
_PAUSE_S = 0.4
"""After this long the watcher has checked what was saved, and is at rest."""


def run(place: Place) -> list[Row]:
    """Measure save after save, with the watcher at rest between them."""
    return [_row(place, count) for count in place.sizes.watched]


def _row(place: Place, count: int) -> Row:
    root = place.synced_documents(count)
    with Edited(root, generate.document_path(count)) as document:
        watcher = _Watcher(place, root)
        try:
            watcher.wait_for(b'"checked"')
            bare = BareCommit(root, place.directory / "bare-watch")
            kb, floor = in_turns(lambda: _saved(document), lambda: call(bare), rounds=place.sizes.saves)
            bare.close()
        finally:
            peak_bytes = watcher.end()
    place.settle(root)
    return Row(
        name="save to record, watched",
        against="bare durable write",
        count=count,
        unit="documents",
        kb=kb,
        floor=floor,
        peak_bytes=peak_bytes,
        at_most_s=0.15,
        grows_at_most=FLAT,
    )


def _saved(document: Edited) -> Sample:
    """Save the document and return how long it took until the head said so."""
    before = document.seq()
    document.edit()
    saved_ns = document.path.stat().st_mtime_ns
    end_s = time.monotonic() + _PATIENCE_S
    while document.seq() == before:
        if time.monotonic() > end_s:
            raise ProcessFailed(f"no process noticed that {document.name} was saved")
        time.sleep(_POLL_S)
    taken_ns = document.head.stat().st_mtime_ns - saved_ns
    time.sleep(_PAUSE_S)
    return Sample(taken_ns / 1e9)


class _Watcher:
    """A running ``kb watch``, and what it says."""

    def __init__(self, place: Place, root: Path) -> None:
        self._said = (place.directory / "watch.jsonl").open("w+b")
        self._start = time.perf_counter()
        self._child = subprocess.Popen(
            place.kb_words("watch", "--json"),
            cwd=root,
            env=place.env,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
        )

    def wait_for(self, text: bytes) -> None:
        """Wait until the watcher has said this.

        Raises: ``ProcessFailed`` when it does not.
        """
        end_s = time.monotonic() + _START_S
        while text not in os.pread(self._said.fileno(), self._size(), 0):
            if self._child.poll() is not None or time.monotonic() > end_s:
                raise ProcessFailed(f"kb watch did not say {text.decode()}")
            time.sleep(_POLL_S)

    def end(self) -> int | None:
        """End the watcher in good order and return its peak of memory, unless it has ended by itself."""
        with self._said:
            if self._child.returncode is not None:
                return None
            self._child.send_signal(signal.SIGINT)
            sample, status = ended(self._child, self._start)
        if status:
            raise ProcessFailed(f"kb watch ended with status {status}")
        return sample.peak_bytes

    def _size(self) -> int:
        return os.fstat(self._said.fileno()).st_size
