"""How messages come and go: lines of JSON-RPC over two descriptors, the queue of calls, and stopping what runs.

Knows no tool and nothing of what KB stores.
"""
