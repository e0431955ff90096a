"""Questions to the whole graph: what requirements lack, what a change affects, how a part of it looks."""
