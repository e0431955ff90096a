"""The documentation as it is run and generated.

It offers the runner of console blocks and the writers of generated parts of pages.
"""
