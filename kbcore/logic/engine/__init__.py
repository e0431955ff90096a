"""Prolog engines: child processes that hold a cache of the workspace and answer queries.

Owns: how an engine is found, started, asked, limited and killed, the Prolog files that it runs, and the protocol with
them. Offers ``available`` and ``EngineProcess``. Never: owns a clause, reads a store, or decides what is recorded.
"""

from __future__ import annotations

from kbcore.logic.engine.installation import Engines, Launch, available
from kbcore.logic.engine.process import EngineEnded, EngineProcess

__all__ = ["EngineEnded", "EngineProcess", "Engines", "Launch", "available"]
