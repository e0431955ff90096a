"""The transport of messages: lines of JSON-RPC over two descriptors, the queue of calls, and their threads.

Knows no tool and nothing of what KB stores.
"""
