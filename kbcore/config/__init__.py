"""What the files in ``.kb`` and the user's own settings say, checked: each fault has its file, line and JSON path.

Reads texts, which others take from files. Names that only other rooms know, such as those of rules, are asked for.
"""
