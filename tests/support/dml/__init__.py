"""Runs of DML for tests: a model that follows a script, and what a run has told."""
