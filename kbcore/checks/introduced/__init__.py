"""Violations that a change introduced: they exist after it and did not exist before."""
