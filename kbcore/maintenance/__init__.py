"""Looking after the stores: compact a branch, prove it, and diagnose the installation."""
