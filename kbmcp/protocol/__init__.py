"""The transport of messages: lines of JSON-RPC over two descriptors, and the queue of calls.

Knows no tool and nothing of what KB stores.
"""
