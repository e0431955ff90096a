"""Owns the care of stores: proofs, the diagnosis of the installation, repairs and salvage.

Offers compaction, backup, restore, redaction, and adoption of other stores as well.
Never changes a store without keeping a copy of what it removes, but for pruning and redaction, which the user asks for.
"""
