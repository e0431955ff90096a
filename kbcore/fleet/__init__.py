"""Owns the facts of many repositories in one place: Parquet parts, head files, and questions that are asked of all.

Offers exporting a branch to such a place, and views of what is there, one for each repository.
Never changes a part that was written, and never exports what is not to be shared.
"""
