"""Git repositories with a KB, and single stores: how tests make and drive them.

It offers ``Project``, ``Store``, ``make_repository`` and the places of stores and caches. It never injects a fault.
"""
