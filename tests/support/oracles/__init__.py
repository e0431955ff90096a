"""Right answers, computed in a slow and simple way, or frozen by a release.

It offers references for KIP, text search and releases. It never shares code with what it judges.
"""
