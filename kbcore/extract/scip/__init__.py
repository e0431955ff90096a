"""Indexes of source code that the indexer of a language has written, in the format SCIP (``index.scip``).

Owns the reader of the format, the names of KB for its symbols, and the extractor. It runs no indexer, and opens no
source file: an index says what it says of the files as they were when it was written.
"""
