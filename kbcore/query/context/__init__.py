"""Owns what somebody has to know before a change: facts that are tied to entities, ranked, within a budget of tokens.

Offers the gathering of facts from a view, their order, and the selection of those that fit. Pure but for reading the
view. Never reads files: ``kbcore.sync.context`` finds the entities of paths and of a diff, and reads documents.
"""

from __future__ import annotations
