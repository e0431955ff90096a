"""Questions as agents ask them, what should be found, and how many of them a search answers."""
