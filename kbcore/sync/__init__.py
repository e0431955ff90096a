"""Sync: what files say now, against what the state says they said, becomes one changeset."""
