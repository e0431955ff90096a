"""META: the commands of KIP by which an agent finds out what there is."""
