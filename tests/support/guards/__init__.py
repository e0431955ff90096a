"""Programs with one guard taken out, and which test misses it.

It offers mutants and their detectors. The switch is here and nowhere in KB.
"""
