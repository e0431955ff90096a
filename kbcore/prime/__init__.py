"""Owns the briefing of an agent that begins: the branch, what changed since its last record, tasks, and what binds it.

Offers the reading of a briefing and its forms within a budget of tokens, and the text for agents in all its forms.
Writes nothing, and reads no files by itself.
"""

from __future__ import annotations
