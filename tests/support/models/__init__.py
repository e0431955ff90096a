"""Language models for tests: a server on loopback that answers from a script."""
