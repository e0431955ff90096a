"""KB measured against floors: ``python -m benchmarks`` runs one module a question and prints one table of ratios."""
