"""KML: the commands of KIP that write, each one changeset on the graph that everybody else writes to."""

from __future__ import annotations

from kbcore.kip.kml.execute import Command, KmlAnswer, KmlOptions, execute, execute_on_view

__all__ = ["Command", "KmlAnswer", "KmlOptions", "execute", "execute_on_view"]
