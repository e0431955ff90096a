"""One call of ``kb``: its options, its folder and environment, what it opens, and how it ends.

No command is known here but by its name.
"""
