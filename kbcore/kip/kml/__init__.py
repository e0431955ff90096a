"""KML: the commands of KIP that write, each one changeset on the graph that everybody else writes to."""

from __future__ import annotations

from kbcore.kip.kml.execute import Command, Options, Written, execute, rehearse

__all__ = ["Command", "Options", "Written", "execute", "rehearse"]
