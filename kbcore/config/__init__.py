"""Owns the settings of a repository and of its user, and the schema files.

Offers them checked: each fault has its file, line and JSON path.
Never opens a file: callers pass texts, and the names that only other rooms know, such as those of rules.
"""
