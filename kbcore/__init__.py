"""KB's core: the model, the journal, the view and what reads and writes them. No printing, no argv."""

__version__ = "0.1.0"
