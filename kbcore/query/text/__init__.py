"""Text search: the index, how what was typed is read, what it finds, and the page that shows it."""
