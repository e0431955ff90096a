"""The content of the pages of the report and of the explorer, as plain data.

Owns the overview, entity pages and the changes between two points. Reads a view that the caller has opened; offers one
function a page. Never renders, and never writes.
"""
