"""Conflicts that a merge with another revision would make: ``kb check --against``."""
