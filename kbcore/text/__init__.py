"""Owns the readers of text: JSON and YAML with lines, escaping, wording and globs.

Offers what was read, and what is wrong in it as values with lines.
Never opens a file, and knows nothing of what KB stores.
"""
