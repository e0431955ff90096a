"""File systems that misbehave, and stores that are damaged.

It offers file systems to pass in, and states of a disk after a loss of power. It never patches the code of KB.
"""
