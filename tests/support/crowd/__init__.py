"""Many processes on one repository at once, and what must be true afterwards.

It offers members with jobs, and judges of their answers. It never decides how often a test tries.
"""
