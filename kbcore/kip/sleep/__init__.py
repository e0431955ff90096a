"""The sleep cycle: keeps what agents remember in order, as far as that needs no judgement, and lists what does."""
