"""What the right answer is, computed slowly and obviously, or frozen by a release.

It offers references for KIP, text search and releases. It never shares code with what it judges.
"""
