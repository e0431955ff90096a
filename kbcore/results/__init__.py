"""Reports of test runs: the outcome that each states becomes the verdict of a test, by one changeset.

Offers the readers of reports, the matching of names to tests, and the write. It never asserts an edge: what a report of
coverage shows is proposed. It runs no tests.
"""
