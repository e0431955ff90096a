"""The modules that a write passes through before the core: few, and named here."""

from __future__ import annotations

import threading
from pathlib import Path
from types import FrameType
from typing import Any

import kbmcp
from tests.mcp.agents import agent

PATH = ["protocol.stdio", "protocol.json_rpc", "serving", "tools.run_call", "tools.write", "tools.service"]
AROUND = ["protocol.call_queue", "protocol.worker_threads", "tools.call", "tools.elicitation", "tools.notices"]
"""They say whose turn it is, in which thread, what the call has open, who could be asked, and what else is said."""
_HERE = Path(kbmcp.__file__).parent
_CORE = "kbcore/checks/introduced/written.py"


def test_a_write_passes_six_modules_before_the_core(project):
    entered: dict[str, None] = {}
    is_on, has_arrived = threading.Event(), threading.Event()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not is_on.is_set() or has_arrived.is_set():
            return
        path = Path(frame.f_code.co_filename)
        if path.as_posix().endswith(_CORE):
            has_arrived.set()
        elif path.is_relative_to(_HERE):
            entered[".".join(path.relative_to(_HERE).with_suffix("").parts)] = None

    before = threading.getprofile()
    threading.setprofile(note)  # the threads of the server begin below
    try:
        with agent(project.root) as tools:
            tools.call("kb_upsert", entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
            is_on.set()
            tools.call("kb_upsert", entities=[{"id": "B", "type": "req", "title": "B", "status": "open"}])
    finally:
        threading.setprofile(before)
    assert has_arrived.is_set()
    assert sorted(entered) == sorted([*PATH, *AROUND])
