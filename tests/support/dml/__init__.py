"""Runs of DML for tests: a model that follows a script, and the events of a run."""
