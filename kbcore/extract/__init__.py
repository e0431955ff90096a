"""Owns the extractors: Markdown, manifests, Gherkin, and those of other packages.

Offers the facts that the bytes of one file state, with their lines.
Never reads or writes a disk.
"""
