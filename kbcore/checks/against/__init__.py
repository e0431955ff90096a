"""What a merge with another revision would bring together that does not fit: ``kb check --against``."""
