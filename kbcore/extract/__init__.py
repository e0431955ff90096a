"""Extractors: bytes of one file in, stated facts with their lines out. Nothing here touches a disk."""
