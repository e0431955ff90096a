"""A report of ``kb check`` as text in the formats that people and other programs read. Pure, one file a format."""
